"""xonsh, from 0.11 on: its scripts are Python.

xonsh gives variables types by their names. tenv's own are registered as plain text, so that they keep each byte.
"""

from collections.abc import Mapping, Sequence

NAMES = ("xonsh",)

quote = ascii
"""A literal of Python is one word of xonsh."""


def holds(value: str) -> bool:  # noqa: ARG001
    """Return True: xonsh holds any value."""
    return True


def use(command: str) -> str:
    """Return the line that runs the output of a command of tenv."""
    return f"execx($({command}))"


_EDITS = r"""# tenv: xonsh
def _tenv_edit(edits):
    from xonsh.built_ins import XSH

    for name, value in edits.items():
        if name.startswith("_TENV_") and value is not None:
            XSH.env.register(name, type="str")
        if value is not None:
            XSH.env[name] = value
        elif name in XSH.env:
            del XSH.env[name]
            if name.startswith("_TENV_"):
                try:
                    XSH.env.deregister(name)
                except KeyError:  # registered by another process
                    pass


_tenv_edit(@EDITS@)
del _tenv_edit
"""


def render_edits(edits: Mapping[str, str | None]) -> str:
    """Return the lines that set and unset variables."""
    return _EDITS.replace("@EDITS@", ascii(dict(edits)))


def start(program: str, activate: Sequence[str]) -> list[str] | None:  # noqa: ARG001
    """Return None: xonsh inherits the variables instead."""
    return None


def render_hook(program: Sequence[str]) -> str:
    """Return the definition of an alias ``tenv`` that executes the output of activations."""
    return _HOOK.lstrip("\n").replace("@PROGRAM@", ascii(list(program)))


_HOOK = r"""
def _tenv_hook():
    import os
    import subprocess
    from builtins import print
    from xonsh.built_ins import XSH
    from xonsh.tools import unthreadable

    program = @PROGRAM@

    @unthreadable
    def tenv(args, stdin=None, stdout=None, stderr=None):
        environment = XSH.env.detype()
        if args[:1] not in (["activate"], ["deactivate"]):
            return subprocess.run([*program, *args], stdout=stdout, stderr=stderr, env=environment).returncode
        command = [*program, args[0], "--shell", "xonsh", *args[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment)
        text = os.fsdecode(done.stdout)
        if text.startswith("# tenv: xonsh"):
            XSH.builtins.execx(text)
        else:
            print(text, end="")
        return done.returncode

    XSH.aliases["tenv"] = tenv


_tenv_hook()
del _tenv_hook
"""
