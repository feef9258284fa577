"""The hosts of the blog posts: what is said of each, word for word.

Each `*.txt` beside this file is read as a terminal session: a line `$ tenv …` is run in this folder, which is a project
of its own, and what follows, up to the next such line, is all that it prints to standard output, and its status where
that is not 0. `NAME=VALUE` before `tenv` sets a variable.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.projects import call

HERE = Path(__file__).parent
POSTS = sorted(HERE.glob("*.txt"))


def steps(text: str) -> list[tuple[str, str]]:
    """Return the commands of a session, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
    return [(command, shown.rstrip("\n")) for command, shown in zip(parts[::2], parts[1::2], strict=True)]


def play(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    words = shlex.split(command)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    assert words.pop(0) == "tenv"
    ended = call(*words)
    return ended.out.rstrip("\n") + (f"\n[status {ended.status}]" if ended.status else "")


@pytest.mark.parametrize("post", POSTS, ids=lambda post: post.stem)
def test_a_post_is_answered_word_for_word(post: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("PWD", str(HERE))
    session = steps(post.read_text(encoding="utf-8"))
    assert session
    for command, shown in session:
        with monkeypatch.context() as changed:
            assert play(command, changed) == shown, command


def test_the_posts_are_all_here() -> None:
    assert [post.stem for post in POSTS] == [
        *("container-override", "debian-13-glibc-2.41", "driver-515.76-gtx-1660-ti", "driver-535-and-545-cuda-12.1"),
        *("gcc-13-cuda-12.1", "ubuntu-18.04-gcc-7.5", "ubuntu-20.04-libstdcxx", "windows-gtx-1650-super-cuda-10.2"),
    ]
