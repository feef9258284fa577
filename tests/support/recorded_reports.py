"""Host reports of the machines of the tests, and the recorded verdicts on each.

``tests/host/recorded/reports.jsonl`` has a report a line: the first line is a whole one, the others hold their
differences from it, and by ``without`` their missing values. The sentences in them are those of the probes.
``verdicts.jsonl`` has each verdict with its targets. Where a rule, a table or a lock changes on purpose,
``python -m tests.support.recorded_reports`` writes them anew.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tenv.host.report_json import from_json
from tests.support.shipped import Shipped, row

__all__ = ["recorded_reports", "recorded_verdicts"]

_FOLDER = Path(__file__).parent.parent / "host" / "recorded"
_POSTS = Path(__file__).parent.parent / "posts" / "hosts"


@cache
def recorded_reports() -> dict[str, dict[str, Any]]:
    """Return the reports by their names, those of the posts among them."""
    first, *others = map(json.loads, (_FOLDER / "reports.jsonl").read_text(encoding="utf-8").splitlines())
    found = {first.pop("name"): first}
    for changes in others:
        name, gone = changes.pop("name"), changes.pop("without", [])
        found[name] = {key: value for key, value in {**first, **changes}.items() if key not in gone}
    return found | {f"posts/{file.stem}": json.loads(file.read_text("utf-8")) for file in sorted(_POSTS.glob("*.json"))}


@cache
def recorded_verdicts() -> dict[str, dict[str, str]]:
    """Return the verdict on each target by the report's name."""
    lines = map(json.loads, (_FOLDER / "verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    return {
        line["name"]: {target: verdict for verdict, targets in line["verdicts"].items() for target in targets}
        for line in lines
    }


def write_verdicts() -> None:
    """Write the verdicts of this tenv on the reports."""
    shipped, lines = Shipped(), []
    for name, data in recorded_reports().items():
        targets: dict[str, list[str]] = {}
        for target, said in shipped(from_json(data, name)).items():
            targets.setdefault(row(said), []).append(target)
        lines.append(json.dumps({"name": name, "verdicts": targets}) + "\n")
    (_FOLDER / "verdicts.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write_verdicts()
