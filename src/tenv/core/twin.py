"""A copy of this process that works beside it, since of the threads of one process Python runs one at a time."""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from tenv.core.file_lock import held_locks

__all__ = ["Twin"]

_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
_LOCKS = 16
"""The most locks that a process holds."""
_END = b"\0"
"""The end of an answer, which has no such byte."""


class Twin:
    """A copy that does one work and ends. It says nothing to the user, and does not outlive this process.

    It has what this process has loaded and opened. The locks that this process holds it holds, too, from `go` on.
    """

    def __init__(self, work: Callable[[Callable[[], bytes]], bytes]) -> None:
        """Start the work.

        It is given a function that waits for `go` and returns what that says. Its answer has no NUL.
        """
        self._tell, told = socket.socketpair()
        self._answered, answer = os.pipe()
        parent = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            self._tell.close()
            os.close(self._answered)
            _run(partial(work, partial(_wait, told)), answer, parent)
        told.close()
        os.close(answer)
        self._answer: bytes | None = None
        self._ended = False

    @staticmethod
    def is_possible() -> bool:
        """Return whether this process can be copied.

        A copy has one thread alone: it would wait for ever for a lock that another one held, or for rattler's threads,
        which Python does not count.
        """
        try:
            return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 (names alone)
        except OSError:
            return False

    def go(self, said: bytes) -> None:
        """Let the work go on; a few bytes are said to it."""
        with contextlib.suppress(ConnectionError):  # it has failed before
            socket.send_fds(self._tell, [said], held_locks())

    def answer(self) -> bytes | None:
        """Wait for the work, and return its answer; None if it failed."""
        if self._answer is None and not self._ended:
            parts = []
            while part := os.read(self._answered, 1 << 16):
                parts.append(part)
                if part.endswith(_END):  # its process may take a while to end
                    self._answer = b"".join(parts).removesuffix(_END)
                    break
        return self._answer

    def close(self) -> None:
        """End the work, if it still goes on."""
        if not self._ended:
            self._ended = True
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._tell.close()
            os.close(self._answered)


def _wait(told: socket.socket) -> bytes:
    said = socket.recv_fds(told, 1 << 10, _LOCKS)[0]  # the locks stay open until this process ends
    if not said:
        raise EOFError("the process that started the work has ended")
    return said


def _run(work: Callable[[], bytes], answer: int, parent: int) -> NoReturn:
    """Do the work in the copy and end it, without the clean-up that its original does."""
    status = 1
    try:
        _end_with(parent)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):  # an ignored signal stays so
                signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        data = work() + _END
        while data:
            data = data[os.write(answer, data) :]
        status = 0
    except BaseException:  # noqa: BLE001, S110 (the original finds what is wrong, and reports it)
        pass
    finally:
        os._exit(status)


def _end_with(parent: int) -> None:
    """Let the kernel end this process with its parent."""
    import ctypes  # late: a short command needs no twin

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended before
        raise ProcessLookupError
