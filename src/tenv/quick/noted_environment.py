"""Whether an environment is ready, this user's, where it was made, as it was made, and has the files of its lock."""

import os
import stat

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from typing import Any

__all__ = ["NotedEnvironment", "has_files_of_lock", "has_nothing_to_do", "look", "parse", "sha256"]

_MOST = 16 * 1024 * 1024
_META = "tenv-meta"
_SCHEMA = 2
_ACTIONS = ("set", "prepend", "append", "unset")
_WIDTHS = {"conda": 3}
_WIDTH = 2
_TEXTS = ("target", "lock", "manifest", "platform", "python", "prefix", "made", "written_by")
_LISTS = ("foreign", "features")
_HEX = frozenset("0123456789abcdef")
_ID = 32
_HASH = "sha256:"


class NotedEnvironment:
    """An environment that may be used as it is.

    Attributes:
        prefix: Its folder.
        target: Its target.
        python: Its Python minor.
        bytes: Its size.
        changes: The changes of its activation, in order.
    """

    __slots__ = ("bytes", "changes", "prefix", "python", "target")

    def __init__(self, prefix: str, state: "dict[str, Any]", changes: "list[dict[str, str]]") -> None:
        self.prefix = prefix
        self.target = state["target"]
        self.python = state["python"]
        self.bytes = state["bytes"]
        self.changes = changes


