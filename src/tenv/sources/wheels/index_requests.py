"""Requests that name an index of the manifest, in the forms that uv takes.

uv asks an index for one package alone only where a ``pyproject.toml`` says so (``[tool.uv.sources]``): it refuses that
key in a ``uv.toml``. Such a file is made for each call. In it, an index has a name of tenv's own: uv takes logins from
``UV_INDEX_NAME_USERNAME`` and ``UV_INDEX_NAME_PASSWORD``, which the user set for an index of their own.
"""

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tenv.core.dataclass import dataclass
from tenv.core.errors import NetworkError, NoSolutionError
from tenv.core.http import Http, Unanswered
from tenv.locks.lock import LockedTree, Wheel
from tenv.sources.wheels.choose import hashed, requirement
from tenv.sources.wheels.index_settings import index_rows
from tenv.targets.config import Settings
from tenv.targets.manifest import Manifest
from tenv.targets.wheel_origin import FLAT, Index

_NO_SETTINGS = Settings()
_REFUSED = (401, 403)
_FROM = re.compile(r"# from (\S+)")
_PLACE = re.compile(r"(?:^|(?<= @ ))https?://\S+")
_PINNED = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(?:==| @ )")


@dataclass(frozen=True, slots=True)
class UserIndexes:
    """The indexes and the mirrors of the user, which stand in the place of the manifest's indexes."""

    urls: Mapping[str, str]
    """The address of each index with a name, by name."""
    flats: frozenset[str] = frozenset()
    """The names of those that are one page or folder with links to files."""
    user: Settings = field(default_factory=Settings)
    """The user's settings of tenv, for mirrors of the others."""

    @classmethod
    def of(
        cls, environment: Mapping[str, str], configuration: Mapping[str, Any], user: Settings = _NO_SETTINGS
    ) -> "UserIndexes":
        """Return the named indexes of uv's settings, and the mirrors of the user."""
        named = {row["name"]: row for row in index_rows(environment, configuration) if row.get("name")}
        urls = {name: str(row["url"]) for name, row in named.items()}
        flats = frozenset(name for name, row in named.items() if row.get("format") == FLAT)
        whole = {name: url if "://" in url else Path(url).absolute().as_uri() for name, url in urls.items()}
        return cls(whole, flats, user)

    def address(self, index: Index) -> str:
        """Return the address at which an index of a manifest is asked: the user's own of that name, or its mirror."""
        return self.urls.get(index.name) or self.user.served(index.address)[0]

    def fetched(self, text: str) -> str:
        """Return the text of a requirements file, or an address of a wheel, with the mirrors of single wheels."""
        return _PLACE.sub(lambda url: self.user.served(url[0])[0], text)

    def is_flat(self, index: Index) -> bool:
        """Return whether that address is one page or folder with links to files."""
        return index.name in self.flats if index.name in self.urls else index.flat


@dataclass(frozen=True, slots=True)
class IndexedRequests:
    """Requests, some of which name an index."""

    lines: tuple[str, ...]
    """The lines of a requirements file of the requests that name none."""
    bound: Mapping[str, tuple[str, Index]]
    """The requirement and the index of each other one, by name."""
    hashes: str = ""
    """The lines of a requirements file that hold the digests of `bound`; empty without digests."""

    @property
    def text(self) -> str:
        """The requests that name no index, as the text of a requirements file."""
        return "".join(f"{line}\n" for line in self.lines)

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> "IndexedRequests":
        """Return the requests of a manifest for a platform."""
        lines = {name: requirement(name, row) for name, row in sorted(manifest.wheels.items())}
        bound = {name: (lines.pop(name), index) for name, index in manifest.bound_indexes().items()}
        return cls(tuple(lines.values()), bound)

    @classmethod
    def of_pins(cls, pins: Iterable[str], indexes: Mapping[str, Index]) -> "IndexedRequests":
        """Return requests for releases such as ``numpy==2.1.0``, some of which name an index."""
        lines, bound = [], {}
        for pin in pins:
            name = re.split(r"[^\w.-]", pin, maxsplit=1)[0]
            if name in indexes:
                bound[name] = pin, indexes[name]
            else:
                lines.append(pin)
        return cls(tuple(lines), bound)

    @classmethod
    def of_wheels(cls, wheels: Sequence[Wheel], *, alone: bool) -> "IndexedRequests":
        """Return the requests that hold the files of a lock by sha256.

        Args:
            wheels: The files.
            alone: Whether the user allows no index at all, only present files.
        """
        bound = {w.name: (f"{w.name}=={w.version}", w.index) for w in wheels if w.index and not alone}
        plain = hashed([wheel for wheel in wheels if wheel.name not in bound], alone=alone).splitlines()
        return cls(tuple(plain), bound, hashed([wheel for wheel in wheels if wheel.name in bound]))

    def refusal(self, http: Http, users: UserIndexes) -> NetworkError | None:
        """Return the error for an index that wants a login; uv 0.13 reports that its packages do not exist."""
        for name, (_, index) in self.bound.items():
            url = users.address(index)
            if users.is_flat(index) or not url.startswith("http"):
                continue
            with contextlib.suppress(Unanswered), http.get(f"{url.rstrip('/')}/{name}/") as answer:
                if answer.status in _REFUSED:
                    return NetworkError(
                        f"the index {index} wants a login: it answers with status {answer.status}",
                        hint=f"~/.netrc, a keyring or `uv auth login {index.url}` keeps one for this address",
                    )
        return None

    def write(self, folder: Path, python: str, users: UserIndexes) -> tuple[str, ...]:
        """Write the files for uv into a folder.

        Args:
            folder: The folder.
            python: The Python minor.
            users: The indexes of the user.

        Returns:
            The names of the files with requirements; none if no request names an index.
        """
        if not self.bound:
            return ()
        import tomlkit  # late: 22 ms, only for manifests with an index

        names: dict[str, str] = {}
        for _, index in self.bound.values():
            own = index.name if index.name in users.urls else f"tenv-{len(names)}"
            names.setdefault(index.key, own)
        known = {index.key: index for _, index in self.bound.values()}
        rows = [
            {"name": name, "url": users.address(known[key]), "explicit": True}
            | ({"format": FLAT} if users.is_flat(known[key]) else {})
            for key, name in names.items()
        ]
        project = {
            "name": "manifest-of-this-target",
            "version": "0",
            "requires-python": f">={python}",
            "dependencies": [line for line, _ in self.bound.values()],
        }
        sources = {name: {"index": names[index.key]} for name, (_, index) in self.bound.items()}
        file = folder / "pyproject.toml"
        file.write_text(tomlkit.dumps({"project": project, "tool": {"uv": {"index": rows, "sources": sources}}}))
        return (str(file),)


