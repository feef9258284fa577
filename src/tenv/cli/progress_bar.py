"""Progress on a terminal: one line for the step, with sizes and speed, and a line for each large download.

A log gets the name of each step, and a line about a long one twice a minute.
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tenv.cli.output import Voice, cleaned, folded, format_bytes, format_seconds, is_terminal, print_findings
from tenv.core.progress import Bytes, Progress, Transfer
from tenv.core.untrusted import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

    from tenv.checks.rules.interface import Finding

_SHOWN = 5
_BAR, _WIDEST_BAR = 8, 30
_SPEED = 14
"""The columns of a speed, such as `  9.5 MiB/s`."""
_BESIDE_WORDS = 1 + _BAR + 17 + _SPEED + 7 + 4
"""The columns of all but the words: spinner, bar, `1000.0/1023.9 MiB`, speed, time, and the gaps between them."""
_WIDE = 90
"""Columns from which a bar is wider than its least."""
_WITH_SPEED = 74
"""Columns from which there is room for a speed."""
_NARROW = 64
"""Columns below which the step has one short line: its name and its amount."""
_SECONDS = 30.0
"""The time between two lines about one step in a log."""


class Terminal(Progress):
    """Draws progress on standard error; without a terminal, prints the name of each step, and how far a long one is."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._bars: Bars | None = None
        self._step: TaskID | None = None
        self._running: dict[str, TaskID] = {}
        self._lock = threading.Lock()
        self._counts_bytes = False
        self._words = 0
        self._narrow = False
        self._log: _Log | None = None

    def __enter__(self) -> Self:
        """Start drawing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the bars."""
        if self._bars:
            self._bars.stop()
        if self._log:
            self._log.stop()

    def phase(self, name: str) -> None:
        """Show the name of a step until work with a size begins. A log gets the name alone."""
        if is_terminal(sys.stderr):
            self.step(name)

    def step(self, title: str, total: int | None = None) -> None:
        """Start a step."""
        if self._voice.quiet:
            return
        if not is_terminal(sys.stderr):
            self._voice.say(f"{title} …")
            self._log = self._log or _Log(self._voice.say)
            self._log.step(title, total)
            return
        bars = self._start()
        with self._lock:
            for task in (*self._running.values(), *([self._step] if self._step is not None else [])):
                bars.remove_task(task)
            self._running = {}
            self._counts_bytes = isinstance(total, Bytes)
            self._step = bars.add_task(self._fitted(title), total=total, bytes=self._counts_bytes)

    def _start(self) -> "Bars":
        if self._bars is None:
            from rich.console import Console  # late: 32 ms
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.table import Column

            console = Console(stderr=True)
            width = console.width
            self._narrow = width < _NARROW
            bar = min(_WIDEST_BAR, max(_BAR, width - _WIDE))
            self._words = width - _BESIDE_WORDS - (bar - _BAR) + (_SPEED if width < _WITH_SPEED else 0)
            self._words += _BAR + 9 if self._narrow else 0
            wide = [BarColumn(bar_width=bar)] if not self._narrow else []
            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
                *wide,
                _amount_column(speed=width >= _WITH_SPEED),
                *([] if self._narrow else [TimeElapsedColumn()]),
                console=console,
                transient=True,
            )
            self._bars.start()
        return self._bars

    def _fitted(self, text: str) -> str:
        """Return the words before a bar, cut to the room that is left for them."""
        text = printable(text)
        return text if len(text) <= self._words else f"{text[: self._words - 1]}…"

    def resize(self, total: int) -> None:
        """Set the number of items of the step, of which none is finished. A log has the name of the step already."""
        with self._lock:
            if self._bars and self._step is not None:
                self._bars.update(self._step, total=total, completed=0)
            if self._log:
                self._log.resize(total)

    def advance(self, count: int = 1) -> None:
        """Count finished items of the step."""
        with self._lock:
            if self._bars and self._step is not None:
                self._bars.advance(self._step, count)
            if self._log:
                self._log.done += count

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        """Draw the downloads: the largest active ones, one line each."""
        with self._lock:  # downloads run in threads
            self._draw(running)

    def _draw(self, running: Mapping[str, Transfer]) -> None:
        if self._log and isinstance(self._log.total, Bytes):
            self._log.done = sum(row.done for row in running.values())
        if not self._bars or self._step is None:
            return
        # Tools often omit the last update, so a download that is nearly complete is no longer drawn.
        under_way = sorted((row for row in running.values() if row.done < 0.98 * row.total), key=lambda row: -row.total)
        shown = {row.name: row for row in under_way[: 0 if self._narrow else _SHOWN]}
        for name in [name for name in self._running if name not in shown]:
            self._bars.remove_task(self._running.pop(name))
        for name, row in shown.items():
            if name not in self._running:
                self._running[name] = self._bars.add_task(self._fitted(f"  {name}"), total=row.total, bytes=True)
            self._bars.update(self._running[name], completed=row.done)
        if self._counts_bytes:  # `advance` counts items
            self._bars.update(self._step, completed=sum(row.done for row in running.values()))

    def report(self, findings: "Sequence[Finding]") -> None:
        """Print findings above the bars."""
        print_findings(findings, self.say, sys.stderr)

    def say(self, sentence: str) -> None:
        """Print a message above the bars."""
        if self._bars and not self._voice.quiet:
            from rich.text import Text  # late: as the bars

            # Cleaned first: colors take no columns once they are codes, so that a folded line is not folded again.
            lines = Text.from_ansi(folded(cleaned(sentence), sys.stderr))
            self._bars.console.print(lines, soft_wrap=True)
        else:
            self._voice.say(sentence)


