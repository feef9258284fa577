"""Packages that are built from folders and git repositories: locked, built, imported, updated."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fakes import MINORS, make_wheel
from tests.support.projects import Project, call
from tests.support.rarely import first_fast
from tests.support.source_trees import commit_all, git, write_tree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the environment's Python is called by its path")


@pytest.fixture
def tree(project: Project) -> Path:
    """The package `vision` beside the project's folders."""
    project.edit('native = "*"\n', "")
    return write_tree(project.folder / "vision")


def value(project: Project) -> str:
    """Return what the environment's Python imports."""
    words = [str(project.prefix / "bin" / "python"), "-c", "import alpha, vision; print(vision.VALUE)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_an_editable_folder_is_edited_in_place(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision", editable = true }')
    project.ok("lock", "tiny")
    text = project.lock.read_text()
    assert "  schema: 6\n" in text
    assert "    - name: vision\n      version: '1.0'\n      path: ../vision\n      editable: true\n" in text
    assert "name: alpha" in text  # what it requires
    project.ok("lock", "tiny", "--check")
    project.ok("create", "tiny", "--locked")
    assert value(project) == "one"
    (tree / "src" / "vision.py").write_text('VALUE = "edited"\n')
    assert value(project) == "edited"
    said = project.ok("verify", "tiny", "--deep")
    assert "not compared, since the lock has no digest of what is built from source trees: vision" in said.err
    project.ok("create", "tiny", "--frozen")

    write_tree(tree, version="2.0", requires="alpha>=1,<9")
    assert "vision 1.0 is locked, ../vision has 2.0" in project.fails(7, "lock-stale", "lock", "tiny", "--check")
    project.ok("update", "tiny")
    project.ok("create", "tiny", "--locked")
    assert "2.0" in project.ok("packages", "tiny").out

    project.edit('vision = { path = "../vision", editable = true }', 'alpha = "*"')
    project.ok("create", "tiny")
    assert not [*project.site().glob("vision*")]
    assert (tree / "src" / "vision.py").is_file()


@pytest.mark.long
def test_a_branch_stays_at_its_commit_until_an_update(project: Project, tree: Path) -> None:
    first = commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", branch = "main" }}')
    project.ok("lock", "tiny")
    assert f"commit: {first}" in project.lock.read_text()
    write_tree(tree, version="1.1", value="two")
    second = commit_all(tree, "second")
    project.ok("lock", "tiny")
    assert f"commit: {first}" in project.lock.read_text()
    project.ok("create", "tiny", "--locked")
    assert value(project) == "one"
    project.ok("update", "tiny")
    assert f"commit: {second}" in project.lock.read_text()
    project.ok("create", "tiny", "--locked")
    assert value(project) == "two"


def test_a_commit_that_is_not_of_the_branch_is_refused(project: Project, tree: Path) -> None:
    """A host may give a commit of anyone under the address of a repository, as those of forks."""
    first = commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", branch = "main" }}')
    project.ok("lock", "tiny")
    git(tree, "checkout", "--quiet", "-b", "theirs")
    write_tree(tree, value="planted")
    planted = commit_all(tree, "planted")
    project.lock.write_text(project.lock.read_text().replace(first, planted))
    for option in ("--locked", "--frozen"):
        said = project.fails(7, "lock-stale", "create", "tiny", option)
        assert f"{planted} is not in the history of main" in said
        assert "`tenv update tiny vision` locks the newest one" in said
    assert not project.prefix.joinpath("bin").exists()


