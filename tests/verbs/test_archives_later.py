"""Archives in an environment that is there: verified, repaired, compared, rolled back, exported."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.archive_server import CUSPARSELT, NVIDIA
from tests.support.fakes import change_byte
from tests.support.projects import Project, call, snapshot, write_config
from tests.support.rarely import first_fast
from tests.support.redist import Files, Server

MANIFEST = """\
platforms = ["linux-64"]
[requirements]
cuda = "12.1"
[archives]
cunovel = "7.1.0"
"""


@pytest.fixture
def served(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of two releases of a product, in a project that has an environment with the first."""
    files = Files()
    files.add("cunovel", "7.1.0", "libcunovel", "7.1.0.3", CUSPARSELT, cuda="cuda12")
    files.add("cunovel", "7.2.0", "libcunovel", "7.2.0.1", {**CUSPARSELT, "NEW": b"new"}, cuda="cuda12")
    monkeypatch.setenv("TENV_HTTP_RETRIES", "0")
    with Server(files.data) as server:
        write_config(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
        project.manifest.write_text(MANIFEST)
        project.ok("create", "tiny")
        yield server


def store() -> Path:
    return Path(os.environ["HOME"]) / ".cache" / "tenv" / "archives"


def edit(path: Path) -> None:
    """Change a byte of a file that is read-only, and leave its time as it was."""
    before = path.stat()
    path.chmod(0o644)
    change_byte(path)
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_archive_is_whole_when_nobody_touched_it(project: Project, served: Server) -> None:
    assert project.ok("verify", "tiny", "--no-probes", "--json").data["integrity"] == {
        "missing": [],
        "changed": [],
        "extra": [],
        "packages": [],
    }


def test_verify_names_what_is_not_as_it_was_unpacked(project: Project, served: Server) -> None:
    home = project.prefix / "opt" / "cunovel"
    edit(home / "include" / "cusparseLt.h")
    (home / "LICENSE").unlink()
    ended = call("verify", "tiny", "--no-probes")
    assert ended.status == 8
    assert ended.out == "missing  opt/cunovel/LICENSE\nchanged  opt/cunovel/include/cusparseLt.h\n"
    data = json.loads(call("verify", "tiny", "--no-probes", "--json").out)["data"]
    assert data["integrity"]["packages"] == ["cunovel"]


def test_repair_unpacks_again_what_was_changed_in_the_store_as_well(project: Project, served: Server) -> None:
    before = snapshot(project.prefix)
    edit(project.prefix / "opt" / "cunovel" / "include" / "cusparseLt.h")  # a hard link to the store, times and all
    assert "nothing to do" in project.ok("create", "tiny").err
    served.asked.clear()
    project.ok("create", "tiny", "--repair")
    assert snapshot(project.prefix) == before
    assert served.asked == []  # what was fetched is whole
    project.ok("verify", "tiny", "--no-probes", "--store")


def test_repair_fetches_again_what_is_damaged_in_the_store(project: Project, served: Server) -> None:
    before = snapshot(project.prefix)
    edit(project.prefix / "opt" / "cunovel" / "LICENSE")
    edit(next(path for path in (store() / "files").iterdir() if len(path.name) == 64))
    served.asked.clear()
    project.ok("create", "tiny", "--repair")
    assert snapshot(project.prefix) == before
    assert len(served.paths()) == 1
    project.ok("verify", "tiny", "--no-probes")


@pytest.mark.parametrize("text", first_fast(["not JSON", None, "{}"]))
def test_a_lost_record_is_a_fault_that_repair_mends(project: Project, served: Server, text: str | None) -> None:
    before = snapshot(project.prefix)
    record = project.prefix / "tenv-meta" / "archives" / "cunovel.json"
    record.unlink()
    if text is not None:
        record.write_text(text)
    data = json.loads(call("verify", "tiny", "--no-probes", "--json").out)["data"]
    lost = ["tenv-meta/archives/cunovel.json"]
    assert data["integrity"]["missing"] == ["cunovel 7.1.0.3", *(lost if text is None else ())]
    assert data["integrity"]["changed"] == ([] if text is None else lost)
    project.ok("create", "tiny", "--repair")
    assert snapshot(project.prefix) == before
    project.ok("verify", "tiny", "--no-probes")


def test_the_store_is_looked_at_when_asked_for(project: Project, served: Server) -> None:
    said = project.ok("verify", "tiny", "--no-probes", "--store").err
    assert "store of archives: all files are intact" in said
    assert project.ok("verify", "tiny", "--no-probes", "--json").data["store"] is None
    path = next(path for path in (store() / "files").iterdir() if len(path.name) == 64)
    edit(path)
    ended = call("verify", "tiny", "--no-probes", "--store")
    assert ended.status == 8
    assert ended.out == f"changed  {path}: its sha256 has changed\n"
    assert "store of archives: 1 damaged file" in ended.err
    assert "`tenv clean --archives` empties the store" in ended.err


def test_diff_and_rollback_know_archives(project: Project, served: Server) -> None:
    before = snapshot(project.prefix / "opt")
    first = project.folder / "first.lock"
    first.write_bytes(project.lock.read_bytes())
    project.edit('"7.1.0"', '"7.2.0"')
    project.ok("create", "tiny")
    assert (project.prefix / "opt" / "cunovel" / "NEW").is_file()
    (change,) = project.ok("diff", str(first), "tiny", "--json").data["changed"]
    assert (change["name"], change["kind"]) == ("cunovel", "archive")
    assert "7.1.0.3" in json.dumps(change)
    assert "7.2.0.1" in json.dumps(change)
    assert "7.1.0.3" in project.ok("diff", str(first), "tiny").out
    served.asked.clear()
    project.ok("rollback", "tiny")
    assert served.asked == []
    assert snapshot(project.prefix / "opt") == before
    assert call("verify", "tiny", "--no-probes").status == 1  # nothing but stale: the lock is a newer one


def test_export_says_that_it_can_not_hold_archives(project: Project, served: Server) -> None:
    ended = call("export", "pixi", "tiny", "-o", "-")
    assert "[archives]: cunovel" in ended.err, ended
