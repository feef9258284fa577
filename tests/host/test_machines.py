"""Whole machines, hand-made as folders: what the report says of each."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tenv.core import process
from tenv.host.collect import collect
from tenv.host.interface import Fact, Missing, OriginKind
from tenv.host.libstdcxx import defined_versions, linked_versions
from tenv.host.loader import Loader
from tenv.host.places import Places
from tenv.host.pythons import _is_script
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, to_json
from tenv.host.toolkit_ways import _started
from tests.host.builders import (
    HOSTS,
    FakeGpu,
    needs_compiler,
    nvml,
    pci,
    places,
    program,
    put,
    text,
)
from tests.support.each import each

T = TypeVar("T")

pytestmark = needs_compiler

A100 = FakeGpu("NVIDIA A100-SXM4-80GB", (8, 0), 81920, 0x20B210DE, "00000000:07:00.0", mig=0)
RTX3070 = FakeGpu("NVIDIA GeForce RTX 3070 Laptop GPU", (8, 6), 8192, 0x249D10DE, "00000000:01:00.0")
GTX1660 = FakeGpu("NVIDIA GeForce GTX 1660 Ti", (7, 5), 6144, 0x218210DE, "00000000:02:00.0")
ORIN = FakeGpu("Orin (nvgpu)", (8, 7), 0)
WSL = "5.15.167.4-microsoft-standard-WSL2\n"


def report(here: Places) -> HostReport:
    return collect(here, here.root / "envs")


def value(answer: Fact[Any] | Missing) -> str:
    """A value as text, or why it is missing."""
    return str(answer.value) if isinstance(answer, Fact) else answer.reason


def origin(answer: Fact[Any] | Missing) -> str:
    assert isinstance(answer, Fact)
    return answer.origin


def gpus(found: HostReport) -> list[tuple[str, str, int | None, str, bool]]:
    assert isinstance(found.gpus, Fact)
    return [
        (gpu.name, str(gpu.compute_capability or ""), gpu.memory and gpu.memory >> 20, gpu.pci_id, gpu.mig)
        for gpu in found.gpus.value
    ]


def module(root: Path, version: str) -> None:
    put(root / "sys/module/nvidia/version", f"{version}\n")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that are started."""
    started: list[str] = []
    run = process.run

    def watch(arguments: Any, **options: Any) -> Any:
        started.append(Path(arguments[0]).name)
        return run(arguments, **options)

    monkeypatch.setattr(process, "run", watch)
    return started


def test_server(tmp_path: Path, watched: list[str]) -> None:
    module(tmp_path, "535.183.01")
    library = nvml(tmp_path, driver="535.183.01", cuda=12020, gpus=[A100, A100])
    put(tmp_path / "proc/meminfo", "MemTotal:       2113407800 kB\n")
    found = report(places(tmp_path, library=library))
    assert (value(found.driver), origin(found.driver)) == ("535.183.01", "NVML")
    assert (value(found.cuda), origin(found.cuda)) == ("12.2", "NVML")
    assert gpus(found) == [("NVIDIA A100-SXM4-80GB", "8.0", 81920, "10de:20b2", False)] * 2
    assert found.memory == Fact(2113407800 << 10, "MemTotal of /proc/meminfo", OriginKind.SYSTEM)
    assert watched.count(Path(sys.executable).name) == 1  # one child for all three


def test_mig(tmp_path: Path) -> None:
    split = FakeGpu(A100.name, A100.capability, A100.mib, A100.id, A100.address, mig=1)
    found = report(places(tmp_path, library=nvml(tmp_path, gpus=[split])))
    assert gpus(found) == [("NVIDIA A100-SXM4-80GB", "8.0", 81920, "10de:20b2", True)]


def test_mig_by_smi(tmp_path: Path) -> None:
    program(tmp_path / "bin/nvidia-smi", f"cat '{HOSTS}/query-server.csv'")
    found = report(places(tmp_path))
    assert [row[-1] for row in gpus(found)] == [False, True]
    assert origin(found.gpus) == "nvidia-smi"


