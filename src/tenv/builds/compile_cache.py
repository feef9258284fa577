"""The compile cache of a build: ccache or sccache, set up so that a second checkout hits the first one's entries."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.missing import Missing
from tenv.core.untrusted import READ_ONLY, S3_OPTIONS, without_login
from tenv.core.user_folders import user_home

LOG = "CCACHE_STATSLOG"
"""The file in which ccache (4.4 and later) notes the result of each compilation: of this build alone, while the
counts of the cache are of all builds that use it."""

_SIZE = "50G"
_SECONDS = 20.0
PREFIX_MAP = "-fmacro-prefix-map"
_LANGUAGES = ("C", "CXX", "CUDA")
_CCACHE_ROWS = re.compile(r"^(direct_cache_hit|preprocessed_cache_hit|cache_miss)\t(\d{1,18})$", re.MULTILINE)
_UNREACHED = re.compile(r"(remote|secondary)_storage_(error|timeout)")
_NOTED = {"direct_cache_hit": "hit", "preprocessed_cache_hit": "hit", "cache_miss": "miss"}


@dataclass(frozen=True, slots=True)
class CacheChoice:
    """The compile cache that a build takes."""

    name: str
    """``ccache``, ``sccache`` or ``off``."""
    program: Path | None
    """The program; None without one, or where none is wanted."""
    storage: str = ""
    """The storage that machines share; empty for none."""


_BY_SCCACHE = ("s3", "gs", "memcached", "gha", "http", "https", "rediss")
"""The storages for which ``auto`` is sccache, by the scheme. Redis is not among them: sccache (0.16) waits for a minute
at each file when Redis ends in mid-build, while ccache goes on at once."""


def choose_cache(
    wanted: str, environ: Mapping[str, str], storage: str = "", *, distributes: bool = False
) -> CacheChoice:
    """Return the cache of a target: its program is searched in the environment, then on PATH.

    Args:
        wanted: The cache of the manifest.
        environ: The environment of the build.
        storage: The storage that machines share; empty for none.
        distributes: Whether the user names a scheduler, which sccache alone asks.
    """
    if wanted == "off":
        return CacheChoice("off", None)
    if wanted == "auto":
        wanted = "sccache" if distributes or storage.partition("://")[0] in _BY_SCCACHE else "ccache"
        without = not storage or stores("ccache", storage)
        if wanted == "sccache" and without and process.find(wanted, environ.get("PATH")) is None:
            wanted = "ccache"
    found = process.find(wanted, environ.get("PATH"))
    return CacheChoice(wanted, Path(found) if found else None, storage)


def cache_variables(choice: CacheChoice, checkout: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make a build use a cache; variables of the user stay.

    Paths below the checkout are hashed relative to it, and the working folder is not hashed, so that another checkout
    hits. The compiler counts by its content: an environment that is made again has other times and the same bytes.
    """
    if choice.program is None:
        return {}
    launchers = {f"CMAKE_{language}_COMPILER_LAUNCHER": str(choice.program) for language in _LANGUAGES}
    if choice.name == "ccache":
        launchers |= {
            "CCACHE_BASEDIR": str(checkout),
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_COMPILERCHECK": "content",
            "CCACHE_MAXSIZE": _SIZE,
        }
    else:
        launchers |= {"SCCACHE_CACHE_SIZE": _SIZE, "SCCACHE_BASEDIRS": str(checkout)}
    launchers |= storage_variables(choice.name, choice.storage, environ)
    return {name: value for name, value in launchers.items() if name not in environ}


