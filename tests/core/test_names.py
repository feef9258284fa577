"""Names of packages, files, channels and digests."""

import hashlib
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tenv.core.names import (
    CondaFile,
    Digest,
    WheelFile,
    channel_of,
    channel_url,
    channel_urls,
    channel_word,
    dist_info,
    file_at,
    is_channel,
    is_sha256,
    normalize,
)
from tests.support.each import each

LOCKS = sorted((Path(__file__).parent.parent.parent / "locks").glob("*.lock"))
MAIN, R, MSYS2 = (f"https://repo.anaconda.com/pkgs/{name}" for name in ("main", "r", "msys2"))


@each(
    "word, url",
    [
        ("conda-forge", "https://conda.anaconda.org/conda-forge"),
        ("nvidia/label/cuda-12.1.1/", "https://conda.anaconda.org/nvidia/label/cuda-12.1.1"),
        ("pkgs/free", "https://repo.anaconda.com/pkgs/free"),
        ("https://host/channel/", "https://host/channel"),
        ("anaconda", "https://conda.anaconda.org/anaconda"),
        ("defaults", MAIN),
    ],
)
def test_a_channel_has_one_url(word: str, url: str) -> None:
    assert channel_url(word) == url
    assert channel_url(channel_word(word)) == url


def test_defaults_are_the_channels_that_conda_has_them_be() -> None:
    assert channel_urls("defaults", "linux-64") == channel_urls("defaults", "linux-aarch64") == (MAIN, R)
    assert channel_urls("defaults", "win-64") == channel_urls("defaults") == (MAIN, R, MSYS2)
    assert channel_urls("conda-forge", "linux-64") == ("https://conda.anaconda.org/conda-forge",)
    assert channel_urls(MSYS2, "linux-64") == ()


@each(
    "package, url",
    [("numpy", MAIN), ("r-base", R), ("_r-mutex", R), ("rattler", MAIN), ("m2w64-gcc", MSYS2), ("m2-bash", MSYS2)],
)
def test_a_package_of_defaults_comes_from_the_one_that_has_it(package: str, url: str) -> None:
    assert channel_url("defaults", package) == url
    assert channel_url("conda-forge", package) == "https://conda.anaconda.org/conda-forge"


@each("word", ["a", "a/label/b_1", "https://u@h:8/%20", "defaults"])
def test_what_can_name_a_channel(word: str) -> None:
    assert is_channel(word)


@each("word", ["", "../a", "a b", "a:b", "-a", "a/../b"])
def test_what_can_not_name_a_channel(word: str) -> None:
    assert not is_channel(word)


def test_a_channel_is_told_by_the_url_of_its_packages() -> None:
    assert channel_of("https://conda.anaconda.org/nvidia/label/x/linux-64/a-1-0.conda") == channel_url("nvidia/label/x")


@each(
    "file, parts",
    [
        ("a-1-0.conda", ("a", "1", "0", ".conda")),
        ("gxx_linux-64-13.4.0-h0_1.tar.bz2", ("gxx_linux-64", "13.4.0", "h0_1", ".tar.bz2")),
        ("a-1-0.json", ("a", "1", "0", ".json")),
        ("https://h/c/linux-64/x264-1%21164.3095-h166bdaf_2.tar.bz2", ("x264", "1!164.3095", "h166bdaf_2", ".tar.bz2")),
    ],
)
def test_the_file_of_a_conda_package(file: str, parts: tuple[str, ...]) -> None:
    found = CondaFile.parse(file)
    assert found == CondaFile(*parts)
    assert str(found) == file_at(f"https://h/{file}") or "%" in file
    assert found.note == f"{parts[0]}-{parts[1]}-{parts[2]}.json"


@each("file", ["", "a", "a-1.conda", "a-1-0", "a-1-0.zip", "a-1-0.conda.part", "https://h/a-1-0.conda?x=1"])
def test_what_is_no_file_of_a_conda_package(file: str) -> None:
    assert CondaFile.parse(file) is None


PART = st.text(string.ascii_letters + string.digits, min_size=1, max_size=6)


@given(st.lists(PART, min_size=1, max_size=3), PART, PART, st.sampled_from([".conda", ".tar.bz2"]))
def test_a_name_that_is_built_is_read_back(words: list[str], version: str, build: str, ending: str) -> None:
    made = CondaFile("-".join(words), version, build, ending)
    assert CondaFile.parse(str(made)) == made


WHEELS = [
    "alpha-1.0-py3-none-any.whl",
    "my_pkg.x-1!2.0.post1+cu121-1abc-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "a-1-py2.py3-none-any.whl",
]
NO_WHEELS = [
    *("", "a.whl", "a-1.0.whl", "a-1.0-py3-none.whl", "a-1.0-py3-none-any.zip", "a-1.0-x-py3-none-any.whl"),
    *("a__b-1.0-py3-none-any.whl", "a b-1.0-py3-none-any.whl", "a-1.0-1-2-py3-none-any.whl"),
]


