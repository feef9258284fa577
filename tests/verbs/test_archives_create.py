"""Archives from the lock to the environment."""

import json
import os
from pathlib import Path

import pytest

from tenv.host.machine import current_platform
from tests.support.archive_server import CUSPARSELT, ask
from tests.support.fakes import change_byte
from tests.support.projects import Project
from tests.support.redist import Files, Server


def ready(project: Project, served: Server, *lines: str) -> Path:
    magma = f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2" }}'
    ask(project, 'cunovel = "7.1.0"', magma, *lines)
    project.ok("lock", "tiny", "--trust-first-use")
    project.ok("create", "tiny")
    return project.prefix


def test_archives_are_unpacked_into_the_environment(project: Project, served: Server) -> None:
    prefix = ready(project, served)
    home = prefix / "opt" / "cunovel"
    assert (home / "include" / "cusparseLt.h").read_bytes() == CUSPARSELT["include/cusparseLt.h"]
    assert (home / "PLATFORM").read_text() == "linux-x86_64"
    assert (prefix / "opt" / "magma" / "lib" / "libmagma.a").is_file()
    state = project.state()
    assert state["archives"]["cunovel"][0] == "7.1.0.3"
    changes = {row["name"]: row["value"] for row in project.ok("env", "tiny", "--json").data}
    assert changes["MAGMA_HOME"] == str(prefix / "opt" / "magma")
    assert changes["CUSPARSELT_ROOT"] == str(home)
    assert "nothing to do" in project.ok("create", "tiny").err


def test_what_is_there_is_not_fetched_again(project: Project, served: Server) -> None:
    ready(project, served)
    served.asked.clear()
    project.ok("remove", "tiny")
    project.ok("create", "tiny")
    assert served.asked == []


def test_an_archive_that_is_no_longer_wanted_goes(project: Project, served: Server) -> None:
    prefix = ready(project, served)
    mine = prefix / "opt" / "cunovel" / "mine.txt"
    mine.write_text("by hand")
    ask(project, f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2" }}')
    project.ok("create", "tiny")
    assert mine.read_text() == "by hand"
    assert [path.name for path in (prefix / "opt" / "cunovel").iterdir()] == ["mine.txt"]
    assert (prefix / "opt" / "magma" / "include" / "magma.h").is_file()


def test_a_file_that_is_gone_is_put_back(project: Project, served: Server) -> None:
    prefix = ready(project, served)
    (prefix / "opt" / "magma" / "include" / "magma.h").unlink()
    project.ok("create", "tiny")
    assert (prefix / "opt" / "magma" / "include" / "magma.h").is_file()


def test_files_of_archives_are_not_taken_for_the_users(project: Project, served: Server) -> None:
    prefix = ready(project, served)
    (prefix / "mine.txt").write_text("by hand")
    state = project.state()
    project.state_file.write_text(json.dumps({**state, "state": "broken"}))
    project.ok("create", "tiny")
    assert (prefix / "mine.txt").is_file()
    assert (prefix / "opt" / "magma" / "lib" / "libmagma.a").is_file()


def test_a_file_in_the_way_is_not_replaced(project: Project, served: Server) -> None:
    magma = f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2", to = "." }}'
    ask(project, 'cunovel = "7.1.0"')
    project.ok("create", "tiny")
    mine = project.prefix / "include" / "magma.h"
    mine.parent.mkdir()
    mine.write_text("by hand")
    ask(project, 'cunovel = "7.1.0"', magma)
    project.ok("lock", "tiny", "--trust-first-use")
    error = project.fails(8, "foreign-folder", "create", "tiny")
    assert "magma: include/magma.h exists in" in error
    assert mine.read_text() == "by hand"


def test_a_changed_file_on_the_server_is_refused_and_nothing_is_left(project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    path = next(path for path in served.files if "linux-x86_64" in path)
    raw = served.files[path]
    assert isinstance(raw, bytes)
    served.files[path] = raw[:100] + bytes([raw[100] ^ 1]) + raw[101:]
    error = project.fails(6, "hash-mismatch", "create", "tiny")
    assert "cunovel: " in error
    assert "has another sha256 than expected" in error
    assert not project.prefix.exists()


def test_a_ready_environment_stays_ready_when_an_archive_can_t_be_had(project: Project, served: Server) -> None:
    prefix = ready(project, served)
    files = Files()
    files.add("cunovel", "7.2.0", "libcunovel", "7.2.0.1", CUSPARSELT, cuda="cuda12")
    served.files |= files.data
    ask(project, 'cunovel = "7.2.0"', f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2" }}')
    project.ok("lock", "tiny", "--trust-first-use")
    for path in [path for path in served.files if "7.2.0.1" in path]:
        del served.files[path]
    project.fails(6, "network", "create", "tiny")
    assert project.state()["state"] == "ready"
    assert (prefix / "opt" / "cunovel" / "PLATFORM").is_file()


def test_a_damaged_store_is_noticed_and_mended(project: Project, served: Server) -> None:
    ready(project, served)
    store = Path(os.environ["HOME"]) / ".cache" / "tenv" / "archives"
    for path in (store / "files").iterdir():
        if path.is_file() and not path.name.startswith("."):
            path.chmod(0o644)
            change_byte(path)
    for path in (store / "trees").rglob("libmagma.a"):
        path.chmod(0o644)
        change_byte(path)
    served.asked.clear()
    project.ok("remove", "tiny")
    project.ok("create", "tiny")
    assert served.paths() == ["/magma-cuda121-2.6.1-1.tar.bz2"]  # the tree of the other one was whole
    assert (project.prefix / "opt" / "magma" / "lib" / "libmagma.a").read_bytes() == b"!<arch>\n"


@pytest.mark.parametrize("keep_time", [False, True], ids=["new time", "time put back"])
def test_verify_sees_a_changed_file_and_repair_mends_it(project: Project, served: Server, keep_time: bool) -> None:
    """The file and the store's are one where the file system can't share blocks: the store must not be believed."""
    prefix = ready(project, served)
    assert project.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]["changed"] == []
    library = prefix / "opt" / "magma" / "lib" / "libmagma.a"
    library.chmod(0o644)
    before = library.stat()
    change_byte(library)
    if keep_time:
        os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = project.ran("verify", "tiny", "--no-probes", "--json")
    assert found.status == 8
    assert found.data["integrity"]["changed"] == ["opt/magma/lib/libmagma.a"]
    assert found.data["integrity"]["packages"] == ["magma"]
    project.ok("create", "tiny", "--repair")
    assert library.read_bytes() == b"!<arch>\n"
    assert project.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]["changed"] == []


@pytest.mark.parametrize("text", ["{", "[" * 200_000])
def test_verify_sees_what_is_gone_and_a_lost_record(project: Project, served: Server, text: str) -> None:
    prefix = ready(project, served)
    (prefix / "opt" / "cunovel" / "LICENSE").unlink()
    (prefix / "tenv-meta" / "archives" / "magma.json").write_text(text)
    found = project.ran("verify", "tiny", "--no-probes", "--json")
    assert found.status == 8
    assert found.data["integrity"]["missing"] == ["magma", "opt/cunovel/LICENSE"]
    project.ok("create", "tiny")
    assert project.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]["missing"] == []


