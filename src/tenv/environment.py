"""Environments: a prefix on disk, the lock that it was made from, and its state.

Everything that tenv keeps about an environment lies in ``PREFIX/tenv-meta``. ``state.json`` is written last, and before
anything in the prefix is touched it says ``creating``: whatever stops a command half-way leaves that word there, the
activation scripts gone, and enough knowledge for the next ``create`` to repair.
"""

import contextlib
import csv
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tenv import __version__
from tenv.errors import EnvironmentBrokenError, EnvironmentMissingError, ForeignFolderError
from tenv.files import storage_errors, write_atomic
from tenv.manifest import normalize
from tenv.tables import Table, nearest

__all__ = ["MARKER", "META", "Environment", "State", "Status", "environments_in", "name_of"]

META = "tenv-meta"
"""The folder in a prefix that holds what tenv knows about it."""

MARKER = f"{META}/state.json"
"""The file that only tenv makes, by which an environment is known."""

_SCHEMA = 1
_KEPT_LOCKS = 3


class Status(StrEnum):
    """Whether an environment can be used."""

    CREATING = "creating"
    READY = "ready"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class State:
    """What tenv remembers about an environment.

    Attributes:
        status: Whether it can be used.
        target: The target that it was made for.
        lock: The digest of the lock that it was made from.
        manifest: The digest of the manifest that the lock was found to satisfy.
        platform: The platform of the host that made it.
        python: The Python minor that it holds.
        packages: The wheels that tenv put there: version and sha256 by normalized name.
        conda: The conda packages that tenv put there: version, build string and digest by name.
        archives: The archives that tenv put there: version and sha256 by name.
        foreign: While creating: the files, relative to the prefix, that are not tenv's and must survive.
        bytes: The size of the whole, in bytes.
        written_by: The tenv version that made it.
    """

    status: Status
    target: str
    lock: str = ""
    manifest: str = ""
    platform: str = ""
    python: str = ""
    packages: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    conda: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    archives: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()
    bytes: int = 0
    written_by: str = __version__

    def to_json(self) -> str:
        """Return the text of ``state.json``: one line, the status first, since shells look for it."""
        values: dict[str, Any] = {"state": self.status.value, "schema": _SCHEMA}
        values |= {name: getattr(self, name) for name in self.__slots__ if name != "status"}
        return json.dumps(values) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "State":
        """Read ``state.json``; a key that is not there has its default, so that older environments can be read.

        Raises:
            EnvironmentBrokenError: A newer tenv wrote it, in a form that this one does not know.
            ValueError, TypeError, KeyError: It is not what tenv writes.
        """
        table = Table(json.loads(text), error=EnvironmentBrokenError)
        schema = table.data["schema"]
        if schema > _SCHEMA:
            raise EnvironmentBrokenError(
                f"the environment was made by tenv {table.text('written_by')}, in a form that tenv {__version__} "
                "does not know",
                hint="use that tenv or a newer one, or remove the environment's folder",
            )
        packages, conda, archives = table.table("packages"), table.table("conda"), table.table("archives")
        size = table.data.get("bytes", 0)
        if not isinstance(size, int):
            raise TypeError(size)
        return cls(
            status=Status(table.text("state")),
            target=table.text("target"),
            lock=table.text("lock"),
            manifest=table.text("manifest"),
            platform=table.text("platform"),
            python=table.text("python"),
            packages={name: _version_and_hash(packages.strings(name)) for name in packages.data},
            conda={name: _conda_key(conda.strings(name)) for name in conda.data},
            archives={name: _version_and_hash(archives.strings(name)) for name in archives.data},
            foreign=table.strings("foreign"),
            bytes=size,
            written_by=table.text("written_by"),
        )


def _version_and_hash(values: tuple[str, ...]) -> tuple[str, str]:
    version, sha256 = values
    return version, sha256


def _conda_key(values: tuple[str, ...]) -> tuple[str, str, str]:
    version, build, digest = values
    return version, build, digest