def test_laptop_with_a_second_graphics_chip(tmp_path: Path) -> None:
    pci(tmp_path, "0000:00:02.0", "0x9a60", vendor="0x8086")
    pci(tmp_path, "0000:01:00.0", "0x249d")
    module(tmp_path, "550.54.15")
    program(tmp_path / "bin/nvidia-smi", f"echo $0 >> {tmp_path}/log; cat '{HOSTS}/query-laptop.csv'")
    found = report(places(tmp_path))
    assert (value(found.driver), origin(found.driver)) == ("550.54.15", "nvidia-smi")
    assert gpus(found) == [("NVIDIA GeForce RTX 3070 Laptop GPU", "8.6", 8192, "10de:249d", False)]
    assert "libcuda: the loader finds no libcuda.so.1" in value(found.cuda)
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_laptop_before_its_driver_is_installed(tmp_path: Path, watched: list[str]) -> None:
    pci(tmp_path, "0000:01:00.0", "0x249d")
    found = report(places(tmp_path))
    assert gpus(found) == [("", "", None, "10de:249d", False)]
    assert isinstance(found.driver, Missing)
    assert watched == []


def test_two_different_gpus(tmp_path: Path) -> None:
    found = report(places(tmp_path, library=nvml(tmp_path, gpus=[RTX3070, GTX1660])))
    assert [row[:3] for row in gpus(found)] == [
        ("NVIDIA GeForce RTX 3070 Laptop GPU", "8.6", 8192),
        ("NVIDIA GeForce GTX 1660 Ti", "7.5", 6144),
    ]


def test_wsl2(tmp_path: Path) -> None:
    put(tmp_path / "proc/sys/kernel/osrelease", WSL)
    pci(tmp_path, "5d5b:00:00.0", "0x008e", vendor="0x1414", kind="0x030200")  # Microsoft's stand-in
    folder = tmp_path / "usr/lib/wsl/lib"
    nvml(folder, driver="571.96", cuda=12080, gpus=[RTX3070])
    found = report(places(tmp_path, library="libnvidia-ml.so.1"))
    assert found.wsl == Fact(True, "/proc/sys/kernel/osrelease, /dev/dxg", OriginKind.SYSTEM)
    assert (value(found.driver), value(found.cuda)) == ("571.96", "12.8")
    assert [row[1] for row in gpus(found)] == ["8.6"]


def test_wsl2_whose_driver_is_unwell(tmp_path: Path) -> None:
    put(tmp_path / "proc/sys/kernel/osrelease", WSL)
    pci(tmp_path, "5d5b:00:00.0", "0x008e", vendor="0x1414", kind="0x030200")
    program(tmp_path / "usr/lib/wsl/lib/nvidia-smi", "echo ERR!")
    found = report(places(tmp_path))
    assert "nvidia-smi: no driver version in `ERR!`" in value(found.driver)
    assert value(found.gpus).endswith("/sys/bus/pci/devices: under WSL, it does not show the GPU")


