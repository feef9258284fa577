"""What an audit reads of a file: held against readelf, and against files that were cut, changed or made to harm."""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.audits.library import GpuCode, gpu_code
from tenv.core.elf import CxxAbi, Elf, ElfFaultError, open_elf, read_elf
from tenv.facts.cuda_gpu_arch import GpuArch
from tests.audits.made import CUBIN, LTO, PTX, fatbin, library
from tests.support.each import each
from tests.support.readelf import as_readelf_shows

LIBC = {"libc.so.6": ("GLIBC_2.2.5", "GLIBC_2.34")}


def read(path: Path) -> tuple[Elf, GpuCode]:
    data = path.read_bytes()
    elf = read_elf(data)
    return elf, gpu_code(data, elf)


def test_what_the_loader_reads(tmp_path: Path) -> None:
    path = library(tmp_path / "a.so", ["libb.so", "libc.so.6"], runpath="$ORIGIN:/x", soname="liba.so", versions=LIBC)
    elf, code = read(path)
    assert (elf.machine, elf.soname, elf.needed) == ("x86_64", "liba.so", ("libb.so", "libc.so.6"))
    assert (elf.runpath, elf.rpath, elf.versions) == (("$ORIGIN", "/x"), (), LIBC)
    assert code == GpuCode()
    assert read(library(tmp_path / "b.so", rpath="/y"))[0].rpath == ("/y",)


@each(
    "symbols, abi",
    [
        (["_ZN3c105ErrorC1ENS_14SourceLocationESs"], CxxAbi.OLD),
        (["_ZNSs6assignEPKc"], CxxAbi.OLD),
        (["_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1Ev"], CxxAbi.NEW),
        (["_ZNSs6assignEPKc", "_ZNKSt7__cxx1112basic_string4sizeEv"], CxxAbi.BOTH),
        (["printf", "_ZN2at7ProcessC1Ev", "_ZN5torch8SsoClass3runEv"], CxxAbi.NONE),
    ],
)
def test_the_abi_of_strings(tmp_path: Path, symbols: list[str], abi: CxxAbi) -> None:
    assert read(library(tmp_path / "a.so", symbols=symbols))[0].cxx_abi is abi


def test_architectures_of_both_sections(tmp_path: Path) -> None:
    code = fatbin((CUBIN, 75), (PTX, 90)) + bytes(32) + fatbin((CUBIN, 90), flags=0x100011)
    path = library(tmp_path / "a.so", code=code, relocatable=fatbin((CUBIN, 100), (LTO, 90), flags=0x200011))
    found = read(path)[1]
    assert [str(one) for one in found.cubin] == ["75", "90a", "100f"]
    assert ([str(one) for one in found.ptx], [str(one) for one in found.ir]) == (["90"], ["90f"])


@each(
    "code, capability, serves",
    [
        (GpuCode((GpuArch(80),)), 86, True),
        (GpuCode((GpuArch(86),)), 80, False),
        (GpuCode((GpuArch(80),)), 90, False),
        (GpuCode((GpuArch(90, "a"),)), 90, True),
        (GpuCode((GpuArch(100, "a"),)), 103, False),
        (GpuCode((GpuArch(100, "f"),)), 103, True),
        (GpuCode((), (GpuArch(75),)), 120, True),
        (GpuCode((), (GpuArch(90, "a"),)), 100, False),
        (GpuCode((), (GpuArch(90),)), 80, False),
        (GpuCode((), (), (GpuArch(90),)), 90, False),
    ],
)
def test_which_gpus_code_serves(code: GpuCode, capability: int, serves: bool) -> None:
    assert code.serves(capability) is serves


def test_a_fat_binary_without_an_end(tmp_path: Path) -> None:
    whole = fatbin((CUBIN, 80), (CUBIN, 90))
    for code in (whole[:20], whole[:-8], whole[:24] + struct.pack("<Q", 1 << 60) + whole[32:]):
        with pytest.raises(ElfFaultError):
            read(library(tmp_path / "a.so", code=code))


