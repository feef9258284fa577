"""Bundles: one file for a target, and environments that are created from it without a network."""

import errno
import io
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

import pytest

from tenv.core.errors import StorageError
from tenv.core.files import digest, storage_errors
from tenv.install.bundle_file import BundleReader
from tenv.sources.archives.store import bundles_folder, unpacked_bundle
from tenv.verbs import bundle
from tests.support.archive_server import ask
from tests.support.conda_project import Conda
from tests.support.fakes import MINORS
from tests.support.projects import HERE, PLATFORMS, Project, finish, held, snapshot
from tests.support.rarely import first_fast
from tests.support.redist import Server
from tests.support.source_trees import pack_sdist, write_tree


def away(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave this machine for another one: no index, no cache, no store, no environment."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9")
    for name in ("UV_CACHE_DIR", "TENV_CACHE_DIR", "XDG_CACHE_HOME", "RATTLER_CACHE_DIR"):
        monkeypatch.setenv(name, str(project.folder.parent / "other" / name))
    shutil.rmtree(project.folder / ".tenv", ignore_errors=True)


def outside(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder of no project, on another machine."""
    away(project, monkeypatch)
    folder = project.folder.parent / "outside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


def files(prefix: Path) -> dict[str, str]:
    """Return the content of an environment, without tenv's own notes and what holds times."""
    notes = ("tenv-meta", "conda-meta")  # those of rattler name its cache
    return {name: text for name, text in snapshot(prefix).items() if not name.startswith(notes)}


def test_an_environment_from_a_bundle_is_the_same_and_asks_no_server(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(created.prefix)
    made = created.ok("bundle", "tiny", "-o", "tiny.tenv", "--json").data
    assert made["lock_digest"] == digest(created.lock)
    assert [row["name"].partition("-")[0] for row in made["files"]] == ["alpha", "beta", "native"]
    first = Path("tiny.tenv").read_bytes()
    created.index.asked.clear()
    created.ok("bundle", "tiny", "-o", "again/tiny.tenv")  # from the store
    assert created.index.asked == []
    assert Path("again/tiny.tenv").read_bytes() == first
    away(created, monkeypatch)
    created.ok("create", "tiny", "--bundle", "tiny.tenv")
    assert files(created.prefix) == before
    assert created.state()["state"] == "ready"
    created.ok("verify", "tiny")
    assert not any(bundles_folder().glob("*.part"))
    assert "nothing to do" in created.ok("create", "--bundle", "tiny.tenv").err


def test_a_bundle_is_a_plain_tar_with_its_digests_first(created: Project) -> None:
    import tarfile

    made = created.ok("bundle", "tiny", "--json").data
    with tarfile.open("tiny.tenv", "r:") as archive:
        names = archive.getnames()
        head = json.loads(archive.extractfile(names[0]).read())  # type: ignore[union-attr]
    assert names[0] == f"tenv-bundle-{made['digest']}.json"
    assert names[1:3] == ["manifests/tiny.toml", "locks/tiny.lock"]
    assert names[3:] == [f"files/{row[2]}" for row in head["files"]]


def test_an_edit_while_files_are_fetched_is_not_carried(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a bundle would not satisfy its manifest, and nobody could use it."""
    before, collect = created.manifest.read_bytes(), bundle.collect

    def edited(*given: Any) -> Any:
        created.ask_for('gamma = "*"')
        return collect(*given)

    monkeypatch.setattr(bundle, "collect", edited)
    created.ok("bundle")
    assert before in Path("tiny.tenv").read_bytes()
    assert created.manifest.read_bytes() not in Path("tiny.tenv").read_bytes()


def test_a_platform_and_a_python_are_chosen(wide: Project) -> None:
    whole = wide.ok("bundle", "--json").data
    assert whole["platforms"] == sorted(PLATFORMS)
    part = wide.ok("bundle", "--platform", "win-64", "--python", HERE, "--json").data
    names = [row["name"] for row in part["files"]]
    assert len(names) < len(whole["files"])
    assert [name for name in names if name.startswith("native")] == [
        name for name in names if "win_amd64" in name and f"cp{HERE.replace('.', '')}" in name
    ]
    assert "not for osx-64" in wide.fails(2, "usage", "bundle", "--platform", "osx-64")
    assert "has Python" in wide.fails(2, "usage", "bundle", "--python", "2.7")
    assert "win-64; this host is" in wide.fails(4, "host", "create", "--bundle", "tiny.tenv")


def test_a_file_of_the_user_is_not_overwritten(created: Project) -> None:
    mine = Path("notes.txt")
    mine.write_text("by hand, and long enough to be one")
    created.fails(2, "file-exists", "bundle", "-o", str(mine))
    created.fails(2, "file-exists", "bundle", "--sbom", str(mine))
    for option in ("-o", "--sbom"):
        assert f"`{option} FILE`" in created.fails(2, "usage", "bundle", option, "-")
    assert mine.read_text().startswith("by hand")
    assert "names the file of the bundle" in created.fails(2, "usage", "bundle", "--sbom", "tiny.tenv")
    assert "--bundle 'a b.tenv'" in created.ok("bundle", "-o", "a b.tenv").err
    created.ok("bundle", "--sbom", "bill.json")
    Path("tiny.tenv").chmod(0o600)
    created.ok("bundle", "--sbom", "bill.json")
    assert Path("tiny.tenv").stat().st_mode & 0o777 == 0o600


@pytest.mark.long
def test_archives_and_source_archives_come_along(
    project: Project, served: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write_tree(tmp_path / "vision")
    pack_sdist(tree, project.index.folder)
    magma = f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2" }}'
    ask(project, 'cunovel = "7.1.0"', magma)
    text = project.manifest.read_text().replace("[requirements]", f'python = "{HERE}.*"\n[requirements]')
    project.manifest.write_text(f'{text}[pypi-dependencies]\nvision = {{ version = "*", build = true }}\n')
    project.ok("lock", "tiny", "--trust-first-use")
    made = project.ok("bundle", "--platform", "linux-64", "--json").data
    assert {row["kind"] for row in made["files"]} == {"archives", "wheels"}
    away(project, monkeypatch)
    served.asked.clear()
    project.ok("create", "--bundle", "tiny.tenv")
    assert served.asked == []
    assert {"vision.py", "vision"} & {path.name for path in project.site().iterdir()}
    assert (project.prefix / "opt" / "magma" / "lib" / "libmagma.a").is_file()


def test_conda_packages_come_along(conda: Conda, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    conda.lock("tool", "data")
    conda.create()
    before = files(conda.prefix)
    made = conda.project.ok("bundle", "--json").data
    assert [row["name"] for row in made["files"]] == ["data-1-0.conda", "tool-1-0.conda"]
    away(conda.project, monkeypatch)
    conda.channel.asked.clear()
    conda.create("--bundle", "tiny.tenv")
    assert conda.channel.asked == []
    assert files(conda.prefix) == before


def test_a_source_tree_is_refused_by_its_name(project: Project, tmp_path: Path) -> None:
    write_tree(project.folder / "vision")
    project.ask_for('vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    assert "vision is built from" in project.fails(2, "usage", "bundle")
    assert not Path("tiny.tenv").exists()


def test_a_bundle_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, _size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(StorageError, match=r"can't read tiny\.tenv"), storage_errors("can't write"):
        BundleReader(Broken(), "tiny.tenv").open()


def test_a_cache_folder_that_can_t_be_made_is_named_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setenv("TENV_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match=r"can't create .*bundles") as caught, unpacked_bundle():
        pass
    assert "TENV_CACHE_DIR" in caught.value.hint


def test_clean_leaves_the_bundle_of_a_running_create(project: Project) -> None:
    old = bundles_folder() / "unpacked-old" / "wheels"
    killed = bundles_folder() / "unpacked-killed"
    old.mkdir(parents=True)
    killed.mkdir()
    (killed / ".use.lock").touch()
    part = bundles_folder() / "0.part"
    part.write_bytes(b"1")
    with unpacked_bundle() as folder:
        (folder / "wheels").mkdir()
        assert not killed.exists()  # the next bundle has its room
        with unpacked_bundle():
            assert (folder / "wheels").is_dir()
        project.ok("clean", "--leftovers")
        assert (folder / "wheels").is_dir()
        assert part.exists()
        assert not old.parent.exists()
    project.ok("clean", "--leftovers")
    assert not bundles_folder().exists()


# Trust


def test_another_lock_than_the_projects_is_stale(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.ok("bundle")
    away(created, monkeypatch)
    created.lock.write_text(created.lock.read_text() + "\n")
    said = created.fails(7, "lock-stale", "create", "--bundle", "tiny.tenv", "--bundle-digest", "")
    assert "tiny.tenv: its lock has the sha256" in said
    assert f", and is not that of {created.lock}" in said
    take = re.search("`(tar [^`]*)`", said)
    assert take
    created.lock.unlink()
    assert "and there is no" in created.fails(7, "lock-stale", "create", "--bundle", "tiny.tenv")
    assert not created.prefix.exists()
    subprocess.run(shlex.split(take[1]), check=True)
    created.ok("create", "--bundle", "tiny.tenv")


def test_outside_a_project_somebody_vouches(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    made = created.ok("bundle", "--json").data
    home = outside(created, monkeypatch)
    place = str(created.folder / "tiny.tenv")
    assert f"{place} is a bundle of tiny" in created.fails(2, "usage", "create", "--bundle", place)
    wrong = created.fails(7, "lock-stale", "create", "--bundle", place, "--lock-digest", "0" * 64)
    assert f"has the sha256 {made['lock_digest']}, not" in wrong
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv"
    assert not own.exists() or not any(own.iterdir())
    created.ok("create", "--bundle", place, "--lock-digest", made["lock_digest"])
    assert (own / "locks" / "tiny.lock").read_bytes() == created.lock.read_bytes()
    created.ok("verify", "tiny", "--no-probes")
    created.ok("create", "--bundle", place)  # known by now
    assert not any(home.iterdir())


def test_another_parent_of_the_user_is_named(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.ok("init", "child", "--extends", "tiny")
    created.ok("lock", "child")
    made = created.ok("bundle", "child", "--json").data
    outside(created, monkeypatch)
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv" / "manifests" / "tiny.toml"
    own.parent.mkdir(parents=True)
    own.write_text(created.manifest.read_text() + "\n")
    words = ("create", "--bundle", str(created.folder / "child.tenv"), "--bundle-digest", made["digest"])
    said = created.fails(7, "lock-stale", *words)
    assert f"child extends tiny, which differs here ({own})" in said
    assert f"move {own} to another place" in said
    own.unlink()
    created.ok(*words)


def test_the_digest_of_a_lock_does_not_vouch_for_variables(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"MY_{number}" for number in range(9)]
    many = "".join(f'{name} = "1"\n' for name in names)
    created.manifest.write_text(created.manifest.read_text() + '[activation.env]\nMY_TOOL = "/tmp/x"\n' + many)
    made = created.ok("bundle", "--json").data
    outside(created, monkeypatch)
    words = ("create", "--bundle", str(created.folder / "tiny.tenv"))
    said = created.fails(2, "usage", *words, "--lock-digest", made["lock_digest"])
    assert f"its manifest sets {', '.join((*names, 'MY_TOOL'))}, which" in said
    created.ok(*words, "--bundle-digest", made["digest"])


def test_a_folder_of_the_user_is_refused_before_anything_is_unpacked_or_fetched(
    created: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    created.ok("bundle")
    away(created, monkeypatch)
    monkeypatch.setattr(bundle, "_unpack", None)  # to call it would be an error of another kind
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").touch()
    (tmp_path / "link").symlink_to(mine)
    with serving(created.folder) as (url, asked):
        for place, name in (("tiny.tenv", "mine"), (f"{url}/tiny.tenv", "mine"), ("tiny.tenv", "link")):
            words = ("create", "--bundle", place, "--prefix", str(tmp_path / name))
            assert str(tmp_path / name) in created.fails(8, "foreign-folder", *words)
    assert asked == []
    created.prefix.mkdir(parents=True, exist_ok=True)
    (created.prefix / "file").touch()
    assert str(created.prefix) in created.fails(8, "foreign-folder", "create", "--bundle", "tiny.tenv")


def test_options_that_contradict_a_bundle_are_refused(project: Project) -> None:
    for words in (("--lock-file", "x"), ("--for", "x"), ("--target-from-report",)):
        assert "exclude each other" in project.fails(2, "usage", "create", "tiny", "--bundle", "b.tenv", *words)
    assert "are about a bundle" in project.fails(2, "usage", "create", "tiny", "--lock-digest", "0")
    assert "http://" in project.fails(2, "usage", "create", "tiny", "--bundle", "s3://bucket/b.tenv")
    assert "there is no bundle b.tenv" in project.fails(2, "usage", "create", "tiny", "--bundle", "b.tenv")
    assert "manifests is no regular file" in project.fails(2, "usage", "create", "tiny", "--bundle", "manifests")


def test_a_bundle_that_no_server_sends_leaves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_HTTP_RETRIES", "0")
    words = ("create", "tiny", "--bundle")
    assert "Connection refused" in project.fails(6, "network", *words, "HTTP://user:secret@127.0.0.1:9/b.tenv")
    said = project.fails(6, "network", *words, "http://user:secret@/b.tenv")
    assert "http:///b.tenv" in said
    assert "secret" not in said
    assert not any(bundles_folder().glob("*.part"))


# A server


class _Ranges(SimpleHTTPRequestHandler):
    """Serves a folder with ranges; ends the first answers early, and replaces the file after the first one."""

    asked: list[str]
    cuts: list[int]
    later: list[bytes]

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        data = Path(self.directory, unquote(self.path).lstrip("/")).read_bytes()
        given = self.headers.get("Range", "")
        start = int(given.removeprefix("bytes=").partition("-")[0] or 0)
        self.asked.append(given)
        tag = f'"{len(data)}-{sum(data)}"'
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.headers.get("If-Range", tag) != tag:
            given, start = "", 0
        if self.later:
            Path(self.directory, self.path.lstrip("/")).write_bytes(self.later.pop())
        self.send_response(206 if given else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", tag)
        if given:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        most = self.cuts.pop() if self.cuts else len(data)
        self.wfile.write(data[start : start + most])
        self.close_connection = True


@contextmanager
def serving(folder: Path, cuts: tuple[int, ...] = (), later: tuple[bytes, ...] = ()) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder; yield its address and the ranges that were asked for."""
    handler = type("Handler", (_Ranges,), {"asked": [], "cuts": list(cuts), "later": list(later)})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", handler.asked  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


def test_a_bundle_comes_from_a_server_and_is_resumed(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.ok("bundle")
    away(created, monkeypatch)
    size = Path("tiny.tenv").stat().st_size
    with serving(created.folder, (size // 2,)) as (url, asked):
        created.ok("create", "--bundle", f"{url}/tiny.tenv")
    assert asked == ["", f"bytes={size // 2}-"]
    assert not any(bundles_folder().glob("[!.]*"))  # the lock of the download stays


def test_a_download_by_another_command_is_waited_for(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that write one file, from a server without ranges, would refuse the bundle as damaged."""
    created.ok("bundle")
    away(created, monkeypatch)
    with serving(created.folder) as (url, asked), held(bundle._download_path(f"{url}/tiny.tenv")) as release:
        child = created.start("create", "--bundle", f"{url}/tiny.tenv")
        assert child.stderr
        assert child.stderr.readline().startswith("waiting: ")
        assert asked == []
        release.set()
        ended = finish(child)
    assert ended.status == 0, ended.err


@pytest.mark.long
def test_a_whole_download_of_an_earlier_command_is_not_fetched_again(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    created.ok("bundle")
    away(created, monkeypatch)
    raw = Path("tiny.tenv").read_bytes()
    with serving(created.folder) as (url, asked):
        part = bundle._download_path(f"{url}/tiny.tenv")
        part.parent.mkdir(parents=True)
        part.write_bytes(raw)
        created.ok("create", "--bundle", f"{url}/tiny.tenv")
        assert asked == [f"bytes={len(raw)}-"]
        part.write_bytes(raw + b"more")  # of a longer file that was there before
        created.ok("create", "--bundle", f"{url}/tiny.tenv", "--exact")
        assert asked[1:] == [f"bytes={len(raw) + 4}-", ""]


@pytest.mark.parametrize("by_another_command", first_fast([False, True]))
def test_a_bundle_that_is_replaced_while_it_comes_is_begun_anew(
    created: Project, monkeypatch: pytest.MonkeyPatch, by_another_command: bool
) -> None:
    created.ok("bundle")
    raw = Path("tiny.tenv").read_bytes()
    old = raw[:100] + b"?" * (len(raw) - 100)
    half = len(raw) // 2
    away(created, monkeypatch)
    if not by_another_command:
        Path("tiny.tenv").write_bytes(old)
    with serving(created.folder, () if by_another_command else (half,), () if by_another_command else (raw,)) as (
        url,
        asked,
    ):
        if by_another_command:
            part = bundle._download_path(f"{url}/tiny.tenv")
            part.parent.mkdir(parents=True)
            part.write_bytes(old[:half])
        created.ok("create", "--bundle", f"{url}/tiny.tenv")
    assert asked == ([f"bytes={half}-", ""] if by_another_command else ["", f"bytes={half}-"])
    assert created.state()["state"] == "ready"


@pytest.mark.long
def test_a_damaged_part_of_an_earlier_command_is_dropped(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.ok("bundle")
    away(created, monkeypatch)
    with serving(created.folder) as (url, asked):
        part = bundle._download_path(f"{url}/tiny.tenv")
        part.parent.mkdir(parents=True)
        part.write_bytes(b"x" * 100)
        created.ok("create", "--bundle", f"{url}/tiny.tenv")
        assert asked == ["bytes=100-", ""]
        raw = Path("tiny.tenv").read_bytes()
        part.write_bytes(raw[:-3000] + bytes([raw[-3000] ^ 1]) + raw[-2999:])  # of a file behind others
        created.ok("create", "--bundle", f"{url}/tiny.tenv", "--prefix", "other")
    assert asked[2:] == [f"bytes={len(raw)}-", ""]


@pytest.mark.long
def test_a_bundle_that_was_replaced_by_one_of_its_size_is_fetched_anew(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has nothing to add to the download of an earlier command, and both bundles are whole."""
    created.ok("bundle")
    old = Path("tiny.tenv").read_bytes()
    created.edit('alpha  = ">=1"', 'alpha  = ">=1.0"')
    created.lock.unlink()
    created.ok("lock", "tiny")  # by the digest of another manifest
    created.ok("bundle")
    new = Path("tiny.tenv").read_bytes()
    assert len(new) == len(old)
    assert new != old
    away(created, monkeypatch)
    with serving(created.folder) as (url, asked):
        part = bundle._download_path(f"{url}/tiny.tenv")
        part.parent.mkdir(parents=True)
        part.write_bytes(old)
        created.ok("create", "--bundle", f"{url}/tiny.tenv")
        assert asked == [f"bytes={len(old)}-", ""]
        part.write_bytes(old)
        Path("tiny.tenv").write_bytes(old)
        created.fails(7, "lock-stale", "create", "--bundle", f"{url}/tiny.tenv", "--exact")


def test_the_files_of_features_are_left_out(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.manifest.write_text(created.manifest.read_text() + '[feature.test.pypi-dependencies]\ngamma = "*"\n')
    created.ok("lock", "tiny")

    def carried(*words: str) -> set[str]:
        return {row["name"].partition("-")[0] for row in created.ok("bundle", "--json", *words).data["files"]}

    whole = carried()
    assert whole == carried("--with", "test")
    assert "no feature" in created.fails(2, "usage", "bundle", "--with", "other")
    left = whole - carried("--with", "none")
    assert left
    away(created, monkeypatch)
    created.ok("create", "--bundle", "tiny.tenv")
    assert created.state()["state"] == "ready"
    words = ("create", "--bundle", "tiny.tenv")
    said = created.fails(2, "usage", *words, "--with", "test")
    assert "tiny.tenv has no files of the feature test: it was made with `--with none`" in said
    assert "`tenv bundle tiny --with test`" in said
    assert "`tenv create tiny --bundle tiny.tenv --with none` leaves it out" in said
    assert "no feature `other`" in created.fails(2, "usage", *words, "--with", "other")
    monkeypatch.setenv("UV_DEFAULT_INDEX", created.index.url)
    created.ok("create", "--with", "test")
    assert "feature test" in created.fails(2, "usage", *words, "--anew")  # which keeps the features
    created.ok(*words, "--with", "none")


def test_another_python_than_the_bundles_is_refused(wide: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    made = wide.ok("bundle", "--python", HERE, "--json").data
    assert made["python"] == HERE
    away(wide, monkeypatch)
    other = next(minor for minor in MINORS if minor != HERE)
    said = wide.fails(2, "usage", "create", "--bundle", "tiny.tenv", "--python", other)
    assert f"tiny.tenv has the wheels of Python {HERE} alone, not of {other}" in said
    assert f"`tenv create tiny --bundle tiny.tenv --python {HERE}`" in said
    shown = wide.ok("create", "--bundle", "tiny.tenv", "--dry-run")
    assert "in the bundle: 3 files" in shown.err
    assert "a cache" not in shown.out


def test_a_dry_run_of_an_unknown_target_writes_nothing(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    made = created.ok("bundle", "--json").data
    outside(created, monkeypatch)
    words = ("create", "--bundle", str(created.folder / "tiny.tenv"), "--lock-digest", made["lock_digest"])
    assert "alpha" in created.ok(*words, "--dry-run").out
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv"
    assert not own.exists() or not any(own.iterdir())
    created.ok(*words)
    assert (own / "locks" / "tiny.lock").is_file()
