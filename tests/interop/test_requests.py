"""What an import takes for asked: from a file that says it, and from a lock that does not."""

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tenv.core.names import channel_word
from tenv.core.versions import CondaRange, Range
from tenv.interop.drafts import with_cuda
from tenv.interop.interface import Draft
from tenv.interop.requests import other_channels, top_level
from tenv.targets.manifest import CondaRequest, WheelRequest
from tests.support.each import each
from tests.support.projects import Ended, call

pytestmark = pytest.mark.usefixtures("empty_project")


def imported(name: str, text: str, *words: str) -> tuple[dict[str, Any], list[str]]:
    """Import a file and return the manifest and the notes about it."""
    Path(name).write_text(text)
    ended = call("import", name, "--name", "made", "--force", "--json", *words)
    assert ended.status == 0, ended.err
    return tomllib.loads(Path("manifests/made.toml").read_text()), ended.data["lost"]


def refused(name: str, text: str, *words: str) -> Ended:
    Path(name).write_text(text)
    ended = call("import", name, *words)
    assert ended.status in (2, 3), ended.err
    return ended


WORKSPACE = """\
[workspace]
name = "vision"
description = "A  net"
channels = ["conda-forge"]
platforms = ["linux-64", "osx-arm64", { name = "gpu", platform = "linux-64", cuda = "13.0", glibc = "2.35" }]

[dependencies]
python = "3.12.*"

[host-dependencies]
numpy = ">2,<3"

[activation]
env = { A = "1", PATH = "$CONDA_PREFIX/opt:$PATH", LDFLAGS = "$LDFLAGS -s", B = "${CONDA_PREFIX}/b", C = "$USER" }

[feature.cuda]
platforms = ["gpu"]
channels = ["nvidia"]
dependencies = { cuda-version = "13.0.*" }
pypi-dependencies = { torch = { version = "==2.11.0", index = "https://example.org/cu130" }, here = { path = "." } }
tasks = { hello = "true" }

[feature.old]
platforms = ["linux-64"]
system-requirements = { cuda = "12", libc = { family = "glibc", version = "2.17" } }

[environments]
default = []
cuda = ["cuda"]
old = { features = ["old"], no-default-feature = true }
"""


def test_a_pixi_toml_alone_makes_a_manifest_without_a_lock() -> None:
    found, lost = imported("pixi.toml", WORKSPACE)
    assert found == {
        "description": "A net",
        "platforms": ["linux-64"],
        "channels": ["conda-forge"],
        "dependencies": {"python": "3.12.*", "numpy": ">2,<3"},
        "activation": {
            "env": {
                "A": "1",
                "PATH": {"prepend": "$TENV_PREFIX/opt"},
                "LDFLAGS": {"append": "-s"},
                "B": "$TENV_PREFIX/b",
            }
        },
    }
    assert lost == [
        "skipped platforms: osx-arm64",
        "the platform `gpu`, which asks for CUDA 13.0, since `linux-64` is imported",
        "`C`, since only a shell can evaluate it: $USER",
    ]
    assert not Path("locks").exists()


def test_channels_of_a_pixi_toml_come_by_their_priority() -> None:
    rows = '["conda-forge", { channel = "pytorch", priority = 1 }, { channel = "old", priority = -1 }, "nvidia"]'
    found, _ = imported("pixi.toml", WORKSPACE.replace('channels = ["conda-forge"]', f"channels = {rows}"))
    assert found["channels"] == ["pytorch", "conda-forge", "nvidia", "old"]


def test_an_environment_has_the_platforms_channels_and_requirements_of_its_features() -> None:
    found, lost = imported("pixi.toml", WORKSPACE, "--environment", "cuda")
    assert found["requirements"] == {"cuda": "13.0", "glibc": "2.35"}
    assert found["channels"] == ["nvidia", "conda-forge"]
    assert found["dependencies"] == {"python": "3.12.*", "numpy": ">2,<3", "cuda-version": "13.0.*"}
    torch = {"version": "2.11.0", "index": "https://example.org/cu130"}
    assert found["pypi-dependencies"] == {"torch": torch, "here": {"path": ".."}}
    assert not any("tasks" in line for line in lost), "tasks are no part of an environment"
    found, _ = imported("pixi.toml", WORKSPACE, "--environment", "old")
    assert found["requirements"] == {"cuda": "12", "glibc": "2.17"}
    assert "dependencies" not in found


