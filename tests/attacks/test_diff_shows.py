"""What an attacker would change in a lock: `tenv diff` shows it, or the lock is refused."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.errors import LockCorruptError
from tenv.core.yaml_reader import load
from tenv.facts.tables import Facts
from tenv.locks.difference import Difference, compare
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock
from tests.support.each import each
from tests.support.projects import call

LOCKS = Path(__file__).parent.parent.parent / "locks"
FACTS = Facts()
Way = tuple[str | int, ...]


def texts_of(name: str) -> dict[str, Any]:
    data: dict[str, Any] = load((LOCKS / f"{name}.lock").read_bytes())
    return data


def written(data: dict[str, Any]) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(data, Dumper=dumper, sort_keys=False, width=10_000)).encode()


def leaves(value: Any, way: Way = ()) -> Iterator[Way]:
    """Yield the way to each value of a lock, and to each list and mapping."""
    if way:
        yield way
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*way, key))


def at(data: Any, way: Way) -> Any:
    for key in way:
        data = data[key]
    return data


def put(data: Any, way: Way, value: Any) -> Any:
    """Return a copy of a lock's values with another value at one place."""
    made = copy.deepcopy(data)
    at(made, way[:-1])[way[-1]] = value
    return made


def without(data: Any, way: Way) -> Any:
    made = copy.deepcopy(data)
    del at(made, way[:-1])[way[-1]]
    return made


def changed(value: Any) -> list[Any]:
    """Return what an attacker might write in the place of a value."""
    if isinstance(value, str):
        return [f"{value}x", f"x{value}", value[:-1], value.swapcase(), "", "../..", "1", None, 5]
    if isinstance(value, int) and not isinstance(value, bool):
        return [value + 1, -value - 1, 0, str(value), True, None]
    if isinstance(value, list):
        return [[], [*value, *value[:1]], value[1:], [*value, "x"], "x", None]
    return [{}, [], "x", None] if isinstance(value, dict) else ["x"]


def differs(old: Lock, raw: bytes) -> Difference | None:
    """Return what lies between a lock and another; None when that is refused."""
    try:
        new = parse_lock(raw, "tampered", old.target)
    except LockCorruptError:
        return None
    return compare(old, new, FACTS)


WHOLE = {name: texts_of(name) for name in ("cpu-1.10", "cuda118", "legacy", "cuda121-system")}
WAYS = {name: [way for way in leaves(data) if way[:2] != ("tenv", "written-by")] for name, data in WHOLE.items()}
READ = {name: parse_lock(written(data), name, name) for name, data in WHOLE.items()}


@given(st.data())
def test_one_value_of_a_lock_that_is_another_is_shown_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(WHOLE)))
    way = data.draw(st.sampled_from(WAYS[name]))
    value = at(WHOLE[name], way)
    wrong = data.draw(st.sampled_from([None, *changed(value)]))
    if data.draw(st.booleans()):
        if wrong == value and type(wrong) is type(value):
            return
        made = put(WHOLE[name], way, wrong)
    else:
        made = without(WHOLE[name], way)
    if parsed_alike(made, WHOLE[name]):
        return
    found = differs(READ[name], written(made))
    assert found is None or found, (name, way, wrong)


def parsed_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two locks say the same: a key that is null or not there, a number that is 0 or not there."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: plain(item) for key, item in value.items()}
            return {key: item for key, item in kept.items() if item not in (None, "", [], {})}
        return [plain(item) for item in value] if isinstance(value, list) else value

    return json.dumps(plain(one), sort_keys=True) == json.dumps(plain(other), sort_keys=True)


def row(of: str, **values: Any) -> Callable[[dict[str, Any]], object]:
    """Return a change of the last row of a kind."""

    def change(data: dict[str, Any]) -> None:
        rows = data["packages"] if of == "conda" else data["tenv"][of]["linux-64"]
        rows[-1].update(values)

    return change


def moved(old: str, new: str) -> Callable[[dict[str, Any]], object]:
    """Return a change of the address of a conda package, wherever it stands."""

    def change(data: dict[str, Any]) -> None:
        text = json.dumps(data).replace(old, new)
        data.clear()
        data.update(json.loads(text))

    return change


