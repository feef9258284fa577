"""The file of a lock: written, and read into a `Lock`.

It is a ``pixi.lock`` of version 7 with one more mapping, ``tenv:``, which holds what that format has no place for.
This module reads and writes that mapping, and reads the conda part as far as people and rules ask of it; writing the
conda part, and reading it for an installation, is rattler's. Lines are ordered so that a small change of the
environment is a small diff.
"""

import re
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from tenv import __version__
from tenv.core.errors import LockConflictError, LockCorruptError, LockMissingError, LockNewerError
from tenv.core.names import CondaFile, Digest, WheelFile
from tenv.core.toml_reader import Table
from tenv.core.versions import same_release
from tenv.core.yaml_reader import load
from tenv.locks.lock import Archive, CondaPackage, Lock, Wheel

__all__ = ["parse_lock", "read_lock", "render_lock"]

_SCHEMA = 1  # of the `tenv:` mapping: what this tenv writes, and the newest that it reads
_PIXI_VERSION = 7
_MAX_NESTING = 50
_DEEP = re.compile(rb"^ *(?:[-?:][ \t]+){%d}" % _MAX_NESTING, re.MULTILINE)
"""Lists and mappings that begin on one line: ``- - - a``."""

_CONFLICT = re.compile(rb"^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |\r?$)", re.MULTILINE)


