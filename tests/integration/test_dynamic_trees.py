"""Source trees without static metadata, locked and built with the setuptools and setuptools_scm of the index."""

import sys
from pathlib import Path

import pytest

from tests.integration.bench import check, own_environment
from tests.support.source_trees import commit_all, git

pytestmark = pytest.mark.real

OLD = """\
from setuptools import setup
setup(name="Old", version="1." + str(1 + 1), py_modules=["old"], install_requires=["six"])
"""
COUNTED = """\
[project]
name = "counted"
dynamic = ["version", "dependencies"]
[build-system]
requires = ["setuptools>=77", "setuptools_scm>=8"]
build-backend = "setuptools.build_meta"
[tool.setuptools]
py-modules = ["counted"]
[tool.setuptools.dynamic]
dependencies = { file = ["needs.txt"] }
[tool.setuptools_scm]
"""


def test_a_setup_py_alone_and_a_version_that_counts_commits(tmp_path: Path) -> None:
    old, counted = tmp_path / "old", tmp_path / "counted"
    for folder in (old, counted, tmp_path / "manifests"):
        folder.mkdir()
    (old / "setup.py").write_text(OLD)
    (old / "old.py").write_text("")
    first = commit_all(old, "first")
    (counted / "pyproject.toml").write_text(COUNTED)
    (counted / "needs.txt").write_text("idna>=3\n")
    (counted / "counted.py").write_text("")
    commit_all(counted, "first")
    git(counted, "tag", "v0.3")
    (tmp_path / "manifests" / "mine.toml").write_text(
        'python = ">=3.11,<3.13"\nplatforms = ["linux-64"]\n[pypi-dependencies]\n'
        f'old = {{ git = "{old.as_uri()}" }}\ncounted = {{ git = "{counted.as_uri()}" }}\n'
    )

    def tenv(*words: str) -> str:
        return check([sys.executable, "-m", "tenv", *words], tmp_path, own_environment(tmp_path))

    tenv("lock", "mine")
    text = (tmp_path / "locks" / "mine.lock").read_text()
    assert "name: old\n      version: '1.2'\n" in text
    assert "name: counted\n      version: '0.3'\n" in text
    assert {"six", "idna"} <= {line.split()[-1] for line in text.splitlines() if line.startswith("    - name: ")}
    tenv("create", "mine", "--locked")
    tenv("run", "mine", "--", "python", "-c", "import old, counted, six, idna")

    (old / "more.py").write_text("")
    commit_all(old, "second")
    manifest = tmp_path / "manifests" / "mine.toml"
    manifest.write_text(f'{manifest.read_text()}iniconfig = "*"\n')
    tenv("lock", "mine")
    assert f"commit: {first}" in (tmp_path / "locks" / "mine.lock").read_text()

    (counted / "counted.py").write_text("two = 2\n")
    commit_all(counted, "second")
    tenv("lock", "mine", "--check")
    tenv("update", "mine")
    assert "version: 0.4.dev1+g" in (tmp_path / "locks" / "mine.lock").read_text()
    tenv("create", "mine", "--locked")
    assert "nothing to do" in tenv("create", "mine", "--locked")
    tenv("run", "mine", "--", "python", "-c", "import counted; assert counted.two == 2")
    tenv("verify", "mine")
