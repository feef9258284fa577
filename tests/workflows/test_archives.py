"""Archives from the manifest to the environment, with a server in NVIDIA's layout."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tenv.host.machine import current_platform
from tests.fakes import change_byte
from tests.projects import Project, write_config
from tests.redist import Files, Server, pack, regular

NVIDIA = "https://developer.download.nvidia.com"
CUSPARSELT = {
    "include/cusparseLt.h": b"#define CUSPARSELT_VER_MAJOR 7\n",
    "lib/libcusparseLt.so.0": b"\x7fELF sparse",
    "LICENSE": b"a licence",
}
MAGMA = [regular("include/magma.h", b"/* magma */"), regular("lib/libmagma.a", b"!<arch>\n")]

WANTED = """\
platforms = ["linux-64", "linux-aarch64", "win-64"]
[requirements]
cuda = "12.1"
[archives]
"""


@pytest.fixture
def served(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of a product that no facts know, which stands in for NVIDIA's."""
    files = Files()
    files.add("cunovel", "7.1.0", "libcunovel", "7.1.0.3", CUSPARSELT, cuda="cuda12")
    files.data["/magma-cuda121-2.6.1-1.tar.bz2"] = pack("tar.bz2", MAGMA)
    with Server(files.data) as server:
        write_config(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
        monkeypatch.setenv("TENV_HTTP_TIMEOUT", "2")
        monkeypatch.setenv("TENV_HTTP_RETRIES", "0")
        yield server


def ask(project: Project, *lines: str, cuda: str = "12.1") -> None:
    project.manifest.write_text(WANTED.replace("12.1", cuda) + "\n".join(lines) + "\n")


def rows(project: Project) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = yaml.safe_load(project.lock.read_text())["tenv"]["archives"]
    return found


# Locking


def test_a_product_is_locked_for_every_platform_from_its_manifest(project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    (linux,), (arm,), (windows,) = (rows(project)[name] for name in ("linux-64", "linux-aarch64", "win-64"))
    path = "/compute/cunovel/redist/libcunovel/linux-x86_64/libcunovel-linux-x86_64-7.1.0.3_cuda12-archive.tar.xz"
    raw = served.files[path]
    assert isinstance(raw, bytes)
    assert linux == {
        "name": "cunovel",
        "version": "7.1.0.3",
        "url": NVIDIA + path,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "size": len(raw),
        "kind": "tar.xz",
        "strip": 1,
        "to": "opt/cunovel",
        "trust": "redist",
    }
    assert "linux-sbsa" in str(arm["url"])
    assert str(windows["url"]).endswith("windows-x86_64-7.1.0.3_cuda12-archive.zip")
    before = project.lock.read_bytes()
    project.ok("lock", "tiny", "--check")
    project.lock.unlink()
    project.ok("lock", "tiny")
    assert project.lock.read_bytes() == before


def test_known_versions_are_locked_offline(project: Project, served: Server) -> None:
    ask(project, 'cusparselt = "0.5.2.1"')
    project.ok("lock", "tiny", "--offline")
    assert served.asked == []
    offline = project.lock.read_bytes()
    found = rows(project)
    assert [found[name][0]["sha256"] for name in ("linux-64", "linux-aarch64", "win-64")] == [
        "d6cd9ffc0838d2e25453358ca160c1bed34e2f7b5dc155c428d22ba7fc3d8334",
        "389167df60404fe9d49f5975239bd095c440328d951152082d8603f8bdac1a97",
        "ae4532cb17c55e224bb8c8f7786f1e115626571ba1843dcaf8bb67cfae12f613",
    ]
    assert [found[name][0]["size"] for name in ("linux-64", "linux-aarch64", "win-64")] == [
        24156728,
        23133384,
        45650376,
    ]
    assert "linux-sbsa" in str(found["linux-aarch64"][0]["url"])
    text = (Path(__file__).parent.parent / "data" / "redistrib_0.5.2.json").read_bytes()
    served.files["/compute/cusparselt/redist/redistrib_0.5.2.json"] = text
    project.lock.unlink()
    project.ok("lock", "tiny")
    assert served.paths() == ["/compute/cusparselt/redist/redistrib_0.5.2.json"]
    assert project.lock.read_bytes() == offline


def test_a_file_that_was_replaced_under_its_name_stops_the_lock(project: Project, served: Server) -> None:
    text = (Path(__file__).parent.parent / "data" / "redistrib_0.5.2.json").read_text()
    served.files["/compute/cusparselt/redist/redistrib_0.5.2.json"] = text.replace("d6cd9ffc", "00000000").encode()
    ask(project, 'cusparselt = "0.5.2"')
    error = project.fails(6, "hash-mismatch", "lock", "tiny")
    name = "libcusparse_lt-linux-x86_64-0.5.2.1-archive.tar.xz"
    assert f"cusparselt 0.5.2.1: NVIDIA now lists another file under the name {name}" in error
    assert "the facts  sha256 d6cd9ffc" in error
    assert "the list   sha256 00000000" in error
    assert "facts/cusparselt.toml" in error
    assert not project.lock.exists()


def test_without_an_answer_the_facts_have_to_do_and_that_is_said(project: Project, served: Server) -> None:
    served.statuses = [500] * 9
    ask(project, 'cusparselt = "0.5.2.1"')
    assert "taken from the facts, not compared with NVIDIA's list" in project.ok("lock", "tiny").err


@pytest.mark.parametrize(
    ("request_", "cuda", "version"),
    [
        ('"auto"', "12.1", "0.5.2.1"),
        ('"auto"', "12.4", "0.6.2.3"),
        ('"auto"', "13.0", "0.8.1.1"),
        ('">=0.5,<0.6"', "12.1", "0.5.2.1"),
        ('"0.6.0"', "12.1", "0.6.0.6"),
        ('{ version = "0.8.0.4" }', "12.8", "0.8.0.4"),
    ],
)
def test_versions_ranges_labels_and_auto(
    project: Project, served: Server, request_: str, cuda: str, version: str
) -> None:
    ask(project, f"cusparselt = {request_}", cuda=cuda)
    project.ok("lock", "tiny", "--offline")
    assert {row["version"] for platform in rows(project).values() for row in platform} == {version}


def test_auto_minds_the_pytorch_that_is_built(project: Project, served: Server) -> None:
    ask(project, 'cusparselt = "auto"')
    project.edit("[requirements]", 'pytorch = ">=2.1,<2.2"\n[requirements]')
    said = project.ok("lock", "tiny", "--offline").err
    assert "cusparselt 0.5.1.1: the newest that the facts know; the PyTorch that is built needs one below 0.5.2" in said


def test_cudnn_is_the_one_for_the_cuda_major(project: Project, served: Server) -> None:
    ask(project, 'cudnn = "auto"')
    project.edit("[requirements]", 'pytorch = "2.4.*"\n[requirements]')
    project.ok("lock", "tiny", "--offline")
    row = rows(project)["linux-64"][0]
    assert row["version"] == "9.1.0.70"
    assert str(row["url"]).endswith("linux-x86_64-9.1.0.70_cuda12-archive.tar.xz")


@pytest.mark.parametrize(
    ("line", "status", "code", "message"),
    [
        ('cunovel = "9.9.9"', 5, "no-solution", "there is no cunovel 9.9.9 in NVIDIA's redist"),
        ('cunovel = "7.1.0.9"', 5, "no-solution", "NVIDIA's release 7.1.0 holds 7.1.0.3, not 7.1.0.9"),
        ('cunovel = ">=7"', 5, "no-solution", "NVIDIA has no list of the versions of `cunovel`"),
        ('cunovel = "auto"', 5, "no-solution", "`auto` is known for cusparselt and cudnn alone"),
        ('cusparselt = ">=99"', 5, "no-solution", "no version that the facts know is in `>=99`"),
        ('cusparselt = "0.9.1.1"', 5, "no-solution", "has no file on linux-64 for CUDA 12.1"),
        ('x = { url = "https://h/f.rar" }', 3, "manifest", "does not tell how it is packed"),
        ('x = { url = "https://u:p@h/f.zip" }', 3, "manifest", "without a user"),
        ('x = { url = "https://h/f.zip", to = "../up" }', 3, "manifest", "expected a folder below the prefix"),
        ('x = { url = "https://h/f.zip", to = "tenv-meta" }', 3, "manifest", "that folder is tenv's own"),
        ('x = { url = "https://h/f.zip" }', 2, "usage", "it has no sha256"),
    ],
)
def test_what_can_t_be_locked(
    project: Project, served: Server, line: str, status: int, code: str, message: str
) -> None:
    ask(project, line)
    assert message in project.fails(status, code, "lock", "tiny")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<!DOCTYPE html><html>log in</html>", "is a web page, not a redist manifest"),
        (b'{"release_label": "7.1.0"', "is not a redist manifest: not JSON"),
        (b"[]", "its top is not an object"),
        (b"{}", "it has no component"),
        (b'{"libcunovel": {"linux-x86_64": {"cuda12": {}}}}', "libcunovel.version: is required"),
        (b'{"libcunovel": {"version": "1", "linux-x86_64": {"cuda12": {}}}}', "cuda12.relative_path: is required"),
        (
            b'{"libcunovel": {"version": "1", "linux-x86_64": {"relative_path": "../../x.zip"}}}',
            "is not a path below the product's address",
        ),
        (
            b'{"libcunovel": {"version": "1", "linux-x86_64": {"relative_path": "x.zip", "sha256": "12"}}}',
            "sha256: is not 64 hex digits",
        ),
    ],
)
def test_a_manifest_that_is_none(project: Project, served: Server, text: bytes, message: str) -> None:
    served.files["/compute/cunovel/redist/redistrib_7.1.0.json"] = text
    ask(project, 'cunovel = "7.1.0"')
    assert message in project.fails(6, "network", "lock", "tiny")
    assert not project.lock.exists()


