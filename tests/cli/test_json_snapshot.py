"""What each command prints with ``--json``, to the letter: other programs read it, so a change must be seen.

``pytest tests/cli/test_json_snapshot.py --snapshot-update`` writes the snapshots anew.
"""

import json
import shutil
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
# In an order in which one project serves them all.
CALLS: dict[str, tuple[str, ...]] = {
    "targets": ("targets",),
    "show": ("show", "tiny"),
    "show-built-in": ("show", "cpu"),
    "lock": ("lock", "tiny"),
    "lock-check": ("lock", "tiny", "--check"),
    "update": ("update", "tiny", "--dry-run"),
    "create-dry-run": ("create", "tiny", "--dry-run"),
    "diff": ("diff", "cuda130", "cuda132", "--platform", "linux-64"),
    "export-pylock": ("export", "pylock.toml", "tiny", "-o", "-"),
    "export-requirements": ("export", "requirements.txt", "tiny", "-o", "-"),
    "export-file": ("export", "requirements.txt", "tiny", "-o", "requirements.txt"),
    "bundle": ("bundle", "tiny"),
    "mirror": ("mirror", "tiny", "mirror", "--url", "https://mirror.example.com"),
    "create-unknown": ("create", "nosuch"),
    "deactivate": ("deactivate", "--shell", "bash"),
    "hook": ("hook", "zsh"),
    "completion": ("completion", "tcsh"),
    "run": ("run", "--json", "nosuch", "true"),
    "shell": ("shell", "nosuch"),
    "gdb": ("gdb", "nosuch"),
    "check": ("check", "cuda121", "--pytorch", "2.4", "--host-report", UBUNTU),
    "check-build-only": ("check", "cuda130", "--build-only", "--host-report", UBUNTU),
    "check-here": ("check", "--here", "--host-report", UBUNTU),
    "check-against-file": ("check", "cpu", "--against", UBUNTU),
    "check-torch": ("check", "--torch", "2.9+cpu", "--host-report", UBUNTU),
    "check-against": ("check", "cuda130", "--against", str(HOSTS)),
    "check-driver": ("check-driver", "--host-report", UBUNTU),
    "check-driver-target": ("check-driver", "cuda130", "--host-report", UBUNTU),
    "check-driver-against": ("check-driver", "--against", str(HOSTS)),
    "explain": ("explain", "TE101"),
    "explain-log": ("explain", "--log", "build.log"),
    "host": ("host", "--host-report", UBUNTU),
    "facts": ("facts",),
    "facts-table": ("facts", "cuda-driver"),
    "tree": ("tree", "tiny"),
    "packages": ("packages", "tiny"),
    "outdated": ("outdated", "tiny"),
    "search": ("search", "native", "tiny"),
    "info": ("info", "nothing"),
    "plan": ("plan", "tiny"),
    "build": ("build", "tiny", "--pytorch", "nosuch"),
    "audit": ("audit", "nosuch"),
    "bisect-env": ("bisect-env", "--pytorch", "nosuch"),
    "merge-driver": ("merge-driver", "--install"),
    "init": ("init", "mine", "--extends", "tiny"),
    "lock-all": ("lock",),
    "check-all": ("check", "--host-report", UBUNTU),
    "update-all": ("update",),
    "import": ("import", "environment.yml"),
    "default": ("default", "tiny"),
    "config": ("config", "sync"),
    "config-set": ("config", "sync", "false"),
    "clean": ("clean",),
    "create": ("create", "tiny"),
    "verify": ("verify", "tiny"),
    "rollback": ("rollback", "tiny"),
    "list": ("list",),
    "activate": ("activate", "tiny"),
    "activate-bash": ("activate", "tiny", "--shell", "bash"),
    "env": ("env", "tiny"),
    "env-explain": ("env", "tiny", "--explain", "TENV_PREFIX"),
    "remove": ("remove", "tiny"),
    "add": ("add", "tiny", "gamma"),
    "drop": ("drop", "tiny", "alpha"),
}


def test_every_command_has_a_snapshot() -> None:
    assert {words[0] for words in CALLS.values()} == set(COMMANDS)


def test_json(wide: Project, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tenv"])
    (wide.folder / "environment.yml").write_text("name: theirs\ndependencies: [python=3.11, numpy]\n")
    (wide.folder / "build.log").write_text(
        "[1/2] c++ a.cpp\nc++: fatal error: Killed signal terminated program cc1plus\n"
    )
    subprocess.run(["git", "init", "-q", str(wide.folder)], check=True)
    for name, words in CALLS.items():
        if name == "clean":  # the commands before it have noted files of the cache
            shutil.rmtree(Path.home() / ".cache" / "tenv" / "stamps", ignore_errors=True)
        ended = call(*words) if "--json" in words else call(*words, "--json")
        printed = {"status": ended.status, "stdout": json.loads(ended.out), "stderr": ended.err}
        assert steady(printed, wide) == snapshot(name=name, extension_class=JSONSnapshotExtension), name
