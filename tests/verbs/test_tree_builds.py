"""Builds of source trees: a ready environment outlives one that fails, and nothing is built twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.rarely import first_fast
from tests.support.source_trees import commit_all, write_dynamic_tree, write_tree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the environment's Python is called by its path")

_KINDS = ("folder", "editable", "repository")


@pytest.fixture
def tree(project: Project) -> Path:
    """The package `vision` beside the project's folders."""
    project.edit('native = "*"\n', "")
    return write_tree(project.folder / "vision")


def ask(project: Project, tree: Path, kind: str) -> None:
    """Ask for the tree in the manifest."""
    request = {
        "folder": 'path = "../vision"',
        "editable": 'path = "../vision", editable = true',
        "repository": f'git = "{tree.as_uri()}", branch = "main"',
    }[kind]
    project.edit('alpha  = ">=1"', f"vision = {{ {request} }}")


def value(project: Project) -> str:
    """Return what the environment's Python imports."""
    words = [str(project.prefix / "bin" / "python"), "-c", "import alpha, vision; print(vision.VALUE)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("kind", first_fast(_KINDS))
def test_a_ready_environment_outlives_a_build_that_fails(project: Project, tree: Path, kind: str) -> None:
    if kind == "repository":
        commit_all(tree, "first")
    ask(project, tree, kind)
    project.ok("create", "tiny")
    state = (project.prefix / "tenv-meta" / "state.json").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in project.site().rglob("*.py")}

    write_tree(tree, version="2.0")
    backend = tree / "backend" / "own_backend.py"
    good = backend.read_text()
    backend.write_text(good.replace("    project = _project()\n", '    raise ValueError("no compiler here")\n'))
    assert backend.read_text() != good
    if kind == "repository":
        commit_all(tree, "broken")
        project.ok("update", "tiny")
    said = project.fails(8, "environment-broken", "create", "tiny")
    assert "vision can't be built" in said
    assert "the environment is as it was" in said
    assert (project.prefix / "tenv-meta" / "state.json").read_bytes() == state
    assert {path: path.stat().st_mtime_ns for path in project.site().rglob("*.py")} == before
    assert value(project) == "one"
    (row,) = json.loads(project.ok("list", "--json").out)["data"]
    assert row["state"] == "stale"

    backend.write_text(good)
    if kind == "repository":
        commit_all(tree, "mended")
        project.ok("update", "tiny")
    project.ok("create", "tiny")
    assert project.site().joinpath("vision-2.0.dist-info").is_dir()
    assert value(project) == "one"


@pytest.mark.long
def test_a_ready_environment_outlives_a_build_that_requires_more(project: Project, tree: Path) -> None:
    write_dynamic_tree(tree)
    ask(project, tree, "folder")
    project.ok("create", "tiny")
    (tree / "VERSION").write_text("2.0\nalpha>=1\n")
    project.ok("update", "tiny")
    (tree / "VERSION").write_text("2.0\nalpha>=1\nbeta\n")
    said = project.fails(8, "environment-broken", "create", "tiny", "--locked")
    assert "tiny: vision requires beta, which its row in the lock lacks" in said
    assert value(project) == "one"
    assert project.site().joinpath("vision-1.0.dist-info").is_dir()


@pytest.mark.parametrize("kind", first_fast(_KINDS))
def test_nothing_is_built_twice(project: Project, tree: Path, tmp_path: Path, kind: str) -> None:
    calls, backend = tmp_path / "builds", tree / "backend" / "own_backend.py"
    noted = f'def _build(folder, files):\n    with open({str(calls)!r}, "a") as file:\n        file.write("built\\n")\n'
    backend.write_text(backend.read_text().replace("def _build(folder, files):\n", noted))
    if kind == "repository":
        commit_all(tree, "first")
    ask(project, tree, kind)
    project.ok("create", "tiny")
    text = (tree / "pyproject.toml").read_text()
    (tree / "pyproject.toml").write_text(text.replace('version = "1.0"', 'version = "2.0"'))
    (tree / "src" / "vision.py").write_text('VALUE = "two"\n')
    if kind == "repository":
        commit_all(tree, "second")
        project.ok("update", "tiny")
    calls.unlink()
    project.ok("create", "tiny")
    assert value(project) == "two"
    assert calls.read_text() == "built\n"


@pytest.mark.long
def test_a_commit_is_built_once_for_two_environments(project: Project, tree: Path, tmp_path: Path) -> None:
    seen, backend = tmp_path / "seen", tree / "backend" / "own_backend.py"
    noted = f"open({str(seen)!r}, 'a').write('built\\n')"
    backend.write_text(
        backend.read_text().replace("    project = _project()\n", f"    project = _project(); {noted}\n")
    )
    commit = commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", rev = "{commit}" }}')
    project.ok("create", "tiny")
    (tree / "pyproject.toml").rename(tree.parent / "away")  # the commit is kept, and its repository not asked
    project.ok("create", "tiny", "--locked", "--offline", "--prefix", str(tmp_path / "second"))
    assert seen.read_text() == "built\n"
    for prefix in (project.prefix, tmp_path / "second"):
        (info,) = prefix.rglob("vision-1.0.dist-info")
        assert json.loads((info / "direct_url.json").read_text())["vcs_info"]["commit_id"] == commit
    project.ok("verify", "tiny")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux denies sockets")
def test_the_build_of_a_commit_gets_no_network(project: Project, tree: Path) -> None:
    backend = tree / "backend" / "own_backend.py"
    asks = f"import urllib.request; urllib.request.urlopen({project.index.url + '/alpha/'!r})"
    backend.write_text(backend.read_text().replace("    project = _project()\n", f"    project = _project(); {asks}\n"))
    commit_all(tree, "first")
    ask(project, tree, "repository")
    said = " ".join(project.fails(8, "environment-broken", "create", "tiny").split())
    assert "vision can't be built" in said
    assert "its build wants a network, which a build of a locked source archive or commit does not get" in said


@pytest.mark.long
def test_the_origin_of_an_editable_package_is_its_folder(project: Project, tree: Path) -> None:
    ask(project, tree, "editable")
    project.ok("create", "tiny")
    (info,) = project.site().glob("vision-1.0.dist-info")
    assert json.loads((info / "direct_url.json").read_text()) == {"url": tree.as_uri(), "dir_info": {"editable": True}}
    project.ok("verify", "tiny")


@pytest.mark.long
def test_an_edit_whose_package_can_not_be_built_says_what_stays_and_what_takes_it_back(
    project: Project, tree: Path
) -> None:
    good = write_tree(project.folder / "good")
    for file in (good / "pyproject.toml", good / "backend" / "own_backend.py"):
        file.write_text(file.read_text().replace("vision", "good"))
    (good / "src" / "vision.py").rename(good / "src" / "good.py")
    project.ok("lock", "tiny")
    project.ok("create", "tiny")
    project.ok("add", "tiny", str(good))
    backend = tree / "backend" / "own_backend.py"
    backend.write_text(
        backend.read_text().replace("    project = _project()\n", '    raise ValueError("no compiler")\n')
    )
    before = project.lock.read_bytes()
    said = " ".join(project.fails(8, "environment-broken", "add", "tiny", str(tree)).split())
    assert "]: vision can't be built, and the environment is as it was" in said  # and not `good`
    assert f"{project.manifest} and {project.lock} are written: vision = " in said
    assert "hint: `tenv create tiny` tries again; `tenv drop tiny vision` takes the request back" in said
    assert project.lock.read_bytes() != before
    project.ok("drop", "tiny", "vision")
    assert project.lock.read_bytes() == before
