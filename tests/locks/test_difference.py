"""What lies between two locks, in the terms of those who build PyTorch."""

from dataclasses import replace
from typing import Any

from tenv.facts.tables import load_facts
from tenv.locks.difference import Difference, compare
from tenv.locks.lock import Lock
from tests.support.each import each
from tests.support.lock_builders import archive, conda, lock, wheel

FACTS = load_facts()
LINUX, ARM, WINDOWS = "linux-64", "linux-aarch64", "win-64"


def between(old: Lock, new: Lock) -> Difference:
    return compare(old, new, FACTS)


def host(difference: Difference) -> dict[str, tuple[str, str]]:
    return {row.name: (row.old, row.new) for row in difference.host}


def test_another_cuda_says_what_follows_for_the_host() -> None:
    found = between(lock(cuda="12.1", glibc="2.17"), lock(cuda="13.0", glibc="2.28"))
    rows = host(found)
    assert rows["cuda"] == ("12.1", "13.0")
    assert rows["driver"] == ("525.60.13", "580")
    assert rows["driver-native"] == ("530.30.02", "580.65.06")
    assert rows["glibc"] == ("2.17", "2.28")
    assert rows["gcc-for-nvcc"] == ("6 to 12", "6 to 15")
    assert "driver-windows" not in rows
    [gpu] = [row for row in found.host if row.name == "gpu"]
    assert {"sm_50 (Maxwell)", "sm_61 (Pascal)", "sm_70 (Volta)"} <= set(gpu.dropped)
    assert "sm_100 (Blackwell)" in gpu.added
    assert not {"sm_75 (Turing)", "sm_90 (Hopper)"} & {*gpu.dropped, *gpu.added}
    assert all(row.source for row in found.host if row.name in ("driver", "driver-native", "gpu", "gcc-for-nvcc"))


def test_the_driver_of_windows_is_told_where_both_serve_it() -> None:
    both = (LINUX, WINDOWS)
    rows = host(between(lock(platforms=both, cuda="12.1"), lock(platforms=both, cuda="13.0")))
    assert rows["driver-windows"] == ("528.33", "580")


def test_a_cuda_that_no_table_knows_drops_no_gpu() -> None:
    rows = host(between(lock(cuda="12.1"), lock(cuda="99.0")))
    assert rows["cuda"] == ("12.1", "99.0")
    assert rows["driver"] == ("525.60.13", "")
    assert "gpu" not in rows
    assert "gcc-for-nvcc" not in rows


def test_a_target_without_cuda_needs_no_driver() -> None:
    assert host(between(lock(cuda="13.0"), lock()))["driver"] == ("580", "")


def test_the_python_range_the_system_s_tools_the_platforms_and_the_channels_are_told() -> None:
    old = replace(lock(python=">=3.10,<3.13"), requests={LINUX: {"system": {"gcc": [">=11,<13"]}}}, channels=("a", "b"))
    new = replace(lock(platforms=(LINUX, ARM), python=">=3.11,<3.15"), channels=("a", "c"))
    rows = host(between(old, new))
    assert rows["python"] == (">=3.10,<3.13", ">=3.11,<3.15")
    assert rows["system.gcc"] == (">=11,<13", "")
    assert rows["platforms"] == ("linux-64", "linux-64, linux-aarch64")
    [channels] = [row for row in between(old, new).host if row.name == "channels"]
    assert (channels.dropped, channels.added) == (("b",), ("c",))


