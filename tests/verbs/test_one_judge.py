"""`tenv check`, `tenv check-driver` and `tenv create auto` give one answer about a host and a target."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tenv.checks import judge
from tenv.checks.before_create import look_around
from tenv.checks.choose_target import choose
from tenv.checks.host_options import HostOptions
from tenv.checks.judge import Answers
from tenv.checks.rules.interface import Case, Rule
from tenv.core.errors import NoTargetError
from tenv.host.report_json import to_json
from tenv.project.context import Context
from tests.support.check_hosts import write
from tests.support.pairs import BUILDING, Pair, pairs
from tests.support.projects import Project, call

FAST = 100


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[Rule]:
    """How often each rule had a finding."""
    hits: Counter[Rule] = Counter()
    whole = judge.ask

    def ask(case: Case, rules: Iterable[Rule]) -> Answers:
        found = whole(case, rules)
        hits.update(rule for rule, findings in found.found.items() if findings)
        return found

    monkeypatch.setattr(judge, "ask", ask)
    return hits


def answers(*words: str) -> tuple[Any, ...]:
    """Return both verdicts on the only target, the same for each GPU, and the errors."""
    ended = call(*words, "--json")
    whole = json.loads(ended.out)
    data = whole["data"]["targets"][0] if words[0] == "check-driver" else whole["data"]
    errors = sorted({finding["code"] for finding in whole["findings"] if finding["severity"] == "error"})
    return data["build"], data["run"], data["gpus"], errors


def compare(pair: Pair, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Return the one answer of both commands about a pair."""
    file = pair.write(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", pair.case.arch_list)
    checked = answers("check", "t", "--host-report", file)
    assert answers("check-driver", "t", "--host-report", file) == checked, pair.number
    build = call("check-driver", "t", "--host-report", file, "--build-only").status
    assert build == (0 if checked[0] is True else 1), pair.number
    return checked


def test_both_commands_agree_about_random_pairs(
    asked: Counter[Rule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [compare(pair, tmp_path / str(pair.number), monkeypatch) for pair in pairs(FAST)]
    assert [rule.title for rule in BUILDING if not asked[rule]] == []
    assert {build for build, *_ in found} >= {True, False}
    assert {run for _, run, *_ in found} == {True, False, None}


@pytest.mark.long
def test_both_commands_agree_about_two_thousand_random_pairs(
    asked: Counter[Rule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [compare(pair, tmp_path / str(pair.number), monkeypatch) for pair in pairs(2000, seed=34)]
    assert {build for build, *_ in found} == {run for _, run, *_ in found} == {True, False, None}
    assert min(asked[rule] for rule in BUILDING) >= 10


def compare_shipped(pair: Pair, folder: Path) -> str:
    """Compare the answers about all targets on a host; return the target of `create auto`, or an empty string."""
    file = write(folder / f"{pair.number}.json", to_json(pair.case.host))
    listed = call("check-driver", "--host-report", file, "--json").data["targets"]
    for row in listed:
        checked = call("check", row["target"], "--host-report", file, "--json").data
        assert [checked[key] for key in ("build", "run", "gpus")] == [row[key] for key in ("build", "run", "gpus")]
    try:
        around = look_around(Context(), "", HostOptions(host_report=file))
        chosen = choose(Context(), around, lambda _: None).target
    except NoTargetError:
        return ""
    assert next(row["build"] for row in listed if row["target"] == chosen) is True
    return chosen


def test_all_commands_agree_about_the_built_in_targets(tmp_path: Path) -> None:
    chosen = [compare_shipped(pair, tmp_path) for pair in list(pairs(FAST))[:60:30]]
    assert any(chosen)


@pytest.mark.long
def test_all_commands_agree_about_the_built_in_targets_on_many_hosts(tmp_path: Path) -> None:
    chosen = [compare_shipped(pair, tmp_path) for pair in pairs(FAST, seed=35)]
    assert len({*chosen}) > 3


def test_the_checkout_and_the_environment_count_in_both(project: Project) -> None:
    project.manifest.write_text(f'{project.manifest.read_text()}[activation.env]\nCUDA_HOME = "/toolkit"\n')
    for name, text in (
        ("version.txt", "2.9.0a0\n"),
        ("CMakeLists.txt", "project(Torch CXX C)\n"),
        ("build/CMakeCache.txt", f"CUDA_TOOLKIT_ROOT_DIR:PATH={project.folder}\n"),
    ):
        (project.folder / name).parent.mkdir(exist_ok=True)
        (project.folder / name).write_text(text)
    for made in (False, True):
        if made:
            project.ok("create", "tiny", "--no-check")
        checked = answers("check", "tiny")
        assert answers("check-driver", "tiny") == checked
        assert ("TE612" in checked[-1]) is made
        listed = call("check-driver", "--json").data["targets"]
        assert checked[:3] == next((row["build"], row["run"], row["gpus"]) for row in listed if row["target"] == "tiny")
