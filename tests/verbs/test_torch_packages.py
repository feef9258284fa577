"""Packages that are compiled against the target's torch: locked without their code, compiled aside, kept."""

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import tomli
import yaml

from tenv.builds.extension_plan import Asked, refusals
from tenv.builds.extension_record import recorded
from tenv.builds.record_extensions import __file__ as recorder
from tenv.core.errors import NoSolutionError
from tenv.core.versions import Version
from tenv.core.wheel_platforms import marker_values
from tenv.facts.tables import load_facts
from tenv.install.architectures import detected_archs
from tenv.locks.lock import Lock, Wheel
from tenv.locks.wheel_requirement import Torch, names_torch
from tenv.sources.wheels.compiled import with_way
from tenv.sources.wheels.sdist_builds import built_folder
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project, call
from tests.support.rarely import first_fast
from tests.support.source_trees import commit_all, pack_sdist
from tests.support.torch_extension import REQUEST, Extension, House, value

OTHERS = [
    *("define_macros=[]", "undef_macros=[]", "include_dirs=[]", "libraries=[]", "library_dirs=[]"),
    *("extra_link_args=[]", "language=None"),
]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the environment's Python is called by its path")


class Gpu(NamedTuple):
    """A GPU of this machine."""

    capability: Version


def test_each_torch_has_its_own_wheel_and_a_second_environment_takes_it(
    project: Project, extension: Extension, tmp_path: Path
) -> None:
    project.ok("lock", "tiny")
    (rows,) = yaml.safe_load(project.lock.read_text())["tenv"]["source-trees"].values()
    assert (rows[0]["isolation"], rows[0]["requires"]) == (False, ["alpha>=1"])
    assert [pin.split("==")[0] for pin in rows[0]["build"]] == ["ninja", "setuptools"]
    raw = project.lock.read_bytes()
    project.ok("lock", "tiny")
    project.ok("lock", "tiny", "--check")
    assert (project.lock.read_bytes(), extension.builds) == (raw, [])
    project.ok("create", "tiny", "--locked")
    assert (value(project.prefix), extension.builds) == ("2.1", ["2.1"])
    assert not [*project.site().glob("setuptools*")]
    assert not [path for path in built_folder().glob(".*") if path.is_dir()]  # nor is the second environment
    assert "nothing to do" in project.ok("create", "tiny", "--locked").err
    said = project.ok("create", "tiny", "--locked", "--offline", "--prefix", str(tmp_path / "second"))
    assert "vision 1.0: taken as it was compiled before" in said.err
    assert "all files are intact" in call("verify", "tiny").err  # the torch of the index compiles nothing
    project.edit('torch = "2.1"', 'torch = "2.2"')
    project.ok("create", "tiny")
    assert (value(project.prefix), extension.builds) == ("2.2", ["2.1", "2.2"])


def test_an_archive_without_static_metadata_names_the_line_to_write(project: Project, extension: Extension) -> None:
    project.edit(', requires = ["alpha>=1"]', "")
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "vision-1.0.tar.gz leaves its requirements to its code, which does not run without torch" in said
    assert 'isolation = false, requires = ["alpha>=1"] }`' in said
    assert extension.builds == []


def test_one_error_names_each_archive_without_static_metadata(project: Project, extension: Extension) -> None:
    project.edit(', requires = ["alpha>=1"]', ', cxx = 20, archs = "9.0"')
    shutil.copyfile(project.index.folder / "vision-1.0.tar.gz", project.index.folder / "kernels-1.0.tar.gz")
    for name in ("kernels", "nowhere"):
        project.ask_for(f'{name} = {{ version = "*", build = "always", isolation = false }}')
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "kernels-1.0.tar.gz leaves its requirements" in said
    assert "vision-1.0.tar.gz leaves its requirements" in said
    assert "no index in use has a source archive of nowhere" in said
    lines = tomli.loads("\n".join(re.findall(r"`(\w+ = .*?)` in the manifest", said)))
    assert (lines["vision"]["cxx"], lines["vision"]["archs"]) == (20, "9.0")
    assert lines["kernels"] == {"version": "*", "build": "always", "isolation": False, "requires": ["alpha>=1"]}
    assert extension.builds == []