def test_a_target_is_called_by_its_workspace_and_environment() -> None:
    Path("pixi.toml").write_text(WORKSPACE)
    assert call("import", "pixi.toml", "--json").data["target"] == "vision"
    assert call("import", "pixi.toml", "--environment", "cuda", "--json").data["target"] == "vision-cuda"


def test_an_import_without_a_file_names_those_that_are_here() -> None:
    assert "such as `tenv import environment.yml`" in call("import").err
    for name, text in (("environment.yml", "dependencies: [numpy]\n"), ("pyproject.toml", ""), ("x.toml", "")):
        Path(name).write_text(text)
    one, two = "`tenv import environment.yml`", "`tenv import pyproject.toml`"
    assert f"hint: {one} and {two} read the files that are here\n" in call("import").err
    assert f"hint: {one} makes a target of that file, `tenv create auto` makes" in call("create").err


def test_a_lock_beside_a_pixi_toml_is_named() -> None:
    Path("pixi.lock").write_text("version: 7\n")
    Path("pixi.toml").write_text(WORKSPACE)
    first, second = call("import", "pixi.toml", "--json").data["notes"]
    assert first == "a target is one environment: `default` is imported, cuda, old are not"
    assert second.endswith("no lock is written: `tenv import pixi.lock --force` imports its lock, too")
    named = call("import", "pixi.toml", "--environment", "cuda", "--json").data["notes"]
    assert any("`tenv import pixi.lock --environment cuda --force` imports its lock" in note for note in named)


@each(
    "text, message",
    [
        ("x = 1\n", "pixi.toml: is not a pixi.toml: it has no [workspace]"),
        ('[workspace]\nplatforms = ["linux-64"]\n', "invalid pixi.toml: `channels` is missing"),
        ('[workspace]\nchannels = 1\nplatforms = ["linux-64"]\n', "invalid pixi.toml"),
        ('[workspace]\nchannels = []\nplatforms = ["osx-arm64"]\n', "that tenv supports, only for osx-arm64"),
        ('[workspace]\nchannels = []\nplatforms = ["linux-64"]\n[dependencies]\na = 3\n', "invalid pixi.toml"),
        ("[workspace\n", "pixi.toml: not TOML: "),
    ],
)
def test_a_bad_pixi_toml_is_one_error(text: str, message: str) -> None:
    ended = refused("pixi.toml", text)
    assert ended.err.count("error[") == 1
    assert message in ended.err


def test_an_environment_that_is_not_there_is_named_with_those_that_are() -> None:
    ended = refused("pixi.toml", WORKSPACE, "--environment", "nope")
    assert "error[format]: pixi.toml: has no environment `nope`\n" in ended.err
    assert "hint: pass one with `--environment`: default, cuda, old\n" in ended.err


def test_markers_count_on_the_platforms_on_which_they_hold() -> None:
    text = (
        "platforms: [linux-64, win-64]\ndependencies:\n- python=3.11\n- pip:\n"
        '  - jax[cuda12]==0.7.2; sys_platform == "linux"\n  - jax==0.7.1; sys_platform == "darwin"\n'
        '  - tomli==2.0 ; python_version < "3.11"\n  - numpy==2.1 ; python_version >= "3.10"\n'
        '  - odd==1.0 ; platform_release >= "5"\n'
    )
    found, lost = imported("environment.yml", text)
    assert found["pypi-dependencies"] == {"numpy": "2.1", "odd": "1.0"}
    assert found["platform"]["linux-64"]["pypi-dependencies"] == {"jax": {"version": "0.7.2", "extras": ["cuda12"]}}
    assert found["platform"].keys() == {"linux-64"}
    assert lost[0] == 'of `odd` tenv can\'t express its marker `platform_release >= "5"`'


def test_versions_that_differ_by_python_narrow_it_to_the_newest() -> None:
    text = 'numpy==2.3 ; python_version >= "3.12"\nnumpy==1.26 ; python_version < "3.12"\nsix==1.17.0\n'
    found, lost = imported("requirements.txt", text, "--platform", "linux-64")
    assert found["pypi-dependencies"] == {"numpy": "2.3", "six": "1.17.0"}
    assert found["python"] == ">=3.12,<3.15"
    assert not any("numpy" in line for line in lost)


def test_packages_whose_names_begin_with_an_underscore_can_be_asked_for() -> None:
    found, _ = imported("environment.yml", "dependencies: [_openmp_mutex=4.5=20_gnu, python=3.12]\n")
    assert found["dependencies"]["_openmp_mutex"] == {"version": "4.5", "build": "20_gnu"}


