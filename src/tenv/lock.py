"""Locks: every file of an environment, by name and sha256, for every platform of its manifest.

A lock is a ``pixi.lock`` of version 7 with one more mapping, ``tenv:``, which holds what that format has no place for.
This module reads and writes that mapping and answers whether a lock satisfies a manifest; the conda part is
rattler's. Lines are ordered so that a small change of the environment is a small diff.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from tenv import __version__
from tenv.errors import LockConflictError, LockCorruptError, LockMissingError, LockNewerError
from tenv.files import digest_bytes
from tenv.manifest import Manifest, normalize
from tenv.tables import Table
from tenv.versions import Version, same_release

__all__ = ["SCHEMA", "Lock", "Wheel", "differences", "from_manifest", "read_lock", "render_lock"]

SCHEMA = 1
"""The version of the ``tenv:`` mapping that this tenv writes and the newest that it reads."""

_PIXI_VERSION = 7
_MAX_NESTING = 50
_CONFLICT = re.compile(rb"^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |\r?$)", re.MULTILINE)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*-[A-Za-z0-9_.+!-]+\.whl")


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel of a lock.

    Attributes:
        name: The normalized name.
        version: The version.
        file: The file name; no host, since any index that serves the same bytes will do.
        sha256: The digest of its bytes in hex.
        size: Its bytes; None when the index did not say.
        python: The Python minors that take it, lowest first.
    """

    name: str
    version: str
    file: str
    sha256: str
    size: int | None
    python: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lock:
    """What was chosen for a target.

    Attributes:
        target: The target's name.
        platforms: The platforms that it serves, in the manifest's order.
        wheels: The wheels of each platform.
        requirements: What the host must offer: ``cuda``, ``glibc``, ``python`` as written in the manifest.
        requests: What was asked for on each platform, by section and name.
        manifest: The digest of what the manifest asked for.
        written_by: The tenv version that wrote it.
        text: The bytes that it was read from; empty when it is new.
    """

    target: str
    platforms: tuple[str, ...]
    wheels: Mapping[str, tuple[Wheel, ...]]
    requirements: Mapping[str, str]
    requests: Mapping[str, Mapping[str, Any]]
    manifest: str
    written_by: str = __version__
    text: bytes = field(default=b"", repr=False, compare=False)

    def digest(self) -> str:
        """Return the sha256 of the lock's bytes."""
        return digest_bytes(self.text)

    def wheels_for(self, platform: str, python: str) -> tuple[Wheel, ...]:
        """Return the wheels that one platform and Python minor take."""
        return tuple(wheel for wheel in self.wheels.get(platform, ()) if python in wheel.python)

    def python_minors(self, platform: str) -> tuple[str, ...]:
        """Return the Python minors that the lock serves on a platform, lowest first."""
        minors = {minor for wheel in self.wheels.get(platform, ()) for minor in wheel.python}
        return tuple(sorted(minors, key=Version))


def from_manifest(manifest: Manifest, wheels: Mapping[str, tuple[Wheel, ...]]) -> Lock:
    """Return the lock that says how a manifest was answered."""
    requirements = {
        "cuda": str(manifest.requirements.cuda or ""),
        "glibc": str(manifest.requirements.glibc or ""),
        "python": str(manifest.python or ""),
    }
    requests = {}
    for platform in manifest.platforms:
        asked = manifest.asked(platform)
        requests[platform] = {section: asked[section] for section in ("pypi-dependencies",) if asked[section]}
    return Lock(
        target=manifest.name,
        platforms=manifest.platforms,
        wheels=wheels,
        requirements={key: value for key, value in requirements.items() if value},
        requests=requests,
        manifest=manifest.digest(),
    )


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
        "schema": SCHEMA,
        "written-by": lock.written_by,
        "target": lock.target,
        "manifest": lock.manifest,
        "requirements": dict(lock.requirements),
        "requests": {
            platform: {section: {n: tuple(r) for n, r in items.items()} for section, items in sections.items()}
            for platform, sections in lock.requests.items()
        },
        "wheels": {platform: [_wheel_row(wheel) for wheel in wheels] for platform, wheels in lock.wheels.items()},
    }
    text = yaml.dump({"tenv": ours}, Dumper=Dumper, sort_keys=False, width=1000, allow_unicode=True)
    return (conda.rstrip("\n") + "\n" + text).encode()


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
    if _CONFLICT.search(raw):
        raise LockConflictError(
            f"{path}: holds the marks of an unresolved merge",
            hint=f"take either side (`git checkout --ours {path}`), then `tenv lock {target}` brings it up to date",
        )
    if _nesting(raw) > _MAX_NESTING:  # which libyaml answers with a crash
        raise LockCorruptError(f"{path}: not YAML that tenv writes: nested too deep")
    return _parse(raw, path, target)


def _nesting(raw: bytes) -> int:
    """Return how deep brackets are nested."""
    steps = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
    return max(accumulate(steps[byte] for byte in raw if byte in steps), default=0)


