"""Source archives of an index: locked with what their build needs, built where the manifest permits it, and kept."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenv.sources.wheels.sdist_builds import built_folder
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project, call
from tests.support.source_trees import pack_sdist, write_tree

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


def test_a_permitted_archive_is_locked_built_once_and_kept(
    project: Project, sdist: Sdist, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    project.ok("create", "tiny", "--frozen")
    project.ok("create", "tiny", "--offline", "--prefix", str(tmp_path / "second"))
    assert (value(tmp_path / "second"), sdist.builds) == ("one", 1)
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
    project.fails(5, "no-solution", "lock", "tiny")
    assert sdist.builds == 0


@pytest.mark.long
def test_a_list_permits_what_others_require(project: Project, sdist: Sdist) -> None:
    make_wheel(project.index.folder, "user", "1.0", requires=["vision"])
    project.edit('vision = { version = "*", build = true }', 'user = "*"')
    project.fails(5, "no-solution", "lock", "tiny")
    project.edit("platforms", 'sdists = ["vision"]\nplatforms')
    project.ok("create", "tiny")
    assert (value(project.prefix), sdist.builds) == ("one", 1)


def test_an_archive_with_a_wheel_is_not_built(project: Project, sdist: Sdist) -> None:
    make_wheel(project.index.folder, "vision", "1.0", requires=["alpha>=1"])
    project.ok("lock", "tiny")
    assert "source-trees" not in yaml.safe_load(project.lock.read_text())["tenv"]


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
