"""What every source must have: a row, a `SOURCE`, its section in the docs, and a request that goes the whole way.

A new source asks for ``KEY/case.py`` in this folder, with `make_case`: see `tests.sources.source_case`.
"""

import importlib
from pathlib import Path

import pytest

import tenv.sources
from tenv.host.machine import current_platform
from tenv.sources.interface import Source, sources
from tenv.targets.sections import SECTIONS, SourceSection
from tests.sources.source_case import MakeCase, SourceCase
from tests.support.fakes import change_byte
from tests.support.projects import Project, call

ROOT = Path(__file__).parents[2]
EACH = pytest.mark.parametrize("section", SECTIONS, ids=[section.key for section in SECTIONS])


def make_case_of(section: SourceSection) -> MakeCase:
    make: MakeCase = importlib.import_module(f"tests.sources.{section.key}.case").make_case
    return make


def write(project: Project, section: SourceSection, case: SourceCase, *, asking: bool) -> None:
    request = f"\n[{section.name}]\n{case.request}\n" if asking else ""
    project.manifest.write_text(f'platforms = ["{current_platform()}"]\n{case.head}\n{request}')


def test_every_folder_of_a_source_has_a_row_and_every_row_a_folder() -> None:
    package = Path(next(iter(tenv.sources.__path__)))
    assert sorted(path.parent.name for path in package.glob("*/source.py")) == sorted(row.key for row in SECTIONS)
    for name in ("key", "name", "kind"):
        assert len({getattr(row, name) for row in SECTIONS}) == len(SECTIONS)


def test_wheels_come_after_what_brings_their_python() -> None:
    keys = [source.section.key for source in sources()]
    assert keys.index("conda") < keys.index("wheels")


@EACH
def test_it_says_itself_what_is_different_of_it(section: SourceSection) -> None:
    source = sources()[SECTIONS.index(section)]
    assert source.section is section
    for name in ("choose", "differences", "records", "work"):
        assert getattr(type(source), name) is not getattr(Source, name)


@EACH
def test_the_docs_have_its_section(section: SourceSection) -> None:
    page = (ROOT / "docs" / "manifest.md").read_text()
    assert f"| `{section.name}.NAME`" in page, "docs/manifest.md has a row of what a manifest may ask of it"


@EACH
def test_a_request_goes_the_whole_way(
    section: SourceSection, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_case_of(section)(project, tmp_path, monkeypatch) as case:
        write(project, section, case, asking=True)
        check_lock(project, section)
        check_environment(project, section, case)
        if case.file:
            check_repair(project, case)
        else:
            check_disturbed(project, case)
        check_dropped(project, section, case)


def files_of(project: Project, case: SourceCase) -> list[Path]:
    return [path for path in project.prefix.glob(case.file) if path.is_file()] if case.file else []


def check_lock(project: Project, section: SourceSection) -> None:
    (counts,) = project.ok("lock", "tiny", "--json").data["platforms"].values()
    assert (counts.get(section.key, 0) > 0) is bool(section.noun)
    project.ok("lock", "tiny", "--check")
    before = project.lock.read_bytes()
    project.ok("lock", "tiny")
    assert project.lock.read_bytes() == before


def check_environment(project: Project, section: SourceSection, case: SourceCase) -> None:
    data = project.ok("create", "tiny", "--no-check", "--json").data
    assert (data["counts"].get(section.key, 0) > 0) is bool(section.noun)
    assert "nothing to do" in project.ok("create", "tiny", "--no-check").err
    rows = project.ok("show", "tiny", "--json").data["packages"]
    shown = [(row["name"], row["kind"]) for row in rows if row["wanted"] or row["locked"]]
    assert ((case.name, section.kind) in shown) is bool(section.noun)
    assert len(files_of(project, case)) == bool(case.file)
    found = project.ok("verify", "tiny", "--no-probes", "--json").data["integrity"]
    assert found["missing"] == found["changed"] == found["extra"] == []


def check_repair(project: Project, case: SourceCase) -> None:
    (file,) = files_of(project, case)
    whole = file.read_bytes()
    file.unlink()
    file.write_bytes(whole)
    change_byte(file)
    ended = call("verify", "tiny", "--no-probes", "--json")
    assert (ended.status, ended.data["integrity"]["changed"]) == (8, [str(file.relative_to(project.prefix))])
    assert ended.data["integrity"]["packages"] == [case.name]
    project.ok("create", "tiny", "--no-check", "--repair")
    assert file.read_bytes() == whole
    project.ok("verify", "tiny", "--no-probes")


def check_disturbed(project: Project, case: SourceCase) -> None:
    case.disturb()
    assert "nothing to do" not in project.ok("create", "tiny", "--no-check").err
    project.ok("verify", "tiny", "--no-probes")


def check_dropped(project: Project, section: SourceSection, case: SourceCase) -> None:
    write(project, section, case, asking=False)
    said = project.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert case.name in said
    data = project.ok("create", "tiny", "--no-check", "--json").data
    assert data["counts"].get(section.key, 0) == 0
    assert files_of(project, case) == []
