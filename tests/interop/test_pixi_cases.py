"""The test cases of pixi for its own verdict on a lock, `tests/data/satisfiability` and `non-satisfiability`.

`tests/interop/pixi_cases.toml` has the facts of each; `-rP` prints the table.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml

from tenv.core.files import digest_bytes
from tenv.core.names import CondaFile, WheelFile
from tests.interop.records import FILES, HOME
from tests.support.projects import call

CASES = tomli.loads(Path(__file__).with_name("pixi_cases.toml").read_text(encoding="utf-8"))["case"]


class Plain(yaml.SafeDumper):
    """Writes a value that stands twice in full, as pixi does."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 (the base class asks)
        return True


def key(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of a row and its address in a lock."""
    if "conda" in row:
        return "conda", row["conda"] if "://" in row["conda"] else f"{HOME}/{row['conda']}"
    if "source" in row:
        return "conda", row["source"]
    local = row["pypi"].startswith((".", "/", "git+")) or "." not in row["pypi"]
    return "pypi", row["pypi"] if local else f"{FILES}/{row['pypi']}"


def as_locked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as pixi writes it, in full."""
    kind, address = key(row)
    more = {name: value for name, value in row.items() if name not in ("conda", "pypi", "source", "requires")}
    sha256 = digest_bytes(address.encode())
    if "source" in row:
        return {kind: address, "build": "", "subdir": "noarch", "noarch": False, **more}
    if kind == "conda":
        assert CondaFile.parse(address)
        return {kind: address, "sha256": sha256, "depends": [], **more}
    file = WheelFile.parse(address)
    named = {"name": file.name, "version": file.version} if file else {}
    digest = {"sha256": sha256} if address.startswith(FILES) else {}
    return {kind: address, **named, **more, **digest, "requires_dist": row.get("requires", [])}


def listed(rows: list[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{kind: address} for kind, address in map(key, rows)]


def lock_of(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a pixi.lock: version 7 where the case has entries of platforms, 6 elsewhere."""
    entries = case.get("entries")
    first = entries[0]["name"] if entries else case.get("platforms", ["win-64"])[0]
    channels = [{"url": word if "://" in word else f"{HOME.rpartition('/')[0]}/{word}"} for word in channels_of(case)]
    body = {"channels": channels, **{name: case[name] for name in ("indexes", "options") if name in case}}
    body |= {"find-links": case["find_links"]} if "find_links" in case else {}
    wide = {first: case["rows"], **case.get("more_platforms", {})}
    tables = {"default": wide} | {name: {first: rows} for name, rows in case.get("others", {}).items()}
    packages = {key(row): row for table in tables.values() for rows in table.values() for row in rows}
    return {
        "version": 7 if entries else 6,
        **({"platforms": entries} if entries else {}),
        "environments": {
            name: {**body, "packages": {place: listed(rows) for place, rows in table.items()}}
            for name, table in tables.items()
        },
        "packages": [as_locked(row) for row in packages.values()],
    }


def channels_of(case: Mapping[str, Any]) -> list[str]:
    found: list[str] = case.get("channels", ["conda-forge"])
    return found


def toml(value: Any) -> str:
    """Return a value of the head of a pixi.toml."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {toml(one)}' for name, one in value.items())} }}"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else f'"{value}"'


def written(case: Mapping[str, Any]) -> Path:
    """Write the files of a case into the folder `theirs`; return its lock."""
    folder = Path("theirs")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    head = f'name = "w"\nchannels = {toml(channels_of(case))}\nplatforms = {toml(case.get("platforms", ["win-64"]))}\n'
    head += case.get("head", "") + "\n"
    for name, text in case.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if case["manifest"].startswith("project:"):
        project = f'[project]\nname = "w"\nversion = "0.1.0"\nrequires-python = ">=3.11"\n{case["manifest"][8:]}'
        (folder / "pyproject.toml").write_text(f"{project}\n[tool.pixi.workspace]\n{head}")
    else:
        (folder / "pixi.toml").write_text(f"[workspace]\n{head}{case['manifest']}")
    (folder / "pixi.lock").write_text(yaml.dump(lock_of(case), Dumper=Plain, sort_keys=False))
    return folder / "pixi.lock"


def judge(case: Mapping[str, Any]) -> tuple[bool, str]:
    """Import the lock of a case: whether tenv takes it, and what the import prints."""
    file = written(case)
    for name in ("manifests/made.toml", "locks/made.lock"):
        Path(name).unlink(missing_ok=True)
    ended = call("import", str(file), "--name", "made", "--environment", case.get("environment", ""), "--json")
    if ended.status:
        return False, ended.err
    taken = bool(ended.data["lock"])
    assert not taken or call("lock", "made", "--check").status == 0
    return taken, "\n".join([*ended.data["lost"], *ended.data["notes"]])


def faults() -> Iterator[str]:
    for case in CASES:
        taken, said = judge(case)
        verdict = (
            case["verdict"] if case["verdict"] == "out of scope" else ("differs", "alike")[taken == case["satisfied"]]
        )
        print(f"{case['name']:45} pixi {case['satisfied']!s:5} tenv {taken!s:5} {verdict}: {case.get('why', '')}")  # noqa: T201 (the table)
        if verdict != case["verdict"]:
            yield f"{case['name']}: {verdict}: {said}"
        if case.get("words", "") not in said:
            yield f"{case['name']}: `{case['words']}` is not in {said}"
        if (verdict != "alike") != bool(case.get("why")):
            yield f"{case['name']}: a verdict of its own has its reason"


@pytest.mark.usefixtures("empty_project")
def test_tenv_judges_the_locks_of_pixi_as_its_table_has_it() -> None:
    found = list(faults())
    assert not found, os.linesep.join(found)
    assert len(CASES) == 57
    print(Counter(case["verdict"] for case in CASES))  # noqa: T201 (the score)
