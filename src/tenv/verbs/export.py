"""Write the lock of a target in the format of another tool."""

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tenv.checks.checkout_state import find_checkout
from tenv.core.dataclass import dataclass
from tenv.core.errors import (
    FileExistsAlreadyError,
    FormatError,
    LockStaleError,
    ManifestError,
    NetworkError,
    TenvError,
    UsageError,
)
from tenv.core.files import make_folder, read_regular, write_atomic
from tenv.core.toml_reader import read_toml
from tenv.interop.formats import ONLY_READ, find_format
from tenv.interop.interface import Exported, Format, Located, Site, Subject
from tenv.locks.lock import Wheel
from tenv.locks.lock_features import take
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.sources.interface import differences
from tenv.sources.wheels.index_requests import located as located_wheels
from tenv.sources.wheels.index_requests import located_sdist
from tenv.sources.wheels.urls import find_wheels
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.search import Origin, Target, sister_hint
from tenv.targets.sections import SECTIONS
from tenv.toolchain.discover import Toolchain, discover


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The request for an export."""

    format: str
    """The format's name."""
    target: str | None = None
    """The target; None for the only environment's."""
    lock_file: Path | None = None
    """The lock; None for the target's own."""
    platforms: tuple[str, ...] = ()
    """The platforms; empty for all platforms of the lock."""
    python: str = ""
    """The Python minor whose wheels are exported, where Python is not a conda package; empty for all."""
    requests: bool = False
    """Write the requests of the manifest, not the locked packages."""
    md5: bool = False
    """Write MD5 in place of sha256."""
    folder: Path = Path()
    """The destination folder of the files."""
    prefix: Path | None = None
    """The environment's folder, for a format that names the environment; None for the default one."""
    base: str = ""
    """The base image of a container; empty for the first that fits."""


@dataclass(frozen=True, slots=True)
class Written:
    """The result of an export."""

    target: Target | None
    """The target; None for a format that is about none."""
    exported: Exported
    """The files, and the parts that they can't hold."""
    format: Format
    """The format."""


def export(context: Context, request: ExportRequest) -> Written:
    """Return a target's lock as files of another tool.

    Raises:
        FormatError: The format is unknown, or can't hold the lock.
        LockStaleError: The lock does not satisfy the manifest.
        NetworkError: The format needs URLs of wheels, and the indexes in use lack one.
    """
    chosen = find_format(request.format, ONLY_READ)
    if chosen.alone:
        if request.target:
            raise UsageError(f"`{chosen.name}` is the same for all targets", hint=f"`tenv export {chosen.name}`")
        return Written(None, chosen.alone(), chosen)
    if chosen.export is None:
        raise FormatError(f"`{chosen.name}` has no export, only an import")
    target = context.find_target(request.target)
    _refuse_elsewhere(target, chosen)
    subject = _subject(target, request)
    if chosen.needs_environment:
        subject = replace(subject, site=_site(context, target, request))
    if chosen.carries:
        carried, home = _carried(context, target, request), _home(context, target, request)
        subject = replace(subject, carried=carried, base=request.base, home=home, folder=request.folder)
    if chosen.needs_urls(subject):
        whole = with_features(target.manifest)
        wheels = {
            platform: located_wheels(_wheels_of(subject, chosen, platform), whole.on(platform))
            for platform in subject.platforms
        }
        glibc = target.manifest.requirements.glibc
        found, indexes = find_wheels(context.uv(), wheels, glibc, context.progress, metadata=chosen.needs_metadata)
        located = {key: Located(w.url, w.requires_dist, w.requires_python, w.known) for key, w in found.items()}
        located |= _archives(context, subject, whole)
        subject = _subject(target, request, located, indexes)
    exported = chosen.export(replace(subject, here=_python_here(context, target, request)))
    if chosen.carries:
        exported = replace(exported, lost=(*exported.lost, *_unreached(subject, request.folder)))
    if chosen.carries and any(name.endswith(f"locks/{target.name}.lock") for name in exported.files):
        exported = replace(exported, notes=(*exported.notes, *_about_copies(chosen, target, request.folder)))
    return Written(target, _with_lost(exported, subject, chosen) if chosen.holds_lock else exported, chosen)