def test_lists_without_an_end_do_not_hang(tmp_path: Path) -> None:
    path = library(
        tmp_path / "a.so", versions={"libc.so.6": ["GLIBC_2.34"] * 40_000, "libm.so.6": ["GLIBC_2.34"] * 40_000}
    )
    with pytest.raises(ElfFaultError, match="does not end"):
        read(path)
    path = library(tmp_path / "a.so", versions={f"lib{number}.so": ["V_1"] for number in range(70_000)})
    with pytest.raises(ElfFaultError, match="does not end"):
        read(path)
    with pytest.raises(ElfFaultError, match="more than any library has"):
        read(library(tmp_path / "a.so", ["libc.so.6"] * 70_000))


def test_damaged_files_end_with_an_error_or_a_result(tmp_path: Path) -> None:
    path = library(
        tmp_path / "a.so", ["libb.so"], runpath="/x", versions=LIBC, code=fatbin((CUBIN, 75), (PTX, 90)), symbols=["x"]
    )
    whole = path.read_bytes()
    chance, found = random.Random(15), set[bool]()
    for end in range(0, len(whole), 7):
        found.add(damaged(whole[:end]))
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 255, chance.randrange(256)))
        found.add(damaged(bytes(data)))
    assert found == {True, False}


def damaged(data: bytes) -> bool:
    """Return whether damaged bytes are read; an error of another kind than the reader's own fails the test."""
    try:
        gpu_code(data, read_elf(data))
    except ElfFaultError:
        return False
    return True


SYSTEM = [Path(sys.executable).resolve(), *sorted(Path("/usr/lib").glob("*/lib[cmsz]*.so.?"))[:12]]


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs readelf")
@each("path", SYSTEM)
def test_as_readelf_says(path: Path) -> None:
    elf, _ = read(path)
    shown = as_readelf_shows(path)
    assert (elf.needed, elf.runpath, elf.soname) == (shown.needed, shown.runpath, shown.soname)
    assert {name: sorted(rows) for name, rows in (elf.versions or {}).items()} == shown.versions


@pytest.mark.skipif(not (shutil.which("strip") and shutil.which("cc")), reason="needs a compiler")
def test_a_library_without_section_headers(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text('#include <math.h>\n#include <stdio.h>\ndouble f(double x) { printf(""); return pow(x, 3.5); }\n')
    path = tmp_path / "a.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-rpath,/x", "-o", str(path), str(source), "-lm"], check=True)
    whole, _ = read(path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, 40, 0)  # e_shoff
    struct.pack_into("<HH", data, 60, 0, 0)  # e_shnum, e_shstrndx
    bare = read_elf(bytes(data))
    assert (bare.sections, bare.needed) == ((), whole.needed)
    assert (bare.runpath + bare.rpath, bare.versions) == (whole.runpath + whole.rpath, whole.versions)


def test_a_file_is_opened_and_closed(tmp_path: Path) -> None:
    (tmp_path / "empty.so").touch()
    with pytest.raises(ElfFaultError, match="the file is empty"), open_elf(tmp_path / "empty.so"):
        pass
    with pytest.raises(FileNotFoundError), open_elf(tmp_path / "none.so"):
        pass
    with open_elf(library(tmp_path / "a.so", ["libb.so"], runpath="/x")) as elf:
        assert (elf.machine, elf.wide, elf.order, elf.needed, elf.runpath) == (
            "x86_64",
            True,
            "<",
            ("libb.so",),
            ("/x",),
        )
        assert (elf.build_id, elf.section(".none"), elf.defined_versions()) == ("", b"", ())


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs readelf")
@each("path", SYSTEM)
def test_notes_and_defined_versions_are_those_of_readelf(path: Path) -> None:
    words = ["readelf", "--wide", "--notes", "--version-info", str(path)]
    environ = {**os.environ, "LC_ALL": "C"}
    shown = subprocess.run(words, capture_output=True, text=True, env=environ, check=True).stdout
    defined = shown.partition("Version definition section")[2].partition("\n\n")[0]
    with open_elf(path) as elf:
        assert [elf.build_id] == (re.findall(r"Build ID: ([0-9a-f]+)", shown) or [""])
        assert list(elf.defined_versions()) == re.findall(r"Flags: .*Name: (\S+)", defined)
