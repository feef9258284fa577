"""The report as JSON, there and back, and hosts that are assumed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv import __version__
from tenv.core.errors import HostReportError, UsageError
from tenv.core.versions import Version
from tenv.host.assume import assume_cuda, assume_driver, assume_gpu
from tenv.host.interface import Fact, Missing
from tenv.host.report import Compat, Compiler, CompilerLimits, Disk, Gpu, HostReport, Libstdcxx, Toolkit
from tenv.host.report_json import from_json, to_json

NAMES = {
    "driver",
    "cuda",
    "compat",
    "gpus",
    "toolkits",
    "compilers",
    "libc",
    "libstdcxx",
    "cores",
    "memory",
    "platform",
    "disk",
    "wsl",
    "container",
    "ptrace_scope",
    "hostname",
}

words = st.text(max_size=8)
counts = st.integers(0, 1 << 60)
numbers = st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,4}){0,3}", fullmatch=True).map(Version)
problems = st.lists(words, max_size=2).map(tuple)
components = st.dictionaries(words, words, max_size=3).map(lambda found: tuple(found.items()))
gpus = st.builds(Gpu, words, st.none() | numbers, st.none() | counts, words, words, st.booleans())
limits = st.builds(CompilerLimits, words, *[st.none() | counts] * 4)
toolkits = st.builds(
    Toolkit,
    *(words, problems, st.none() | numbers, components, problems),
    compiles=st.booleans(),
    home=words,
    environment=words,
    compilers=st.none() | limits,
)
compilers = st.builds(Compiler, words, words, numbers, st.booleans(), words)


def answers(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(Missing, words) | st.builds(Fact, values, words)


reports = st.builds(
    HostReport,
    platform=answers(words),
    driver=answers(numbers),
    cuda=answers(numbers),
    compat=answers(st.builds(Compat, words, numbers)),
    gpus=answers(st.lists(gpus, max_size=3).map(tuple)),
    toolkits=answers(st.lists(toolkits, max_size=2).map(tuple)),
    compilers=answers(st.lists(compilers, max_size=2).map(tuple)),
    libc=answers(numbers),
    libstdcxx=answers(st.builds(Libstdcxx, words, numbers, numbers)),
    cores=answers(counts),
    memory=answers(counts),
    disk=answers(st.builds(Disk, words, counts, words)),
    wsl=answers(st.booleans()),
    container=answers(words),
    ptrace_scope=answers(counts),
    hostname=answers(words),
)


@pytest.fixture
def report() -> HostReport:
    return from_json({"schema": 1})


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
    assert set(data) == NAMES | {"schema", "tenv"}
    assert (data["schema"], data["tenv"]) == (1, __version__)
    assert all(set(data[name]) == {"missing"} for name in NAMES)


def test_a_report_that_does_not_say_everything(report: HostReport) -> None:
    assert report.driver == Missing("the report does not say")


def test_keys_of_a_later_tenv_are_left_aside(report: HostReport) -> None:
    gpu = {"name": "x", "nvlink": 4}
    data = {"schema": 1, "weather": "fine", "gpus": {"value": [gpu], "origin": "NVML", "age": 3}}
    assert from_json(data).gpus == Fact((Gpu("x"),), "NVML")


@pytest.mark.parametrize(
    "data",
    [
        {"schema": 2, "tenv": "9.1.0"},
        {"tenv": "9.1.0", "command": "host", "data": {"schema": 2}},
    ],
)
def test_a_report_of_a_newer_tenv(data: dict[str, Any]) -> None:
    with pytest.raises(HostReportError) as raised:
        from_json(data, "node7.json")
    expected = f"node7.json: tenv 9.1.0 wrote it in form 2; this is tenv {__version__}, which reads form 1"
    assert raised.value.message == expected
    assert raised.value.status == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "x: the report: expected an object, got a list"),
        (None, "x: the report: expected an object, got null"),
        ({}, "x: not a host report: it has no `schema`"),
        ({"schema": True}, "x: not a host report: it has no `schema`"),
        ({"command": "list", "data": []}, "x: the output of `tenv list`, not of `tenv host`"),
        ({"command": "host", "data": None}, "x: data: expected an object, got null"),
        ({"schema": 1, "cores": 4}, "x: cores: expected an object, got a whole number"),
        ({"schema": 1, "cores": {"value": 4}}, "x: cores.origin: expected a text, got null"),
        (
            {"schema": 1, "cores": {"value": True, "origin": ""}},
            "x: cores.value: expected a whole number, got true or false",
        ),
        ({"schema": 1, "cores": {"value": 1.5, "origin": ""}}, "x: cores.value: expected a whole number, got a number"),
        ({"schema": 1, "memory": {"value": -5, "origin": ""}}, "x: memory.value: expected no less than 0, got -5"),
        ({"schema": 1, "cores": {"missing": 1}}, "x: cores.missing: expected a text, got a whole number"),
        (
            {"schema": 1, "driver": {"value": "x", "origin": ""}},
            "x: driver.value: `x` is not a dotted version such as 12.1 or 580.65.06",
        ),
        (
            {"schema": 1, "gpus": {"value": [{"name": "a"}, {"name": 7}], "origin": ""}},
            "x: gpus.value[1].name: expected a text, got a whole number",
        ),
        (
            {"schema": 1, "gpus": {"value": ["a"], "origin": ""}},
            "x: gpus.value[0]: expected an object, got a text",
        ),
        (
            {"schema": 1, "toolkits": {"value": [{"path": "", "found_by": [1]}], "origin": ""}},
            "x: toolkits.value[0].found_by[0]: expected a text, got a whole number",
        ),
    ],
)
def test_faults_have_a_path(data: object, said: str) -> None:
    with pytest.raises(HostReportError) as raised:
        from_json(data, "x")
    assert raised.value.message == said
    assert "`tenv host`" in said or raised.value.hint.startswith("`tenv host --json")


def test_an_assumed_driver_brings_its_own_libraries(report: HostReport) -> None:
    data = to_json(report)
    data["cuda"] = {"value": "13.0", "origin": "NVML"}
    data["compat"] = {"value": {"path": "/usr/lib64/libcuda.so.570.1", "version": "570.1"}, "origin": "ldconfig -p"}
    found = assume_driver(from_json(data), Version("535.104.12"))
    assert found.driver == Fact(Version("535.104.12"), "assumed")
    assert found.cuda == Missing("driver 535.104.12 is assumed, and nobody asked it")
    assert found.compat == Missing("driver 535.104.12 is assumed, with libraries of its own")


def test_an_assumed_driver_keeps_what_a_person_gave(report: HostReport) -> None:
    compat = Fact(Compat("/usr/local/cuda/compat/libcuda.so.570.1", Version("570.1")), "LD_LIBRARY_PATH")
    said = Fact(Version("12.4"), "CONDA_OVERRIDE_CUDA")
    data = to_json(assume_cuda(report, said)) | {"compat": None}
    data["compat"] = {"value": {"path": compat.value.path, "version": "570.1"}, "origin": compat.origin}
    found = assume_driver(from_json(data), Version("535.104.12"))
    assert (found.cuda, found.compat) == (said, compat)


def test_an_assumed_gpu(report: HostReport) -> None:
    known = {"GTX 1660 Ti": ("GeForce GTX 1660 Ti", Version("7.5"), "10de:2182")}
    found = assume_gpu(report, "GTX 1660 Ti", known.get)
    assert found.gpus == Fact((Gpu("GeForce GTX 1660 Ti", Version("7.5"), pci_id="10de:2182"),), "assumed")
    with pytest.raises(UsageError, match="no GPU is known by the name `Voodoo 2`"):
        assume_gpu(report, "Voodoo 2", known.get)
