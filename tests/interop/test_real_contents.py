"""Files of public repositories, imported, locked, created and verified with the wheels of the index in use.

Their conda packages, repositories and folders are made. `tests/interop/test_created_files.py` has all of them.
"""

import os
import shutil
from pathlib import Path

import pytest

from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock
from tests.interop.public_files import FILES
from tests.interop.test_created_files import created

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(current_platform() != "linux-64", reason="the files are for linux-64"),
]

WHEELS = {
    ("ESMValGroup/ESMValCore", "pixi.lock"): {"six"},
    ("2black0/image-matching-models", "pixi.toml"): {"kornia", "lightning-utilities", "transforms3d"},
}
"""The files, each with wheels that are locked for it."""


def test_public_files_become_environments_with_wheels_of_the_index(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "RATTLER_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in [name for name in os.environ if name.startswith("TENV_")]:
        monkeypatch.delenv(name)
    files = {(file.repository, file.path): file for file in FILES if not file.environment}
    for number, (key, wheels) in enumerate(WHEELS.items()):
        folder = tmp_path / str(number)
        (folder / "manifests").mkdir(parents=True)
        (folder / "tenv.toml").touch()
        monkeypatch.chdir(folder)
        assert "all files are intact" in created(files[key], real=True), key
        locked = {row.name for row in read_lock(Path("locks/made.lock"), "made").wheels["linux-64"]}
        assert wheels <= locked, key
        assert not {"torch", "torchvision"} & locked, key  # conda's count, with their libraries
        assert not any(name.startswith("nvidia-") for name in locked), key
        shutil.rmtree(folder)