@dataclass(frozen=True, slots=True)
class Environment:
    """A prefix, whether or not anything is there yet.

    Attributes:
        prefix: The folder.
    """

    prefix: Path

    @property
    def meta(self) -> Path:
        """The folder with what tenv knows about the environment."""
        return self.prefix / META

    def state(self) -> State | None:
        """Return the state, None when there is none; one that can't be read counts as broken."""
        try:
            return State.from_json((self.prefix / MARKER).read_text())
        except (FileNotFoundError, NotADirectoryError):  # the latter: a lock file that stands beside the prefixes
            return None
        except EnvironmentBrokenError as error:
            if error.hint:  # a newer tenv's: not ours to repair
                raise
            return State(Status.BROKEN, target=self.prefix.name)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return State(Status.BROKEN, target=self.prefix.name)

    def write_state(self, state: State) -> None:
        """Write the state, and wait until the disk has it."""
        write_atomic(self.prefix / MARKER, state.to_json(), durable=True)

    def check_ours(self) -> None:
        """Raise ForeignFolderError when the prefix is something that tenv did not make."""
        if (self.prefix / MARKER).exists():
            return
        if self.prefix.is_dir():
            names = [
                entry.name for entry in self.prefix.iterdir() if entry.name not in (META, ".tenv.lock", ".tenv.owner")
            ]
        else:
            names = [self.prefix.name] if self.prefix.exists() or self.prefix.is_symlink() else []
        if names:
            raise ForeignFolderError(
                f"{self.prefix} holds something else (such as {min(names)}), so nothing is installed there",
                hint="name an empty or new folder with `--prefix`",
            )

    def require_ready(self, target: str) -> State:
        """Return the state of an environment that can be used.

        Raises:
            EnvironmentMissingError: There is no environment.
            EnvironmentBrokenError: It is not ready.
        """
        state = self.state()
        if state is None:
            others = [other.prefix.name for other in environments_in(self.prefix.parent)]
            hint = nearest(target, others) or f"`tenv create {target}` makes it"
            raise EnvironmentMissingError(f"there is no environment `{target}` ({self.prefix})", hint=hint)
        if state.status is not Status.READY:
            raise EnvironmentBrokenError(
                f"the environment `{target}` is not ready (its state is `{state.status}`)",
                hint=f"`tenv create {target}` finishes or repairs it",
            )
        return state

    def foreign_files(self, packages: Iterable[str], conda: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the files in the prefix that tenv did not put there, relative to it.

        Args:
            packages: The normalized names of the wheels that are tenv's.
            conda: The names of the conda packages that are tenv's.
        """
        ours = {*self.files_of(packages), *self.conda_files(conda), *self.archive_files()}
        return tuple(sorted(name for name in _walk(self.prefix) if name not in ours and not _is_made(name)))

    def files_of(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the files that the records of packages name, relative to the prefix."""
        names = set(packages)
        for info in self.distributions():
            if name_of(info) in names:
                yield from _recorded(info, self.prefix)

    def conda_files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files that the notes of conda packages name, and those notes, relative to the prefix."""
        known = self.conda_notes()
        for name in names:
            for note in known.get(name, ()):
                yield f"conda-meta/{note}"
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    yield from json.loads((self.prefix / "conda-meta" / note).read_bytes())["files"]

    def without_note(self, names: Iterable[str]) -> set[str]:
        """Return those of some conda packages of which no note can be read."""
        known = self.conda_notes()
        found = set(names)
        for name in tuple(found):
            for note in known.get(name, ()):
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    if isinstance(json.loads((self.prefix / "conda-meta" / note).read_bytes())["files"], list):
                        found.discard(name)
        return found

    def archive_files(self) -> Iterator[str]:
        """Yield the files that the records of archives name, relative to the prefix."""
        for record in sorted(self.meta.glob("archives/*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                data = json.loads(record.read_bytes())
                yield from map(os.path.normpath, (*data["files"], *data["links"]))

    def has_archives(self, archives: Mapping[str, tuple[str, str]]) -> bool:
        """Tell whether archives are there, by the names of their files alone."""
        if not archives:
            return True
        kept = {}
        for record in self.meta.glob("archives/*.json"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                data = json.loads(record.read_bytes())
                kept[data["name"]] = data["sha256"]
        same = all(kept.get(name) == sha256 for name, (_, sha256) in archives.items())
        return same and all(os.path.lexists(self.prefix / name) for name in self.archive_files())

    def conda_notes(self) -> dict[str, list[str]]:
        """Return the names of the files in ``conda-meta``, one for each conda package, by the package's name."""
        found: dict[str, list[str]] = {}
        folder = self.prefix / "conda-meta"
        for note in sorted(path.name for path in folder.iterdir()) if folder.is_dir() else ():
            if note.endswith(".json") and note.count("-") > 1:
                found.setdefault(note.rsplit("-", 2)[0], []).append(note)
        return found

    def has_conda(self, packages: Mapping[str, tuple[str, str, str]]) -> bool:
        """Tell whether all of some conda packages are there, by the names of their notes alone."""
        if not packages:
            return True
        notes = {note for notes in self.conda_notes().values() for note in notes}
        return all(f"{name}-{version}-{build}.json" in notes for name, (version, build, _) in packages.items())

    def folders_of(self, packages: Iterable[str], below: Path) -> tuple[Path, ...]:
        """Return the folders directly in `below` (a folder of site-packages) that hold files of packages, sorted."""
        names = set(packages)
        found = set()
        for info in self.distributions():
            if name_of(info) in names and (info / "RECORD").is_file():
                record = (info / "RECORD").read_text("utf-8")
                found.update(re.findall(rf"^{re.escape(below.name)}/([^/,]+)/", record, re.MULTILINE))
        return tuple(below / name for name in sorted(found))

    def distributions(self) -> list[Path]:
        """Return the ``.dist-info`` folders of the prefix, sorted."""
        # conda's Python has a link `lib/python3.1` to its own folder, whose packages must not count twice.
        folders = [path for path in self.prefix.glob("lib/python3*") if not path.is_symlink()]
        homes = [folder / "site-packages" for folder in (*folders, self.prefix / "Lib")]
        return sorted(info for home in homes for info in home.glob("*.dist-info"))

    def installed(self) -> dict[str, str]:
        """Return the version of every installed package by its normalized name."""
        found = {}
        for info in self.distributions():
            name, _, version = info.name.removesuffix(".dist-info").partition("-")
            found[normalize(name)] = version
        return found

    def wipe(self, keep: Iterable[str]) -> None:
        """Remove everything in the prefix but tenv's own notes and the files to keep.

        Args:
            keep: Files relative to the prefix.
        """
        kept = set(keep)
        with storage_errors(f"can't clear {self.prefix}"):
            if not kept:
                for entry in list(self.prefix.iterdir()) if self.prefix.is_dir() else []:
                    if entry.name not in (META, ".tenv.lock", ".tenv.owner"):
                        _remove(entry)
                return
            for name in _walk(self.prefix):
                if name not in kept:
                    (self.prefix / name).unlink(missing_ok=True)
            _prune(self.prefix)

    def tidy(self) -> None:
        """Remove what writes that were killed have left among tenv's notes."""
        for leftover in (*self.meta.glob(".*"), *self.meta.glob("locks/.*")):
            leftover.unlink(missing_ok=True)

    def kept_locks(self) -> list[Path]:
        """Return the files of the last few locks that the environment was made from, oldest first."""
        return sorted((self.meta / "locks").glob("*.lock"))

    def keep_lock(self, text: bytes, source: Path | None = None) -> None:
        """Keep the bytes of the lock that the environment is made from, and those of the last few before it.

        Args:
            text: The bytes.
            source: The file that they were read from; after a way back to a kept lock, those that came later go.
        """
        folder = self.meta / "locks"
        old = self.kept_locks()
        if source is not None and source in old:
            for path in old[old.index(source) + 1 :]:
                path.unlink(missing_ok=True)
            return
        number = int(old[-1].stem) + 1 if old else 1
        if not old or old[-1].read_bytes() != text:
            write_atomic(folder / f"{number:06}.lock", text)
            for path in old[: -(_KEPT_LOCKS - 1)]:
                path.unlink(missing_ok=True)


def environments_in(folder: Path) -> list[Environment]:
    """Return the environments that tenv made in a folder, by name."""
    return [Environment(path.parent.parent) for path in sorted(folder.glob(f"[!.]*/{MARKER}"))]


def name_of(info: Path) -> str:
    """Return the normalized name of a package by its ``.dist-info`` folder."""
    return normalize(info.name.partition("-")[0])


def _walk(prefix: Path) -> Iterator[str]:
    """Yield every file and link in a prefix but tenv's notes, relative to it."""
    for folder, folders, names in os.walk(prefix):
        relative = os.path.relpath(folder, prefix)
        if relative == ".":
            folders[:] = [name for name in folders if name != META]
            names = [name for name in names if name not in (".tenv.lock", ".tenv.owner")]  # noqa: PLW2901
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # noqa: PTH114, PTH118 (fast)
        for name in (*names, *links):
            yield os.path.normpath(os.path.join(relative, name))  # noqa: PTH118


_MADE_FILES = {"pyvenv.cfg", "lib64", "CACHEDIR.TAG", ".gitignore", ".lock", "conda-meta/history"}
_MADE_PROGRAMS = ("python", "activate", "deactivate", "pydoc")


def _is_made(name: str) -> bool:
    """Tell whether a file is one of those that making the environment writes, beside the wheels' own."""
    first, _, rest = name.partition(os.sep)
    if name in _MADE_FILES or first in ("cuda", "__clobbers__") or "__pycache__" in name:
        return True
    if first in ("bin", "Scripts"):
        return rest.startswith(_MADE_PROGRAMS)
    return rest.endswith(("_virtualenv.py", "_virtualenv.pth"))


def _recorded(info: Path, prefix: Path) -> Iterator[str]:
    """Yield the files that a RECORD names, relative to the prefix."""
    base = os.path.relpath(info.parent, prefix)
    with contextlib.suppress(OSError), (info / "RECORD").open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            if row:
                yield os.path.normpath(os.path.join(base, row[0]))  # noqa: PTH118 (fast)
    yield from (os.path.relpath(path, prefix) for path in info.rglob("*") if not path.is_dir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _prune(prefix: Path) -> None:
    """Remove folders that have become empty."""
    for folder, folders, names in os.walk(prefix, topdown=False):
        if not names and Path(folder) != prefix and not any((Path(folder) / name).exists() for name in folders):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
