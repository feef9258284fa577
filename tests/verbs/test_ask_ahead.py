"""Locking for several platforms and Pythons: each page is asked for once, and a release of this second is seen."""

from collections import Counter

import pytest

from tenv.locks.lock_file import read_lock
from tenv.sources.wheels import metadata, resolve
from tests.support.fakes import make_wheel
from tests.support.projects import Project
from tests.support.rarely import first_fast


def pages(project: Project) -> Counter[str]:
    """Return how often each page was asked for since the last call."""
    found = Counter(path.split("/")[2] for path in project.index.asked if path.startswith("/simple/"))
    project.index.asked.clear()
    return found


def locked_version(project: Project, name: str) -> set[str]:
    lock = read_lock(project.lock, "tiny")
    return {wheel.version for wheels in lock.wheels.values() for wheel in wheels if wheel.name == name}


@pytest.fixture
def many(project: Project) -> Project:
    """A project whose target has six cases, locked; what was asked is forgotten."""
    project.widen()
    project.ok("lock", "tiny")
    pages(project)
    return project


def test_each_page_is_asked_for_once(many: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = many.lock.read_bytes()
    many.lock.unlink()
    many.ok("lock", "tiny")
    assert pages(many) == {"alpha": 1, "beta": 1, "native": 1}
    monkeypatch.setattr(resolve, "_WORKERS", 6)  # as many processes as cases, each of which asks
    many.lock.unlink()
    many.ok("lock", "tiny")
    assert pages(many)["native"] == 6
    assert many.lock.read_bytes() == first


def test_a_universal_resolution_would_lose_what_one_file_of_a_release_requires(many: Project) -> None:
    """It reads the requirements of one file of a release, so that each case has a resolution of its own."""
    folder = many.index.folder
    for name in ("mkl_part", "only_windows"):
        make_wheel(folder, name, "1.0", tag="py3-none-win_amd64" if name == "only_windows" else "py3-none-any")
    make_wheel(folder, "differs", "1.0", tag="py3-none-manylinux_2_17_x86_64")
    make_wheel(folder, "differs", "1.0", tag="py3-none-manylinux_2_17_aarch64", requires=["mkl_part"])
    make_wheel(folder, "differs", "1.0", tag="py3-none-win_amd64", requires=["only_windows"])
    many.ok("add", "tiny", "differs")
    lock = read_lock(many.lock, "tiny")
    brought = {on: {wheel.name for wheel in wheels} for on, wheels in lock.wheels.items()}
    assert {on: names & {"mkl-part", "only-windows"} for on, names in brought.items()} == {
        "linux-64": set(), "linux-aarch64": {"mkl-part"}, "win-64": {"only-windows"}
    }  # fmt: skip
    text = many.lock.read_bytes()
    many.lock.unlink()
    many.ok("lock", "tiny")
    assert many.lock.read_bytes() == text


def test_an_edit_asks_for_the_new_names_alone(many: Project) -> None:
    many.ok("add", "tiny", "gamma")
    assert pages(many) == {"gamma": 1}
    many.ok("drop", "tiny", "gamma")
    assert pages(many) == {}


@pytest.mark.parametrize("caching", first_fast(["max-age=600", "", "no-store"]))
def test_a_release_of_this_second_is_seen(many: Project, caching: str) -> None:
    many.index.caching = caching
    many.ok("add", "tiny", "large")  # whose page is fresh now, where the server allows it
    make_wheel(many.index.folder, "large", "2.0")
    make_wheel(many.index.folder, "beta", "2.0")
    many.ok("add", "tiny", "large==2.0")
    assert locked_version(many, "large") == {"2.0"}
    assert locked_version(many, "beta") == {"1.0"}
    many.ok("update", "tiny")
    assert locked_version(many, "beta") == {"2.0"}
    make_wheel(many.index.folder, "brand_new", "1.0")
    many.ok("add", "tiny", "brand-new")
    assert locked_version(many, "brand-new") == {"1.0"}


def test_an_unknown_version_without_a_lock_asks_once_more(many: Project) -> None:
    many.index.caching = "max-age=600"
    many.lock.unlink()
    many.ok("lock", "tiny")
    make_wheel(many.index.folder, "beta", "3.0")
    many.lock.unlink()
    many.ask_for('beta = "==3.0"')
    many.ok("lock", "tiny")
    assert locked_version(many, "beta") == {"3.0"}


def test_an_old_page_decides_on_no_version_that_moves(many: Project) -> None:
    """The page of beta in the cache is that of the first lock; a new package needs a newer beta."""
    make_wheel(many.index.folder, "beta", "2.0")
    make_wheel(many.index.folder, "needs", "1.0", requires=["beta>=2"])
    many.ok("add", "tiny", "needs")
    assert locked_version(many, "beta") == {"2.0"}


def test_requirements_are_noted_by_address_and_digest(many: Project) -> None:
    many.index.asked.clear()
    many.index.askers.clear()
    many.lock.unlink()
    many.ok("lock", "tiny")
    asked = list(zip(many.index.asked, many.index.askers, strict=True))
    assert any(who.startswith("uv/") for _, who in asked)
    assert not [path for path, who in asked if path.endswith(".metadata") and who.startswith("tenv/")]
    metadata.note_requirements("https://a.example/x.whl", "0" * 64, ["other"])
    assert metadata.noted_requirements("https://a.example/x.whl", "0" * 64) == ("other",)
    assert metadata.noted_requirements("https://b.example/x.whl", "0" * 64) is None


@pytest.mark.parametrize("text", ["", "[", "{}", '["a", 1]', "[" * 100_000])
def test_a_damaged_note_is_none(text: str, project: Project) -> None:
    metadata.note_requirements("https://a.example/x.whl", "0" * 64, ["other"])
    note = metadata._note("https://a.example/x.whl", "0" * 64)
    note.write_text(text)
    assert metadata.noted_requirements("https://a.example/x.whl", "0" * 64) is None
