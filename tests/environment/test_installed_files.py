"""What is in a prefix and whose it is, by the records of wheels, conda packages and archives."""

import json
from pathlib import Path

import pytest

from tenv.sources.archives.source import InstalledArchives
from tenv.sources.conda.source import CondaPackages
from tenv.sources.owners import unmanaged_files
from tenv.sources.wheels.installed import Wheels
from tests.support.fakes import make_wheel, unpack

SITE = "lib/python3.12/site-packages"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A prefix with two wheels, one of them not tenv's, and loose files."""
    made = tmp_path / "tiny"
    site = made / SITE
    unpack(make_wheel(tmp_path / "wheels", "alpha", "1.0", files={"alpha/core.py": ""}), site)
    with (site / "alpha-1.0.dist-info" / "RECORD").open("a") as record:
        record.write("../../../bin/alpha,,\n")
    unpack(make_wheel(tmp_path / "wheels", "By_Hand", "2.0", files={"hand.py": ""}), site)
    for name in (
        *("pyvenv.cfg", "bin/python3.12", "bin/alpha", "bin/activate.csh", "notes.txt", f"{SITE}/loose.pth"),
        *(f"{SITE}/_virtualenv.py", f"{SITE}/alpha/__pycache__/core.pyc", "cuda/lib/x.so", ".tenv.lock"),
        "tenv-meta/state.json",
    ):
        write(made / name)
    return made


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def note(prefix: Path, name: str, *files: str) -> Path:
    """Write the note of a conda package, and its files."""
    path = prefix / "conda-meta" / f"{name}-1.2-h0_0.json"
    write(path, json.dumps({"name": name, "files": files}))
    for file in files:
        write(prefix / file)
    return path


def archive(prefix: Path, name: str, *files: str) -> Path:
    """Write the record of an archive, and its files."""
    path = prefix / "tenv-meta" / "archives" / f"{name}.json"
    links = {f"opt/{name}/link": "x"}
    write(
        path, json.dumps({"schema": 1, "name": name, "sha256": "a", "files": dict.fromkeys(files, "f"), "links": links})
    )
    for file in (*files, *links):
        write(prefix / file)
    return path


def test_the_folders_that_wheels_have_in_one_are_told(tmp_path: Path) -> None:
    site = tmp_path / SITE
    wheel = make_wheel(tmp_path / "wheels", "nvcc", "1.0", files={"nvidia/cu13/bin/nvcc": "", "nvidia/b/x": ""})
    unpack(wheel, site)
    unpack(make_wheel(tmp_path / "wheels", "other", "1.0", files={"nvidia/other/x": ""}), site)
    assert Wheels(tmp_path).folders(["nvcc"], site / "nvidia") == (site / "nvidia/b", site / "nvidia/cu13")
    (site / "nvcc-1.0.dist-info/RECORD").write_bytes(b"nvidia/b/x\xff,,\n")
    assert Wheels(tmp_path).folders(["nvcc"], site / "nvidia") == ()


def test_wheels_are_known_by_their_normalized_names(prefix: Path) -> None:
    assert Wheels(prefix).versions() == {"alpha": "1.0", "by-hand": "2.0"}
    assert set(Wheels(prefix).names()) == {"alpha", "by-hand"}


def test_the_files_of_a_wheel_are_those_of_its_record_and_its_notes(prefix: Path) -> None:
    write(prefix / SITE / "alpha-1.0.dist-info" / "INSTALLER", "uv")
    assert {*Wheels(prefix).files(["alpha"])} == {
        f"{SITE}/alpha/core.py",
        "bin/alpha",
        *(f"{SITE}/alpha-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "INSTALLER")),
    }


def test_a_record_that_can_not_be_read_names_nothing(prefix: Path) -> None:
    (prefix / SITE / "alpha-1.0.dist-info" / "RECORD").write_bytes(b"alpha/core.py,,\n\xff\xfe,,\n")
    names = ("METADATA", "WHEEL", "RECORD")
    assert {*Wheels(prefix).files(["alpha"])} == {f"{SITE}/alpha-1.0.dist-info/{name}" for name in names}


def test_wheels_are_held_in_their_versions(prefix: Path) -> None:
    assert Wheels(prefix).hold({"alpha": ("1.0.0", "")})
    assert not Wheels(prefix).hold({"alpha": ("1.1", "")})
    assert not Wheels(prefix).hold({"alpha": ("1.0", ""), "beta": ("1.0", "")})


def test_the_files_of_a_conda_package_are_those_of_its_note_and_the_note(prefix: Path) -> None:
    note(prefix, "cuda-nvcc", "bin/nvcc", "nvvm/bin/cicc")
    note(prefix, "other", "bin/other")
    packages = CondaPackages(prefix)
    assert set(packages.names()) == {"cuda-nvcc", "other"}
    assert [*packages.files(["cuda-nvcc", "gone"])] == [
        "conda-meta/cuda-nvcc-1.2-h0_0.json",
        "bin/nvcc",
        "nvvm/bin/cicc",
    ]
    assert packages.hold({"cuda-nvcc": ("1.2", "h0_0", "")})
    assert not packages.hold({"cuda-nvcc": ("1.2", "h0_1", "")})
    assert CondaPackages(prefix / "empty").hold({})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"files"', "{}", '{"files": 3}', '{"files": "abc"}', "\udcff", "[" * 20_000]
)
def test_a_note_that_can_not_be_read_is_told(prefix: Path, text: str) -> None:
    note(prefix, "whole", "bin/whole")
    note(prefix, "broken").write_bytes(text.encode("utf-8", "surrogateescape"))
    packages = CondaPackages(prefix)
    assert packages.without_note(["whole", "broken", "gone"]) == {"broken", "gone"}
    assert [*packages.files(["broken"])] == ["conda-meta/broken-1.2-h0_0.json"]


