"""Wheels: resolved with hashes and installed by uv, which is run as a program; no other module runs it."""

import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tenv import process
from tenv.errors import (
    EnvironmentBrokenError,
    HashMismatchError,
    HostError,
    NetworkError,
    NoSolutionError,
    StorageError,
    TenvError,
)
from tenv.lock import Wheel
from tenv.manifest import Manifest, WheelRequest, normalize
from tenv.providers.indexes import uv_environment
from tenv.providers.interface import Progress, Transfer
from tenv.versions import Version

__all__ = ["Interpreter", "Uv", "download_progress", "join", "requirement"]

_MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "win-64": "amd64"}
_OLDEST_GLIBC = Version("2.17")
_OLDEST_X86_GLIBC_MINOR = 5  # manylinux1, the first of all (PEP 513)
_SIZE_TIMEOUT = 30.0
_CONNECTIONS = 8

# The bar holds no blanks: where it may, a line that is padded to the terminal's width takes cubic time.
_BAR = re.compile(r"(?P<name>[\w.-]+) +[-━╸]{10,} +(?P<done>[\d.]+ ?[KMGT]?i?B)/(?P<total>[\d.]+ ?[KMGT]?i?B)")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python on this machine.

    Attributes:
        path: Its program.
        version: Its version.
        headers: Whether ``Python.h`` is there, without which no extension can be compiled.
    """

    path: Path
    version: Version
    headers: bool


def requirement(name: str, request: WheelRequest) -> str:
    """Return a request as one line of a requirements file."""
    extras = f"[{','.join(request.extras)}]" if request.extras else ""
    return f"{name}{extras}{request.version.specifiers}"


class Uv:
    """uv with the index settings of this user.

    Attributes:
        environment: The environment that it is run in.
        offline: Take everything from the cache.
    """

    def __init__(self, environment: Mapping[str, str], home: Path, *, offline: bool = False) -> None:
        from uv import find_uv_bin  # noqa: PLC0415 (late, and only here)

        self.environment = uv_environment(environment, home)
        self.offline = offline
        self._program = find_uv_bin()

    def _command(self, *arguments: str) -> list[str]:
        offline = ["--offline"] if self.offline else []
        return [self._program, *arguments, *offline, "--color", "never"]

    def _run(self, *arguments: str, text: str | None = None) -> process.Completed:
        # In an empty folder: the settings of whatever project the user stands in must not decide what is chosen.
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            done = process.run(self._command(*arguments), environment=self.environment, folder=Path(folder), text=text)
        if isinstance(done, process.Missing):
            raise HostError(f"uv, a part of tenv, does not run here: {done.reason}", hint="install tenv again")
        return done

    def resolve(
        self, manifest: Manifest, platform: str, python: str, kept: Sequence[Wheel], upgrade: Sequence[str] | None
    ) -> dict[str, tuple[Wheel, str]]:
        """Choose the wheels of one platform and Python minor.

        The choice depends on the manifest and the indexes, never on the machine that runs it.

        Args:
            manifest: The manifest as it reads on the platform.
            platform: The platform.
            python: The Python minor, such as ``3.12``.
            kept: Wheels of an earlier lock, whose versions stay where they still fit.
            upgrade: Names whose version is chosen anew all the same; None for all.

        Returns:
            By name: the wheel, and the URL at which the index has it.

        Raises:
            NoSolutionError: No set of versions fits.
            NetworkError: An index does not answer.
        """
        lines = [requirement(name, request) for name, request in sorted(manifest.wheels.items())]
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            chosen = Path(folder) / "pylock.toml"
            constraints = Path(folder) / "constraints.txt"
            pins = [] if upgrade is None else [w for w in kept if w.name not in upgrade and python in w.python]
            constraints.write_text("".join(f"{wheel.name}=={wheel.version}\n" for wheel in pins))
            done = self._compile(lines, manifest, platform, python, constraints, chosen)
            # Where what was locked no longer fits together, choose anew; not where an index failed for a moment.
            if done.status and pins and isinstance(_error(done.stderr, ""), NoSolutionError):
                constraints.write_text("")
                done = self._compile(lines, manifest, platform, python, constraints, chosen)
            if done.status:
                raise _error(done.stderr, f"no set of wheels for {manifest.name} on {platform} with Python {python}")
            data = tomllib.loads(chosen.read_text())
        tags = _tags(platform, python, manifest.requirements.glibc or _OLDEST_GLIBC)
        return dict(_choose(package, tags, python) for package in data.get("packages", []))

    def _compile(
        self, lines: Iterable[str], manifest: Manifest, platform: str, python: str, constraints: Path, chosen: Path
    ) -> process.Completed:
        return self._run(
            *("pip", "compile", "-", "--quiet", "--format", "pylock.toml", "--output-file", str(chosen)),
            *("--python-platform", _uv_platform(platform, manifest.requirements.glibc or _OLDEST_GLIBC)),
            *("--python-version", python, "--only-binary", ":all:", "--no-header", "--no-python-downloads"),
            # uv wants a Python to run at all, though nothing is taken from it: ours is always there.
            *("--constraints", str(constraints), "--resolution", "highest", "--python", sys.executable),
            text="\n".join(lines) + "\n",
        )

    def sizes(self, urls: Iterable[str], progress: Progress) -> dict[str, int]:
        """Ask the indexes for the sizes of files; a file whose size they do not tell is left out."""
        import requests  # noqa: PLC0415 (late: 82 ms)

        session = requests.Session()
        session.verify = (
            self.environment.get("REQUESTS_CA_BUNDLE") or self.environment.get("SSL_CERT_FILE") or session.verify
        )

        def ask(url: str) -> tuple[str, int | None]:
            if urlsplit(url).scheme == "file":
                size = Path(unquote(urlsplit(url).path)).stat().st_size
            else:
                try:
                    answer = session.head(url, allow_redirects=True, timeout=_SIZE_TIMEOUT)
                except requests.RequestException:
                    return url, None
                length = answer.headers.get("Content-Length", "")
                size = int(length) if answer.ok and length.isdigit() else 0
            progress.advance()
            return url, size or None

        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            return {url: size for url, size in pool.map(ask, urls) if size is not None}

    def interpreters(self, manifest: Manifest) -> list[Interpreter]:
        """Return the Pythons of this machine that a manifest accepts, best first.

        Best is the highest minor; but one with ``Python.h`` comes before any without, since PyTorch can't be built
        with the latter.
        """
        minors = manifest.python_minors()
        if not minors:
            return []
        wanted = f">={minors[0]},<{Version(minors[-1]).major}.{Version(minors[-1]).minor + 1}"
        done = self._run("python", "list", "--only-installed", "--output-format", "json", wanted)
        rows = json.loads(done.stdout or "[]") if done.status == 0 else []
        found: dict[tuple[int, ...], Interpreter] = {}
        for row in rows:
            python = self._interpreter(row, minors)
            if python and (key := tuple(map(int, python.version.text.split(".")))) not in found:
                found[key] = python
        return sorted(found.values(), key=lambda python: (python.headers, python.version), reverse=True)

    def _interpreter(self, row: Mapping[str, Any], minors: Sequence[str]) -> Interpreter | None:
        version = Version.find(str(row.get("version", "")))
        if version is None or version.major_minor not in minors:
            return None
        if row.get("implementation") != "cpython" or row.get("variant", "default") != "default":
            return None
        return self.inspect(Path(row["path"]))

    def inspect(self, program: Path) -> Interpreter | None:
        """Ask a Python for its version and its headers; None when it is no working Python."""
        code = "import sys, sysconfig; print(*sys.version_info[:3], sep='.'); print(sysconfig.get_path('include'))"
        environment = {name: value for name, value in self.environment.items() if not name.startswith("PYTHON")}
        done = process.run([str(program), "-I", "-c", code], environment=environment, timeout=20)
        if isinstance(done, process.Missing) or done.status:
            return None
        lines = done.stdout.splitlines()
        if len(lines) != 2 or not re.fullmatch(r"\d+(\.\d+)+", lines[0]):  # noqa: PLR2004 (two prints)
            return None
        return Interpreter(program, Version(lines[0]), (Path(lines[1]) / "Python.h").is_file())

    def fetch_python(self, minor: str) -> Path:
        """Fetch a Python of a minor through uv, unless uv has one already, and return its program.

        Raises:
            NetworkError: It can't be had.
        """
        found = self._run("python", "find", "--managed-python", minor)
        if found.status:
            done = self._run("python", "install", "--no-bin", minor)
            if done.status:
                raise _error(done.stderr, f"no Python {minor} on this machine, and none could be fetched")
            found = self._run("python", "find", "--managed-python", minor)
        if found.status or not found.stdout.strip():
            raise NetworkError(f"no Python {minor} on this machine, and none could be fetched")
        return Path(found.stdout.strip())

    def make_environment(self, prefix: Path, python: Path, prompt: str) -> None:
        """Make an empty Python environment in a folder that may already hold files."""
        done = self._run("venv", str(prefix), "--python", str(python), "--allow-existing", "--prompt", prompt)
        if done.status:
            raise _error(done.stderr, f"can't make a Python environment in {prefix}", EnvironmentBrokenError)

    def install(self, python: Path, wheels: Sequence[Wheel], progress: Progress) -> None:
        """Install exactly the files that a lock names into the environment of a Python.

        Raises:
            HashMismatchError: A file's bytes are not those of the lock.
            NetworkError: A file can't be had.
            StorageError: The disk is full or can't be written.
        """
        lines = [f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}" for wheel in wheels]
        arguments = self._command(
            *("pip", "install", "--python", str(python), "--no-deps", "--require-hashes", "--only-binary", ":all:"),
            # The hashes decide which file is taken, so it may come from any of the indexes.
            *("--index-strategy", "unsafe-best-match", "--requirement", "-"),
        )
        with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
            done = process.watch(
                arguments,
                download_progress(wheels, progress),
                environment=self.environment,
                folder=Path(folder),
                text="\n".join(lines) + "\n",
            )
        if done.status:
            error = _error(done.stderr, "the wheels of the lock could not be installed", EnvironmentBrokenError)
            if isinstance(error, NoSolutionError):  # the versions are given, so it is the index that lacks one
                hint = "no index in use gives that file: check UV_DEFAULT_INDEX, pip.conf and their credentials"
                raise NetworkError(error.message, hint=hint)
            raise error

    def remove(self, python: Path, names: Sequence[str]) -> None:
        """Remove packages from the environment of a Python."""
        done = self._run("pip", "uninstall", "--python", str(python), *names)
        if done.status:
            raise _error(done.stderr, f"can't remove {', '.join(names)}", EnvironmentBrokenError)

    def cache_folder(self) -> Path:
        """Return the folder in which uv keeps what it has downloaded."""
        return Path(self._run("cache", "dir").stdout.strip())

    def clean_cache(self) -> None:
        """Empty uv's cache."""
        done = self._run("cache", "clean")
        if done.status:
            raise _error(done.stderr, "uv's cache can't be emptied")


