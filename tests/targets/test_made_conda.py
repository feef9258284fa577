"""A conda target created from made packages under the names, versions and dependencies of its shipped lock.

The packages are small, so this shows paths and variables, not the contents of the real ones.
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock
from tests.support.conda import Channel, make_conda, make_python
from tests.support.projects import HERE, Project, call, write_config
from tests.support.redist import Server, pack, regular

pytestmark = pytest.mark.skipif(current_platform() != "linux-64", reason="the target is for linux-64")

ROOT = Path(__file__).parents[2]
PART = "targets/x86_64-linux"
COMPILER = "bin/x86_64-conda-linux-gnu-"
_WHEELS_AND_FEATURES = re.compile(r"^\[(feature\..*|pypi-dependencies)\](?s:.*?)(?=^\[(?!feature)|\Z)", re.MULTILINE)
CONTENTS = {
    "cuda-cudart-dev_linux-64": {f"{PART}/include/cuda_runtime_api.h": "", f"{PART}/lib/libcudart.so": ""},
    "cuda-driver-dev_linux-64": {f"{PART}/include/cuda.h": "#define CUDA_VERSION 13030\n"},
    "cuda-nvcc-impl": {"nvvm/bin/cicc": "#!/bin/sh\n"},
    "cuda-nvcc-tools": {"bin/nvcc": "#!/bin/sh\n", "bin/ptxas": "#!/bin/sh\n"},
    "gcc_impl_linux-64": {f"{COMPILER}gcc": "#!/bin/sh\n"},
    "gxx_impl_linux-64": {f"{COMPILER}g++": "#!/bin/sh\n"},
    "libmagma": {"include/magma.h": "", "include/magma_v2.h": "", "lib/libmagma.so": ""},
    "mkl-include": {"include/mkl.h": ""},
    "mkl-static": {"lib/libmkl_core.a": ""},
    "nccl": {"include/nccl.h": "", "lib/libnccl.so": ""},
}
"""The files that tenv looks for, by the package that has them."""
FIND_MAGMA = """\
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so .a)
find_library(LIBRARY magma HINTS $ENV{MAGMA_HOME} /usr/local/magma PATH_SUFFIXES lib)
find_path(INCLUDE magma.h HINTS $ENV{MAGMA_HOME} /usr/local/magma PATH_SUFFIXES include)
message("${LIBRARY} ${INCLUDE}")
"""
"""The two searches that decide MAGMA_FOUND, by cmake/Modules/FindMAGMA.cmake of PyTorch 1.0 to the trunk of 2026."""


def _make(folder: Path, name: str, channel: str) -> None:
    """Make the packages of a channel that a shipped lock names, for the Python of the tests."""
    lock = read_lock(ROOT / "locks" / f"{name}.lock", name)
    for package in lock.conda["linux-64"]:
        if package.name == "python" or package.channel.rpartition("/")[2] != channel:
            continue
        depends = [one for one in package.depends if not re.match(r"python(_abi)?\b|__", one)]
        subdir = package.url.split("/")[-2]
        make_conda(
            folder,
            package.name,
            package.version,
            build=package.build,
            subdir=subdir,
            depends=depends,
            files=CONTENTS.get(package.name, {f"share/made/{package.name}": ""}),
            noarch="generic" if subdir == "noarch" else "",
        )


@pytest.mark.long
@pytest.mark.parametrize("name", ["cuda133"])
def test_a_target_of_conda_packages_is_created(
    name: str, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    for path in (ROOT / "manifests").glob("*.toml"):
        text = re.sub(
            r"^\[(feature\..*|pypi-dependencies)\](?s:.*?)(?=^\[(?!feature)|\Z)",
            "",
            path.read_text(),
            flags=re.MULTILINE,
        )
        (project.manifest.parent / path.name).write_text(text.replace('"3.12.*"', f'"{HERE}.*"'))
    shutil.rmtree(project.manifest.parent.parent / "locks", ignore_errors=True)
    cudnn = pack("tar.gz", [regular(f"cudnn/{name}") for name in ("include/cudnn.h", "lib/libcudnn.so.9")])
    with (
        Channel(tmp_path / "forge") as forge,
        Channel(tmp_path / "intel") as intel,
        Server({"/cudnn.tar.gz": cudnn}) as nvidia,
    ):
        for channel in ("conda-forge", "intel"):
            _make((forge if channel == "conda-forge" else intel).folder, name, channel)
        make_python(forge.folder)
        forge.refresh()
        intel.refresh()
        write_config(
            "[mirrors]\n"
            f'"https://conda.anaconda.org/conda-forge" = ["{forge.root}"]\n'
            f'"https://conda.anaconda.org/intel" = ["{intel.root}"]\n'
            f'"https://conda.anaconda.org/pytorch" = ["{intel.root}"]\n'
        )
        manifest = project.manifest.with_name(f"{name}.toml")
        file = f'{{ url = "{nvidia.url}/cudnn.tar.gz", sha256 = "{hashlib.sha256(cudnn).hexdigest()}", strip = 1 }}'
        manifest.write_text(re.sub(r"^(cudnn +=).*", rf"\1 {file}", manifest.read_text(), flags=re.MULTILINE))
        project.ok("lock", name)
        project.ok("create", name)
    shipped = read_lock(ROOT / "locks" / f"{name}.lock", name)
    locked = read_lock(project.manifest.parent.parent / "locks" / f"{name}.lock", name)
    features = {package.name for package in shipped.conda["linux-64"] if package.features}
    made = {(package.name, package.version) for package in locked.conda["linux-64"] if package.name != "python"}
    own = {(package.name, package.version) for package in shipped.conda["linux-64"] if package.name not in features}
    assert made <= own
    values = {row["name"]: row["value"] for row in project.ok("env", name, "--json").data}
    prefix = Path(values["CONDA_PREFIX"])
    for variable, file in {
        "MAGMA_HOME": "include/magma_v2.h",
        "MKLROOT": "include/mkl.h",
        "NCCL_ROOT": "include/nccl.h",
        "CUDNN_ROOT": "include/cudnn.h",
        "CUDA_HOME": "include/cuda_runtime_api.h",
    }.items():
        assert (Path(values[variable]) / file).is_file(), variable
    assert (prefix / "lib" / "libmagma.so").is_file()
    (tmp_path / "find.cmake").write_text(FIND_MAGMA)
    find = ["cmake", "-P", str(tmp_path / "find.cmake")]
    found = subprocess.run(find, env=values | {"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True)
    assert found.stderr.split() == [str(prefix / "lib" / "libmagma.so"), str(prefix / "include")]
    assert values["CUDAHOSTCXX"] == str(prefix / f"{COMPILER}g++")
    assert "all files are intact" in call("verify", name).err
