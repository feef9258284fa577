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
import yaml
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

pytestmark = pytest.mark.usefixtures("empty_project")

REPOSITORY = Path(__file__).parents[2]
NAME = re.compile(r"[\w.-]+")
HOME = "https://conda.anaconda.org/conda-forge"
PLATFORMS = ("linux-64", "win-64")


def check_closure(folder: Path) -> list[str]:
    """Compare each environment of a pixi.lock with the requests of the pixi.toml beside it; return their names."""
    from rattler import LockFile

    workspace = tomllib.loads((folder / "pixi.toml").read_text())
    environments = dict(LockFile.from_path(folder / "pixi.lock").environments())
    assert set(environments) == {"default", *workspace.get("environments", {})}
    check_indexes(workspace, yaml.safe_load((folder / "pixi.lock").read_text()))
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


def check_indexes(workspace: Mapping[str, Any], lock: Mapping[str, Any]) -> None:
    """Compare the indexes of a lock with those of its workspace; a row names one of them, or that of its request."""
    options = workspace.get("pypi-options", {})
    indexes = [options["index-url"], *options.get("extra-index-urls", [])] if "index-url" in options else []
    for environment in lock["environments"].values():
        assert environment.get("indexes", []) in ([], indexes)
        assert environment.get("find-links", []) in ([], options.get("find-links", []))
    features = (workspace, *workspace.get("feature", {}).values())
    tables = [table for part in features for table in (part, *part.get("target", {}).values())]
    asked_of = {
        normalize(name): row.get("index")
        for table in tables
        for name, row in table.get("pypi-dependencies", {}).items()
        if isinstance(row, dict)
    }
    for row in lock["packages"]:
        if "pypi" in row:
            wanted = asked_of.get(normalize(row["name"]))
            assert row.get("index", wanted) == wanted or row["index"] in indexes, row


def check_environment(
    workspace: Mapping[str, Any],
    name: str,
    platform: str,
    conda: Mapping[str, Mapping[str, Any]],
    wheels: Mapping[str, list[str]],
) -> None:
    depends = {key: [line_name(line) for line in row.get("depends", [])] for key, row in conda.items()}
    needed = set[str]()  # conda packages that wheels require
    if wheels:
        values = marker_values(platform, minor_of(conda["python"]["version"]))
        roots = asked(workspace, name, platform, "pypi-dependencies")
        found = wheels_reached(roots, wheels, set(map(normalize, conda)), values)
        assert found & wheels.keys() == set(wheels), (name, platform)
        needed = {row for row in conda if normalize(row) in found}
    roots_of_conda = {*asked(workspace, name, platform, "dependencies"), *needed}
    assert conda_reached(roots_of_conda, depends) == set(conda), (name, platform)


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
        if (name, extra) not in seen:
            seen.add((name, extra))
            waiting += needs(wheels.get(name, []), extra, values)
    return {name for name, _ in seen}


def needs(lines: Iterable[str], extra: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate({**values, "extra": extra}):
            yield from ((normalize(need.name), one) for one in ("", *need.extras))


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu-1.10", "cuda121"])
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


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 500), marks=pytest.mark.long)], ids=["12", "500"])
def test_the_packages_of_random_targets_are_the_closure_of_their_requests(seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        write_random(rng)
        ended = call("export", "pixi", "random", "-o", "out", "--force")
        assert ended.status == 0, ended.err
        assert check_closure(Path("out")), seed


def write_random(rng: random.Random) -> None:
    """Write a manifest with features and its lock, of made packages that require each other at random.

    Each platform has requests of its own.
    """
    names = [f"p{number}" for number in range(rng.randint(3, 14))]
    depends = {name: rng.sample(names[:place], rng.randint(0, min(3, place))) for place, name in enumerate(names)}
    target, debug, test = (rng.sample(names, rng.randint(1, 3)) for _ in range(3))
    shared = {*target, *debug, *test}
    own = {platform: [name for name in rng.sample(names, 2) if name not in shared] for platform in PLATFORMS}
    features = {"debug": [name for name in debug if name not in target], "test": [n for n in test if n not in target]}
    lines = [
        f"platforms = {json.dumps(PLATFORMS)}",
        'channels = ["conda-forge"]',
        "[dependencies]",
        *(f'{n} = "*"' for n in target),
    ]
    for platform, rows in own.items():
        lines += [f"[platform.{platform}.dependencies]", *(f'{name} = "*"' for name in rows)]
    for feature, rows in features.items():
        lines += [f"[feature.{feature}.dependencies]", *(f'{name} = "*"' for name in rows)]
    file = Path("manifests/random.toml")
    file.write_text("\n".join(lines) + "\n")
    manifest = read_manifest("random", file, Path, "random.toml", file.parent.absolute())
    rows_of, packages = {}, {}
    for platform in PLATFORMS:
        there = sorted(conda_reached({*shared, *own[platform]}, depends))
        rows_of[platform] = tuple(conda_row(name, depends[name], platform) for name in there)
        packages[platform] = tuple(
            CondaPackage(name, "1.0", "0", platform, HOME, row["conda"], row["sha256"], depends=tuple(row["depends"]))
            for name, row in zip(there, rows_of[platform], strict=True)
        )
    text = lock_text("random", (HOME,), {name: ({"name": name}, rows) for name, rows in rows_of.items()}, {})
    lock = from_manifest(manifest, divide(manifest, {"conda": packages, "wheels": dict.fromkeys(PLATFORMS, ())}))
    Path("locks").mkdir(exist_ok=True)
    Path("locks/random.lock").write_bytes(render_lock(lock, text))


def conda_row(name: str, depends: list[str], platform: str = "linux-64") -> dict[str, Any]:
    url = f"{HOME}/{platform}/{name}-1.0-0.conda"
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
