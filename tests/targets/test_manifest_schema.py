"""The JSON schema of manifests: what the reader accepts is valid, and a typo is found where it stands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli

from tenv.core.errors import ManifestError
from tenv.targets.manifest_file import read_manifest
from tenv.targets.manifest_keys import MANIFEST, SCHEMA_FILE, Form, Key, manifest_schema, schema_text
from tests.support.each import each
from tests.support.projects import call

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "manifests").glob("*.toml"))
IN_TESTS = sorted({*(ROOT / "tests").rglob("manifests/*.toml"), *(ROOT / "examples").rglob("manifests/*.toml")})
jsonschema = pytest.importorskip("jsonschema", reason="the test dependencies are not all installed")
VALIDATOR = jsonschema.Draft7Validator(manifest_schema())
WHOLE = """\
"$schema" = "./tenv.schema.json"
description = "d"
platforms = ["linux-64", "win-64"]
channels = ["conda-forge", "nvidia/label/cuda-12.1.1", "https://h/c"]
pytorch = ">=2.1,<2.14"
python = ">=3.11,<3.13"
sdists = ["alpha"]
constraints = ["urllib3<2"]
overrides = ["requests[socks]", "py-spy; sys_platform == 'never'"]
for = "../.venv"
[requirements]
cuda = "12.1"
glibc = "2.17"
[dependencies]
cmake = ">=3.27,<4"
magma-cuda121 = { version = "2.6.1", channel = "pytorch", build = "*_1" }
gone = false
[pypi-dependencies]
Num_Py = { version = "*", extras = ["b", "a"] }
torch = { version = "2.9.*", index = "pytorch-cu128", build = true }
[archives]
cusparselt = "0.5.2.1"
cuda = { version = "auto", components = ["nvcc"] }
magma-extra = { url = "https://example.com/m.tar.xz", strip = 1, to = "opt/magma" }
[system]
gcc = ">=11,<13"
[platform.win-64.pypi-dependencies]
only-here = "1"
[feature.debug.pypi-dependencies]
debugpy = "*"
[feature.debug.platform.win-64.pypi-dependencies]
extra = "1"
[activation.env]
USE_MPI = "0"
PATH = { prepend = ["$TENV_PREFIX/opt/bin"] }
OLD = { unset = true }
[[index]]
name = "pytorch-cu128"
url = "https://h/cu128"
format = "simple"
explicit = true
[pypi-options]
index-url = "https://h/simple"
extra-index-urls = ["https://h/more"]
find-links = [{ path = "links" }, { url = "https://h/page.html" }]
[build]
cache = "sccache"
[platform.linux-64.pypi-dependencies]
pure = { url = "https://h/pure-1.0-py3-none-any.whl" }
"""


def faults(text: str) -> list[tuple[str, str]]:
    """Return the place and the message of each fault, the place of an unknown key being that key."""
    found = []
    for error in VALIDATOR.iter_errors(tomli.loads(text)):
        keys = re.findall(r"'([^']+)' (?:was|were) unexpected", error.message) or (
            re.findall(r"^'([^']+)'", error.message) if "propertyNames" in error.absolute_schema_path else []
        )
        found.append((".".join(map(str, (*error.absolute_path, *keys))), error.message))
    return found


def is_read(folder: Path, text: str) -> bool:
    (folder / "t.toml").write_text(text)
    try:
        read_manifest("t", folder / "t.toml", lambda name: folder / f"{name}.toml")
    except ManifestError:
        return False
    return True


@each("file", [*SHIPPED, *IN_TESTS])
def test_every_manifest_is_valid(file: Path) -> None:
    assert faults(file.read_text()) == []


def test_a_manifest_with_every_key_is_valid_and_read(tmp_path: Path) -> None:
    assert faults(WHOLE) == []
    assert is_read(tmp_path, WHOLE)


TYPOS = [
    ("description =", "descripton =", "descripton"),
    ('description = "d"', "description = 5", "description"),
    ("platforms =", "platfroms =", "platfroms"),
    ('["linux-64", "win-64"]', '["linux64", "win-64"]', "platforms.0"),
    ('["linux-64", "win-64"]', '["linux-64", "linux-64", "win-64"]', "platforms"),
    ('["linux-64", "win-64"]', '"linux-64"', "platforms"),
    ('"https://h/c"', '"../c"', "channels.2"),
    ("channels =", "channel =", "channel"),
    ('pytorch = ">=2.1,<2.14"', 'pytorch = "=>2.1"', "pytorch"),
    ('python = ">=3.11,<3.13"', "python = 3.11", "python"),
    ("[requirements]", "[requirement]", "requirement"),
    ('cuda = "12.1"\n', 'cuda = "latest"\n', "requirements.cuda"),
    ('glibc = "2.17"', 'glbc = "2.17"', "requirements.glbc"),
    ("[dependencies]", "[dependancies]", "dependancies"),
    ('cmake = ">=3.27,<4"', 'cmake = ">=3.27;<4"', "dependencies.cmake"),
    ('cmake = ">=3.27,<4"', 'CMake = ">=3.27,<4"', "dependencies.CMake"),
    ("gone = false", "gone = true", "dependencies.gone"),
    ('channel = "pytorch", build', 'chanel = "pytorch", build', "dependencies.magma-cuda121.chanel"),
    ('build = "*_1"', 'build = "a b"', "dependencies.magma-cuda121.build"),
    ("[pypi-dependencies]", "[pypi-dependency]", "pypi-dependency"),
    ('extras = ["b", "a"]', 'extra = ["b", "a"]', "pypi-dependencies.Num_Py.extra"),
    ('extras = ["b", "a"]', 'extras = "b"', "pypi-dependencies.Num_Py.extras"),
    ('Num_Py = { version = "*"', 'Num_Py = { version = ">>2"', "pypi-dependencies.Num_Py.version"),
    ("strip = 1", 'strip = "1"', "archives.magma-extra.strip"),
    ("strip = 1", "strip = -1", "archives.magma-extra.strip"),
    ('url = "https://example.com/m.tar.xz"', 'ulr = "https://example.com/m.tar.xz"', "archives.magma-extra.ulr"),
    ('url = "https', 'version = "1", url = "https', "archives.magma-extra"),
    ('gcc = ">=11,<13"', 'gcc = { version = ">=11" }', "system.gcc"),
    ("[platform.win-64.pypi", "[platform.win64.pypi", "platform.win64"),
    ("[feature.debug.pypi-dependencies]", "[feature.debug.activation]", "feature.debug.activation"),
    ("[activation.env]", "[activation.envs]", "activation.envs"),
    ('USE_MPI = "0"', "USE_MPI = 0", "activation.env.USE_MPI"),
    ('USE_MPI = "0"', '"USE-MPI" = "0"', "activation.env.USE-MPI"),
    ("{ prepend =", "{ before =", "activation.env.PATH.before"),
    ('PATH = { prepend = ["$TENV_PREFIX/opt/bin"] }', 'PATH = "/x"', "activation.env.PATH"),
    ("{ unset = true }", "{ unset = false }", "activation.env.OLD.unset"),
    ('cache = "sccache"', 'cache = "scache"', "build.cache"),
    ('index = "pytorch-cu128"', 'idnex = "pytorch-cu128"', "pypi-dependencies.torch.idnex"),
    ('sdists = ["alpha"]', 'sdists = "alpha"', "sdists"),
    ('"urllib3<2"', '"urllib3[socks]<2"', "constraints.0"),
    ('"urllib3<2"', "\"urllib3; sys_platform == 'linux'\"", "constraints.0"),
    ('"requests[socks]"', '"requests"', "overrides.0"),
    ("build = true", 'build = "yes"', "pypi-dependencies.torch.build"),
    ('format = "simple"', 'format = "html"', "index.0.format"),
    ('url = "https://h/cu128"', 'uri = "https://h/cu128"', "index.0.uri"),
    ("extra-index-urls", "extra-index-url", "pypi-options.extra-index-url"),
    ('{ path = "links" }', '{ folder = "links" }', "pypi-options.find-links.0.folder"),
    ('url = "https://h/pure', 'url = "ftp://h/pure', "platform.linux-64.pypi-dependencies.pure.url"),
]


@each("right, wrong, place", TYPOS)
def test_a_typo_is_found_where_it_stands_and_the_reader_refuses_it(
    right: str, wrong: str, place: str, tmp_path: Path
) -> None:
    assert right in WHOLE
    text = WHOLE.replace(right, wrong, 1)
    assert place in {where for where, _ in faults(text)}, faults(text)
    assert not is_read(tmp_path, text)


WRONG = {Form.TEXT: '"a b c"', Form.FLAG: "true", Form.COUNT: "7", Form.TEXTS: '["a b c"]', Form.TABLE: "{ zzz = 1 }"}


def places(keys: tuple[Key, ...], above: str = "") -> Iterator[tuple[str, Key]]:
    for key in keys:
        here = f'{above}"{key.name}"'
        yield here, key
        yield from places(key.keys, f"{here}.")
        if key.each:
            known = key.each.known[:1] if key.name == "platform" else key.each.known  # all platforms have one table
            named = [*known, *([] if key.each.closed else [key.each.value])]
            yield from places(tuple(named), f"{here}.")


@each("place, key", places(MANIFEST))
def test_schema_and_reader_refuse_a_value_of_another_type(place: str, key: Key, tmp_path: Path) -> None:
    head = 'platforms = ["linux-64", "linux-aarch64", "win-64"]\n' if key.name != "platforms" else ""
    for form, value in WRONG.items():
        if form not in key.forms:
            text = f"{head}{place} = {value}\n"
            assert faults(text), text
            assert not is_read(tmp_path, text), text


def test_every_key_has_a_description() -> None:
    def walk(node: Any, place: str) -> None:
        if isinstance(node, dict):
            for name, value in node.get("properties", {}).items():
                assert value["description"][:1].strip(), f"{place}.{name}"
                walk(value, f"{place}.{name}")
            walk(node.get("additionalProperties"), f"{place}.*")

    jsonschema.Draft7Validator.check_schema(manifest_schema())
    walk(manifest_schema(), "")


def test_the_file_in_the_wheel_is_the_schema() -> None:
    shipped = ROOT / "docs" / SCHEMA_FILE
    assert shipped.read_text() == schema_text(), "`tenv export schema -o docs/tenv.schema.json --force` renews it"
    assert f'"docs/{SCHEMA_FILE}" = "tenv/builtin/{SCHEMA_FILE}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.usefixtures("empty_project")
@pytest.mark.parametrize("extends", [[], ["--extends", "cuda130"]])
def test_what_init_writes_names_its_schema_and_is_valid(extends: list[str]) -> None:
    assert call("init", "mine", *extends).status == 0
    manifest = Path("manifests/mine.toml").read_text()
    named = re.match(r"#:schema (\S+)\n", manifest)
    assert named
    assert (Path("manifests") / named[1]).read_text() == schema_text()
    assert faults(manifest) == []
    assert call("show", "mine").status == 0


def recorded(heading: str) -> Iterator[list[str]]:
    """Yield the rows of a table of the page on editors, as cells."""
    page = (ROOT / "docs" / "guide" / "editors.md").read_text()
    for line in page.partition(f"## {heading}\n")[2].partition("\n## ")[0].splitlines()[3:]:
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def names_and_meanings(part: Any) -> Iterator[tuple[str, str]]:
    """Yield each key and value of a schema with its description."""
    if isinstance(part, dict):
        for name, value in part.get("properties", {}).items():
            yield name, value.get("description", "")
        for value in part.get("enum", ()):
            yield f'"{value}"', ""
        for value in part.values():
            yield from names_and_meanings(value)
    elif isinstance(part, list):
        for value in part:
            yield from names_and_meanings(value)


def test_the_page_on_editors_shows_keys_of_the_schema() -> None:
    known = dict(names_and_meanings(manifest_schema()))
    offered = [label for row in recorded("What is offered") for label in re.findall(r"`([^`]+)`", row[-1])]
    assert {"platforms", "cuda", "extras", '"ccache"'} <= {*offered}
    assert {part for label in offered for part in label.split(".")} <= known.keys()


def test_the_page_on_editors_explains_as_the_schema_does() -> None:
    meanings = {meaning for _, meaning in names_and_meanings(manifest_schema())}
    rows = [*recorded("What is explained")]
    assert len(rows) > 3
    assert {row[-1] for row in rows} <= meanings


@each("row", [*recorded("What is marked")])
def test_the_page_on_editors_marks_what_is_wrong(row: list[str]) -> None:
    text = "\n".join(re.findall(r"`([^`]+)`", row[0]))
    assert faults(text + "\n")
