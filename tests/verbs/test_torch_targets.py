"""A toolkit that follows torch: `cuda = "torch"`, `init --torch`, and `add torch` on a target of a fixed CUDA."""

from pathlib import Path

import pytest

from tenv.core.errors import UsageError
from tenv.core.versions import CondaRange, Range, Version
from tenv.facts.tables import load_facts
from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock
from tenv.targets.manifest import CondaRequest, Manifest, Requirements, WheelRequest
from tenv.targets.manifest_file import read_manifest
from tenv.targets.nearest_cuda import HostDriver
from tenv.targets.torch_cuda import follow, torch_cuda
from tenv.verbs.torch_target import NEWEST, manifest_text, torch_request
from tests.support.each import each
from tests.support.fakes import MINORS, make_wheel
from tests.support.projects import Project, call
from tests.support.rarely import first_fast
from tests.support.redist import Server, serve_archives
from tests.support.torches import make_base, make_torch, make_venv, torch_files

DATA = Path(__file__).parent.parent / "data" / "redist"
FACTS = load_facts()
ON_LINUX = "; sys_platform == 'linux'"
PARTS = ("cccl", "crt", "cublas", "cudart", "cufft", "curand", "cusolver", "cusparse", "nvcc", "nvjitlink", "nvml")
EXTRAS = (*PARTS, "nvrtc", "nvtx", "nvvm", "profiler")


def follows(project: Project, torch: str = "*", platforms: str = "") -> None:
    """Let the target of a project follow torch."""
    project.manifest.write_text(
        f'platforms = ["{platforms or current_platform()}"]\npython = "{MINORS[0]}.*"\n'
        f'[requirements]\ncuda = "torch"\nglibc = "2.28"\n[pypi-dependencies]\ntorch = "{torch}"\n'
    )


@pytest.fixture
def torches(project: Project) -> Project:
    """A project with an index of two torches with CUDA, and of the toolkits for them."""
    folder = project.index.folder
    for release, link in (("13.0.3", "13.0.88"), ("13.2.2", "13.2.86")):
        requires = {extra: [f"nvidia-nvjitlink=={link[:5]}*"] if extra == "nvcc" else [] for extra in EXTRAS}
        make_wheel(folder, "cuda_toolkit", release, extras=requires)
        make_wheel(folder, "nvidia_nvjitlink", link)
    make_wheel(folder, "nvidia_nvjitlink", "13.5.37")
    for version, release in (("2.14.1", "13.0.3"), ("2.15.0", "13.2.2")):
        make_wheel(folder, "torch", version, requires=[f"cuda-toolkit=={release}{ON_LINUX}", "nvidia-nvjitlink"])
    make_wheel(folder, "torch", "2.15.0+cpu")
    return project


def locked(project: Project) -> dict[str, str]:
    lock = read_lock(project.lock, "tiny")
    rows = {wheel.name: wheel.version for wheel in lock.wheels[lock.platforms[0]]}
    return {"cuda": lock.requirements["cuda"], **rows}


def test_the_toolkit_follows_torch(torches: Project) -> None:
    follows(torches, "2.14.*")
    shown = call("check", "tiny", "--build-only")
    assert "TE313" in shown.out
    assert "build: unknown" in shown.out
    torches.ok("lock", "tiny")
    old = {"cuda": "13.0", "torch": "2.14.1", "cuda-toolkit": "13.0.3", "nvidia-nvjitlink": "13.0.88"}
    assert locked(torches) == old
    torches.ok("lock", "tiny", "--check")
    assert "TE313" not in call("check", "tiny", "--build-only").out
    torches.edit("2.14.*", ">=2.14")
    torches.ok("lock", "tiny")
    assert locked(torches) == old
    torches.ok("update", "tiny", "torch")  # never 2.15.0+cpu, which is newer than 2.15.0
    assert locked(torches)["cuda"] == "13.2"
    assert {**locked(torches)} == {
        "cuda": "13.2", "torch": "2.15.0", "cuda-toolkit": "13.2.2", "nvidia-nvjitlink": "13.2.86"
    }  # fmt: skip
    torches.lock.unlink()
    assert "TE313" not in call("create", "tiny").err  # it locks the torch itself
    torches.ok("create", "tiny", "--no-check")  # uv takes 2.15.0+cpu for `==2.15.0`
    assert [*torches.prefix.glob("lib/python3*/site-packages/torch-2.15.0.dist-info")]


