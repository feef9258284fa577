"""Twenty seconds of fuzzing, the same rounds each time, and the files that once failed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.fuzz_readers import compact, main, play, round_of, rows_of, run_worker
from tests.fuzz.readers import READERS
from tests.support.each import each

HERE = Path(__file__).parent
KEPT = sorted(path for path in (HERE / "corpus").rglob("*") if path.is_file())


@each("path", KEPT)
def test_a_file_that_once_failed_is_refused_or_read(path: Path) -> None:
    folder, _, *name = path.relative_to(HERE / "corpus").parts
    [kind] = [kind for kind in READERS if kind.replace(" ", "-") == folder]
    assert play(kind, "/".join(name), path.read_bytes()) == ""


@each("kind", READERS)
def test_every_example_of_a_kind_is_read(kind: str, tmp_path: Path) -> None:
    """Else the rounds would change what is refused already."""
    examples = READERS[kind].examples()
    assert examples
    for name, raw in examples.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(raw)
        READERS[kind].use(tmp_path, name)


def test_a_round_is_made_from_its_number_alone() -> None:
    assert round_of("manifest", "x", 7) == round_of("manifest", "x", 7)
    assert round_of("manifest", "x", 7) != round_of("manifest", "x", 8)


def test_a_crash_of_the_interpreter_is_a_fault_of_its_round(monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(words: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        assert words[1:3] == ["-m", "tests.fuzz.fuzz_readers"]
        return subprocess.CompletedProcess(words, -11, "round 4\nround 5\n", "Segmentation fault")

    monkeypatch.setattr(subprocess, "run", dying)
    row = run_worker("manifest", "x", 4, 1.0)
    assert (row["rounds"], row["faults"]) == (2, {"5": "ended with -11: Segmentation fault"})


def test_the_rows_of_a_journal_are_joined_by_seed_and_kind() -> None:
    row = {"kind": "lock", "seed": "1", "first": 0, "rounds": 3, "cpu": 1.5, "faults": {}}
    rows = [row, {**row, "first": 3, "rounds": 4, "faults": {"5": "x"}}, {**row, "seed": "2"}]
    assert compact(rows) == [{**row, "rounds": 7, "cpu": 3.0, "faults": {"5": "x"}}, {**row, "seed": "2"}]


@pytest.mark.long
def test_rounds_of_several_kinds_find_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "journal"
    monkeypatch.setattr(sys, "argv", ["fuzz", str(journal), "--seconds", "20", "--seed", "ci"])
    monkeypatch.setattr("tests.fuzz.fuzz_readers.BATCH", 4.0)  # several kinds get rounds
    assert main() == 0
    assert len({row["kind"] for row in rows_of(journal)}) > 1
