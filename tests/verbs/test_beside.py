"""A toolkit beside an environment that exists: `create --for`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.activation.changes import read_activation
from tenv.activation.levels import activated, deactivated
from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock
from tenv.targets.search import find_places
from tests.support.conda_project import Conda
from tests.support.fakes import MINORS, make_wheel
from tests.support.projects import Project, call, write_config
from tests.support.rarely import first_fast
from tests.support.redist import Server, serve_archives
from tests.support.shells import SPOKEN
from tests.support.small_torch import make_checkout
from tests.support.torches import ERROR_OLD, make_base, make_libraries, make_torch, make_venv, torch_files

DATA = Path(__file__).parent.parent / "data" / "redist"
EXTRAS = ("cccl", "crt", "cublas", "cufft", "curand", "cusolver", "cusparse", "nvjitlink", "nvml", "nvrtc", "nvtx")
CUDA_130 = torch_files("2.11.0+cu130", cuda="13.0", code=("80", "90"))


def make_toolkit(folder: Path, release: str) -> None:
    """Write the wheels of a toolkit, of CMake and of Ninja."""
    minor = ".".join(release.split(".")[:2])
    root, build = "nvidia/cu13", f"{minor}.48"
    number = f"{minor.replace('.', '0')}0"
    files: dict[str, dict[str, str | bytes]] = {
        "nvidia_cuda_runtime": {
            f"{root}/include/cuda_runtime_api.h": f"#define CUDART_VERSION {number}\n",
            f"{root}/include/cuda.h": "CUresult CUDAAPI cuInit(unsigned int Flags);\n",
            f"{root}/lib/libcudart.so.13": b"\x7fELF",
        },
        "nvidia_cuda_nvcc": {
            f"{root}/bin/nvcc": f"#!/bin/sh\necho 'Cuda compilation tools, release {minor}, V{build}'\n"
        },
        "nvidia_curand": {f"{root}/include/curand.h": "", f"{root}/lib/libcurand.so.10": b"\x7fELF"},
    }
    for name, members in files.items():
        make_wheel(folder, name, build, files=members)
    named = {"cudart": "nvidia-cuda-runtime", "nvcc": "nvidia-cuda-nvcc", "curand": "nvidia-curand"}
    extras = {extra: [f"{named[extra]}=={build}"] if extra in named else [] for extra in (*EXTRAS, *named)}
    make_wheel(folder, "cuda_toolkit", release, extras={**extras, "nvvm": [], "profiler": []})
    make_wheel(folder, "nvidia_nvjitlink", build)


@pytest.fixture
def beside(project: Project) -> Project:
    """A project with a `.venv` that has a torch, and an index with the toolkits of two CUDA releases."""
    folder = project.index.folder
    for release in ("13.0.3", "13.2.2"):
        make_toolkit(folder, release)
    real = {"cmake/data/bin/cmake": "#!/bin/sh\necho cmake\n", "cmake-4.1.0.data/scripts/cmake": "#!python\nstart\n"}
    make_wheel(folder, "cmake", "4.1.0", files=real)
    make_wheel(folder, "ninja", "1.13.0", files={"ninja-1.13.0.data/scripts/ninja": "#!/bin/sh\necho ninja\n"})
    project.manifest.unlink()
    (project.folder / "manifests/base.toml").write_text('platforms = ["linux-64"]\n')
    site = make_venv(project.folder / ".venv", make_base(project.folder / "base"))
    make_torch(site, CUDA_130)
    make_libraries(site)
    (site / "torch-2.11.0.dist-info/RECORD").write_text("torch/version.py,,\n")
    return project


def site_of(project: Project) -> Path:
    return next((project.folder / ".venv").glob("lib/python3*/site-packages"))


def prefix_of(project: Project) -> Path:
    return project.folder / ".tenv/envs/venv"


def environment(project: Project, before: dict[str, str]) -> dict[str, str]:
    return activated(before, read_activation(prefix_of(project) / "tenv-meta/activation.json"))


def test_the_toolkit_beside_a_venv_leaves_its_python_alone(beside: Project) -> None:
    preview = call("create", "auto", "--for", ".venv", "--dry-run", "--json")
    assert (preview.status, preview.data["for"]["cuda"]) == (0, "13.0")
    assert not (beside.folder / "manifests/venv.toml").exists()
    made = beside.ok("create", "auto", "--for", ".venv", "--json").data
    assert (made["target"], made["changed"], made["for"]["torch"]) == ("venv", True, "2.11.0+cu130")
    assert made["for"]["taken"] == ["cublas", "cufft", "cusolver", "cusparse", "nvjitlink", "nvrtc"]
    prefix, venv = prefix_of(beside), beside.folder / ".venv"
    before = {
        "PATH": f"{venv}/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(venv), "PYTHONHOME": "/x", "CUDA_HOME": "/old",
        "MAX_JOBS": "3", "CMAKE_PREFIX_PATH": "/theirs",
    }  # fmt: skip
    active = environment(beside, before)
    for name in ("VIRTUAL_ENV", "PYTHONHOME", "MAX_JOBS", "CMAKE_PREFIX_PATH", "PYTHONNOUSERSITE", "UV_CONSTRAINT"):
        assert active.get(name) == before.get(name), name
    assert shutil.which("python", path=active["PATH"]) == f"{venv}/bin/python"
    assert shutil.which("nvcc", path=active["PATH"]) == f"{prefix}/cuda/bin/nvcc"
    assert shutil.which("ninja", path=active["PATH"]) == f"{prefix}/tenv-meta/bin/ninja"
    cmake = Path(shutil.which("cmake", path=active["PATH"]) or "").resolve()
    assert cmake == next(prefix.glob("lib/python3*/site-packages/cmake/data/bin/cmake"))
    assert (active["CUDA_HOME"], active["_GLIBCXX_USE_CXX11_ABI"]) == (f"{prefix}/cuda", "1")
    assert active["TORCH_CUDA_ARCH_LIST"] == "8.0;9.0"
    assert 1 <= int(active["NVCC_THREADS"]) <= 4
    assert deactivated(active) == before
    include = prefix / "cuda/include"
    assert {
        name: (include / name).is_file() for name in ("cublas_v2.h", "cudnn.h", "curand.h", "cuda.h")
    } == dict.fromkeys(("cublas_v2.h", "cudnn.h", "curand.h", "cuda.h"), True)
    assert (include / "cublas_v2.h").resolve().is_relative_to(site_of(beside))
    assert (prefix / "cuda/lib64/libcublas.so").resolve() == site_of(beside) / "nvidia/cu13/lib/libcublas.so.13"
    for words in (("auto", "--for", ".venv"), ("venv",), ("--for", str(venv))):
        assert beside.ok("create", *words, "--json").data["changed"] is False
    assert beside.ok("verify", "venv", "--no-probes", "--json").data["integrity"]["extra"] == []
    assert beside.ran("run", "venv", "--", "sh", "-c", "command -v nvcc").out == f"{prefix}/cuda/bin/nvcc\n"
    assert "that of torch" in beside.ok("show", "venv").out
    beside.ok("lock", "venv", "--check")
    beside.ok("remove", "venv", "--yes")
    assert venv.is_dir()
    assert not prefix.exists()


@pytest.mark.parametrize("whole", first_fast([False, True]))
def test_another_torch_makes_it_stale(beside: Project, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    beside.ok("create", "--for", ".venv")
    shutil.rmtree(site_of(beside) / "torch-2.11.0.dist-info")
    make_torch(site_of(beside), torch_files("2.15.0+cu132", cuda="13.2", code=("80", "90")))
    [row] = beside.ok("list", "--json").data
    assert row["state"] == "stale"
    assert row["reason"].startswith("torch 2.11.0+cu130 of the environment beside (")
    assert (call("list", "--check").status, call("verify", "venv", "--no-probes").status) == (1, 1)
    assert call("lock", "venv", "--check").status == 7
    if not whole:
        return
    for words in (("env", "venv"), ("run", "venv", "--", "true"), ("activate", "venv", "--shell", "nushell")):
        assert beside.ran(*words).err.count("is stale: torch 2.11.0+cu130") == 1, words
    script = (prefix_of(beside) / "tenv-meta/activate.sh").read_text()
    assert "is stale: torch 2.11.0+cu130" in script
    assert call("activate", "venv", "--shell", "sh").err == ""  # the script reports it
    monkeypatch.setenv("TENV_LOCKED", "1")
    beside.fails(7, "environment-stale", "activate", "venv", "--shell", "sh")
    monkeypatch.delenv("TENV_LOCKED")
    assert beside.ok("create", "venv", "--json").data["changed"] is True
    assert [row["state"] for row in beside.ok("list", "--json").data] == ["ready"]
    assert "13.2" in (prefix_of(beside) / "cuda/version.json").read_text()
    library = site_of(beside) / "nvidia/cu13/include/cublas_v2.h"
    info = library.stat()
    library.write_text(library.read_text().replace("cublas", "CUBLAS"))
    os.utime(library, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert "cublas_v2.h has changed" in call("verify", "venv", "--no-probes").err
    shutil.rmtree(beside.folder / ".venv")
    assert call("list", "--json").data[0]["state"] == "stale"
    assert "is not there" in beside.fails(4, "torch", "create", "venv")
    assert "is not there" in beside.fails(4, "torch", "lock", "venv")
    assert "TE313" in call("check", "venv", "--build-only").out


def test_no_program_of_the_environment_is_run(beside: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    venv, ran = beside.folder / ".venv", beside.folder / "ran"
    for name in ("python", "python3", f"python{MINORS[0]}", "gcc", "g++", "nvcc", "uv"):
        (venv / "bin" / name).unlink(missing_ok=True)
        (venv / "bin" / name).write_text(f"#!/bin/sh\necho {name} $* >>{ran}\nexit 1\n")
        (venv / "bin" / name).chmod(0o755)
    (site_of(beside) / "sitecustomize.py").write_text(f"open({str(ran)!r}, 'a').write('imported')\n")
    monkeypatch.setenv("PATH", f"{venv}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    for words in (("create", "--for", ".venv"), ("create", "venv"), ("lock", "venv"), ("show", "venv"), ("list",)):
        beside.ok(*words)
    assert not ran.exists(), ran.read_text()


def test_a_torch_without_cuda_needs_cmake_and_ninja_alone(beside: Project) -> None:
    make_torch(site_of(beside), torch_files("2.11.0+cpu", cuda=None), abi=ERROR_OLD)
    made = beside.ok("create", "plain", "--for", ".venv/bin/python", "--json").data
    assert (made["target"], made["for"]["cuda"], made["for"]["taken"]) == ("plain", None, [])
    prefix = Path(made["prefix"])
    active = activated({"PATH": "/usr/bin"}, read_activation(prefix / "tenv-meta/activation.json"))
    assert not {"CUDA_HOME", "CUDACXX", "NVCC_THREADS", "TORCH_CUDA_ARCH_LIST"} & {*active}
    assert active["_GLIBCXX_USE_CXX11_ABI"] == "0"
    assert {path.name for path in (prefix / "tenv-meta/bin").iterdir()} == {"cmake", "ninja"}
    assert "plain" not in call("check", "auto", "--json").out


def test_an_environment_that_no_toolkit_can_be_made_for_is_named_in_one_sentence(beside: Project) -> None:
    site, base = site_of(beside), beside.folder / "base"
    (beside.folder / "folder").mkdir()
    make_venv(beside.folder / "empty", base)
    make_torch(make_venv(beside.folder / "rocm", base), torch_files("2.9.0+rocm6.4", cuda=None, hip="6.4"))
    make_torch(make_venv(beside.folder / "xpu", base), torch_files("2.9.0+xpu", cuda=None, xpu="20250101"))
    make_torch(make_venv(beside.folder / "old", base), torch_files("2.0.1+cu117", cuda="11.7"))
    make_torch(make_venv(beside.folder / "evil", base), torch_files("2.9\x1b[2J$(id)", cuda="12.8"))
    (site / "torch-2.9.1.dist-info").mkdir()
    for path, said in (
        ("nothing", "is not there"),
        ("folder", "is no wheel, no Python and no environment"),
        ("empty", "has no torch"),
        ("rocm", "is built for ROCm"),
        ("xpu", "is built for Intel's XPU"),
        ("old", "tenv makes toolkits from 11.8 on"),
        ("evil", "has no version of torch"),
        (".venv", "has several torches"),
    ):
        err = beside.fails(4, "torch", "create", "auto", "--for", path)
        assert said in err, path
        assert len(err.splitlines()) == 2, err
    assert [*(beside.folder / "manifests").iterdir()] == [beside.folder / "manifests/base.toml"]
    shutil.rmtree(site / "torch-2.9.1.dist-info")
    assert "is not for" in beside.fails(2, "usage", "create", "base", "--for", ".venv")
    assert "exclude each other" in call("create", "--for", ".venv", "--pytorch", "2.9").err


@pytest.mark.long
def test_nothing_is_taken_by_a_link_that_leads_out_or_from_a_folder_of_others(beside: Project, tmp_path: Path) -> None:
    site, outside = site_of(beside), tmp_path / "outside"
    shutil.move(site / "nvidia/cu13", outside)
    (site / "nvidia/cu13").symlink_to(outside)
    (site / "nvidia/cudnn/include").chmod(0o777)
    shown = call("create", "--for", ".venv", "--dry-run", "--json").data["for"]
    assert (shown["taken"], shown["parts"]) == ([], [])
    ended = beside.ok("create", "--for", ".venv")
    assert f"nothing is taken from {site}/nvidia/cu13: a link leads to {outside}" in ended.err
    include = prefix_of(beside) / "cuda/include"
    assert not (include / "cudnn.h").exists()
    assert not any(path.resolve().is_relative_to(site) for path in include.iterdir())


def test_a_huge_header_and_a_pipe_are_no_headers(beside: Project) -> None:
    include = site_of(beside) / "nvidia/cu13/include"
    os.mkfifo(include / "pipe.h")
    with (include / "huge.h").open("wb") as file:
        file.truncate(1 << 30)
    assert "huge.h is no header" in beside.fails(4, "torch", "create", "--for", ".venv")
    (include / "huge.h").unlink()
    version = site_of(beside) / "torch/version.py"
    with version.open("ab") as file:
        file.truncate(1 << 30)
    assert "has no version of torch" in beside.fails(4, "torch", "create", "--for", ".venv")


def test_before_cuda_13_the_compiler_is_of_archives(beside: Project, served: Server) -> None:
    site = site_of(beside)
    shutil.rmtree(site / "nvidia")
    for info in site.glob("nvidia_*"):
        shutil.rmtree(info)
    make_torch(site, torch_files("2.6.0+cu124", cuda="12.4"))
    shutil.rmtree(site / "torch-2.11.0.dist-info")
    make_libraries(site, split=True)
    served.files["/compute/cuda/redist/redistrib_12.4.1.json"] = (DATA / "cuda_redistrib_12.4.1.json").read_bytes()
    assert call("create", "old", "--for", ".venv").status == 6  # the archives themselves are not served
    rows = read_lock(beside.folder / "locks/old.lock", "old").archives[current_platform()]
    assert {row.release for row in rows} == {"12.4.1"}
    assert {"cuda_nvcc", "cuda_cudart", "libcurand", "cuda_cccl"} <= {row.name for row in rows}
    assert not {"libcublas", "libcusolver", "libcufft"} & {row.name for row in rows}
    beside.ok("lock", "old", "--check")


PARTS_OF_CONDA = (
    *("cuda-cccl", "cuda-cudart-dev", "cuda-nvcc", "cuda-nvml-dev", "cuda-nvrtc-dev", "cuda-nvtx-dev"),
    *("cuda-profiler-api", "libcublas-dev", "libcufft-dev", "libcurand-dev", "libcusolver-dev", "libcusparse-dev"),
    *("libnvjitlink-dev", "cuda-version"),
)


def test_beside_a_conda_prefix_the_toolkit_is_of_conda_packages(conda: Conda, tmp_path: Path) -> None:
    project, forge = conda.project, tmp_path / "forge"
    texts = torch_files("2.11.0", cuda="13.0", code=("90",))
    package = make_torch(tmp_path / "made", texts)
    site = f"lib/python{MINORS[0]}/site-packages"
    split = {name: text for name, text in texts.items() if name.startswith("torch/include/")}
    conda.make("pytorch", "2.11.0", files={f"{site}/{name}": text for name, text in texts.items() if name not in split})
    shared = {name.removeprefix("torch/"): text for name, text in split.items()}
    libc10 = (package / "lib/libc10.so").read_bytes()
    conda.make("libtorch", "2.11.0", files={**shared, "lib/libc10.so": libc10, "bin/python": "#!/bin/sh\nexit 9\n"})
    conda.lock("pytorch", "libtorch")
    conda.create("--prefix", str(forge))
    shutil.rmtree(forge / "tenv-meta")
    compiler = "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.48'\n"
    include = f"targets/{'x86_64' if current_platform() == 'linux-64' else 'sbsa'}-linux/include"
    named = {
        "cuda-nvcc": {"bin/nvcc": compiler, "bin/of-nvcc": "#!/bin/sh\n"},
        "cuda-cudart-dev": {
            f"{include}/cuda_runtime_api.h": "",
            f"{include}/cuda.h": "#define CUDA_VERSION 13000\n",
            f"{include.removesuffix('include')}lib/libcudart.so.13": "",
        },
    }
    for name in PARTS_OF_CONDA:
        conda.make(name, "13.0", files=named.get(name, {f"share/{name}": ""}))
    for name in ("cmake", "ninja"):
        conda.make(name, "3.31", files={f"bin/{name}": f"#!/bin/sh\necho {name}\n"})
    conda.channel.refresh()
    write_config(f'[mirrors]\n"https://conda.anaconda.org/conda-forge" = ["{conda.channel.root}"]\n')
    made = project.ok("create", "auto", "--for", str(forge), "--json").data
    assert (made["target"], made["for"]["torch"], made["python"]) == ("forge", "2.11.0", "")
    prefix = Path(made["prefix"])
    before = {"PATH": f"{forge}/bin:/usr/bin:/bin", "CONDA_PREFIX": str(forge), "CC": "theirs"}
    active = activated(before, read_activation(prefix / "tenv-meta/activation.json"))
    assert (active["CONDA_PREFIX"], active["CC"], active["_GLIBCXX_USE_CXX11_ABI"]) == (str(forge), "theirs", "1")
    found = {name: shutil.which(name, path=active["PATH"]) for name in ("python", "cmake", "nvcc", "of-nvcc")}
    own = f"{prefix}/tenv-meta/bin"
    assert found == {
        "python": f"{forge}/bin/python", "cmake": f"{own}/cmake", "nvcc": f"{own}/nvcc", "of-nvcc": None
    }  # fmt: skip
    assert "release 13.0" in subprocess.check_output([str(found["nvcc"])], text=True)
    assert deactivated(active) == before
    assert project.ok("create", "forge", "--json").data["changed"] is False
    read = call("check", "--torch", str(forge), "--build-only", "--json").data["torch"]
    assert (read["where"], read["prefix"], read["version"]["value"]) == ("conda", str(forge), "2.11.0")
    assert (read["cxx11_abi"]["value"], read["least_cxx"]["value"], read["gpu_code"]["value"]) == (True, 17, ["sm_90"])
    next((forge / "conda-meta").glob("pytorch-*.json")).unlink()
    assert [row["state"] for row in project.ok("list", "--json").data] == ["stale"]


def test_the_path_of_an_environment_is_text_in_a_manifest(beside: Project) -> None:
    name = 'it\'s "quoted" #\\'
    (beside.folder / ".venv").rename(beside.folder / name)
    call("create", "named", "--for", name, "--offline")
    target = find_places().find("named").manifest
    assert target.beside == str(beside.folder / name)
    assert json.dumps(target.description, ensure_ascii=False)
    assert "can name" in call("create", "--for", "a\nb").err


def test_an_export_has_the_environment_beside_or_names_what_it_lacks(beside: Project) -> None:
    beside.ok("create", "--for", ".venv")
    venv, out = beside.folder / ".venv", beside.folder / "out"
    python = f"{venv}/bin/python"
    for name in ("dockerfile", "devcontainer", "apptainer", "github-actions"):
        err = beside.fails(2, "format", "export", name, "venv", "-o", str(out))
        assert f"`venv` is a toolkit for the torch of {venv}, which a machine of {name} does not have" in err
        assert f"`tenv init venv-own --torch {venv}`" in err
    assert not out.exists()
    for name in ("requirements.txt", "pylock.toml", "environment.yml", "pixi"):
        lost = beside.ok("export", name, "venv", "-o", str(beside.folder / name / ""), "--json").data["lost"]
        [line] = [row for row in lost if row.startswith("`for`")]
        assert str(venv) in line, name
    notes = beside.ok("export", "vscode", "venv", "-o", str(beside.folder), "--json").data["notes"]
    assert f"`uv pip install --python {python} debugpy`" in notes[0]
    settings, launch, tasks = (
        (beside.folder / f".vscode/{name}.json").read_text() for name in ("settings", "launch", "tasks")
    )
    assert json.loads(settings)["python.defaultInterpreterPath"] == "${workspaceFolder}/.venv/bin/python"
    assert json.loads(settings)["python.terminal.activateEnvironment"] is True
    assert {row.get("program") for row in json.loads(launch)["configurations"] if row["type"] == "cppdbg"} == {
        "${workspaceFolder}/.venv/bin/python"
    }
    build = json.loads(tasks)["tasks"][0]["args"]
    assert (build[0], build[-3:]) == ("run", ["--no-build-isolation", "-v", "."])
    beside.ok("export", "clangd", "venv", "-o", str(beside.folder))
    assert f"{venv}/lib/python3.12/site-packages/torch/include" in (beside.folder / ".clangd").read_text()
    beside.ok("export", "direnv", "venv", "-o", str(beside.folder))
    checkout = beside.folder / "pytorch"
    make_checkout(checkout)
    err = beside.fails(2, "usage", "build", "venv", "--pytorch", str(checkout))
    assert f"`venv` is a toolkit for the torch of {venv}, and PyTorch itself is built in an environment of tenv" in err


def test_shells_have_the_variables_of_before_after_deactivation(beside: Project, tmp_path: Path) -> None:
    beside.ok("create", "--for", ".venv")
    made, venv = read_activation(prefix_of(beside) / "tenv-meta/activation.json"), beside.folder / ".venv"
    theirs = {
        "PATH": f"{venv}/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(venv), "CC": "my cc", "CUDA_HOME": "/old",
        "MAX_JOBS": "3", "PYTHONHOME": "", "NVCC_APPEND_FLAGS": "-O2", "HOME": "/nonexistent", "LANG": "C.UTF-8",
    }  # fmt: skip
    shells = {shell.name: shell for shell in SPOKEN if shell.program and shell.name in ("bash", "zsh", "fish", "dash")}
    assert "bash" in shells
    for name, shell in shells.items():
        folder = tmp_path / name
        folder.mkdir()
        steps = [shell.shot("before"), shell.activate(folder, "venv", made), shell.shot("active")]
        seen, said = shell.run(folder, [*steps, shell.deactivate(folder), shell.shot("after")], theirs)
        assert said == "", name
        active = {os.fsdecode(key): os.fsdecode(value) for key, value in seen["active"].items()}
        assert seen["after"] == seen["before"], name
        assert {key: active[key] for key in ("VIRTUAL_ENV", "CC", "MAX_JOBS", "PYTHONHOME")} == {
            key: theirs[key] for key in ("VIRTUAL_ENV", "CC", "MAX_JOBS", "PYTHONHOME")
        }, name
        assert active["CUDA_HOME"] == f"{prefix_of(beside)}/cuda", name
        assert shutil.which("python", path=active["PATH"]) == f"{venv}/bin/python", name


@pytest.mark.skipif(sys.platform == "win32", reason="owners of files")
def test_nothing_is_taken_that_another_user_can_write_or_a_link_brings(beside: Project, tmp_path: Path) -> None:
    """One file, one folder, one link below a folder of headers, each the only fault of it."""
    include, evil = site_of(beside) / "nvidia/cu13/include", tmp_path / "evil"
    (evil / "thrust").mkdir(parents=True)
    (evil / "cublas_v2.h").write_text("#error evil\n")
    header, deep = include / "cublas_v2.h", include / "nv/deep"
    kept = header.read_bytes()

    def open_file() -> None:
        header.chmod(0o666)

    def open_folder() -> None:
        deep.mkdir(parents=True)
        deep.chmod(0o777)

    def link_of_a_file() -> None:
        header.unlink()
        header.symlink_to(evil / "cublas_v2.h")

    def link_of_a_folder() -> None:
        (include / "thrust").symlink_to(evil / "thrust")

    def of_another_user() -> None:
        os.chown(header, 4711, 4711)

    made = (open_file, open_folder, link_of_a_file, link_of_a_folder, *((of_another_user,) if not os.geteuid() else ()))
    for make in made:
        make()
        ended = beside.ok("create", "--for", ".venv", "--dry-run", "--json")
        assert ended.data["for"]["taken"] == [], make.__name__
        assert str(site_of(beside) / "nvidia/cu13") not in ended.data["for"]["parts"], make.__name__
        header.unlink()
        header.write_bytes(kept)
        (include / "thrust").unlink(missing_ok=True)
        shutil.rmtree(include / "nv", ignore_errors=True)
    assert "cublas" in beside.ok("create", "--for", ".venv", "--dry-run", "--json").data["for"]["taken"]
    (site_of(beside) / "nvidia/a:b/include").mkdir(parents=True)
    (include / "loop").symlink_to("loop")
    open_file()
    made_of = beside.ok("create", "--for", ".venv")
    assert f"another user can write {header}" in made_of.err
    linked = prefix_of(beside) / "cuda/include"
    assert not any(path.resolve().is_relative_to(site_of(beside) / "nvidia/cu13") for path in linked.rglob("*"))


def test_a_machine_that_does_not_fit_is_about_extensions(beside: Project) -> None:
    call("create", "--for", ".venv", "--offline")
    manifest = beside.folder / "manifests/venv.toml"
    manifest.write_text(manifest.read_text().replace('glibc = "2.28"', 'glibc = "9.99"'))
    ended = call("create", "venv")
    assert ended.status == 4
    assert "error[unfit-host]: an extension can't be compiled with `venv` on this machine (TE502)" in ended.err


def test_records_of_a_terabyte_are_not_hashed(beside: Project) -> None:
    with next(site_of(beside).glob("torch-*.dist-info/RECORD")).open("wb") as file:
        file.truncate(1 << 40)
    assert "bytes of headers and records" in beside.fails(4, "torch", "create", "--for", ".venv")


@pytest.mark.long
@pytest.mark.skipif(current_platform() != "linux-64", reason="the made archives are of linux-64")
@pytest.mark.parametrize(("release", "torch"), [("11.8.0", "2.6.0+cu118"), ("12.4.1", "2.6.0+cu124")])
def test_a_toolkit_of_archives_is_created(beside: Project, served: Server, release: str, torch: str) -> None:
    site, minor = site_of(beside), release[:4]
    shutil.rmtree(site / "nvidia")
    for info in (*site.glob("nvidia_*"), site / "torch-2.11.0.dist-info"):
        shutil.rmtree(info)
    make_torch(site, torch_files(torch, cuda=minor, code=("80",)), abi=ERROR_OLD)
    serve_archives(served, release, DATA)
    made = beside.ok("create", "old", "--for", ".venv", "--no-check", "--json").data  # GCC may be too new for 11.8
    assert (made["for"]["cuda"], made["for"]["taken"]) == (minor, [])
    prefix = Path(made["prefix"])
    before = {"PATH": f"{beside.folder}/.venv/bin:/usr/bin:/bin", "VIRTUAL_ENV": "/theirs"}
    active = activated(before, read_activation(prefix / "tenv-meta/activation.json"))
    nvcc = shutil.which("nvcc", path=active["PATH"])
    assert f"release {minor}" in subprocess.check_output([str(nvcc)], text=True)
    home = Path(active["CUDA_HOME"])
    assert (home / "include/cuda_runtime_api.h").is_file()
    assert (home / "include/curand.h").is_file()
    assert (active["_GLIBCXX_USE_CXX11_ABI"], active["VIRTUAL_ENV"], active["TORCH_CUDA_ARCH_LIST"]) == (
        "0",
        "/theirs",
        "8.0",
    )
    assert deactivated(active) == before
    assert beside.ok("create", "old", "--no-check", "--json").data["changed"] is False
    assert beside.ok("verify", "old", "--no-probes", "--json").data["integrity"]["extra"] == []
