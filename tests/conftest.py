"""What every test stands on: a home of its own, no network, and a small project with an index of fake wheels."""

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tenv import engine
from tenv.cli import main as program
from tests.fakes import MINORS, Index, make_native, make_wheel, noise

SOURCE = Path(__file__).parent.parent / "src"
PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
TINY = f"""\
description = "A few small wheels"
platforms   = ["linux-64", "linux-aarch64", "win-64"]
python      = ">={MINORS[0]},<3.{int(MINORS[1].partition(".")[2]) + 1}"

[requirements]
glibc = "2.17"

[pypi-dependencies]
alpha  = ">=1"
native = "*"
"""

_FOREIGN = ("PIP_", "UV_", "TENV_", "XDG_", "CONDA", "VIRTUAL_ENV", "SSL_CERT", "REQUESTS_CA_BUNDLE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_NOBODY = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _isolated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep a test that is not marked `real` away from the user's files, settings and network."""
    if request.node.get_closest_marker("real"):
        return
    for name in list(os.environ):
        if name.startswith(_FOREIGN):
            monkeypatch.delenv(name)
    for name, folder in (
        ("HOME", "home"),
        ("XDG_CONFIG_HOME", "home/config"),
        ("XDG_DATA_HOME", "home/data"),
        ("XDG_CONFIG_DIRS", "system"),
        ("UV_CACHE_DIR", "cache"),
    ):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in _PROXIES:  # what children ask of the world goes to a port where nobody listens
        monkeypatch.setenv(name, _NOBODY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "home").mkdir()
    _stand_in(monkeypatch, tmp_path / "home")
    monkeypatch.setattr(socket.socket, "connect", _connect)


def _stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))


_real_connect = socket.socket.connect


def _connect(self: socket.socket, address: Any) -> None:
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "localhost", "::1"):
        raise AssertionError(f"a test tried to reach {address}")
    _real_connect(self, address)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of fake wheels: alpha needs beta, native differs by platform and Python; large takes time to fetch."""
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "alpha", "1.0", requires=["beta>=1"], extras={"more": ["gamma"]})
    scripts = {"beta.py": "def main(): print('beta 1.0')\n", "beta-1.0.dist-info/entry_points.txt": _SCRIPT}
    make_wheel(folder, "beta", "1.0", files=scripts)
    make_wheel(folder, "gamma", "1.0")
    make_native(folder, "native", "1.0")
    make_wheel(folder, "large", "1.0", files={"large.bin": noise(1 << 18)})
    return folder


_SCRIPT = "[console_scripts]\nbeta = beta:main\n"


@pytest.fixture
def index(wheels: Path, tmp_path: Path) -> Iterator[Index]:
    """An index of its own for a test, with every fake wheel."""
    folder = tmp_path / "index"
    shutil.copytree(wheels, folder)
    with Index(folder) as served:
        yield served


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

    @property
    def error(self) -> Any:
        """What ``--json`` printed under ``error``."""
        return json.loads(self.out)["error"]


@dataclass
class Project:
    """A folder with one target, `tiny`.

    Attributes:
        folder: The folder.
        index: The index that its wheels come from.
        started: Programs that the test has started and not waited for.
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

    def edit(self, old: str, new: str) -> None:
        """Replace a part of the manifest, which must be there."""
        text = self.manifest.read_text()
        assert old in text
        self.manifest.write_text(text.replace(old, new))

    def state(self) -> dict[str, Any]:
        """Return what ``state.json`` says."""
        data: dict[str, Any] = json.loads((self.prefix / "tenv-meta" / "state.json").read_text())
        return data

    def site(self) -> Path:
        """Return the site-packages of the environment."""
        return next(self.prefix.glob("lib/python3*/site-packages"))

    def call(self, *words: str) -> Ended:
        """Run a command in this process."""
        return call(*words)

    def ok(self, *words: str) -> Ended:
        """Run a command in this process that must succeed."""
        ended = call(*words)
        assert ended.status == 0, ended.err
        return ended

    def start(self, *words: str, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a command as a program, in a process group of its own."""
        child = start(*words, folder=self.folder, environment=environment)
        self.started.append(child)
        return child

    def run(self, *words: str, environment: Mapping[str, str] | None = None) -> Ended:
        """Run a command as a program."""
        child = self.start(*words, environment=environment)
        out, err = child.communicate(timeout=120)
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
    return Ended(status, out.getvalue(), err.getvalue())


def start(*words: str, folder: Path, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Start tenv as a program, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tenv", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PWD": str(folder), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="session")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH with one Python, the one that runs the tests."""
    folder = tmp_path_factory.mktemp("bin")
    base = getattr(sys, "_base_executable", sys.executable)
    (folder / f"python3.{sys.version_info.minor}").symlink_to(base)
    return folder


@pytest.fixture(scope="session")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of uv that knows the Pythons of this machine, so that not every test asks them anew."""
    return tmp_path_factory.mktemp("seed")


@pytest.fixture
def project(
    tmp_path: Path, index: Index, pythons: Path, seed: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    """A project whose target `tiny` asks for fake wheels; the test stands in its folder."""
    made = Project(tmp_path / "project", index)
    made.manifest.parent.mkdir(parents=True)
    made.manifest.write_text(TINY)
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    monkeypatch.setenv("PATH", f"{pythons}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setattr(engine, "leave", sys.exit)  # this process has tests to go on with
    _stand_in(monkeypatch, made.folder)
    with _kept(seed / "interpreter-v5", tmp_path / "cache" / "interpreter-v5"):
        yield made
    for child in made.started:
        if child.poll() is None:
            child.kill()
        child.communicate()


@contextlib.contextmanager
def _kept(store: Path, used: Path) -> Iterator[None]:
    """Lend a folder to the body: copied there before, and what was there at the first end kept for the next."""
    if store.is_dir():
        shutil.copytree(store, used)
    yield
    if used.is_dir() and not store.is_dir():
        shutil.copytree(used, store)


@pytest.fixture
def change_environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that sets variables for the rest of the test; None unsets one."""

    def change(**values: str | None) -> None:
        for name, value in values.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)

    return change