@pytest.mark.parametrize("option", first_fast(["--frozen", "--locked"]))
def test_nothing_that_a_lock_says_of_a_repository_is_obeyed(project: Project, tree: Path, option: str) -> None:
    commit = commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", rev = "{commit}" }}')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    row = good[good.index("  source-trees:") :]
    for new in (
        row.replace(f"commit: {commit}", f"commit: {'a' * 40}"),
        row.replace(tree.as_uri(), "https://example.org/other.git"),
        row.replace(f"rev: {commit}", "branch: main"),
        row.replace(f"git: {tree.as_uri()}", "git: ext::sh -c true"),
        row.replace(f"git: {tree.as_uri()}", "git: --upload-pack=true"),
        row.replace(f"      commit: {commit}", f"      subdirectory: other\n      commit: {commit}"),
        row.replace(f"      commit: {commit}", f"      subdirectory: ../..\n      commit: {commit}"),
        row.replace(f"      commit: {commit}", f"      editable: true\n      commit: {commit}"),
        row.replace("alpha>=1", "beta"),
        row.replace("name: vision", "name: beta"),
    ):
        assert new != row
        project.lock.write_text(good.replace(row, new))
        ended = call("create", "tiny", option)
        assert ended.status == 7, (new, ended)
        assert call("lock", "tiny", "--check").status == 7
    assert not project.prefix.joinpath("bin").exists()


def test_nothing_that_a_lock_says_of_a_folder_is_obeyed(project: Project, tree: Path) -> None:
    write_tree(project.folder / "evil", value="planted")
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    for old, new in (
        ("path: ../vision", "path: ../evil"),
        ("path: ../vision", "path: ../../../.."),
        ("path: ../vision", "path: /etc"),
        ("path: ../vision", "path: ../vision\n      editable: true"),
        ("path: ../vision", f"git: {tree.as_uri()}\n      commit: {'a' * 40}"),
        ("version: '1.0'\n      path", "version: '9.0'\n      path"),
        ("- alpha>=1", "- beta"),
    ):
        assert old in good
        project.lock.write_text(good.replace(old, new))
        for option in ("--locked", "--frozen"):
            assert call("create", "tiny", option).status == 7, new
    assert not project.prefix.joinpath("bin").exists()


def test_diff_shows_every_value(project: Project, tree: Path, tmp_path: Path) -> None:
    commit = commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}", tag = "v1" }}')
    git(tree, "tag", "v1")
    project.ok("lock", "tiny")
    good = project.lock.read_text()
    head, row = good[: good.index("  source-trees:")], good[good.index("  source-trees:") :]
    for key, old, new in (
        ("commit", f"commit: {commit}", f"commit: {'a' * 40}"),
        ("git", tree.as_uri(), "https://example.org/other.git"),
        ("tag", "tag: v1", "tag: v2"),
        ("branch", "tag: v1", "branch: v1"),
        ("subdirectory", "      commit:", "      subdirectory: other\n      commit:"),
        ("requires", "alpha>=1", "beta"),
        ("version", "'1.0'", "'1.1'"),
    ):
        assert old in row
        other = tmp_path / "other.lock"
        other.write_text(head + row.replace(old, new))
        ended = call("diff", str(project.lock), str(other), "--json", "--exit-code")
        assert ended.status == 1, (key, ended)
        (found,) = json.loads(ended.out)["data"]["changed"]
        assert key in [field["name"] for field in found["fields"]], found


