"""What each command prints with ``--json``, to the letter: other programs read it, so a change must be seen.

``pytest tests/cli/test_json_snapshot.py --snapshot-update`` writes the snapshots anew.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from tenv.cli.main import COMMANDS
from tests.support.projects import Project, call
from tests.support.steady import steady

pytestmark = pytest.mark.snapshots

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
    "bundle": ("bundle", "tiny"),
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
    "completion": ("completion", "tcsh"),
    "run": ("run", "--json", "nosuch", "true"),
    "shell": ("shell", "nosuch"),
    "gdb": ("gdb", "nosuch"),
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
    "init": ("init", "mine", "--extends", "tiny"),
    "add": ("add", "tiny", "gamma"),
    "drop": ("drop", "tiny", "alpha"),
    "tree": ("tree", "tiny"),
    "packages": ("packages", "tiny"),
    "outdated": ("outdated", "tiny"),
    "search": ("search", "native", "tiny"),
    "default": ("default", "tiny"),
    "config": ("config", "sync"),
    "info": ("info", "nothing"),
    "plan": ("plan", "tiny"),
    "build": ("build", "tiny", "--pytorch", "nosuch"),
    "audit": ("audit", "nosuch"),
    "bisect-env": ("bisect-env", "--pytorch", "nosuch"),
    "remove": ("remove", "tiny"),
    "clean": ("clean",),
}


def test_every_command_has_a_snapshot() -> None:
    assert {words[0] for words in CALLS.values()} == set(COMMANDS)


@pytest.mark.parametrize("name", CALLS)
def test_json(wide: Project, name: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    words = CALLS[name]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tenv"])
    _prepare(wide, words[0])
    ended = call(*words) if "--json" in words else call(*words, "--json")
    printed = {"status": ended.status, "stdout": json.loads(ended.out), "stderr": ended.err}
    assert steady(printed, wide) == snapshot(extension_class=JSONSnapshotExtension)


def _prepare(project: Project, command: str) -> None:
    (project.folder / "environment.yml").write_text("name: theirs\ndependencies: [python=3.11, numpy]\n")
    if command in {"verify", "rollback", "list", "activate", "env", "remove"}:
        project.ok("create", "tiny")
    if command == "bundle":
        project.ok("lock", "tiny")
    if command == "merge-driver":
        subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
