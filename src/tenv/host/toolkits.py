"""The installed CUDA toolkits, and what is really in each of them.

A toolkit's own description (``version.json``) names what its installer was to bring. What counts is nvcc's word and the
files that are there; where the two differ, that is a problem of the toolkit.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tenv.host.interface import Fact, Missing
from tenv.host.parallel import each
from tenv.host.places import Places, read
from tenv.host.report import CompilerLimits, Toolkit
from tenv.versions import Version

__all__ = ["Nvcc", "compiler_limits", "parse_dryrun", "parse_host_config", "parse_nvcc", "parse_version_json", "probe"]

_LOCAL = "/usr/local"
_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_PARTS = ("bin", "include", "lib", "lib64", "targets", "nvvm", "version.json", "version.txt")
# Components with a library by which they are seen; CUPTI's file has another number than the component.
_LIBRARIES = {
    "cuda_cudart": "libcudart",
    "cuda_nvrtc": "libnvrtc",
    "cuda_cupti": "libcupti",
    "libcublas": "libcublas",
    "libcufft": "libcufft",
    "libcurand": "libcurand",
    "libcusolver": "libcusolver",
    "libcusparse": "libcusparse",
    "libnpp": "libnppc",
    "libnvjitlink": "libnvJitLink",
    "libnvjpeg": "libnvjpeg",
}
_UNNUMBERED = {"cuda_cupti"}
_NUMBER = re.compile(r"\d+(\.\d+){2,4}")
_RELEASE = re.compile(r"release (?P<release>\d+\.\d+), V(?P<build>\d+(\.\d+)+)", re.ASCII)
_TOP = re.compile(r"^#\$ TOP=(?P<top>.+)$", re.MULTILINE)
_GCC = re.compile(r"^#if\s+\(?__GNUC__\s*>\s*(\d+)", re.MULTILINE)
# At the beginning of the line: the bounds for the clang of NVIDIA's Grace stand further behind.
_CLANG = re.compile(r"^#if\s+\(*__clang_major__\s*(>=?)\s*(\d+)", re.MULTILINE)
_MSVC = re.compile(r"^#if\s+_MSC_VER\s*<\s*(\d+)\s*\|\|\s*_MSC_VER\s*>=\s*(\d+)", re.MULTILINE)
_RUNTIME = re.compile(r"^#define\s+CUDART_VERSION\s+(?P<number>\d{4,6})\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Nvcc:
    """What nvcc says of itself.

    Attributes:
        release: The CUDA release, such as 12.4.
        build: Its own version, such as 12.4.131.
    """

    release: Version
    build: Version


@dataclass(frozen=True, slots=True)
class _Way:
    """What leads to a toolkit.

    Attributes:
        name: Such as ``CUDA_HOME``.
        path: The toolkit's folder; where that could not be told, the program that should have.
        fault: Why it could not be told, or an empty string.
    """

    name: str
    path: Path
    fault: str = ""


def parse_nvcc(text: str) -> Nvcc | None:
    """Return what ``nvcc --version`` tells, None for another text."""
    match = _RELEASE.search(text)
    return Nvcc(Version(match["release"]), Version(match["build"])) if match else None


def parse_dryrun(text: str) -> str | None:
    """Return the toolkit's folder from what ``nvcc --dryrun`` prints."""
    match = _TOP.search(text)
    return match["top"].strip() if match else None


def parse_version_json(text: str) -> dict[str, str] | Missing:
    """Return the versions by component that a ``version.json`` names; ``cuda`` is the release."""
    try:
        rows = json.loads(text)
        return {str(name): str(row["version"]) for name, row in rows.items() if isinstance(row, dict)}
    except ValueError as error:
        return Missing(f"not JSON: {error}")
    except (AttributeError, LookupError):
        return Missing("not what NVIDIA writes")


