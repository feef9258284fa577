"""`cuda118-archives` as it is shipped, created from a server on this machine with NVIDIA's file names.

What differs from the shipped target is the sha256 and the size of each archive in its lock, since the bytes are others:
`tests/integration/debian_cuda.py` lists which.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenv.locks.lock import Archive
from tenv.locks.lock_file import read_lock
from tests.integration import debian, debian_cuda
from tests.integration.bench import PROJECTS, check, own_environment
from tests.integration.debian_cuda import Toolkit
from tests.integration.nvcc_program import check_cmake_links_the_same, check_program
from tests.integration.wheel_archives import from_wheel, pack
from tests.support.redist import Server, manifest

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="repacks programs of amd64"),
]

ROOT = Path(__file__).parent.parent.parent
TARGET = "cuda118-archives"
NVIDIA = "https://developer.download.nvidia.com"
WHEELS = {
    "cudnn": ("nvidia-cudnn-cu12==9.10.2.21", "nvidia/cudnn"),
    "cusparselt": ("nvidia-cusparselt-cu12==0.6.3", "cusparselt"),
}
"""The wheels whose files stand for those of an archive, of the versions that other tests here fetch too."""

MAGMA = """\
extends   = "cuda118-archives"
platforms = ["linux-64"]
python    = ">=3.11,<3.12"

[archives]
magma = {{ url = "{url}/magma-cuda118-2.6.2.tar.bz2", to = "opt/magma", strip = 1 }}
"""

OWN_FACTS = """\
[[archive]]
version       = "{row.version}"
platform      = "linux-x86_64"
{cuda}
relative_path = "{path}"
size          = {row.size}
sha256        = "{row.sha256}"
confirmed     = true
source        = "the server of this test"
"""


@dataclass(frozen=True)
class Made:
    """The environment of the target.

    Attributes:
        folder: Where all is.
        environment: The variables that commands are started with: a GCC that nvcc 11.8 takes among them.
        server: What the archives came from.
        debian: Debian's toolkit, in Debian's layout.
        compiler: The folder with GCC 11.
    """

    folder: Path
    environment: dict[str, str]
    server: Server
    debian: Path
    compiler: Path

    @property
    def project(self) -> Path:
        """The project that the target is in."""
        return self.folder / "project"

    def prefix(self, target: str = TARGET) -> Path:
        """Return the folder of a target's environment."""
        return self.project / ".tenv" / "envs" / target

    def tenv(self, *words: str | Path) -> str:
        """Run the command line, which must succeed, and return all that it printed."""
        return check([sys.executable, "-m", "tenv", *words], self.project, self.environment)

    def configure(self, target: str, build: Path, *options: str) -> dict[str, str]:
        """Configure the project of CMake in an environment, and return what it reported."""
        words: list[str | Path] = ["cmake", "-S", PROJECTS / "redist", "-B", build, *options]
        return reported(self.tenv("run", target, "--", *words))


def reported(talk: str) -> dict[str, str]:
    return dict(re.findall(r"^-- (\w+)=(.*)$", talk, re.MULTILINE))


def targets(values: dict[str, str]) -> dict[str, str]:
    """Return where each target of FindCUDAToolkit is, by its name."""
    return {name.removeprefix("CUDA__"): place for name, place in values.items() if name.startswith("CUDA__")}


def sha256(file: Path) -> str:
    with file.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()


def repack(rows: tuple[Archive, ...], made: Toolkit, wheels: dict[str, Path], folder: Path) -> dict[str, Path]:
    """Make every archive of a lock, under the path that NVIDIA's server has it at."""
    files = {}
    for row in rows:
        path = row.url.removeprefix(NVIDIA)
        file = folder / Path(path).name
        top = folder / file.name.removesuffix(".tar.xz")
        if row.name in wheels:
            from_wheel(wheels[row.name], WHEELS[row.name][1], top)
        else:
            (made.components / row.name).rename(top)
        pack(top, file)
        files[path] = file
    return files


def own_facts(lock: Path, folder: Path) -> str:
    """Write the user's facts of cuDNN and cuSPARSELt, since tenv's own know NVIDIA's bytes; return their setting."""
    files = []
    for row in read_lock(lock, TARGET).archives["linux-64"]:
        if row.name in WHEELS:
            path = row.url.partition("/redist/")[2]
            cuda = "cuda11" if "_cuda11" in path else ""
            file = folder / f"{row.name}.toml"
            file.write_text(OWN_FACTS.format(row=row, path=path, cuda=f'cuda = "{cuda}"' if cuda else ""))
            files.append(str(file))
    return os.pathsep.join(files)