BEFORE_13 = (
    ("2.6.0", "12.4.127", "12.4.1"),
    ("2.4.1", "12.1.105", "12.1.1"),
    ("2.7.1", "12.6.77", "12.6.3"),
    ("2.10.0", "12.8.90", "12.8.1"),
)
"""Torches of the index, the CUDA runtime that each pins, its release; 2.5 is as 2.6, and 2.8 and 2.9 are as 2.10."""


@pytest.mark.parametrize(("torch", "runtime", "release"), first_fast(BEFORE_13, 0, several=True))
def test_before_cuda_13_the_toolkit_is_archives(
    torch: str, runtime: str, release: str, project: Project, served: Server
) -> None:
    cuda = release.rpartition(".")[0]
    make_wheel(project.index.folder, "nvidia_cuda_runtime_cu12", runtime)
    make_wheel(project.index.folder, "torch", torch, requires=[f"nvidia-cuda-runtime-cu12=={runtime}{ON_LINUX}"])
    serve_archives(served, release, DATA)
    follows(project, platforms="linux-64")
    project.ok("lock", "tiny")
    lock = read_lock(project.lock, "tiny")
    assert lock.requirements["cuda"] == cuda
    nvcc = next(row for row in lock.archives["linux-64"] if row.name == "cuda_nvcc")
    assert (nvcc.release, nvcc.part_of) == (release, "cuda")
    project.ok("lock", "tiny", "--check")
    if current_platform() == "linux-64":  # the made archives are of it
        project.ok("create", "tiny", "--no-check")
        assert f"release {cuda}" in project.run("run", "tiny", "--", "nvcc", "--version").out


def test_a_torch_without_cuda_is_nothing_to_follow(torches: Project) -> None:
    make_wheel(torches.index.folder, "torch", "2.16.0")
    follows(torches)
    assert "torch 2.16.0 on " in torches.fails(5, "no-solution", "lock", "tiny")


