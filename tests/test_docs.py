"""The README and the docs say what the program does: their commands are run, their list of commands is compared."""

import importlib
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from tenv.cli.main import COMMANDS
from tests.support.each import each
from tests.support.projects import HERE, SOURCE, Ended, Project, call

ROOT = Path(__file__).parent.parent
GUIDES = [page for name in ("guide", "stories") for page in sorted((ROOT / "docs" / name).glob("*.md"))]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *GUIDES]
WITH_COMMANDS = [page for page in PAGES if "```console" in page.read_text()]

SMALL = f"""\
platforms = ["linux-64"]
python = "=={HERE}.*"
[pypi-dependencies]
beta = "*"
[activation.env]
CMAKE_GENERATOR = "Ninja"
CUDA_HOME = "/toolkit"
"""
"""What stands in for the real targets, so that the commands take milliseconds."""


def blocks(page: Path) -> list[str]:
    return re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.fixture
def documented(page: Path, project: Project, seed: Path) -> Project:
    """A project in which the targets of the docs are small; those that the page uses have their environments."""
    store = seed.with_name("small.lock")
    for name in ("cuda130", "cpu"):
        project.manifest.with_name(f"{name}.toml").write_text(SMALL)
        lock = project.lock.with_name(f"{name}.lock")
        if store.is_file():
            lock.parent.mkdir(exist_ok=True)
            lock.write_text(store.read_text().replace("@target@", name))
        else:
            project.ok("lock", name)
            store.write_text(lock.read_text().replace(name, "@target@"))
        if any(name in block for block in blocks(page)):
            project.ok("create", name)
    project.manifest.with_name("typo.toml").write_text('platforms = ["linux-64"]\n\n[pypi-dependencis]\n')
    program = project.folder / "bin" / "tenv"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -m tenv "$@"\n')
    program.chmod(0o755)
    return project


PLAIN = re.compile(r"(?:(?:\w+=\S* )?tenv (?!activate|run|shell|exec)|mkdir )[^|;&<$`*]+")
"""Commands that need neither a shell nor a process of their own."""


def run_here(command: str) -> Ended:
    """Run a plain command in this process, with its variables and its output in a file."""
    words, given = shlex.split(command), {}
    while "=" in words[0]:
        name, _, given[name] = words.pop(0).partition("=")
    if words[0] == "mkdir":
        Path(words[-1]).mkdir(parents="-p" in words)
        return Ended(0, "", "")
    file = words[words.index(">") + 1] if ">" in words else ""
    with mock.patch.dict(os.environ, given):
        ended = call(*itertools.takewhile(lambda word: word != ">", words[1:]))
    if file:
        Path(file).write_text(ended.out)
        return replace(ended, out="")
    return ended


def in_bash(commands: Sequence[str], folder: Path, *, failing: bool) -> Ended:
    script = "set -u\n" + ("" if failing else "set -e\n") + "\n".join(commands)
    path = f"PATH={shlex.quote(str(folder / 'bin'))}:$PATH\n"
    done = subprocess.run(["bash", "-c", path + script], cwd=folder, capture_output=True, text=True, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "page", WITH_COMMANDS, ids=lambda page: f"{page.parent.name}-{page.stem}" if page in GUIDES else page.stem
)
def test_the_commands_of_a_page_work_and_print_what_it_says(page: Path, documented: Project) -> None:
    for block in blocks(page):
        commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        promised = [line for line in block.splitlines() if line and not line.startswith("$ ")]
        assert commands
        failing = any(line.startswith("error[") for line in promised)
        if all(map(PLAIN.fullmatch, commands)):
            ended = [run_here(command) for command in commands]
        else:
            ended = [in_bash(commands, documented.folder, failing=failing)]
        assert failing or not any(one.status for one in ended), ended
        for line in promised:
            assert line in "".join(one.out + one.err for one in ended)


def typed(line: str) -> list[str]:
    """Return the words of the command at the beginning of a line, without those that the shell reads."""
    words = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set(";|&<>()"), words))