def parse_host_config(text: str, file: str) -> CompilerLimits | None:
    """Return the bounds that a ``crt/host_config.h`` ends with an ``#error`` beyond, None for another text."""
    gcc, clang, msvc = _GCC.search(text), _CLANG.search(text), _MSVC.search(text)
    if not (gcc or clang or msvc):
        return None
    return CompilerLimits(
        file,
        gcc_max=int(gcc[1]) if gcc else None,
        clang_max=int(clang[2]) - (clang[1] == ">=") if clang else None,
        msvc_min=int(msvc[1]) if msvc else None,
        msvc_below=int(msvc[2]) if msvc else None,
    )


def compiler_limits(root: Path) -> CompilerLimits | None:
    """Return the bounds of the host compilers of the toolkit in a folder, None where no header of it tells."""
    for folder in (root, *sorted(root.glob("targets/*"))):
        file = folder / "include" / "crt" / "host_config.h"
        text = read(file)
        if not isinstance(text, Missing) and (found := parse_host_config(text, str(file))):
            return found
    return None


def probe(places: Places | None = None) -> Fact[tuple[Toolkit, ...]]:
    """Return the toolkits in ``/usr/local/cuda*``, ``CUDA_HOME``, ``CUDA_PATH`` and behind each nvcc on PATH.

    Args:
        places: Where to look; None means this machine.
    """
    places = places or Places()
    roots: dict[str, list[str]] = {}
    faults: dict[str, list[_Way]] = {}
    for way in _ways(places):
        target = os.path.realpath(way.path)
        if way.fault or not Path(target).is_dir():
            faults.setdefault(target, []).append(way)
        elif way.name in _VARIABLES or _is_toolkit(Path(target)):
            roots.setdefault(target, []).append(way.name)
    found = each(partial(_inspect, places), roots.items())
    broken = [_broken(path, ways) for path, ways in faults.items()]
    return Fact((*found, *broken), f"{_LOCAL}/cuda*, {', '.join(_VARIABLES)}, nvcc on PATH")


def _broken(path: str, ways: list[_Way]) -> Toolkit:
    said = [way.fault or f"{way.name} leads to {path}, which is not there" for way in ways]
    return Toolkit(path, tuple(way.name for way in ways), None, (), tuple(said))


def _is_toolkit(folder: Path) -> bool:
    return any((folder / part).exists() for part in _PARTS)


def _ways(places: Places) -> Iterator[_Way]:
    """Yield what leads to toolkits, in the order in which builds look: the variables, PATH, the usual folders."""
    for variable in _VARIABLES:
        if value := places.environ.get(variable):
            yield _Way(variable, Path(value))
    seen: set[str] = set()
    for folder in places.folders():
        nvcc = folder / "nvcc"
        real = os.path.realpath(nvcc)
        if nvcc.is_file() and os.access(nvcc, os.X_OK) and real not in seen:
            yield _of_nvcc(nvcc, "nvcc on PATH, behind another" if seen else "nvcc on PATH", places)
            seen.add(real)
    local = places.at(_LOCAL)
    for path in sorted(local.glob("cuda*")):
        if path.is_symlink() or path.is_dir():
            yield _Way(f"{_LOCAL}/{path.name}", path)


def _of_nvcc(nvcc: Path, name: str, places: Places) -> _Way:
    """Return the way to the toolkit that an nvcc belongs to; the one on PATH may be a script that calls it."""
    real = Path(os.path.realpath(nvcc))
    if real.parent.name == "bin" and (real.parent / "nvcc.profile").exists():
        return _Way(name, real.parent.parent)
    done = places.run(str(nvcc), "--dryrun", "tenv.cu")
    if isinstance(done, Missing):
        return _Way(name, real, f"{name} does not tell its toolkit: {done.reason}")
    if top := parse_dryrun(done.stderr + done.stdout):
        return _Way(name, Path(top))
    return _Way(name, real, f"{name} does not tell its toolkit: `{nvcc} --dryrun` prints no TOP")