def path_flags(checkout: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return CFLAGS and CXXFLAGS by which `__FILE__` is relative to a checkout, for compilers that can do that.

    PyTorch's kernels for AVX2 and AVX512 are included by their whole paths, which their messages then hold: the objects
    of another checkout would differ. ccache does not hash the value of this option (GCC 8 and later, clang 10).
    """
    found = {}
    for variable, compiler, default in (("CFLAGS", "CC", "cc"), ("CXXFLAGS", "CXX", "c++")):
        option, flags = f"{PREFIX_MAP}={checkout}=.", environ.get(variable, "")
        words = [*process.command_words(environ.get(compiler, "") or default), option, "-E", "-x", "c", os.devnull]
        answer = process.run(words, environment=environ, timeout=_SECONDS)
        if PREFIX_MAP not in flags and not isinstance(answer, Missing) and answer.status == 0:
            found[variable] = f"{flags} {option}".strip()
    return found


class Counts(NamedTuple):
    """The counts of a compile cache."""

    hits: int
    """The compilations that it has served."""
    misses: int
    """The compilations that it had to run."""
    elsewhere: int = 0
    """The compilations that ran on servers of a scheduler."""
    returned: int = 0
    """The compilations that ran here since no server took them."""


def counts(choice: CacheChoice, environ: Mapping[str, str]) -> Counts | None:
    """Return the counts of a cache; None where it has none."""
    if choice.program is None:
        return None
    words = ["--print-stats"] if choice.name == "ccache" else ["--show-stats", "--stats-format", "json"]
    answer = process.run([str(choice.program), *words], environment=environ, timeout=_SECONDS)
    if isinstance(answer, Missing) or answer.status:
        return None
    if choice.name == "ccache":
        rows = {name: int(number) for name, number in _CCACHE_ROWS.findall(answer.stdout)}
        found = rows.get("direct_cache_hit", 0) + rows.get("preprocessed_cache_hit", 0)
        return Counts(found, rows.get("cache_miss", 0)) if rows else None
    try:
        stats = json.loads(answer.stdout)["stats"]
        found, missed = (sum(stats[name]["counts"].values()) for name in ("cache_hits", "cache_misses"))
        elsewhere, returned = sum(stats.get("dist_compiles", {}).values()), stats.get("dist_errors", 0)
        return Counts(int(found), int(missed), int(elsewhere), int(returned))
    except (ValueError, KeyError, TypeError, AttributeError):  # of a release whose form is another
        return None


_LINES = 3
"""Of what a cache prints: the first may name no more than the server, and the next has the cause."""


def try_compile(cache: CacheChoice, environ: Mapping[str, str], place: Path, seconds: float) -> str:
    """Return why a compile cache does not compile below a folder, without logins; empty where it does."""
    if socket := environ.get("SCCACHE_SERVER_UDS"):
        Path(socket).parent.mkdir(parents=True, exist_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        answer = _trial(cache, environ, Path(folder), seconds)
    if isinstance(answer, Missing):
        return answer.reason
    if not answer.status:
        return ""
    lines = [line for line in answer.stderr.splitlines() if line.strip()]
    return without_login(" ".join(lines[:_LINES])) or f"it ended with {answer.status}"


def _trial(cache: CacheChoice, environ: Mapping[str, str], folder: Path, seconds: float) -> process.Completed | Missing:
    """Compile a line of C in a folder."""
    (folder / "probe.c").write_text("int tenv_probe;\n", encoding="utf-8")
    words = [
        str(cache.program),
        *process.command_words(environ.get("CC", "") or "cc"),
        "-c",
        "probe.c",
        "-o",
        "probe.o",
    ]
    return process.run(words, environment=environ, folder=folder, timeout=seconds)


def unreached(cache: CacheChoice, environ: Mapping[str, str], place: Path, seconds: float) -> str:
    """Return why ccache does not reach its storage; empty where it does, and for another cache.

    It compiles all the same, and its counts of a build do not show it. An empty cache of its own makes it ask the
    storage, and its log has the cause in the line before it gives the storage up (ccache 4.14).
    """
    if cache.name != "ccache" or not environ.get("CCACHE_REMOTE_STORAGE"):
        return ""
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        notes, log = folder / "notes", folder / "log"
        own = {"CCACHE_DIR": str(folder / "cache"), LOG: str(notes), "CCACHE_LOGFILE": str(log)}
        _trial(cache, {**environ, **own}, folder, seconds)
        noted, lines = (_text_of(file).splitlines() for file in (notes, log))
    if not (results := [line for line in noted if _UNREACHED.fullmatch(line)]):
        return ""
    given_up = next((index for index, line in enumerate(lines) if "Marking remote storage" in line), 0)
    causes = [line.partition("] ")[2] for line in lines[max(0, given_up - 2) : given_up] if "ailed" in line]
    return without_login(causes[0]) if causes else results[0]


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The hits and misses of a compile cache for some compilations."""

    hits: int
    """How many came out of it."""
    misses: int
    """How many it had to run."""
    served: frozenset[str] = frozenset()
    """The names of sources that came out of it; empty where it does not name them."""
    missed: frozenset[str] = frozenset()
    """The names of sources that it had to compile; a name may be in both."""
    elsewhere: int = 0
    """How many ran on servers of a scheduler."""
    returned: int = 0
    """How many ran here since no server took them."""

    @property
    def count(self) -> int:
        """The number of compilations."""
        return self.hits + self.misses

    @property
    def percent(self) -> float:
        """How many of a hundred came out of the cache."""
        return 100 * self.hits / self.count if self.count else 0.0


def noted_use(log: Path) -> CacheUse | None:
    """Return the notes of ccache in a file, source by source; None without any."""
    lines = _text_of(log).splitlines()
    found: dict[str, list[str]] = {"hit": [], "miss": []}
    source = ""
    for line in lines:
        source = PurePath(line[2:]).name if line.startswith("# ") else source
        if line in _NOTED:
            found[_NOTED[line]].append(source)
    if not any(found.values()):
        return None
    served, missed = (frozenset(filter(None, names)) for names in found.values())
    return CacheUse(len(found["hit"]), len(found["miss"]), served, missed)


def use_since(choice: CacheChoice, environ: Mapping[str, str], log: Path, before: Counts | None) -> CacheUse:
    """Return the hits and misses since `counts` was called and the log was removed.

    Args:
        choice: The cache.
        environ: The environment of the build.
        log: The notes of ccache.
        before: The counts before; None where they are not known.
    """
    if noted := noted_use(log):
        return noted
    after = counts(choice, environ)
    if before is None or after is None:
        return CacheUse(0, 0)
    since = Counts(*(max(0, later - earlier) for later, earlier in zip(after, before, strict=True)))
    return CacheUse(since.hits, since.misses, elsewhere=since.elsewhere, returned=since.returned)


STORED_BY_CCACHE = ("http", "https", "redis", "file")
"""The storages that ccache knows, by the scheme of their addresses."""

SERVER = "tenv-sccache-"
"""The beginning of the names of sockets, and of files, of sccache's servers."""

_LONGEST_SOCKET = 100
"""Bytes; unix(7) allows 107."""


_READ_ONLY = f"#{READ_ONLY}"

_MODES = {"BUCKET": "S3", "DIR": "LOCAL"}
"""By the second word of the first variable of a storage: the word in the variable for its mode, if it is another."""


def stores(cache: str, storage: str) -> bool:
    """Return whether a compile cache knows a storage: sccache knows all that a manifest can name."""
    return cache != "ccache" or storage.partition("://")[0] in STORED_BY_CCACHE


def storage_variables(cache: str, storage: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a compile cache shares a storage; empty without one.

    Logins are not among them: the programs read those from variables of their own (`AWS_ACCESS_KEY_ID`,
    `SCCACHE_REDIS_PASSWORD`, `SCCACHE_WEBDAV_TOKEN`), which the user's shell has.

    Args:
        cache: ``ccache`` or ``sccache``.
        storage: The storage in the manifest or the user's settings.
        environ: The environment; a storage that the user's shell names for this cache wins.
    """
    if not storage or not stores(cache, storage):
        return {}
    storage, read_only = storage.removesuffix(_READ_ONLY), storage.endswith(_READ_ONLY)
    if cache == "ccache":
        value = _of_ccache(storage) + ("|read-only" if read_only else "")
        return {} if "CCACHE_REMOTE_STORAGE" in environ else {"CCACHE_REMOTE_STORAGE": value}
    found = _of_sccache(storage)
    if read_only:
        kind = next(name.split("_")[1] for name in found if name.startswith("SCCACHE_"))
        found[f"SCCACHE_{_MODES.get(kind, kind)}_RW_MODE"] = "READ_ONLY"
    if any(name in environ for name in (*found, "SCCACHE_CONF", "SCCACHE_SERVER_PORT", "SCCACHE_SERVER_UDS")):
        return {}
    return {**found, "SCCACHE_SERVER_UDS": socket_for(found, environ)}


def _of_ccache(storage: str) -> str:
    # ccache gives no password to Redis where a colon stands before it and no user does.
    storage = re.sub(r"^(rediss?://):(?=[^/@]*@)", r"\1", storage)
    return storage.replace("file://", "file:", 1) if storage.startswith("file://") else storage


def _of_sccache(storage: str) -> dict[str, str]:
    if storage == "gha":
        return {"SCCACHE_GHA_ENABLED": "true"}
    parts = urlsplit(storage)
    below, options = parts.path.strip("/"), dict(parse_qsl(parts.query))
    scheme = parts.scheme
    if scheme == "s3":
        found = {"SCCACHE_BUCKET": parts.netloc, "SCCACHE_S3_KEY_PREFIX": below}
        found |= {f"SCCACHE_{name.upper()}": options.get(name, "") for name in S3_OPTIONS[:2]}
        found["SCCACHE_S3_USE_SSL"] = options.get("use_ssl", "")
    elif scheme == "gs":
        found = {
            "SCCACHE_GCS_BUCKET": parts.netloc,
            "SCCACHE_GCS_KEY_PREFIX": below,
            "SCCACHE_GCS_RW_MODE": "READ_WRITE",
        }
    elif scheme in ("redis", "rediss"):
        found = {"SCCACHE_REDIS_ENDPOINT": f"{scheme}://{parts.netloc}", "SCCACHE_REDIS_DB": below}
    elif scheme == "memcached":
        found = {"SCCACHE_MEMCACHED_ENDPOINT": f"tcp://{parts.netloc}", "SCCACHE_MEMCACHED_KEY_PREFIX": below}
    elif scheme == "file":
        found = {"SCCACHE_DIR": parts.path}
    else:
        found = {"SCCACHE_WEBDAV_ENDPOINT": f"{scheme}://{parts.netloc}", "SCCACHE_WEBDAV_KEY_PREFIX": below}
    return {name: value for name, value in found.items() if value}


def socket_for(settings: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the socket of a server for these settings alone: one that runs already would keep its own storage."""
    digest = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()[:12]
    *_, home = folders = socket_folders(environ)
    for folder in folders:
        path = folder / f"{SERVER}{digest}.sock"
        if folder.is_dir() and len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return str(path)
    return str(home / f"{SERVER}{digest}.sock")


def socket_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the folders for the sockets of sccache's servers and the files beside them, the best first."""
    named = (environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME"))
    return [*(Path(name) for name in named if name), Path(environ.get("HOME") or user_home(), ".cache")]
