from pathlib import Path

from tenv.checks.rules.toolkit import check_lock
from tenv.locks.lock import Lock, Wheel
from tests.support.each import each

BUILT_IN = sorted((Path(__file__).parents[3] / "locks").glob("*.lock"))


def wheel(file: str, size: int | None = 1_000_000) -> Wheel:
    name, version = file.split("-")[:2]
    return Wheel(name.replace("_", "-"), version, file, "0" * 64, size, ("3.11",))


def lock(cuda: str, *wheels: Wheel, platform: str = "linux-64") -> Lock:
    return Lock("t", (platform,), {platform: wheels}, {"cuda": cuda} if cuda else {}, {}, "")


@each(
    "file, cuda, fits",
    [
        ("nvidia_cuda_nvcc-13.0.88-py3-none-x.whl", "13.0", True),
        ("nvidia_cuda_nvcc-13.1.80-py3-none-x.whl", "13.0", False),
        ("nvidia_cuda_nvcc-12.9.80-py3-none-x.whl", "13.0", False),
        ("nvidia_nvjitlink-13.0.88-py3-none-x.whl", "13.0", True),
        ("cuda_toolkit-13.2.2-py3-none-x.whl", "13.0", False),
        ("nvidia_cublas-13.1.1.3-py3-none-x.whl", "13.0", True),  # numbered by itself
        ("numpy-2.4.6-py3-none-x.whl", "13.0", True),
        ("nvidia_cudnn_cu13-9.24.0.43-py3-none-x.whl", "13.0", True),
        ("nvidia_cudnn_cu12-9.24.0.43-py3-none-x.whl", "13.0", False),
        ("nvidia_cuda_nvcc-13.1.80-py3-none-x.whl", "", True),  # no release is asked for
    ],
)
def test_both_sides_of_the_limit(file: str, cuda: str, fits: bool) -> None:
    assert (list(check_lock(lock(cuda, wheel(file)))) == []) is fits


@each("size, fits", [(1200, False), (None, False), (5_000_000, True)])
def test_a_version_0_0_0_is_a_placeholder_only_when_it_is_empty(size: int | None, fits: bool) -> None:
    found = list(check_lock(lock("13.0", wheel("nvidia_nccl_cu13-0.0.0a0-py3-none-x.whl", size))))
    assert (found == []) is fits


@each("path", BUILT_IN)
def test_the_built_in_locks_pass(path: Path) -> None:
    from tenv.locks.lock_file import read_lock

    found = read_lock(path, path.stem)
    assert found.platforms
    assert set(found.platforms) <= {"linux-64", "linux-aarch64", "win-64"}
    assert list(check_lock(found)) == []
    assert all(row.size for rows in found.wheels.values() for row in rows)
