"""Runs uv, which resolves and installs wheels; no other module runs it."""

import contextlib
import datetime as dt
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tomli

from tenv.core import process
from tenv.core.errors import EnvironmentBrokenError, NetworkError, NoSolutionError, StorageError
from tenv.core.files import empty_folder, storage_errors
from tenv.core.names import entry_in_cache, is_wheel, normalize
from tenv.core.progress import Progress
from tenv.core.versions import Version, is_release
from tenv.core.wheel_platforms import DEFAULT_GLIBC, accepted_tags
from tenv.locks.lock import LockedTree, Wheel
from tenv.sources.wheels.choose import (
    build_words,
    choose_wheel,
    cpu_torch,
    install_words,
    keep_versions,
    known_metadata,
    need_builds,
    preferences,
    too_new,
    uv_platforms,
)
from tenv.sources.wheels.index_requests import IndexedRequests, as_asked, indexes_in_use, read_origins
from tenv.sources.wheels.interpreters import Interpreter, inspect, search, search_unselected
from tenv.sources.wheels.managed_pythons import ManagedPythons
from tenv.sources.wheels.unpacked_size import watched_unpacking
from tenv.sources.wheels.uv_output import (
    CHECK_INDEX,
    download_progress,
    ended_by_itself,
    index_urls,
    mismatched,
    of_build,
    of_index,
    unusable,
)
from tenv.targets.manifest import Manifest
from tenv.targets.wheel_origin import Index

_BESIDE = " beside the conda packages"
_ROUNDS = 30  # resolutions without releases whose wheels need a newer glibc than the target

_PATIENCE = 20  # seconds for which the removal of changed files waits for other processes that use uv's cache
_LOCK_IN_USE = "UV_LOCK_TIMEOUT"
"""The word of uv's error for a cache that another process uses (uv 0.12 and 0.13)."""

_OF_CACHE = re.compile(r"[a-z][a-z-]*-v\d+|CACHEDIR\.TAG|\.git|\.gitignore|\.lock|\.tmp\w*")
"""The names in uv's cache folder (uv 0.9 to 0.13)."""


