"""A copy of this process that works beside it, since of the threads of one process Python runs one at a time."""

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn

from tenv.core.file_lock import held_locks

__all__ = ["Twin", "TwinLine"]

_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)
_ENDS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
"""The signals that end a command. One that came between the fork and `_run` would unwind the copy as the command."""
_LOCKS = 16
"""The most locks that a process holds."""
_ANSWER, _END = b"=", b"\0"
"""The beginning of an answer, and the end of each message."""


class Twin:
    """A copy that does one work and ends. It says nothing to the user, and does not outlive this process.

    It has what this process has loaded and opened. The locks that this process holds it holds, too, from `go` on.
    """

    def __init__(self, work: Callable[["TwinLine"], bytes]) -> None:
        """Start the work, which is given the line to this process. Its answer has no NUL."""
        self._tell, told = socket.socketpair()
        self._answered, answer = os.pipe()
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
        try:
            self._child = os.fork()
            if self._child == 0:
                self._tell.close()
                os.close(self._answered)
                _run(work, TwinLine(told, answer), parent, before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        told.close()
        os.close(answer)
        self._answer: bytes | None = None
        self._ended = False

    @staticmethod
    def is_possible() -> bool:
        """Return whether this process can be copied.

        A copy has one thread alone: it would wait for ever for a lock that another one held, or for rattler's threads,
        which Python does not count. Where the caller ignores the end of children, the number of a process says nothing.
        """
        if sys.platform != "linux" or signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            return False
        try:
            return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 (names alone)
        except OSError:
            return False

    def go(self, said: bytes) -> None:
        """Let the work go on; a few bytes are said to it."""
        with contextlib.suppress(ConnectionError):  # it has failed before
            socket.send_fds(self._tell, [said], held_locks())

    def answer(self, hear: Callable[[bytes], None] = lambda _: None) -> bytes | None:
        """Wait for the work, and return its answer; None if it failed. `hear` gets what it tells before."""
        rest = b""
        while self._answer is None and not self._ended and (part := os.read(self._answered, 1 << 16)):
            *whole, rest = (rest + part).split(_END)
            for message in whole:
                if message.startswith(_ANSWER):  # its process may take a while to end
                    self._answer = message.removeprefix(_ANSWER)
                else:
                    hear(message)
        return self._answer

    @property
    def process(self) -> int:
        """The number of its process."""
        return self._child

    def close(self) -> bool:
        """End the work, and return whether it still went on or had failed."""
        if self._ended:
            return False
        self._ended = True
        with contextlib.suppress(ProcessLookupError, ChildProcessError):  # the system has forgotten it
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
        self._tell.close()
        os.close(self._answered)
        return self._answer is None


class TwinLine:
    """The line of a copy to its original."""

    def __init__(self, told: socket.socket, answer: int) -> None:
        self._told, self._answer = told, answer

    def wait(self) -> bytes:
        """Wait for `Twin.go`, and return what it says."""
        said = socket.recv_fds(self._told, 1 << 10, _LOCKS)[0]  # the locks stay open until this process ends
        if not said:
            raise EOFError("the process that started the work has ended")
        return said

    def is_free(self) -> bool:
        """Return whether the original can be sent something short although the original does not hear yet."""
        return bool(select.select([], [self._answer], [], 0)[1])

    def tell(self, message: bytes) -> None:
        """Tell the original something, without NUL."""
        data = message + _END
        while data:
            data = data[os.write(self._answer, data) :]


def _run(work: Callable[[TwinLine], bytes], line: TwinLine, parent: int, mask: Iterable[int]) -> NoReturn:
    """Do the work in the copy and end it, without the clean-up that its original does."""
    status = 1
    try:
        _end_with(parent)
        for number in _ENDS:
            if callable(signal.getsignal(number)):  # an ignored signal stays so
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        line.tell(_ANSWER + work(line))
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
