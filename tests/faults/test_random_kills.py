"""Commands that write, killed at random moments, and mixtures of commands at once: nothing of the user's is lost.

    TENV_TESTS_KILLS    how many kills (forty without it)
    TENV_TESTS_RACES    how many commands in races of eight (a few without it)
    TENV_TESTS_SEED     what they are drawn from
    TENV_TESTS_JOURNAL  a file of what has passed, which the next run leaves out

`python -m tests.faults.hammer` runs them with a journal.
"""

import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fakes import make_nvidia, make_wheel
from tests.support.projects import Ended, Project, call, finish, snapshot, until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc as Linux has them"),
]

SEED = os.environ.get("TENV_TESTS_SEED", "20261122")
KILLS = int(os.environ.get("TENV_TESTS_KILLS", "40"))
RACES = int(os.environ.get("TENV_TESTS_RACES", "16")) // 8
PATIENCE = 1200.0
"""Seconds for one command: a thousand of them run beside other work."""
JOURNAL = os.environ.get("TENV_TESTS_JOURNAL", "")

WRITING = {
    "create": ("create", "tiny"),
    "create new lock": ("create", "tiny"),
    "repair": ("create", "tiny", "--repair"),
    "remove": ("remove", "tiny"),
    "rollback": ("rollback", "tiny"),
    "lock": ("lock", "tiny"),
    "update": ("update", "tiny"),
    "add": ("add", "tiny", "--pypi", "gamma"),
    "drop": ("drop", "tiny", "gamma"),
    "default": ("default", "tiny"),
    "export": ("export", "requirements.txt", "tiny", "-o", "made.txt", "--force"),
    "verify": ("verify", "tiny", "--no-probes"),
    "run": ("run", "--sync", "tiny", "--", "true"),
}
AT_ONCE = (
    *(("create", "tiny"),) * 3,
    ("create", "tiny", "--repair"),
    ("remove", "tiny"),
    ("list", "--json"),
    ("activate", "tiny", "--shell", "bash"),
    ("run", "tiny", "--", "python", "-c", "import alpha, sys; print(sys.prefix)"),
    ("verify", "tiny", "--no-probes"),
    ("rollback", "tiny"),
    ("update", "tiny"),
    ("lock", "tiny"),
    ("env", "tiny"),
    ("packages", "tiny"),
    ("show", "tiny"),
)
MINE = (
    "notes.txt",
    "bin/python-mytool",
    "bin/mine",
    "lib/mine.so",
    "share/mine/deep/er/data.bin",
    "SITE/mine.py",
    "SITE/mine/__init__.py",
    "SITE/__editable__.mine.pth",
    "include/mine.h",
    "etc/mine.conf",
    "bin/activate-mine",
    "SITE/my_virtualenv.py",
    "cuda/mine.txt",
    "cuda/include/mine.h",
)
NOT_OURS = (
    "was not created by this user",
    "is a copy of",
    "was moved",
    "has lost its state",
    "not what was written",
    "is broken or",
)
"""What no command says of an environment that only tenv's own commands have touched."""


def patient(project: Project, *words: str) -> Ended:
    return finish(project.start(*words), PATIENCE)


def passed(kind: str) -> set[str]:
    """Return the numbers of a kind that have passed with this seed."""
    if not JOURNAL or not Path(JOURNAL).is_file():
        return set()
    rows = (line.split("\t") for line in Path(JOURNAL).read_text().splitlines())
    return {row[2] for row in rows if row[:2] == [SEED, kind]}


def note(kind: str, number: int, what: str) -> None:
    if JOURNAL:
        with Path(JOURNAL).open("a") as file:
            file.write(f"{SEED}\t{kind}\t{number}\t{what}\n")


