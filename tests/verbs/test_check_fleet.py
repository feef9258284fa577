"""`--against`: many machines, some of whose reports are broken."""

import json
import os
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenv.checks.fleet import ask
from tenv.checks.memos import Memos
from tenv.host.report import HostReport
from tenv.host.report_json import from_json
from tests.support.check_hosts import report, write
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("here")

DRIVERS = ("580.65.06", "535.104.12", "515.76", "")


def machines(count: int) -> Iterator[dict[str, Any]]:
    """Yield the reports of machines that differ in their driver, their memory and their disk."""
    for number in range(count):
        disk = {"path": "/home", "free": (500 << 30) + number, "file_system": "ext4"}
        driver = DRIVERS[number % len(DRIVERS)]
        yield report(
            driver, "NVIDIA GeForce GTX 1660 Ti", "7.5", f"node{number}", memory=(64 << 30) + number, disk=disk
        )


def nothing(host: HostReport) -> tuple[str, ...]:
    return ()


def names(path: Path) -> list[str]:
    return [row.machine for row in ask(path, nothing)]


def test_a_folder_has_a_file_a_machine(tmp_path: Path) -> None:
    for number, data in enumerate(machines(3)):
        envelope = {"tenv": "0.1.0", "command": "host", "data": data}
        write(tmp_path / "fleet" / f"{number}.json", envelope if number % 2 else data)
    write(tmp_path / "fleet" / "notes.txt", "no report")
    assert names(tmp_path / "fleet") == ["node0", "node1", "node2"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_in_a_file(tmp_path: Path, indent: int | None) -> None:
    assert names(Path(write(tmp_path / "fleet.json", json.dumps(list(machines(3)), indent=indent)))) == [
        *("node0", "node1", "node2")
    ]
    assert names(Path(write(tmp_path / "fleet.json", " [ ] "))) == []


@pytest.mark.parametrize("suffix", ["jsonl", "txt"])
def test_a_report_a_line(tmp_path: Path, suffix: str) -> None:
    text = "\n\n".join(map(json.dumps, machines(3)))
    assert names(Path(write(tmp_path / f"fleet.{suffix}", text))) == ["node0", "node1", "node2"]


@pytest.mark.parametrize("indent", [None, 2])
def test_one_report_in_a_file(tmp_path: Path, indent: int | None) -> None:
    assert names(Path(write(tmp_path / "fleet.json", json.dumps(report(name="it"), indent=indent)))) == ["it"]


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("separator", ["\n", ","])
def test_a_pipe_is_read_like_a_file(tmp_path: Path, separator: str) -> None:
    text = separator.join(map(json.dumps, machines(3)))
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=write, args=(tmp_path / "pipe", f"[{text}]" if separator == "," else text), daemon=True
    )
    writer.start()
    assert names(tmp_path / "pipe") == ["node0", "node1", "node2"]
    writer.join(20)


def test_machines_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for file, name in (("a", "vm"), ("b", "vm"), ("c", "node")):
        write(tmp_path / "fleet" / f"{file}.json", report("580.65.06", name=name))
    for command in ("check", "check-driver"):
        rows = call(command, "cuda121", "--against", str(tmp_path / "fleet")).out.splitlines()
        assert [row.partition("  ")[0] for row in rows[1:]] == ["vm (a.json:1)", "vm (b.json:1)", "node"]


def test_a_target_that_can_not_be_read_is_told(tmp_path: Path, here: Path) -> None:
    broken = here / "manifests" / "mine.toml"
    broken.write_text("platforms = [")
    write(tmp_path / "fleet" / "a.json", report("580.65.06"))
    said = "without mine: manifests/mine.toml: not TOML: Invalid value (at end of document)"
    for command in ("check", "check-driver"):
        assert said in call(command, "--against", str(tmp_path / "fleet")).err.splitlines()
        assert "mine" not in call(command, "cuda121", "--against", str(tmp_path / "fleet")).err
    assert said in call("check-driver").err.splitlines()


def test_a_long_list_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.checks.fleet._CHUNK", 7)
    text = json.dumps(list(machines(5)), indent=1)
    assert names(Path(write(tmp_path / "fleet.json", f"\n{text}\n"))) == [f"node{number}" for number in range(5)]


BROKEN = [
    ("", "not JSON"),
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("null", "expected an object"),
    ("{}", "no `schema`"),
    ('{"schema": 99, "tenv": "9.0"}', "tenv 9.0 wrote it in form 99"),
    ('{"schema": 1, "driver": {"value": "soon", "origin": "x"}}', "driver.value: `soon` is not a dotted version"),
    ('{"schema": 1, "driver": {"value": "58\u0660.1", "origin": "x"}}', "is not a dotted version"),
    (f'{{"schema": 1, "memory": {{"value": 1{"0" * 400}, "origin": "x"}}}}', "memory.value: expected no more than 92"),
    ('{"schema": 1, "gpus": {"value": 7, "origin": "x"}}', "gpus.value: expected a list"),
    ('{"tenv": "1", "command": "list", "data": []}', "the output of `tenv list`"),
]


@pytest.mark.parametrize(("text", "said"), BROKEN)
def test_a_broken_report_is_a_row_with_its_reason(text: str, said: str, tmp_path: Path) -> None:
    write(tmp_path / "fleet" / "a.json", report("580.65.06", name="good"))
    write(tmp_path / "fleet" / "b.json", text)
    write(tmp_path / "fleet" / "c.json", report("580.65.06", name="fine"))
    for command in ("check", "check-driver"):
        ended = call(command, "cuda121", "--against", str(tmp_path / "fleet"), "--json")
        rows = ended.data["machines"]
        assert len(rows) == 3
        assert [rows[0]["machine"], rows[-1]["machine"]] == ["good", "fine"]
        assert rows[1]["machine"].startswith("b.json")
        assert said in rows[1]["problem"]
        assert (rows[1]["targets"], rows[0]["problem"], ended.status) == ([], "", 1)
        told = call(command, "cuda121", "--against", str(tmp_path / "fleet"))
        assert said in told.out
        assert told.err == "3 machines, 1 broken report\n"


