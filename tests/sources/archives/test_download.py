"""Downloads: resumed at any point, compared with what was asked for, and never trusted."""

import errno
import hashlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenv.core.errors import CancelledError, HashMismatchError, NetworkError, StorageError, UsageError
from tenv.core.http import Http
from tenv.core.http_settings import HttpSettings, Patience, shown
from tenv.sources.archives.download import Fetched, Fetcher, RemoteFile
from tenv.sources.archives.store import Store
from tenv.targets.config import Settings
from tests.support.redist import Server

QUICK = Patience(connect=30, read=30, attempts=2, pause=0.01, slow=1024, window=30)
DATA = random.Random(5).randbytes(300_000)
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server({"/file": DATA}) as served:
        yield served


def fetcher(patience: Patience = QUICK, **settings: Any) -> Fetcher:
    return Fetcher(http=Http(HttpSettings(patience=patience)), **settings)


def wanted(server: Server, *, sha256: str = SHA256, size: int | None = len(DATA)) -> RemoteFile:
    return RemoteFile("a file", f"{server.url}/file", sha256, size)


def get(server: Server, folder: Path, **settings: Any) -> Fetched:
    return fetcher(**settings).file(wanted(server), folder / "part")


def test_a_file_arrives(server: Server, tmp_path: Path) -> None:
    assert get(server, tmp_path) == Fetched(tmp_path / "part", SHA256, len(DATA))
    assert (tmp_path / "part").read_bytes() == DATA
    assert server.headers[0]["Accept-Encoding"] == "identity"
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


@pytest.mark.parametrize("cut", sorted(random.Random(2026).sample(range(1, len(DATA)), 20)))
def test_a_connection_cut_at_any_point_is_gone_on_with(server: Server, tmp_path: Path, cut: int) -> None:
    server.cut = [cut]
    assert get(server, tmp_path).sha256 == SHA256
    assert (tmp_path / "part").read_bytes() == DATA
    assert [start for _, start in server.asked] == [0, cut]


def test_a_connection_cut_at_every_percent(tmp_path: Path) -> None:
    data = random.Random(6).randbytes(8_000_000)
    with Server({"/file": data}) as server:
        server.cut = [80_000] * 100
        made = fetcher().file(
            RemoteFile("f", f"{server.url}/file", hashlib.sha256(data).hexdigest()), tmp_path / "part"
        )
        assert made.size == len(data)
        assert len(server.asked) == 100
    assert (tmp_path / "part").read_bytes() == data


def test_a_later_command_goes_on_where_one_ended(server: Server, tmp_path: Path) -> None:
    server.cut = [100_000, 0, 0]
    with pytest.raises(NetworkError, match="does not send the file: the connection ended early"):
        get(server, tmp_path)
    assert get(server, tmp_path).sha256 == SHA256
    assert [start for _, start in server.asked] == [0, 100_000, 100_000, 100_000]
    assert [headers.get("If-Range") for headers in server.headers] == [None, '"one"', '"one"', None]


def test_a_server_that_ignores_range(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.cut = [200_000]
    assert get(server, tmp_path).sha256 == SHA256
    assert (tmp_path / "part").read_bytes() == DATA


def test_a_file_that_changes_in_between_is_fetched_from_its_beginning(server: Server, tmp_path: Path) -> None:
    changed = bytes(len(DATA))
    server.cut = [200_000, 0, 0]
    with pytest.raises(NetworkError):
        get(server, tmp_path)
    server.files["/file"], server.tag = changed, '"two"'
    made = fetcher().file(wanted(server, sha256=hashlib.sha256(changed).hexdigest()), tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == changed
    assert made.size == len(changed)


def test_what_another_command_left_is_no_help_when_it_is_of_another_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"z" * 1000)
    assert get(server, tmp_path).sha256 == SHA256
    assert [start for _, start in server.asked] == [1000, 0]


def test_without_a_digest_a_part_of_an_earlier_command_is_left_aside(server: Server, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(DATA[:1000])
    made = fetcher().file(wanted(server, sha256="", size=None), tmp_path / "part")
    assert made == Fetched(tmp_path / "part", SHA256, len(DATA))
    assert [start for _, start in server.asked] == [0]


def test_other_bytes_are_refused_and_not_kept(server: Server, tmp_path: Path) -> None:
    with pytest.raises(HashMismatchError, match="has another sha256") as caught:
        fetcher().file(wanted(server, sha256="0" * 64), tmp_path / "part")
    assert f"received {SHA256} (300000 bytes)" in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_another_length_is_refused_before_it_is_fetched(server: Server, tmp_path: Path) -> None:
    with pytest.raises(HashMismatchError, match="has 300000 bytes, expected 7"):
        fetcher().file(wanted(server, size=7), tmp_path / "part")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_server_in_trouble_is_asked_again(server: Server, tmp_path: Path, status: int) -> None:
    server.statuses = [status]
    assert get(server, tmp_path).sha256 == SHA256


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (404, "the file may have another address now"),
        (403, "~/.netrc"),
        (401, "~/.netrc"),
        (407, "USER:PASSWORD@"),
        (400, ""),
    ],
)
def test_an_answer_that_stays_is_not_asked_for_again(server: Server, tmp_path: Path, status: int, hint: str) -> None:
    server.statuses = [status] * 3
    with pytest.raises(NetworkError, match=rf"/file responded with status {status}") as caught:
        get(server, tmp_path)
    assert hint in caught.value.hint
    assert len(server.asked) == 1