def require_index_folders(manifest: Manifest, users: UserIndexes) -> None:
    """Refuse an index in a folder that is not there: uv takes it for one without packages, and asks the next index.

    Raises:
        NoSolutionError: A folder is not there.
    """
    indexes = dict.fromkeys(index for on in manifest.platforms for index in manifest.on(on).indexes)
    for index in indexes:
        folder = folder_of(users.address(index))
        if folder is not None and not folder.exists():
            raise NoSolutionError(
                f"the index {index}: {folder} does not exist", hint="`url` is relative to the folder of the manifest"
            )


def folder_of(address: str) -> Path | None:
    """Return the path that a ``file://`` address of this machine means; None for any other address."""
    return Path(unquote(urlsplit(address).path)) if address.startswith("file:///") else None


def indexes_in_use(manifest: Manifest, environment: Mapping[str, str], users: UserIndexes) -> dict[str, str]:
    """Return the variables by which uv asks the indexes of a manifest before those of the user.

    The first index that has a package serves it. Explicit indexes are left to `IndexedRequests`.

    Args:
        manifest: The manifest for the platform.
        environment: The variables of the user.
        users: The indexes of the user.
    """
    shared = [index for index in manifest.indexes if not index.explicit]
    if not shared or environment.get("UV_NO_INDEX"):
        return {}
    flat = [users.address(index).replace(",", "%2C") for index in shared if users.is_flat(index)]
    default = [users.address(index) for index in shared if index.default]
    simple = [users.address(index) for index in shared if not users.is_flat(index) and not index.default] + default
    found = {"UV_INDEX_STRATEGY": "first-index"}
    if flat:
        found["UV_FIND_LINKS"] = ",".join(filter(None, (*flat, environment.get("UV_FIND_LINKS"))))
    if simple:
        found["UV_INDEX"] = " ".join(filter(None, (*simple, environment.get("UV_INDEX"))))
    if default:
        found["UV_DEFAULT_INDEX"] = default[0]
    return found


def read_origins(output: str) -> dict[str, str]:
    """Return the address of the index of each package, by name, from uv's output with ``--emit-index-annotation``."""
    found: dict[str, str] = {}
    name = ""
    for line in output.splitlines():
        if match := _PINNED.match(line):
            name = match[1]
        elif (origin := _FROM.search(line)) and name:
            found[name] = origin[1].rstrip("/")
    return found


def as_asked(
    manifest: Manifest, rows: Mapping[str, tuple[Wheel, str]], origins: Mapping[str, str], users: UserIndexes
) -> dict[str, tuple[Wheel, str]]:
    """Return wheels and their URLs, each wheel with its origin.

    Args:
        manifest: The manifest for the platform.
        rows: The wheels and their URLs, by name.
        origins: The address of the index that each came from, by name; a name is left out for an index of the user.
        users: The indexes of the user.
    """
    shared = {_bare(users.address(index)): index for index in manifest.indexes if not index.explicit}
    found = {}
    for name, (wheel, url) in rows.items():
        request = manifest.wheels.get(name)
        if request and request.file:
            made = replace(wheel, url=request.file.url, path=request.file.path)
        else:
            index = manifest.index(request.index) if request and request.index else shared.get(origins.get(name, ""))
            made = replace(wheel, index=index)
        found[name] = made, url
    return found


def located(wheels: Iterable[Wheel], manifest: Manifest) -> tuple[Wheel, ...]:
    """Return wheels of a lock with the manifest's own indexes and files, whose paths are absolute.

    Args:
        wheels: The wheels, which satisfy the manifest.
        manifest: The manifest for the platform.
    """
    found = []
    for wheel in wheels:
        request = manifest.wheels.get(wheel.name)
        if wheel.path and request and request.file:
            found.append(replace(wheel, path=str(request.file.file)))
        elif wheel.index:
            found.append(replace(wheel, index=manifest.index(wheel.index.key)))
        else:
            found.append(wheel)
    return tuple(found)


def located_sdist(row: LockedTree, manifest: Manifest) -> LockedTree:
    """Return a source archive of a lock with the manifest's own index."""
    return replace(row, index=manifest.index(row.index.key)) if row.index else row


def _bare(url: str) -> str:
    """Return an address as uv prints it, without a login."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}".rstrip("/")
