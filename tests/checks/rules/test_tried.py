"""What is known to fail with a revision, what its own CI says of a day of the trunk, and what was never built."""

import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tenv.checks.checkout_state import commit_day
from tenv.checks.pytorch_source import CiBuilds, find_source, read_tested
from tenv.checks.rules.interface import Case, Finding, Scope
from tenv.core.versions import Range, Version
from tests.checks.rules.cases import case, facts, found, release
from tests.support.each import each

MATRIX = """\
CUDA_ARCHES = ["12.6", "12.8"]
CUDA_STABLE = "12.8"
CUDA_ARCHES_FULL_VERSION = {"12.6": "12.6.3", "12.8": "12.8.1"}

FULL_PYTHON_VERSIONS = [
    "3.10",
    # "3.15",
    "3.13",
    "3.13t",
]
"""


def trunk(version: str, tested: CiBuilds | None = None, cuda: str | None = "13.0", python: str = "3.12.*") -> Case:
    """Return a case with a revision of the trunk."""
    tree = release(version.partition("a")[0])
    tree = replace(tree, version=replace(tree.version, value=version), tested=tested)
    return replace(case(cuda, manifest={"python": Range(python)}), source=tree)


def with_ci(*cudas: str, pythons: tuple[str, ...] = ("3.10", "3.13")) -> CiBuilds:
    return CiBuilds(tuple(map(Version, cudas)), tuple(map(Version, pythons)))


def only(code: str, asked: Case) -> Finding:
    (finding,) = found(code, asked)
    return finding


def test_the_version_alone_leaves_a_day_of_the_trunk_open() -> None:
    finding = only("TE610", trunk("2.9.0a0+git1234567"))
    assert finding.severity == "warning"
    assert finding.unknown is not None
    assert finding.unknown.scope is Scope.BUILD
    assert "failed with the trunk before 2.9" in finding.message


@each("cudas, severity", [(("12.6", "12.8"), "error"), (("12.6", "12.8", "13.0"), None)])
def test_the_ci_of_a_checkout_tells_of_its_day(cudas: tuple[str, ...], severity: str | None) -> None:
    findings = found("TE610", trunk("2.9.0a0", with_ci(*cudas)))
    assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])


def test_a_python_that_is_too_new_for_a_day_of_the_trunk() -> None:
    (open_,) = found("TE602", trunk("2.9.0a0", python="3.14.*"))
    assert (open_.severity, open_.unknown is not None) == ("warning", True)
    (old,) = found("TE602", trunk("2.9.0a0", with_ci("12.8"), python="3.14.*"))
    assert (old.severity, old.unknown) == ("error", None)
    assert found("TE602", trunk("2.9.0a0", with_ci("12.8", pythons=("3.10", "3.14")), python="3.14.*")) == []


def test_a_python_that_is_too_new_is_a_note_where_the_target_takes_others() -> None:
    finding = only("TE602", case("12.8", torch="2.8.0", manifest={"python": Range(">=3.12,<3.15")}))
    assert (finding.severity, finding.subject) == ("note", "Python 3.14")
    assert finding.fix == "create the environment with `--python 3.13`"


@each(
    "day, severity",
    [
        ("20250623", "error"),
        ("20250712", "error"),
        ("20250715", "warning"),
        ("20250721", None),
        ("20259999", "warning"),
    ],
)
def test_the_day_of_a_nightly_tells_whether_a_python_is_too_new(day: str, severity: str | None) -> None:
    findings = found("TE602", trunk(f"2.9.0.dev{day}", python="3.14.*"))
    assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])


@each(
    "nightly, python, severity",
    [
        ("2.0.0.dev20221201", "3.7.*", None),
        ("2.0.0.dev20230215", "3.7.*", "error"),
        ("2.9.0.dev20250801", "3.9.*", None),
        ("2.9.0.dev20250801", "3.8.*", "error"),
        ("2.10.0.dev20250915", "3.9.*", None),
        ("2.10.0.dev20251001", "3.9.*", "error"),
        ("2.9.1", "3.9.*", "error"),
    ],
)
def test_the_day_of_a_nightly_tells_which_pythons_it_still_takes(
    nightly: str, python: str, severity: str | None
) -> None:
    asked = replace(case("12.8", manifest={"python": Range(python)}), source=find_source(nightly, facts()))
    assert [str(finding.severity) for finding in found("TE602", asked)] == ([severity] if severity else [])


@each("day, severity", [("2025-06-23", "error"), ("2025-07-15", "warning"), ("2025-07-21", None)])
def test_the_day_of_a_commit_is_stronger_than_the_lists_of_its_ci(day: str, severity: str | None) -> None:
    asked = trunk("2.9.0a0", python="3.14.*")
    assert asked.source
    findings = found("TE602", replace(asked, source=replace(asked.source, day=date.fromisoformat(day))))
    assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])


