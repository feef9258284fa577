"""Host reports of schema 1, as tenv wrote them until it had kinds, and what was said of each machine then.

``tests/host/schema_1/reports.jsonl`` has a report a line: the first line is a whole one, the others hold what differs
from it, and by ``without`` what is not there. They are what the probes said of the machines of the tests, with their
own sentences. ``verdicts.jsonl`` has what the last tenv without kinds said of them: to a verdict the targets that got
it. Where a rule, a table or a lock changes on purpose, ``python -m tests.support.old_reports`` writes them anew.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tenv.host.report_json import from_json
from tests.support.shipped import Shipped, row

__all__ = ["OLD", "old_reports", "old_verdicts"]

OLD = Path(__file__).parent.parent / "host" / "schema_1"
_POSTS = Path(__file__).parent.parent / "posts" / "hosts"


@cache
def old_reports() -> dict[str, dict[str, Any]]:
    """Return the reports by their names, those of the posts among them."""
    first, *others = map(json.loads, (OLD / "reports.jsonl").read_text(encoding="utf-8").splitlines())
    found = {first.pop("name"): first}
    for changes in others:
        name, gone = changes.pop("name"), changes.pop("without", [])
        found[name] = {key: value for key, value in {**first, **changes}.items() if key not in gone}
    return found | {f"posts/{file.stem}": json.loads(file.read_text("utf-8")) for file in sorted(_POSTS.glob("*.json"))}


@cache
def old_verdicts() -> dict[str, dict[str, str]]:
    """Return the verdict on each target by the report's name."""
    lines = map(json.loads, (OLD / "verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    return {
        line["name"]: {target: verdict for verdict, targets in line["verdicts"].items() for target in targets}
        for line in lines
    }


def write_verdicts() -> None:
    """Write what this tenv says of the reports."""
    shipped, lines = Shipped(), []
    for name, data in old_reports().items():
        targets: dict[str, list[str]] = {}
        for target, said in shipped(from_json(data, name)).items():
            targets.setdefault(row(said), []).append(target)
        lines.append(json.dumps({"name": name, "verdicts": targets}) + "\n")
    (OLD / "verdicts.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write_verdicts()