def _uv_platform(platform: str, glibc: Version) -> str:
    if platform == "win-64":
        return "x86_64-pc-windows-msvc"
    # uv knows manylinux of each minor from 2.17 on.
    return f"{_MACHINES[platform]}-manylinux_{glibc.major}_{glibc.minor}"


def _tags(platform: str, python: str, glibc: Version) -> dict[Any, int]:
    """Return the tags of wheels that run on a platform, each with its rank (0 is the most specific)."""
    from packaging.tags import compatible_tags, cpython_tags  # noqa: PLC0415 (late)

    minor = Version(python)
    version = (minor.major, minor.minor)
    if platform == "win-64":
        platforms = ["win_amd64"]
    else:
        machine = _MACHINES[platform]
        oldest = _OLDEST_X86_GLIBC_MINOR if machine == "x86_64" else _OLDEST_GLIBC.minor
        legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # PEP 600's names for these
        platforms = [
            f"{name}_{machine}"
            for number in range(glibc.minor, oldest - 1, -1)
            for name in (f"manylinux_2_{number}", *([legacy[number]] if number in legacy else []))
        ] + [f"linux_{machine}"]
    abi = f"cp{minor.major}{minor.minor}"
    tags = [*cpython_tags(version, [abi], platforms), *compatible_tags(version, abi, platforms)]
    return {tag: rank for rank, tag in enumerate(tags)}


