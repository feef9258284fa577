"""A first environment whose wheels are put there while the rules are asked."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tenv.checks import before_create, lock_verdict
from tenv.core import process
from tenv.core.errors import UnfitHostError, UnsafePackageError
from tenv.sources import staleness
from tenv.sources.wheels import early_install, interpreters, unpacked_size
from tenv.sources.wheels.early_install import EarlyInstall
from tenv.sources.wheels.uv import Uv
from tests.support.fakes import make_wheel
from tests.support.projects import Project, call, held

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hard links and clones")


@pytest.fixture
def begun(created: Project, monkeypatch: pytest.MonkeyPatch) -> "list[process.Background]":
    """The programs that were started beside the rules; the cache holds the wheels, and there is no environment."""
    created.ok("remove", "tiny", "--yes")
    started: list[process.Background] = []
    early: list[EarlyInstall] = []

    class Kept(process.Background):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            if early:
                started.append(self)

    begin = EarlyInstall.__init__

    def beginning(self: EarlyInstall, *words: Any) -> None:
        early.append(self)
        try:
            begin(self, *words)
        finally:
            early.remove(self)

    monkeypatch.setattr(EarlyInstall, "__init__", beginning)
    monkeypatch.setattr(process, "Background", Kept)
    return started


def without_cache() -> None:
    shutil.rmtree(os.environ["UV_CACHE_DIR"])


def marks() -> "list[Path]":
    return sorted(Path(os.environ["XDG_DATA_HOME"]).glob("tenv/marks/*"))


def test_it_is_the_installation(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    require = before_create.require_build

    def require_build(*words: Any, **options: Any) -> Any:
        asked.append(len(begun))
        return require(*words, **options)

    monkeypatch.setattr(before_create, "require_build", require_build)
    monkeypatch.setattr(Uv, "install", pytest.fail)
    created.ok("create", "tiny")
    assert asked == [2]
    assert [program.wait() for program in begun] == [0, 0]
    assert created.state()["state"] == "ready"
    created.ok("verify", "tiny", "--no-probes")


def test_wheels_wait_for_the_lock_to_be_held_against_its_manifest(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    differences = staleness.differences

    def noting(*words: Any) -> Any:
        judged.append(len(begun))
        return differences(*words)

    monkeypatch.setattr(lock_verdict, "differences", noting)
    created.ok("create", "tiny")
    assert judged == [1]
    assert len(begun) == 2
    created.ok("remove", "tiny", "--yes")
    shutil.rmtree(created.prefix.parent)
    begun.clear()
    created.ok("create", "tiny")
    assert judged == [1, 0]
    assert begun == []  # an error would have left the folder


def test_of_a_lock_that_can_not_be_used_nothing_stays(created: Project, begun: "list[process.Background]") -> None:
    created.ask_for('gamma = "*"')
    before = marks()
    created.fails(7, "lock-stale", "create", "tiny", "--frozen")
    assert len(begun) == 1
    assert [path.name for path in created.prefix.parent.iterdir()] == [".tiny.lock"]
    assert marks() == before
    make_wheel(created.index.folder, "gamma", "1.0")
    ended = created.ok("create", "tiny")
    assert "locked again" in ended.err
    assert len(begun) == 2
    assert (created.site() / "gamma.py").is_file()
    created.ok("verify", "tiny", "--no-probes")


def test_another_index_does_not_keep_it_from_beginning(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_INDEX", created.index.url)
    monkeypatch.setattr(Uv, "install", pytest.fail)
    created.ok("create", "tiny")
    assert begun


def test_the_machine_is_searched_for_pythons_once(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = Mock(wraps=interpreters.search)
    monkeypatch.setattr("tenv.sources.wheels.uv.search", searched)
    created.ok("create", "tiny")
    assert begun
    assert searched.call_count == 1


@pytest.mark.parametrize("error", [UnfitHostError, KeyboardInterrupt])
def test_where_the_rules_end_the_command_nothing_stays(
    created: Project,
    begun: "list[process.Background]",
    monkeypatch: pytest.MonkeyPatch,
    error: "type[BaseException]",
) -> None:
    before = marks()

    def refuse(*_: Any, **__: Any) -> Any:
        assert created.prefix.exists()
        raise error("no", []) if error is UnfitHostError else error

    monkeypatch.setattr(before_create, "require_build", refuse)
    assert call("create", "tiny").status == (4 if error is UnfitHostError else 130)
    assert len(begun) == 2
    assert begun[0].wait() == 0
    assert not created.prefix.exists()
    assert marks() == before


def test_a_rule_is_told_though_a_wheel_is_unsafe(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def guarded(_: Path) -> Iterator[None]:
        yield
        raise UnsafePackageError("a wheel brings a file of tenv")

    def refuse(*_: Any, **__: Any) -> Any:
        raise UnfitHostError("no", [])

    monkeypatch.setattr(early_install, "own_files_guarded", guarded)
    monkeypatch.setattr(before_create, "require_build", refuse)
    created.fails(4, "unfit-host", "create", "tiny")
    assert begun
    assert not created.prefix.exists()


@pytest.mark.parametrize("there", [True, False])
def test_the_little_that_the_cache_lacks_is_fetched_meanwhile(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    without_cache()
    if there:
        Path(os.environ["UV_CACHE_DIR"]).mkdir()
    monkeypatch.setattr(Uv, "install", pytest.fail)
    created.ok("create", "tiny")
    assert [program.wait() for program in begun] == [0, 0]
    created.ok("verify", "tiny", "--no-probes")


def test_much_that_the_cache_lacks_is_fetched_after_the_rules(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_install, "_MOST", 1)
    without_cache()
    Path(os.environ["UV_CACHE_DIR"]).mkdir()
    created.ok("create", "tiny")
    assert [program.wait() == 0 for program in begun] == [True, False]  # it was not in the cache
    created.ok("remove", "tiny", "--yes")
    begun.clear()
    without_cache()
    created.ok("create", "tiny")
    assert not begun


def test_what_can_not_be_fetched_is_told_once(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cache()
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    again = Mock(wraps=Uv._put)
    monkeypatch.setattr(Uv, "_put", again)
    created.fails(6, "network", "create", "tiny")
    assert len(begun) == 2
    assert not again.called
    assert not created.prefix.exists()


def test_what_uv_has_half_unpacked_goes_where_the_rules_end_the_command(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cache()
    half = Path(os.environ["UV_CACHE_DIR"]) / ".tmpHALF"

    def refuse(*_: Any, **__: Any) -> Any:
        (half / "alpha").mkdir(parents=True)
        monkeypatch.setattr(
            unpacked_size, "_open_folders", lambda process: [half] if process == begun[1].process else []
        )
        raise UnfitHostError("no", [])

    monkeypatch.setattr(before_create, "require_build", refuse)
    created.fails(4, "unfit-host", "create", "tiny")
    assert not half.exists()
    assert not created.prefix.exists()


@pytest.mark.parametrize(
    "words",
    [("--no-check",), ("--python", f"3.{sys.version_info.minor}"), ("--pytorch", "2.9")],
    ids=lambda words: words[0],
)
def test_other_ways_wait_for_the_rules(
    created: Project, begun: "list[process.Background]", words: tuple[str, ...]
) -> None:
    created.ok("create", "tiny", *words)
    assert not begun


def test_copies_wait_for_the_rules_which_ask_for_the_free_space(
    created: Project, begun: "list[process.Background]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENV_LINK_MODE", "copy")
    created.ok("create", "tiny")
    assert not begun


def test_a_checkout_waits_for_the_rules_which_choose_its_python(
    created: Project, begun: "list[process.Background]"
) -> None:
    Path("version.txt").write_text("2.9.0\n")
    created.ok("create", "tiny")
    assert not begun


def test_a_folder_that_another_process_holds_is_left_alone(created: Project, begun: "list[process.Background]") -> None:
    with held(created.prefix):
        assert "is in use by" in created.fails(8, "environment-busy", "create", "tiny", "--no-wait")
    assert not begun
    assert not created.prefix.exists()
