"""What people read on a terminal: folded to its width, no word cut, verdicts in color; a pipe gets whole lines."""

import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from fcntl import ioctl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenv.cli import main as program
from tenv.cli.fold import fold_beside, fold_line, fold_pieces, fold_table, terminal_width
from tests.audits.made import library
from tests.support.projects import SOURCE, Project, call
from tests.support.rarely import first_fast

WIDTHS = (60, 80, 200)
TABLES = [
    ("targets",),
    ("facts",),
    ("check-driver", "--assume-driver", "535.104.05"),
    ("show", "cuda130"),
    ("check", "cuda121"),
    ("host",),
    ("info",),
    ("diff", "cuda130", "cuda132"),
    ("packages", "cpu"),
]


def on_terminal(project: Project, width: int, *words: str, **variables: str) -> str:
    """Return what a command writes to a terminal of a width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tenv", *words],
        cwd=project.folder,
        env={**kept, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color", **variables},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    found = b""
    try:
        while data := os.read(ours, 65536):
            found += data
    except OSError:  # Linux reports the end so
        pass
    os.close(ours)
    process.wait()
    return found.decode().replace("\r\n", "\n")


def on_terminal_here(width: int, *words: str) -> str:
    """Return what a command in this process writes to a terminal of a width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    found = bytearray()

    def read() -> None:
        with suppress(OSError):  # as above
            while data := os.read(ours, 65536):
                found.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    with open(theirs, "w") as screen, redirect_stdout(screen), redirect_stderr(screen), suppress(SystemExit):  # noqa: PTH123
        program._main([*words])
    reader.join()
    os.close(ours)
    return found.decode().replace("\r\n", "\n")


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("words", first_fast(TABLES, 3), ids=" ".join)
def test_lines_fit_and_words_are_whole(
    project: Project, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    texts = {width: bare(on_terminal_here(width, *words)) for width in WIDTHS}
    whole = set(texts[max(WIDTHS)].split())
    for width, text in texts.items():
        for line in text.splitlines():
            assert len(line) <= width or len(max(line.split(), key=len)) > width - 20, (width, line)
        lost = {word for word in whole - set(text.split()) if not re.fullmatch(r"[\d.]+", word)}  # free bytes change
        assert lost <= {"-"}, width


def test_the_manylinux_line_of_audit_folds_beside_its_label(project: Project, tmp_path: Path) -> None:
    outside = [f"libcompany{number}.so.1" for number in range(9)]
    path = library(tmp_path / "liba.so", ["libc.so.6", *outside], versions={"libc.so.6": ("GLIBC_2.17",)})
    [piped] = [line for line in call("audit", str(path)).out.splitlines() if line.startswith("manylinux: ")]
    text = bare(on_terminal(project, 60, "audit", str(path)))
    start, *hung = re.findall(r"^manylinux: .*\n(?: {11}\S.*\n)*", text, re.MULTILINE)[0].splitlines()
    assert len(hung) > 1
    assert max(map(len, (start, *hung))) <= 60
    assert " ".join([start, *(line.strip() for line in hung)]) == piped
    assert set(outside) <= {word.rstrip(",") for word in piped.split()}


@pytest.mark.usefixtures("project")
def test_the_error_of_a_log_folds_beside_its_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "a.log").write_text(f"a.cpp:1:1: error: {'a long word ' * 9}\nmake: *** [a.o] Error 1\n")
    words = ("explain", "--log", str(tmp_path / "a.log"))
    [piped] = [line for line in call(*words).out.splitlines() if line.startswith("error:  line 1: ")]
    text = bare(on_terminal_here(60, *words))
    start, *hung = re.findall(r"^error: .*\n(?: {8}\S.*\n)*", text, re.MULTILINE)[0].splitlines()
    assert max(map(len, (start, *hung))) <= 60
    assert " ".join([start, *(line.strip() for line in hung)]) == piped


