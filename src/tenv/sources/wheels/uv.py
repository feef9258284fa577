"""Wheels: resolved with hashes and installed by uv, which is run as a program; no other module runs it."""

import contextlib
import datetime as dt
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli

from tenv.core import process
from tenv.core.errors import (
    EnvironmentBrokenError,
    HostError,
    NetworkError,
    NoSolutionError,
    TenvError,
)
from tenv.core.http import Http
from tenv.core.names import normalize
from tenv.core.progress import Progress
from tenv.core.versions import is_release
from tenv.core.wheel_platforms import OLDEST_GLIBC, accepted_tags
from tenv.locks.lock import Wheel
from tenv.sources.wheels.choose import choose_wheel, too_new, uv_platforms
from tenv.sources.wheels.connections import Keyring
from tenv.sources.wheels.index_settings import uv_settings
from tenv.sources.wheels.interpreters import Interpreter, inspect, search
from tenv.sources.wheels.uv_output import download_progress, ended_by_itself, uv_error
from tenv.sources.wheels.uv_requirements import preferences, requirement, ways_to_keep
from tenv.targets.manifest import Manifest

__all__ = ["Uv"]


_ROUNDS = 30  # choices made again without releases whose wheels need a newer glibc than the target


class Uv:
    """uv with the index settings of this user.

    Attributes:
        environment: The environment that it is run in.
        offline: Take everything from the cache.
        http: What makes tenv's own requests to the indexes.
    """

    def __init__(self, environment: Mapping[str, str], home: Path, *, offline: bool = False) -> None:
        from uv import find_uv_bin  # late: late, and only here

        settings = uv_settings(environment, home)
        self.environment = settings.environment
        self.offline = offline or settings.offline
        self._configuration = settings.configuration
        self._program = find_uv_bin()
        ask = Keyring(settings.environment, settings.configuration, self._said).ask
        self.http = Http(replace(settings.http, ask=ask))

    def _command(self, *arguments: str) -> list[str]:
        offline = ["--offline"] if self.offline else []
        return [self._program, *arguments, *offline, "--color", "never"]

    def _indexes(self) -> list[str]:
        """Return the settings of indexes for which uv has no variable."""
        return ["--no-index"] if self.environment.get("UV_NO_INDEX") else []

    @contextlib.contextmanager
    def _folder(self) -> Iterator[tuple[Path, dict[str, str]]]:
        """Yield a folder to run uv in, and the environment to run it with.

        The folder is empty but for uv's configuration: the settings of whatever project the user stands in must not
        decide what is chosen.
        """
        with tempfile.TemporaryDirectory(prefix="tenv-") as name:
            folder = Path(name)
            environment = {**self.environment, **self.http.settings.authorities.variables(folder)}
            if not self._configuration:
                yield folder, {**environment, "UV_NO_CONFIG": "1"}
                return
            import tomlkit  # late: 22 ms, and only for those who have configured uv

            file = folder / "uv.toml"
            file.write_text(tomlkit.dumps(self._configuration))
            yield folder, {**environment, "UV_CONFIG_FILE": str(file)}

    def _said(self, *arguments: str) -> str:
        """Return what uv prints, an empty string when it fails; may be called in a thread."""
        with self._folder() as (folder, environment):
            done = process.run(self._command(*arguments), environment=environment, folder=folder, bound=False)
        return "" if isinstance(done, process.Missing) or done.status else done.stdout

    def _error(self, said: str, what: str, otherwise: type[TenvError] = NoSolutionError) -> TenvError:
        """Return the error that uv's words stand for."""
        return uv_error(said, what, self.http.settings.authorities, otherwise)

    def _run(self, *arguments: str, text: str | None = None) -> process.Completed:
        with self._folder() as (folder, environment):
            done = process.run(self._command(*arguments), environment=environment, folder=folder, text=text)
        if isinstance(done, process.Missing):
            raise HostError(f"uv, a part of tenv, does not run here: {done.reason}", hint="install tenv again")
        return ended_by_itself(done)

    def resolve(
        self,
        manifest: Manifest,
        platform: str,
        python: str,
        kept: Sequence[Wheel],
        upgrade: Sequence[str] | None,
        given: Mapping[str, str] | None = None,
        exclude_newer: dt.datetime | None = None,
    ) -> dict[str, tuple[Wheel, str]]:
        """Choose the wheels of one platform and Python minor.

        The choice depends on the manifest and the indexes, never on the machine that runs it.

        Args:
            manifest: The manifest as it reads on the platform.
            platform: The platform.
            python: The Python minor, such as ``3.12``.
            kept: Wheels of an earlier lock, whose versions stay where they still fit.
            upgrade: Names whose version is chosen anew all the same; None for all.
            given: Python packages that the environment has from elsewhere, with their versions: no wheel is laid over
                one, and what needs it must go together with that version.
            exclude_newer: Files that were uploaded later do not count.

        Returns:
            By name: the wheel, and the URL at which the index has it.

        Raises:
            NoSolutionError: No set of versions fits.
            NetworkError: An index does not answer.
        """
        glibc = manifest.requirements.glibc or OLDEST_GLIBC
        tags, names = accepted_tags(platform, python, glibc), uv_platforms(platform, glibc)
        elsewhere = set(map(normalize, given or ()))
        fixed = [f"{name}=={version}" for name, version in (given or {}).items() if is_release(version)]
        pins = [] if upgrade is None else [w for w in kept if w.name not in upgrade and python in w.python]

        what = f"no set of wheels for {manifest.name} on {platform} with Python {python}"
        what += " beside the conda packages" if given else ""

        def ask(name: str, *constraints: str) -> list[dict[str, Any]]:
            limits = (*fixed, *constraints)
            ways = ways_to_keep(pins, together=upgrade == ())
            for number, (held, preferred) in enumerate(ways, 1):
                try:
                    rows = self._choose(name, manifest, python, (*limits, *held), preferred, exclude_newer, what)
                    break
                except NoSolutionError:
                    if number == len(ways):
                        raise
            return [row for row in rows if normalize(row["name"]) not in elsewhere]

        older: list[str] = []
        for _ in range(_ROUNDS if len(names) > 1 else 0):
            try:
                rows = ask(names[0], *older)
            except NoSolutionError:
                break
            if not (newer := too_new(rows, tags)):
                return dict(choose_wheel(row, tags, python) for row in rows)
            older += newer
        return dict(choose_wheel(row, tags, python) for row in ask(names[-1]))

    def _choose(
        self,
        platform: str,
        manifest: Manifest,
        python: str,
        constraints: Iterable[str],
        pins: Sequence[Wheel],
        exclude_newer: dt.datetime | None,
        what: str,
    ) -> list[dict[str, Any]]:
        """Return what uv chooses for a platform by its own name of it: rows of a pylock."""
        lines = [requirement(name, request) for name, request in sorted(manifest.wheels.items())]
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            chosen, limits = Path(folder) / "pylock.toml", Path(folder) / "constraints.txt"
            limits.write_text("".join(f"{line}\n" for line in constraints))
            if pins:  # what uv finds there it keeps, unless another choice forbids it
                chosen.write_text(preferences(pins))
            done = self._compile(platform, lines, python, limits, chosen, exclude_newer)
            if done.status:
                raise self._error(done.stderr, what)
            return list(tomli.loads(chosen.read_text()).get("packages", []))

    def _compile(
        self,
        platform: str,
        lines: Iterable[str],
        python: str,
        constraints: Path,
        chosen: Path,
        exclude_newer: dt.datetime | None,
    ) -> process.Completed:
        newest = ["--exclude-newer", f"{exclude_newer:%Y-%m-%dT%H:%M:%SZ}"] if exclude_newer else []
        return self._run(
            *("pip", "compile", "-", "--quiet", "--format", "pylock.toml", "--output-file", str(chosen)),
            *("--python-platform", platform),
            *("--python-version", python, "--only-binary", ":all:", "--no-header", "--no-python-downloads"),
            # uv wants a Python to run at all, though nothing is taken from it: ours is always there.
            *("--constraints", str(constraints), "--resolution", "highest", "--python", sys.executable),
            *newest,
            *self._indexes(),
            text="\n".join(lines) + "\n",
        )

    def releases(self, pins: Iterable[str], python: str, platform: str = "") -> list[dict[str, Any]]:
        """Return what the indexes have of some releases: a row of a pylock for each.

        Args:
            pins: The releases, such as ``numpy==2.1.0``.
            python: The oldest Python minor that takes them.
            platform: The platform, by uv's name, whose best wheel is wanted; all wheels of the first index that has
                the release when empty.

        Raises:
            NetworkError: An index does not answer, or does not have one of them.
        """
        done = self._pinned(pins, python, "--format", "pylock.toml", platform=platform)
        if done.status:
            error = self._error(done.stderr, "the indexes in use do not have what is locked")
            hint = "an index that has it must be in use: UV_INDEX, UV_DEFAULT_INDEX or pip.conf name it"
            raise NetworkError(error.message, hint=error.hint or hint)
        found: list[dict[str, Any]] = tomli.loads(done.stdout).get("packages", [])
        return found

    def index_urls(self, pin: str, python: str) -> tuple[str, ...]:
        """Return the indexes in use, the main one first, as uv tells them when it looks for a release."""
        done = self._pinned([pin], python, "--emit-index-url")
        rows = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith(("--index", "--extra"))]
        main = [url for option, url in rows if option == "--index-url"]
        return (*main, *(url for option, url in rows if option != "--index-url"))

    def _pinned(self, pins: Iterable[str], python: str, *output: str, platform: str = "") -> process.Completed:
        where = ("--python-platform", platform) if platform else ("--universal",)
        return self._run(
            *("pip", "compile", "-", "--quiet", *where, "--no-deps", "--no-header", *output),
            *("--index-strategy", "unsafe-best-match"),  # the hashes decide which file is meant
            *("--python-version", python, "--only-binary", ":all:", "--no-python-downloads"),
            *("--python", sys.executable, *self._indexes()),
            text="\n".join(pins) + "\n",
        )

    def sizes(self, urls: Iterable[str], progress: Progress) -> dict[str, int]:
        """Ask the indexes for the sizes of files; a file whose size they do not tell is left out."""
        from tenv.sources.wheels.sizes import ask_sizes  # late: 10 ms for threads

        return ask_sizes(self.http, urls, progress)

    def interpreters(self, minors: Sequence[str]) -> list[Interpreter]:
        """Return Pythons of this machine of the minors that are given, best first, as `interpreters.search` does."""
        return search(minors, self.environment)

    def inspect(self, program: Path) -> Interpreter | None:
        """Ask a Python for its version and its headers; None when it is no working CPython of the usual build."""
        return inspect(program, self.environment)

    def fetch_python(self, minor: str) -> Path:
        """Fetch a Python of a minor through uv, unless uv has one already, and return its program.

        Raises:
            NetworkError: It can't be had.
        """
        found = self._run("python", "find", "--managed-python", minor)
        if found.status:
            done = self._run("python", "install", "--no-bin", minor)
            if done.status:
                what = f"no Python {minor} on this machine, and none could be fetched"
                raise self._error(done.stderr, what, NetworkError)
            found = self._run("python", "find", "--managed-python", minor)
        if found.status or not found.stdout.strip():
            raise NetworkError(f"no Python {minor} on this machine, and none could be fetched")
        return Path(found.stdout.strip())

    def make_environment(self, prefix: Path, python: Path, prompt: str) -> None:
        """Make an empty Python environment in a folder that may already hold files."""
        done = self._run("venv", str(prefix), "--python", str(python), "--allow-existing", "--prompt", prompt)
        if done.status:
            raise self._error(done.stderr, f"can't make a Python environment in {prefix}", EnvironmentBrokenError)

    def install(self, python: Path, wheels: Sequence[Wheel], again: Sequence[str], progress: Progress) -> None:
        """Install exactly the files that a lock names into the environment of a Python.

        Args:
            python: The Python.
            wheels: The files.
            again: Packages to install even where the right version is there, since it came from another file.
            progress: Who watches.

        Raises:
            HashMismatchError: A file's bytes are not those of the lock.
            NetworkError: A file can't be had.
            StorageError: The disk is full or can't be written.
        """
        lines = [f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}" for wheel in wheels]
        arguments = self._command(
            *("pip", "install", "--python", str(python), "--no-deps", "--require-hashes", "--only-binary", ":all:"),
            # The hashes decide which file is taken, so it may come from any of the indexes.
            *("--index-strategy", "unsafe-best-match", "--requirement", "-", *self._indexes()),
            *(word for name in again for word in ("--reinstall-package", name)),
        )
        with self._folder() as (folder, environment):
            done = process.watch(
                arguments,
                download_progress(wheels, progress),
                environment=environment,
                folder=folder,
                text="\n".join(lines) + "\n",
            )
        if ended_by_itself(done).status:
            error = self._error(done.stderr, "the wheels of the lock could not be installed", EnvironmentBrokenError)
            if isinstance(error, NoSolutionError):  # the versions are given, so it is the index that lacks one
                hint = "no index in use gives that file: check UV_DEFAULT_INDEX, pip.conf and their credentials"
                raise NetworkError(error.message, hint=hint)
            raise error

    def remove(self, python: Path, names: Sequence[str]) -> None:
        """Remove packages from the environment of a Python."""
        done = self._run("pip", "uninstall", "--python", str(python), *names)
        if done.status:
            raise self._error(done.stderr, f"can't remove {', '.join(names)}", EnvironmentBrokenError)

    def forget(self, names: Sequence[str]) -> None:
        """Remove packages from uv's cache.

        A file that was changed in place is changed there, too: the two are one file with two names (hard links). To ask
        uv to look whether it is fresh does not help, since the index then says that nothing is new.
        """
        done = self._run("cache", "clean", *names)
        if done.status:
            raise self._error(done.stderr, f"{', '.join(names)} can't be removed from uv's cache")

    def cache_folder(self) -> Path:
        """Return the folder in which uv keeps what it has downloaded."""
        return Path(self._run("cache", "dir").stdout.strip())

    def clean_cache(self) -> None:
        """Empty uv's cache."""
        done = self._run("cache", "clean")
        if done.status:
            raise self._error(done.stderr, "uv's cache can't be emptied")
