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
def many(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose target has more cases than tenv starts processes, locked; what was asked is forgotten."""
    monkeypatch.setattr(resolve, "_WORKERS", 2)
    project.widen_platforms()
    project.ok("lock", "tiny")
    pages(project)
    return project


def test_each_page_is_asked_for_once(many: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = many.lock.read_bytes()
    many.lock.unlink()
    many.ok("lock", "tiny")
    assert pages(many) == {"alpha": 1, "beta": 1, "native": 1}
    monkeypatch.setattr(resolve, "_WORKERS", 3)  # as many processes as cases, each of which asks
    many.lock.unlink()
    many.ok("lock", "tiny")
    assert pages(many)["native"] == 3
    assert many.lock.read_bytes() == first


def test_metadata_beside_a_file_is_asked_of_a_server_that_has_some(project: Project) -> None:
    project.widen_platforms()
    for number in range(20):
        make_wheel(project.index.folder, f"more{number}", "1.0")
        project.ask_for(f'more{number} = "*"')
    project.index.whole = True
    project.ok("lock", "tiny")
    asked = [
        path
        for path, who in zip(project.index.asked, project.index.askers, strict=True)
        if path.endswith(".metadata") and who.startswith("tenv/")
    ]
    assert 0 < len(asked) <= 10  # three, and those of the other threads
    rows = read_lock(project.lock, "tiny").wheels.values()
    assert all(wheel.requires is not None for wheels in rows for wheel in wheels)


@pytest.mark.long
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


@pytest.mark.long
def test_an_impossible_edit_asks_for_its_own_names_alone(many: Project) -> None:
    said = many.fails(5, "no-solution", "add", "tiny", "alpah")
    assert "no index in use has a package `alpah`" in said
    assert "did you mean `tenv add tiny alpha`?" in said
    assert pages(many).keys() == {"alpah"}
    said = many.fails(5, "no-solution", "add", "tiny", "beta==99")
    assert "no release of beta is 99; the newest with a wheel is 1.0" in said
    asked = pages(many)
    assert asked.keys() - {"beta"} <= {"alpha", "native"}  # of the solution with another version
    assert max(asked["alpha"], asked["native"]) <= 1


def test_a_conflict_of_an_edit_is_found_without_the_other_requests(many: Project) -> None:
    make_wheel(many.index.folder, "needs", "1.0", requires=["beta>=2"])
    make_wheel(many.index.folder, "beta", "2.0")
    many.ask_for('beta = "==1.0"')
    many.ok("lock", "tiny")
    said = many.fails(5, "no-solution", "add", "tiny", "needs")
    assert 'these requests conflict:\n  beta = "==1.0"\n  needs = "*"\n  needs 1.0 requires beta >=2' in said


@pytest.mark.long
def test_an_old_page_refuses_no_new_request(many: Project) -> None:
    many.index.caching = "max-age=600"
    many.lock.unlink()
    many.ok("lock", "tiny")
    make_wheel(many.index.folder, "beta", "2.0")
    make_wheel(many.index.folder, "alpha", "1.1", requires=["beta>=2"])
    make_wheel(many.index.folder, "needs", "1.0", requires=["beta>=2"])
    many.ok("add", "tiny", "needs")
    assert locked_version(many, "beta") == {"2.0"}


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


@pytest.mark.long
def test_one_case_sees_a_release_of_this_second_too(project: Project) -> None:
    project.index.caching = "max-age=600"
    project.ok("lock", "tiny")
    make_wheel(project.index.folder, "beta", "2.0")
    (row,) = project.ok("outdated", "tiny", "--json").data
    assert (row["name"], row["locked"], row["allowed"], row["newest"]) == ("beta", ["1.0"], ["2.0"], "2.0")
    project.ok("update", "tiny", "beta")
    assert locked_version(project, "beta") == {"2.0"}
    make_wheel(project.index.folder, "beta", "3.0")
    project.ok("add", "tiny", "beta==3.0")
    assert locked_version(project, "beta") == {"3.0"}


@pytest.mark.long
def test_an_unknown_version_without_a_lock_asks_once_more(many: Project) -> None:
    many.index.caching = "max-age=600"
    many.lock.unlink()
    many.ok("lock", "tiny")
    make_wheel(many.index.folder, "beta", "3.0")
    many.lock.unlink()
    many.ask_for('beta = "==3.0"')
    many.ok("lock", "tiny")
    assert locked_version(many, "beta") == {"3.0"}


@pytest.mark.long
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
