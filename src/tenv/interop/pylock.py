"""The format ``pylock.toml`` (PEP 751): the wheels, for pip and uv."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tomli

from tenv import __version__
from tenv.core.errors import LockCorruptError
from tenv.core.versions import Range
from tenv.interop.interface import Draft, Exported, Format, GivenFile, Imported, Subject, text_of
from tenv.interop.requests import PLATFORM_MARKERS, add_wheel, holds, left_out, platforms_of
from tenv.interop.requirements import marker_of, minors_of, releases
from tenv.locks.lock import Wheel
from tenv.targets.manifest import WheelRequest

if TYPE_CHECKING:
    from packaging.pylock import Package

__all__ = ["FORMAT"]


def _export(subject: Subject) -> Exported:
    import tomlkit  # late: 22 ms
    from packaging.markers import Marker
    from packaging.pylock import Pylock
    from packaging.specifiers import SpecifierSet  # late: 15 ms
    from packaging.version import Version  # late: 11 ms

    found, every = releases(subject, "pylock.toml"), minors_of(subject)
    lost = left_out(subject, conda=False)
    pylock = Pylock(
        lock_version=Version("1.0"),
        environments=[Marker(PLATFORM_MARKERS[name]) for name in subject.platforms if subject.wheels(name)],
        requires_python=SpecifierSet(_pythons(subject)),
        created_by=f"tenv {__version__}",
        packages=[_package(subject, every, name, version, rows) for (name, version), rows in found.items()],
    )
    text = tomlkit.dumps(_plain(pylock.to_dict()))
    return Exported({"pylock.toml": text.encode()}, tuple(lost))


def _pythons(subject: Subject) -> str:
    """Return the Pythons of the wheels; empty if they differ between platforms."""
    minors = {subject.minor(platform) for platform in subject.platforms}
    if minor := minors.pop() if len(minors) == 1 else "":
        return f"=={minor}.*"
    return str(subject.manifest.python or "")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _package(
    subject: Subject, every: Mapping[str, set[str]], name: str, version: str, rows: list[tuple[str, Wheel]]
) -> "Package":
    from packaging.markers import Marker
    from packaging.pylock import Package, PackageWheel
    from packaging.utils import canonicalize_name
    from packaging.version import Version  # late: 11 ms

    marker = marker_of(every, rows)
    wheels = {
        wheel.sha256: PackageWheel(
            name=wheel.file,
            url=subject.located[wheel.sha256].url,
            size=wheel.size,
            hashes={"sha256": wheel.sha256},
        )
        for _, wheel in rows
    }
    return Package(
        name=canonicalize_name(name),
        version=Version(version),
        marker=Marker(marker) if marker else None,
        wheels=list(wheels.values()),
    )


def _read(source: GivenFile) -> Imported:
    from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError

    try:
        data = tomli.loads(text_of(source, LockCorruptError))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, or a number that int rejects
        raise LockCorruptError(f"{source.path}: not TOML: {error}") from error
    try:
        pylock = Pylock.from_dict(data)
    except (PylockValidationError, PylockUnsupportedVersionError) as error:
        raise LockCorruptError(f"{source.path}: invalid pylock.toml: {error}") from error
    lost = ["a pylock.toml does not assign its wheels to Pythons, so no lock is written"]
    platforms = source.choose(platforms_of(list(pylock.environments or [])))[0] or source.platforms
    if not platforms:
        platforms = ("linux-64",)
        lost.append("the file has no platforms that tenv supports: linux-64 is used (`--platform` sets others)")
    needed = {str(row["name"]) for package in pylock.packages for row in package.dependencies or []}
    if not needed:
        lost.append("the file has no requests: all its packages are requested")
    asked: dict[str, dict[str, WheelRequest]] = {platform: {} for platform in platforms}
    for package in pylock.packages:
        if package.version is None:
            lost.append(f"{package.name} is not imported, since it has no version")
        for platform in platforms if package.version and package.name not in needed else ():
            if holds(package.marker, platform, "") is not False:
                add_wheel(asked[platform], str(package.name), WheelRequest(Range(str(package.version))), lost)
    python = str(pylock.requires_python or "")
    python = python if "," in python else python.removeprefix("==")
    return Imported("", Draft(platforms, python=python, wheels=asked), None, tuple(dict.fromkeys(lost)))


FORMAT = Format(
    name="pylock.toml",
    export=_export,
    read=_read,
    recognize=lambda name, _: name.startswith("pylock.") and name.endswith(".toml"),
    needs_urls=lambda _: True,
)
