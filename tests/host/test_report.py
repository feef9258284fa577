"""The report as JSON, there and back, and hosts that are assumed."""

import importlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv import __version__
from tenv.core.errors import HostReportError, UsageError
from tenv.core.toml_reader import Table
from tenv.core.versions import Version
from tenv.host.collect import assume_cuda, assume_driver, assume_gpu
from tenv.host.field import host_fields
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.report import (
    Compat,
    Compiler,
    CompilerLimits,
    Disk,
    FoundBy,
    Gpu,
    HostReport,
    Lead,
    LibcudaKind,
    Libstdcxx,
    ProblemKind,
    Toolkit,
    ToolkitProblem,
)
from tenv.host.report_json import from_json, to_json
from tests.support.each import each

NAMES = {
    *("driver", "cuda", "gpus", "toolkits", "compilers", "libc", "libstdcxx", "cores", "memory", "platform"),
}
"""What programs that read a report count on."""

words = st.text(max_size=8)
filled = st.text(min_size=1, max_size=8)
counts = st.integers(0, 1 << 60)
numbers = st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,4}){0,3}", fullmatch=True).map(Version)
leads = st.lists(st.builds(FoundBy, st.sampled_from(Lead), filled), max_size=2).map(tuple)
problems = st.lists(st.builds(ToolkitProblem, st.sampled_from(ProblemKind), filled), max_size=2).map(tuple)
components = st.dictionaries(words, words, max_size=3).map(lambda found: tuple(found.items()))
gpus = st.builds(Gpu, words, st.none() | numbers, st.none() | counts, words, words, st.booleans())
limits = st.builds(CompilerLimits, filled, *[st.none() | counts] * 4)
toolkits = st.builds(
    Toolkit,
    *(filled, leads, st.none() | numbers, components, problems),
    compiles=st.booleans(),
    home=words,
    environment=words,
    compilers=st.none() | limits,
)
compilers = st.builds(Compiler, filled, filled, numbers, st.booleans(), leads)


def answers(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    missing = st.builds(Missing, words, st.sampled_from(ReasonKind))
    return missing | st.builds(Fact, values, words, st.sampled_from(OriginKind))


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "driver": numbers,
    "cuda": numbers,
    "compat": st.builds(Compat, filled, numbers, st.sampled_from(LibcudaKind)),
    "gpus": st.lists(gpus, max_size=3).map(tuple),
    "toolkits": st.lists(toolkits, max_size=2).map(tuple),
    "compilers": st.lists(compilers, max_size=2).map(tuple),
    "libc": numbers,
    "libstdcxx": st.builds(Libstdcxx, filled, numbers, numbers),
    "cores": counts,
    "memory": counts,
    "disk": st.builds(Disk, filled, counts, filled),
    "wsl": st.booleans(),
    "ptrace_scope": counts,
}


def values_of(name: str) -> st.SearchStrategy[Any]:
    """Return values of a field: of any kind, or where nothing is said here, those of its machines."""
    if name in VALUES:
        return VALUES[name]
    cases = importlib.import_module(f"tests.host.fields.{name}").CASES
    read = host_fields()[name].read
    return st.sampled_from([read(Table({"value": case.value}), "value") for case in cases if hasattr(case, "value")])


reports = st.builds(HostReport, **{name: answers(values_of(name)) for name in host_fields()})


@pytest.fixture
def report() -> HostReport:
    return from_json({"schema": 2})


@given(reports)
def test_there_and_back(report: HostReport) -> None:
    text = json.dumps(to_json(report))
    back = from_json(json.loads(text))
    assert back == report
    assert json.dumps(to_json(back)) == text  # versions are equal without their trailing zeros, texts are not


@given(reports)
def test_there_and_back_in_the_envelope(report: HostReport) -> None:
    envelope = {"tenv": __version__, "command": "host", "ok": True, "data": to_json(report), "error": None}
    assert from_json(envelope) == report


def test_the_keys(report: HostReport) -> None:
    data = to_json(report)
    assert set(data) == {*host_fields(), "schema", "tenv"} > NAMES
    assert (data["schema"], data["tenv"]) == (2, __version__)
    assert all(set(data[name]) == {"missing", "kind"} for name in host_fields())


def test_a_report_that_does_not_say_everything(report: HostReport) -> None:
    assert report.driver == Missing("the report does not say", ReasonKind.UNREPORTED)


def test_keys_of_a_later_tenv_are_left_aside(report: HostReport) -> None:
    gpu = {"name": "x", "nvlink": 4}
    data = {"schema": 2, "weather": "fine", "gpus": {"value": [gpu], "origin": "NVML", "kind": "nvml", "age": 3}}
    assert from_json(data).gpus == Fact((Gpu("x"),), "NVML", OriginKind.NVML)


def test_a_kind_that_only_a_later_tenv_knows_is_another(report: HostReport) -> None:
    data = to_json(report) | {
        "cores": {"value": 4, "origin": "a crystal ball", "kind": "divination"},
        "memory": {"missing": "the ball was cloudy", "kind": "clouds"},
        "libc": {"value": "2.35", "origin": "by hand"},
    }
    found = from_json(data)
    assert found.cores == Fact(4, "a crystal ball", OriginKind.OTHER)
    assert found.memory == Missing("the ball was cloudy", ReasonKind.OTHER)
    assert found.libc == Fact(Version("2.35"), "by hand", OriginKind.OTHER)


