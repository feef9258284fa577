"""NVIDIA's files as archives: served from this machine in NVIDIA's layout, locked, unpacked, and found by PyTorch."""

import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.bench import PROJECTS, check, own_environment
from tests.integration.wheel_archives import from_wheel, pack
from tests.support.redist import Server, manifest

pytestmark = pytest.mark.real

NVIDIA = "https://developer.download.nvidia.com"
_MODULES = "TENV_TEST_PYTORCH_MODULES"
"""Names a folder with one folder of find modules for each revision of PyTorch, beside those that wheels carry."""

TORCH = (
    ("2.1.2", "macosx_11_0_arm64"),
    ("2.2.2", "macosx_11_0_arm64"),
    ("2.4.1", "macosx_11_0_arm64"),
    ("2.9.1", "macosx_11_0_arm64"),
    ("2.15.0", "macosx_14_0_arm64"),
)
"""Wheels whose find modules are used. They are the same for every system, and the wheels of macOS are the smallest."""

REPACKED = (
    # product, label, component, version in the manifest (none that the facts know), wheel, what of it
    ("cusparselt", "0.6.3", "libcusparse_lt", "0.6.3.99", "nvidia-cusparselt-cu12==0.6.3", "cusparselt"),
    ("cudnn", "9.10.2", "cudnn", "9.10.2.99", "nvidia-cudnn-cu12==9.10.2.21", "nvidia/cudnn"),
    # Of CUDA 13: the wheels of CUDA 12 have no nvcc.
    ("cuda", "13.0.99", "cuda_cudart", "13.0.96", "nvidia-cuda-runtime==13.0.96", "nvidia/cu13"),
    ("cuda", "13.0.99", "cuda_nvcc", "13.0.88", "nvidia-cuda-nvcc==13.0.88", "nvidia/cu13"),
    ("cuda", "13.0.99", "cuda_crt", "13.0.88", "nvidia-cuda-crt==13.0.88", "nvidia/cu13"),
    ("cuda", "13.0.99", "libnvvm", "13.0.88", "nvidia-nvvm==13.0.88", "nvidia/cu13"),
)

WANTED = """\
platforms = ["linux-64"]
[requirements]
cuda = "13.0"
[archives]
cusparselt = "0.6.3.99"
cudnn      = "9.10.2.99"
cuda       = { version = "13.0.99", components = ["cuda_crt", "cuda_cudart", "cuda_nvcc", "libnvvm"] }
magma      = { url = "URL/magma-cuda130-2.6.1-1.tar.bz2", sha256 = "SHA256" }
"""