def test_patience_ends(server: Server, tmp_path: Path) -> None:
    server.statuses = [503] * 9
    with pytest.raises(NetworkError, match="does not send the file: the server responded with status 503") as caught:
        get(server, tmp_path)
    assert "run the same command again to continue" in caught.value.hint
    assert len(server.asked) == 2


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="does not send the file: Connection refused"):
        fetcher().file(RemoteFile("f", "http://127.0.0.1:9/f", SHA256), tmp_path / "part")


def test_a_slow_drip_ends(server: Server, tmp_path: Path) -> None:
    server.drip = 0.1
    patience = Patience(connect=2, read=2, attempts=2, pause=0.01, slow=10_000, window=0.2)
    with pytest.raises(NetworkError, match=r"only [0-9]+ bytes in [0-9]+ s"):
        fetcher(patience).file(wanted(server), tmp_path / "part")
    assert len(server.asked) == 2


def test_a_server_that_falls_silent(server: Server, tmp_path: Path) -> None:
    server.drip, server.piece = 60, 1000
    with pytest.raises(NetworkError, match="the answer timed out"):
        fetcher(Patience(1, 0.3, 2, 0.01, 1, 30)).file(wanted(server), tmp_path / "part")


def test_a_redirect_to_another_host_gets_no_credentials(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    with Server() as first:
        first.redirect = ("/file", server.url)
        url = first.url.replace("127.0.0.1", "localhost") + "/file"
        fetcher().file(RemoteFile("f", url, SHA256), tmp_path / "part")
        assert first.headers[0]["Authorization"].startswith("Basic ")
    assert "Authorization" not in server.headers[0]


def test_a_redirect_without_end(server: Server, tmp_path: Path) -> None:
    server.redirect = ("/file", server.url)
    with pytest.raises(NetworkError, match="Exceeded 10 redirects"):
        get(server, tmp_path)


def test_a_redirect_to_something_else_than_http(server: Server, tmp_path: Path) -> None:
    server.redirect = ("/file", "file:///etc/passwd?")
    with pytest.raises(NetworkError, match="No connection adapters"):
        get(server, tmp_path)


def test_a_redirect_from_https_to_http_is_not_followed() -> None:
    import requests

    from tenv.core.http import _open_session

    answer = requests.Response()
    answer.status_code, answer.url = 302, "https://h/f"
    answer.headers["Location"] = "http://u:secret@h/f?token=1"
    with pytest.raises(requests.exceptions.InvalidURL, match="redirects to http://h/f, which is not encrypted"):
        _open_session(HttpSettings(), threading.Event()).get_redirect_target(answer)


def test_mirrors_are_asked_in_their_order(server: Server, tmp_path: Path) -> None:
    with Server() as empty:
        mirrors = {"https://nvidia.example": (f"{empty.url}/a", server.url)}
        made = fetcher(settings=Settings(mirrors)).file(
            RemoteFile("f", "https://nvidia.example/file", SHA256), tmp_path / "part"
        )
        assert empty.paths() == ["/a/file"]
    assert made.sha256 == SHA256


def test_a_mirror_with_other_bytes_is_passed_over(server: Server, tmp_path: Path) -> None:
    with Server({"/file": bytes(len(DATA))}) as wrong:
        mirrors = {"https://nvidia.example/": (wrong.url, server.url)}
        made = fetcher(settings=Settings(mirrors)).file(
            RemoteFile("f", "https://nvidia.example/file", SHA256, len(DATA)), tmp_path / "part"
        )
    assert made.sha256 == SHA256


def test_a_mirror_may_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "file").write_bytes(DATA)
    made = fetcher(settings=Settings({"https://nvidia.example": ((tmp_path / "mirror").as_uri(),)}))
    url = "https://nvidia.example/file"
    assert made.text(url, "f") == DATA
    assert made.text(f"{url}s", "f") is None
    assert made.file(RemoteFile("f", url, SHA256), tmp_path / "part").size == len(DATA)
    with pytest.raises(HashMismatchError):
        made.file(RemoteFile("f", url, "0" * 64), tmp_path / "part")
    with pytest.raises(NetworkError, match="does not exist"):
        made.file(RemoteFile("f", f"{url}s", SHA256), tmp_path / "part")


