"""The origins of wheels that a manifest names: package indexes, and single files at an address or in a folder.

Indexes have the words of uv (``[[index]]``) and of pixi (``[pypi-options]``):
https://docs.astral.sh/uv/concepts/indexes/, https://pixi.prefix.dev/latest/reference/pixi_manifest/.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.names import WheelFile, file_at, is_sha256, is_wheel
from tenv.core.toml_reader import Table
from tenv.core.untrusted import address_fault, login_fault, name_fault, text_fault, without_login

FLAT = "flat"
"""The format of an index that is one page, or one folder, with links to files; uv's word."""

INDEX_FORMATS = ("simple", FLAT)
"""The formats of an index, as uv names them; ``simple`` is the interface that package indexes have."""

_SCHEMES = ("https", "http", "file")


@dataclass(frozen=True, slots=True)
class Index:
    """A package index that a manifest names."""

    url: str
    """Its address, without a slash at the end; or a folder, relative to the manifest's own."""
    name: str = ""
    """Its name; empty for none."""
    explicit: bool = field(default=False, compare=False)
    """Whether only the requests that name it take packages from it."""
    default: bool = field(default=False, compare=False)
    """Whether it stands in the place of the default index."""
    flat: bool = False
    """Whether it is one page or folder with links to files."""
    base: Path = field(default=Path(), compare=False)
    """The folder of the manifest, once it is known."""

    def __str__(self) -> str:
        return f"{self.name} ({self.url})" if self.name else self.url

    @property
    def key(self) -> str:
        """Its name, or else its address: the word for it in requests and in rows of a lock."""
        return self.name or self.url

    @property
    def address(self) -> str:
        """The absolute address."""
        return self.url if "://" in self.url else _absolute(self.base, self.url).as_uri()

    def asked(self) -> list[str]:
        """Return the index as JSON values."""
        given = [word for word in ("explicit", "default", "flat") if getattr(self, word)]
        return [self.name, self.url, *given]


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A request for one wheel file."""

    url: str = ""
    """Its address; empty for a file in a folder."""
    path: str = ""
    """The file, relative to the manifest's folder; empty for an address."""
    sha256: str = ""
    """Its digest in hex; empty if the manifest names none."""
    base: Path = field(default=Path(), compare=False)
    """The folder of the manifest, once it is known."""

    def __str__(self) -> str:
        return self.url or self.path

    @property
    def file(self) -> Path:
        """The absolute path of a request with a path."""
        return _absolute(self.base, self.path)

    @property
    def address(self) -> str:
        """The absolute address."""
        return self.url or self.file.as_uri()

    def asked(self) -> list[str]:
        """Return the request as JSON values, as in a lock."""
        given = {"url": self.url, "path": self.path, "sha256": self.sha256}
        return [f"{key}={value}" for key, value in given.items() if value]


def _absolute(base: Path, place: str) -> Path:
    return Path(os.path.abspath(base / place))  # noqa: PTH100 (links stay as they are)


def index_fault(text: str) -> str:
    """Return why a text is not the address of a package index, or a folder of one."""
    if "://" not in text:
        return path_fault(text)
    return address_fault(f"{text.partition('?')[0].rstrip('/')}/x", _SCHEMES) or login_fault(text)


def path_fault(text: str) -> str:
    """Return why a text is not the path of a file or a folder in a manifest."""
    if not text or text_fault(text) or text.startswith(("~", "-")) or "\\" in text or "://" in text:
        return f"`{text}` is not a path such as `../wheels`"
    return ""


def file_url_fault(text: str) -> str:
    """Return why a text is not the address of a wheel; a digest after ``#`` is no part of it."""
    if fault := address_fault(text):
        return fault
    return "" if WheelFile.parse(file_at(text)) else "expected the address of a wheel"


def split_digest(url: str) -> tuple[str, str]:
    """Return an address and the sha256 that its fragment names, which is empty without one.

    Raises:
        ValueError: The fragment is something else.
    """
    address, _, fragment = url.partition("#")
    digest = fragment.removeprefix("sha256=").lower()
    if fragment and (not fragment.startswith("sha256=") or not is_sha256(digest)):
        raise ValueError(f"`#{fragment}` is not `#sha256=` and 64 hex digits")
    return address, digest


def is_wheel_file(data: Iterable[str], path: object) -> bool:
    """Return whether the keys of a request ask for one file: a `url`, or a `path` that ends as a wheel's."""
    return "url" in data or (isinstance(path, str) and is_wheel(path))