def fetch(requirement: str, platform: str, folder: Path) -> Path:
    """Fetch a wheel of macOS with pip, which knows the index of this machine."""
    python = "3.12" if "2.15" in requirement else "3.11"
    words = ["--no-deps", "--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
    folder.mkdir(parents=True)
    words += ["--platform", platform, requirement, "-d", str(folder)]
    check([sys.executable, "-m", "pip", "download", "-q", *words], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Made:
    """An environment of archives.

    Attributes:
        folder: Where all is.
        prefix: The environment.
        environment: The variables that commands are started with.
        server: What the archives came from.
        talk: What `create` printed.
    """

    folder: Path
    prefix: Path
    environment: dict[str, str]
    server: Server
    talk: str

    def tenv(self, *words: str | Path) -> str:
        return check([sys.executable, "-m", "tenv", *words], self.folder / "project", self.environment)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, fetch_wheel: Callable[[str], Path]) -> Iterator[Made]:
    """A target of archives, locked, created."""
    from tests.support.redist import pack as pack_entries
    from tests.support.redist import regular

    folder = tmp_path_factory.mktemp("archives")
    files: dict[str, bytes | Path] = {}
    releases: dict[tuple[str, str], dict[str, dict[str, object]]] = {}
    for product, label, component, version, requirement, part in REPACKED:
        wheel = fetch_wheel(requirement)
        stem = f"{component}-linux-x86_64-{version}-archive"
        from_wheel(wheel, part, folder / stem)
        packed = folder / f"{stem}.tar.xz"
        pack(folder / stem, packed)
        path = f"{component}/linux-x86_64/{packed.name}"
        files[f"/compute/{product}/redist/{path}"] = packed
        with packed.open("rb") as raw:
            sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
        row = {"relative_path": path, "sha256": sha256, "size": str(packed.stat().st_size)}
        releases.setdefault((product, label), {})[component] = {"version": version, "linux-x86_64": row}
    for (product, label), components in releases.items():
        files[f"/compute/{product}/redist/redistrib_{label}.json"] = manifest(product, label, components)
    magma = pack_entries(
        "tar.bz2", [regular("include/magma.h", b"/* magma */"), regular("lib/libmagma.a", b"!<arch>\n")]
    )
    files["/magma-cuda130-2.6.1-1.tar.bz2"] = magma
    with Server(files) as server:
        project = folder / "project"
        (project / "manifests").mkdir(parents=True)
        text = WANTED.replace("URL", server.url).replace("SHA256", hashlib.sha256(magma).hexdigest())
        (project / "manifests" / "archived.toml").write_text(text)
        environment = own_environment(folder) | {"TENV_CACHE_DIR": str(folder / "cache"), "PWD": str(project)}
        environment |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        (folder / "config" / "tenv").mkdir(parents=True)
        (folder / "config" / "tenv" / "config.toml").write_text(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
        bare = Made(folder, project / ".tenv" / "envs" / "archived", environment, server, "")
        bare.tenv("lock", "archived")
        talk = bare.tenv("create", "archived")
        yield Made(folder, bare.prefix, environment, server, talk)
    shutil.rmtree(folder)


def modules() -> list[tuple[str, str]]:
    given = os.environ.get(_MODULES)
    names = [(path.name, "") for path in sorted(Path(given).iterdir()) if path.is_dir()] if given else []
    return [*TORCH, *names]


@pytest.mark.parametrize(("torch", "platform"), modules(), ids=lambda value: str(value) or "given")
def test_pytorch_finds_what_archives_bring(made: Made, torch: str, platform: str) -> None:
    home = made.folder / "modules" / torch
    if platform:
        wheel = fetch(f"torch=={torch}", platform, made.folder / "torch" / torch)
        home.mkdir(parents=True)
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(("FindCUSPARSELT.cmake", "FindCUDNN.cmake")):
                    (home / Path(name).name).write_bytes(archive.read(name))
        wheel.unlink()
        # No wheel has it, and it has been the same text since 2016; what it reads is MAGMA_HOME.
        assert {path.name for path in home.iterdir()} == {"FindCUSPARSELT.cmake", "FindCUDNN.cmake"}
    else:
        home = Path(os.environ[_MODULES]) / torch
    build = made.folder / "build" / torch
    words: list[str | Path] = ["cmake", "-S", PROJECTS / "archives", "-B", build, f"-DPYTORCH_MODULES={home}"]
    talk = made.tenv("run", "archived", "--", *words)
    found = dict(line[3:].split("=", 1) for line in talk.splitlines() if line.startswith("-- ") and "=" in line)
    cuda = made.prefix / "cuda"
    assert found["CUSPARSELT_VERSION"] == "0.6.3"
    assert found["CUDNN_VERSION"] == "9.10.2"
    assert found["CUDAToolkit_VERSION"] == "13.0.88"
    assert found["CUDAToolkit_BIN_DIR"] == str(cuda / "bin")
    assert found["CUSPARSELT_INCLUDE_PATH"] == str(cuda / "include")
    assert found["CUSPARSELT_LIBRARY_PATH"] == str(cuda / "lib" / "libcusparseLt.so")
    assert found["CUDNN_LIBRARY_PATH"] == str(cuda / "lib" / "libcudnn.so")


def test_programs_see_where_things_are(made: Made) -> None:
    rows = {row["name"]: row["value"] for row in json.loads(made.tenv("env", "archived", "--json"))["data"]}
    assert rows["CUDA_HOME"] == str(made.prefix / "cuda")
    assert rows["CUSPARSELT_ROOT"] == str(made.prefix / "cuda")
    assert rows["MAGMA_HOME"] == str(made.prefix / "opt" / "magma")
    assert "archived is ready" in made.talk


def test_a_second_environment_takes_the_files_from_the_store(made: Made) -> None:
    made.server.asked.clear()
    second = made.folder / "second"
    made.tenv("create", "archived", "--prefix", second)
    assert made.server.asked == []
    library = "opt/cusparselt/lib/libcusparseLt.so.0"
    assert (second / library).stat().st_size == (made.prefix / library).stat().st_size
