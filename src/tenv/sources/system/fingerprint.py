"""Fingerprints of system tools at `create`, and their comparison with the present files.

A fingerprint is in the environment (``tenv-meta/system.json``), not in the lock: two machines have the same lock and
different fingerprints. A comparison calls ``stat`` first, which takes milliseconds, and reads only files with different
values. A copy that keeps the times is detected too, since no program can set the time of a status change (ctime).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.file_content import read_text
from tenv.core.files import digest, write_atomic
from tenv.core.size_text import some_of
from tenv.core.threads import each
from tenv.sources.system.interface import Tool

FILE = "system.json"
"""The file in ``tenv-meta``."""

_SCHEMA = 1
_SHOWN = 3  # the number of files that fits on a line


@dataclass(frozen=True, slots=True)
class FileFingerprint:
    """The fingerprint of one file."""

    path: str
    """The file."""
    size: int
    """Its size in bytes."""
    mtime_ns: int
    """The time of the last change of its content."""
    ctime_ns: int
    """The time of its last status change."""
    inode: int
    """Its inode."""
    sha256: str
    """The digest of its bytes; empty for a library that is too large to read each time."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of one system tool."""

    name: str
    """Its key in ``[system]``."""
    path: str
    """Its folder; for a compiler, the program."""
    version: str
    """Its version."""
    accepted: str
    """The range that it satisfied."""
    found_by: str
    """How tenv found it."""
    roles: Mapping[str, str]
    """The programs and folders that a toolchain needs, by role."""
    marks: tuple[FileFingerprint, ...]
    """The fingerprints of its files."""
    watched: tuple[str, ...]
    """The files that a shell compares when it activates."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One changed file of a system tool."""

    name: str
    """The tool's key in ``[system]``."""
    version: str
    """The tool's version in the fingerprint."""
    tool: str
    """Its folder or program."""
    file: str
    """The file."""
    gone: bool
    """Whether the file is missing, not changed."""
    hidden: bool = False
    """Whether its size and times are unchanged, so only its content shows the change."""


def take_fingerprint(tool: Tool) -> Fingerprint:
    """Read the files of a tool and return its fingerprint."""
    digests = each(digest, tool.files)
    marks = [_mark(path, sha256) for path, sha256 in zip(tool.files, digests, strict=True)]
    return Fingerprint(
        name=tool.name,
        path=str(tool.path),
        version=tool.version,
        accepted=tool.accepted,
        found_by=tool.found_by,
        roles=dict(tool.roles),
        marks=(*marks, *(_mark(path, "") for path in tool.large)),
        watched=tuple(map(str, tool.watched)),
    )


def _mark(path: Path, sha256: str) -> FileFingerprint:
    info = path.stat()
    return FileFingerprint(str(path), info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, sha256)


def differences(fingerprints: Iterable[Fingerprint], *, deep: bool = False) -> list[Drift]:
    """Return every changed file.

    Args:
        fingerprints: The fingerprints.
        deep: Read every file, even with unchanged size and times.
    """
    rows = [(one, mark) for one in fingerprints for mark in one.marks]
    found = each(lambda row: _compare(*row, deep=deep), rows) if deep else [_compare(*row, deep=False) for row in rows]
    return [drift for drift in found if drift]


def _compare(of: Fingerprint, mark: FileFingerprint, *, deep: bool) -> Drift | None:
    path = Path(mark.path)
    try:
        info = path.stat()
        written = (info.st_size, info.st_mtime_ns) == (mark.size, mark.mtime_ns)
        same = written and (info.st_ctime_ns, info.st_ino) == (mark.ctime_ns, mark.inode)
        if not mark.sha256:
            same = written
        elif deep or not same:
            same = info.st_size == mark.size and digest(path) == mark.sha256
    except OSError:
        return Drift(of.name, of.version, of.path, mark.path, gone=True)
    return None if same else Drift(of.name, of.version, of.path, mark.path, gone=False, hidden=written)


def retimed(fingerprints: Iterable[Fingerprint], drifts: Iterable[Drift]) -> tuple[Fingerprint, ...]:
    """Return fingerprints with the present times of unchanged files.

    A file that was rewritten with the same bytes (by a reinstalled package) has new values of `stat`.
    """
    drifted = {drift.file for drift in drifts}
    return tuple(
        replace(
            one,
            marks=tuple(mark if mark.path in drifted else _mark(Path(mark.path), mark.sha256) for mark in one.marks),
        )
        for one in fingerprints
    )


def describe(drifts: Sequence[Drift]) -> list[str]:
    """Return the changes of each changed tool, one phrase each."""
    names = dict.fromkeys(drift.name for drift in drifts)
    return [_describe([drift for drift in drifts if drift.name == name]) for name in names]


def _describe(drifts: Sequence[Drift]) -> str:
    what = f"{drifts[0].name} {drifts[0].version} {whose(drifts[0].name)} ({drifts[0].tool})"
    if not Path(drifts[0].tool).exists():
        return f"{what} is missing"
    files = [f"{_relative(drift)} {'is missing' if drift.gone else 'has changed'}" for drift in drifts]
    return f"{what}: {some_of(files, _SHOWN)}"


def whose(name: str) -> str:
    """Return whose a tool is, in words: torch is a tool of another environment alone."""
    return "of the environment beside" if name == "torch" else "of the system"


def _relative(drift: Drift) -> str:
    path, folder = Path(drift.file), Path(drift.tool)
    return str(path.relative_to(folder)) if path != folder and path.is_relative_to(folder) else str(path)


def render(fingerprints: Sequence[Fingerprint]) -> str:
    """Return the text of ``system.json``."""
    return json.dumps({"schema": _SCHEMA, "tools": [asdict(one) for one in fingerprints]}, indent=1) + "\n"


def write_fingerprints(meta: Path, fingerprints: Sequence[Fingerprint]) -> None:
    """Write the fingerprints of an environment; without any, remove an old file."""
    if fingerprints:
        write_atomic(meta / FILE, render(fingerprints))
    else:
        (meta / FILE).unlink(missing_ok=True)


def read_fingerprints(meta: Path) -> tuple[Fingerprint, ...]:
    """Read the fingerprints of an environment; empty if it uses no system tools.

    Raises:
        EnvironmentBrokenError: The file can't be read.
    """
    path = meta / FILE
    try:
        data = json.loads(read_text(path))
        if data["schema"] != _SCHEMA:
            raise ValueError("unknown schema")  # noqa: TRY301 (one place for the error)
        return tuple(_read(row) for row in data["tools"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        hint = "`tenv create` repairs the environment"
        raise EnvironmentBrokenError(f"{path}: can't be read: {error}", hint=hint) from error


def _read(row: dict[str, Any]) -> Fingerprint:
    marks = tuple(FileFingerprint(**mark) for mark in row["marks"])
    return Fingerprint(**{**row, "marks": marks, "watched": tuple(row["watched"])})
