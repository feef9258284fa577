import json
from dataclasses import replace

from tenv.checks.rules.driver import DriverSurroundings, Verdict, judge_driver, support
from tenv.checks.rules.interface import Finding, Scope, Severity, decide
from tenv.core.versions import Version
from tenv.facts.cuda_driver import CudaDriverTable
from tenv.facts.tables import load_facts
from tenv.host.interface import Fact, Missing
from tests.checks.rules.cases import case, compat, found
from tests.support.each import each

TABLE = load_facts().cuda_driver
RUNS = (Verdict.NATIVE, Verdict.MINOR_VERSION)
NO_DRIVER = Missing("NVML: libnvidia-ml.so.1 is not there; nvidia-smi: not found on PATH")


def on(driver: str | None, cuda: str | None, platform: str = "linux") -> Finding | None:
    read = NO_DRIVER if driver is None else Fact(Version(driver), "nvidia-smi")
    around = DriverSurroundings(windows=platform == "windows")
    return judge_driver(Version(cuda) if cuda else None, read, TABLE, around)


def finding(driver: str | None, cuda: str, platform: str = "linux") -> Finding:
    found = on(driver, cuda, platform)
    assert found is not None
    return found


def runs(found: Finding | None) -> bool | None:
    return decide(Scope.RUN, [(Scope.RUN, found)] if found else [])


@each(
    "driver, cuda, platform, verdict",
    [
        ("535.104.12", "12.1", "linux", "native"),
        ("545.29.06", "12.1", "linux", "native"),
        ("515.76", "11.7", "linux", "native"),
        ("515.76", "11.8", "linux", "minor-version"),
        ("515.76", "12.1", "linux", "impossible"),
        ("580.65.06", "13.0", "linux", "native"),
        ("580.65.06", "13.2", "linux", "minor-version"),
        ("580.65.06", "12.1", "linux", "native"),
        ("615.71.09", "13.4", "linux", "native"),
        ("615.71.09", "7.5", "linux", "native"),
        # Both sides of each floor.
        ("579.99", "13.0", "linux", "impossible"),
        ("580", "13.0", "linux", "minor-version"),
        ("580", "13.0", "windows", "native"),
        ("579.99", "13.0", "windows", "impossible"),
        ("525.60.11", "12.1", "linux", "impossible"),
        ("525.60.13", "12.1", "linux", "minor-version"),
        ("528.24", "12.1", "windows", "impossible"),
        ("528.33", "12.1", "windows", "minor-version"),
        ("450.80.01", "11.8", "linux", "impossible"),
        ("450.80.02", "11.8", "linux", "minor-version"),
        ("452.38", "11.8", "windows", "impossible"),
        ("452.39", "11.8", "windows", "minor-version"),
        # Both sides of the native driver.
        ("530.30.01", "12.1", "linux", "minor-version"),
        ("530.30.02", "12.1", "linux", "native"),
        ("531.13", "12.1", "windows", "minor-version"),
        ("531.14", "12.1", "windows", "native"),
        ("570.25", "12.8", "linux", "minor-version"),
        ("570.26", "12.8", "linux", "native"),
        ("614.99", "13.4", "linux", "minor-version"),
        ("615.10", "13.4", "linux", "native"),
        # The first releases of 11 and 12 shipped with drivers older than what later became the floor.
        ("450.51.05", "11.0", "linux", "native"),
        ("527.41", "12.0", "windows", "native"),
        ("527.41", "12.1", "windows", "impossible"),
        # No minor-version compatibility before CUDA 11.
        ("440.33", "10.2", "linux", "native"),
        ("440.32", "10.2", "linux", "impossible"),
        ("418.96", "10.1", "windows", "native"),
        ("411.31", "10.1", "windows", "impossible"),
        # The table does not say which driver these came with.
        ("700.1", "13.5", "linux", "minor-version"),
        ("580.65.06", "13.9", "linux", "minor-version"),
        ("579.1", "13.9", "linux", "impossible"),
        ("700.1", "14.0", "linux", "unknown"),
    ],
)
def test_verdict(driver: str, cuda: str, platform: str, verdict: str) -> None:
    found = on(driver, cuda, platform)
    assert support(found) == verdict
    assert runs(found) is (None if verdict == "unknown" else verdict in RUNS)


def just_below(driver: Version) -> Version:
    *head, last = (int(part) for part in str(driver).split("."))
    return Version(".".join(str(part) for part in (*head, last - 1, 9999)))


def releases() -> list[Version]:
    return [row.toolkit for row in TABLE.toolkits]


@each("windows", [False, True])
@each("cuda", releases())
def test_the_minimum_is_where_the_verdict_turns(cuda: Version, windows: bool) -> None:
    minimum, around = TABLE.minimum(cuda, windows), DriverSurroundings(windows=windows)
    assert minimum is not None
    assert runs(judge_driver(cuda, Fact(minimum.driver, "test"), TABLE, around))
    older = just_below(minimum.driver)
    assert support(judge_driver(cuda, Fact(older, "test"), TABLE, around)) is Verdict.IMPOSSIBLE


