"""A wheelhouse whose map leads elsewhere, and rows of a lock that name no wheel of it."""

import json
import os
from pathlib import Path
from threading import Thread

import pytest

from tenv.core.errors import LockCorruptError
from tenv.locks.lock import LockedTree
from tenv.locks.lock_file import parse_lock
from tenv.sources.wheels.wheelhouse import find_compiled
from tenv.verbs.wheelhouse import _copied
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project, call
from tests.support.source_trees import pack_sdist, write_tree

KEY, SHA = "a" * 64, "b" * 64
NAME = "ops-1.0-py3-none-any.whl"


def test_a_map_leads_to_no_file_outside_the_folder_of_its_digest(tmp_path: Path) -> None:
    said: list[str] = []
    good = {KEY: {"file": NAME, "sha256": SHA}}

    def found(values: object) -> object:
        (tmp_path / "wheelhouse.json").write_text(values if isinstance(values, str) else json.dumps(values))
        return find_compiled(tmp_path, KEY, said.append)

    one = find_compiled(tmp_path, KEY, said.append)
    assert (one, said) == (None, [])
    assert found({"schema": 1, "wheels": good}) is not None
    rows: list[object] = [
        {"file": f"../{NAME}", "sha256": SHA},
        {"file": f"/etc/{NAME}", "sha256": SHA},
        {"file": "..", "sha256": SHA},
        {"file": NAME, "sha256": SHA[1:]},
        {"file": NAME, "sha256": 5},
        {"file": 5, "sha256": SHA},
        {"sha256": SHA},
        [NAME, SHA],
        None,
    ]
    for row in rows:
        assert found({"schema": 1, "wheels": {KEY: row}}) is None, row
    for key in ("../" + KEY[3:], KEY[1:], KEY.upper()):
        (tmp_path / "wheelhouse.json").write_text(json.dumps({"schema": 1, "wheels": {key: good[KEY]}}))
        assert find_compiled(tmp_path, key, said.append) is None
    assert said == []
    broken: list[object] = [{"schema": 2, "wheels": good}, {"schema": 1, "wheels": []}, [], "{", "[" * 100_000]
    for values in broken:
        assert found(values) is None
    assert len(said) == 5


def test_a_pipe_in_the_place_of_a_wheel_keeps_no_command_waiting(tmp_path: Path) -> None:
    (tmp_path / "house").mkdir()
    os.mkfifo(tmp_path / "house" / NAME)
    row = LockedTree("ops", "1.0", (), ())
    found: list[object] = []
    ended = Thread(
        target=lambda: found.append(_copied(tmp_path / "house" / NAME, SHA, tmp_path / "kept" / SHA, row)), daemon=True
    )
    ended.start()
    ended.join(30)
    assert found == [None]


def test_a_row_names_wheels_only_as_digests_of_a_compiled_package(project: Project, tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "vision")
    for name, version in (("setuptools", "80.0"), ("ninja", "1.13"), ("torch", "2.1")):
        make_wheel(project.index.folder, name, version)
    pack_sdist(tree, project.index.folder, static=True)
    project.edit('native = "*"\n', "")
    request = 'vision = { version = "*", build = true, isolation = false, requires = ["alpha>=1"] }'
    project.edit('alpha  = ">=1"', f'torch = "2.1"\n{request}')
    project.edit(project.manifest.read_text().splitlines()[2], f'python = "{HERE}.*"')
    project.ok("lock", "tiny")
    text = project.lock.read_text()
    line = next(line for line in text.splitlines() if line.strip() == "isolation: false")
    indent = line[: len(line) - len(line.lstrip())]

    def with_wheels(*wheels: str) -> str:
        return text.replace(line, "\n".join([line, f"{indent}wheels:", *(f"{indent}- {one}" for one in wheels)]))

    good = with_wheels(f"{HERE} sha256:{SHA}")
    (rows,) = parse_lock(good.encode(), "tiny.lock", "tiny").trees.values()
    assert rows[0].wheels == (f"{HERE} sha256:{SHA}",)
    for wheel in (SHA, f"sha256:{SHA}", f"{HERE} sha256:{SHA[1:]}", f"{HERE} sha256:../x", "'3.11 md5:ab'", "[]"):
        with pytest.raises(LockCorruptError):
            parse_lock(with_wheels(wheel).encode(), "tiny.lock", "tiny")
    with pytest.raises(LockCorruptError):
        parse_lock(good.replace("isolation: false", "isolation: true").encode(), "tiny.lock", "tiny")
    project.lock.write_text(good)  # without a wheelhouse in the manifest, the row leads nowhere
    assert call("lock", "tiny", "--check").status == 0