@each("file", WHEELS)
def test_the_name_of_a_wheel_is_read_as_packaging_reads_it(file: str) -> None:
    name, version, build, tags = parse_wheel_filename(file)
    found = WheelFile.parse(file)
    assert found
    assert (found.name, found.all_tags(), found.file) == (name, tags, file)
    assert found.version == str(version) or "!" in found.version
    assert found.build == "".join(map(str, build))
    assert WheelFile.parse(f"https://h/p/{file}?token=1#sha256=0") == found


@each("file", NO_WHEELS)
def test_what_is_no_name_of_a_wheel_is_none_for_packaging_either(file: str) -> None:
    assert WheelFile.parse(file) is None
    with pytest.raises(InvalidWheelFilename):
        parse_wheel_filename(file)


@given(st.text("ab1._-+ ", max_size=30))
def test_no_name_is_a_wheel_here_and_none_for_packaging(text: str) -> None:
    file = f"{text}-py3-none-any.whl"
    found = WheelFile.parse(file)
    try:
        name, version, *_ = parse_wheel_filename(file)
    except InvalidWheelFilename:
        assert found is None or not _is_version(found.version)
    else:
        assert found is None or (found.name, str(version)) == (name, str(_version(found.version)))


@given(st.from_regex(r"\A[py03._]{0,9}-[abi3._]{0,9}-[a1._]{0,9}\Z"))
def test_the_tags_of_each_name_can_be_read(tags: str) -> None:
    file = f"a-1-{tags}.whl"
    if found := WheelFile.parse(file):
        assert found.all_tags() == parse_wheel_filename(file)[3]


@each(
    "tags",
    [
        "0xpy2.py3-none-any",
        "py3.-none-any",
        "py3-none-.any",
        "-".join(".".join(f"p{number}" for number in range(20)) for _ in range(3)),
        f"py3-none-{'a' * 250}",
    ],
)
def test_a_wheel_with_tags_that_nobody_has_is_none(tags: str) -> None:
    assert WheelFile.parse(f"a-1-{tags}.whl") is None


def _version(text: str) -> object:
    from packaging.version import Version

    return Version(text)


def _is_version(text: str) -> bool:
    try:
        _version(text)
    except ValueError:
        return False
    return True


@each("path", LOCKS)
def test_every_wheel_of_the_shipped_locks_is_read_as_packaging_reads_it(path: Path) -> None:
    files = [line.split()[-1] for line in path.read_text().splitlines() if line.strip().startswith("file: ")]
    for file in sorted(set(files)):
        name, _, _, tags = parse_wheel_filename(file)
        found = WheelFile.parse(file)
        assert found
        assert (found.name, found.all_tags()) == (name, tags)


def test_the_folder_of_an_installed_wheel() -> None:
    assert dist_info(Path("nvidia_cuda.NVCC-13.0.1.dist-info")) == ("nvidia-cuda-nvcc", "13.0.1")
    assert normalize("A__b.-c") == "a-b-c"


def test_a_digest_knows_its_kind(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"data")
    sha256, md5 = hashlib.sha256(b"data").hexdigest(), hashlib.md5(b"data").hexdigest()  # noqa: S324
    assert Digest.best(sha256, md5) == Digest("sha256", sha256)
    assert Digest.best("", md5) == Digest("md5", md5)
    assert Digest.best("", "") is None
    for digest in (Digest("sha256", sha256), Digest("md5", md5)):
        assert digest.is_valid()
        assert digest.is_of(file)
        assert Digest.parse(str(digest)) == digest
    assert not Digest("sha256", "0" * 64).is_of(file)
    for kind in ("sha0", "sha2\0", "shake_128", ""):
        with pytest.raises(ValueError, match="unknown kind of digest"):
            Digest(kind, "0").is_of(file)


@each(
    "text, kind",
    [
        ("A" * 64, "sha256"),
        (f"sha256:{'a' * 64}", "sha256"),
        (f"sha256={'a' * 64}", "sha256"),
        ("a" * 32, "md5"),
        (f"md5:{'a' * 32}", "md5"),
    ],
)
def test_a_digest_is_read_as_lists_write_it(text: str, kind: str) -> None:
    found = Digest.read(text)
    assert found
    assert (found.kind, set(found.value)) == (kind, {"a"})


@each("text", ["", "a", "a" * 40, f"sha1:{'a' * 40}", f"sha256:{'a' * 32}", "g" * 64, f"{'a' * 64}#"])
def test_what_is_read_as_no_digest(text: str) -> None:
    assert Digest.read(text) is None


@each("text", ["", "0" * 63, "0" * 65, "g" * 64, "A" * 64, "0" * 63 + "\n", "0" * 32])
def test_what_is_no_sha256(text: str) -> None:
    assert not is_sha256(text)
    assert not Digest("sha0", text).is_valid()
