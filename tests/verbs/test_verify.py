"""`tenv verify`: every file is what it was, and the tools work; and the repair of what is not."""

import json
from pathlib import Path

import pytest

from tests.support.fakes import change_byte
from tests.support.projects import Ended, Project, call, snapshot

pytestmark = pytest.mark.long


def verify(project: Project, *words: str) -> Ended:
    return call("verify", "tiny", "--no-probes", *words)


def integrity(project: Project) -> dict[str, list[str]]:
    found: dict[str, list[str]] = verify(project, "--json").data["integrity"]
    return found


def test_a_fresh_environment_is_whole_and_works(created: Project) -> None:
    ended = created.ok("verify", "tiny", "--json")
    data = ended.data
    assert data["integrity"] == {"missing": [], "changed": [], "extra": [], "packages": []}
    assert [(row["name"], row["ok"]) for row in data["probes"]] == [
        ("python", True),
        ("c++", True),
        ("python-extension", True),
        ("openmp", True),
    ]
    assert all(row["seconds"] > 0 and row["log"].startswith("$ ") for row in data["probes"])
    assert "imports.py alpha beta native" in data["probes"][0]["log"]


def test_says_so_to_people(created: Project) -> None:
    ended = created.ok("verify")
    assert ended.out.startswith("works    python  ")
    assert ended.err.endswith(f"tiny ({created.prefix}): all files are intact; 4 probes passed\n")


def test_changed_and_missing_files_end_with_status_8(created: Project) -> None:
    (created.site() / "alpha.py").write_text("other\n")
    (created.prefix / "bin" / "beta").unlink()
    ended = verify(created)
    assert ended.status == 8
    name = str(created.site().relative_to(created.prefix))
    assert ended.out == f"missing  bin/beta\nchanged  {name}/alpha.py\n"
    assert f"tiny ({created.prefix}): 2 files changed or missing\n" in ended.err
    assert ended.err.endswith("hint: `tenv create tiny --repair` reinstalls the damaged packages\n")
    found = json.loads(verify(created, "--json").out)
    assert found["ok"] is False
    assert found["data"]["integrity"]["packages"] == ["alpha", "beta"]


def test_a_package_that_is_gone_or_another_version_is_missing(created: Project) -> None:
    for path in created.site().glob("beta*"):
        if path.is_dir():
            path.rename(path.with_name("beta-9.0.dist-info"))
    missing = integrity(created)["missing"]
    assert "beta 1.0" in missing
    assert all(name == "beta 1.0" or "beta-1.0.dist-info" in name for name in missing)


def test_files_of_one_s_own_are_told_and_no_fault(created: Project) -> None:
    (created.prefix / "notes.txt").write_text("")
    ended = verify(created)
    assert (ended.status, ended.out) == (0, "extra  notes.txt\n")
    assert "all files are intact, 1 unmanaged file" in ended.err


@pytest.mark.parametrize("name", ["activate.sh", "activation.json", "made.json"])
def test_the_activation_is_looked_at_too(created: Project, name: str) -> None:
    path = created.prefix / "tenv-meta" / name
    with path.open("a") as file:
        file.write(" ")
    assert integrity(created)["changed"] == [f"tenv-meta/{name}"]
    path.unlink()
    assert integrity(created)["missing"] == [f"tenv-meta/{name}"]
    created.ok("create", "tiny", "--repair")
    assert verify(created).status == 0


def test_one_that_is_not_ready_is_not_looked_at(created: Project) -> None:
    state = created.state()
    created.state_file.write_text(json.dumps({**state, "state": "creating"}))
    assert "is not ready (its state is `creating`)" in created.fails(8, "environment-broken", "verify", "tiny")
    created.fails(8, "environment-missing", "verify", "tiny", "--prefix", str(created.folder / "none"))


# The repair.


def test_create_alone_does_not_look_at_what_files_hold(created: Project) -> None:
    change_byte(created.site() / "alpha.py")
    assert created.ok("create", "tiny", "--json").data["changed"] is False
    assert verify(created).status == 8


def test_repair_fetches_again_what_was_changed_in_the_cache_too(created: Project) -> None:
    before = snapshot(created.prefix)
    with (created.site() / "alpha.py").open("a") as file:  # in place, so that uv's cache has it as well
        file.write("# mine\n")
    (created.prefix / "bin" / "beta").unlink()
    (created.prefix / "notes.txt").write_text("mine")
    created.index.asked.clear()
    assert created.ok("create", "tiny", "--repair", "--json").data["changed"] is True
    assert verify(created).status == 0
    after = snapshot(created.prefix)
    assert after.pop("notes.txt")
    assert {name: text for name, text in after.items() if "RECORD" not in name} == {
        name: text for name, text in before.items() if "RECORD" not in name
    }
    assert not [path for path in created.index.asked if path.startswith("/files/native") and path.endswith(".whl")]


def test_repair_of_a_whole_environment_asks_no_index(created: Project) -> None:
    before = snapshot(created.prefix)
    created.index.stop()
    created.ok("create", "tiny", "--repair")
    assert snapshot(created.prefix) == before


@pytest.mark.parametrize("name", ["RECORD", "METADATA"])
def test_repair_of_a_package_without_its_notes(created: Project, name: str) -> None:
    (created.site() / "alpha-1.0.dist-info" / name).unlink()
    assert verify(created).status == 8
    created.ok("create", "tiny", "--repair")
    assert verify(created).status == 0


def test_a_repair_that_can_not_fetch_leaves_the_environment_as_it_was(created: Project, impatient: None) -> None:
    (created.site() / "alpha.py").write_text("other\n")
    before = snapshot(created.prefix)
    created.index.stop()
    created.fails(6, "network", "create", "tiny", "--repair")
    assert snapshot(created.prefix) == before
    assert created.state()["state"] == "ready"


# The probes.


def test_a_probe_that_fails_ends_with_status_1_and_shows_its_log(created: Project) -> None:
    created.ok("verify", "tiny")
    (created.prefix / "bin" / "g++").write_text("#!/bin/sh\necho 'g++: broken' >&2\nexit 1\n")
    (created.prefix / "bin" / "g++").chmod(0o755)
    ended = call("verify", "tiny")
    assert ended.status == 1
    assert "fails    c++  " in ended.out
    assert "    g++: broken\n    failed with status 1\n" in ended.out
    assert "; failed: c++, python-extension, openmp\n" in ended.err


def test_a_module_that_can_not_be_imported_is_named(created: Project) -> None:
    (created.site() / "beta.py").write_text("raise RuntimeError('not here')\n")
    ended = call("verify", "tiny")
    assert ended.status == 8
    assert "beta: RuntimeError: not here" in ended.out


def test_without_a_compiler_it_is_said(created: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = call("verify", "tiny")
    assert ended.status == 1
    assert "PATH has no C++ compiler (g++, c++ or clang++), and CXX is not set to one" in ended.out
