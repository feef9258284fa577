"""The Tab key in a real terminal: what stands on the screen after it, in each shell that is installed."""

import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.projects import Project

TMUX = shutil.which("tmux")
START = {
    "bash": ("--norc --noprofile", ". ./c"),
    "zsh": ("-f", "autoload -U compinit; compinit -u -D; . ./c"),
    "fish": ("--no-config", "source c"),
    "nu": ("--no-config-file", "source c"),
}
PROGRAMS = {name: program for name in START if (program := shutil.which(name))}
NAMES = {"nu": "nushell"}
CASES = {
    "target": ("tenv create mi", "tenv create mine"),
    "option": ("tenv create --offl", "tenv create --offline"),
    "code": ("tenv explain TE70", "TE701"),
    "command": ("tenv upd", "tenv update"),
}
SECONDS = 120
"""A shell with all its completions takes half a minute on a busy machine."""
PROMPT = re.compile(r"\S[#$%>]( |$)", re.MULTILINE)
EMPTY = re.compile(r"\S[#$%>]( +[\d/]+ [\d:]+ [AP]M)?$")
"""A prompt at the end of the screen, with nothing typed behind it; nushell has the time at the right."""

pytestmark = pytest.mark.skipif(TMUX is None, reason="no tmux")


@dataclass
class Terminal:
    """A terminal with a shell in it.

    Attributes:
        socket: The name of tmux's socket.
    """

    socket: str

    def tmux(self, *words: str) -> str:
        command = [str(TMUX), "-L", self.socket, "-f", os.devnull, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def wait(self, seen: Callable[[str], bool], *keys: str) -> str:
        """Return the screen as soon as it shows something; the keys are pressed again every second until then."""
        end, pressed = time.monotonic() + SECONDS, 0.0
        while True:
            screen = self.tmux("capture-pane", "-p")
            if seen(screen):
                return screen
            assert time.monotonic() < end, screen
            if keys and time.monotonic() - pressed > 1:
                self.press(*keys)
                pressed = time.monotonic()
            time.sleep(0.05)


@pytest.fixture
def terminal(request: pytest.FixtureRequest, project: Project, tmp_path: Path) -> Iterator[Terminal]:
    """A shell in a project that has read the completion of tenv; tenv itself is no program there."""
    name = request.param
    (project.folder / "manifests" / "mine.toml").write_text("")
    (project.folder / "c").write_text(project.ok("completion", NAMES.get(name, name)).out)
    made = Terminal(f"tenv-{uuid.uuid4().hex[:8]}")
    options, line = START[name]
    words = ["env", f"HOME={tmp_path}", "TERM=screen", PROGRAMS[name], *options.split()]
    try:
        made.tmux("new-session", "-d", "-x", "100", "-y", "30", "-c", str(project.folder), *words)
        made.wait(lambda screen: PROMPT.search(screen) is not None)  # nushell ends on keys that come before
        made.type(f"{line}; echo rea''dy" if name != "nu" else f"{line}; print ('rea' + 'dy')")
        made.press("Enter")
        made.wait(lambda screen: "ready" in screen)
        yield made
    finally:
        subprocess.run([str(TMUX), "-L", made.socket, "kill-server"], capture_output=True, check=False)


def completes(terminal: Terminal, case: str) -> None:
    typed, wanted = CASES[case]
    terminal.type(typed)
    screen = terminal.wait(lambda screen: typed in screen)
    assert wanted not in screen
    terminal.wait(lambda screen: wanted in screen, "Tab")


@pytest.mark.parametrize(("terminal", "case"), list(zip(PROGRAMS, CASES, strict=False)), indirect=["terminal"])
def test_the_key_completes_what_was_begun(terminal: Terminal, case: str) -> None:
    completes(terminal, case)


@pytest.mark.long
@pytest.mark.parametrize("terminal", PROGRAMS, indirect=True)
def test_the_key_completes_all_that_can_be_begun(terminal: Terminal) -> None:
    for case in CASES:
        completes(terminal, case)
        terminal.wait(lambda screen: EMPTY.search(screen.rstrip()) is not None, "C-c")
        terminal.type("clear")
        terminal.press("Enter")
        terminal.wait(lambda screen: "tenv" not in screen)
