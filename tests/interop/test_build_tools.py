"""Groups, indexes and settings of PDM, Hatch, Rye, setuptools and uv, and packages that these build beside torch."""

from pathlib import Path

import pytest

from tests.interop.test_other_projects import imported
from tests.support.fakes import Fault, Index
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("empty_project")

PROJECT = '[project]\nname = "ours"\nversion = "1"\nrequires-python = ">=3.12,<3.13"\ndependencies = ["torch"]\n'


def test_groups_and_indexes_of_build_tools_come_in() -> None:
    for name in ("helper", "plugin"):
        Path(name).mkdir()
        Path(name, "pyproject.toml").write_text(f'[project]\nname = "{name}"\nversion = "1"\n')
    Path("docs.txt").write_text("sphinx\n")
    found, said = imported(
        "pyproject.toml",
        """\
[project]
name = "ours"
requires-python = ">=3.12,<3.13"
dynamic = ["optional-dependencies"]
dependencies = ["torch", "triton", "numpy>=1", "helper @ file:///${PROJECT_ROOT}/helper"]
[tool.setuptools.dynamic.optional-dependencies]
docs = { file = ["docs.txt"] }
[tool.pdm.dev-dependencies]
test = ["pytest>=8", "-e file:///${PROJECT_ROOT}/plugin#egg=plugin"]
[[tool.pdm.source]]
name = "of-torch"
url = "https://download.pytorch.org/whl/cu126"
include_packages = ["torch", "torchvision"]
[[tool.pdm.source]]
name = "wide"
url = "https://index.example/simple"
include_packages = ["nvidia-*"]
[tool.pdm.resolution]
excludes = ["triton", "torch==2.0.1"]
[tool.pdm.resolution.overrides]
numpy = "1.26.4"
six = "https://index.example/six-1.0.tar.gz"
[tool.hatch.envs.default]
dependencies = ["coverage[toml]"]
[tool.hatch.envs.lint]
detached = true
dependencies = ["ruff==0.6.*"]
[tool.hatch.envs.check]
extra-dependencies = ["pytest-xdist", "helper @ {root:uri}/helper"]
[tool.hatch.envs.check.env-vars]
LEVEL = "1"
[tool.rye]
dev-dependencies = ["black>=24"]
[[tool.rye.sources]]
name = "default"
url = "https://mirror.example/simple"
""",
    )
    assert found["pypi-dependencies"] == {
        "helper": {"path": "../helper"},
        "numpy": "1.26.4",
        "torch": {"version": "*", "index": "of-torch"},
    }
    assert {name: table["pypi-dependencies"] for name, table in found["feature"].items()} == {
        "docs": {"sphinx": "*"},
        "test": {"pytest": ">=8", "plugin": {"path": "../plugin", "editable": True}},
        "default": {"coverage": {"version": "*", "extras": ["toml"]}},
        "lint": {"ruff": "0.6.*"},
        "check": {
            "coverage": {"version": "*", "extras": ["toml"]},
            "pytest-xdist": "*",
        },
        "dev": {"black": ">=24"},
    }
    assert [index["url"] for index in found["index"]] == [
        "https://download.pytorch.org/whl/cu126",
        "https://index.example/simple",
        "https://mirror.example/simple",
    ]
    assert "of [tool.hatch.envs.check]: env-vars" in said
    assert "`include_packages` of the source `wide`" in said
    assert "PDM's override of `six`" in said
    assert "uv's `exclude-dependencies` takes these out: triton" in said
    assert "`torch==2.0.1` of PDM's `excludes`, which is no name" in said


def test_an_extra_and_a_group_of_one_name_are_one_feature() -> None:
    more = '[project.optional-dependencies]\ndev = ["ninja"]\n[dependency-groups]\ndev = ["pytest"]\n'
    found, _ = imported("pyproject.toml", PROJECT + more)
    assert found["feature"]["dev"]["pypi-dependencies"] == {"ninja": "*", "pytest": "*"}


def test_the_own_extras_of_a_project_are_its_lines_under_each_form_of_its_name() -> None:
    more = """\
[project.optional-dependencies]
test = ["pytest"]
full = ["Our_Tool[test]", "scipy"]
[dependency-groups]
ci = ["our.tool[full]", "our-tool", "coverage"]
"""
    found, _ = imported("pyproject.toml", PROJECT.replace('"ours"', '"our-tool"') + more)
    assert found["feature"]["full"]["pypi-dependencies"].keys() == {"pytest", "scipy"}
    assert found["feature"]["ci"]["pypi-dependencies"].keys() == {"coverage", "pytest", "scipy"}