def test_the_verdict_never_falls_with_a_newer_driver() -> None:
    order = [Verdict.IMPOSSIBLE, Verdict.MINOR_VERSION, Verdict.NATIVE]
    drivers = sorted(
        {native.driver for cuda in releases() for windows in (False, True) if (native := TABLE.native(cuda, windows))}
    )
    for windows in (False, True):
        for cuda in releases():
            ranks = [
                order.index(
                    support(judge_driver(cuda, Fact(driver, "test"), TABLE, DriverSurroundings(windows=windows)))
                )
                for driver in drivers
            ]
            assert ranks == sorted(ranks)


@each("driver", [None, "390.48"])
def test_without_cuda_no_driver_is_needed(driver: str | None) -> None:
    assert on(driver, None) is None


def test_a_missing_driver_is_a_warning_that_names_the_minimum() -> None:
    found = finding(None, "12.1")
    assert (support(found), runs(found)) == (Verdict.UNKNOWN, None)
    assert (found.code, found.severity) == ("TE101", Severity.WARNING)
    assert "building needs none, running needs NVIDIA driver 525.60.13 or newer" in found.message
    assert found.evidence == NO_DRIVER.reason
    assert "`--build-only`" in found.fix


def test_minor_version_compatibility_tells_its_limit() -> None:
    found = finding("515.76", "11.8")
    assert (found.code, found.severity, found.subject) == ("TE102", Severity.NOTE, "CUDA 11.8")
    assert "can't compile the PTX" in found.message
    assert "shipped with driver 520.61.05" in found.message
    assert found.evidence == "driver 515.76 (nvidia-smi)"
    assert found.fix == (
        "list the compute capability of the GPU in TORCH_CUDA_ARCH_LIST, or install driver 520.61.05 or newer"
    )


def test_a_driver_that_is_too_old_is_an_error() -> None:
    found = finding("515.76", "12.1")
    assert (found.code, found.severity) == ("TE103", Severity.ERROR)
    assert found.fix == (
        "install NVIDIA driver 525.60.13 or newer (better 530.30.02 or newer, which supports all of CUDA 12.1), "
        "or choose a target with CUDA 11.8 or older"
    )


def test_a_windows_driver_is_called_one() -> None:
    for driver in (None, "516.94"):
        assert "NVIDIA driver 528.33 or newer for Windows (under WSL too)" in finding(driver, "12.1", "windows").fix


def test_a_version_outside_the_table() -> None:
    for driver in (None, "700.1"):
        found = finding(driver, "14.0")
        assert TABLE.minimum(Version("14.0"), windows=False) is None
        assert (found.code, found.severity) == ("TE104", Severity.WARNING)
        assert found.evidence == "the table of drivers goes from CUDA 7.0 to 13.5"


@each("driver, code", [(None, "TE101"), ("580.65.06", "TE102"), ("570.26", "TE103")])
def test_a_row_that_is_not_confirmed_says_so(driver: str | None, code: str) -> None:
    found = finding(driver, "13.5")
    assert found.code == code
    assert (
        "(not confirmed: seen only as PyPI nvidia-cuda-nvcc 13.5.37; patch digit and driver unknown)" in found.message
    )


def test_a_row_that_is_not_confirmed_and_has_no_note_says_so() -> None:
    floors = tuple(row for row in TABLE.floors if row.cuda_major == 10)
    release = next(row for row in TABLE.toolkits if row.major_minor == "10.0")
    doubtful = replace(release, basis=replace(release.basis, confirmed=False, note=""))
    found = judge_driver(Version("10.0"), NO_DRIVER, CudaDriverTable(floors, (doubtful,)), DriverSurroundings())
    assert found
    assert found.message.endswith("NVIDIA driver 410.48 or newer (not confirmed)")


def test_a_finding_has_the_keys_of_the_envelope() -> None:
    written = finding("515.76", "12.1").to_json()
    assert list(written) == ["code", "severity", "subject", "message", "evidence", "source", "fix"]
    assert json.loads(json.dumps(written))["severity"] == "error"
    assert all(type(value) is str and value for value in written.values())


def test_forward_compatibility_on_a_branch_that_no_table_lists_is_open() -> None:
    """NVIDIA lists cuda-compat 13.0 for 535 and 570; 545 is between them and in no table."""
    first = compat("/usr/local/cuda-13.0/compat/libcuda.so.580.65.06", "580.65.06")
    for driver, scope in (("545.23.08", Scope.RUN), ("535.104.12", None)):
        asked = case("13.0", driver=Version(driver), compat=first)
        (finding,) = found("TE105", asked)
        assert (finding.unknown.scope if finding.unknown else None) is scope
