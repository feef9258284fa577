"""An exported pixi.lock holds the closure of the requests in its pixi.toml: nothing missing, and nothing more.

That is pixi's own rule for a lock that it takes (its module `satisfiability`), for each environment and platform.
"""

import json
import random
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tenv.core.names import normalize
from tenv.core.wheel_platforms import marker_values
from tenv.interop.interface import minor_of
from tenv.interop.pixi import lock_text
from tenv.locks.lock import CondaPackage, from_manifest
from tenv.locks.lock_features import divide
from tenv.locks.lock_file import read_lock, render_lock
from tenv.targets.manifest_file import read_manifest
from tests.interop.lock_index import LockIndex, Release
from tests.support.projects import call
from tests.support.rarely import first_fast

pytestmark = pytest.mark.usefixtures("empty_project")

REPOSITORY = Path(__file__).parents[2]
NAME = re.compile(r"[\w.-]+")
HOME = "https://conda.anaconda.org/conda-forge"


def check_closure(folder: Path) -> list[str]:
    """Compare each environment of a pixi.lock with the requests of the pixi.toml beside it; return their names."""
    from rattler import LockFile

    workspace = tomllib.loads((folder / "pixi.toml").read_text())
    environments = dict(LockFile.from_path(folder / "pixi.lock").environments())
    assert set(environments) == {"default", *workspace.get("environments", {})}
    for name, environment in environments.items():
        for place, packages in environment.packages_by_platform().items():
            conda, wheels = {}, {}
            for package in packages:
                if type(package).__name__ == "CondaLockedBinaryPackage":
                    conda[package.name] = json.loads(package.repo_data_record().to_json())  # type: ignore[attr-defined]
                else:
                    wheels[normalize(package.name)] = package.requires_dist  # type: ignore[attr-defined]
            check_environment(workspace, name, str(place.subdir), conda, wheels)
    return list(environments)


def check_environment(
    workspace: Mapping[str, Any],
    name: str,
    platform: str,
    conda: Mapping[str, Mapping[str, Any]],
    wheels: Mapping[str, list[str]],
) -> None:
    depends = {key: [line_name(line) for line in row.get("depends", [])] for key, row in conda.items()}
    assert conda_reached(asked(workspace, name, platform, "dependencies"), depends) == set(conda), (name, platform)
    if wheels:
        values = marker_values(platform, minor_of(conda["python"]["version"]))
        roots = asked(workspace, name, platform, "pypi-dependencies")
        found = wheels_reached(roots, wheels, set(map(normalize, conda)), values)
        assert found == set(wheels), (name, platform)


def line_name(line: str) -> str:
    match = NAME.match(line)
    return match[0] if match else line


def asked(workspace: Mapping[str, Any], environment: str, platform: str, table: str) -> dict[str, Any]:
    """Return the requests of an environment for a platform, as pixi takes them together."""
    features = workspace.get("environments", {}).get(environment, {}).get("features", [])
    found: dict[str, Any] = {}
    for part in (workspace, *(workspace["feature"][name] for name in features)):
        found |= part.get(table, {}) | part.get("target", {}).get(platform, {}).get(table, {})
    return found


def conda_reached(roots: Iterable[str], depends: Mapping[str, Iterable[str]]) -> set[str]:
    found, waiting = set(roots), list(roots)
    assert found <= depends.keys(), "a requested package is not in the lock"
    while waiting:
        new = {name for name in depends[waiting.pop()] if not name.startswith("__")} - found
        assert new <= depends.keys(), "a required package is not in the lock"
        found |= new
        waiting += new
    return found


def wheels_reached(
    roots: Mapping[str, Any], wheels: Mapping[str, list[str]], conda: set[str], values: Mapping[str, str]
) -> set[str]:
    extras = {name: row.get("extras", []) if isinstance(row, dict) else [] for name, row in roots.items()}
    waiting = [(normalize(name), extra) for name in roots for extra in ("", *extras[name])]
    seen: set[tuple[str, str]] = set()
    while waiting:
        name, extra = waiting.pop()
        assert name in wheels or name in conda, f"{name} is required and not in the lock"
        if (name, extra) not in seen and name in wheels:
            seen.add((name, extra))
            waiting += needs(wheels[name], extra, values)
    return {name for name, _ in seen}


