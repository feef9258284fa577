"""The tasks of ``docs/guide/tasks.md``: the words of tenv and of uv are run as they stand, in the order of a day."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.support.each import each
from tests.support.fakes import MINORS, make_wheel
from tests.support.projects import HERE, SOURCE, Project, call

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "tasks.md"
DOCUMENTATION = {
    "pixi": "https://pixi.prefix.dev/latest/reference/cli/pixi/",
    "conda": "https://docs.conda.io/projects/conda/en/stable/commands/",
}
NOTHING = "\N{EN DASH}"
SHOWN_PYTHON = "3.12"
"""The minor that the page names, for which the test takes its own."""
WAIT = 60

CPU = f"""\
platforms = ["linux-64", "linux-aarch64", "win-64"]
python = ">={MINORS[0]},<3.15"
[pypi-dependencies]
beta = "*"
"""


@dataclass(frozen=True)
class Task:
    """A row of the page: its number, what it is about, and the cell of each tool."""

    number: int
    about: str
    cells: dict[str, str]

    def words(self, tool: str) -> str:
        """Return what to type; empty where the tool has nothing."""
        found = re.search(r"`(.+)`", self.cells[tool])
        return found[1].replace(SHOWN_PYTHON, HERE) if found else ""


def read_tasks() -> list[Task]:
    """Return the rows of the page."""
    tools = ("pixi", "uv", "conda", "tenv")
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0].isdigit():
            found.append(Task(int(cells[0]), cells[1], dict(zip(tools, cells[2:], strict=True))))
    return found


TASKS = read_tasks()


def test_there_are_sixty_tasks_and_each_has_its_number() -> None:
    assert len(TASKS) >= 60
    assert [task.number for task in TASKS] == list(range(1, len(TASKS) + 1))
    assert all(cell.startswith(("`", "[`", NOTHING)) for task in TASKS for cell in task.cells.values())


@each("tool", DOCUMENTATION)
def test_the_words_of_a_peer_link_to_the_page_of_their_command(tool: str) -> None:
    for task in TASKS:
        if not (words := task.words(tool)):
            continue
        address = re.search(r"\]\((.+)\)$", task.cells[tool])
        assert address, task
        verbs = [word for word in re.findall(r"[a-z-]+", words.partition(tool)[2]) if not word.startswith("-")]
        path = address[1].removeprefix(DOCUMENTATION[tool])
        assert address[1].startswith(DOCUMENTATION[tool]), task
        named = [part for part in re.sub(r"(/|\.html)$", "", path).split("/") if part not in ("", "index")]
        assert named == verbs[: len(named)], task


def test_what_tenv_lacks_has_a_reason() -> None:
    reasons = PAGE.read_text().partition("## Where a peer does better")[2]
    explained = {
        int(number) for row in re.findall(r"^- \*\*([\d, ]+):", reasons, re.MULTILINE) for number in row.split(",")
    }
    lacking = {task.number for task in TASKS if not task.words("tenv")}
    assert lacking <= explained


class Day:
    """The folder in which the words of a tool are run, by bash."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.folder = project, folder
        for name, versions in {"numpy": ("2.0", "2.1"), "scipy": ("1.0",)}.items():
            for version in versions:
                make_wheel(project.index.folder, name, version)
        programs = project.folder.with_name("programs")
        programs.mkdir()
        (programs / "uv").symlink_to(find_uv_bin())
        (programs / "tenv").write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -P -m tenv "$@"\n')
        (programs / "tenv").chmod(0o755)
        self.variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "SHELL": "/bin/bash"}
        self.variables |= {"UV_PYTHON": f"python{HERE}", "UV_PYTHON_DOWNLOADS": "never"}

    def run(self, words: str) -> "subprocess.CompletedProcess[str]":
        """Run words; nothing is read from the terminal."""
        return subprocess.run(
            ["bash", "-c", words],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT,
        )

    def status(self, words: str) -> tuple[int, str]:
        """Run words and return the status and what was printed; a plain command of tenv is run in this process."""
        if (
            words.startswith("tenv ")
            and not re.match(r"tenv (run|shell|gdb)\b", words)
            and not set("$;<|") & set(words)
        ):
            ended = call(*shlex.split(words)[1:])
            return ended.status, ended.out + ended.err
        done = self.run(words)
        return done.returncode, done.stdout + done.stderr

    def failures(
        self, tool: str, before: Mapping[str, Callable[[], object]], elsewhere: Sequence[str] = ()
    ) -> list[str]:
        """Run every row of a tool; return those that fail.

        Args:
            tool: The tool.
            before: By the words of a row, what is to be done before.
            elsewhere: Words of rows that need another server: they must fail here.
        """
        found = []
        for task in TASKS:
            if words := task.words(tool):
                before.get(words, list)()
                status, said = self.status(words)
                if (status != 0) is not any(part in words for part in elsewhere):
                    found.append(f"{task.number} {words}: {status}\n{said}")
        return found


@pytest.mark.long
def test_the_words_of_tenv_do_what_the_page_says(project: Project) -> None:
    (project.folder / "manifests" / "cpu.toml").write_text(CPU)
    project.manifest.unlink()
    day = Day(project, project.folder)
    identity = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    day.variables |= {**identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    assert day.run("git init -q && tenv lock -q cpu").returncode == 0
    before = {
        "tenv update mine": lambda: make_wheel(project.index.folder, "numpy", "2.2"),
        "tenv diff locks/mine.lock": lambda: day.run("git add manifests locks && git commit -qm locks"),
    }
    failed = day.failures("tenv", before, elsewhere=("example.com", "./it"))
    assert not failed, "\n".join(failed)


@pytest.mark.long
def test_the_words_of_uv_do_what_the_page_says(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "uv-project"
    folder.mkdir()
    day = Day(project, folder)
    failed = day.failures("uv", {}, elsewhere=("example.com", "ruff", "./it"))
    assert not failed, "\n".join(failed)
