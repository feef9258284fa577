"""What every format of another tool must have: a row of `FORMATS`, a row of the docs, its name in the help, files.

A new format is written and read here by itself. What it writes is a snapshot for you to read:
``pytest -m snapshots --snapshot-update``.
"""

import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tenv import interop
from tenv.interop.formats import FORMATS, ONLY_READ, ONLY_WRITTEN, find_format, recognize
from tenv.interop.interface import Format, GivenFile
from tenv.locks.lock_file import read_lock
from tests.interop.lock_index import LockIndex
from tests.interop.records import WHEELS, write_pixi
from tests.support.each import each
from tests.support.projects import Project, call
from tests.support.steady import Printed, steady_text

pytestmark = pytest.mark.snapshots

ALONE = [name for name in FORMATS if find_format(name).alone]
OF_LOCKS = [name for name in FORMATS if not find_format(name).needs_environment and name not in ALONE]
WRITTEN = [name for name in OF_LOCKS if find_format(name).export]
OF_ENVIRONMENTS = [name for name in FORMATS if name not in (*OF_LOCKS, *ALONE, "squashfs")]  # which is no text

PAGE = (Path(__file__).parents[2] / "docs" / "interop.md").read_text(encoding="utf-8")


def test_every_module_with_a_format_is_in_the_list_once() -> None:
    modules = [
        module.name
        for module in pkgutil.iter_modules(interop.__path__)
        if isinstance(getattr(importlib.import_module(f"{interop.__name__}.{module.name}"), "FORMAT", None), Format)
    ]
    assert [name for name in modules if name not in FORMATS.values()] == [], "a row of `FORMATS` is missing"
    assert sorted(modules) == sorted(FORMATS.values())
    assert [find_format(name).name for name in FORMATS] == list(FORMATS)


@each("name", FORMATS)
def test_the_docs_and_the_help_have_every_format(name: str) -> None:
    rows = re.findall(rf"^\| `{re.escape(name)}` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 1, f"the table in docs/interop.md lacks a row for `{name}`"
    words = re.sub(r"\s+", " ", call("export", "--help").out)
    written = bool(find_format(name).export or find_format(name).alone)
    listed = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", words.partition("Options:")[0])
    assert bool(listed) is bool(written), f"the docstring of `export` in src/tenv/cli/export.py and `{name}` differ"
    assert (name in ONLY_READ) is not written
    assert (name in ONLY_WRITTEN) is (find_format(name).read is None)


@pytest.mark.usefixtures("empty_project")
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_is_recognized_and_read(name: str, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    found = find_format(name)
    assert call("import", str(write_pixi(tmp_path / "theirs")), "--name", "mixed").status == 0
    with LockIndex(WHEELS) as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        ended = call("export", name, "mixed", "--output", "out", "--platform", "linux-64")
        port = index.url.rpartition(":")[2].partition("/")[0]
    assert ended.status == 0, ended.err
    carried = ("tenv-context", "tenv")
    files = sorted(path for path in Path("out").rglob("*") if path.is_file() and not {*carried} & {*path.parts})
    assert files
    written = "".join(f"== {file.name}\n{file.read_text()}\n" for file in files)
    text = written.replace(f"127.0.0.1:{port}", "127.0.0.1:<port>")
    assert re.sub(r"[ \t]+$", "", steady_text(text, None), flags=re.MULTILINE) == snapshot(extension_class=Printed)
    lock = read_lock(Path("locks/mixed.lock"), "mixed")
    names = {row.name for row in lock.conda["linux-64"]} | {row.name for row in lock.wheels["linux-64"]}
    if found.read is not None:
        (main,) = [file for file in files if recognized(file) == name][:1]
        draft = found.read(GivenFile(main, main.read_bytes())).draft
        asked = {key for table in (draft.dependencies, draft.wheels) for rows in table.values() for key in rows}
        assert asked
        assert asked <= {*names, "pip"}  # which conda asks for where wheels are to be installed


@pytest.mark.usefixtures("empty_project")
@pytest.mark.parametrize("name", ALONE)
def test_what_is_about_no_target_is_written_and_recognized(name: str) -> None:
    ended = call("export", name, "--output", "out")
    assert ended.status == 0, ended.err
    (file,) = Path("out").iterdir()
    assert find_format(name).recognize(file.name, file.read_bytes())
    assert call("export", name, "cpu", "--force").status == 2


@pytest.mark.parametrize("name", OF_ENVIRONMENTS)
def test_what_names_an_environment_is_written_twice_without_a_change(
    name: str, created: Project, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tenv"])
    found = find_format(name)
    assert found.export
    assert found.add or found.whole, "it is written beside what the user has, so it has to be added to it"
    ended = created.ok("export", name, "tiny", "--output", "out", "--json")
    first = {path: path.read_bytes() for path in sorted(Path("out").rglob("*")) if path.is_file()}
    assert sorted(map(str, first)) == sorted(ended.data["files"])
    assert created.ok("export", name, "tiny", "--output", "out", "--json").data == ended.data
    assert {path: path.read_bytes() for path in first} == first
    text = "".join(f"== {path}\n{data.decode()}\n" for path, data in first.items())
    jobs = (
        r'("MAX_JOBS",\s+"value": "|"MAX_JOBS": "|\bMAX_JOBS=|"MAX_JOBS", "|MAX_JOBS ")\d+'  # the cores of this machine
    )
    shown = re.sub(jobs, r"\1<jobs>", steady_text(text, created))
    shown = re.sub(r'"(/[^"\n]*/)?(gdb|cc|c\+\+)"', r'"<path>/\2"', shown)
    for of_machine in (  # whose Python has headers, debug information and a script for gdb
        r"\n  - -idirafter\n  - \S+/include/python[\d.]+(?=\n)",
        r"\n  Add:(?: \[\])?(?=\n#)",
        r'\s+\{\s+"description": "py-bt[^}]*\},',
    ):
        shown = re.sub(of_machine, "", shown)
    assert re.sub(r"[ \t]+$", "", shown, flags=re.MULTILINE) == snapshot(extension_class=Printed)


def recognized(file: Path) -> str:
    try:
        return recognize(GivenFile(file, file.read_bytes())).name
    except Exception:  # noqa: BLE001 (one of several files, which is read with the first)
        return ""
