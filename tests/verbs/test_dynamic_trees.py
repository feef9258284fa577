"""Source trees whose build backend computes their version and requirements: when it is asked, and what is then held."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import Project, call
from tests.support.rarely import some_fast
from tests.support.source_trees import commit_all, git, write_dynamic_tree, write_tree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the environment's Python is called by its path")


@pytest.fixture
def tree(project: Project) -> Path:
    """The package `vision` beside the project's folders, with a backend that computes its metadata."""
    project.edit('native = "*"\n', "")
    return write_dynamic_tree(project.folder / "vision")


def calls(tree: Path) -> int:
    """Return how often the backend was asked."""
    file = tree / "calls"
    return len(file.read_text().splitlines()) if file.is_file() else 0


def _seen_outside(tree: Path, folder: Path) -> Path:
    """Let the backend note its calls in a file that is no part of the tree, which is returned."""
    seen, backend = folder / "seen", tree / "backend" / "own_backend.py"
    backend.write_text(backend.read_text().replace('open("calls", "a")', f'open({str(seen)!r}, "a")'))
    return seen


def test_the_backend_of_a_folder_is_asked_by_lock_alone(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision", editable = true }')
    said = project.ok("lock", "tiny").err
    assert "its build backend runs now" in said
    text = project.lock.read_text()
    assert "  schema: 6\n" in text
    assert "version: '1.0'\n      path: ../vision\n      editable: true\n      dynamic: true\n" in text
    assert "name: alpha" in text  # what it requires
    asked = calls(tree)
    assert asked == 1
    other = project.folder / "other.lock"
    other.write_text(text)
    for words in (["lock", "tiny", "--check"], ["show", "tiny"], ["list"], ["diff", str(project.lock), str(other)]):
        project.ok(*words)
    project.lock.write_text(text.replace("alpha>=1", "alpha>=2"))
    for option in ("--locked", "--frozen"):
        project.fails(7, "lock-stale", "create", "tiny", option)
    assert calls(tree) == asked


@pytest.mark.long
def test_a_version_of_an_update_is_built(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    project.ok("create", "tiny", "--locked")
    (tree / "VERSION").write_text("2.0\nalpha>=1\n")
    project.ok("update", "tiny")
    project.ok("create", "tiny", "--locked")
    assert project.site().joinpath("vision-2.0.dist-info").is_dir()


@pytest.mark.parametrize("kind", some_fast(["folder", "static repository", "repository"], ["static repository"]))
def test_a_row_adds_and_hides_no_requirement(project: Project, tree: Path, kind: str) -> None:
    """The rows of the wheels are changed with it, so that the lock alone looks right."""
    if kind == "static repository":
        write_tree(tree)
    commit_all(tree, "first")
    where = 'path = "../vision"' if kind == "folder" else f'git = "{tree.as_uri()}", branch = "main"'
    project.edit('alpha  = ">=1"', f'vision = {{ {where} }}\nbeta = "*"')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    if kind == "static repository":
        project.lock.write_text(re.sub(r"(      commit: \w+\n)", r"\1      dynamic: true\n", good))
        assert "dynamic: true" in project.lock.read_text()
        assert "is not locked as its pyproject.toml" in project.fails(7, "lock-stale", "create", "tiny", "--locked")
    for old, new, why in (
        ("- alpha>=1\n", "- alpha>=1\n      - beta\n", "vision does not require beta, as its row in the lock says"),
        ("- alpha>=1\n", "- alpha\n", "vision requires alpha>=1, which its row in the lock lacks"),
    ):
        head, _, rows = good.partition("  source-trees:\n")
        assert old in rows
        project.lock.write_text(f"{head}  source-trees:\n{rows.replace(old, new)}")
        ended = call("create", "tiny", "--locked")
        if kind == "static repository":
            assert ended.status == 7, ended
        else:
            assert (ended.status, why in ended.err) == (8, True), ended
        assert not project.prefix.joinpath("bin").exists()


@pytest.mark.long
def test_a_folder_that_requires_more_than_the_lock_is_named(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    (tree / "VERSION").write_text("1.0\nalpha>=1\nbeta\n")
    said = project.fails(8, "environment-broken", "create", "tiny", "--locked")
    assert "vision requires beta, which its row in the lock lacks" in said
    assert "`tenv update tiny vision` locks what it says now" in said
    project.ok("update", "tiny", "vision")
    project.ok("create", "tiny", "--locked")


def test_a_row_names_no_address_and_no_path(project: Project, tree: Path) -> None:
    commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}" }}')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    for old, new in (
        ("- alpha>=1", "- evil @ https://127.0.0.1:1/evil-1.0-py3-none-any.whl"),
        ("- alpha>=1", "- evil @ git+file:///x"),
        ("- alpha>=1", "- '--index-url https://127.0.0.1:1'"),
        ("version: '1.0'\n      git", "version: '1.0/../../x'\n      git"),
        ("version: '1.0'\n      git", "version: '*'\n      git"),
    ):
        assert old in good
        project.lock.write_text(good.replace(old, new))
        project.fails(7, "lock-corrupt", "lock", "tiny", "--check")


@pytest.mark.long
def test_a_merge_runs_no_backend(project: Project, tree: Path, tmp_path: Path) -> None:
    """Else a merge of a stranger's branch runs code that this branch names."""
    seen = _seen_outside(tree, tmp_path)
    commit_all(tree, "first")
    git(tree, "checkout", "--quiet", "-b", "dev")
    (tree / "more").touch()
    commit_all(tree, "dev")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", branch = "main" }}')
    (project.folder / "tenv.toml").touch()
    (project.folder / ".gitignore").write_text(".tenv\nvision\n")
    project.ok("lock", "tiny")
    commit_all(project.folder, "base")
    git(project.folder, "checkout", "--quiet", "-b", "theirs")
    project.edit('branch = "main"', 'branch = "dev"')
    project.ok("lock", "tiny")
    project.lock.write_text(project.lock.read_text().replace("      dynamic: true\n", ""))
    commit_all(project.folder, "theirs")
    git(project.folder, "checkout", "--quiet", "main")
    project.edit('glibc = "2.17"', 'glibc = "2.28"')
    project.ok("lock", "tiny")
    commit_all(project.folder, "ours")
    seen.unlink()
    with pytest.raises(subprocess.CalledProcessError):
        git(project.folder, "merge", "--quiet", "theirs")
    said = project.fails(5, "no-solution", "merge-driver", str(project.lock))
    assert "a merge runs none" in said
    assert not seen.exists()


def test_a_link_of_a_repository_leads_no_backend_out_of_it(project: Project, tree: Path, tmp_path: Path) -> None:
    local = write_dynamic_tree(tmp_path / "local")
    (tree / "pkg").symlink_to(local)
    commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", subdirectory = "pkg" }}')
    assert "has no folder `pkg`" in project.fails(5, "no-solution", "lock", "tiny")
    assert calls(local) == 0


@pytest.mark.long
def test_a_wider_range_of_pythons_asks_again(project: Project, tree: Path, tmp_path: Path) -> None:
    backend = tree / "backend" / "own_backend.py"
    text = backend.read_text().replace(
        "Version: {project['version']}\\n", "Version: {project['version']}\\nRequires-Python: >=3.12\\n"
    )
    assert text != backend.read_text()
    backend.write_text(text)
    _seen_outside(tree, tmp_path)
    commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}" }}')
    project.widen_pythons()
    project.edit('">=3.11,<3.13"', '">=3.12,<3.13"')
    project.ok("lock", "tiny")
    project.edit('">=3.12,<3.13"', '">=3.11,<3.13"')
    project.fails(5, "no-solution", "lock", "tiny")


