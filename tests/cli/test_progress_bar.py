"""The bar on a terminal: bytes with their size, items with their number."""

import io
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from rich.progress import Progress as Bars
from rich.progress import ProgressColumn, Task

from tenv.cli.output import Voice, format_seconds, paint
from tenv.cli.progress_bar import Terminal
from tenv.core.progress import Bytes, Transfer
from tests.support.projects import until


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr("tenv.cli.progress_bar.is_terminal", lambda _: True)
    return Terminal(Voice())


def amount(terminal: Terminal) -> str:
    """Return what the bar of the step says of how far it is, without the speed."""
    assert terminal._bars is not None
    column = terminal._bars.columns[3]
    assert isinstance(column, ProgressColumn)
    return str(column(terminal._bars.tasks[0])).strip().partition("  ")[0]


@pytest.mark.parametrize(
    ("total", "before", "after"),
    [
        (Bytes(2048), "0.0/2.0 KiB", "1.0/2.0 KiB"),
        (Bytes(10), "0/10 bytes", "1,024/10 bytes"),
        (2048, "0/2048", "0/2048"),
        (10_000_000, "0/10000000", "0/10000000"),
        (None, "", ""),
    ],
)
def test_a_download_counts_where_bytes_do(total: int | None, before: str, after: str, terminal: Terminal) -> None:
    with terminal:
        terminal.step("a step", total)
        assert amount(terminal) == before
        terminal.transfers({"a": Transfer("a", 1024, 2048)})
        assert amount(terminal) == after


def test_items_are_counted_one_by_one(terminal: Terminal) -> None:
    with terminal:
        terminal.step("downloading by name alone", 3)
        terminal.advance()
        assert amount(terminal) == "1/3"


def test_a_step_whose_size_is_known_late_counts_from_none(terminal: Terminal) -> None:
    with terminal:
        terminal.step("compiling")
        terminal.resize(20)
        terminal.advance(3)
        assert amount(terminal) == "3/20"
        terminal.resize(5)
        assert amount(terminal) == "0/5"


@pytest.mark.parametrize("width", [40, 60, 63, 64, 73, 74, 80, 98, 110, 120, 200])
def test_bars_fit_the_terminal(width: int, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(Task, "speed", 1018.8 * 1024)
    names = ("nvidia-cuda-profiler-api-and-a-name-of-forty-letters-" * 4, "b")
    with terminal:
        terminal.step("downloading conda packages of a target with a long name", Bytes(2_500_000_000))
        terminal.transfers({name: Transfer(name, 1_048_000_000, 2_500_000_000) for name in names})
        assert terminal._bars is not None
        console = terminal._bars.console
        with console.capture() as caught:
            console.print(terminal._bars.get_renderable())
    lines = [line for line in caught.get().splitlines() if line.strip()]
    assert len(lines) == (3 if width >= 64 else 1), lines
    assert all(len(line) <= width for line in lines)
    assert all("GiB" in line for line in lines)
    assert width < 74 or all("iB/s" in line for line in lines)
    assert "downloading" in lines[0]


def test_downloads_in_several_threads_have_one_line_each(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(self: Bars, *words: Any, **named: Any) -> Any:
        time.sleep(0.005)  # another thread runs meanwhile
        return add_task(self, *words, **named)

    add_task = Bars.add_task
    monkeypatch.setattr(Bars, "add_task", slow)
    running = {name: Transfer(name, 1, 100) for name in "abc"}
    with terminal:
        terminal.step("downloading", Bytes(300))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(terminal.transfers, [running] * 4))
        assert terminal._bars is not None
        assert len(terminal._bars.tasks) == 1 + len(running)
        terminal.transfers({})
        assert len(terminal._bars.tasks) == 1


@pytest.mark.parametrize("drawn", [True, False])
def test_a_message_above_the_bars_is_what_it_is_without_them(
    drawn: bool, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm-256color"), ("COLUMNS", "200")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with terminal:
        if drawn:
            terminal.step("a step", 3)
        terminal.say(f"\n{paint('warning[TE103]', '1;33', stream)}: [old] https://me:secret@host/a\a")
    said = stream.getvalue()
    assert "\n\x1b[1;33mwarning[TE103]\x1b[0m: [old] https://host/a\\x07\n" in said
    assert "secret" not in said


def test_a_message_above_the_bars_is_folded_as_without_them(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("COLUMNS", "40"), ("FORCE_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tenv.cli.output.terminal_width", lambda _: 40)
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with terminal:
        terminal.step("a step", 3)
        terminal.say("  about 1 min with 2 jobs (2 cores, 23.5 GiB of memory)")
        terminal.say(f"{paint('note[TE607]', '1;36', stream)}: a line of thirty columns\n  and its end")
    assert "note[TE607]: a line of thirty columns\n  and its end\n" in re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert "  about 1 min with 2 jobs (2 cores, 23.5\n    GiB of memory)\n" in stream.getvalue()


def test_a_log_has_a_line_about_a_long_step_twice_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    monkeypatch.setattr("tenv.cli.progress_bar._SECONDS", 0.01)
    with Terminal(Voice()) as progress:
        progress.step("downloading and installing", Bytes(400 << 20))
        progress.transfers({"a": Transfer("a", 100 << 20, 200 << 20), "b": Transfer("b", 1 << 20, 200 << 20)})
        log = progress._log
        assert log is not None
        start = log._start
        assert log.line(start + 31) == "downloading and installing: 101.0 MiB of 400.0 MiB, 3.3 MiB/s, 31.0 s"
        progress.step("resolving tiny", 12)
        progress.advance(3)
        assert log.line(log._start + 65) == f"resolving tiny: 3 of 12, {format_seconds(65)}"
        progress.step("locking")
        until(lambda: "locking: " in stream.getvalue())
    assert stream.getvalue().startswith("downloading and installing …\n")
    said = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == said  # none after the end
    with Terminal(Voice(quiet=True)) as progress:
        progress.step("locking")
        assert progress._log is None


def test_a_minute_has_sixty_seconds() -> None:
    assert [*map(format_seconds, (0.25, 59.94, 59.96, 119.97, 150.2))] == [
        *("250 ms", "59.9 s", "1 min 0 s", "2 min 0 s", "2 min 30 s")
    ]
