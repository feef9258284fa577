"""Write the lock of a target in the format of another tool."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tenv.core.errors import FileExistsAlreadyError, FormatError, LockStaleError, UsageError
from tenv.core.files import write_atomic
from tenv.interop.formats import find_format
from tenv.interop.interface import Exported, Located, Subject
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.sources.staleness import differences
from tenv.sources.wheels.urls import find_wheels
from tenv.targets.search import Target
from tenv.targets.sections import SECTIONS

__all__ = ["ExportRequest", "Written", "export", "refuse_existing", "write"]


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The request for an export.

    Attributes:
        format: The format's name.
        target: The target; None for that of the only environment.
        lock_file: The lock; None for the target's own.
        platforms: The platforms; empty for all platforms of the lock.
        python: The Python minor whose wheels are exported, where Python is not a conda package; empty for all.
        requests: Write the requests of the manifest, not the locked packages.
        md5: Write MD5 in place of sha256.
    """

    format: str
    target: str | None = None
    lock_file: Path | None = None
    platforms: tuple[str, ...] = ()
    python: str = ""
    requests: bool = False
    md5: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The result of an export.

    Attributes:
        target: The target.
        exported: The files, and what they can't hold.
    """

    target: Target
    exported: Exported


def export(context: Context, request: ExportRequest) -> Written:
    """Return a target's lock as files of another tool.

    Raises:
        FormatError: The format is unknown, or can't hold the lock.
        LockStaleError: The lock does not satisfy the manifest.
        NetworkError: The format needs URLs of wheels, and the indexes in use lack one.
    """
    chosen = find_format(request.format)
    if chosen.export is None:
        raise FormatError(f"`{chosen.name}` has no export, only an import")
    target = context.find_target(request.target)
    subject = _subject(target, request)
    if chosen.needs_urls(subject):
        wheels = {platform: subject.wheels(platform) for platform in subject.platforms}
        glibc = target.manifest.requirements.glibc
        found, indexes = find_wheels(context.uv(), wheels, glibc, context.progress, metadata=chosen.needs_metadata)
        located = {key: Located(w.url, w.requires_dist, w.requires_python, w.known) for key, w in found.items()}
        subject = _subject(target, request, located, indexes)
    exported = chosen.export(subject)
    for section in SECTIONS:
        files = {file.name for platform in subject.platforms for file in subject.lock.files(section.key, platform)}
        if section.keys and files:
            exported = replace(exported, lost=(*exported.lost, f"[{section.name}]: {', '.join(sorted(files))}"))
    if local := sum(row.url.startswith("file:") for row in subject.located.values()):
        lost = f"URLs of {local} wheels: the index is a folder of this machine, so they are local paths"
        exported = replace(exported, lost=(*exported.lost, lost))
    return Written(target, exported)


def _subject(
    target: Target, request: ExportRequest, located: dict[str, Located] | None = None, indexes: Sequence[str] = ()
) -> Subject:
    file = request.lock_file or target.lock_file
    lock = read_lock(file, target.name)
    if stale := differences(lock, target.manifest):
        listed = "".join(f"\n  {line}" for line in stale)
        raise LockStaleError(
            f"{file} does not satisfy its manifest:{listed}", hint=f"`tenv lock {target.name}` updates the lock"
        )
    platforms = tuple(name for name in target.manifest.platforms if name in lock.platforms)
    if unknown := [name for name in request.platforms if name not in platforms]:
        raise UsageError(
            f"{target.name} has no platform `{unknown[0]}`", hint=f"its platforms are {', '.join(platforms)}"
        )
    platforms = tuple(name for name in platforms if name in request.platforms) if request.platforms else platforms
    minors = {minor for name in platforms for minor in lock.python_minors(name)}
    if request.python and request.python not in minors:
        listed = ", ".join(sorted(minors)) or "no Python"
        raise UsageError(
            f"the lock of {target.name} does not serve Python {request.python}", hint=f"the lock serves {listed}"
        )
    return Subject(
        target.manifest, lock, platforms, request.python, located or {}, tuple(indexes), request.requests, request.md5
    )


def write(exported: Exported, folder: Path, *, force: bool) -> list[Path]:
    """Write the files of an export into a folder.

    Raises:
        FileExistsAlreadyError: A file exists, and `force` is not set.
    """
    paths = {folder / name: data for name, data in exported.files.items()}
    refuse_existing(paths, force=force)
    for path, data in paths.items():
        write_atomic(path, data)
    return list(paths)


def refuse_existing(paths: Sequence[Path] | dict[Path, bytes], *, force: bool) -> None:
    """Raise an error if one of the files exists and `force` is not set."""
    existing = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if existing and not force:
        raise FileExistsAlreadyError(f"{', '.join(existing)}: already exists", hint="`--force` overwrites it")