def other_bytes(lock: str, rows: tuple[Archive, ...], files: dict[str, Path]) -> str:
    """Return a lock with the sha256 and the size of other bytes; nothing else in it changes."""
    for row in rows:
        file = files[row.url.removeprefix(NVIDIA)]
        assert lock.count(row.sha256) == lock.count(f"size: {row.size}\n") == 1, row
        lock = lock.replace(row.sha256, sha256(file)).replace(f"size: {row.size}\n", f"size: {file.stat().st_size}\n")
    return lock


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, fetch_wheel: Callable[[str], Path]) -> Iterator[Made]:
    """The target, created."""
    folder = tmp_path_factory.mktemp("redist")
    debs = debian_cuda.fetch(folder / "apt", check)
    toolkit = debian_cuda.lay_out(debs, folder)
    for name in debian_cuda.COMPILER:
        debian.unpack(debs[name], folder / "gcc", ["./usr/*"])
    debian.unpack(debs["libmagma-dev"], folder / "magma-deb", ["./usr/include/*", "./usr/lib/libmagma.a"])
    shutil.rmtree(folder / "apt")
    compiler = folder / "gcc" / "usr" / "bin"
    shipped = ROOT / "locks" / f"{TARGET}.lock"
    rows = tuple(row for row in read_lock(shipped, TARGET).archives["linux-64"] if not row.features)
    wheels = {name: fetch_wheel(requirement) for name, (requirement, _) in WHEELS.items()}
    files = repack(rows, toolkit, wheels, folder)
    project = folder / "project"
    for name in ("manifests", "locks"):
        (project / name).mkdir(parents=True)
    for name in ("_archives", TARGET):  # unchanged
        shutil.copy(ROOT / "manifests" / f"{name}.toml", project / "manifests")
    (project / "locks" / shipped.name).write_text(other_bytes(shipped.read_text(), rows, files))
    environment = {name: value for name, value in own_environment(folder).items() if not name.startswith("CUDA")}
    environment["TENV_FACTS"] = own_facts(project / "locks" / shipped.name, folder)
    environment |= {"TENV_CACHE_DIR": str(folder / "cache"), "PWD": str(project), "NO_PROXY": "127.0.0.1"}
    environment |= {
        word: str(compiler / f"x86_64-linux-gnu-{name}-11") for word, name in (("CC", "gcc"), ("CXX", "g++"))
    }
    with Server(files) as server:
        (folder / "config" / "tenv").mkdir(parents=True)
        (folder / "config" / "tenv" / "config.toml").write_text(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
        ready = Made(folder, environment, server, toolkit.debian, compiler)
        assert f"{TARGET} is ready in {ready.prefix()}" in ready.tenv("create", TARGET, "--locked")
        yield ready
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def ours(made: Made) -> dict[str, str]:
    """What CMake finds in the environment."""
    return made.configure(TARGET, made.folder / "build-cmake")


def test_the_manifest_and_all_of_the_lock_but_the_bytes_are_the_shipped_ones(made: Made) -> None:
    name = f"{TARGET}.toml"
    assert (made.project / "manifests" / name).read_bytes() == (ROOT / "manifests" / name).read_bytes()
    there = read_lock(ROOT / "locks" / f"{TARGET}.lock", TARGET)
    here = read_lock(made.project / "locks" / f"{TARGET}.lock", TARGET)
    assert (here.wheels, here.requirements) == (there.wheels, there.requirements)
    asked = {(row.name, row.version, row.url) for rows in there.archives.values() for row in rows}
    assert asked == {(row.name, row.version, row.url) for rows in here.archives.values() for row in rows}
    served = {path for path, _ in made.server.asked}
    assert len(served) == 21
    assert served == set(made.server.files)
    assert max(row.size or 0 for row in here.archives["linux-64"]) > 100_000_000  # none is a toy


def test_cmake_finds_every_target_that_it_finds_in_debian_s_toolkit(made: Made, ours: dict[str, str]) -> None:
    usr = made.debian / "usr"
    options = [f"-DCMAKE_PREFIX_PATH={usr}", f"-DCUDAToolkit_ROOT={usr}", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"]
    cmake = made.prefix() / "bin" / "cmake"
    words: list[str | Path] = [cmake, "-S", PROJECTS / "redist", "-B", made.folder / "build-debian", *options]
    bare = {name: value for name, value in made.environment.items() if not name.startswith(("CUDA", "CMAKE"))}
    theirs = targets(reported(check(words, made.folder, bare | {"PATH": f"{usr / 'bin'}:{bare['PATH']}"})))
    found = {name for name, place in theirs.items() if place.startswith(str(usr))}
    assert {"cudart_static", "cublasLt_static", "cufft_static_nocallback", "nvrtc", "cupti", "nppif"} <= found
    here = targets(ours)
    left_out = found - here.keys()
    assert left_out == {name for name in found if name.startswith(debian_cuda.LEFT_OUT)}
    prefix = str(made.prefix())
    assert {name for name, place in here.items() if not place.startswith((prefix, "place-NOTFOUND"))} == set()


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_pytorch_s_own_files_find_the_toolkit(made: Made, checkout: Path, *, static: bool) -> None:
    prefix, build = made.prefix(), made.folder / f"build-{static}"
    options = [f"-DPYTORCH_CMAKE={checkout}", f"-DCAFFE2_STATIC_LINK_CUDA={'ON' if static else 'OFF'}"]
    found = made.configure(TARGET, build, *options)
    assert found["CUDA_VERSION"] == "11.8"
    assert found["CUDAToolkit_VERSION"] == "11.8.89"
    assert found["CUDA_TOOLKIT_ROOT_DIR"] == str(prefix / "cuda")
    assert found["CUDNN_LIBRARY_PATH"] == str(prefix / "cuda" / "lib" / "libcudnn.so")
    assert found["CUSPARSELT_LIBRARY_PATH"] == str(prefix / "cuda" / "lib" / "libcusparseLt.so")
    made.tenv("run", TARGET, "--", "cmake", "--build", build)
    needed = set(
        re.findall(r"NEEDED.*\[(lib(?:cu|nv)[^\]]*)\]", check(["readelf", "-d", build / "librandom.so"], build))
    )
    assert needed == (set() if static else {"libcudart.so.11.0", "libcurand.so.10"})


def test_a_program_that_nvcc_alone_links_runs_outside_the_environment(made: Made, tmp_path: Path) -> None:
    def run(*words: str | Path) -> str:
        return made.tenv("run", TARGET, "--", *words)

    check_program(run, made.prefix(), tmp_path / "alone", "libcublas.so.11")
    check_cmake_links_the_same(run, tmp_path / "cmake")


@pytest.fixture(scope="module")
def with_magma(made: Made) -> str:
    """A target of the user's own that adds MAGMA to the shipped one; it is locked from what the server lists."""
    top, usr = made.folder / "magma-cuda118-2.6.2", made.folder / "magma-deb" / "usr"
    shutil.copytree(usr / "include", top / "include")
    (top / "lib").mkdir()
    with (usr / "lib" / "libmagma.a").open("rb") as library:
        (top / "lib" / "libmagma.a").write_bytes(library.read(1 << 20))
    archive = made.folder / f"{top.name}.tar.bz2"
    pack(top, archive)
    made.server.files[f"/{archive.name}"] = archive
    (made.project / "manifests" / "with-magma.toml").write_text(MAGMA.format(url=made.server.url))
    lock = read_lock(made.project / "locks" / f"{TARGET}.lock", TARGET)
    rows = lock.archives["linux-64"]
    listed: dict[str, dict[str, object]] = {}
    for row in rows:
        path = row.url.removeprefix(f"{NVIDIA}/compute/").partition("/redist/")[2]
        file = {"relative_path": path, "sha256": row.sha256, "size": str(row.size)}
        if row.name not in WHEELS:
            listed[row.name] = {"version": row.version, "linux-x86_64": file}
    made.server.files["/compute/cuda/redist/redistrib_11.8.0.json"] = manifest("cuda", "11.8.0", listed)
    return "with-magma"


def test_a_component_that_the_server_s_list_lacks_is_named(made: Made, with_magma: str) -> None:
    path = "/compute/cuda/redist/redistrib_11.8.0.json"
    whole = made.server.files[path]
    assert isinstance(whole, bytes)
    listed = json.loads(whole)
    del listed["libcufft"]
    made.server.files[path] = json.dumps(listed).encode()
    try:
        with pytest.raises(AssertionError, match=r"CUDA 11\.8\.0 lacks libcufft for linux-x86_64: "):
            made.tenv("lock", with_magma, "--trust-first-use")
    finally:
        made.server.files[path] = whole


def test_findmagma_finds_what_was_trusted_on_first_use(made: Made, with_magma: str, checkout: Path) -> None:
    assert "was trusted on first use: sha256 " in made.tenv("lock", with_magma, "--trust-first-use")
    made.tenv("create", with_magma, "--locked")
    found = made.configure(with_magma, made.folder / "build-magma", f"-DPYTORCH_CMAKE={checkout}")
    magma = made.prefix(with_magma) / "opt" / "magma"
    assert found["MAGMA_INCLUDE_DIR"] == str(magma / "include")
    assert found["MAGMA_LIBRARIES"] == str(magma / "lib" / "libmagma.a")