def test_the_files_of_an_archive_are_those_of_its_record(prefix: Path) -> None:
    archive(prefix, "magma", "opt/magma/include/magma.h")
    archives = InstalledArchives(prefix)
    assert set(archives.names()) == {"magma"}
    assert [*archives.files(["magma", "gone"])] == ["opt/magma/include/magma.h", "opt/magma/link"]


def test_an_archive_is_held_with_all_its_files_and_links(prefix: Path) -> None:
    archive(prefix, "magma", "opt/magma/include/magma.h")
    archives = InstalledArchives(prefix)
    assert archives.hold({})
    assert archives.hold({"magma": ("2.6", "a")})
    assert not archives.hold({"magma": ("2.6", "b")})
    assert not archives.hold({"mkl": ("2.6", "a")})
    (prefix / "opt/magma/link").unlink()
    assert not archives.hold({"magma": ("2.6", "a")})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 3}', '{"name": "magma", "files": 3, "links": null}'])
def test_an_archive_whose_record_can_not_be_read_is_not_there(prefix: Path, text: str) -> None:
    archive(prefix, "magma").write_text(text)
    assert not InstalledArchives(prefix).hold({"magma": ("2.6", "a")})
    assert [*InstalledArchives(prefix).files(["magma"])] == []


def test_every_file_of_an_archive_is_expected_with_its_digest(prefix: Path) -> None:
    archive(prefix, "magma", "opt/magma/include/magma.h")
    assert [
        (row.name, row.owner, row.digest) for row in InstalledArchives(prefix).expected({"magma": ("2.6", "a")})
    ] == [
        ("tenv-meta/archives/magma.json", "magma", ""),
        ("opt/magma/include/magma.h", "magma", "sha256:f"),
        ("opt/magma/link", "magma", "pointer:x"),
    ]


def test_a_package_that_is_not_there_is_one_file_that_is_missing(prefix: Path) -> None:
    archive(prefix, "magma", "opt/magma/include/magma.h")
    note(prefix, "zlib")
    told = [
        *Wheels(prefix).expected({"alpha": ("2.0", ""), "beta": ("1.0", "")}),
        *CondaPackages(prefix).expected({"zlib": ("1.3", "h0_0", "")}),
        *InstalledArchives(prefix).expected({"magma": ("2.7", "b")}),
    ]
    assert [(row.name, row.owner) for row in told] == [
        ("alpha 2.0", "alpha"),
        ("beta 1.0", "beta"),
        ("zlib 1.3", "zlib"),
        ("magma 2.7", "magma"),
    ]


def test_what_is_not_tenvs_is_told_from_what_it_makes(prefix: Path) -> None:
    (prefix / "tenv-meta" / "made.json").write_text('{"cuda/lib/x.so": "link:../x.so"}')
    (prefix / "linked").symlink_to("/somewhere")
    note(prefix, "ours", "bin/ours")
    note(prefix, "strange", "bin/strange")
    archive(prefix, "magma", "opt/magma/include/magma.h")
    assert unmanaged_files(prefix, {"wheels": ["alpha"], "conda": ["ours"]}) == (
        "bin/strange",
        "conda-meta/strange-1.2-h0_0.json",
        f"{SITE}/By_Hand-2.0.dist-info/METADATA",
        f"{SITE}/By_Hand-2.0.dist-info/RECORD",
        f"{SITE}/By_Hand-2.0.dist-info/WHEEL",
        f"{SITE}/hand.py",
        f"{SITE}/loose.pth",
        "linked",
        "notes.txt",
    )
