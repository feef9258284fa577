"""``pylock.toml`` (PEP 751): the wheels, which pip and uv install from."""

from typing import TYPE_CHECKING, Any

from tenv import __version__
from tenv.errors import FormatError, LockCorruptError
from tenv.interop.interface import Draft, Exported, Format, Imported, Source, Subject
from tenv.interop.packages import left_out
from tenv.interop.reading import text_of
from tenv.interop.requirements import marker_of, releases
from tenv.lock import Wheel
from tenv.manifest import WheelRequest
from tenv.versions import Range

if TYPE_CHECKING:
    from packaging.pylock import Package

__all__ = ["FORMAT"]


def _export(subject: Subject) -> Exported:
    import tomlkit  # noqa: PLC0415 (late: 22 ms)
    from packaging.pylock import Pylock  # noqa: PLC0415 (late)
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 (late: 15 ms)
    from packaging.version import Version  # noqa: PLC0415 (late: 11 ms)

    found = releases(subject)
    if not found:
        raise FormatError(f"{subject.lock.target} has no wheels, and pylock.toml holds nothing else")
    lost = left_out(subject)
    if count := len({package.url for name in subject.platforms for package in subject.lock.conda.get(name, ())}):
        lost.append(f"conda packages can't be held: {count} of them are left out")
    pylock = Pylock(
        lock_version=Version("1.0"),
        requires_python=SpecifierSet(str(subject.manifest.python)) if subject.manifest.python else None,
        created_by=f"tenv {__version__}",
        packages=[_package(subject, name, version, rows) for (name, version), rows in found.items()],
    )
    text = tomlkit.dumps(_plain(pylock.to_dict()))
    return Exported({"pylock.toml": text.encode()}, tuple(lost))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _package(subject: Subject, name: str, version: str, rows: list[tuple[str, Wheel]]) -> "Package":
    from packaging.markers import Marker  # noqa: PLC0415 (late)
    from packaging.pylock import Package, PackageWheel  # noqa: PLC0415 (late)
    from packaging.utils import canonicalize_name  # noqa: PLC0415 (late)
    from packaging.version import Version  # noqa: PLC0415 (late: 11 ms)

    marker = marker_of(subject, rows)
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


def _read(source: Source) -> Imported:
    import tomllib  # noqa: PLC0415 (12 ms)

    from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError  # noqa: PLC0415 (late)

    try:
        pylock = Pylock.from_dict(tomllib.loads(text_of(source, LockCorruptError)))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise LockCorruptError(f"{source.path}: not TOML: {error}") from error
    except (PylockValidationError, PylockUnsupportedVersionError) as error:
        raise LockCorruptError(f"{source.path}: is no pylock.toml: {error}") from error
    lost = ["the wheels of a pylock.toml are for platforms that it does not name, so no lock is made of it"]
    needed = {str(row["name"]) for package in pylock.packages for row in package.dependencies or []}
    asked = {}
    for package in pylock.packages:
        if package.name in needed:
            continue
        if package.version is None:
            lost.append(f"{package.name} can't be held, since it has no version")
            continue
        asked[str(package.name)] = WheelRequest(Range(str(package.version)))
    platforms = source.platforms or ("linux-64",)
    python = str(pylock.requires_python or "")
    return Imported("", Draft(platforms, python=python, wheels=dict.fromkeys(platforms, asked)), None, tuple(lost))


FORMAT = Format(
    name="pylock.toml",
    summary="the wheels with URLs and hashes (PEP 751)",
    export=_export,
    read=_read,
    recognize=lambda name, _: name.startswith("pylock.") and name.endswith(".toml"),
    needs_urls=lambda _: True,
)
