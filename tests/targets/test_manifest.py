from pathlib import Path

import pytest

from tenv.core.errors import ManifestError, UnknownTargetError
from tenv.targets.manifest import Manifest
from tenv.targets.manifest_file import read_manifest
from tests.support.each import each

BASE = 'platforms = ["linux-64"]\npython = ">=3.11,<3.13"\n'


class Folder:
    """Manifests as texts, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> None:
        (self.folder / f"{name}.toml").write_text(text)

    def find(self, name: str) -> Path:
        path = self.folder / f"{name}.toml"
        if not path.is_file():
            raise UnknownTargetError(f"no {name}", hint="did you mean x?")
        return path

    def read(self, name: str = "t") -> Manifest:
        return read_manifest(name, self.find(name), self.find, f"{name}.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def fault(folder: Folder, text: str) -> ManifestError:
    folder.write("t", text)
    with pytest.raises(ManifestError) as error:
        folder.read()
    return error.value


def test_a_whole_manifest_is_read(folder: Folder) -> None:
    folder.write(
        "t",
        """\
description = "d"
platforms = ["linux-64", "win-64"]
channels = ["conda-forge"]
pytorch = ">=2.1,<2.14"
[requirements]
cuda = "12.1"
glibc = "2.17"
[dependencies]
python = "3.11.*"
magma-cuda121 = { version = "2.6.1", channel = "pytorch" }
[pypi-dependencies]
Num_Py = { version = "*", extras = ["b", "a"] }
[archives]
cusparselt = "0.5.2.1"
magma-extra = { url = "https://example.com/m.tar.xz", strip = 1, to = "opt/magma" }
[system]
gcc = ">=11,<13"
[platform.win-64.pypi-dependencies]
only-here = "1"
[activation.env]
USE_MPI = "0"
""",
    )
    manifest = folder.read()
    assert manifest.name == "t"
    assert str(manifest.requirements.cuda) == "12.1"
    assert manifest.dependencies["magma-cuda121"].channel == "pytorch"
    assert manifest.wheels["num-py"].extras == ("a", "b")
    assert manifest.archives["magma-extra"].to == "opt/magma"
    assert str(manifest.system["gcc"]) == ">=11,<13"
    assert manifest.variables() == {"USE_MPI": "0"}
    assert "only-here" not in manifest.on("linux-64").wheels
    assert "only-here" in manifest.on("win-64").wheels
    assert "num-py" in manifest.on("win-64").wheels
    assert (manifest.on("win-64").name, manifest.on("win-64").file) == ("t", "t.toml")


@each(
    "text, message, hint",
    [
        (BASE + "platfrom = 1\n", "t.toml:3: platfrom: unknown key", "did you mean `platform`?"),
        ('python = ">=3.11"\n', "t.toml: platforms: is required", '`platforms = ["linux-64"]` is an example'),
        (
            'platforms = ["linux64"]\n',
            "t.toml:1: platforms: unknown platform `linux64`",
            "known platforms: linux-64, linux-aarch64, win-64",
        ),
        (
            BASE + "[pypi-dependencies]\nnumpy = 2\n",
            "t.toml:4: pypi-dependencies.numpy: expected a version such as `*` or `>=1.2,<2`, "
            "or a table such as { version = ... }",
            "",
        ),
        (
            BASE + '[pypi-dependencies]\nnumpy = { verison = "1" }\n',
            "t.toml:4: pypi-dependencies.numpy.verison: unknown key",
            "did you mean `version`?",
        ),
        (
            BASE + '[pypi-dependencies]\nnumpy = ">>2"\n',
            "t.toml:4: pypi-dependencies.numpy: `>>2` is not a version range such as `*`, `3.11.*` or `>=11,<13`",
            "",
        ),
        (
            BASE + '[pypi-dependencies]\n"a b" = "1"\n',
            "t.toml:4: pypi-dependencies.a b: `a b` is not a package name",
            "",
        ),
        (
            BASE + '[requirements]\ncuda = "latest"\n',
            "t.toml:4: requirements.cuda: `latest` is not a dotted version such as 12.1 or 580.65.06",
            "",
        ),
        (
            BASE + '[activation.env]\n"A-B" = "1"\n',
            "t.toml:4: activation.env.A-B: `A-B` is not a valid name for a variable",
            "",
        ),
        (
            BASE + "[activation.env]\nA = 1\n",
            "t.toml:4: activation.env.A: expected a string, got a number",
            "",
        ),
        (
            BASE + '[activation.env]\nA = "x\\ny"\n',
            "t.toml:4: activation.env.A: has a line break or a null byte, which a variable can't hold",
            "",
        ),
        (
            'platforms = ["linux-64"]\n[pypi-dependencies]\nnumpy = "*"\n',
            "t.toml: python: is required for [pypi-dependencies], since no conda package supplies a Python",
            '`python = ">=3.11,<3.15"` is an example',
        ),
        (
            BASE + '[dependencies]\npython = "3.11.*"\n',
            "t.toml:2: python: is set both here and in [dependencies]",
            "remove one of the two",
        ),
        (
            'platforms = ["linux-64"]\npython = ">=4"\n',
            "t.toml:2: python: `>=4` contains no Python 3 minor",
            "",
        ),
        (
            BASE + '[dependencies]\ncudnn = "*"\n[pypi-dependencies]\nnvidia-cudnn-cu13 = "*"\n',
            "t.toml:5: pypi-dependencies: "
            "`cudnn` is supplied by both [dependencies] and [pypi-dependencies] on linux-64",
            "remove it from one of the two",
        ),
        (
            BASE + '[archives]\nx = { url = "https://h/u.zip", version = "1" }\n',
            "t.toml:4: archives.x: needs either a `version` of a known product or a `url`",
            "",
        ),
        (
            BASE + '[archives]\nx = { url = "https://h/u.zip", sha256 = "12" }\n',
            "t.toml:4: archives.x.sha256: expected 64 hex digits",
            "",
        ),
        (
            BASE + '[platform.win-64.pypi-dependencies]\nx = "1"\n',
            "t.toml:3: platform.win-64: `win-64` is not one of the manifest's platforms",
            "",
        ),
        (BASE + "[platform.osx-64]\n", "t.toml:3: platform.osx-64: unknown key", ""),
        (BASE + 'extends = "t"\n', "t.toml:3: extends: is a circle: t \N{RIGHTWARDS ARROW} t", ""),
        (BASE + 'extends = "gone"\n', "t.toml:3: extends: no manifest `gone`", "did you mean x?"),
    ],
)
def test_a_fault_is_told_with_path_line_and_hint(folder: Folder, text: str, message: str, hint: str) -> None:
    error = fault(folder, text)
    assert error.message == message
    if hint:
        assert error.hint == hint


def test_a_child_is_laid_over_its_parent_key_by_key(folder: Folder) -> None:
    folder.write(
        "base",
        BASE + '[requirements]\nglibc = "2.28"\n[pypi-dependencies]\na = "1"\nb = "1"\n'
        '[platform.linux-64.pypi-dependencies]\nc = "1"\n[activation.env]\nX = "1"\nY = "1"\n',
    )
    folder.write(
        "t",
        'extends = "base"\ndescription = "child"\n[requirements]\ncuda = "13.0"\n[pypi-dependencies]\nb = "2"\n'
        '[platform.linux-64.pypi-dependencies]\nd = "1"\n[activation.env]\nY = "2"\n',
    )
    manifest = folder.read().on("linux-64")
    assert {name: str(request.version) for name, request in manifest.wheels.items()} == {
        "a": "1",
        "b": "2",
        "c": "1",
        "d": "1",
    }
    assert manifest.variables() == {"X": "1", "Y": "2"}
    assert (str(manifest.requirements.cuda), str(manifest.requirements.glibc)) == ("13.0", "2.28")
    assert manifest.description == "child"


def test_a_child_may_be_for_fewer_platforms(folder: Folder) -> None:
    folder.write("base", 'platforms = ["linux-64", "win-64"]\n[platform.win-64.activation.env]\nX = "1"\n')
    folder.write("t", 'extends = "base"\nplatforms = ["linux-64"]\n')
    assert folder.read().platforms == ("linux-64",)


def test_a_fault_in_a_parent_is_told_with_the_parent_s_name(folder: Folder) -> None:
    folder.write("base", BASE + "channls = []\n")
    folder.write("t", 'extends = "base"\n')
    with pytest.raises(ManifestError, match=r"base\.toml:3: channls: unknown key"):
        folder.read()


def test_python_minors_are_those_of_the_range(folder: Folder) -> None:
    folder.write("t", 'platforms = ["linux-64"]\npython = ">=3.9,<3.12,!=3.10.*"\n')
    assert folder.read().python_minors() == ("3.9", "3.11")


def test_the_digest_is_of_what_is_asked_and_nothing_else(folder: Folder) -> None:
    folder.write("t", BASE + '[pypi-dependencies]\na = "1"\nb = "1"\n')
    first = folder.read()
    folder.write("t", "# a comment\n" + BASE + 'description = "d"\n[pypi-dependencies]\nb = "1"\na = "1"\n')
    assert folder.read().digest() == first.digest()
    folder.write("t", BASE + '[pypi-dependencies]\na = "1"\nb = "1"\n[activation.env]\nX = "1"\n')
    assert folder.read().digest() == first.digest()
    assert folder.read().settings_digest() != first.settings_digest()
    folder.write("t", BASE + '[pypi-dependencies]\na = "2"\nb = "1"\n')
    assert folder.read().digest() != first.digest()


CONDA = 'platforms = ["linux-64"]\nchannels = ["forge"]\n[dependencies]\n'


def test_a_conda_request_knows_its_line_and_its_specification(folder: Folder) -> None:
    folder.write("t", CONDA + '_mutex = "*"\nmagma = { version = "2.6.1", channel = "py/label/x", build = "*_1" }\n')
    manifest = folder.read()
    magma = manifest.dependencies["magma"]
    assert magma.line == "t.toml:5"
    assert magma.spec("magma") == (
        'magma[version="==2.6.1",build="*_1",channel="https://conda.anaconda.org/py/label/x"]'
    )
    assert str(magma) == '{ version = "2.6.1", build = "*_1", channel = "py/label/x" }'
    assert manifest.sources("linux-64") == ("https://conda.anaconda.org/forge", "https://conda.anaconda.org/py/label/x")


@each(
    "line, told",
    [
        ('Magma = "*"', "`Magma` is not the name of a conda package"),
        ('"a[b]" = "*"', "`a[b]` is not the name of a conda package"),
        ('magma = ">=1]"', "`>=1]` is not a version range such as"),
        ('magma = ""', "is required"),
        ('magma = { build = "a b" }', "`a b` is not a build string"),
        ('magma = { channel = "../up" }', "`../up` is not a channel"),
        ('magma = { channel = "a b" }', "`a b` is not a channel"),
    ],
)
def test_a_conda_request_made_to_escape_is_refused(folder: Folder, line: str, told: str) -> None:
    error = fault(folder, CONDA + line + "\n")
    assert error.message.startswith("t.toml:4: dependencies.")
    assert told in error.message
