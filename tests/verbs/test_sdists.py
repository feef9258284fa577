"""Source archives of an index: locked with what their build needs, built where the manifest permits it, and kept."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenv.core.files import digest
from tenv.sources.wheels.sdist_builds import built_folder
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project, call
from tests.support.rarely import first_fast
from tests.support.source_trees import commit_all, git, pack_sdist, write_dynamic_tree, write_tree

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the environment's Python is called by its path")


class Sdist:
    """The source archive of `vision`, whose build needs the wheel `helper` and counts its runs.

    Attributes:
        tree: Its files.
        seen: The file to which each build adds a line.
    """

    def __init__(self, project: Project, folder: Path) -> None:
        self.project, self.tree, self.seen = project, write_tree(folder / "vision"), folder / "seen"
        make_wheel(project.index.folder, "helper", "1.0", files={"helper.py": "READY = True\n"})
        file = self.tree / "pyproject.toml"
        file.write_text(file.read_text().replace("requires = []", 'requires = ["helper>=1"]'))
        self.change("import base64", f"import base64\nimport helper\nopen({str(self.seen)!r}, 'a').write('built\\n')")

    def change(self, old: str, new: str, *, static: bool = True) -> None:
        """Change the build backend, and pack the archive."""
        backend = self.tree / "backend" / "own_backend.py"
        assert old in backend.read_text()
        backend.write_text(backend.read_text().replace(old, new, 1))
        pack_sdist(self.tree, self.project.index.folder, static=static)

    @property
    def builds(self) -> int:
        """How often it was built."""
        return len(self.seen.read_text().splitlines()) if self.seen.is_file() else 0

    @property
    def requests(self) -> int:
        """How often tenv asked the index for it."""
        index = self.project.index
        asked = zip(index.asked, index.askers, strict=True)
        return sum(".tar.gz" in path and not asker.startswith("uv/") for path, asker in asked)


@pytest.fixture
def sdist(project: Project, tmp_path: Path) -> Sdist:
    """The archive on the index; the manifest permits its build."""
    project.edit('native = "*"\n', "")
    project.edit('alpha  = ">=1"', 'vision = { version = "*", build = true }')
    project.edit(project.manifest.read_text().splitlines()[2], f'python = "{HERE}.*"')
    return Sdist(project, tmp_path)


def row(project: Project) -> dict[str, Any]:
    (rows,) = yaml.safe_load(project.lock.read_text())["tenv"]["source-trees"].values()
    (found,) = rows
    return dict(found)


def value(prefix: Path) -> str:
    words = [str(prefix / "bin" / "python"), "-c", "import alpha, vision; print(vision.VALUE)"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def test_a_permitted_archive_is_locked_built_once_and_kept(project: Project, sdist: Sdist, tmp_path: Path) -> None:
    project.ok("lock", "tiny")
    assert sdist.builds == 0  # its PKG-INFO holds its requirements
    found = row(project)
    assert (found["file"], found["requires"]) == ("vision-1.0.tar.gz", ["alpha>=1"])
    assert [pin.split()[0] for pin in found["build"]] == ["helper==1.0"]
    raw = project.lock.read_bytes()
    project.ok("lock", "tiny")
    project.ok("lock", "tiny", "--check")
    assert project.lock.read_bytes() == raw
    project.ok("create", "tiny", "--locked")
    assert (value(project.prefix), sdist.builds) == ("one", 1)
    assert sdist.requests == 1  # for its bytes, at the first lock
    project.ok("create", "tiny", "--frozen")
    project.ok("create", "tiny", "--offline", "--prefix", str(tmp_path / "second"))
    assert (value(tmp_path / "second"), sdist.builds) == ("one", 1)


@pytest.mark.long
def test_another_wheel_and_another_input_are_built_anew(
    project: Project, sdist: Sdist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.ok("create", "tiny")
    assert sdist.builds == 1
    (kept,) = built_folder().glob("*/*.whl")
    kept.write_bytes(b"changed")
    project.ok("create", "tiny", "--prefix", str(tmp_path / "third"))
    assert (value(tmp_path / "third"), sdist.builds) == ("one", 2)
    monkeypatch.setenv("CFLAGS", "-O3")  # another input, another wheel
    project.ok("create", "tiny", "--prefix", str(tmp_path / "fourth"))
    assert sdist.builds == 3


@pytest.mark.long
def test_an_archive_whose_backend_has_its_requirements_is_built_when_it_is_locked(
    project: Project, sdist: Sdist
) -> None:
    sdist.change("import base64", "import base64", static=False)
    assert "only its build backend has its requirements" in project.ok("lock", "tiny").err
    built = sdist.builds
    project.ok("create", "tiny", "--locked")
    assert sdist.builds == built
    assert row(project)["requires"] == ["alpha>=1"]


def test_a_lock_alone_makes_no_code_run(project: Project, sdist: Sdist) -> None:
    project.ok("lock", "tiny")
    project.edit('{ version = "*", build = true }', '"*"')
    for words in (("lock", "tiny", "--check"), ("create", "tiny", "--locked"), ("create", "tiny", "--frozen")):
        ended = call(*words)
        assert (ended.status, "whose build runs code" in ended.err) == (7, True), (words, ended.err)
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "no index in use has a wheel of vision for linux-64, only a source archive" in said
    assert 'hint: `vision = { version = "*", build = true }` permits its build, which runs its code' in said
    assert sdist.builds == 0


@pytest.mark.long
def test_a_list_permits_what_others_require(project: Project, sdist: Sdist) -> None:
    make_wheel(project.index.folder, "user", "1.0", requires=["vision"])
    project.edit('vision = { version = "*", build = true }', 'user = "*"')
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "user 1.0 requires vision: no index in use has a wheel of vision for linux-64, only a source archive" in said
    assert '`sdists = ["vision"]` at the top permits its build' in said
    make_wheel(project.index.folder, "outer", "1.0", requires=["user"])
    project.edit('user = "*"', 'outer = "*"')
    said = " ".join(project.fails(5, "no-solution", "lock", "tiny").split())
    assert "outer 1.0 requires user: user 1.0 requires vision: no index" in said
    assert '`sdists = ["vision"]` at the top permits its build' in said
    project.edit("platforms", 'sdists = ["vision"]\nplatforms')
    project.ok("create", "tiny")
    assert (value(project.prefix), sdist.builds) == ("one", 1)


def test_no_older_release_is_taken_that_does_without_a_permitted_archive(project: Project, sdist: Sdist) -> None:
    make_wheel(project.index.folder, "user", "1.0")
    make_wheel(project.index.folder, "user", "2.0", requires=("vision",))
    project.edit('vision = { version = "*", build = true }', 'user = "*"')
    project.edit("platforms", 'sdists = ["vision"]\nplatforms')
    project.ok("lock", "tiny")
    (user,) = (
        one for one in yaml.safe_load(project.lock.read_text())["tenv"]["wheels"]["linux-64"] if one["name"] == "user"
    )
    assert (user["version"], row(project)["file"]) == ("2.0", "vision-1.0.tar.gz")


def test_an_archive_with_a_wheel_is_not_built(project: Project, sdist: Sdist) -> None:
    make_wheel(project.index.folder, "vision", "1.0", requires=["alpha>=1"])
    project.ok("lock", "tiny")
    assert "source-trees" not in yaml.safe_load(project.lock.read_text())["tenv"]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux denies sockets")
def test_a_build_that_wants_a_network_leaves_the_environment_as_it_was(project: Project, sdist: Sdist) -> None:
    project.edit('vision = { version = "*", build = true }', 'alpha = "*"')
    project.ok("create", "tiny")
    project.edit('alpha = "*"', 'alpha = "*"\nvision = { version = "*", build = true }')
    url = project.index.url + "/alpha/"
    sdist.change("def build_wheel(", f"import urllib.request\nurllib.request.urlopen({url!r})\n\n\ndef build_wheel(")
    project.ok("lock", "tiny")
    project.index.asked.clear()
    said = project.fails(8, "environment-broken", "create", "tiny")
    assert "and the environment is as it was" in said
    assert "its build wants a network" in said
    assert not [path for path in project.index.asked if path.endswith("/alpha/")]
    assert project.state()["state"] == "ready"


def test_a_changed_row_is_refused(project: Project, sdist: Sdist) -> None:
    project.ok("lock", "tiny")
    text = project.lock.read_text()
    for old, new, said in (
        ("file: vision-1.0.tar.gz", "file: other-1.0.tar.gz", "is not a source archive of vision 1.0"),
        ("helper==1.0 sha256:", "helper @ https://evil/ sha256:", "is not a list of NAME==VERSION"),
        (
            "file: vision-1.0.tar.gz",
            "index: evil\n      file: vision-1.0.tar.gz",
            "is not among the indexes of the lock",
        ),
        ("file: vision-1.0.tar.gz", "git: https://evil/x\n      file: vision-1.0.tar.gz", "unknown key"),
    ):
        assert old in text
        project.lock.write_text(text.replace(old, new))
        assert said in project.fails(7, "lock-corrupt", "create", "tiny", "--frozen")
    assert sdist.builds == 0


_NEEDS = 'dependencies = [{ name = "beta" }]\n'


def uv_lock(project: Project, row: str) -> Path:
    """Write the uv.lock of a project that requires `vision`, with the wheels that this requires."""
    files = "https://files.example.org"

    def wheel(name: str, needs: str = "") -> str:
        (path,) = (path for path in project.index.wheels() if path.name.startswith(f"{name}-1.0-"))
        return (
            f'[[package]]\nname = "{name}"\nversion = "1.0"\nsource = {{ registry = "{files}" }}\n{needs}'
            f'wheels = [{{ url = "{files}/{path.name}", hash = "sha256:{digest(path)}" }}]\n'
        )

    file = project.folder / "uv.lock"
    file.write_text(
        f'version = 1\nrequires-python = "=={HERE}.*"\n'
        '[[package]]\nname = "own"\nversion = "1"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "vision" }]\n[package.metadata]\nrequires-dist = [{ name = "vision" }]\n'
        f"{wheel('alpha', _NEEDS)}{wheel('beta')}{row}"
    )
    return file


def vision_row(archive: Path) -> str:
    return (
        '[[package]]\nname = "vision"\nversion = "1.0"\nsource = { registry = "https://files.example.org" }\n'
        'dependencies = [{ name = "alpha" }]\n'
        f'sdist = {{ url = "https://files.example.org/{archive.name}", hash = "sha256:{digest(archive)}", size = 1 }}\n'
    )


@pytest.mark.parametrize("static", first_fast([True, False]))
def test_an_archive_of_another_lock_is_a_row_that_no_code_ran_for(
    project: Project, sdist: Sdist, *, static: bool
) -> None:
    """Without static metadata, its requirements are those that setuptools noted in the archive."""
    noted = sdist.tree / "src" / "vision.egg-info"
    noted.mkdir()
    (noted / "requires.txt").write_text("alpha>=1\n\n[test:python_version > '3']\nbeta\n")
    sdist.change("import base64", "import base64", static=static)
    archive = project.index.folder / "vision-1.0.tar.gz"
    for offline in (True, False):
        file = uv_lock(project, vision_row(archive).replace("size = 1", f"size = {archive.stat().st_size}"))
        said = project.ok("import", str(file), "--name", "tiny", "--force", *(["--offline"] if offline else []))
        assert 'vision = { version = "*", build = true }' in project.manifest.read_text()
        assert "built from source archives, where no wheel fits, which runs their code: vision" in said.err
        assert tomllib.loads(project.manifest.read_text())["pypi-dependencies"].keys() == {"vision"}
        assert project.lock.exists() is not offline
    found = row(project)
    needs = ["alpha>=1"] if static else ["alpha>=1", 'beta; python_version > "3" and extra == "test"']
    assert (found["file"], found["requires"]) == ("vision-1.0.tar.gz", needs)
    assert [pin.split()[0] for pin in found["build"]] == ["helper==1.0"]
    project.ok("lock", "tiny", "--check")
    assert sdist.builds == 0
    if static:
        project.ok("create", "tiny", "--frozen")
        assert (value(project.prefix), sdist.builds) == ("one", 1)
    else:  # the wheel has no extra, and no word of setuptools' counts against that
        why = project.fails(8, "environment-broken", "create", "tiny", "--frozen")
        assert "vision does not require beta, as its row in the lock says" in why
        project.ok("update", "tiny", "vision")
        project.ok("create", "tiny", "--locked")


@pytest.mark.long
def test_a_repository_of_another_lock_is_a_row_at_its_commit(project: Project, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "vision")
    commit = commit_all(tree, "first")
    where = f"{tree.as_uri()}?branch=main#{commit}"
    git = f'[[package]]\nname = "vision"\nversion = "1.0"\nsource = {{ git = "{where}" }}\n'
    file = uv_lock(project, f'{git}dependencies = [{{ name = "alpha" }}]\n')
    project.ok("import", str(file), "--name", "tiny", "--force")
    assert f'vision = {{ git = "{tree.as_uri()}", rev = "{commit}" }}' in project.manifest.read_text()
    assert row(project)["requires"] == ["alpha>=1"]
    project.ok("lock", "tiny", "--check")
    project.ok("create", "tiny", "--frozen")
    assert value(project.prefix) == "one"
    write_dynamic_tree(tree)
    commit = commit_all(tree, "second")
    file.write_text(file.read_text().replace(where.partition("#")[2], commit))
    said = project.ok("import", str(file), "--name", "other").err
    assert "only its build backend knows its version or requirements" in said
    assert "`tenv lock other` writes one" in said
    assert not (project.folder / "locks" / "other.lock").exists()


@pytest.mark.long
def test_a_wheel_that_the_build_does_not_need_never_runs(project: Project, sdist: Sdist, tmp_path: Path) -> None:
    """A lock may name any wheel of the index; one with a .pth file would run in the build of a permitted archive."""
    seen = tmp_path / "planted"
    code = f"import pathlib; pathlib.Path({str(seen)!r}).touch()\n"
    make_wheel(project.index.folder, "evil", "1.0", files={"evil.pth": code})
    (evil,) = project.index.folder.glob("evil-*")
    project.ok("lock", "tiny")
    text = project.lock.read_text()
    pin = f"evil==1.0 sha256:{digest(evil)}"
    project.lock.write_text(text.replace("      - helper==1.0", f"      - {pin}\n      - helper==1.0"))
    assert pin in project.lock.read_text()
    project.ok("lock", "tiny", "--check")
    for words in (["create", "tiny", "--frozen"], ["create", "tiny", "--locked"], ["run", "--sync", "tiny", "true"]):
        said = project.fails(7, "lock-stale", *words)
        assert "of the wheels for its build, evil is locked and nothing requires it" in said, words
    assert (sdist.builds, seen.exists()) == (0, False)
    project.ok("update", "tiny", "vision")
    assert pin not in project.lock.read_text()
    project.ok("create", "tiny", "--locked")
    assert not seen.exists()


@pytest.mark.long
def test_a_lock_alone_makes_no_code_run_by_any_command(project: Project, sdist: Sdist) -> None:
    project.ok("lock", "tiny")
    project.edit('{ version = "*", build = true }', '"*"')
    text = project.lock.read_text()
    for words in (
        ("lock", "tiny", "--check"),
        ("create", "tiny", "--dry-run", "--locked"),
        ("run", "--sync", "tiny", "true"),
        ("verify", "tiny"),
        ("update", "tiny"),
        ("update", "tiny", "vision"),
        ("create", "tiny"),
        ("diff", "tiny"),
    ):
        assert call(*words).status != 0, words
        project.lock.write_text(text)
    assert sdist.builds == 0


@pytest.mark.long
def test_a_merge_keeps_the_rows_of_archives_and_builds_nothing(project: Project, sdist: Sdist) -> None:
    sdist.change("import base64", "import base64", static=False)
    (project.folder / "tenv.toml").touch()
    (project.folder / ".gitignore").write_text(".tenv\n")
    project.ok("lock", "tiny")
    commit_all(project.folder, "base")
    git(project.folder, "checkout", "--quiet", "-b", "theirs")
    project.ask_for('large = "*"')
    project.ok("lock", "tiny")
    commit_all(project.folder, "theirs")
    git(project.folder, "checkout", "--quiet", "main")
    project.edit("vision = {", 'gamma = "*"\nvision = {')
    project.ok("lock", "tiny")
    commit_all(project.folder, "ours")
    built = sdist.builds
    assert built == 1  # uv has the requirements from the first lock
    with pytest.raises(subprocess.CalledProcessError):
        git(project.folder, "merge", "--quiet", "theirs")
    project.ok("merge-driver", str(project.lock))
    assert sdist.builds == built
    assert row(project)["file"] == "vision-1.0.tar.gz"
    assert {"name: gamma", "name: large"} <= {line.strip("- ") for line in project.lock.read_text().splitlines()}
    project.ok("lock", "tiny", "--check")
    project.ok("create", "tiny", "--locked")
    assert value(project.prefix) == "one"
