"""Each way in which an environment becomes older than its lock, and what every command and hook then says.

The table and the sentences of ``docs/guide/stale.md`` are what this prints.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tenv.activation.shells import fish, posix
from tenv.targets.search import find_places
from tests.support.fakes import make_wheel
from tests.support.projects import SOURCE, Ended, Project, call

NOTHING = "\N{EN DASH}"
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "stale.md"

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "list": ("list",),
    "list --check": ("list", "--check"),
    "show": ("show", "tiny"),
    "activate": ("activate", "tiny", "--shell", "bash"),
    "run": ("run", "tiny", "--", "true"),
    "verify": ("verify", "tiny", "--no-probes"),
    "run --locked": ("run", "--locked", "tiny", "--", "true"),
}


class Checkout:
    """A project in a git repository, with the hooks of two shells."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.git("init", "-q", "-b", "main")
        self.commit("first")
        tenv = project.folder / "tenv"
        tenv.write_text(f'#!/bin/sh\necho "$@" >>"{project.folder}/asked"\nexec {sys.executable} -P -m tenv "$@"\n')
        tenv.chmod(0o755)
        for shell, module in (("bash", posix), ("fish", fish)):
            text = module.render_hook([str(tenv)], find_places().data / "envs")
            (project.folder / f"hook.{shell}").write_text(text)

    def git(self, *words: str, fails: bool = False) -> None:
        """Run git with settings of its own; `fails` where a conflict is wanted."""
        who = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": "true"}
        done = subprocess.run(
            ["git", *words],
            cwd=self.project.folder,
            env={**os.environ, **who, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr

    def commit(self, message: str) -> None:
        """Commit the manifest and the lock."""
        self.git("add", "manifests", "locks")
        self.git("commit", "-qm", message)

    def hook(self, shell: str, *before: str) -> Ended:
        """Activate in a shell with its hook; its output is the number of times that tenv was asked."""
        program = shutil.which(shell, path="/usr/bin:/bin")
        assert program, f"{shell} is not installed"
        asked = self.project.folder / "asked"
        asked.write_text("")
        done = subprocess.run(
            [*before, program, "-c", f"source '{self.project.folder}/hook.{shell}'; tenv activate tiny"],
            cwd=self.project.folder,
            env={**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(done.returncode, str(len(asked.read_text().splitlines())), done.stderr)


@pytest.fixture
def checkout(created: Project) -> Checkout:
    """The project in a repository: `first` is the lock of the environment, `newer` has another alpha."""
    made = Checkout(created)
    make_wheel(created.index.folder, "alpha", "3.0")
    made.git("tag", "first")
    made.git("checkout", "-qb", "newer")
    created.ok("update", "tiny")
    made.commit("alpha 3.0")
    made.git("checkout", "-q", "main")
    return made


def pull(made: Checkout) -> None:
    made.git("pull", "-q", ".", "newer")


def rebase(made: Checkout) -> None:
    made.git("checkout", "-qb", "mine", "first")
    (made.project.folder / "manifests" / "note.txt").write_text("a commit of mine\n")
    made.commit("mine")
    made.git("rebase", "-q", "newer")


def conflict(made: Checkout) -> None:
    made.git("checkout", "-qb", "mine", "first")
    made.project.lock.write_text(made.project.lock.read_text().replace("alpha-1.0", "alpha-2.0"))
    made.commit("an edit of the lock")
    made.git("rebase", "-q", "newer", fails=True)


def checkout_of_another(made: Checkout) -> None:
    made.git("checkout", "-q", "newer")


def there_and_back(made: Checkout) -> None:
    made.git("checkout", "-q", "newer")
    made.git("checkout", "-q", "main")


def deleted(made: Checkout) -> None:
    made.project.lock.unlink()


def of_another_tenv(made: Checkout) -> None:
    text = made.project.lock.read_text()
    made.project.lock.write_text(re.sub(r"(\n  schema: )\d+", r"\g<1>99", text))


def for_windows_alone(made: Checkout) -> None:
    made.project.widen_platforms()
    made.project.ok("lock", "tiny")
    head, _, tail = made.project.lock.read_text().partition("  wheels:\n")
    before, _, windows = tail.partition("    win-64:\n")
    made.project.lock.write_text(f"{head}  wheels:\n{before}    win-64:\n{windows.replace('beta', 'other')}")


WAYS: Mapping[str, Callable[[Checkout], None]] = {
    "nothing changed": lambda _: None,
    "`git pull` brings a new lock": pull,
    "`git checkout` of a branch with another lock": checkout_of_another,
    "`git checkout` there and back": there_and_back,
    "`git rebase` onto a new lock": rebase,
    "`git rebase` stops: conflict in the lock": conflict,
    "the lock changes for win-64 alone": for_windows_alone,
    "the lock is deleted": deleted,
    "the lock has another schema": of_another_tenv,
}


def word(ended: Ended) -> str:
    """Return what a command says of the environment, as one word, with its status where that is not 0."""
    said = ended.out + ended.err
    unknown = "is unknown: " in said or "(ready: " in said or "can't be compared" in said
    found = "unknown" if unknown else "stale" if "stale" in said else NOTHING
    return found if ended.status == 0 else f"{found}, {ended.status}"


def row(made: Checkout) -> tuple[dict[str, str], str]:
    """Return the cells of one way, and the sentence of `activate`."""
    cells = {
        name: word(call(*words) if words[0] != "run" else made.project.ran(*words)) for name, words in COMMANDS.items()
    }
    for shell in ("bash", "fish"):
        first, again = made.hook(shell), made.hook(shell)
        assert (first.status, again.status) == (0, 0), first.err + again.err
        cells[f"{shell} hook"] = f"{word(again)} ({again.out})"
    said = [line for line in made.project.ran(*COMMANDS["activate"]).err.splitlines() if line]
    return cells, "\n".join(said).replace(str(made.project.folder), "~/pytorch")


@pytest.mark.long
def test_the_page_has_the_answer_of_every_command(created: Project, checkout: Checkout) -> None:
    rows, said = {}, {}
    keep = created.folder.with_name("kept")
    shutil.copytree(created.folder, keep, symlinks=True)
    for way, do in WAYS.items():
        do(checkout)
        rows[way], said[way] = row(checkout)
        for name in (".git", "manifests", "locks"):
            shutil.rmtree(created.folder / name)
            shutil.copytree(keep / name, created.folder / name)
        lock = keep / "locks" / "tiny.lock"
        shutil.copy2(lock, created.lock)
    names = [*COMMANDS, "bash hook", "fish hook"]
    table = ["| | " + " | ".join(f"`{name}`" if "hook" not in name else name for name in names) + " |"]
    table += ["|---" * (len(names) + 1) + "|"]
    table += [f"| {way} | " + " | ".join(cells[name] for name in names) + " |" for way, cells in rows.items()]
    text = "\n".join(table) + "\n"
    sentences = "".join(f"**{way}**\n\n```text\n{lines}\n```\n\n" for way, lines in said.items() if lines)
    page = PAGE.read_text()
    print(text, sentences, sep="\n")  # noqa: T201 (a failure shows what belongs there)
    for mark, wanted in (("table", text), ("said", sentences)):
        assert page.partition(f"<!-- {mark}:begin -->\n")[2].partition(f"<!-- {mark}:end -->")[0] == wanted


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_no_python_starts_while_nothing_changed(created: Project, shell: str, tmp_path: Path) -> None:
    strace = shutil.which("strace")
    assert strace, "strace is not installed"
    made, trace = Checkout(created), tmp_path / "trace"
    assert made.hook(shell).out == "0"
    assert made.hook(shell, strace, "-f", "-qq", "-e", "trace=execve", "-o", str(trace)).status == 0
    started = re.findall(r'execve\("([^"]+)".*\) = 0', trace.read_text())
    assert started
    assert not [program for program in started if "python" in program or program.endswith("/tenv")], started
