"""The files that the conda packages of a lock bring, from the packages themselves, fetched again."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tenv.core.files import open_regular
from tenv.core.names import CondaFile
from tenv.environment.installed_files import BYTECODE, POINTER, Expected, read_note
from tenv.locks.lock import Lock
from tenv.rattler_api.cache import PackedFile
from tenv.rattler_api.records import Record
from tenv.sources.access import Access
from tenv.sources.conda.source import rows_of
from tenv.sources.conda.staging import fetch_packages, places, records_of

_DIFFERS = "sha256:differs"


def conda_contents(access: Access, lock: Lock, platform: str, prefix: Path) -> Iterator[Expected]:
    """Yield the files of conda packages, with the digests of the packages themselves.

    A file that holds the prefix is compared here: the prefix in it is replaced by the placeholder of the package.

    Raises:
        NetworkError: A package can't be fetched.
        HashMismatchError: Its bytes are not those of the lock.
        ArchiveRefusedError: It unpacks to more than the limits.
    """
    records = records_of(lock, platform)
    if not records:
        return
    access.progress.step("fetching conda packages to compare", len(records))
    limits, network = access.unpack_limits(), access.network()
    archives, packed = fetch_packages(records, network, limits, lambda *_: access.progress.advance(0))
    try:
        for content, names in places([found.content for found in packed]):
            files = next(found.files for found in packed if found.content is content)
            yield from _files(content.record, files, names, prefix)
    finally:
        for path in archives.values():
            path.unlink(missing_ok=True)


def _files(record: Record, files: Sequence[PackedFile], names: Sequence[str], prefix: Path) -> Iterator[Expected]:
    note = read_note(prefix / "conda-meta" / CondaFile(record.name, record.version, record.build).note)
    aside = {str(row["original_path"]): str(row["_path"]) for row in rows_of(note) if "original_path" in row}
    for file, claimed in zip(files, names, strict=True):
        name = os.path.normpath(aside.get(claimed, claimed))
        if BYTECODE in name or not (file.sha256 or file.target):
            continue
        if file.target:
            yield Expected(name, record.name, f"{POINTER}{file.target}")
            continue
        if not file.placeholder:
            yield Expected(name, record.name, f"sha256:{file.sha256}", file.executable)
            continue
        try:
            with open_regular(prefix / name) as opened:
                data = opened.read()
        except OSError:
            yield Expected(name, record.name, "", file.executable)
            continue
        first = data.partition(b"\n")[0]
        rewritten = first.startswith(b"#!/usr/bin/env ")  # rattler's first line where the prefix is too long for one
        plain = unprefixed(data, os.fsencode(prefix), file.placeholder.encode(), binary=file.binary)
        same = rewritten or hashlib.sha256(plain).hexdigest() == file.sha256
        yield Expected(name, record.name, "" if same else _DIFFERS, file.executable)


def unprefixed(data: bytes, prefix: bytes, placeholder: bytes, *, binary: bool) -> bytes:
    """Return the bytes of a file as the package has them, with the placeholder in the place of the prefix.

    Args:
        data: The bytes of the installed file.
        prefix: The prefix, which is not longer than the placeholder in a binary file.
        placeholder: The text in its place in the package.
        binary: Whether strings end with a zero byte, and were filled up with zeros to their old length.
    """
    if not binary:
        return data.replace(prefix, placeholder)
    grown = len(placeholder) - len(prefix)

    def original(match: re.Match[bytes]) -> bytes:
        text, zeros = match.groups()
        fill = len(zeros) - grown * text.count(prefix)
        return bytes(text.replace(prefix, placeholder) + b"\0" * max(fill, 0))

    return re.sub(rb"(" + re.escape(prefix) + rb"[^\0]*)(\0*)", original, data)
