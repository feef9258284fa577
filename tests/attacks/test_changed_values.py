"""Any value of a file that tenv reads may be anything: an error with a code, never a traceback, and no hang."""

import contextlib
import copy
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenv.activation.changes import Action, Activation, Change, Watch, read_activation
from tenv.activation.shells.posix import render_activation
from tenv.core.errors import TenvError
from tenv.environment.integrity import check, expect_made
from tenv.environment.state import Environment, State, Status, digests_of
from tenv.sources.archives.source import InstalledArchives
from tenv.sources.conda.source import CondaPackages
from tenv.sources.system.fingerprint import FILE, FileFingerprint, Fingerprint, read_fingerprints, render
from tests.support.each import each
from tests.support.projects import call
from tests.support.rarely import first_fast

ODD: list[Any] = [
    *(None, True, 0, -1, 10**30, 1.5, "", "x", "../..", "\0", "\x1b[2J", "1:30", "http://[", "https://x:99999/y"),
    *("a" * 3000, "\u2028", "\u2028    ", "osx-64", "noarch"),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": []}, ["x"], "*", ">="),
]  # fmt: skip
OWNED: dict[str, dict[str, tuple[str, ...]]] = {
    "wheels": {"a": ("1", "ab")},
    "conda": {"b": ("1", "0", "cd")},
    "archives": {"c": ("1", "ef")},
}
CHANGES = (Change("A", Action.SET, "v", "r"), Change("PATH", Action.PREPEND, "v", "r"))
WATCHES = (Watch((("a", "b"),), "s"),)
ACTIVATION = json.loads(Activation("t", Path("/p"), CHANGES, WATCHES, CHANGES[:1]).to_json())
ARCHIVE = {"schema": 1, "name": "c", "version": "1", "sha256": "ef", "files": {"opt/a": "ab"}, "links": {"opt/l": "a"}}
PATHS = {"paths": [{"_path": "a", "sha256": "ab", "path_type": "hardlink"}]}
PACKAGE = {"name": "b", "version": "1", "build": "0", "files": ["a"], "paths_data": PATHS, "sha256": "cd"}
MARK = FileFingerprint("/x", 1, 2, 3, 4, "ab")
TOOLS = json.loads(render([Fingerprint("gcc", "/x", "1", ">=1", "PATH", {"cc": "/x"}, (MARK,), ("/x",))]))
URL = "https://conda.anaconda.org/conda-forge/linux-64/zlib-1-0.conda"


def _state(prefix: Path) -> None:
    state = Environment(prefix).state()
    if state:
        state.to_json()
        digests_of(state)


def _activation(prefix: Path) -> None:
    activation = read_activation(prefix / "tenv-meta/activation.json")
    activation.apply({})
    render_activation(activation)


def _archives(prefix: Path) -> None:
    records = InstalledArchives(prefix)
    list(records.named(list(records.names())))
    check(prefix, records.expected({"c": ("1", "ef")}))


def _conda(prefix: Path) -> None:
    records = CondaPackages(prefix)
    list(records.named(list(records.names())))
    check(prefix, records.expected({"b": ("1", "0", "cd")}))


FILES: dict[str, tuple[Any, Callable[[Path], object]]] = {
    "tenv-meta/state.json": (json.loads(State(Status.READY, "t", owned=OWNED).to_json()), _state),
    "tenv-meta/activation.json": (ACTIVATION, _activation),
    "tenv-meta/made.json": ({"a": "sha256:ab"}, lambda p: check(p, expect_made(p / "tenv-meta/made.json", p))),
    "tenv-meta/archives/c.json": (ARCHIVE, _archives),
    "conda-meta/b-1-0.json": (PACKAGE, _conda),
    f"tenv-meta/{FILE}": (TOOLS, lambda p: read_fingerprints(p / "tenv-meta")),
}
LOCK = {
    "version": 6,
    "environments": {"default": {"channels": [{"url": URL[:40]}], "packages": {"linux-64": [{"conda": URL}]}}},
    "packages": [{"conda": URL, "sha256": "b" * 64, "md5": "a" * 32, "depends": ["a >=1"], "license": "x", "size": 1}],
}
IMPORTS: dict[str, Any] = {
    "pixi.lock": LOCK,
    "environment.yml": {
        "name": "x",
        "channels": ["conda-forge"],
        "dependencies": ["python=3.11", {"pip": ["numpy>=1"]}],
        "variables": {"A": "b"},
    },
    "conda-lock.yml": {
        "version": 1,
        "metadata": {
            "content_hash": {"linux-64": "a"},
            "channels": [{"url": "conda-forge", "used_env_vars": []}],
            "platforms": ["linux-64"],
            "sources": ["e.yml"],
        },
        "package": [
            {
                "name": "zlib",
                "version": "1",
                "manager": "conda",
                "platform": "linux-64",
                "dependencies": {},
                "url": URL,
                "hash": {"md5": "a" * 32, "sha256": "b" * 64},
                "category": "main",
                "optional": False,
            }
        ],
    },
}
QUICK = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None, max_examples=40
)


