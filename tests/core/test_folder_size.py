"""The size of folders, and walks whose result is used twice."""

import os
from pathlib import Path

from tenv.core.folder_size import folder_size, measure


def test_the_size_counts_a_file_once_and_follows_no_link(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    (folder / "sub").mkdir(parents=True)
    (folder / "one").write_bytes(b"x" * 1000)
    os.link(folder / "one", folder / "sub" / "again")
    (folder / "sub" / "two").write_bytes(b"x" * 10)
    (tmp_path / "outside").write_bytes(b"x" * 5000)
    (folder / "link").symlink_to(tmp_path / "outside")
    assert folder_size(folder) == 1010 + len(os.fsencode(tmp_path / "outside"))
    assert folder_size(tmp_path / "nowhere") == 0


def test_a_folder_that_was_measured_is_not_entered_again(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    (folder / "packages").mkdir(parents=True)
    (folder / "packages" / "one").write_bytes(b"x" * 1000)
    (folder / "packages" / "two").write_bytes(b"x" * 10)
    os.link(folder / "packages" / "one", folder / "again")
    (folder / "three").write_bytes(b"x")
    apart = measure(folder / "packages")
    assert apart.bytes == 1010
    assert folder_size(folder, apart=apart) == folder_size(folder) == 1011
    (folder / "packages" / "late").write_bytes(b"x" * 7)
    assert folder_size(folder, apart=apart) == 1011
    assert folder_size(folder) == 1018


def test_a_walk_tells_the_files_with_several_links_from_the_others(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one").write_bytes(b"xyz")
    os.link(tmp_path / "sub" / "one", tmp_path / "again")
    (tmp_path / "alone").touch()
    (tmp_path / "link").symlink_to("alone")
    found = measure(tmp_path)
    time = (tmp_path / "again").stat().st_mtime_ns
    assert found.linked == dict.fromkeys(map(str, (tmp_path / "again", tmp_path / "sub" / "one")), (3, time))
    assert found.single == {str(tmp_path / "alone"), str(tmp_path / "link")}
