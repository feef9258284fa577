"""Parts of the build of a package against torch: its inputs, its folder, its limits, and a wheel that was kept."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenv.builds.extension_plan import job_limits
from tenv.builds.extension_record import recorded
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.versions import Range
from tenv.facts.tables import load_facts
from tenv.host.interface import Fact
from tenv.host.machine import BuildResources
from tenv.locks.lock import LockedTree, Wheel
from tenv.targets.manifest import WheelRequest
from tenv.verbs import torch_packages as verb
from tests.support.fakes import make_wheel

SDIST = LockedTree("vision", "1.0", ("3.12",), ("alpha>=1",), file="vision-1.0.tar.gz", digest="0" * 64, isolated=False)


def job_of(folder: Path, environ: dict[str, str], named: dict[str, str] | None = None) -> Any:
    """Return the parts of a job that the digest of a build reads."""
    said: list[str] = []
    return SimpleNamespace(
        context=SimpleNamespace(environ=environ, facts=load_facts, progress=SimpleNamespace(say=said.append)),
        said=said,
        manifest=SimpleNamespace(
            environment={name: SimpleNamespace(value=value) for name, value in (named or {}).items()}
        ),
        plan=SimpleNamespace(python=None, own_python=True, minor="3.12"),
        requests={"vision": SimpleNamespace(folder=folder)},
        lock=SimpleNamespace(conda={}),
        platform="linux-64",
        environment=None,
        target=SimpleNamespace(name="tiny"),
    )


def test_each_input_changes_the_digest_of_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "key_of_build", lambda inputs, *_: json.dumps(inputs, sort_keys=True))
    tool = tmp_path / "nvcc"
    tool.write_text("one")
    taken = SimpleNamespace(tools=[SimpleNamespace(name="cuda", files=[tool])])
    monkeypatch.setattr(verb, "take_from_machine", lambda *_: taken)
    facts = load_facts().torch_packages

    def key(
        environ: dict[str, str] | None = None,
        named: dict[str, str] | None = None,
        row: LockedTree = SDIST,
        folder: Path = tmp_path,
        package: str = "",
        **request: Any,
    ) -> str:
        asked = WheelRequest(Range("*"), **request)
        whole = {"PATH": str(tmp_path), **(environ or {})}
        return verb._key(job_of(folder, whole, named), verb._Package(row, asked, facts.find(package), "9.0"))

    base = key()
    names = ("CFLAGS", "CPATH", "LIBRARY_PATH", "CUDA_HOME", "CUDAHOSTCXX", "NVCC_CCBIN", "NVCC_PREPEND_FLAGS")
    switches = ("FLASH_ATTN_CUDA_ARCHS", "FORCE_CUDA", "MAMBA_FORCE_BUILD")
    for name in (*names, *switches):
        assert key({name: "1"}) != base, name
    assert (
        key({"CC": " ", "HOME": "/elsewhere"}).replace('"CC": " "', "") != ""
    )  # a blank compiler is looked up nowhere
    assert key({"HOME": "/elsewhere"}) == base
    assert key(named={"FORCE_CUDA": "0"}) not in (base, key(named={"FORCE_CUDA": "1"}))
    assert key(cxx=20) != base
    assert key(archs="9.0") != base
    assert key(package="flash-attn") != base
    tree = LockedTree("vision", "1.0", ("3.12",), (), path="../vision", isolated=False)
    other = tmp_path / "other"
    other.mkdir()
    link = tmp_path / "link"
    link.symlink_to(other)
    assert key(row=tree) != key(row=tree, folder=other) == key(row=tree, folder=link)
    tool.write_text("another one")
    assert key() != base


def test_a_kept_wheel_with_other_requirements_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_wheel(tmp_path, "vision", "1.0", requires=["beta"])
    kept = Wheel("vision", "1.0", made.name, "0" * 64, None, ("3.12",), path=str(made))
    manifest: Any = SimpleNamespace(wheels={"vision": WheelRequest(Range("*"), isolated=False)}, on=lambda _: manifest)
    monkeypatch.setattr(verb, "with_features", lambda _: manifest)
    monkeypatch.setattr(verb, "_archs", lambda _: ("9.0", ""))
    monkeypatch.setattr(verb, "_key", lambda *_: "key")
    monkeypatch.setattr(verb, "kept_build", lambda *_: kept)
    for taken in (None, kept):  # from the user's own store, and from a wheelhouse
        monkeypatch.setattr(verb, "from_wheelhouse", lambda *_, taken=taken: taken)
        job = job_of(tmp_path, {})
        job.target.manifest, job.compiled = None, [SDIST]
        with pytest.raises(EnvironmentBrokenError, match="vision requires beta, which its row in the lock lacks"):
            verb.build_packages(job)


def build_of(tmp_path: Path, row: LockedTree, **more: Any) -> Any:
    """Return a build of a package with some of its parts alone."""
    build = object.__new__(verb._Build)
    build._row, build._work, build._so, build._facts = row, tmp_path / "work", "", None
    for name, value in more.items():
        setattr(build, f"_{name}", value)
    return build


def test_a_folder_is_copied_without_what_its_builds_left_at_its_top(tmp_path: Path) -> None:
    original = tmp_path / "vision"
    kept = ("setup.py", "vision/build/kernel.cu", "vision/dist/a.py")
    gone = ("build/a.o", "dist/a.whl", "vision.egg-info/PKG-INFO", ".git/HEAD", "vision/__pycache__/a.pyc")
    for name in (*kept, *gone):
        (original / name).parent.mkdir(parents=True, exist_ok=True)
        (original / name).touch()
    tree = LockedTree("vision", "1.0", ("3.12",), (), path="../vision", isolated=False)
    build = build_of(tmp_path, tree, job=job_of(original, {}))
    with build._source() as folder:
        found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {*kept}


def test_a_tree_gets_wheels_of_its_build_requirements_and_keeps_its_torch(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[build-system]\nrequires = ["Torch>=2", "torch_tool", "ninja"]\n')
    ran: list[tuple[tuple[str, ...], str]] = []

    def run(*words: str, text: str, settings: object) -> Any:
        del settings
        ran.append((words, text))
        return SimpleNamespace(status=0)

    job = job_of(tmp_path, {})
    job.uv = SimpleNamespace(run=run, indexes=tuple)
    tree = LockedTree("vision", "1.0", ("3.12",), (), git="https://example.org/v.git", commit="0" * 40, isolated=False)
    build = build_of(tmp_path, tree, job=job, other=SimpleNamespace(prefix=tmp_path / "none"), python=Path("python"))
    build._install_needs(tmp_path)
    ((words, text),) = ran
    assert words[2:4] == ("--only-binary", ":all:")
    assert "torch_tool\n" in text
    assert "torch>=2" not in text.lower()


def test_only_a_package_with_gpu_code_must_have_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = SimpleNamespace(none=True, lacking=[], words="")
    monkeypatch.setattr(verb, "gpu_code", lambda *_: code)
    monkeypatch.setattr(verb, "inspect", lambda _: None)
    monkeypatch.setattr(verb, "open_tree", lambda _: None)
    package = SimpleNamespace(archs="9.0")
    build = build_of(tmp_path, SDIST, job=job_of(tmp_path, {}), has_cuda=True, has_gpu_code=False)
    build.package = package
    build._audit(Path("vision.whl"))
    build._has_gpu_code = True
    with pytest.raises(EnvironmentBrokenError, match="was compiled without GPU code"):
        build._audit(Path("vision.whl"))
    code.none, code.lacking, code.words = False, ["90"], "sm_80"
    with pytest.raises(EnvironmentBrokenError, match=r"has no GPU code for sm_90: vision\.whl has sm_80"):
        build._audit(Path("vision.whl"))
    build._has_cuda = False
    build._audit(Path("vision.whl"))


def test_wrong_limits_of_the_user_are_none() -> None:
    machine = BuildResources(Fact(8, ""), Fact(64 << 30, ""))
    for given, limits in (
        ({}, (8, 1)),
        ({"MAX_JOBS": "abc", "NVCC_THREADS": "x"}, (8, 1)),
        ({"MAX_JOBS": "2"}, (2, 4)),
        ({"MAX_JOBS": "2", "NVCC_THREADS": "1"}, (2, 1)),
        ({"MAX_JOBS": "0"}, (8, 1)),
        ({"MAX_JOBS": "99"}, (99, 1)),
    ):
        assert job_limits(None, machine, given, given) == limits, given
    assert job_limits(None, BuildResources(Fact(8, ""), Fact(7 << 30, "")), {}, {}) == (2, 1)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="the sandbox is of Linux")
def test_a_setup_py_that_ends_without_a_record_has_its_last_words(tmp_path: Path) -> None:
    for text, why in (
        ("import os, sys\nsys.stderr.write('no luck\\n')\nsys.stderr.flush()\nos._exit(3)\n", "no luck"),
        ("import os\nos._exit(3)\n", "it ended with status 3"),
    ):
        (tmp_path / "setup.py").write_text(text)
        assert recorded(Path(sys.executable), {}, tmp_path) == {"error": why}
