"""Runs a program whose children must not outlive this process: a supervisor stands between, and ends them all.

The kernel kills a child of a killed process (`tenv.core.process`), but none of that child's own children: a build
backend or a compiler would go on. The supervisor adopts every process below it, and hears of the end of its parent.
This file is its program too, which imports nothing of tenv.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
_GRACE = 3.0
"""Seconds that programs have between SIGTERM and SIGKILL."""
_GRACE_OF_BUILD = 10.0
"""The same for an interrupted build: Ninja ends its compilers and removes their partial files."""
_STARTED_NOT = 127
_EMPTY_LOOKS = 2
_LONG = 3600.0
"""Seconds to wait for a signal that comes in any case."""


def supervised(arguments: Sequence[str], *, daemons: bool = False) -> list[str]:
    """Return the words that run a program under a supervisor; the same words where that is not Linux.

    Its status is that of the program. SIGTERM to the supervisor ends the program and all below it.

    Args:
        arguments: The program, by its path, and its arguments.
        daemons: Whether a process may stay that has a session of its own, such as the server of a compile cache.
    """
    if sys.platform != "linux":
        return [*arguments]
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), "daemons" if daemons else "none", *arguments]


def is_supervised(words: object) -> bool:
    """Return whether words are those of `supervised`."""
    return isinstance(words, list) and words[3:4] == [__file__]


class _Supervisor:
    def __init__(self, parent: int, *, daemons: bool) -> None:
        self._parent = parent
        self._daemons = daemons
        self._child = 0
        self._ends_at = 0.0
        hangup_counts = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN  # ignored, it would wait where it is blocked
        self._ending = (signal.SIGTERM, signal.SIGHUP) if hangup_counts else (signal.SIGTERM,)

    def run(self, words: Sequence[str]) -> int:
        """Run a program to its end, and return its status as `os.waitpid` has it."""
        import ctypes  # late: the caller needs none of it

        prctl = ctypes.CDLL(None).prctl
        prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # Waited for rather than handled: a handler runs late when its signal comes just before a call that waits.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*self._ending, signal.SIGCHLD))
        # Ignored signals stay so for the program: `nohup`, a job in the background of a script.
        reset = [number for number in (*self._ending, signal.SIGINT) if signal.getsignal(number) != signal.SIG_IGN]
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the program hears it too
        self._child = os.fork()
        if self._child == 0:
            for number in (*reset, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _become(words)
        prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
        if self._is_orphan():  # since before that call
            self._begin_to_end()
        return self._wait()

    def _wait(self) -> int:
        """Wait for the program, and once it is to end, for all below it; return its status."""
        status, empty = None, 0
        while True:
            for pid, code in _reaped():
                status = code if pid == self._child else status
            if status is not None:
                if signal.sigpending() & {*self._ending}:  # came before the program's end was read
                    self._begin_to_end()
                # One look at /proc misses a process whose parent ends meanwhile; this one is its parent afterwards.
                empty = 0 if self._ends_at and any(self._below()) else empty + 1
                if empty == _EMPTY_LOOKS or not self._ends_at:
                    return status
            came = signal.sigtimedwait((*self._ending, signal.SIGCHLD), self._pause(ended=status is not None))
            if came and came.si_signo != signal.SIGCHLD:
                self._begin_to_end()
            if self._ends_at and time.monotonic() >= self._ends_at:
                for pid in self._below():
                    _send(pid, signal.SIGKILL)

    def _pause(self, *, ended: bool) -> float:
        """Return the seconds to wait for a signal, after the end of the program or before."""
        if not self._ends_at:
            return _LONG
        return 0.02 if ended else max(0.1, self._ends_at - time.monotonic())

    def _is_orphan(self) -> bool:
        return os.getppid() != self._parent

    def _begin_to_end(self) -> None:
        """Send SIGTERM to all processes below, or to the program alone where its parent still waits for it."""
        if self._ends_at:
            return
        orphan = self._is_orphan()
        self._ends_at = time.monotonic() + (_GRACE_OF_BUILD if self._daemons and not orphan else _GRACE)
        for pid in self._below() if orphan else (self._child,):
            _send(pid, signal.SIGTERM)

    def _below(self) -> Iterator[int]:
        """Yield the processes below this one, those that were left by their parents among them."""
        children: dict[int, list[tuple[int, int]]] = {}
        for name in os.listdir("/proc"):  # noqa: PTH208 (fast)
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    text = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
                    state, above, _, leader = text.rpartition(")")[2].split()[:4]
                    # A session that began outside of this PID namespace is 0.
                    children.setdefault(int(above), []).append((int(name), -1 if state in "ZX" else int(leader)))
        own, waiting = os.getsid(0), [os.getpid()]
        while waiting:
            for pid, session in children.get(waiting.pop(), ()):
                if session < 0:  # ended, and perhaps since its children were read
                    waiting.append(pid)
                elif session == own or not self._daemons:
                    waiting.append(pid)
                    yield pid


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _reaped() -> Iterator[tuple[int, int]]:
    """Yield the id and the status of each child that has ended."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def _become(words: Sequence[str]) -> NoReturn:
    try:
        os.execvp(words[0], list(words))  # noqa: S606 (the point of this function)
    except OSError as error:
        os.write(2, os.fsencode(f"{words[0]} can't be started: {error.strerror}\n"))
    os._exit(_STARTED_NOT)


def _main(parent: str, kind: str, *words: str) -> NoReturn:
    status = _Supervisor(int(parent), daemons=kind == "daemons").run(words)
    if os.WIFSIGNALED(status):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program's own limit counts
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _main(*sys.argv[1:])
