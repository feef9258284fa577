"""Builds wheels from source archives and from commits, and keeps each by a digest of all that went into it.

uv builds in a fresh folder, in an environment with the locked wheels alone, and opens no socket. uv's own cache of
built wheels is not used: it knows neither the environment of a build nor its variables.
"""

import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tenv.core import process
from tenv.core.damaged_archives import DAMAGED_ZIP
from tenv.core.errors import EnvironmentBrokenError, LockStaleError, NoSolutionError
from tenv.core.files import storage_errors
from tenv.core.names import WheelFile, is_wheel, pure_wheel
from tenv.core.user_folders import user_cache
from tenv.core.versions import Range
from tenv.core.wheel_platforms import marker_values
from tenv.host.machine import current_platform
from tenv.locks.lock import LockedTree, Wheel
from tenv.locks.wheel_answers import LockedWheel, wheels_brought
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.access import Access
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.archives.store import default_store
from tenv.sources.wheels.index_requests import located_sdist
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.project_metadata import build_system
from tenv.sources.wheels.uv import Uv
from tenv.targets.manifest import Manifest, WheelRequest
from tenv.toolchain.discover import python_program

NOTED = ".egg-info/requires.txt"
"""How the path of the requirements ends that setuptools notes in an archive."""
_DEEPEST = 4
_MOST = 1 << 28
"""The most bytes of a file in an archive that is read into memory."""
_UNREAD: tuple[type[Exception], ...] = (tarfile.TarError, EOFError, OSError, *DAMAGED_ZIP)

_PROGRAMS = (
    *("cc", "c++", "gcc", "g++", "clang", "clang++", "gfortran", "ld", "as", "make", "cmake", "ninja", "nvcc"),
    *("rustc", "cargo", "pkg-config"),
)
"""The programs that a build may run; another one at the same path counts as another input."""

_VARIABLES = ("CC", "CXX", "FC", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "FFLAGS", "LDFLAGS", "CUDA_HOME", "MAX_JOBS", "PATH")
"""The variables of the user that a build gets, and that count as its inputs."""

_PLACES = ("HOME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT")
FIXED = {"LANG": "C.UTF-8", "SOURCE_DATE_EPOCH": "315532800", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
"""The variables with which two builds of the same sources become the same files."""
_LINES, _FIRST = 12, 4
"""How many of its last lines a failure quotes, and how many errors of compilers above them."""
_OF_COMPILER = re.compile(
    r":\d+: (fatal )?error: |\(\d+\): error[: ]|: error: |undefined reference to|: cannot find -l|^\s*CMake Error"
)

_NO_NETWORK = re.compile(
    r"urlopen error|Errno 1\] Operation not permitted|failed: Operation not permitted|Network is unreachable|dns error"
    r"|name resolution|Name or service not known|(?:could not|couldn't|unable to|failed to) resolve\b"
    r"|failed to connect to|Max retries exceeded with url|CalledProcessError: Command .*?(?:https?|ftp|ssh|git)://",
    re.IGNORECASE,
)
"""The words of urllib, requests, curl, wget, git, CMake and uv without a network, and a command with an address."""
_IN_SOURCE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp)(?::\d+|\(\d+\)).*?\b(?:fatal )?error\b")
_RAISED = re.compile(r"^\W*(?:\w+\.)*\w+(?:Error|Exception)\b.*$", re.MULTILINE)
_NO_TORCH = re.compile(r"No module named '?torch\b(?!\w)")
_ASK = (
    "import sys, sysconfig as s; final = sys.version_info.releaselevel == 'final'; "
    "print(sys.implementation.cache_tag if final else sys.version, s.get_platform(), s.get_config_var('EXT_SUFFIX'))"
)
"""The patch release is left out: final releases of a minor have one ABI, and some wheels take hours."""


def built_folder() -> Path:
    """Return the folder of the built wheels."""
    return user_cache() / "built-wheels"


