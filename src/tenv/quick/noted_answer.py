"""Answer a command that only reads the machine by the note of its last answer, if all that it looked at is as it was.

No look is left out and none is remembered: each is made anew, programs among them, and the noted answer counts only
where all of them give what they gave. What the answer depends on besides stands in the note's key: the words, the
environment variables, the folder, the streams, the user, the Python and the version of tenv.
"""

import io
import os
import stat
import sys

from tenv import __version__
from tenv.quick.looks import LOOKS, Program, environment
from tenv.quick.noted_environment import parse, sha256
from tenv.quick.working_folders import own_folder

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FOLDER", "MOST", "answer", "is_noted", "key_of", "place_of"]

FOLDER = "answers"
"""The folder of the notes, in the user's data folder of tenv."""
MOST = 8 * 1024 * 1024
"""Maximum bytes of a note."""
_OPTIONS = frozenset(("--json", "--quiet", "-q", "--build-only"))


def is_noted(words: "list[str]") -> bool:
    """Return whether the answer to a command line is noted: it reads nothing but the machine and tenv's own files."""
    return words[:1] == ["check-driver"] and all(
        word in _OPTIONS or (word and not word.startswith("-")) for word in words[1:]
    )


def key_of(words: "list[str]") -> "list[str] | None":
    """Return what an answer depends on besides looks at files; None if it is not to be noted."""
    streams = ((sys.stdout, sys.__stdout__, 1), (sys.stderr, sys.__stderr__, 2))
    if any(stream is None or stream is not first for stream, first, _ in streams) or not os.environ.get("HOME"):
        return None
    try:
        shown = [_width(number) for _, _, number in streams]
        here = os.getcwd()
    except OSError:
        return None
    processors = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    machine = [str(os.geteuid()), str(os.getuid()), *os.uname(), libc, processors]
    python = [__version__, sys.version, sys.executable, *sys.path, repr(sys.flags)]
    variables = [f"{name}={value}" for name, value in sorted(environment().items())]
    return [*words, "", sys.argv[0], here, *shown, *machine, *python, "", *variables]


def _width(number: int) -> str:
    return str(os.get_terminal_size(number).columns) if os.isatty(number) else ""


def place_of(key: "list[str]") -> "tuple[str, str] | None":
    """Return the folder and the name of the note for a key; None where there is no folder for it.

    The name is a digest, also within the note: the variables of a user's shell may hold passwords.
    """
    data = own_folder("XDG_DATA_HOME", ".local/share")
    return (f"{data}/{FOLDER}", sha256("\0".join(key).encode("utf-8", "surrogateescape"))) if data else None


def answer(words: "list[str]") -> "int | None":
    """Print the noted answer to a command line.

    Returns:
        The exit status; None if nothing was printed, since there is no note or something is not as it was.
    """
    try:
        key = key_of(words) if is_noted(words) else None
        place = place_of(key) if key else None
        note = _read(*place) if place else None
        if place is None or note is None or note["key"] != place[1] or not is_as_noted(note):
            return None
        writes, status = [(int(number), str(text)) for number, text in note["writes"]], int(note["status"])
        if status not in (0, 1) or not all(text.isascii() for _, text in writes):
            return None
    except (OSError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError, RecursionError):
        return None
    try:
        _print(writes)
    except (OSError, ValueError):
        sys.stdout = _fresh(sys.stdout)  # the program meets the same and says so, without what is left in this stream
        return None
    return status


def _fresh(stream: "Any") -> "Any":
    """Return a stream to the same file with the same settings, in which nothing is left."""
    raw = io.FileIO(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        raw if stream.write_through else io.BufferedWriter(raw),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _print(writes: "list[tuple[int, str]]") -> None:
    """Print the texts of an answer; raises OSError or ValueError before standard error has one where output fails.

    Only where both streams are one file can the order between them be seen, and there both fail.
    """
    apart = not os.path.sameopenfile(1, 2)
    for number, text in writes:
        if number == 1:
            sys.stdout.write(text)
        elif not apart:
            _tell(text)
    sys.stdout.flush()
    for number, text in writes if apart else ():
        if number != 1:
            _tell(text)


def _tell(text: str) -> None:
    """Write to standard error, whose failure is no error (`tenv.cli.output.tell`)."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def is_as_noted(note: "dict[str, Any]") -> bool:
    """Return whether every look of a note gives what it gave."""
    running: list[tuple[Program, Any]] = []
    try:
        for words, changes, given in note["programs"]:
            running.append((Program(words, changes), given))
        same = all(LOOKS[kind](path) == given for kind, path, given in note["looks"])
        return same and all(program.end() == given for program, given in running)
    finally:
        for program, _ in running:
            program.stop()


def _read(folder: str, name: str) -> "Any":
    """Return a note of this user alone; None where there is none or another user could have written it."""
    if not is_own_folder(folder):
        return None
    handle = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        info = os.fstat(handle)
        if not _is_own(info, stat.S_ISREG) or info.st_size > MOST:
            return None
        return parse(file.read(MOST))


def is_own_folder(folder: str) -> bool:
    """Return whether the folder of the notes is one, no link to one, this user's, and writable by nobody else."""
    owner = os.stat(os.path.dirname(folder)).st_uid
    return owner == os.geteuid() and _is_own(os.lstat(folder), stat.S_ISDIR)


def _is_own(info: os.stat_result, is_kind: "Any") -> bool:
    """Return whether a file is of a kind, this user's, and writable by nobody else."""
    return is_kind(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & 0o022
