"""Mirrors: a folder that a static server or S3 offers, and environments that other machines create from it."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tenv.core.files import digest
from tenv.sources.archives.store import default_store
from tests.support.archive_server import ask
from tests.support.conda_project import Conda, other_lock
from tests.support.projects import HERE, Project, snapshot, write_config
from tests.support.rarely import first_fast
from tests.support.redist import Server
from tests.support.source_trees import pack_sdist, write_tree


class _Static(SimpleHTTPRequestHandler):
    """Serves a folder as `python -m http.server` does, or its files alone, as S3 does."""

    asked: list[str]
    bare: bool

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.bare and self.path.endswith("/"):
            self.send_error(404)
        else:
            super().do_GET()


@contextmanager
def serving(folder: Path, *, bare: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder; yield its address and the paths that were asked for."""
    handler = type("Handler", (_Static,), {"asked": [], "bare": bare})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler.asked  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()


def away(project: Project, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Leave this machine for another one that has nothing but the settings of the mirror."""
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    for name in ("UV_CACHE_DIR", "TENV_CACHE_DIR", "XDG_CACHE_HOME", "RATTLER_CACHE_DIR"):
        monkeypatch.setenv(name, str(project.folder.parent / "other" / name))
    for name, value in settings["uv"].items():
        monkeypatch.setenv(name, value)
    write_config(settings["config.toml"])
    shutil.rmtree(project.folder / ".tenv", ignore_errors=True)


def files(prefix: Path) -> dict[str, str]:
    """Return the content of an environment, without tenv's own notes and what holds times."""
    notes = ("tenv-meta", "conda-meta")
    return {name: text for name, text in snapshot(prefix).items() if not name.startswith(notes)}


@pytest.mark.parametrize("bare", first_fast([False, True]))
def test_another_machine_creates_from_it(created: Project, monkeypatch: pytest.MonkeyPatch, bare: bool) -> None:
    before = files(created.prefix)
    with serving(created.folder / "mirror", bare=bare) as (url, asked):
        made = created.ok("mirror", "tiny", "mirror", "--url", url, "--json").data
        created.index.asked.clear()
        away(created, monkeypatch, made["settings"])
        created.ok("create", "tiny")
    assert files(created.prefix) == before
    assert created.index.asked == []
    assert asked[0] == "/wheels.html"
    created.ok("verify", "tiny", "--no-probes")


def test_the_index_serves_a_new_lock(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = created.lock.read_bytes()
    with serving(created.folder / "mirror") as (url, asked):
        made = created.ok("mirror", "tiny", "mirror", "--url", url, "--json").data
        away(created, monkeypatch, {**made["settings"], "uv": {"UV_DEFAULT_INDEX": made["settings"]["index"]}})
        created.lock.unlink()
        created.ok("lock", "tiny")
    assert created.lock.read_bytes() == before
    assert any(path.endswith(".metadata") for path in asked)


def test_the_folder_itself_serves_and_has_the_same_bytes_each_time(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = created.ok("mirror", "tiny", "mirror", "--json").data
    assert made["new"] == len(made["files"]) == 3
    first = snapshot(Path("mirror"))
    assert created.ok("mirror", "tiny", "mirror", "--json").data["new"] == 0
    created.ok("mirror", "tiny", "again")
    assert snapshot(Path("mirror")) == snapshot(Path("again")) == first
    assert not [*created.folder.glob(".*.lock")]
    away(created, monkeypatch, made["settings"])
    created.ok("create", "tiny")


def test_the_folder_itself_serves_conda_packages(conda: Conda, monkeypatch: pytest.MonkeyPatch) -> None:
    conda.lock("tool", "data")
    made = conda.project.ok("mirror", "tiny", "mirror", "--json").data
    away(conda.project, monkeypatch, made["settings"])
    conda.channel.asked.clear()
    conda.create()
    assert conda.channel.asked == []


def test_conda_packages(conda: Conda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conda.lock("tool", "data")
    conda.create()
    before = files(conda.prefix)
    with serving(tmp_path / "mirror") as (url, asked):
        made = conda.project.ok("mirror", "tiny", str(tmp_path / "mirror"), "--url", url, "--json").data
        places = {row["path"]: row for row in made["files"]}
        assert all(digest(tmp_path / "mirror" / path) == row["sha256"] for path, row in places.items())
        away(conda.project, monkeypatch, made["settings"])
        conda.channel.asked.clear()
        conda.create()
        assert conda.channel.asked == []
        assert files(conda.prefix) == before
        assert any(path.endswith("tool-1-0.conda") for path in asked)
        shown = conda.project.ok("search", "tool", "--channel", made["settings"]["channels"][0]).out
        assert f"{url}/127.0.0.1_" in shown


@pytest.mark.parametrize("kind", ["wheels", "conda"])
def test_a_changed_file_is_refused_by_who_uses_it_and_made_right_by_the_next_mirror(
    conda: Conda, created: Project, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "conda":
        conda.lock("tool")
    with serving(created.folder / "mirror") as (url, _):
        made = created.ok("mirror", "tiny", "mirror", "--url", url, "--json").data
        path = Path("mirror") / made["files"][0]["path"]
        right = digest(path)
        raw = path.read_bytes()
        path.unlink()
        path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        assert created.ok("mirror", "tiny", "mirror", "--json").data["new"] == 0
        assert digest(path) == right
        path.unlink()
        path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        away(created, monkeypatch, made["settings"])
        said = created.fails(6, "hash-mismatch", "create", "tiny", "--frozen")
        assert path.name.partition("-")[0] in said
    assert not created.prefix.exists() or created.state()["state"] != "ready"


def test_a_second_target_joins_and_a_lost_file_of_the_first_is_named(conda: Conda) -> None:
    conda.make("base", "1", files={"bin/base": "x"})
    conda.make("late", "1", depends=("base",), files={"bin/late": "x"})
    conda.lock("late", "base")
    other_lock(conda, "- base", "- base >=1")
    first = conda.project.ok("mirror", "tiny", "mirror", "--json").data
    lists = next(Path("mirror").glob("*/linux-64/repodata.json"))
    assert json.loads(lists.read_text())["packages.conda"]["late-1-0.conda"]["depends"] == ["base >=1"]
    conda.lock("tool")
    conda.project.ok("mirror", "tiny", "mirror")
    rows = json.loads(lists.read_text())["packages.conda"]
    assert sorted(rows) == ["base-1-0.conda", "late-1-0.conda", "tool-1-0.conda"]
    assert rows["late-1-0.conda"]["depends"] == ["base >=1"]
    lost = Path("mirror") / first["files"][0]["path"]
    lost.unlink()
    assert f"{lost} does not have the sha256" in conda.project.fails(6, "hash-mismatch", "mirror", "tiny", "mirror")


def test_the_files_of_a_mirror_are_no_links_to_the_store(created: Project) -> None:
    """`chown -R` of a mirror would change the owner of the store's files."""
    made = created.ok("mirror", "tiny", "mirror", "--json").data
    found = [(created.folder / "mirror" / row["path"]).stat() for row in made["files"]]
    assert found
    assert {(one.st_nlink, one.st_mode & 0o200) for one in found} == {(1, 0o200)}


def test_a_file_that_is_served_is_replaced_as_a_whole_or_not_at_all(created: Project) -> None:
    created.ok("mirror", "tiny", "m")
    served = next((created.folder / "m").rglob("alpha-*.whl"))
    kept = default_store().file(digest(served))
    served.write_bytes(b"old")
    kept.chmod(0o600)
    kept.write_bytes(b"damaged")
    assert "the store had alpha-" in created.fails(6, "hash-mismatch", "mirror", "tiny", "m")
    assert served.read_bytes() == b"old"
    created.ok("mirror", "tiny", "m")
    assert served.read_bytes() != b"old"
    assert [path for path in (created.folder / "m").rglob(".*") if path.is_file() and path.name[1:6] == "alpha"] == []


def test_settings_of_other_machines_need_an_address_without_a_secret(created: Project) -> None:
    none = ("mirror.example.com", "s3://bucket", "https://", "https://[x/y", "https://x/a b", "https://x/\ny")
    for url in (*none, "https://u:pass@x/y", "https://x/y?token=pass"):
        said = created.fails(2, "usage", "mirror", "tiny", "mirror", "--url", url)
        assert "pass" not in said
        assert not Path("mirror").exists()
    made = created.ok("mirror", "tiny", "mirror", "--url", "file:///mnt/mirror/", "--json").data
    assert made["settings"]["uv"]["UV_FIND_LINKS"] == "file:///mnt/mirror/wheels.html"


def test_a_folder_of_the_user_and_a_link_in_it_are_refused(created: Project, tmp_path: Path) -> None:
    Path("mine").mkdir()
    (Path("mine") / "notes.txt").write_text("by hand")
    assert "is no mirror" in created.fails(8, "foreign-folder", "mirror", "tiny", "mine")
    assert [path.name for path in Path("mine").iterdir()] == ["notes.txt"]
    (Path("mine") / "tenv-mirror.json").write_text('{"schema": 1, "files": {"../x": "' + "0" * 64 + '"}}')
    created.fails(8, "foreign-folder", "mirror", "tiny", "mine")
    created.ok("mirror", "tiny", "mirror")
    shutil.rmtree("mirror/simple")
    Path("mirror/simple").symlink_to(tmp_path)
    assert "link" in created.fails(8, "storage", "mirror", "tiny", "mirror")
    assert not (tmp_path / "alpha").exists()
    for url in ("nonsense", "ftp://mirror.example.com", "https://mirror.example.com/a b", "https://a.org/\nx=1"):
        assert "is no address of http" in created.fails(2, "usage", "mirror", "tiny", "new", "--url", url)
    assert not Path("new").exists()


def test_no_address_of_a_lock_leads_out_of_a_mirror() -> None:
    from tenv.core.errors import UsageError
    from tenv.sources.interface import CarriedFile
    from tenv.verbs.mirror import _place

    for address in (
        "https://a.org/../../x.tar.gz",
        "https://a.org/%2e%2e/%2e%2e/x.tar.gz",
        "https://a.org/a//x.tar.gz",
        "https://a.org/a%5c..%5cx.tar.gz",
        "https://../x.tar.gz",
        "https://a.org/.git/hooks/x.zip",
        "https://a.org/linux-64/repodata.json",
        "file:///etc/x.zip",
        "https://tenv-mirror.json",
        "https://simple/alpha/alpha-1-py3-none-any.whl",
    ):
        row = CarriedFile("archives", "x", "0" * 64, 1, ("linux-64",), address)
        with pytest.raises(UsageError, match="which no mirror can have"):
            _place(row)
    for name in ("../x-1-py3-none-any.whl", "a-1/../../x.tar.gz", ".-1-py3-none-any.whl"):
        with pytest.raises(UsageError, match="which no mirror can have"):
            _place(CarriedFile("wheels", name, "0" * 64, 1, ("linux-64",)))


@pytest.mark.long
def test_archives_and_source_archives(
    project: Project, served: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write_tree(tmp_path / "vision")
    pack_sdist(tree, project.index.folder)
    magma = f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2" }}'
    ask(project, 'cunovel = "7.1.0"', magma)
    text = project.manifest.read_text().replace("[requirements]", f'python = "{HERE}.*"\n[requirements]')
    project.manifest.write_text(f'{text}[pypi-dependencies]\nvision = {{ version = "*", build = true }}\n')
    project.ok("lock", "tiny", "--trust-first-use")
    with serving(tmp_path / "mirror") as (url, _):
        made = project.ok("mirror", "tiny", str(tmp_path / "mirror"), "--url", url, "--json").data
        paths = [row["path"] for row in made["files"]]
        assert any(path.startswith("developer.download.nvidia.com/compute/cunovel/redist/") for path in paths)
        away(project, monkeypatch, made["settings"])
        served.asked.clear()
        project.ok("create", "tiny")
    assert served.asked == []
    assert (project.prefix / "opt" / "magma" / "lib" / "libmagma.a").is_file()


def test_metadata_of_an_endless_size_is_not_read(tmp_path: Path) -> None:
    import zipfile

    from tenv.sources.wheels.metadata import from_file

    wheel = tmp_path / "big-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("big-1.dist-info/METADATA", b"Name: big\n" + bytes(1 << 24))
    assert from_file(wheel.as_uri()) is None


def test_an_empty_folder_below_one_that_only_root_writes_becomes_a_mirror(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (created.folder / "mirror").mkdir()
    with monkeypatch.context() as patch:
        access = os.access
        patch.setattr(os, "access", lambda path, mode: path != created.folder and access(path, mode))
        # so the lock lies within
        created.ok("mirror", "tiny", "mirror")
        created.ok("mirror", "tiny", "mirror")
    assert (created.folder / "mirror/tenv-mirror.json").is_file()
