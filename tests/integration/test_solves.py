"""Many solves, each a process of its own: rattler now and then crashes at a process's end, and tenv must not.

TENV_TESTS_SOLVES   how many (a hundred without it)
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.channels import EXCERPT, Channels, read_folder
from tests.support.projects import SOURCE

pytestmark = pytest.mark.real

SOLVES = int(os.environ.get("TENV_TESTS_SOLVES", "100"))
MANIFEST = """\
platforms = ["linux-64"]
channels  = ["conda-forge", "pytorch", "intel"]

[requirements]
cuda = "12.1"

[dependencies]
cuda-nvcc     = "12.1.*"
cmake         = "<4"
python        = "3.11.*"
magma-cuda121 = "*"
"""


def settings(folder: Path, channels: Channels) -> Mapping[str, str]:
    """Return an environment in which channels are those that are served here."""
    (folder / "config" / "tenv").mkdir(parents=True)
    (folder / "config" / "tenv" / "config.toml").write_text(channels.settings())
    homes = {"HOME": folder, "XDG_CONFIG_HOME": folder / "config", "RATTLER_CACHE_DIR": folder / "cache"}
    return {**os.environ, **{name: str(path) for name, path in homes.items()}, "PYTHONPATH": str(SOURCE)}


def test_many_solves_in_a_row_end_well(tmp_path: Path) -> None:
    (tmp_path / "project" / "manifests").mkdir(parents=True)
    (tmp_path / "project" / "manifests" / "small.toml").write_text(MANIFEST)
    with Channels(read_folder(EXCERPT)) as channels:
        environment = settings(tmp_path, channels)

        def solve(number: int) -> tuple[int, str]:
            words = ["lock", "small", "--lock-file", str(tmp_path / f"{number}.lock")]
            done = subprocess.run(
                [sys.executable, "-m", "tenv", *words],
                cwd=tmp_path / "project",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            return done.returncode, done.stderr

        start = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            ended = list(pool.map(solve, range(SOLVES)))
        seconds = time.perf_counter() - start
    print(f"{SOLVES} solves in {seconds:.0f} s: {Counter(status for status, _ in ended)}")  # noqa: T201 (the figure)
    assert [told for status, told in ended if status] == []
    locks = {(tmp_path / f"{number}.lock").read_bytes() for number in range(SOLVES)}
    assert len(locks) == 1
    assert b"cuda-nvcc-12.1.105" in locks.pop()
