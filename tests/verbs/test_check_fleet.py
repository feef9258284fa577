"""`--against`: many machines, some of whose reports are broken."""

import gc
import io
import json
import os
import re
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tenv.checks import fleet
from tenv.checks.fleet import STDIN, UNSHARED, ask_each
from tenv.checks.judge import Answers, Judge, Verdicts
from tenv.checks.rules.catalogue import MACHINE_RULES, RULES
from tenv.cli.machines import Machines
from tenv.cli.output import Voice
from tenv.host.report import HostReport
from tenv.host.report_json import from_json, to_json
from tenv.project.context import Context
from tests.checks.rules.cases import case, limits_of
from tests.support.check_hosts import report, write
from tests.support.each import each
from tests.support.lock_builders import lock, lock_bytes, wheel
from tests.support.projects import call
from tests.support.rarely import first_fast

CODES = sorted({code for rule in RULES for code in rule.codes})
pytestmark = pytest.mark.usefixtures("here")

DRIVERS = ("580.65.06", "535.104.12", "515.76", "")


def machines(count: int) -> Iterator[dict[str, Any]]:
    """Yield the reports of machines that differ in their driver, and in the values that a kind does not share."""
    for number in range(count):
        disk = {"path": "/home", "free": (500 << 30) + number, "file_system": "ext4"}
        driver = DRIVERS[number % len(DRIVERS)]
        name = f"node{number}"
        data = report(driver, "NVIDIA GeForce GTX 1660 Ti", "7.5", name, memory=(64 << 30) + number, disk=disk)
        torch = {"path": f"/home/u{number}/torch", "version": "2.9.1", "kind": "cpu", "cuda": None, "found_by": "PATH"}
        data["torches"] = {"value": [torch], "origin": "test"}
        yield to_json(from_json(data)) if number % 16 else data  # with and without the missing values


def nothing(host: HostReport) -> tuple[str, ...]:
    return ()


def names(path: Path) -> list[str]:
    return [row.machine for row in ask_each(path, nothing)]


def test_a_folder_has_a_file_a_machine(tmp_path: Path) -> None:
    for number, data in enumerate(machines(3)):
        envelope = {"tenv": "0.1.0", "command": "host", "data": data}
        write(tmp_path / "fleet" / f"{number}.json", envelope if number % 2 else data)
    write(tmp_path / "fleet" / "notes.txt", "no report")
    assert names(tmp_path / "fleet") == ["node0", "node1", "node2"]
    (tmp_path / "fleet" / "failed.txt").touch()
    (tmp_path / "fleet" / "gone.txt").symlink_to("nowhere")
    rows = [row for row in ask_each(tmp_path / "fleet", nothing) if row.problem]
    assert [(row.machine, "it is empty" in row.problem) for row in rows] == [("failed.txt", True)]


def test_the_gpus_of_amd_are_named_too(tmp_path: Path) -> None:
    text = "HSA Agents\nAgent 1\n  Name:  gfx90a\n  Marketing Name:  AMD Instinct MI210\n  Device Type:  GPU\n"
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "node.txt").write_text(text)
    assert [row.gpus for row in ask_each(tmp_path / "fleet", nothing)] == [("AMD Instinct MI210",)]


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


