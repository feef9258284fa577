"""The real pixi on what tenv writes, where one is on PATH; it was last tried by hand with pixi 0.77."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tenv.locks.lock_file import read_lock
from tests.support.projects import call

ROOT = Path(__file__).parents[2]
PIXI = shutil.which("pixi")
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(PIXI is None, reason="not run: no pixi is on PATH, and no registry that tests reach has it"),
]
TARGETS = ("cuda121", "cuda126")


def pixi(folder: Path, *words: str) -> str:
    """Return what pixi prints; it takes what is locked and asks no server what is newer."""
    done = subprocess.run(
        [str(PIXI), *words, "--manifest-path", str(folder / "pixi.toml")],
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=TARGETS)
def workspace(request: pytest.FixtureRequest, empty_project: Path) -> tuple[str, Path]:
    folder = Path("workspace").absolute()
    ended = call("export", "pixi", request.param, "--output", str(folder))
    assert ended.status == 0, ended.err
    return request.param, folder


def test_pixi_lists_the_locked_packages(workspace: tuple[str, Path]) -> None:
    name, folder = workspace
    listed = json.loads(pixi(folder, "list", "--frozen", "--no-install", "--json", "--platform", "linux-64"))
    lock = read_lock(ROOT / "locks" / f"{name}.lock", name)
    locked = {(row.name, row.version) for row in lock.conda["linux-64"] if not row.features}
    assert {(row["name"], row["version"]) for row in listed if row["kind"] == "conda"} == locked


def test_pixi_would_not_change_the_lock(workspace: tuple[str, Path]) -> None:
    _, folder = workspace
    before = (folder / "pixi.lock").read_bytes()
    pixi(folder, "lock", "--check")
    assert (folder / "pixi.lock").read_bytes() == before


def test_pixi_installs_the_lock_and_tenv_reads_it_back(workspace: tuple[str, Path]) -> None:
    name, folder = workspace
    pixi(folder, "install", "--frozen")
    again = call("import", str(folder / "pixi.lock"), "--name", "again")
    assert again.status == 0, again.err
    lock, back = read_lock(ROOT / "locks" / f"{name}.lock", name), read_lock(Path("locks/again.lock"), "again")
    urls = {row.url for row in lock.conda["linux-64"] if not row.features}
    assert {row.url for row in back.conda["linux-64"]} == urls
