"""The installed shells: the commands of each step, and how each runs a text.

A snapshot is the environment of a program that the shell starts, byte for byte.
"""

import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenv.activation.changes import Activation, read_activation
from tenv.activation.levels import activated, deactivated, level_of
from tenv.activation.shells import elvish, fish, nushell, posix, xonsh
from tenv.activation.shells.interface import Shell, StoredShell
from tenv.environment.lock_note import LockNote, write_lock_note
from tenv.environment.state import Environment
from tests.support.projects import SOURCE

__all__ = ["HOSTILE", "LEVELS", "SPOKEN", "Snapshots", "Spoken", "crowd", "note_lock", "write_activator"]

Snapshots = dict[str, dict[bytes, bytes]]
_NOISE = ("_", "SHLVL", "PWD", "OLDPWD")
_MARK = "_TENV_TEST_MARK"

HOSTILE = (
    "it's \"quoted\" $HOME `x` \\ ;&|", "", " ", "  two  blanks  ", "\ttab\t", "line\nbreak", "trailing\n", "\n\n", "'",
    '"', "\\", "\\\\", "\\n", "$", "$$", "$(id)", "`id`", "${HOME}", "$env:HOME", "%PATH%", "%%", "!PATH!", "^&|<>",
    "(x)", "{a,b}", "[1]", "*", "?", "~", "~/x:~", "#no comment", "-n", "--", "=", "a=b", ";", "& exit 1",
    "ünïcödé ✓ 漢字", "a'b\"c'd", "\r", "@(1+1)", "<(x)", "\udcff\udcfe", "| cat",
)  # fmt: skip
"""Values that a careless quote, expansion or split would change; the last but one is no UTF-8."""


def crowd(shell: "Spoken", number: int = 200) -> dict[str, str]:
    """Return an environment of that many variables, as in a user's shell, hostile ones among them."""
    plain = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", "TERM": "dumb"}
    kept = {f"OLD_{index:03}": value for index, value in enumerate(HOSTILE) if shell.holds(value)}
    rest = {f"FILL_{index:03}": f"{index} " * (index % 7) for index in range(number - len(plain) - len(kept))}
    return plain | kept | rest


def note_lock(meta: Path, said: str = "") -> Path:
    """Write a lock beside an environment that has none, and the note that tenv has looked at it; return the lock."""
    lock = meta / "its lock"
    lock.write_text("a lock\n")
    info = lock.stat()
    note = LockNote(lock, info.st_size, info.st_mtime_ns, said, (meta / "nearer", meta / "nearest"))
    write_lock_note(Environment(meta.parent), note)
    return lock


_ACTIVATOR = """\
import os, sys
sys.path.insert(0, {source!r})
from pathlib import Path
from tenv.activation import levels
from tenv.activation.changes import read_activation
from tenv.activation.shells.interface import find_shell

words = sys.argv[1:]
shell = find_shell(words.pop(words.index("--shell") + 1))
words.remove("--shell")
if words[0] == "activate":
    after = levels.activated(os.environ, read_activation(Path(words[1])))
else:
    after = levels.deactivated(os.environ)
    if not levels.level_of(os.environ):
        print("tenv: no environment is active", file=sys.stderr)
sys.stdout.reconfigure(errors="surrogateescape")
print(shell.render_edits(levels.edits(os.environ, after)), end="")
"""


def write_activator(folder: Path) -> Path:
    """Write a program that prints edits as tenv does: `activate --shell NAME FILE` or `deactivate --shell NAME`.

    FILE is an ``activation.json``, so that a test needs no environment.
    """
    program = folder / "activator"
    if not program.exists():
        (folder / "activator.py").write_text(_ACTIVATOR.format(source=str(SOURCE)))
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I {folder}/activator.py "$@"\n')
        program.chmod(0o755)
    return program


@functools.cache
def _find_program(name: str) -> str | None:
    return shutil.which(name)  # at first while tests are collected: a test may have a PATH of its own