def _python_here(context: Context, target: Target, request: ExportRequest) -> str:
    """Return the Python minor of the target's environment on this machine; empty without a ready one."""
    from tenv.verbs.activate import find_environment  # late: few formats have one Python

    if request.lock_file is not None:
        return ""
    try:
        return find_environment(context, target.name, request.prefix)[2].python
    except TenvError:
        return ""


def _unreached(subject: Subject, folder: Path) -> Iterator[str]:
    """Yield a line for each package that only this machine has, and that another one is to install.

    Args:
        subject: The export; with a project below the folder, the other machine has the folder.
        folder: The folder of the export.
    """
    home = os.path.abspath(folder)  # noqa: PTH100 (links stay)
    places = dict[str, str]()
    for platform in subject.platforms:
        asked = subject.manifest.on(platform).wheels
        for tree in subject.lock.trees.get(platform, ()):
            if tree.path and (found := asked.get(tree.name)) and found.tree:
                places[tree.name] = str(found.tree.folder)
            elif tree.git.startswith("file:"):
                places[tree.name] = tree.git
        for wheel in subject.wheels(platform):
            index = wheel.index
            local = index.url.removeprefix("file://") if index and not index.url.startswith("http") else ""
            if file := subject.file_of(platform, wheel) or (index and local and index.base / local):
                places[wheel.name] = str(file)
        rows = subject.lock.conda.get(platform, ())
        places |= {row.name: row.url for row in rows if row.url.startswith("file:")}
    for name, place in sorted(places.items()):
        if not (subject.home and Path(place).is_relative_to(home)):
            way = "a git repository or an index reaches it"
            yield f"{name} from {place}, which is on this machine alone, so `tenv create` fails there: {way}"


def _refuse_elsewhere(target: Target, chosen: Format) -> None:
    """Raise FormatError for a toolkit beside an environment in a format that makes it on another machine."""
    if chosen.carries and (beside := target.manifest.beside):
        raise FormatError(
            f"`{target.name}` is a toolkit for the torch of {beside}, which a machine of {chosen.name} does not have",
            hint=f"`tenv init {target.name}-own --torch {beside}` makes a target that has this torch itself",
        )


def _wheels_of(subject: Subject, chosen: Format, platform: str) -> tuple[Wheel, ...]:
    """Return the wheels that an export has of a platform, with those of features if the format has features."""
    features = subject.manifest.features if chosen.features else ()
    rows = [row for one in (subject, *map(subject.with_feature, features)) for row in one.wheels(platform)]
    return tuple({row.sha256: row for row in rows}.values())


def _archives(context: Context, subject: Subject, manifest: Manifest) -> dict[str, Located]:
    """Return the source archives of a target that the indexes in use have, by their digests."""
    every = (subject.whole or subject.lock).trees
    rows = {
        row.digest: located_sdist(row, manifest.on(platform))
        for platform in subject.platforms
        for row in every.get(platform, ())
        if row.file and row.isolated
    }
    found = dict[str, Located]()
    for digest, row in rows.items():
        with contextlib.suppress(NetworkError):  # the export names the package
            found[digest] = Located(context.uv().sdist_urls([row])[digest], tuple(row.requires or ()))
    return found


