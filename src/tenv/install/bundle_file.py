"""The file of a bundle: the manifest and the lock of a target, and the files that the lock names.

It is an uncompressed tar with these members in this order:

    tenv-bundle-SHA256.json    the head: the digest and the size of all others; SHA256 is its own digest
    manifests/NAME.toml        the manifest, and then those that it extends
    locks/NAME.lock            the lock
    files/SHA256               the files, by kind and name

Every byte follows from the head: a header has no time, no owner and no mode of its own. So equal locks make equal
bundles, and a reader compares each byte, without reading a header that somebody else wrote.
"""

import hashlib
import json
import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tenv import __version__
from tenv.core.dataclass import dataclass
from tenv.core.errors import BundleRefusedError, HashMismatchError
from tenv.core.files import digest_bytes, open_regular, storage_errors
from tenv.core.names import is_sha256
from tenv.core.untrusted import printable
from tenv.sources.interface import CarriedFile
from tenv.targets.search import is_target_name

SCHEMA = 1
_PREFIX, _SUFFIX = "tenv-bundle-", ".json"
_BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * _BLOCK)
_CHUNK = 4 << 20
_MAX_TEXT = 64 << 20
"""The most bytes of a manifest and of a lock."""
_MAX_HEAD = 8 << 20
"""The most bytes of the head, some 30,000 files; parsed, a hostile one takes 25 times as much memory."""
_MAX_NAME = 255
"""The most bytes of a name in a file system."""
_MAX_FILE = 64 << 30
_MAX_PARENTS = 16


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a bundle."""

    name: str
    """Its name in the bundle."""
    sha256: str
    """Its digest in hex."""
    size: int
    """Its size in bytes."""

    @classmethod
    def of(cls, name: str, data: bytes) -> "Member":
        """Return the member that holds some bytes."""
        return cls(name, digest_bytes(data), len(data))


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a bundle."""

    target: str
    """The target's name."""
    platforms: tuple[str, ...]
    """The platforms whose files it has, sorted."""
    python: str
    """The only Python minor whose wheels it has; empty for all of the lock."""
    manifests: tuple[Member, ...]
    """The target's manifest, and then those that it extends."""
    lock: Member
    """The lock."""
    files: tuple[CarriedFile, ...]
    """The files, by kind and name."""
    written_by: str = __version__
    """The release of tenv that wrote it."""
    features: tuple[str, ...] | None = None
    """The features whose files it has, sorted; None for all of the lock."""

    def to_bytes(self) -> bytes:
        """Return the head as the text of its member."""
        data = {
            "schema": SCHEMA,
            "tenv": self.written_by,
            "target": self.target,
            "platforms": self.platforms,
            "python": self.python,
            "features": self.features,
            "manifests": [[row.name, row.sha256, row.size] for row in self.manifests],
            "lock": [self.lock.name, self.lock.sha256, self.lock.size],
            "files": [[row.kind, row.name, row.sha256, row.size, row.platforms] for row in self.files],
        }
        return (json.dumps(data, indent=0, ensure_ascii=True) + "\n").encode()

    @classmethod
    def parse(cls, raw: bytes) -> "Head":
        """Read a head; raises ValueError for one that `to_bytes` does not write."""
        try:
            data = json.loads(raw)
            schema = data["schema"]
            head = cls._of(data) if schema == SCHEMA else None
            sound = head is None or (head.is_sound() and head.to_bytes() == raw)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ValueError("its head can't be read") from error
        if head is None:
            raise ValueError(f"its schema is {repr(schema)[:40]}, and this tenv reads {SCHEMA} alone")
        if not sound:
            raise ValueError("its head has values that tenv does not write")
        return head

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> "Head":
        return cls(
            data["target"],
            tuple(data["platforms"]),
            data["python"],
            tuple(Member(*row) for row in data["manifests"]),
            Member(*data["lock"]),
            tuple(
                CarriedFile(kind, name, sha256, size, tuple(platforms))
                for kind, name, sha256, size, platforms in data["files"]
            ),
            data["tenv"],
            None if data["features"] is None else tuple(data["features"]),
        )

    def is_sound(self) -> bool:
        """Return whether every value has its type, and no name leads anywhere."""
        texts = (self.target, self.python, self.written_by, *self.platforms, *(self.features or ()))
        parents = [row.name.removeprefix("manifests/").removesuffix(".toml") for row in self.manifests]
        members = (*self.manifests, self.lock)
        return (
            all(isinstance(text, str) and printable(text) == text for text in texts)
            and is_target_name(self.target)
            and 0 < len(parents) <= _MAX_PARENTS
            and len(set(parents)) == len(parents)
            and parents[0] == self.target
            and all(is_target_name(name.removeprefix("_")) for name in parents)
            and [row.name for row in self.manifests] == [f"manifests/{name}.toml" for name in parents]
            and self.lock.name == f"locks/{self.target}.lock"
            and all(_is_sized(row.sha256, row.size, _MAX_TEXT) for row in members)
            and all(_is_sized(row.sha256, row.size, _MAX_FILE) and is_plain(row) for row in self.files)
            and len({row.sha256 for row in self.files}) == len(self.files)
            and not twins(self.files)
        )