def gathered(text: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Return the machine, the source and the problem of each host that lines on standard input describe."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return [(row.machine, row.source, row.problem) for row in ask_each(STDIN, nothing)]


LABELS = [
    "",
    "node0: ",  # pdsh, clush
    " 0: ",  # srun -l
    "[1,0]<stdout>:",  # mpirun --tag-output
    "node0 | CHANGED | rc=0 | (stdout) ",  # ansible -o
    "[pod/node0-x7k2p/tenv] ",  # kubectl logs --prefix
    "2026-11-27T07:00:00.1Z ",  # kubectl logs --timestamps
    "node0  | ",  # docker compose
]


def test_lines_of_many_machines_lose_their_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [json.dumps(data, separators=(",", ":")) for data in machines(3)]
    for label in LABELS:
        text = "".join(f"{label.replace('0', str(number), 1)}{line}\n" for number, line in enumerate(reports))
        assert [row[:2] for row in gathered(text, monkeypatch)] == [
            (f"node{number}", f"standard input:{number + 1}") for number in range(3)
        ], label
        file = tmp_path / "fleet.txt"
        assert names(Path(write(file, text))) == ["node0", "node1", "node2"], label
    for text in (json.dumps(report(name="it"), indent=2), json.dumps([report(name="it")], indent=2)):
        assert [row[0] for row in gathered(text, monkeypatch)] == ["it"]


def test_pieces_of_a_line_are_joined_by_their_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """`srun -l` cuts a line after 1,024 characters, and tasks write at once."""
    reports = [json.dumps(data, separators=(",", ":")) for data in machines(2)]
    pieces = [[line[at : at + 99] for at in range(0, len(line), 99)] for line in reports]
    rows = [(number, piece) for number, found in enumerate(pieces) for piece in found]
    rows.sort(key=lambda row: pieces[row[0]].index(row[1]))
    text = "".join(f"{number}: {piece}\n" for number, piece in rows)
    assert [row[::2] for row in gathered(text, monkeypatch)] == [("node0", ""), ("node1", "")]
    cut = "".join(f"{number}: {piece}\n" for number, piece in rows[:-1])
    (whole, broken) = gathered(cut, monkeypatch)
    assert whole[0] == "node0"
    assert broken[0] == "standard input:2"
    assert broken[2].startswith("not JSON: ")
    mixed = "".join(piece for _, piece in rows)  # without `-l`
    assert "mixed: `srun -l` labels" in gathered(mixed, monkeypatch)[0][2]


def test_a_report_without_an_end_is_not_parsed_again_at_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report is input from others, and may have any number of lines."""
    seen: list[int] = []
    parsed = fleet._parsed
    monkeypatch.setattr(fleet, "_parsed", lambda text, source: seen.append(len(text)) or parsed(text, source))  # type: ignore[func-returns-value]
    (row,) = gathered('0: {"schema": "\n' + "0: }\n" * 9000, monkeypatch)
    assert row[2].startswith("not JSON")
    assert len(seen) < 3000


def test_lines_without_a_report_have_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps(next(machines(1)))
    text = f"node7: bash: tenv: command not found\n\nnode0 | CHANGED | rc=0 >>\n{line}\nnode8: {line[:80]}\n{{}}\n"
    assert [(source, problem.partition(": Exp")[0]) for _, source, problem in gathered(text, monkeypatch)] == [
        ("standard input:1", "no report: `node7: bash: tenv: command not found`"),
        ("standard input:4", ""),
        ("standard input:6", "not a host report: it has no `schema`"),
        ("standard input:5", "not JSON"),
    ]
    assert "it is empty" in gathered("", monkeypatch)[0][2]
    monkeypatch.setattr(sys, "stdin", None)
    assert [row.problem for row in ask_each(STDIN, nothing)] == ["can't be read: standard input is closed"]


def test_the_names_of_nodes_between_two_rules_are_no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, reports = "-" * 16, [json.dumps(data) for data in machines(2)]
    text = "".join(f"{rule}\nn[{number}-9] (2)\n{rule}\n{line}\n" for number, line in enumerate(reports))
    found = gathered(f"{text}{rule}\nn7\n{rule}\nbash: tenv: command not found\nand more\n", monkeypatch)
    assert [(source, problem) for _, source, problem in found] == [
        ("standard input:4", ""),
        ("standard input:8", ""),
        ("standard input:12", "no report: `bash: tenv: command not found`"),
        ("standard input:13", "no report: `and more`"),
    ]


def test_a_machine_that_reports_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, _, four = machines(4)
    again = {**one, "memory": {"value": 7 << 30, "origin": "test"}}
    two["hostname"] = four["hostname"]
    text = "\n".join(map(json.dumps, (one, two, again, four, two)))
    for command in ("check", "check-driver"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        ended = call(command, "cuda121", "--against", "-")
        assert ended.err.splitlines()[0] == "3 machines"
        assert ended.err.splitlines()[1] == "2 equal reports more of node0, node3: each machine counts once"
        assert "node3 (standard input:2)" in ended.out


def test_a_target_that_runs_is_a_feature_of_slurm(tmp_path: Path) -> None:
    rows = [*map(json.dumps, machines(3)), "node9: no route"]
    file = write(tmp_path / "fleet.jsonl", "\n".join(rows))
    ended = call("check", "cuda121", "--against", file, "--slurm")
    assert ended.out == "NodeName=node0,node1 Feature=tenv-cuda121\n"
    assert ended.status == 0
    assert f"{file}:4: no report: `node9: no route`" in ended.err.replace("\n", " ")
    assert call("check", "cuda121", "--against", file, "--slurm", "--build-only").out.startswith("NodeName=node0,")
    assert call("check", "cuda121", "--slurm").status == 2
    assert len(call("check", "cuda121", "--against", file, "--slurm", "--json").data["machines"]) == 4


def test_a_report_writes_no_line_of_slurm_but_its_own(tmp_path: Path) -> None:
    good, line, several, nameless, fast, every = machines(6)
    names = ("n1 Weight=9\nNodeName=ALL", "n2,n3", "node0", "Default")
    for host, name in zip((line, several, fast, every), names, strict=True):
        host["hostname"] = {"value": name, "origin": "test", "kind": "system"}
    del nameless["hostname"]
    file = write(tmp_path / "fleet.jsonl", "\n".join(map(json.dumps, (good, line, several, nameless, fast, every))))
    ended = call("check", "--against", file, "--slurm")
    (only,) = ended.out.splitlines()
    assert only.startswith("NodeName=node0 Feature=")
    assert "its report has no name of a node: 'n1 Weight=9 NodeName=ALL'" in ended.err.replace("\n", " ")
    assert ended.err.count("its report has no name of a node") == 4
    assert not any(row.startswith("NodeName=ALL") for row in call("check", "--against", file).out.splitlines())
    single = call("check", "--against", write(tmp_path / "slow.jsonl", json.dumps(good)), "--slurm").out
    shared = call("check", "--against", write(tmp_path / "fast.jsonl", json.dumps(fast)), "--slurm").out
    features = [set(one.partition("Feature=")[2].strip().split(",")) for one in (single, shared, only)]
    assert features[2] == features[0] & features[1]


def test_a_host_report_on_a_line(tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", report("580.65.06", name="it"))
    for more in ([], ["--json"]):
        ended = call("host", "--compact", "--host-report", file, *more)
        assert ended.out.count("\n") == 1
        assert from_json(json.loads(ended.out)) == from_json(
            json.loads(call("host", "--host-report", file, "--json").out)
        )


def test_machines_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for file, name in (("a", "vm"), ("b", "vm"), ("c", "node")):
        write(tmp_path / "fleet" / f"{file}.json", report("580.65.06", name=name))
    for command in ("check", "check-driver"):
        rows = call(command, "cuda121", "--against", str(tmp_path / "fleet")).out.splitlines()
        assert rows[-1].endswith("  vm (a.json:1), vm (b.json:1), node")


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
    ("null", "it is no JSON object"),
    ("{}", "no `schema`"),
    ('{"schema": 99, "tenv": "9.0"}', "tenv 9.0 wrote it in form 99"),
    ('{"schema": 2, "driver": {"value": "soon", "origin": "x"}}', "driver.value: `soon` is not a dotted version"),
    ('{"schema": 2, "driver": {"value": "58\u0660.1", "origin": "x"}}', "is not a dotted version"),
    (f'{{"schema": 2, "memory": {{"value": 1{"0" * 400}, "origin": "x"}}}}', "memory.value: expected no more than 92"),
    ('{"schema": 2, "gpus": {"value": 7, "origin": "x"}}', "gpus.value: expected an array of tables"),
    ('{"tenv": "1", "command": "list", "data": []}', "the output of `tenv list`"),
]


@each("text, said", BROKEN)
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


def test_without_a_target_only_unreadable_reports_end_with_status_1(tmp_path: Path) -> None:
    write(tmp_path / "fleet" / "b.json", "garbage")
    assert call("check", "--against", str(tmp_path / "fleet")).status == 1
    write(tmp_path / "fleet" / "a.json", report("580.65.06", name="good"))
    assert call("check", "--against", str(tmp_path / "fleet")).status == 0


def test_a_broken_line_hides_no_other(tmp_path: Path) -> None:
    lines = [json.dumps(data) for data in machines(3)]
    lines[1] = lines[1][:50]
    rows = list(ask_each(Path(write(tmp_path / "fleet.jsonl", "\n".join(lines))), nothing))
    assert [row.machine for row in rows] == ["node0", f"{tmp_path / 'fleet.jsonl'}:2", "node2"]
    assert "not JSON" in rows[1].problem


def test_behind_a_broken_item_of_a_list_nothing_is_read(tmp_path: Path) -> None:
    text = json.dumps(list(machines(3))).replace('"node1"', '"node1')
    rows = list(ask_each(Path(write(tmp_path / "fleet.json", text)), nothing))
    assert [bool(row.problem) for row in rows] == [False, True]
    assert "the rest was not read" in rows[1].problem


def test_files_that_can_t_be_read_are_rows(tmp_path: Path) -> None:
    (tmp_path / "fleet" / "a.json").mkdir(parents=True)
    (tmp_path / "fleet" / "b.json").symlink_to("nowhere")
    (tmp_path / "fleet" / "c.json").write_bytes(b"\xff\xfe{\x00}\x00")
    rows = list(ask_each(tmp_path / "fleet", nothing))
    assert [(row.machine, bool(row.problem)) for row in rows] == [(f"{name}.json", True) for name in "abc"]


def test_the_table_has_a_column_for_each_target(tmp_path: Path) -> None:
    file = write(tmp_path / "fleet.json", list(machines(4)))
    ended = call("check-driver", "--against", file)
    rows = ended.out.splitlines()
    assert rows[0].split() == ["TARGET", "A", "B", "C", "D"]
    assert {"cpu", "cuda117", "cuda118", "cuda121", "cuda130"} <= {row.split()[0] for row in rows if row}
    assert rows[-2].split()[:2] == ["C", "515.76"]
    assert rows[-2].endswith("NVIDIA GeForce GTX 1660 Ti  node2")
    assert ended.status == 0
    named = call("check-driver", "cuda121", "--against", file).out.splitlines()
    assert re.findall(r"native|impossible|unknown", named[1]) == ["native", "native", "impossible", "unknown"]
    checked = call("check", "cuda121", "--against", file).out.splitlines()
    assert re.findall(r"build\S*", checked[1]) == ["build+run", "build+run", "build", "build?"]
    assert " TE103" in checked[1]
    assert call("check", "cuda121", "--against", file).status == 1
    assert call("check-driver", "cuda121", "--against", file, "--build-only").status == 0


@pytest.mark.parametrize("command", first_fast(["check", "check-driver"]))
def test_machines_of_one_kind_are_judged_once(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[Judge] = Counter()
    ask = Judge.ask

    def counted(judge: Judge, host: HostReport) -> Answers:
        asked[judge] += 1
        return ask(judge, host)

    monkeypatch.setattr(Judge, "ask", counted)
    made = [*machines(200), report("515.76", "NVIDIA GeForce GTX 1660 Ti", "7.5", libc="2.36")]
    rows = call(command, "--against", write(tmp_path / "m.jsonl", "\n".join(map(json.dumps, made))), "--json").data
    assert len(rows["machines"]) == 201
    targets = rows["machines"][0]["targets"]
    assert len(asked) == len(targets)
    assert set(asked.values()) == {len(DRIVERS) + 1}  # UNSHARED differ on each machine
    by_target = {row["target"]: row["run"] for row in rows["machines"][2]["targets"]}
    assert (by_target["cuda118"], by_target["cuda130"]) == (True, False)


GIB = 1 << 30
ENOUGH = 9 * GIB // 2
PACKED = 3 * GIB
"""The bytes of the wheel in the lock, half of their size on a disk."""
SIDES: list[tuple[dict[str, Any], list[str]]] = [
    ({"memory": ENOUGH - 1}, ["TE701"]),
    ({"memory": ENOUGH}, []),
    ({"memory": ENOUGH + GIB - 1}, []),
    ({"memory": ENOUGH - GIB}, ["TE701"]),
    ({"free": 2 * PACKED - 1}, ["TE702"]),
    ({"free": 2 * PACKED}, []),
    ({"free": 2 * PACKED + GIB - 1}, []),
    ({"free": 2 * PACKED - GIB}, ["TE702"]),
    ({"file_system": "nfs4"}, ["TE703"]),
    ({"file_system": "ext4"}, []),
    ({"memory": ENOUGH - 1, "free": 2 * PACKED - 1, "file_system": "nfs4"}, ["TE701", "TE702", "TE703"]),
]


@pytest.mark.parametrize("command", ["check", "check-driver"])
def test_memory_and_disk_are_judged_on_each_machine(command: str, here: Path, tmp_path: Path) -> None:
    made = replace(lock(wheel("torch", "1.0", size=PACKED), cuda="13.0"), target="cuda130")
    (here / "locks").mkdir()
    (here / "locks" / "cuda130.lock").write_bytes(lock_bytes(made))
    reports = []
    for number, (more, _) in enumerate(SIDES):
        memory, disk = more.get("memory", 64 * GIB), {"path": "/home", "free": 500 * GIB, "file_system": "ext4", **more}
        reports.append(report("580.65.06", "NVIDIA H200", "9.0", f"node{number}", memory=memory, disk=disk))
    file = write(tmp_path / "fleet.jsonl", "\n".join(map(json.dumps, reports)))
    rows = call(command, "cuda130", "--against", file, "--json").data["machines"]
    for row, told, (_, codes) in zip(rows, reports, SIDES, strict=True):
        (found,) = row["targets"]
        assert (found["build"], found["run"]) == ("TE702" not in codes, "TE702" not in codes), (row["machine"], codes)
        if command == "check":
            alone = call(command, "cuda130", "--host-report", write(tmp_path / "one.json", told), "--json")
            assert found["findings"] == codes == [one["code"] for one in json.loads(alone.out)["findings"]]


def test_no_other_rule_reads_the_values_of_each_machine() -> None:
    class Guarded:
        """A host report without the values that machines of one kind do not share."""

        def __init__(self, host: HostReport) -> None:
            self._host = host

        def __getattr__(self, name: str) -> Any:
            assert name not in UNSHARED, name
            return getattr(self._host, name)

    every = [changes for code in CODES for changes in (limits_of(code).speaks, *limits_of(code).also)]
    for changes in every:
        asked = case(**changes)
        guarded = replace(asked, host=cast("HostReport", Guarded(asked.host)))
        for rule in RULES:
            assert rule in MACHINE_RULES or list(rule(guarded)) == list(rule(asked))
    alone = [rule for rule in MACHINE_RULES if any(list(rule(case(**changes))) for changes in every)]
    assert alone == list(MACHINE_RULES)


@pytest.mark.parametrize("command", ["check-driver", "check"])
@pytest.mark.long
def test_a_fleet_in_json_is_one_value(command: str, tmp_path: Path) -> None:
    lines = [*map(json.dumps, machines(25)), "{", json.dumps(report("580.65.06", name="node7"))]
    file = write(tmp_path / "fleet.jsonl", "\n".join(lines))
    whole = call(command, "--against", file, "--json")
    assert whole.out == json.dumps(json.loads(whole.out), indent=2) + "\n"
    assert len(whole.data["machines"]) == 27
    table = call(command, "--against", file).out
    assert table.count("node7 (") == 2
    assert f"node7 ({file}:27)" in table


@pytest.mark.long
def test_machines_with_equal_answers_share_their_text(tmp_path: Path) -> None:
    held = []
    for number in (200, 1200):
        file = tmp_path / f"{number}.jsonl"
        with file.open("w") as lines:
            lines.writelines(f"{json.dumps(data)}\n" for data in machines(number))
        tracemalloc.start()
        rows = ask_each(file, lambda _: (Verdicts("cuda130", "linux-64", True, True, (), "", ""),))
        found = Machines(Voice(json=True), rows, lambda _: True).result(
            Context(), lambda one: one.to_json(), str, decides=False
        )
        assert found.summary == (f"{number} machines",)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert held[1] < held[0] + 1000 * 400  # a row with a text of its own takes more than 800 bytes


def test_no_more_than_a_report_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.checks.fleet._CHUNK", 1 << 14)
    file = Path(write(tmp_path / "fleet.json", json.dumps(list(machines(200)))))
    tracemalloc.start()
    assert sum(1 for _ in ask_each(file, nothing)) == 200
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < file.stat().st_size // 2  # what the text alone would take


def test_a_written_page_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "node.json", report("535.104.12", "Tesla T4"))
    ended = call("check", "cpu", "--against", file, "--html", str(tmp_path / "fleet.html"))
    assert f"1 machine\n{tmp_path / 'fleet.html'} written\n" in ended.err
