"""Kills of a real `create`: whatever is hit, the next one ends with the same files, byte for byte.

TENV_TESTS_KILLS    how many kills (two without it), spread over the time of one `create`
"""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.projects import SOURCE, snapshot

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="signals as Linux has them"),
]

KILLS = int(os.environ.get("TENV_TESTS_KILLS", "2"))


def start(folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PWD": str(folder)}
    command = [sys.executable, "-m", "tenv", *words, "--quiet"]
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True)


def test_kills_of_a_real_create(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    create = ("create", "cpu", "--prefix", str(prefix))
    assert start(tmp_path, *create).wait() == 0  # fills the cache
    clean = snapshot(prefix)
    begun = time.monotonic()
    assert start(tmp_path, *create, "--exact").wait() == 0
    whole = time.monotonic() - begun
    assert snapshot(prefix) == clean
    moments = random.Random(20240229)
    for number in range(KILLS):
        if number % 2:
            assert start(tmp_path, "remove", "cpu", "--prefix", str(prefix)).wait() == 0
        child = start(tmp_path, *create, *(() if number % 2 else ("--exact",)))
        time.sleep(whole * (number + moments.random()) / KILLS)
        child.kill()
        child.wait()
        assert start(tmp_path, *create).wait() == 0, number
        assert snapshot(prefix) == clean, number
