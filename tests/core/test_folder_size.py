"""The size of folders."""

import os
from pathlib import Path

from tenv.core.files import folder_size


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