def test_trust_on_first_use_is_asked_for_and_marked(project: Project, served: Server) -> None:
    ask(project, f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2", to = "opt/magma" }}')
    error = project.fails(2, "usage", "lock", "tiny")
    assert "let `tenv lock tiny --trust-first-use` record what it sees now" in error
    said = project.ok("lock", "tiny", "--trust-first-use").err
    assert "was trusted on first use: sha256 " in said
    (row,) = rows(project)["linux-64"]
    raw = served.files["/magma-cuda121-2.6.1-1.tar.bz2"]
    assert isinstance(raw, bytes)
    assert (row["trust"], row["sha256"], row["size"]) == ("first-use", hashlib.sha256(raw).hexdigest(), len(raw))
    project.edit("[requirements]", 'description = "changed"\n[requirements]\nglibc = "2.17"')
    project.ok("lock", "tiny")  # what was trusted once stays
    assert rows(project)["linux-64"] == [row]


def test_a_lock_is_stale_when_its_archives_do_not_answer(project: Project, served: Server) -> None:
    ask(project, 'cusparselt = "0.5.2.1"')
    project.ok("lock", "tiny", "--offline")
    ask(project, 'cusparselt = ">=0.5,<0.6"')
    project.ok("lock", "tiny", "--check")
    ask(project, 'cusparselt = "0.5.2"')
    project.ok("lock", "tiny", "--check")
    ask(project, 'cusparselt = "0.6.0.6"')
    error = project.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert "linux-64: cusparselt 0.5.2.1 is locked, 0.6.0.6 is wanted" in error
    ask(project, 'cusparselt = { version = "0.5.2.1", to = "sparse" }')
    assert "is asked for in another way" in project.fails(7, "lock-stale", "lock", "tiny", "--check")
    ask(project)
    assert "cusparselt is locked but no longer wanted" in project.fails(7, "lock-stale", "lock", "tiny", "--check")


# Creating


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
    assert "magma: its file include/magma.h is already in" in error
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
    assert "has another sha256 than the one that is wanted" in error
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
    found = project.run("verify", "tiny", "--no-probes", "--json")
    assert found.status == 8
    assert found.data["integrity"]["changed"] == ["opt/magma/lib/libmagma.a"]
    assert found.data["integrity"]["packages"] == ["magma"]
    project.ok("create", "tiny", "--repair")
    assert library.read_bytes() == b"!<arch>\n"
    assert project.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]["changed"] == []


def test_verify_sees_what_is_gone_and_a_lost_record(project: Project, served: Server) -> None:
    prefix = ready(project, served)
    (prefix / "opt" / "cunovel" / "LICENSE").unlink()
    (prefix / "tenv-meta" / "archives" / "magma.json").write_text("{")
    found = project.run("verify", "tiny", "--no-probes", "--json")
    assert found.status == 8
    assert found.data["integrity"]["missing"] == ["magma", "opt/cunovel/LICENSE"]
    project.ok("create", "tiny")
    assert project.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]["missing"] == []


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
    assert "cunovel is not in the store, and the network is not to be used" in error


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