def _with_lost(exported: Exported, subject: Subject, chosen: Format) -> Exported:
    """Return an export that also lists the parts that no format holds."""
    for section in SECTIONS:
        files = {file.name for platform in subject.platforms for file in subject.lock.files(section.key, platform)}
        if section.keys and files:
            exported = replace(exported, lost=(*exported.lost, f"[{section.name}]: {', '.join(sorted(files))}"))
    rows = [tree for platform in subject.platforms for tree in subject.lock.trees.get(platform, ())]
    trees = {tree.name: tree.file or str(tree.request) for tree in rows}
    held = trees.keys() if subject.requests or "pixi.toml" in exported.files else exported.built
    for name, request in sorted((name, trees[name]) for name in trees.keys() - held):
        exported = replace(exported, lost=(*exported.lost, f"{name}, which is built from {request}"))
    if (names := ", ".join(subject.manifest.features)) and not chosen.features:
        lost = f"features {names}: what is written is the target alone"
        exported = replace(exported, lost=(*exported.lost, lost))
    if beside := subject.manifest.beside:
        lost = f"`for`: the headers and libraries of CUDA in {beside}, and that its Python stays the one on PATH"
        exported = replace(exported, lost=(*exported.lost, lost))
    if local := sum(row.url.startswith("file:") for row in subject.located.values()):
        lost = f"URLs of {local} wheels: the index is a folder of this machine, so they are local paths"
        exported = replace(exported, lost=(*exported.lost, lost))
    return exported


def _carried(context: Context, target: Target, request: ExportRequest) -> dict[str, bytes]:
    """Return the files of a project that has this target alone: its manifest, the manifests it extends, its lock."""
    files = {}
    name, file = target.name, target.file
    while name:
        files[f"manifests/{name}.toml"] = read_regular(file)
        name = read_toml(file, ManifestError).text("extends")
        file = context.places.find_parent(name) if name else file
    return {**files, f"locks/{target.name}.lock": read_regular(request.lock_file or target.lock_file)}


def _home(context: Context, target: Target, request: ExportRequest) -> str:
    """Return the project below the folder of an export that holds all files of a target; empty for none."""
    project = context.places.project
    folder = Path(os.path.abspath(request.folder))  # noqa: PTH100 (links stay as they are)
    if project is None or request.lock_file is not None or not project.is_relative_to(folder):
        return ""
    built_in = next(place.folder for place in context.places.places if place.origin is Origin.BUILT_IN)
    own = project in target.file.parents and project in target.lock_file.parents
    parents = all(not {project, built_in}.isdisjoint(file.parents) for file in target.files)
    return project.relative_to(folder).as_posix() if own and parents else ""


def _about_copies(chosen: Format, target: Target, folder: Path) -> Iterator[str]:
    """Yield a line about the copies of a manifest and a lock that may change."""
    if target.origin is not Origin.BUILT_IN:
        to = [] if folder == Path() else ["-o", str(folder)]
        again = f"`{shlex.join(['tenv', 'export', chosen.name, target.name, *to, '--force'])}`"
        yield f"the manifest and the lock are copies: {again} renews them after a change"


def _site(context: Context, target: Target, request: ExportRequest) -> Site:
    """Return the environment on this machine, which must be ready."""
    from tenv.verbs.activate import find_activation, find_environment  # late: few formats name an environment

    activation = find_activation(context, target.name, request.prefix)
    *_, state = find_environment(context, target.name, request.prefix)
    folder = Path(os.path.abspath(request.folder))  # noqa: PTH100 (links stay as they are)
    toolchain, python = discover(activation.prefix), state.python
    if target.manifest.beside:
        toolchain, python = _with_python_there(toolchain, target.manifest.beside)
    return Site(
        folder=folder,
        activation=activation,
        environ=activation.apply(context.environ),
        toolchain=toolchain,
        python=python,
        beside=bool(target.manifest.beside),
        checkout=find_checkout(folder, toolchain.site_packages),
        manifest=target.file,
        activate=_activate_words(context, target, request, folder),
    )


