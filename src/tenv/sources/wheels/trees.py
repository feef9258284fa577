"""Packages that are built from source trees: locked by their metadata.

To uv, which resolves their requirements, each is a wheel with that metadata and no files, so that a lock for any
platform is made on any other. Where the ``pyproject.toml`` holds all of it, no code of a tree runs before
``tenv create``; else locking asks the build backend, and comparing a lock does not.
"""

import contextlib
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.core.errors import LockStaleError, NoSolutionError
from tenv.core.files import read_regular
from tenv.core.names import info_of, pure_wheel
from tenv.core.versions import Version
from tenv.locks.lock import Lock, LockedTree
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.access import Access
from tenv.sources.interface import Problem
from tenv.sources.wheels.git_trees import clone
from tenv.sources.wheels.project_metadata import ProjectMetadata, read_project
from tenv.targets.manifest import Manifest, WheelRequest
from tenv.targets.tree_request import TreeRequest

if TYPE_CHECKING:
    from tenv.sources.wheels.compiled import CompiledSdists

Known = tuple[ProjectMetadata, str]
"""The metadata of a source tree, and its commit."""


class Trees:
    """The source trees that a problem asks for; each is read once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: dict[tuple[str, TreeRequest], Known] = {}

    def of(self, name: str, request: TreeRequest) -> Known:
        """Return the metadata and the commit of a source tree.

        Raises:
            NoSolutionError: It has no metadata, or that of another package or for other Pythons.
            NetworkError: Its repository, or the index of its build requirements, can't be reached.
        """
        key = (name, request)
        if key not in self._known:
            self._known[key] = self._read(name, request)
            require_pythons(name, self._known[key][0], self._problem.manifest.python_minors())
        return self._known[key]

    def _read(self, name: str, request: TreeRequest) -> Known:
        access = self._problem.access
        if request.path:
            return self._of_folder(name, request), ""
        row = self._kept(name, request)
        access.progress.step(f"reading {name} from {request.git}")
        with clone(request, access) as tree:
            if row and not tree.has(row.commit):  # of a history that was rewritten
                row = None
            commit = row.commit if row else tree.newest()
            where = f"{name} of {request.git} at {commit[:12]}"
            found = read_project(tree.project_file(commit), where)
            if found is None and row and self._knows(row):
                found = _as_locked(row)
            if found is None:
                found = self._as_asked(name, where, tree.project_file(commit))
            if found is None:
                with tree.files(commit) as folder:
                    found = read_project(_project_file(folder, where), where) or self._ask(folder, where)
        return _require_name(name, found, where), commit

    def _knows(self, row: LockedTree) -> bool:
        """Return whether a row of the old lock has the metadata of a build backend, for every Python of today."""
        return row.dynamic and set(self._problem.manifest.python_minors()) <= {*row.python}

    def _of_folder(self, name: str, request: TreeRequest) -> ProjectMetadata:
        where = f"{name} in {request.folder}"
        found = static_metadata(name, request)
        found = found or self._as_asked(name, where, _project_file(request.folder, where))
        return _require_name(name, found or self._ask(request.folder, where), where)

    def _as_asked(self, name: str, where: str, raw: bytes | None) -> ProjectMetadata | None:
        """Return the metadata of a tree whose version is computed; None for an isolated build.

        Its requirements are those of the manifest, else those that its ``pyproject.toml`` has beside that version.

        Args:
            name: The package.
            where: The source tree, for messages.
            raw: Its ``pyproject.toml``; None without one.

        Raises:
            NoSolutionError: It is compiled against the target's torch, which its backend needs, and they are nowhere.
        """
        manifest = self._problem.manifest
        rows = (manifest.on(platform).wheels.get(name) for platform in manifest.platforms)
        request = next((row for row in rows if row and not row.isolated), None)
        if request is None:
            return None
        if request.requires is None:
            if found := read_project(raw, where, "0"):
                return replace(found, dynamic=True)
            raise NoSolutionError(
                f"{where}: only its build backend knows its requirements, and that does not run without torch",
                hint=f"`requires = […]` at {name} in the manifest names them",
            )
        return ProjectMetadata(name, "0", request.requires, dynamic=True)

    def _ask(self, folder: Path, where: str) -> ProjectMetadata:
        """Return the metadata that a build backend computes, run by a Python of the target's or else by tenv's own.

        Raises:
            NoSolutionError: It fails, or this command runs no code.
        """
        from tenv.sources.wheels.backend_metadata import Backend  # late: few trees have a dynamic value

        problem = self._problem
        access, newest = problem.access, problem.limits.exclude_newer
        if not problem.limits.ask_backends:
            raise NoSolutionError(
                f"{where}: only its build backend knows its version or requirements, and a merge runs none",
                hint=f"`git checkout --ours` on the lock, then `tenv lock {problem.manifest.name}` asks it",
            )
        access.progress.say(f"{where}: its build backend runs now, since it computes the version or the requirements")
        uv = access.uv()
        minors = problem.manifest.python_minors()
        pythons = uv.interpreters(minors) if minors else []
        python = pythons[0].path if pythons else Path(sys.executable)
        settings = {"UV_EXCLUDE_NEWER": f"{newest:%Y-%m-%dT%H:%M:%SZ}"} if newest else {}
        return Backend(uv, python, folder, where, access.environ, settings).metadata()

    def _kept(self, name: str, request: TreeRequest) -> LockedTree | None:
        """Return the row of the old lock, where the manifest asks for the same and its commit is not to move."""
        old, upgrade = self._problem.old, self._problem.upgrade
        if old is None or upgrade is None or name in upgrade:
            return None
        rows = (tree for trees in old.trees.values() for tree in trees)
        return next((tree for tree in rows if tree.name == name and tree.request == request), None)

    def locked(self, cases: Sequence[tuple[str, str]]) -> dict[str, tuple[LockedTree, ...]]:
        """Return the rows of the lock by platform.

        Args:
            cases: Each platform with each of its Python minors.
        """
        found: dict[str, tuple[LockedTree, ...]] = {}
        for platform in dict.fromkeys(platform for platform, _ in cases):
            minors = tuple(sorted({minor for where, minor in cases if where == platform}, key=Version))
            asked = _asked(self._problem.manifest.on(platform))
            rows = []
            for name, request in sorted(asked.items()):
                known, commit = self.of(name, request)
                isolated = self._problem.manifest.on(platform).wheels[name].isolated
                keys: dict[str, Any] = {**request.given(), "isolated": isolated}
                rows.append(
                    LockedTree(name, known.version, minors, known.requires, commit, dynamic=known.dynamic, **keys)
                )
            if rows:
                found[platform] = tuple(rows)
        return found


def require_pythons(name: str, known: ProjectMetadata, minors: Sequence[str]) -> None:
    """Refuse a package for other Pythons than the target's: uv only reports that there is no wheel of it."""
    from packaging.specifiers import SpecifierSet  # late: 15 ms

    accepted = SpecifierSet(known.python)
    unfit = [minor for minor in minors if not any(accepted.contains(f"{minor}.{patch}") for patch in range(40))]
    if unfit:
        raise NoSolutionError(
            f"{name} {known.version} requires Python {known.python}, the target has {', '.join(unfit)}",
            hint="set `python` in the manifest to a range that fits",
        )


