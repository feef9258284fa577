"""What is exported, read by the tools that it is for: uv, pip, conda-lock, and rattler for pixi.

pixi itself, conda and micromamba are on no package index, so rattler's parser stands for them.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.interop.test_closure import check_closure
from tests.interop.test_export_table import write_targets
from tests.support.fakes import Index
from tests.support.projects import call

NAMES = ("alpha", "direct", "nearby", "second")


def ran(*words: str) -> str:
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
    return ended.stdout + ended.stderr


@pytest.mark.long
@pytest.mark.usefixtures("empty_project")
def test_each_tool_takes_what_is_written_for_it() -> None:
    with Index(Path("first")) as first, Index(Path("other")) as other, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", first.url)
        values = write_targets(first, other)
        for form in ("pixi", "conda-lock", "explicit", "environment.yml", "requirements.txt", "pylock.toml"):
            ended = call("export", form, "whole", "--output", "out")
            assert ended.status == 0, (form, ended.err)
        uv, python = str(Path(sys.executable).with_name("uv")), ("--python", sys.executable, "--target", "there")
        requirements, pylock = "out/requirements.txt", "out/pylock.toml"
        options = ("--no-deps", "--require-hashes", "--no-config")
        said = ran(uv, "pip", "install", "--dry-run", *options, *python, "-r", requirements)
        assert all(f" + {name}" in said for name in NAMES)
        said = ran(uv, "pip", "sync", "--dry-run", "--no-config", *python, pylock)
        assert all(f" + {name}" in said for name in NAMES)
        pip = (sys.executable, "-m", "pip", "--isolated", "install", "--dry-run", "--no-deps", "--ignore-installed")
        said = ran(*pip, "--require-hashes", "--index-url", first.url, "-r", requirements)
        assert all(f"{name}-1.0" in said.replace("_", "-") for name in NAMES)
    ran(sys.executable, "-m", "conda_lock", "render", "-k", "explicit", "-p", "linux-64", "out/conda-lock.yml")
    rendered = Path("conda-linux-64.lock").read_text()
    assert "/bzip2-1.0.8-0.conda#" in rendered
    assert all(f"# pip {name} @ " in rendered for name in NAMES)
    assert set(check_closure(Path("out"))) == {"default", "debug"}
    rows = {row["name"]: row for row in yaml.safe_load(Path("out/pixi.lock").read_text())["packages"] if "pypi" in row}
    assert (rows["alpha"]["index"], rows["second"]["index"]) == (first.url, values["OTHER"])
    assert rows["direct"]["pypi"] == f"direct+{values['ADDRESS']}"
    assert rows["nearby"]["pypi"].endswith(values["NEAR"] + "-py3-none-any.whl")
