"""Environments: a prefix on disk, its lock, and its state.

tenv keeps its data about an environment in ``PREFIX/tenv-meta``. Before the first change of the prefix, it writes the
state ``creating`` to ``state.json`` and removes the activation scripts. The state ``ready`` is its last write. So an
interrupted command leaves the state ``creating``, with the data that the next ``create`` needs for the repair.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, EnvironmentMissingError, ForeignFolderError
from tenv.core.files import read_regular, storage_errors, write_atomic
from tenv.core.prefix import ARCHIVES, MARKER, META, OWN, STATE_SCHEMA, spelled
from tenv.core.toml_reader import Table
from tenv.targets.sections import SECTIONS

_KEPT_LOCKS = 3
_KEYS = {section.key: {"wheels": "packages"}.get(section.key, section.key) for section in SECTIONS if section.noun}
"""The key in the file for the packages of each source; for wheels it is ``packages``."""

Owned = Mapping[str, tuple[str, ...]]
_KEPT = re.compile(r"[0-9]{6,12}\.lock")
_FOLDERS = (META, ARCHIVES, f"{META}/locks", f"{META}/system", "conda-meta")


class Status(StrEnum):
    """The status of an environment."""

    CREATING = "creating"
    READY = "ready"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class State:
    """The stored state of an environment."""

    status: Status
    """Its status."""
    target: str
    """Its target."""
    lock: str = ""
    """The digest of its lock."""
    manifest: str = ""
    """The digest of the manifest that the lock satisfies."""
    platform: str = ""
    """The platform of the host that made it."""
    python: str = ""
    """Its Python minor."""
    owned: Mapping[str, Owned] = field(default_factory=dict)
    """The packages that tenv installed, by the key of their source and by name: version, for conda packages the build
    string, and digest."""
    foreign: tuple[str, ...] = ()
    """While creating: the unmanaged files, relative to the prefix, which must stay."""
    bytes: int = 0
    """Its size."""
    prefix: str = ""
    """Where it was made."""
    made: str = ""
    """The sha256 of ``made.json``; empty while creating."""
    written_by: str = __version__
    """The tenv version that made it."""
    features: tuple[str, ...] = ()
    """The features of the target that it holds, sorted."""
    compiled: tuple[str, ...] = ()
    """The packages that were compiled against its torch, each with a digest of the manifest's values for it."""

    def to_json(self) -> str:
        """Return the text of ``state.json``: one line that starts with status and schema, since shells compare them."""
        values: dict[str, Any] = {"state": self.status.value, "schema": STATE_SCHEMA}
        values |= {name: getattr(self, name) for name in self.__slots__ if name not in ("status", "owned")}
        return json.dumps(values | {name: self.of(key) for key, name in _KEYS.items()}) + "\n"

    def of(self, key: str) -> Owned:
        """Return the packages that tenv installed from one source."""
        return self.owned.get(key, {})

    @classmethod
    def from_json(cls, text: str) -> "State":
        """Read ``state.json``.

        Raises:
            EnvironmentBrokenError, ValueError, TypeError, KeyError: It is not a valid state, or has another schema.
        """
        table = Table(json.loads(text), error=EnvironmentBrokenError)
        if table.data["schema"] != STATE_SCHEMA:
            raise ValueError(table.data["schema"])
        size = table.data.get("bytes", 0)
        if type(size) is not int or not 0 <= size < 1 << 63:
            raise TypeError(size)
        return cls(
            status=Status(table.text("state")),
            target=table.text("target"),
            lock=table.text("lock"),
            manifest=table.text("manifest"),
            platform=table.text("platform"),
            python=table.text("python"),
            owned={key: rows for key, name in _KEYS.items() if (rows := _read_owned(table.table(name), key))},
            foreign=table.strings("foreign"),
            bytes=size,
            prefix=table.text("prefix"),
            made=table.text("made"),
            written_by=table.text("written_by"),
            features=table.strings("features"),
            compiled=table.strings("compiled"),
        )


def digests_of(state: State | None) -> frozenset[str]:
    """Return the digests of all packages that an environment holds; none without a state."""
    owned = state.owned.values() if state else ()
    return frozenset(row[-1] for rows in owned for row in rows.values() if row)


def _read_owned(table: Table, key: str) -> Owned:
    rows = {name: table.strings(name) for name in table.data}
    width = 3 if key == "conda" else 2
    if any(len(row) != width for row in rows.values()):
        raise ValueError(key)
    return rows