def test_a_pipe_gets_whole_lines_whatever_columns_says(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = project.ok("targets").out
    monkeypatch.setenv("COLUMNS", "40")
    assert project.ok("targets").out == before


def test_evidence_is_a_list_on_a_terminal(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = bare(on_terminal_here(100, "check", "cuda121", "--host-report", str(project.folder / "none.json")))
    assert "error[host-report]" in text
    text = bare(on_terminal_here(100, "check", "cuda121"))
    if "warning[TE101]" in text:
        assert re.search(r"evidence:\n    - NVML: .*\n    - nvidia-smi: ", text)
    (project.folder / "smi.txt").write_text("GPU 0: NVIDIA B200 (UUID: GPU-1)\nDriver Version: 580.65.06\n")
    text = bare(on_terminal_here(200, "check", "cuda121", "--host-report", str(project.folder / "smi.txt")))
    assert re.search(r"evidence: compute capability 10\.0 \(by its name in cuda_gpu_arch\.toml; line 1, .*\)\n", text)


@pytest.mark.parametrize(
    ("variables", "colored"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
    ],
)
def test_verdicts_are_colored(
    project: Project, variables: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", **variables}.items():
        monkeypatch.setenv(name, value)
    text = on_terminal_here(100, "check", "cuda130", "--assume-driver", "470.57.02")
    assert ("run:   \x1b[1;31mno\x1b[0m" in text) is colored
    assert ("\x1b[" in text) is colored
    assert "run:   no" in bare(text)


def test_colors_can_be_forced_into_a_pipe(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("check-driver", "--assume-driver", "535.104.05")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in project.ok(*words).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    colored = project.ok(*words).out
    assert "\x1b[1;32myes\x1b[0m" in colored
    monkeypatch.setenv("FORCE_COLOR", "0")
    assert project.ok(*words).out == bare(colored)
    assert "\x1b" not in project.ok(*words, "--json").out


def test_a_line_is_folded_at_blanks_alone() -> None:
    assert fold_line("a bb ccc", 8) == ["a bb ccc"]
    assert fold_line("  a bb ccc", 8, 2) == ["  a bb", "    ccc"]
    assert fold_line("x " + "y" * 30, 10) == ["x", "y" * 30]
    assert fold_line("    x " + "y" * 9, 10, 2) == ["    x", " " + "y" * 9]
    assert fold_line("漢字 漢字 漢字", 9) == ["漢字 漢字", "漢字"]


def test_a_table_shrinks_its_widest_column_first() -> None:
    rows = [("A", "B"), ("one", "two three four five")]
    assert [*fold_table(rows, None)] == [["A  ", "B" + " " * 18], ["one", "two three four five"]]
    assert [*fold_table(rows, 15)] == [
        ["A  ", "B         "],
        ["one", "two three "],
        ["   ", "four five "],
    ]


def printed(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    return ["  ".join(line).rstrip() for line in fold_table(rows, width)]


def test_the_last_column_goes_below_its_row_where_that_takes_fewer_lines() -> None:
    name, text = "n" * 20, "a text that needs two lines of the terminal, and many words"
    rows = [("NAME", "SIZE", "TEXT"), (name, "1", text), ("two", "22", "")]
    assert printed(rows, 100) == [f"NAME{' ' * 18}SIZE  TEXT", f"{name}  1     {text}", f"two{' ' * 19}22"]
    assert printed(rows, 40) == [
        f"NAME{' ' * 18}SIZE",
        "    TEXT",
        f"{name}  1",
        "    a text that needs two lines of the",
        "    terminal, and many words",
        f"two{' ' * 19}22",
    ]


def test_several_columns_below_a_row_have_their_headers() -> None:
    rows = [
        ("NAME", "KIND", "REQUESTED", "SIZE", "TEXT"),
        ("x" * 12, "wheel", ">=1,<2", "2.5 KiB", "a long text that needs two lines"),
        ("y" * 12, "archive", "", "", ""),
        ("z" * 12, "conda", "", "", "z"),
    ]
    assert printed(rows, 24) == [
        "NAME          KIND",
        "x" * 12 + "  wheel",
        "    REQUESTED  >=1,<2",
        "    SIZE  2.5 KiB",
        "    TEXT  a long text",
        "          that needs two",
        "          lines",
        "y" * 12 + "  archive",
        "z" * 12 + "  conda",
        "    TEXT  z",
    ]


CELLS = st.lists(st.sampled_from(["a", "bb", "ccccc", "漢字", "x" * 12]), max_size=8).map(" ".join)


@given(
    st.integers(2, 6).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=5)),
    st.integers(30, 80),
)
def test_a_folded_table_has_every_word_once_and_fits(rows: list[list[str]], width: int) -> None:
    header = [f"H{number}" for number in range(len(rows[0]))]
    lines = ["  ".join(line).rstrip() for line in fold_table([header, *rows], width)]
    words = [word for line in lines for word in line.split() if word not in header]
    assert sorted(words) == sorted(word for row in rows for cell in row for word in cell.split())
    assert max(len(line) + line.count("漢") + line.count("字") for line in lines) <= width


def test_a_table_too_narrow_for_its_words_becomes_blocks() -> None:
    rows = [("NAME", "ADDRESS"), ("n", "x" * 30 + " y"), ("m", "")]
    assert ["".join(line).rstrip() for line in fold_table(rows, 30)] == [
        "NAME     n",
        "ADDRESS  " + "x" * 30,
        "         y",
        "",
        "NAME     m",
    ]


def test_a_stream_without_a_terminal_has_no_width() -> None:
    assert terminal_width(None) is None
    with open(os.devnull) as file:  # noqa: PTH123
        assert terminal_width(file) is None


def test_a_value_goes_below_its_label_where_a_word_has_no_room_beside_it() -> None:
    assert fold_beside("label  ", "one two", 12) == ["label  one", "       two"]
    assert fold_beside("label  ", "ninechars x", 14) == ["label", "    ninechars", "    x"]
    assert fold_beside("       ", "ninechars x", 14) == ["       ninechars", "       x"]


def test_pieces_stay_whole_where_they_fit() -> None:
    assert [*fold_pieces(["1.0 → 2.0", "3 MiB", "wheel, win-64"], 18)] == ["1.0 → 2.0  3 MiB", "wheel, win-64"]
    assert [*fold_pieces(["aa bb cc", "d"], 5)] == ["aa bb", "cc  d"]


def test_colors_take_no_columns() -> None:
    painted = "\x1b[1;32myes\x1b[0m and no"
    assert fold_line(painted, 10) == [painted]


def test_the_note_on_another_tenv_is_folded(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other" / "tenv"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    said = on_terminal(project, 80, "--help", PATH=f"{other.parent}:{os.environ['PATH']}")
    note = said.partition("Usage:")[0]
    assert "another program called tenv" in " ".join(note.split())
    assert "\n" in note.strip()
    assert not [line for line in note.splitlines() if len(line) > 80 and " " in line.strip()]