def test_the_channels_that_conda_calls_otherwise_are_named_by_their_place() -> None:
    found, _ = imported("environment.yml", "channels: [defaults, pkgs/r, anaconda]\ndependencies: ['defaults::six']\n")
    main = "https://repo.anaconda.com/pkgs/main"
    assert found["channels"] == [main, "https://repo.anaconda.com/pkgs/r", "anaconda"]
    assert found["dependencies"] == {"six": {"version": "*", "channel": main}}
    assert channel_word("https://conda.anaconda.org/nvidia/label/cuda-11.8.0/") == "nvidia/label/cuda-11.8.0"


def test_defaults_of_a_file_are_several_channels_and_more_on_windows() -> None:
    text = "channels: [conda-forge, defaults]\nplatforms: [linux-64, win-64]\ndependencies: ['defaults::r-base']\n"
    found, _ = imported("environment.yml", text)
    home = "https://repo.anaconda.com/pkgs"
    assert found["channels"] == ["conda-forge", f"{home}/main", f"{home}/r", f"{home}/msys2"]
    assert found["dependencies"] == {"r-base": {"version": "*", "channel": f"{home}/r"}}
    found, _ = imported("environment.yml", text.replace(", win-64", ""))
    assert found["channels"] == ["conda-forge", f"{home}/main", f"{home}/r"]


def test_what_decides_on_a_toolchain_is_asked_for_whoever_needs_it() -> None:
    rows = [
        ("python", "3.12.11", []),
        ("numpy", "2.3.1", ["python >=3.12"]),
        ("cuda-nvcc", "12.6.85", ["gxx_linux-64"]),
        ("cuda-version", "12.6", []),
        ("libcublas-dev", "12.6.4.1", ["cuda-version >=12.6,<12.7"]),
        ("gxx_linux-64", "13.4.0", ["gxx_impl_linux-64 13.4.0"]),
        ("gxx_impl_linux-64", "13.4.0", []),
        ("mkl-static", "2023.2.0", []),
    ]
    asked = top_level(rows, {"mkl-static": "intel"})
    assert {name: str(request.version) for name, request in asked.items()} == {
        "cuda-nvcc": "12.6.*",
        "cuda-version": "12.6.*",
        "libcublas-dev": "12.6.*",
        "gxx_linux-64": ">=13.4.0,<14",
        "mkl-static": ">=2023.2.0,<2024",
        "numpy": ">=2.3.1,<3",
        "python": "3.12.*",
    }
    assert asked["mkl-static"].channel == "intel"
    assert asked["numpy"].channel == ""
    named = top_level([*rows, ("cxx-compiler", "1.11.0", ["gxx_linux-64"])])
    assert "gxx_linux-64" not in named


def test_the_channel_that_most_packages_are_of_need_not_be_said() -> None:
    home = "https://conda.anaconda.org"
    assert other_channels({"a": f"{home}/x", "b": f"{home}/x", "c": f"{home}/y"}) == {"c": "y"}
    assert other_channels({}) == {}


@each(
    "dependencies, wheels, cuda",
    [
        ({"cuda-version": "12.6.*"}, {}, "12.6"),
        ({"cudatoolkit": "11.8.*", "pytorch-cuda": "11.8"}, {}, "11.8"),
        ({"cuda-version": "12.*"}, {}, ""),
        ({"cuda-version": ">=12.1,<13"}, {}, ""),
        ({}, {"nvidia-cuda-runtime-cu12": "12.4.127"}, "12.4"),
        ({"cuda-version": "12.6.*"}, {"nvidia-cuda-runtime-cu12": "12.4.127"}, ""),
        ({"python": "3.12.*"}, {"torch": "2.11.0"}, ""),
        ({"nvcc_linux-64": "11.8.*"}, {}, "11.8"),
        ({"python": "3.11.*"}, {"torch": "2.4.0+cu121"}, "12.1"),
    ],
)
def test_the_cuda_of_the_host_follows_from_the_requests_where_they_are_of_one_release(
    dependencies: dict[str, str], wheels: dict[str, str], cuda: str
) -> None:
    draft = Draft(
        ("linux-64",),
        dependencies={"linux-64": {name: CondaRequest(CondaRange(text)) for name, text in dependencies.items()}},
        wheels={"linux-64": {name: WheelRequest(Range(text)) for name, text in wheels.items()}},
    )
    found, told = with_cuda(draft, None)
    assert found.cuda == cuda
    assert bool(told) is (len(wheels) == len(dependencies) == 1 and cuda == "" and "cuda-version" in dependencies)