def _with_python_there(toolchain: Toolchain, beside: str) -> tuple[Toolchain, str]:
    """Return the tools of a toolkit beside an environment with the Python of that environment, and its minor."""
    from tenv.host.torch_files import BasePython, FolderTorch, find_torch  # late: few targets are beside another

    files = find_torch(Path(beside))
    if not isinstance(files, FolderTorch):
        return toolchain, ""
    minor = files.python.version if isinstance(files.python, BasePython) else ""
    programs = [Path(files.prefix) / "bin" / name for name in ("python", f"python{minor}", "python3")]
    python = next((path for path in programs if path.is_file()), programs[0])
    return replace(toolchain, python=python, site_packages=files.package.parent), minor


def _activate_words(context: Context, target: Target, request: ExportRequest, folder: Path) -> tuple[str, ...]:
    """Return the words after `tenv` that print the activation script, with paths relative to a folder."""
    project, prefix = context.places.project, request.prefix
    outside = project is not None and project not in (folder, *folder.parents)
    where = ("-C", os.path.relpath(project, folder)) if project and outside else ()
    base = project if project and outside else folder
    named = ("--prefix", os.path.relpath(os.path.abspath(prefix), base)) if prefix else ()  # noqa: PTH100 (as above)
    return (*where, "activate", target.name, *named, "--shell", "bash")


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
        hint = sister_hint(target.manifest, unknown[0]) or f"its platforms are {', '.join(platforms)}"
        raise UsageError(f"{target.name} has no platform `{unknown[0]}`", hint=hint)
    platforms = tuple(name for name in platforms if name in request.platforms) if request.platforms else platforms
    minors = {minor for name in platforms for minor in lock.python_minors(name)}
    if request.python and request.python not in minors:
        listed = ", ".join(sorted(minors)) or "no Python"
        raise UsageError(
            f"the lock of {target.name} does not serve Python {request.python}", hint=f"the lock serves {listed}"
        )
    own = None if target.origin is Origin.BUILT_IN else target.file.parent.parent
    return Subject(
        target.manifest,
        take(lock),
        platforms,
        request.python,
        located or {},
        tuple(indexes),
        request.requests,
        request.md5,
        whole=lock,
        own=own,
    )


def write(written: Written, folder: Path, *, force: bool) -> tuple[list[Path], list[str]]:
    """Write the files of an export into a folder, or merge them into existing files if the format can.

    Returns:
        The files, and the kept values, one line each.

    Raises:
        FileExistsAlreadyError: A file exists, and `force` is not set.
        FormatError: An existing file can't be read.
    """
    paths = {folder / name: data for name, data in written.exported.files.items()}
    for parent in dict.fromkeys(path.parent for path in paths):
        if parent.exists() and not parent.is_dir():
            raise FileExistsAlreadyError(f"{parent} is a file, no folder", hint="`-o FOLDER` names another place")
    kept: list[str] = []
    add = written.format.add
    if add is None:
        # The context is the same for a Dockerfile and an Apptainer definition beside it.
        again = written.format.carries or (written.format.whole and not written.exported.write)
        carried = {path for path, data in paths.items() if again and _holds(path, data)}
        refuse_existing([path for path in paths if path not in carried], force=force)
    for path, data in paths.items():
        if add and path.exists():
            try:
                addition = add(path.name, read_regular(path), data, force)
            except ValueError as error:  # UnicodeDecodeError is one
                raise FormatError(f"{path}: can't be added to: {error}", hint="mend it, or move it away") from error
            paths[path] = addition.data
            kept += [f"{path}: {place}" for place in addition.kept]
    for path, data in paths.items():
        if written.exported.write:
            make_folder(path.parent)
            written.exported.write(path)
        else:
            write_atomic(path, data)
    return list(paths), kept


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data


def refuse_existing(paths: Sequence[Path] | dict[Path, bytes], *, force: bool) -> None:
    """Raise an error if one of the files exists and `force` is not set."""
    existing = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if existing and not force:
        raise FileExistsAlreadyError(f"{', '.join(existing)}: already exists", hint="`--force` overwrites it")
