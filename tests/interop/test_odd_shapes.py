"""Lines, keys and places that a tool accepts and few files have: each comes in, or its loss is named."""

from pathlib import Path

import pytest

from tenv.interop.formats import find_format
from tenv.interop.interface import Subject
from tenv.locks.lock import from_manifest
from tenv.targets.manifest_file import read_manifest
from tests.interop.test_other_projects import PROJECT, imported
from tests.support.each import each
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("empty_project")

CONDA = "channels: [conda-forge]\ndependencies:\n- python=3.11\n"


@each(
    "line, asked, said",
    [
        ("tool==v0.6.0", {"tool": "0.6.0"}, ""),
        (
            "torch==2.9.0 --index-url https://download.pytorch.org/whl/cu128",
            {"torch": "2.9.0"},
            "pip's option `--index-url https://download.pytorch.org/whl/cu128` of `torch==2.9.0`",
        ),
        ("tool -i https://x.example --pre", {"tool": "*"}, "pip's option `--pre` of `tool`"),
        ("parts/one", {"one": {"path": "../parts/one"}}, ""),
        ("tool\nparts/two", {"tool": "*"}, "`parts/two`, a folder that is not there"),
        ("one @ parts/one", {"one": {"path": "../parts/one"}}, ""),
    ],
)
def test_a_line_of_pip_comes_in(line: str, asked: dict[str, object], said: str) -> None:
    Path("parts/one").mkdir(parents=True, exist_ok=True)
    Path("parts/one/setup.py").write_text("setup(name='one')\n")
    for name, text in (
        ("requirements.txt", line),
        ("environment.yml", CONDA + "- pip:\n" + "".join(f"  - {row}\n" for row in line.splitlines())),
    ):
        found, words = imported(name, text)
        assert found["pypi-dependencies"] == asked, name
        assert said in words, name


@each(
    "line, asked, said",
    [
        ("nbconvert[execute]!=6.0.0,!=6.0.1", "!=6.0.0,!=6.0.1", "its extras `execute`, which no conda"),
        ("nbconvert[build=py_0]", {"version": "*", "build": "py_0"}, ""),
        ("conda-forge/linux-64::nbconvert>=6", {"version": ">=6", "channel": "conda-forge"}, ""),
        ("pkgs/main/win-64::nbconvert", None, "for win-64 alone (`--platform` adds it): pkgs/main/win-64::nbconvert"),
        ("conda-forge/noarch::nbconvert", {"version": "*", "channel": "conda-forge"}, "its subdir"),
    ],
)
def test_a_line_of_conda_comes_in(line: str, asked: object, said: str) -> None:
    found, words = imported("environment.yml", f"{CONDA}- {line}\n")
    assert found["dependencies"].get("nbconvert") == asked
    assert said in words


def test_a_request_of_one_platform_is_for_that_platform() -> None:
    found, _ = imported("environment.yml", f"platforms: [linux-64, win-64]\n{CONDA}- conda-forge/win-64::vs\n")
    assert found["platform"] == {"win-64": {"dependencies": {"vs": {"version": "*", "channel": "conda-forge"}}}}


def test_a_package_that_no_manifest_requests_is_left_out_of_a_file() -> None:
    found, said = imported("environment.yml", f"{CONDA}- cudatoolkit=11.6\n- cudatoolkit-dev=11.6\n")
    assert found["dependencies"] == {"python": "3.11.*", "cudatoolkit": "11.6.*"}
    assert "`cudatoolkit-dev`, which holds no toolkit" in said


def test_the_python_that_uv_resolved_for_is_the_oldest_one() -> None:
    head = "#    uv pip compile --universal --python-version {0} requirements.in\n"
    both = 'a==1 ; python_full_version < "3.13"\na==2 ; python_full_version >= "3.13"\n'
    for minor, lines, wanted, version in (
        ("3.11", both, ">=3.11,<3.13", "1"),
        ("3.13", both, ">=3.13,<3.15", "2"),
        ("3.12", "a==1\n", ">=3.12,<3.15", "1"),
    ):
        found, said = imported("requirements.txt", head.format(minor) + lines)
        assert (found["python"], found["pypi-dependencies"]) == (wanted, {"a": version}), minor
        assert f"`python` is set to {wanted}" in said


