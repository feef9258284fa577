"""Detect the shell that started tenv: the nearest ancestor process that is one. ``SHELL`` only has the login shell."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.activation.shells.interface import OTHER_NAMES, known_shells

__all__ = ["running_shell"]

_OTHERS = frozenset({"csh", "tcsh", "rc", "es", "yash", "osh", "ysh", "ion", "murex", "oksh", "scsh", "tclsh"})
"""Unsupported shells; a script for another shell would be a syntax error in them."""

_STEPS = 12
"""The maximum number of ancestors to check: there may be a launcher, a wrapper or a timing program."""


def running_shell(environ: Mapping[str, str]) -> str:
    """Return the name of the shell that started tenv, supported or not."""
    names = {*known_shells(), *OTHER_NAMES, *_OTHERS}
    for process in _above():
        if process in names:
            return process
    if os.name == "nt":  # only cmd sets PROMPT
        return "cmd" if "PROMPT" in environ else "powershell"
    return Path(environ.get("SHELL", "")).name or "sh"


def _above() -> Iterator[str]:
    """Yield the names of the ancestor processes, nearest first; nothing without /proc."""
    process = os.getppid()
    for _ in range(_STEPS):
        folder = Path("/proc", str(process))
        try:
            before, _, after = (folder / "stat").read_text(errors="replace").rpartition(")")
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            return
        # A Python program that sets its title (xonsh with setproctitle) has its whole command line there.
        name = before.partition("(")[2].partition(" ")[0]
        # A shell that is a Python program has the name of its script only where that was started by itself.
        yield "xonsh" if name.startswith("python") and "xonsh" in (Path(word).name for word in words[1:3]) else name
        process = int(after.split()[1])
        if process <= 1:
            return
