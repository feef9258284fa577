"""What holds for the verdicts on every machine."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenv.checks.rules.catalogue import RULES
from tenv.checks.rules.driver import DriverSurroundings, Verdict, judge_driver, judge_on_host, support
from tenv.checks.rules.interface import Case, Finding, Scope, decide
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing
from tenv.host.report import Gpu
from tenv.host.report_json import from_json
from tests.checks.rules import cases
from tests.support.check_hosts import make_project, report
from tests.support.projects import call

TABLE = cases.facts().cuda_driver
ARCHS = cases.facts().cuda_gpu_arch
NO_DRIVER = Missing("no probe answered")
RANKS = [Verdict.IMPOSSIBLE, Verdict.MINOR_VERSION, Verdict.NATIVE]

cudas = st.sampled_from(sorted({Version(row.major_minor) for row in TABLE.toolkits}))
known = st.sampled_from(sorted({v for c in TABLE.toolkits if (v := c.required(windows=False))}))
made = st.builds("{}.{}.{:02}".format, st.integers(340, 640), st.integers(0, 250), st.integers(0, 30)).map(Version)
drivers = known | made
capabilities = st.sampled_from(sorted({row.capability for row in ARCHS.gpus}))


def on(cuda: Version, driver: Fact[Version] | Missing, windows: bool = False) -> Finding | None:
    return judge_driver(cuda, driver, TABLE, DriverSurroundings(windows=windows))


def runs(found: Finding | None) -> bool | None:
    return decide(Scope.RUN, [(Scope.RUN, found)] if found else [])


def rank(cuda: Version, driver: Version, windows: bool) -> int:
    return RANKS.index(support(on(cuda, Fact(driver, "test"), windows)))


@given(cudas, drivers, drivers, st.booleans())
def test_a_newer_driver_never_worsens_a_verdict(cuda: Version, one: Version, other: Version, windows: bool) -> None:
    older, newer = sorted((one, other))
    assert rank(cuda, older, windows) <= rank(cuda, newer, windows)


@given(cudas, drivers, drivers)
def test_a_newer_driver_never_takes_a_native_verdict_from_any_machine(
    cuda: Version, one: Version, other: Version
) -> None:
    older, newer = sorted((one, other))
    for gpu in ("NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090"):
        hosts = [from_json(report(str(driver), gpu, "8.0")) for driver in (older, newer)]
        before, after = (judge_on_host(cuda, host, cases.facts()) for host in hosts)
        assert before is not None or after is None


@given(cudas, cudas, drivers, st.booleans())
def test_a_newer_toolkit_never_improves_a_verdict(one: Version, other: Version, driver: Version, windows: bool) -> None:
    older, newer = sorted((one, other))
    assert rank(older, driver, windows) >= rank(newer, driver, windows)


@given(cudas, drivers, st.booleans())
def test_the_minimum_is_where_no_becomes_yes(cuda: Version, driver: Version, windows: bool) -> None:
    found = on(cuda, Fact(driver, "test"), windows)
    minimum, native = TABLE.minimum(cuda, windows), TABLE.native(cuda, windows)
    assert minimum is not None
    assert runs(found) is (driver >= minimum.driver)
    if native is not None:
        assert (found is None) is (driver >= native.driver)
        assert minimum.driver <= native.driver


def verdicts(case: Case) -> tuple[bool | None, bool | None]:
    """Return whether it can be built and whether it runs, as `tenv check` says."""
    findings = [(rule.scope, finding) for rule in RULES for finding in rule(case)]
    return decide(Scope.BUILD, findings), decide(Scope.RUN, findings)


def with_gpus(case: Case, *gpus: Version) -> Case:
    names = {row.capability: row.name for row in ARCHS.gpus}
    found = tuple(Gpu(names[capability], capability) for capability in gpus)
    return replace(case, host=replace(case.host, gpus=Fact(found, "test")))


@given(cudas, drivers, st.lists(capabilities, min_size=1, max_size=3), capabilities)
def test_a_gpu_more_turns_a_no_into_a_yes_only_where_it_runs_alone(
    cuda: Version, driver: Version, have: list[Version], more: Version
) -> None:
    case = cases.case(str(cuda), driver=driver)
    _, before = verdicts(with_gpus(case, *have))
    _, after = verdicts(with_gpus(case, *have, more))
    _, alone = verdicts(with_gpus(case, more))
    assert before or not after or alone


@given(cudas, drivers | st.none(), st.lists(capabilities, max_size=2))
def test_building_asks_no_driver_and_of_the_gpus_their_range(
    cuda: Version, driver: Version | None, gpus: list[Version]
) -> None:
    with_driver = with_gpus(cases.case(str(cuda), driver=driver or NO_DRIVER), *gpus)
    assert verdicts(with_driver)[0] is verdicts(with_gpus(cases.case(str(cuda)), *gpus))[0]
    archs = ARCHS.archs(cuda)
    assert archs is not None
    if gpus and not any(map(archs.supports, gpus)):
        assert verdicts(with_driver)[0] is False


@given(cudas, st.lists(capabilities, max_size=2), st.booleans())
def test_without_a_driver_nothing_is_known_to_run(cuda: Version, gpus: list[Version], wsl: bool) -> None:
    case = with_gpus(cases.case(str(cuda), driver=NO_DRIVER, wsl=wsl), *gpus)
    assert verdicts(case)[1] is not True
    assert support(judge_on_host(cuda, case.host, case.facts)) is Verdict.UNKNOWN


@given(st.integers(14, 99), st.integers(0, 9), drivers)
def test_a_toolkit_that_nobody_knows_is_not_known_to_run(major: int, minor: int, driver: Version) -> None:
    found = on(Version(f"{major}.{minor}"), Fact(driver, "test"))
    assert (support(found), runs(found)) == (Verdict.UNKNOWN, None)


@given(cudas, drivers | st.none(), st.booleans())
def test_every_finding_is_complete(cuda: Version, driver: Version | None, windows: bool) -> None:
    found = on(cuda, Fact(driver, "test") if driver else NO_DRIVER, windows)
    for text in found.to_json().values() if found else ():
        assert text.strip() == text != ""
        assert "None" not in text


values: dict[str, st.SearchStrategy[Any]] = {
    "driver": drivers.map(str) | st.just(""),
    "gpus": st.lists(
        capabilities.map(lambda found: {"name": f"GPU {found}", "compute_capability": str(found)}), max_size=2
    ),
    "libc": st.sampled_from(["2.17", "2.35", "2.41", "2.42"]),
    "wsl": st.booleans(),
    "platform": st.sampled_from(["linux-64", "win-64"]),
    "memory": st.sampled_from([2 << 30, 64 << 30]),
}


@pytest.fixture
def project() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield make_project(Path(folder) / "project")


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=st.fixed_dictionaries(values), target=st.sampled_from(["cuda117", "cuda121", "cuda130", "cpu"]))
def test_a_fleet_of_one_is_that_machine(
    told: dict[str, Any], target: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("PWD", str(project))
    file = project / "host.json"
    file.write_text(json.dumps(report(**told)))
    one = call("check", target, "--host-report", str(file), "--json")
    (machine,) = call("check", target, "--against", str(file), "--json").data["machines"]
    (row,) = machine["targets"]
    codes = [finding["code"] for finding in json.loads(one.out)["findings"]]
    assert (row["build"], row["run"], row["findings"]) == (one.data["build"], one.data["run"], codes)
    alone = call("check-driver", target, "--host-report", str(file), "--json")
    (machine,) = call("check-driver", target, "--against", str(file), "--json").data["machines"]
    assert machine["targets"] == alone.data["targets"]
    assert machine["driver"] == alone.data["driver"]