@each(
    "name, old, new",
    [
        ("gcc", conda("gcc_linux-64", "12.4.0"), conda("gcc_linux-64", "13.3.0")),
        ("cudnn", conda("cudnn", "9.1"), wheel("nvidia-cudnn-cu13", "9.24")),
        ("cmake", wheel("cmake", "3.31"), conda("cmake", "4.1")),
        ("magma", conda("magma-cuda121", "2.6.1"), conda("libmagma", "2.9.0")),
        ("cusparselt", archive("cusparselt", "0.5.2.1"), wheel("nvidia-cusparselt-cu13", "0.8.1")),
        ("python", conda("python", "3.11.9"), conda("python", "3.12.1")),
        ("nvcc", conda("cuda-nvcc", "12.1.105"), wheel("nvidia-cuda-nvcc", "13.0.88")),
    ],
)
def test_a_product_is_followed_whatever_package_brings_it(name: str, old: Any, new: Any) -> None:
    rows = {row.name: row for row in between(lock(old), lock(new)).toolchain}
    assert (rows[name].old, rows[name].new, rows[name].platforms) == (old.version, new.version, (LINUX,))


def test_packages_that_came_went_and_changed() -> None:
    found = between(
        lock(conda("same", "1"), conda("gone", "1"), conda("moved", "1"), archive("a", "1")),
        lock(conda("same", "1"), conda("fresh", "1"), conda("moved", "2"), archive("a", "2")),
    )
    assert [row.name for row in found.added] == ["fresh"]
    assert [row.name for row in found.removed] == ["gone"]
    assert [(row.kind, row.name, row.old, row.new) for row in found.changed] == [
        ("archive", "a", "1", "2"),
        ("conda", "moved", "1", "2"),
    ]


def test_another_build_of_a_version_is_a_change() -> None:
    [row] = between(lock(conda("p", "1", build="h0_0")), lock(conda("p", "1", build="h1_1"))).changed
    assert (row.old, row.new) == ("1", "1")
    old, new = row.pieces[LINUX]
    assert old
    assert new
    assert (old.build, new.build) == ("h0_0", "h1_1")


def test_wheels_are_compared_for_the_pythons_of_both() -> None:
    old = lock(wheel("n", "1", "3.11", tag="cp311"), wheel("n", "2", "3.12", tag="cp312"))
    new = lock(wheel("n", "1", "3.11", tag="cp311"), wheel("n", "3", "3.12", "3.13", tag="cp312"))
    [row] = between(old, new).changed
    assert (row.old, row.new, row.python) == ("2", "3", ("3.12",))


def test_a_python_more_changes_no_package() -> None:
    assert not between(lock(wheel("n", "1", "3.11")), lock(wheel("n", "1", "3.11", "3.12"))).packages


def test_locks_without_a_python_in_common_are_compared_by_their_newest() -> None:
    [row] = between(lock(wheel("n", "1", "3.8")), lock(wheel("n", "2", "3.12"))).changed
    assert (row.old, row.new, row.python) == ("1", "2", ())


def test_the_same_change_on_several_platforms_is_one_row() -> None:
    both = (LINUX, ARM)
    [row] = between(lock(conda("p", "1"), platforms=both), lock(conda("p", "2"), platforms=both)).changed
    assert tuple(row.pieces) == both


def test_what_only_one_of_them_serves_is_no_package_change() -> None:
    found = between(lock(conda("p", "1")), lock(conda("p", "1"), platforms=(LINUX, ARM)))
    assert not found.packages
    assert tuple(found.download) == (LINUX,)


def test_a_platform_that_is_named_is_the_only_one_looked_at() -> None:
    both = (LINUX, ARM)
    found = compare(lock(conda("p", "1"), platforms=both), lock(conda("p", "2"), platforms=both), FACTS, [ARM])
    assert [tuple(row.pieces) for row in found.packages] == [(ARM,)]


def test_the_download_counts_what_one_environment_takes() -> None:
    old = lock(conda("a", "1", size=100), wheel("n", "1", "3.11", size=7), wheel("n", "1", "3.12", size=8, tag="x"))
    new = lock(conda("a", "1", size=100), wheel("n", "2", size=20), archive("b", "1"))
    download = between(old, new).download[LINUX]
    assert (download.old, download.new, download.fetch) == (108, 130, 30)


def test_no_difference_is_false() -> None:
    same = lock(conda("a", "1"), cuda="12.1")
    assert not between(same, same)
    assert between(same, lock(conda("a", "2"), cuda="12.1"))
