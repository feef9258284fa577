"""`tenv create`: an environment that holds what its lock says, or one that nobody takes for ready."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tenv.sources.wheels.installed import Wheels
from tests.support.each import each
from tests.support.fakes import MINORS, Fault, change_byte, make_wheel, unpack
from tests.support.projects import HERE, Project, call, snapshot
from tests.support.rarely import first_fast


def test_makes_an_environment_that_works(locked: Project) -> None:
    data = locked.ok("create", "tiny", "--json").data
    assert data["prefix"] == str(locked.prefix)
    assert (data["target"], data["state"], data["changed"]) == ("tiny", "ready", True)
    assert data["counts"] == {"conda": 0, "wheels": 3, "archives": 0}
    assert data["bytes"] > 0
    state = locked.state()
    assert (state["state"], state["python"]) == ("ready", HERE)
    assert {name: version for name, (version, _) in state["packages"].items()} == {
        "alpha": "1.0",
        "beta": "1.0",
        "native": "1.0",
    }
    done = subprocess.run([locked.prefix / "bin" / "beta"], capture_output=True, text=True, check=True)
    assert done.stdout == "beta 1.0\n"


def test_git_does_not_see_the_environments(created: Project) -> None:
    assert (created.folder / ".tenv" / ".gitignore").read_text() == "*\n"


def test_works_in_a_folder_with_blanks_and_other_letters(locked: Project, tmp_path: Path) -> None:
    prefix = tmp_path / "my envs" / "größe 'x'"
    locked.ok("create", "tiny", "--prefix", str(prefix))
    done = subprocess.run([prefix / "bin" / "beta"], capture_output=True, text=True, check=True)
    assert done.stdout == "beta 1.0\n"
    assert not locked.prefix.exists()


def test_locks_first_where_there_is_no_lock(project: Project) -> None:
    err = project.ok("create", "tiny").err
    assert f"{project.lock}: no lock yet: locked\n" in err
    assert project.lock.is_file()


def test_has_nothing_to_do_the_second_time(created: Project) -> None:
    before = snapshot(created.prefix)
    created.index.stop()
    ended = created.ok("create", "tiny", "--json")
    assert ended.data["changed"] is False
    assert snapshot(created.prefix) == before


# The lock: made anew, demanded, or taken as it is.


def test_locks_anew_what_is_stale_and_says_why(created: Project) -> None:
    created.ask_for('gamma = "*"')
    err = created.ok("create", "tiny").err
    assert "linux-64: gamma is not in the lock" in err
    assert created.state()["packages"]["gamma"][0] == "1.0"


def test_locked_stops_at_a_stale_lock_and_changes_nothing(created: Project) -> None:
    lock, before = created.lock.read_bytes(), snapshot(created.prefix)
    created.ask_for('gamma = "*"')
    err = created.fails(7, "lock-stale", "create", "tiny", "--locked")
    assert f"{created.lock} does not satisfy its manifest:\n  linux-64: gamma is not in the lock\n" in err
    assert created.lock.read_bytes() == lock
    assert snapshot(created.prefix) == before
    assert created.state()["state"] == "ready"


def test_frozen_refuses_a_lock_that_does_not_answer_its_manifest(locked: Project) -> None:
    lock = locked.lock.read_bytes()
    locked.ask_for('gamma = "*"')
    assert "gamma is not in the lock" in locked.fails(7, "lock-stale", "create", "tiny", "--frozen")
    assert not locked.prefix.exists()
    assert locked.lock.read_bytes() == lock


def test_frozen_takes_a_lock_that_answers_another_question(locked: Project) -> None:
    lock = locked.lock.read_bytes()
    locked.edit('alpha  = ">=1"', 'alpha  = ">=0.5"')
    locked.ok("create", "tiny", "--frozen")
    assert locked.lock.read_bytes() == lock
    assert locked.ok("create", "tiny", "--frozen", "--json").data["changed"] is False


@pytest.mark.parametrize("flag", ["--locked", "--frozen"])
def test_locked_and_frozen_need_a_lock(project: Project, flag: str) -> None:
    project.fails(7, "lock-missing", "create", "tiny", flag)
    assert not project.prefix.exists()


def test_locked_and_frozen_exclude_each_other(project: Project) -> None:
    err = project.fails(2, "usage", "create", "tiny", "--locked", "--frozen")
    assert "--locked and --frozen exclude each other" in err


def test_takes_the_lock_that_it_is_handed(locked: Project, tmp_path: Path) -> None:
    sent = locked.lock.rename(tmp_path / "sent.lock")
    data = locked.ok("create", "tiny", "--lock-file", str(sent), "--json").data
    assert data["lock"] == str(sent)
    assert not locked.lock.exists()


def test_a_lock_that_it_is_handed_is_never_written(locked: Project, tmp_path: Path) -> None:
    sent = locked.lock.rename(tmp_path / "sent.lock")
    before = sent.read_bytes()
    locked.ask_for('gamma = "*"')
    locked.fails(7, "lock-stale", "create", "tiny", "--lock-file", str(sent))
    assert sent.read_bytes() == before


def test_follows_the_lock_and_keeps_what_is_not_its_own(created: Project) -> None:
    unpack(created.index.folder / "large-1.0-py3-none-any.whl", created.site())
    make_wheel(created.index.folder, "alpha", "1.1")
    created.edit('alpha  = ">=1"', 'alpha  = ">=1.1"')
    created.ok("create", "tiny")
    installed = Wheels(created.prefix).versions()
    assert installed == {"alpha": "1.1", "native": "1.0", "large": "1.0"}  # alpha 1.1 needs no beta


def test_a_new_variable_needs_no_download(created: Project) -> None:
    created.manifest.write_text(created.manifest.read_text() + '\n[activation.env]\nUSE_MPI = "0"\n')
    created.index.stop()
    assert created.ok("create", "tiny", "--json").data["changed"] is True
    [row] = created.ok("env", "tiny", "--explain", "USE_MPI", "--json").data
    assert (row["action"], row["value"]) == ("set", "0")


# Indexes that fail, and files that are not those of the lock.


def check_not_ready(project: Project) -> None:
    """An environment that did not come to be is not taken for one, and stands alone in its folder."""
    rows = call("list", "--json").data
    assert [row["state"] for row in rows] in ([], ["creating"])
    project.fails(8, "environment-broken" if rows else "environment-missing", "activate", "tiny")
    assert {path.name for path in project.prefix.parent.iterdir()} <= {"tiny", ".tiny.lock"}
    assert not (project.prefix / "tenv-meta" / "activate.sh").exists()


@pytest.mark.parametrize("fault", first_fast([Fault.ERROR, Fault.CUT, Fault.FORBIDDEN, Fault.SILENT], 2))
def test_a_wheel_that_can_not_be_had_is_a_network_error(locked: Project, fault: Fault, impatient: None) -> None:
    with locked.index.failing(fault):
        err = locked.fails(6, "network", "create", "tiny")
    assert "error[network]: uv can't install the wheels of the lock:" in err
    assert "hint: check the network and the index" in err
    check_not_ready(locked)
    locked.ok("create", "tiny")


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.FORBIDDEN])
def test_an_index_that_fails_is_told_in_its_own_words(locked: Project, fault: Fault, impatient: None) -> None:
    with locked.index.failing(fault, "simple"):
        err = locked.fails(6, "network", "create", "tiny")
    assert "Resolving" not in err
    check_not_ready(locked)


def test_an_index_that_is_not_there_is_a_network_error(locked: Project, impatient: None) -> None:
    locked.index.stop()
    assert "Connection refused" in locked.fails(6, "network", "create", "tiny")
    check_not_ready(locked)


def test_a_wheel_that_the_index_has_no_more_is_a_network_error(locked: Project) -> None:
    (locked.index.folder / "beta-1.0-py3-none-any.whl").unlink()
    err = locked.fails(6, "network", "create", "tiny")
    assert "beta" in err
    check_not_ready(locked)


def test_a_changed_byte_is_a_hash_mismatch(locked: Project) -> None:
    change_byte(locked.index.folder / "alpha-1.0-py3-none-any.whl")
    err = locked.fails(6, "hash-mismatch", "create", "tiny")
    assert "alpha" in err
    check_not_ready(locked)


def test_a_byte_changed_on_the_way_is_a_hash_mismatch(locked: Project) -> None:
    with locked.index.failing(Fault.CHANGED, "alpha.*whl$"):
        locked.fails(6, "hash-mismatch", "create", "tiny")
    check_not_ready(locked)
    locked.ok("create", "tiny")


def test_another_wheel_of_the_same_name_is_a_hash_mismatch(locked: Project) -> None:
    make_wheel(locked.index.folder, "alpha", "1.0", requires=["beta>=1"], files={"alpha.py": "EVIL = 1\n"})
    err = locked.fails(6, "hash-mismatch", "create", "tiny")
    assert "Hash mismatch for `alpha==1.0`" in err
    check_not_ready(locked)


def test_a_ready_environment_stays_ready_when_a_download_fails(created: Project, impatient: None) -> None:
    before = created.state()
    created.ask_for('large = "*"')
    created.ok("lock", "tiny")
    with created.index.failing(Fault.ERROR):
        created.fails(6, "network", "create", "tiny")
    assert created.state() == before
    created.ok("activate", "tiny")
    created.ok("create", "tiny")
    assert created.state()["packages"]["large"][0] == "1.0"


def test_offline_takes_everything_from_the_cache(created: Project) -> None:
    created.ok("remove", "tiny")
    created.index.stop()
    created.ok("create", "tiny", "--offline")
    assert created.state()["state"] == "ready"


def test_offline_with_an_empty_cache_says_what_to_do(locked: Project) -> None:
    err = locked.fails(6, "network", "create", "tiny", "--offline")
    assert "hint: the cache lacks a file: run the same command without `--offline`" in err
    assert locked.index.asked == []
    check_not_ready(locked)


# Folders that hold something else.


@pytest.mark.parametrize("file", ["notes.txt", "bin/python", "pyvenv.cfg"])
def test_a_folder_that_holds_something_else_is_left_alone(locked: Project, tmp_path: Path, file: str) -> None:
    path = tmp_path / "mine" / file
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    err = locked.fails(8, "foreign-folder", "create", "tiny", "--prefix", str(tmp_path / "mine"))
    assert f"{tmp_path / 'mine'} is not an environment of tenv and holds files (such as {file.split('/', 1)[0]})" in err
    for more in ("--dry-run", "--anew"):
        assert err == locked.fails(8, "foreign-folder", "create", "tiny", "--prefix", str(tmp_path / "mine"), more)
    assert [path.read_text()] == [path.read_text() for path in (tmp_path / "mine").rglob("*") if path.is_file()]


def test_a_file_is_no_place_for_an_environment(locked: Project, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    locked.fails(8, "foreign-folder", "create", "tiny", "--prefix", str(tmp_path / "mine"))
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("place", ["sub", "lib/deep/sub", "tenv-meta/sub", "link"])
def test_an_environment_in_another_one_is_refused(created: Project, tmp_path: Path, place: str) -> None:
    prefix = created.prefix / place
    if place == "link":  # of the user, to a folder of the environment
        (tmp_path / "link").symlink_to(created.prefix)
        prefix = tmp_path / "link" / "sub"
    before = snapshot(created.prefix)
    for more in ([], ["--anew"], ["--dry-run"]):
        said = created.fails(8, "foreign-folder", "create", "tiny", "--prefix", str(prefix), *more)
        assert f"lies in another environment ({created.prefix})" in said
    assert snapshot(created.prefix) == before


def test_an_environment_around_another_one_is_refused(locked: Project, tmp_path: Path) -> None:
    around, inner = tmp_path / "around", str(tmp_path / "around" / "inner")
    locked.ok("create", "tiny", "--prefix", inner)
    for more in ([], ["--anew"], ["--dry-run"]):
        said = locked.fails(8, "foreign-folder", "create", "tiny", "--prefix", str(around), *more)
        assert f"{around} is not an environment of tenv and holds files (such as " in said
    locked.ok("verify", "tiny", "--prefix", inner)


@each("what, place", [("your home folder", "~"), ("tenv's environments", ".tenv"), ("tenv's data", "data")])
def test_a_folder_that_is_to_hold_more_is_refused(
    what: str, place: str, locked: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "home").mkdir()
    prefix = {"data": str(tmp_path / "data"), ".tenv": str(locked.folder / ".tenv")}.get(place, place)
    for more in ([], ["--dry-run"]):
        assert what in locked.fails(8, "foreign-folder", "create", "tiny", "--prefix", prefix, *more)
    assert [*(tmp_path / "home").iterdir()] == []


def test_a_wheel_whose_name_writes_its_version_in_another_way(project: Project) -> None:
    make_wheel(project.index.folder, "padded", "2023.03")
    project.ask_for('padded = "*"')
    project.ok("create", "tiny")
    assert project.state()["packages"]["padded"][0] == "2023.3"
    assert project.ok("create", "tiny", "--json").data["changed"] is False


@pytest.mark.parametrize("name", ["empty", "-x"])
def test_an_empty_folder_is_taken(name: str, locked: Project, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    made = locked.ok("create", "tiny", "--prefix", str(tmp_path / name), "--json").data
    assert (made["prefix"], made["state"]) == (str(tmp_path / name), "ready")


# What was installed by hand.


def install_by_hand(project: Project) -> None:
    unpack(project.index.folder / "gamma-1.0-py3-none-any.whl", project.site())
    (project.site() / "editable.pth").write_text("/somewhere\n")
    (project.prefix / "notes.txt").write_text("mine")


def by_hand(project: Project) -> set[str]:
    paths = (project.site() / "gamma.py", project.site() / "editable.pth", project.prefix / "notes.txt")
    return {path.name for path in paths if path.is_file()}


EVERYTHING = {"gamma.py", "editable.pth", "notes.txt"}


@pytest.mark.long
def test_what_was_installed_by_hand_survives(created: Project) -> None:
    install_by_hand(created)
    assert created.ok("create", "tiny", "--json").data["changed"] is False
    created.ask_for('large = "*"')
    created.ok("create", "tiny")
    assert by_hand(created) == EVERYTHING


def test_what_was_installed_by_hand_survives_a_failure_and_its_repair(created: Project, impatient: None) -> None:
    install_by_hand(created)
    created.ask_for('large = "*"')
    created.ok("lock", "tiny")
    for _ in range(2):
        with created.index.failing(Fault.ERROR):
            created.fails(6, "network", "create", "tiny")
    created.ok("create", "tiny")
    assert by_hand(created) == EVERYTHING
    assert Wheels(created.prefix).versions().keys() == {"alpha", "beta", "gamma", "large", "native"}


def test_exact_removes_what_was_installed_by_hand(created: Project) -> None:
    before = snapshot(created.prefix)
    install_by_hand(created)
    created.ok("create", "tiny", "--exact")
    assert by_hand(created) == set()
    assert snapshot(created.prefix) == before


# Environments that were damaged.


@pytest.mark.parametrize("text", ["", "{", '{"state": "ready"}'])
def test_a_damaged_state_is_repaired(created: Project, text: str) -> None:
    before = snapshot(created.prefix)
    unpack(created.index.folder / "gamma-1.0-py3-none-any.whl", created.site())
    created.state_file.write_text(text)
    created.fails(8, "environment-broken", "activate", "tiny")
    created.ok("create", "tiny")
    assert created.state()["state"] == "ready"
    assert (created.site() / "gamma.py").is_file()
    (created.site() / "gamma.py").unlink()
    after = snapshot(created.prefix)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {
        f"{(created.site() / 'gamma-1.0.dist-info').relative_to(created.prefix)}/{name}"
        for name in ("METADATA", "RECORD", "WHEEL")
    }


def test_a_lost_activation_is_written_anew(created: Project) -> None:
    (created.prefix / "tenv-meta" / "activation.json").unlink()
    created.fails(8, "environment-broken", "env", "tiny")
    created.ok("create", "tiny")
    assert created.ok("env", "tiny", "--json").data


def test_a_removed_package_is_put_back(created: Project) -> None:
    before = snapshot(created.prefix)
    (created.site() / "alpha.py").unlink()
    for path in (created.site() / "alpha-1.0.dist-info").iterdir():
        path.unlink()
    (created.site() / "alpha-1.0.dist-info").rmdir()
    created.ok("create", "tiny")
    assert snapshot(created.prefix) == before


def test_a_package_in_another_version_is_put_right(created: Project) -> None:
    (created.site() / "alpha-1.0.dist-info").rename(created.site() / "alpha-0.9.dist-info")
    metadata = created.site() / "alpha-0.9.dist-info" / "METADATA"
    text = metadata.read_text()
    metadata.unlink()  # uv's cache may hold the same file under another name
    metadata.write_text(text.replace("Version: 1.0", "Version: 0.9"))
    created.ok("create", "tiny")
    assert Wheels(created.prefix).versions()["alpha"] == "1.0"


def test_a_python_that_went_away_is_replaced(created: Project) -> None:
    before = snapshot(created.prefix)
    for name in ("python", "python3", f"python{HERE}"):
        (created.prefix / "bin" / name).unlink()
    (created.prefix / "bin" / "python").symlink_to("/nowhere/python")
    created.ok("create", "tiny")
    assert snapshot(created.prefix) == before


# The Python.


@pytest.mark.parametrize("wanted", ["3.9", "2.7", "python", "4"])
def test_a_python_that_the_lock_does_not_serve_is_refused(locked: Project, wanted: str) -> None:
    err = locked.fails(2, "usage", "create", "tiny", "--python", wanted)
    assert f"`--python {wanted}`" in err
    assert f"the lock of tiny serves {HERE}\n" in err
    assert not locked.prefix.exists()


def test_a_program_that_is_no_python_is_refused(locked: Project) -> None:
    err = locked.fails(2, "usage", "create", "tiny", "--python", "/bin/true")
    assert "`--python /bin/true` is not a working Python; the lock of tiny serves" in err


def test_a_python_is_taken_by_its_minor_or_its_program(locked: Project, pythons: Path) -> None:
    locked.ok("create", "tiny", "--python", HERE)
    locked.ok("remove", "tiny")
    locked.ok("create", "tiny", "--python", str(pythons / f"python{HERE}"))
    assert locked.state()["python"] == HERE
    assert (locked.prefix / "bin" / "python").resolve() == (pythons / f"python{HERE}").resolve()


def test_another_python_replaces_the_environment(created: Project, other_python: Path) -> None:
    install_by_hand(created)
    created.widen_pythons()
    created.ok("lock", "tiny")
    err = created.ok("create", "tiny", "--python", str(other_python)).err
    other = next(minor for minor in MINORS if minor != HERE)
    assert f"note: unmanaged packages for Python {HERE} were removed with that Python" in err
    assert created.state()["python"] == other
    assert [path.name for path in (created.prefix / "lib").iterdir()] == [f"python{other}"]
    assert created.ok("create", "tiny", "--json").data["python"] == other  # and it stays with it


# The host.


def test_a_target_for_other_platforms_is_refused(project: Project) -> None:
    text = project.manifest.read_text()
    line = next(line for line in text.splitlines() if line.startswith("platforms"))
    project.edit(line, 'platforms = ["win-64"]')
    err = project.fails(4, "host", "create", "tiny")
    assert "the target tiny is for win-64; this host is linux-" in err


def test_a_target_for_a_newer_c_library_is_refused(project: Project) -> None:
    project.edit('glibc = "2.17"', 'glibc = "2.99"')
    ended = call("create", "tiny")
    assert ended.status == 4
    assert "the target's packages need glibc 2.99 or newer: they neither install nor start here" in ended.err
    assert "error[unfit-host]: PyTorch can't be built with `tiny` on this machine (TE502)" in ended.err
    assert not project.lock.exists()


def test_speaks_json_when_it_fails(project: Project) -> None:
    ended = call("create", "tinny", "--json")
    error = json.loads(ended.out)["error"]
    assert (ended.status, error["code"]) == (2, "unknown-target")


def test_an_active_environment_can_be_made_anew(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{created.prefix / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", str(created.prefix))
    before = snapshot(created.prefix)
    created.ok("create", "tiny", "--exact")
    assert snapshot(created.prefix) == before


def test_what_a_killed_write_left_behind_goes(created: Project) -> None:
    before = snapshot(created.prefix)
    for name in (".state.json.abcdefgh", "locks/.000001.lock.abcdefgh"):
        (created.prefix / "tenv-meta" / name).write_text("{")
    created.ok("create", "tiny", "--exact")
    assert snapshot(created.prefix) == before
