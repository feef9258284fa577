"""The layers of the design, and the rules that a look at the imports can hold."""

import ast
import functools
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "src" / "tenv").rglob("*.py"))

ONLY_IN = {
    "subprocess": {"process.py"},
    "rattler": {"engine"},
    "uv": {"providers/pypi.py"},
    "filelock": {"files.py"},
    "requests": {"providers/pypi.py", "providers/wheel_urls.py", "providers/download.py", "providers/transfer.py"},
    "conda_lock": {"interop/conda_lock.py"},
}
LATE = (
    "rattler",
    "tomlkit",
    "requests",
    "rich",
    "filelock",
    "platformdirs",
    "packaging",
    "yaml",
    "pynvml",
    "uv",
    "conda_lock",
)


@functools.cache
def imports(path: Path) -> frozenset[tuple[str, bool]]:
    """Return every module that a file imports by its first name, and whether it does so while it is itself imported."""
    found: set[tuple[str, bool]] = set()
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text()), True)]
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


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_has_one_importer(library: str) -> None:
    package = ROOT / "src" / "tenv"
    importers = {path.relative_to(package) for path in MODULES if library in {name for name, _ in imports(path)}}
    allowed = {Path(name) for name in ONLY_IN[library]}
    outside = {path for path in importers if path not in allowed and not allowed.intersection(path.parents)}
    assert importers
    assert not outside


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src" / "tenv")))
def test_heavy_libraries_are_imported_late(path: Path) -> None:
    early = {name for name, at_import in imports(path) if at_import}
    assert early.isdisjoint(LATE)
