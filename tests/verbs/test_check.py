"""`tenv check`: a target on a machine, by every rule."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenv.checks.judge_targets import with_environment
from tenv.checks.rules.interface import Case, Finding, Rule, Scope, Severity
from tenv.core.versions import Version
from tenv.host.interface import Fact
from tenv.host.report_json import from_json, to_json
from tests.support.check_hosts import report, write
from tests.support.each import each
from tests.support.found_by import led
from tests.support.projects import Ended, call

pytestmark = pytest.mark.usefixtures("here")

GOOD = report("580.65.06", "NVIDIA H200", "9.0")


@pytest.fixture
def host(tmp_path: Path) -> str:
    return write(tmp_path / "host.json", GOOD)


def rules(monkeypatch: pytest.MonkeyPatch, *found: tuple[Scope, Severity]) -> list[Case]:
    """Put rules in the place of all others that find something of a severity each, and return what they look at."""
    cases: list[Case] = []

    def rule(number: int, scope: Scope, severity: Severity) -> Rule:
        def find(case: Case) -> Iterator[Finding]:
            cases.append(case)
            yield Finding(f"TE90{number}", severity, "it", f"is wrong on {case.host.platform}", "seen", "us", "do")

        return Rule(find, (f"TE90{number}",), "a rule", scope)

    made = tuple(rule(number, *one) for number, one in enumerate(found))
    monkeypatch.setattr("tenv.checks.judge.RULES", made)
    return cases


@pytest.mark.parametrize(
    ("scope", "severity", "build", "run"),
    [
        (Scope.BUILD, Severity.ERROR, False, True),
        (Scope.RUN, Severity.ERROR, True, False),
        (Scope.BOTH, Severity.ERROR, False, False),
        (Scope.BOTH, Severity.WARNING, True, True),
        (Scope.BOTH, Severity.NOTE, True, True),
    ],
)
def test_the_errors_of_a_rule_decide_by_its_scope(
    scope: Scope, severity: Severity, build: bool, run: bool, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(monkeypatch, (scope, severity))
    ended = call("check", "cuda130", "--host-report", host, "--json")
    assert {"build": build, "run": run}.items() <= ended.data.items()
    assert (ended.status, json.loads(ended.out)["ok"]) == (0 if build and run else 1, build and run)
    assert [finding["code"] for finding in json.loads(ended.out)["findings"]] == ["TE900"]
    assert call("check", "cuda130", "--host-report", host, "--build-only").status == (0 if build else 1)
    assert call("check", "cuda130", "--against", host, "--build-only").status == (0 if build else 1)
    assert call("check", "cuda130", "--against", host).status == (0 if build and run else 1)
    assert call("check", "--against", host).status == 0


@each(
    "driver, target, run, codes",
    [
        ("535.104.12", "cuda121", True, []),
        ("515.76", "cuda117", True, []),
        ("515.76", "cuda118", True, ["TE102"]),
        ("515.76", "cuda121", False, ["TE103"]),
        ("", "cuda121", None, ["TE101"]),
        ("", "cpu", True, []),
    ],
)
def test_the_driver_decides_about_running_alone(
    driver: str, target: str, run: bool | None, codes: list[str], tmp_path: Path
) -> None:
    file = write(tmp_path / "host.json", report(driver, "NVIDIA GeForce GTX 1660 Ti"))
    ended = call("check", target, "--host-report", file, "--json")
    found = [finding["code"] for finding in json.loads(ended.out)["findings"]]
    assert (ended.data["build"], ended.data["run"]) == (True, run)
    assert [code for code in found if code.startswith("TE10")] == codes
    assert ended.status == (0 if run else 1)


def test_it_is_told_line_by_line(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules(monkeypatch, (Scope.RUN, Severity.ERROR), (Scope.BOTH, Severity.NOTE))
    lines = call("check", "cuda130", "--pytorch", "2.9", "--host-report", host).out.splitlines()
    assert lines[:3] == ["build: yes  (cuda130 of PyTorch 2.9 on linux-64)", "run:   no", ""]
    assert lines[3].startswith("error[TE900]: it: is wrong on ")
    assert lines[4:7] == ["  evidence: seen", "  source: us", "  fix: do"]
    assert lines[8].startswith("note[TE901]: it: ")


def test_the_envelope(tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", report("515.76"))
    found = json.loads(call("check", "cuda121", "--pytorch", "2.9", "--host-report", file, "--json").out)
    assert list(found) == ["tenv", "command", "ok", "data", "findings", "error"]
    assert (found["command"], found["ok"], found["error"]) == ("check", False, None)
    assert set(found["data"]) == {"build", "run", "target", "pytorch", "platform", "needs", "lock_problem", "gpus"}
    assert {"target": "cuda121", "pytorch": "2.9"}.items() <= found["data"].items()
    for finding in found["findings"]:
        assert set(finding) == {"code", "severity", "subject", "message", "evidence", "source", "fix"}
        assert finding["severity"] in ("error", "warning", "note")
    fleet = call("check", "--against", file, "--json").data["machines"]
    assert set(fleet[0]["targets"][0]) == {"target", "build", "run", "findings", "gpus"}


def test_a_lock_that_is_not_there_is_told(host: str) -> None:
    assert "without the lock: there is no lock for `cuda130`" in call("check", "cuda130", "--host-report", host).err


def test_the_lock_and_the_platform_of_the_report_are_looked_at(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "manifests" / "cuda130.toml").unlink()
    cases = rules(monkeypatch, (Scope.RUN, Severity.NOTE))
    file = write(tmp_path / "host.json", report("581.15", platform="win-64"))
    data = call("check", "cuda130", "--host-report", file, "--json").data
    assert (data["platform"], data["lock_problem"], data["run"]) == ("win-64", "", True)
    (case,) = cases
    assert case.lock is not None
    assert (case.platform, case.lock.target, case.source) == ("win-64", "cuda130", None)


def checkout(folder: Path) -> Path:
    write(folder / "version.txt", "2.15.0a0\n")
    write(folder / "CMakeLists.txt", "cmake_minimum_required(VERSION 3.27)\nproject(Torch CXX C)\n")
    return folder


def test_the_sources_are_a_version_or_a_checkout(
    here: Path, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = rules(monkeypatch, (Scope.RUN, Severity.NOTE))

    def asked(*words: str) -> Any:
        data = call("check", "cuda130", "--host-report", host, "--json", *words).data
        return data["pytorch"], cases[-1].source and cases[-1].source.root

    folder = checkout(tmp_path / "pytorch")
    assert asked() == ("", None)
    assert asked("--pytorch", "2.9") == ("2.9", None)
    assert asked("--pytorch", "v2.9.1") == ("2.9.1", None)
    assert asked("--pytorch", str(folder)) == ("2.15.0a0", folder)
    assert asked("--pytorch", "../pytorch")[0] == "2.15.0a0"
    assert asked() == ("", None)
    checkout(here)
    assert asked() == ("2.15.0a0", here)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pytorch", "."), "has no version.txt"),
        (("--pytorch", "main"), "neither a folder nor a version"),
        (("--pytorch", "2.9."), "neither a folder nor a version"),
        (("--pytorch", f"2.{'9' * 5000}"), "neither a folder nor a version"),
        (("--host-report", "nosuch.json"), "can't be read"),
        (("--against", "nosuch"), "can't be read"),
        (("--against", "manifests"), "has no host report"),
    ],
)
def test_what_does_not_exist_is_an_error_of_usage(words: tuple[str, ...], said: str, here: Path) -> None:
    ended: Ended = call("check", "cuda130", *words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err


def test_without_a_target_it_is_that_of_the_only_environment(host: str) -> None:
    assert call("check", "--host-report", host).status in (0, 1)


def test_colour_only_where_it_is_wanted(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules(monkeypatch, (Scope.RUN, Severity.ERROR))
    monkeypatch.setattr("tenv.cli.output.is_terminal", lambda _: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31merror[TE900]\x1b[0m: it" in call("check", "cuda130", "--host-report", host).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in call("check", "cuda130", "--host-report", host).out


def test_the_header_of_the_environment_s_own_toolkit_counts(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    (prefix / "lib" / "python3.11" / "site-packages" / "cuda_toolkit-13.0.3.dist-info").mkdir(parents=True)
    write(prefix / "cuda" / "include" / "cuda_runtime_api.h", "")
    machine = from_json(GOOD)
    assert with_environment(machine, prefix) == machine
    file = write(prefix / "cuda" / "include" / "crt" / "host_config.h", "#if __GNUC__ > 10\n")
    toolkits = with_environment(machine, prefix).toolkits
    assert isinstance(toolkits, Fact)
    (own,) = toolkits.value
    assert (own.version, own.found_by) == (Version("13.0.3"), led("the environment"))
    assert own.compilers
    assert (own.compilers.gcc_max, own.compilers.file) == (10, file)
    assert from_json(to_json(with_environment(machine, prefix))).toolkits == toolkits


def test_building_alone_is_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", report(compilers=[]))
    ended = call("check", "cpu", "--host-report", file, "--json")
    assert (ended.data["build"], ended.data["run"], ended.status) == (False, True, 1)
    assert "TE401" in [finding["code"] for finding in json.loads(ended.out)["findings"]]
    assert call("check", "cpu", "--host-report", file, "--build-only").status == 1


@pytest.mark.parametrize("text", ["", "main\n"])
def test_a_checkout_here_that_tells_no_version_is_not_passed_by(text: str, here: Path, host: str) -> None:
    checkout(here)
    (here / "version.txt").write_text(text)
    for command in ("check", "create"):
        ended = call(command, "cuda130", "--host-report", host)
        assert ended.status == 2
        assert "the working folder has PyTorch's CMakeLists.txt, but can't be used as a checkout: " in ended.err
        assert "hint: pass a checkout of PyTorch or a version: `--pytorch 2.9`" in ended.err
    assert "of PyTorch 2.9 on" in call("check", "cuda130", "--host-report", host, "--pytorch", "2.9").out


@pytest.mark.parametrize(
    "version", ["2.9", "v2.9.1", " 2.9.0 ", "2.9.0a0+git1a2b3c4", "2.9.0+cu128", "2.9.0rc1", "2.9.0.dev20251001"]
)
def test_a_pytorch_is_named_as_people_write_it(version: str, host: str) -> None:
    assert "of PyTorch 2.9" in call("check", "cuda130", "--host-report", host, "--pytorch", version).out
