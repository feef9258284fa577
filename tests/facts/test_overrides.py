"""The user's files add rows and replace them; an invalid one is reported with its line."""

from pathlib import Path

import pytest

from tenv.core.errors import Exit, FactsError
from tenv.core.versions import Version
from tenv.facts.forward_compat import ForwardVerdict
from tenv.facts.tables import default_overrides, load_facts
from tests.support.each import each

NEW = """\
[sources]
RN = "the notes of my vendor"

[[toolkit]]
toolkit = "13.9.0"
major_minor = "13.9"
rn_linux = "650.10"
confirmed = true
source = "RN"
"""


def write(folder: Path, text: str, name: str = "cuda_driver.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def test_a_new_driver_needs_no_release(tmp_path: Path) -> None:
    assert load_facts().cuda_driver.native(Version("13.9"), windows=False) is None
    table = load_facts([write(tmp_path, NEW)]).cuda_driver
    found = table.native(Version("13.9"), windows=False)
    assert found is not None
    assert (str(found.driver), found.basis.source, found.basis.confirmed) == ("650.10", "the notes of my vendor", True)
    assert str(table.toolkits[0].toolkit) == "13.9.0"
    old = table.native(Version("12.4"), windows=False)
    assert old is not None
    assert "docs.nvidia.com" in old.basis.source  # an abbreviation means what its own file says


def test_a_row_is_replaced_as_a_whole(tmp_path: Path) -> None:
    text = '[[toolkit]]\nmajor_minor = "12.1"\ngcc_min = 6\ngcc_max = 99\nclang_min = "7"\nclang_max = "15"\n'
    text += 'msvc_min = 1910\nmsvc_below = 1940\nsource = "tried"\n'
    facts = load_facts([write(tmp_path, text, "cuda_host_compiler.toml").parent])
    row = facts.cuda_host_compiler.limits(Version("12.1"))
    assert row is not None
    assert (row.gcc_max, row.basis.source, row.basis.confirmed, row.basis.note) == (99, "tried", False, "")
    assert len(facts.cuda_host_compiler.toolkits) == len(load_facts().cuda_host_compiler.toolkits)


def test_a_package_names_its_branches_itself(tmp_path: Path) -> None:
    text = '[[forward_compat_row]]\npackage = "cuda-compat-13-5"\ncuda = "13.5"\nsource = "s"\n'
    table = load_facts([write(tmp_path, text + 'by_branch = { "580" = "C", "620" = "N" }\n')]).cuda_driver
    row = table.forward.find(Version("13.5"), Version("620.1"))
    assert row is not None
    assert (row.verdict, row.basis.confirmed) == (ForwardVerdict.NATIVE, False)


def test_the_first_place_wins(tmp_path: Path) -> None:
    near = write(tmp_path / "near", NEW.replace("650.10", "651"))
    far = write(tmp_path / "far", NEW)
    found = load_facts([near, far.parent]).cuda_driver.native(Version("13.9"), windows=False)
    assert found is not None
    assert str(found.driver) == "651"


def test_a_row_in_one_line_is_read_too(tmp_path: Path) -> None:
    text = 'toolkit = [{ toolkit = "13.9.0", major_minor = "13.9", rn_linux = "650.10", source = "s" }]\n'
    assert load_facts([write(tmp_path, text)]).cuda_driver.native(Version("13.9"), windows=False)


def test_a_plain_table_is_replaced(tmp_path: Path) -> None:
    text = '[linux_tarball]\nversion = "2.9"\nurl_pattern = "https://m/{NODOT}-{VERSION}"\ncuda_seen = ["128"]\n'
    magma = load_facts([write(tmp_path, text + 'source = "s"\n', "magma.toml")]).magma
    assert magma.tarballs.url(Version("12.8")) == "https://m/128-2.9"
    assert magma.has_tarball(Version("12.8"))


def test_default_overrides(tmp_path: Path) -> None:
    environ = {"TENV_FACTS": f"{tmp_path / 'one'}:{tmp_path / 'two.toml'}:"}
    assert default_overrides({}, tmp_path) == ()
    assert default_overrides(environ, tmp_path) == (tmp_path / "one", tmp_path / "two.toml")
    (tmp_path / "facts").mkdir()
    assert default_overrides(environ, tmp_path)[-1] == tmp_path / "facts"


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    facts = load_facts([write(tmp_path, "not TOML at all")])
    assert facts.cuda_gpu_arch.archs(Version("13.0"))
    with pytest.raises(FactsError, match="not TOML"):
        _ = facts.cuda_driver


BAD_BRANCH = '[[forward_compat_row]]\npackage = "p"\ncuda = "13.5"\nsource = "s"\n'


@each(
    "text, message",
    [
        (NEW.replace('"650.10"', '"new"'), ":7: toolkit.rn_linux: `new` is not a dotted version such as 12.1 or 580."),
        (NEW + NEW[NEW.index("[[") :], ":10: toolkit: there are two rows for 13.9.0"),
        (NEW.replace('"13.9.0"', '""'), ":5: toolkit.toolkit: is required"),
        (NEW.replace("rn_linux", "rn_linus"), ":7: toolkit.rn_linus: unknown key"),
        (NEW.replace('source = "RN"', ""), ":4: toolkit.source: is required"),
        (NEW.replace("confirmed = true", 'confirmed = "yes"'), ":8: toolkit.confirmed: expected true or false, got"),
        (NEW.replace("[[toolkit]]", "[[toolkits]]"), ":4: toolkits: unknown key"),
        ("schema = 2\n" + NEW, ":1: schema: this tenv reads schema 1, not 2"),
        (BAD_BRANCH + 'by_branch = "CN"', ":5: forward_compat_row.by_branch: expected one mark for each of 7 driver"),
        (BAD_BRANCH + 'by_branch = { x = "C" }', ":5: forward_compat_row.by_branch: expected a driver branch and one"),
        (BAD_BRANCH + 'by_branch = { "620" = "Y" }', ":5: forward_compat_row.by_branch: expected a driver branch and"),
        ("toolkit = [1]", ":1: toolkit: expected an array of tables, got a number in it"),
        (
            '[[minor_version_compat]]\ncuda_major = "14"\nsource = "s"',
            ":2: minor_version_compat.cuda_major: expected a",
        ),
    ],
)
def test_a_broken_file_names_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(FactsError) as caught:
        _ = load_facts([file]).cuda_driver
    assert caught.value.message.startswith(f"{file}{message}")
    assert caught.value.status == Exit.USAGE


@each(
    "name, text, message",
    [
        (
            "cuda_gpu_arch",
            '[[toolkit]]\nmajor_minor = "14.0"\nsm = ["75"]\n',
            ":3: toolkit.sm: expected a list of numb",
        ),
        ("cuda_gpu_arch", '[[toolkit]]\nmajor_minor = "14.0"\nsm = [75]\n', ":1: toolkit.min: is required"),
        ("cuda_gpu_arch", '[[family]]\nname = "Feynman"\ncc = ["x"]\n', ":3: family.cc: `x` is not a dotted version"),
        ("cusparselt", '[[pytorch_ci]]\ncuda = "x-y"\n', ":2: pytorch_ci.cuda: expected a version or a range such as"),
        (
            "cusparselt",
            '[[pytorch_wheel]]\ntorch = "3.0"\nrequires = "x"\n',
            ":3: pytorch_wheel.requires: expected a p",
        ),
        (
            "magma",
            '[[conda_pytorch]]\nname = "magma"\nversion = "2"\n',
            ":2: conda_pytorch.name: expected a name such as magma-cuda12",
        ),
        ("pytorch_build", '[[cuda_arch_matrix]]\ntorch = "new"\n', ":2: cuda_arch_matrix.torch: expected a range such"),
        (
            "pytorch_build",
            '[[cuda_arch_matrix]]\ntorch = "3.0"\nlinux_aarch64 = { new = "8.0" }\n',
            ":3: cuda_arch_matrix.linux_aarch64: `new` is not a dotted version",
        ),
    ],
)
def test_a_broken_row_of_another_table(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = write(tmp_path, text + 'source = "s"\n', f"{name}.toml")
    with pytest.raises(FactsError) as caught:
        getattr(load_facts([file]), name)
    assert caught.value.message.startswith(f"{file}{message}")


def test_a_file_of_an_unknown_table(tmp_path: Path) -> None:
    file = write(tmp_path, "", "cuda_drivers.toml")
    with pytest.raises(FactsError) as caught:
        load_facts([tmp_path])
    assert caught.value.message == f"{file}: unknown table of facts"
    assert caught.value.hint == "did you mean `cuda_driver`?"


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="no such file or folder"):
        load_facts([tmp_path / "nowhere"])
