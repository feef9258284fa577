"""The targets made of conda packages: what their locks hold, and that every record in them is the channel's own.

They are held against the excerpt of the channels in tests/data; with TENV_TEST_CHANNELS set to a folder of whole
package lists (CHANNEL/PLATFORM/repodata.json), against those.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tenv.core.progress import Silent
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tenv.locks.lock import Lock
from tenv.locks.lock_features import features_of, take
from tenv.locks.lock_file import read_lock
from tenv.rattler_api.lockfile import read_records
from tenv.rattler_api.network import Network
from tenv.sources.conda.choose import Conda
from tenv.sources.interface import differences as unsatisfied
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.search import Place, SearchPath, find_places
from tests.support.channels import EXCERPT, Channels, differences, read_folder, records_of
from tests.support.each import each
from tests.support.projects import Project, call, write_config
from tests.support.redist import Server
from tests.support.trap import MENDED, TRAP, read_trap

ROOT = Path(__file__).parent.parent.parent
WHOLE = os.environ.get("TENV_TEST_CHANNELS", "")
LOCKED = ("cpu-1.10", "cuda102-win", "cuda118", "cuda121", "cuda124", "cuda126", "cuda128", "cuda129", "cuda133")

FEATURE = re.compile(r"^\[feature\..*?(?=^\[(?!feature)|\Z)", re.MULTILINE | re.DOTALL)
NVIDIA_PLATFORMS = {"linux-64": "linux-x86_64", "linux-aarch64": "linux-sbsa", "win-64": "windows-x86_64"}

CUDA_12_1 = {
    "cuda-cudart": "12.1.105",
    "cuda-cupti": "12.1.105",
    "cuda-nvcc": "12.1.105",
    "cuda-nvrtc": "12.1.105",
    "cuda-nvtx": "12.1.105",
    "libcublas": "12.1.3.1",
    "libcufft": "11.0.2.54",
    "libcufile": "1.6.1.9",
    "libcurand": "10.3.2.106",
    "libcusolver": "11.4.5.107",
    "libcusparse": "12.1.0.106",
    "libnvjitlink": "12.1.105",
}
"""The parts of CUDA 12.1.1, as conda-forge's own cuda-toolkit and cuda-libraries 12.1.1 name them."""


def shipped(name: str) -> Lock:
    return read_lock(ROOT / "locks" / f"{name}.lock", name)


def manifest(name: str) -> Manifest:
    return find_places(ROOT).find(name).manifest


def versions(name: str, platform: str = "linux-64") -> dict[str, str]:
    return {package.name: package.version for package in shipped(name).conda[platform]}


@pytest.fixture(scope="module")
def lists() -> Mapping[str, Any]:
    return read_folder(Path(WHOLE) if WHOLE else EXCERPT)


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Channels]:
    """The real package lists, or the excerpt of them, served."""
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    with Channels(read_folder(Path(WHOLE) if WHOLE else EXCERPT, ())) as served:
        write_config(served.settings())
        yield served


@each("name", LOCKED)
def test_every_record_of_a_lock_is_the_channel_s_own(name: str, lists: Mapping[str, Any]) -> None:
    lock, known = shipped(name), records_of(lists)
    checked = 0
    for platform in lock.platforms:
        for raw in read_records(lock.text, name, platform):
            assert raw.url in known
            assert differences(json.loads(raw.to_json()), known[raw.url]) == {}, raw.url
            checked += 1
    assert checked == sum(len(packages) for packages in lock.conda.values()) > 0


@each("name", LOCKED)
def test_a_lock_that_is_shipped_satisfies_its_manifest(name: str) -> None:
    data = call("lock", name, "--check", "--json")
    assert data.status == 0, data.err


@each("name", LOCKED)
def test_a_lock_names_no_mirror(name: str) -> None:
    text = (ROOT / "locks" / f"{name}.lock").read_text()
    assert "127.0.0.1" not in text
    urls = {line.split("conda: ")[1] for line in text.splitlines() if line.startswith("- conda: ")}
    assert urls
    assert all(url.startswith("https://conda.anaconda.org/") for url in urls)


def test_every_shipped_target_is_locked() -> None:
    assert [row["name"] for row in call("targets", "--json").data if not row["locked"]] == []


def test_every_target_has_a_page() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "targets").glob("*.md")} - {"index"}
    assert pages == {path.stem for path in (ROOT / "manifests").glob("[!_]*.toml")}


