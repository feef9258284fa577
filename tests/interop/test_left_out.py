"""What becomes of packages that a lock of tenv can't have, and of the packages around them."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tenv.locks.lock import CondaPackage, Wheel
from tenv.locks.lock_features import divide
from tenv.targets.manifest_file import read_manifest
from tests.interop.records import HOME, SHA
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("empty_project")

PYTHON = f"{HOME}/linux-64/python-3.12.11-h9e4cc4f_0_cpython.conda"
FILES = "https://files.example.org"


def imported(requests: str, *rows: str, lock: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """Import a pixi.lock of Python and some rows; return the manifest and the report."""
    listed = "".join(f"      - {row.splitlines()[0]}\n" for row in rows)
    packages = "".join(f"- {row}\n" for row in rows)
    Path("pixi.lock").write_text(
        f"version: 6\nenvironments:\n  default:\n    channels:\n    - url: {HOME}/\n"
        "    packages:\n      linux-64:\n"
        f"      - conda: {PYTHON}\n{listed}packages:\n- conda: {PYTHON}\n"
        f"  sha256: {SHA['beta']}\n  depends: []\n{packages}"
    )
    Path("pixi.toml").write_text(
        '[workspace]\nname = "w"\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n'
        f'[dependencies]\npython = "3.12.*"\n[pypi-dependencies]\n{requests}'
    )
    ended = call("import", "pixi.lock", "--name", "made", "--json", "--offline")
    assert ended.status == 0, ended.err
    assert bool(ended.data["lock"]) is lock
    assert not lock or call("lock", "made", "--check").status == 0
    return tomllib.loads(Path("manifests/made.toml").read_text()), ended.data


def wheel(name: str, *requires: str) -> str:
    needs = "".join(f"\n  - {line}" for line in requires) if requires else " []"
    head = f"pypi: {FILES}/{name}-1.0-py3-none-any.whl\n  name: {name}\n  version: '1.0'\n"
    return f"{head}  sha256: {SHA['alpha']}\n  requires_dist:{needs}"


def test_what_only_the_project_itself_requires_becomes_a_request() -> None:
    own = (
        f"pypi: ./gone\n  name: own\n  version: '0.1'\n  sha256: {'0' * 64}\n  requires_dist:\n  - it\n  editable: true"
    )
    found, report = imported('own = { path = "gone", editable = true }\n', own, wheel("it"))
    assert found["pypi-dependencies"] == {"it": ">=1.0,<2"}
    assert any("own" in line for line in report["lost"])
    assert any("requested" in line and "it" in line for line in report["notes"])


def test_the_manifest_alone_is_written_where_a_wheel_requires_a_source_archive() -> None:
    archive = f"pypi: {FILES}/old-1.0.tar.gz\n  name: old\n  version: '1.0'\n  sha256: {'0' * 64}\n  requires_dist: []"
    found, report = imported('it = "*"\n', wheel("it", "old"), archive, lock=False)
    assert found["pypi-dependencies"] == {"it": "*"}
    assert any("its lock" in line and "old" in line and "it 1.0 requires old" in line for line in report["lost"])


def test_a_git_repository_is_a_row_at_its_locked_commit() -> None:
    commit = "2b90b9f5ceec907a1c18123530e92e794ad901a4"
    row = f"pypi: git+https://example.org/own.git#{commit}\n  name: own\n  version: '1.0'\n  requires_dist:\n  - it"
    found, report = imported('own = { git = "https://example.org/own.git" }\n', row, wheel("it"))
    assert found["pypi-dependencies"] == {"own": {"git": "https://example.org/own.git", "rev": commit}}
    assert report["lost"] == []


def test_a_request_for_a_wheel_that_conda_supplies_is_a_request_to_conda() -> None:
    url = f"{HOME}/noarch/py-it-1.0-pyh_0.conda"
    row = f"conda: {url}\n  sha256: {SHA['alpha']}\n  depends:\n  - python\n  purls:\n  - pkg:pypi/it"
    found, report = imported('it = "*"\n', row)
    assert "pypi-dependencies" not in found
    assert found["dependencies"]["py-it"] == ">=1.0,<2"
    assert any("it is locked from conda, as py-it" in line for line in report["notes"])


def test_requirements_have_the_lines_and_bounds_of_other_files() -> None:
    Path("more.txt").write_text("six>=1\n-c bounds.txt\n")
    Path("bounds.txt").write_text("six<2\nnobody<1\n")
    Path("requirements.txt").write_text(
        "-r more.txt\n--extra-index-url https://download.pytorch.org/whl/cu121\n"
        "torch==2.4.0+cu121 \\\n  --hash=sha256:00\n"
    )
    ended = call("import", "requirements.txt", "--name", "made", "--json")
    assert ended.status == 0, ended.err
    found = tomllib.loads(Path("manifests/made.toml").read_text())
    assert found["pypi-dependencies"] == {
        "six": ">=1,<2",
        "torch": {"version": "2.4.0+cu121", "index": "pytorch-cu121"},
    }
    assert found["requirements"] == {"cuda": "12.1"}
    assert (found["constraints"], ended.data["lost"]) == (["nobody<1"], [])


def test_groups_that_exclude_each_other_are_named_and_one_can_be_chosen() -> None:
    Path("pyproject.toml").write_text(
        '[project]\nname = "w"\nrequires-python = ">=3.12"\ndependencies = ["six"]\n'
        '[dependency-groups]\ncpu = ["torch==2.9.0"]\ncuda = ["torch==2.9.0"]\ntest = ["pytest"]\n'
        '[tool.uv]\nconflicts = [[{ group = "cpu" }, { group = "cuda" }]]\n'
        '[tool.uv.sources]\ntorch = [{ index = "a", group = "cpu" }, { index = "b", group = "cuda" }]\n'
        '[[tool.uv.index]]\nname = "a"\nurl = "https://download.pytorch.org/whl/cpu"\nexplicit = true\n'
        '[[tool.uv.index]]\nname = "b"\nurl = "https://download.pytorch.org/whl/cu128"\nexplicit = true\n'
    )
    ended = call("import", "pyproject.toml", "--name", "made", "--json")
    assert any("cpu, cuda: they exclude each other" in line for line in ended.data["lost"])
    assert list(tomllib.loads(Path("manifests/made.toml").read_text())["feature"]) == ["test"]
    assert call("import", "pyproject.toml", "--environment", "cuda", "--name", "cuda").status == 0
    found = tomllib.loads(Path("manifests/cuda.toml").read_text())
    assert found["pypi-dependencies"]["torch"] == {"version": "2.9.0", "index": "b"}
    assert found["requirements"] == {"cuda": "12.8"}


def test_a_conda_package_that_wheels_of_a_feature_require_comes_with_that_feature() -> None:
    file = Path("manifests/two.toml")
    file.write_text(
        'platforms = ["linux-64"]\nchannels = ["conda-forge"]\n[dependencies]\npython = "3.12.*"\n'
        '[feature.debug.dependencies]\npygments = "*"\n[feature.test.pypi-dependencies]\npytest = "*"\n'
    )
    manifest = read_manifest("two", file, Path, "two.toml", file.parent.absolute())
    python, pygments = (
        CondaPackage(name, "3.12.1", "0", "noarch", HOME, f"{HOME}/noarch/{name}.conda", SHA["beta"], depends=depends)
        for name, depends in (("python", ()), ("pygments", ("python",)))
    )
    pytest_ = Wheel("pytest", "9.0", "pytest-9.0-py3-none-any.whl", SHA["alpha"], None, ("3.12",), ("pygments>=2",))
    files = divide(manifest, {"conda": {"linux-64": (python, pygments)}, "wheels": {"linux-64": (pytest_,)}})
    assert {row.name: row.features for row in files["conda"]["linux-64"]} == {
        "python": (),
        "pygments": ("debug", "test"),
    }
