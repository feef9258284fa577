"""`tenv bisect-env` in a small git repository: git finds the commit that is at fault, and skips what is not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.builds.build_job import BuildStepName, Done, StepReport, build_finding
from tenv.builds.logged_run import SIGNAL_SOURCE
from tenv.checks.rules.interface import Finding, Severity
from tenv.verbs.bisect_env import is_of_commit
from tenv.verbs.build import Built
from tests.builds.conftest import Workshop
from tests.support.each import each
from tests.support.projects import SOURCE, Ended, call
from tests.support.small_torch import make_git

OPS = "aten/src/ATen/native/BinaryOps.cpp"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    git(folder, "add", "-A", name)
    git(folder, "commit", "-qm", name)
    return git(folder, "rev-parse", "HEAD")


def bisect(workshop: Workshop, *words: str) -> Ended:
    return call("bisect-env", "tiny", "--pytorch", str(workshop.checkout), *words)


@pytest.fixture
def repository(workshop: Workshop) -> Workshop:
    """The checkout with a history."""
    make_git(workshop.checkout)
    return workshop


@pytest.mark.long
def test_the_status_is_that_of_the_command_in_the_environment(repository: Workshop) -> None:
    code = "import sys, torch; sys.exit(7 if torch.__version__ == '2.9.0a0' else 1)"
    ended = bisect(repository, "--", "python", "-c", code)
    assert ended.status == 7, ended.err
    assert "with tiny: the command ended with status 7" in ended.err
    ended = bisect(repository)
    assert (ended.status, "builds and imports" in ended.err) == (0, True)


@pytest.mark.long
def test_what_fails_by_the_commit_is_bad_and_by_the_machine_is_skipped(
    repository: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (repository.checkout / OPS).read_text()
    commit(repository.checkout, OPS, source + "\nthis is no C++;\n")
    ended = bisect(repository)
    assert (ended.status, "failed by the commit" in ended.err) == (1, True), ended.err
    commit(repository.checkout, OPS, source)
    compiler = repository.project.folder / "bin" / "g++"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    ended = bisect(repository)
    assert (ended.status, "failed by the toolchain or the machine" in ended.err) == (125, True), ended.err


@pytest.mark.long
def test_errors_before_the_build_are_skipped(repository: Workshop, tmp_path: Path) -> None:
    assert call("bisect-env", "--pytorch", str(tmp_path)).status == 125
    assert call("bisect-env", "nosuch", "--pytorch", str(repository.checkout)).status == 125
    ended = call("bisect-env", "nosuch", "--pytorch", str(repository.checkout), "--json")
    assert (ended.status, json.loads(ended.out)["error"]["code"]) == (125, "unknown-target")
    ended = bisect(repository, "--", "no-such-program")
    assert (ended.status, "no program `no-such-program`" in ended.err) == (125, True)
    (repository.checkout / ".gitmodules").write_text('[submodule "gone"]\n\tpath = gone\n\turl = /no/such/place\n')
    git(repository.checkout, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},gone")
    ended = bisect(repository)
    assert (ended.status, "git submodule update failed" in ended.err) == (125, True)


def failed(*rows: Finding) -> Built:
    step = StepReport(BuildStepName.BUILD, Done(rows), 1.0)
    return Built((step,), "tiny", "", Path(), "", {}, {})


def error(code: str, source: str = "", severity: Severity = Severity.ERROR) -> Finding:
    return build_finding(code, "a", "b", "c", source, "d", severity)


@each(
    "rows, of_commit",
    [
        ((error("TE961"),), True),
        ((error("TE971"), error("TE933", severity=Severity.NOTE)), True),
        ((error("TE961", SIGNAL_SOURCE),), False),
        ((Finding("TE814", Severity.ERROR, "a", "b", "c", "d", "e"),), False),
        ((error("TE961"), error("TE951")), False),
        ((error("TE921"),), False),
    ],
)
def test_whose_fault_an_error_is(rows: tuple[Finding, ...], of_commit: bool) -> None:
    assert is_of_commit(failed(*rows)) is of_commit


@pytest.mark.long
def test_git_finds_the_commit(repository: Workshop) -> None:
    checkout = repository.checkout
    source = (checkout / OPS).read_text()
    good = git(checkout, "rev-parse", "HEAD")
    commit(checkout, "README", "one")
    commit(checkout, OPS, source + "\n// no change\n")
    bad = commit(checkout, "torch/flag.py", "value = 'broken'\n")
    commit(checkout, "README", "two")
    git(checkout, "bisect", "start", "HEAD", good)
    test = checkout.parent / "try.py"
    test.write_text(
        "import torch, pathlib, sys\nsys.exit((pathlib.Path(torch.__file__).parent / 'flag.py').exists())\n"
    )
    command = [sys.executable, "-m", "tenv", "bisect-env", "tiny", "--", "python", str(test)]
    run = f"PYTHONPATH={SOURCE} {' '.join(command)}"
    said = git(checkout, "bisect", "run", "sh", "-c", run)
    assert f"{bad} is the first bad commit" in said