@dataclass(frozen=True, slots=True)
class Spoken:
    """One shell.

    Attributes:
        name: Its name, and that of its program.
        module: Its module of tenv.
        ending: The ending of a file with text for it.
        words: The words that run a file with text in it, without the shell's start files.
        assign: How a variable is set and exported: a text with ``NAME`` and ``VALUE``, which is quoted.
        snapshot: How an external program is run.
        spoken: The name that the hook gives tenv for it.
        trying: How a command is run that may fail.
        loading: How a hook that stands in a file is loaded.
        noise: Variables that the shell changes by itself.
    """

    name: str
    module: Shell
    ending: str
    words: tuple[str, ...]
    assign: str
    snapshot: str = "/usr/bin/env -0 {}"
    spoken: str = "sh"
    trying: str = "{} || true"
    loading: str = ". FILE"
    noise: tuple[str, ...] = _NOISE

    @property
    def program(self) -> str | None:
        """Where it is, or None."""
        return _find_program(self.name)

    @property
    def stored(self) -> StoredShell | None:
        """Its module, if its shells have stored scripts."""
        return self.module if isinstance(self.module, StoredShell) else None

    def holds(self, value: str) -> bool:
        """Return whether it can hold a value."""
        return isinstance(self.module, StoredShell) or self.module.holds(value)

    def activate(self, folder: Path, name: str, made: Activation) -> str:
        """Store an activation under a name; return the text that activates it."""
        if isinstance(self.module, StoredShell):
            path = folder / f"{name}-{self.module.SCRIPT}"
            path.write_bytes(self.module.render_activation(made).encode("utf-8", "surrogateescape"))
            return self.module.render_source(str(path))
        path = folder / f"{name}.json"
        path.write_text(made.to_json())
        return self._edit(folder, f"activate {self.module.quote(str(path))}")

    def deactivate(self, folder: Path) -> str:
        """Return the text that undoes the innermost activation."""
        if isinstance(self.module, StoredShell):
            return self.module.render_deactivation()
        return self._edit(folder, "deactivate")

    def _edit(self, folder: Path, words: str) -> str:
        line = self.module.use(f"{write_activator(folder)} {words}")
        return (line if "--shell" in line else line.replace(words, f"{words} --shell {self.spoken}")) + "\n"

    def set(self, name: str, value: str) -> str:
        """Return the text that sets a variable."""
        return self.assign.replace("NAME", name).replace("VALUE", self.module.quote(value)) + "\n"

    def cd(self, folder: Path) -> str:
        """Return the text that changes the folder."""
        return f"cd {self.module.quote(str(folder))}\n"

    def attempt(self, command: str) -> str:
        """Return the text that runs a command which may fail."""
        return self.trying.format(command) + "\n"

    def load(self, folder: Path, hook: str) -> str:
        """Write a hook into a file and return the text that loads it."""
        file = folder / f"hook.{self.ending}"
        file.write_text(hook)
        return self.loading.replace("FILE", self.module.quote(str(file))) + "\n"

    def shot(self, name: str) -> str:
        """Return the text that takes a snapshot."""
        return self.snapshot.format(f"{_MARK}={name}") + "\n"

    def run(
        self, folder: Path, steps: Sequence[str], environment: Mapping[str, str], before: Sequence[str] = ()
    ) -> tuple[Snapshots, str]:
        """Run steps one after the other, by the program `before` if any; return the snapshots, and what was said."""
        file = folder / f"steps.{self.ending}"
        file.write_bytes("".join(steps).encode("utf-8", "surrogateescape"))
        assert self.program
        done = subprocess.run(
            [*before, self.program, *self.words, str(file)],
            env={os.fsencode(name): os.fsencode(value) for name, value in environment.items()},
            capture_output=True,
            check=False,
            cwd=folder,
            timeout=120,
        )
        said = os.fsdecode(done.stderr)
        assert done.returncode == 0, said[:2000]
        return self._sections(done.stdout), said

    def _sections(self, output: bytes) -> Snapshots:
        found: Snapshots = {}
        current: dict[bytes, bytes] = {}
        for entry in output.split(b"\0")[:-1]:
            name, _, value = entry.partition(b"=")
            if name == _MARK.encode():
                found[value.decode()] = current
                current = {}
            elif name.decode() not in self.noise:
                current[name] = value
        return found


