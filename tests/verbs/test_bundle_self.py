"""`tenv bundle --self`: the archive that installs tenv with a Python alone. A made program stands in for uv's."""

import ast
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tenv.core.files import digest_bytes
from tenv.install import standalone
from tenv.locks.lock import Wheel
from tenv.sources.archives.store import default_store
from tenv.verbs import bundle_self
from tests.support.projects import HERE, Project

_UV = """\
#!/bin/sh
echo "$@" >> "$HOME/asked.txt"
env >> "$HOME/asked.txt"
case "$*" in *" pip "*) cat "${UV_CACHE_DIR%/cache}/requirements.txt" >> "$HOME/asked.txt" ;; esac
"""


@pytest.fixture
def archive(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The archive of this tenv and a wheel of uv, whose program writes what it is asked."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr("uv-1.data/scripts/uv", _UV)
    raw = buffer.getvalue()
    made = Wheel("uv", "1", "uv-1-py3-none-any.whl", digest_bytes(raw), len(raw), (HERE,))
    file = default_store().file(made.sha256)
    file.parent.mkdir(parents=True)
    file.write_bytes(raw)
    served = {made.sha256: [f"linux-64 {HERE}"]}
    monkeypatch.setattr(bundle_self, "_fetch", lambda *_: ({made.sha256: made}, served))
    data = project.ok("bundle", "--self", "--json").data
    assert [row["name"].partition("-")[0] for row in data["files"]] == ["torch_tenv", "uv"]
    return Path(data["file"]).absolute()


def test_a_file_that_has_changed_in_the_store_is_refused(archive: Path, project: Project) -> None:
    before = archive.read_bytes()
    store = default_store()
    (kept,) = (store.folder / "files").iterdir()
    kept.write_bytes(kept.read_bytes() + b"x")
    assert "the store had uv-1-py3-none-any.whl" in project.fails(6, "hash-mismatch", "bundle", "--self")
    assert archive.read_bytes() == before
    assert not kept.exists()


def install(archive: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "UV_INDEX": "http://127.0.0.1:9", "PYTHONPATH": "/nowhere"}
    command = [sys.executable, str(archive), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_it_is_the_same_each_time_and_installs_by_digest(archive: Path, project: Project) -> None:
    first = archive.read_bytes()
    project.ok("bundle", "--self")
    assert archive.read_bytes() == first
    made = Path(os.environ["HOME"]) / "made"
    ended = install(archive, str(made))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith(f" is ready: {made / 'bin' / 'tenv'}\n")
    asked = (made.parent / "asked.txt").read_text()
    for word in (
        "--offline",
        "--no-index",
        "--require-hashes",
        "UV_NO_CONFIG=1",
        "uv===1 --hash=sha256:",
        "torch_tenv==0",
    ):
        assert word in asked
    for word in ("UV_INDEX=", "PYTHONPATH="):
        assert word not in asked


def test_what_does_not_fit_is_refused_and_nothing_is_left(archive: Path, tmp_path: Path) -> None:
    used = tmp_path / "used"
    used.mkdir()
    (used / "notes.txt").write_text("by hand")
    for words in ((), ("--help",), ("a", "b")):
        assert install(archive, *words).returncode == 2
    assert "name a new folder" in install(archive, str(used)).stderr
    with zipfile.ZipFile(archive) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    head = json.loads(members["head.json"])

    def changed(name: str, data: bytes) -> Path:
        path = tmp_path / "other.pyz"
        with zipfile.ZipFile(path, "w") as out:
            for member, content in (members | {name: data}).items():
                out.writestr(member, content)
        return path

    wheel = next(name for name in members if name.startswith("wheels/uv"))
    ended = install(changed(wheel, members[wheel] + b"x"), str(tmp_path / "new"))
    assert ended.returncode == 6
    assert "uv-1-py3-none-any.whl does not have the sha256" in ended.stderr
    with zipfile.ZipFile(tmp_path / "cut.pyz", "w") as out:
        out.writestr("__main__.py", members["__main__.py"])
    ended = install(tmp_path / "cut.pyz", str(tmp_path / "new"))
    assert (ended.returncode, ended.stderr.startswith("error: cut.pyz is damaged: ")) == (6, True)
    for row in head["files"]:
        row["for"] = ["win-64 3.12"]
    ended = install(changed("head.json", json.dumps(head).encode()), str(tmp_path / "new"))
    assert ended.returncode == 4
    assert "is for win-64 3.12, not for linux-64" in ended.stderr
    assert not (tmp_path / "new").exists()


def with_uv(archive: Path, text: str) -> Path:
    """Return an archive with another program in the place of uv."""
    again = archive.with_name("again.pyz")
    with zipfile.ZipFile(archive) as packed, zipfile.ZipFile(again, "w") as out:
        members = {name: packed.read(name) for name in packed.namelist()}
        (name,) = (name for name in members if name.startswith("wheels/uv"))
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as wheel:
            wheel.writestr("uv-1.data/scripts/uv", text)
        head = json.loads(members["head.json"])
        for row in head["files"]:
            row["sha256"] = digest_bytes(buffer.getvalue()) if row["name"].startswith("uv") else row["sha256"]
        members |= {name: buffer.getvalue(), "head.json": json.dumps(head).encode()}
        for member, data in members.items():
            out.writestr(member, data)
    return again


def test_a_failed_installation_leaves_no_folder(archive: Path, tmp_path: Path) -> None:
    again = with_uv(archive, '#!/bin/sh\nmkdir -p "$FOLDER/bin" && exit 2\n'.replace("$FOLDER", str(tmp_path / "new")))
    ended = install(again, str(tmp_path / "new"))
    assert (ended.returncode, ended.stderr) == (2, "error: tenv is not installed\n")
    assert not (tmp_path / "new").exists()


def test_a_folder_of_temporary_files_without_programs_is_named(archive: Path, tmp_path: Path) -> None:
    again = with_uv(archive, "#!/nonexistent/as/on/a/noexec/mount\n")
    ended = install(again, str(tmp_path / "new"))
    assert (ended.returncode, "TMPDIR=FOLDER names another folder" in ended.stderr) == (4, True)
    assert "Traceback" not in ended.stderr


def test_words_that_do_not_fit_are_refused(project: Project) -> None:
    assert "about tenv alone" in project.fails(2, "usage", "bundle", "tiny", "--self")
    assert "not on osx-64" in project.fails(2, "usage", "bundle", "--self", "--platform", "osx-64")
    assert "not with 2.7" in project.fails(2, "usage", "bundle", "--self", "--python", "2.7")
    Path("notes.pyz").write_text("by hand")
    project.fails(2, "file-exists", "bundle", "--self", "-o", "notes.pyz")
    with zipfile.ZipFile("mine.docx", "w") as other:
        other.writestr("word/document.xml", "by hand")
    Path("damaged.zip").write_bytes(Path("mine.docx").read_bytes().replace(b"PK\1\2", b"PK\1\3"))
    os.mkfifo("pipe")
    for name in ("mine.docx", "damaged.zip", "pipe"):
        project.fails(2, "file-exists", "bundle", "--self", "-o", name)


def test_an_old_python_reads_the_installer_to_its_message() -> None:
    """Python 3.6, which RHEL 8 has, evaluates annotations, and knows no `list[str]`."""
    tree = ast.parse(Path(standalone.__file__).read_text(encoding="utf-8"), feature_version=(3, 6))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    notes = [one for node in functions for one in (node.returns, *(given.annotation for given in node.args.args))]
    assert not [ast.unparse(one) for one in notes if isinstance(one, ast.Subscript)]
