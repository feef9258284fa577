"""Every archive target on the platforms that nobody here has: each archive of the shipped lock by its file name.

A server on this machine has NVIDIA's paths, and archives with the folders and names of NVIDIA's. They are fetched,
verified, unpacked and joined as on that platform, and what comes of it is looked at as CMake looks: by names.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tenv.activation.variables import derive
from tenv.core.progress import Silent
from tenv.core.versions import Version
from tenv.host.interface import Fact
from tenv.host.machine import BuildResources
from tenv.locks.lock import Archive
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.sources.archives.gathering import Gathering
from tenv.targets.search import find_places
from tenv.toolchain.cuda_folder import assemble
from tenv.toolchain.discover import Toolchain
from tests.support.archive_server import NVIDIA
from tests.support.projects import write_config
from tests.support.rarely import first_fast
from tests.support.redist import Server
from tests.support.redist_layout import archive_of, names_of

ROOT = Path(__file__).parent.parent.parent
TARGETS = (
    *("cuda117", "cuda118-archives", "cuda121-archives", "cuda124-archives"),
    *("cuda126-archives", "cuda128-archives", "cuda129-archives"),
)


def cases() -> list[tuple[str, str]]:
    return [
        (name, platform)
        for name in TARGETS
        for platform in read_lock(ROOT / "locks" / f"{name}.lock", name).platforms
        if platform != "linux-64"
    ]


def by_platform() -> list[tuple[str, str]]:
    """Return the cases so that the first ones have different platforms and eras."""
    rows = cases()
    return [row for start in range(4) for row in rows[start::4]]


def made(
    name: str, platform: str, prefix: Path, patch: pytest.MonkeyPatch
) -> tuple[Toolchain, list[Archive], list[str]]:
    """Put the archives of a shipped lock into a prefix as on a platform; return what was asked of the server, too."""
    windows = platform == "win-64"
    prefix.mkdir()
    rows = read_lock(ROOT / "locks" / f"{name}.lock", name).archives[platform]
    rows = tuple(row for row in rows if not row.features)
    files = {row.url.removeprefix(NVIDIA): archive_of(row, windows=windows) for row in rows}
    served = [
        replace(row, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        for row, data in zip(rows, files.values(), strict=True)
    ]
    with Server(files) as server:
        write_config(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
        if windows:  # to what unpacks and to what finds; the rest of Python stays as it is here
            for module in ("sources.archives.gathering", "toolchain.discover"):
                patch.setattr(f"tenv.{module}.sys", SimpleNamespace(platform="win32"))
        gathering = Gathering(Context(), prefix, served)
        gathering.start()
        gathering.settle()
        parts = tuple(dict.fromkeys(prefix / row.to for row in served))
        return assemble(prefix, platform, parts), served, server.paths()


@pytest.mark.parametrize(("name", "platform"), first_fast(by_platform(), several=True))
def test_the_archives_of_a_platform_become_one_toolkit(
    name: str, platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, windows = tmp_path / "env", platform == "win-64"
    found, rows, asked = made(name, platform, prefix, monkeypatch)
    assert sorted(asked) == sorted(row.url.removeprefix(NVIDIA) for row in rows)
    cuda = prefix / "cuda"
    assert (found.cuda, found.cudnn) == (cuda, cuda)
    assert found.nvcc == cuda / "bin" / ("nvcc.exe" if windows else "nvcc")
    release = Version(next(row.release for row in rows if row.release))
    assert found.cuda_version
    assert found.cuda_version.major_minor == release.major_minor
    sparse = [row for row in rows if row.name == "cusparselt"]
    assert found.cusparselt == (cuda if sparse else None)
    for row in rows:
        major = int(row.version.partition(".")[0])
        names = [one for one in names_of(row.name, windows=windows, major=major) if not one.startswith("NvTools")]
        assert [one for one in names if not (cuda / one).is_file()] == [], row.name
    broken = [path for path in cuda.rglob("*") if not path.exists()]
    assert broken == []
    if not windows:
        assert (cuda / "lib64" / "libcudart.so").resolve().name.startswith("libcudart.so.")
        assert (cuda / "lib" / "stubs" / "libcuda.so").resolve().is_relative_to(prefix / "opt" / "cuda" / "cuda_cudart")


def variables(name: str, platform: str, toolchain: Toolchain) -> dict[str, str]:
    manifest = find_places(ROOT).find(name).manifest.on(platform)
    machine = BuildResources(Fact(8, "cores"), Fact(16 << 30, "memory"))
    return {change.name: change.value for change in derive(manifest, toolchain, machine).changes if change.value}


def test_on_windows_no_file_is_there_twice_and_no_link_needs_a_privilege(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = tmp_path / "env"
    made("cuda126-archives", "win-64", prefix, monkeypatch)
    files = [path for path in (prefix / "cuda").rglob("*") if path.is_file() and path.name != "version.json"]
    assert len(files) > 50
    assert [path for path in files if path.is_symlink() or path.stat().st_nlink < 2] == []
    before = {path: path.stat().st_ino for path in files}
    parts = sorted({*(prefix / "opt" / "cuda").iterdir(), prefix / "opt" / "cudnn", prefix / "opt" / "cusparselt"})
    assemble(prefix, "win-64", parts)  # again, as each `create` does
    assert {path: path.stat().st_ino for path in files} == before


def test_a_file_system_without_hard_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuses)
    found, _, _ = made("cuda126-archives", "win-64", tmp_path / "env", monkeypatch)
    assert found.cuda
    assert (found.cuda / "lib" / "x64" / "cublas.lib").is_file()


@pytest.mark.parametrize(
    ("name", "there"), first_fast([("cuda118-archives", True), ("cuda121-archives", False)], several=True)
)
def test_nvtoolsext_of_windows_is_named_where_it_is_an_archive_of_its_own(
    name: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _, _ = made(name, "win-64", tmp_path / "env", monkeypatch)
    folder = tmp_path / "env" / "opt" / "cuda" / "nsight_nvtx" / "NvToolsExt"
    assert found.nvtx == (folder if there else None)
    values = variables(name, "win-64", found)
    assert values.get("NVTOOLSEXT_PATH") == (str(folder) if there else None)
    assert values["CUDA_PATH"] == values["CUDNN_ROOT"] == str(tmp_path / "env" / "cuda")


def test_the_license_is_named_before_nvidia_s_files_are_fetched(tmp_path: Path) -> None:
    said: list[str] = []

    class Heard(Silent):
        def say(self, sentence: str) -> None:
            said.append(sentence)

    rows = read_lock(ROOT / "locks" / "cuda117.lock", "cuda117").archives["linux-64"]
    elsewhere = [replace(row, url="https://example.org/a.tar.xz") for row in rows]
    Gathering(Context(progress=Heard()), tmp_path, elsewhere)
    assert said == []
    Gathering(Context(progress=Heard()), tmp_path, rows)
    assert len(said) == 1
    assert "under its license (https://docs.nvidia.com/cuda/eula/)" in said[0]
