"""Ask the indexes once for all cases of a lock; the cases then read the pages in uv's cache.

Each platform with each Python minor is a case of its own, and a process of uv's: the files of a release may differ in
their requirements, and a universal resolution reads those of one file. So the answer to the question ahead selects no
file; it brings the pages into the cache. A case that needs another page, or metadata that the cache lacks, is asked
again: a poor guess costs time alone.

Headers about caching in uv's settings are no way to share the pages: uv 0.13 ignores ``--refresh`` where an index has
some, and keeps a page of a server that refuses caching, so that a release of this minute could not be seen.
"""

import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli

from tenv.core import process
from tenv.core.errors import NetworkError
from tenv.core.names import normalize
from tenv.core.versions import fits
from tenv.locks.lock import Lock, Wheel
from tenv.sources.wheels.index_requests import IndexedRequests, indexes_in_use
from tenv.sources.wheels.uv import Uv
from tenv.targets.manifest import Manifest

if TYPE_CHECKING:
    from tenv.targets.wheel_origin import Index

_LOG = "uv_client=debug,uv_client::registry_client=trace"
_PAGE = re.compile(r"Fetching metadata for `?([\w.-]+)`? from")
"""uv's log on each page that it reads (uv 0.11 to 0.13)."""
_MISSED = re.compile(
    r"(?:No cache entry for:|Sending fresh GET request for:|[Bb]roken \w*\s?cache entry) (\S+[^/\s])(?:\s|$)"
)
"""uv's log on a file whose metadata its cache lacks. The address of a page ends with a slash: another index may lack
the package, which uv does not note."""
_MARKERS = {
    "linux-64": "sys_platform == 'linux' and platform_machine == 'x86_64'",
    "linux-aarch64": "sys_platform == 'linux' and platform_machine == 'aarch64'",
    "win-64": "sys_platform == 'win32'",
}


class NotCachedError(Exception):
    """uv's cache lacks the metadata of a file."""


class CachedUv(Uv):
    """uv without a network.

    Without a network, uv takes an older version in silence where it can't read the metadata of a newer one. Its log
    names each file that it lacks, and each page that it reads.

    Attributes:
        pages: The normalized names of the packages whose pages were read.
    """

    def __init__(self, uv: Uv) -> None:
        """Take over the settings of another one."""
        self.__dict__.update(uv.__dict__)
        self.offline = True
        self.pages: set[str] = set()

    def run(self, *arguments: str, **options: Any) -> process.Completed:
        """Run uv as `Uv.run` does.

        Raises:
            NotCachedError: Its cache lacks the metadata of a file.
        """
        done = super().run(*arguments, **{**options, "RUST_LOG": _LOG})
        if _MISSED.search(done.stderr):
            raise NotCachedError
        self.pages |= {normalize(name) for name in _PAGE.findall(done.stderr)}
        return replace(done, stderr=re.sub(r"(?m)^(?:DEBUG|TRACE) .*\n", "", done.stderr))


def unasked(
    pages: Collection[str], wheels: Iterable[Wheel], kept: Iterable[Wheel], asked: Collection[str]
) -> set[str] | None:
    """Return the packages whose pages in the cache may be too old for a selection from it.

    Args:
        pages: The packages whose pages were read.
        wheels: The selected wheels.
        kept: The wheels of the old lock for that case: a page may be old where the version stays.
        asked: The packages whose pages this command has asked for.

    Returns:
        The packages; None where uv's log has another form than known, so that nothing is sure.
    """
    chosen, held = {wheel.name: wheel.version for wheel in wheels}, {wheel.name: wheel.version for wheel in kept}
    if not {wheel.name for wheel in wheels if not wheel.origin} <= {*pages}:
        return None
    return {
        name for name in pages if name not in asked and (name not in held or chosen.get(name, held[name]) != held[name])
    }


