"""Source trees whose build backend computes their version and requirements: when it is asked, and what is then held."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.projects import Project, call
from tests.support.source_trees import commit_all, write_dynamic_tree, write_tree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the environment's Python is called by its path")


@pytest.fixture
def tree(project: Project) -> Path:
    """The package `vision` beside the project's folders, with a backend that computes its metadata."""
    project.narrow()
    project.edit('native = "*"\n', "")
    return write_dynamic_tree(project.folder / "vision")


def calls(tree: Path) -> int:
    """Return how often the backend was asked."""
    file = tree / "calls"
    return len(file.read_text().splitlines()) if file.is_file() else 0


def test_the_backend_of_a_folder_is_asked_by_lock_alone(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision", editable = true }')
    said = project.ok("lock", "tiny").err
    assert "its build backend runs now" in said
    text = project.lock.read_text()
    assert "  schema: 5\n" in text
    assert "version: '1.0'\n      path: ../vision\n      editable: true\n      dynamic: true\n" in text
    assert "name: alpha" in text  # what it requires
    asked = calls(tree)
    assert asked == 1
    for words in (["lock", "tiny", "--check"], ["show", "tiny"], ["check", "tiny"], ["list"], ["diff", "tiny"]):
        call(*words)
    assert project.ok("lock", "tiny", "--check")
    assert calls(tree) == asked


def test_a_version_that_moves_on_leaves_the_lock_as_it_is(project: Project, tree: Path) -> None:
    """As setuptools_scm counts commits: the next build has another version than the lock."""
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision", editable = true }')
    project.ok("lock", "tiny")
    (tree / "VERSION").write_text("1.0.dev7+g12ab\nalpha>=1\n")
    project.ok("lock", "tiny", "--check")
    project.ok("create", "tiny", "--locked")
    assert project.site().joinpath("vision-1.0.dev7+g12ab.dist-info").is_dir()
    project.ok("verify", "tiny")
    assert "nothing to do" in project.ok("create", "tiny", "--locked").err
    assert "ready" in project.ok("list", "--check").out
    project.ok("update", "tiny")
    assert "version: 1.0.dev7+g12ab" in project.lock.read_text()


def test_the_backend_of_a_commit_is_asked_once(project: Project, tree: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    backend = tree / "backend" / "own_backend.py"
    backend.write_text(backend.read_text().replace('open("calls", "a")', f'open({str(seen)!r}, "a")'))
    first = commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", branch = "main" }}')
    project.ok("lock", "tiny")
    assert f"commit: {first}" in project.lock.read_text()
    text = project.lock.read_text()
    asked = len(seen.read_text().splitlines())
    project.edit("description", "# a change\ndescription")
    project.ok("lock", "tiny")
    assert len(seen.read_text().splitlines()) == asked
    assert project.lock.read_text().partition("source-trees")[2] == text.partition("source-trees")[2]
    project.ok("create", "tiny", "--locked")

    write_dynamic_tree(tree, version="2.0", requires="beta")
    second = commit_all(tree, "second")
    project.ok("update", "tiny")
    text = project.lock.read_text()
    assert f"commit: {second}" in text
    assert "version: '2.0'" in text
    assert "name: beta" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [("      dynamic: true\n", ""), ("- alpha>=1", "- beta"), ("dynamic: true", "dynamic: 1")],
)
def test_a_changed_row_is_refused(project: Project, tree: Path, old: str, new: str) -> None:
    assert tree.is_dir()
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    assert old in good
    project.lock.write_text(good.replace(old, new))
    for option in ("--locked", "--frozen"):
        assert call("create", "tiny", option).status == 7
    assert not project.prefix.joinpath("bin").exists()


def test_a_row_that_calls_itself_dynamic_is_held_against_static_metadata(project: Project, tree: Path) -> None:
    write_tree(tree)
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    changed = good.replace(
        "version: '1.0'\n      path: ../vision\n", "version: '9.0'\n      path: ../vision\n      dynamic: true\n"
    )
    assert changed != good
    project.lock.write_text(changed.replace("  schema: 4\n", "  schema: 5\n"))
    assert "vision 9.0 is locked, ../vision has 1.0" in project.fails(7, "lock-stale", "create", "tiny", "--locked")


def test_a_backend_that_does_not_answer_is_told(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    file, backend = tree / "pyproject.toml", tree / "backend" / "own_backend.py"
    text, code = file.read_text(), backend.read_text()
    for new, source, why in (
        (text, "raise RuntimeError('no torch here')", "no torch here"),
        (text, "build_wheel = None", "can't say what it requires"),
        (text.replace("own_backend", "other_backend"), code, "can't be imported"),
        (text.replace('"backend"]', '"../.."]'), code, "does not answer"),
        (text.replace("requires = []", 'requires = ["absent>=9"]'), code, "what its build backend requires"),
        (text.replace("requires = []", "requires = 1"), code, "[build-system] of its pyproject.toml is not valid"),
        (text.replace('"vision"', '"other"'), code, "is the package `other`, not `vision`"),
    ):
        file.write_text(new)
        backend.write_text(source)
        said = project.fails(5, "no-solution", "lock", "tiny")
        assert why in said, said
    (tree / "VERSION").write_text("1.0\nalpha@https://example.org/a.whl\n")
    file.write_text(text)
    backend.write_text(code)
    assert "names an address" in project.fails(5, "no-solution", "lock", "tiny")


def test_add_takes_the_name_that_is_static_or_typed(project: Project, tree: Path) -> None:
    project.ok("add", "tiny", "./vision", "--no-create")
    assert 'vision = {path = "../vision", editable = true}' in project.manifest.read_text()
    (tree / "pyproject.toml").unlink()
    (tree / "setup.py").write_text("")
    assert "`NAME @ ./vision` names it" in project.fails(2, "usage", "add", "tiny", "./vision")


def test_a_feature_brings_a_tree(project: Project, tree: Path) -> None:
    assert tree.is_dir()
    project.edit('alpha  = ">=1"', 'beta = "*"\n[feature.dev.pypi-dependencies]\nvision = { path = "../vision" }')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    assert "dynamic: true\n      features: [dev]\n" in good
    project.ok("lock", "tiny", "--check")
    project.ok("create", "tiny", "--locked")
    assert "vision" not in project.ok("packages", "tiny").out
    project.ok("create", "tiny", "--locked", "--with", "dev")
    assert "vision" in project.ok("packages", "tiny").out
    project.ok("verify", "tiny")
    project.ok("create", "tiny", "--locked", "--with", "none")
    assert not [*project.site().glob("vision*")]

    for new in ("features: []", "features: [other]", "features: ['../x']", "features: 1"):
        project.lock.write_text(good.replace("features: [dev]\n      python", f"{new}\n      python"))
        assert project.lock.read_text() != good
        assert call("create", "tiny", "--locked", "--anew").status == 7, new


def test_diff_shows_whether_a_backend_computed_the_metadata(project: Project, tree: Path, tmp_path: Path) -> None:
    commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}" }}')
    project.ok("lock", "tiny")
    other = tmp_path / "other.lock"
    other.write_text(project.lock.read_text().replace("      dynamic: true\n", ""))
    ended = call("diff", str(project.lock), str(other), "--json", "--exit-code")
    assert ended.status == 1
    (found,) = json.loads(ended.out)["data"]["changed"]
    assert [field["name"] for field in found["fields"]] == ["dynamic"]