def test_lists_of_conda_specs_are_requests() -> None:
    rows = "python=3.9.7=h12_1\npytorch=1.10.0=py3.9_cuda11.3\ntimm=0.4.12=pypi_0\n"
    wanted = {
        "python": {"version": "3.9.7", "build": "h12_1"},
        "pytorch": {"version": "1.10.0", "build": "py3.9_cuda11.3"},
    }
    found, said = imported(
        "requirements.txt", f"# $ conda create --name <env> --file <this file>\n# platform: win-64\n{rows}"
    )
    assert found["dependencies"] == wanted
    assert found["pypi-dependencies"] == {"timm": "0.4.12"}
    assert found["platforms"] == ["win-64"]
    assert "the file names no channels" in said
    found, said = imported("spec.txt", f"pytorch/linux-64::pytorch=1.10.0=py3.9\n{rows}")
    assert found["channels"] == ["pytorch"]
    assert "names no channels" not in said
    found, _ = imported("conda-requirements.txt", "mamba\nconda-build >=3.20\n")
    assert found["dependencies"] == {"conda-build": ">=3.20", "mamba": "*"}


def test_other_installers_and_options_of_single_lines_are_reported() -> None:
    found, said = imported(
        "environment.yml",
        "channels: [conda-forge]\ndependencies:\n- python=3.12\n- uv: [rich]\n- run_constrained: [six]\n",
    )
    assert found["pypi-dependencies"] == {"rich": "*"}
    assert "`run_constrained` of the dependencies is not imported" in said
    Path("pyproject.toml").write_text(PROJECT)
    found, said = imported(
        "requirements.lock", 'six==1.0 --config-settings="--x=a b" --global-option="c"\n-e file:.\nidna==3.4\n'
    )
    assert found["pypi-dependencies"] == {"six": "1.0", "idna": "3.4", "ours": {"path": "..", "editable": True}}
    assert "pip's option `--config-settings=" in said
    assert "pip's option `--global-option=" in said


def test_every_setting_of_uv_that_decides_about_packages_is_read_or_named() -> None:
    more = """\
[project.optional-dependencies]
apart = ["vllm"]
[tool.uv]
no-build-package = ["six"]
no-index = true
cache-dir = "./cache"
link-mode = "copy"
python-preference = "only-managed"
required-version = ">=0.5"
new-setting = ["six"]
build-constraint-dependencies = ["setuptools<80"]
conflicts = [[{ package = "ours" }, { extra = "apart" }], [{ package = "other" }, { extra = "apart" }]]
"""
    found, said = imported("pyproject.toml", PROJECT + more)
    assert "`no-index`, `new-setting` of six, `build-constraint-dependencies` of setuptools<80" in said
    assert not any(word in said for word in ("cache-dir", "link-mode", "python-preference", "required-version"))
    assert "apart: uv locks them apart from the project itself" in said
    assert "feature" not in found
    assert imported("pyproject.toml", PROJECT + more, "--environment", "apart")[0]["pypi-dependencies"].keys() == {
        "torch",
        "vllm",
    }


def test_the_marker_of_an_override_decides_about_a_platform() -> None:
    asked = PROJECT.replace('["torch"]', '["six", "torch>=2.6", "numpy", "triton"]')
    overrides = """\
[tool.uv]
override-dependencies = [
    "torch ; sys_platform == 'never'",
    "numpy<2 ; sys_platform == 'linux'",
    "numpy>=2 ; sys_platform == 'win32'",
]
constraint-dependencies = ["six<2 ; sys_platform == 'win32'"]
exclude-dependencies = ["triton"]
"""
    found, said = imported("pyproject.toml", asked + overrides, "--platform", "linux-64", "--platform", "win-64")
    assert "pypi-dependencies" not in found
    assert {name: table["pypi-dependencies"] for name, table in found["platform"].items()} == {
        "linux-64": {"numpy": "<2", "six": "*"},
        "win-64": {"numpy": ">=2", "six": "<2"},
    }
    assert "uv's `override-dependencies` takes these out: torch" in said
    assert "uv's `exclude-dependencies` takes these out: triton" in said


