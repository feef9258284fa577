"""Source archives of the index, some with a compiled part: locked, built, verified, and kept for a second project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.bench import check, own_environment

pytestmark = pytest.mark.real

_PURE = ("docopt", "jieba", "langdetect", "sgmllib3k", "timeout-decorator", "wget")
_COMPILED = ("crcmod", "pycosat")
"""Packages that have no wheel, by whether their build runs a compiler."""
_IMPORTS = "import antlr4, docopt, jieba, langdetect, pycosat, sgmllib, wget, crcmod._crcfunext"


def _project(folder: Path, asked: str) -> Path:
    (folder / "manifests").mkdir(parents=True)
    minor = f"3.{sys.version_info.minor}"
    (folder / "manifests" / "mine.toml").write_text(f'python = "{minor}.*"\nplatforms = ["linux-64"]\n{asked}')
    return folder


def test_archives_of_the_index_are_built_once_for_two_projects(tmp_path: Path) -> None:
    names = (*_PURE, *_COMPILED)
    rows = "".join(f'{name} = {{ version = "*", build = true }}\n' for name in names)
    asked = f'sdists = ["antlr4-python3-runtime"]\n[pypi-dependencies]\nomegaconf = "2.3.0"\n{rows}'
    first, second = _project(tmp_path / "one", asked), _project(tmp_path / "two", asked)
    environment = {**own_environment(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def tenv(folder: Path, *words: str) -> str:
        return check([sys.executable, "-m", "tenv", *words], folder, environment)

    tenv(first, "lock", "mine")
    for folder, more in ((first, ()), (second, ("--offline",))):
        if folder is second:
            (second / "locks").mkdir()
            os.link(first / "locks" / "mine.lock", second / "locks" / "mine.lock")
        said = tenv(folder, "create", "mine", "--frozen", *more)
        assert ("building" in said) is (folder is first) or not said.count("building")
        tenv(folder, "verify", "mine")
        tenv(folder, "run", "mine", "--", "python", "-c", _IMPORTS)
    kept = {path.name.split("-")[0] for path in (tmp_path / "cache").rglob("built-wheels/*/*.whl")}
    assert kept == {name.replace("-", "_") for name in (*names, "antlr4-python3-runtime")}


def test_an_archive_that_no_manifest_permits_is_named(tmp_path: Path) -> None:
    folder = _project(tmp_path / "one", '[pypi-dependencies]\nomegaconf = "2.3.0"\n')
    done = subprocess.run(
        [sys.executable, "-m", "tenv", "lock", "mine"],
        cwd=folder,
        env=own_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert '`sdists = ["antlr4-python3-runtime"]` at the top permits its build' in " ".join(done.stderr.split())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux denies sockets")
def test_an_archive_whose_build_downloads_is_refused(tmp_path: Path) -> None:
    """Its setup.py fetches a program that no lock has."""
    folder = _project(tmp_path / "one", '[pypi-dependencies]\nchromedriver-binary = { version = "*", build = true }\n')
    done = subprocess.run(
        [sys.executable, "-m", "tenv", "create", "mine"],
        cwd=folder,
        env={**own_environment(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 8, done.stderr
    said = " ".join(done.stderr.split())
    assert "its build wants a network, which a build of a locked source archive or commit does not get" in said