def test_a_manifest_without_torch_has_nothing_to_follow(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_text('platforms = ["linux-64"]\n[requirements]\ncuda = "torch"\n')
    with pytest.raises(Exception, match="no request for it"):
        read_manifest("t", path, lambda _: path)


def test_add_names_the_torch_of_the_target_s_cuda_and_its_edits(torches: Project) -> None:
    torches.manifest.write_text(
        f'platforms = ["linux-64", "win-64"]\npython = "{MINORS[0]}.*"\n[requirements]\ncuda = "13.0"\nglibc = "2.27"\n'
        '[pypi-dependencies]\ncuda-toolkit = { version = "13.0.2", extras = ["nvcc"] }\n'
    )
    before = torches.manifest.read_bytes()
    said = torches.fails(5, "no-solution", "add", "tiny", "torch")
    assert "the newest torch with CUDA 13.0 is 2.14.1" in said
    for line in (
        '[requirements]\n  glibc = "2.28"',
        '[platform.linux-64.pypi-dependencies]\n  torch = "2.14.*"   # on win-64 it is a CPU build',
        'cuda-toolkit = { version = "13.0.3", extras = ["nvcc"] }   # torch 2.14.1 requires ==13.0.3',
    ):
        assert line in said
    assert torches.manifest.read_bytes() == before
    assert "the newest torch with CUDA 13.0 is 2.14.1" in torches.fails(
        5, "no-solution", "add", "tiny", "torch==2.15.0"
    )
    torches.edit('cuda = "13.0"', 'cuda = "12.9"')
    said = torches.fails(5, "no-solution", "add", "tiny", "torch")
    assert "the default index has no torch with CUDA 12.9" in said


@each(
    "version, requires, platform, cuda",
    [
        ("2.15.0", ["cuda-toolkit[cublas]==13.2.2; platform_system == 'Linux'"], "linux-64", "13.2"),
        ("2.15.0", ["cuda-toolkit[cublas]==13.2.2; platform_system == 'Linux'"], "win-64", None),
        ("2.9.1", ["nvidia-cuda-runtime-cu12==12.8.90; platform_machine == 'x86_64'"], "linux-aarch64", None),
        ("2.9.1+cu126", [], "win-64", "12.6"),
        ("2.9.1+cpu", ["nvidia-cuda-runtime-cu12==12.8.90"], "linux-64", None),
        ("2.9.1", ["not a requirement !"], "linux-64", None),
    ],
)
def test_the_cuda_of_a_torch(version: str, requires: list[str], platform: str, cuda: str | None) -> None:
    assert torch_cuda(version, requires, platform, "3.12") == (Version(cuda) if cuda else None)


def test_a_target_of_conda_takes_the_parts_of_conda_forge() -> None:
    any_ = CondaRequest(CondaRange("*"))
    open_ = Manifest(
        "t", "t.toml", platforms=("linux-64",), requirements=Requirements(cuda_from="torch"),
        dependencies={"python": any_}, wheels={"torch": WheelRequest(Range("*"))},
    )  # fmt: skip
    found = follow(open_, Version("12.8"))
    assert str(found.dependencies["cuda-version"].version) == "12.8.*"
    assert {"cuda-nvcc", "cuda-cudart-dev", "libcurand-dev", "libcublas-dev"} <= set(found.dependencies)
    assert not found.archives
    assert follow(found, Version("13.0")).dependencies["cuda-version"] != found.dependencies["cuda-version"]
    assert follow(found, None) == open_


@each(
    "word, platform, torch, python, label",
    [
        ("2.14", "linux-64", "2.14.*", ">=3.10,<3.15", ""),
        ("2.14.1", "linux-aarch64", "2.14.1", ">=3.10,<3.15", ""),
        ("2.9+cu126", "linux-64", "2.9.*", ">=3.10,<3.15", "cu126"),
        ("2.9+cu128", "linux-64", "2.9.*", ">=3.10,<3.15", ""),
        ("2.9", "linux-aarch64", "2.9.*", ">=3.10,<3.15", "cu128"),
        ("2.15", "win-64", "2.15.*", ">=3.11,<3.16", "cu132"),
        ("2.99", "linux-64", "2.99.*", ">=3.11,<3.16", ""),
        ("2.9+cpu", "linux-64", "2.9.*", ">=3.10,<3.15", "cpu"),
        ("cpu", "linux-aarch64", "2.15.*", ">=3.11,<3.16", "cpu"),
    ],
)
def test_the_torch_that_a_word_means(word: str, platform: str, torch: str, python: str, label: str) -> None:
    found = torch_request(word, FACTS, platform, Path())
    assert (found.version, found.python, found.label) == (torch, python, label)


@each("word", ["2.1", "2.9+xpu", "2.9+rocm6.4", "nothing/here"])
def test_a_word_that_means_no_torch_for_cuda_or_cpus(word: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        torch_request(word, FACTS, "linux-64", tmp_path)


@pytest.mark.parametrize(
    ("driver", "beside", "torch"),
    [(None, False, "2.15.*"), ("580.65.06", False, "2.15.*"), ("550.54.14", False, "2.10.*"), (None, True, "2.14.*")],
)
def test_the_newest_torch_is_one_that_the_driver_runs(
    driver: str | None, beside: bool, torch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = HostDriver(Version(driver), windows=False) if driver else None
    monkeypatch.setattr(HostDriver, "detect", lambda: found)
    request = torch_request(NEWEST, FACTS, "linux-64", Path(), beside=beside)
    assert request.version == torch
    assert (driver or "there is no driver") in request.why


def test_init_names_the_torch_that_it_chose(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostDriver, "detect", lambda: None)
    said = project.ok("init", "ext", "--torch").err
    assert "note: torch 2.15: the newest that this tenv knows; there is no driver, and `--torch cpu` takes one" in said
    assert "note: torch" not in project.ok("init", "named", "--torch", "2.14").err


def test_a_target_has_the_torch_of_an_environment(tmp_path: Path) -> None:
    site = make_venv(tmp_path / ".venv", make_base(tmp_path / "base"))
    make_torch(site, torch_files("2.9.1+cu126", cuda="12.6"))
    request = torch_request(".venv", FACTS, "linux-64", tmp_path)
    assert (request.version, request.python, request.label) == ("2.9.1", "3.12.*", "cu126")
    make_torch(site, torch_files("2.9.1+cpu", cuda=None))
    request = torch_request(".venv", FACTS, "linux-64", tmp_path)
    assert (request.version, request.python, request.label) == ("2.9.1", "3.12.*", "cpu")


@each("version", ["2.16.0a0+git1234567", "2.16.0.dev20261101+cu132"])
def test_a_torch_that_no_index_has_can_t_be_asked_for(version: str, tmp_path: Path) -> None:
    site = make_venv(tmp_path / ".venv", make_base(tmp_path / "base"))
    make_torch(site, torch_files(version, cuda="13.2"))
    with pytest.raises(UsageError, match="is no release, so no index has it"):
        torch_request(".venv", FACTS, "linux-64", tmp_path)


def test_the_cuda_of_a_torch_of_another_index_is_in_its_version(torches: Project) -> None:
    make_wheel(torches.manifest.parent / "own", "torch", "2.9.1+cu130")
    follows(torches, "2.9.*")
    torches.edit('torch = "2.9.*"', 'torch = { version = "2.9.*", index = "own" }')
    index = '[[index]]\nname = "own"\nurl = "own"\nformat = "flat"\nexplicit = true\n'
    torches.manifest.write_text(torches.manifest.read_text() + index)
    torches.ok("lock", "tiny")
    assert (locked(torches)["torch"], locked(torches)["cuda"]) == ("2.9.1+cu130", "13.0")
    torches.ok("lock", "tiny", "--check")


def test_what_init_writes_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    for word, companions in (("2.9+cu126", {"torchvision", "torchaudio"}), ("2.14", {"torchvision", "torchaudio"})):
        request = torch_request(word, FACTS, "linux-64", tmp_path)
        text = manifest_text(request, FACTS, name="e", platform="linux-64", schema="s.json", beside=True)
        path.write_text(text)
        manifest = read_manifest("e", path, lambda _: path)
        assert manifest.requirements == Requirements(None, Version("2.28"), "torch")
        assert {"torch", "cmake", "ninja", "setuptools", *companions} <= set(manifest.wheels)
        assert [index.url for index in manifest.indexes] == (
            ["https://download.pytorch.org/whl/cu126"] if request.label else []
        )
    path.write_text(
        manifest_text(
            torch_request("cpu", FACTS, "linux-64", tmp_path),
            FACTS, name="e", platform="linux-64", schema="s.json", beside=False,
        )
    )  # fmt: skip
    manifest = read_manifest("e", path, lambda _: path)
    assert manifest.requirements == Requirements(None, Version("2.28"))
    assert [index.url for index in manifest.indexes] == ["https://download.pytorch.org/whl/cpu"]
    assert manifest.wheels["torch"].index == "pytorch-cpu"
    exact = torch_request("2.14.1", FACTS, "linux-64", tmp_path)
    with pytest.raises(UsageError, match=r"2\.14\.0 of the same minor has 0\.29\.0"):
        manifest_text(exact, FACTS, name="e", platform="linux-64", schema="s.json", beside=True)
