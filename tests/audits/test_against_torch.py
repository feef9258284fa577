"""`tenv audit --torch`: an extension held against an installed torch, symbol by symbol."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.audits.made import CUBIN, fatbin, library
from tests.support.projects import call
from tests.support.torches import ERROR_NEW, ERROR_OLD, make_base, make_torch, make_venv, torch_files

SET_DEVICE = "_ZN3c104cuda9SetDeviceEa"
STABLE = "aoti_torch_empty_strided"


@pytest.fixture
def torch(tmp_path: Path) -> Path:
    site = make_venv(tmp_path / ".venv", make_base(tmp_path / "base"))
    make_torch(site, torch_files(code=("80", "90")), exported=(SET_DEVICE, STABLE))
    return tmp_path / ".venv"


def audit(path: Path, torch: Path | str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return what is said of the torch, and the findings that are about it."""
    ended = call("audit", str(path), "--torch", str(torch), "--json")
    envelope = json.loads(ended.out)
    assert envelope["error"] is None, envelope["error"]
    found = [(row["severity"], row["code"]) for row in envelope["findings"]]
    about = ("TE013", "TE014", "TE010", "TE012", "TE008")
    return envelope["data"]["torch"], [(severity, code) for severity, code in found if code in about]


def test_an_extension_of_this_torch(tmp_path: Path, torch: Path) -> None:
    path = library(tmp_path / "a.so", ["libc10.so"], wanted=(SET_DEVICE, ERROR_NEW, "malloc"))
    held, found = audit(path, torch)
    assert found == []
    assert {"version": "2.9.1+cu128", "wanted": 2, "missing": [], "stable_abi": False}.items() <= held.items()


def test_a_symbol_that_this_torch_lacks_is_named(tmp_path: Path, torch: Path) -> None:
    gone = "_ZN3c104cuda9SetDeviceEi"
    path = library(tmp_path / "a.so", ["libc10.so"], wanted=(gone, SET_DEVICE), defined=("_ZN2at4mineEv",))
    held, found = audit(path, torch)
    assert (held["missing"], found) == ([gone], [("error", "TE013")])
    shown = call("audit", str(path), "--torch", str(torch)).out
    assert gone in shown
    assert "runs here: no" in shown


def test_what_another_library_of_the_wheel_defines_is_not_missing(tmp_path: Path, torch: Path) -> None:
    library(tmp_path / "ext/a.so", wanted=("_ZN5torch4mineEv",))
    library(tmp_path / "ext/b.so", defined=("_ZN5torch4mineEv",))
    assert audit(tmp_path / "ext", torch) == (
        {**audit(tmp_path / "ext", torch)[0], "wanted": 0, "missing": [], "stable_abi": None},
        [],
    )


def test_the_stable_abi_alone(tmp_path: Path, torch: Path) -> None:
    path = library(tmp_path / "a.so", wanted=(STABLE,))
    assert audit(path, torch)[0]["stable_abi"] is True
    assert "its stable ABI alone" in call("audit", str(path), "--torch", str(torch)).out


def test_abi_cuda_and_gpu_code_differ(tmp_path: Path, torch: Path) -> None:
    path = library(
        tmp_path / "a.so", ["libcudart.so.13"], symbols=(ERROR_OLD, "_ZNSs6appendEv"), code=fatbin((CUBIN, 90))
    )
    _, found = audit(path, torch)
    assert found == [("error", "TE010"), ("error", "TE012"), ("warning", "TE008")]


def test_a_wheel_of_torch_has_libraries_to_compare(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_torch(site, torch_files(code=("80", "90")), exported=(SET_DEVICE, STABLE))
    wheel = tmp_path / "torch-2.9.1-cp312-cp312-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for file in site.rglob("*") if file.is_file()):
            archive.write(file, str(file.relative_to(site)))
    gone = "_ZN3c104cuda9SetDeviceEi"
    path = library(tmp_path / "a.so", ["libc10.so"], wanted=(gone, SET_DEVICE))
    held, found = audit(path, wheel)
    assert (held["wanted"], held["missing"], found) == (2, [gone], [("error", "TE013")])


def test_modules_of_another_python_are_not_found(tmp_path: Path, torch: Path) -> None:
    (torch / "lib/python3.12/site-packages/torch/_C.cpython-312-x86_64-linux-gnu.so").write_bytes(b"")
    for name, pythons, expected in (
        ("a.cpython-311-x86_64-linux-gnu.so", ["cp311"], [("error", "TE014")]),
        ("a.cpython-312-x86_64-linux-gnu.so", ["cp312"], []),
        ("a.cpython-313t-x86_64-linux-gnu.so", ["cp313t"], [("error", "TE014")]),
        ("a.abi3.so", ["abi3"], []),
        ("_a.so", [], []),
    ):
        path = library(tmp_path / name, wanted=(SET_DEVICE,))
        held, found = audit(path, torch)
        assert (held["python_abi"], found) == (pythons, expected), name
        assert not pythons or f"Python: {pythons[0]}" in call("audit", str(path), "--torch", str(torch)).out


def test_a_version_has_no_libraries_to_compare(tmp_path: Path) -> None:
    path = library(tmp_path / "a.so", wanted=(SET_DEVICE,))
    held, found = audit(path, "2.9+cu128")
    assert (held["missing"], held["wanted"], found) == (None, 1, [])
