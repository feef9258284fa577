"""The distribution is `torch-tenv`; a hint about an extra repeats where this one came from, and for which Python."""

import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from tenv.core import own_distribution as own

ROOT = Path(__file__).parents[2]
METADATA = """\
Metadata-Version: 2.4
Name: torch-tenv
Version: 0.1.0
Requires-Dist: click>=8
Provides-Extra: 7z
Requires-Dist: py7zr<2,>=1; extra == '7z'
"""
PIP = [sys.executable, "-m", "pip", "install"]


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation of its own, with pip."""
    prefix = tmp_path / "torch-tenv"
    prefix.mkdir()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    return prefix


def installed(prefix: Path, direct: Any, monkeypatch: pytest.MonkeyPatch, command: str = "tenv.__main__:run") -> None:
    info = prefix / "torch_tenv-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(f"[console_scripts]\ntenv = {command}\n")
    if direct is not None:
        (info / "direct_url.json").write_text(direct if isinstance(direct, str) else json.dumps(direct))

    def found(**query: str) -> list[Distribution]:
        return [PathDistribution(info)] if query["name"] == "torch-tenv" else []

    monkeypatch.setattr(importlib.metadata, "distributions", found)


def words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    import shlex

    hint = own.extra_hint("7z", "py7zr")
    assert re.fullmatch(r"`.*` installs it", hint), hint
    return shlex.split(hint.removeprefix("`").partition("` installs")[0])


GIT = {"vcs": "git", "requested_revision": "v1", "commit_id": "abc"}


@pytest.mark.parametrize(
    ("direct", "source"),
    [
        (None, ["torch-tenv[7z]"]),
        ("{", ["torch-tenv[7z]"]),
        ("[1]", ["torch-tenv[7z]"]),
        ({"url": "https://h.org/r", "vcs_info": GIT}, ["torch-tenv[7z] @ git+https://h.org/r@v1"]),
        (
            {"url": "https://me:secret@h.org/r", "vcs_info": {"vcs": "git", "commit_id": "abc"}, "subdirectory": "x"},
            ["torch-tenv[7z] @ git+https://h.org/r@abc#subdirectory=x"],
        ),
        ({"url": "ssh://git@h.org/r", "vcs_info": GIT}, ["torch-tenv[7z] @ git+ssh://git@h.org/r@v1"]),
        ({"url": "https://t@h.org/a.whl", "archive_info": {}}, ["torch-tenv[7z] @ https://h.org/a.whl"]),
        ({"url": "file:///gone/a.whl", "archive_info": {}}, ["py7zr<2,>=1"]),
        ({"url": "file:///gone", "dir_info": {"editable": True}}, ["py7zr<2,>=1"]),
    ],
)
def test_the_source_is_repeated(direct: Any, source: list[str], prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(prefix, direct, monkeypatch)
    assert words(monkeypatch) == [*PIP, *source]


@pytest.mark.parametrize("editable", [False, True])
def test_a_checkout_is_installed_as_it_was(editable: bool, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = prefix / "a check out"
    checkout.mkdir()
    installed(prefix, {"url": checkout.as_uri(), "dir_info": {"editable": editable}}, monkeypatch)
    assert words(monkeypatch) == [*PIP, *(["-e"] if editable else []), f"{checkout}[7z]"]


def test_each_installer_gets_its_own_command(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = prefix / "a.whl"
    wheel.touch()
    installed(prefix, {"url": wheel.as_uri(), "archive_info": {}}, monkeypatch)
    (prefix / "uv-receipt.toml").touch()
    assert words(monkeypatch) == ["uv", "tool", "install", "--with", "py7zr<2,>=1", f"torch-tenv @ {wheel.as_uri()}"]
    (prefix / "pipx_metadata.json").touch()
    assert words(monkeypatch) == ["pipx", "inject", "torch-tenv", "py7zr<2,>=1"]


def test_without_pip_uv_does_it_for_the_running_python(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    installed(prefix, None, monkeypatch)
    python = sys.executable
    assert words(monkeypatch) == [python, "-P", "-m", "uv", "pip", "install", "--python", python, "torch-tenv[7z]"]


def test_somebody_elses_distribution_is_not_taken_for_this_one(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(prefix, None, monkeypatch, command="other:main")
    assert own.own_distribution() is None
    assert words(monkeypatch) == [*PIP, "py7zr"]


INSTALLED = re.compile(r"""(?:install|inject|add|--with|uvx)\s[^\n`]*?(?<![\w./-])tenv(?:\[[\w,-]+\])?(?=[\s'"`)]|$)""")


def test_the_name_on_an_index_is_never_tenv() -> None:
    """Neither a text of tenv nor a page says to install `tenv` by its name alone."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    files = [name for name in listed if name.startswith(("src/", "docs/", ".ci/", "scripts/")) or "/" not in name]
    wrong = [
        (name, match[0])
        for name in files
        if name.endswith((".py", ".md", ".toml", "run", ".sh"))
        for match in INSTALLED.finditer((ROOT / name).read_text(errors="replace"))
        if re.search(r"\b(pip|pipx|uvx?|tool)\b", (ROOT / name).read_text(errors="replace")[: match.start()][-20:])
    ]
    assert wrong == []
    assert INSTALLED.search("pip install 'tenv[7z]'")
    assert INSTALLED.search("pipx install tenv")
    assert 'name = "torch-tenv"' in (ROOT / "pyproject.toml").read_text()