def test_a_broken_line_hides_no_other(tmp_path: Path) -> None:
    lines = [json.dumps(data) for data in machines(3)]
    lines[1] = lines[1][:50]
    rows = list(ask(Path(write(tmp_path / "fleet.jsonl", "\n".join(lines))), nothing))
    assert [row.machine for row in rows] == ["node0", f"{tmp_path / 'fleet.jsonl'}:2", "node2"]
    assert "not JSON" in rows[1].problem


def test_behind_a_broken_item_of_a_list_nothing_is_read(tmp_path: Path) -> None:
    text = json.dumps(list(machines(3))).replace('"node1"', '"node1')
    rows = list(ask(Path(write(tmp_path / "fleet.json", text)), nothing))
    assert [bool(row.problem) for row in rows] == [False, True]
    assert "the rest was not read" in rows[1].problem


def test_files_that_can_t_be_read_are_rows(tmp_path: Path) -> None:
    (tmp_path / "fleet" / "a.json").mkdir(parents=True)
    (tmp_path / "fleet" / "b.json").symlink_to("nowhere")
    (tmp_path / "fleet" / "c.json").write_bytes(b"\xff\xfe{\x00}\x00")
    rows = list(ask(tmp_path / "fleet", nothing))
    assert [(row.machine, bool(row.problem)) for row in rows] == [(f"{name}.json", True) for name in "abc"]


def test_the_table_has_a_column_for_each_target(tmp_path: Path) -> None:
    file = write(tmp_path / "fleet.json", list(machines(4)))
    ended = call("check-driver", "--against", file)
    header, *rows = ended.out.splitlines()
    assert header.split()[:3] == ["MACHINE", "DRIVER", "GPU"]
    assert {"cpu", "cuda117", "cuda118", "cuda121", "cuda130"} <= set(header.split())
    assert rows[2].startswith("node2    515.76      NVIDIA GeForce GTX 1660 Ti  ")
    assert ended.status == 0
    named = call("check-driver", "cuda121", "--against", file).out.splitlines()
    assert [row.split()[-1] for row in named] == ["cuda121", "native", "native", "impossible", "unknown"]
    checked = call("check", "cuda121", "--against", file).out.splitlines()
    assert [row.split("Ti  ")[1].split()[0] for row in checked[1:5]] == ["build+run", "build+run", "build", "build?"]
    assert " TE103" in checked[3]
    assert call("check", "cuda121", "--against", file).status == 1
    assert call("check-driver", "cuda121", "--against", file, "--build-only").status == 0


@pytest.mark.parametrize("command", ["check-driver", "check"])
def test_of_a_thousand_machines_those_that_look_alike_are_judged_once(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    work_out = Memos._work_out

    def counted(memos: Any, group: Any, host: HostReport) -> Any:
        asked.extend(group.questions)
        return work_out(memos, group, host)

    monkeypatch.setattr(Memos, "_work_out", counted)
    file = write(tmp_path / "fleet.jsonl", "\n".join(map(json.dumps, machines(1000))))
    ended = call(command, "--against", file, "--json")
    rows = ended.data["machines"]
    assert len(rows) == 1000
    # Memory and free space differ on each machine: only the three rules that look at them are asked about each.
    each = 3 * len(rows[0]["targets"]) if command == "check" else 0
    times = sorted(Counter(asked).values())
    assert len(times) >= each + len(rows[0]["targets"])
    assert max(times[: len(times) - each]) <= 2 * len(DRIVERS)
    by_target = {row["target"]: row["run"] for row in rows[2]["targets"]}
    assert (by_target["cuda118"], by_target["cuda130"]) == (True, False)


def test_no_more_than_a_report_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.checks.fleet._CHUNK", 1 << 14)
    file = Path(write(tmp_path / "fleet.json", json.dumps(list(machines(800)))))
    tracemalloc.start()
    assert sum(1 for _ in ask(file, nothing)) == 800
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < file.stat().st_size // 2  # what the text alone would take


def test_a_question_is_worked_out_once_for_machines_that_look_alike_to_it() -> None:
    worked: list[str] = []

    def question(host: HostReport) -> str:
        worked.append("x")
        text = str(host.driver)
        return f"{text} {host.memory}" if "580" in text else text

    memo = Memos([question])
    hosts = [from_json(data) for data in machines(40)]
    assert [memo(host) for host in hosts] == [[question(host)] for host in hosts]
    worked.clear()
    memo = Memos([lambda host: question(host) and str(host.driver)])
    plain = [host for host in hosts if "580" not in str(host.driver)]
    for host in plain:
        memo(host)
    assert len(worked) == 3


def test_questions_that_look_at_the_same_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.checks.memos._REMEMBERED", 3)
    questions: list[Callable[[HostReport], str]] = [
        lambda host: f"driver {host.driver}",
        lambda host: f"memory {host.memory}",
        lambda host: f"also {host.driver}",
        lambda host: f"{host.libc} {host.memory}" if "515" in str(host.driver) else "no",
        lambda host: "nothing",
    ]
    memos = Memos(questions)
    hosts = [from_json(data) for data in machines(60)]
    for host in hosts + hosts[::-1]:
        assert memos(host) == [question(host) for question in questions]
