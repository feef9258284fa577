"""Run other programs. No other module starts processes."""

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from tenv.core.dataclass import dataclass
from tenv.core.missing import Missing, ReasonKind

__all__ = ["Missing"]


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of an ended program."""

    status: int
    """Its exit status; negative for a signal."""
    stdout: str
    """Its standard output."""
    stderr: str
    """Its standard error."""


_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


@functools.cache
def _prctl() -> Callable[..., int]:
    import ctypes  # late: late, and here rather than between fork and exec

    return cast("Callable[..., int]", ctypes.CDLL(None).prctl)


@contextlib.contextmanager
def _binding(*, bound: bool = True) -> Iterator[dict[str, Any]]:
    """Yield `subprocess` arguments that make the kernel kill a bound child when its parent dies (Linux, prctl(2)).

    Otherwise a killed `tenv create` leaves an installer running in an environment that the next command repairs.
    Signals are blocked meanwhile: Python drops exceptions of their handlers during a fork, and the command would
    continue.
    """
    if sys.platform != "linux" or not bound:
        yield {}
        return
    prctl, set_parent_death_signal = _prctl(), 1
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {getattr(signal, name) for name in _ENDING})

    def prepare() -> None:
        prctl(set_parent_death_signal, int(signal.SIGKILL), 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        yield {"preexec_fn": prepare}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_running: "dict[subprocess.Popen[str], bool]" = {}
"""The programs that `run` waits for, and whether each leads its own process group."""


def find(name: str, path: str | None = None) -> str | None:
    """Return the absolute path of a program on PATH, or None."""
    import shutil  # late: it loads all compression modules

    found = shutil.which(name, path=path)
    return os.path.abspath(found) if found else None  # noqa: PTH100 (a link must stay a link)


def command_words(text: str) -> list[str]:
    """Return the words of a command as a shell has them; the text as one word where a quotation in it does not end."""
    import shlex  # late: few commands read the commands of a user

    try:
        return shlex.split(text)
    except ValueError:
        return [text]


def run(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    text: str | None = None,
    timeout: float | None = None,
    bound: bool = True,
    family: bool = False,
) -> Completed | Missing:
    """Run a program to its end and capture its output.

    Args:
        arguments: The program and its arguments.
        environment: All environment variables of the program; None means those of this process.
        folder: Its working folder.
        text: Its standard input; empty if None.
        timeout: Seconds after which it is killed.
        bound: Whether it ends with this process. No program of a thread does, since Python code between fork and exec
            can wait there forever for a lock of another thread. An unbound program leads a process group, which is
            killed with it, since a compiler may be a script that waits for another program.
        family: Whether all programs that it starts end with this process, too.

    Returns:
        The ended program, or `Missing` if it could not be started or timed out.
    """
    bound = bound and threading.current_thread() is threading.main_thread()
    leads = not bound and sys.platform != "win32"
    words = list(arguments)
    if family:
        from tenv.core.supervisor import supervised  # late: few programs start others that last

        words = supervised(words)
    try:
        with _binding(bound=bound) as changes:
            child = subprocess.Popen(
                words,
                env=environment,
                cwd=folder,
                process_group=0 if leads else None,
                stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                **changes,
                encoding="utf-8",
                errors="replace",
            )
    except OSError as error:
        return Missing(f"{arguments[0]} can't be started: {error.strerror or error}", ReasonKind.FAILED)
    _running[child] = leads
    with contextlib.ExitStack() as streams:
        streams.callback(_running.pop, child)
        for stream in filter(None, (child.stdin, child.stdout, child.stderr)):
            streams.push(functools.partial(_close, stream))
        try:
            stdout, stderr = child.communicate(text, timeout)
        except subprocess.TimeoutExpired:
            _abandon(child)
            return Missing(f"{arguments[0]} gave no answer within {timeout:g} s", ReasonKind.TIMEOUT)
        except BaseException:
            _abandon(child)
            raise
    return Completed(child.returncode, stdout, stderr)


def end_all() -> None:
    """Kill every program that `run` waits for, in any thread; its status is then negative."""
    for child in tuple(_running):
        _send(child, signal.SIGTERM)


def _send(child: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """Send a signal to a child, and to its process group if it leads one."""
    if sys.platform != "win32" and _running.get(child):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
    else:
        child.send_signal(number)


def _abandon(child: "subprocess.Popen[str]") -> None:
    """Kill a child, but do not wait if it can't be killed: a hanging driver blocks its callers inside the kernel."""
    from tenv.core.supervisor import is_supervised  # late: as in `run`

    if is_supervised(child.args):
        child.send_signal(signal.SIGTERM)  # it ends its own programs, and then itself
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
    _send(child, getattr(signal, "SIGKILL", signal.SIGTERM))
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(1)


