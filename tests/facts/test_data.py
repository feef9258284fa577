"""Every table that comes with tenv is whole, in order, without contradictions, and names its sources."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tomli

from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import sm_of
from tenv.facts.gpu_names import find_by_name
from tenv.facts.pytorch_tried import Part, Trunk
from tenv.facts.table_files import LAYOUTS, read_data
from tenv.facts.tables import Facts, load_facts
from tenv.host.toolkit_content import HEADERS, LIBRARIES, PROGRAMS
from tests.support.each import each

DATA = Path(__file__).parent.parent.parent / "src" / "tenv" / "facts" / "data"
NAMES = list(LAYOUTS)
NOT_CONFIRMED = {
    "cuda_driver": 3,
    "cuda_gpu_arch": 29,
    "gpu_driver": 14,
    "gpu_pci": 0,
    "cuda_host_compiler": 13,
    "created_targets": 0,
    "cuda_parts": 0,
    "libstdcxx": 1,
    "pytorch_build": 2,
    "pytorch_switches": 0,
    "pytorch_tried": 5,
    "torch_headers": 0,
    "torch_packages": 4,
    "cusparselt": 0,
    "cudnn": 0,
    "cuda_redist": 0,
    "magma": 1,
    "rocm": 4,
    "torch_wheels": 0,
    "build_failures": 125,
    "hip_names": 10,
}
"""How many rows of each file are not confirmed: a row that changes its mark changes this number, too."""


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


def written(name: str) -> dict[str, Any]:
    return tomli.loads((DATA / f"{name}.toml").read_text())


def rows(name: str) -> Iterator[dict[str, Any]]:
    for value in written(name).values():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from value


def rising(values: list[Version]) -> bool:
    return all(one < other for one, other in pairwise(values))


def test_every_data_file_has_a_layout_and_a_loader(facts: Facts) -> None:
    assert sorted(file.stem for file in DATA.glob("*.toml")) == sorted(NAMES)
    for name in NAMES:
        assert getattr(facts, name)


@each("name", NAMES)
def test_no_row_is_lost_on_the_way(name: str) -> None:
    data = read_data(name)
    assert sum(len(section) for section in data.sections.values()) == len(list(rows(name)))


@each("name", NAMES)
def test_every_row_has_a_source_and_a_mark(name: str) -> None:
    for row in rows(name):
        assert row["source"].strip(" ;"), row
        assert isinstance(row["confirmed"], bool), row
    assert sum(not row["confirmed"] for row in rows(name)) == NOT_CONFIRMED[name]
    for section in read_data(name).sections.values():
        assert all(row.source and not row.origin for row in section)


@each("name", NAMES)
def test_every_column_is_read_or_shown(name: str) -> None:
    """What nothing reads is no fact of tenv's: it ages unseen."""
    code = "".join(
        (DATA.parent / f"{module}.py").read_text() for module in ("table_files", *READERS.get(name, (name,)))
    )
    read = {*re.findall(r'"(\w+)"', code), *re.findall(r"^    (\w+): ", code, re.MULTILINE)}
    shown = {"confirmed", "note", "source", "schema", "sources"}
    for key, value in written(name).items():
        if isinstance(value, list) and isinstance(value[0], dict):
            section = LAYOUTS[name].sections[key]
            columns = {column for row in value for column in row}
            known = {*read, *shown, *section.key, *section.columns, *PLANNED.get(f"{name}.{key}", ())}
            assert columns <= known, key
        else:
            assert key in {*read, *shown, *PLANNED.get(name, ())}


READERS = {
    "torch_wheels": ("torch_headers",),
    "created_targets": ("pytorch_tried",),
    "cuda_driver": ("cuda_driver", "forward_compat"),
    "cuda_redist": ("cuda_parts",),
    "gpu_pci": ("cuda_gpu_arch",),
    **dict.fromkeys(("cudnn", "cusparselt", "magma"), ("library_releases",)),
}
"""The modules that read a file, for those that have another name."""
PLANNED = {
    "pytorch_build.release": {"python_rel", "build"},
    "pytorch_build": {"abi", "forwarding", "build_system_timeline"},
    "magma": {"conda_forge", "windows", "find_module"},
}
"""What building PyTorch and MAGMA for every target will read."""


@each("name", NAMES)
def test_every_abbreviation_is_explained_and_every_explanation_is_used(name: str) -> None:
    document = written(name)
    sources = " ".join(re.findall(r'^source = "(.*)"', (DATA / f"{name}.toml").read_text(), re.MULTILINE))
    sources += " ".join(re.findall(r', source = "(.*?)"', (DATA / f"{name}.toml").read_text()))
    used = set(re.findall(r"\b[A-Z]{2,}\d*\b", re.sub(r"`.*?`|https?://\S+", "", sources)))
    assert set(document.get("sources", {})) <= used
    assert used - set(document.get("sources", {})) <= {
        *("AGX", "AOSC", "CI", "CUDA", "GB", "GK107", "GM206", "GP108", "METADATA", "MSVC", "NVIDIA", "PR", "README"),
        *("RHEL", "RN", "WSL"),
    }