def test_an_export_of_tenv_says_which_platform_it_is_for() -> None:
    assert call("export", "environment.yml", "cuda102-win", "-o", "out").status == 0
    ended = call("import", "out/environment.yml", "--name", "made", "--json")
    assert tomllib.loads(Path("manifests/made.toml").read_text())["platforms"] == ["win-64"]
    assert not any("names no platforms" in line for line in ended.data["lost"])


@each(
    "declared, dependencies, cuda",
    [
        ("12", {"cuda-version": "12.4.*"}, "12.4"),
        ("12", {"cuda-nvcc": "12.6.*"}, "12.6"),
        ("12", {"cuda-version": "12.4.*", "cuda-toolkit": "12.6.*"}, "12.4"),
        ("12", {"cuda-version": ">=12.4,<13"}, "12"),
        ("12", {"numpy": "*"}, "12"),
        ("12.4", {"cuda-version": "12.4.*"}, "12.4"),
    ],
)
def test_what_a_pixi_toml_declares_of_cuda_is_the_driver_s_bound(
    declared: str, dependencies: dict[str, str], cuda: str
) -> None:
    rows = "".join(f'{name} = "{version}"\n' for name, version in dependencies.items())
    text = f'[workspace]\nname = "w"\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n[dependencies]\n{rows}'
    found, lost = imported("pixi.toml", f'{text}[system-requirements]\ncuda = "{declared}"\n')
    assert found["requirements"]["cuda"] == cuda
    assert any("drivers must offer CUDA 12" in line for line in lost) is (cuda != declared)


def test_of_packages_that_do_not_fit_together_the_manifest_alone_is_written() -> None:
    home = "https://conda.anaconda.org/nvidia/linux-64"
    rows = [f"{home}/cuda-nvcc-12.8.61-0.tar.bz2#{'a' * 64}", f"{home}/cuda-version-12.1-h1d6eff3_3.conda#{'b' * 64}"]
    Path("mixed.txt").write_text("\n".join(["# platform: linux-64", "@EXPLICIT", *rows]) + "\n")
    ended = call("import", "mixed.txt", "--name", "made")
    assert ended.status == 0
    said = "not imported: its lock: cuda-nvcc 12.8.61 on linux-64 is from CUDA 12.8 in a CUDA 12.1 toolkit (TE301)"
    assert said in ended.err
    assert not Path("locks/made.lock").exists()
    assert "cuda-nvcc" in Path("manifests/made.toml").read_text()


def test_the_command_for_the_platforms_that_fit_together_works_as_it_is() -> None:
    def url(name: str, platform: str) -> str:
        return f"https://conda.anaconda.org/nvidia/{platform}/{name}"

    version = "cuda-version-12.1-h1d6eff3_3.conda"
    files = {"linux-64": ["cuda-nvcc-12.8.61-0.tar.bz2", version], "linux-aarch64": [version]}
    rows = {platform: [f"      - conda: {url(name, platform)}" for name in names] for platform, names in files.items()}
    text = ["version: 6", "environments:", "  two words:", "    channels:"]
    text += ["    - url: https://conda.anaconda.org/nvidia/", "    packages:"]
    text += [line for platform, listed in rows.items() for line in (f"      {platform}:", *listed)]
    text += ["packages:"]
    every = [url(name, platform) for platform, names in files.items() for name in names]
    text += [f"- conda: {address}\n  sha256: {'a' * 64}" for address in every]
    Path("pixi.lock").write_text("\n".join(text) + "\n")
    ended = call("import", "pixi.lock", "--name", "made", "--environment", "two words")
    assert ended.status == 0, ended.err
    assert not Path("locks/made.lock").exists()
    command = "tenv import pixi.lock --name made --environment 'two words' --platform linux-aarch64 --force"
    assert f"not imported: the lock of linux-aarch64, too: `{command}` takes it" in ended.err
    assert call(*shlex.split(command)[1:]).status == 0
    assert Path("locks/made.lock").exists()


