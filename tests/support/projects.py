"""A small project to run tenv in, in this process or as a program of its own."""

import contextlib
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from tenv.cli import main as program
from tenv.core.files import exclusive
from tenv.host.machine import current_platform
from tests.support.fakes import MINORS, Index
from tests.support.output_schema import require_schema

__all__ = [
    "HERE",
    "PLATFORMS",
    "TINY",
    "Ended",
    "Project",
    "call",
    "finish",
    "held",
    "snapshot",
    "until",
    "write_config",
]

SOURCE = Path(__file__).parent.parent.parent / "src"
HERE = f"3.{sys.version_info.minor}"
PLATFORMS = ("linux-64", "linux-aarch64", "win-64")

TINY = f"""\
description = "A few small wheels"
platforms   = ["{current_platform()}"]
python      = "{HERE}.*"

[requirements]
glibc = "2.17"

[pypi-dependencies]
alpha  = ">=1"
native = "*"
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        status: Its exit status.
        out: Its standard output.
        err: Its standard error.
    """

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What ``--json`` printed under ``data``."""
        return json.loads(self.out)["data"]


@dataclass
class Project:
    """A folder with one target, `tiny`.

    Attributes:
        folder: The folder.
        index: The index that its wheels come from.
        started: Programs that the test has started.
    """

    folder: Path
    index: Index
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    @property
    def manifest(self) -> Path:
        """The manifest of `tiny`."""
        return self.folder / "manifests" / "tiny.toml"

    @property
    def lock(self) -> Path:
        """The lock of `tiny`."""
        return self.folder / "locks" / "tiny.lock"

    @property
    def prefix(self) -> Path:
        """Where the environment of `tiny` is made."""
        return self.folder / ".tenv" / "envs" / "tiny"

    @property
    def state_file(self) -> Path:
        """Where the state of the environment is kept."""
        return self.prefix / "tenv-meta" / "state.json"

    def edit(self, old: str, new: str) -> None:
        """Replace a part of the manifest, which must be there."""
        text = self.manifest.read_text()
        assert old in text
        self.manifest.write_text(text.replace(old, new))

    def ask_for(self, line: str) -> None:
        """Add a line to the manifest's wheels."""
        self.manifest.write_text(f"{self.manifest.read_text()}{line}\n")

    def widen(self) -> None:
        """Ask for all of PLATFORMS and both of MINORS, which takes a lock of one of each six times as long."""
        self.widen_platforms()
        self.widen_pythons()

    def widen_platforms(self) -> None:
        """Ask for all of PLATFORMS."""
        self.edit(f'["{current_platform()}"]', json.dumps(PLATFORMS))

    def widen_pythons(self) -> None:
        """Ask for both of MINORS."""
        self.edit(f'"{HERE}.*"', f'">={MINORS[0]},<3.{int(MINORS[1].partition(".")[2]) + 1}"')

    def state(self) -> dict[str, Any]:
        """Return what ``state.json`` says."""
        data: dict[str, Any] = json.loads(self.state_file.read_text())
        return data

    def site(self) -> Path:
        """Return the site-packages of the environment."""
        return next(self.prefix.glob("lib/python3*/site-packages"))

    def ok(self, *words: str) -> Ended:
        """Run a command in this process that must succeed."""
        ended = call(*words)
        assert ended.status == 0, ended.err
        return ended

    def fails(self, status: int, code: str, *words: str) -> str:
        """Run a command in this process that must end with an error, and return what it says."""
        ended = call(*words)
        assert ended.err.count("error[") == 1, ended
        assert (ended.status, ended.err.partition("error[")[2].partition("]")[0]) == (status, code), ended.err
        return ended.err

    def start(
        self, *words: str, wrapped: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start a command as a program, in a process group of its own."""
        child = subprocess.Popen(
            [*wrapped, sys.executable, "-m", "tenv", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PWD": str(self.folder), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(child)
        return child

    def run(self, *words: str, wrapped: tuple[str, ...] = (), environment: Mapping[str, str] | None = None) -> Ended:
        """Run a command as a program."""
        return finish(self.start(*words, wrapped=wrapped, environment=environment))

    def ran(self, *words: str, environment: Mapping[str, str] | None = None) -> Ended:
        """Run a command in this process; the program that it would become is its child instead.

        tenv starts in a fifth of a second as a program; `test_run.py` has it become another one.
        """

        def started(program: str, arguments: list[str], variables: Mapping[str, str]) -> None:
            done = subprocess.run(
                arguments, executable=program, env=variables, capture_output=True, text=True, check=False
            )
            sys.stdout.write(done.stdout)
            sys.stderr.write(done.stderr)
            raise SystemExit(done.returncode)

        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, {"PWD": str(self.folder), **(environment or {})}),
            mock.patch.object(os, "execvpe", started),
            mock.patch.object(os, "execve", started),
        ):
            try:
                return call(*words)
            finally:
                for name in ("SIGPIPE", "SIGXFSZ"):  # whose usual ways another program gets
                    signal.signal(getattr(signal, name), signal.SIG_IGN)

    def end_all(self) -> None:
        """End every program that is still running."""
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.communicate()


def finish(child: "subprocess.Popen[str]", seconds: float = 600) -> Ended:
    """Wait for a program and tell how it ended."""
    out, err = child.communicate(timeout=seconds)
    return Ended(child.returncode, out, err)


def call(*words: str) -> Ended:
    """Run a command line in this process and tell how it ended."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            program._main(list(words))
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
    if "--json" in words:
        require_schema(out.getvalue())
    return Ended(status, out.getvalue(), err.getvalue())


def write_config(text: str) -> Path:
    """Write tenv's own ``config.toml`` of the user of this test, and return it."""
    path = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@contextlib.contextmanager
def held(folder: Path, purpose: str = "tenv create tiny") -> Iterator[threading.Event]:
    """Hold a folder, as another process would, until the event is set or the body ends."""
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with exclusive(folder, purpose, lambda _: None):
            holding.set()
            release.wait(180)

    holder = threading.Thread(target=hold)
    holder.start()
    assert holding.wait(180)
    try:
        yield release
    finally:
        release.set()
        holder.join()


def until(true: Callable[[], object]) -> None:
    """Wait until something is true; it is a failure when it takes minutes, since the machine may be busy."""
    end = time.monotonic() + 180
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def snapshot(prefix: Path) -> dict[str, str]:
    """Return what every file of an environment holds, but tenv's state and notes, caches of bytecode and lock files.

    A lock of the last 20 ms is not noted, so that on a busy machine alone there is a note.
    """
    found = {}
    for path in sorted(prefix.rglob("*")):
        name = str(path.relative_to(prefix))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif (
            path.is_file()
            and "__pycache__" not in name
            and name not in ("tenv-meta/state.json", "tenv-meta/id", "tenv-meta/lock-note", ".lock")
        ):
            found[name] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return found
