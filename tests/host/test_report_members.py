"""Reports are read member by member as `json` and `from_json` read them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.core.errors import HostReportError
from tenv.host.interface import Fact, Missing
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, to_json
from tenv.host.report_members import MemberReader, to_report
from tests.support.check_hosts import report

PLAIN = to_json(from_json(report("580.65.06", "NVIDIA H200", "9.0", "node", memory=1 << 36)))
VALUES = [
    *("580.65.06", "515.76", "", "vm", 7, 1 << 70, -1, True, None, 2.5, [], {}, "\u00e9\n\u2028"),
    *([{"name": "NVIDIA A100", "compute_capability": "8.0"}], {"path": "/", "free": 3, "file_system": "nfs"}),
]
FACTS = [{"value": value, "origin": "here"} for value in VALUES] + [{"missing": "why", "kind": "none"}, {}, 3, None]
KEYS = ["hostname", "driver", "gpus", "memory", "disk", "schema", "tenv", "command", "data", "kind", "other"]


class Numbers:
    """Numbers for values, as `Memos` gives them."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], int] = {}

    def __call__(self, name: str, fact: Fact[Any] | Missing) -> int:
        return self.seen.setdefault((name, repr(fact)), len(self.seen) + 1)


def by_json(text: str) -> HostReport | None:
    try:
        return from_json(json.loads(text))
    except (ValueError, HostReportError):
        return None


def by_members(reader: MemberReader, text: str) -> tuple[HostReport | None, tuple[int, ...]]:
    found = reader.read(text)
    if found is None or text[found[1] :].strip(" \t\r\n"):
        return None, ()
    members = found[0]
    return to_report(members) or from_json(members.value()), tuple(member.number for member in members)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw a report with changed, doubled, unknown and missing members, at times cut off or in an envelope."""
    pairs = [(key, value) for key, value in PLAIN.items() if draw(st.integers(0, 9))]
    for _ in range(draw(st.integers(0, 4))):
        key = draw(st.sampled_from(KEYS))
        value = draw(st.sampled_from([1, 2, True, "host", "2"] if key in ("schema", "command") else FACTS))
        pairs.insert(draw(st.integers(0, len(pairs))), (key, value))
    blank = draw(st.sampled_from(["", " ", "\n  "]))

    def joined(members: list[tuple[str, str]]) -> str:
        return "{" + ",".join(f"{blank}{json.dumps(key)}{blank}:{blank}{text}" for key, text in members) + blank + "}"

    text = joined([(key, json.dumps(value)) for key, value in pairs])
    if draw(st.booleans()):
        around = [("tenv", '"0.1"'), ("command", draw(st.sampled_from(['"host"', '"list"', "7"]))), ("ok", "true")]
        around.insert(draw(st.integers(0, 3)), ("data", text))
        around.insert(draw(st.integers(0, 4)), ("driver", '{"value": "1.2", "origin": "envelope"}'))
        text = joined(around if draw(st.integers(0, 4)) else around * 2)
    text = draw(st.sampled_from([text, text, text, text + "\n", text + "}", text + " 1"]))
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


@given(st.lists(texts(), min_size=1, max_size=6))
def test_what_is_read_is_what_json_reads(many: list[str]) -> None:
    reader = MemberReader(Numbers())
    alike: dict[tuple[int, ...], HostReport] = {}
    for text in [*many, *many]:
        try:
            found, numbers = by_members(reader, text)
        except HostReportError:
            found, numbers = None, ()
        if found is None:
            continue
        assert found == by_json(text)
        if numbers and not any(number < -1 for number in numbers):
            assert alike.setdefault(numbers, found) == found  # the same numbers, the same report


@pytest.mark.parametrize("indent", [None, 2])
def test_a_plain_report_needs_no_json(indent: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = MemberReader(Numbers())
    envelope = {"tenv": "0.1.0", "command": "host", "ok": True, "data": PLAIN, "findings": [], "error": None}
    for data in (PLAIN, envelope):
        text = json.dumps(data, indent=indent)
        assert by_members(reader, text)[0] == from_json(data)
        with monkeypatch.context() as patch:
            patch.setattr(MemberReader, "_parsed", None)  # all members are known now
            assert by_members(reader, text)[0] == from_json(data)


@pytest.mark.parametrize("number", ["2", "21", "2.0", "2e0"])
def test_a_number_is_not_taken_for_one_that_begins_with_it(number: str) -> None:
    reader = MemberReader(Numbers())
    assert by_members(reader, '{"tenv": 1, "schema": 2}')[0] is not None
    assert (by_members(reader, f'{{"tenv": 1, "schema": {number}}}')[0] is not None) == (number == "2")


def test_members_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.host.report_members._REMEMBERED", 5)
    numbers = Numbers()
    reader = MemberReader(numbers)
    for name in "abcabc":
        data = {**PLAIN, "hostname": {"value": name, "origin": "uname"}}
        assert by_members(reader, json.dumps(data))[0] == from_json(data)
    numbers.seen.clear()
    numbers.seen["other", ""] = 1
    reader.forget()
    assert set(by_members(reader, json.dumps(PLAIN))[1]).isdisjoint({1})