@each("name", NAMES)
def test_no_row_speaks_of_the_one_who_wrote_it(name: str) -> None:
    lines = (DATA / f"{name}.toml").read_text()
    text = re.sub(r"'''.*'''|-I|/tmp\b", "", lines)  # what a log says stands between three quotes
    assert not re.search(r"\b(by me|I|my|from memory|/home/|/tmp/|/root/)\b", text)


def minors(facts: Facts) -> set[str]:
    """Return the CUDA minor versions from 10.0 on of which the table of drivers knows a release."""
    return {row.major_minor for row in facts.cuda_driver.toolkits if row.toolkit.major >= 10}


def test_the_tables_of_toolkits_have_every_minor_version(facts: Facts) -> None:
    known = minors(facts)
    assert {"10.0", "11.8", "12.9", "13.5"} <= known
    assert "12.7" not in known  # NVIDIA went from 12.6 to 12.8
    older = {"7.0", "7.5", "8.0", "9.0", "9.1", "9.2"}
    assert {row.major_minor for row in facts.cuda_gpu_arch.toolkits} == known | older
    assert {row.major_minor for row in facts.cuda_host_compiler.toolkits} == known | older


def test_drivers_are_in_order_and_rise_with_the_toolkit(facts: Facts) -> None:
    table = facts.cuda_driver
    assert rising([row.toolkit for row in reversed(table.toolkits)])
    assert [row.cuda_major for row in table.floors] == [13, 12, 11, 10]
    for windows in (False, True):
        floors = [floor for major in ("11.0", "12.0", "13.0") if (floor := table.floor(Version(major), windows))]
        assert rising([floor.driver for floor in floors])


def test_every_package_is_native_to_at_most_one_branch_and_excluded_above_it(facts: Facts) -> None:
    by_package: dict[tuple[str, str], list[str]] = {}
    for row in facts.cuda_driver.forward.rows:
        if "forward-compatibility.html" in row.basis.source:
            by_package.setdefault((row.package, row.basis.source), []).append(row.verdict.value)
    assert len(by_package) == 12 + 7
    for marks in by_package.values():
        assert re.fullmatch("C*N?X*", "".join(marks)), marks


def test_architectures(facts: Facts) -> None:
    table = facts.cuda_gpu_arch
    assert rising([Version(row.major_minor) for row in table.toolkits])
    for row in table.toolkits:
        assert list(row.sm) == sorted(set(row.sm))
        assert (row.min, row.max) == (row.sm[0], row.sm[-1])
        assert {int(variant[:-1]) for variant in row.variants} <= set(row.sm)
    for older, newer in pairwise(table.toolkits):
        dropped = set(older.sm) - set(newer.sm)
        assert older.major_minor in ("8.0", "10.2", "11.8", "12.9") or not dropped, (older.major_minor, dropped)


def test_every_gpu_belongs_to_a_family_and_has_a_toolkit(facts: Facts) -> None:
    table = facts.cuda_gpu_arch
    for gpu in table.gpus:
        assert table.family(gpu.capability), gpu
        assert table.range(gpu.capability), gpu
        found = find_by_name(gpu.name, facts)
        assert found is not None
        assert found.capability == gpu.capability
    for family in table.families:
        for capability in family.capabilities:
            assert any(sm_of(capability) in row.sm for row in table.toolkits), (family.name, capability)


def test_the_name_of_a_pci_device_means_its_capability_or_several(facts: Facts) -> None:
    several = 0
    for device in facts.gpu_pci.devices:
        assert re.fullmatch("10de:[0-9a-f]{4}", device.pci_id)
        found = find_by_name(device.name.partition(" / ")[0], facts)
        several += found is None or found.capability != device.capability
    assert several < 60  # GT 730 and its like were sold with chips of several generations


def test_host_compilers(facts: Facts) -> None:
    table = facts.cuda_host_compiler
    assert rising([Version(row.major_minor) for row in table.toolkits])
    for row in table.toolkits:
        assert row.gcc_min <= row.gcc_max
        assert row.clang_min <= row.clang_max
        assert row.msvc_min < row.msvc_below
    for older, newer in pairwise(table.toolkits):
        assert older.gcc_max <= newer.gcc_max
        assert older.clang_max <= newer.clang_max
        assert older.msvc_below <= newer.msvc_below
    for conflict in table.conflicts:
        assert conflict.first <= conflict.last
        assert bool(conflict.functions) != bool(conflict.types)
    for broken in table.breaks:
        assert broken.first <= broken.last
        assert broken.since < broken.before
        assert broken.since.major <= min(
            row.gcc_max for row in table.toolkits if broken.first <= Version(row.major_minor) <= broken.last
        )


