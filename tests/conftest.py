"""What every test stands on: a home of its own, no network, and a small project with an index of fake wheels."""

import tests.support.bytecode
import tests.support.traced_threads  # noqa: F401 (both work by being imported, before all that they are about)

# isort: split
import contextlib
import gc
import importlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import certifi
import pytest
import yaml
from hypothesis import settings

from tenv.checks import before_create as precheck
from tenv.checks.host_options import HostOptions
from tenv.checks.host_options import report as look_at_machine
from tenv.core import process
from tenv.core.certificates import Authorities
from tenv.core.http_settings import Patience
from tenv.host.report import HostReport
from tenv.install import make
from tenv.interop import container_recipe, github_actions
from tenv.locks import lock_file
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock
from tenv.project.context import Context
from tenv.rattler_api import fetch
from tenv.sources.wheels import interpreters
from tenv.sources.wheels.interpreters import inspect
from tenv.sources.wheels.uv import Uv
from tenv.targets import manifest_file
from tenv.targets.manifest import Manifest
from tenv.toolchain import smoke_tests
from tenv.verbs import audit as audited
from tests.support.bytecode import forget_bytecode
from tests.support.channels import Channels
from tests.support.fakes import MINORS, Index, make_native, make_wheel, noise
from tests.support.made_once import MadeOnce
from tests.support.memory_folder import memory_folder
from tests.support.projects import HERE, TINY, Project, write_config

_FOREIGN = (
    *("PIP_", "UV_", "TENV_", "XDG_", "CONDA", "PIXI_", "RATTLER_", "VIRTUAL_ENV"),
    *("SSL_C", "GIT_SSL_", "REQUESTS_CA_", "CURL_CA_", "NETRC"),
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_NOBODY = "http://127.0.0.1:9"
_PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
_SCRIPT = "[console_scripts]\nbeta = beta:main\n"


# A few examples of each property with the fast tests; `--hypothesis-profile=thorough` asks for many.
settings.register_profile("fast", max_examples=15, deadline=None)
settings.register_profile("thorough", max_examples=150, deadline=None)
settings.load_profile("fast")

for _name in ("SafeLoader", "SafeDumper"):  # libyaml takes a tenth of the time that `yaml.safe_load` takes by itself
    setattr(yaml, _name, getattr(yaml, f"C{_name}", getattr(yaml, _name)))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell script's `&` makes its programs deaf to Ctrl-C, and so would be all that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


_numbers: Counter[str] = Counter()
_make_folder = pytest.TempPathFactory.mktemp


def _numbered(self: pytest.TempPathFactory, basename: str, numbered: bool = True) -> Path:
    """Make a folder of a test. pytest looks for its number among the links that all tests before it have left."""
    number = f"{_numbers[basename]}" if numbered else ""
    _numbers[basename] += 1
    return _make_folder(self, f"{basename}{number}", numbered=False)


pytest.TempPathFactory.mktemp = _numbered  # type: ignore[method-assign]


def pytest_configure(config: pytest.Config) -> None:
    """Put the folders of tests into memory; not those of tests on real packages, which take several GB."""
    if "not real" in config.option.markexpr and not config.option.basetemp and (folder := memory_folder()):
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)  # for the programs that tests start, too


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep the collector of cycles away from the thousands of cases, which live to the end.

    Later it runs as rarely as in the program: a twelfth of the time of the tests in Python went to it.
    """
    gc.disable()
    gc.set_threshold(100_000)
    _import_backwards(session.config)
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def _import_backwards(config: pytest.Config) -> None:
    """Import the tests of a whole session in every second worker from the last module on.

    pytest rewrites their assertions in 7 s of processor time in a new copy, and keeps the result: so each worker
    rewrites about half of them. The collection, in the one order of all workers, finds them imported.
    """
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    if int(worker[2:]) % 2 == 0 or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    for path in sorted((config.rootpath / "tests").rglob("test_*.py"), reverse=True):
        with contextlib.suppress(Exception, pytest.skip.Exception):  # the collection reports it
            importlib.import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


@pytest.fixture(autouse=True)
def _isolated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
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
        monkeypatch.setenv(name, str(home.parent / folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")  # else uv waits for seconds before it asks nobody again
    for name in _PROXIES:  # what children ask of the world goes to a port where nobody listens
        monkeypatch.setenv(name, _NOBODY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(socket.socket, "connect", _connect)
    _quicken(request.path, monkeypatch)
    _stand_in(monkeypatch, home)
    if request.path.name not in _ABOUT_MACHINES:
        monkeypatch.setattr(precheck, "report", _this_machine)
        monkeypatch.setattr(audited, "host_report", _this_machine)


def _quicken(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what costs time alone, but in the tests that are about it."""
    for module in (container_recipe, github_actions):
        monkeypatch.setattr(module, "own_wheel", _own_wheel)
        monkeypatch.setattr(module, "constraints", _constraints)
    if path.name != "test_process.py":  # a fork copies the tables of all cases' memory; its tests have it
        monkeypatch.setattr(process, "_binding", lambda **_: contextlib.nullcontext({}))
    if "toolchain" not in path.parts:
        monkeypatch.setattr(smoke_tests, "_HELLO", _SHORT_HELLO)
    if path.name != "test_certificates.py":
        monkeypatch.setattr(Authorities, "variables", _few_authorities)
    if path.name != "test_download.py":  # no server of the tests is overloaded, and nobody's proxy never answers
        monkeypatch.setattr(Patience, "of", _hasty)
        monkeypatch.setattr(fetch, "_PAUSE", _PAUSE)
    monkeypatch.setattr(Uv, "folder", _uv_folder)
    if path.name != "test_power_loss.py":  # a busy disk takes its time, and no test here loses power
        monkeypatch.setattr(make, "flush", lambda _: None)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder of the user's, with nothing beside it; one in which a test leaves nothing serves the next too."""
    if once := _once(request):
        folder = once.user / "home"
        shutil.rmtree(once.user, ignore_errors=True)  # a program that a test killed may have written after its end
        forget_bytecode(once.project)
    else:
        folder = _homes.pop() if _homes else Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp())) / "home"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    if not once and [*folder.parent.iterdir()] == [folder] and not any(folder.iterdir()):
        _homes.append(folder)
    else:
        shutil.rmtree(folder.parent, ignore_errors=True)


