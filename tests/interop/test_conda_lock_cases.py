"""conda-lock's own test files: which of them an import takes whole, which with a loss that it names, and which not.

`tests/interop/conda_lock_cases.toml` has the facts of each; `-rP` prints the table.
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
from tests.interop.public_files import NO_LOSS
from tests.interop.records import FILES, HOME
from tests.support.projects import call

CASES = tomli.loads(Path(__file__).with_name("conda_lock_cases.toml").read_text(encoding="utf-8"))["case"]


def as_locked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as conda-lock writes it, in full."""
    name, version, platform = row["name"], row["version"], row["platform"]
    url = row.get(
        "url", f"{HOME}/{'noarch' if row.get('noarch') else platform}/{name}-{version}-{row.get('build')}.conda"
    )
    url = url if "://" in url else f"{FILES}/{url}"
    digest = digest_bytes(url.encode())
    md5 = {"md5": digest[:32]} if row["manager"] == "conda" else {}
    return {
        **{key: row[key] for key in ("name", "version", "manager", "platform", "category")},
        "dependencies": row.get("depends", {}),
        "url": url,
        "hash": {**md5, "sha256": digest},
        "optional": row["category"] != "main",
    }


def text_of(case: Mapping[str, Any]) -> str:
    if "rows" not in case:
        return str(case["text"])
    platforms = list(dict.fromkeys(row["platform"] for row in case["rows"]))
    head = {
        "content_hash": dict.fromkeys(platforms, "1f"),
        "channels": [{"url": "conda-forge", "used_env_vars": []}],
        "platforms": platforms,
        "sources": [],
    }
    return yaml.safe_dump(
        {"version": 1, "metadata": head, "package": list(map(as_locked, case["rows"]))}, sort_keys=False
    )


def judge(case: Mapping[str, Any]) -> tuple[str, str]:
    """Import the file of a case: the outcome, and what the import prints."""
    shutil.rmtree("theirs", ignore_errors=True)
    for name, text in {**case.get("files", {}), case["file"]: text_of(case)}.items():
        Path("theirs").mkdir(exist_ok=True)
        Path("theirs", name).write_text(text)
    for made in ("manifests/made.toml", "locks/made.lock"):
        Path(made).unlink(missing_ok=True)
    ended = call("import", f"theirs/{case['file']}", "--name", "made", "--json")
    if ended.status:
        return "refused", ended.err
    lock = Path("locks/made.lock")
    assert lock.exists() == case.get("lock", False), case["name"]
    assert not lock.exists() or call("lock", "made", "--check").status == 0
    made = Path("manifests/made.toml").read_text() + (lock.read_text() if lock.exists() else "")
    said = "\n".join([*ended.data["lost"], *ended.data["notes"]])
    silent = [token for token in case["holds"] if token not in made and token not in said]
    assert not silent, (case["name"], silent, made)
    losses = [line for line in ended.data["lost"] if not NO_LOSS.search(line)]
    return ("reports" if losses or any(token not in made for token in case["holds"]) else "whole"), said


def faults() -> Iterator[str]:
    for case in CASES:
        outcome, said = judge(case)
        print(f"{case['name']:50} {outcome:8} {case.get('why', '')}")  # noqa: T201 (the table)
        if outcome != case["outcome"]:
            yield f"{case['name']}: {outcome}: {said}"
        if case.get("words", "") not in said:
            yield f"{case['name']}: `{case['words']}` is not in {said}"
        if (outcome == "refused") != bool(case.get("why")):
            yield f"{case['name']}: what is refused has a reason"


@pytest.mark.usefixtures("empty_project")
def test_conda_lock_s_own_files_come_in_as_the_table_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")  # no index: a source archive is not there
    found = list(faults())
    assert not found, os.linesep.join(found)
    print(Counter(case["outcome"] for case in CASES))  # noqa: T201 (the score)
