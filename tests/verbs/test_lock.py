"""`tenv lock`: every file for every platform, from any machine, with what still fits kept."""

import json
import re
from pathlib import Path

import pytest

from tenv.core.file_stamps import stamps_folder
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tests.support.fakes import MINORS, Fault, Index, make_native, make_wheel
from tests.support.projects import PLATFORMS, Project, call
from tests.support.rarely import first_fast


def read(project: Project) -> Lock:
    return read_lock(project.lock, "tiny")


def versions(project: Project, platform: str = "linux-64") -> dict[str, str]:
    return {wheel.name: wheel.version for wheel in read(project).wheels[platform]}


def test_serves_every_platform_and_minor_from_one_machine(project: Project) -> None:
    project.widen()
    data = project.ok("lock", "tiny", "--json").data
    lock = read(project)
    assert tuple(lock.platforms) == PLATFORMS
    assert all(lock.python_minors(platform) == MINORS for platform in PLATFORMS)
    assert data["target"] == "tiny"
    assert data["path"] == str(project.lock)
    assert data["changed"] is True
    # native has a file for each Python, the others one for all
    assert data["platforms"] == {platform: {"conda": 0, "wheels": 4, "archives": 0} for platform in PLATFORMS}


@pytest.mark.parametrize(
    ("platform", "ending"),
    [
        ("linux-64", "manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
        ("linux-aarch64", "manylinux_2_17_aarch64.whl"),
        ("win-64", "win_amd64.whl"),
    ],
)
def test_takes_the_file_of_the_platform_and_the_python(wide: Project, platform: str, ending: str) -> None:
    for minor in MINORS:
        [native] = [wheel for wheel in read(wide).wheels_for(platform, minor) if wheel.name == "native"]
        tag = f"cp{minor.replace('.', '')}"
        assert native.file == f"native-1.0-{tag}-{tag}-{ending}"
        assert native.python == (minor,)


def test_takes_the_files_of_what_is_required_too_and_their_sizes(locked: Project) -> None:
    sizes = {wheel.file: wheel.size for wheel in read(locked).wheels["linux-64"]}
    assert set(versions(locked)) == {"alpha", "beta", "native"}
    assert sizes == {name: (locked.index.folder / name).stat().st_size for name in sizes}


def test_is_the_same_bytes_when_made_again_from_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project.ok("lock", "tiny")
    first = project.lock.read_bytes()
    project.lock.unlink()
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "another"))
    with Index(project.index.folder) as mirror:
        monkeypatch.setenv("UV_DEFAULT_INDEX", mirror.url)
        project.ok("lock", "tiny")
    assert project.lock.read_bytes() == first


def test_names_no_host(locked: Project) -> None:
    text = locked.lock.read_text()
    assert "://" not in text
    assert "127.0.0.1" not in text
    assert str(locked.folder) not in text


def test_asks_no_index_when_it_is_up_to_date(locked: Project) -> None:
    make_wheel(locked.index.folder, "alpha", "1.1")
    locked.index.asked.clear()
    ended = locked.ok("lock", "tiny", "--json")
    assert ended.data["changed"] is False
    assert locked.index.asked == []


def test_keeps_versions_that_still_fit(locked: Project) -> None:
    make_wheel(locked.index.folder, "alpha", "1.1", requires=["beta>=1"])
    make_wheel(locked.index.folder, "beta", "1.1")
    locked.ask_for('gamma = "*"')
    locked.ok("lock", "tiny")
    assert versions(locked) == {"alpha": "1.0", "beta": "1.0", "gamma": "1.0", "native": "1.0"}


def test_chooses_anew_what_no_longer_fits(locked: Project) -> None:
    make_wheel(locked.index.folder, "alpha", "1.1", requires=["beta>=1.1"])
    make_wheel(locked.index.folder, "beta", "1.1")
    locked.edit('alpha  = ">=1"', 'alpha  = ">=1.1"')
    locked.ok("lock", "tiny")
    assert versions(locked) == {"alpha": "1.1", "beta": "1.1", "native": "1.0"}


def test_keeps_versions_when_the_index_fails_for_a_moment(
    project: Project, impatient: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project.ok("lock", "tiny")
    before = project.lock.read_bytes()
    make_wheel(project.index.folder, "beta", "1.1")
    project.ask_for('gamma = "*"')
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "empty"))
    with project.index.failing(Fault.ERROR, r"beta-1\.0.*metadata"):
        project.fails(6, "network", "lock", "tiny")
    assert project.lock.read_bytes() == before


