"""Which Python an environment is made with."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tenv.core.errors import NetworkError, UsageError
from tenv.core.versions import Range, Version
from tenv.environment.state import State, Status
from tenv.install.plan import choose_python
from tenv.locks.lock import Lock, Wheel
from tenv.sources.job import named_python
from tenv.sources.wheels.interpreters import Interpreter
from tenv.sources.wheels.uv import Uv
from tenv.targets.manifest import Manifest
from tenv.targets.search import Origin, Target
from tests.support.each import each
from tests.support.fakes import MINORS as CREATED_MINORS
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project

MINORS = ("3.11", "3.12", "3.13")
TARGET = Target(
    "t", Path("t.toml"), Origin.PROJECT, Manifest("t", "t.toml", python=Range(">=3.11,<3.14")), Path(), Path()
)


def python(version: str, *, headers: bool = True) -> Interpreter:
    return Interpreter(Path(f"/usr/bin/python{version}"), Version(version), headers)


@dataclass
class FakeUv(Uv):
    """A machine with the Pythons that a test gives it, best first; any other is fetched."""

    here: list[Interpreter] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    carried: None = None

    def interpreters(self, minors: Sequence[str], *, for_others: bool = False) -> list[Interpreter]:  # noqa: ARG002
        return [one for one in self.here if one.version.major_minor in minors]

    def unselected(self, minor: str) -> Interpreter | None:
        assert minor not in [one.version.major_minor for one in self.here]
        return None

    def inspect(self, program: Path) -> Interpreter | None:
        found = {one.path: one for one in self.here}
        fetched = [python(f"{minor}.9") for minor in self.fetched]
        return found.get(program) or next((one for one in fetched if one.path == program), None)

    def fetch_python(self, minor: str) -> Path:
        self.fetched.append(minor)
        return python(f"{minor}.9").path


def choose(
    uv: Uv,
    wanted: str | None = None,
    old: str | None = None,
    minors: tuple[str, ...] = MINORS,
    unfit: tuple[str, ...] = (),
) -> str:
    wheel = Wheel("a", "1", "a-1-py3-none-any.whl", "0" * 64, 1, minors)
    lock = Lock("t", ("linux-64",), {"linux-64": (wheel,)}, {}, {}, "0")
    state = None if old is None else State(Status.READY, "t", python=old)
    return choose_python(uv, TARGET, lock, "linux-64", wanted, state, unfit).version.text


class OffNetwork(FakeUv):
    """A machine that fetches nothing."""

    def fetch_python(self, minor: str) -> Path:
        raise NetworkError(f"there is no Python {minor}", hint="check the network")


MACHINE = [python("3.13.1"), python("3.11.7"), python("3.12.4", headers=False)]


def test_the_hosts_best_is_taken() -> None:
    assert choose(FakeUv(MACHINE)) == "3.13.1"


def test_only_what_the_lock_serves_is_taken() -> None:
    assert choose(FakeUv(MACHINE), minors=("3.11", "3.12")) == "3.11.7"


def test_what_the_revision_can_not_be_built_with_is_not_chosen() -> None:
    assert choose(FakeUv(MACHINE), unfit=("3.13",)) == "3.11.7"
    assert choose(FakeUv(MACHINE), unfit=MINORS) == "3.13.1"  # the rules say more of that
    assert choose(FakeUv(MACHINE), old="3.13", unfit=("3.13",)) == "3.13.1"  # torch may be in it
    assert choose(FakeUv(MACHINE), wanted="3.13", unfit=("3.13",)) == "3.13.1"
    uv = FakeUv(MACHINE[:1])
    with pytest.raises(NetworkError) as caught:
        choose(OffNetwork(MACHINE[:1]), unfit=("3.13",))
    assert caught.value.hint == "install Python 3.12, or use `--python 3.13`, with which this PyTorch can't be built"
    assert choose(uv, unfit=("3.13",)) == "3.12.9"
    assert uv.fetched == ["3.12"]


def test_without_the_network_the_pythons_of_the_machine_are_named() -> None:
    with pytest.raises(NetworkError) as caught:
        choose(OffNetwork([MACHINE[0], MACHINE[1]]), wanted="3.12")
    here = "this machine has Python 3.11, 3.13: `tenv create t --python 3.13` takes it"
    assert caught.value.hint == f"{here}; or check the network"
    with pytest.raises(NetworkError) as caught:
        choose(OffNetwork([]), wanted="3.12")
    assert caught.value.hint == "check the network"


def test_an_environment_keeps_its_python() -> None:
    assert choose(FakeUv(MACHINE), old="3.12") == "3.12.4"
    assert choose(FakeUv(MACHINE), old="") == "3.13.1"


def test_an_environment_whose_python_is_no_longer_served_gets_another() -> None:
    assert choose(FakeUv(MACHINE), old="3.10") == "3.13.1"


def test_the_one_asked_for_wins() -> None:
    assert choose(FakeUv(MACHINE), wanted="3.11", old="3.12") == "3.11.7"
    assert choose(FakeUv(MACHINE), wanted="/usr/bin/python3.12.4", old="3.11") == "3.12.4"


def test_what_the_host_lacks_is_fetched() -> None:
    uv = FakeUv()
    assert choose(uv) == "3.13.9"
    assert choose(uv, wanted="3.11") == "3.11.9"
    assert choose(uv, old="3.12") == "3.12.9"
    assert uv.fetched == ["3.13", "3.11", "3.12"]


@each(
    "wanted, message",
    [
        ("3.10", "`--python 3.10`: the lock of t serves 3.11, 3.12, 3.13"),
        ("python3.12x", "`--python python3.12x` is no program on PATH; the lock of t serves 3.11, 3.12, 3.13"),
        (
            "/nowhere/python",
            "`--python /nowhere/python` is not a working Python; the lock of t serves 3.11, 3.12, 3.13",
        ),
        (
            "/usr/bin/python3.14.1",
            "`--python /usr/bin/python3.14.1` is Python 3.14.1; the lock of t serves 3.11, 3.12, 3.13",
        ),
    ],
)
def test_one_that_does_not_do_is_refused(wanted: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(FakeUv([*MACHINE, python("3.14.1")]), wanted=wanted)
    assert caught.value.message == message


def test_a_program_may_be_named_as_on_path(tmp_path: Path) -> None:
    program = make_python(tmp_path, "python3.12d", "3.12.4", headers=True)
    for wanted, found in (("python3.12d", str(program)), ("3.12", "3.12"), ("python3.13", "python3.13")):
        assert named_python(wanted, {"PATH": str(tmp_path)}) == found


def make_python(folder: Path, name: str, version: str, *, headers: bool) -> Path:
    """Write a program that answers as a Python of a version would."""
    include = folder / f"include-{name}"
    include.mkdir(parents=True)
    if headers:
        (include / "Python.h").touch()
    program = folder / name
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' cpython {version} '{include}' '{program}'\n")
    program.chmod(0o755)
    return program


@each("newer_has_headers, expected", [(True, "3.97.1"), (False, "3.96.2")])
def test_the_search_prefers_the_highest_minor_with_headers(
    tmp_path: Path, newer_has_headers: bool, expected: str
) -> None:
    make_python(tmp_path, "python3.96", "3.96.2", headers=True)
    make_python(tmp_path, "python3.97", "3.97.1", headers=newer_has_headers)
    make_python(tmp_path, "python3.98", "3.98.0", headers=True)
    uv = Uv({"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}, tmp_path)
    assert str(uv.interpreters(["3.96", "3.97"])[0].version) == expected


def test_a_python_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "python3.97").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "python3.97").chmod(0o755)
    make_python(tmp_path, "python3", "3.97.4", headers=True)
    uv = Uv({"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}, tmp_path)
    assert [str(found.version) for found in uv.interpreters(["3.97"])] == ["3.97.4"]


def make_pyenv(home: Path) -> Path:
    """Write a folder of pyenv with three versions; return that of its shims, which must not be started."""
    root = home / "pyenv"
    for name, program, version in (
        ("3.96.2", "python3.96", "3.96.2"),
        ("3.96.10", "python3.96", "3.96.10"),
        ("mine", "python3.97", "3.97.1"),
    ):
        make_python(root / "versions" / name / "bin", program, version, headers=True)
    for name in ("python3.96", "python3.97"):
        shim = root / "shims" / name
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(f"#!/bin/sh\ntouch '{home}/started'\nexit 127\n")
        shim.chmod(0o755)
    return root / "shims"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("3.96.2\n", ["3.96.2"]),
        ("# ours\nmine extra\n3.96\n", ["3.97.1"]),
        ("python-3.96\n", ["3.96.10"]),
        ("gone:3.96.2\r\n", ["3.96.2"]),
        ("system\n", []),
        ("../shims\n", []),
        ("", []),
    ],
)
def test_pyenv_is_read_and_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, expected: list[str]
) -> None:
    shims = make_pyenv(tmp_path)
    (tmp_path / ".python-version").write_text(chosen)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    uv = Uv({"PATH": f"{shims}:/usr/bin:/bin", "HOME": str(tmp_path)}, tmp_path)
    assert [str(found.version) for found in uv.interpreters(["3.96", "3.97"])] == expected
    assert not (tmp_path / "started").exists()


def test_a_version_of_pyenv_that_is_not_selected_is_still_a_python_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims = make_pyenv(tmp_path)
    (tmp_path / ".python-version").write_text("3.96.2\n")
    monkeypatch.chdir(tmp_path)
    environment = {"PATH": f"{shims}:/usr/bin:/bin", "HOME": str(tmp_path)}
    uv = Uv(environment, tmp_path)
    target = replace(TARGET, manifest=Manifest("t", "t.toml", python=Range(">=3.96,<3.98")))
    wheel = Wheel("a", "1", "a-1-py3-none-any.whl", "0" * 64, 1, ("3.96", "3.97"))
    lock = Lock("t", ("linux-64",), {"linux-64": (wheel,)}, {}, {}, "0")
    for wanted, version in (("3.97", "3.97.1"), ("3.96", "3.96.2"), (None, "3.96.2")):
        assert str(choose_python(uv, target, lock, "linux-64", wanted, None).version) == version


def test_a_variable_chooses_before_pyenvs_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shims = make_pyenv(tmp_path)
    (shims.parent / "version").write_text("3.96.2\n")
    monkeypatch.chdir(tmp_path)
    environment = {"PATH": f"{shims}:/usr/bin:/bin", "HOME": str(tmp_path)}
    assert str(Uv(environment, tmp_path).interpreters(["3.96", "3.97"])[0].version) == "3.96.2"
    named = Uv({**environment, "PYENV_VERSION": "gone:mine"}, tmp_path)
    assert str(named.interpreters(["3.96", "3.97"])[0].version) == "3.97.1"


def test_pyenvs_folder_comes_before_the_working_folder_and_does_not_replace_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims = make_pyenv(tmp_path)
    named, here = tmp_path / "named", tmp_path / "here"
    for folder in (named, here):
        folder.mkdir()
    (here / ".python-version").write_text("3.96.2\n")
    monkeypatch.chdir(here)
    environment = {"PATH": f"{shims}:/usr/bin:/bin", "HOME": str(tmp_path), "PYENV_DIR": str(named)}
    uv = Uv(environment, tmp_path)
    assert [str(found.version) for found in uv.interpreters(["3.96", "3.97"])] == ["3.96.2"]
    (named / ".python-version").write_text("mine\n")
    assert [str(found.version) for found in uv.interpreters(["3.96", "3.97"])] == ["3.96.2"]  # one search a command
    assert [str(found.version) for found in Uv(environment, tmp_path).interpreters(["3.96", "3.97"])] == ["3.97.1"]


def test_no_python_is_advised_that_another_request_excludes(project: Project) -> None:
    other = next(minor for minor in CREATED_MINORS if minor != HERE)
    make_wheel(project.index.folder, "old", "1.0", tag=f"cp{other.replace('.', '')}-none-any")
    make_wheel(project.index.folder, "present", "1.0", tag=f"cp{HERE.replace('.', '')}-none-any")
    project.ask_for('old = "*"')
    archive = '; where it has a source archive, `old = { version = "*", build = true }` permits its build'
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert f"old has no wheel for Python {HERE}; it has wheels for Python {other}" in said
    assert f'hint: set python = ">={other},<3.{int(other[2:]) + 1}"{archive}' in said
    project.ask_for('present = "*"')
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert f"hint: remove old{archive}" in said