@dataclass(frozen=True, slots=True)
class Environment:
    """A prefix, whether or not it exists."""

    prefix: Path
    """The folder."""

    @property
    def meta(self) -> Path:
        """The folder of tenv's own data about the environment."""
        return self.prefix / META

    def state(self) -> State | None:
        """Return the state; None if there is no state file. An unreadable file, or another schema, counts as broken."""
        try:
            return State.from_json(read_regular(self.prefix / MARKER).decode())
        except (FileNotFoundError, NotADirectoryError):  # the latter: a lock file beside the prefixes
            return None
        except (EnvironmentBrokenError, OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return State(Status.BROKEN, target=self.prefix.name)

    def write_state(self, state: State) -> None:
        """Write the state, and flush it to the disk."""
        write_atomic(self.prefix / MARKER, state.to_json(), durable=True, within=self.prefix)

    def check_real(self) -> None:
        """Raise ForeignFolderError if the prefix, or a folder in it that tenv writes to, is a symbolic link.

        tenv would write and remove files in another folder. A prefix in another environment is refused, too: the
        removal of that one would take it away.
        """
        if str(spelled(self.prefix)) != os.path.realpath(self.prefix):
            raise ForeignFolderError(
                f"{self.prefix} leads by a link to {os.path.realpath(self.prefix)}, "
                "so nothing is written or removed there",
                hint="remove the link; `--prefix` names another folder for an environment",
            )
        for folder in Path(os.path.realpath(self.prefix)).parents:
            if (folder / META).is_dir():
                raise ForeignFolderError(
                    f"{self.prefix} lies in another environment ({folder})",
                    hint="`--prefix FOLDER` names a folder outside of it",
                )
        for name in _FOLDERS:
            folder = self.prefix / name
            if folder.is_symlink():
                raise ForeignFolderError(
                    f"{folder} is a symbolic link, so tenv writes nothing there",
                    hint=f"`rm {folder}` removes the link; `--prefix FOLDER` names another folder",
                )

    def check_ours(self) -> None:
        """Raise ForeignFolderError if tenv did not create the prefix."""
        self.check_real()
        if (self.prefix / MARKER).exists():
            return
        if self.prefix.is_dir():
            names = [entry.name for entry in self.prefix.iterdir() if entry.name not in OWN]
        else:
            names = [self.prefix.name] if self.prefix.exists() or self.prefix.is_symlink() else []
        if names:
            raise ForeignFolderError(
                f"{self.prefix} is not an environment of tenv and holds files (such as {min(names)})",
                hint="`--prefix FOLDER` names an empty or new folder",
            )

    def require_ready(self, target: str, command: str = "") -> State:
        """Return the state of a ready environment.

        Args:
            target: Its target.
            command: The command that creates it, for the hint; empty for that of the default folder.

        Raises:
            EnvironmentMissingError: There is no environment.
            EnvironmentBrokenError: It is not ready.
        """
        state, command = self.state(), command or f"tenv create {target}"
        if state is None:
            hint = f"`{command}` creates it"  # the name is a target's, so a similar one is not meant
            raise EnvironmentMissingError(f"there is no environment `{target}` ({self.prefix})", hint=hint)
        if state.status is not Status.READY:
            raise EnvironmentBrokenError(
                f"the environment `{target}` is not ready (its state is `{state.status}`)",
                hint=f"`{command}` repairs it",
            )
        return state

    def leftovers(self) -> list[Path]:
        """Return the temporary files of interrupted writes, or of another process that writes now."""
        return [*self.meta.glob(".*"), *self.meta.glob("locks/.*")]

    def tidy(self) -> None:
        """Remove the temporary files of interrupted writes from ``tenv-meta``."""
        for leftover in self.leftovers():
            leftover.unlink(missing_ok=True)

    def kept_locks(self) -> list[Path]:
        """Return the files of the kept locks of the environment, oldest first."""
        return sorted(path for path in (self.meta / "locks").glob("*.lock") if _KEPT.fullmatch(path.name))

    def keep_lock(self, text: bytes, source: Path | None = None) -> None:
        """Keep a copy of the environment's lock, and drop the oldest copies.

        Args:
            text: The bytes of the lock.
            source: Its file; if that is a kept lock (a rollback), later kept locks are removed.
        """
        folder = self.meta / "locks"
        old = self.kept_locks()
        if source is not None and source in old:
            for path in old[old.index(source) + 1 :]:
                path.unlink(missing_ok=True)
            return
        number = int(old[-1].stem) + 1 if old else 1
        if not old or old[-1].read_bytes() != text:
            write_atomic(folder / f"{number:06}.lock", text, within=self.prefix)
            for path in old[: -(_KEPT_LOCKS - 1)]:
                path.unlink(missing_ok=True)


def put_aside(environment: Environment) -> Path | None:
    """Rename the folder of an environment, whoever made it, and return where it is now; None where nothing is there.

    Raises:
        ForeignFolderError: The folder holds no notes of tenv.
        StorageError: It can't be renamed.
    """
    prefix = environment.prefix
    environment.check_real()
    if not environment.meta.is_dir():
        environment.check_ours()
        return None
    number = 1
    while os.path.lexists(aside := prefix.with_name(f".{prefix.name}.aside-{number}")):
        number += 1
    with storage_errors(f"can't put {prefix} aside"):
        prefix.rename(aside)
    return aside


def environments_in(folder: Path) -> list[Environment]:
    """Return the environments in a folder, sorted by name; one that has lost its state or can't be read is among them.

    Raises:
        PermissionError: The folder can't be read.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208 (fast)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Environment(folder / name) for name in names if _holds_notes(folder / name)]


def _holds_notes(prefix: Path) -> bool:
    """Return whether a folder holds notes of tenv; of one that can't be entered, that is assumed."""
    try:
        (prefix / META).lstat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True