_homes: list[Path] = []


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MadeOnce]:
    """Where all tests with a project have it: an environment is made once, and uv learns of its Python once."""
    with MadeOnce(tmp_path_factory.mktemp("once")) as places:
        yield places


def _once(request: pytest.FixtureRequest) -> MadeOnce | None:
    return request.getfixturevalue("once") if "project" in request.fixturenames else None


_ABOUT_MACHINES = {
    f"test_{name}.py"
    for name in (
        *("auto", "check", "check_driver", "compat", "mixed", "once", "precheck"),
        *("startup", "system"),
    )
}
"""Tests of what `create` finds on the machine; for the others it is looked at once, since that starts programs."""

_parse_large = lru_cache(maxsize=64)(parse_lock)
"""The built-in locks take a second together, and many tests read all of them."""


def _parse_lock(raw: bytes, path: str, target: str = "") -> Lock:
    return _parse_large(raw, path, target) if len(raw) > _LARGE else parse_lock(raw, path, target)


_LARGE = 1 << 14
"""Bytes; the locks that tests make have fewer."""

lock_file.parse_lock = _parse_lock  # also while the tests are collected

_BUILT_IN = Path(__file__).parent.parent / "manifests"
_manifests: dict[tuple[str, Path, Path | None], tuple[Manifest, list[tuple[str, Path]]]] = {}
"""The manifests of built-in targets, with their parents: commands about all targets read fifty files."""

_read_anew = manifest_file.read_manifest