def test_all_of_cuda_in_cuda121_is_12_1() -> None:
    found = versions("cuda121")
    assert {name: found[name] for name in CUDA_12_1} == CUDA_12_1
    held = {name: version for name, version in found.items() if name.startswith("cuda-")}
    assert {name for name, version in held.items() if not version.startswith("12.1")} == {"cuda-cccl-impl"}
    assert {"magma-cuda121", "mkl-static", "mkl-include", "cudnn", "ninja"} <= set(found)
    assert found["gcc_impl_linux-64"].startswith("12.")
    assert found["cmake"] < "4"


@each(
    "name, cuda, nvcc, gcc, magma",
    [
        ("cuda124", "12.4", "12.4.", "12.", "libmagma"),
        ("cuda126", "12.6", "12.6.", "13.", "libmagma"),
        ("cuda128", "12.8", "12.8.", "14.", "libmagma"),
        ("cuda129", "12.9", "12.9.", "14.", "libmagma"),
        ("cuda133", "13.3", "13.3.", "14.", "libmagma"),
    ],
)
def test_cuda_of_one_minor_with_what_goes_with_it(name: str, cuda: str, nvcc: str, gcc: str, magma: str) -> None:
    found = versions(name)
    assert found["cuda-version"] == cuda
    assert found["cuda-nvcc"].startswith(nvcc)
    assert found["gcc_impl_linux-64"].startswith(gcc)
    assert {magma, "mkl-static", "mkl-include", "cmake", "ninja"} <= set(found)
    archives = {row.name for row in shipped(name).archives.get("linux-64", ())}
    assert "cudnn" in (archives if cuda == "13.3" else found)
    numbered = {"cuda-cudart", "cuda-cudart-dev", "cuda-cupti", "cuda-nvrtc", "cuda-nvtx"} & set(found)
    numbered |= {"libnvjitlink"} & set(found)  # the one that cuda-version leaves loose
    assert all(found[part].startswith(nvcc) for part in numbered), {part: found[part] for part in numbered}


def test_the_target_for_arm_servers_is_the_same_cuda() -> None:
    here, arm = versions("cuda129"), versions("cuda129", "linux-aarch64")
    parts = {
        "cuda-nvcc",
        "cuda-nvrtc-dev",
        "libcusolver-dev",
        "libcusparse-dev",
        "libcufile-dev",
        "cudnn",
    }
    assert {name: arm[name] for name in parts} == {name: here[name] for name in parts}
    assert arm["gxx_linux-aarch64"].startswith("14.")
    assert "mkl-static" not in arm
    assert "openblas" in arm


@each("name", ["cuda124", "cuda126", "cuda128", "cuda129", "cuda133"])
def test_what_pytorch_needs_of_cuda_12_is_in_the_lock(name: str) -> None:
    for platform in shipped(name).platforms:
        lacking = {
            "cuda-cudart-dev", "cuda-cupti-dev", "cuda-driver-dev", "cuda-nvml-dev", "cuda-nvrtc-dev", "cuda-nvtx",
            "cuda-profiler-api", "libcublas-dev", "libcufft-dev", "libcufile-dev", "libcurand-dev", "libcusolver-dev",
            "libcusparse-dev", "libnvjitlink-dev",
        } - set(versions(name, platform))  # fmt: skip
        assert not lacking


@each("name", ["cpu-1.10", "cuda118", "cuda121", "cuda124"])
def test_old_releases_are_locked_for_old_glibc(name: str) -> None:
    assert shipped(name).requirements["glibc"] == "2.17"
    for package in shipped(name).conda["linux-64"]:
        assert not package.name.startswith("sysroot_") or package.version == "2.17"


def test_the_other_targets_hold_what_they_are_for() -> None:
    cpu = versions("cpu-1.10")
    assert cpu["python"].startswith("3.8.")
    assert not any("cuda" in name for name in cpu)
    assert "0.11.3" in manifest("cpu-1.10").description
    windows = versions("cuda102-win", "win-64")
    assert {"vs2019_win-64", "mkl", "mkl-include", "ninja", "sccache"} <= set(windows)
    assert shipped("cuda102-win").requests["win-64"]["system"] == {"cuda-toolkit": ["10.2.*"]}
    legacy = {wheel.name: wheel.version for wheel in shipped("legacy").wheels["linux-64"]}
    assert (legacy["cmake"], legacy["numpy"], legacy["mkl"]) == ("3.14.4.post1", "1.16.6", "2019.0")
    assert {minor for wheel in shipped("legacy").wheels["linux-64"] for minor in wheel.python} == {"3.6"}
    assert manifest("legacy").environment["NO_CUDA"].text == "1"