def look(prefix: str, data: str) -> "NotedEnvironment | None":
    """Return an environment that may be used as it is; None for any other, whatever the reason.

    Args:
        prefix: The folder, in its plain form, in a folder ``envs``.
        data: The user's data folder of tenv.
    """
    try:
        return _look(prefix, data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def parse(text: bytes) -> "Any":
    """Return the value of a JSON text; raises ValueError for what is none.

    The scanner in C is what `json` calls itself. To import `json` costs as much as all the rest of a short command,
    since it compiles regular expressions.
    """
    try:
        from _json import make_scanner
    except ImportError:
        from json import loads

        return loads(text)
    whole = text.decode().rstrip()
    try:
        value, end = make_scanner(_Decoder)(whole, 0)  # type: ignore[arg-type]
    except (StopIteration, SystemError):  # the latter: it has no class for its error while `json` is not loaded
        raise ValueError("not JSON") from None
    if end != len(whole):
        raise ValueError("more than JSON")
    return value


class _Decoder:
    """The settings of `json.JSONDecoder`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _look(prefix: str, data: str) -> "NotedEnvironment | None":
    if not _is_real(prefix) or not _is_marked(prefix, data):
        return None
    state = _read_state(prefix)
    if state is None or os.path.lexists(f"{prefix}/{_META}/system.json"):
        return None
    made = _read(f"{prefix}/{_META}/made.json")
    if not state["made"] or sha256(made) != state["made"]:
        return None
    if state["python"] and not os.access(f"{prefix}/bin/python", os.X_OK):
        return None
    activation = _read(f"{prefix}/{_META}/activation.json")
    for name, value in parse(made).items():
        if not _is_as_made(prefix, name, value, activation):
            return None
    changes = _changes(parse(activation))
    return None if changes is None else NotedEnvironment(prefix, state, changes)


def _changes(data: "dict[str, Any]") -> "list[dict[str, str]] | None":
    """Return the changes of an activation; None where one is not as tenv writes it, or system tools are watched."""
    changes: list[dict[str, str]] = data["changes"]
    texts = [data["target"], data["prefix"]]
    for row in [*changes, *data.get("left-out", [])]:
        if row["action"] not in _ACTIONS or not (row["name"].isascii() and row["name"].isidentifier()):
            return None
        texts += [row["value"], row["reason"], row.get("separator", ":")]
    return None if data.get("watches") or any(type(text) is not str or "\0" in text for text in texts) else changes


def _is_real(prefix: str) -> bool:
    """Return whether no link leads elsewhere from ``.tenv`` on, or from the prefix in the user's data folder on."""
    head, found, tail = prefix.rpartition("/.tenv/")
    above, below = (head, f".tenv/{tail}") if found else os.path.split(prefix)
    return os.path.realpath(prefix) == f"{os.path.realpath(above).rstrip('/')}/{below}"


def _is_marked(prefix: str, data: str) -> bool:
    name = _read(f"{prefix}/{_META}/id").decode().strip()
    if len(name) != _ID or not _HEX.issuperset(name):
        return False
    mark = f"{data}/marks/{name}"
    if os.stat(mark).st_uid != os.geteuid():
        return False
    lines = _read(mark).decode("utf-8", "surrogateescape").split("\n")
    info = os.stat(prefix)
    return len(lines) > len(("prefix", "owner", "inode")) and (
        os.path.samefile(lines[0], prefix) and int(lines[1]) == info.st_uid and int(lines[2]) == info.st_ino
    )


def _read_state(prefix: str) -> "dict[str, Any] | None":
    state = parse(_read(f"{prefix}/{_META}/state.json"))
    if state.pop("state") != "ready" or state.pop("schema") != _SCHEMA or type(state["bytes"]) is not int:
        return None
    if not all(type(state[name]) is str for name in _TEXTS) or not all(_are_texts(state[name]) for name in _LISTS):
        return None
    for name in set(state).difference(_TEXTS, _LISTS, ("bytes",)):
        width = _WIDTHS.get(name, _WIDTH)
        if not all(_are_texts(row) and len(row) == width for row in state[name].values()):
            return None
    return dict(state)


def _are_texts(row: object) -> bool:
    return type(row) is list and all(type(value) is str for value in row)


def _is_as_made(prefix: str, name: str, value: str, activation: bytes) -> bool:
    """Return whether a file that `create` wrote is what it was; for a program, whether it is there."""
    path = f"{prefix}/{name}"
    folder, _, file = name.rpartition("/")
    if folder == _META and file.startswith("activat"):
        if not os.path.lexists(path):
            return not file.endswith(".json")
        data = activation if file == "activation.json" else _read(path)
        return not os.path.islink(path) and f"{_HASH}{sha256(data)}" == value
    if name == "pyvenv.cfg":
        return f"{_HASH}{sha256(_read(path))}" == value
    return name.partition("/")[0] not in ("bin", "Scripts") or os.path.exists(path)


def has_files_of_lock(prefix: str, locks: "list[str] | None") -> bool:
    """Return whether the lock that counts is the one that was noted as that of the environment, and is unchanged.

    Args:
        prefix: The environment.
        locks: The files that may be the lock, nearest first.
    """
    note = f"{prefix}/{_META}/lock-note"
    try:
        lines = _read(note).decode().split("\n")[:-1]
        at = next(index for index, lock in enumerate(locks or ()) if os.path.isfile(lock))
        now = os.stat(locks[at]) if locks else None
        noted = os.stat(note).st_mtime_ns
    except (OSError, ValueError, StopIteration):
        return False
    if locks is None or now is None or lines[1:2] != [""]:
        return False
    return lines == [locks[at], "", str(now.st_size), *locks[:at]] and now.st_mtime_ns == noted


def has_nothing_to_do(prefix: str, version: str, searched: "list[str]") -> bool:
    """Return whether all that `create` looked at, when it had nothing to do, is as it was.

    Args:
        prefix: The environment.
        version: The version of tenv.
        searched: The folders with manifests and locks, nearest first.
    """
    meta = f"{prefix}/{_META}"
    try:
        lines = _read(f"{meta}/create-note").decode().split("\n")
        end = lines.index("")
        files, last = lines[end + 1 : -1], lines[-1]
        if lines[:end] != [version, os.uname().machine, *searched] or not files or last:
            return False
        if any(name.startswith(".") for folder in (meta, f"{meta}/locks") for name in os.listdir(folder)):
            return False  # of a command that was killed, or that writes now
        return all(_is_as_noted(*line.rsplit(" ", 2)) for line in files)
    except (OSError, ValueError, TypeError):
        return False


def _is_as_noted(path: str, size: str, time: str) -> bool:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return (size, time) == ("-1", "0")
    return (size, time) == (str(0 if stat.S_ISDIR(info.st_mode) else info.st_size), str(info.st_mtime_ns))


def _read(path: str) -> bytes:
    """Return the bytes of a regular file; raises OSError for another kind, and ValueError for one that is too large."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_size > _MOST:
            raise ValueError(path)
        return file.read(_MOST)


def sha256(data: bytes) -> str:
    """Return a digest in hex, by Python's own module where there is one: `hashlib` loads OpenSSL for it."""
    try:
        digest = __import__("_sha256").sha256  # Python 3.11
    except ImportError:
        try:
            digest = __import__("_sha2").sha256  # Python 3.12 and newer
        except ImportError:
            from hashlib import sha256 as digest
    found: str = digest(data).hexdigest()
    return found
