"""The built-in targets through pixi and conda-lock and back: the same files and requests, or a difference by name.

The fast tests take two targets; all are `long`. The printed table (`-rP`) has the differences.
"""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tenv.locks.lock import Lock
from tenv.locks.lock_features import take
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.targets.manifest import Manifest, with_features
from tests.interop.lock_index import LockIndex, Release
from tests.interop.test_closure import check_closure
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("empty_project")

REPOSITORY = Path(__file__).parents[2]
TARGETS = sorted(file.stem for file in (REPOSITORY / "locks").glob("*.lock"))
FAST = ("cuda130",)

NO_PIXI_LOCK = "pixi.lock is not written: pixi requires a Python from conda"
NO_CONDA_PYTHON = "has wheels but no Python from conda, which a conda-lock.yml must have"
"""The words for targets whose Python is no conda package."""


@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=() if name in FAST else pytest.mark.long) for name in TARGETS]
)
def test_a_target_comes_back_from_pixi_and_conda_lock(target: str) -> None:
    lock = read_lock(REPOSITORY / "locks" / f"{target}.lock", target)
    rows = {wheel.sha256: wheel for wheels in lock.wheels.values() for wheel in wheels}
    releases = [Release(row.name, row.version, row.file, row.sha256, row.requires or ()) for row in rows.values()]
    with LockIndex(releases) as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        differences = [*pixi_differences(target, lock), *conda_lock_differences(target, lock)]
    for line in differences:
        print(f"{target}: {line}")  # noqa: T201 (the table)


def pixi_differences(target: str, lock: Lock) -> Iterator[str]:
    """Export a target to pixi and import it again; yield the differences, which the export has reported."""
    ended = call("export", "pixi", target, "-o", "out", "--json")
    assert ended.status == 0, ended.err
    lost = ended.data["lost"]
    yield from (f"pixi: {line}" for line in lost)
    manifest = manifest_of(target)
    if not Path("out/pixi.lock").exists():
        assert any(NO_PIXI_LOCK in line for line in lost), lost
        assert call("import", "out/pixi.toml", "--name", "back", "--force").status == 0
        same_requests(manifest, manifest_of("back"))
        return
    assert set(check_closure(Path("out"))) == {"default", *manifest.features}
    for feature in ("", *manifest.features):
        chosen = ["--environment", feature] if feature else []
        back = call("import", "out/pixi.lock", "--name", "back", "--force", "--json", *chosen)
        assert back.status == 0, back.err
        more = [line for line in back.data["notes"] if line.startswith("requested, since ")]
        yield from (f"pixi, environment {feature}: {line}" for line in more)
        same_files(take(lock, [feature] if feature else []), read_lock(Path("locks/back.lock"), "back"))
        same_requests(with_features(manifest, [feature]), manifest_of("back"), more)


def conda_lock_differences(target: str, lock: Lock) -> Iterator[str]:
    """Export a target to conda-lock and import it again; yield the differences, which the export has reported."""
    shutil.rmtree("out", ignore_errors=True)
    ended = call("export", "conda-lock", target, "-o", "out", "--json")
    if ended.status:
        assert NO_CONDA_PYTHON in ended.err, ended.err
        yield f"conda-lock: {ended.err.splitlines()[0]}"
        return
    yield from (f"conda-lock: {line}" for line in ended.data["lost"])
    back = call("import", "out/conda-lock.yml", "--name", "back", "--force")
    assert back.status == 0, back.err
    same_files(take(lock), read_lock(Path("locks/back.lock"), "back"))


def manifest_of(target: str) -> Manifest:
    return Context().find_target(target).manifest


def same_files(before: Lock, after: Lock) -> None:
    assert after.platforms == before.platforms
    for platform in before.platforms:
        assert {row.url for row in after.conda[platform]} == {row.url for row in before.conda.get(platform, ())}
        assert {row.sha256 for row in after.wheels[platform]} == {row.sha256 for row in before.wheels.get(platform, ())}


def same_requests(before: Manifest, after: Manifest, more: Iterable[str] = ()) -> None:
    """Compare the requests; a pixi.toml always asks conda for Python, and can't unset a variable.

    Args:
        before: The manifest of the target.
        after: The manifest of the import.
        more: The notes about requests that the import adds: packages of conda that only wheels require.
    """
    added = {name for line in more for name in line.rpartition(": ")[2].split(", ")}
    assert after.platforms == before.platforms
    for platform in before.platforms:
        one, other = before.on(platform), after.on(platform)
        asked = {name: row for name, row in other.dependencies.items() if name in one.dependencies or name not in added}
        assert {**one.dependencies, "python": None} == {**asked, "python": None}, platform
        assert one.wheels == other.wheels, platform
        kept = {name: row for name, row in one.environment.items() if row.value or row.text is not None}
        assert kept == dict(other.environment), platform
        assert one.requirements == other.requirements, platform