@pytest.mark.long
def test_the_line_to_write_is_toml_where_a_requirement_has_a_marker(project: Project, extension: Extension) -> None:
    project.edit(', requires = ["alpha>=1"]', "")
    pack_sdist(extension.tree, project.index.folder, requires='alpha>=1; python_version >= "3"', static=False)
    (line,) = re.findall(
        r"`(vision = .*?)` in the manifest", " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    )
    assert tomli.loads(line)["vision"]["requires"] == ["alpha>=1; python_version >= '3'"]
    project.edit(REQUEST.replace(', requires = ["alpha>=1"]', ""), line)
    project.ok("lock", "tiny")


def wheel_beside(project: Project, local: str, requires: str = "alpha>=1", tag: str = "") -> None:
    own = tag or f"cp{HERE.replace('.', '')}-cp{HERE.replace('.', '')}-linux_{platform.machine()}"
    make_wheel(project.index.folder, "vision", f"1.0{local}", requires=[*filter(None, [requires])], tag=own)


def test_a_wheel_of_the_index_for_this_torch_is_taken(project: Project, extension: Extension) -> None:
    project.edit('torch = "2.1"', 'torch = "==2.9.1+cu128"')
    for version in ("2.9.1+cu128", "2.9.1+cu126"):
        make_wheel(project.index.folder, "torch", version)
    for local in ("", "+pt29cu130", "+cu12torch2.8cxx11abitrue", "+torch2.9cpu", "+pt29cu128.stray"):
        wheel_beside(project, local, "alpha>=1\nRequires-Dist: beta" if local.endswith("stray") else "alpha>=1")
    said = " ".join(project.ok("lock", "tiny").err.split())
    assert "nothing is compiled" not in said
    assert "is not taken from the index: vision requires beta, which its row in the lock lacks" in said
    wheel_beside(project, "+cu12torch2.9cxx11abitrue")
    said = " ".join(project.ok("update", "tiny").err.split())
    assert "vision: the index has a wheel that fits, nothing is compiled" in said
    raw = project.lock.read_bytes()
    data = yaml.safe_load(raw)
    assert "source-trees" not in data["tenv"]
    assert b"vision-1.0+cu12torch2.9cxx11abitrue" in raw.replace(b"%2B", b"+")
    project.ok("lock", "tiny", "--check")
    project.ok("update", "tiny", "alpha")
    assert project.lock.read_bytes() == raw
    project.ok("create", "tiny", "--locked")
    assert extension.builds == []
    good = project.manifest.read_text()
    for words in ("build = true, cxx = 20", 'build = "always"'):
        project.manifest.write_text(good.replace("build = true", words))
        assert "the manifest requests to compile it" in " ".join(call("lock", "tiny", "--check").err.split())
    assert "nothing is compiled" not in project.ok("lock", "tiny").err
    assert "source-trees" in yaml.safe_load(project.lock.read_text())["tenv"]
    project.manifest.write_text(good.replace("cu128", "cu126"))  # the major of CUDA is the same
    assert "nothing is compiled" in project.ok("update", "tiny").err


def test_an_archive_whose_backend_computes_the_version_alone_has_its_requirements(
    project: Project, extension: Extension
) -> None:
    """Its version is that of its PKG-INFO; built, it names the torch, as ``1.0+pt211cu130`` does."""
    project.edit(', requires = ["alpha>=1"]', "")
    file = extension.tree / "pyproject.toml"
    text = file.read_text().replace('dynamic = ["requires-python"]\n', "").replace("alpha>=1", "alpha>=1,<9")
    file.write_text(text.replace('version = "1.0"', 'dynamic = ["version"]'))
    backend = extension.tree / "backend" / "own_backend.py"
    label = '    project.setdefault("version", "1.0+pt" + torch.VERSION.replace(".", ""))\n    if "calls" in'
    backend.write_text(backend.read_text().replace('    if "version" in', label))
    extension.pack()
    project.ok("lock", "tiny")
    (rows,) = yaml.safe_load(project.lock.read_text())["tenv"]["source-trees"].values()
    assert (rows[0]["version"], rows[0]["requires"]) == ("1.0", ["alpha<9,>=1", 'beta; extra == "dev"'])
    project.ok("create", "tiny", "--locked")
    assert [path.name for path in project.site().glob("vision-*.dist-info")] == ["vision-1.0+pt21.dist-info"]
    assert "nothing to do" in project.ok("create", "tiny", "--locked").err
    assert "all files are intact" in call("verify", "tiny").err
    rows = project.ok("packages", "tiny", "--json").data
    assert [row["version"] for row in rows if row["name"] == "vision"] == ["1.0+pt21"]
    assert " ready " in project.ok("list").out
    assert extension.builds == ["2.1"]


def test_a_package_without_an_archive_for_this_python_has_its_hint() -> None:
    for said, hint in (
        ("all versions of it depend on Python>=3.12,<3.14, we can conclude", 'set python = ">=3.12,<3.14"'),
        ("Because all versions of it have no source\n  distribution and you require it", '`it = "*"` takes a wheel'),
        ("Because it was not found in the package registry", "as it was"),
    ):
        error = with_way(NoSolutionError("no index in use has a source archive of it", hint="as it was"), "it", said)
        assert hint in error.hint


def test_an_archive_for_other_pythons_is_named(project: Project, extension: Extension) -> None:
    pack_sdist(extension.tree, project.index.folder, requires="alpha\nRequires-Python: <3.5", static=False)
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "vision 1.0 requires Python <3.5, the target has" in said
    assert extension.builds == []


def test_a_requirement_that_nothing_satisfies_is_named(project: Project, extension: Extension) -> None:
    """The message was that one request conflicts, with the hint to remove it."""
    project.edit('requires = ["alpha>=1"]', 'requires = ["nowhere"]')
    err = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "requires nowhere, which no index in use has" in err
    assert "these requests conflict" not in err
    assert extension.builds == []


def test_a_wheel_that_names_no_torch_is_no_answer_to_a_request_to_compile(
    project: Project, extension: Extension
) -> None:
    """`tenv add --build --no-isolation` of a locked wheel found its lock up to date, and compiled nothing."""
    wheel_beside(project, "")
    project.edit(REQUEST, 'vision = "*"')
    project.ok("lock", "tiny")
    project.edit('vision = "*"', REQUEST)
    assert "the manifest requests to compile it" in " ".join(
        project.fails(7, "lock-stale", "lock", "tiny", "--check").split()
    )
    project.ok("lock", "tiny")
    assert "source-trees" in yaml.safe_load(project.lock.read_text())["tenv"]
    project.ok("lock", "tiny", "--check")


def test_a_wheel_names_its_torch_and_its_cuda() -> None:
    def named(version: str, torch: str, cuda: str | None, *requires: str) -> bool:
        values = marker_values("linux-64", "3.12")
        return names_torch(version, requires, values, Torch(torch, Version(cuda) if cuda else None))

    here = "2.11.0+cu130", "13.0"
    for local in ("pt211cu130", "cu130torch2.11", "cu13torch2.11cxx11abiTRUE", "torch2.11.0.cu13.0", "torch2110cu130"):
        assert named(f"1.0+{local}", *here), local
    for local in (
        *("", "cu130", "torch2.11", "pt21cu130", "pt211cu128", "pt211cu13.2", "pt210cu130", "torch2.11.1cu130"),
        *(
            "pt211cpu",
            "cu130torch2.11cxx11abiFALSE",
            "pt211rocm7.0",
            "torch2.11torch2.10cu130",
            "cu130.20260101",
            "opt211cu130",
        ),
    ):
        assert not named(f"1.0+{local}", *here), local
    assert named("1.0+cu130", *here, "torch==2.11.0")
    assert named("1.0+cu130", *here, "torch==2.11.*")
    assert named("1.0", *here, "torch==2.11.0+cu130")
    for version, requires in (
        ("1.0", "torch==2.11.0"),  # nothing names its CUDA
        ("1.0+cu130", "torch>=2.11"),
        ("1.0+cu130", "torch==2.10.0"),
        ("1.0+pt211cu130", "torch<2.11"),
        ("1.0+cu130", "torch==2.11.0; sys_platform == 'win32'"),
    ):
        assert not named(version, *here, requires), (version, requires)
    assert named("1.0+pt211cpu", "2.11.0+cpu", None)
    assert not named("1.0+pt211", "2.11.0", None)
    assert not named("1.0+pt211cpu", "2.11.0+rocm7.0", None)
    assert not named("1.0+pt211cu130", "2.11.0", None)
    assert not named("1.0+cu126torch2.6cxx11abiTRUE", "2.6.0", "12.6")  # the index's 2.6.0 has the old ABI


def test_a_typed_request_has_its_keys_and_pixi_gets_them(
    project: Project, extension: Extension, tmp_path: Path
) -> None:
    project.edit(f"\n{REQUEST}", "")
    for words, command in (  # each hint is the next command
        ("", "add tiny --build vision"),
        ("--build", "add tiny --build --no-isolation vision"),
    ):
        said = project.fails(5, "no-solution", "add", "tiny", "vision", *words.split())
        assert f"`tenv {command}` " in said
    said = project.fails(5, "no-solution", "add", "tiny", "vision", "--build", "--no-build-isolation")
    (command,) = re.findall(r"hint: `tenv (.*?)`", said)
    assert command == "add tiny --build --no-isolation --requires 'alpha>=1' vision"
    project.ok(*shlex.split(command), "--cxx", "20", "--archs", "9.0")
    line = (
        'vision = {version = "*", build = true, isolation = false, requires = ["alpha>=1"], cxx = 20, archs = "9.0"}\n'
    )
    assert line in project.manifest.read_text()
    project.ok("add", "tiny", "vision>=1")  # the keys stay
    assert line.replace("*", ">=1") in project.manifest.read_text()
    assert extension.builds == []
    said = call("export", "pixi", "tiny", "--output", str(tmp_path / "pixi")).err
    assert all(f"`{key}` of vision" in said for key in ("requires", "cxx", "archs")), said
    assert 'no-build-isolation = ["vision"]' in (tmp_path / "pixi" / "pixi.toml").read_text()
    project.ok("add", "tiny", "vision", "--build", "--no-isolation", "--requires", "")
    assert "requires = []" in project.manifest.read_text()


def test_a_lock_permits_nothing_that_the_manifest_does_not(project: Project, extension: Extension) -> None:
    project.ok("lock", "tiny")
    for old, new in (
        (REQUEST, 'vision = "*"'),
        (', isolation = false, requires = ["alpha>=1"]', ""),
        ('requires = ["alpha>=1"]', 'requires = ["alpha>=1", "beta"]'),
    ):
        good = project.manifest.read_text()
        project.edit(old, new)
        for option in ("--locked", "--frozen"):
            assert call("create", "tiny", option).status == 7, new
        project.manifest.write_text(good)
    project.edit("platforms", 'sdists = ["vision"]\nplatforms')
    project.edit(f"{REQUEST}\n", "")
    assert call("create", "tiny", "--frozen").status == 7  # nothing requests it, so nothing permits its code


@pytest.mark.long
def test_no_wheel_that_the_build_does_not_need_is_installed(project: Project, extension: Extension) -> None:
    pyproject = extension.tree / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("requires = []", 'requires = ["Ninja>=1.13"]'))
    extension.pack()
    project.ok("lock", "tiny")
    ran = extension.seen.with_name("ran")
    code = f"import pathlib; pathlib.Path({str(ran)!r}).touch()\n"

    def pin(name: str, version: str) -> str:
        wheel = make_wheel(project.index.folder, name, version, files={f"{name}.pth": code})
        return f"{name}=={version} sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"

    good = project.lock.read_text()
    (line,) = (line for line in good.splitlines(keepends=True) if "- ninja==" in line)
    before = line[: line.index("ninja")]
    stranger = f"{line}{before}{pin('stranger', '1.0')}\n", "stranger is locked and nothing requires it"
    older = f"{before}{pin('ninja', '1.12')}\n", "ninja 1.12 is locked, its [build-system] asks for >=1.13"
    for new, why in (stranger, stranger, older, ("", "ninja is not in the lock")):
        project.lock.write_text(good.replace(line, new))
        ended = call("create", "tiny", "--frozen")
        assert (ended.status, why in " ".join(ended.err.split())) == (7, True), ended.err
        assert not [*built_folder().glob(".environment-*/")]
    assert (ran.exists(), extension.builds) == (False, [])


