"""The wheels of a prefix, from the ``RECORD`` in each ``.dist-info``."""

import binascii
import contextlib
import csv
import functools
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from tenv.core.file_content import read_text
from tenv.core.files import read_regular
from tenv.core.names import dist_info, dist_infos
from tenv.environment.installed_files import BYTECODE, Expected, Records
from tenv.locks.lock import fits_note


class Wheels(Records):
    """The wheels of a prefix, by their normalized names."""

    __slots__ = ()

    def names(self) -> Collection[str]:
        """Return the names of the installed packages."""
        return self.versions().keys()

    def files(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the files in the records of packages, and the other files beside the records."""
        wanted = set(names)
        for info in self.distributions():
            if dist_info(info)[0] in wanted:
                base = os.path.relpath(info.parent, self.prefix)
                for row in _read_record(info):
                    yield _below(base, row[0])
                yield from (os.path.relpath(path, self.prefix) for path in info.rglob("*") if not path.is_dir())

    def own_files(self, packages: Iterable[str]) -> Iterator[str]:
        """Yield the ``RECORD`` of each package."""
        wanted = {*packages}
        for info in self.distributions():
            if dist_info(info)[0] in wanted and (info / "RECORD").is_file():
                yield os.path.relpath(info / "RECORD", self.prefix)

    def hold(self, packages: Mapping[str, tuple[str, ...]]) -> bool:
        """Return whether wheels are installed in their versions, by the names of their folders alone."""
        there = self.versions()
        return all(fits_note(there.get(name, ""), note) for name, note in packages.items())

    def expected(self, packages: Mapping[str, tuple[str, ...]]) -> Iterator[Expected]:
        """Yield the files of wheels, with the digests in their RECORDs."""
        infos = {dist_info(info)[0]: info for info in self.distributions()}
        versions = self.versions()
        for name, note in packages.items():
            if name not in infos or not fits_note(versions[name], note):
                yield Expected(f"{name} {note[0]}", name)  # without a record, other files of it are unknown
                continue
            # A missing RECORD is reported as missing, a broken one by the files that it does not list.
            yield Expected(os.path.relpath(infos[name] / "RECORD", self.prefix), name)
            base = os.path.relpath(infos[name].parent, self.prefix)
            for row in _read_record(infos[name]):
                if BYTECODE not in row[0]:
                    yield Expected(_below(base, row[0]), name, _of_record(row[1] if row[1:] else ""))

    def versions(self) -> dict[str, str]:
        """Return the version of every installed package."""
        found = {}
        for info in self.distributions():
            name, version = dist_info(info)
            found[name] = version
        return found

    def requirements(self, name: str) -> tuple[str, ...]:
        """Return the requirements of an installed package; empty if they can't be read."""
        from email.parser import BytesHeaderParser  # late: only for packages of source trees

        for info in self.distributions():
            if dist_info(info)[0] == name:
                with contextlib.suppress(OSError):
                    found = BytesHeaderParser().parsebytes(read_regular(info / "METADATA"))
                    return tuple(map(str, found.get_all("Requires-Dist") or ()))
        return ()

    def distributions(self) -> list[Path]:
        """Return the ``.dist-info`` folders of the prefix, sorted."""
        # conda's Python has a symbolic link `lib/python3.1` to its own folder; its packages must not count twice.
        folders = [path for path in self.prefix.glob("lib/python3*") if not path.is_symlink()]
        homes = [folder / "site-packages" for folder in (*folders, self.prefix / "Lib")]
        return sorted(info for home in homes for info in dist_infos(home))

    def folders(self, names: Iterable[str], below: Path) -> tuple[Path, ...]:
        """Return the folders directly in `below` (below site-packages) with files of packages, sorted."""
        wanted = set(names)
        found = set()
        for info in self.distributions():
            if dist_info(info)[0] in wanted:
                with contextlib.suppress(OSError, ValueError):  # without csv, for tens of thousands of rows
                    record = read_text(info / "RECORD")
                    if f"{below.name}/" not in record:  # a search for lines takes a hundred times as long
                        continue
                    found.update(re.findall(rf"^{re.escape(below.name)}/([^/,]+)/", record, re.MULTILINE))
        return tuple(below / name for name in sorted(found))


def _read_record(info: Path) -> list[list[str]]:
    """Return the rows of the ``RECORD`` in a ``.dist-info``: name, digest, size; empty if it can't be read."""
    try:
        text = read_regular(info / "RECORD").decode("utf-8")
        lines = text.split("\n")
        plain = not any(sign in text for sign in ('"', "\r", "\0"))
        if plain and max(map(len, lines)) < csv.field_size_limit():  # most are, and take half the time
            return [line.split(",") for line in lines if line]
        return [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (OSError, ValueError, csv.Error):
        return []


def _below(base: str, file: str) -> str:
    """Return the normalized path of a file of a RECORD; tens of thousands of them are joined by a command."""
    if os.sep == "/" and file[:1].isalnum() and "//" not in file and "/." not in file and file[-1:] != "/":
        return f"{base}/{file}"
    return os.path.normpath(os.path.join(base, file))  # noqa: PTH118 (fast)


def _of_record(text: str) -> str:
    """Return a digest of a RECORD (``sha256=`` and base64url without padding) in hex."""
    algorithm, _, value = text.partition("=")
    try:
        raw = binascii.a2b_base64(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4))
    except ValueError:
        return ""
    return f"{algorithm}:{raw.hex()}" if raw and (algorithm == "sha256" or algorithm in _algorithms()) else ""


@functools.cache
def _algorithms() -> Collection[str]:
    import hashlib  # late: OpenSSL is loaded with it

    return hashlib.algorithms_guaranteed