def _read_manifest(
    name: str, path: Path, find: Callable[[str], Path], shown: str = "", home: Path | None = None
) -> Manifest:
    key = name, path, home
    if key in _manifests and all(find(parent) == file for parent, file in _manifests[key][1]):
        return _manifests[key][0]
    parents: list[tuple[str, Path]] = []

    def find_parent(parent: str) -> Path:
        parents.append((parent, find(parent)))
        return parents[-1][1]

    found = _read_anew(name, path, find_parent, shown, home)
    if {file.parent for file in (path, *(file for _, file in parents))} == {_BUILT_IN}:
        _manifests[key] = found, parents
    return found


manifest_file.read_manifest = _read_manifest

_own_wheel, _constraints = cache(container_recipe.own_wheel), cache(container_recipe.constraints)
"""Files of tenv's own, which are the same for each container; compressing them takes half a second."""

_SHORT_HELLO = '#include <cstdio>\nint main() { std::puts("14"); }\n'
"""The first program of the probes without the headers, whose compilation takes half a second."""

_PAUSE = 0.01
"""Seconds before a request is sent again."""

_patience = Patience.of


def _hasty(environment: Mapping[str, str]) -> Patience:
    return replace(_patience(environment), pause=_PAUSE)


@cache
def _first_authority() -> str:
    first = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    return first[0] + first[1]


_variables = Authorities.variables


def _few_authorities(self: Authorities, folder: Path) -> dict[str, str]:
    """Name one authority to uv and rattler, which read 300 files at each start where none is named."""
    if (found := _variables(self, folder)) or self.system:
        return found
    (folder / "first.pem").write_text(_first_authority())
    (folder / "none").mkdir(exist_ok=True)
    return {"SSL_CERT_FILE": str(folder / "first.pem"), "SSL_CERT_DIR": str(folder / "none")}


_ask_folder = Uv.folder
_folders: dict[tuple[object, ...], Path] = {}
_OF_FOLDERS = ("UV_CACHE_DIR", "UV_NO_CACHE", "UV_PYTHON_INSTALL_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME")


def _uv_folder(self: Uv, kind: str) -> Path:
    """Ask uv for a folder once with the same settings: each `create` asks for that of the cache."""
    key = kind, self._program, str(self.configuration), *map(self.environment.get, _OF_FOLDERS)
    if key not in _folders:
        _folders[key] = _ask_folder(self, kind)
    return _folders[key]


_machines: dict[tuple[str | None, ...], HostReport] = {}


def _this_machine(context: Context, options: HostOptions) -> HostReport:
    if options != HostOptions():
        return look_at_machine(context, options)
    named = ("PATH", "CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH", "CONDA_OVERRIDE_CUDA")
    key = tuple(context.environ.get(name) for name in named)
    if key not in _machines:
        _machines[key] = look_at_machine(context, options)
    return _machines[key]


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
    """A folder of fake wheels: alpha needs beta, native differs by platform and Python, large takes time to fetch."""
    folder = tmp_path_factory.mktemp("wheels")
    make_wheel(folder, "alpha", "1.0", requires=["beta>=1"], extras={"more": ["gamma"]})
    program = {"beta.py": "def main(): print('beta 1.0')\n", "beta-1.0.dist-info/entry_points.txt": _SCRIPT}
    make_wheel(folder, "beta", "1.0", files=program)
    make_wheel(folder, "gamma", "1.0")
    make_native(folder, "native", "1.0")
    make_wheel(folder, "large", "1.0", files={"large.bin": noise(1 << 18)})
    return folder


@pytest.fixture
def index(request: pytest.FixtureRequest, wheels: Path, tmp_path: Path) -> Iterator[Index]:
    """An index of its own for a test, with every fake wheel."""
    folder = tmp_path / "index"
    shutil.copytree(wheels, folder, copy_function=shutil.copyfile)
    once = _once(request)
    with Index(folder, once.port if once else 0) as served:
        yield served


@pytest.fixture(scope="session")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH: the programs of the system, and one Python, the one that runs the tests."""
    folder = tmp_path_factory.mktemp("bin")
    for program in (*Path("/bin").glob("*"), *Path("/usr/bin").glob("*")):
        if not program.name.startswith(("python", "uv", "tenv")) and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    (folder / f"python{HERE}").symlink_to(_BASE)
    return folder


@pytest.fixture(scope="session")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of uv's cache that all tests share: what it has learned of the Pythons of this machine."""
    folder = tmp_path_factory.mktemp("seed") / "interpreters"
    folder.mkdir()
    return folder


