"""The steps of a `create`: run in turn, shown by name, and named by what fails in them."""

import io
import json
import sys
from typing import Any, cast

import pytest

from tenv.cli.output import Voice
from tenv.cli.progress_bar import Terminal
from tenv.core.errors import NetworkError, TenvError
from tenv.core.progress import Silent
from tenv.install import make
from tenv.install.creation import Creation
from tenv.install.make import Step, run_steps
from tests.support.fakes import Fault
from tests.support.projects import Project, call


class Watched(Silent):
    """Progress that keeps the steps that it hears of."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def phase(self, name: str) -> None:
        self.steps.append(name)


class Stub:
    """As much of a job as steps need."""

    def __init__(self) -> None:
        self.context = self
        self.target = self
        self.name = "tiny"
        self.progress = Watched()
        self.done: list[str] = []


@pytest.fixture
def job() -> Any:
    return cast("Creation", Stub())


def test_steps_run_in_turn_where_they_are_needed(job: Any) -> None:
    steps = [
        Step("reading", lambda job: cast("Any", job).done.append("r")),
        Step("resting", lambda job: cast("Any", job).done.append("x"), needed=lambda _: False),
        Step("writing", lambda job: cast("Any", job).done.append("w")),
    ]
    run_steps(job, steps)
    assert job.done == ["r", "w"]
    assert job.progress.steps == ["reading tiny", "writing tiny"]


@pytest.mark.parametrize("named", [True, False])
def test_an_error_names_its_step_and_ends_the_rest(job: Any, named: bool) -> None:
    def fail(_: Creation) -> None:
        raise NetworkError("nobody answers")

    steps = [Step("reading", fail, named=named), Step("writing", lambda job: cast("Any", job).done.append("w"))]
    with pytest.raises(TenvError) as caught:
        run_steps(job, steps)
    assert (caught.value.step, job.done) == ("reading" if named else "", [])


def test_the_steps_of_an_environment_have_names_of_their_own() -> None:
    names = [step.name for step in make.STEPS]
    assert len(names) == len(set(names)) > 3


def test_a_download_that_fails_names_the_step(locked: Project, impatient: None) -> None:
    with locked.index.failing(Fault.ERROR):
        ended = call("create", "tiny", "--json")
    assert json.loads(ended.out)["error"]["step"] == "installing"
    assert "\nstep: installing\n" in ended.err


def test_a_lock_that_can_not_be_made_names_the_step(project: Project, impatient: None) -> None:
    with project.index.failing(Fault.ERROR, "simple"):
        assert "\nstep: locking\n" in project.fails(6, "network", "create", "tiny")


def test_a_lock_that_is_not_there_is_no_failure_of_a_step(project: Project) -> None:
    assert "step" not in json.loads(call("create", "tiny", "--locked", "--json").out)["error"]


def test_a_log_has_no_line_for_a_step_that_is_over_at_once(locked: Project) -> None:
    assert [line for line in locked.ok("create", "tiny").err.splitlines() if line.endswith("…")] == [
        "downloading and installing …"
    ]


def test_a_terminal_shows_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr("tenv.cli.progress_bar.is_terminal", lambda _: True)
    with Terminal(Voice()) as terminal:
        terminal.phase("planning tiny")
        assert terminal._bars is not None
        assert [task.description for task in terminal._bars.tasks] == ["planning tiny"]
        terminal.step("downloading conda packages", 3)
        assert [task.description for task in terminal._bars.tasks] == ["downloading conda packages"]
