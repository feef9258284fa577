"""The journal of real builds: a build that is killed leaves what it had."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "research" / "record_build.py"
SAID = """\
echo 'estimate: ok, 44 ms' >&2
echo '  about 88 min with 2 jobs' >&2
echo 'canary: failed, 3.1 s' >&2
"""
ANSWER = {"data": {"steps": [{"name": "canary", "ok": False, "seconds": 3.1, "facts": {}, "log": ""}]}}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "journal.jsonl"


def recorder(journal: Path, rest: str) -> "subprocess.Popen[str]":
    """Start a trial of a `tenv build` that says two steps and goes on with a line of shell."""
    program = journal.parent / "tenv"
    program.write_text(f"#!/bin/sh\n{SAID}{rest}\n")
    program.chmod(0o755)
    words = [SCRIPT, journal.parent / "tree", "cpu", journal, "--trial", "again", "--tenv", program]
    devnull = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, *map(str, words)], text=True, stdout=devnull, stderr=devnull)


def rows(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def test_a_recorder_that_is_killed_has_kept_what_was_said(journal: Path) -> None:
    child = recorder(journal, "exec sleep 20")
    end = time.monotonic() + 20
    while len(rows(journal)) < 4 and time.monotonic() < end:
        time.sleep(0.05)
    child.kill()
    assert child.wait(180) == -signal.SIGKILL
    found = rows(journal)
    assert [row["state"] for row in found] == ["begun", "step", "said", "step"]
    assert found[0]["command"].endswith("build cpu --json")
    assert found[2]["line"] == "  about 88 min with 2 jobs"
    assert [(row["step"], row["ok"]) for row in found if row["state"] == "step"] == [
        ("estimate", True),
        ("canary", False),
    ]


def test_a_build_that_is_killed_has_a_last_row_with_its_status(journal: Path) -> None:
    assert recorder(journal, "kill -9 $$").wait(180) == 1
    last = rows(journal)[-1]
    assert (last["state"], last["status"], last["steps"]) == ("ended", -9, {})


def test_a_build_that_ends_has_all_in_its_last_row(journal: Path) -> None:
    assert recorder(journal, f"echo '{json.dumps(ANSWER)}'; exit 1").wait(180) == 1
    last = rows(journal)[-1]
    assert (last["state"], last["status"], last["steps"]) == ("ended", 1, {"canary": [False, 3.1]})
    assert last["processor"] >= 0
