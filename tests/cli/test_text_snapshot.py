"""What each command prints for people, and its ``--help``, to the letter: a reworded message is seen in review.

``pytest -m snapshots --snapshot-update`` writes the snapshots anew.
"""

import subprocess
import sys

import pytest
from syrupy.assertion import SnapshotAssertion

from tenv.cli.main import COMMANDS
from tests.cli.test_json_snapshot import HOSTS, UBUNTU
from tests.support.projects import Project, call
from tests.support.steady import Printed, whole

pytestmark = pytest.mark.snapshots

# In an order in which one project serves them all.
CALLS: dict[str, tuple[str, ...]] = {
    "targets": ("targets",),
    "show": ("show", "tiny"),
    "show built-in": ("show", "cpu"),
    "lock": ("lock", "tiny"),
    "lock again": ("lock", "tiny"),
    "lock --check": ("lock", "tiny", "--check"),
    "update --dry-run": ("update", "tiny", "--dry-run"),
    "diff": ("diff", "cuda130", "cuda132", "--platform", "linux-64"),
    "merge-driver --install": ("merge-driver", "--install"),
    "export pylock.toml": ("export", "pylock.toml", "tiny"),
    "export requirements.txt": ("export", "requirements.txt", "tiny", "-o", "-"),
    "bundle": ("bundle", "tiny"),
    "mirror": ("mirror", "tiny", "mirror", "--url", "https://mirror.example.com"),
    "import": ("import", "environment.yml"),
    "create": ("create", "tiny"),
    "create again": ("create", "tiny"),
    "list": ("list",),
    "activate": ("activate", "tiny"),
    "deactivate": ("deactivate", "--shell", "bash", "--json"),
    "hook": ("hook", "zsh", "--json"),
    "run": ("run", "tiny", "--", "no-such-program"),
    "shell": ("shell", "nosuch"),
    "gdb": ("gdb", "nosuch"),
    "env": ("env", "tiny"),
    "env --explain": ("env", "tiny", "--explain", "TENV_PREFIX"),
    "check": ("check", "cuda121", "--pytorch", "2.4", "--host-report", UBUNTU),
    "check --build-only": ("check", "cuda130", "--build-only", "--host-report", UBUNTU),
    "check --against": ("check", "cuda130", "--against", str(HOSTS)),
    "check-driver": ("check-driver", "--host-report", UBUNTU),
    "check-driver target": ("check-driver", "cuda130", "--host-report", UBUNTU),
    "check-driver --against": ("check-driver", "--against", str(HOSTS)),
    "explain": ("explain", "TE101"),
    "host": ("host", "--host-report", UBUNTU),
    "facts": ("facts",),
    "facts table": ("facts", "cuda-driver"),
    "verify": ("verify", "tiny"),
    "plan": ("plan", "tiny"),
    "build": ("build", "tiny", "--pytorch", "nosuch"),
    "audit": ("audit", "nosuch"),
    "bisect-env": ("bisect-env", "--pytorch", "nosuch"),
    "rollback": ("rollback", "tiny"),
    "init": ("init", "mine", "--extends", "tiny"),
    "add": ("add", "mine", "gamma"),
    "drop": ("drop", "mine", "alpha"),
    "tree": ("tree", "tiny"),
    "tree --invert": ("tree", "tiny", "--invert", "beta"),
    "packages": ("packages", "tiny"),
    "outdated": ("outdated", "tiny"),
    "search": ("search", "native", "tiny"),
    "default": ("default", "tiny"),
    "config": ("config", "sync"),
    "info": ("info", "nothing"),
    "install": ("install", "numpy"),
    "remove a package": ("remove", "numpy"),
    "remove": ("remove", "tiny"),
    "remove again": ("remove", "tiny"),
    "clean": ("clean",),
    "completion": ("completion", "tcsh"),
    "no command": (),
    "unknown command": ("crate",),
    "unknown option": ("create", "--lokced"),
}


def test_what_is_printed(project: Project, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tenv"])
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SHELL", "/bin/bash")
    project.widen()
    (project.folder / "environment.yml").write_text("name: theirs\ndependencies: [python=3.11, numpy]\n")
    subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
    for name, words in CALLS.items():
        assert whole(call(*words), project) == snapshot(name=name, extension_class=Printed), name


def test_help(snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command in ("", "--all", *COMMANDS):
        ended = call(*filter(None, [command]), "--help")
        assert whole(ended) == snapshot(name=command or "no command", extension_class=Printed), command
