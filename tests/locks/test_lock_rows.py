"""The rows of a lock, each with a value that no row has."""

import pytest

from tenv.core.errors import LockCorruptError
from tenv.core.toml_reader import Table
from tenv.locks.lock_rows import read_channels, read_conda
from tests.support.each import each

HOST = "https://conda.anaconda.org/conda-forge/linux-64"


def rows_of(url: str) -> tuple[Table, Table]:
    whole = Table({"packages": [{"conda": url, "sha256": "ab" * 32}]}, error=LockCorruptError)
    return whole, Table({"linux-64": [{"conda": url}]}, error=LockCorruptError)


@each(
    "file",
    [
        "a..b-1-0.conda",
        "A-1-0.conda",
        "a b-1-0.conda",
        "a-1..2-0.conda",
        "a-1%2f..-0.conda",
        "a-1-0..0.conda",
        "a-1-é.conda",
        f"{'a' * 250}-1-0.conda",
        "a-1-0.json",
        "a-1.conda",
        "-1-0.conda",
    ],
)
def test_a_file_that_no_package_has_is_refused(file: str) -> None:
    with pytest.raises(LockCorruptError):
        read_conda(*rows_of(f"{HOST}/{file}"), "linux-64")


@each("file", ["_libgcc_mutex-0.1-main.conda", "a.b-c_d-1!2.0+x-h0_0.tar.bz2"])
def test_a_file_of_a_package_is_read(file: str) -> None:
    (package,) = read_conda(*rows_of(f"{HOST}/{file}"), "linux-64")
    assert package.file == file


@each("url", ["https://u:p@x.org/c", "ftp://x.org/c", "http://[", "https://x.org/../c", "../c", "a b"])
def test_an_address_that_is_no_channel_is_refused(url: str) -> None:
    with pytest.raises(LockCorruptError):
        read_channels(Table({"channels": [{"url": url}]}, error=LockCorruptError))
