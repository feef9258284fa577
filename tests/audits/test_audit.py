"""`tenv audit` on libraries, folders and wheels that are made for it."""

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tenv.audits import audited_tree
from tenv.audits.library import CODES
from tenv.audits.on_host import tags_of_name
from tests.audits.made import CUBIN, PTX, fatbin, library, wheel
from tests.support.each import each
from tests.support.projects import Project, call

ROOT = Path(__file__).parents[2]
HOST = ROOT / "tests" / "posts" / "hosts" / "ubuntu-22.04.json"
LIBC = {"libc.so.6": ("GLIBC_2.17",)}


def audit(*words: str | Path) -> tuple[int, dict[str, Any], list[tuple[str, str]]]:
    """Run `tenv audit` with JSON; return status, data, and severity and code of each finding, notes left out."""
    ended = call("audit", *map(str, words), "--json")
    envelope = json.loads(ended.out)
    assert envelope["error"] is None, envelope["error"]
    found = [(row["severity"], row["code"]) for row in envelope["findings"] if row["severity"] != "note"]
    return ended.status, envelope["data"], found


def said(*words: str | Path) -> str:
    """Return what `tenv audit` prints for people."""
    return call("audit", *map(str, words)).out


def test_a_library(tmp_path: Path) -> None:
    path = library(
        tmp_path / "liba.so",
        ["libc.so.6"],
        versions={"libc.so.6": ("GLIBC_2.2.5", "GLIBC_2.17"), "libstdc++.so.6": ("GLIBCXX_3.4.19", "CXXABI_1.3.7")},
        code=fatbin((CUBIN, 80), (PTX, 90)),
    )
    status, data, found = audit(path)
    assert (status, found, data["kind"]) == (0, [], "file")
    [row] = data["files"]
    assert (row["path"], row["architectures"], row["ptx"]) == ("liba.so", ["sm_80"], ["compute_90"])
    assert row["needs"] == {"CXXABI": "1.3.7", "GLIBC": "2.17", "GLIBCXX": "3.4.19"}
    assert data["manylinux"] == {"tag": "manylinux_2_17_x86_64", "because": "GLIBC_2.17", "outside": []}


def test_a_folder_follows_no_link_twice(tmp_path: Path) -> None:
    library(tmp_path / "torch" / "lib" / "libc10.so.1", soname="libc10.so.1", versions=LIBC)
    (tmp_path / "torch" / "lib" / "libc10.so").symlink_to("libc10.so.1")
    library(tmp_path / "torch" / "_C.so", ["libc10.so", "libc10.so.1"], runpath="$ORIGIN/lib", versions=LIBC)
    (tmp_path / "torch" / "README").write_text("no library")
    status, data, found = audit(tmp_path / "torch")
    assert (status, found) == (0, [])
    assert [row["path"] for row in data["files"]] == ["_C.so", "lib/libc10.so.1"]
    assert {row["from"] for row in data["links"]} == {"inside"}


