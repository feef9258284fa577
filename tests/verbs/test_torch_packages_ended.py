"""Compiles against the target's torch that end early, and several of them: each is planned before the first begins."""

import os
import shutil
import signal
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from tenv.sources.wheels.sdist_builds import built_folder
from tests.support.projects import Project, call, finish, until
from tests.support.rarely import first_fast
from tests.support.torch_extension import REQUEST, Extension, value

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals as Linux has them")

KILLED = "c++: fatal error: Killed signal terminated program cc1plus"
FULL = "csrc/a.cpp:1: fatal error: error writing to /tmp/cc1.s: No space left on device"
FAULTS = (
    (f"print({KILLED!r}); raise SystemExit(1)", "the machine ran out of memory"),
    ("os.kill(os.getpid(), 9)", "was ended by signal 9"),
    ("os.kill(os.getppid(), 9)", "was ended by signal 9"),
    ("bytearray(1 << 50)", "the machine ran out of memory"),
    ("raise OSError(12, 'Cannot allocate memory')", "the machine ran out of memory"),
    (f"print({FULL!r}); raise SystemExit(1)", "the disk is full"),
    ("raise OSError(28, 'No space left on device')", "the disk is full"),
)


@pytest.fixture
def fault(project: Project, extension: Extension) -> Path:
    """A file that each build runs first, and an environment without the package, which the manifest asks for then."""
    file = extension.seen.with_name("fault.py")
    extension.run_first(file)
    project.edit(f"\n{REQUEST}", '\nalpha = "*"')
    project.ok("create", "tiny")
    project.edit('alpha = "*"', REQUEST)
    project.ok("lock", "tiny")
    return file


def check_goes_on(project: Project, fault: Path) -> None:
    """The environment is as it was, and the next `create` takes the folder of the one before, and a compile cache."""
    assert project.state()["state"] == "ready"
    assert "vision" not in project.state()["packages"]
    ccache = fault.with_name("ccache")
    ccache.write_text("#!/bin/sh\n")
    ccache.chmod(0o755)
    cached = f"os.environ['CMAKE_CUDA_COMPILER_LAUNCHER'] == {str(ccache)!r}"
    fault.write_text(f"assert os.path.exists('object') and {cached}")
    with mock.patch.dict(os.environ, {"PATH": f"{fault.parent}:{os.environ['PATH']}"}):
        assert "a second environment" not in project.ok("create", "tiny").err  # it is there
    assert value(project.prefix) == "2.1"


@pytest.mark.parametrize("faults", first_fast([FAULTS[1:6:2], FAULTS]), ids=len)
def test_a_compiler_without_memory_or_disk_is_named_and_the_next_create_goes_on(
    project: Project, fault: Path, faults: Sequence[tuple[str, str]]
) -> None:
    for text, why in faults:
        fault.write_text(f"open('object', 'w').close()\n{text}\n")
        said = " ".join(project.fails(8, "environment-broken", "create", "tiny").split())
        assert "vision 1.0 can't be compiled, and the environment is as it was" in said, text
        assert why in said, (text, said)
        assert "tenv build" not in said, text
    check_goes_on(project, fault)


@pytest.mark.parametrize("number", first_fast([signal.SIGINT, signal.SIGKILL], 0))
def test_a_signal_ends_the_compiler_and_the_next_create_goes_on(
    project: Project, fault: Path, number: signal.Signals
) -> None:
    running = fault.with_name("running")
    lines = ("open('object', 'w').close()", f"open({str(running)!r}, 'w').write(str(os.getpid()))", "import time")
    fault.write_text("\n".join((*lines, "time.sleep(600)\n")))
    child = project.start("create", "tiny")
    until(lambda: running.exists() and bool(running.read_text()))
    child.send_signal(number)
    ended = finish(child)
    compiler = Path("/proc") / running.read_text()
    until(lambda: not compiler.exists() or "Z" in (compiler / "stat").read_text().split()[2])
    if number is signal.SIGINT:
        assert ended.status == 130
        assert "error[cancelled]: interrupted\nhint: run the same command again to continue\n" in ended.err
    assert "Traceback" not in ended.err
    assert os.path.lexists(project.prefix)
    check_goes_on(project, fault)


