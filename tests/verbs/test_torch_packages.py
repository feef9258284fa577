"""Packages that are compiled against the target's torch: locked without their code, compiled aside, kept."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import yaml

from tenv.builds.record_extensions import __file__ as recorder
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tenv.install.architectures import detected_archs
from tenv.locks.lock import Lock, Wheel
from tenv.sources.wheels.sdist_builds import built_folder
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project, call
from tests.support.source_trees import commit_all, pack_sdist, write_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the environment's Python is called by its path")

REQUEST = 'vision = { version = "*", build = true, isolation = false, requires = ["alpha>=1"] }'


class Gpu(NamedTuple):
    """A GPU of this machine."""

    capability: Version


class Extension:
    """The source archive of `vision`, whose module gets the version of the torch that is there when it is built.

    Attributes:
        tree: Its files.
        seen: The file to which each build adds that version.
    """

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.tree, self.seen = project, write_tree(folder / "vision"), folder / "seen"
        for name, version in (("setuptools", "80.0"), ("ninja", "1.13"), ("torch", "2.1"), ("torch", "2.2")):
            make_wheel(project.index.folder, name, version)
        backend = self.tree / "backend" / "own_backend.py"
        noted = f"        open({str(self.seen)!r}, 'a').write(torch.VERSION + '\\n')\n"
        text = backend.read_text().replace("import base64", "import base64\nimport torch")
        text = text.replace('"vision.py": file.read()', '"vision.py": f"VALUE = {torch.VERSION!r}\\n"')
        backend.write_text(
            text.replace('open(os.path.join("src", "vision.py")) as file:\n', f'open("PKG-INFO") as file:\n{noted}')
        )
        self.pack()

    def pack(self) -> None:
        """Pack the archive, whose metadata is not static."""
        pack_sdist(self.tree, self.project.index.folder, static=False)

    @property
    def builds(self) -> list[str]:
        """The torch of each build."""
        return self.seen.read_text().split() if self.seen.is_file() else []


@pytest.fixture
def extension(project: Project, tmp_path: Path) -> Extension:
    """The archive on the index, and a manifest that asks for it and for a torch."""
    project.edit('native = "*"\n', "")
    project.edit('alpha  = ">=1"', f'torch = "2.1"\n{REQUEST}')
    project.edit(project.manifest.read_text().splitlines()[2], f'python = "{HERE}.*"')
    return Extension(project, tmp_path)


def value(prefix: Path) -> str:
    words = [str(prefix / "bin" / "python"), "-c", "import alpha, vision; print(vision.VALUE)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


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
    project.edit('torch = "2.2"', 'torch = "2.1"')
    project.ok("create", "tiny")
    assert (value(project.prefix), extension.builds) == ("2.1", ["2.1", "2.2"])


def test_an_archive_without_static_metadata_names_the_line_to_write(project: Project, extension: Extension) -> None:
    project.edit(', requires = ["alpha>=1"]', "")
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "vision-1.0.tar.gz leaves its requirements to its code, which does not run without torch" in said
    assert 'isolation = false, requires = ["alpha>=1"] }`' in said
    assert extension.builds == []


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
    for fault, why in (
        ("raise ValueError('no compiler here')", "no compiler here"),
        (fetches, "Operation not permitted"),
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
        assert why in next(built_folder().glob("vision-*.log")).read_text()
        assert project.state()["state"] == "ready"
    backend.write_text(good)
    extension.pack()
    project.ok("update", "tiny")
    project.ok("create", "tiny")
    assert value(project.prefix) == "2.1"


@pytest.mark.long
def test_a_folder_and_a_commit_are_compiled_too(project: Project, extension: Extension) -> None:
    pyproject = extension.tree / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('version = "1.0"\n', 'dynamic = ["version"]\n'))
    backend = extension.tree / "backend" / "own_backend.py"
    text = backend.read_text().replace(
        '    if "version" in', '    project.setdefault("version", "1.5")\n    if "calls" in'
    )
    backend.write_text(text)
    folder = f'path = "{extension.tree}"'
    project.edit(REQUEST, f"vision = {{ {folder}, isolation = false }}")
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "only its build backend knows its requirements, and that does not run without torch" in said
    project.edit("isolation = false }", 'isolation = false, requires = ["alpha>=1"] }')
    project.ok("create", "tiny")
    assert (value(project.prefix), extension.builds) == ("2.1", ["2.1"])
    assert not (extension.tree / "build").exists()
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
        ('{ version = "*", build = true, isolation = false, cxx = 18 }', "`18` is none of 14, 17, 20, 23"),
        ('{ path = "../vision", editable = true, isolation = false }', "a folder with `editable`"),
    ):
        good = project.manifest.read_text()
        project.edit('alpha  = ">=1"', f"vision = {request}")
        ended = call("lock", "tiny")
        assert (ended.status != 0, why in " ".join(ended.err.split())) == (True, True), ended.err
        project.manifest.write_text(good)


def test_a_setup_py_is_recorded_and_compiles_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").touch()
    setup = (
        "from setuptools import Extension, setup\n"
        "setup(name='it', ext_modules=[Extension('it._C', ['a.cpp', 'b.cu'], extra_compile_args=ARGS)])\n"
    )
    words = [sys.executable, recorder]

    def recorded(text: str) -> object:
        (tmp_path / "setup.py").write_text(text)
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
        return yaml.safe_load(done.stdout.splitlines()[-1])

    flags = {"cxx": ["-O3"], "nvcc": ["-std=c++17"]}
    row = {"name": "it._C", "sources": ["a.cpp", "b.cu"], "missing": ["b.cu"], "flags": flags}
    assert recorded(setup.replace("ARGS", repr(flags))) == {"extensions": [row]}
    assert recorded("raise NotImplementedError('Cuda is not available')") == {
        "error": "NotImplementedError: Cuda is not available"
    }
    assert recorded("") == {"error": "it does not call setup"}
    loud = "import atexit, os\natexit.register(print, 'bye')\nos.system('echo of a program')\nprint('of python')\n"
    assert recorded(loud + setup.replace("ARGS", repr(flags))) == {"extensions": [row]}
