"""The user's own settings of tenv: ``config.toml`` in the configuration folder.

It holds settings of one user or machine that must not change the content of a lock: mirrors, and the scheduler that
gets the sources of builds. Root may name safe folders for all users of a machine in `SYSTEM_FILE`.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.link_mode import LINK_MODE, LinkMode
from tenv.core.size_text import parse_bytes
from tenv.core.toml_reader import Table, read_toml
from tenv.core.unpack_limits import UNPACK_LIMIT
from tenv.core.untrusted import STORAGE_EXAMPLE, is_storage, without_login

SAFE_FOLDERS = "TENV_SAFE_FOLDERS"
"""The variable that names safe folders, as PATH names folders, beside ``safe-folders`` of ``config.toml``."""

SYSTEM_FILE = Path("/etc/tenv/config.toml")
"""The settings of a machine: the folders that every user of it trusts. Only root may write it."""

PROJECT_FILE = "tenv.toml"
"""The file of a project's settings; an empty file makes a folder a project."""

SCHEDULER_EXAMPLE = "https://sccache.example.org"

_USER_KEYS = (
    *("mirrors", "sync", "safe-folders", "unpack-limit", "link-mode", "cache-storage"),
    *("distribute", "distribute-token"),
)
_URL = re.compile(r"(https?|file)://\S+")


def is_address(text: str) -> bool:
    """Return whether a text can be the address of a mirror."""
    return _URL.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of ``config.toml``."""

    mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Replacements for a prefix of a URL, by the prefix, best first."""
    sync: bool = False
    """Whether `tenv run` brings an environment up to date first, unless a project decides."""
    safe_folders: tuple[Path, ...] = ()
    """Folders that are trusted, whoever made their content."""
    unpack_limit: int | None = None
    """The size in bytes that one package may unpack to; None where the user sets none."""
    link_mode: LinkMode | None = None
    """How files of caches come into environments; None if the user does not set it."""
    cache_storage: str = ""
    """The shared storage of the compile cache; empty if the user does not set it."""
    distribute: str = ""
    """The address of the sccache-dist scheduler that gets the sources of builds; empty for none."""
    distribute_token: str = field(default="", repr=False)
    """The token by which that scheduler knows this user; empty for none. No output has it."""

    def served(self, url: str) -> tuple[str, ...]:
        """Return the URLs to fetch a file from: its mirrors, best first, or its own URL.

        The longest matching prefix counts, as in pixi. A URL with mirrors is itself used only if it is one of them.
        """
        for start in sorted(self.mirrors, key=len, reverse=True):
            bare = start.rstrip("/")
            if url == bare or url.startswith(f"{bare}/"):
                rest = url.removeprefix(bare)
                return tuple(mirror.rstrip("/") + rest for mirror in self.mirrors[start])
        return (url,)


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The content of a project's ``tenv.toml``."""

    default: str = ""
    """The target that commands take when none is named; empty for none."""
    sync: bool | None = None
    """Whether `tenv run` brings an environment up to date first; None if the project does not set it."""


def read_project_settings(folder: Path) -> ProjectSettings:
    """Read the settings of a project; a missing file means no settings.

    Raises:
        UsageError: The file can't be read, or has an unknown key.
    """
    path = folder / PROJECT_FILE
    if not path.is_file():
        return ProjectSettings()
    table = read_toml(path, UsageError)
    table.only(("default", "sync"))
    return ProjectSettings(table.text("default"), table.flag("sync") if "sync" in table.data else None)


def read_settings(folder: Path) -> Settings:
    """Read the settings in a configuration folder; a missing file means no settings.

    Raises:
        UsageError: The file can't be read, or has an unknown key.
    """
    path = folder / "config.toml"
    if not path.is_file():
        return Settings()
    table = read_toml(path, UsageError)
    table.only(_USER_KEYS)
    mirrors = table.table("mirrors")
    found = {start: mirrors.strings(start) for start in mirrors.data}
    for start, served in found.items():
        if not served:
            raise mirrors.fail(start, "it has no mirror", hint='"https://mirror.example.com/conda" is an example')
        for url in (start, *served):
            if not is_address(url):
                raise mirrors.fail(
                    start, f"`{url}` is not a URL", hint='"https://mirror.example.com/conda" is an example'
                )
    safe = tuple(_absolute(table.strings("safe-folders"), f"{path}: safe-folders"))
    limit = _size(table.text("unpack-limit"), f"{path}: unpack-limit") if "unpack-limit" in table.data else None
    mode = _link_mode(table.text("link-mode"), f"{path}: link-mode") if "link-mode" in table.data else None
    storage = table.text("cache-storage")
    if storage and not is_storage(storage):
        raise table.fail("cache-storage", f"`{storage}` is no storage", hint=f"{STORAGE_EXAMPLE} is an example")
    return Settings(found, table.flag("sync"), safe, limit, mode, storage, *_scheduler(table))