def test_offline_asks_nobody(server: Server, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="a file is not in the store, and `--offline` turns off the network"):
        get(server, tmp_path, offline=True)
    assert server.asked == []


def test_a_stop_is_heard(server: Server, tmp_path: Path) -> None:
    server.drip, server.piece = 0.05, 20_000
    made = fetcher()
    made.on_bytes = lambda _name, _done, _total: made.stopped.set()
    with pytest.raises(CancelledError):
        made.file(wanted(server), tmp_path / "part")
    server.drip = 0
    assert get(server, tmp_path).sha256 == SHA256
    assert server.asked[-1][1] > 0


def test_messages_hold_no_secrets() -> None:
    assert shown("https://me:secret@h:8/a/b.zip?token=1#x") == "https://h:8/a/b.zip"


def test_progress_is_told(server: Server, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    get(server, tmp_path, on_bytes=lambda *row: told.append(row))
    assert told[-1] == ("a file", len(DATA), len(DATA))


def test_a_small_file_comes_whole_or_not_at_all(server: Server) -> None:
    server.files["/small"] = b"{}"
    assert fetcher().text(f"{server.url}/small", "s") == b"{}"
    assert fetcher().text(f"{server.url}/none", "s") is None
    server.cut = [1]
    assert fetcher().text(f"{server.url}/small", "s") == b"{}"


def test_a_full_disk(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenv.sources.archives import download

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(download._PartialFile, "write", full)
        with pytest.raises(StorageError, match=r"can't write .*No space left on device"):
            get(server, tmp_path)
    assert get(server, tmp_path).sha256 == SHA256


def test_environment_variables_say_how_patient_to_be() -> None:
    assert Patience.of({"TENV_HTTP_TIMEOUT": "3", "TENV_HTTP_RETRIES": "0"}) == Patience(3, 3, 1, 0.5, 1024, 3)
    assert Patience.of({"TENV_HTTP_TIMEOUT": "", "TENV_HTTP_RETRIES": ""}) == Patience()
    for name, text in (
        *(("TENV_HTTP_TIMEOUT", text) for text in ("soon", "-1", "0", "nan", "inf", "1e20", "30s")),
        *(("TENV_HTTP_RETRIES", text) for text in ("many", "-1", "2.5", "1e3")),
    ):
        with pytest.raises(UsageError, match=rf"{name}: expected a (whole )?number from .*, got `{text}`"):
            Patience.of({name: text})
    with pytest.raises(UsageError, match="expected a whole number from 0 to"):
        Patience.of({"TENV_HTTP_RETRIES": "2.5"})


# The store


def test_two_that_want_the_same_fetch_it_once(server: Server, tmp_path: Path) -> None:
    server.drip, server.piece = 0.02, 30_000
    store = Store(tmp_path)
    found: list[Fetched] = []
    threads = [threading.Thread(target=lambda: found.append(store.fetch(fetcher(), wanted(server)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row.sha256 for row in found] == [SHA256, SHA256]
    assert len(server.asked) == 1


def test_a_damaged_file_in_the_store_is_fetched_again(server: Server, tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.fetch(fetcher(), wanted(server)).path
    path.chmod(0o644)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    assert [row.path for row in store.damages()] == [path]
    assert store.fetch(fetcher(), wanted(server)).path.read_bytes() == DATA
    assert list(store.damages()) == []
    assert len(server.asked) == 2
    store.clear()
    assert not tmp_path.exists()
