"""Small conda packages, a channel that serves them, and locks of them, made without a solver.

The packages are what rattler takes for packages of conda-build: files with a prefix to replace in text and in binary,
noarch Python with entry points, activation and link scripts, links. Nothing in them is random.
"""

import asyncio
import hashlib
import io
import json
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from tenv.core.versions import Version
from tenv.host.machine import current_platform
from tenv.locks.lock import Lock, Wheel, from_manifest
from tenv.locks.lock_file import read_lock, render_lock
from tenv.rattler_api.lockfile import write_conda_part
from tenv.targets.search import Target
from tests.support.fakes import Index

__all__ = [
    "PLACEHOLDER",
    "Channel",
    "Link",
    "index_channel",
    "make_conda",
    "make_python",
    "pack_conda",
    "write_lock",
]

PLACEHOLDER = "/home/conda/feedstock_root/build_artifacts/_h_env" + "_placehold" * 14
"""The prefix that packages are built in: long, so that a shorter one fits in its place in a binary."""

_LEVEL = 1


@dataclass(frozen=True)
class Link:
    """A symbolic link of a package.

    Attributes:
        target: What it leads to.
    """

    target: str


def make_conda(
    folder: Path,
    name: str,
    version: str,
    *,
    build: str = "0",
    number: int = 0,
    subdir: str = "",
    depends: Iterable[str] = (),
    files: Mapping[str, str | bytes | Link] | None = None,
    entry_points: Sequence[str] = (),
    noarch: str = "",
    paths: Mapping[str, str] | None = None,
) -> Path:
    """Write a ``.conda`` package below a channel's folder and return its path.

    Args:
        folder: The channel.
        name: The package's name.
        version: Its version.
        build: Its build string.
        number: Its build number.
        subdir: The part of the channel; this machine's platform when empty, ``noarch`` for noarch packages.
        depends: What it needs, as match specifications.
        files: Its files; one that begins with ``#!`` or ELF's magic is executable, and one that holds `PLACEHOLDER` has
            its prefix replaced.
        entry_points: Lines such as ``name = module:function`` for noarch Python.
        noarch: ``python`` or ``generic``.
        paths: Names as ``info/paths.json`` gives them, where they are not those of the files.
    """
    members: dict[str, tuple[bytes | Link, bool]] = {}
    for path, data in (files or {}).items():
        raw = data.encode() if isinstance(data, str) else data
        members[path] = (raw, isinstance(raw, bytes) and raw.startswith((b"#!", b"\x7fELF")))
    rows = [_path_row((paths or {}).get(path, path), data) for path, (data, _) in members.items()]
    subdir = "noarch" if noarch else subdir or current_platform()
    index: dict[str, Any] = {
        "name": name,
        "version": version,
        "build": build,
        "build_number": number,
        "depends": list(depends),
        "subdir": subdir,
        "timestamp": 1,
    }
    if noarch:
        index["noarch"] = noarch
    info: dict[str, Any] = {"info/index.json": index, "info/paths.json": {"paths_version": 1, "paths": rows}}
    if entry_points or noarch == "python":
        info["info/link.json"] = {
            "package_metadata_version": 1,
            "noarch": {"type": "python", "entry_points": list(entry_points)},
        }
    about = {name: (json.dumps(data).encode(), False) for name, data in info.items()}
    made = folder / subdir / f"{name}-{version}-{build}.conda"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_bytes(pack_conda(made.stem, _tar(about), _tar(members)))
    return made


def _path_row(path: str, data: bytes | Link) -> dict[str, Any]:
    if isinstance(data, Link):
        return {"_path": path, "path_type": "softlink", "sha256": hashlib.sha256(b"").hexdigest(), "size_in_bytes": 0}
    row: dict[str, Any] = {
        "_path": path,
        "path_type": "hardlink",
        "sha256": hashlib.sha256(data).hexdigest(),
        "size_in_bytes": len(data),
    }
    if PLACEHOLDER.encode() in data:
        mode = "binary" if b"\0" in data else "text"
        row |= {"prefix_placeholder": PLACEHOLDER, "file_mode": mode}
    return row