def test_drops_what_is_no_longer_asked_for(project: Project) -> None:
    project.ask_for('gamma = "*"')
    project.ok("lock", "tiny")
    project.edit('gamma = "*"\n', "")
    err = project.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert "  linux-64: gamma is locked and nothing requires it\n" in err
    project.ok("lock", "tiny")
    assert "gamma" not in versions(project)


def test_is_stale_when_an_extra_is_added(locked: Project) -> None:
    locked.edit('alpha  = ">=1"', 'alpha  = { version = ">=1", extras = ["more"] }')
    before = locked.lock.read_bytes()
    err = locked.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert "  linux-64: alpha 1.0 requires gamma, which is not in the lock\n" in err
    assert "hint: `tenv lock tiny` updates the lock" in err
    assert locked.lock.read_bytes() == before
    locked.ok("lock", "tiny")
    assert versions(locked)["gamma"] == "1.0"


def test_is_not_stale_when_the_range_grows_around_the_locked_version(locked: Project) -> None:
    locked.edit('alpha  = ">=1"', 'alpha  = ">=0.5,<3"')
    assert locked.ok("lock", "tiny", "--check", "--json").data["changed"] is False


def test_is_not_stale_for_a_comment_or_another_order(locked: Project) -> None:
    locked.edit('alpha  = ">=1"\nnative = "*"', '# first\nnative = "*"\nalpha = ">=1"')
    locked.ok("lock", "tiny", "--check")


def test_check_needs_a_lock(project: Project) -> None:
    err = project.fails(7, "lock-missing", "lock", "tiny", "--check")
    assert f"there is no lock for `tiny` ({project.lock})" in err
    assert "hint: `tenv lock tiny` writes it" in err


