"""A lock of another tool, through tenv and back: what rattler and conda-lock themselves read of both."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tenv.core.names import normalize
from tenv.targets.manifest import PLATFORMS
from tests.interop.lock_index import LockIndex, Release
from tests.support.projects import call

__all__ = ["Trip", "releases_of_conda_lock", "releases_of_pixi", "round_trip", "seen_by_conda_lock", "seen_by_rattler"]

Seen = dict[tuple[str, str, str], Any]
"""What a reader says of each package, by platform, kind and name."""


@dataclass(frozen=True)
class Trip:
    """What came of a lock.

    Attributes:
        before: What was read of the lock.
        after: What was read of what tenv wrote.
        left: What tenv said that it can't hold.
        counts: How many packages it has.
    """

    before: Seen
    after: Seen
    left: Seen
    lost: list[str]

    def check(self) -> None:
        """Assert that nothing is gone but what was said, and that everything else reads the same."""
        otherwise = [line for line in self.lost if line.startswith("described otherwise ")]
        told = {name for line in otherwise for name in line.partition(": ")[2].split(", ")}
        assert set(self.after) == set(self.before) - set(self.left)
        for key, value in self.after.items():
            assert value == self.before[key] or key[2] in told, key
        for _, _, name in self.left:
            assert any(name in line for line in self.lost), name


def round_trip(
    file: Path, format_: str, see: Callable[[Path], Seen], releases: Callable[[Path], list[Release]]
) -> Trip:
    """Import a lock, export it again, and tell what its own reader reads of both."""
    before = see(file)
    made = call("import", str(file), "--name", "trip", "--force", "--json")
    assert made.status == 0, made.err
    patch = pytest.MonkeyPatch()
    with LockIndex(releases(file)) as index, patch.context() as inside:
        inside.setenv("UV_DEFAULT_INDEX", index.url)
        written = call("export", format_, "trip", "--output", "out", "--force", "--json")
    assert written.status == 0, written.err
    after = see(Path("out") / file.name.replace("lock.yaml", "lock.yml"))
    left = {key: value for key, value in before.items() if key not in after}
    return Trip(before, after, left, made.data["lost"])


def _digest(hashes: Any) -> str:
    found = hashes.sha256 if hashes and hashes._hashes else None
    return found.hex() if found else ""


def seen_by_rattler(file: Path) -> Seen:
    """Return what rattler reads of the environment `default` for the platforms that tenv knows."""
    from rattler import LockFile

    environment = LockFile.from_path(file).default_environment()
    found: Seen = {}
    for place, packages in (environment.packages_by_platform() if environment else {}).items():
        platform = str(place.subdir)
        for package in packages if platform in PLATFORMS else ():
            kind = type(package).__name__
            if kind == "CondaLockedBinaryPackage":
                record = package.repo_data_record()  # type: ignore[attr-defined]
                found[platform, "conda", package.name] = _held(record.url, json.loads(record.to_json()))
            elif kind == "PypiLockedPackage":
                found[platform, "pypi", normalize(package.name)] = (
                    package.version,  # type: ignore[attr-defined]
                    unquote(package.location.rsplit("/", 1)[-1]),
                    _digest(package.hashes),
                    sorted(package.requires_dist),  # type: ignore[attr-defined]
                    package.requires_python,  # type: ignore[attr-defined]
                )
            else:
                found[platform, "source", package.name] = package.location
    return found


def _held(url: str, record: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a record without what locks before version 5 said of it for each platform, and none says any more.

    rattler itself loses that when it writes such a lock in the form of today.
    """
    gone = ("arch", "platform", "subdir") if "/noarch/" in url else ()
    return url, {key: value for key, value in record.items() if key not in gone}


def releases_of_pixi(file: Path) -> list[Release]:
    """Return the wheels of a pixi.lock."""
    return [
        Release(name, version, location, digest, tuple(needs), python or "")
        for (_, kind, name), (version, location, digest, needs, python) in _wheels(seen_by_rattler(file))
        if kind == "pypi"
    ]


def _wheels(seen: Seen) -> list[tuple[tuple[str, str, str], Any]]:
    return [(key, value) for key, value in seen.items() if key[1] == "pypi" and value[1].endswith(".whl")]


def seen_by_conda_lock(file: Path) -> Seen:
    """Return what conda-lock reads for the platforms that tenv knows; its categories are one to tenv."""
    from conda_lock.lockfile import parse_conda_lock_file

    found: Seen = {}
    for package in parse_conda_lock_file(file).package:
        if package.platform in PLATFORMS:
            url = package.url if package.manager == "conda" else unquote(package.url.rsplit("/", 1)[-1])
            needs = _plain(package.dependencies) if package.manager == "pip" else dict(package.dependencies)
            said = (package.version, url, package.hash.sha256, needs, package.build)
            md5 = package.hash.md5 if package.manager == "conda" else None
            name = package.name if package.manager == "conda" else normalize(package.name)
            found[package.platform, package.manager, name] = (*said, md5)
    return found


def _plain(needs: Mapping[str, str]) -> dict[str, list[str]]:
    return {normalize(name): sorted(_clauses(spec)) for name, spec in needs.items()}


def _clauses(spec: str) -> set[str]:
    """Return the clauses of a version as PEP 440 has them; conda-lock also writes them as poetry does.

    An alternative that PEP 440 has no one clause for (``<2.0.0 || >2.3.0``) does not count.
    """
    found = {re.sub(r"<(\S+) \|\| >\1", r"!=\1", clause.strip()) for clause in spec.split(",")} - {"", "*"}
    return {f"=={clause}" if clause[0].isdigit() else clause for clause in found if "||" not in clause}


def releases_of_conda_lock(file: Path) -> list[Release]:
    """Return the wheels of a conda-lock.yml; what they require on one platform has a marker."""
    found: dict[str, Release] = {}
    for (platform, kind, name), (version, url, digest, needs, _, _) in seen_by_conda_lock(file).items():
        if kind == "pip" and url.endswith(".whl"):
            marker = f'; platform_system == "{"Windows" if platform == "win-64" else "Linux"}"'
            lines = [f"{need}{','.join(clauses)} {marker}" for need, clauses in needs.items()]
            before = found[digest].requires_dist if digest in found else ()
            found[digest] = Release(name, version, url, digest, (*before, *lines), ">=3.0")
    return list(found.values())


def public_locks(name: str) -> list[Path]:
    """Return the locks of public repositories in the folder that TENV_TEST_LOCKS names."""
    folder = os.environ.get("TENV_TEST_LOCKS")
    return sorted(Path(folder).rglob(name)) if folder else []