def _choose(package: Mapping[str, Any], tags: Mapping[Any, int], python: str) -> tuple[str, tuple[Wheel, str]]:
    """Return a package's name with the file that fits best and its URL."""
    from packaging.utils import parse_wheel_filename  # noqa: PLC0415 (late)

    name = normalize(package["name"])
    ranked = []
    for row in package.get("wheels", []):
        url = row.get("url") or Path(row["path"]).absolute().as_uri()
        file = unquote(urlsplit(url).path.rsplit("/", 1)[-1])
        rank = min((tags[tag] for tag in parse_wheel_filename(file)[3] if tag in tags), default=None)
        if rank is not None and "sha256" in row.get("hashes", {}):
            wheel = Wheel(name, package["version"], file, row["hashes"]["sha256"], row.get("size"), (python,))
            ranked.append((rank, file, wheel, url))
    if not ranked:
        raise NoSolutionError(f"{name} {package.get('version', '')}: the index has no wheel that fits, with its sha256")
    _, _, wheel, url = min(ranked, key=lambda row: row[:2])
    return name, (wheel, url)


def join(resolved: Iterable[dict[str, tuple[Wheel, str]]], sizes: Mapping[str, int]) -> tuple[Wheel, ...]:
    """Join the choices for each Python minor into the wheels of a platform: one row a file, in a stable order.

    Args:
        resolved: The choice for each minor.
        sizes: Sizes in bytes, by sha256.
    """
    rows: dict[tuple[str, str, str], Wheel] = {}
    for choice in resolved:
        for wheel, _ in choice.values():
            key = (wheel.name, wheel.version, wheel.file)
            have = rows.get(key)
            minors = {*(have.python if have else ()), *wheel.python}
            size = wheel.size if wheel.size is not None else sizes.get(wheel.sha256)
            rows[key] = replace(wheel, size=size, python=tuple(sorted(minors, key=Version)))
    return tuple(rows[key] for key in sorted(rows))