def _scheduler(table: Table) -> tuple[str, str]:
    """Return the address of the scheduler and its token; the token is a valid value of an HTTP header."""
    address, token = table.text("distribute"), table.text("distribute-token")
    if without_login(address) != address:
        hint = "`tenv config distribute-token -` reads the token of the scheduler from a line of its input"
        raise table.fail("distribute", "has a login", hint=hint)
    if address and not _is_server(address):
        raise table.fail("distribute", f"`{address}` is no scheduler", hint=f"{SCHEDULER_EXAMPLE} is an example")
    if not re.fullmatch(r"[!-~]*", token):
        raise table.fail("distribute-token", "a token is printable ASCII without blanks")
    return address, token


def _is_server(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = not parts.query and not parts.fragment and text.isprintable() and text.isascii()
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and plain and " " not in text


def safe_folders(folder: Path, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders that this user trusts, whoever made their content, by ``config.toml`` and the environment.

    Args:
        folder: The configuration folder.
        environ: The environment of the process.

    Raises:
        UsageError: The settings can't be read, or a folder is not named by its whole path.
    """
    named = [name for name in environ.get(SAFE_FOLDERS, "").split(os.pathsep) if name]
    return (*read_settings(folder).safe_folders, *_absolute(named, SAFE_FOLDERS))


def system_safe_folders() -> tuple[Path, ...]:
    """Return the folders that root names in `SYSTEM_FILE`; none where there is no such file.

    Raises:
        UsageError: Another user can write the file or a folder on its way, or it can't be read.
    """
    from tenv.core.other_users import open_part  # late: few machines have the file

    try:
        readable = stat.S_ISREG(SYSTEM_FILE.stat().st_mode) and os.access(SYSTEM_FILE, os.R_OK)
    except PermissionError:
        readable = False
    except OSError:  # there is none
        return ()
    if not readable:
        raise UsageError(
            f"{SYSTEM_FILE} can't be read by this user",
            hint=f"`chmod a+rx {SYSTEM_FILE.parent}; chmod a+r {SYSTEM_FILE}`, by root, opens it",
        )
    if part := open_part(SYSTEM_FILE):
        raise UsageError(
            f"{SYSTEM_FILE} is not used: {part} is not root's alone",
            hint=f"`chown root: {part}; chmod go-w {part}`, by root, closes it",
        )
    table = read_toml(SYSTEM_FILE, UsageError)
    table.only(("safe-folders",))
    return tuple(_absolute(table.strings("safe-folders"), f"{SYSTEM_FILE}: safe-folders"))


def unpack_limit(folder: Path, environ: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the size in bytes that one package may unpack to, by the environment or ``config.toml``, and its origin.

    Args:
        folder: The configuration folder.
        environ: The environment of the process.

    Returns:
        The size, None where the user sets none; ``environment``, the file, or ``default``.

    Raises:
        UsageError: The settings can't be read, or the value is not a size.
    """
    if given := environ.get(UNPACK_LIMIT, ""):
        return _size(given, UNPACK_LIMIT), "environment"
    found = read_settings(folder).unpack_limit
    return found, "default" if found is None else str(folder / "config.toml")


def link_mode(folder: Path, environ: Mapping[str, str]) -> tuple[LinkMode, str]:
    """Return how files of caches come into environments, by the environment or ``config.toml``, and its origin.

    Args:
        folder: The configuration folder.
        environ: The environment of the process.

    Returns:
        The way; ``environment``, the file, or ``default``.

    Raises:
        UsageError: The settings can't be read, or the value is unknown.
    """
    if given := environ.get(LINK_MODE, ""):
        return _link_mode(given, LINK_MODE), "environment"
    found = read_settings(folder).link_mode
    return (found, str(folder / "config.toml")) if found else (LinkMode.AUTO, "default")


def _link_mode(text: str, where: str) -> LinkMode:
    if text in tuple(LinkMode):
        return LinkMode(text)
    raise UsageError(f"{where}: expected auto or copy, got `{text}`", hint="`tenv config link-mode copy`")


def _size(text: str, where: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}", hint="such as 64GiB") from None


def _absolute(names: Iterable[str], where: str) -> Iterable[Path]:
    for name in names:
        path = Path(os.path.expanduser(name))  # noqa: PTH111 (`Path.expanduser` fails for an unknown user)
        if not path.is_absolute():
            raise UsageError(f"{where}: `{name}` is not a whole path", hint=f"such as {Path(name).absolute()}")
        yield path
