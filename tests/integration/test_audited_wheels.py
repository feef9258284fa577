"""`tenv audit` on wheels with CUDA code: architectures as cuobjdump prints them, symbols and paths as readelf does.

Four ways to make device code: PyTorch's build of a CUDA 11.7 extension, one of CUDA 12.8 with a second library, code of
one architecture alone (sm_90a, sm_100a), and a library of NVIDIA's. The cuobjdump is that in Triton's wheel.
"""

import json
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration.bench import check
from tests.support.projects import call
from tests.support.readelf import as_readelf_shows

pytestmark = pytest.mark.real

CUOBJDUMP = (
    "triton==3.5.1",
    "triton-3.5.1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    "61413522a48add32302353fdbaaf92daaaab06f6b5e3229940d21b5207f47579",
)
AUDITED = {
    "torchvision==0.15.2": (
        "torchvision-0.15.2-cp311-cp311-manylinux1_x86_64.whl",
        "012ad25cfd9019ff9b0714a168727e3845029be1af82296ff1e1482931fa4b80",
        2,
    ),
    "torchaudio==2.8.0": (
        "torchaudio-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "776c0b4ba84b9e3ddf6304b9c47cd63549d7896a6f3d5184ece074cc3d76ed6b",
        2,
    ),
    "torchao==0.13.0": (
        "torchao-0.13.0-1-cp39-abi3-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
        "718568b158af481fdd6220165d3e336b7789ad8900ac40a07bf2212505e84491",
        4,
    ),
    "nvidia-nvjpeg-cu12==12.4.0.76": (
        "nvidia_nvjpeg_cu12-12.4.0.76-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "3888f10b32fbd58e80166c48e01073732d752fa5f167b7cb5b9615f1c6375a20",
        1,
    ),
}
"""File name, sha256, and how many of its libraries hold device code."""


def fetch(requirement: str, name: str, sha256: str, folder: Path) -> Path:
    """Fetch a wheel by its hash, whatever Python and system this one is."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    words = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"]
    for tag in re.findall(r"manylinux\w+x86_64", name):
        words += ["--platform", tag]
    check(
        [sys.executable, "-m", "pip", "download", "-q", "--require-hashes", *words, "-r", wanted, "-d", folder], folder
    )
    assert (folder / name).is_file(), [path.name for path in folder.iterdir()]
    return folder / name


@pytest.fixture(scope="module")
def cuobjdump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NVIDIA's own reader of fat binaries."""
    folder = tmp_path_factory.mktemp("cuobjdump")
    wheel = fetch(*CUOBJDUMP, folder)
    with zipfile.ZipFile(wheel) as archive:
        program = Path(archive.extract("triton/backends/nvidia/bin/cuobjdump", folder))
    wheel.unlink()
    program.chmod(0o755)
    return program


def as_cuobjdump_shows(cuobjdump: Path, library: Path) -> tuple[set[str], set[str]]:
    """Return the architectures of a library's machine code and PTX; the files in it are named after them."""
    found = []
    for option in ("-lelf", "-lptx"):
        listed = check([cuobjdump, option, library], library.parent) if is_fat(library) else ""
        found.append(set(re.findall(r"\.(sm_\d+[af]?)\.(?:cubin|ptx)$", listed, re.MULTILINE)))
    return found[0], found[1]


def is_fat(library: Path) -> bool:
    """Tell by its sections whether a library holds device code: cuobjdump ends with an error where it does not."""
    return "nv_fatbin" in check(["readelf", "-SW", library], library.parent)


@pytest.mark.parametrize("requirement", AUDITED)
def test_an_audit_says_what_cuobjdump_and_readelf_say(requirement: str, cuobjdump: Path, tmp_path: Path) -> None:
    name, sha256, with_code = AUDITED[requirement]
    wheel = fetch(requirement, name, sha256, tmp_path)
    rows = json.loads(call("audit", str(wheel), "--json").out)["data"]["files"]
    assert sum(bool(row["architectures"]) for row in rows) == with_code
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    elves = {path for path in unpacked.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"}
    assert {unpacked / row["path"] for row in rows} == elves
    for row in rows:
        cubin, ptx = as_cuobjdump_shows(cuobjdump, unpacked / row["path"])
        said = set(row["architectures"]), {text.replace("compute_", "sm_") for text in row["ptx"]}
        assert said == (cubin, ptx), row["path"]
        shown = as_readelf_shows(unpacked / row["path"])
        assert (row["libraries"], row["soname"]) == (list(shown.needed), shown.soname), row["path"]
        assert row["rpath"] == list(shown.runpath or shown.rpath), row["path"]
        assert {library: sorted(names) for library, names in row["symbols"].items()} == shown.versions, row["path"]
    shutil.rmtree(unpacked)
    wheel.unlink()
