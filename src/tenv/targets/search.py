"""The search for the project, and for targets and their locks: project, configuration folder, built-in targets."""

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError, UnknownTargetError, UsageError
from tenv.core.other_users import closed_below, is_own
from tenv.core.toml_reader import nearest
from tenv.core.user_folders import user_config, user_data
from tenv.core.versions import Version

if TYPE_CHECKING:
    from tenv.targets.manifest import Manifest
    from tenv.targets.nearest_cuda import HostDriver

AUTO = "auto"
"""The word for the best target of the host, so no target can have this name."""

_NAMED = 8
"""The most targets of a project that an error names."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_PARENT = re.compile(r"_?[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Longer names make no file: a file system takes 255 bytes."""


class Origin(StrEnum):
    """The origin of a manifest or lock."""

    PROJECT = "project"
    USER = "user"
    BUILT_IN = "built-in"

    @property
    def owner(self) -> str:
        """The owner as text: `yours` for the user's folder."""
        return "yours" if self is Origin.USER else self.value


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with ``manifests/`` and ``locks/`` in it."""

    origin: Origin
    """The kind of folder."""
    folder: Path
    """The folder."""

    def manifest_file(self, name: str) -> Path:
        """Return the manifest file of a target in this place."""
        return self.folder / "manifests" / f"{name}.toml"

    def lock_file(self, name: str) -> Path:
        """Return the lock file of a target in this place."""
        return self.folder / "locks" / f"{name}.lock"


@dataclass(frozen=True, slots=True)
class Target:
    """A found target."""

    name: str
    """Its name."""
    file: Path
    """Its manifest's file."""
    origin: Origin
    """The origin of the manifest."""
    manifest: "Manifest"
    """The manifest."""
    lock_file: Path
    """The lock to read, whether or not it exists."""
    lock_home: Path
    """The lock that `tenv lock` writes."""
    lock_origin: Origin | None = None
    """Where the lock was found; None where there is none, or the command line names it."""
    home_origin: Origin | None = None
    """Whose folder `lock_home` lies in."""
    files: tuple[Path, ...] = ()
    """The files of the manifest: its own and its parents'."""

    @property
    def owners(self) -> str:
        """The owners of the manifest and of the lock in use, as text."""
        lock = self.lock_origin
        if lock is None or lock is self.origin:
            return self.origin.owner
        return f"manifest {self.origin.owner}, lock {lock.owner}"


def require_features(target: Target, names: Sequence[str]) -> None:
    """Raise UsageError for a feature that a target does not have."""
    known = target.manifest.features
    for name in names:
        if name not in known:
            listed = f"it has {', '.join(known)}; `tenv show {target.name}` lists what each brings"
            adds = f"`tenv add {target.name} --feature {name} PACKAGE` makes it"
            hint = nearest(name, known) or (listed if known else adds)
            raise UsageError(f"{target.name} has no feature `{name}`", hint=hint)


def _unlocked(_lock: Path, _name: str) -> None:
    """Read no lock: the CUDA release of a torch stays open."""


_read_built_in: "dict[Path, Manifest]" = {}
"""The built-in manifests that were read, with built-in parents alone: a command compares a target with all of them."""


