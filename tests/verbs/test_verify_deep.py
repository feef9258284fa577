"""`verify --deep` asks the digests of the lock alone, and `create --repair` mends what it finds."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.files import digest, digest_bytes
from tenv.sources.conda.contents import unprefixed
from tests.support.conda_project import Conda
from tests.support.fakes import make_wheel
from tests.support.projects import Project, call
from tests.support.rarely import first_fast
from tests.support.redist import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages with links and shell scripts")


def vouch(prefix: Path, *names: str) -> None:
    """Write the present digests of files into tenv's own notes, as who changes a file on purpose can do."""
    made = prefix / "tenv-meta" / "made.json"
    rows = json.loads(made.read_text())
    made.write_text(json.dumps({**rows, **{name: f"sha256:{digest(prefix / name)}" for name in names}}))
    file = prefix / "tenv-meta" / "state.json"
    state = json.loads(file.read_text())
    state["made"] = digest_bytes(made.read_bytes())
    file.write_text(json.dumps(state) + "\n")


def forge_wheel(project: Project) -> Path:
    """Change a module, and everything in the environment that says what it was."""
    module = project.site() / "alpha.py"
    module.unlink()
    module.write_text("VERSION = 'forged'\n")
    (record,) = project.site().glob("alpha-*.dist-info/RECORD")
    lines = [
        f"{line.split(',')[0]},," if line.startswith("alpha.py") else line for line in record.read_text().split("\n")
    ]
    record.write_text("\n".join(lines))
    vouch(project.prefix, str(record.relative_to(project.prefix)))
    return module


def forge_conda(conda: Conda, name: str, data: bytes) -> None:
    """Change a file of a conda package, and what its record says of it."""
    path = conda.prefix / name
    mode = path.stat().st_mode
    path.unlink()
    path.write_bytes(data)
    path.chmod(mode)
    for note in (conda.prefix / "conda-meta").glob("*.json"):
        record = json.loads(note.read_text())
        for row in record["paths_data"]["paths"]:
            if row["_path"] == name:
                row["sha256_in_prefix" if "sha256_in_prefix" in row else "sha256"] = digest(path)
                note.write_text(json.dumps(record))
                vouch(conda.prefix, str(note.relative_to(conda.prefix)))


def deep(*words: str) -> tuple[int, list[str]]:
    ended = call("verify", "tiny", "--no-probes", "--deep", "--json", *words)
    return ended.status, ended.data["integrity"]["changed"]


def test_wheels_are_compared_with_the_locked_files(created: Project) -> None:
    assert deep() == (0, [])
    module = forge_wheel(created)
    assert call("verify", "tiny", "--no-probes").status == 0
    assert deep() == (8, [str(module.relative_to(created.prefix))])
    created.ok("create", "tiny", "--repair")
    assert deep() == (0, [])
    assert "forged" not in module.read_text()


@pytest.mark.parametrize("name", first_fast(["bin/tool", "lib/libtool.so", "share/data.txt"]))
def test_conda_packages_are_compared_with_the_locked_files(conda: Conda, name: str) -> None:
    conda.lock("tool", "data")
    conda.create()
    assert deep() == (0, [])
    right = (conda.prefix / name).read_bytes()
    forge_conda(conda, name, right.replace(b"o", b"u"))
    assert call("verify", "tiny", "--no-probes").status == 0
    assert deep() == (8, [name])
    conda.create("--repair")
    assert deep() == (0, [])
    assert (conda.prefix / name).read_bytes() == right


def test_archives_are_compared_with_the_locked_files(project: Project, served: Iterator[Server]) -> None:
    project.manifest.write_text(project.manifest.read_text() + '\n[archives]\ncunovel = "7.1.0.3"\n')
    project.ok("lock", "tiny")
    project.ok("create", "tiny")
    assert deep() == (0, [])
    record = project.prefix / "tenv-meta" / "archives" / "cunovel.json"
    data = json.loads(record.read_text())
    name = next(iter(sorted(data["files"])))
    (project.prefix / name).unlink()
    (project.prefix / name).write_text("forged\n")
    data["files"][name] = digest(project.prefix / name)
    record.write_text(json.dumps(data))
    vouch(project.prefix, "tenv-meta/archives/cunovel.json")
    assert call("verify", "tiny", "--no-probes").status == 0
    assert deep() == (8, [name])
    project.ok("create", "tiny", "--repair")
    assert deep() == (0, [])


@pytest.mark.long
def test_rights_are_compared_with_the_locked_files(project: Project) -> None:
    make_wheel(project.index.folder, "gamma", "1.0", files={"gamma-1.0.data/scripts/gamma.sh": "#!/bin/sh\n"})
    project.ask_for('gamma = "*"')
    project.ok("create", "tiny")
    assert deep() == (0, [])
    script = project.prefix / "bin" / "gamma.sh"
    script.chmod(0o644)
    programs = project.prefix / "tenv-meta" / "programs.json"
    programs.write_text(json.dumps([name for name in json.loads(programs.read_text()) if name != "bin/gamma.sh"]))
    vouch(project.prefix, "tenv-meta/programs.json")
    assert call("verify", "tiny", "--no-probes").status == 0
    assert deep() == (8, ["bin/gamma.sh"])
    project.ok("create", "tiny", "--repair")
    assert deep() == (0, [])
    assert script.stat().st_mode & 0o111 == 0o111


def test_without_a_network_nothing_passes_as_compared(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_OFFLINE", "1")
    ended = call("verify", "tiny", "--no-probes", "--deep")
    assert ended.status == 6


def test_the_lock_that_it_was_made_from_must_be_there(created: Project) -> None:
    (lock,) = (created.prefix / "tenv-meta" / "locks").glob("*.lock")
    lock.unlink()
    ended = call("verify", "tiny", "--no-probes", "--deep")
    assert ended.status == 8
    assert "does not hold the lock that it was made from" in ended.err


TEXT = st.binary(max_size=20).filter(lambda data: b"/" not in data and b"\0" not in data)


@given(parts=st.lists(TEXT, min_size=1, max_size=4), zeros=st.integers(1, 4))
def test_a_prefix_in_a_binary_is_taken_out_again(parts: list[bytes], zeros: int) -> None:
    placeholder, prefix = b"/long" * 20, b"/opt/env"
    packed = b"\x7fELF\0" + placeholder.join(parts) + b"\0" * zeros + b"end"
    count = len(parts) - 1
    grown = (len(placeholder) - len(prefix)) * count
    installed = b"\x7fELF\0" + prefix.join(parts) + b"\0" * (zeros + grown) + b"end"
    assert unprefixed(installed, prefix, placeholder, binary=True) == packed