class World:
    """A project with two locks, an environment and files of the user in every corner of it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        make_wheel(project.index.folder, "delta", "1.0", files={f"delta/part{n}.py": f"{n}\n" * 50 for n in range(40)})
        make_nvidia(project.index.folder)
        for name in ("nvidia-cuda-runtime", "nvidia-cudnn-cu13", "cuda-toolkit"):
            project.ask_for(f'{name} = "*"')
        self.manifests = [project.manifest.read_bytes()]
        project.ask_for('delta = "*"')
        self.manifests.append(project.manifest.read_bytes())
        self.locks = []
        for manifest in self.manifests:
            project.manifest.write_bytes(manifest)
            project.ok("lock", "tiny")
            self.locks.append(project.lock.read_bytes())
        self.trees: dict[int, dict[str, str]] = {}
        for number in (0, 1):
            self.choose(number)
            project.ok("create", "tiny")
            self.trees[number] = snapshot(project.prefix)
            project.ok("remove", "tiny")
        self.choose(0)
        begun = time.monotonic()
        assert patient(project, "create", "tiny").status == 0
        self.seconds = time.monotonic() - begun
        self.plant()

    def choose(self, number: int) -> None:
        self.project.manifest.write_bytes(self.manifests[number])
        self.project.lock.write_bytes(self.locks[number])

    def mine(self) -> Iterator[tuple[Path, bytes]]:
        """Yield the user's files, and what is in them."""
        for name in MINE:
            path = self.project.prefix / name.replace("SITE", str(self.site))
            yield path, f"of the user: {name}\n".encode()

    def plant(self) -> None:
        self.site = self.project.site().relative_to(self.project.prefix)
        for path, data in self.mine():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def check(self, number: int, *, removed: bool, what: str) -> None:
        """Compare all with what it must be after the next `create`."""
        project = self.project
        said = call("lock", "tiny", "--check").err
        assert "error[lock-corrupt]" not in said, (what, said)
        assert "error[manifest]" not in said, (what, said)
        rows = json.loads(project.ok("list", "--json").out)["data"]
        for row in rows:
            assert row["state"] != "broken", (what, row)
            assert not [text for text in NOT_OURS if text in (row["reason"] or "")], (what, row)
            if row["state"] == "ready":
                verified = call("verify", "tiny", "--no-probes")
                assert verified.status in (0, 1), (what, verified.err)
        lost = [path for path, data in self.mine() if not path.is_file() or path.read_bytes() != data]
        assert removed or not lost, (what, lost)
        self.choose(number)
        project.ok("create", "tiny")
        lost = [path for path, data in self.mine() if not path.is_file() or path.read_bytes() != data]
        assert removed or not lost, (what, lost)
        own = {str(path.relative_to(project.prefix)) for path, _ in self.mine()}
        found = {name: value for name, value in snapshot(project.prefix).items() if name not in own}
        wanted = self.trees[number]
        differ = {name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)}
        assert {name for name in differ if not name.startswith("tenv-meta/")} == set(), (what, differ)
        if lost:
            self.plant()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("half", range(2))  # for two processes
def test_kills_of_every_command_that_writes_lose_nothing(project: Project, half: int) -> None:
    world, done = World(project), passed("kill")
    for number in range(half, KILLS, 2):
        if str(number) in done:
            continue
        chance = random.Random(f"{SEED} kill {number}")
        name = chance.choice(sorted(WRITING))
        to = chance.randrange(2)
        if name in ("create new lock", "repair", "run"):
            world.choose(to)
        how = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        child = project.start(*WRITING[name])
        time.sleep(chance.uniform(0, world.seconds * 1.1))
        what = f"{number}: {name} ended by {how.name}"
        child.send_signal(how)
        ended = finish(child, PATIENCE)
        assert not traced(ended.err), (what, ended.err)
        until(lambda: not left_running(project))
        world.check(to, removed=name == "remove", what=what)
        note("kill", number, f"{name} {how.name} {ended.status}")


def traced(text: str) -> bool:
    """Tell whether a traceback goes through tenv.

    Python itself prints one of an interrupt that comes while it starts, before it has read a line of tenv. A program
    that `run` has started prints one when another command takes the environment away below it.
    """
    return "Traceback" in text and bool(re.search(r'File ".*/tenv/', text))


def left_running(project: Project) -> bool:
    """Tell whether a program still works on the environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/uv") and any(os.fsencode(project.prefix) in word for word in words):
            return True
    return False


@pytest.mark.timeout(0)
def test_eight_commands_at_once_leave_it_whole(project: Project) -> None:
    world, done = World(project), passed("race")
    for number in range(RACES):
        if str(number) in done:
            continue
        chance = random.Random(f"{SEED} race {number}")
        words = [chance.choice(AT_ONCE) for _ in range(8)]
        children = []
        for one in words:
            children.append(project.start(*one))
            time.sleep(chance.choice([0, 0, 0.05, 0.3]))
        for one, ended in zip(words, [finish(child, PATIENCE) for child in children], strict=True):
            check_ended(one, ended, project, f"race {number}: {[' '.join(word) for word in words]}")
        world.check(0, removed=("remove", "tiny") in words, what=f"race {number}")
        note("race", number, " | ".join(word[0] for word in words))


def check_ended(words: tuple[str, ...], ended: Ended, project: Project, what: str) -> None:
    said = (what, words, ended.status, ended.err)
    taken_away = words[0] == "run" and "remove tiny" in what
    assert not traced(ended.err) if taken_away else "Traceback" not in ended.err, said
    assert "error[bug]" not in ended.err, said
    assert not [text for text in NOT_OURS if text in ended.err + ended.out], said
    if words[0] in ("create", "list", "lock", "update", "show"):
        assert ended.status == 0, said
    elif words[0] == "run" and ended.status == 0:
        assert ended.out.strip() == str(project.prefix), said
    else:
        assert ended.status in (0, 1, 7, 8), said