@pytest.mark.long
def test_each_variable_that_decides_on_the_code_is_an_input(
    project: Project, extension: Extension, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAX_JOBS", "abc")
    monkeypatch.setenv("CC", " ")
    project.ok("create", "tiny")
    folder = extension.seen.with_name

    def builds(number: int) -> int:
        project.ok("create", "tiny", "--prefix", str(folder(f"e{number}")))
        return len(extension.builds)

    manifest = project.manifest.read_text()
    project.manifest.write_text(f'{manifest}\n[activation.env]\nFORCE_CUDA = "1"\n')
    assert builds(1) == 2
    project.edit('FORCE_CUDA = "1"', 'FORCE_CUDA = "0"')
    assert builds(2) == 3
    monkeypatch.setenv("NVCC_PREPEND_FLAGS", "-G")
    assert builds(3) == 4
    program = folder("bin") / "c++"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    for number, text in ((5, "#!/bin/sh\n"), (6, "#!/bin/sh\n# another release\n")):
        program.write_text(text)
        program.chmod(0o755)
        assert builds(number) == number
        assert builds(number + 10) == number  # the second environment takes it


def test_the_architectures_of_the_detected_gpus_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [Gpu(Version(text)) for text in ("9.0", "8.6", "3.5")]
    monkeypatch.setattr("tenv.install.architectures._gpus", lambda _: gpus)
    for cuda, names in ((Version("13.0"), ("8.6", "9.0")), (None, ("3.5", "8.6", "9.0"))):
        job: Any = SimpleNamespace(
            context=SimpleNamespace(facts=load_facts),
            manifest=SimpleNamespace(requirements=SimpleNamespace(cuda=cuda)),
            toolchain=SimpleNamespace(system=()),
        )
        assert detected_archs(job) == names


def test_headers_and_backends_are_what_a_package_is_compiled_against() -> None:
    def against(name: str, version: str) -> str:
        wheel = Wheel(name, version, f"{name}-{version}-py3-none-any.whl", "0" * 64, None, ("3.12",))
        lock = Lock("tiny", ("linux-64",), {"linux-64": (wheel,)}, requirements={}, requests={}, manifest="")
        return lock.compiled_against("linux-64", "3.12")

    for name in (
        "torch",
        "numpy",
        "pybind11",
        "nanobind",
        "cython",
        "nvidia-cudnn-cu12",
        "rocm-sdk-devel",
        "setuptools",
    ):
        assert against(name, "1") != against(name, "2"), name
    assert against("requests", "1") == against("requests", "2")


@pytest.mark.long
def test_a_failed_build_leaves_the_environment_as_it_was(project: Project, extension: Extension) -> None:
    project.edit(f"\n{REQUEST}", '\nalpha = "*"')
    project.ok("create", "tiny")
    project.edit('alpha = "*"', REQUEST)
    backend = extension.tree / "backend" / "own_backend.py"
    good = backend.read_text()
    url = project.index.url + "/alpha/"
    fetches = f"import urllib.request; urllib.request.urlopen({url!r})"
    for fault, why, words in (
        ("raise ValueError('no compiler here')", "no compiler here", "can't be compiled"),
        (fetches, "Operation not permitted", "its build downloads, which has no digest"),
    ):
        backend.write_text(
            good.replace(
                "def build_wheel(folder, settings=None, metadata=None):\n",
                f"def build_wheel(folder, settings=None, metadata=None):\n    {fault}\n",
            )
        )
        extension.pack()
        project.ok("update", "tiny")
        said = " ".join(project.fails(8, "environment-broken", "create", "tiny").split())
        assert "vision 1.0 can't be compiled, and the environment is as it was" in said
        assert words in said
        assert ("own_backend.py" in said or "line " in said) is (fault != fetches)  # the error and its place
        assert any(why in log.read_text() for log in built_folder().glob("vision-*.log"))
        assert project.state()["state"] == "ready"
    backend.write_text(good)
    extension.pack()
    project.ok("update", "tiny")
    project.ok("create", "tiny")
    assert value(project.prefix) == "2.1"


@pytest.mark.long
def test_a_folder_and_a_commit_are_compiled_too(project: Project, extension: Extension) -> None:
    pyproject = extension.tree / "pyproject.toml"
    plain = pyproject.read_text().replace('version = "1.0"\n', "")
    pyproject.write_text(plain.replace('["requires-python"]', '["version", "requires-python"]'))
    backend = extension.tree / "backend" / "own_backend.py"
    text = backend.read_text().replace(
        '    if "version" in', '    project.setdefault("version", "1.5")\n    if "calls" in'
    )
    backend.write_text(text)
    folder = f'path = "{extension.tree}"'
    project.edit(REQUEST, f"vision = {{ {folder}, isolation = false }}")
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "only its build backend knows its requirements, and that does not run without torch" in said
    typed = f"vision @ {extension.tree}"
    said = project.fails(5, "no-solution", "add", "tiny", typed, "--no-isolation")
    assert f"`tenv add tiny --no-isolation --requires REQUIREMENT '{typed}'` names them" in said
    project.edit("isolation = false }", 'isolation = false, requires = ["alpha>=1"] }')
    project.ok("create", "tiny")
    assert (value(project.prefix), extension.builds) == ("2.1", ["2.1"])
    assert not (extension.tree / "build").exists()
    assert "nothing to do" in project.ok("create", "tiny").err
    (extension.tree / "src" / "vision.py").write_text('VALUE = "edited"\n')
    project.ok("create", "tiny")
    assert extension.builds == ["2.1", "2.1"]
    assert "nothing to do" in project.ok("create", "tiny").err
    pyproject.write_text(plain.replace('["requires-python"]', '["version"]'))  # the version alone is computed
    project.edit(', requires = ["alpha>=1"]', "")
    project.ok("create", "tiny")
    assert extension.builds == ["2.1"] * 3
    extension.seen.write_text("2.1\n")
    other = extension.tree.with_name("other")
    shutil.copytree(extension.tree, other)
    link = extension.tree.with_name("link")
    project.edit(folder, f'path = "{link}"')
    for target in (extension.tree, other):  # the same text in two projects names two folders
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        project.ok("create", "tiny", "--prefix", str(extension.tree.with_name(f"of-{target.name}")))
    assert len([*built_folder().glob("*/vision-*.whl")]) == len(("link to vision, as vision", "link to other"))
    project.edit(f'path = "{link}"', folder)
    extension.seen.write_text("2.1\n")
    commit = commit_all(extension.tree, "first")
    project.edit(folder, f'git = "{extension.tree.as_uri()}", rev = "{commit}"')
    project.ok("create", "tiny")
    assert (value(project.prefix), extension.builds) == ("2.1", ["2.1", "2.1"])


def test_wrong_requests_name_their_key(project: Project) -> None:
    for request, why in (
        ('{ version = "*", isolation = false }', "`build = true` permits the build"),
        ('{ version = "*", build = true, requires = ["torch"] }', "is for a package with `isolation = false`"),
        ('{ version = "*", build = true, isolation = false, requires = ["--pre"] }', "`--pre` is no requirement"),
        ('{ version = "*", build = "always" }', "`always` is for a package with `isolation = false`"),
        ('{ version = "*", build = "never", isolation = false }', '`never` is none of true, false and "always"'),
        ('{ version = "*", build = true, isolation = false, cxx = 18 }', "`18` is none of 14, 17, 20, 23"),
        ('{ version = "*", build = true, isolation = false, archs = "sm_90" }', "`sm_90` is no list such as"),
        ('{ version = "*", build = true, archs = "9.0" }', "is for a package with `isolation = false`"),
        ('{ path = "../vision", editable = true, isolation = false }', "a folder with `editable`"),
    ):
        good = project.manifest.read_text()
        project.edit('alpha  = ">=1"', f"vision = {request}")
        ended = call("lock", "tiny")
        assert (ended.status != 0, why in " ".join(ended.err.split())) == (True, True), ended.err
        project.manifest.write_text(good)


@pytest.mark.parametrize("every", first_fast([False, True]))
def test_a_setup_py_is_recorded_and_compiles_nothing(tmp_path: Path, every: bool) -> None:
    (tmp_path / "a.cpp").touch()
    setup = (
        "from setuptools import Extension, setup\n"
        "setup(name='it', ext_modules=[Extension('it._C', ['a.cpp', 'b.cu'], extra_compile_args=ARGS)])\n"
    )
    words = [sys.executable, recorder]

    def record(text: str) -> Any:
        (tmp_path / "setup.py").write_text(text)
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        return yaml.safe_load(done.stdout.splitlines()[-1])

    flags = {"cxx": ["-O3"], "nvcc": ["-std=c++17"]}
    row = {"name": "it._C", "sources": ["a.cpp", "b.cu"], "missing": ["b.cu"], "flags": flags, "others": OTHERS}
    loud = "import atexit, os\natexit.register(print, 'bye')\nos.system('echo of a program')\nprint('of python')\n"
    found = record(loud + setup.replace("ARGS", repr(flags)))
    rest = {"ninja": False, "idle": False, "archs": "", "absent": [], "gone": [], "requires": []}
    assert found == {**rest, "extensions": [row]}
    assert record("raise NotImplementedError('Cuda is not available')") == {
        "error": "NotImplementedError: Cuda is not available"
    }
    scm = "from setuptools import setup\nsetup(name='it', setup_requires=['no_such_scm>=2'], use_scm_version=True)\n"
    assert record(scm) == {**rest, "extensions": [], "absent": ["no_such_scm"]}
    needs = scm.replace("use_scm_version=True", "install_requires=['torch', 'einops>=0.7']")
    assert record(needs)["requires"] == ["torch", "einops>=0.7"]
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    assert record(needs)["requires"] is None
    (tmp_path / "pyproject.toml").unlink()
    own = "class Own(build_ext):\n    pass\n"
    made = f"from setuptools.command.build_ext import build_ext\n{own}{setup.replace('ARGS', 'None')}"
    for command, missing in (("build_ext", ["b.cu"]), ("Own", [])):  # one that may write its sources first
        (row,) = record(made.replace("ext_modules", f"cmdclass={{'build_ext': {command}}}, ext_modules"))["extensions"]
        assert row["missing"] == missing
    assert record("import sys\nsys.exit()") == {"error": "it ends without a call of setup"}
    if not every:
        return
    assert record("") == {"error": "it does not call setup"}
    assert record(scm.replace(", use_scm_version=True", ""))["absent"] == []  # setuptools goes without it
    assert record(scm.replace("no_such_scm>=2", "setuptools"))["absent"] == []


def test_a_setup_py_that_downloads_before_it_calls_setup_is_stopped_and_named(tmp_path: Path) -> None:
    facts, environ = load_facts(), {"PATH": os.environ["PATH"]}
    for code in (
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/torch.whl')\n",
        "import subprocess, sys\nwords = 'import socket; socket.create_connection((\"127.0.0.1\", 9))'\n"
        "subprocess.run([sys.executable, '-c', words], check=True)\n",
    ):
        (tmp_path / "setup.py").write_text(f"{code}from setuptools import setup\nsetup(name='it')\n")
        record = recorded(Path(sys.executable), environ, tmp_path)
        reasons = [*refusals(record, Asked("it", 0, ""), None, None, facts.cuda_gpu_arch)]
        assert "its setup.py downloads" in reasons[0][0], record
        assert "Operation not permitted" in reasons[-1][0], record


@pytest.mark.long
def test_two_builds_without_a_network_have_the_same_record(project: Project, extension: Extension) -> None:
    backend = extension.tree / "backend" / "own_backend.py"
    text = backend.read_text()  # a module with the order of a set, and the day of the build
    made = 'f"VALUE = {torch.VERSION!r}\\nORDER = {[*set(map(str, range(99)))]!r}\\nDAY = {day!r}\\n"'
    text = text.replace('f"VALUE = {torch.VERSION!r}\\n"', made)
    text = text.replace(
        "import torch", 'import os, time, torch\nday = os.environ.get("SOURCE_DATE_EPOCH", time.time())'
    )
    backend.write_text(text)
    extension.pack()
    project.ok("lock", "tiny")
    records = []
    for number in range(2):
        project.ok("create", "tiny", "--locked", "--prefix", str(project.folder / f"made{number}"))
        (wheel,) = built_folder().glob("*/vision-*.whl")
        with zipfile.ZipFile(wheel) as opened:
            records.append(opened.read("vision-1.0.dist-info/RECORD"))
        shutil.rmtree(built_folder())
    assert len(extension.builds) == 2
    assert records[0] == records[1]


@pytest.mark.long
def test_another_machine_takes_the_wheel_that_the_lock_names_and_no_other_bytes(
    project: Project, extension: Extension, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(project)
    house.lock()
    assert (house.pins, house.folder.exists()) == ([], False)
    assert "is in" in house.create()
    said = house.lock()
    sha256 = hashlib.sha256(house.wheel.read_bytes()).hexdigest()
    assert house.pins == [f"{HERE} sha256:{sha256}"], said
    raw = project.lock.read_bytes()
    house.lock()
    project.ok("lock", "tiny", "--check")
    assert project.lock.read_bytes() == raw
    assert "vision 1.0: taken from" in house.create()
    assert extension.builds == ["2.1"]
    monkeypatch.setenv("CFLAGS", "-O1")
    assert "your variables decide on its code" in house.create()
    monkeypatch.delenv("CFLAGS")
    good = house.wheel.read_bytes()
    house.wheel.write_bytes(good + b"more")
    assert "has other bytes than the lock names: it is compiled here" in house.create()
    house.wheel.write_bytes(good)
    text = house.map.read_text()
    for old, new, why in (
        (sha256, "0" * 64, "names another wheel"),
        (f'"{house.wheel.name}"', f'"../{house.wheel.parent.name}/{house.wheel.name}"', "has no wheel of it"),
        ('"schema": 1', '"schema": 2', "is no map of a wheelhouse of schema 1"),
        ("{", "[", "can't be read"),
    ):
        house.map.write_text(text.replace(old, new))
        assert why in house.create(), (old, new)
    house.map.write_text(text)
    assert len(extension.builds) == 7
    house.folder.rename(house.folder.with_name("away"))
    house.lock()
    assert project.lock.read_bytes() == raw  # a machine without the folder changes no row


@pytest.mark.long
def test_no_wheel_is_locked_that_others_could_have_written(project: Project, extension: Extension) -> None:
    house = House(project)
    house.lock()
    house.create()
    for place in (house.folder, house.wheel):
        mode = place.stat().st_mode
        place.chmod(0o777)
        said = house.lock()
        assert "an" in said
        assert "other user" in said
        assert house.pins == []
        place.chmod(mode)
    good = house.wheel.read_bytes()
    house.wheel.write_bytes(good + b"more")
    assert "has other bytes than wheelhouse.json names, so it is not locked" in house.lock()
    assert house.pins == []
    house.wheel.write_bytes(good)
    house.lock()
    assert len(house.pins) == 1
    project.edit('torch = "2.1"', 'torch = "2.2"')
    house.lock()
    assert house.pins == []  # it was compiled against another torch
    assert extension.builds == ["2.1"]
