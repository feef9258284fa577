"""What the everyday commands load: a heavy library that creeps in is noticed here, not on somebody's prompt."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.each import each
from tests.support.projects import SOURCE, Project, call

HEAVY = {
    "rattler",
    "requests",
    "rich",
    "yaml",
    "pynvml",
    "uv",
    "asyncio",
    "hypothesis",
    "tomlkit",
}
"""Libraries that take tens of milliseconds to import."""
SOLVING = {"tenv.verbs.lock", "tenv.sources.wheels.uv", "tenv.rattler_api"}
JUDGING = {"tenv.checks.judge", "tenv.checks.rules.catalogue", "tenv.checks.fleet", "tenv.host.collect"}
READING = {"tomli", "tenv.targets.manifest", "tenv.targets.manifest_file", "tenv.locks"}
"""What reads manifests and locks; an environment that has the files of its lock is used without."""
INSTALLING = {"tenv.install.make", "tenv.sources.job", "tenv.toolchain.cuda_folder", "tenv.toolchain.smoke_tests"}
"""What lays files. `tenv.toolchain.discover` is small: it finds the Python of the environment."""
TABLES = {"tenv.facts.cuda_gpu_arch", "tenv.facts.pytorch_build", "tenv.facts.build_failures"}


class Allowed(NamedTuple):
    """What a command may load.

    Attributes:
        words: The command.
        modules: How many modules at most, Python's own included.
        never: Modules and packages that it must not load.
    """

    words: tuple[str, ...]
    modules: int
    never: set[str]


COMMANDS = [
    Allowed(("--version",), 45, {*HEAVY, "click", "tenv.cli", "tenv.core.errors", "tenv.targets", "tenv.verbs"}),
    Allowed(("--help",), 180, {*HEAVY, "tenv.core.process", "tenv.verbs", "tenv.host", "tenv.facts"}),
    Allowed(("list",), 190, {*HEAVY, *SOLVING, *READING, *JUDGING, *INSTALLING, *TABLES, "tenv.interop"}),
    Allowed(
        ("run", "tiny", "--", "true"), 215, {*HEAVY, *SOLVING, *READING, *JUDGING, *INSTALLING, *TABLES, "tenv.interop"}
    ),
    Allowed(("activate", "tiny"), 200, {*HEAVY, *SOLVING, *READING, *JUDGING, *INSTALLING, *TABLES, "tenv.interop"}),
    Allowed(("hook", "bash"), 190, {*HEAVY, *SOLVING, *JUDGING, *INSTALLING, *TABLES, "tenv.interop"}),
    Allowed(("env", "tiny"), 190, {*HEAVY, *SOLVING, *READING, *JUDGING, *INSTALLING, *TABLES, "tenv.interop"}),
    Allowed(
        ("show", "tiny"),
        315,
        {*(HEAVY - {"yaml"}), *JUDGING, *TABLES, "tenv.interop", "tenv.verbs.lock", "tenv.install.make"},
    ),
    Allowed(
        ("create", "tiny"), 275, {*HEAVY, *JUDGING, "tenv.install.make", "tenv.verbs.lock", "tenv.rattler_api.install"}
    ),
    Allowed(
        ("check-driver", "tiny"),  # judges it with its lock, as `check` does
        315,  # 3.13 has three more than 3.11
        {*(HEAVY - {"yaml"}), *SOLVING, *INSTALLING, "tenv.checks.fleet", "tenv.facts.build_failures", "tenv.interop"},
    ),
]


def loaded(folder: Path, *words: str) -> set[str]:
    """Return the modules that a command imports until it ends or becomes another program."""
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); sys.argv = {['tenv', *words]!r}\n"
        "from tenv.__main__ import run; run()"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", "-c", code],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")]
    modules = {row[-1].strip() for row in rows[1:]}
    assert "tenv.__main__" in modules, done.stderr
    return modules


@each("allowed", COMMANDS)
def test_what_a_short_command_may_load(created: Project, allowed: Allowed) -> None:
    modules = loaded(created.folder, *allowed.words)
    found = {
        name for name in modules if any(name == banned or name.startswith(f"{banned}.") for banned in allowed.never)
    }
    assert found == set()
    assert len(modules) <= allowed.modules
    assert {"check-driver": "tenv.checks.judge_targets", "run": "tenv.verbs.run"}.get(
        allowed.words[0], "tenv"
    ) in modules


def test_version_loads_nothing_of_tenv_but_its_entry(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "--version")
    assert {name for name in modules if name.startswith("tenv")} == {
        "tenv",
        "tenv.__main__",
        "tenv.core",
        "tenv.core.source_commit",
    }


def test_a_process_ends_with_the_status_and_all_that_was_said(project: Project) -> None:
    for words, status in ((["targets"], 0), (["show", "nothing"], 2)):
        here, alone = call(*words), project.run(*words)
        assert (alone.status, alone.out, alone.err) == (status, here.out, here.err)
