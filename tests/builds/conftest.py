"""A small PyTorch checkout in a project, with one target for it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.projects import Ended, Project, call
from tests.support.small_torch import make_checkout


@dataclass
class Workshop:
    """A checkout and the target that builds it.

    Attributes:
        project: The project around it.
        checkout: The checkout.
    """

    project: Project
    checkout: Path

    def run(self, *words: str) -> Ended:
        """Run `tenv build` with JSON."""
        return call("build", "tiny", "--pytorch", str(self.checkout), "--json", *words)

    def build(self, *words: str) -> dict[str, Any]:
        """Run `tenv build`, which must succeed, and return its data."""
        ended = self.run(*words)
        assert ended.status == 0, f"{ended.err}\n{ended.out}"
        data: dict[str, Any] = json.loads(ended.out)["data"]
        return data

    def fails(self, *words: str) -> tuple[str, tuple[str, ...]]:
        """Run `tenv build`, which must fail with status 1; return the step that failed and the codes of its errors."""
        ended = self.run(*words)
        assert ended.status == 1, ended.err
        steps = json.loads(ended.out)["data"]["steps"]
        assert all(step["ok"] for step in steps[:-1])
        assert not steps[-1]["ok"]
        return steps[-1]["name"], codes(steps[-1])

    @property
    def prefix(self) -> Path:
        """The environment, which the checkout owns."""
        return self.checkout / ".tenv" / "envs" / "tiny"


def codes(step: dict[str, Any], severity: str = "error") -> tuple[str, ...]:
    """Return the codes of a step's findings of one severity."""
    return tuple(found["code"] for found in step["findings"] if found["severity"] == severity)


def step(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a step by its name."""
    found: dict[str, Any] = next(row for row in data["steps"] if row["name"] == name)
    return found


@pytest.fixture
def workshop(locked: Project, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A checkout of the era of setup.py with `--cmake-only`; compilations are quick, and in no cache."""
    text = locked.manifest.read_text()
    locked.manifest.write_text(f'{text}\n[build]\ncache = "off"\n')
    monkeypatch.setenv("CFLAGS", "-O0")
    monkeypatch.setenv("CXXFLAGS", "-O0")
    for name in ("CC", "CXX", "MAX_JOBS", "DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return Workshop(locked, make_checkout(locked.folder / "pytorch"))
