"""Write the files of a target into a folder that any static server or S3 offers, and the settings that use it."""

import hashlib
import html
import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from tenv.checks.lock_verdict import judge_lock
from tenv.core.dataclass import dataclass
from tenv.core.errors import ForeignFolderError, HashMismatchError, UsageError
from tenv.core.file_content import read_text
from tenv.core.files import digest, digest_bytes, exclusive, open_regular, refuse_link, storage_errors, write_atomic
from tenv.core.names import channel_of, is_sha256, is_wheel, normalize
from tenv.core.part_file import large_file
from tenv.core.untrusted import printable, without_login
from tenv.locks.lock import Lock
from tenv.sources.archives.store import Store
from tenv.sources.interface import CarriedFile
from tenv.sources.wheels.metadata import from_file
from tenv.targets.config import is_address
from tenv.verbs.bundle import carried_rows, collect, completed, locked_minors

if TYPE_CHECKING:
    from tenv.project.context import Context

LIST = "tenv-mirror.json"
"""The list of the files of a mirror: it marks the folder, and holds the digest of each file."""

_OF_LOCK = (".tenv.lock", ".tenv.owner")
"""The files of `exclusive` inside of a folder."""
_SCHEMA = 1
_SIMPLE, _FLAT = "simple", "wheels.html"
_CONDA, _WHEELS = "conda", "wheels"
_THREADS = 8
_PIECE = 4 << 20


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """The settings of a machine that uses a mirror."""

    wheels: str
    """The address of the page of all wheels; empty without wheels."""
    simple: str
    """The address of the index of wheels, for servers that answer a folder with its ``index.html``; empty without
    wheels."""
    mirrors: Mapping[str, str]
    """The address of the copy of each server, by the server."""
    channels: tuple[str, ...]
    """The addresses of the copies of conda channels."""

    def uv(self) -> dict[str, str]:
        """Return the variables for uv and tenv."""
        return {"UV_NO_INDEX": "1", "UV_FIND_LINKS": self.wheels} if self.wheels else {}

    def pip(self) -> dict[str, str]:
        """Return the variables for pip."""
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels} if self.wheels else {}

    def config(self) -> str:
        """Return the lines for tenv's ``config.toml``."""
        rows = [f"{json.dumps(server)} = [{json.dumps(copy)}]" for server, copy in self.mirrors.items()]
        return "\n".join(["[mirrors]", *rows, ""]) if rows else ""

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        config, channels = self.config(), list(self.channels)
        return {"uv": self.uv(), "pip": self.pip(), "index": self.simple, "config.toml": config, "channels": channels}


@dataclass(frozen=True, slots=True)
class Mirrored:
    """A mirror after the files of a target were added."""

    target: str
    """The target."""
    folder: Path
    """The folder."""
    platforms: tuple[str, ...]
    """The platforms whose files were added."""
    python: str
    """The only Python minor whose wheels were added; empty for all of the lock."""
    files: Mapping[str, CarriedFile]
    """The files of the target, by their path in the mirror."""
    new: int
    """The number of files that the mirror did not have before."""
    settings: MirrorSettings
    """The settings of a machine that uses it."""

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        return {
            "target": self.target,
            "folder": str(self.folder),
            "platforms": list(self.platforms),
            "python": self.python or None,
            "new": self.new,
            "files": [
                {"kind": row.kind, "path": path, "sha256": row.sha256, "size": row.size}
                for path, row in self.files.items()
            ],
            "settings": self.settings.to_json(),
        }


def mirror(
    context: "Context", name: str, folder: Path, platforms: Sequence[str] = (), minor: str = "", url: str = ""
) -> Mirrored:
    """Add the files of a target's lock to a mirror, and compare all of its files with their digests.

    Args:
        context: The context of the verb.
        name: The target.
        folder: The folder of the mirror; it is made if it is not there.
        platforms: The platforms; empty for all of the lock.
        minor: The only Python minor whose wheels are added; empty for all of the lock.
        url: The address at which a server offers the folder; empty for the folder itself.

    Raises:
        LockMissingError, LockStaleError: The lock can't be installed.
        UsageError: The lock has no such platform or Python, or a row that no mirror can have; the address is no usable
            one.
        ForeignFolderError: The folder has files and is no mirror.
        HashMismatchError: A file of another lock in it has changed.
        NetworkError: A file can't be fetched.
    """
    _require_address(url)
    target = context.find_target(name)
    folder = Path(os.path.abspath(folder))  # noqa: PTH100 (links stay)
    lock = judge_lock(target).require(target)
    minors = locked_minors(lock, platforms, minor)
    _read_list(folder)
    store, names = collect(context, target, lock, minors)
    files: dict[str, CarriedFile] = {}
    for row in carried_rows(lock, minors):
        whole = completed(row, names, store)
        path = _place(whole)
        if files.setdefault(path, whole).sha256 != row.sha256:
            raise UsageError(f"the lock has several files for {path}, so no mirror can have them")
    held = exclusive(folder, "tenv mirror", lambda sentence: context.progress.say(f"waiting: {sentence}"), inside=True)
    with held, storage_errors(f"can't write {folder}"):
        known = _read_list(folder)
        new = _put(context, folder, known, files, store)
        known |= {path: row.sha256 for path, row in files.items()}
        _write_list(folder, known)
        _write_pages(folder, known)
        _index(folder, lock, minors)
    settings = _settings(files.values(), url.rstrip("/") or folder.as_uri())
    return Mirrored(target.name, folder, tuple(minors), minor, dict(sorted(files.items())), new, settings)


