"""What a command needs of its process: streams that take every text, and signals that end it in order."""

import codecs
import contextlib
import io
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from tenv.core.errors import Exit

__all__ = ["ended_by_signals", "endure_texts"]

_SIGNALS = ("SIGTERM", "SIGHUP")  # of a batch system, of a terminal that is closed; Python turns SIGINT itself


def endure_texts() -> None:
    """Let standard output take any text: a name that is no UTF-8 as its own bytes, a sign it does not have escaped."""
    codecs.register_error("tenv", _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="tenv")


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeEncodeError:
        return codecs.lookup_error("backslashreplace")(error)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that its folders and programs are put away.

    The status is then that of the signal, negative as `subprocess` has it: the process is to die of it in the end. A
    signal that is ignored (``nohup``) stays so. The second one ends the process at once.
    """
    received: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        from tenv.core import process  # late: short commands start no program

        signal.signal(number, signal.SIG_DFL)
        received.append(number)
        process.end_all()
        raise KeyboardInterrupt

    for name in _SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as ended:
        if received and getattr(ended, "code", Exit.INTERRUPTED) == Exit.INTERRUPTED:
            raise SystemExit(-received[0]) from None
        raise