SHA = "ab" * 32
ZLIB = "https://conda.anaconda.org/conda-forge/linux-64/zstd-"
TAMPERED: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "to": ("cuda118", row("archives", to="bin"), "to"),
    "strip": ("cuda118", row("archives", strip=3), "strip"),
    "kind": ("cuda118", row("archives", kind="zip"), "kind"),
    "trust": ("cuda118", row("archives", trust="first-use"), "trust"),
    "licence": ("cuda118", row("archives", licence="bin/sh"), "licence"),
    "url of an archive": ("cuda118", row("archives", url="https://example.org/x.tar.xz"), "url"),
    "sha256 of an archive": ("cuda118", row("archives", sha256=SHA), "sha256"),
    "size of an archive": ("cuda118", row("archives", size=1), "size"),
    "version of an archive": ("cuda118", row("archives", version="9.9.9.9"), "version"),
    "name of an archive": ("cuda118", row("archives", name="evil"), "evil"),
    "another archive": (
        "cuda118",
        lambda d: d["tenv"]["archives"]["linux-64"].append({**d["tenv"]["archives"]["linux-64"][0], "name": "evil"}),
        "evil",
    ),
    "host of a conda package": ("cuda118", moved(ZLIB, ZLIB.replace("conda.anaconda.org", "example.org")), "url"),
    "channel of a conda package": ("cuda118", moved(ZLIB, ZLIB.replace("conda-forge", "evil")), "url"),
    "sha256 of a conda package": ("cuda118", row("conda", sha256=SHA), "sha256"),
    "md5 of a conda package": ("cuda118", row("conda", md5="ab" * 16), "md5"),
    "what a conda package needs": ("cuda118", row("conda", depends=["evil"]), "depends"),
    "what a conda package excludes": ("cuda118", row("conda", constrains=["evil"]), "constrains"),
    "where noarch packages go": ("cuda118", row("conda", python_site_packages_path="../../x"), "python_site_packages"),
    "the licence of a conda package": ("cuda118", row("conda", license="none"), "license"),
    "build tag of a wheel": ("legacy", row("wheels", file="six-1.17.0-9-py2.py3-none-any.whl"), "file"),
    "sha256 of a wheel": ("legacy", row("wheels", sha256=SHA), "sha256"),
    "size of a wheel": ("legacy", row("wheels", size=1), "size"),
    "Pythons of a wheel": ("cuda121-system", row("wheels", python=["3.30"]), "3.30"),
    "another wheel": (
        "cuda121-system",
        lambda d: d["tenv"]["wheels"]["linux-64"].append(
            {"name": "evil", "version": "1", "file": "evil-1-py3-none-any.whl", "sha256": SHA, "python": ["3.30"]}
            | {"requires": []}
        ),
        "evil",
    ),
    "a channel": (
        "cuda118", lambda d: d["environments"]["cuda118"]["channels"].append({"url": "https://x.org"}), "x.org",
    ),
    "what the host must offer": ("cuda118", lambda d: d["tenv"]["requirements"].update(glibc="2.5"), "2.5"),
    "what was asked for": (
        "cuda118",
        lambda d: d["tenv"]["requests"]["linux-64"]["dependencies"].update(evil=["*", "", ""]),
        "evil",
    ),
    "the manifest's digest": ("cuda118", lambda d: d["tenv"].update(manifest=SHA), "manifest"),
}  # fmt: skip


def small(name: str) -> dict[str, Any]:
    """Return a lock with a few of its conda packages: both locks are read anew for each form."""
    data = copy.deepcopy(WHOLE[name])
    kept = [*(row for row in data.get("packages", ()) if row["conda"].startswith(ZLIB)), *data.get("packages", ())[-2:]]
    data["packages"] = kept
    for rows in data["environments"][name]["packages"].values():
        rows[:] = [row for row in rows if row["conda"] in {one["conda"] for one in kept}]
    data["tenv"].pop("conda-features", None)
    return data


@each("name", TAMPERED)
def test_what_was_tampered_with_is_named_in_every_form(name: str, tmp_path: Path) -> None:
    lock, change, shown = TAMPERED[name]
    data = small(lock)
    before = tmp_path / "before.lock"
    before.write_bytes(written(data))
    if name == "build tag of a wheel":
        last = data["tenv"]["wheels"]["linux-64"][-1]
        change = row("wheels", file=last["file"].replace(f"-{last['version']}-", f"-{last['version']}-9-"))
    change(data)
    after = tmp_path / "after.lock"
    after.write_bytes(written(data))
    for words in (("--json",), ("--format", "markdown"), ("--format", "text")):
        ended = call("diff", str(before), str(after), "--exit-code", *words)
        assert ended.status == 1, ended.err
        assert shown in ended.out, ended.out
    if shown in ("to", "strip", "kind", "trust", "licence", "url", "file"):
        assert "origins and destinations of files" in ended.out.splitlines()[1]
