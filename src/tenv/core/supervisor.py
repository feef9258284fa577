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

__all__ = ["is_supervised", "supervised"]

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # prctl(2)
_GRACE = 3.0
"""Seconds that programs have between SIGTERM and SIGKILL."""
_GRACE_OF_BUILD = 10.0
"""The same for an interrupted build: Ninja ends its compilers and removes their partial files."""
_STARTED_NOT = 127


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

    def run(self, words: Sequence[str]) -> int:
        """Run a program to its end, and return its status as `os.waitpid` has it."""
        import ctypes  # late: the caller needs none of it

        prctl = ctypes.CDLL(None).prctl
        prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
        # None is handled before the child's id is known: id 0 is the whole process group, its caller's script too.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        for number in numbers:
            signal.signal(number, self._end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the program hears it too
        self._child = os.fork()
        if self._child == 0:
            for number in (*numbers, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _become(words)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
        if self._is_orphan():  # since before that call
            self._end()
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == self._child:
                break
        while self._ends_at and any(self._below()):
            self._end()
            _reap()
            time.sleep(0.02)
        return status

    def _is_orphan(self) -> bool:
        return os.getppid() != self._parent

    def _end(self, *_: object) -> None:
        """End all processes below: by SIGTERM at first, by SIGKILL once their time is up."""
        if not self._ends_at:
            orphan = self._is_orphan()
            grace = _GRACE_OF_BUILD if self._daemons and not orphan else _GRACE
            self._ends_at = time.monotonic() + grace
            signal.setitimer(signal.ITIMER_REAL, grace)
            for pid in self._below() if orphan else (self._child,):
                _send(pid, signal.SIGTERM)
            return
        if time.monotonic() >= self._ends_at:
            for pid in self._below():
                _send(pid, signal.SIGKILL)
        # An interval would interrupt this look by the next one, on a busy machine without end.
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    def _below(self) -> Iterator[int]:
        """Yield the processes below this one, those that were left by their parents among them."""
        children: dict[int, list[tuple[int, int]]] = {}
        for name in os.listdir("/proc"):  # noqa: PTH208 (fast)
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    text = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
                    state, above, _, leader = text.rpartition(")")[2].split()[:4]
                    if state not in "ZX":
                        children.setdefault(int(above), []).append((int(name), int(leader)))
        own, waiting = os.getsid(0), [os.getpid()]
        while waiting:
            for pid, session in children.get(waiting.pop(), ()):
                if session == own or not self._daemons:
                    waiting.append(pid)
                    yield pid


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(words: Sequence[str]) -> NoReturn:
    try:
        os.execvp(words[0], list(words))  # noqa: S606 (the point of this function)
    except OSError as error:
        os.write(2, f"{words[0]} can't be started: {error.strerror}\n".encode())
    os._exit(_STARTED_NOT)


def _main(parent: str, kind: str, *words: str) -> NoReturn:
    status = _Supervisor(int(parent), daemons=kind == "daemons").run(words)
    if os.WIFSIGNALED(status):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program's own limit counts
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _main(*sys.argv[1:])
