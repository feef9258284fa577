"""Detect the installed CUDA toolkits and their actual contents.

A toolkit's own description (``version.json``) lists the components of its installer. nvcc's output and the existing
files take precedence; a difference is a problem of the toolkit.
"""

import json
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.files import entries_of, open_regular
from tenv.core.threads import each
from tenv.core.versions import Version
from tenv.host.field import HostField, Lane, plain
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.nvidia import first_line
from tenv.host.places import Places, environment_of, exists, is_file, is_folder, is_link, read
from tenv.host.report import FoundBy, Lead, ProblemKind, Toolkit, ToolkitProblem
from tenv.host.toolkit_content import absent, compiler_limits, patched
from tenv.host.toolkit_ways import LOOKED_AT, PROGRAMS, ToolkitCandidate, ways

_HEADER = "include/cuda_runtime_api.h"
_PARTS = ("bin", "include", "lib", "lib64", "targets", "nvvm", "version.json", "version.txt")
# Components that are detected by a library; CUPTI's file has another version than the component.
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
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9}){2,4}")
_RELEASE = re.compile(r"release (?P<release>\d{1,9}\.\d{1,9}), V(?P<build>\d{1,9}(\.\d{1,9})+)", re.ASCII)
_RUNTIME = re.compile(r"^#define\s+CUDART_VERSION\s+(?P<number>\d{4,6})\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Nvcc:
    """The versions that nvcc reports."""

    release: Version
    """The CUDA release, such as 12.4."""
    build: Version
    """Its own version, such as 12.4.131."""


def parse_nvcc(text: str) -> Nvcc | None:
    """Return the versions in the output of ``nvcc --version``; None for other texts."""
    match = _RELEASE.search(text)
    return Nvcc(Version(match["release"]), Version(match["build"])) if match else None


def parse_version_json(text: str) -> dict[str, str] | Missing:
    """Return the versions by component in a ``version.json``; ``cuda`` is the release."""
    try:
        rows = json.loads(text)
        return {str(name): str(row["version"]) for name, row in rows.items() if isinstance(row, dict)}
    except (ValueError, RecursionError) as error:
        return Missing(f"not JSON: {error}", ReasonKind.UNREADABLE)
    except (AttributeError, LookupError):
        return Missing("not in NVIDIA's format", ReasonKind.UNREADABLE)


def probe(places: Places) -> Fact[tuple[Toolkit, ...]]:
    """Return the toolkits that variables, PATH and the usual folders name, each folder once."""
    roots: dict[str, list[FoundBy]] = {}
    faults: dict[str, list[ToolkitCandidate]] = {}
    for way in ways(places):
        target = os.path.realpath(way.path)
        if way.fault or not is_folder(Path(target)):
            faults.setdefault(target, []).append(way)
        elif way.kind is Lead.CUDA_VARIABLE or any(exists(Path(target) / part) for part in _PARTS):
            roots.setdefault(target, []).append(FoundBy(way.kind, way.name))
    found = each(partial(_inspect, places), roots.items())
    broken = [_broken(path, leading) for path, leading in faults.items()]
    return Fact((*found, *broken), LOOKED_AT, OriginKind.SEARCH)


def _broken(path: str, leading: list[ToolkitCandidate]) -> Toolkit:
    problems = [
        ToolkitProblem(ProblemKind.UNPLACED, way.fault)
        if way.fault
        else ToolkitProblem(ProblemKind.GONE, f"{way.name} names {path}, which does not exist")
        for way in leading
    ]
    return Toolkit(path, tuple(FoundBy(way.kind, way.name) for way in leading), None, (), tuple(problems))


def _inspect(places: Places, found: tuple[str, list[FoundBy]]) -> Toolkit:
    root, leading = Path(found[0]), found[1]
    home = _home(root)
    problems: list[ToolkitProblem] = []
    nvcc = _ask_nvcc(root, places, problems)
    named = _named(root, nvcc, problems)
    release = Version(named["cuda"]) if "cuda" in named else None
    if nvcc and release and release.major_minor != nvcc.release.major_minor:
        problems.append(ToolkitProblem(ProblemKind.RELEASE, f"version.json has {release}, nvcc has {nvcc.release}"))
        release = nvcc.release
    headers = _headers(home)
    if nvcc and headers and headers.major_minor != nvcc.release.major_minor:
        text = f"the headers are from {headers}, nvcc is from {nvcc.release}"
        problems.append(ToolkitProblem(ProblemKind.HEADERS, text))
    version = release or (nvcc.release if nvcc else None)
    components = _components(_library_files(home), named, nvcc, headers, problems)
    return Toolkit(
        path=str(root),
        found_by=tuple(dict.fromkeys(leading)),
        version=version,
        components=tuple(sorted(components.items())),
        problems=tuple(problems),
        compiles=nvcc is not None,
        home="" if home == root else str(home),
        environment=str(environment_of(root) or ""),
        compilers=compiler_limits(home),
        patched=patched(home),
        absent=absent(root, home, places) if nvcc else None,
    )


def _home(root: Path) -> Path:
    """Return the folder with a toolkit's headers: Debian has nvcc in its own folder and the rest in ``/usr``."""
    usr = root.parent.parent
    apart = not exists(root / _HEADER) and exists(usr / _HEADER) and exists(usr / "bin" / "nvcc")
    return usr if apart and root.parent.name == "lib" else root


def _ask_nvcc(root: Path, places: Places, problems: list[ToolkitProblem]) -> Nvcc | None:
    program = next((root / "bin" / name for name in PROGRAMS if exists(root / "bin" / name)), None)
    if program is None:
        problems.append(ToolkitProblem(ProblemKind.NO_NVCC, "it has no bin/nvcc"))
        return None
    done = places.run(str(program), "--version")
    if isinstance(done, Missing):
        problems.append(ToolkitProblem(ProblemKind.NVCC_FAILS, done.reason))
        return None
    answer = parse_nvcc(done.stdout)
    if answer is None:
        said = f": {line}" if (line := first_line(done.stderr)) else ""
        text = f"{program} --version reports no release (exit status {done.status}{said})"
        problems.append(ToolkitProblem(ProblemKind.NVCC_FAILS, text))
    return answer


def _named(root: Path, nvcc: Nvcc | None, problems: list[ToolkitProblem]) -> dict[str, str]:
    """Return the versions in the toolkit's description; of several descriptions, the one of nvcc's release."""
    described = {str(path.relative_to(root)): _read_description(path, problems) for path in _descriptions(root)}
    described = {name: versions for name, versions in described.items() if "cuda" in versions}
    if len({Version(versions["cuda"]).major_minor for versions in described.values()}) > 1:
        said = ", ".join(f"{name} has {versions['cuda']}" for name, versions in described.items())
        problems.append(ToolkitProblem(ProblemKind.DESCRIPTIONS, f"it has several descriptions that differ: {said}"))
    fits = (v for v in described.values() if nvcc and Version(v["cuda"]).major_minor == nvcc.release.major_minor)
    return next(fits, next(iter(described.values()), {}))


def _descriptions(root: Path) -> list[Path]:
    found = [
        root / "version.json",
        root / "version.txt",
        *root.glob("*/version.json"),
        *root.glob("targets/*/version.json"),
    ]
    return [path for path in found if is_file(path) or is_link(path)]


def _read_description(path: Path, problems: list[ToolkitProblem]) -> dict[str, str]:
    """Return the valid versions of a description."""
    text = read(path)
    if isinstance(text, Missing):
        problems.append(ToolkitProblem(ProblemKind.DESCRIPTION, f"{path.name} can't be read: {text.reason}"))
        return {}
    if path.suffix == ".txt":  # until CUDA 11.0
        found = Version.find(text)
        return {"cuda": str(found)} if found else {}
    named = parse_version_json(text)
    if isinstance(named, Missing):
        problems.append(ToolkitProblem(ProblemKind.DESCRIPTION, f"version.json can't be read: {named.reason}"))
        return {}
    return {name: version for name, version in named.items() if re.fullmatch(r"\d{1,9}(\.\d{1,9})+", version, re.ASCII)}


def _headers(home: Path) -> Version | None:
    try:
        with open_regular(home / _HEADER) as file:
            match = _RUNTIME.search(file.read(1 << 16).decode("utf-8", "replace"))
    except OSError:
        return None
    return Version(f"{int(match['number']) // 1000}.{int(match['number']) % 1000 // 10}") if match else None


def _components(
    files: Mapping[str, str],
    named: Mapping[str, str],
    nvcc: Nvcc | None,
    headers: Version | None,
    problems: list[ToolkitProblem],
) -> dict[str, str]:
    """Return the installed components: by the versions of their files, else from the description."""
    components = {name: version for name, version in named.items() if name not in ("cuda", "nvidia_driver")}
    absent = [name for name in components if name in _LIBRARIES and _LIBRARIES[name] not in files]
    if absent:
        text = f"version.json lists {', '.join(sorted(absent))} without a library"
        problems.append(ToolkitProblem(ProblemKind.NO_LIBRARY, text))
    for name in absent:
        del components[name]
    seen = {name: files.get(library, "") for name, library in _LIBRARIES.items() if name not in _UNNUMBERED}
    seen["cuda_nvcc"] = str(nvcc.build) if nvcc else ""
    if not seen["cuda_cudart"] and "cuda_cudart" not in components and headers and "libcudart" in files:
        seen["cuda_cudart"] = str(headers)
    for name, version in seen.items():
        if version and components.get(name, version) != version:
            text = f"version.json has {components[name]} for {name}, which is {version}"
            problems.append(ToolkitProblem(ProblemKind.COMPONENT, text))
        if version:
            components[name] = version
    return components


def _library_files(home: Path) -> dict[str, str]:
    """Return the existing libraries, each with the version in its file name or an empty string."""
    found: dict[str, str] = {}
    for folder in (
        home / "lib64",
        home / "lib",
        *home.glob("targets/*/lib"),
        *home.glob("lib/*-linux-gnu*"),
        home / "lib/x64",
    ):
        for name in (file.name for file in entries_of(folder)):
            if name.endswith(".lib"):  # of Windows
                found[f"lib{name.removesuffix('.lib')}"] = ""
                continue
            library, ending, number = name.partition(".so")
            if not ending:
                library, ending, _ = name.removesuffix(".a").partition("_static")
            if ending or name.endswith(".a"):
                number = number.lstrip(".")
                found[library] = number if _NUMBER.fullmatch(number) else found.get(library, "")
    return found


def _write(found: tuple[Toolkit, ...]) -> list[dict[str, Any]]:
    """Return the JSON of toolkits; their components are an object by name."""
    return [{**plain(one), "components": dict(one.components)} for one in found]


def _show_all(found: tuple[Toolkit, ...]) -> list[str]:
    """Return the lines of toolkits in the output of ``tenv host``."""
    return [line for one in found for line in _show(one)]


def _show(toolkit: Toolkit) -> list[str]:
    lines = [f"{toolkit.version or 'unknown'}  {toolkit.path}, by {toolkit.ways}"]
    if toolkit.components:
        lines.append("  " + ", ".join(f"{name} {version}" for name, version in toolkit.components))
    if toolkit.absent:
        lines.append(f"  without {', '.join(toolkit.absent)}")
    return [*lines, *(f"  problem: {problem.text}" for problem in toolkit.problems)]


TOOLKITS = HostField(
    label="toolkits",
    meaning=(
        "the CUDA toolkits that variables (`CUDA_HOME`, `CUDA_PATH`, those of environment modules), each `nvcc` on "
        "PATH and the usual folders name, each folder once; their components by the versions of their files, and "
        "their problems"
    ),
    form=(
        "a list of `path`, `found_by` (a list of `kind`, `text`), `version` (or null), `components`, `problems` (a "
        "list of `kind`, `text`), `compiles`, `home`, `environment`, `compilers` (or null), `patched`, `absent` (or "
        "null)"
    ),
    probe=lambda scan: probe(scan.places),
    show=_show_all,
    write=_write,
    lane=Lane.ALONE,
)