def test_what_can_not_be_locked_says_why(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    text = (tree / "pyproject.toml").read_text()
    for new, why in (
        (text.replace('"vision"', '"other"'), "is the package `other`, not `vision`"),
        (text.replace("alpha>=1", "alpha @ https://example.org/a.whl"), "names an address"),
        ("project = 1\n", "project of its pyproject.toml is not a table"),
        (text.replace('name = "vision"', ""), "is not valid: 'name'"),
        ("[", "is not TOML"),
    ):
        (tree / "pyproject.toml").write_text(new)
        assert why in project.fails(5, "no-solution", "lock", "tiny")
    (tree / "pyproject.toml").unlink()
    assert "has neither a pyproject.toml nor a setup.py" in project.fails(5, "no-solution", "lock", "tiny")
    project.edit("../vision", "../missing")
    assert "does not exist" in project.fails(5, "no-solution", "lock", "tiny")


def test_a_repository_needs_the_network(project: Project, tree: Path) -> None:
    commit_all(tree, "first")
    project.edit('alpha  = ">=1"', f'vision = {{ git = "{tree.as_uri()}" }}')
    project.ok("lock", "tiny")
    assert "a git repository is asked" in project.fails(6, "network", "create", "tiny", "--offline")
    project.edit(f'git = "{tree.as_uri()}"', f'git = "{tree.as_uri()}", branch = "missing"')
    assert "no branch, tag or commit `missing`" in project.fails(5, "no-solution", "lock", "tiny")


def test_add_writes_a_request_and_pixi_keeps_it(project: Project, tree: Path) -> None:
    commit = commit_all(tree, "first")
    project.ok("add", "tiny", "./vision", "--no-create")
    assert 'vision = {path = "../vision", editable = true}' in project.manifest.read_text()
    project.ok("add", "tiny", f"vision[] @ git+{tree.as_uri()}@{commit}", "--no-create")
    assert f'vision = {{git = "{tree.as_uri()}", rev = "{commit}"}}' in project.manifest.read_text()
    assert f"commit: {commit}" in project.lock.read_text()
    said = project.ok("export", "requirements.txt", "tiny", "-o", str(project.folder / "requirements.txt")).err
    assert "vision, which is built from" in said
    project.ok("export", "pixi", "tiny", "-o", str(project.folder))
    assert f'vision = {{ git = "{tree.as_uri()}", rev = "{commit}" }}' in (project.folder / "pixi.toml").read_text()

    folder = 'vision = { path = "vision", editable = true, extras = ["test"] }'
    (project.folder / "pixi.toml").write_text(
        '[workspace]\nname = "w"\nchannels = []\nplatforms = ["linux-64"]\n'
        f'[dependencies]\npython = "3.11.*"\n[pypi-dependencies]\n{folder}\n'
        f'it = {{ git = "{tree.as_uri()}", branch = "main" }}\nfile = {{ path = "it-1.0.whl" }}\n'
    )
    lost = project.ok("import", "pixi.toml", "--name", "theirs", "--json").data["lost"]
    assert "`file`, since there is no `it-1.0.whl`" in lost
    text = (project.folder / "manifests" / "theirs.toml").read_text()
    assert 'vision = { path = "../vision", editable = true, extras = ["test"] }' in text
    assert f'it     = {{ git = "{tree.as_uri()}", branch = "main" }}' in text


@pytest.mark.long
def test_create_looks_at_the_folders_of_an_environment_that_is_there(project: Project, tree: Path) -> None:
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision", editable = true }')
    project.ok("lock", "tiny")
    project.ok("create", "tiny", "--locked")
    write_tree(tree, version="2.0")
    for option in ("--locked", "--frozen"):
        assert "vision 1.0 is locked, ../vision has 2.0" in project.fails(7, "lock-stale", "create", "tiny", option)
    project.ok("create", "tiny")
    assert project.site().joinpath("vision-2.0.dist-info").is_dir()
    assert "nothing to do" in project.ok("create", "tiny", "--locked").err
    tree.rename(tree.with_name("elsewhere"))
    for option in ("--locked", "--frozen"):
        assert "vision does not exist" in project.fails(5, "no-solution", "create", "tiny", option)


def test_a_package_for_other_pythons_is_named(project: Project, tree: Path) -> None:
    file = tree / "pyproject.toml"
    file.write_text(file.read_text().replace("[build-system]", 'requires-python = ">=3.99"\n[build-system]'))
    project.edit('alpha  = ">=1"', 'vision = { path = "../vision" }')
    project.widen_pythons()
    said = project.fails(5, "no-solution", "lock", "tiny")
    assert f"vision 1.0 requires Python >=3.99, the target has {', '.join(MINORS)}" in said


def test_the_hint_for_a_file_in_place_of_a_folder_works(
    project: Project, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "my wheels"
    wheels.mkdir()
    make_wheel(wheels, "vision", "3.0")
    name = next(wheels.glob("*.whl")).name
    project.edit('alpha  = ">=1"', f'vision = {{ path = "{wheels}/{name}" }}')
    project.ok("lock", "tiny")
    (wheels / "vision-3.0.tar.gz").touch()
    project.edit(name, "vision-3.0.tar.gz")
    assert "the folder that vision-3.0.tar.gz unpacks to" in project.fails(5, "no-solution", "lock", "tiny")
    project.edit(f'{{ path = "{wheels}/vision-3.0.tar.gz" }}', '"*"')
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    project.ok("create", "tiny")
    assert project.site().joinpath("vision-3.0.dist-info").is_dir()