def test_libstdcxx(facts: Facts) -> None:
    table = facts.libstdcxx
    assert rising([row.since for row in table.gccs])
    for older, newer in pairwise(table.gccs):
        assert older.glibcxx <= newer.glibcxx
        assert older.cxxabi <= newer.cxxabi
    abi = {row.glibcxx: {other.cxxabi for other in table.gccs if other.glibcxx == row.glibcxx} for row in table.gccs}
    for distro in (row.table for row in facts.data("libstdcxx").sections["distro"]):
        assert Version(distro.text("cxxabi")) in abi[Version(distro.text("glibcxx"))], distro.text("key")


def test_pytorch(facts: Facts) -> None:
    table = facts.pytorch_build
    assert rising([row.version for row in table.releases])
    one_project = [row for row in table.releases if row.basis.confirmed and row.version >= Version("1.2")]
    for older, newer in pairwise(one_project):
        assert older.cmake_min is not None
        assert newer.cmake_min is not None
        assert older.cuda_min is not None
        assert newer.cuda_min is not None
        assert older.cmake_min <= newer.cmake_min
        assert older.cuda_min <= newer.cuda_min
        assert (older.cxx_standard or 0) <= (newer.cxx_standard or 0)
        for cuda in (*newer.cuda_stable, *newer.cuda_experimental):
            assert newer.cuda_min <= cuda
    names = [row.name for row in table.variables]
    assert len(names) == len(set(names))


def test_the_wheels_of_pytorch_and_of_cusparselt_agree(facts: Facts) -> None:
    for pairing in facts.cusparselt.wheels:
        row = facts.pytorch_build.release(pairing.torch.text)
        assert row is not None
        assert row.version == pairing.torch
        assert row.wheel_cuda is not None
        assert pairing.package == f"nvidia-cusparselt-cu{row.wheel_cuda.major}"
    for taken in facts.cusparselt.ci:
        assert taken.version in facts.cusparselt.versions("linux-x86_64")


@pytest.mark.parametrize("name", ["cudnn", "cusparselt"])
def test_archives(facts: Facts, name: str) -> None:
    table = getattr(facts, name)
    for row in table.archives:
        assert re.fullmatch("[0-9a-f]{64}", row.sha256)
        assert row.url.startswith("https://developer.download.nvidia.com/compute/")
        assert row.version.text in row.url
    assert rising(list(table.versions()))


def test_magma(facts: Facts) -> None:
    assert facts.magma.tarballs.url(Version("12.6")) == written("magma")["linux_tarball"]["example"]
    for row in facts.magma.conda:
        assert row.cuda.major_minor.replace(".", "") == row.name.removeprefix("magma-cuda")


def test_every_file_of_a_part_is_looked_for(facts: Facts) -> None:
    known = {*(f"lib{name}" for name in LIBRARIES), *HEADERS, *PROGRAMS}
    named = [file for part in facts.cuda_parts.parts for file in part.files]
    assert sorted(named) == sorted(known)


def test_the_packages_of_a_part(facts: Facts) -> None:
    parts = {part.component: part for part in facts.cuda_parts.parts}
    assert parts["libcublas"].package(Version("13.0")) == "libcublas-dev-13-0"
    assert parts["libcusparse"].package(Version("10.2")) == "cuda-cusparse-dev-10-2"
    assert parts["cuda_nvrtc"].package(Version("10.2")) == "cuda-nvrtc-dev-10-2"


def test_what_fails_with_a_revision_is_one_open_or_closed_range(facts: Facts) -> None:
    for row in facts.pytorch_tried.failures:
        assert row.first or row.below
        assert not (row.first and row.below) or row.first < row.below
        assert row.torch_from is None or row.torch_from < row.torch_below or (row.failed_on and row.trunk is Trunk.OPEN)
        days = [day for day in (row.failed_from, row.failed_on, row.worked_on) if day]
        assert days == sorted(days)


