"""The layers of the design, and the rules that a look at the imports can hold."""

import ast
from collections.abc import Iterator
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
    "requests": {
        "providers/pypi.py",
        "providers/wheel_metadata.py",
        "providers/wheel_urls.py",
        "providers/download.py",
        "providers/transfer.py",
    },
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


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield every module that a file imports by its first name, and whether it does so while it is itself imported."""
    tree = ast.parse(path.read_text())
    late = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    late |= {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name.split(".")[0], id(node) not in late) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0], id(node) not in late


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