def read_file_request(table: Table, name: str) -> FileRequest:
    """Read the request for one wheel.

    Args:
        table: The table of the request.
        name: The normalized name of the package.

    Raises:
        ManifestError: A value is not valid, or contradicts another one.
    """
    for key in ("version", "index", "build", "git", "editable", "rev", "branch", "tag", "subdirectory"):
        if key in table.data:
            raise table.fail(key, "is no part of a request for one file: remove this key")
    if "url" in table.data and "path" in table.data:
        raise table.fail("path", "exactly one of `url` and `path` is needed")
    path, digest = table.text("path"), table.text("sha256")
    try:
        url, named = split_digest(table.text("url"))
    except ValueError as error:
        raise table.fail("url", str(error)) from error
    key = "path" if path else "url"
    if fault := path_fault(path) if path else file_url_fault(url):
        hint = "put user and password into ~/.netrc, which tenv and uv read" if login_fault(url) else ""
        raise table.fail(key, f"`{without_login(url)}`: {fault}" if url else fault, hint=hint)
    if digest and (not is_sha256(digest) or (named and named != digest)):
        raise table.fail("sha256", "expected 64 hex digits, the same as in the `url`")
    file = WheelFile.parse(path.rpartition("/")[2] or file_at(url))
    if file is None or file.name != name:
        raise table.fail(key, f"is not a wheel of `{name}`" + (f", but of `{file.name}`" if file else ""))
    return FileRequest(url=url, path=path, sha256=digest or named)


def read_indexes(table: Table) -> tuple[Index, ...]:
    """Read the indexes of a manifest, a platform or a feature, best first: ``[[index]]``, then ``[pypi-options]``.

    Raises:
        ManifestError: A value is not valid, or two indexes have one name.
    """
    found = tuple(_index(row) for row in table.rows("index"))
    found += tuple(_options(table.table("pypi-options")))
    keys = [index.key for index in found]
    if twice := [place for place, key in enumerate(keys) if key in keys[:place]]:
        named = twice[0] < len(table.data.get("index") or ())
        raise table.fail(f"index[{twice[0]}]" if named else "pypi-options", f"`{keys[twice[0]]}` is there twice")
    if sum(index.default for index in found) > 1:
        raise table.fail("index", "only one index can be the default")
    return found


def _index(row: Table) -> Index:
    row.only(("url", "name", "explicit", "default", "format"))
    name, form = row.text("name"), row.text("format")
    if name and (fault := name_fault(name)):
        raise row.fail("name", fault.replace("a package name", "the name of an index"))
    if form and form not in INDEX_FORMATS:
        raise row.fail("format", f"`{form}` is no format of an index", hint=f"known: {', '.join(INDEX_FORMATS)}")
    url = _url(row, "url", row.required_text("url"))
    found = Index(url, name, row.flag("explicit"), row.flag("default"), flat=form == FLAT)
    if found.explicit and not name:
        raise row.fail("name", "is required, since only requests that name an explicit index use it")
    if found.explicit and found.default:
        raise row.fail("default", "an explicit index can't be the default")
    return found


def _options(table: Table) -> Iterator[Index]:
    table.only(("index-url", "extra-index-urls", "find-links"))
    for row in table.rows("find-links"):
        row.only(("path", "url"))
        if len(row.data) != 1:
            raise row.fail("", "exactly one of `url` and `path` is needed")
        yield Index(_url(row, key, row.required_text(key)) if (key := next(iter(row.data))) else "", flat=True)
    for url in table.strings("extra-index-urls"):
        yield Index(_url(table, "extra-index-urls", url))
    if "index-url" in table.data:
        yield Index(_url(table, "index-url", table.required_text("index-url")), default=True)


def _url(table: Table, key: str, text: str) -> str:
    if fault := index_fault(text):
        hint = "~/.netrc, `uv auth login` or UV_INDEX keeps the login" if login_fault(text) else ""
        raise table.fail(key, f"`{without_login(text)}`: {fault}", hint=hint)
    return text.rstrip("/") or text


def laid(above: tuple[Index, ...], own: tuple[Index, ...], *, adds: bool) -> tuple[Index, ...]:
    """Return the indexes of two manifests, best first; of two with one name or address, the own one.

    Args:
        above: The indexes of the parent, or of the target that a feature adds to.
        own: The own indexes.
        adds: Whether the own ones come after those above.
    """
    keys = {index.key for index in own}
    default = any(index.default for index in own)
    kept = tuple(index for index in above if index.key not in keys and not (default and index.default))
    return (*kept, *own) if adds else (*own, *kept)