def test_a_uv_lock_names_what_its_wheels_need_and_what_the_best_python_lacks(empty_project: Path) -> None:
    def rows(name: str, *files: str) -> str:
        listed = "".join(
            f'{{ url = "https://f.example/{file}", hash = "sha256:{"1" * 64}", size = 7 }}, ' for file in files
        )
        return (
            f'[[package]]\nname = "{name}"\nversion = "1.0"\nsource = {{ registry = "https://f.example" }}\n'
            f"wheels = [{listed}]\n"
        )

    head = (
        'version = 1\nrequires-python = ">=3.12,<3.15"\n[[package]]\nname = "w"\nversion = "1"\n'
        'source = { virtual = "." }\ndependencies = [{ name = "new" }, { name = "old" }]\n'
        '[package.metadata]\nrequires-dist = [{ name = "new" }, { name = "old" }]\n'
    )
    new = rows("new", *(f"new-1.0-cp{minor}-cp{minor}-manylinux_2_31_x86_64.whl" for minor in (312, 313)))
    file = empty_project / "uv.lock"
    file.write_text(head + new + rows("old", "old-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"))
    found = call("import", "uv.lock", "--name", "made", "--json").data
    assert "`requirements.glibc` is set to 2.31, which a wheel of the file needs" in found["notes"]
    text = (empty_project / "locks" / "made.lock").read_text()
    assert text.count("size: 7") == 2
    assert 'glibc = "2.31"' in (empty_project / "manifests" / "made.toml").read_text()
    assert call("lock", "made", "--check").status == 0
    file.write_text(head + new + rows("old", "old-1.0-cp312-cp312-win_amd64.whl", "old-1.0-cp314-cp314-win_amd64.whl"))
    found = call("import", "uv.lock", "--name", "made", "--json", "--force").data
    (why,) = [line for line in found["lost"] if line.startswith("its lock")]
    assert "(old: no wheel for Python 3.13 on linux-64)" in why  # and not what each other Python lacks


def test_two_lines_for_one_package_hold_together(empty_project: Path) -> None:
    lines = {
        "imageio==2.34.0\nimageio[ffmpeg]": ("2.34.0", ["ffmpeg"]),
        "imageio>=2\nimageio<3": (">=2,<3", []),
        "imageio==0.13.1+cu116\nimageio==0.13.1": ("0.13.1+cu116", []),
        "imageio<9\nimageio==2.1": ("2.1", []),
        "imageio==1\nimageio==2": ("*", []),
        'imageio<2; python_version < "3.12"\nimageio>=2; python_version >= "3.12"': (">=2", []),
        "imageio<2\nimageio>=2": ("*", []),
    }
    for text, (version, extras) in lines.items():
        made, lost = imported("requirements.txt", text)
        found = made["pypi-dependencies"]["imageio"]
        assert (found["version"], found["extras"]) == (version, extras) if extras else found == version, text
        assert any("in several versions" in line for line in lost) is (version == "*"), text
    assert empty_project.is_dir()


def test_an_option_for_source_archives_permits_a_build(empty_project: Path) -> None:
    made, lost = imported("requirements.txt", "--only-binary :all:\n--no-binary Opencv_Python\nopencv-python==5.0\n")
    assert made["pypi-dependencies"]["opencv-python"] == {"version": "5.0", "build": True}
    assert "`--no-binary Opencv_Python` where a wheel fits, which tenv takes" in lost
    assert not any("--only-binary" in line for line in lost)
    assert empty_project.is_dir()


def test_groups_of_a_pyproject_toml_of_pixi_include_others_and_own_extras_are_lines() -> None:
    text = """\
[project]
name = "it-all"
dependencies = ["numpy>=1.26", "numpy<3; sys_platform == 'linux'", "numpy<1; sys_platform == 'win32'"]
[project.optional-dependencies]
docs = ["sphinx"]
dev = ["It_All[docs]", "rich"]
[dependency-groups]
dev = ["pytest", { include-group = "lint" }]
lint = ["ruff"]
[tool.pixi.workspace]
channels = ["conda-forge"]
platforms = ["linux-64"]
[tool.pixi.pypi-dependencies]
it-all = { path = ".", editable = true }
[tool.pixi.environments]
dev = ["dev"]
"""
    found, lost = imported("pyproject.toml", text, "--environment", "dev")
    plain = dict.fromkeys(("pytest", "rich", "ruff", "sphinx"), "*")
    assert found["pypi-dependencies"] == {"numpy": ">=1.26,<3", **plain, "it-all": {"path": "..", "editable": True}}
    assert lost == []