def _require_address(url: str) -> None:
    """Raise UsageError for an address that is not of a folder on a web server, or holds a secret."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        whole = is_address(url) and (bool(parts.hostname) or parts.scheme == "file")
    except ValueError:  # a host in brackets that is no address of IPv6
        whole = False
    if not whole:
        raise UsageError(
            f"`--url {printable(without_login(url))}` is no address of http://, https:// or file://",
            hint="`--url https://SERVER/FOLDER`",
        )
    if without_login(url) != url or parts.query or parts.fragment:
        bare = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise UsageError(
            "`--url` has a login, a query or a fragment, which the settings of other machines can't hold",
            hint=f"`--url {bare}`; logins come from netrc and the keyring",
        )


def _settings(files: Collection[CarriedFile], home: str) -> MirrorSettings:
    """Return the settings of a machine that uses the files of a mirror at an address."""
    servers = {_server(row.address): None for row in files if row.kind != _WHEELS}
    channels = {channel_of(row.address): None for row in files if row.kind == _CONDA}
    has_wheels = any(row.kind == _WHEELS for row in files)
    return MirrorSettings(
        f"{home}/{_FLAT}" if has_wheels else "",
        f"{home}/{_SIMPLE}/" if has_wheels else "",
        {server: f"{home}/{quote(_home(server))}" for server in sorted(servers)},
        tuple(f"{home}/{quote(_home(channel))}" for channel in sorted(channels)),
    )


# Places


def _place(row: CarriedFile) -> str:
    """Return the path of a file in a mirror; raises UsageError for one that would be elsewhere."""
    if row.kind == _WHEELS:
        name = row.name.partition("-")[0] if is_wheel(row.name) else row.name.rpartition("-")[0]
        path = f"{_SIMPLE}/{normalize(name)}/{row.name}"
    else:
        path = _home(row.address)
    if not _is_plain(path) or (row.kind != _WHEELS and path.startswith(f"{_SIMPLE}/")):
        raise UsageError(f"the lock has a file at {printable(row.address or row.name)}, which no mirror can have")
    return path


def _home(address: str) -> str:
    """Return the path of an address in a mirror: its server, and its path there."""
    parts = urlsplit(address)
    return f"{parts.netloc.replace(':', '_')}{unquote(parts.path)}"


def _server(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _is_plain(path: str) -> bool:
    """Return whether a path stays below a folder on each system, and hides none of the mirror's own files."""
    parts = path.split("/")
    return (
        len(parts) > 1
        and printable(path) == path
        and parts[0] != "."
        and all(part and part[0] not in ".-" and not any(sign in part for sign in '\\:*?"<>|') for part in parts)
        and parts[-1] not in ("index.html", "repodata.json", "repodata.json.zst")
    )


# The list