def _inspect(places: Places, found: tuple[str, list[str]]) -> Toolkit:
    root, ways = Path(found[0]), found[1]
    problems: list[str] = []
    nvcc = _ask_nvcc(root, places, problems)
    named = _named(root, problems)
    release = named.get("cuda", "")
    if nvcc and release and Version(release).major_minor != nvcc.release.major_minor:
        problems.append(f"version.json says {release}, nvcc says {nvcc.release}")
    headers = _headers(root)
    if nvcc and headers and headers.major_minor != nvcc.release.major_minor:
        problems.append(f"the headers are those of {headers}, nvcc is of {nvcc.release}")
    version = nvcc.release if nvcc else (Version(release) if release else None)
    components = _components(root, named, nvcc, headers, problems)
    return Toolkit(
        str(root),
        tuple(dict.fromkeys(ways)),
        version,
        tuple(sorted(components.items())),
        tuple(problems),
        compiler_limits(root),
    )


def _ask_nvcc(root: Path, places: Places, problems: list[str]) -> Nvcc | None:
    program = root / "bin" / "nvcc"
    if not program.exists():
        problems.append("there is no bin/nvcc in it")
        return None
    done = places.run(str(program), "--version")
    if isinstance(done, Missing):
        problems.append(done.reason)
        return None
    answer = parse_nvcc(done.stdout)
    if answer is None:
        problems.append(f"{program} --version names no release (exit status {done.status})")
    return answer


def _named(root: Path, problems: list[str]) -> dict[str, str]:
    """Return the versions that the toolkit's description names; only those that are versions."""
    text = read(root / "version.json")
    if isinstance(text, Missing):
        old = read(root / "version.txt")  # until CUDA 11.0
        found = None if isinstance(old, Missing) else Version.find(old)
        return {"cuda": str(found)} if found else {}
    named = parse_version_json(text)
    if isinstance(named, Missing):
        problems.append(f"version.json can't be read: {named.reason}")
        return {}
    return {name: version for name, version in named.items() if re.fullmatch(r"\d+(\.\d+)+", version, re.ASCII)}


def _headers(root: Path) -> Version | None:
    try:
        with (root / "include" / "cuda_runtime_api.h").open(encoding="utf-8", errors="replace") as file:
            match = _RUNTIME.search(file.read(1 << 16))
    except OSError:
        return None
    return Version(f"{int(match['number']) // 1000}.{int(match['number']) % 1000 // 10}") if match else None


def _components(
    root: Path, named: Mapping[str, str], nvcc: Nvcc | None, headers: Version | None, problems: list[str]
) -> dict[str, str]:
    """Return the components that are there: by the numbers of their files, else as the description names them."""
    files = _library_files(root)
    components = {name: version for name, version in named.items() if name not in ("cuda", "nvidia_driver")}
    absent = [name for name in components if name in _LIBRARIES and _LIBRARIES[name] not in files]
    if absent:
        problems.append(f"version.json names {', '.join(sorted(absent))}, of which there is no library")
    for name in absent:
        del components[name]
    seen = {name: files.get(library, "") for name, library in _LIBRARIES.items() if name not in _UNNUMBERED}
    seen["cuda_nvcc"] = str(nvcc.build) if nvcc else ""
    if not seen["cuda_cudart"] and "cuda_cudart" not in components and headers and "libcudart" in files:
        seen["cuda_cudart"] = str(headers)
    for name, version in seen.items():
        if version and components.get(name, version) != version:
            problems.append(f"version.json says {components[name]} of {name}, which is {version}")
        if version:
            components[name] = version
    return components


def _library_files(root: Path) -> dict[str, str]:
    """Return the libraries that are there, each with the number in its file's name or an empty string."""
    found: dict[str, str] = {}
    for folder in (root / "lib64", root / "lib", *root.glob("targets/*/lib")):
        try:
            files = list(folder.iterdir())
        except OSError:
            continue
        for name in (file.name for file in files):
            library, ending, number = name.partition(".so")
            if not ending:
                library, ending, _ = name.removesuffix(".a").partition("_static")
            if ending or name.endswith(".a"):
                number = number.lstrip(".")
                found[library] = number if _NUMBER.fullmatch(number) else found.get(library, "")
    return found