def needs(lines: Iterable[str], extra: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate({**values, "extra": extra}):
            yield from ((normalize(need.name), one) for one in ("", *need.extras))


@pytest.mark.parametrize("target", first_fast(["cpu-1.10", "cuda121"]))
def test_a_built_in_target_is_exported_with_its_features_and_comes_back(target: str) -> None:
    lock = read_lock(REPOSITORY / "locks" / f"{target}.lock", target)
    rows = {wheel.sha256: wheel for wheels in lock.wheels.values() for wheel in wheels}
    releases = [Release(row.name, row.version, row.file, row.sha256, row.requires or ()) for row in rows.values()]
    with LockIndex(releases) as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        ended = call("export", "pixi", target, "-o", "out", "--json")
        assert ended.status == 0, ended.err
        names = check_closure(Path("out"))
        assert {"default", "debug", "test"} <= set(names)
        assert not any("features" in line for line in ended.data["lost"])
        for name in names:
            back = call("import", "out/pixi.lock", "--environment", name, "--name", "back", "--force")
            assert back.status == 0, back.err


def test_the_packages_of_random_targets_are_the_closure_of_their_requests() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        write_random(rng)
        ended = call("export", "pixi", "random", "-o", "out", "--force")
        assert ended.status == 0, ended.err
        assert check_closure(Path("out")), seed


def write_random(rng: random.Random) -> None:
    """Write a manifest with features and its lock, of made packages that require each other at random."""
    names = [f"p{number}" for number in range(rng.randint(3, 14))]
    depends = {name: rng.sample(names[:place], rng.randint(0, min(3, place))) for place, name in enumerate(names)}
    target, debug, test = (rng.sample(names, rng.randint(1, 3)) for _ in range(3))
    features = {"debug": [name for name in debug if name not in target], "test": [n for n in test if n not in target]}
    lines = [
        'platforms = ["linux-64"]',
        'channels = ["conda-forge"]',
        "[dependencies]",
        *(f'{n} = "*"' for n in target),
    ]
    for feature, rows in features.items():
        lines += [f"[feature.{feature}.dependencies]", *(f'{name} = "*"' for name in rows)]
    file = Path("manifests/random.toml")
    file.write_text("\n".join(lines) + "\n")
    manifest = read_manifest("random", file, Path, "random.toml", file.parent.absolute())
    there = conda_reached({*target, *debug, *test}, depends)
    found: tuple[Mapping[str, Any], ...] = tuple(conda_row(name, depends[name]) for name in sorted(there))
    packages = tuple(
        CondaPackage(name, "1.0", "0", "linux-64", HOME, row["conda"], row["sha256"], depends=tuple(row["depends"]))
        for name, row in zip(sorted(there), found, strict=True)
    )
    text = lock_text("random", (HOME,), {"linux-64": ({"name": "linux-64"}, found)}, {})
    lock = from_manifest(manifest, divide(manifest, {"conda": {"linux-64": packages}, "wheels": {"linux-64": ()}}))
    Path("locks").mkdir(exist_ok=True)
    Path("locks/random.lock").write_bytes(render_lock(lock, text))


def conda_row(name: str, depends: list[str]) -> dict[str, Any]:
    url = f"{HOME}/linux-64/{name}-1.0-0.conda"
    return {"conda": url, "sha256": f"{int(name[1:]) + 1:064x}", "md5": f"{int(name[1:]) + 1:032x}", "depends": depends}


def test_two_specifications_of_one_package_are_one_in_a_conda_lock() -> None:
    rows: tuple[Mapping[str, Any], ...] = (
        {**conda_row("p1", []), "conda": f"{HOME}/linux-64/libabseil-20250512.1-cxx17_0.conda"},
        {
            **conda_row("p2", ["libabseil * cxx17*", "libabseil >=20250512.1,<20250513.0a0", "libabseil <1|>2"]),
            "conda": f"{HOME}/linux-64/libprotobuf-6.31.1-h9_1.conda",
        },
    )
    Path("pixi.lock").write_text(lock_text("default", (HOME,), {"linux-64": ({"name": "linux-64"}, rows)}, {}))
    assert call("import", "pixi.lock", "--name", "two").status == 0
    assert call("export", "conda-lock", "two", "-o", "out").status == 0
    assert "libabseil: '>=20250512.1,<20250513.0a0,(<1|>2) cxx17*'" in Path("out/conda-lock.yml").read_text()
    back = call("import", "out/conda-lock.yml", "--name", "back")
    assert back.status == 0, back.err
