"""bash, zsh, dash and other shells with the syntax of POSIX.

Their scripts are those of `tenv.activation.shells.posix_script`, their hook that of `posix_hook`.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.activation.shells.posix_hook import HOOK
from tenv.activation.shells.posix_script import render_activation, render_deactivation
from tenv.core.prefix import ID_FILE, LOCK_NOTE, MARKS, META, READY

__all__ = [
    "NAMES",
    "SCRIPT",
    "holds",
    "quote",
    "render_activation",
    "render_deactivation",
    "render_hook",
    "render_source",
    "start",
    "use",
]

quote = shlex.quote

NAMES = ("bash", "zsh", "sh", "dash", "ksh", "mksh")
SCRIPT = "activate.sh"


def holds(value: str) -> bool:  # noqa: ARG001
    """Return True: a POSIX shell holds any value."""
    return True


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints."""
    return f'eval "$({command})"'


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f". {shlex.quote(script)}\n"


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:
    """Return the words that start bash or zsh with an environment active; None for others.

    Start files put folders before PATH, so they are read first. zsh finds them by ZDOTDIR, which is put back.
    """
    tidy = f"command rm -rf {quote(str(folder))}\n"
    activate = render_source(script)
    match Path(program).name:
        case "bash":
            (folder / "start.sh").write_text(f"if [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n{activate}{tidy}")
            return [program, "--rcfile", str(folder / "start.sh"), "-i"]
        case "zsh":
            own = environment.get("ZDOTDIR", "")
            home = quote(own or environment.get("HOME", ""))
            back = f"export ZDOTDIR={quote(own)}\n" if own else "unset ZDOTDIR\n"
            for name in (".zshenv", ".zshrc"):
                again = f"export ZDOTDIR={quote(str(folder))}\n" if name == ".zshenv" else activate + tidy
                read = f"if [ -f {home}/{name} ]; then . {home}/{name}; fi\n"
                (folder / name).write_text(back + read + again)
            return ["env", f"ZDOTDIR={folder}", program, "-i"]
        case _:
            return None


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of a function ``tenv`` that activates by sourcing the stored script.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    names = {
        "@PROGRAM@": shlex.join(program),
        "@META@": META,
        "@READY@": READY,
        "@NOTE@": LOCK_NOTE,
        "@ID@": ID_FILE,
        "@DATA@": shlex.quote(str(home)),
        "@MARKS@": shlex.quote(str(home.parent / MARKS)),
    }
    text = HOOK.replace("@DEACTIVATE@", render_deactivation())
    for name, value in names.items():
        text = text.replace(name, value)
    return text