def twins(files: Sequence[CarriedFile]) -> list[tuple[str, str]]:
    """Return the name and the platform of wheels that no folder can hold side by side."""
    count = Counter(
        (row.name.casefold(), platform) for row in files for platform in row.platforms if row.kind == "wheels"
    )
    return [key for key, times in count.items() if times > 1]


def _is_sized(sha256: object, size: object, most: int) -> bool:
    return isinstance(sha256, str) and is_sha256(sha256) and type(size) is int and 0 <= size <= most


def is_plain(row: CarriedFile) -> bool:
    """Return whether the name of a file is one in each file system, and its other texts are plain, too."""
    texts = (row.kind, row.name, *row.platforms)
    if not all(isinstance(text, str) and text and printable(text) == text for text in texts):
        return False
    if row.name[0] in ".-" or len(row.name.encode()) > _MAX_NAME:
        return False
    return not any(sign in row.name for sign in "/\\:")


def _header(name: str, size: int) -> bytes:
    """Return the tar header of a member."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


@contextmanager
def _hashing() -> "Iterator[Callable[[Any, bytes], Future[None]]]":
    """Yield a function that adds bytes to a digest in a thread, while the caller copies them."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda hasher, data: pool.submit(hasher.update, data)


# Writing


def write_bundle(
    file: IO[bytes],
    head: Head,
    texts: Sequence[bytes],
    find: Callable[[CarriedFile], Path],
    advance: Callable[[int], None],
) -> str:
    """Write a bundle, and compare each file with its digest while it is copied.

    Args:
        file: The open file.
        head: The head.
        texts: The manifests and the lock, in its order.
        find: Returns the path of a file.
        advance: Called with the number of bytes that were written.

    Returns:
        The digest of the head, which stands for every byte.

    Raises:
        HashMismatchError: A file has other bytes; `find` may return another one in a second call.
    """
    raw = head.to_bytes()
    own = digest_bytes(raw)
    names = (f"{_PREFIX}{own}{_SUFFIX}", *(row.name for row in head.manifests), head.lock.name)
    for name, data in zip(names, (raw, *texts), strict=True):
        file.write(_header(name, len(data)) + data + _padding(len(data)))
    with _hashing() as submit:
        for row in head.files:
            file.write(_header(f"files/{row.sha256}", row.size or 0))
            with open_regular(path := find(row)) as source:
                hasher, done = hashlib.sha256(usedforsecurity=False), 0
                while data := source.read(_CHUNK):
                    hashed = submit(hasher, data)
                    file.write(data)
                    done += len(data)
                    hashed.result()
                    advance(len(data))
            if done != row.size or hasher.hexdigest() != row.sha256:
                raise HashMismatchError(f"{path} is not {row.name}: its sha256 is not {row.sha256}")
            file.write(_padding(done))
    file.write(_END)
    return own


# Reading