@each(
    "data",
    [
        {"schema": 3, "tenv": "9.1.0"},
        {"schema": 1, "tenv": "9.1.0"},
        {"schema": 0, "tenv": "9.1.0"},
        {"tenv": "9.1.0", "command": "host", "data": {"schema": 3}},
    ],
)
def test_another_schema_is_refused_with_the_command_that_helps(data: dict[str, Any]) -> None:
    with pytest.raises(HostReportError) as raised:
        from_json(data, "node7.json")
    form = data.get("schema", 3)
    expected = f"node7.json: tenv 9.1.0 wrote it in form {form}; this is tenv {__version__}, which reads form 2"
    assert raised.value.message == expected
    assert raised.value.hint == "`tenv host --json > FILE` writes one; docs/host.md has the form"
    assert raised.value.status == 2


@each(
    "data, said",
    [
        ([], "x: not a host report: it is no JSON object"),
        (None, "x: not a host report: it is no JSON object"),
        ({}, "x: not a host report: it has no `schema`"),
        ({"schema": True}, "x: not a host report: it has no `schema`"),
        ({"command": "list", "data": []}, "x: the output of `tenv list`, not of `tenv host`"),
        ({"command": "host", "data": None}, "x: not a host report: it has no `schema`"),
        ({"command": "host", "data": 1}, "x: data: expected a table, got a number"),
        ({"schema": 2, "cores": 4}, "x: cores: expected a table, got a number"),
        ({"schema": 2, "cores": {"value": 4}}, "x: cores.origin: is required"),
        (
            {"schema": 2, "cores": {"value": True, "origin": ""}},
            "x: cores.value: expected a whole number, got true or false",
        ),
        ({"schema": 2, "cores": {"value": 1.5, "origin": ""}}, "x: cores.value: expected a whole number, got a number"),
        ({"schema": 2, "memory": {"value": -5, "origin": ""}}, "x: memory.value: expected no less than 0"),
        ({"schema": 2, "cores": {"missing": 1}}, "x: cores.missing: expected a string, got a number"),
        (
            {"schema": 2, "driver": {"value": "x", "origin": ""}},
            "x: driver.value: `x` is not a dotted version such as 12.1 or 580.65.06",
        ),
        (
            {"schema": 2, "gpus": {"value": [{"name": "a"}, {"name": 7}], "origin": ""}},
            "x: gpus.value[1].name: expected a string, got a number",
        ),
        (
            {"schema": 2, "gpus": {"value": ["a"], "origin": ""}},
            "x: gpus.value: expected an array of tables, got a string in it",
        ),
        (
            {"schema": 2, "toolkits": {"value": [{"path": "", "found_by": ["CUDA_HOME"]}], "origin": ""}},
            "x: toolkits.value[0].found_by: expected an array of tables, got a string in it",
        ),
        (
            {"schema": 2, "cores": {"value": 1, "origin": "", "kind": 7}},
            "x: cores.kind: expected a string, got a number",
        ),
    ],
)
def test_faults_have_a_path(data: object, said: str) -> None:
    with pytest.raises(HostReportError) as raised:
        from_json(data, "x")
    assert raised.value.message.startswith(said)
    assert "`tenv host`" in said or raised.value.hint.startswith("`tenv host --json")


def test_an_assumed_driver_brings_its_own_libraries(report: HostReport) -> None:
    data = to_json(report)
    data["cuda"] = {"value": "13.0", "origin": "NVML"}
    data["compat"] = {"value": {"path": "/usr/lib64/libcuda.so.570.1", "version": "570.1"}, "origin": "ldconfig -p"}
    found = assume_driver(from_json(data), Version("535.104.12"))
    assert found.driver == Fact(Version("535.104.12"), "assumed", OriginKind.ASSUMED)
    assert found.cuda == Missing("driver 535.104.12 is assumed, so it was not asked", ReasonKind.ASSUMED)
    assert found.compat == Missing("driver 535.104.12 is assumed, with its own libraries", ReasonKind.ASSUMED)


def test_an_assumed_driver_keeps_what_a_person_gave(report: HostReport) -> None:
    library = Compat("/usr/local/cuda/compat/libcuda.so.570.1", Version("570.1"), LibcudaKind.CUDA_COMPAT)
    compat = Fact(library, "LD_LIBRARY_PATH", OriginKind.LOADER)
    said = Fact(Version("12.4"), "CONDA_OVERRIDE_CUDA", OriginKind.OVERRIDE)
    found = assume_driver(replace(assume_cuda(report, said), compat=compat), Version("535.104.12"))
    assert (found.cuda, found.compat) == (said, compat)


def test_an_assumed_gpu(report: HostReport) -> None:
    known = {"GTX 1660 Ti": ("GeForce GTX 1660 Ti", Version("7.5"), "10de:2182")}
    found = assume_gpu(report, "GTX 1660 Ti", known.get)
    assert found.gpus == Fact(
        (Gpu("GeForce GTX 1660 Ti", Version("7.5"), pci_id="10de:2182"),), "assumed", OriginKind.ASSUMED
    )
    with pytest.raises(UsageError, match="unknown GPU: `Voodoo 2`"):
        assume_gpu(report, "Voodoo 2", known.get)