def _read_list(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file of a mirror by its path; empty for a new one.

    Raises:
        ForeignFolderError: The folder has files and is no mirror.
    """
    if not folder.exists() or all(file.name in _OF_LOCK for file in folder.iterdir()):
        return {}
    try:
        data = json.loads(read_text(folder / LIST))
        files: dict[str, str] = data["files"]
        sound = data["schema"] == _SCHEMA and all(
            _is_plain(path) and isinstance(sha256, str) and is_sha256(sha256) for path, sha256 in files.items()
        )
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise ForeignFolderError(
            f"{folder} has files and is no mirror of this tenv", hint="name a new or an empty folder"
        )
    return files


def _write_list(folder: Path, known: Mapping[str, str]) -> None:
    data = {"schema": _SCHEMA, "files": dict(sorted(known.items()))}
    write_atomic(folder / LIST, json.dumps(data, indent=0) + "\n")


# Files


def _put(
    context: "Context", folder: Path, known: Mapping[str, str], files: Mapping[str, CarriedFile], store: Store
) -> int:
    """Put the files of a lock into a mirror, and compare every file of it; return the number of new ones.

    Raises:
        HashMismatchError: A file of another lock has changed, or one of the store.
        UsageError: The mirror has another file in the place of one.
    """
    for path, row in files.items():
        if known.get(path, row.sha256) != row.sha256:
            raise UsageError(
                f"{folder} has another file for {path}, by the lock of another target or another time",
                hint="name another folder",
            )
    folder.mkdir(parents=True, exist_ok=True)
    _write_list(folder, known)  # it marks a new folder, before the first file is in it
    context.progress.step(f"comparing the files of {folder}", len({*known, *files}))
    changed = _changed(context, folder, {**known, **{path: row.sha256 for path, row in files.items()}})
    if lost := [path for path in changed if path not in files]:
        raise HashMismatchError(
            f"{folder / lost[0]} does not have the sha256 {known[lost[0]]}",
            hint="remove it, and run `tenv mirror` for the target that it is of",
        )
    for path in changed:
        _copy(store, files[path], folder / path, folder)
    return len([path for path in changed if path not in known])


def _copy(store: Store, row: CarriedFile, target: Path, folder: Path) -> None:
    """Copy a file of the store; a server that offers the folder never sees a part of it, or other bytes.

    A link would let `chown -R` or `chmod -R` of the mirror reach the store, and every environment made from it.
    """
    refuse_link(target, folder)
    with large_file(target) as copy, open_regular(store.file(row.sha256)) as source:
        hasher = hashlib.sha256()
        while data := source.read(_PIECE):
            hasher.update(data)
            copy.write(data)
        if hasher.hexdigest() != row.sha256:
            store.has(row.sha256)  # drops a damaged file
            raise HashMismatchError(
                f"the store had {row.name} with another sha256 than {row.sha256}",
                hint="it has dropped it: run the same command again",
            )


def _changed(context: "Context", folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Return the files that are not there or do not have their digest."""

    def is_right(path: str) -> bool:
        file = folder / path
        found = file.is_file() and not file.is_symlink() and digest(file) == wanted[path]
        context.progress.advance()
        return found

    with ThreadPoolExecutor(_THREADS) as pool:
        return [path for path, right in zip(wanted, pool.map(is_right, wanted), strict=True) if not right]


# Pages


def _write_pages(folder: Path, known: Mapping[str, str]) -> None:
    """Write the pages of wheels (PEP 503) with their metadata (PEP 658), and one with all of them."""
    projects: defaultdict[str, list[str]] = defaultdict(list)
    whole = []
    for path, sha256 in sorted(known.items()):
        first, _, rest = path.partition("/")
        if first != _SIMPLE:
            continue
        project, _, name = rest.partition("/")
        words = f'#sha256={sha256}"{_metadata(folder / path)}>{html.escape(name)}</a><br>'
        projects[project].append(f'<a href="{quote(name)}{words}')
        whole.append(f'<a href="{quote(path)}{words}')
    if not whole:
        return
    for project, lines in projects.items():
        write_atomic(folder / _SIMPLE / project / "index.html", _page(project, lines))
    links = [f'<a href="{quote(name)}/">{name}</a><br>' for name in projects]
    write_atomic(folder / _SIMPLE / "index.html", _page("Simple index", links))
    write_atomic(folder / _FLAT, _page("All wheels", whole))


def _metadata(wheel: Path) -> str:
    """Write the metadata of a wheel beside it, and return the attributes of its link; empty for a source archive."""
    if not is_wheel(wheel.name):
        return ""
    if (data := from_file(wheel.as_uri())) is None:
        return ""
    from packaging.metadata import parse_email  # late: only for a mirror

    write_atomic(wheel.with_name(f"{wheel.name}.metadata"), data)
    python = str(parse_email(data)[0].get("requires_python", ""))
    sha256 = f"sha256={digest_bytes(data)}"
    words = f' data-core-metadata="{sha256}" data-dist-info-metadata="{sha256}"'
    return f'{words} data-requires-python="{html.escape(python)}"' if python else words


def _page(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    return (
        '<!DOCTYPE html>\n<html><head><meta name="pypi:repository-version" content="1.0">'
        f"<title>{html.escape(title)}</title></head>\n<body>\n{body}\n</body></html>\n"
    )


# Channels


def _index(folder: Path, lock: Lock, minors: Mapping[str, str]) -> None:
    packages = {row.url: row for platform in minors for row in lock.conda.get(platform, ())}
    channels: defaultdict[str, dict[str, tuple[Sequence[str], Sequence[str]]]] = defaultdict(dict)
    for row in packages.values():
        channel = _home(channel_of(row.url))
        channels[channel][_home(row.url).removeprefix(f"{channel}/")] = row.depends, row.constrains
    for channel, rows in channels.items():
        from tenv.rattler_api.channel_index import index_channel  # late: only with conda packages

        index_channel(folder / channel, rows)
