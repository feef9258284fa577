"""What the everyday commands load: a heavy library that creeps in is noticed here, not on somebody's prompt."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import SOURCE, Project, call

HEAVY = {"rattler", "requests", "rich", "filelock", "yaml", "pynvml", "uv", "asyncio", "hypothesis"}


def loaded(folder: Path, *words: str) -> set[str]:
    """Return the modules that a command has loaded when it ends."""
    code = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
        f"sys.argv = ['tenv', *{list(words)!r}]\n"
        "from tenv.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{code}"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
        capture_output=True,
        text=True,
        check=False,
    )
    modules: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(modules)


def test_version_loads_nothing_of_weight(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "--version")
    assert {name for name in modules if name.startswith("tenv")} == {"tenv", "tenv.cli", "tenv.cli.main"}
    assert "click" not in modules


@pytest.mark.parametrize(
    "words", [("activate", "tiny"), ("create", "tiny"), ("env", "tiny"), ("list",), ("hook", "bash")]
)
def test_everyday_commands_load_no_heavy_library(created: Project, words: tuple[str, ...]) -> None:
    assert loaded(created.folder, *words).isdisjoint(HEAVY)


def test_activate_stays_small(created: Project) -> None:
    assert len(loaded(created.folder, "activate", "tiny")) < 330


def test_a_create_with_nothing_to_do_loads_nothing_that_makes_or_judges(created: Project) -> None:
    modules = loaded(created.folder, "create", "tiny")
    assert modules.isdisjoint({"tenv.checks.rules.catalogue", "tenv.host.collect", "tenv.checks.judge"})
    assert modules.isdisjoint(
        {"tenv.install.make", "tenv.verbs.lock", "tenv.rattler_api.install", "tenv.rattler_api.cache"}
    )


def test_check_driver_stays_small(project: Project) -> None:
    modules = loaded(project.folder, "check-driver")
    assert "tenv.checks.driver_report" in modules
    assert modules.isdisjoint(
        {"tenv.host.collect", "tenv.checks.fleet", "tenv.environment.state", "tenv.targets.config"}
    )
    assert modules.isdisjoint({"tenv.facts.cuda_gpu_arch", "importlib.resources", "difflib", "traceback", "tomllib"})
    assert modules.isdisjoint(
        {*HEAVY, "packaging.specifiers", "logging", "tenv.sources.wheels.uv", "tenv.rattler_api.network"}
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux alone")
@pytest.mark.parametrize("words", [["--version"], ["--help"], ["targets"]])
def test_what_cannot_be_written_is_told(project: Project, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tenv", *words],
            cwd=project.folder,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (8, "error[storage]: standard output: No space left on device\n")


def test_a_process_ends_with_the_status_and_all_that_was_said(project: Project) -> None:
    for words, status in ((["targets"], 0), (["show", "nothing"], 2)):
        here, alone = call(*words), project.run(*words)
        assert (alone.status, alone.out, alone.err) == (status, here.out, here.err)
