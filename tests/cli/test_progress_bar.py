"""The bar on a terminal: bytes with their size, items with their number."""

import io
import sys

import pytest
from rich.progress import ProgressColumn

from tenv.cli.output import Voice
from tenv.cli.progress_bar import Terminal
from tenv.core.progress import Bytes, Transfer


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
