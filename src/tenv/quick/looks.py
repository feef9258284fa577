"""Looks at the machine that can be repeated: what a file system call or a program answers, as a text.

A command that only reads the machine answers the same as long as each of its looks does. `tenv.cli.answer_note` notes
the looks of a command with what they gave; here they are repeated, each by the same function that gave the noted text.
"""

import os
import stat
import sys
import time

from tenv.quick.noted_environment import sha256

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LOOKS", "SECONDS", "Program", "environment", "of_entries", "of_stat"]

_LARGE = 1024 * 1024
"""Bytes above which a file is noted by its inode, size and times, and not read: nvcc has 30 MB, libcuda 100 MB."""
_SETTLED = 2_100_000_000
"""Nanoseconds by which the last change of such a file has to lie before the look, so that a later one has another time:
some file systems keep times in steps of 2 seconds.
"""
_LIVING = ("/proc/", "/sys/")
"""Folders whose files have times and inodes of the moment."""
_OWN = ("_", "SHLVL", "OLDPWD")
"""Variables that differ between two commands of one shell, and that nothing in tenv reads."""
SECONDS = 1.0
"""A program that takes longer is left to the whole program of tenv, which waits longer."""
_OWN_CODE = [sys.executable, "-I", "-S", "-c"]
"""How tenv begins to run code of its own in another process (`tenv.host.loader`)."""
_IGNORED = (13, 25)
"""SIGPIPE and SIGXFSZ, which Python ignores (Linux; the module `signal` takes long to load)."""
_PIECE = 1 << 16
_open, _listdir, _scandir, _os_access = os.open, os.listdir, os.scandir, os.access
_os_stat, _os_lstat, _readlink = os.stat, os.lstat, os.readlink
"""The functions themselves, which a recorder of looks replaces."""


def environment() -> "dict[str, str]":
    """Return the environment variables that an answer may depend on."""
    return {name: value for name, value in os.environ.items() if name not in _OWN}


def of_stat(path: str, info: os.stat_result) -> str:
    """Return what a `stat` gave: the file itself, and of a regular file its content by size and time."""
    if path.startswith(_LIVING):
        return f"{info.st_mode} {info.st_uid} {info.st_gid}"
    file = f"{info.st_mode} {info.st_uid} {info.st_gid} {info.st_dev} {info.st_ino}"
    return f"{file} {info.st_size} {info.st_mtime_ns}" if stat.S_ISREG(info.st_mode) else file


def of_entries(entries: "list[Any]") -> str:
    """Return what `os.scandir` gave: the names in their order, and what each is."""
    rows = [f"{one.name}\0{one.is_dir()}{one.is_file()}{one.is_symlink()}" for one in entries]
    return sha256("\0\0".join(rows).encode("utf-8", "surrogateescape"))


def _stat(path: str) -> str:
    return of_stat(path, _os_stat(path))


def _lstat(path: str) -> str:
    return of_stat(path, _os_lstat(path))


def _access(path: str) -> str:
    path, _, mode = path.rpartition("\0")
    return str(_os_access(path, int(mode)))


def _names(path: str) -> str:
    return sha256("\0".join(_listdir(path)).encode("utf-8", "surrogateescape"))


def _entries(path: str) -> str:
    with _scandir(path) as found:
        return of_entries(list(found))


def _content(path: str) -> str:
    """Return the kind and the digest of a file; of a folder that is opened, what `stat` gives.

    Raises:
        ValueError: A large file was just changed, a file grew, or one of the system is large.
    """
    handle = _open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            return of_stat(path, info)
        if info.st_size > _LARGE:
            if path.startswith(_LIVING) or time.time_ns() - info.st_ctime_ns < _SETTLED:
                raise ValueError(path)
            return f"{of_stat(path, info)} {info.st_ctime_ns}"
        data = bytearray()
        while piece := os.read(handle, _PIECE if path.startswith(_LIVING) else info.st_size + 1):
            data += piece
            if len(data) > _LARGE:  # it grows, or is one of /proc, whose size says nothing
                raise ValueError(path)
        return f"{info.st_mode} {info.st_uid} {_digest(data)}"
    finally:
        os.close(handle)


def _digest(data: bytearray) -> str:
    """Return a digest of what may be the headers of a toolkit, by the fastest function that Python has built in."""
    try:
        digest = __import__("_blake2").blake2b
    except ImportError:
        from hashlib import blake2b as digest
    found: str = digest(data, digest_size=32).hexdigest()
    return found


