"""Make a target from a file of another tool: the manifest, and the lock if the file has hashes."""

import re
import shlex
import tempfile
from pathlib import Path

from tenv.checks.rules.interface import Severity
from tenv.checks.rules.toolkit import check_lock
from tenv.core.dataclass import dataclass
from tenv.core.errors import FormatError, LockCorruptError, LockStaleError, ManifestError, TenvError, UsageError
from tenv.core.files import write_atomic
from tenv.core.names import channel_urls
from tenv.interop.drafts import render_draft, with_cuda, without_doubles, without_logins
from tenv.interop.formats import find_format, recognize
from tenv.interop.interface import ForeignLock, Format, Imported, read_source
from tenv.interop.pixi import lock_text
from tenv.locks.lock import Lock, from_manifest
from tenv.locks.lock_file import read_lock, render_lock
from tenv.project.context import Context
from tenv.sources.interface import differences
from tenv.targets.manifest import PLATFORMS, Manifest
from tenv.targets.manifest_file import read_manifest
from tenv.verbs.export import refuse_existing
from tenv.verbs.kept_locks import require_kept

__all__ = ["ImportRequest", "ImportedTarget", "import_file"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The request for an import.

    Attributes:
        file: The file.
        format: Its format; None to detect it from its name and first lines.
        name: The target's name; None for the name in the file, or that of its folder.
        environment: The environment to import if the file holds several; empty for the default one.
        platforms: The platforms to import; empty for all in the file.
        force: Overwrite existing files.
        lock: Also write a lock if the file has hashes.
    """

    file: Path
    format: str | None = None
    name: str | None = None
    environment: str = ""
    platforms: tuple[str, ...] = ()
    force: bool = False
    lock: bool = True


@dataclass(frozen=True, slots=True)
class ImportedTarget:
    """The result of an import.

    Attributes:
        target: The target's name.
        format: The format of the file.
        manifest: The manifest's file.
        lock: The lock's file; None without a lock.
        counts: The number of conda packages and wheels in the lock, by platform.
        lost: The parts of the file that the target lacks, one sentence each.
    """

    target: str
    format: str
    manifest: Path
    lock: Path | None
    counts: dict[str, dict[str, int]]
    lost: tuple[str, ...]


def import_file(context: Context, request: ImportRequest, *, user: bool = False) -> ImportedTarget:
    """Make a target from a file of another tool.

    Args:
        context: The context of the verb.
        request: The file to import.
        user: Make it one of the user's own targets.

    Raises:
        UsageError: There is no project, and `user` is not given.
        FormatError: tenv does not read the format of the file, or the file has nothing that a target can hold.
        LockCorruptError, ManifestError: The file can't be read.
        LockStaleError: Its packages do not satisfy its requests.
        FileExistsAlreadyError: The target exists, and `force` is not set.
    """
    if unknown := [name for name in request.platforms if name not in PLATFORMS]:
        raise UsageError(f"unknown platform `{unknown[0]}`", hint=f"known platforms: {', '.join(PLATFORMS)}")
    source = read_source(request.file, request.environment, request.platforms)
    chosen = find_format(request.format) if request.format else recognize(source)
    if chosen.read is None:
        raise FormatError(f"`{chosen.name}` has no import, only an export")
    found = without_logins(chosen.read(source))
    name = _name(request, found)
    place = context.places.places[0]
    if context.places.project is None and not user:
        raise UsageError(
            f"there is no project here, so {place.manifest_file(name)} would be written",
            hint="`tenv import --user` does that; `tenv init` makes this folder a project",
        )
    paths = [place.manifest_file(name), place.lock_file(name)]
    if found.part and request.lock:
        command = f"tenv import {shlex.quote(str(request.file))}"
        require_kept(paths[1], command, f"`{command} --no-lock` writes the manifest alone")
    refuse_existing(paths if found.part and request.lock else paths[:1], force=request.force)
    return _write(chosen, request, found, name, *paths)


def _name(request: ImportRequest, found: Imported) -> str:
    if request.name is not None:
        if not _NAME.fullmatch(request.name):
            raise UsageError(
                f"`{request.name}` is not a name for a target", hint="`--name` takes letters, digits, `.`, `_` and `-`"
            )
        return request.name
    for name in (found.name, request.file.absolute().parent.name):
        if word := re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._"):
            return word
    raise UsageError(f"{request.file}: names no target", hint="`--name NAME` names the target")


def _write(
    chosen: Format, request: ImportRequest, found: Imported, name: str, manifest: Path, lock: Path
) -> ImportedTarget:
    draft, doubts = with_cuda(found.draft, found.part)
    draft, more = without_doubles(draft)
    text = render_draft(draft, request.file.name, manifest.absolute().parent)
    raw, part = b"", found.part if request.lock else None
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        trial = Path(folder) / manifest.name
        trial.write_text(text, encoding="utf-8")
        asked = _read_back(request.file, name, trial, manifest.absolute().parent)
        if part:
            raw = _lock_bytes(request.file, asked, part)
            check = Path(folder) / lock.name
            check.write_bytes(raw)
            made = read_lock(check, name)
            _require_answers(request.file, made, asked)
            _require_one_release(request.file, made)
    write_atomic(manifest, text)
    if part:
        write_atomic(lock, raw)
    counts = _counts(asked, part) if part else {}
    return ImportedTarget(name, chosen.name, manifest, lock if part else None, counts, (*found.lost, *doubts, *more))


def _require_answers(file: Path, lock: Lock, asked: Manifest) -> None:
    """Raise an error for a file whose packages do not satisfy its requests: no tool installed that set."""
    if faults := differences(lock, asked):
        listed = "".join(f"\n  {fault}" for fault in faults)
        raise LockStaleError(
            f"{file}: its packages do not satisfy its requests:{listed}",
            hint="`--no-lock` writes the manifest alone; the tool that wrote the file updates it",
        )


def _require_one_release(file: Path, lock: Lock) -> None:
    """Refuse packages that do not fit together, as ``tenv lock --check`` would refuse their lock."""
    faults = [found for found in check_lock(lock) if found.severity is Severity.ERROR]
    if faults:
        listed = "".join(f"\n  {found.subject} {found.message} ({found.code})" for found in faults)
        raise LockStaleError(
            f"{file}: its packages do not fit together, so nothing is written:{listed}",
            hint=f"{faults[0].fix}; or `--no-lock` writes the manifest alone",
        )


def _counts(manifest: Manifest, part: ForeignLock) -> dict[str, dict[str, int]]:
    return {
        platform: {"conda": len(part.conda.get(platform, ())), "wheels": len(part.wheels.get(platform, ()))}
        for platform in manifest.platforms
    }


def _read_back(file: Path, name: str, trial: Path, home: Path) -> Manifest:
    def none(parent: str) -> Path:
        raise ManifestError(f"no manifest `{parent}`")

    try:
        return read_manifest(name, trial, none, trial.name, home)
    except TenvError as error:
        raise ManifestError(f"{file}: can't be converted to a manifest: {error.message}", hint=error.hint) from error


def _lock_bytes(file: Path, manifest: Manifest, part: ForeignLock) -> bytes:
    rows = {platform: ({"name": platform}, part.conda.get(platform, ())) for platform in manifest.platforms}
    wheels = {platform: tuple(sorted(part.wheels.get(platform, ()), key=str)) for platform in manifest.platforms}
    channels = tuple(part.channels) or tuple(url for word in manifest.channels for url in channel_urls(word))
    try:
        conda = lock_text(manifest.name, channels, rows, part.options)
    except ValueError as error:
        raise LockCorruptError(f"{file}: can't be converted to a lock: {error}") from error
    return render_lock(from_manifest(manifest, {"wheels": wheels}), conda)