def _close(stream: "IO[str] | IO[bytes]", *_: object) -> None:
    with contextlib.suppress(OSError):  # a pipe to a dead child
        stream.close()


def stream(
    arguments: Sequence[str],
    on_line: Callable[[str], None],
    *,
    log: Path = Path(os.devnull),
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> int | Missing:
    """Run a long program in a process group of its own, append its output to a log, and pass on each line.

    Returns:
        The exit status, negative for a signal; `Missing` when the program can't be started.
    """
    from tenv.core.supervisor import supervised  # late: as in `run`

    merged: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    group = None if sys.platform == "win32" else 0
    try:
        with _binding() as changes:
            words = supervised(arguments, daemons=True)  # a compile cache has a server that stays
            child = subprocess.Popen(words, env=environment, cwd=folder, process_group=group, **merged, **changes)
    except OSError as error:
        return Missing(f"{arguments[0]} can't be started: {error.strerror or error}", ReasonKind.FAILED)
    _running[child] = group is not None
    with child, log.open("ab", buffering=0) as file:
        try:
            for raw in child.stdout or ():
                file.write(raw)
                on_line(_ESCAPES.sub("", raw.decode("utf-8", "replace")).rstrip("\r\n"))
            return child.wait()
        except BaseException:
            _send(child, signal.SIGTERM)  # Ninja ends its compilers and removes half-written files
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=15)  # reads to its end, which its supervisor brings about before that
            raise
        finally:
            _running.pop(child)


def watch(
    arguments: Sequence[str],
    on_text: Callable[[str], None],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    text: str = "",
    on_tick: Callable[[int], None] = lambda _: None,
) -> Completed:
    """Run a program to its end, and pass on its standard error as it arrives, without escape sequences.

    On POSIX, the standard error of the program is a terminal, so that it reports progress. Its standard output is
    dropped.

    Args:
        arguments: The program and its arguments.
        on_text: Receives each piece of the text.
        environment: All its environment variables; None means those of this process.
        folder: Its working folder.
        text: Its standard input.
        on_tick: Called several times a second with the process id (POSIX). An error of it ends the program.
    """
    ours, theirs = (-1, subprocess.PIPE) if sys.platform == "win32" else _open_terminal()
    quiet: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": theirs}
    try:
        with _binding() as changes:
            child = subprocess.Popen(list(arguments), env=environment, cwd=folder, **quiet, **changes)
    finally:
        if theirs >= 0:
            os.close(theirs)
    pieces: list[str] = []
    with contextlib.ExitStack() as streams:
        if ours >= 0:
            streams.callback(os.close, ours)
        for stream in filter(None, (child.stdin, child.stderr)):
            streams.push(functools.partial(_close, stream))
        try:
            _feed(child, text)
            for piece in _read_terminal(ours) if child.stderr is None else _lines(child.stderr):
                on_tick(child.pid)
                if piece:
                    pieces.append(piece)
                    on_text(piece)
            status = child.wait()
        except BaseException:
            _stop(child)
            raise
    return Completed(status, "", "".join(pieces))


def _lines(stream: IO[bytes]) -> Iterator[str]:
    return (line.decode("utf-8", "replace") for line in stream)


def _feed(child: "subprocess.Popen[bytes] | subprocess.Popen[str]", text: str | None) -> None:
    if child.stdin is None:
        return
    raw = cast("IO[bytes]", getattr(child.stdin, "buffer", child.stdin))
    with contextlib.suppress(BrokenPipeError):  # it has already ended; its status shows why
        raw.write((text or "").encode())
        raw.close()


def _stop(child: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
    """Kill a child so that it does not keep writing in the background."""
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def spawn(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program in the foreground with this process's own streams and return its exit status."""
    with subprocess.Popen(list(arguments), env=environment) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # the child received it too; its status counts
                continue


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
"""Control sequences of terminals: colors, movements, titles."""


def _open_terminal() -> tuple[int, int]:
    """Return both ends of a wide terminal, in which names and sizes are not truncated.

    A pipe stands in where there is no terminal to have, as in a bare chroot without ``/dev/pts``: its program reports
    less progress.
    """
    import fcntl  # not on Windows
    import pty  # not on Windows
    import struct
    import termios  # not on Windows

    try:
        ours, theirs = pty.openpty()
    except OSError:
        return os.pipe()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    return ours, theirs


def _read_terminal(handle: int) -> Iterator[str]:
    """Yield the output of a terminal without escape sequences until its last writer ends; empty while there is none."""
    import select  # not on Windows

    (waiting := select.poll()).register(handle, select.POLLIN)
    while True:
        if not waiting.poll(200):  # milliseconds
            yield ""
            continue
        try:
            chunk = os.read(handle, 65536)
        except OSError:  # Linux returns EIO after the last writer has ended
            return
        if not chunk:
            return
        yield _ESCAPES.sub("", chunk.decode("utf-8", "replace"))
