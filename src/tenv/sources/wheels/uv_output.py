"""Parse uv's output: progress, exit and errors."""

import re
import signal
from collections.abc import Callable, Sequence

from tenv.core import process
from tenv.core.certificates import Authorities
from tenv.core.errors import (
    CancelledError,
    HashMismatchError,
    HostError,
    NetworkError,
    NoSolutionError,
    StorageError,
    TenvError,
)
from tenv.core.http import PROXY_LOGIN, PROXY_WORDS
from tenv.core.names import normalize
from tenv.core.progress import Progress, Transfer
from tenv.locks.lock import Wheel

_BAR = re.compile(r"(?P<name>[\w.-]+) +[-━╸]{10,} +(?P<done>[\d.]+ ?[KMGT]?i?B)/(?P<total>[\d.]+ ?[KMGT]?i?B)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def download_progress(wheels: Sequence[Wheel], progress: Progress) -> Callable[[str], None]:
    """Return a function that parses uv's output and reports the state of each download to `progress`.

    uv draws a bar for each file. The bars have no stable format, so an unknown line is skipped.
    """
    sizes = {wheel.name: wheel.size or 0 for wheel in wheels}
    running: dict[str, Transfer] = {}

    def read(text: str) -> None:
        for match in _BAR.finditer(text):
            name = normalize(match["name"])
            total = sizes.get(name) or _bytes(match["total"])
            done = min(_bytes(match["done"]) * total // max(_bytes(match["total"]), 1), total)
            if name in sizes and done >= running.get(name, Transfer(name, 0, 0)).done:
                running[name] = Transfer(name, done, total)
        if "Prepared " in text:
            running.update({name: Transfer(name, row.total, row.total) for name, row in running.items()})
        progress.transfers(running)

    return read


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([\d.]+) ?([KMGT]?i?B)", text)
    return int(float(match[1]) * _UNITS.get(match[2], 1)) if match else 0


CHECK_INDEX = (
    "check the network and the index (UV_DEFAULT_INDEX, pip.conf; for index NAME of the manifest, UV_INDEX=NAME=URL), "
    "then run the same command again"
)
"""The hint for a file of an index that can't be fetched."""

_ERRORS: tuple[tuple[re.Pattern[str], type[TenvError], str], ...] = (
    (
        re.compile(r"Failed to read `--find-links`", re.IGNORECASE),
        NetworkError,
        "UV_FIND_LINKS, or pip's `find-links`, names a page or a folder that can be read",
    ),
    (
        re.compile(r"No space left|os error (28|122)\b|quota exceeded", re.IGNORECASE),
        StorageError,
        "free some space, then run the same command again",
    ),
    (
        re.compile(
            r"Read-only file system|Permission denied|Input/output error|os error (5|13|17|20|30)\b"
            r"|failed to initialize cache",
            re.IGNORECASE,
        ),
        StorageError,
        "`--prefix FOLDER` and UV_CACHE_DIR name folders that are writable",
    ),
    (
        re.compile(
            r"Hash mismatch|hashes? .*(do not|don't|does not) match|Failed to extract archive|Bad CRC", re.IGNORECASE
        ),
        HashMismatchError,
        "the index serves another file than the locked one: report it to the owner of the index",
    ),
    (
        re.compile(r"Network connectivity is disabled|but .*offline|network was disabled", re.IGNORECASE),
        NetworkError,
        "the cache lacks a file: run the same command without `--offline`",
    ),
    (
        re.compile(r"\b401 Unauthorized", re.IGNORECASE),
        NetworkError,
        "put the credentials into the URL of the index, ~/.netrc, or a keyring (UV_KEYRING_PROVIDER=subprocess)",
    ),
    (PROXY_WORDS, NetworkError, PROXY_LOGIN),
    (
        re.compile(r"tunnel error|proxy connect", re.IGNORECASE),
        NetworkError,
        "check the proxy (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY), then run the same command again",
    ),
    (
        re.compile(
            r"Failed to (fetch|download)|error sending request|Could not connect|dns error|timed out|"
            r"connection (refused|reset|closed)|HTTP status|Request failed|peer certificate|\b403 Forbidden",
            re.IGNORECASE,
        ),
        NetworkError,
        CHECK_INDEX,
    ),
    (re.compile(r"No solution found|unsatisfiable|not found in", re.IGNORECASE), NoSolutionError, ""),
)


def uv_error(
    output: str, what: str, authorities: Authorities, otherwise: type[TenvError] = NoSolutionError
) -> TenvError:
    """Return the error for an output of uv, or `otherwise` for an unknown output.

    Args:
        output: The output of uv.
        what: The failed action, for the message.
        authorities: The certificate authorities in use.
        otherwise: The error for an unknown output.
    """
    text = _tidy(output)
    if refusal := authorities.refusal(text):
        return refusal
    flat = " ".join(text.split())  # uv wraps its lines at the width of the terminal
    for pattern, kind, hint in _ERRORS:
        if pattern.search(flat):
            # The index and the release that the caller names are not at fault then.
            failed = "uv can't use its cache" if "initialize cache" in flat else what
            return kind(f"{failed}:\n{text}", hint=hint)
    return otherwise(f"{what}:\n{text}")


def _tidy(output: str) -> str:
    """Return uv's error without progress, warnings about other Pythons, and colors."""
    # On a terminal, an error starts on the line of the last progress.
    output = re.sub(r"  (?=error: |\u00d7 )", "\n", output.replace("\r", "\n"))
    lines = [line.rstrip() for line in output.split("\n") if line.strip()]
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*(error:|\u00d7 )", line)]
    kept = lines[starts[0] :] if starts else lines[-12:]
    return "\n".join("  " + re.sub(r"^error: ", "", line.strip()) for line in kept[:40])


def ended_by_itself(done: process.Completed) -> process.Completed:
    """Return the result of uv; raises an error if a signal ended it, since its output is then incomplete."""
    if done.status in (-signal.SIGINT, -signal.SIGTERM):
        raise CancelledError("interrupted", hint="run the same command again to continue")
    if done.status < 0:
        hint = "the system kills programs when it runs out of memory: free some, then run the same command again"
        raise HostError(f"uv was killed by signal {-done.status}", hint=hint)
    return done


_MISMATCH = re.compile(r"Hash mismatch for\s+`([A-Za-z0-9][\w.-]*)==")


def mismatched(output: str) -> str:
    """Return the package whose file uv refused for its hash; an empty string where there is none."""
    match = _MISMATCH.search(output)
    return normalize(match[1]) if match else ""


_FAILED = re.compile(r"[Ff]ailed to (?:download and )?build `([\w.-]+?)(?: @|==|`)")


def failed_builds(output: str) -> list[str]:
    """Return the packages that uv could not build, normalized."""
    return list(map(normalize, _FAILED.findall(output)))


def of_build(error: TenvError, output: str) -> TenvError:
    """Return an error with a hint if a build backend failed while uv asked it: no requests are in conflict then.

    Many a ``setup.py`` that lacks torch says so in words of its own.
    """
    if names := failed_builds(output):
        hint = f"another version of {names[0]}, or an index with its wheel (`index = …`), needs no build"
        said = re.sub(rf"(?i){re.sub('-', '[-_.]', names[0])}", "", output.partition("[stderr]")[2])
        if re.search(r"(?i)\b(?:py)?torch\b", said):
            line = f'{names[0]} = {{ version = "*", build = true, isolation = false }}'
            hint = f"`{line}` compiles it against the target's torch"
        error.hint = error.hint or hint
    return error


def without_wheels(output: str) -> frozenset[str]:
    """Return the packages that uv would have to build, by its hint (uv 0.9 to 0.13), normalized."""
    flat = " ".join(output.split())
    return frozenset(map(normalize, re.findall(r"Wheels are required for `([\w.-]+)`", flat)))


_UNKNOWN = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[\S*\])? was not found in the (?:package registry|provided)")


def unknown_packages(output: str) -> frozenset[str]:
    """Return the packages that no index has (the words of uv 0.9 to 0.13), normalized."""
    return frozenset(map(normalize, _UNKNOWN.findall(" ".join(output.split()))))


_UNPUBLISHED = re.compile(
    r"there (is|are) no versions? of"
    r"|Because only (the following versions of )?([\w.-]+?)\S* (is|are) available(: (\3\S+ )+| )and you require"
)


def unpublished(output: str) -> bool:
    """Return whether uv found no release, with or without wheels, that has a requested version (uv 0.9 to 0.13)."""
    flat = " ".join(output.split())
    return bool(_UNKNOWN.search(flat) or _UNPUBLISHED.search(flat))


_UNUSABLE = re.compile(r"Failed to install:\s+\S+\s+\(([A-Za-z0-9][\w.-]*)==")


def unusable(output: str) -> str:
    """Return the package whose unpacked wheel uv can't install; an empty string without one, as on a full disk."""
    match, flat = _UNUSABLE.search(output), " ".join(output.split())
    of_disk = any(kind is StorageError and pattern.search(flat) for pattern, kind, _ in _ERRORS)
    return normalize(match[1]) if match and not of_disk else ""


def index_urls(output: str) -> tuple[str, ...]:
    """Return the indexes in the output of ``--emit-index-url``, the main one first."""
    rows = [line.split(maxsplit=1) for line in output.splitlines() if line.startswith(("--index", "--extra"))]
    main = [url for option, url in rows if option == "--index-url"]
    return (*main, *(url for option, url in rows if option != "--index-url"))


def of_index(error: TenvError) -> TenvError:
    """Return an error of uv; where it finds no solution for a fixed version, an index lacks it."""
    return NetworkError(error.message, hint=error.hint) if isinstance(error, NoSolutionError) else error