@pytest.fixture
def project(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    index: Index,
    pythons: Path,
    seed: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    """A project whose target `tiny` asks for fake wheels on this platform; the test stands in its folder."""
    once = _once(request)
    made = Project(once.project if once else tmp_path / "project", index)
    made.manifest.parent.mkdir(parents=True)
    made.manifest.write_text(TINY)
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    monkeypatch.setenv("PATH", str(pythons))
    monkeypatch.setattr(interpreters, "inspect", _inspected)
    _stand_in(monkeypatch, made.folder)
    learned = Path(os.environ["UV_CACHE_DIR"]) / "interpreter-v5"
    learned.parent.mkdir(parents=True, exist_ok=True)
    learned.symlink_to(seed)
    yield made
    made.end_all()
    if once:  # pytest removes it, or keeps it where the test failed
        once.project.parent.rename(tmp_path / "once")


def _inspected(program: Path, environment: Mapping[str, str]) -> interpreters.Interpreter | None:
    """Inspect a Python; the one that runs the tests, which all projects find, is started once."""
    if program != _BASE:
        return inspect(program, environment)
    if not _inspections:
        _inspections.append(inspect(program, environment))
    return _inspections[0]


_inspections: list[interpreters.Interpreter | None] = []
_BASE = Path(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture
def empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without a target; the test stands in its folder."""
    folder = tmp_path / "project"
    (folder / "manifests").mkdir(parents=True)
    (folder / "tenv.toml").touch()
    _stand_in(monkeypatch, folder)
    return folder


@pytest.fixture
def channels(tmp_path: Path) -> Iterator[Channels]:
    """Conda channels of this test's own, to which tenv's settings lead; they are empty."""
    with Channels() as served:
        write_config(served.settings())
        yield served


@pytest.fixture
def locked(project: Project, seed: Path) -> Project:
    """The project with its lock made."""
    _lock(project, seed.with_name("tiny.lock"))
    return project


@pytest.fixture
def wide(project: Project, seed: Path) -> Project:
    """The project, for all platforms, with its lock made."""
    project.widen()
    _lock(project, seed.with_name("wide.lock"))
    return project


@pytest.fixture
def heavy(project: Project, seed: Path) -> Project:
    """The project, locked, with a wheel more that takes some time to download."""
    project.ask_for('large = "*"')
    _lock(project, seed.with_name("heavy.lock"))
    return project


def _lock(project: Project, store: Path) -> None:
    """Lock the project, or take the lock that an earlier test got for the same question."""
    if store.is_file():
        project.lock.parent.mkdir()
        shutil.copy(store, project.lock)
    else:
        project.ok("lock", "tiny")
        shutil.copy(project.lock, store)


@pytest.fixture
def created(locked: Project, once: MadeOnce) -> Project:
    """The project with its environment made."""
    if locked.folder != once.project:  # a test that asks for this fixture while it runs has a project elsewhere
        locked.ok("create", "tiny")
    elif not once.copy():
        locked.ok("create", "tiny")
        once.keep()
    return locked


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make uv, rattler and tenv give up on a server at once."""
    monkeypatch.setenv("TENV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    network = Context.network
    monkeypatch.setattr(Context, "network", lambda context: replace(network(context), retries=0))


@pytest.fixture(scope="session")
def other_python() -> Path:
    """The program of the other one of MINORS, when it is beside the Python that runs the tests, or pyenv has it."""
    other = next(minor for minor in MINORS if minor != HERE)
    folders = Path(sys.base_prefix).parent, _PYENV / "versions"
    found = sorted(file for folder in folders for file in folder.glob(f"*{other}*/bin/python{other}"))
    return found[0] if found else pytest.skip(f"no Python {other} beside {sys.base_prefix}, nor pyenv's")
