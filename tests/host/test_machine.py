"""Machines are folders with the files of ``/proc`` and ``/sys`` that the probe reads."""

import os
from pathlib import Path

from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.machine import current_platform, glibc, probe, sees_gpu
from tests.support.each import each

GIB = 1 << 30
OWN_CORES = len(os.sched_getaffinity(0))
ALL = Fact(16 * GIB, "MemTotal of /proc/meminfo", OriginKind.SYSTEM)


def machine(root: Path, **files: str) -> Path:
    for name, text in {"proc/meminfo": "MemTotal:       16777216 kB\nMemFree: 1 kB\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_without_groups_the_whole_machine_counts(tmp_path: Path) -> None:
    found = probe(machine(tmp_path))
    assert found.cores == Fact(OWN_CORES, "sched_getaffinity", OriginKind.SYSTEM)
    assert found.memory == ALL


def test_a_limit_of_version_2_counts_also_when_an_outer_group_sets_it(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        **{
            "proc/self/cgroup": "0::/outer/inner\n",
            "sys/fs/cgroup/outer/memory.max": str(4 * GIB),
            "sys/fs/cgroup/outer/inner/memory.max": "max",
            "sys/fs/cgroup/outer/cpu.max": "100000 100000",
        },
    )
    found = probe(root)
    assert isinstance(found.memory, Fact)
    assert found.memory.value == 4 * GIB
    assert found.memory.origin.endswith("cgroup/outer")
    assert (found.memory.kind, found.cores.kind) == (OriginKind.CGROUP, OriginKind.CGROUP)
    assert found.cores.value == 1


def test_a_limit_of_version_1_counts(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        **{
            "proc/self/cgroup": "5:memory:/job\n4:cpu,cpuacct:/job\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(2 * GIB),
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
        },
    )
    found = probe(root)
    assert isinstance(found.memory, Fact)
    assert found.memory.value == 2 * GIB
    assert found.cores.value == OWN_CORES


@each("text", ["garbage", "0::", "0::/../../etc\n", ":::::"])
def test_odd_groups_do_no_harm(tmp_path: Path, text: str) -> None:
    assert probe(machine(tmp_path, **{"proc/self/cgroup": text})).memory == ALL


def test_no_meminfo_is_told(tmp_path: Path) -> None:
    assert probe(tmp_path).memory == Missing("/proc/meminfo has no MemTotal", ReasonKind.NONE)


def test_this_host_has_a_platform_and_a_c_library() -> None:
    assert current_platform() in ("linux-64", "linux-aarch64")
    assert isinstance(glibc(), Fact)


@each("device, seen", [("nvidia0", True), ("dxg", True), ("nvidiactl", False), ("null", False)])
def test_a_gpu_is_seen_by_its_device(tmp_path: Path, device: str, seen: bool) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / device).touch()
    assert sees_gpu(tmp_path) is seen
