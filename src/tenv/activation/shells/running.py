"""Which shell tenv was started from: the nearest process above it that is one; ``SHELL`` names the login shell."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.activation.shells.interface import OTHER_NAMES, known_shells

__all__ = ["running_shell"]

_OTHERS = frozenset({"csh", "tcsh", "rc", "es", "yash", "osh", "ysh", "ion", "murex", "oksh", "scsh", "tclsh"})
"""Shells that tenv does not speak to; to speak another one's language to them would be a syntax error."""

_STEPS = 12
"""So many processes up are looked at: a launcher, a wrapper and a program that times may lie between."""


def running_shell(environ: Mapping[str, str]) -> str:
    """Return the name of the shell that tenv was started from, whether or not tenv speaks to it."""
    names = {*known_shells(), *OTHER_NAMES, *_OTHERS}
    for process in _above():
        if process in names:
            return process
    if os.name == "nt":  # cmd alone sets PROMPT
        return "cmd" if "PROMPT" in environ else "powershell"
    return Path(environ.get("SHELL", "")).name or "sh"


def _above() -> Iterator[str]:
    """Yield the names of the processes above this one, nearest first; nothing if there is no /proc."""
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
