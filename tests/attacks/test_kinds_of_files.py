"""Files of the wrong kind: a pipe, an endless device, a file of a terabyte. No command waits for them or reads them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.core import file_content
from tests.support.projects import Project, call

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="named pipes"), pytest.mark.timeout(120)]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS = (_pipe, _endless, _huge)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize(
    "words",
    [
        ("import", "{}/pixi.lock"),
        ("import", "{}/environment.yml"),
        ("import", "{}/requirements.txt"),
        ("check", "tiny", "--host-report", "{}/report"),
        ("check", "tiny", "--against", "{}/fleet.json"),
        ("check-driver", "tiny", "--against", "{}/fleet"),
        ("explain", "--log", "{}/log"),
        ("diff", "{}/a.lock", "{}/a.lock"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_named(
    make: Callable[[Path], object], words: tuple[str, ...], locked: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_content, "_UNOPENED", 0.1)
    file = locked.folder / words[-1].removeprefix("{}/")
    make(file)
    ended = call(*(word.replace("{}", str(locked.folder)) for word in words))
    assert ended.status in (1, 2, 3, 7), ended.err  # 1: the answer about a machine that is none is unknown
    assert "error[bug]" not in ended.err
    assert len(ended.out + ended.err) < 5000


RECORDS = (
    "tenv-meta/state.json",
    "tenv-meta/activation.json",
    "tenv-meta/made.json",
    "tenv-meta/id",
    "tenv-meta/lock-note",
    "tenv-meta/locks/*.lock",
    "lib/python3*/site-packages/alpha-1.0.dist-info/RECORD",
    "pyvenv.cfg",
)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_of_an_environment(name: str, created: Project) -> None:
    make = KINDS[RECORDS.index(name) % len(KINDS)]
    file = next(iter(created.prefix.glob(name)), created.prefix / name)
    file.unlink(missing_ok=True)
    make(file)
    for words in (("list",), ("env", "tiny"), ("verify", "tiny", "--no-probes")):
        ended = call(*words)
        assert "error[bug]" not in ended.err, (words, ended.err)