def _asked(manifest: Manifest) -> dict[str, TreeRequest]:
    return {name: request.tree for name, request in manifest.wheels.items() if request.tree}


def static_metadata(name: str, request: TreeRequest) -> ProjectMetadata | None:
    """Return the metadata of a folder; None if its build backend computes a value.

    Raises:
        NoSolutionError: It is no source tree, or that of another package.
    """
    folder = request.folder
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        hint = "`path` is relative to the folder of the manifest"
        if folder.is_file():
            hint = f"`path` takes the folder that {folder.name} unpacks to"
        raise NoSolutionError(f"{name}: {folder} {what}", hint=hint)
    where = f"{name} in {folder}"
    found = read_project(_project_file(folder, where), where)
    return found and _require_name(name, found, where)


def _project_file(folder: Path, where: str) -> bytes | None:
    """Return the ``pyproject.toml`` of a source tree; None for one with a ``setup.py`` alone.

    Raises:
        NoSolutionError: It has neither, or the file can't be read.
    """
    try:
        return read_regular(folder / "pyproject.toml")
    except FileNotFoundError:
        if (folder / "setup.py").is_file():
            return None
        raise NoSolutionError(f"{where}: has neither a pyproject.toml nor a setup.py") from None
    except OSError as error:
        raise NoSolutionError(f"{where}: its pyproject.toml can't be read: {error.strerror or error}") from error


def _as_locked(row: LockedTree) -> ProjectMetadata:
    """Return the metadata of a commit that the lock has from the build backend: a commit does not change."""
    return ProjectMetadata(row.name, row.version, row.requires, _extras_in(row.requires), dynamic=True)


def _extras_in(requires: Sequence[str]) -> tuple[str, ...]:
    rows = (requirement_of(text) for text in requires)
    return tuple(sorted({extra for row in rows if row for extra in row.named}))


def _require_name(name: str, found: ProjectMetadata, where: str) -> ProjectMetadata:
    if found.name != name:
        raise NoSolutionError(
            f"{where} is the package `{found.name}`, not `{name}`", hint=f"request it as {found.name}"
        )
    return found