def _parse(raw: bytes, path: Path, target: str) -> Lock:
    import yaml  # noqa: PLC0415 (late: 15 ms)

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(raw, Loader=loader)  # noqa: S506 (both are safe loaders)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0]
        raise LockCorruptError(f"{path}: not YAML: {first}", hint=f"`tenv lock {target}` writes it anew") from error
    if not isinstance(data, dict) or not isinstance(data.get("tenv"), dict):
        raise LockCorruptError(
            f"{path}: is not a lock of tenv (it has no `tenv:` mapping)", hint=f"`tenv lock {target}` writes one"
        )
    ours = Table(data["tenv"], file=str(path), path=("tenv",), error=LockCorruptError)
    version, schema = data.get("version"), ours.data.get("schema")
    if not isinstance(version, int) or not isinstance(schema, int):
        raise ours.fail("schema", "is missing", hint=f"`tenv lock {target}` writes the lock anew")
    if schema > SCHEMA or version > _PIXI_VERSION:
        raise LockNewerError(
            f"{path}: was written by tenv {ours.text('written-by') or '?'}, in a form that tenv {__version__} "
            "does not know",
            hint="install that tenv or a newer one",
        )
    return _read(ours, raw, target)


def _read(ours: Table, raw: bytes, target: str) -> Lock:
    name = ours.required_text("target")
    if name != target:
        raise ours.fail("target", f"is the lock of `{name}`, not of `{target}`")
    by_platform = ours.table("wheels")
    wheels = {platform: tuple(_read_wheel(row) for row in by_platform.rows(platform)) for platform in by_platform.data}
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
    )


def _read_requests(table: Table) -> dict[str, dict[str, list[str]]]:
    return {section: {name: list(items.strings(name)) for name in items.data} for section, items in table.tables()}


def _read_wheel(row: Table) -> Wheel:
    size = row.data.get("size")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
        raise row.fail("size", "is not a number of bytes")
    wheel = Wheel(
        name=row.required_text("name"),
        version=row.required_text("version"),
        file=row.required_text("file"),
        sha256=row.required_text("sha256"),
        size=size,
        python=row.strings("python"),
    )
    if not _SHA256.fullmatch(wheel.sha256):
        raise row.fail("sha256", "is not 64 hex digits")
    if not _FILE.fullmatch(wheel.file):
        raise row.fail("file", f"`{wheel.file}` is not the name of a wheel")
    name, version, *_ = wheel.file.split("-")
    if normalize(name) != wheel.name or not same_release(version, wheel.version):
        raise row.fail("file", f"`{wheel.file}` is not a wheel of {wheel.name} {wheel.version}")
    return wheel


def differences(lock: Lock, manifest: Manifest) -> list[str]:
    """Return what keeps a lock from satisfying a manifest, one sentence each; an empty list when it satisfies it.

    What counts is whether the locked files answer what is asked now, not whether the question is the same text: a
    looser range that the locked version still meets makes no lock stale.
    """
    if lock.manifest == manifest.digest():
        return []
    found = []
    for key, wanted in (("cuda", manifest.requirements.cuda), ("glibc", manifest.requirements.glibc)):
        had = lock.requirements.get(key, "")
        if had != str(wanted or ""):
            found.append(f"requirements.{key} is {wanted or 'not given'}, the lock was made for {had or 'none'}")
    for platform in manifest.platforms:
        if platform not in lock.platforms:
            found.append(f"platform {platform} is not in the lock")
            continue
        found += _wheel_differences(lock, manifest.on(platform), platform)
    return found


def _wheel_differences(lock: Lock, manifest: Manifest, platform: str) -> list[str]:
    found = []
    asked_then = lock.requests.get(platform, {}).get("pypi-dependencies", {})
    minors = manifest.python_minors()
    missing = [minor for minor in minors if minor not in lock.python_minors(platform)]
    if missing and manifest.wheels:
        found.append(f"{platform}: Python {', '.join(missing)} is not in the lock")
    for name, request in manifest.wheels.items():
        locked = [wheel for wheel in lock.wheels[platform] if wheel.name == name]
        extras = [extra for extra in request.extras if extra not in asked_then.get(name, [])[1:]]
        served = {minor for wheel in locked for minor in wheel.python}
        lacking = [minor for minor in minors if minor not in served and minor not in missing]
        if locked and lacking:
            found.append(f"{platform}: {name} is not in the lock for Python {', '.join(lacking)}")
        if not locked:
            found.append(f"{platform}: {name} is not in the lock")
        elif extras:
            found.append(f"{platform}: {name} was locked without the extra {', '.join(extras)}")
        else:
            found += [
                f"{platform}: {name} {wheel.version} is locked, {request.version} is wanted"
                for wheel in locked
                if set(wheel.python) & set(minors) and wheel.version not in request.version
            ]
    found += [
        f"{platform}: {name} is locked but no longer wanted" for name in asked_then if name not in manifest.wheels
    ]
    return found