def test_a_package_that_is_built_beside_torch_is_compiled_against_it() -> None:
    asked = PROJECT.replace('["torch"]', '["torch", "flash-attn", "ours-ops", "scatter", "plain"]')
    more = """\
[tool.uv]
no-build-isolation-package = ["flash-attn", "ours-ops"]
[tool.uv.sources]
ours-ops = { git = "https://example.org/ops.git", tag = "v1" }
[tool.uv.extra-build-dependencies]
scatter = [{ requirement = "torch", match-runtime = true }]
plain = ["cython"]
"""
    found, said = imported("pyproject.toml", asked + more)
    assert found["pypi-dependencies"] == {
        "flash-attn": {"version": "*", "build": True, "isolation": False},
        "ours-ops": {"git": "https://example.org/ops.git", "tag": "v1", "isolation": False},
        "plain": "*",
        "scatter": {"version": "*", "build": True, "isolation": False},
        "torch": "*",
    }
    assert "compiled against the target's torch, which runs their code: flash-attn, ours-ops, scatter" in said
    assert "the requirements with which uv builds these: plain" in said
    found, said = imported(
        "pixi.toml",
        """\
[workspace]
channels = ["conda-forge"]
platforms = ["linux-64"]
[dependencies]
python = "3.12.*"
[pypi-dependencies]
torch = "*"
flash-attn = "*"
[pypi-options]
no-build-isolation = ["flash-attn"]
[tasks]
build = "make"
[target.linux.tasks]
serve = "python -m http.server"
""",
    )
    assert found["pypi-dependencies"]["flash-attn"] == {"version": "*", "build": True, "isolation": False}
    assert "tasks, which a target does not have: build, serve" in said


def test_a_package_of_a_folder_that_is_not_there_is_not_asked_of_an_index() -> None:
    asked = PROJECT.replace('["torch"]', '["library"]') + '[tool.uv.sources]\nlibrary = { path = "parts/library" }\n'
    found, said = imported("pyproject.toml", asked)
    assert found["pypi-dependencies"] == {"library": {"path": "../parts/library"}}
    assert "the folder `parts/library` of `library`, which is not there" in said


def test_an_environment_with_the_torch_of_conda_has_no_wheel_of_it_and_names_its_channels() -> None:
    text = "dependencies:\n- python=3.12\n- pytorch>=2.3\n- pip:\n  - torch>=2.4\n  - einops\n"
    found, said = imported("environment.yml", text)
    assert found["pypi-dependencies"] == {"einops": "*"}
    assert "wheels of packages that are requested from conda, too: torch" in said
    assert "the file names no channels: conda-forge is used" in said


def test_a_source_archive_of_an_explicit_list_is_a_row() -> None:
    home = "https://conda.anaconda.org/conda-forge"
    Path("all.lock").write_text(
        f"# platform: linux-64\n@EXPLICIT\n{home}/linux-64/python-3.12.1-0.conda#{'a' * 32}\n"
        f"{home}/noarch/numpy-2.0.0-0.conda#{'b' * 32}\n"
        f"# pip ours @ https://files.example.org/ours-1.0.tar.gz#sha256={'c' * 64}\n"
        "# pip bare @ https://files.example.org/bare-1.0.tar.gz\n"
    )
    ended = call("import", "all.lock", "--name", "made", "--json", "--offline")
    assert ended.status == 0, ended.err
    text = Path("manifests/made.toml").read_text()
    assert '{ version = ">=1.0,<2", build = true }' in text
    assert any(
        "the line `# pip bare @" in line and "it is no wheel or source archive" in line for line in ended.data["lost"]
    )
    assert any("ours 1.0 in the lock: the cache has no ours-1.0.tar.gz" in line for line in ended.data["lost"])


def test_an_index_that_gives_no_answer_is_asked_for_one_source_archive_and_the_import_says_what_it_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    Path("all.lock").write_text(
        "# platform: linux-64\n@EXPLICIT\n"
        f"https://conda.anaconda.org/conda-forge/linux-64/python-3.12.1-0.conda#{'a' * 32}\n"
        + "".join(f"# pip p{n} @ https://f.example.org/p{n}-1.0.tar.gz#sha256={n * 64}\n" for n in "bcde")
    )
    with Index(tmp_path) as index:
        index.fail(Fault.ERROR, "/p.")
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        ended = call("import", "all.lock", "--name", "made")
    assert ended.status == 0, ended.err
    assert ended.err.count("in the lock: an index in use gives no answer") == 4
    assert ended.err.count("querying the indexes for p") == 1
    assert "querying the indexes for pb-1.0.tar.gz" in ended.err