def _tar(members: Mapping[str, tuple[bytes | Link, bool]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, (data, executable) in members.items():
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755 if executable else 0o644
            if isinstance(data, Link):
                entry.type, entry.linkname = tarfile.SYMTYPE, data.target
                archive.addfile(entry)
            else:
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def pack_conda(stem: str, info: bytes, content: bytes) -> bytes:
    """Return the bytes of a ``.conda`` file made of two tar archives."""
    compress = zstandard.ZstdCompressor(level=_LEVEL).compress
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        members = {
            "metadata.json": b'{"conda_pkg_format_version": 2}',
            f"pkg-{stem}.tar.zst": compress(content),
            f"info-{stem}.tar.zst": compress(info),
        }
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return stream.getvalue()


def index_channel(folder: Path) -> None:
    """Write the ``repodata.json`` of every part of a channel."""
    from rattler.index import index_fs

    (folder / "noarch").mkdir(parents=True, exist_ok=True)
    asyncio.run(index_fs(folder, force=True, write_zst=False, write_shards=False))


_DEBIANS = "prefix_scheme = 'posix_local'\n"
"""What Debian's Python has in place of `posix_prefix`: its packages are in other folders than those of pip."""


def make_python(folder: Path) -> Path:
    """Write a package of a Python that works: a copy of the program that runs the tests, with links to its library."""
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix)
    files: dict[str, str | bytes | Link] = {
        f"bin/python{minor}": (base / "bin" / f"python{minor}").resolve().read_bytes(),
        "bin/python3": Link(f"python{minor}"),
        "bin/python": Link(f"python{minor}"),
        f"lib/python{minor}/site-packages/README.txt": "packages go here\n",
    }
    for entry in sorted((base / "lib" / f"python{minor}").iterdir()):
        if entry.name not in ("site-packages", "__pycache__", "EXTERNALLY-MANAGED"):
            files[f"lib/python{minor}/{entry.name}"] = Link(str(entry))
    module = base / "lib" / f"python{minor}" / "sysconfig.py"  # a package from 3.13 on, where Debian's is another one
    sysconfig = module.read_text() if module.is_file() else ""
    if _DEBIANS in sysconfig:
        files[f"lib/python{minor}/sysconfig.py"] = sysconfig.replace(_DEBIANS, "prefix_scheme = 'posix_prefix'\n")
        site = f"{{sys.prefix}}/lib/python{minor}/site-packages"
        files[f"lib/python{minor}/sitecustomize.py"] = f'import site, sys\nsite.addsitedir(f"{site}")\n'
    for library in base.glob(f"lib/libpython{minor}*"):
        files[f"lib/{library.name}"] = Link(str(library))
    files[f"include/python{minor}"] = Link(str(base / "include" / f"python{minor}"))
    version = ".".join(map(str, sys.version_info[:3]))
    return make_conda(folder, "python", version, build=f"0_cp{minor.replace('.', '')}", files=files)


class Channel(Index):
    """A conda channel on a free port of 127.0.0.1: what lies in a folder, and the ways to fail of the wheels' index.

    Attributes:
        root: The channel's URL.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.root = self.url.removesuffix("/simple")

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return the status and the body for a path while all is well."""
        file = self.folder / path.strip("/")
        return (200, file.read_bytes()) if file.is_file() else (404, b"no such file")

    def refresh(self) -> None:
        """Index the packages that are there now."""
        index_channel(self.folder)

    def entry(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return the URL of the newest package of a name, or of a name and a version, and what the channel says."""
        found = []
        name, _, version = name.partition(" ")
        for part in ("noarch", current_platform()):
            file = self.folder / part / "repodata.json"
            rows = json.loads(file.read_text())["packages.conda"] if file.is_file() else {}
            found += [(f"{self.root}/{part}/{key}", row) for key, row in rows.items() if row["name"] == name]
        found = [row for row in found if version in ("", row[1]["version"])]
        return max(found, key=lambda row: Version(row[1]["version"]))


def write_lock(target: Target, channel: Channel, names: Sequence[str], wheels: Sequence[Wheel] = ()) -> Lock:
    """Write the lock that a solver would write if it chose the newest packages of some names for this platform."""
    platform = current_platform()
    records = [_record(channel, name) for name in names]
    lock = from_manifest(target.manifest, {"wheels": {platform: tuple(wheels)}})
    text = write_conda_part(target.name, target.manifest.platforms, [channel.root], {platform: records})
    target.lock_home.parent.mkdir(parents=True, exist_ok=True)
    target.lock_home.write_bytes(render_lock(lock, text))
    return read_lock(target.lock_home, target.name)


def _record(channel: Channel, name: str) -> Any:
    from rattler import PackageRecord, RepoDataRecord

    url, row = channel.entry(name)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(row, file)
        file.flush()
        described = PackageRecord.from_index_json(Path(file.name), row["size"], row["sha256"], row["md5"])
    return RepoDataRecord(described, url.rsplit("/", 1)[-1], url, channel.root)
