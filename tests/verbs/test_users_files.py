"""What a user puts into an environment stays: beside programs that tenv makes, and below ``$CUDA_HOME``."""

import json

import pytest

from tests.support.fakes import make_nvidia, make_wheel
from tests.support.projects import Project
from tests.support.rarely import first_fast

NAMES = (
    "bin/python-mytool",
    "bin/activate-mine",
    "bin/pydoc_mine",
    "bin/mine",
    "SITE/my_virtualenv.py",
    "SITE/mine/_virtualenv.py",
    "cuda/mine.txt",
    "cuda/include/mine.h",
    "cuda/include/mine/deep.h",
    "cuda/lib/libmine.so",
    "cuda/share/mine/data.bin",
    "share/__pycache__x/mine",
)


@pytest.fixture
def toolkit(locked: Project) -> Project:
    """An environment with a toolkit of wheels."""
    make_nvidia(locked.index.folder)
    for name in ("nvidia-cuda-runtime", "nvidia-cuda-nvcc", "nvidia-cudnn-cu13", "cuda-toolkit"):
        locked.ask_for(f'{name} = "*"')
    locked.ok("create", "tiny")
    return locked


def plant(project: Project) -> dict[str, str]:
    """Put the user's files there, and return them by name."""
    site = project.site().relative_to(project.prefix)
    names = [name.replace("SITE", str(site)) for name in NAMES]
    for name in names:
        path = project.prefix / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"of the user: {name}\n")
    (project.prefix / "cuda/lib/libmine-link.so").symlink_to("libmine.so")
    return {name: f"of the user: {name}\n" for name in names} | {"cuda/lib/libmine-link.so": "libmine.so"}


def left(project: Project) -> dict[str, str]:
    """Return what there is of the user's files, by name."""
    found = {}
    for path in project.prefix.rglob("*"):
        name = str(path.relative_to(project.prefix))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file() and path.stat().st_size < 200 and path.read_bytes().startswith(b"of the user"):
            found[name] = path.read_text()
    return found


def check(project: Project, mine: dict[str, str]) -> None:
    there = left(project)
    assert {name: there.get(name) for name in mine} == mine
    assert (project.prefix / "cuda" / "include" / "cuda.h").is_file()
    assert (project.prefix / "cuda" / "lib" / "libcudart.so").exists()


def interrupt(project: Project) -> None:
    """Give the state that a killed `create` leaves, with what it knew of the user's files."""
    state = project.state()
    listed = project.ran("verify", "tiny", "--no-probes", "--json").data["integrity"]["extra"]
    project.state_file.write_text(json.dumps({**state, "state": "creating", "foreign": listed}))


def test_verify_lists_them_and_finds_no_fault(toolkit: Project) -> None:
    mine = plant(toolkit)
    data = toolkit.ok("verify", "tiny", "--no-probes", "--json").data
    assert {*mine} == {*data["integrity"]["extra"]}


@pytest.mark.parametrize("words", first_fast([("create", "tiny", "--repair"), ("create", "tiny")]))
def test_they_stay_when_an_environment_is_brought_up_to_date(toolkit: Project, words: tuple[str, ...]) -> None:
    mine = plant(toolkit)
    make_wheel(toolkit.index.folder, "delta", "1.0")
    toolkit.ask_for('delta = "*"')
    toolkit.ok(*words)
    check(toolkit, mine)
    assert {*mine} == {*toolkit.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]["extra"]}


@pytest.mark.long
def test_they_stay_when_an_interrupted_environment_is_finished(toolkit: Project) -> None:
    mine = plant(toolkit)
    interrupt(toolkit)
    toolkit.ok("create", "tiny")
    check(toolkit, mine)
    assert {*mine} == {*toolkit.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]["extra"]}


@pytest.mark.long
def test_they_stay_when_the_records_of_tenv_are_lost(toolkit: Project) -> None:
    mine = plant(toolkit)
    (toolkit.prefix / "tenv-meta" / "made.json").unlink()
    toolkit.ok("create", "tiny", "--repair")
    check(toolkit, {name: text for name, text in mine.items() if not name.endswith("-link.so")})
