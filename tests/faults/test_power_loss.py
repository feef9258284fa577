"""After a loss of power no environment is `ready` without a file of ours.

The calls that change files are recorded in their order. The disk may have kept any of those that were not synced, and
dropped any: a state that may be the stored one must fit both.
"""

import builtins
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tenv.core.prefix import LOCK_NOTE
from tenv.install import make
from tenv.rattler_api import install as rattler
from tests.support.conda import PLACEHOLDER, Channel
from tests.support.conda_project import Conda
from tests.support.projects import Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

READY = '{"state": "ready"'
CHANGES = ("os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.mkdir", "shutil.rmtree")


@dataclass
class Disk:
    """What a disk may have stored of a prefix, from the calls that were made.

    Attributes:
        prefix: The prefix.
        states: The states that may be the stored one.
        unsynced: Changes in the prefix that may be lost.
        synced: Files whose content is stored.
        faults: Where a state `ready` may be stored without a file of ours.
        calls: The number of calls that mattered.
    """

    prefix: Path
    states: list[str] = field(default_factory=list)
    unsynced: list[str] = field(default_factory=list)
    synced: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    calls: int = 0

    @property
    def state_file(self) -> str:
        return str(self.prefix / "tenv-meta" / "state.json")

    def change(self, call: str, path: str) -> None:
        """Note a change of a file or folder; a rename is noted by its new name."""
        name = os.path.relpath(path, self.prefix)
        removed = name.startswith(f"../.{self.prefix.name}.removed-") and call == "shutil.rmtree"
        passing = name == ".tenv.lock" or Path(name).name.startswith(".") or name.endswith(LOCK_NOTE)
        if not removed and (name.startswith("..") or passing):
            return  # files of locks, new files before they get their names, and notes that nobody needs
        self.calls += 1
        if any(state.startswith(READY) for state in self.states):
            self.faults.append(f"{call} {name}, while the stored state may be ready")
        self.unsynced.append(f"{call} {name}")

    def rename(self, old: str, new: str) -> None:
        if new != self.state_file:
            if old == str(self.prefix):
                self.states.append("")
            else:
                self.change("rename", new)
            return
        state = Path(old).read_text()
        if old not in self.synced:
            self.faults.append("the state was written, and not synced before it got its name")
        if state.startswith(READY) and self.unsynced:
            self.faults.append(f"ready, while {self.unsynced[:3]} may be lost")
        self.states.append(state)

    def fsync(self, path: str) -> None:
        self.synced.add(path)
        if path in (f"{self.prefix}/tenv-meta", str(self.prefix.parent)) and self.states:
            del self.states[:-1]

    def syncfs(self) -> None:
        self.unsynced.clear()
        del self.states[:-1]


_disks: list[Disk] = []


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _disks:
        return
    if event == "os.rename":
        _disks[0].rename(os.fspath(args[0]), os.fspath(args[1]))
    elif event in CHANGES:
        at = args[1] if event in ("os.link", "os.symlink") else args[0]
        there = isinstance(at, str | os.PathLike) and os.path.lexists(at)
        if there != (event in ("os.link", "os.symlink", "os.mkdir")):
            _disks[0].change(event, os.fspath(at))
    elif event == "open" and isinstance(args[0], str) and args[2] & (os.O_WRONLY | os.O_RDWR):
        _disks[0].change("open", args[0])
    elif event == "subprocess.Popen" and {"install", "uninstall", "venv"} & {*map(str, args[1])}:
        _disks[0].change("subprocess.Popen", f"{_disks[0].prefix}/what uv changes")


def _heard(event: str, real: Callable[..., Any], *, args: Callable[..., tuple[Any, ...]]) -> Callable[..., Any]:
    """Return a function that is heard before it does its work.

    An audit hook would hear it too, but stays for the rest of the process: all other tests would pay for it, and
    tracers of threads fail now and then where one is installed.
    """

    def call(*words: Any, **more: Any) -> Any:
        _hear(event, args(*words, **more))
        return real(*words, **more)

    return call


def _opened(file: Any, mode: str = "r", *_: Any, **__: Any) -> tuple[Any, ...]:
    path = os.fspath(file) if isinstance(file, os.PathLike) else file
    return (path, mode, os.O_WRONLY if set(mode) & set("wax+") else os.O_RDONLY)


