"""`--against`: many machines, some of whose reports are broken."""

import itertools
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
from tenv.cli.machines import Machines
from tenv.host.interface import Fact
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, to_json
from tests.support.check_hosts import report, write
from tests.support.projects import call

pytestmark = pytest.mark.usefixtures("here")

DRIVERS = ("580.65.06", "535.104.12", "515.76", "")


def machines(count: int) -> Iterator[dict[str, Any]]:
    """Yield the reports of machines that differ in their driver, their memory and their disk."""
    for number in range(count):
        disk = {"path": "/home", "free": (500 << 30) + number, "file_system": "ext4"}
        driver = DRIVERS[number % len(DRIVERS)]
        name = f"node{number}"
        data = report(driver, "NVIDIA GeForce GTX 1660 Ti", "7.5", name, memory=(64 << 30) + number, disk=disk)
        yield to_json(from_json(data)) if number % 16 else data  # with and without the missing values


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
    monkeypatch.setattr("tenv.checks.fleet_files._CHUNK", 7)
    text = json.dumps(list(machines(5)), indent=1)
    assert names(Path(write(tmp_path / "fleet.json", f"\n{text}\n"))) == [f"node{number}" for number in range(5)]


BROKEN = [
    ("", "not JSON"),
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("null", "it is no JSON object"),
    ("{}", "no `schema`"),
    ('{"schema": 99, "tenv": "9.0"}', "tenv 9.0 wrote it in form 99"),
    ('{"schema": 2, "driver": {"value": "soon", "origin": "x"}}', "driver.value: `soon` is not a dotted version"),
    ('{"schema": 2, "driver": {"value": "58\u0660.1", "origin": "x"}}', "is not a dotted version"),
    (f'{{"schema": 2, "memory": {{"value": 1{"0" * 400}, "origin": "x"}}}}', "memory.value: expected no more than 92"),
    ('{"schema": 2, "gpus": {"value": 7, "origin": "x"}}', "gpus.value: expected an array of tables"),
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
    monkeypatch.setattr("tenv.checks.memos._REMEMBERED", 100)  # far fewer than there are values
    file = write(tmp_path / "fleet.jsonl", "\n".join(map(json.dumps, machines(1000))))
    ended = call(command, "--against", file, "--json")
    rows = ended.data["machines"]
    assert len(rows) == 1000
    times = Counter(asked).values()  # memory and free space differ on each machine, and are only compared
    assert len(times) >= len(rows[0]["targets"])
    assert max(times) <= 2 * len(DRIVERS)
    by_target = {row["target"]: row["run"] for row in rows[2]["targets"]}
    assert (by_target["cuda118"], by_target["cuda130"]) == (True, False)


@pytest.mark.parametrize("command", ["check-driver", "check"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_many_machines_wait_in_a_file(
    command: str, more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [*map(json.dumps, machines(25)), "{", json.dumps(report("580.65.06", name="node7"))]
    file = write(tmp_path / "fleet.jsonl", "\n".join(lines))
    words = (command, "--against", file, *more)
    whole = call(*words)
    monkeypatch.setattr("tenv.cli.machines._BATCH", 4)
    assert call(*words).out == whole.out
    monkeypatch.setattr("tenv.cli.machines._IN_MEMORY", 1000)
    parts = call(*words)
    assert (parts.out, parts.err, parts.status) == (whole.out, whole.err, whole.status)
    if more:
        assert parts.out == json.dumps(json.loads(parts.out), indent=2) + "\n"
        assert len(parts.data["machines"]) == 27
    else:
        assert [line.split()[0] for line in parts.out.splitlines()].count("node7") == 2
        assert f"node7 ({file}:27)" in parts.out


def test_the_memory_does_not_grow_with_the_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = []
    monkeypatch.setattr("tenv.cli.machines._IN_MEMORY", 1 << 12)
    for number in (2000, 6000):
        file = tmp_path / f"{number}.jsonl"
        with file.open("w") as lines:
            lines.writelines(f"{json.dumps(data)}\n" for data in machines(number))
        memos = Memos([lambda host: str(host.driver)])
        tracemalloc.start()
        assert Machines(ask(file, memos, memos), lambda _: "").count == number
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 4000 * 150  # a row with its texts takes more than 400 bytes


def test_no_more_than_a_report_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.checks.fleet_files._CHUNK", 1 << 14)
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


def test_a_number_that_is_only_compared_is_asked_about_once_between_its_limits() -> None:
    worked: list[str] = []

    def question(host: HostReport) -> str:
        worked.append("x")
        assert isinstance(host.memory, Fact)
        assert isinstance(host.disk, Fact)
        if host.memory.value < 10:
            return f"only {host.memory.value} bytes of {host.memory.origin}"
        return "little" if host.disk.value.free // 2 <= 20 else "enough"

    memory = [0, 1, 9, 10, 11, 30, 1 << 40]
    free = [0, 40, 41, 42, 43, 1 << 40]
    hosts = [
        from_json(report("1.2", memory=one, disk={"path": "/", "free": other, "file_system": "ext4"}))
        for one, other in itertools.product(memory, free)
    ]
    expected = [question(host) for host in hosts]
    memo = Memos([question])
    assert [memo(host) for host in hosts + hosts[::-1]] == [[one] for one in expected + expected[::-1]]
    assert [memo(host) for host in hosts] == [[one] for one in expected]
    worked.clear()
    assert [memo(host) for host in hosts] == [[one] for one in expected]
    assert len(worked) == 0


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
