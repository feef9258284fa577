"""The layers of the design, and the rules that a look at the imports can hold."""

import ast
import functools
import re
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from importlinter.cli import lint_imports
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tenv.targets.sections import SECTIONS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tenv"
MODULES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
"""The modules of tenv by their names below the package: each rule is one test, which lists all that break it."""

ONLY_IN = {
    "subprocess": {"core/process.py", "install/standalone.py"},  # the latter runs where no other module of tenv is
    "rattler": {"rattler_api"},
    "uv": {"sources/wheels/uv_program.py"},
    "requests": {"core/http.py"},
    "urllib3": {"core/http.py"},
    "truststore": {"core/certificates.py"},
    "conda_lock": {"interop/conda_lock.py"},
    "pynvml": {"host/nvml_child.py"},
    "jinja2": {"core/page.py"},
    "cyclonedx": {"audits/sbom.py"},
}
BROUGHT_ALONG = {
    "urllib3": "requests",
    "certifi": "requests",
    "pydantic": "conda-lock",
    "packageurl": "cyclonedx-python-lib",
}
"""Libraries that are imported for the errors that another one lets through, which brings them."""

LATE = (
    "rattler",
    "tomlkit",
    "requests",
    "truststore",
    "rich",
    "platformdirs",
    "packaging",
    "yaml",
    "pynvml",
    "uv",
    "conda_lock",
    "jinja2",
    "cyclonedx",
)


@dataclass(frozen=True)
class Looked:
    """What the rules ask of a module's tree, which takes much memory itself.

    Attributes:
        imports: Every module that it imports by its first name, and whether it does so while it is itself imported.
        texts: Its texts, docstrings aside.
        names: Its attributes, texts and arguments.
        classes: Its classes, each with its line.
        functions: Its functions, each with its lines without the docstring.
    """

    imports: frozenset[tuple[str, bool]]
    texts: tuple[str, ...]
    names: frozenset[str]
    classes: tuple[tuple[str, int], ...]
    functions: tuple[tuple[str, int], ...]


@functools.cache
def look(path: Path) -> Looked:
    """Return what the rules ask of a module."""
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    texts = tuple(str(node.value) for node in constants if id(node) not in docstrings)
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {str(node.value) for node in constants}
    names |= {node.arg for node in nodes if isinstance(node, ast.keyword | ast.arg) and node.arg}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return Looked(
        _imports(tree),
        texts,
        frozenset(names),
        tuple((node.name, node.lineno) for node in nodes if isinstance(node, ast.ClassDef)),
        tuple((node.name, body(node)) for node in functions),
    )


