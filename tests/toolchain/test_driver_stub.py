import ctypes
import hashlib
import itertools
import platform
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tenv.toolchain.driver_stub import STUB_ERROR, ProcessorFamily, declared_functions, stub_library
from tests.support.each import each

SONAME = "libcuda.so.1"
PAGE = 0x10000
LINKERS = ("bfd", *(name for name in ("gold", "lld") if shutil.which(f"ld.{name}")))

PROGRAM = """
int cuInit(unsigned int);
int cuMemAlloc_v2(void **, unsigned long);
int main(void) { void *p; return cuInit(0) == 34 && cuMemAlloc_v2(&p, 1) == 34 ? 0 : 1; }
"""

HEADER = r"""
/* CUresult CUDAAPI cuInBlockComment(void); */
// CUresult CUDAAPI cuInLineComment(void);
#define cuMemAlloc                          cuMemAlloc_v2
#define cuGraphInstantiate                  cuGraphInstantiateWithFlags
#define cuMemcpyHtoD                        __CUDA_API_PTDS(cuMemcpyHtoD_v2)
#if 1
    # define cuLaunchKernel \
        __CUDA_API_PTSZ(cuLaunchKernel)
#endif
#define CU_IPC_HANDLE_SIZE 64
#define cuuint64 cuuint64_t
typedef CUresult (CUDAAPI *PFN_cuInit)(unsigned int);
typedef void (CUDA_CB *CUhostFn)(void *userData);
CUresult CUDAAPI cuInit(unsigned int Flags);
__CUDA_DEPRECATED CUresult CUDAAPI cuCtxAttach(CUcontext *pctx, unsigned int flags);
CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize);
CUresult CUDAAPI
cuMemPoolImportFromShareableHandle(
    CUmemoryPool *pool_out);
CUresult CUDAAPI cuGLInit(void);
"""


class Load(NamedTuple):
    flags: int
    offset: int
    address: int
    size: int
    alignment: int


def host() -> ProcessorFamily:
    try:
        return ProcessorFamily(platform.machine())
    except ValueError:
        pytest.skip(f"no stub can be run on {platform.machine()}")


def tool(name: str) -> str:
    return shutil.which(name) or pytest.skip(f"{name} is not on PATH")


def many(count: int) -> list[str]:
    return [f"cuFunction{number}" for number in range(count)]


def exported(data: bytes) -> list[str]:
    """The names in .dynsym, read by way of the section headers."""
    first = struct.unpack_from("<Q", data, 40)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, first + 64 * number) for number in range(7)]
    symbols, strings = (next(s for s in sections if s[1] == kind and s[2]) for kind in (11, 3))
    table = data[strings[4] : strings[4] + strings[5]]
    starts = [struct.unpack_from("<I", data, symbols[4] + at)[0] for at in range(24, symbols[5], 24)]
    return [table[start : table.index(b"\0", start)].decode() for start in starts]


def loads(data: bytes) -> Iterator[Load]:
    for number in range(5):
        kind, flags, offset, address, _, size, _, alignment = struct.unpack_from("<IIQQQQQQ", data, 64 + 56 * number)
        if kind == 1:
            yield Load(flags, offset, address, size, alignment)


def link(folder: Path, linker: str, program: str, *flags: str) -> subprocess.CompletedProcess[str]:
    tool(f"ld.{linker}")
    (folder / "libcuda.so").write_bytes(stub_library(SONAME, ["cuInit", "cuMemAlloc_v2", *many(50)], host()))
    (folder / "main.c").write_text(program)
    options = [f"-fuse-ld={linker}", "-Wl,--no-undefined", "-Wl,--fatal-warnings", *flags]
    arguments = [tool("gcc"), "main.c", "-o", "main", *options, "-L.", "-lcuda"]
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)