def render_lock(lock: Lock, conda: str) -> bytes:
    """Return the bytes of a lock.

    Args:
        lock: The lock.
        conda: The text that rattler wrote for the conda part.
    """
    import yaml  # noqa: PLC0415 (late: 15 ms)

    class Dumper(yaml.SafeDumper):
        """Writes short lists on one line, so that one wheel's Pythons are one line of a diff, and no anchors."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    Dumper.add_representer(
        tuple, lambda dumper, value: dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)
    )
    ours = {
        "schema": _SCHEMA,
        "written-by": lock.written_by,
        "target": lock.target,
        "manifest": lock.manifest,
        "requirements": dict(lock.requirements),
        "requests": {
            platform: {section: {n: _row(r) for n, r in items.items()} for section, items in sections.items()}
            for platform, sections in lock.requests.items()
        },
        "wheels": {platform: [_wheel_row(wheel) for wheel in wheels] for platform, wheels in lock.wheels.items()},
    }
    if any(lock.archives.values()):
        ours["archives"] = {
            platform: [_archive_row(archive) for archive in archives] for platform, archives in lock.archives.items()
        }
    text = yaml.dump({"tenv": ours}, Dumper=Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return (conda.rstrip("\n") + "\n" + text).encode()


def _row(request: Any) -> tuple[str, ...]:
    return (request,) if isinstance(request, str) else tuple(map(str, request))


def _archive_row(archive: Archive) -> dict[str, Any]:
    values = {name: getattr(archive, name) for name in archive.__slots__}
    return {name: value for name, value in values.items() if value not in ("", None, 0)}


def _wheel_row(wheel: Wheel) -> dict[str, Any]:
    row: dict[str, Any] = {"name": wheel.name, "version": wheel.version, "file": wheel.file, "sha256": wheel.sha256}
    if wheel.size is not None:
        row["size"] = wheel.size
    row["python"] = wheel.python
    return row


def read_lock(path: Path, target: str) -> Lock:
    """Read the lock of a target.

    Raises:
        LockMissingError: There is no such file.
        LockConflictError: It holds the marks of an unresolved merge.
        LockNewerError: A newer tenv wrote it in a form that this one does not know.
        LockCorruptError: It can't be read as a lock, or is the lock of another target.
    """
    try:
        if path.exists() and not path.is_file():
            raise LockCorruptError(f"{path}: is not a regular file")
        raw = path.read_bytes()
    except FileNotFoundError:
        hint = f"`tenv lock {target}` makes one"
        raise LockMissingError(f"there is no lock for `{target}` ({path})", hint=hint) from None
    except OSError as error:
        raise LockCorruptError(f"{path}: can't be read: {error.strerror}") from error
    return parse_lock(raw, str(path), target)


def parse_lock(raw: bytes, path: str, target: str = "") -> Lock:
    """Read the bytes of a lock, wherever they come from.

    Args:
        raw: The bytes.
        path: How messages name the file.
        target: The target whose lock it must be; empty for any.

    Raises:
        LockConflictError, LockNewerError, LockCorruptError: As `read_lock`.
    """
    if _CONFLICT.search(raw):
        raise LockConflictError(
            f"{path}: holds the marks of an unresolved merge",
            hint=(
                f"`tenv merge-driver {path}` solves it again from both sides; or take either side "
                f"(`git checkout --ours {path}`), then `tenv lock {target or 'TARGET'}` brings it up to date"
            ),
        )
    return _parse(raw, path, target)


def _nesting(raw: bytes) -> int:
    """Return how deep brackets are nested."""
    steps = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
    brackets = raw.translate(None, bytes(byte for byte in range(256) if byte not in steps))
    return max(accumulate(steps[byte] for byte in brackets), default=0)


@lru_cache(maxsize=4)  # what judges a lock and what installs it read the same bytes
def _parse(raw: bytes, path: str, target: str) -> Lock:
    if _DEEP.search(raw) or _nesting(raw) > _MAX_NESTING:  # which libyaml answers with a crash
        raise LockCorruptError(f"{path}: not YAML that tenv writes: nested too deep")
    command = f"tenv lock {target or 'TARGET'}"
    try:
        data = load(raw)
    except ValueError as error:
        raise LockCorruptError(f"{path}: not YAML: {error}", hint=f"`{command}` writes it anew") from error
    if not isinstance(data, dict) or not isinstance(data.get("tenv"), dict):
        raise LockCorruptError(
            f"{path}: is not a lock of tenv (it has no `tenv:` mapping)", hint=f"`{command}` writes one"
        )
    ours = Table(data["tenv"], file=path, path=("tenv",), error=LockCorruptError)
    version, schema = data.get("version"), ours.data.get("schema")
    if not isinstance(version, int) or not isinstance(schema, int):
        raise ours.fail("schema", "is missing", hint=f"`{command}` writes the lock anew")
    if schema > _SCHEMA or version > _PIXI_VERSION:
        raise LockNewerError(
            f"{path}: was written by tenv {ours.text('written-by') or '?'}, in a form that tenv {__version__} "
            "does not know",
            hint="install that tenv or a newer one",
        )
    return _read(Table(data, file=path, error=LockCorruptError), ours, raw, target)


def _read(whole: Table, ours: Table, raw: bytes, target: str) -> Lock:
    name = ours.required_text("target")
    if target and name != target:
        raise ours.fail("target", f"is the lock of `{name}`, not of `{target}`")
    by_platform = ours.table("wheels")
    wheels = {platform: tuple(_read_wheel(row) for row in by_platform.rows(platform)) for platform in by_platform.data}
    archives = ours.table("archives")
    conda = {platform: _read_conda(whole, name, platform) for platform in by_platform.data}
    requirements = ours.table("requirements")
    requests = ours.table("requests")
    return Lock(
        target=name,
        platforms=tuple(by_platform.data),
        wheels=wheels,
        requirements={key: requirements.text(key) for key in requirements.data},
        requests={platform: _read_requests(table) for platform, table in requests.tables()},
        manifest=ours.required_text("manifest"),
        written_by=ours.required_text("written-by"),
        text=raw,
        conda={platform: packages for platform, packages in conda.items() if packages},
        archives={platform: tuple(_read_archive(row) for row in archives.rows(platform)) for platform in archives.data},
        channels=_channels(whole, name),
    )


def _read_requests(table: Table) -> dict[str, dict[str, list[str]]]:
    return {section: {name: list(items.strings(name)) for name in items.data} for section, items in table.tables()}


def _environment(whole: Table, target: str) -> Table:
    """Return the part of a pixi lock that is about the environment of the target; an empty one when it has none."""
    return whole.table("environments").table(target)


def _channels(whole: Table, target: str) -> tuple[str, ...]:
    return tuple(row.required_text("url").rstrip("/") for row in _environment(whole, target).rows("channels"))


def _read_conda(whole: Table, target: str, platform: str) -> tuple[CondaPackage, ...]:
    urls = [row.text("conda") for row in _environment(whole, target).table("packages").rows(platform)]
    known = {row.text("conda"): row for row in whole.rows("packages")} if urls else {}
    missing = next((url for url in urls if url and url not in known), None)
    if missing:
        raise whole.fail("packages", f"{missing} is named by {platform} but not described")
    return tuple(sorted((_read_conda_package(known[url]) for url in urls if url), key=lambda package: package.name))


def _read_conda_package(row: Table) -> CondaPackage:
    url = row.required_text("conda")
    file = CondaFile.parse(url)
    if file is None or file.ending == ".json":
        raise row.fail("conda", f"`{url}` is not the URL of a conda package")
    channel, _, subdir = url.rpartition("/")[0].rpartition("/")
    size = row.data.get("size")
    return CondaPackage(
        name=row.text("name") or file.name,
        version=row.text("version") or file.version,
        build=row.text("build") or file.build,
        subdir=row.text("subdir") or subdir,
        channel=row.text("channel").rstrip("/") or channel,
        url=url,
        sha256=_digest(row, "sha256"),
        md5=_digest(row, "md5"),
        size=size if isinstance(size, int) else None,
        depends=row.strings("depends"),
        constrains=row.strings("constrains"),
    )


def _read_wheel(row: Table) -> Wheel:
    wheel = Wheel(
        name=row.required_text("name"),
        version=row.required_text("version"),
        file=row.required_text("file"),
        sha256=_sha256(row),
        size=_size(row),
        python=row.strings("python"),
    )
    file = WheelFile.parse(wheel.file)
    if file is None or "/" in wheel.file:
        raise row.fail("file", f"`{wheel.file}` is not the name of a wheel")
    if file.name != wheel.name or not same_release(file.version, wheel.version):
        raise row.fail("file", f"`{wheel.file}` is not a wheel of {wheel.name} {wheel.version}")
    return wheel


def _sha256(row: Table) -> str:
    row.required_text("sha256")
    return _digest(row, "sha256")


def _digest(row: Table, kind: str) -> str:
    """Return a digest of a row, an empty string where it has none."""
    text = row.text(kind)
    if text and not Digest(kind, text).is_valid():
        raise row.fail(kind, f"is not {Digest(kind, text).length} hex digits")
    return text


def _size(row: Table) -> int | None:
    size = row.data.get("size")
    if not isinstance(size, int | None) or isinstance(size, bool):
        raise row.fail("size", "is not a number of bytes")
    return size


def _read_archive(row: Table) -> Archive:
    strip = row.data.get("strip", 0)
    if not isinstance(strip, int) or isinstance(strip, bool) or strip < 0:
        raise row.fail("strip", "is not a number of folders")
    return Archive(
        name=row.required_text("name"),
        version=row.text("version"),
        url=row.required_text("url"),
        sha256=_sha256(row),
        size=_size(row),
        kind=row.required_text("kind"),
        strip=strip,
        to=row.text("to"),
        trust=row.text("trust") or "manifest",
        licence=row.text("licence"),
    )