def _imports(tree: ast.Module) -> frozenset[tuple[str, bool]]:
    found: set[tuple[str, bool]] = set()
    waiting: list[tuple[ast.AST, bool]] = [(tree, True)]
    while waiting:
        node, early = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ):
            early = False
        if isinstance(node, ast.Import):
            found |= {(name.name.split(".")[0], early) for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add((node.module.split(".")[0], early))
        elif not isinstance(node, ast.expr):  # no expression holds an import
            waiting += [(child, early) for child in ast.iter_child_nodes(node)]
    return frozenset(found)


def test_the_layers_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0


@pytest.mark.long
def test_a_library_has_one_importer() -> None:
    importers = {
        (library, name)
        for name, path in MODULES.items()
        for library in ONLY_IN.keys() & {imported for imported, _ in look(path).imports}
    }
    assert {library for library, _ in importers} == set(ONLY_IN)
    assert [(library, name) for library, name in importers if not _allowed(library, name)] == []


def _allowed(library: str, name: str) -> bool:
    return any(name == allowed or name.startswith(f"{allowed}/") for allowed in ONLY_IN[library])


def test_what_is_imported_is_installed_with_tenv() -> None:
    """A library that only happens to be there (a test needs it, say) is a bug on every user's machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [row for name, rows in project["optional-dependencies"].items() if name != "test" for row in rows]
    declared = {canonicalize_name(Requirement(row).name) for row in (*project["dependencies"], *extras)}
    imported = {name for path in MODULES.values() for name, _ in look(path).imports} - {
        "tenv",
        *sys.stdlib_module_names,
    }
    owners = {**packages_distributions(), **{name: [owner] for name, owner in BROUGHT_ALONG.items()}}
    bare = {name for name in imported if declared.isdisjoint(map(canonicalize_name, owners.get(name, ())))}
    assert imported.issuperset({"click", *BROUGHT_ALONG})
    assert not bare


def test_heavy_libraries_are_imported_late() -> None:
    found = {name: {library for library, early in look(path).imports if early} for name, path in MODULES.items()}
    assert {name: libraries & set(LATE) for name, libraries in found.items() if libraries & set(LATE)} == {}


FORMS = ("conda.anaconda.org", "repo.anaconda.com", "[0-9a-f]{64}", "[0-9a-fA-F]{64}", ".dist-info", ".whl")
"""Parts of the names of channels, digests, installed wheels and wheels."""


def test_names_are_read_and_built_in_one_place() -> None:
    found = {
        name: [text for text in look(path).texts if any(form in text for form in FORMS)]
        for name, path in MODULES.items()
        if path.name != "names.py"
    }
    assert {name: texts for name, texts in found.items() if texts} == {}


ROOMS = ("verbs", "cli")
"""Folders whose files are named after commands, so that one command has a file of its name in each."""
SHARED_FILES = {"__init__.py", "interface.py", "choose.py", "source.py"}
"""File names with one meaning wherever they stand: the interface of a folder, what a source is, how it chooses."""
NOUN_FILES = {"driver.py", "libstdcxx.py", "lock.py", "msvc.py", "rocm.py"}
"""One thing in several folders: as a fact, as a probe finds it, as a rule judges it, as a command names it."""


def test_no_class_name_has_two_meanings() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES.values():
        for name, line in look(path).classes:
            found.setdefault(name, []).append(f"{path.relative_to(ROOT)}:{line}")
    assert len(found) > 200
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_no_file_name_has_two_meanings() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES.values():
        folder = path.parent.relative_to(PACKAGE).parts[:1]
        if path.name not in SHARED_FILES | NOUN_FILES and folder != ROOMS[:1]:
            found.setdefault(path.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_no_verb_names_the_sources_one_by_one() -> None:
    """They loop over `tenv.sources.interface.sources`; import and export know the forms of other tools."""
    keys = {section.key for section in SECTIONS} - {"system"}
    folders = ("verbs", "solve", "install", "cli")
    assert [name for name, path in MODULES.items() if name.split("/")[0] in folders and keys <= look(path).names] == []


PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]


def test_the_drawing_shows_the_layers_of_the_contract() -> None:
    drawn = PAGE.partition("<!-- layers:begin -->\n```text\n")[2].partition("\n```\n<!-- layers:end -->")[0]
    assert drawn.splitlines() == LAYERS, "docs/architecture.md draws the layers of pyproject.toml, top to bottom"


def test_every_folder_has_a_line() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert set(re.findall(r"^\| `(\w+)/` \| \S", PAGE, re.MULTILINE)) == folders
    assert {name for layer in LAYERS for name in layer.split(" | ")} == folders


def test_every_file_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|md|toml))`", PAGE))
    bases = (ROOT, PACKAGE, PACKAGE / "checks", PACKAGE / "activation", PACKAGE / "sources" / "archives")
    assert len(named) > 20
    assert {name for name in named if "NAME" not in name and not any((base / name).exists() for base in bases)} == {
        "checks/rules/TOPIC.py",
        "docs/rules/CODE.md",
    }


def body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    first = node.body[0]
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    lines = (node.end_lineno or 0) - node.lineno + 1
    return lines - ((first.end_lineno or 0) - first.lineno + 1 if text else 0)


def test_modules_stay_below_500_lines() -> None:
    lines = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: count for name, count in lines.items() if count > 500} == {}


def test_functions_stay_below_50_lines() -> None:
    functions = [(f"{name}: {one}", lines) for name, path in MODULES.items() for one, lines in look(path).functions]
    assert len(functions) > 1000
    assert [(name, lines) for name, lines in functions if lines > 50] == []
