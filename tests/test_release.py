"""A release: its version comes from the tag, and its files have the same bytes wherever they are built."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path

import pytest
import yaml

from scripts.release import build, tagged_version
from tenv import __version__

ROOT = Path(__file__).parent.parent
SOURCE = "src/tenv/__init__.py"
HOOK = ("scripts/note_commit.py", "src/tenv/core/source_commit.py")


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with what a build needs, in one commit."""
    folder = tmp_path / "small"
    schemas = [f"docs/{name}.schema.json" for name in ("tenv", "lock", "output")]
    pages = ("README.md", "LICENSE", *schemas, "docs/rules/TE101.md")
    for name in ("pyproject.toml", SOURCE, *HOOK, *pages):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    for name in ("manifests", "locks"):
        (folder / name).mkdir()
        (folder / name / "any").write_text("")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")
    return folder


def versions(files: list[Path]) -> set[str]:
    """Return the versions in the metadata and the source of a wheel and an sdist."""
    wheel, sdist = files
    assert (sdist.suffix, wheel.suffix) == (".gz", ".whl")
    with zipfile.ZipFile(wheel) as file:
        texts = {
            name: file.read(name).decode() for name in file.namelist() if name.endswith(("METADATA", "__init__.py"))
        }
    with tarfile.open(sdist) as tar:
        for name in tar.getnames():
            if name.endswith(("PKG-INFO", SOURCE)):
                texts[name] = tar.extractfile(name).read().decode()  # type: ignore[union-attr]
    assert len(texts) == 4
    pattern = re.compile(r'^(?:Version: |__version__ = ")([^"\n]+)', re.MULTILINE)
    return {pattern.findall(text)[0] for text in texts.values()}


@pytest.mark.long
def test_without_a_tag_the_version_is_that_of_the_source(small: Path, tmp_path: Path) -> None:
    assert tagged_version(small) == ""
    assert versions(build(small, tmp_path / "dist")) == {__version__}


def commits(files: Iterable[Path]) -> set[str]:
    """Return the commits that wheels and sdists note."""
    found = set()
    for path in files:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as file:
                found.add(file.read("tenv/commit.txt").decode())
        else:
            with tarfile.open(path) as tar:
                (name,) = [name for name in tar.getnames() if name.endswith("/src/tenv/commit.txt")]
                found.add(tar.extractfile(name).read().decode())  # type: ignore[union-attr]
    return found


def hatch(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "hatchling", "build", *words], cwd=folder, check=True, capture_output=True)


def test_wheel_and_sdist_note_their_commit_however_they_are_built(small: Path, tmp_path: Path) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=small, check=True, capture_output=True, text=True).stdout
    assert len(head) == 41
    assert commits(build(small, tmp_path / "release")) == {head}
    hatch(small, "-d", str(tmp_path / "plain"))
    assert commits((tmp_path / "plain").iterdir()) == {head}
    assert not (small / "src" / "tenv" / "commit.txt").exists()
    subprocess.run(["tar", "-xzf", *(tmp_path / "plain").glob("*.tar.gz")], cwd=tmp_path, check=True)
    (unpacked,) = tmp_path.glob("torch_tenv-*")
    hatch(unpacked, "-t", "wheel", "-d", str(tmp_path / "again"))
    assert commits((tmp_path / "again").iterdir()) == {head}


def test_without_git_there_is_no_commit_to_note(small: Path, tmp_path: Path) -> None:
    (small / ".git").rename(tmp_path / "put-aside")
    hatch(small, "-t", "wheel", "-d", str(tmp_path / "dist"))
    with zipfile.ZipFile(next((tmp_path / "dist").iterdir())) as file:
        assert "tenv/commit.txt" not in file.namelist()


def test_the_version_is_that_of_the_tag(small: Path, tmp_path: Path) -> None:
    git(small, "tag", "v9.8.7rc1")
    git(small, "tag", "other")
    version = tagged_version(small)
    files = build(small, tmp_path / "dist", version)
    assert versions(files) == {"9.8.7rc1"}
    with zipfile.ZipFile(files[0]) as file:
        (name,) = (name for name in file.namelist() if name.endswith("METADATA"))
        metadata = HeaderParser().parsestr(file.read(name).decode())
    assert metadata["Name"] == "torch-tenv"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert f'__version__ = "{__version__}"' in (small / SOURCE).read_text()  # the checkout stays as it was


def test_a_tag_is_refused_where_it_is_not_what_would_be_built(small: Path) -> None:
    git(small, "tag", "v1.0.0")
    (small / "README.md").write_text("changed")
    with pytest.raises(SystemExit, match=r"(?s)differ from the tag v1\.0\.0.*README\.md"):
        tagged_version(small)
    git(small, "checkout", "-q", "README.md")
    git(small, "tag", "v1.0.1")
    with pytest.raises(SystemExit, match="several versions"):
        tagged_version(small)


@pytest.mark.long
def test_the_bytes_do_not_depend_on_times_modes_or_the_folder(small: Path, tmp_path: Path) -> None:
    first = [path.read_bytes() for path in build(small, tmp_path / "dist")]
    other = tmp_path / "elsewhere" / "again"
    other.parent.mkdir()
    small.rename(other)
    for path in (other / SOURCE, other / "README.md"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    assert [path.read_bytes() for path in build(other, tmp_path / "more")] == first


def test_the_workflow_runs_what_is_here() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    steps = workflow["jobs"]["release"]["steps"]
    said = "\n".join(step.get("run", "") for step in steps)
    for script in re.findall(r"python (scripts/\S+)", said):
        assert (ROOT / script).is_file(), script
    assert "twine check --strict" in said
    assert not re.search(r"secrets\.", str(workflow))
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions == [action for action in actions if re.search(r"@[0-9a-f]{40}$", action)]
