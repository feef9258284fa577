"""Records that vouch for files are vouched for themselves: what was taken out of one is found, and mended."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.conda_project import Conda
from tests.support.projects import Project, call
from tests.support.rarely import some_fast


def _record(prefix: Path) -> Path:
    (record,) = prefix.glob("lib/python3*/site-packages/alpha-1.0.dist-info/RECORD")
    return record


def _emptied(prefix: Path) -> str:
    _record(prefix).write_text("")
    return "RECORD"


def _without_digests(prefix: Path) -> str:
    record = _record(prefix)
    record.write_text("".join(f"{line.split(',')[0]},,\n" for line in record.read_text().splitlines()))
    (record.parent.parent / "alpha.py").write_text("evil = True\n")
    return "RECORD"


def _kept_lock(prefix: Path) -> str:
    (lock,) = (prefix / "tenv-meta" / "locks").glob("*.lock")
    lock.write_text("version: 7\n")
    return lock.name


def _configuration(prefix: Path) -> str:
    with (prefix / "pyvenv.cfg").open("a") as file:
        file.write("include-system-site-packages = true\n")
    return "pyvenv.cfg"


def _made(prefix: Path) -> str:
    (prefix / "tenv-meta" / "made.json").write_text("{}\n")
    return "made.json"


CHANGES: dict[str, tuple[Callable[[Path], str], str]] = {
    "an emptied RECORD": (_emptied, "`verify` was content"),
    "a RECORD without digests": (_without_digests, "`verify` was content with the changed module"),
    "a kept lock": (_kept_lock, "`verify` was content, and `rollback` installed it"),
    "pyvenv.cfg": (_configuration, "`verify` was content"),
    "an empty made.json": (_made, "`verify` was content with changed scripts"),
}


@pytest.mark.parametrize("name", some_fast(CHANGES, ("an emptied RECORD", "a kept lock", "an empty made.json")))
def test_a_changed_record_is_found_and_mended(name: str, created: Project) -> None:
    changed = CHANGES[name][0](created.prefix)
    ended = call("verify", "tiny", "--no-probes", "--json")
    assert ended.status == 8
    assert [Path(file).name for file in ended.data["integrity"]["changed"] if file.endswith(changed)] == [changed]
    created.ok("create", "tiny", "--repair")
    assert call("verify", "tiny", "--no-probes").status == 0


def test_a_note_of_a_conda_package_without_digests_is_found_and_mended(conda: Conda) -> None:
    conda.lock("tool", "data")
    conda.create()
    (note,) = (conda.prefix / "conda-meta").glob("data-*.json")
    text = note.read_text()
    data = json.loads(text)
    for row in data["paths_data"]["paths"]:
        row.pop("sha256", None)
        row.pop("sha256_in_prefix", None)
    note.write_text(json.dumps(data))
    ended = call("verify", "tiny", "--no-probes", "--json")
    assert (ended.status, ended.data["integrity"]["changed"]) == (8, [f"conda-meta/{note.name}"])
    conda.create("--repair")
    assert call("verify", "tiny", "--no-probes").status == 0
    assert "sha256" in json.loads(note.read_text())["paths_data"]["paths"][0]
