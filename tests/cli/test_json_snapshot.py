"""What each command prints with ``--json``, to the letter: other programs read it, so a change must be seen.

``pytest tests/cli/test_json_snapshot.py --snapshot-update`` writes the snapshots anew.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from tenv import __version__
from tenv.cli.main import COMMANDS
from tests.support.fakes import MINORS
from tests.support.projects import Project, call

HOSTS = Path(__file__).parent.parent / "posts" / "hosts"
UBUNTU = str(HOSTS / "ubuntu-22.04.json")
CALLS: dict[str, tuple[str, ...]] = {
    "targets": ("targets",),
    "show": ("show", "tiny"),
    "show-built-in": ("show", "cpu"),
    "lock": ("lock", "tiny"),
    "lock-check": ("lock", "tiny", "--check"),
    "update": ("update", "tiny", "--dry-run"),
    "diff": ("diff", "cuda130", "cuda132", "--platform", "linux-64"),
    "merge-driver": ("merge-driver", "--install"),
    "export-pylock": ("export", "pylock.toml", "tiny", "-o", "-"),
    "export-requirements": ("export", "requirements.txt", "tiny", "-o", "-"),
    "import": ("import", "environment.yml"),
    "create": ("create", "tiny"),
    "create-unknown": ("create", "nosuch"),
    "verify": ("verify", "tiny"),
    "rollback": ("rollback", "tiny"),
    "list": ("list",),
    "activate": ("activate", "tiny"),
    "activate-bash": ("activate", "tiny", "--shell", "bash"),
    "deactivate": ("deactivate", "--shell", "bash"),
    "hook": ("hook", "zsh"),
    "run": ("run", "--json", "nosuch", "true"),
    "shell": ("shell", "nosuch"),
    "env": ("env", "tiny"),
    "env-explain": ("env", "tiny", "--explain", "TENV_PREFIX"),
    "check": ("check", "cuda121", "--pytorch", "2.4", "--host-report", UBUNTU),
    "check-build-only": ("check", "cuda130", "--build-only", "--host-report", UBUNTU),
    "check-against": ("check", "cuda130", "--against", str(HOSTS)),
    "check-driver": ("check-driver", "--host-report", UBUNTU),
    "check-driver-target": ("check-driver", "cuda130", "--host-report", UBUNTU),
    "check-driver-against": ("check-driver", "--against", str(HOSTS)),
    "explain": ("explain", "TE101"),
    "host": ("host", "--host-report", UBUNTU),
    "facts": ("facts",),
    "facts-table": ("facts", "cuda-driver"),
    "remove": ("remove", "tiny"),
    "clean": ("clean",),
}


def test_every_command_has_a_snapshot() -> None:
    assert {words[0] for words in CALLS.values()} == set(COMMANDS)


@pytest.mark.parametrize("name", CALLS)
def test_json(locked: Project, name: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    words = CALLS[name]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tenv"])
    _prepare(locked, words[0])
    ended = call(*words) if "--json" in words else call(*words, "--json")
    printed = {"status": ended.status, "stdout": json.loads(ended.out), "stderr": ended.err}
    assert _steady(printed, locked) == snapshot(extension_class=JSONSnapshotExtension)


def _prepare(project: Project, command: str) -> None:
    (project.folder / "environment.yml").write_text("name: theirs\ndependencies: [python=3.11, numpy]\n")
    if command in {"verify", "rollback", "list", "activate", "env", "remove"}:
        project.ok("create", "tiny")
    if command == "merge-driver":
        subprocess.run(["git", "init", "-q", str(project.folder)], check=True)


_VARYING = {"seconds", "bytes", "freed", "log"}
"""Keys whose values differ from run to run."""


def _steady(value: Any, project: Project) -> Any:
    """Return printed values with what differs from run to run and from machine to machine named instead."""
    if isinstance(value, dict):
        if value.get("name") == "MAX_JOBS":  # of this machine's cores and memory
            value = {**value, "value": "<jobs>", "reason": "<machine>"}
        return {key: f"<{key}>" if key in _VARYING else _steady(item, project) for key, item in value.items()}
    if isinstance(value, list):
        return [_steady(item, project) for item in value]
    return _steady_text(value, project) if isinstance(value, str) else value


def _steady_text(text: str, project: Project) -> str:
    places = {
        str(project.folder): "<project>",
        str(HOSTS.parent.parent.parent): "<checkout>",
        os.environ["UV_CACHE_DIR"]: "<uv cache>",
        os.environ["HOME"]: "<home>",
        project.index.url.removesuffix("/simple"): "<index>",
        os.environ["PATH"]: "<path>",
        __version__: "<version>",
        sys.prefix: "<python>",
    }
    for found, name in places.items():
        text = text.replace(found, name)
    text = re.sub(r"\b[0-9a-f]{64}\b", "<sha256>", text)
    if MINORS[0] != "3.11":
        text = text.replace(MINORS[0], "3.11").replace(MINORS[1], "3.12")
    return text
