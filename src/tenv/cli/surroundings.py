"""The process of a command: streams that accept every text, and signals that end it cleanly."""

import _thread
import codecs
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tenv.core.errors import Exit

_AGAIN = 0.005
"""Seconds after which an interrupt that Python dropped comes again: the callback that dropped it has ended by then."""

_SIGNALS = ("SIGTERM", "SIGHUP")  # from a batch system, from a closed terminal; Python itself handles SIGINT


def prepare_streams() -> None:
    """Make standard output accept any text: bytes that are not UTF-8 pass through, other characters are escaped.

    Python has no stream where the caller closed one (``>&-``): standard input is empty then, and a write fails.
    """
    codecs.register_error("tenv", _escaped)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 (open until the end)
    if sys.stdout is None:  # `__stdout__` keeps the stream: Python 3.13 reports one that it can't write at its end
        sys.stdout = sys.__stdout__ = open(os.open(os.devnull, os.O_RDONLY), "w")  # type: ignore[misc]  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="tenv")


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeEncodeError:
        return codecs.lookup_error("backslashreplace")(error)


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, so that a command removes its folders and ends its programs.

    The status is then the negative number of the signal, as in `subprocess`, and the process ends by that signal. An
    ignored signal (``nohup``) stays ignored. A second signal ends the process at once.
    """
    received: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        received.append(number)
        # Nothing is imported here: the signal may come while a module is half loaded. A command whose
        # `process` is not loaded has started no program.
        end_all = getattr(sys.modules.get("tenv.core.process"), "end_all", None)
        if end_all:
            end_all()
        raise KeyboardInterrupt

    for name in _SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)
    try:
        with _interrupts_kept():
            yield
    except (SystemExit, KeyboardInterrupt) as ended:
        if received and getattr(ended, "code", Exit.INTERRUPTED) == Exit.INTERRUPTED:
            raise SystemExit(-received[0]) from None
        raise


@contextlib.contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Send an interrupt again that came in a finalizer or a callback of a weak reference, where Python drops it."""
    report, over = sys.unraisablehook, threading.Event()

    def keep(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            report(dropped)
            return
        signal.signal(signal.SIGINT, hear)
        threading.Thread(target=interrupt, daemon=True).start()

    def hear(number: int, frame: FrameType | None) -> None:
        # On a busy machine the interrupt may come before `keep` has returned, where it would be dropped once more.
        while frame is not None:
            if frame.f_code is keep.__code__:
                threading.Thread(target=interrupt, daemon=True).start()
                return
            frame = frame.f_back
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.default_int_handler(number, frame)

    def interrupt() -> None:
        if over.wait(_AGAIN):
            return
        if hasattr(signal, "pthread_kill"):  # ends a call of the system, too
            signal.pthread_kill(main.ident or 0, signal.SIGINT)
        else:
            _thread.interrupt_main()

    main = threading.main_thread()
    sys.unraisablehook = keep
    try:
        yield
    finally:
        over.set()
        sys.unraisablehook = report