def test_jetson(tmp_path: Path) -> None:
    put(tmp_path / "etc/nv_tegra_release", "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref\n")
    put(tmp_path / "proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    put(tmp_path / "proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0")
    pci(tmp_path, "0000:01:00.0", "0x5008", vendor="0x1e95", kind="0x010802")
    found = report(places(tmp_path, machine="aarch64"))
    assert gpus(found) == [("NVIDIA Jetson AGX Orin Developer Kit", "8.7", None, "", False)]
    assert "Jetson Linux 35.4.1" in value(found.driver)
    assert value(found.platform).endswith("aarch64")


def test_jetson_with_nvml(tmp_path: Path) -> None:
    put(tmp_path / "proc/driver/nvidia/version", text("proc-unnumbered.txt"))
    library = nvml(tmp_path, driver="540.4.0", cuda=12060, gpus=[ORIN])
    found = report(places(tmp_path, library=library))
    assert (value(found.driver), value(found.cuda)) == ("540.4.0", "12.6")
    assert gpus(found) == [("Orin (nvgpu)", "8.7", None, "", False)]


def test_container_without_a_gpu(tmp_path: Path, watched: list[str]) -> None:
    put(tmp_path / ".dockerenv")
    put(tmp_path / "proc/self/cgroup", "0::/\n")
    put(tmp_path / "sys/fs/cgroup/memory.max", "4294967296\n")
    put(tmp_path / "sys/fs/cgroup/cpu.max", "100000 100000\n")
    put(tmp_path / "proc/meminfo", "MemTotal:       65536000 kB\n")
    pci(tmp_path, "0000:00:05.0", "0x1041", vendor="0x1af4", kind="0x020000")
    found = report(places(tmp_path))
    assert found.container == Fact("docker", "/.dockerenv", OriginKind.SYSTEM)
    assert found.gpus == Fact((), "/sys/bus/pci/devices", OriginKind.PCI)
    assert value(found.memory) == str(4 << 30)
    assert value(found.cores) == "1"
    for answer in (found.driver, found.cuda, found.compat):
        assert isinstance(answer, Missing)
    assert watched == []


def test_container_that_pretends_to_have_cuda(tmp_path: Path) -> None:
    found = report(places(tmp_path, CONDA_OVERRIDE_CUDA="12.4"))
    assert (value(found.cuda), origin(found.cuda)) == ("12.4", "CONDA_OVERRIDE_CUDA")


def test_container_in_which_only_the_kernel_tells_of_the_gpu(tmp_path: Path) -> None:
    put(tmp_path / ".dockerenv")
    put(tmp_path / "proc/driver/nvidia/version", text("proc-open.txt"))
    pci(tmp_path, "0000:07:00.0", "0x20b2", kind="0x030200")
    found = report(places(tmp_path))
    assert (value(found.driver), origin(found.driver)) == ("580.65.06", "/proc/driver/nvidia/version")
    assert gpus(found) == [("", "", None, "10de:20b2", False)]


def test_driver_and_library_of_different_versions(tmp_path: Path) -> None:
    module(tmp_path, "570.133.20")
    pci(tmp_path, "0000:01:00.0", "0x2182")
    program(tmp_path / "bin/nvidia-smi", f"cat '{HOSTS}/smi-mismatch.txt'; exit 18")
    library = nvml(tmp_path, init="return 18;")
    real = put(tmp_path / "usr/lib64/libcuda.so.570.124.06")
    (tmp_path / "usr/lib64/libcuda.so.1").symlink_to(real.name)
    found = report(places(tmp_path, library=library))
    assert (value(found.driver), origin(found.driver)) == ("570.133.20", "/sys/module/nvidia/version")
    assert gpus(found) == [("", "", None, "10de:2182", False)]
    assert value(found.cuda).startswith("NVML: RM has detected an NVML/RM version mismatch; libcuda: ")
    assert isinstance(found.compat, Fact)
    assert str(found.compat.value.version) == "570.124.06"


@pytest.mark.parametrize("init", ["return 9;", "abort();", "_exit(0);"])
def test_nvml_that_loads_and_fails_leaves_it_to_smi(tmp_path: Path, init: str) -> None:
    program(tmp_path / "bin/nvidia-smi", f"cat '{HOSTS}/query-laptop.csv'")
    found = report(places(tmp_path, library=nvml(tmp_path, init=init)))
    assert (value(found.driver), origin(found.gpus)) == ("550.54.15", "nvidia-smi")


def test_everything_hangs_and_the_report_comes(tmp_path: Path) -> None:
    library = nvml(tmp_path, init="for (;;) pause();")
    program(tmp_path / "bin/nvidia-smi", "exec sleep infinity")
    for name in ("gcc", "g++", "cc", "clang"):
        program(tmp_path / "bin" / name, "exec sleep infinity")
    put(tmp_path / "usr/local/cuda/bin/nvcc.profile")
    program(tmp_path / "usr/local/cuda/bin/nvcc", "exec sleep infinity")
    program(tmp_path / "sbin/ldconfig", "exec sleep infinity")
    pci(tmp_path, "0000:01:00.0", "0x2182")
    found = report(places(tmp_path, library=library, timeout=0.2))
    assert value(found.driver).count("gave no answer within 0.2 s") == 2
    assert gpus(found) == [("", "", None, "10de:2182", False)]
    assert found.compilers == Fact((), origin(found.compilers), OriginKind.SEARCH)


def test_a_child_that_can_not_be_killed_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a driver holds its caller inside the kernel; here, killing is put off."""
    stuck: list[Any] = []
    monkeypatch.setattr(process, "_send", lambda child, _: stuck.append(child))
    done = process.run([str(program(tmp_path / "stuck", "exec sleep infinity"))], timeout=0.2)
    assert isinstance(done, Missing)
    assert [child.poll() for child in stuck] == [None]
    for child in stuck:
        child.kill()
        child.wait()


def test_an_empty_folder_is_a_machine(tmp_path: Path) -> None:
    found = report(places(tmp_path))
    assert from_json(to_json(found)) == found


def test_this_machine() -> None:
    found = collect(Places(environ=dict(os.environ)), Path.cwd())
    assert from_json(to_json(found)) == found
    assert isinstance(found.cores, Fact)


READ = (
    *("proc/driver/nvidia/version", "sys/module/nvidia/version", "etc/nv_tegra_release", "proc/meminfo"),
    *("usr/local/cuda/version.json", "usr/local/cuda/version.txt", "usr/local/cuda/include/cuda_runtime_api.h"),
    *("usr/local/cuda/include/crt/host_config.h", "sys/bus/pci/devices/0000:01:00.0/vendor"),
    "proc/sys/kernel/osrelease",
)


@pytest.mark.parametrize("kind", ["a pipe", "a device without an end"])
def test_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    put(tmp_path / "usr/local/cuda/bin/nvcc.profile")
    for name in READ:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path) if kind == "a pipe" else path.symlink_to("/dev/zero")
    found = in_time(lambda: report(places(tmp_path)))
    assert isinstance(found.driver, Missing)
    assert found.driver.reason.count("is not a regular file") == 2


def in_time(question: Callable[[], T]) -> T:
    """Return an answer, or fail where none comes."""
    answers: list[T] = []
    thread = threading.Thread(target=lambda: answers.append(question()), daemon=True)
    thread.start()
    thread.join(60)
    return answers[0]


@each(
    "question",
    [Loader(Places())._fits, defined_versions, linked_versions, _started, lambda path: _is_script(str(path))],
)
def test_a_pipe_is_no_library_and_no_script(tmp_path: Path, question: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    answer = in_time(lambda: question(tmp_path / "pipe"))
    assert not answer or isinstance(answer, Missing) or answer == tmp_path / "pipe"


@each("name", ["PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "EBROOTCUDA", "CC", "CUDAHOSTCXX"])
def test_a_variable_names_what_can_not_be_looked_at(tmp_path: Path, name: str) -> None:
    # As a folder of another user does, a name that no file can have fails each look at it.
    folder = f"{tmp_path}/{'x' * 300}/bin"
    here = places(tmp_path, variables={name: f"{folder}:/bin" if name == "PATH" else folder})
    with pytest.raises(OSError, match="too long"):
        Path(folder).stat()
    toolkits = report(here).toolkits
    assert isinstance(toolkits, Fact)
    assert all(toolkit.problems for toolkit in toolkits.value)  # the variable names a folder that is not there