def is_bundle(path: Path) -> bool:
    """Return whether a file begins as a bundle does."""
    with open_regular(path) as file:
        return file.read(len(_PREFIX)) == _PREFIX.encode()


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle whose head, manifests and lock were read and compared."""

    head: Head
    """Its head."""
    digest: str
    """The digest of the head, which stands for every byte."""
    manifests: Mapping[str, bytes]
    """The text of each manifest, by name."""
    lock: bytes
    """The text of the lock."""


class BundleReader:
    """Reads a bundle from its beginning to its end; anything but the bytes that follow from its head is refused.

    Attributes:
        shown: Its name in messages.
    """

    def __init__(self, file: IO[bytes], shown: str) -> None:
        """Store the open file, and its name for messages."""
        self._file = file
        self.shown = shown

    def open(self) -> Bundle:
        """Read the head, the manifests and the lock.

        Raises:
            BundleRefusedError: The file is no bundle, or is damaged.
        """
        first = self._take(_BLOCK)
        try:
            info = tarfile.TarInfo.frombuf(first, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise self.refusal("is no bundle of tenv") from error
        digest = info.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        if info.name != f"{_PREFIX}{digest}{_SUFFIX}" or not is_sha256(digest):
            raise self.refusal("is no bundle of tenv")
        if not 0 <= info.size <= _MAX_HEAD or first != _header(info.name, info.size):
            raise self.refusal("is damaged: tenv writes another first header")
        raw = self._content(Member(info.name, digest, info.size))
        try:
            head = Head.parse(raw)
        except ValueError as error:
            raise self.refusal(str(error)) from error
        texts = {row.name: self._text(row) for row in (*head.manifests, head.lock)}
        lock = texts.pop(head.lock.name)
        return Bundle(head, digest, texts, lock)

    def unpack(self, head: Head, place: Callable[[CarriedFile], Path | None], advance: Callable[[int], None]) -> None:
        """Compare the rest of the file with the head, and write some of the files.

        Args:
            head: The head that `open` returned.
            place: Returns the path to write a file to; None only to compare it.
            advance: Called with the number of bytes that were compared.

        Raises:
            BundleRefusedError: A byte differs, or the file ends early or late.
            StorageError: The bundle can't be read.
            OSError: A file can't be written.
        """
        with _hashing() as submit:
            for row in head.files:
                self._expect(_header(f"files/{row.sha256}", row.size or 0), row.name)
                hasher, rest, path = hashlib.sha256(usedforsecurity=False), row.size or 0, place(row)
                with path.open("xb") if path else Path(os.devnull).open("wb") as out:
                    while rest:
                        data = self._take(min(rest, _CHUNK), row.name)
                        hashed = submit(hasher, data)
                        out.write(data)
                        rest -= len(data)
                        hashed.result()
                        advance(len(data))
                if hasher.hexdigest() != row.sha256:
                    raise self.refusal(f"is damaged: {row.name} in it does not have the sha256 {row.sha256}")
                self._expect(_padding(row.size or 0), row.name)
        self._expect(_END, "its end")
        with storage_errors(f"can't read {self.shown}"):
            more = self._file.read(1)
        if more:
            raise self.refusal("is damaged: bytes follow its end")

    def refusal(self, reason: str) -> BundleRefusedError:
        """Return the error for this bundle."""
        return BundleRefusedError(
            f"{self.shown} {reason}", hint="nothing of it is used: copy or download it again, or make it anew"
        )

    def _text(self, row: Member) -> bytes:
        self._expect(_header(row.name, row.size), row.name)
        return self._content(row)

    def _content(self, row: Member) -> bytes:
        data = self._take(row.size, row.name)
        if digest_bytes(data) != row.sha256:
            raise self.refusal(f"is damaged: {row.name} in it does not have the sha256 {row.sha256}")
        self._expect(_padding(row.size), row.name)
        return data

    def _expect(self, data: bytes, name: str) -> None:
        if self._take(len(data), name) != data:
            raise self.refusal(f"is damaged at {name}")

    def _take(self, size: int, name: str = "its head") -> bytes:
        with storage_errors(f"can't read {self.shown}"):  # the caller may be writing at the same time
            data = self._file.read(size)
        if len(data) < size:
            raise self.refusal(f"ends early, at {name}")
        return data