def download_progress(wheels: Sequence[Wheel], progress: Progress) -> Callable[[str], None]:
    """Return a function that reads uv's talk and tells `progress` how far each download is.

    uv draws a bar for each file; what it draws is for people, so a line that is not understood is passed over.
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


_ERRORS: tuple[tuple[re.Pattern[str], type[TenvError], str], ...] = (
    (
        re.compile(
            r"Hash mismatch|hashes? .*(do not|don't|does not) match|Failed to extract archive|Bad CRC", re.IGNORECASE
        ),
        HashMismatchError,
        "the index has another file than the one that was locked: ask whoever runs the index",
    ),
    (
        re.compile(r"No space left|os error 28|quota exceeded", re.IGNORECASE),
        StorageError,
        "free some space, then retry",
    ),
    (
        re.compile(r"Read-only file system|Permission denied|os error (13|30)\b", re.IGNORECASE),
        StorageError,
        "name a folder that can be written with `--prefix`, and a cache with UV_CACHE_DIR",
    ),
    (
        re.compile(r"Network connectivity is disabled|but .*offline|network was disabled", re.IGNORECASE),
        NetworkError,
        "it is not in the cache: run the same command once without `--offline`",
    ),
    (
        re.compile(
            r"Failed to (fetch|download)|error sending request|Could not connect|dns error|timed out|connection|"
            r"HTTP status|Request failed|certificate|returned a (401|403|407) ",
            re.IGNORECASE,
        ),
        NetworkError,
        "check the network and the index settings (UV_DEFAULT_INDEX, pip.conf), then run the same command again",
    ),
    (re.compile(r"No solution found|unsatisfiable|not found in", re.IGNORECASE), NoSolutionError, ""),
)


def _error(talk: str, what: str, otherwise: type[TenvError] = NoSolutionError) -> TenvError:
    """Return the error that uv's words stand for, or `otherwise` where they are not known."""
    text = _tidy(talk)
    for pattern, kind, hint in _ERRORS:
        if pattern.search(text):
            return kind(f"{what}:\n{text}", hint=hint)
    return otherwise(f"{what}:\n{text}")


def _tidy(talk: str) -> str:
    """Return uv's error without its progress, its warnings about other Pythons and its colours."""
    # On a terminal, an error begins on the line of the progress that it ends.
    talk = re.sub(r"  (?=error: |\u00d7 )", "\n", talk.replace("\r", "\n"))
    lines = [line.rstrip() for line in talk.split("\n") if line.strip()]
    starts = [number for number, line in enumerate(lines) if re.match(r"\s*(error:|\u00d7 )", line)]
    kept = lines[starts[0] :] if starts else lines[-12:]
    return "\n".join("  " + re.sub(r"^error: ", "", line.strip()) for line in kept[:40])