def test_a_release_has_no_day() -> None:
    asked = case(None, torch="2.8.0", manifest={"python": Range("3.14.*")})
    assert asked.source
    (finding,) = found("TE602", replace(asked, source=replace(asked.source, day=date(2026, 1, 1))))
    assert finding.severity == "error"


@each(
    "torch, severity",
    [("2.5.0.dev20240904", "error"), ("2.5.0.dev20240801", "warning"), ("2.5.0a0", "warning"), ("2.5.0", None)],
)
def test_a_driver_before_530_and_the_days_of_large_parameters(torch: str, severity: str | None) -> None:
    findings = found("TE614", case("12.3", torch=torch, driver=Version("525.105.12")))
    assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])
    assert [finding.unknown.scope for finding in findings if finding.unknown] == [Scope.RUN] * (severity == "warning")


def test_the_day_of_a_checkout_is_that_of_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit_day(tmp_path, "2.9.0a0") is None
    for name, value in {
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2025-07-12T23:30:00-0500",
    }.items():
        monkeypatch.setenv(name, value)
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "x\n\ncommitter a <b> 1 +0000")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert commit_day(tmp_path, "2.9.0a0+git123") == date(2025, 7, 13)
    assert commit_day(tmp_path, "2.9.0") is None
    inside = tmp_path / "unpacked"
    inside.mkdir()
    assert commit_day(inside, "2.9.0a0") is None


@each(
    "python, torch, fails",
    [
        ("3.9", "1.7.0", True),
        ("3.9", "1.7.1", False),
        ("3.10", "1.10.2", True),
        ("3.10", "1.11.0", False),
        ("3.11", "1.12.1", True),
        ("3.11", "1.13.1", False),
        ("3.12", "2.1.2", True),
        ("3.12", "2.2.2", False),
        ("3.13", "2.4.1", True),
        ("3.13", "2.5.1", False),
        ("3.14", "2.8.0", True),
        ("3.14", "2.9.1", False),
        ("3.15", "2.12.1", True),
        ("3.15", "2.13.0", False),
    ],
)
def test_the_newest_python_of_a_release(python: str, torch: str, fails: bool) -> None:
    findings = found("TE602", case(None, torch=torch, manifest={"python": Range(f"{python}.*")}))
    assert [str(finding.severity) for finding in findings] == (["error"] if fails else [])


@each(
    "cuda, torch, fails",
    [
        ("11.4.2", "1.9.1", True),
        ("11.4.1", "1.9.0", True),
        ("11.3.1", "1.9.1", False),
        ("11.4.2", "1.10.1", False),
        ("11.6", "1.8.1", True),
        ("11.3", "1.8.1", False),
        ("12.4", "2.2.1", True),
        ("12.6", "2.1.2", True),
        ("12.3.2", "2.2.1", False),
        ("12.4", "2.3.0", False),
        ("12.4", "2.3.0.dev20231222", False),
    ],
)
def test_a_header_of_thrust_that_no_longer_includes_another(cuda: str, torch: str, fails: bool) -> None:
    findings = found("TE610", case(cuda, torch=torch))
    assert ["host_vector" in one.message or "swap" in one.message for one in findings if one.severity == "error"] == (
        [True] if fails else []
    )


@each(
    "cuda, torch, noted",
    [
        ("12.9", "2.5.1", True),
        ("12.4", "2.5.1", False),
        ("11.7", "2.2.2", True),
        ("12.4", None, False),
        ("13.3", "2.15.0", True),  # of 2.15 the table has the wheel's CUDA alone
        ("13.2", "2.15.0", False),
        ("12.6", "2.15.0", False),
    ],
)
def test_a_cuda_that_no_build_is_known_with_is_a_note(cuda: str, torch: str | None, noted: bool) -> None:
    findings = found("TE610", case(cuda, torch=torch))
    assert [str(finding.severity) for finding in findings] == (["note"] if noted else [])
    assert all("no build of PyTorch" in finding.message for finding in findings)


def test_the_lists_of_a_checkout_s_ci_are_read(tmp_path: Path) -> None:
    file = tmp_path / ".github/scripts/generate_binary_build_matrix.py"
    assert read_tested(tmp_path) is None
    file.parent.mkdir(parents=True)
    file.write_text(MATRIX)
    assert read_tested(tmp_path) == with_ci("12.6", "12.8")
    file.write_text(MATRIX.replace("CUDA_ARCHES =", "CUDA_ARCHES: list[str] ="))
    assert read_tested(tmp_path) == with_ci("12.6", "12.8")
    file.write_text(MATRIX.replace("FULL_PYTHON_VERSIONS", "PYTHONS"))
    assert read_tested(tmp_path) is None
