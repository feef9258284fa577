"""Source trees with a build backend of their own, so that they are built without an index; and git repositories."""

import os
import subprocess
import tarfile
from pathlib import Path

__all__ = ["commit_all", "git", "pack_sdist", "write_dynamic_tree", "write_tree"]

_BACKEND = '''\
"""A small build backend: wheels with one module, and editable ones that name this folder."""

import base64
import hashlib
import os
import tomllib
import zipfile


def _project():
    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    if "version" in project.get("dynamic", []):
        with open("calls", "a") as file:
            file.write("called\\n")
        with open("VERSION") as file:
            project["version"] = file.readline().strip()
            project["dependencies"] = file.read().split()
    return project


def _metadata(project):
    needs = "".join(f"Requires-Dist: {line}\\n" for line in project.get("dependencies", []))
    return f"Metadata-Version: 2.1\\nName: {project['name']}\\nVersion: {project['version']}\\n{needs}"


def _build(folder, files):
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    info, name = f"{stem}.dist-info", f"{stem}-py3-none-any.whl"
    files = {
        **files,
        f"{info}/METADATA": _metadata(project),
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: own\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    rows = ""
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows += f"{path},sha256={digest},{len(text.encode())}\\n"
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", f"{rows}{info}/RECORD,,\\n")
    return name


def build_wheel(folder, settings=None, metadata=None):
    with open(os.path.join("src", "vision.py")) as file:
        return _build(folder, {"vision.py": file.read()})


def build_editable(folder, settings=None, metadata=None):
    return _build(folder, {"vision.pth": os.path.abspath("src") + "\\n"})
'''


def write_tree(folder: Path, *, version: str = "1.0", requires: str = "alpha>=1", value: str = "one") -> Path:
    """Write the package `vision` with a module whose `VALUE` is a text."""
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "backend").mkdir(exist_ok=True)
    (folder / "src" / "vision.py").write_text(f'VALUE = "{value}"\n')
    (folder / "backend" / "own_backend.py").write_text(_BACKEND)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "vision"\nversion = "{version}"\ndependencies = ["{requires}"]\n\n'
        '[build-system]\nrequires = []\nbuild-backend = "own_backend"\nbackend-path = ["backend"]\n'
    )
    return folder


def write_dynamic_tree(folder: Path, *, version: str = "1.0", requires: str = "alpha>=1") -> Path:
    """Write the package `vision` with a backend that reads its version and requirements from a file of its own.

    Each call of the backend adds a line to the file `calls`.
    """
    write_tree(folder)
    file = folder / "pyproject.toml"
    text = file.read_text().replace(
        'version = "1.0"\ndependencies = ["alpha>=1"]', 'dynamic = ["version", "dependencies"]'
    )
    file.write_text(text)
    (folder / "VERSION").write_text(f"{version}\n{requires}\n")
    return folder


def pack_sdist(
    tree: Path, folder: Path, *, version: str = "1.0", requires: str = "alpha>=1", static: bool = True
) -> Path:
    """Pack the tree of the package `vision` into a source archive of an index, with its ``PKG-INFO``."""
    metadata = "2.2" if static else "2.1"
    info = f"Metadata-Version: {metadata}\nName: vision\nVersion: {version}\nRequires-Dist: {requires}\n"
    (tree / "PKG-INFO").write_text(info)
    path = folder / f"vision-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tree, f"vision-{version}")
    return path


def git(folder: Path, *words: str) -> str:
    """Run git in a folder with an author of its own; return what it prints."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = {f"GIT_{role}_{key}": "a@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **own, **who}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit_all(folder: Path, message: str) -> str:
    """Commit everything in a folder, which becomes a repository with the branch `main`; return the commit."""
    if not (folder / ".git").is_dir():
        git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")