def ask_all(uv: Uv, manifest: Manifest, python: str, *, refresh: bool) -> set[str]:
    """Ask for the pages of all requests, and of the packages that they require.

    Args:
        uv: uv with the user's settings.
        manifest: The manifest.
        python: The oldest Python minor.
        refresh: Ask for pages in the cache, too, even if they are fresh by the headers of their index.

    Returns:
        The packages whose pages were asked for; none if there is no solution.

    Raises:
        NetworkError: An index does not respond.
    """
    return _ask(uv, manifest, python, _lines(manifest), ["--refresh"] if refresh else []) or set()


def new_names(manifest: Manifest, old: Lock) -> tuple[set[str], set[str]]:
    """Return the requests that a lock has no package for, and those of them whose version must differ from its own."""
    new, moved = set(), set()
    for platform in manifest.platforms:
        locked = {wheel.name: wheel for wheel in old.wheels.get(platform, ())}
        for name, request in manifest.on(platform).wheels.items():
            there = locked.get(normalize(name))
            if request.tree or (there and there.origin):
                continue
            if there is None or request.file or not fits(request.version.specifiers, there.version):
                moved.add(normalize(name))
                new.add(name)
            elif request.extras:
                new.add(name)
    return new, moved


def ask_new(uv: Uv, manifest: Manifest, python: str, old: Lock) -> set[str] | None:
    """Ask for the pages of the requests that a lock has no package for, even if they are fresh.

    Returns:
        The packages of a solution with the others at their locked versions; None if there is no solution.

    Raises:
        NetworkError: An index does not respond.
    """
    held: dict[str, set[str]] = {}
    for wheel in (wheel for wheels in old.wheels.values() for wheel in wheels):
        held.setdefault(wheel.name, set()).add(wheel.version)
    new, moved = new_names(manifest, old)
    if not new:
        return set()
    limits = [f"{name}=={min(one)}" for name, one in held.items() if len(one) == 1 and name not in moved]
    words = [word for name in sorted(new) for word in ("--refresh-package", name)]
    return _ask(uv, manifest, python, _lines(manifest, new), words, limits)


def ask_names(uv: Uv, manifest: Manifest, python: str, names: Iterable[str]) -> set[str]:
    """Ask for the pages of packages, whatever they require; return the packages, none if one has no release."""
    rows = sorted(names)
    words = ["--no-deps", *(word for name in rows for word in ("--refresh-package", name))]
    return _ask(uv, manifest, python, IndexedRequests.of_pins(rows, manifest.bound_indexes()), words) or set()


def _lines(manifest: Manifest, names: Collection[str] | None = None) -> IndexedRequests:
    """Return the requests of a manifest, or those of some names, with markers for those of some platforms."""
    lines: dict[str, list[str]] = {}
    bound: dict[str, tuple[str, Index]] = {}
    for platform in manifest.platforms:
        here = manifest.on(platform)
        asked = {name: row for name, row in here.wheels.items() if names is None or name in names}
        found = IndexedRequests.of_manifest(replace(here, wheels=asked))
        bound.update(found.bound)
        for line in found.lines:
            lines.setdefault(line, []).append(platform)
    texts = [
        line if len(where) == len(manifest.platforms) else f"{line} ; {' or '.join(_MARKERS[one] for one in where)}"
        for line, where in lines.items()
    ]
    return IndexedRequests(tuple(texts), bound)


def _ask(
    uv: Uv, manifest: Manifest, python: str, asked: IndexedRequests, words: Sequence[str], limits: Iterable[str] = ()
) -> set[str] | None:
    """Resolve requests for all platforms at once; return the names of the packages, None without a solution."""
    variables: Mapping[str, str] = indexes_in_use(manifest, uv.environment, uv.users)
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        file = Path(folder) / "constraints.txt"
        file.write_text("".join(f"{line}\n" for line in limits))
        words = ("--format", "pylock.toml", "--constraints", str(file), *words)
        done = uv.compile("", asked, python, words, variables)
    if done.status:
        error = uv.error(done.stderr, f"can't ask the indexes for the wheels of {manifest.name}")
        if isinstance(error, NetworkError):
            raise error
        return None
    return {normalize(row["name"]) for row in tomli.loads(done.stdout).get("packages", [])}