@cache
def built_in_manifests() -> "tuple[Manifest, ...]":
    """Return the manifests of the built-in targets, whatever a project or the user puts before them."""
    own = Place(Origin.BUILT_IN, _built_in())
    search = SearchPath(None, (own,), own.folder)
    return tuple(_read_built_in.get(own.manifest_file(name)) or search.find(name).manifest for name in search.names())


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The places to search for targets, nearest first."""

    project: Path | None
    """The project's folder; None outside a project."""
    places: tuple[Place, ...]
    """Every place."""
    data: Path
    """The user's data folder, for environments outside a project."""
    refused: Path | None = None
    """A folder that would be the project, were it not another user's; None mostly."""
    checkout: Path | None = None
    """The PyTorch checkout, nearer than any project, that keeps its environments itself; None mostly."""
    driver: "HostDriver | None" = None
    """The driver of the host that is judged in place of this one; suggestions are targets that it runs."""
    locked_cuda: Callable[[Path, str], Version | None] = _unlocked
    """Returns the CUDA release of a lock, for manifests whose CUDA is that of the locked torch."""

    def outside(self) -> "SearchPath":
        """Return the search path outside a project: the user's and the built-in targets."""
        others = tuple(place for place in self.places if place.origin is not Origin.PROJECT)
        return SearchPath(None, others, self.data, locked_cuda=self.locked_cuda)

    def require_trust(self, before: str = "", kind: type[UsageError] = UsageError) -> None:
        """Refuse a project in the working folder that belongs to another user, so that it is none.

        Args:
            before: The words of the message before the reason.
            kind: The class of the error.

        Raises:
            UsageError: There is one.
        """
        if self.refused:
            raise kind(
                f"{before}{self.refused} belongs to another user, so it is no project of yours",
                hint=f"`TENV_SAFE_FOLDERS={shlex.quote(str(self.refused))}` trusts it",
            )

    def find_parent(self, name: str) -> Path:
        """Return the file of a parent manifest; a name that begins with ``_`` is a parent only."""
        return self._find(name, _PARENT)[1]

    def _find(self, name: str, pattern: re.Pattern[str]) -> tuple[int, Path]:
        if pattern.fullmatch(name):
            for index, place in enumerate(self.places):
                if (file := place.manifest_file(name)).is_file():
                    return index, file
        from tenv.targets.nearest_cuda import nearest_cuda, one_letter_off  # late: only for this error

        names = sorted(self.names())
        self._refuse_file(name, pattern)
        self.require_trust(f"there is no target `{name}`: ", UnknownTargetError)
        # The manifests of targets are not read for a parent that is missing: one of them may request it.
        meant = one_letter_off(name, names) or nearest_cuda(
            name, names, self._has_platform if pattern is _NAME else lambda _: True, self.driver
        )
        suggestion = meant or nearest(name, [*names, AUTO])
        own = [known for known in names if known in self.project_targets()]
        some = f", {', '.join(own)} among them" if own and len(own) <= _NAMED else ""
        hint = f"{suggestion} (`tenv targets` lists them)" if suggestion else f"`tenv targets` lists the targets{some}"
        raise UnknownTargetError(f"there is no target `{name}`", hint=hint)

    def _refuse_file(self, name: str, pattern: re.Pattern[str]) -> None:
        """Raise UnknownTargetError for a file that has the name of a manifest and can't be one."""
        for place in self.places if name.strip(".") and os.sep not in name and name.isprintable() else ():
            file = place.manifest_file(name)
            if pattern.fullmatch(name) and os.path.lexists(file):
                what = "leads nowhere" if file.is_symlink() and not file.exists() else "is no regular file"
                raise UnknownTargetError(f"there is no target `{name}`: {_shown(file)} {what}")
            if not _PARENT.fullmatch(name) and os.path.isfile(file):  # noqa: PTH113 (False for a name that is too long)
                raise UnknownTargetError(
                    f"{_shown(file)} is no target: a name has letters, digits, `.`, `_` and `-` alone",
                    hint=f"rename it, such as to {target_name_of(name) or 'NAME'}.toml",
                )

    def _has_platform(self, name: str) -> bool:
        from tenv.host.machine import current_platform  # late: only a name without a target needs it

        with contextlib.suppress(ManifestError):
            return current_platform() in self.find(name).manifest.platforms
        return False

    def find(self, name: str) -> Target:
        """Find a target and read its manifest.

        A lock belongs to the target only in the place of the manifest or a nearer one: a built-in lock does not belong
        to a project's manifest of the same name.

        Raises:
            UnknownTargetError: No place has a manifest of that name.
            UsageError: The name is `auto`, which only `tenv create` takes.
            ManifestError: The manifest can't be read, or its name is `auto`.
        """
        from tenv.targets.manifest_file import read_manifest  # late: a command that uses an environment reads none

        if name == AUTO:
            raise self._reserved()
        index, file = self._find(name, _NAME)
        place = self.places[index]
        shown = f"manifests/{name}.toml" if place.origin is Origin.BUILT_IN else _shown(file)
        files = [file]

        def find_parent(name: str) -> Path:
            files.append(self.find_parent(name))
            return files[-1]

        manifest = read_manifest(name, file, find_parent, shown)
        if place.origin is Origin.BUILT_IN and all(place.folder in file.parents for file in files):
            _read_built_in[file] = manifest
        near = self.places[: index + 1]
        locked = next((other for other in near if other.lock_file(name).is_file()), None)
        lock, home = (locked or near[0]).lock_file(name), near[0].lock_file(name)
        lock_origin = locked.origin if locked else None
        found = Target(name, file, place.origin, manifest, lock, home, lock_origin, near[0].origin, tuple(files))
        return self.followed(found)

    def followed(self, target: Target) -> Target:
        """Return a target with the CUDA of its lock, where its manifest leaves that to the locked torch."""
        if not target.manifest.requirements.cuda_from:
            return target
        from tenv.targets.torch_cuda import follow, follow_beside  # late: few targets follow torch

        if beside := target.manifest.beside:
            from tenv.host.interface import Missing  # late: as above
            from tenv.targets.torch_beside import find_beside

            torch = find_beside(Path(beside))
            if isinstance(torch, Missing):
                return target
            return replace(target, manifest=follow_beside(target.manifest, torch))
        return replace(target, manifest=follow(target.manifest, self.locked_cuda(target.lock_file, target.name)))

    def lock_of(self, name: str) -> tuple[Path, tuple[Path, ...]]:
        """Return the lock of a target without reading it, and the files that would replace it if they existed.

        Raises:
            UnknownTargetError: No place has a manifest of that name.
        """
        index, _ = self._find(name, _NAME)
        candidates = [near.lock_file(name) for near in self.places[: index + 1]]
        position = next((at for at, lock in enumerate(candidates) if lock.is_file()), None)
        if position is None:
            return candidates[0], ()
        return candidates[position], tuple(candidates[:position])

    def faults(self, read: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the targets whose manifest can't be read, with the reason; skip those in `read`."""
        for name in sorted({*self.names()}.difference(read)):
            try:
                self.find(name)
            except ManifestError as error:
                yield name, error.message

    def _reserved(self) -> ManifestError | UsageError:
        file = next((file for place in self.places if (file := place.manifest_file(AUTO)).is_file()), None)
        if file is None:
            hint = f"`tenv check {AUTO}` prints the name of that target, `tenv create {AUTO}` makes it"
            return UsageError(f"`{AUTO}` is not a target; only `tenv create` and `tenv check` take it", hint=hint)
        return ManifestError(
            f"{_shown(file)}: a target can't have the name `{AUTO}`, which means the best target",
            hint="rename the file",
        )

    def names(self) -> Iterator[str]:
        """Yield the name of every target, each once."""
        seen = set()
        for place in self.places:
            for file in _manifests(place.folder):
                if file.stem not in seen and _NAME.fullmatch(file.stem) and file.is_file():
                    seen.add(file.stem)
                    yield file.stem

    def project_targets(self) -> list[str]:
        """Return the names of the project's own targets, sorted; empty outside a project."""
        files = _manifests(self.project) if self.project else ()
        return sorted(file.stem for file in files if _NAME.fullmatch(file.stem) and file.is_file())

    def environments(self) -> Path:
        """Return the default folder of environments."""
        own = self.checkout or self.project
        return (own / ".tenv" if own else self.data) / "envs"


def _manifests(home: Path) -> list[Path]:
    """Return the files of manifests in a place, sorted.

    Raises:
        PermissionError: Their folder can't be read.
    """
    folder = home / "manifests"
    try:
        return sorted(folder / name for name in os.listdir(folder) if name.endswith(".toml"))  # noqa: PTH208 (fast)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _shown(file: Path) -> str:
    """Return a file for messages: relative if it is below the working folder."""
    try:
        return str(file.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(file)


def is_target_name(name: str) -> bool:
    """Return whether a word can be the name of a target."""
    return bool(_NAME.fullmatch(name))


def target_name_of(text: str) -> str:
    """Return the name of a target that is made of another name, such as a folder's; empty if none can be made."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")


def settings_folder() -> Path:
    """Return the user's configuration folder."""
    return user_config()


def find_places(start: Path | None = None) -> SearchPath:
    """Return the search path of a working folder; None means the current one."""
    start = start or _working_folder()
    project, refused = find_project(start)
    user = Place(Origin.USER, settings_folder())
    built_in = Place(Origin.BUILT_IN, _built_in())
    places = ([Place(Origin.PROJECT, project)] if project else []) + [user, built_in]
    checkout = find_checkout(start, project)
    return SearchPath(project, tuple(places), user_data(), refused, checkout)


def _working_folder() -> Path:
    """Return the working folder by the shell's name for it (PWD) if that is valid, so symbolic links stay."""
    named = os.environ.get("PWD", "")
    try:
        if named and os.path.samefile(named, "."):  # noqa: PTH121 (one call to stat each)
            return Path(named)
        return Path.cwd()
    except OSError:  # the folder was removed, or PWD is not valid
        try:
            return Path.cwd()
        except OSError:
            raise UsageError("the working folder was removed", hint="`cd` to an existing folder") from None


def _built_in() -> Path:
    """Return the folder of the built-in targets: inside the wheel, or the checkout of an editable install."""
    package = Path(__file__).parent.parent
    carried = package / "builtin"
    return carried if carried.is_dir() else package.parent.parent


def makes_project(folder: Path) -> tuple[Path, ...]:
    """Return the sign of a project in a folder: ``tenv.toml``, or ``manifests/`` with a ``*.toml``; nothing if none.

    Other tools have folders of that name. A manifest that can't be read makes a project as well: the error is about it.
    """
    if os.path.isfile(folder / "tenv.toml"):  # noqa: PTH113 (also in a folder that this user can't enter)
        return (folder / "tenv.toml",)
    manifests = folder / "manifests"
    try:
        if any(name.endswith(".toml") and not name.startswith(".") for name in os.listdir(manifests)):  # noqa: PTH208
            return (manifests,)
    except PermissionError:
        if os.access(folder, os.X_OK) and is_own(folder) and is_own(manifests):
            return (manifests,)
    except OSError:
        return ()
    return ()


def find_project(start: Path) -> tuple[Path | None, Path | None]:
    """Return the nearest folder upwards of `start` that is a project, and one that is none since it is another user's.

    The walk ends at a folder of another user, whose manifests would decide on programs that run here, and at the border
    of a file system. git has the same rule since CVE-2022-24765. If the folders of the path have no project, the
    folders of the real path are searched.
    """
    found = _walk_up(start)
    return _walk_up(real) if found == (None, None) and (real := start.resolve()) != start else found


def _walk_up(start: Path) -> tuple[Path | None, Path | None]:
    device = None
    for folder in (start, *start.parents):
        try:
            info = folder.stat()
        except OSError:
            continue
        if device not in (None, info.st_dev):
            break
        device = info.st_dev
        signs = makes_project(folder)
        if not all(is_own(path) for path in (folder, *signs)):
            try:
                safe = _is_safe(folder)
            except UsageError:  # about root's file, which ends a command where a project depends on it
                if signs:
                    raise
                safe = False
            if not safe:
                return None, folder if signs else None
        if signs:
            return folder, None
    return None, None


def is_foreign(folder: Path, names: "Iterable[str]" = ()) -> bool:
    """Return whether a folder or a file in it is another user's, and the folder in none that this user calls safe."""
    there = (folder, *(file for name in names if (file := folder / name).exists()))
    return not all(map(is_own, there)) and not _is_safe(folder)


def _is_safe(folder: Path) -> bool:
    from tenv.targets.config import safe_folders, system_safe_folders

    real = Path(os.path.realpath(folder))
    if any(real.is_relative_to(os.path.realpath(safe)) for safe in safe_folders(settings_folder(), os.environ)):
        return True
    return any(closed_below(real, Path(os.path.realpath(safe))) for safe in system_safe_folders())


def find_checkout(start: Path, project: Path | None) -> Path | None:
    """Return the PyTorch checkout that a folder lies in, where it is nearer than the project."""
    for folder in (start, *start.parents):
        if folder == project:
            return None
        with contextlib.suppress(PermissionError):  # a folder that this user can't enter
            if (folder / "torch" / "csrc").is_dir() and (folder / "setup.py").is_file():
                return folder
    return None


def sisters(manifest: "Manifest", platform: str, others: "Iterable[Manifest]") -> list[str]:
    """Return the targets of the same CUDA release that serve a platform, those without system toolkits first.

    A name never turns into another kind by itself, so these are for a message.

    Args:
        manifest: The target without the platform.
        platform: The platform.
        others: The manifests of the other targets.
    """
    cuda = manifest.requirements.cuda
    found = [
        other
        for other in others
        if other.name != manifest.name and platform in other.platforms and other.requirements.cuda is not None
        if cuda is not None and other.requirements.cuda.major_minor == cuda.major_minor
    ]
    return [other.name for other in sorted(found, key=lambda other: ("cuda-toolkit" in other.system, other.name))]


def sister_hint(manifest: "Manifest", platform: str) -> str:
    """Return the hint that names the built-in target of the same CUDA release on a platform; empty without one."""
    if manifest.requirements.cuda is None:
        return ""
    names = sisters(manifest, platform, built_in_manifests())
    return f"the same CUDA on {platform}: {', '.join(f'`{name}`' for name in names)}" if names else ""
