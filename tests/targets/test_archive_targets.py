"""The targets whose CUDA comes from NVIDIA's archives: one whole release on each platform, every file by sha256."""

import subprocess
import sys
from pathlib import Path

from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.sources.archives.redist import NVIDIA_PLATFORMS
from tenv.targets.search import find_places
from tests.support.each import each

ROOT = Path(__file__).parent.parent.parent
TARGETS = {
    "cuda117": "11.7.1",
    "cuda118": "11.8.0",
    "cuda118-archives": "11.8.0",
    "cuda121-archives": "12.1.1",
    "cuda124-archives": "12.4.1",
    "cuda126-archives": "12.6.3",
    "cuda128-archives": "12.8.1",
    "cuda129-archives": "12.9.1",
}


def shipped(name: str) -> Lock:
    return read_lock(ROOT / "locks" / f"{name}.lock", name)


@each("name, release", TARGETS.items())
def test_the_toolkit_is_one_whole_release(name: str, release: str) -> None:
    lock, table = shipped(name), load_facts().cuda_redist
    assert lock.archives
    for platform, archives in lock.archives.items():
        parts = {row.name for row in archives if row.part_of == "cuda"}
        assert parts == {row.name for row in table.components_of(Version(release), NVIDIA_PLATFORMS[platform])}
        assert {row.release for row in archives if row.part_of == "cuda"} == {release}
        nvcc = next(row for row in table.releases if row.label == Version(release)).nvcc.text
        assert next(row.version for row in archives if row.name == "cuda_nvcc") == nvcc
        assert not any(
            word in row.name for row in archives for word in ("nsight_c", "nsight_s", "driver", "documentation")
        )


@each("name", TARGETS)
def test_every_archive_is_nvidia_s_by_sha256(name: str) -> None:
    for platform, archives in shipped(name).archives.items():
        for row in archives:
            assert row.url.startswith("https://developer.download.nvidia.com/compute/"), row
            assert NVIDIA_PLATFORMS[platform] in row.url
            assert len(row.sha256) == 64
            assert row.size
            assert row.trust in ("redist", "facts")


@each("path", sorted((ROOT / "locks").glob("*.lock")))
def test_no_file_of_a_shipped_lock_is_held_by_md5_alone(path: Path) -> None:
    lock = read_lock(path, path.stem)
    assert all(package.sha256 for packages in lock.conda.values() for package in packages)
    assert all(wheel.sha256 for wheels in lock.wheels.values() for wheel in wheels)


@each("path", sorted((ROOT / "locks").glob("*.lock")))
def test_every_wheel_runs_on_the_glibc_that_the_target_names(path: Path) -> None:
    from tenv.core.names import WheelFile
    from tenv.core.wheel_platforms import accepted_tags

    lock = read_lock(path, path.stem)
    for platform, wheels in lock.wheels.items():
        for wheel in wheels:
            file = WheelFile.parse(wheel.file)
            assert file
            for python in wheel.python:
                tags = accepted_tags(platform, python, Version(lock.requirements.get("glibc", "2.17")))
                assert any(tag in tags for tag in file.all_tags()), wheel.file


def test_the_kind_of_a_target_is_where_its_toolkit_comes_from() -> None:
    from tenv.targets.toolkit_kind import toolkit_kind

    places = find_places(ROOT)
    kinds = {name: toolkit_kind(places.find(name).manifest).value for name in places.names()}
    assert {name for name, kind in kinds.items() if kind == "archives"} == set(TARGETS)
    assert kinds["cuda130"] == kinds["cpu"] == "wheels"
    assert kinds["cuda121"] == kinds["cpu-1.10"] == "conda"
    assert kinds["cuda121-system"] == kinds["cuda-system"] == "system"


def test_the_table_of_the_readme_is_that_of_the_targets() -> None:
    """Renewed by `python scripts/targets_table.py`."""
    done = subprocess.run([sys.executable, "scripts/targets_table.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0