class _Log:
    """Prints how far a step is every 30 s, for a log that would be silent for minutes.

    Attributes:
        total: The size of the step, `Bytes` or a number of items; None if unknown.
        done: The finished part of it.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.total: int | None = None
        self.done = 0
        self._say = say
        self._title = ""
        self._start = time.monotonic()
        self._before: tuple[float, int] = (self._start, 0)
        self._ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def step(self, title: str, total: int | None) -> None:
        """Begin a step."""
        self._title, self._start = title, time.monotonic()
        self.resize(total)

    def resize(self, total: int | None) -> None:
        """Set the size of the step, of which nothing is finished."""
        self.total, self.done, self._before = total, 0, (time.monotonic(), 0)

    def stop(self) -> None:
        """End the lines."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_SECONDS):
            self._say(self.line(time.monotonic()))

    def line(self, now: float) -> str:
        """Return the line about the step at a time of the monotonic clock."""
        parts = [format_seconds(now - self._start)]
        if isinstance(self.total, Bytes) and self.total:
            then, before = self._before
            self._before = (now, self.done)
            speed = max(self.done - before, 0) / max(now - then, 0.001)
            parts = [f"{format_bytes(self.done)} of {format_bytes(self.total)}", f"{format_bytes(speed)}/s", *parts]
        elif self.total:
            parts = [f"{self.done} of {self.total}", *parts]
        return f"{self._title}: {', '.join(parts)}"


def _amount_column(*, speed: bool) -> "ProgressColumn":
    from rich.progress import DownloadColumn, MofNCompleteColumn, ProgressColumn, Task
    from rich.text import Text

    class Amount(ProgressColumn):
        """Bytes with their speed, or items."""

        def __init__(self) -> None:
            super().__init__()
            self._bytes, self._items = DownloadColumn(binary_units=True), MofNCompleteColumn()

        def render(self, task: Task) -> Text:
            """Return the column's text."""
            if not task.total:
                return Text("")
            if not task.fields.get("bytes"):
                return self._items.render(task)
            if not speed:
                return self._bytes.render(task)
            rate = task.finished_speed or task.speed
            return Text.assemble(self._bytes.render(task), f"  {format_bytes(rate)}/s" if rate else "  ?")

    return Amount()