@each("name, version", [("cuda118", "0.4.0.7"), ("cuda121", "0.5.2.1")])
def test_the_cusparselt_of_a_lock_is_that_of_the_facts(name: str, version: str) -> None:
    lock, table = shipped(name), load_facts().cusparselt
    assert set(lock.archives) == set(lock.platforms)
    for platform, archives in lock.archives.items():
        (archive,) = (row for row in archives if row.name == "cusparselt")
        known = [row for row in table.archives if row.version.text == version]
        row = next(row for row in known if row.platform == NVIDIA_PLATFORMS[platform])
        assert (archive.name, archive.version, archive.trust) == ("cusparselt", version, "facts")
        assert (archive.url, archive.sha256, archive.size) == (row.url, row.sha256, row.size)
    paired = table.for_cuda(Version(lock.requirements["cuda"]))
    assert paired
    assert paired.version.text == version


def test_cuda121_is_locked_the_same_when_nvidia_s_own_list_is_there(
    real: Channels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    shutil.copytree(ROOT / "manifests", project / "manifests")
    for path in (project / "manifests").glob("*.toml"):  # the wheels of features are not to be had here
        path.write_text(
            re.sub(r"^\[feature\..*?(?=^\[(?!feature)|\Z)", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        )
    (project / "locks").mkdir()
    shutil.copy(ROOT / "locks" / "cuda121.lock", project / "locks")
    text = (ROOT / "tests" / "data" / "redistrib_0.5.2.json").read_bytes()
    listed_at = "/compute/cusparselt/redist/redistrib_0.5.2.json"
    monkeypatch.chdir(project)
    monkeypatch.setenv("PWD", str(project))
    with Server({listed_at: text}) as server:
        write_config(f'{real.settings()}"https://developer.download.nvidia.com" = ["{server.url}"]\n')
        ended = call("update", "cuda121", "cusparselt", "--json")
        assert ended.status == 0, ended.err
        assert server.paths() == [listed_at]
    ours, own = read_lock(project / "locks" / "cuda121.lock", "cuda121"), take(shipped("cuda121"))
    assert (ours.archives, ours.conda) == (own.archives, own.conda)
    listed = json.loads(text)["libcusparse_lt"]["linux-x86_64"]
    (archive,) = take(shipped("cuda121")).archives["linux-64"]
    assert (listed["sha256"], int(listed["size"])) == (archive.sha256, archive.size)


@pytest.mark.parametrize("name", ["cuda118", "cuda121", "cuda124", "cuda126", "cuda128", "cuda129", "cuda133"])
def test_a_target_is_solved_from_the_records_as_it_is_shipped(name: str, real: Channels, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(ROOT / "manifests", project / "manifests")
    places = SearchPath(project, (Place(find_places(ROOT).places[0].origin, project),), tmp_path)
    answer = Conda(Network(real.mirrors())).resolve(with_features(places.find(name).manifest), {}, Silent())
    chosen = {record.name: (record.version, record.build) for record in answer["linux-64"]}
    assert chosen == {package.name: (package.version, package.build) for package in shipped(name).conda["linux-64"]}


def test_the_toolkit_of_the_nvidia_channel_brings_another_nvcc_when_nobody_takes_care(
    real: Channels, tmp_path: Path
) -> None:
    answer = Conda(Network(real.mirrors())).resolve(read_trap(tmp_path), {}, Silent())
    found = {record.name: record.version for record in answer["linux-64"]}
    assert found["cuda-toolkit"] == "12.1.0"
    assert found["cuda-nvcc"].startswith("12.8.")


def test_such_a_toolkit_is_refused_and_what_is_said_mends_it(real: Channels, project: Project) -> None:
    project.manifest.write_text(TRAP)
    err = project.fails(5, "no-solution", "lock", "tiny")
    assert "TE301 cuda-nvcc 12.8.93 on linux-64: is from CUDA 12.8 in a CUDA 12.1 toolkit" in err
    assert "more (`--verbose` has all)" in err
    assert len(err.splitlines()) < 15
    assert err.endswith(
        'hint: put "conda-forge" above "nvidia" in `channels`, and cuda-version = "12.1.*" in [dependencies]: '
        "conda-forge's parts of CUDA then have one release\n"
    )
    assert "TE301 cuda-gdb 12.8" in call("lock", "tiny", "--verbose").err
    assert not project.lock.exists()
    project.manifest.write_text(MENDED)
    project.ok("lock", "tiny")
    found = {package.name: package.version for package in read_lock(project.lock, "tiny").conda["linux-64"]}
    assert (found["cuda-toolkit"], found["cuda-nvcc"]) == ("12.1.1", "12.1.105")


def test_static_mkl_of_intel_is_told_in_one_line(real: Channels, project: Project) -> None:
    project.manifest.write_text(
        'platforms = ["linux-64"]\nchannels = ["conda-forge", "intel"]\n'
        '[dependencies]\nmkl-static = { version = "2023.2.*", channel = "intel" }\n'
    )
    err = project.fails(5, "no-solution", "lock", "tiny")
    assert (
        "mkl-static 2023.2.0 of intel requires its own mkl-include, "
        "which conda-forge hides under strict channel priority"
    ) in err
    assert err.endswith('hint: add mkl-include = { channel = "intel" } to [dependencies]\n')


def test_intel_above_conda_forge_takes_over_python(real: Channels, project: Project) -> None:
    project.manifest.write_text(TRAP.replace('"nvidia", "conda-forge"', '"intel", "conda-forge"'))
    project.edit('cuda-toolkit = "12.1.*"', 'mkl-include = "2023.2.*"\nmagma-cuda121 = { channel = "pytorch" }')
    project.ok("lock", "tiny")
    lock = read_lock(project.lock, "tiny")
    assert {package.channel.rsplit("/", 1)[-1] for package in lock.conda["linux-64"]} == {"intel", "pytorch"}


@each("path", sorted((ROOT / "locks").glob("*.lock")))
def test_every_target_has_what_debugs_and_tests_it(path: Path) -> None:
    lock, target = read_lock(path, path.stem), manifest(path.stem)
    cuda = target.requirements.cuda
    known = cuda is not None and cuda <= Version("13.0") and any(name.startswith("linux") for name in lock.platforms)
    assert features_of(lock) == (("cuda-gdb", "debug", "test") if known else ("debug", "test"))
    for platform in lock.platforms:
        own = {row.name for key in ("conda", "wheels", "archives") for row in take(lock).files(key, platform)}
        debug, test, with_cuda = (
            {row.name for key in ("conda", "wheels", "archives") for row in take(lock, [name]).files(key, platform)}
            for name in ("debug", "test", "cuda-gdb")
        )
        assert own.isdisjoint({"debugpy", "pystack", "pytest", "triton", "gdb", "cuda_gdb"})
        assert "debugpy" in debug - own
        assert ("pystack" in debug) == (platform.startswith("linux") and path.stem != "legacy")
        assert {"pytest", "expecttest", "hypothesis", "psutil"} <= test - own
        assert ("lintrunner" in test) == (path.stem != "legacy")
        assert ("triton" in test) == (platform == "linux-64" and cuda is not None and cuda >= Version("11.8"))
        assert with_cuda - own == ({"cuda_gdb"} if known and platform.startswith("linux") else set())
        assert "cuda_gdb" not in debug  # which then needs no server of NVIDIA's
        assert ("gdb" in debug) == (
            platform == "linux-64" and path.stem in ("cuda124", "cuda126", "cuda128", "cuda129", "cuda133")
        )


@pytest.mark.long
@each("path", sorted((ROOT / "locks").glob("*.lock")))
def test_each_feature_alone_satisfies_its_manifest(path: Path) -> None:
    lock, target = read_lock(path, path.stem), manifest(path.stem)
    for names in ((), *((name,) for name in target.features)):
        assert unsatisfied(take(lock, names), with_features(target, names)) == []


@each("path", sorted((ROOT / "locks").glob("*.lock")))
def test_cuda_gdb_is_of_the_release_of_the_toolkit(path: Path) -> None:
    lock = read_lock(path, path.stem)
    for rows in lock.archives.values():
        releases = {row.release for row in rows if row.release}
        assert len(releases) <= 1
        for row in rows:
            assert row.name != "cuda_gdb" or row.version.startswith(f"{lock.requirements['cuda']}.")
