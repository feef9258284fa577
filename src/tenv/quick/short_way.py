"""The answers to short commands that need no more than what `create`, or the command itself, noted."""

import os
import sys

from tenv import __version__

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from tenv.quick.noted_environment import NotedEnvironment

__all__ = ["OFF", "answer"]

_POSIX = ("bash", "zsh", "sh", "dash", "ksh", "mksh")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-")
"""The characters that no POSIX shell needs quoted."""
_FLAGS = ("TENV_LOCKED", "TENV_OFFLINE")
_MODES = ("--locked", "--frozen")
_OPTIONS = ("--prefix", "--json", "--quiet")
_NARROW = 60
"""Columns of a terminal below which tables are laid out by the program."""
_VERDICTS = {"yes", "no", "unknown"}
_GIVEN = "_TENV_GIVEN_"
OFF = "TENV_QUICK"
"""The variable that turns this way off with the value 0."""


def answer(arguments: "list[str]") -> bool:
    """Do a command, if that is possible without the whole program.

    Args:
        arguments: The words of the command line after ``tenv``.

    Returns:
        Whether the command is done, with status 0; `run` has then become another program. False if nothing was done.

    Raises:
        SystemExit: The command is done, with another status.
    """
    if arguments in (["--version"], ["-V"], ["version"]):  # scripts use it to detect tenv
        return _print(f"{_version()}\n", plain=True)
    if sys.platform != "linux" or not arguments or os.environ.get(OFF) == "0":
        return False
    if arguments[0] == "check-driver":
        from tenv.quick.noted_answer import answer as noted

        status = noted(arguments)
        if status:
            sys.exit(status)
        return status is not None
    do = _COMMANDS.get(arguments[0])
    if do is None or "TENV_SAFE_FOLDERS" in os.environ:
        return False
    if any(os.environ.get(name, "") not in ("", "0", "1") for name in _FLAGS):
        return False
    return do(arguments[1:])


def _version() -> str:
    from tenv.quick.source_commit import source_commit

    commit = source_commit()
    return f"tenv {__version__} ({commit[:12]})" if commit else f"tenv {__version__}"


def _find(target: str) -> "NotedEnvironment | None":
    from tenv.quick.noted_environment import has_files_of_lock, look
    from tenv.quick.working_folders import find_folders, is_name  # late: as few modules as a command needs

    places = find_folders()
    name = target or (places.default if places else "")
    if places is None or not is_name(name):
        return None
    prefix = f"{places.home}/{name}"
    found = look(prefix, places.data)
    if found is None or found.target != name:
        return None
    return found if has_files_of_lock(prefix, places.locks_of(places.home, name)) else None


def _create(words: "list[str]") -> bool:
    from tenv.quick.noted_environment import has_nothing_to_do, look
    from tenv.quick.working_folders import find_folders, is_name

    names = [word for word in words if word not in _MODES]
    if len(names) != 1 or len(words) > len(names) + 1 or os.environ.get("TENV_FROZEN", "") not in ("", "0"):
        return False
    places = find_folders() if is_name(names[0]) else None
    if places is None:
        return False
    prefix = f"{places.home}/{names[0]}"
    found = look(prefix, places.data)
    if found is None or found.target != names[0] or not has_nothing_to_do(prefix, __version__, places.searched):
        return False
    line = f"{names[0]} is ready in {prefix}: nothing to do"
    return line.isascii() and line.isprintable() and _fits([line], [], 2) and _tell(f"{line}\n")


def _run(words: "list[str]") -> bool:
    target = "" if words[:1] == ["--"] else words[0] if words else ""
    command = words[1:]
    if command[:1] == ["--"] and target:
        command = command[1:]
    elif command[:1] and command[0] in _OPTIONS and target:
        return False
    if not command or not command[0] or target.startswith("-") or words[0] == "":
        return False
    found = _find(target)
    if found is None:
        return False
    environment = _applied(found)
    program = _program(command[0], environment.get("PATH", ""))
    return bool(program) and _become(program, command, environment)


def _applied(found: "NotedEnvironment") -> "dict[str, str]":
    """Return the environment variables of this process with the changes of an activation."""
    new = dict(os.environ)
    for change in found.changes:
        name, value, action = change["name"], change["value"], change["action"]
        if change.get("default"):  # a value of the user stays
            if name in new and new[name] != new.get(_GIVEN + name):
                continue
            new[_GIVEN + name] = value
        old = new.pop(name, None)
        between = change.get("separator", os.pathsep)
        if action == "set":
            new[name] = value
        elif action == "prepend":
            new[name] = f"{value}{between}{old}" if old else value
        elif action == "append":
            new[name] = f"{old}{between}{value}" if old else value
    return new


def _program(name: str, path: str) -> str:
    """Return the file that a command starts, as `shutil.which`; empty if there is none."""
    folders = [""] if "/" in name else path.split(os.pathsep)
    for folder in folders if path or "/" in name else ():
        file = os.path.join(folder, name)
        if os.path.exists(file) and os.access(file, os.X_OK) and not os.path.isdir(file):
            return os.path.abspath(file)
    return ""