@each("linker, flags", itertools.product(LINKERS, [("-fPIE", "-pie"), ("-fno-pie", "-no-pie")]))
def test_a_program_links_and_runs(tmp_path: Path, linker: str, flags: tuple[str, ...]) -> None:
    done = link(tmp_path, linker, PROGRAM, *flags)
    assert (done.returncode, done.stderr) == (0, "")
    dynamic = subprocess.run([tool("readelf"), "-d", "main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Shared library: [libcuda.so.1]" in dynamic.stdout
    (tmp_path / "libcuda.so").rename(tmp_path / SONAME)
    run = subprocess.run([tmp_path / "main"], env={"LD_LIBRARY_PATH": str(tmp_path)}, check=False)
    assert run.returncode == 0


@each("linker", LINKERS)
def test_a_function_that_the_stub_lacks_does_not_link(tmp_path: Path, linker: str) -> None:
    done = link(tmp_path, linker, PROGRAM.replace("cuInit", "cuNoSuchFunction"))
    assert done.returncode != 0
    assert "cuNoSuchFunction" in done.stderr


@each("machine, count", itertools.product(ProcessorFamily, [0, 1, 700]))
def test_readelf_has_nothing_to_say_against_it(tmp_path: Path, machine: ProcessorFamily, count: int) -> None:
    path = tmp_path / SONAME
    path.write_bytes(stub_library(SONAME, many(count), machine))
    arguments = [tool("readelf"), "-W", "-a", str(path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env={"LC_ALL": "C"})
    assert "Warning" not in done.stdout + done.stderr
    assert "Error" not in done.stdout + done.stderr
    assert f"Library soname: [{SONAME}]" in done.stdout
    assert done.stdout.count("FUNC    GLOBAL DEFAULT") == count


# The driver's headers declare some 700 functions; with 5000, .text lies beyond the first 64 KiB of the file.
@each("count", [1, 700, 5000])
def test_the_loader_finds_every_function(tmp_path: Path, count: int) -> None:
    path = tmp_path / f"libstub{count}.so"
    path.write_bytes(stub_library(path.name, many(count), host()))
    library = ctypes.CDLL(str(path))
    assert all(library[name]() == STUB_ERROR for name in many(count))
    assert not hasattr(library, "cuNoSuchFunction")


def test_the_error_is_that_of_a_stub_library() -> None:
    assert STUB_ERROR == 34


@each(
    "machine, digest",
    [
        (ProcessorFamily.X86_64, "15db24c37645c5d7e6007c5ea035ada8cb28d06bf7fdeca52be3f8cd2839824d"),
        (ProcessorFamily.AARCH64, "e81331d55feef7c105d17a48487cddf262a00fd079c0a6ca6483c0d30f663ec7"),
    ],
)
def test_the_bytes_are_the_same_everywhere(machine: ProcessorFamily, digest: str) -> None:
    data = stub_library(SONAME, ["cuInit", "cuMemAlloc", "cuMemAlloc_v2"], machine)
    assert hashlib.sha256(data).hexdigest() == digest


def test_order_and_repetition_do_not_matter() -> None:
    names = many(100)
    shuffled = names * 2
    random.Random(7).shuffle(shuffled)
    data = stub_library(SONAME, shuffled, ProcessorFamily.X86_64)
    assert data == stub_library(SONAME, iter(names), ProcessorFamily.X86_64)
    assert exported(data) == sorted(names)


@each(
    "machine, number, code",
    [
        (ProcessorFamily.X86_64, 62, bytes.fromhex("b822000000c3")),
        (ProcessorFamily.AARCH64, 183, bytes.fromhex("40048052c0035fd6")),
    ],
)
def test_header_and_code_are_those_of_the_machine(machine: ProcessorFamily, number: int, code: bytes) -> None:
    data = stub_library(SONAME, ["cuInit"], machine)
    assert data[:16] == b"\x7fELF\x02\x01\x01" + bytes(9)
    assert struct.unpack_from("<HHI", data, 16) == (3, number, 1)  # ET_DYN
    text = next(load for load in loads(data) if load.flags == 5)
    assert data[text.offset : text.offset + text.size] == code


@each("machine, count", itertools.product(ProcessorFamily, [0, 1, 700, 5000]))
def test_segments_share_no_page_of_64_kib(machine: ProcessorFamily, count: int) -> None:
    segments = list(loads(stub_library(SONAME, many(count), machine)))
    assert [load.flags for load in segments] == [4, 5, 6]  # R, RX, RW
    assert all(load.alignment == PAGE for load in segments)
    assert all(load.offset % PAGE == load.address % PAGE for load in segments)
    assert all((one.address + one.size - 1) // PAGE < two.address // PAGE for one, two in pairwise(segments))


def test_declared_functions_keeps_both_sides_of_a_rename() -> None:
    assert declared_functions(HEADER) == {
        "cuCtxAttach",
        "cuGLInit",
        "cuGraphInstantiate",
        "cuGraphInstantiateWithFlags",
        "cuInit",
        "cuLaunchKernel",
        "cuLaunchKernel_ptsz",
        "cuMemAlloc",
        "cuMemAlloc_v2",
        "cuMemPoolImportFromShareableHandle",
        "cuMemcpyHtoD",
        "cuMemcpyHtoD_v2",
        "cuMemcpyHtoD_v2_ptds",
    }


def test_declared_functions_of_another_prefix() -> None:
    assert declared_functions(HEADER, "cuGL") == {"cuGLInit"}
    assert declared_functions("", "cu") == frozenset()