@contextlib.contextmanager
def stand_ins(
    problem: Problem, trees: Trees, compiled: "CompiledSdists", cases: Sequence[tuple[str, str]]
) -> Iterator[Problem]:
    """Yield a problem in which each source tree is a wheel without files, in a folder that is removed afterwards.

    So is each source archive that is compiled against the target's torch.
    """
    manifest, minors = problem.manifest, dict(reversed(cases))
    rows = [row for platform in manifest.platforms for row in manifest.on(platform).wheels.values()]
    if not any(row.tree or not row.isolated for row in rows):
        yield problem
        return
    compiled.read(minors)
    with tempfile.TemporaryDirectory(prefix="tenv-") as name:
        folder = Path(name)

        def stand_in(name: str, request: WheelRequest, platform: str) -> WheelRequest:
            if request.tree:
                known, commit = trees.of(name, request.tree)
            elif request.isolated:
                return request
            else:
                known, commit = compiled.metadata(name, request, platform, minors[platform]), ""
                require_pythons(name, known, [minor for where, minor in cases if where == platform])
            path = _write_wheel(folder / (commit or "folder"), known)
            return replace(request, tree=TreeRequest(path=str(path)), index="", build=False, isolated=True)

        views = {platform: manifest.on(platform) for platform in manifest.platforms}
        stood_in = {
            platform: replace(view, wheels={one: stand_in(one, row, platform) for one, row in view.wheels.items()})
            for platform, view in views.items()
        }
        old, ours = (
            problem.old,
            {name for view in views.values() for name, row in view.wheels.items() if not row.isolated},
        )
        if old:  # the lock may have a wheel of an index in place of an archive
            kept = {where: tuple(row for row in rows if row.name not in ours) for where, rows in old.wheels.items()}
            old = replace(old, wheels=kept)
        yield replace(problem, manifest=replace(manifest, by_platform=stood_in), old=old)


def _write_wheel(folder: Path, known: ProjectMetadata) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / pure_wheel(known.name.replace("-", "_"), known.version)
    with zipfile.ZipFile(path, "w") as wheel:
        info = info_of(known.name, known.version)
        wheel.writestr(f"{info}/METADATA", known.core_metadata())
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tenv\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def require_folders(manifest: Manifest) -> None:
    """Raise NoSolutionError for a folder of a manifest that is no source tree of its package."""
    for name, request in _asked(manifest).items():
        if request.path:
            static_metadata(name, request)


def folder_differences(lock: Lock, manifest: Manifest, platform: str) -> Iterator[str]:
    """Yield the differences between folders of a manifest and their rows in the lock, one sentence each.

    A missing or unreadable folder is left to `create`, and so are the values that a build backend computes: no code
    runs to compare.
    """
    rows: Mapping[str, LockedTree] = {tree.name: tree for tree in lock.trees.get(platform, ())}
    for name, request in _asked(manifest).items():
        if not request.path or name not in rows or rows[name].request != request:
            continue
        try:
            known = static_metadata(name, request)
        except NoSolutionError:
            continue
        locked = rows[name]
        if known is None:
            if not locked.dynamic:
                yield f"{name} in {request.path} leaves its metadata to its build backend, the lock says otherwise"
            continue
        if known.version != locked.version:
            yield f"{name} {locked.version} is locked, {request.path} has {known.version}"
        elif known.requires != locked.requires:
            now, then = _listed(known.requires), _listed(locked.requires)
            yield f"{name} in {request.path} requires {now}, the lock has {then}"


def _listed(texts: tuple[str, ...]) -> str:
    return ", ".join(texts) or "nothing"


def locate(access: Access, manifest: Manifest, trees: Sequence[LockedTree]) -> dict[str, TreeRequest]:
    """Return the requests of the manifest for source trees, once their commits are known to be in its history.

    The lock decides neither on an address nor on a folder.

    Raises:
        NoSolutionError: A folder is not there, or the manifest has no such request.
        LockStaleError: A commit is not part of the branch or tag of the manifest, or differs from its row.
        NetworkError: A repository can't be reached.
    """
    asked, found = _asked(manifest), {}
    for tree in trees:
        request = asked.get(tree.name)
        if request is None or request != tree.request:
            raise NoSolutionError(f"{tree.name}: the manifest has no request {tree.request}")
        if request.path:
            static_metadata(tree.name, request)
        elif not request.commit:
            access.progress.step(f"checking the commit of {tree.name}")
            with clone(request, access) as repository:
                repository.require_part(tree.name, tree.commit, manifest.name)
                _require_static_metadata(tree, repository.project_file(tree.commit), manifest.name)
        found[tree.name] = request
    return found


def _require_static_metadata(tree: LockedTree, raw: bytes | None, target: str) -> None:
    """Refuse a row that differs from the static metadata of its commit, or hides that they are static.

    Raises:
        LockStaleError: It does.
    """
    known = read_project(raw, tree.name)
    if known and (tree.dynamic or known.version != tree.version or known.requires != tree.requires):
        raise LockStaleError(
            f"{tree.name} of {tree.git} is not locked as its pyproject.toml at {tree.commit} says",
            hint=f"`tenv update {target} {tree.name}` locks it anew",
        )