def test_extras_of_poetry_name_packages_that_it_has() -> None:
    _, said = imported("pyproject.toml", '[tool.poetry.dependencies]\nsix = "*"\n[tool.poetry.extras]\nmore = ["it"]\n')
    assert "of extras, packages that `dependencies` does not have: it" in said


def test_keys_of_a_workspace_of_pixi_that_decide_about_packages_are_named() -> None:
    head = '[workspace]\nname = "w"\nauthors = []\nchannels = []\nplatforms = ["linux-64"]\n'
    _, said = imported("pixi.toml", head + 'conda-pypi-map = "map.json"\n[dependencies]\nsix = "*"\n')
    assert "`conda-pypi-map`" in said
    assert "authors" not in said


def test_a_member_has_the_sources_the_indexes_and_the_bounds_of_its_workspace() -> None:
    Path("packages/one").mkdir(parents=True)
    Path("packages/two").mkdir()
    Path("packages/two/pyproject.toml").write_text('[project]\nname = "two"\nversion = "1"\n')
    root = (
        '[project]\nname = "root"\nversion = "1"\n[tool.uv]\nconstraint-dependencies = ["numpy<2"]\n'
        '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
        '[tool.uv.sources]\ntorch = { index = "gpu" }\ntwo = { workspace = true }\nbeside = { path = "beside" }\n'
        '[[tool.uv.index]]\nname = "gpu"\nurl = "https://download.pytorch.org/whl/cu128"\nexplicit = true\n'
    )
    Path("beside").mkdir()
    Path("pyproject.toml").write_text(root)
    own = 'dependencies = ["torch", "two", "beside", "numpy", "mine"]\n[tool.uv.sources]\nmine = { path = "../two" }\n'
    found, said = imported("packages/one/pyproject.toml", PROJECT + own)
    assert found["pypi-dependencies"] == {
        "beside": {"path": "../beside"},
        "mine": {"path": "../packages/two"},
        "numpy": "<2",
        "torch": {"version": "*", "index": "gpu"},
        "two": {"path": "../packages/two", "editable": True},
    }
    assert [row["url"] for row in found["index"]] == ["https://download.pytorch.org/whl/cu128"]
    assert "`[tool.uv]` of the workspace counts: " in said
    for other in ("members = []", 'members = ["packages/*"]\nexclude = ["packages/one"]'):
        Path("pyproject.toml").write_text(root.replace('members = ["packages/*"]', other))
        found, said = imported("packages/one/pyproject.toml", PROJECT + own)
        assert found["pypi-dependencies"]["torch"] == found["pypi-dependencies"]["two"] == "*"
        assert "of the workspace counts" not in said


def test_a_file_without_a_request_that_comes_in_names_what_is_left_out() -> None:
    sources = "[tool.uv.sources]\nsix = { workspace = true }\n"
    Path("pyproject.toml").write_text(f'{PROJECT}dependencies = ["six"]\n{sources}')
    ended = call("import", "pyproject.toml", "--name", "made")
    assert ended.status == 3
    assert "has no requests that tenv can take: `six`, a member of the workspace, which is not there" in ended.err
    Path("meta.yaml").write_text("package:\n  name: it\n")
    assert "recipe of a conda package" in call("import", "meta.yaml").err


def test_an_editable_folder_keeps_its_extras_in_an_environment_yml() -> None:
    Path("here").mkdir()
    Path("here/setup.py").write_text("setup(name='here')\n")
    asked = 'here = { path = "../here", editable = true, extras = ["a", "b"] }'
    file = Path("manifests/it.toml")
    file.write_text(f'platforms = ["linux-64"]\npython = "3.11.*"\n[pypi-dependencies]\n{asked}\n')
    manifest = read_manifest("it", file, Path)
    subject = Subject(manifest, from_manifest(manifest, {}), ("linux-64",), requests=True)
    export = find_format("environment.yml").export
    assert export is not None
    text = export(subject).files["environment.yml"].decode()
    found, _ = imported("environment.yml", text)
    assert found["pypi-dependencies"] == {"here": {"path": "../here", "editable": True, "extras": ["a", "b"]}}
