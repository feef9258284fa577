"""No two tables answer one question: where they touch, they agree."""

import re
from itertools import pairwise

import pytest

from tenv.core.versions import Version
from tenv.facts.gpu_names import _words
from tenv.facts.tables import Facts, load_facts


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


def test_a_gpu_has_one_capability_in_names_and_pci_ids(facts: Facts) -> None:
    """Two names were also given to a few boards with an older chip; their rows have the chip of nearly all."""
    by_name: dict[tuple[str, ...], set[Version]] = {}
    for device in facts.gpu_pci.devices:
        by_name.setdefault(_words(device.name), set()).add(device.capability)
    for gpu in facts.cuda_gpu_arch.gpus:
        if gpu.name in {"GeForce GTX 750 Ti", "GeForce GT 1030"}:
            continue
        assert by_name.get(_words(gpu.name), {gpu.capability}) == {gpu.capability}, gpu.name


def test_a_pair_of_nvcc_and_gcc_is_refused_by_one_row(facts: Facts) -> None:
    """A GCC above the header's bound is no break, and two breaks of a toolkit share no GCC."""
    table = facts.cuda_host_compiler
    for row in table.toolkits:
        minor = Version(row.major_minor)
        breaks = [one for one in table.breaks if one.first <= minor <= one.last]
        for one in breaks:
            assert one.since.major <= row.gcc_max or one.last != minor, (row.major_minor, one.what)
        for older, newer in pairwise(breaks):
            assert older.before <= newer.since or newer.before <= older.since, row.major_minor


def test_the_cause_of_a_log_and_the_rule_name_the_same_cuda(facts: Facts) -> None:
    """A log of GCC 11 under nvcc and the rule about the pair end with the same release of CUDA."""
    cause = next(row for row in facts.build_failures.failures if row.name == "std-function-packs")
    named = re.search(r"CUDA [\d.]+ to ([\d.]+) with GCC 11", cause.cause)
    assert named is not None
    last = max(row.last for row in facts.cuda_host_compiler.breaks if row.since.major == 11)
    assert Version(named[1]) == last


def cause_of(facts: Facts, name: str) -> str:
    """Return what a cause of logs states: its cause, the versions and the remedies."""
    row = next(row for row in facts.build_failures.failures if row.name == name)
    return " ".join((row.cause, row.needs, *(one.do for one in row.remedies)))


def test_the_cause_of_a_log_and_the_rule_name_the_same_glibc_and_cuda(facts: Facts) -> None:
    text, rows = cause_of(facts, "glibc-math-clash"), facts.cuda_host_compiler
    named = dict(re.findall(r"glibc >= ([\d.]+) and CUDA <= ([\d.]+)", text))
    assert named == {glibc: str(rows.newest_conflict(Version(glibc))) for glibc in ("2.41", "2.42")}
    firsts = re.search(r"\(([\d.]+) for sinpi and cospi, ([\d.]+) for rsqrt\)", text)
    assert firsts is not None
    for glibc, first in zip(("2.41", "2.42"), firsts.groups(), strict=True):
        assert rows.glibc_conflict(Version(first), Version(glibc)) is None
        before = max(Version(row.major_minor) for row in rows.toolkits if Version(row.major_minor) < Version(first))
        assert rows.glibc_conflict(before, Version(glibc)) is not None


def test_the_cause_of_a_log_and_the_rule_name_the_same_compilers(facts: Facts) -> None:
    text = cause_of(facts, "gnu-version-unsupported")
    named = {Version(cuda): int(gcc) for gcc, cuda in re.findall(r"(\d+) for ([\d.]+)[,.]", text)}
    newest: dict[Version, int] = {}
    for row in facts.cuda_host_compiler.toolkits:
        if row.gcc_max not in newest.values() and Version(row.major_minor) >= min(named):
            newest[Version(row.major_minor)] = row.gcc_max
    assert named == newest


def test_the_causes_of_logs_and_the_rules_name_the_same_bounds_of_a_revision(facts: Facts) -> None:
    """Each list names the bound of a release and of those after it, to the next release of the list."""
    for name, column in (
        ("cuda-too-old", "cuda_min"),
        ("cmake-too-old", "cmake_min"),
        ("gcc-too-old", "gcc_min_header"),
    ):
        listed = re.findall(r"([\d.]+)(?: or clang \d+)? from (\d+\.\d+)", cause_of(facts, name))
        assert len(listed) > 1
        for release in facts.pytorch_build.releases:
            first = next((bound for bound, since in listed if release.version >= Version(since)), None)
            held = getattr(release, column)
            if first and held and column == "gcc_min_header":
                assert held.major == Version(first).major, (name, str(release.version))
            elif first and held:
                assert held == Version(first), (name, str(release.version))


def test_the_cause_of_a_log_and_the_rule_name_the_same_pythons_and_cmakes(facts: Facts) -> None:
    rows = {(row.part.value, str(row.first)): row.torch_below for row in facts.pytorch_tried.failures if row.first}
    below = re.findall(r"3\.(\d+) below (\d+\.\d+)", cause_of(facts, "python-too-new-frame").partition("range: ")[2])
    assert below
    for minor, release in below:
        assert rows["python", f"3.{int(minor) + 1}"] == Version(release), minor
    last = re.search(r"ask for up to 2\.(\d+)\.", cause_of(facts, "cmake4-policy"))
    assert last is not None
    assert rows["cmake", "4.0"] == Version(f"2.{int(last[1]) + 1}")


def test_a_toolkit_is_in_all_tables_of_toolkits(facts: Facts) -> None:
    drivers = {row.major_minor for row in facts.cuda_driver.toolkits}
    archs = {row.major_minor for row in facts.cuda_gpu_arch.toolkits}
    compilers = {row.major_minor for row in facts.cuda_host_compiler.toolkits}
    assert archs == compilers
    assert archs <= drivers


def test_the_driver_of_a_toolkit_knows_the_gpus_that_it_compiles_for_first(facts: Facts) -> None:
    """A generation's first driver is no newer than the driver of the first toolkit with its code."""
    for row in facts.gpu_driver.generations:
        if row.first_linux is None or row.first_linux < Version("418"):
            continue
        for capability in row.capabilities:
            span = facts.cuda_gpu_arch.range(capability)
            native = facts.cuda_driver.native(Version(span[0].major_minor), windows=False) if span else None
            assert native is None or row.first_linux.major <= native.driver.major + 5, (row.name, str(native.driver))


def test_a_release_of_pytorch_is_refused_by_its_bound_or_by_a_failure_but_not_by_both(facts: Facts) -> None:
    for release in facts.pytorch_build.releases:
        for row in facts.pytorch_tried.failures:
            bound = release.cuda_min if row.part.value == "cuda" else None
            covers = row.fails_with(str(release.version)) and row.below is not None
            assert not (bound and covers and row.below and row.below <= bound), (str(release.version), row.id)