def test_a_checkout_stands_for_the_torch_in_it(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    for name in ("setup.py", "torch/__init__.py"):
        (tmp_path / name).write_text("")
    library(tmp_path / "torch" / "lib" / "libtorch.so")
    library(tmp_path / "build" / "lib" / "libother.so")
    assert [row["path"] for row in audit(tmp_path)[1]["files"]] == ["lib/libtorch.so"]


def test_a_library_that_is_found_nowhere(tmp_path: Path) -> None:
    path = library(tmp_path / "liba.so", ["libnowhere.so.7"])
    assert audit(path)[::2] == (1, [("error", "TE002")])
    made = wheel(tmp_path / "a-1-py3-none-any.whl", {"a/liba.so": path})
    assert audit(made)[::2] == (0, [("warning", "TE002")])


def test_a_library_from_outside(tmp_path: Path) -> None:
    library(tmp_path / "elsewhere" / "libthing.so.1")
    path = library(tmp_path / "in" / "liba.so", ["libthing.so.1"], runpath=str(tmp_path / "elsewhere"))
    status, data, found = audit(tmp_path / "in")
    assert (status, found) == (0, [("warning", "TE003")])
    assert data["links"][0]["path"] == str(tmp_path / "elsewhere" / "libthing.so.1")
    assert audit(path)[2] == [("warning", "TE003")]


@each("mark", ["pyvenv.cfg", "conda-meta/history"])
def test_a_library_of_an_environment_that_is_not_tenv_s(tmp_path: Path, mark: str) -> None:
    prefix = tmp_path / "venv"
    packages = prefix / "lib" / "python3.12" / "site-packages"
    library(packages / "nvidia" / "cu13" / "lib" / "libcublas.so.13")
    library(
        packages / "torch" / "lib" / "libtorch_cuda.so", ["libcublas.so.13"], runpath="$ORIGIN/../../nvidia/cu13/lib"
    )
    assert audit(packages / "torch")[2] == [("warning", "TE003")]
    mark_environment(prefix, mark)
    status, data, found = audit(packages / "torch")
    assert (status, found, data["prefix"], data["links"][0]["from"]) == (0, [], str(prefix), "environment")


def mark_environment(prefix: Path, mark: str = "conda-meta/history") -> None:
    (prefix / mark).parent.mkdir(parents=True, exist_ok=True)
    (prefix / mark).touch()


def test_an_environment_in_conda_s_base_is_another_one(tmp_path: Path) -> None:
    other = library(tmp_path / "envs" / "other" / "lib" / "libthing.so.1")
    torch = tmp_path / "lib" / "python3.12" / "site-packages" / "torch"
    library(torch / "lib" / "liba.so", ["libthing.so.1"])
    for prefix in (tmp_path, tmp_path / "envs" / "other"):
        mark_environment(prefix)
    assert audit(torch)[2] == [("error", "TE002")]
    library(torch / "lib" / "liba.so", ["libthing.so.1"], runpath=str(other.parent))
    assert audit(torch)[2] == [("warning", "TE003")]


def test_the_nearest_environment_counts(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = created.prefix / "venv" / "lib" / "python3.12" / "site-packages"
    store = library(created.folder / "store" / "libcublas.so.13")
    (packages / "nvidia" / "lib").mkdir(parents=True)
    (packages / "nvidia" / "lib" / store.name).symlink_to(store)
    library(packages / "torch" / "liba.so", [store.name], runpath="$ORIGIN/../nvidia/lib")
    mark_environment(created.prefix / "venv", "pyvenv.cfg")
    monkeypatch.chdir(packages)
    for path in (packages / "torch", Path("torch"), Path("torch/liba.so")):
        _, data, found = audit(path)
        assert (data["prefix"], found) == (str(created.prefix / "venv"), [])


@each("mark", ["pyvenv.cfg", "conda-meta/history"])
def test_what_lies_in_an_environment_without_being_installed(tmp_path: Path, mark: str) -> None:
    path = library(tmp_path / "pytorch" / "torch" / "lib" / "liba.so", ["libnowhere.so.7"])
    made = wheel(tmp_path / "lib" / "a-1-py3-none-any.whl", {"a/liba.so": path})
    mark_environment(tmp_path, mark)
    assert audit(path)[1]["prefix"] == ""
    status, data, found = audit(made)
    assert (status, data["prefix"], found) == (0, "", [("warning", "TE002")])


def test_the_fix_for_a_library_that_is_nowhere_names_no_option_that_was_given(created: Project) -> None:
    path = library(created.folder / "x" / "liba.so", ["libnowhere.so.7"])
    assert "fix: `tenv audit --target TARGET` looks" in said(path)
    assert "fix: add the package that brings it" in said(path, "--target", "tiny")


def test_a_library_of_the_environment(created: Project) -> None:
    library(created.prefix / "lib" / "libthing.so.1")
    path = library(created.folder / "x" / "liba.so", ["libthing.so.1"])
    assert audit(path)[2] == [("error", "TE002")]
    status, data, found = audit(path, "--target", "tiny")
    assert (status, found, data["links"][0]["from"]) == (0, [], "environment")
    made = wheel(created.folder / "a-1-py3-none-any.whl", {"a/liba.so": path})
    assert audit(made, "--target", "tiny")[::2] == (0, [])
    inside = library(created.prefix / "lib" / "libb.so", ["libthing.so.1"])
    status, data, found = audit(inside)
    assert (found, data["target"], data["prefix"]) == ([], "tiny", str(created.prefix))


@each("folder", ["/usr/local/cuda/lib64/stubs", "$ORIGIN/stubs", "$ORIGIN/driver"])
def test_a_stub_in_a_run_path(tmp_path: Path, folder: str) -> None:
    library(tmp_path / "driver" / "libcuda.so.1", soname="libcuda.so.1")
    path = library(tmp_path / "liba.so", ["libcuda.so.1"], runpath=folder)
    assert ("error", "TE004") in audit(path)[2]
    assert audit(library(tmp_path / "b.so", ["libcuda.so.1"]))[2] == []


def test_a_driver_library_in_a_wheel(tmp_path: Path) -> None:
    stub = library(tmp_path / "libcuda.so.1")
    assert audit(wheel(tmp_path / "a-1-py3-none-any.whl", {"a/libcuda.so.1": stub}))[2] == [("error", "TE004")]


def test_a_host_with_older_libraries(tmp_path: Path) -> None:
    path = library(tmp_path / "a.so", versions={"libc.so.6": ["GLIBC_2.36"], "libstdc++.so.6": ["GLIBCXX_3.4.31"]})
    status, data, found = audit(path, "--host-report", HOST)
    assert (status, data["run"], found) == (1, False, [("error", "TE005"), ("error", "TE005")])
    library(tmp_path / "f" / "libstdc++.so.6")
    (tmp_path / "f" / "a.so").write_bytes(path.read_bytes())
    assert audit(tmp_path / "f", "--host-report", HOST)[2] == [("error", "TE005")], "it brings its own libstdc++"
    relr = library(tmp_path / "r.so", versions={"libc.so.6": ["GLIBC_2.2.5", "GLIBC_ABI_DT_RELR"]})
    assert audit(relr, "--host-report", HOST)[2] == [("error", "TE005")]
    fine = library(tmp_path / "b.so", versions={"libc.so.6": ["GLIBC_2.35"], "libstdc++.so.6": ["GLIBCXX_3.4.30"]})
    assert audit(fine, "--host-report", HOST)[::2] == (0, [])


def test_a_driver_that_is_too_old(tmp_path: Path) -> None:
    library(tmp_path / "libcudart.so.13", soname="libcudart.so.13")
    path = library(tmp_path / "a.so", ["libcudart.so.13"], runpath="$ORIGIN")
    assert audit(tmp_path, "--assume-driver", "570.00")[2] == [("error", "TE006")]
    assert audit(tmp_path, "--assume-driver", "580.65.06")[2] == []
    assert audit(path, "--assume-driver", "570.00")[::2] == (1, [("warning", "TE003"), ("error", "TE006")])


def test_a_gpu_without_code(tmp_path: Path) -> None:
    library(tmp_path / "a.so", code=fatbin((CUBIN, 86), (PTX, 86)))
    assert audit(tmp_path, "--assume-gpu", "7.5")[::2] == (1, [("error", "TE007")])
    assert audit(tmp_path, "--assume-gpu", "8.9")[::2] == (0, [])
    library(tmp_path / "b.so", code=fatbin((CUBIN, 75)))
    assert audit(tmp_path, "--assume-gpu", "7.5")[::2] == (0, [("warning", "TE007")])


def test_a_fleet(tmp_path: Path) -> None:
    path = library(tmp_path / "a.so", versions={"libc.so.6": ["GLIBC_2.33"]})
    fleet = HOST.parent
    status, data, found = audit(path, "--against", fleet)
    answers = {row["machine"]: row["run"] for row in data["machines"]}
    assert (status, found) == (1, [])
    assert answers["ubuntu-22.04"] is True
    assert answers["ubuntu-20.04"] is False
    assert "glibc 2.31" in json.dumps(data["machines"])
    text = said(path, "--against", fleet)
    fine = sum(answer is True for answer in answers.values())
    assert f"runs on {fine} of {len(answers)} machines, not on these:" in text
    assert "TE005 GLIBC_2.33 is required, and the host has GLIBC_2.31" in text
    old = library(tmp_path / "b.so", versions={"libc.so.6": ["GLIBC_2.17"]})
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.json").write_bytes(HOST.read_bytes())
    assert audit(old, "--against", tmp_path / "one")[0] == 0
    assert "runs on 1 of 1 machine\n" in said(old, "--against", tmp_path / "one")


def test_the_tag_of_a_wheel(tmp_path: Path) -> None:
    path = library(tmp_path / "a.so", versions={"libc.so.6": ["GLIBC_2.28"]})
    for tag, expected in (
        ("manylinux_2_17_x86_64", [("error", "TE009")]),
        ("manylinux2014_x86_64.manylinux_2_28_x86_64", [("error", "TE009")]),
        ("manylinux_2_28_x86_64", []),
        ("linux_x86_64", []),
    ):
        made = wheel(tmp_path / f"a-1-cp312-cp312-{tag}.whl", {"a/a.so": path})
        assert audit(made)[2] == expected, tag
    newer = library(tmp_path / "b.so", versions={"libstdc++.so.6": ["GLIBCXX_3.4.21"]})
    made = wheel(tmp_path / "b-1-cp312-cp312-manylinux2014_x86_64.whl", {"b/b.so": newer})
    assert audit(made)[1]["manylinux"]["tag"] == "manylinux_2_24_x86_64"


def test_two_abis(tmp_path: Path) -> None:
    library(tmp_path / "old.so", symbols=["_ZN3c105ErrorC1ENS_14SourceLocationESs"])
    library(tmp_path / "new.so", symbols=["_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1Ev"])
    assert audit(tmp_path)[2] == [("warning", "TE010")]
    (tmp_path / "old.so").unlink()
    assert audit(tmp_path)[2] == []


def test_a_run_path_of_the_build_machine(tmp_path: Path) -> None:
    path = library(tmp_path / "a.so", runpath=str(tmp_path))
    assert audit(path)[2] == []
    assert audit(wheel(tmp_path / "a-1-py3-none-any.whl", {"a.so": path}))[2] == [("warning", "TE011")]
    gone = library(tmp_path / "gone.so", runpath="/no/such/folder:$ORIGIN")
    assert audit(gone)[2] == [("warning", "TE011")]


def note(**values: object) -> bytes:
    """Return what `tenv build` writes about a build."""
    return json.dumps({"schema": 1, "target": "tiny", "version": "2.9.0", **values}).encode()


def test_where_a_wheel_was_built(locked: Project) -> None:
    path = library(locked.folder / "a.so", code=fatbin((CUBIN, 80)))
    asked = {"TORCH_CUDA_ARCH_LIST": "8.0;9.0a+PTX Ampere"}
    said_by = note(lock="0" * 64, commit="c" * 40, switches=asked)
    made = wheel(
        locked.folder / "torch-2.9.0-py3-none-any.whl",
        {"torch/a.so": path, "torch-2.9.0.dist-info/tenv-build.json": said_by},
    )
    status, data, found = audit(made)
    assert (status, found) == (0, [("warning", "TE012"), ("warning", "TE008")])
    assert (data["target"], data["build"]["commit"]) == ("tiny", "c" * 40)
    finding = next(
        row for row in json.loads(call("audit", str(made), "--json").out)["findings"] if row["code"] == "TE008"
    )
    assert finding["subject"] == "90a, PTX of 90a"
    assert "built by: target tiny, PyTorch 2.9.0, commit cccccccccccc" in said(made)


@each("place", ["torch-2.9.0.dist-info/tenv-build.json", ".tenv/builds/tiny/tenv-build.json"])
def test_where_a_folder_was_built(tmp_path: Path, place: str) -> None:
    library(tmp_path / "torch" / "lib" / "libtorch.so")
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_bytes(note(version=""))
    assert "built by: target tiny\n" in said(tmp_path)
    (tmp_path / place).write_bytes(note())
    for path in (tmp_path / "torch", tmp_path / "torch" / "lib", tmp_path / "torch" / "lib" / "libtorch.so"):
        assert audit(path)[1]["build"]["target"] == "tiny"
    (tmp_path / place).write_bytes(b"[" * 100_000)
    assert audit(tmp_path / "torch")[1]["build"] is None


def test_another_cuda_than_the_target_has(locked: Project) -> None:
    text = locked.manifest.read_text()
    locked.manifest.write_text(text.replace("[requirements]", '[requirements]\ncuda = "12.8"', 1))
    library(locked.folder / "x" / "libcudart.so.13", soname="libcudart.so.13")
    assert audit(locked.folder / "x", "--target", "tiny")[::2] == (1, [("error", "TE012")])


def test_damaged_files(tmp_path: Path) -> None:
    whole = library(tmp_path / "x" / "a.so", ["libc.so.6"], code=fatbin((CUBIN, 80)))
    assert audit(tmp_path / "x")[0] == 0
    for data in (whole.read_bytes()[:100], whole.read_bytes()[:-10], b"\x7fELF", b""):
        (tmp_path / "x" / "a.so").write_bytes(data)
        assert audit(tmp_path / "x")[::2] == (1, [("error", "TE001")])
        assert audit(tmp_path / "x" / "a.so")[::2] == (1, [("error", "TE001")])
        assert audit(tmp_path / "x" / "a.so")[1]["run"] is None
    library(tmp_path / "x" / "liba.so.1")
    (tmp_path / "x" / "a.so").write_text("/* GNU ld script */ INPUT(liba.so.1)")
    status, found, _ = audit(tmp_path / "x")
    assert (status, [row["path"] for row in found["files"]]) == (0, ["liba.so.1"])


def test_damaged_wheels(tmp_path: Path) -> None:
    path = library(tmp_path / "a.so", code=fatbin((CUBIN, 80)))
    made = wheel(tmp_path / "a-1-py3-none-any.whl", {"a/a.so": path, "a/b.so": path})
    whole = made.read_bytes()
    for data in (whole[:-30], b"", b"PK\x03\x04", whole[:60] + b"\xff" * 40 + whole[100:]):
        made.write_bytes(data)
        status, _, found = audit(made)
        assert (status, set(found)) == (1, {("error", "TE001")})


@each("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED, 97])
def test_a_damaged_member_of_any_packing_is_a_finding(packing: int, tmp_path: Path) -> None:
    made = tmp_path / "torch-2.0-cp311-cp311-linux_x86_64.whl"
    method = packing if packing != 97 else zipfile.ZIP_STORED
    with zipfile.ZipFile(made, "w", method) as archive:
        archive.writestr("torch/lib/libx.so.1", b"\x7fELF\2\1\1" + bytes(range(256)) * 400)
        archive.writestr("torch/tenv-build.json", b"{}")
    raw = bytearray(made.read_bytes())
    for name in (b"libx.so.1", b"tenv-build.json"):
        at = raw.index(name) + len(name)
        raw[at + 10 : at + 30] = b"\xff" * 20
    for mark, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        if method != packing:
            raw[raw.index(mark) + offset] = packing
    made.write_bytes(raw)
    status, _, found = audit(made)
    assert (status, set(found)) == (1, {("error", "TE001")})


@each("number", ["²", "9" * 5000])
def test_a_tag_without_a_number_of_usual_size_is_none(number: str) -> None:
    assert tags_of_name(f"a-1-py3-none-manylinux_2_{number}_x86_64.whl") == ()


def test_a_wheel_that_unpacks_to_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_tree, "_BOMB", (1 << 24, audited_tree._BOMB[1]))
    made = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.so", "w") as member:
        member.write(b"\x7fELF\x02\x01\x01")
        for _ in range(20):
            member.write(bytes(1 << 20))
    assert audit(made)[::2] == (1, [("error", "TE001")])
    data = bytearray(made.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 0xFFFFFFF0)  # a size that is a lie
    made.write_bytes(data)
    assert audit(made)[::2] == (1, [("error", "TE001")])


def test_what_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for path in (tmp_path / "text", tmp_path / "nosuch"):
        ended = call("audit", str(path))
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.startswith("error[usage]: ")
    assert call("audit", str(tmp_path), "--against", str(tmp_path / "nosuch")).status == 2
    assert call("audit", str(tmp_path), "--target", "nosuch").status == 2
    assert call("audit", str(tmp_path), "--prefix", str(tmp_path)).status == 8


def test_a_folder_without_a_library_is_nothing_to_audit(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("no library")
    ended = call("audit", str(tmp_path))
    assert (ended.status, ended.out) == (2, "")
    assert f"error[usage]: {tmp_path} has no library to audit" in ended.err
    (tmp_path / "torch").mkdir()
    for name in ("setup.py", "torch/__init__.py"):
        (tmp_path / name).write_text("")
    for place in (tmp_path, tmp_path / "torch"):
        ended = call("audit", str(place))
        assert (ended.status, f"hint: `tenv build --pytorch {tmp_path}`" in ended.err) == (2, True)


def test_a_wheel_without_a_library_is_fine(tmp_path: Path) -> None:
    made = wheel(tmp_path / "a-1-py3-none-any.whl", {"a/__init__.py": b""})
    status, data, found = audit(made)
    assert (status, data["files"], found) == (0, [], [])
    assert said(made) == "no library in a-1-py3-none-any.whl: it needs no more of a machine than its Python\n"


def test_every_code_has_its_page_and_is_in_use() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "rules").glob("TE0*.md")}
    assert pages == set(CODES)
    table = (ROOT / "docs" / "audit.md").read_text()
    source = "".join(path.read_text() for path in (ROOT / "src" / "tenv").glob("*/*.py") if path.name != "library.py")
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for code, about in CODES.items():
        assert f"| [{code}](rules/{code}.md) | {about} |" in table
        assert f'"{code}"' in source
        assert f'"{code}"' in tests