def _hear_all(patch: pytest.MonkeyPatch) -> None:
    """Hear the calls of Python that change files."""
    for name in ("remove", "unlink", "rmdir", "rename", "replace", "link", "symlink", "mkdir"):
        event = {"unlink": "os.remove", "replace": "os.rename"}.get(name, f"os.{name}")
        patch.setattr(os, name, _heard(event, getattr(os, name), args=lambda *words, **_: words))
    patch.setattr(shutil, "rmtree", _heard("shutil.rmtree", shutil.rmtree, args=lambda *words, **_: words))
    patch.setattr(os, "open", _heard("open", os.open, args=lambda path, flags, *_, **__: (path, None, flags)))
    for module in (io, builtins):
        patch.setattr(module, "open", _heard("open", open, args=_opened))
    popen = _heard("subprocess.Popen", subprocess.Popen.__init__, args=lambda _, words, *__, **___: ("", words))
    patch.setattr(subprocess.Popen, "__init__", popen)


@pytest.fixture
def disk(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Disk]]:
    """Return a function that begins to record the calls of this process in the prefix of the project."""
    fsync, link = os.fsync, rattler.link

    def sync(handle: int) -> None:
        fsync(handle)
        if _disks:
            _disks[0].fsync(str(Path(f"/proc/self/fd/{handle}").readlink()))

    def linked(*args: Any, **settings: Any) -> None:
        for disk in _disks:
            disk.change("link", f"{disk.prefix}/what rattler changes")
        link(*args, **settings)

    def flush(_: Path) -> None:
        for disk in _disks:
            disk.syncfs()

    def begin() -> Disk:
        present = project.state_file.read_text() if project.state_file.exists() else ""
        _disks[:] = [Disk(project.prefix, [present])]
        return _disks[0]

    _hear_all(monkeypatch)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(rattler, "link", linked)
    monkeypatch.setattr(make, "flush", flush)
    yield begin
    _disks.clear()


def holds(disk: Disk, *, ready: bool) -> None:
    _disks.clear()
    assert disk.faults == [], disk.faults
    assert disk.calls > 0
    if ready:
        assert len(disk.states) == 1
        assert disk.states[0].startswith(READY)


def test_wheels_are_created_updated_repaired_and_removed(locked: Project, disk: Callable[[], Disk]) -> None:
    seen = disk()
    locked.ok("create", "tiny")
    holds(seen, ready=True)
    locked.manifest.write_text(locked.manifest.read_text().replace('native = "*"', 'gamma = "*"'))
    locked.ok("lock", "tiny")
    seen = disk()
    locked.ok("create", "tiny")
    holds(seen, ready=True)
    (locked.site() / "alpha.py").write_text("changed = True\n")
    seen = disk()
    locked.ok("create", "tiny", "--repair")
    holds(seen, ready=True)
    seen = disk()
    locked.ok("remove", "tiny")
    holds(seen, ready=False)


@pytest.fixture
def conda(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conda]:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    with Channel(tmp_path / "channel") as channel:
        made = Conda(project, channel)
        made.make("tool", files={"bin/tool": f"#!/bin/sh\necho {PLACEHOLDER}\n"})
        made.make("data", files={"share/data.txt": "old\n"})
        yield made


def test_conda_packages_are_created_and_updated(conda: Conda, disk: Callable[[], Disk]) -> None:
    conda.make("other", files={"share/data.txt": "other\n"})
    for names in (("tool", "data"), ("data", "other"), ("other",)):
        conda.lock(*names)
        seen = disk()
        conda.create()
        holds(seen, ready=True)


@pytest.mark.long
def test_a_network_that_fails_leaves_it_ready_with_every_file(
    locked: Project, disk: Callable[[], Disk], impatient: None
) -> None:
    locked.ok("create", "tiny")
    locked.manifest.write_text(locked.manifest.read_text() + 'large = "*"\n')
    locked.ok("lock", "tiny")
    for wheel in locked.index.folder.glob("large-*"):
        wheel.unlink()
    seen = disk()
    locked.fails(6, "network", "create", "tiny")
    holds(seen, ready=True)
