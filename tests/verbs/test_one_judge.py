"""`check`, `check-driver`, `create auto`, and the target step of `plan` and `build` give one answer about a target."""

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tenv.builds import checkout_step
from tenv.builds.build_job import BuildJob, BuildRequest
from tenv.builds.checkout_step import check_checkout, check_target
from tenv.checks import judge, judge_targets
from tenv.checks.before_create import look_around
from tenv.checks.choose_target import _gpu, choose
from tenv.checks.host_options import HostOptions
from tenv.checks.judge import Answers
from tenv.checks.judge_targets import check, check_driver
from tenv.checks.rules.checkout import OF_CHECKOUT
from tenv.checks.rules.interface import Case, Rule, Scope, Severity
from tenv.core.errors import NoTargetError
from tenv.host.report_json import to_json
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.verbs.build import checkout_context
from tests.support.check_hosts import write
from tests.support.pairs import BUILDING, Pair, pairs
from tests.support.projects import Project, call
from tests.support.small_torch import make_checkout

FAST, MACHINES = 160, 120
"""Pairs of the fast tests: more than there are cases of rules about building, so that each begins one."""


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
    if pair.number % 4 == 0:
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


FEW = ("cpu", "cuda117", "cuda126", "cuda130")
"""Targets without CUDA, and with each major of CUDA."""


class Commands:
    """What `check`, `check-driver` and `create auto` decide about built-in targets, in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...] = ()) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PWD", str(folder))
        monkeypatch.setattr(judge, "read_lock", cache(read_lock))  # a built-in target stays as it is, and its lock
        monkeypatch.setattr(judge_targets, "newest_toolkits", lambda _: ())  # a toolkit alone is judged by no other
        self.folder, self.context = folder, Context()
        self.names = names or tuple(self.context.places.names())
        places = type(self.context.places)
        found = cache(self.context.places.find)
        monkeypatch.setattr(places, "names", lambda _: self.names)
        monkeypatch.setattr(places, "find", lambda _, name: found(name))

    def agree(self, pair: Pair) -> str:
        """Compare the decisions about a host; return the target of `create auto`, or an empty string."""
        options = HostOptions(host_report=write(self.folder / f"{pair.number}.json", to_json(pair.case.host)))
        checked = {row.target: row for row in check(self.context, self.names, "", options)}
        for row in check_driver(self.context, None, options).targets:
            assert row == checked[row.target], pair.number
        try:
            choice = choose(self.context, look_around(self.context, "", options), lambda _: None)
            ranking, taken = choice.to_json()["ranking"], choice.target
        except NoTargetError as error:
            ranking, taken = error.data["auto"]["ranking"], ""
        with_gpu, _ = _gpu(pair.case.host)
        for row in ranking:
            found = checked[row["target"]]
            fits = found.build is True and found.run is True
            assert fits or not row["suits"], (pair.number, row)
            assert row["suits"] or not fits or (row["cuda"] and not with_gpu), (pair.number, row)
        return taken


class Builds:
    """What the target step of `plan` and `build` decides for a checkout, with a host in place of this machine."""

    def __init__(self, commands: Commands, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands, self.monkeypatch = commands, monkeypatch
        self.checkout = make_checkout(folder / "pytorch")

    def agree(self, pair: Pair) -> tuple[str, bool]:
        """Compare the step with `check` and `create auto`; return a target, and whether its build is refused."""
        commands, asked = (
            self.commands,
            HostOptions(host_report=write(self.checkout / "h.json", to_json(pair.case.host))),
        )
        around = look_around(commands.context, str(self.checkout), asked)
        self.monkeypatch.setattr(checkout_step, "look_around", lambda *_: around)
        try:
            auto = choose(commands.context, around, lambda _: None).target
        except NoTargetError:
            auto = ""
        named = commands.names[(pair.number // 4) % len(commands.names)]  # each quarter of the machines has all
        for name in (None, named):
            job = BuildJob(
                checkout_context(commands.context, self.checkout), BuildRequest(self.checkout, name), dry=True
            )
            check_checkout(job)
            if name is None and not auto:
                with pytest.raises(NoTargetError):
                    check_target(job)
                continue
            done = check_target(job)
            assert job.target.name == (name or auto), pair.number
            (checked,) = check(commands.context, (job.target.name,), str(self.checkout), asked)
            wrong = {found.code for found in checked.about(Scope.BUILD, Scope.BOTH) if found.severity is Severity.ERROR}
            refused = {found.code for found in done.findings if found.severity is Severity.ERROR}
            assert refused == wrong - {*OF_CHECKOUT}, (pair.number, job.target.name)
        return named, bool(refused)

    def whole(self, pair: Pair) -> None:
        """Compare the commands themselves."""
        name, refused = self.agree(pair)
        words = (name, "--pytorch", str(self.checkout), "--json")
        for command in ("plan", *(["build"] if refused else [])):
            ended = call(command, *words)
            steps = {row["name"]: row["ok"] for row in json.loads(ended.out)["data"]["steps"]}
            assert (steps["target"], "create" in steps) == (not refused, not refused), (pair.number, command)
            assert ended.status == 1 or not refused, (pair.number, command)


@pytest.mark.long  # the fast one is of both commands
def test_the_target_step_of_a_build_agrees_about_random_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = Builds(Commands(tmp_path, monkeypatch, FEW), tmp_path, monkeypatch)
    chosen = list(pairs(MACHINES))
    assert len({builds.agree(pair) for pair in chosen[::6]}) > len(FEW)
    for pair in chosen[1::24]:
        builds.whole(pair)


@pytest.mark.long
@pytest.mark.parametrize("quarter", range(4))
def test_the_target_step_of_a_build_agrees_about_five_hundred_random_machines(
    quarter: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = Builds(Commands(tmp_path, monkeypatch), tmp_path, monkeypatch)
    found = {builds.agree(pair) for pair in list(pairs(500, seed=35))[quarter::4]}
    assert len({name for name, _ in found}) == len(builds.commands.names)


def test_all_commands_agree_about_forty_random_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch, FEW)
    assert len({commands.agree(pair) for pair in list(pairs(MACHINES))[1::3]}) > 2


@pytest.mark.long
@pytest.mark.parametrize("quarter", range(4))
def test_all_commands_agree_about_five_hundred_random_machines(
    quarter: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(tmp_path, monkeypatch)
    assert len({commands.agree(pair) for pair in list(pairs(500, seed=35))[quarter::4]}) > 2


def test_the_program_and_the_process_agree_about_a_built_in_target(tmp_path: Path) -> None:
    (pair,) = list(pairs(31))[30:]
    file = write(tmp_path / "host.json", to_json(pair.case.host))
    listed = {row["target"]: row for row in call("check-driver", "--host-report", file, "--json").data["targets"]}
    checked = call("check", "cuda130", "--host-report", file, "--json").data
    assert [checked[key] for key in ("build", "run", "gpus")] == [
        listed["cuda130"][key] for key in ("build", "run", "gpus")
    ]


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
