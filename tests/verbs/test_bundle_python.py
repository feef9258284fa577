"""`tenv bundle --with-python`: uv's Python in a bundle, and how a machine without that Python takes it.

uv's server is not asked: a made archive is on a server here, under uv's name for it and in a table of uv's.
"""

import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.test_bundles import forged
from tests.support.projects import Project
from tests.verbs.test_bundle import away, serving
from tests.verbs.test_fetch import OTHER, pack

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the stand-in for a Python is a shell script")

BUILD = "20240101"
WORDS = ("create", "tiny", "--bundle", "tiny.tenv")


def write_table(path: Path, version: str, name: str, sha256: str) -> None:
    """Write a table of uv's that has one Python."""
    major, minor, patch = map(int, version.split("."))
    row = {
        "name": "cpython",
        "arch": {"family": platform.machine(), "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": major,
        "minor": minor,
        "patch": patch,
        "prerelease": "",
        "url": "https://github.com/astral-sh/python-build-standalone/releases/download/"
        f"{BUILD}/{name.replace('+', '%2B')}",
        "sha256": sha256,
        "variant": None,
        "build": BUILD,
    }
    path.write_text(json.dumps({f"cpython-{version}-linux-{platform.machine()}-gnu": row}))


@pytest.fixture
def made(project: Project, other_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The JSON of a bundle with the Python that this host lacks; the caller is on another machine by then."""
    project.widen_pythons()
    project.ok("lock", "tiny")
    ended = subprocess.run([other_python, "--version"], capture_output=True, text=True, check=True)
    version = ended.stdout.split()[1]
    name = f"cpython-{version}+{BUILD}-{platform.machine()}-unknown-linux-gnu-install_only_stripped.tar.gz"
    archive = tmp_path / "mirror" / BUILD / name
    archive.parent.mkdir(parents=True)
    archive.write_bytes(pack(other_python))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    table = tmp_path / "table.json"
    write_table(table, version, name, sha256)
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(table))
    words = ("bundle", "--python", OTHER, "--with-python", "--json")
    with serving(tmp_path / "mirror") as (url, asked):
        monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", url)
        data: dict[str, Any] = project.ok(*words).data
        assert asked
        first = Path("tiny.tenv").read_bytes()
        project.ok(*words)
        assert Path("tiny.tenv").read_bytes() == first
    away(project, monkeypatch)
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    rows = [row for row in data["files"] if row["kind"] == "python"]
    assert [(row["name"], row["sha256"]) for row in rows] == [(name, sha256)]
    return data | {"table": table, "version": version, "archive": name, "sha256": sha256}


def test_a_machine_without_that_python_takes_it_from_the_bundle(made: dict[str, Any], project: Project) -> None:
    project.ok(*WORDS)
    assert project.state()["python"] == OTHER
    command = [str(project.prefix / "bin" / "python"), "-c", "import native; print(native.TAG)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"cp{OTHER.replace('.', '')}-")
    project.ok("verify", "tiny")


def test_another_archive_than_the_one_of_the_table_is_refused(made: dict[str, Any], project: Project) -> None:
    """A bundle may hold any bytes under the name of a Python: the same lock does not vouch for them."""
    write_table(made["table"], made["version"], made["archive"], "0" * 64)
    said = project.fails(6, "hash-mismatch", *WORDS)
    assert f"the bundle has another {made['archive']} than uv's table of Pythons" in said
    assert not project.prefix.exists()


@pytest.mark.long
def test_a_python_that_no_table_has_needs_the_digest_of_the_bundle(made: dict[str, Any], project: Project) -> None:
    for version, name in (
        (made["version"], made["archive"].replace(BUILD, "20240102")),
        (f"{OTHER}.99", made["archive"].replace(made["version"], f"{OTHER}.99")),
    ):
        write_table(made["table"], version, name, "0" * 64)
        said = project.fails(2, "usage", *WORDS)
        assert f"the lock does not name {made['archive']} of the bundle" in said
        assert "--bundle-digest" in said
    project.ok(*WORDS, "--bundle-digest", made["digest"])
    assert project.state()["python"] == OTHER


@pytest.mark.long
def test_a_python_that_the_lock_is_not_for_is_refused(made: dict[str, Any], project: Project) -> None:
    whole = Path("tiny.tenv").read_bytes()
    here = made["platforms"][0]
    for change, said in (
        ({1: "python.tar.gz"}, "is no Python for its platforms"),
        ({1: made["archive"].replace("linux-gnu", "linux-musl")}, "is no Python for its platforms"),
        ({4: sorted({here, "win-64"})}, "is no Python for its platforms"),
        ({1: made["archive"].replace(made["version"], "3.99.1")}, "its lock is not for"),
    ):

        def alter(head: dict[str, Any], change: dict[int, Any] = change) -> None:
            row = next(row for row in head["files"] if row[0] == "python")
            for at, value in change.items():
                row[at] = value

        Path("tiny.tenv").write_bytes(forged(whole, alter))
        assert said in project.fails(6, "bundle-refused", *WORDS)
        assert not project.prefix.exists()


def test_a_bundle_without_a_python_names_the_option(
    project: Project, other_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.widen_pythons()
    project.ok("lock", "tiny")
    project.ok("bundle", "--python", OTHER)
    away(project, monkeypatch)
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    assert "`tenv bundle tiny --with-python" in project.fails(6, "network", *WORDS)


def test_the_archive_of_tenv_itself_carries_no_python(project: Project) -> None:
    assert "exclude each other" in project.fails(2, "usage", "bundle", "--self", "--with-python")