@each(
    "part, version, torch, row, sure",
    [
        ("cuda", "12.1", "1.12.1", "cuda-12-torch-1.12", True),
        ("cuda", "12.1", "2.0.0", "", False),
        ("cuda", "12.0", "1.14.0a0", "cuda-12-torch-1.13", False),
        ("cuda", "13.0", "2.8.0", "cuda-13-torch-2.8", True),
        ("cuda", "13.0", "2.9.0a0+git1234567", "cuda-13-torch-2.8", False),
        ("cuda", "13.0", "2.9.0", "", False),
        ("cuda", "12.9", "2.8.0", "", False),
        ("cuda", "11.4", "2.5.1", "cuda-11.4-torch-2.3", True),
        ("cuda", "11.4", "2.2.2", "", False),
        ("cuda", "11.5", "1.10.1", "cuda-11.5-torch-1.10", True),
        ("cuda", "10.2", "1.13.1", "", False),  # a Jetson with JetPack 4.6 builds it
        ("cuda", "10.2", "1.12.1", "", False),
        ("cuda", "11.4", "1.10.1", "", False),
        ("cuda", "12.6", "2.4.1", "", False),
        ("cuda", "11.4", "1.9.1", "cuda-11.4-torch-1.9", True),
        ("cuda", "11.3", "1.9.1", "", False),
        ("cuda", "12.4", "2.2.1", "cuda-12.4-torch-2.2", True),
        ("cuda", "12.3", "2.2.1", "", False),
        ("gcc", "15.1.1", "2.8.0", "gcc-15", True),
        ("gcc", "15.1.1", "2.9.0a0", "gcc-15", False),
        ("gcc", "15.1.1", "2.9.0.dev20250801", "gcc-15", True),
        ("gcc", "14.3.0", "2.8.0", "", False),
        ("python", "3.14", "2.8.0", "python-3.14", True),
        ("python", "3.14", "2.9.0a0", "python-3.14", False),
        ("python", "3.12", "2.2.0", "", False),
        ("python", "3.12", "2.1.0a0", "python-3.12", False),
        ("python", "3.12", "2.1.2", "python-3.12", True),
        ("python", "3.12", "2.0.0a0", "python-3.12", True),
        ("cmake", "4.0.0", "2.7.0a0+git504bc92", "cmake-4", True),
        ("cmake", "4.0.2", "2.7.0", "", False),
        ("cmake", "3.31.6", "2.6.0", "", False),
        ("cmake", "3.23.0", "1.12.0a0", "cmake-3.23.0", True),
        ("cmake", "3.23.1", "1.12.0a0", "", False),
    ],
)
def test_what_is_known_to_fail(facts: Facts, part: str, version: str, torch: str, row: str, sure: bool) -> None:
    found = facts.pytorch_tried.find(Part(part), Version(version), torch, "linux-64")
    assert (found[0].id if found else "", bool(found and found[1])) == (row, sure)


@each(
    "name, capability",
    [
        ("NVIDIA T1200", "7.5"),
        ("NVIDIA T500", "7.5"),
        ("T400", "7.5"),
        ("RTX PRO 500 Blackwell", "12.0"),
        ("NVIDIA A800 40GB Active", "8.0"),
        ("Jetson T5000", "11.0"),
        ("NVIDIA H100 80G...", "9.0"),
        ("GeForce RTX 4090 Laptop GPU", "8.9"),
        ("NVIDIA GeForce ...", None),
        ("GeForce GT 730", None),  # sold with chips of three compute capabilities
    ],
)
def test_names_of_gpus_as_lists_and_old_tools_write_them(facts: Facts, name: str, capability: str | None) -> None:
    found = find_by_name(name, facts)
    assert (str(found.capability) if found else None) == capability


@each("name", NAMES)
def test_a_table_has_the_day_that_it_was_compiled_on(name: str) -> None:
    """``tenv facts`` prints it beside the count of rows that no primary source confirms."""
    date = tomli.loads((DATA / f"{name}.toml").read_text("utf-8")).get("date", "")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date)


def test_a_name_without_numbers_stands_in_no_text_with_numbers() -> None:
    from tenv.facts.gpu_names import _names, _numbers  # the filter of names relies on it

    for device in load_facts().gpu_pci.devices:
        if _numbers(device.name):
            assert all(_numbers(name) for name in _names(device.name)), device.name


def test_torch_wheels_are_found_by_release(facts: Facts) -> None:
    table = facts.torch_wheels
    newest = table.wheel(Version("2.9"), "linux-64")
    assert newest
    assert (str(newest.version), newest.local, str(newest.cuda), newest.cxx11_abi) == ("2.9.1", "cu128", "12.8", True)
    exact = table.wheel(Version("2.9.0"), "linux-aarch64")
    assert exact
    assert (exact.local, exact.cuda, exact.gpu_code) == ("cpu", None, ())
    assert table.wheel(Version("1.0"), "linux-64") is None
    assert {(row.version.major_minor, row.least_cxx) for row in table.wheels if row.version >= Version("2.13")} == {
        *(("2.13", 17), ("2.14", 20), ("2.15", 20))
    }


def test_a_driver_of_rocm_lists_each_release_that_names_it(facts: Facts) -> None:
    drivers = {row.amdgpu: row for row in facts.rocm.drivers}
    apart = [
        f"{name} x {row['rocm']}"
        for row in written("rocm")["release"]
        for name in row["driver"]
        if (driver := drivers.get(".".join(name.split(".")[:2]))) and not driver.lists(Version(row["rocm"]))
    ]
    assert apart == []