class Uv(ManagedPythons):
    """uv with the index settings of the user."""

    def resolve(
        self,
        manifest: Manifest,
        platform: str,
        python: str,
        kept: Sequence[Wheel],
        upgrade: Sequence[str] | None,
        given: Mapping[str, str] | None = None,
        exclude_newer: dt.datetime | None = None,
        *,
        builds: bool = True,
    ) -> dict[str, tuple[Wheel, str]]:
        """Select the wheels of one platform and Python minor.

        The selection depends on the manifest and the indexes, not on this machine.

        Args:
            manifest: The manifest for the platform.
            platform: The platform.
            python: The Python minor, such as ``3.12``.
            kept: Wheels of the old lock, whose versions stay if they still satisfy the manifest.
            upgrade: Names to select anew all the same; None for all.
            given: The versions of Python packages from other sources, by name, which no wheel replaces.
            exclude_newer: Ignore files that were uploaded later.
            builds: Whether build backends may run, for the requirements of source archives whose build the manifest
                permits; else these have the version of the old lock.

        Returns:
            The wheel or source archive and its URL on the index, by name.

        Raises:
            NoSolutionError: No set of versions satisfies the requests.
            NetworkError: An index does not respond.
        """
        glibc = (needs := manifest.requirements).glibc or DEFAULT_GLIBC
        tags, names = accepted_tags(platform, python, glibc), uv_platforms(platform, glibc)
        elsewhere = {*map(normalize, given or ()), *(name for name, asked in manifest.wheels.items() if asked.tree)}
        fixed = [f"{name}=={version}" for name, version in (given or {}).items() if is_release(version)]
        mine = [row for row in kept if python in row.python]
        pins = [row for row in mine if upgrade is not None and row.name not in upgrade and not row.url and not row.path]
        sdists = [row for row in mine if not is_wheel(row.file) and row.name in manifest.builds]
        built, older = list[str](), list[str]()
        what = f"no set of wheels for {manifest.name} on {platform} with Python {python}{_BESIDE if given else ''}"

        def ask(name: str = names[-1], *constraints: str) -> list[dict[str, Any]]:
            asked = partial(self._choose, name, manifest, python, newest=exclude_newer, what=what)
            choose = partial(asked, built=built, sdists=sdists, torch=(given or {}).get("torch", ""))
            rows = keep_versions(pins, upgrade or (), lambda held, kept: choose((*fixed, *constraints, *held), kept))
            if (needs.cuda or needs.cuda_from) and (cpu := cpu_torch(rows)):  # `2.13.0+cpu` is newer than 2.13.0
                # Where its release of CUDA is read next, the error about that names this torch.
                with contextlib.suppress(*[NoSolutionError] * bool(needs.cuda_from)):
                    return ask(name, *constraints, f"torch!={cpu}")
            self._require_held(rows, pins, name, python, manifest)
            return [row for row in rows if normalize(row["name"]) not in elsewhere]

        built += [row.name for row in sdists if not builds or (upgrade is not None and row.name not in upgrade)]
        fixed += [f"{row.name}=={row.version}" for row in sdists if not builds]
        if builds:
            need_builds(built, manifest, ask, lambda one: self._lacks(one, names[-1], python, manifest))
        for _ in range(_ROUNDS if len(names) > 1 else 0):
            try:
                rows = ask(names[0], *older)
            except NoSolutionError:
                if not older:  # a newer glibc takes every wheel of an older one
                    raise
                break
            if not (newer := too_new(rows, tags)):
                chosen = [choose_wheel(row, tags, python) for row in rows]
                return self.with_origins(manifest, chosen, names[0], python, built)
            older += newer
        chosen = [choose_wheel(row, tags, python) for row in ask()]
        return self.with_origins(manifest, chosen, names[-1], python, built)

    def with_origins(
        self,
        manifest: Manifest,
        chosen: Sequence[tuple[str, tuple[Wheel, str]]],
        platform: str,
        python: str,
        built: Sequence[str],
    ) -> dict[str, tuple[Wheel, str]]:
        """Return the chosen wheels, each with the index of the manifest that it came from."""
        rows = dict(chosen)
        variables = indexes_in_use(manifest, self.environment, self.users)
        if not manifest.indexes and not any(row.index or row.file for row in manifest.wheels.values()):
            return rows
        origins: Mapping[str, str] = {}
        if variables and rows:
            pins = [f"{name}=={wheel.version}" for name, (wheel, _) in rows.items() if name not in manifest.wheels]
            asked = IndexedRequests.of_manifest(manifest)
            pins += [line for line in asked.lines if " @ " not in line]
            held = "".join(f"{name}=={wheel.version}\n" for name, (wheel, _) in rows.items())
            with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
                limits = Path(folder) / "constraints.txt"
                limits.write_text(held)
                words = ("--no-deps", "--no-annotate", "--emit-index-annotation", "--constraints", str(limits))
                done = self.compile(platform, IndexedRequests(tuple(pins), {}), python, words, variables, built)
            if done.status:
                raise self.error(done.stderr, f"can't ask which index serves the wheels of {manifest.name}")
            origins = read_origins(done.stdout)
        return as_asked(manifest, rows, origins, self.users)

    def _require_held(
        self, rows: Iterable[Mapping[str, Any]], pins: Iterable[Wheel], platform: str, python: str, manifest: Manifest
    ) -> None:
        """Raise NoSolutionError for a locked version that has moved only because no index in use has its file."""
        chosen = {normalize(row["name"]): row.get("version", "") for row in rows}
        for pin in pins:
            if chosen.get(pin.name, pin.version) == pin.version or pin.origin or not is_wheel(pin.file):
                continue
            if self._lacks(f"{pin.name}=={pin.version}", platform, python, manifest):
                raise NoSolutionError(
                    f"no index in use has {pin.file}, which the lock of {manifest.name} holds",
                    hint=f"name an index that has it in UV_INDEX or pip.conf; `tenv update {manifest.name} {pin.name}` "
                    f"selects {pin.name} {chosen[pin.name]}",
                )

    def _choose(
        self,
        platform: str,
        manifest: Manifest,
        python: str,
        constraints: Sequence[str],
        pins: Sequence[Wheel],
        *,
        newest: dt.datetime | None,
        what: str,
        built: Sequence[str],
        sdists: Sequence[Wheel],
        torch: str,
    ) -> list[dict[str, Any]]:
        """Return uv's solution for one of its platform names, as rows of a pylock.

        The torch of another source has its libraries beside it: those of the index's torch are not asked for.
        """
        asked = IndexedRequests.of_manifest(manifest)
        variables = indexes_in_use(manifest, self.environment, self.users)
        day = ["--exclude-newer", f"{newest:%Y-%m-%dT%H:%M:%SZ}"] if newest else []
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            chosen, limits = Path(folder) / "pylock.toml", Path(folder) / "constraints.txt"
            limits.write_text("".join(f"{line}\n" for line in constraints))
            if pins:  # uv keeps these versions unless a request excludes them
                chosen.write_text(preferences(pins))
            words = ("--format", "pylock.toml", "--output-file", str(chosen), "--constraints", str(limits), *day)
            bare = [Wheel("torch", torch, "", "", None, ())] if is_release(torch) else []
            known = known_metadata([*bare, *(row for row in sdists if row.name in built)]) | manifest.bounds
            done = self.compile(platform, asked, python, words, variables, built, known)
            if done.status and bare and self._lacks(f"torch=={torch}", platform, python, manifest):
                limits.write_text("".join(f"{line}\n" for line in constraints if not line.startswith("torch==")))
                known["exclude-dependencies"] = ["torch"]
                done = self.compile(platform, asked, python, words, variables, built, known)
            if done.status:
                error = of_build(self.error(done.stderr, what), done.stderr)
                raise (isinstance(error, NoSolutionError) and asked.refusal(self.http, self.users)) or error
            return list(tomli.loads(chosen.read_text()).get("packages", []))

    def _lacks(self, asked: str, platform: str, python: str, manifest: Manifest) -> bool:
        """Return whether no index in use has a wheel of a release, or of any, for a platform and a Python."""
        shared = indexes_in_use(manifest, self.environment, self.users)
        done = self._pinned([asked], python, platform=platform, shared=shared)
        return bool(done.status) and type(self.error(done.stderr, "")) is NoSolutionError

    def compile(
        self,
        platform: str,
        asked: IndexedRequests,
        python: str,
        words: Sequence[str],
        variables: Mapping[str, str],
        built: Sequence[str] = (),
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> process.Completed:
        """Resolve requests for one of uv's platform names; for all platforms at once where that is empty."""
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            return self.run(
                *("pip", "compile", "-", *asked.write(Path(folder), python, self.users), "--quiet"),
                *(("--python-platform", platform) if platform else ("--universal",)),
                *("--python-version", python, *build_words(built), "--no-header", "--no-python-downloads"),
                # uv requires some Python, without using it; tenv's own always exists.
                *(
                    "--resolution",
                    "highest",
                    "--python",
                    sys.executable,
                    *words,
                    *(["--refresh"] if self.refresh else []),
                ),
                *self.indexes(),
                text=self.users.fetched(asked.text),
                backends=bool(built),
                settings=settings,
                **variables,
            )

    def releases(
        self,
        pins: Iterable[str],
        python: str,
        platform: str = "",
        indexes: Mapping[str, Index] = MappingProxyType({}),
        manifest: Manifest | None = None,
    ) -> list[dict[str, Any]]:
        """Return the files of some releases on the indexes: one row of a pylock for each.

        Args:
            pins: The releases, such as ``numpy==2.1.0``.
            python: The oldest Python minor that uses them.
            platform: uv's name of the platform, for its best wheel; empty for all wheels of the first index with the
                release.
            indexes: The indexes of the manifest that alone serve some of them, by name.
            manifest: The manifest whose indexes serve the others, before those of the user; None for the latter alone.

        Raises:
            NetworkError: An index does not respond, or lacks a release.
        """
        shared = indexes_in_use(manifest, self.environment, self.users) if manifest else {}
        done = self._pinned(pins, python, "--format", "pylock.toml", platform=platform, indexes=indexes, shared=shared)
        if done.status:
            error = of_index(self.error(done.stderr, "the indexes in use lack a locked release"))
            error.hint = error.hint or "name an index that has it in UV_INDEX, UV_DEFAULT_INDEX or pip.conf"
            raise error
        found: list[dict[str, Any]] = tomli.loads(done.stdout).get("packages", [])
        return found

    def sdist_urls(self, rows: Iterable[LockedTree]) -> dict[str, str]:
        """Return the URLs of source archives of a lock on the indexes, by sha256; runs no build backend.

        Raises:
            NetworkError: An index does not respond, or lacks one.
        """
        urls: dict[str, str] = {}
        for row in rows:
            known = known_metadata([replace(row, requires=())])
            done = self._pinned(
                [f"{row.name}=={row.version}"],
                min(row.python, key=Version),
                *("--format", "pylock.toml"),
                indexes={row.name: row.index} if row.index else {},
                built=[row.name],
                settings=known,
            )
            if done.status:
                silent = not self.offline and isinstance(self.error(done.stderr, ""), NetworkError)
                lacks = f"{'the cache has no' if self.offline else 'no index in use has'} {row.file}"
                error = of_index(self.error(done.stderr, "an index in use gives no answer" if silent else lacks))
                if isinstance(error, NetworkError):
                    error.unanswered = silent
                raise error
            for package in tomli.loads(done.stdout).get("packages", []):
                file = package.get("sdist", {})
                if file.get("hashes", {}).get("sha256") == row.digest:
                    urls[row.digest] = file.get("url") or Path(file["path"]).absolute().as_uri()
            if row.digest not in urls:
                raise NetworkError(f"no index in use has the locked {row.file}", hint=CHECK_INDEX)
        return urls

    def index_urls(self, pin: str, python: str) -> tuple[str, ...]:
        """Return the indexes in use, the main one first, from uv's log of a query."""
        return index_urls(self._pinned([pin], python, "--emit-index-url").stdout)

    def _pinned(
        self,
        pins: Iterable[str],
        python: str,
        *output: str,
        platform: str = "",
        indexes: Mapping[str, Index] = MappingProxyType({}),
        shared: Mapping[str, str] = MappingProxyType({}),
        built: Sequence[str] = (),
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> process.Completed:
        where = ("--python-platform", platform) if platform else ("--universal",)
        asked = IndexedRequests.of_pins(pins, {} if self.environment.get("UV_NO_INDEX") else indexes)
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            return self.run(
                *("pip", "compile", "-", *asked.write(Path(folder), python, self.users), "--quiet"),
                *(*where, "--no-deps", "--no-header", *output),
                *("--index-strategy", "unsafe-best-match"),  # hashes identify the file
                *("--python-version", python, *build_words(built), "--no-python-downloads"),
                *("--python", sys.executable, *self.indexes()),
                text=asked.text,
                backends=False,
                settings=settings,
                **shared,
            )

    def interpreters(self, minors: Sequence[str], *, for_others: bool = False) -> list[Interpreter]:
        """Return Pythons of this machine with one of some minors, best first, as `interpreters.search` does.

        Each search starts programs, so that its answer is kept for the rest of the command.
        """
        asked = (*minors, *[""][: int(for_others)])
        if asked not in self._searched:
            self._searched[asked] = search(minors, self.environment, for_others=for_others)
        return self._searched[asked]

    def unselected(self, minor: str) -> Interpreter | None:
        """Return a Python of this machine that pyenv has and does not select; None without one."""
        return search_unselected(minor, self.environment)

    def inspect(self, program: Path) -> Interpreter | None:
        """Return the version and headers of a Python program; None unless it is a working, default build of CPython."""
        return inspect(program, self.environment)

    def make_environment(self, prefix: Path, python: Path, prompt: str) -> None:
        """Make an empty virtual environment in a folder that may hold files.

        Args:
            prefix: The folder.
            python: The Python that it is made from.
            prompt: The name that a shell shows.

        Raises:
            EnvironmentBrokenError: uv can't make it.
            StorageError: It lacks its settings: uv 0.13 does not report that it could not write them. Python takes an
                environment without them for the installation that it was made from.
        """
        done = self.run("venv", str(prefix), "--python", str(python), "--allow-existing", f"--prompt={prompt}")
        if done.status:
            raise self.error(done.stderr, f"can't create a virtual environment in {prefix}", EnvironmentBrokenError)
        file = prefix / "pyvenv.cfg"
        with storage_errors(f"can't read {file}"):
            settings = file.read_bytes()
        if b"home" not in settings:
            hint = "free some space or choose another folder, then run the same command again"
            raise StorageError(f"can't write {file}: it is empty", hint=hint)

    def install(
        self,
        python: Path,
        wheels: Sequence[Wheel],
        again: Sequence[str],
        progress: Progress,
    ) -> None:
        """Install exactly the locked wheels into the environment of a Python.

        Args:
            python: The Python.
            wheels: The wheels.
            again: Packages to reinstall although their version is right, since it came from another file.
            progress: Receives progress.

        Raises:
            HashMismatchError: A file's bytes differ from the lock.
            NetworkError: A file can't be fetched.
            StorageError: The disk is full or not writable.
            ArchiveRefusedError: A wheel unpacks to more than the limits.
        """
        done = self._put(python, wheels, again, progress)
        for _ in wheels if self.environment.get("UV_INDEX") else ():
            # uv 0.13 takes a release from the first index that has a file of it, and so hides that of the main index.
            hidden = [wheel for wheel in wheels if done.status and wheel.name == mismatched(done.stderr)]
            if not hidden or self._put(python, hidden, again, progress, UV_INDEX="").status:
                break
            done = self._put(python, wheels, [name for name in again if name != hidden[0].name], progress)
        cached = {wheel.name for wheel in wheels}
        while done.status and (name := unusable(done.stderr)) in cached:
            progress.say(f"uv's cache has changed files of {name}, which are fetched again")
            cached.remove(name)
            self.forget([name])
            done = self._put(python, wheels, again, progress)
        if done.status:
            error = self.error(done.stderr, "uv can't install the wheels of the lock", EnvironmentBrokenError)
            if isinstance(error, NoSolutionError):  # the versions are fixed, so an index lacks one
                hint = "no index in use has that file: correct UV_DEFAULT_INDEX, pip.conf or their credentials"
                raise NetworkError(error.message, hint=hint)
            raise error

    def _put(
        self, python: Path, wheels: Sequence[Wheel], again: Sequence[str], progress: Progress, **changes: str
    ) -> process.Completed:
        """Install files by their hashes with some variables changed."""
        asked = IndexedRequests.of_wheels(wheels, alone=bool(self.environment.get("UV_NO_INDEX")))
        follow = download_progress(wheels, progress)
        with self._folder() as (folder, environment), watched_unpacking(wheels, self.limits) as look:
            files = asked.write(folder, max(wheels[0].python, key=Version), self.users) if wheels else ()
            limits = folder / "hashes.txt"
            limits.write_text(asked.hashes)
            words = (*install_words(python, again, files), *(("--constraints", str(limits)) if files else ()))
            done = process.watch(
                self._command(*words, *self.indexes()),
                follow,
                environment={**environment, **changes},
                folder=folder,
                text=self.users.fetched(asked.text),
                on_tick=look,
            )
            return ended_by_itself(done)

    def remove(self, python: Path, names: Sequence[str]) -> None:
        """Remove packages from the environment of a Python."""
        if (done := self.run("pip", "uninstall", "--python", str(python), *names)).status:
            raise self.error(done.stderr, f"can't remove {', '.join(names)}", EnvironmentBrokenError)

    def forget(self, names: Sequence[str]) -> None:
        """Remove packages from uv's cache.

        A file changed in place is changed in the cache too: both are hard links to one file, which a refresh keeps.
        """
        done = self.run("cache", "clean", *names, UV_LOCK_TIMEOUT=f"{_PATIENCE}")
        if _LOCK_IN_USE in done.stderr and done.status:  # by a long build, not for these files
            done = self.run("cache", "clean", "--force", *names)
        if done.status:
            raise self.error(done.stderr, f"{', '.join(names)} : uv can't remove them from its cache")

    def cached(self, wheels: Iterable[Wheel]) -> frozenset[str]:
        """Return the sha256 of the wheels that uv's cache has, by their names in it (uv 0.9 to 0.13)."""
        cache = self.folder("cache")
        return frozenset(
            wheel.sha256
            for wheel in wheels
            for entry in (entry_in_cache(wheel.file),)
            if any(any(cache.glob(f"wheels-v*/{kind}/{wheel.name}/{entry}")) for kind in ("*", "*/*"))
        )

    def folder(self, kind: str) -> Path:
        """Return a folder of uv's: ``cache``, or ``python`` for the Pythons that it downloads."""
        return Path(self.run(kind, "dir").stdout.strip())

    def clean_cache(self) -> list[Path]:
        """Empty uv's cache; return the files and folders in it that are not uv's by their names, which stay."""
        folder = self.folder("cache")
        if folder.is_dir() and not all(map(_is_of_cache, folder.iterdir())):  # uv would remove the whole folder
            return empty_folder(folder, _is_of_cache)
        done = self.run("cache", "clean")
        if done.status:
            raise self.error(done.stderr, "uv can't empty its cache")
        return []


def _is_of_cache(path: Path) -> bool:
    return _OF_CACHE.fullmatch(path.name) is not None