def test_what_the_backend_requires_is_there_and_python_variables_are_not(
    project: Project, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, file = tree / "backend" / "own_backend.py", tree / "pyproject.toml"
    code = "def get_requires_for_build_wheel(settings=None):\n    return ['beta']\n"
    used = "import beta, os, alpha; assert not {*os.environ} & {'PYTHONPATH', 'GIT_DIR'}"
    backend.write_text(
        f"{backend.read_text()}{code}".replace("def _metadata(project):\n", f"def _metadata(project):\n    {used}\n")
    )
    file.write_text(file.read_text().replace("requires = []", 'requires = ["alpha"]'))
    monkeypatch.setenv("PYTHONPATH", str(project.folder))
    monkeypatch.setenv("GIT_DIR", str(project.folder))
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    assert "name: vision\n      version: '1.0'" in project.lock.read_text()


@pytest.mark.long
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


@pytest.mark.long
def test_the_backend_of_a_commit_is_asked_once(project: Project, tree: Path, tmp_path: Path) -> None:
    seen = _seen_outside(tree, tmp_path)
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


@pytest.mark.long
@pytest.mark.usefixtures("tree")
def test_a_changed_row_is_refused(project: Project) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    for old, new in (("      dynamic: true\n", ""), ("- alpha>=1", "- beta"), ("dynamic: true", "dynamic: 1")):
        assert old in good
        project.lock.write_text(good.replace(old, new))
        for option in ("--locked", "--frozen"):
            assert call("create", "tiny", option).status == 7, new
        assert not project.prefix.joinpath("bin").exists(), new


def test_a_row_that_calls_itself_dynamic_is_held_against_static_metadata(project: Project, tree: Path) -> None:
    write_tree(tree)
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    changed = good.replace(
        "version: '1.0'\n      path: ../vision\n", "version: '9.0'\n      path: ../vision\n      dynamic: true\n"
    )
    assert changed != good
    project.lock.write_text(changed)
    assert "vision 9.0 is locked, ../vision has 1.0" in project.fails(7, "lock-stale", "create", "tiny", "--locked")


@pytest.mark.long
def test_a_backend_that_does_not_answer_is_named(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    file, backend = tree / "pyproject.toml", tree / "backend" / "own_backend.py"
    text, code = file.read_text(), backend.read_text()
    for new, source, why in (
        (text, "raise RuntimeError('no torch here')", "no torch here"),
        (text, "build_wheel = None", "can't say what it requires"),
        (text.replace("own_backend", "other_backend"), code, "can't be imported"),
        (text.replace('"backend"]', '"../.."]'), code, "does not answer"),
        (text.replace("requires = []", 'requires = ["absent>=9"]'), code, "what its build backend requires"),
        (
            text,
            f"{code}\ndef prepare_metadata_for_build_wheel(folder, settings=None):\n    return 7\n",
            "does not answer",
        ),
        (
            text,
            f"{code}\ndef prepare_metadata_for_build_wheel(folder, settings=None):\n    return '..'\n",
            "does not answer",
        ),
        (text, f"{code}\ndef get_requires_for_build_wheel(settings=None):\n    return 'ab'\n", "does not answer"),
        (
            text,
            f"{code}\ndef get_requires_for_build_wheel(settings=None):\n    return ['--pre', 'beta']\n",
            "does not answer",
        ),
        (
            text.replace("requires = []", 'requires = ["--pre"]'),
            code,
            "[build-system] of its pyproject.toml is not valid",
        ),
        (text.replace("requires = []", "requires = 1"), code, "[build-system] of its pyproject.toml is not valid"),
        (text.replace('"vision"', '"other"'), code, "is the package `other`, not `vision`"),
    ):
        file.write_text(new)
        backend.write_text(source)
        said = project.fails(5, "no-solution", "lock", "tiny")
        assert why in said, said
    file.unlink()
    file.symlink_to(file)
    assert "can't be read" in project.fails(5, "no-solution", "lock", "tiny")
    file.unlink()
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


@pytest.mark.long
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

    for new, words in (("[]", ()), ("[other]", ("--with", "dev")), ("['../x']", ()), ("1", ())):
        project.lock.write_text(good.replace("features: [dev]\n      python", f"features: {new}\n      python"))
        assert project.lock.read_text() != good
        assert call("create", "tiny", "--locked", "--anew", *words).status == 7, new


@pytest.mark.long
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