def test_projects_with_targets_of_one_name_compile_beside_each_other(
    project: Project, fault: Path, tmp_path: Path
) -> None:
    running = fault.with_name("running")
    lines = ("import time", f"open({str(running)!r}, 'w').close()", "time.sleep(600)")
    fault.write_text("\n".join(lines) + "\n")
    child = project.start("create", "tiny")
    until(running.exists)
    fault.write_text("")
    shutil.copytree(project.folder, other := tmp_path / "other", ignore=shutil.ignore_patterns(".tenv"))
    manifest = other / project.manifest.relative_to(project.folder)
    manifest.write_text(manifest.read_text().replace("isolation", "cxx = 20, isolation"))
    ended = call("-C", str(other), "create", "tiny")
    child.send_signal(signal.SIGINT)
    assert finish(child).status == 130
    assert (ended.status, "waiting" in ended.err) == (0, False), ended.err
    assert value(other / ".tenv" / "envs" / "tiny") == "2.1"


def pack_beside(project: Project, extension: Extension, name: str, files: dict[str, str]) -> None:
    """Pack one more archive of the index, which the manifest asks for and which requires `vision`."""
    tree = extension.tree.with_name(name)
    shutil.rmtree(tree, ignore_errors=True)
    for path, text in {**files, "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    with tarfile.open(project.index.folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        archive.add(tree, f"{name}-1.0")
    line = REQUEST.replace("vision", name).replace("alpha>=1", "vision")
    project.edit(REQUEST, f"{REQUEST}\n{line}")


def test_each_package_is_planned_before_the_first_is_compiled(project: Project, extension: Extension) -> None:
    for name in ("xray", "zoom"):
        pack_beside(project, extension, name, {"setup.py": f"raise ValueError('no {name}')\n"})
    said = " ".join(project.fails(8, "environment-broken", "create", "tiny").split())
    assert "xray 1.0 is not compiled: its setup.py fails: ValueError: no xray; zoom 1.0 is not compiled: its" in said
    assert extension.builds == []


@pytest.mark.long
def test_a_package_is_compiled_after_and_beside_the_packages_that_it_requires(
    project: Project, extension: Extension
) -> None:
    backend = (extension.tree / "backend" / "own_backend.py").read_text().replace("import torch\n", "import vision\n")
    backend = backend.replace("torch.VERSION", "vision.VALUE").replace("vision.py", "aural.py")
    project_file = (extension.tree / "pyproject.toml").read_text().replace('name = "vision"', 'name = "aural"')
    project_file = project_file.replace('"alpha>=1", "beta; extra == \'dev\'"', '"vision"')
    files = {"backend/own_backend.py": backend, "pyproject.toml": project_file, "src/aural.py": ""}
    pack_beside(project, extension, "aural", files)
    project.ok("create", "tiny")
    assert extension.builds == ["2.1", "2.1"]
    (kept,) = built_folder().glob("*/aural-1.0-*.whl")
    shutil.rmtree(kept.parent)
    said = " ".join(project.ok("create", "tiny", "--prefix", str(extension.tree.with_name("second"))).err.split())
    assert "vision 1.0: taken as it was compiled before" in said
    assert "its import ends with" not in said
    assert extension.builds == ["2.1"] * 3


@pytest.mark.long
def test_another_value_in_the_manifest_compiles_the_package_of_an_environment_again(
    project: Project, extension: Extension
) -> None:
    project.ok("create", "tiny")
    good = project.manifest.read_text()
    assert "nothing to do" in project.ok("create", "tiny").err
    for number, text in enumerate(
        (
            f'{good}\n[activation.env]\nTORCH_CUDA_ARCH_LIST = "9.0"\n',
            good.replace("isolation", "cxx = 20, isolation"),
            good.replace("isolation", 'archs = "9.0", isolation'),
        ),
        2,
    ):
        project.manifest.write_text(text)
        project.ok("create", "tiny")
        assert len(extension.builds) == number, text
    project.manifest.write_text(good)
    assert "vision 1.0: taken as it was compiled before" in project.ok("create", "tiny").err
    assert "nothing to do" in project.ok("create", "tiny").err
    assert len(extension.builds) == 4
