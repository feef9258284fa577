"""Draw screens of tenv, 80 columns wide, as SVG for a light and a dark page.

    python scripts/pictures.py FOLDER [NAME …]

Each screen is what a terminal of tmux shows after a real run: of the shipped targets in an empty folder, or of a small
project whose packages an index on 127.0.0.1 serves. `day`, which must be named alone, installs a shipped target of
2.5 GB from the index and the cache of uv of the user that runs this. `docs/pictures` has `day` and `check`.
"""

import io
import itertools
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from rich.text import Text

CHECKOUT = Path(__file__).parents[1]
sys.path[:0] = [str(CHECKOUT)]

from tests.support.fakes import Index, make_wheel  # noqa: E402 (the checkout is no installed package)

WIDTH, LINES = 80, 2000
SCREENS: Mapping[str, str] = {
    "help": "tenv --help",
    "targets": "tenv targets",
    "check": "tenv check cuda130 --assume-driver 535.104.05 --assume-gpu 'RTX 3090'",
    "check-driver": "tenv check-driver --assume-driver 550.54.15",
    "show": "tenv show cuda121",
    "diff": "tenv diff cuda126 cuda130",
    "explain": "tenv explain TE101",
    "error": "tenv create cuda131",
    "create": "tenv create mine",
    "stale": "tenv list; tenv run mine -- true",
}
"""By the name of the picture: what is typed."""

DAY = (
    "tenv create auto --assume-driver 580.95.05 --assume-gpu 'RTX 4090'",
    "tenv check cuda132 --assume-driver 535.104.05 --assume-gpu 'RTX 4090'",
    "tenv diff cuda130 cuda132",
)
"""What is typed on the first picture of the README, in a checkout of PyTorch."""
DAY_LINES = 16

THEMES = {"light": DEFAULT_TERMINAL_THEME, "dark": SVG_EXPORT_THEME}
MOST_LINES = 60

MANIFEST = """\
description = "A few small wheels"
platforms = ["linux-64"]
python = ">=3.11,<3.15"
[pypi-dependencies]
numpy = "*"
"""


def cut(said: str, most: int = MOST_LINES) -> str:
    """Return the first lines of an output, and how many there are more."""
    lines = said.rstrip("\n").split("\n")
    return "\n".join([*lines[:most], f"\x1b[0m… {len(lines) - most} lines more"] if len(lines) > most else lines)


def draw(name: str, outputs: Mapping[str, str], folder: Path) -> None:
    """Write both pictures of a screen: of each command what is typed, and what is printed."""
    text = "\n\n".join(f"\x1b[1m$ {words}\x1b[0m\n{said}\x1b[0m" for words, said in outputs.items())
    # The template of rich fetches a font from another server; the page's own monospaced font serves as well.
    template = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    for tone, theme in THEMES.items():
        console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor", force_terminal=True)
        console.print(Text.from_ansi(text))
        target = folder / f"{name}-{tone}.svg"
        target.write_text(console.export_svg(title="", theme=theme, code_format=template, unique_id=f"tenv-{name}"))


class Stage:
    """A folder in which tenv runs, with folders for settings, data and caches of its own."""

    def __init__(self, folder: Path, index: str) -> None:
        programs = folder / "bin"
        programs.mkdir()
        tenv = f'#!/bin/sh\nPYTHONPATH={CHECKOUT / "src"} exec {sys.executable} -P -m tenv "$@"\n'
        (programs / "tenv").write_text(tenv)
        (programs / "tenv").chmod(0o755)
        self.number = itertools.count()
        self.project = folder / "pytorch"
        self.project.mkdir()
        home = folder / "home"
        self.variables = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "UV_DEFAULT_INDEX": index,
        }

    def run(self, words: str) -> str:
        """Return what a terminal of tmux shows after commands, with colors; paths begin with ``~``."""
        server = ["/usr/bin/tmux", "-L", f"tenv-pictures-{os.getpid()}-{next(self.number)}", "-f", os.devnull]
        size = ["-x", str(WIDTH), "-y", str(LINES)]
        shell = f"{words}; {shlex.join([*server, 'wait-for', '-S', 'done'])}; exec sleep 60"
        start = [*server, "new-session", "-d", *size, "/bin/bash", "-c", shell]
        subprocess.run(start, cwd=self.project, env=self.variables, check=True)
        try:
            subprocess.run([*server, "wait-for", "done"], check=True)
            capture = [*server, "capture-pane", "-e", "-p"]
            shown = subprocess.run(capture, capture_output=True, text=True, check=True).stdout
        finally:
            subprocess.run([*server, "kill-server"], check=True)
        return shown.replace(str(self.project.parent), "~").replace(str(CHECKOUT), "~/tenv").rstrip()

    def be_a_day(self) -> dict[str, str]:
        """Return what the commands of `DAY` print in a checkout of PyTorch, with the packages of the user's index."""
        (self.project / "torch" / "csrc").mkdir(parents=True)
        (self.project / "setup.py").touch()
        (self.project / "version.txt").write_text("2.14.0a0\n")
        uv = sysconfig.get_path("scripts") + "/uv"
        cache = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
        del self.variables["UV_DEFAULT_INDEX"]
        given = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
        self.variables |= {**given, "UV_CACHE_DIR": cache}
        return {words: cut(self.run(words), DAY_LINES) for words in DAY}

    def make_project(self, wheels: Path) -> None:
        """Make a project with a target `mine`, locked."""
        (self.project / "manifests").mkdir()
        (self.project / "manifests" / "mine.toml").write_text(MANIFEST)
        make_wheel(wheels, "numpy", "2.1.0")
        self.run("tenv lock mine")


def main(folder: Path, names: list[str]) -> None:
    """Draw the named screens; all if none is named."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        wheels = Path(name) / "wheels"
        wheels.mkdir()
        with Index(wheels) as index:
            stage = Stage(Path(name), index.url)
            if names == ["day"]:
                draw("day", stage.be_a_day(), folder)
                return
            for screen, words in SCREENS.items():
                if screen == "create":
                    stage.make_project(wheels)
                if screen == "stale":
                    make_wheel(wheels, "numpy", "2.2.0")
                    stage.run("tenv update mine")
                if not names or screen in names or screen == "create":
                    said = stage.run(words)
                    if not names or screen in names:
                        draw(screen, {words: cut(said)}, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