def forget_built() -> None:
    """Remove all built wheels."""
    with storage_errors(f"can't remove {built_folder()}"):
        shutil.rmtree(built_folder(), ignore_errors=True)


def build_sdist(
    access: Access, uv: Uv, python: Path, row: LockedTree, find: Callable[[], Path], target: str, so: str = ""
) -> Wheel:
    """Return the wheel that a source archive of a lock becomes, built or kept.

    Args:
        access: The settings and services of the user.
        uv: uv.
        python: A Python of the minor that the wheel is for.
        row: The source archive.
        find: Returns its path, compared with its digest; called only if it has to be built.
        target: The target, for messages.
        so: The consequence for the environment if it can't be built, for the message.

    Raises:
        EnvironmentBrokenError: It can't be built, or becomes another package.
        NetworkError: The archive or a wheel for its build can't be fetched.
        LockStaleError: The row has other wheels for the build than the archive asks for.
    """
    variables = build_variables(access.environ)
    place = built_folder() / key_of_build([row.file, row.digest, row.build, FIXED], python, variables)
    if kept := kept_build(place, row):
        return kept
    access.progress.step(f"building {row.file}")
    with tempfile.TemporaryDirectory(prefix="tenv-") as name:
        folder = Path(name)
        archive, out = folder / row.file, folder / "out"
        shutil.copyfile(find(), archive)
        own = _environment(access, uv, python, row, folder / "environment")
        values = marker_values(current_platform(), row.python[0])
        asked = asked_by_build(archive.read_bytes(), row.file, values)
        _require_asked(Wheels(folder / "environment"), row, asked, {}, values, target)
        path = os.pathsep.join(filter(None, (str(own.parent), variables.get("PATH"))))
        places = {name: access.environ[name] for name in _PLACES if access.environ.get(name)}
        done = uv.build(own, archive, out, {**places, **variables, **FIXED, "PATH": path})
        if done.status:
            raise _failure(row, done.stderr, so)
        return keep_built(wheel_in(out, row, so), place, row)


def stored_sdist(access: Access, uv: Uv, file: RemoteFile) -> Path:
    """Return a source archive in the store of archives, where a lock and each build after it find it again.

    Raises:
        NetworkError: It is not there, and can't be fetched.
        ForeignFolderError: Another user can write the store.
    """
    store = default_store(access.progress.say, access.unpack_limits())
    return store.fetch(Fetcher(access.settings(), uv.http, offline=access.offline), file).path


def locked_sdist(access: Access, uv: Uv, row: LockedTree, manifest: Manifest) -> Path:
    """Return the source archive of a row in the store of archives; an index is asked for one that is not there."""
    there = default_store().has(row.digest)
    url = "" if there else uv.sdist_urls([located_sdist(row, manifest)])[row.digest]
    return stored_sdist(access, uv, RemoteFile(row.file, url, row.digest, row.length))


