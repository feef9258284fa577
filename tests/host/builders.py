"""Machines made of folders: every probe looks below `root`, and nothing of the machine that runs the tests is seen."""

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenv.host.interface import Missing
from tenv.host.places import Places

__all__ = ["HOSTS", "FakeGpu", "library", "needs_compiler", "nvml", "pci", "places", "program", "put", "reason", "text"]

HOSTS = Path(__file__).parent / "hosts"
COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler to make a library with")

_NVML = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef struct {{ unsigned long long total, free, used; }} Memory;
typedef struct {{ char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; }} Pci;
static const struct {{ const char *name; int major, minor; unsigned long long memory; unsigned id; const char *bus_id;
                      int mig; int status; }} gpus[] = {{ {gpus} {{0}} }};
#define GPU (gpus[(size_t)handle - 1])
int nvmlInitWithFlags(unsigned flags) {{ (void)flags; {init} }}
int nvmlInit_v2(void) {{ return nvmlInitWithFlags(0); }}
int nvmlSystemGetDriverVersion(char *text, unsigned size) {{ strncpy(text, "{driver}", size); return 0; }}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {{ *version = {cuda}; return {cuda_status}; }}
int nvmlDeviceGetCount_v2(unsigned *count) {{ *count = {count}; return 0; }}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{{ *handle = (void *)(size_t)(index + 1); return gpus[index].status; }}
int nvmlDeviceGetName(void *handle, char *text, unsigned size) {{ strncpy(text, GPU.name, size); return 0; }}
int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{{ *major = GPU.major; *minor = GPU.minor; return 0; }}
int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) {{ memory->total = GPU.memory; return GPU.memory ? 0 : 3; }}
int nvmlDeviceGetPciInfo_v3(void *handle, Pci *pci)
{{ pci->id = GPU.id; strcpy(pci->bus_id, GPU.bus_id); return GPU.id ? 0 : 3; }}
int nvmlDeviceGetMigMode(void *handle, unsigned *now, unsigned *next)
{{ *now = *next = GPU.mig > 0; return GPU.mig < 0 ? 3 : 0; }}
const char *nvmlErrorString(int status)
{{ return status == 15 ? "GPU is lost" : status == 18 ? "Driver/library version mismatch" : status == 9
   ? "Driver Not Loaded" : "Not Supported"; }}
"""


@dataclass(frozen=True)
class FakeGpu:
    """A GPU of the fake NVML; `status` other than 0 is what opening it fails with, `mig` -1 means not supported."""

    name: str
    capability: tuple[int, int]
    mib: int
    id: int = 0
    address: str = ""
    mig: int = -1
    status: int = 0

    def row(self) -> str:
        major, minor = self.capability
        return (
            f'{{"{self.name}", {major}, {minor}, {self.mib}ull << 20, {self.id}, "{self.address}", '
            f"{self.mig}, {self.status}}},"
        )


def reason(answer: object) -> str:
    """Return why a probe has no answer, which it must not have."""
    assert isinstance(answer, Missing)
    return answer.reason


def text(name: str) -> str:
    return (HOSTS / name).read_text(encoding="utf-8")


def places(
    root: Path,
    *,
    library: str = "libtenv-has-no-such-library.so.1",
    timeout: float = 20.0,
    machine: str = "x86_64",
    variables: Mapping[str, str] | None = None,
    **more: str,
) -> Places:
    """A machine of which every part lies below `root`."""
    environ = {"PATH": str(root / "bin"), **(variables or {}), **more}
    return Places(root=root, library=library, timeout=timeout, environ=environ, machine=machine)


def put(path: Path, content: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def program(path: Path, script: str) -> Path:
    put(path, f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n").chmod(0o755)
    return path


def library(path: Path, source: str, *options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_compiled(source, options))
    path.chmod(0o755)
    return path


@functools.cache
def _compiled(source: str, options: tuple[str, ...]) -> bytes:
    """Return a library's bytes; the same one is compiled once for all tests of a process."""
    assert COMPILER is not None
    with tempfile.TemporaryDirectory() as folder:
        code, made = put(Path(folder, "library.c"), source), Path(folder, "library.so")
        subprocess.run([COMPILER, "-shared", "-fPIC", "-O0", "-o", made, code, *options], check=True)
        return made.read_bytes()


def nvml(
    folder: Path,
    *,
    init: str = "return 0;",
    driver: str = "580.65.06",
    cuda: int = 13000,
    cuda_status: int = 0,
    gpus: Sequence[FakeGpu] = (),
) -> str:
    """Make a fake of NVML's library and return its path."""
    rows = " ".join(gpu.row() for gpu in gpus)
    source = _NVML.format(init=init, driver=driver, cuda=cuda, cuda_status=cuda_status, count=len(gpus), gpus=rows)
    return str(library(folder / "libnvidia-ml.so.1", source))


def pci(root: Path, address: str, device: str, *, vendor: str = "0x10de", kind: str = "0x030000") -> None:
    """Put a device on the PCI bus."""
    for name, value in (("vendor", vendor), ("device", device), ("class", kind)):
        put(root / "sys/bus/pci/devices" / address / name, f"{value}\n")