def test_goes_to_the_file_that_is_named(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "sent.lock"
    project.ok("lock", "tiny", "--lock-file", str(path))
    assert path.is_file()
    assert not project.lock.exists()


@pytest.mark.parametrize("wanted", first_fast(["alpha = '>=9'", "nowhere = '*'"], 0))
def test_a_version_that_no_index_has_is_no_solution(project: Project, wanted: str) -> None:
    project.edit('alpha  = ">=1"', wanted)
    err = project.fails(5, "no-solution", "lock", "tiny")
    assert "error[no-solution]: no set of wheels for tiny on linux-64 with Python" in err
    assert not project.lock.exists()


def test_a_platform_without_a_wheel_is_no_solution_and_is_named(project: Project) -> None:
    for wheel in project.index.folder.glob("native-*aarch64.whl"):
        wheel.unlink()
    project.widen_platforms()
    err = project.fails(5, "no-solution", "lock", "tiny")
    assert "no set of wheels for tiny on linux-aarch64 with Python" in err


def test_a_wheel_for_a_newer_c_library_is_not_taken(project: Project) -> None:
    for minor in MINORS:
        tag = f"cp{minor.replace('.', '')}"
        make_wheel(project.index.folder, "native", "2.0", tag=f"{tag}-{tag}-manylinux_2_28_x86_64")
    project.ok("lock", "tiny")
    assert versions(project)["native"] == "1.0"


def test_takes_the_newest_wheel_without_an_earlier_lock(project: Project) -> None:
    make_native(project.index.folder, "native", "2.0")
    project.ok("lock", "tiny")
    assert versions(project)["native"] == "2.0"


def test_an_unknown_target_is_told_with_the_nearest_name(project: Project) -> None:
    err = project.fails(2, "unknown-target", "lock", "tinny")
    assert err == (
        "error[unknown-target]: there is no target `tinny`\nhint: did you mean `tiny`? (`tenv targets` lists them)\n"
    )


def test_a_misspelt_key_is_told_with_its_line_and_the_nearest_key(project: Project) -> None:
    project.edit("[pypi-dependencies]", "[pypi-dependancies]")
    line = project.manifest.read_text().splitlines().index("[pypi-dependancies]") + 1
    assert project.fails(3, "manifest", "lock", "tiny") == (
        f"error[manifest]: manifests/tiny.toml:{line}: pypi-dependancies: unknown key\n"
        "hint: did you mean `pypi-dependencies`?\n"
    )


CONFLICT = b"<<<<<<< ours\nversion: 7\n=======\nversion: 6\n>>>>>>> theirs\n"


@pytest.mark.parametrize("words", [("lock", "tiny"), ("lock", "tiny", "--check"), ("create", "tiny")])
def test_a_lock_with_conflict_marks_is_told_and_left_alone(locked: Project, words: tuple[str, ...]) -> None:
    damaged = CONFLICT + locked.lock.read_bytes()
    locked.lock.write_bytes(damaged)
    err = locked.fails(7, "lock-conflict", *words)
    assert f"{locked.lock}: has conflict markers of an unresolved merge" in err
    assert f"hint: `tenv merge-driver {locked.lock}` merges both sides" in err
    assert f"; or `git checkout --ours {locked.lock}` takes one side, and `tenv lock tiny` then updates it" in err
    assert locked.lock.read_bytes() == damaged


@pytest.mark.parametrize("words", [("create", "tiny"), ("create", "tiny", "--frozen"), ("lock", "tiny", "--check")])
@pytest.mark.parametrize("part", [0.02, 0.5, 0.9])
def test_a_truncated_lock_is_corrupt(locked: Project, words: tuple[str, ...], part: float) -> None:
    whole = locked.lock.read_bytes()
    locked.lock.write_bytes(whole[: int(len(whole) * part)])
    locked.fails(7, "lock-corrupt", *words)


def test_lock_writes_a_truncated_one_anew(locked: Project) -> None:
    whole = locked.lock.read_bytes()
    locked.lock.write_bytes(whole[: len(whole) // 2])
    locked.ok("lock", "tiny")
    assert locked.lock.read_bytes() == whole


@pytest.mark.parametrize("fault", first_fast([Fault.ERROR, Fault.CUT, Fault.FORBIDDEN, Fault.SILENT], 2))
def test_an_index_that_fails_is_a_network_error(project: Project, fault: Fault, impatient: None) -> None:
    with project.index.failing(fault, "simple"):
        project.fails(6, "network", "lock", "tiny")
    assert not project.lock.exists()


def test_an_index_that_is_not_there_is_a_network_error(project: Project, impatient: None) -> None:
    project.index.stop()
    err = project.fails(6, "network", "lock", "tiny")
    assert "hint: check the network and the index" in err
    assert not project.lock.exists()


def test_offline_with_an_empty_cache_says_what_to_do(project: Project) -> None:
    err = project.fails(6, "network", "lock", "tiny", "--offline")
    assert "hint: the cache lacks a file: run the same command without `--offline`" in err
    assert project.index.asked == []


def test_offline_a_wheel_whose_requirements_were_never_read_is_named(project: Project) -> None:
    for note in stamps_folder().glob("requires-*.json"):  # those of other tests
        note.unlink()
    project.ok("lock", "tiny")
    project.lock.unlink()
    next(stamps_folder().glob("requires-*.json")).unlink()
    err = project.fails(6, "network", "lock", "tiny", "--offline")
    assert re.search(
        r"can't read the requirements of \S+\.whl\nhint: run the same command once without `--offline`", err
    )
    assert not project.lock.exists()
    project.ok("lock", "tiny")


def test_a_lock_does_not_depend_on_whether_sizes_could_be_asked(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENV_HTTP_TIMEOUT", "0.2")
    monkeypatch.setenv("TENV_HTTP_RETRIES", "0")
    with project.index.failing(Fault.SILENT):
        err = project.fails(6, "network", "lock", "tiny")
    assert "the size of " in err
    assert not project.lock.exists()


def test_needs_no_python_on_the_path(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    project.ok("lock", "tiny")
    assert project.lock.is_file()


def test_a_broken_manifest_next_to_it_does_not_matter(project: Project) -> None:
    (project.manifest.parent / "other.toml").write_text("platforms = [")
    project.ok("lock", "tiny")
    ended = call("targets", "--json")
    assert ended.status == 0
    assert {row["name"] for row in ended.data if row["origin"] == "project"} == {"tiny"}
    assert "other" in ended.err


def test_what_is_taken_from_the_host_is_recorded(project: Project) -> None:
    project.manifest.write_text(project.manifest.read_text() + '\n[system]\ngcc = ">=11"\n')
    project.ok("lock", "tiny")
    assert read(project).requests["linux-64"]["system"] == {"gcc": [">=11"]}


def test_speaks_json_when_it_fails(project: Project) -> None:
    ended = call("lock", "tinny", "--json")
    assert json.loads(ended.out)["error"] == {
        "code": "unknown-target",
        "message": "there is no target `tinny`",
        "hint": "did you mean `tiny`? (`tenv targets` lists them)",
    }
