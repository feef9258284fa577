"""Whether the files of a prefix are still those that were put there.

A wheel says so in its ``RECORD``, a conda package in its note in ``conda-meta``, an archive in its record in
``tenv-meta/archives``; what tenv itself makes (the toolkit's folder, the activation) is written down in
``tenv-meta/made.json`` when it is made.
"""

import base64
import binascii
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenv.files import digest
from tenv.inventory import read_note, read_record

__all__ = [
    "Expected",
    "Faults",
    "check",
    "describe_made",
    "expect_archive",
    "expect_conda",
    "expect_made",
    "expect_wheel",
]

_LINK = "link:"
_POINTER = "pointer:"
_BYTECODE = "__pycache__"


@dataclass(frozen=True, slots=True)
class Expected:
    """A file that should be in a prefix.

    Attributes:
        name: The file, relative to the prefix.
        owner: The package that it belongs to; empty for what tenv itself makes.
        digest: The algorithm and the digest in hex, such as ``sha256:12ab…``; ``link:`` and where a link leads,
            ``pointer:`` when nothing need be there; empty when nothing is written of its content.
    """

    name: str
    owner: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Faults:
    """What is not as it should be.

    Attributes:
        missing: Files that are not there, sorted.
        changed: Files that hold something else, sorted.
        owners: The packages that they belong to, sorted.
    """

    missing: tuple[str, ...]
    changed: tuple[str, ...]
    owners: tuple[str, ...]


def expect_wheel(info: Path, prefix: Path, owner: str) -> Iterator[Expected]:
    """Yield the files of a wheel, from the RECORD in its ``.dist-info``; bytecode, which Python makes anew, not."""
    base = os.path.relpath(info.parent, prefix)
    record = info / "RECORD"
    yield Expected(os.path.relpath(record, prefix), owner)
    # A missing one is told as missing, a broken one by what it no longer lists.
    for name, *rest in read_record(info):
        if _BYTECODE not in name:
            yield Expected(os.path.normpath(os.path.join(base, name)), owner, _of_record(*rest[:1]))  # noqa: PTH118


def _of_record(text: str = "") -> str:
    """Return a digest of a RECORD (``sha256=`` and urlsafe base64 without padding) in hex."""
    algorithm, _, value = text.partition("=")
    try:
        raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except (ValueError, binascii.Error):
        return ""
    return f"{algorithm}:{raw.hex()}" if raw and algorithm in hashlib.algorithms_guaranteed else ""


def expect_conda(note: Path) -> Iterator[Expected]:
    """Yield the files of a conda package, from its note in ``conda-meta``; bytecode not.

    A file in which the prefix was written has a digest of its own (``sha256_in_prefix``); a link is only looked for.
    """
    prefix = note.parent.parent
    yield Expected(os.path.relpath(note, prefix), note.name.rsplit("-", 2)[0])
    try:
        data = read_note(note)
        owner, rows = str(data["name"]), data["paths_data"]["paths"]
        yield from (_of_conda(row, owner) for row in rows if _BYTECODE not in row["_path"])
    except (KeyError, TypeError):
        yield Expected(os.path.relpath(note, prefix), note.name.rsplit("-", 2)[0], "sha256:unreadable")


def _of_conda(row: dict[str, Any], owner: str) -> Expected:
    kind, sha256 = row.get("path_type", "hardlink"), row.get("sha256_in_prefix") or row.get("sha256")
    return Expected(os.path.normpath(row["_path"]), owner, f"sha256:{sha256}" if sha256 and kind == "hardlink" else "")


def expect_archive(record: Path, files: Mapping[str, str], links: Mapping[str, str], owner: str) -> Iterator[Expected]:
    """Yield the files of an archive, by the digests and links of its record in ``tenv-meta/archives``."""
    yield Expected(os.path.relpath(record, record.parents[2]), owner)
    yield from (Expected(name, owner, f"sha256:{sha256}") for name, sha256 in files.items())
    yield from (Expected(name, owner, _POINTER + target) for name, target in links.items())


def describe_made(prefix: Path, names: Iterable[str]) -> str:
    """Return the text of ``made.json``: where each link leads and what each file holds, of files and whole folders."""
    found = {}
    for name in names:
        for path in _files(prefix / name):
            target = os.readlink(path) if path.is_symlink() else ""  # noqa: PTH115 (a text, as it stands in the link)
            found[os.path.relpath(path, prefix)] = _LINK + target if target else f"sha256:{digest(path)}"
    return json.dumps(found, indent=0, sort_keys=True) + "\n"


def _files(path: Path) -> Iterator[Path]:
    if path.is_symlink() or path.is_file():
        yield path
    elif path.is_dir():
        for entry in sorted(path.iterdir()):
            yield from _files(entry)


def expect_made(file: Path, prefix: Path) -> Iterator[Expected]:
    """Yield what tenv made in a prefix; nothing where an older tenv has not written it down."""
    name = os.path.relpath(file, prefix)
    try:
        rows = json.loads(file.read_text())
        yield from [Expected(str(path), "", str(value)) for path, value in rows.items()]
    except FileNotFoundError:
        return
    except (OSError, ValueError, AttributeError):
        yield Expected(name, "", "sha256:unreadable")


def check(prefix: Path, expected: Iterable[Expected]) -> Faults:
    """Look at every file that should be there; files are read side by side, since hashing leaves Python's lock."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (late: 10 ms)

    files = list({row.name: row for row in expected}.values())
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        answers = list(pool.map(lambda row: _judge(prefix / row.name, row.digest), files))
    faults = [(row, answer) for row, answer in zip(files, answers, strict=True) if answer]
    return Faults(
        missing=tuple(sorted(row.name for row, answer in faults if answer == "missing")),
        changed=tuple(sorted(row.name for row, answer in faults if answer == "changed")),
        owners=tuple(sorted({row.owner for row, _ in faults if row.owner})),
    )


def _judge(path: Path, wanted: str) -> str:
    """Return ``missing``, ``changed``, or an empty string."""
    if wanted.startswith(_LINK):
        return _judge_link(path, wanted.removeprefix(_LINK))
    if not os.path.lexists(path):
        return "missing"
    if wanted.startswith(_POINTER):
        same = path.is_symlink() and os.readlink(path) == wanted.removeprefix(_POINTER)  # noqa: PTH115 (as a text)
        return "" if same else "changed"
    algorithm, _, value = wanted.partition(":")
    try:
        return "" if not value or _hash(path, algorithm) == value else "changed"
    except (OSError, ValueError):
        return "changed"


def _hash(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _judge_link(path: Path, target: str) -> str:
    if path.is_symlink():
        same = os.readlink(path) == target  # noqa: PTH115 (a text, as it stands in the link)
        return "changed" if not same else "" if path.exists() else "missing"
    return "changed" if path.exists() else "missing"