def test_a_tree_whose_note_nests_too_deep_is_unpacked_again(project: Project, served: Server) -> None:
    ready(project, served)
    trees = Path(os.environ["HOME"]) / ".cache" / "tenv" / "archives" / "trees"
    notes = [path for path in trees.iterdir() if path.suffix == ".json"]
    assert notes
    before = {path: path.read_text() for path in notes}
    for path in notes:
        path.chmod(0o644)
        path.write_text("[" * 200_000)
    project.ok("remove", "tiny")
    project.ok("create", "tiny")
    assert {path: sorted(json.loads(path.read_text())["files"]) for path in notes} == {
        path: sorted(json.loads(text)["files"]) for path, text in before.items()
    }


def test_what_a_killed_process_was_unpacking_goes_with_the_next_one(project: Project, served: Server) -> None:
    ready(project, served)
    trees = Path(os.environ["HOME"]) / ".cache" / "tenv" / "archives" / "trees"
    tree = next(path for path in trees.iterdir() if path.is_dir())
    (trees / f".{tree.name}.abcdefgh" / "tree").mkdir(parents=True)
    (trees / f"{tree.name}.json").unlink()
    project.ok("remove", "tiny")
    project.ok("create", "tiny")
    assert not [path for path in trees.iterdir() if path.is_dir() and path.name.startswith(".")]


def test_offline_says_what_is_missing(project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    error = project.fails(6, "network", "create", "tiny", "--offline")
    assert "cunovel is not in the store, and `--offline` turns off the network" in error


def test_show_names_archives_and_their_licence(project: Project, served: Server) -> None:
    ready(project, served)
    shown = project.ok("show", "tiny").out
    assert "cunovel" in shown
    assert "opt/cunovel/LICENSE" in shown
    row = next(row for row in project.ok("show", "tiny", "--json").data["packages"] if row["name"] == "cunovel")
    assert (row["kind"], row["wanted"], row["locked"]) == ("archive", "7.1.0", "7.1.0.3")
    assert row["licence"] == "opt/cunovel/LICENSE"


def test_clean_knows_the_store(project: Project, served: Server) -> None:
    ready(project, served)
    names = [row["name"] for row in project.ok("clean", "--json").data]
    assert "archives" in names
    project.ok("clean", "--archives")
    assert not (Path(os.environ["HOME"]) / ".cache" / "tenv" / "archives").exists()
    assert (project.prefix / "opt" / "magma" / "include" / "magma.h").is_file()


def test_this_platform_is_the_one_tested() -> None:
    assert current_platform() == "linux-64"