def _guarded(look: "Any") -> "Any":
    def answer(path: str) -> str:
        try:
            found: str = look(path)
        except OSError as error:
            return f"E{error.errno}"
        return found

    return answer


LOOKS = {
    "s": _guarded(_stat),
    "l": _guarded(_lstat),
    "a": _guarded(_access),
    "r": _guarded(_readlink),
    "d": _guarded(_names),
    "e": _guarded(_entries),
    "o": _guarded(_content),
}
"""Each kind of look: a function from a path (with the mode behind it, for `a`) to what it gives."""


class Program:
    """A program that runs while the other looks are repeated.

    It has the default signals that `subprocess` gives to programs, and it is to be stopped, whatever comes between.

    Args:
        words: Its path and its arguments.
        changes: The variables that it has besides those of this process.
    """

    def __init__(self, words: "list[str]", changes: "dict[str, str]") -> None:
        self._id, self._pipes = 0, list[int]()
        actions: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)]
        options: dict[str, Any] = {"file_actions": actions, "setpgroup": 0, "setsigdef": _IGNORED}
        try:
            for number in (1, 2):
                reading, writing = os.pipe()
                self._pipes += [reading, writing]
                actions.append((os.POSIX_SPAWN_DUP2, writing, number))
            if words[:4] == _OWN_CODE and not changes and len(_listdir("/proc/self/task")) == 1:
                self._id = _forked(actions, words[4:])
            else:
                self._id = os.posix_spawn(words[0], words, {**os.environ, **changes}, **options)
        except BaseException:
            self.stop()
            raise
        for handle in self._pipes[1::2]:
            os.close(handle)
        self._pipes = self._pipes[::2]

    def end(self) -> str:
        """Return what it gave, as `of_program` has it; raises OSError if it takes too long."""
        import select

        ends, texts = time.monotonic() + SECONDS, {handle: bytearray() for handle in self._pipes}
        end = os.pidfd_open(self._id)  # a program that closes its streams may go on
        running = [*self._pipes, end]
        try:
            while running:
                ready = select.select(running, [], [], max(0.0, ends - time.monotonic()))[0]
                if not ready:
                    raise TimeoutError
                for handle in ready:
                    piece = b"" if handle == end else os.read(handle, _PIECE)
                    if not piece:
                        running.remove(handle)
                    else:
                        texts[handle] += piece
        finally:
            os.close(end)
        _, status = os.waitpid(self._id, 0)
        self._id = 0
        return of_program(os.waitstatus_to_exitcode(status), *map(_text, texts.values()))

    def stop(self) -> None:
        """Close its pipes; kill it and what it has started, if it has not ended, and wait for neither."""
        for handle in self._pipes:
            os.close(handle)
        self._pipes = []
        ended, self._id = self._id, 0
        if ended:
            try:
                os.killpg(ended, 9)
                os.waitpid(ended, os.WNOHANG)
            except OSError:  # it has ended, or is another user's
                return


def _forked(actions: "list[Any]", words: "list[str]") -> int:
    """Run Python code in a copy of this process of one thread, which is there sooner than another interpreter.

    What it prints differs from what an interpreter of its own does at most where it fails; then nothing is as noted.
    """
    if child := os.fork():
        _lead_group(child)  # here too: `stop` may come before the copy has run at all
        return child
    try:
        _lead_group(0)
        for kind, *rest in actions:
            if kind == os.POSIX_SPAWN_DUP2:
                os.dup2(*rest)
            else:
                handle, path, flags, mode = rest
                os.dup2(os.open(path, flags, mode), handle)
        sys.argv = ["-c", *words[1:]]
        exec(words[0], {"__name__": "__main__"})  # noqa: S102 (tenv's own code, as it stands in the note of this user)
        sys.stdout.flush()
        os._exit(0)
    except SystemExit as end:
        os.write(2, f"{end}\n".encode())
    finally:
        os._exit(1)


def _lead_group(process: int) -> None:
    """Make a process the leader of a group; the other side may have done so."""
    try:
        os.setpgid(process, process)
    except OSError:
        return


def _text(data: bytearray) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


def of_program(status: int, stdout: str, stderr: str) -> str:
    """Return what a program gave."""
    return f"{status} {sha256(stdout.encode())} {sha256(stderr.encode())}"
