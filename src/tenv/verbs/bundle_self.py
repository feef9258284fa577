"""Write tenv itself with its dependencies as one file that a Python alone installs."""

import json
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tenv import __version__
from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.dataclass import dataclass
from tenv.core.errors import HashMismatchError, UsageError
from tenv.core.files import digest, digest_bytes, replacing, storage_errors
from tenv.core.names import pure_wheel
from tenv.core.output_file import require_output
from tenv.core.versions import Range
from tenv.host.machine import current_platform
from tenv.install import standalone
from tenv.interop.container_recipe import constraints, own_wheel
from tenv.interop.python_ranges import DEFAULT_MINORS
from tenv.locks.lock import Wheel
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.archives.gathering import fetch_files
from tenv.sources.archives.store import Store, default_store
from tenv.targets.manifest import PLATFORMS, Manifest, Requirements, WheelRequest

if TYPE_CHECKING:
    from tenv.project.context import Context

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of every file, so that the same tenv with the same dependencies makes the same archive."""
_SCHEMA = 1
_HEAD = "head.json"


@dataclass(frozen=True, slots=True)
class SelfBundled:
    """A written archive of tenv itself."""

    path: Path
    """Its file."""
    digest: str
    """Its sha256."""
    bytes: int
    """Its size."""
    platforms: tuple[str, ...]
    """The platforms that it is for."""
    minors: tuple[str, ...]
    """The Python minors that it is for."""
    files: Sequence[Mapping[str, Any]]
    """Its wheels."""

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`, with the keys of a bundle of a target."""
        return {
            "target": None,
            "file": str(self.path),
            "bytes": self.bytes,
            "digest": self.digest,
            "lock_digest": None,
            "platforms": list(self.platforms),
            "python": ", ".join(self.minors),
            "features": None,
            "files": [
                {
                    "kind": "wheels",
                    **{key: row[key] for key in ("name", "sha256", "size")},
                    "platforms": sorted({one.partition(" ")[0] for one in row["for"]}),
                }
                for row in self.files
            ],
        }


def bundle_self(context: "Context", path: Path | None, platforms: Sequence[str] = (), minor: str = "") -> SelfBundled:
    """Write tenv with the versions of its dependencies that are installed here.

    Args:
        context: The context of the verb.
        path: The file; None for ``tenv-VERSION.pyz`` in the working folder.
        platforms: The platforms; empty for this machine's.
        minor: The only Python minor; empty for all that tenv runs with.

    Raises:
        UsageError: There is no such platform or Python.
        NetworkError: A wheel can't be fetched.
        HashMismatchError: A file of the store has changed.
    """
    path = path or Path(f"{pure_wheel('tenv', __version__).partition('-py3')[0]}.pyz")
    require_output(path, "-o", "an archive of tenv", _is_archive)
    chosen = tuple(sorted(set(platforms or (current_platform(),))))
    if unknown := [name for name in chosen if name not in PLATFORMS]:
        raise UsageError(f"tenv runs on {', '.join(PLATFORMS)}, not on {unknown[0]}")
    if minor and minor not in DEFAULT_MINORS:
        raise UsageError(f"tenv runs with Python {', '.join(DEFAULT_MINORS)}, not with {minor}")
    minors = (minor,) if minor else DEFAULT_MINORS
    wheels, served = _fetch(context, chosen, minors)
    own, raw = own_wheel()
    every = [f"{platform} {one}" for platform in chosen for one in minors]
    rows: list[dict[str, Any]] = [
        {
            "name": own,
            "package": f"{own.partition('-')[0]}=={__version__}",
            "sha256": digest_bytes(raw),
            "size": len(raw),
            "for": every,
        }
    ]
    store = default_store()
    for sha256, wheel in sorted(wheels.items(), key=lambda item: item[1].file):
        package, size = f"{wheel.name}==={wheel.version}", store.file(sha256).stat().st_size
        rows.append({"name": wheel.file, "package": package, "sha256": sha256, "size": size, "for": served[sha256]})
    with storage_errors(f"can't write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as out:
            _pack(out, rows, raw, store)
    return SelfBundled(path, digest(path), path.stat().st_size, chosen, minors, rows)


def _fetch(
    context: "Context", platforms: Sequence[str], minors: Sequence[str]
) -> tuple[dict[str, Wheel], Mapping[str, list[str]]]:
    """Fetch the dependencies into the store; return them by sha256, and for which platforms and Pythons each is."""
    pins = (line.partition("==") for line in constraints().decode().splitlines())
    requests = {name: WheelRequest(Range(f"=={version}")) for name, _, version in pins}
    wheels: dict[str, Wheel] = {}
    urls: dict[str, str] = {}
    served: defaultdict[str, list[str]] = defaultdict(list)
    uv = context.uv()
    context.progress.step("resolving tenv", len(platforms) * len(minors))
    for platform in platforms:
        for minor in minors:
            manifest = Manifest("tenv", "tenv", platforms=(platform,), requirements=Requirements(), wheels=requests)
            for wheel, url in uv.resolve(manifest, platform, minor, (), None, builds=False).values():
                wheels.setdefault(wheel.sha256, wheel)
                urls.setdefault(wheel.sha256, url)
                served[wheel.sha256].append(f"{platform} {minor}")
            context.progress.advance()
    store = default_store(context.progress.say, context.unpack_limits())
    wanted = [RemoteFile(row.file, urls[key], key, row.size) for key, row in wheels.items()]
    fetch_files(context, store, Fetcher(context.settings(), uv.http, offline=context.offline), wanted)
    return wheels, served


def _is_archive(path: Path) -> bool:
    """Return whether a file is such an archive, which may be written anew: many documents are zip files, too."""
    if not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return {"__main__.py", _HEAD} <= {*archive.namelist()}
    except DAMAGED_ZIP:
        return False


def _pack(out: BinaryIO, rows: Sequence[Mapping[str, Any]], own: bytes, store: Store) -> None:
    """Write the archive; raises HashMismatchError for a file that has changed in the store."""
    head = json.dumps({"schema": _SCHEMA, "tenv": __version__, "files": rows}, indent=0) + "\n"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:

        def add(name: str, data: bytes) -> None:
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), data)

        add("__main__.py", Path(standalone.__file__).read_bytes())
        add(_HEAD, head.encode())
        add(f"wheels/{rows[0]['name']}", own)
        for row in rows[1:]:
            data = store.file(row["sha256"]).read_bytes()
            if digest_bytes(data) != row["sha256"]:
                store.has(row["sha256"])
                raise HashMismatchError(
                    f"the store had {row['name']} with another sha256 than {row['sha256']}",
                    hint="it has dropped it: run the same command again",
                )
            add(f"wheels/{row['name']}", data)