@each("page", [ROOT / "README.md", *PAGES])
def test_the_commands_that_are_not_run_are_commands_with_these_options(page: Path) -> None:
    """Blocks of `text` need a checkout, a network or a GPU: their words are parsed."""
    for block in re.findall(r"```(?:text|console)\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.splitlines():
            if re.match(r"(\$ )?tenv [a-z][a-z-]*( |$)", line) and (words := typed(line)[1:]):
                module, name = COMMANDS[words[0]]
                command = getattr(importlib.import_module(f"tenv.cli.{module}"), name)
                command.make_context(words[0], words[1:], help_option_names=["-h", "--help"])  # kept by the command


def test_the_list_of_commands_in_the_docs_is_the_program_s_own() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    shown = text.partition("<!-- help:begin -->\n")[2].partition("<!-- help:end -->")[0]
    printed = call("--help", "--all").out.partition("this message and exit.\n\n")[2].partition("\n\n  Start with")[0]
    assert shown == f"```text\n{printed}\n```\n", "put the commands of `tenv help --all`, with their headings, there"


def test_the_man_page_is_the_program_s_own_help() -> None:
    written = runpy.run_path(str(ROOT / "scripts" / "man_page.py"))["page"]()
    assert (ROOT / "docs" / "tenv.1").read_text() == written, "run `python scripts/man_page.py`"
    assert all(f"\n.SS {name}\n" in written.replace("\\", "") for name in COMMANDS)


def test_every_rule_has_its_page() -> None:
    codes = set()
    for module in (ROOT / "src" / "tenv" / "checks" / "rules").glob("*.py"):
        codes |= set(re.findall(r"\bTE\d{3}\b", module.read_text()))
    of_rules = [page for page in (ROOT / "docs" / "rules").glob("TE*.md") if page.stem[:3] not in ("TE0", "TE8", "TE9")]
    assert codes == {page.stem for page in of_rules}
    for page in of_rules:  # those of a build's log and steps are held by tests/logs and tests/builds
        headings = re.findall(r"^## (\w+)$", page.read_text(), re.MULTILINE)
        assert headings == ["What", "Why", "Example", "Fix", "Sources"], page.name


@each("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES])
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@each("page", [ROOT / "README.md", *PAGES])
def test_links_to_headings_lead_somewhere(page: Path) -> None:
    for file, anchor in re.findall(r"\]\(([^)#:]*\.md|)#([^)]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / file if file else page), f"{file}#{anchor}"


def test_the_site_has_every_page_for_readers() -> None:
    import yaml

    def files(node: object) -> list[str]:
        if isinstance(node, str):
            return [node]
        rows = node.values() if isinstance(node, dict) else node
        return [name for row in rows for name in files(row)]  # type: ignore[attr-defined]

    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    named = files(site["nav"])
    assert len(named) == len(set(named))
    assert [name for name in named if not (ROOT / "docs" / name).is_file()] == []
    assert [page.name for page in GUIDES if str(page.relative_to(ROOT / "docs")) not in named] == []


QUESTIONS = [
    "Ubuntu 20.04 with driver 535: which target?",
    "What after `git pull`?",
    "A compiler error after an hour?",
    "Two checkouts?",
    "No network?",
    "Why not pixi",
    "Go back?",
    "A breakpoint in `randn`?",
    "Share a lock?",
    "Uninstall?",
]


@each("question", QUESTIONS)
def test_the_page_of_questions_answers_with_commands_that_there_are(question: str) -> None:
    text = (ROOT / "docs" / "guide" / "questions.md").read_text()
    assert text.count(f"**{question}") == 1
    answer = text.partition(f"**{question}")[2].partition("\n\n**")[0]
    named = re.findall(r"\btenv ([a-z-]+)(?= |`|$)", answer, re.MULTILINE)
    words = {word for word in named if f"`tenv {word}" in answer or f"\ntenv {word}" in answer}
    assert words <= COMMANDS.keys(), words - COMMANDS.keys()
    assert words or "](" in answer or "`--offline`" in answer or "`.tenv`" in answer


def test_the_messages_of_the_page_on_troubleshooting_are_those_of_the_program() -> None:
    from tenv.core import errors

    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")}
    told = re.findall(r"`error\[([a-z-]+)\]`", (ROOT / "docs" / "guide" / "troubleshooting.md").read_text())
    assert len(told) > 10
    assert set(told) <= codes


def test_the_documented_exit_statuses_are_those_of_the_program() -> None:
    from tenv.core.errors import Exit

    text = (ROOT / "docs" / "commands.md").read_text()
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [int(code) for code in Exit]


def test_the_versions_on_the_pages_of_wheel_targets_are_those_of_the_locks() -> None:
    from tenv.locks.lock_file import read_lock

    for name in ("cuda130", "cuda132"):
        told = (ROOT / "docs" / "targets" / f"{name}.md").read_text()
        lock = read_lock(ROOT / "locks" / f"{name}.lock", name)
        versions = {wheel.name: wheel.version for wheel in lock.wheels["linux-64"]}
        for product, package in (
            ("CUDA", "cuda-toolkit"),
            ("cuDNN", "nvidia-cudnn-cu13"),
            ("cuSPARSELt", "nvidia-cusparselt-cu13"),
            ("NCCL", "nvidia-nccl-cu13"),
        ):
            said = re.search(rf"\b{product} ([\d.]+)", told)
            assert said
            assert f"{versions[package]}.".startswith(f"{said[1].rstrip('.')}."), (name, product)