def ways(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from ways(value[key], (*way, key))


def changed(data: st.DataObject, whole: Any) -> Any:
    """Return values of which one is another, or missing."""
    made = copy.deepcopy(whole)
    *above, key = data.draw(st.sampled_from(list(ways(whole))))
    place = made
    for step in above:
        place = place[step]
    if data.draw(st.integers(0, 4)):
        place[key] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    else:
        del place[key]
    return made


@pytest.mark.parametrize("name", FILES)
@QUICK
@given(data=st.data())
def test_a_value_of_a_record(name: str, tmp_path: Path, data: st.DataObject) -> None:
    whole, read = FILES[name]
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(changed(data, whole)))
    begun = time.monotonic()
    with contextlib.suppress(TenvError):
        read(tmp_path)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("name", first_fast(IMPORTS))
@QUICK
@given(data=st.data())
def test_a_value_of_a_file_to_import(name: str, tmp_path: Path, data: st.DataObject) -> None:
    if name == "conda-lock.yml":
        pytest.importorskip("conda_lock")
    file = tmp_path / name
    file.write_text(yaml.safe_dump(changed(data, IMPORTS[name]), allow_unicode=True))
    ended = call("import", str(file), "--name", "q", "--no-lock", "--force")
    assert ended.status in (0, 2, 3, 5, 6, 7), ended.err
    assert "error[bug]" not in ended.err, ended.err


@each("name, text", [
        ("explicit.txt", f"# platform: linux-64\n@EXPLICIT\nhttps://a]b.org/linux-64/zlib-1-0.conda#{'a' * 32}\n"),
        ("explicit.txt", f"# platform: linux-64\n@EXPLICIT\nhttp://[/linux-64/zlib-1-0.conda#{'a' * 32}\n"),
        ("conda-lock.yml", yaml.safe_dump({**IMPORTS["conda-lock.yml"], "package": [
            {**IMPORTS["conda-lock.yml"]["package"][0], "manager": "*"}]})),
        ("pixi.lock", yaml.safe_dump({**LOCK, "packages": [{**LOCK["packages"][0], "depends": ["\u2028   "]}]})),  # type: ignore[index]
    ])  # fmt: skip
def test_what_was_found_so(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    ended = call("import", str(tmp_path / name), "--name", "q", "--no-lock")
    assert ended.status in (0, 2, 7), ended.err
    assert "error[bug]" not in ended.err, ended.err


@each("form", [(), ("--json",)])
def test_no_login_is_printed(form: tuple[str, ...], tmp_path: Path) -> None:
    row = f"https://me:secret@example.org/t/token-1/c/linux-64/zlib-1-0.conda#{'a' * 32}"
    (tmp_path / "explicit.txt").write_text(f"# platform: linux-64\n@EXPLICIT\n{row}\n")
    ended = call("import", str(tmp_path / "explicit.txt"), "--name", "q", "--no-lock", *form)
    written = "".join(path.read_text() for path in Path().rglob("q.*"))
    for text in (ended.out, ended.err, written):
        assert "secret" not in text
        assert "token-1" not in text
    (tmp_path / "bad.txt").write_text("@EXPLICIT\nhttps://me:secret@example.org/c/zlib\n")
    ended = call("import", str(tmp_path / "bad.txt"), "--name", "q", *form)
    assert ended.status == 7
    assert "example.org" in ended.out + ended.err
    assert "secret" not in ended.out + ended.err
