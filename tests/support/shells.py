"""The installed shells: the commands of each step, and how each runs a text.

A snapshot is what a program that the shell starts finds in its environment, byte for byte.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenv.activation.shells import elvish, fish, nushell, posix, xonsh
from tenv.activation.shells.interface import Shell
from tenv.environment.lock_note import LockNote, write_lock_note
from tenv.environment.state import Environment

__all__ = ["HOSTILE", "SPOKEN", "Snapshots", "Spoken", "crowd", "note_lock"]

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
    kept = {f"OLD_{index:03}": value for index, value in enumerate(HOSTILE) if shell.module.holds(value)}
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


@dataclass(frozen=True, slots=True)
class Spoken:
    """One shell.

    Attributes:
        name: Its name, and that of its program.
        module: How tenv speaks to it.
        words: The words that run a file with text in it, without the shell's start files.
        assign: How a variable is set and exported: a text with ``NAME`` and ``VALUE``, which is quoted.
        snapshot: How an external program is run.
        spoken: The name that the hook gives tenv for it.
        trying: How a command is run that may fail.
        loading: How a hook that stands in a file is loaded.
        noise: Variables that the shell changes by itself.
        unholdable: Values that it can't hold.
    """

    name: str
    module: Shell
    words: tuple[str, ...]
    assign: str
    snapshot: str = "/usr/bin/env -0 {}"
    spoken: str = "sh"
    trying: str = "{} || true"
    loading: str = ". FILE"
    noise: tuple[str, ...] = _NOISE
    unholdable: tuple[str, ...] = ()

    @property
    def program(self) -> str | None:
        """Where it is, or None."""
        return shutil.which(self.name)

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
        file = folder / f"hook.{self.module.SCRIPT.rpartition('.')[2]}"
        file.write_text(hook)
        return self.loading.replace("FILE", self.module.quote(str(file))) + "\n"

    def shot(self, name: str) -> str:
        """Return the text that takes a snapshot."""
        return self.snapshot.format(f"{_MARK}={name}") + "\n"

    def run(
        self, folder: Path, steps: Sequence[str], environment: Mapping[str, str], before: Sequence[str] = ()
    ) -> tuple[Snapshots, str]:
        """Run steps one after the other, by the program `before` if any; return the snapshots, and what was said."""
        file = folder / f"steps.{self.module.SCRIPT.rpartition('.')[2]}"
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
    *(Spoken(name, posix, ("-eu",), _POSIX) for name in ("bash", "dash", "ksh", "mksh", "zsh")),
    Spoken("fish", fish, ("--no-config",), "set -gx NAME VALUE", spoken="fish"),
    Spoken(
        "elvish",
        elvish,
        ("-norc",),
        "set-env NAME VALUE",
        spoken="elvish",
        trying="try {{ {} }} catch {{ nop }}",
        loading="var tenv~ = { }; eval &on-end={|ns| set tenv~ = $ns[tenv~] } (slurp < FILE)",
    ),
    Spoken(
        "xonsh",
        xonsh,
        ("--no-rc",),
        "$NAME = VALUE",
        spoken="xonsh",
        trying="{}",
        loading="source FILE",
        noise=(
            *_NOISE,
            "THREAD_SUBPROCS",
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
        ("-n", "--no-std-lib"),
        "$env.NAME = VALUE",
        "^/usr/bin/env -0 {}",
        spoken="nushell",
        trying="try {{ {} }} catch {{|error| print --stderr $error.msg }}",
        loading="source FILE",
        noise=(*_NOISE, "CURRENT_FILE", "FILE_PWD", "LAST_EXIT_CODE", "CMD_DURATION_MS", "NU_VERSION"),
        unholdable=("\udcff\udcfe", "/a\udce9"),
    ),
)
"""Every shell that a test runs where it is installed."""
