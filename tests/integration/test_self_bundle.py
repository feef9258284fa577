"""`tenv bundle --self` with the dependencies of the index: installed by a Python alone, and used."""

import sys
from pathlib import Path

import pytest

from tests.integration.bench import check, own_environment

pytestmark = pytest.mark.real


def test_a_python_alone_installs_tenv(tmp_path: Path) -> None:
    environment = {**own_environment(tmp_path), "TENV_CACHE_DIR": str(tmp_path / "cache")}
    said = check([sys.executable, "-m", "tenv", "bundle", "--self"], tmp_path, environment)
    (archive,) = tmp_path.glob("tenv-*.pyz")
    assert f"python3 {archive.name} FOLDER" in said
    alone = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    python = Path(sys.base_prefix) / "bin" / "python3"
    check([python, archive, tmp_path / "tenv"], tmp_path, alone)
    program = tmp_path / "tenv" / "bin" / "tenv"
    assert "cuda130" in check([program, "targets"], tmp_path, alone)
    assert "build" in check([program, "check", "cpu", "--build-only", "--json"], tmp_path, alone)