def _become(program: str, command: "list[str]", environment: "dict[str, str]") -> bool:
    """Become another program; returns False where the system refuses, so that the program of tenv reports it."""
    import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations of all of them

    numbers = (_signal.SIGPIPE, _signal.SIGXFSZ)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed by the caller
            stream.flush()
    for number in numbers:  # Python ignores them, and an ignored signal stays so in a new program
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execve(program, [program, *command[1:]], environment)  # noqa: S606 (the point of this function)
    except (OSError, ValueError):
        for number in numbers:
            _signal.signal(number, _signal.SIG_IGN)
        return False


def _activate(words: "list[str]") -> bool:
    shell = ""
    if words[:1] == ["--shell"]:
        words = words[2:] + words[:2]
    if words[1:2] == ["--shell"] and words[2:] and words[2] in _POSIX:
        words, shell = words[:1], words[2]
    if len(words) > 1 or (words and words[0][:1] in ("", "-")) or (not shell and _parent() not in _POSIX):
        return False
    found = _find(words[0] if words else "")
    script = f"{found.prefix}/tenv-meta/activate.sh" if found else ""
    if not script or not os.path.isfile(script) or not _PLAIN.issuperset(script):
        return False
    return _print(f". {script}\n")


def _parent() -> str:
    """Return the name of the program that started this one."""
    try:
        with open(f"/proc/{os.getppid()}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[0].partition("(")[2]
    except OSError:
        return ""


def _list(words: "list[str]") -> bool:
    from tenv.core.size_text import format_bytes
    from tenv.quick.noted_environment import has_files_of_lock, look
    from tenv.quick.working_folders import find_folders, is_name

    places = None if words else find_folders()
    if places is None:
        return False
    rows: list[tuple[str, ...]] = [("TARGET", "STATE", "PYTHON", "SIZE", "PREFIX")]
    for home in dict.fromkeys((places.home, places.outer)):
        names = _environments(home)
        if names is None:
            return False
        for name in names:
            prefix = f"{home}/{name}"
            found = look(prefix, places.data)
            if (
                found is None
                or not is_name(found.target)
                or not has_files_of_lock(prefix, places.locks_of(home, found.target))
                or _holds_torch(prefix)
            ):
                return False
            rows.append((found.target, "ready", found.python, format_bytes(found.bytes), prefix))
    if len(rows) == 1:  # the whole program says what to do
        return False
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if not all(line.isascii() and line.isprintable() for line in lines) or not _fits(lines, rows):
        return False
    return _print("\n".join(lines) + "\n", plain=True)


def _environments(home: str) -> "list[str] | None":
    """Return the names of the environments in a folder, sorted; None where the rights hide some."""
    try:
        names = sorted(name for name in os.listdir(home) if not name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError:
        return None
    if any(os.path.isdir(f"{home}/{name}") and not os.access(f"{home}/{name}", os.X_OK) for name in names):
        return None
    return [name for name in names if os.path.lexists(f"{home}/{name}/tenv-meta")]


def _holds_torch(prefix: str) -> bool:
    """Return whether a torch is installed in an environment: one that `tenv build` made has a column of its own."""
    for folder in os.listdir(f"{prefix}/lib") if os.path.isdir(f"{prefix}/lib") else ():
        site = f"{prefix}/lib/{folder}/site-packages"
        if os.path.isdir(site) and any(name.startswith(("torch-", "torch.egg-link")) for name in os.listdir(site)):
            return True
    return False


def _fits(lines: "list[str]", rows: "list[tuple[str, ...]]", stream: int = 1) -> bool:
    """Return whether a terminal shows the lines as they are: it folds long ones, and colors the words of verdicts."""
    try:
        if not os.isatty(stream):
            return True
        columns = os.get_terminal_size(stream).columns
    except OSError:
        return False
    words = {cell for row in rows for cell in row}
    return _NARROW <= columns >= max(map(len, lines)) and "COLUMNS" not in os.environ and not words & _VERDICTS


def _print(text: str, *, plain: bool = False) -> bool:
    """Write to standard output; returns False if it is closed, a terminal where that matters, or can't be written.

    Args:
        text: The whole output.
        plain: Whether a terminal gets the same text as a file.
    """
    out = sys.stdout
    if out is None or out is not sys.__stdout__:
        return False
    try:
        if not plain and os.isatty(1):
            return False
        data = text.encode("ascii")
        return os.write(1, data) == len(data)
    except (OSError, ValueError):
        return False


def _tell(text: str) -> bool:
    """Write to standard error; returns False if it is closed or can't be written."""
    if sys.stderr is None or sys.stderr is not sys.__stderr__:
        return False
    try:
        return os.write(2, text.encode("ascii")) == len(text)
    except (OSError, ValueError):
        return False


_COMMANDS = {"run": _run, "activate": _activate, "list": _list, "create": _create}
"""Every command that has a short way."""
