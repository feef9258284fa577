"""The command that installs a package beside the lock runs in the environment that it was printed for."""

import shlex
import sys
from pathlib import Path

import pytest

from tenv.core import process
from tenv.debugging.install_line import install_line
from tests.support.fakes import make_wheel
from tests.support.projects import Project, call

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the lines are for a POSIX shell")


def _hint(words: str) -> list[str]:
    """Return the words of the command of a hint that installs."""
    said = call(*shlex.split(words)).err.partition("hint: ")[2]
    return shlex.split(said.partition(", `")[2].partition("`")[0])


@pytest.mark.long
def test_the_hint_for_pip_runs_where_the_environment_has_none(created: Project) -> None:
    assert not (created.site() / "pip").exists()
    line = _hint("pip install gamma")
    assert line[:5] == ["tenv", "run", "tiny", "--", "sh"]
    assert line[-1] == "python -m ensurepip && python -m pip install gamma"
    environ = {"PIP_INDEX_URL": created.index.url, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    ended = created.ran(*line[1:], environment=environ)
    assert ended.status == 0, ended
    assert (created.site() / "gamma.py").is_file()
    assert _hint("pip install gamma") == shlex.split("tenv run tiny -- python -m pip"), "pip is there now"


def test_without_ensurepip_uv_installs(created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with Debian's Python, which leaves ensurepip to another package."""
    python = created.prefix / "bin" / "python"
    bare = tmp_path / "bare" / "bin" / "python"
    bare.parent.mkdir(parents=True)
    bare.write_text(f'#!/bin/sh\nexec {python.resolve()} "$@"\n')
    bare.chmod(0o755)
    line = install_line("tiny", "gamma", created.site())
    assert "ensurepip" in line
    there = python.readlink()
    python.unlink()
    python.symlink_to(bare)
    monkeypatch.setattr(process, "find", lambda *_: None)
    words = shlex.split(install_line("tiny", "gamma", created.site()))
    assert words == [sys.executable, "-m", "uv", "pip", "install", "--python", str(python), "gamma"]
    python.unlink()
    python.symlink_to(there)
    make_wheel(created.index.folder, "gamma", "2.0")
    done = process.run([*words, "--default-index", created.index.url])
    assert isinstance(done, process.Completed)
    assert done.status == 0, done
    assert (created.site() / "gamma.py").is_file()