_POSIX = "export NAME=VALUE"
SPOKEN = (
    *(Spoken(name, posix, "sh", ("-eu",), _POSIX) for name in ("bash", "dash", "ksh", "mksh", "zsh")),
    Spoken("fish", fish, "fish", ("--no-config",), "set -gx NAME VALUE", spoken="fish"),
    Spoken(
        "elvish",
        elvish,
        "elv",
        ("-norc",),
        "set-env NAME VALUE",
        spoken="elvish",
        trying="try {{ {} }} catch {{ nop }}",
        loading="var tenv~ = { }; eval &on-end={|ns| set tenv~ = $ns[tenv~] } (slurp < FILE)",
    ),
    Spoken(
        "xonsh",
        xonsh,
        "xsh",
        ("--no-rc",),
        "$NAME = VALUE",
        spoken="xonsh",
        trying="{}",
        loading="source FILE",
        noise=(
            *_NOISE,
            "THREAD_SUBPROCS",
            "XONSH_CAPTURE_ALWAYS",
            "XONSH_INTERACTIVE",
            "XONSHRC",
            "XONSHRC_DIR",
            "XONSH_VERSION",
            "XONSH_LOGIN",
        ),
    ),
    Spoken(
        "nu",
        nushell,
        "nu",
        ("-n", "--no-std-lib"),
        "$env.NAME = VALUE",
        "^/usr/bin/env -0 {}",
        spoken="nushell",
        trying="try {{ {} }} catch {{|error| print --stderr $error.msg }}",
        loading="source FILE",
        noise=(*_NOISE, "CURRENT_FILE", "FILE_PWD", "LAST_EXIT_CODE", "CMD_DURATION_MS", "NU_VERSION"),
    ),
)
"""Every shell that a test runs where it is installed."""


class _Levels(Spoken):
    """Python's own levels, which the edits of shells without scripts come from, as a shell that runs in this process.

    A step is a line: a word and its arguments.
    """

    @property
    def program(self) -> str | None:
        return sys.executable

    def holds(self, value: str) -> bool:  # noqa: ARG002
        return True

    def activate(self, folder: Path, name: str, made: Activation) -> str:
        path = folder / f"{name}.json"
        path.write_text(made.to_json())
        return shlex.join(("activate", str(path))) + "\0"

    def deactivate(self, folder: Path) -> str:  # noqa: ARG002
        return "deactivate\0"

    def set(self, name: str, value: str) -> str:
        return shlex.join(("set", name, value)) + "\0"

    def shot(self, name: str) -> str:
        return f"shot {name}\0"

    def run(
        self,
        folder: Path,  # noqa: ARG002
        steps: Sequence[str],
        environment: Mapping[str, str],
        before: Sequence[str] = (),  # noqa: ARG002
    ) -> tuple[Snapshots, str]:
        now, seen, said = dict(environment), Snapshots(), ""
        for step in "".join(steps).split("\0")[:-1]:
            word, *rest = shlex.split(step)
            if word == "activate":
                now = activated(now, read_activation(Path(rest[0])))
            elif word == "deactivate":
                said += "" if level_of(now) else "tenv: no environment is active\n"
                now = deactivated(now)
            elif word == "set":
                now[rest[0]] = rest[1]
            else:
                seen[rest[0]] = {os.fsencode(name): os.fsencode(value) for name, value in now.items()}
        return seen, said


LEVELS = _Levels("python", elvish, "txt", (), "")
"""Python's levels."""