def build_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the user that a build gets, and that count as its inputs."""
    return {name: environ[name] for name in _VARIABLES if environ.get(name, "").strip()}


def wheel_in(out: Path, row: LockedTree, so: str) -> Path:
    """Return the wheel that a build wrote into a folder.

    Raises:
        EnvironmentBrokenError: It is another package than that of the row.
    """
    built = [path for path in out.iterdir() if is_wheel(path.name)] if out.is_dir() else []
    file = WheelFile.parse(built[0].name) if len(built) == 1 else None
    fits = file and file.name == row.name and row.becomes(file.version)
    if not fits:
        said = ", ".join(path.name for path in built) or "nothing"
        raise EnvironmentBrokenError(
            f"{row.file or row.name} was to become a wheel of {row.name} {row.version}, not {said}{so}"
        )
    return built[0]


def _environment(access: Access, uv: Uv, python: Path, row: LockedTree, folder: Path) -> Path:
    """Make the environment of a build, and return its Python."""
    uv.make_environment(folder, python, "build")
    own, wheels = python_program(folder), pinned_wheels(row)
    if wheels:
        uv.install(own, wheels, (), access.progress)
    return own


def pinned_wheels(row: LockedTree) -> list[Wheel]:
    """Return the wheels that the row of a source archive locks for its build."""
    wheels = []
    for pin in row.build:
        name, version, digest = re.split("==| sha256:", pin)
        file = pure_wheel(name.replace("-", "_"), version)  # its size and tags are not in the lock
        wheels.append(Wheel(name, version, file, digest, None, row.python))
    return wheels


def require_pins(
    access: Access,
    uv: Uv,
    python: Path,
    row: LockedTree,
    asked: Mapping[str, WheelRequest],
    elsewhere: Mapping[str, str],
    values: Mapping[str, str],
    target: str,
) -> None:
    """Refuse locked wheels for a build that nothing asks for, before a program runs where they are installed.

    Args:
        access: The settings and services of the user.
        uv: uv.
        python: A Python of the minor that the build is for.
        row: The source archive.
        asked: The requests of the build.
        elsewhere: The versions of the packages that are there without the lock's wheels for the build, by name.
        values: The values of the marker environment.
        target: The target, for messages.

    Raises:
        LockStaleError: The row has other wheels for the build than are asked for.
    """
    with tempfile.TemporaryDirectory(prefix="tenv-") as name:
        folder = Path(name) / "environment"
        if row.build:
            _environment(access, uv, python, row, folder)
        _require_asked(Wheels(folder), row, asked, elsewhere, values, target)


def _require_asked(
    there: Wheels,
    row: LockedTree,
    asked: Mapping[str, WheelRequest],
    elsewhere: Mapping[str, str],
    values: Mapping[str, str],
    target: str,
) -> None:
    """Refuse wheels that the build of an archive does not need: they run in it, and the manifest names none of them.

    Raises:
        LockStaleError: The row in the lock has such a wheel, or lacks one.
    """
    rows = {name: LockedWheel(version, there.requirements(name)) for name, version in there.versions().items()}
    faults = [f"{name} is not in the lock" for name in asked if name not in rows and name not in elsewhere]
    faults += [
        f"{name} {rows[name].version} is locked, its [build-system] asks for {request.version}"
        for name, request in asked.items()
        if name in rows and rows[name].version not in request.version
    ]
    if faults := [*faults, *wheels_brought(rows, asked, elsewhere, values)]:
        raise LockStaleError(
            f"{row.file}: of the wheels for its build, {faults[0]}",
            hint=f"`tenv update {target} {row.name}` locks those that its [build-system] asks for",
        )


def key_of_build(inputs: Sequence[object], python: Path, variables: Mapping[str, str]) -> str:
    """Return the digest of the inputs of a build, as JSON values, with Python, the compilers and the variables."""
    asked = process.run([str(python), "-I", "-c", _ASK])
    if isinstance(asked, process.Missing) or asked.status:
        raise EnvironmentBrokenError(f"{python} does not run")
    programs = {}
    for name in (*_PROGRAMS, *(variables[word] for word in ("CC", "CXX", "FC") if variables.get(word, "").strip())):
        if found := process.find(name.split()[0], variables.get("PATH")):
            path = Path(found).resolve()
            programs[name] = [str(path), path.stat().st_size, path.stat().st_mtime_ns]
    whole = [*inputs, asked.stdout, variables, programs]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def kept_build(place: Path, row: LockedTree) -> Wheel | None:
    """Return the wheel in a folder of built wheels; None unless it is whole and this user's."""
    try:
        name, digest = (place / "wheel").read_text().split()
        data = (place / name).read_bytes()
        own = os.name == "nt" or (place / name).stat().st_uid == place.stat().st_uid == os.getuid()
    except (OSError, ValueError):
        return None
    if not own or hashlib.sha256(data).hexdigest() != digest or Path(name).name != name:
        return None
    version = name.split("-")[1]
    return Wheel(row.name, version, name, digest, len(data), row.python, path=str(place / name))


def keep_built(built: Path, place: Path, row: LockedTree) -> Wheel:
    """Move a built wheel into the folder of built wheels; a run beside this one may have put the same there."""
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    with storage_errors(f"can't write to {place}"):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=place.parent) as name:
            new = Path(name) / "new"
            new.mkdir()
            shutil.move(built, new / built.name)
            (new / "wheel").write_text(f"{built.name} {digest}\n")
            shutil.rmtree(place, ignore_errors=True)
            new.rename(place)
    version = built.name.split("-")[1]
    return Wheel(row.name, version, built.name, digest, None, row.python, path=str(place / built.name))


def _failure(row: LockedTree, output: str, so: str) -> EnvironmentBrokenError:
    said = f"{row.file} can't be built{so}:{last_lines(output)}"
    return EnvironmentBrokenError(said, hint=hint_of_failure(output), detail=output)


def last_lines(output: str) -> str:
    """Return the last lines of a failed build, each on a line of its own with two blanks before it.

    The first errors of compilers stand above them, which warnings of other files may follow.
    """
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("tenv-sandbox")]
    first = [line for line in lines[:-_LINES] if _OF_COMPILER.search(line)][:_FIRST]
    return "".join(f"\n  {line}" for line in (*first, *lines[-_LINES:][len(first) :]))


def wants_network(output: str) -> bool:
    """Return whether a build without a network failed since it asked for one, and not at an error in its sources."""
    return _NO_NETWORK.search(output) is not None and _IN_SOURCE.search(output) is None


def hint_of_failure(output: str) -> str:
    """Return the hint for a failed build that had no network and its requirements alone; empty for none."""
    if wants_network(output):
        return "its build wants a network, which a build of a locked source archive or commit does not get"
    if _NO_TORCH.search(output):
        return "it is compiled against torch: `isolation = false` in its request builds it with the target's torch"
    if any("ModuleNotFoundError" in line for line in _RAISED.findall(output)[-1:]):
        return "its [build-system] does not name all that its build needs: it has to be built by hand"
    return ""


def asked_by_build(raw: bytes, file: str, values: Mapping[str, str]) -> dict[str, WheelRequest]:
    """Return the requests of the ``[build-system]`` of a source archive.

    Args:
        raw: The archive.
        file: Its name.
        values: The values of the marker environment.

    Raises:
        NoSolutionError: It can't be read, or a request is not for a release.
    """
    requires, *_ = build_system(member(raw, file, "pyproject.toml"), file)
    asked = {}
    for text in requires:
        found = requirement_of(text)
        if found is None or "@" in text.partition(";")[0]:
            raise NoSolutionError(f"{file}: its build needs `{text}`, which is no request for a release")
        if found.holds(values, ""):
            asked[found.name] = WheelRequest(Range(str(found.specifier) or "*"), found.extras)
    return asked


def member(raw: bytes, file: str, name: str) -> bytes | None:
    """Return a file in the top folder of an archive, or the note of setuptools in it; None if it is not there.

    Raises:
        NoSolutionError: The archive can't be read.
    """
    try:
        if file.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                found = [one for one in archive.infolist() if _is_at_top(one.filename, name)]
                return archive.read(found[0]) if found and found[0].file_size < _MOST else None
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            for member in tar:
                if _is_at_top(member.name, name) and member.isreg() and member.size < _MOST:
                    opened = tar.extractfile(member)
                    return opened.read() if opened else None
    except _UNREAD as error:
        raise NoSolutionError(f"{file} ({hashlib.sha256(raw).hexdigest()[:12]}) can't be read: {error}") from error
    return None


def _is_at_top(path: str, name: str) -> bool:
    parts = path.removeprefix("./").split("/")
    return path.endswith(NOTED) and len(parts) <= _DEEPEST if name == NOTED else parts[1:] == [name]
