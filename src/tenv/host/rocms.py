"""Detect the installed ROCm: its release, the version of each part, its compiler and the architectures that it takes.

AMD's packages have one folder (``/opt/rocm-6.4.3``); Debian and Fedora scatter the same files below ``/usr``.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tenv.core.versions import Version
from tenv.host.field import HostField, Lane, plain
from tenv.host.interface import Fact, Missing, OriginKind
from tenv.host.places import Places, environment_of, is_file, is_folder, read
from tenv.host.report import FoundBy, Lead, Rocm

VARIABLES = ("ROCM_PATH", "ROCM_HOME")
"""The variables that builds read: LoadHIP.cmake the first one, torch.utils.cpp_extension both."""

LOOKED_AT = f"{', '.join(VARIABLES)}, `rocm-sdk path --root`, hipcc on PATH, /opt/rocm*, /usr"
"""The searched places, for messages."""

PARTS = (
    *("rocm-core", "hip", "hiprtc", "hsa-runtime64", "amd_comgr", "rocm_smi", "rocblas", "hipblas", "hipblaslt"),
    *("miopen", "rccl", "rocfft", "hipfft", "rocrand", "hiprand", "rocsparse", "hipsparse", "hipsparselt"),
    *("rocsolver", "hipsolver", "rocprim", "hipcub", "rocthrust", "rocshmem", "composable_kernel", "roctracer"),
)
"""The parts by the names of their CMake packages, which LoadHIP.cmake searches for."""

_SCATTERED = ("/usr/bin/hipcc", "/usr/lib/*-linux-gnu/cmake/hip", "/usr/lib64/cmake/hip", "/usr/lib/cmake/hip")
_RELEASE = re.compile(r"(?a)(\d{1,3}(?:\.\d{1,5}){1,2})")
_MACRO = r"^[ \t]*#[ \t]*define[ \t]+{}_VERSION_{}[ \t]+([0-9]{{1,9}})\b"
_PACKAGE = re.compile(r"""^\s*set\s*\(\s*PACKAGE_VERSION\s+"?([\d.]+)""", re.MULTILINE | re.IGNORECASE)
_GFX = re.compile(r"gfx[0-9a-f]{3,4}(?![0-9a-f])")
_ISA = re.compile(r"oclc_isa_version_([0-9a-f]{3,4})\.bc")


def probe(places: Places) -> Fact[tuple[Rocm, ...]]:
    """Return the installed ROCms, the choice of a build first; an empty list without any."""
    found: dict[str, list[FoundBy]] = {}
    for way, folder in _ways(places):
        found.setdefault(os.path.realpath(folder), []).append(way)
    rocms = [_describe_or_why(places, Path(path), tuple(ways)) for path, ways in found.items()]
    kept = tuple(one for one in rocms if one.hip or one.version or one.found_by[0].kind is Lead.ROCM_VARIABLE)
    return Fact(kept, LOOKED_AT, OriginKind.SEARCH)


def _ways(places: Places) -> Iterator[tuple[FoundBy, Path]]:
    for variable in VARIABLES:
        if value := places.environ.get(variable):
            yield FoundBy(Lead.ROCM_VARIABLE, variable), Path(value)
    if program := places.find("rocm-sdk"):
        done = places.run(program, "path", "--root")
        lines = [] if isinstance(done, Missing) or done.status else done.stdout.split("\n")
        if lines and lines[0].startswith("/") and "\0" not in lines[0]:
            yield FoundBy(Lead.ROCM_SDK, "rocm-sdk path --root"), Path(lines[0].strip())
    yield from _of_folders(places)


def _of_folders(places: Places) -> Iterator[tuple[FoundBy, Path]]:
    for path in (places.root / "opt/rocm", *sorted(places.root.glob("opt/rocm-*"), reverse=True)):
        if is_folder(path):
            name = places.named(path)
            yield FoundBy(Lead.DEFAULT_FOLDER if name == "/opt/rocm" else Lead.FOLDER, name), path
    if program := places.find("hipcc"):
        folder = Path(os.path.realpath(program)).parent
        if folder.name == "bin":
            yield FoundBy(Lead.PATH, "hipcc on PATH"), folder.parent
    for pattern in _SCATTERED:
        for path in sorted(places.root.glob(pattern.lstrip("/"))):
            yield FoundBy(Lead.FOLDER, places.named(path)), places.root / "usr"


def library_folders(root: Path) -> list[Path]:
    """Return the folders with the libraries of a ROCm; below ``/usr``, Debian's and Fedora's among them."""
    return [
        folder for folder in (root / "lib", root / "lib64", *sorted(root.glob("lib/*-linux-gnu"))) if is_folder(folder)
    ]


def cmake_folders(root: Path, part: str) -> list[Path]:
    """Return the folders of a part's CMake package."""
    places = [*(folder / "cmake" for folder in library_folders(root)), root / "share" / "cmake"]
    return [folder for place in places if is_folder(folder := place / part)]


def _describe_or_why(places: Places, root: Path, ways: tuple[FoundBy, ...]) -> Rocm:
    """Return a ROCm; one that can't be read, such as a path of 5,000 characters, has the reason as its problem."""
    try:
        return _describe(places, root, ways)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        return Rocm(str(root), ways, None, problems=(f"{ways[0].text} can't be read: {reason}",))


def _describe(places: Places, root: Path, ways: tuple[FoundBy, ...]) -> Rocm:
    hip = _macros(root, "include/hip/hip_version.h", "HIP")
    release = _release(root)
    version = release or (Version(hip.major_minor) if hip else None)
    parts = tuple((name, text) for name in PARTS if (text := _part(root, name)) is not None)
    clang, bitcode = _clang(places, root), _bitcode(root)
    problems = []
    if not is_folder(root):
        problems.append(f"{ways[0].text} names {root}, which is no folder")
    elif version is None:
        problems.append("it has neither .info/version nor rocm_version.h nor hip_version.h")
    elif clang is None:
        problems.append("it has no clang++ for HIP")
    return Rocm(
        path=str(root),
        found_by=ways,
        version=version,
        hip=hip,
        derived=release is None and hip is not None,
        parts=parts,
        clang=str(clang or ""),
        bitcode=str(bitcode or ""),
        compiles=_compiles(places, clang, bitcode),
        kernels=_kernels(root),
        problems=tuple(problems),
        environment=str(environment_of(root) or ""),
    )


def _release(root: Path) -> Version | None:
    for name in (".info/version", ".info/version-rocm"):
        text = read(root / name)
        if isinstance(text, str) and (match := _RELEASE.match(text.strip())):
            return Version(match[1])
    headers = ("include/rocm-core/rocm_version.h", "include/rocm_version.h")
    return next((found for name in headers if (found := _macros(root, name, "ROCM"))), None)


def _macros(root: Path, header: str, name: str) -> Version | None:
    text = read(root / header)
    if isinstance(text, Missing):
        return None
    numbers = [re.search(_MACRO.format(name, part), text, re.MULTILINE) for part in ("MAJOR", "MINOR", "PATCH")]
    return Version(".".join(found[1] for found in numbers if found)) if all(numbers) else None


def _part(root: Path, name: str) -> str | None:
    """Return the version of a part by its CMake package; empty if that has none, None without the package."""
    for folder in cmake_folders(root, name):
        files = [file for file in sorted(folder.glob("*[cC]onfig*.cmake")) if is_file(file)]
        for file in files:
            text = read(file) if "ersion" in file.name else ""
            if isinstance(text, str) and (match := _PACKAGE.search(text)):
                return match[1]
        if files:
            return ""
    return None


def _clang(places: Places, root: Path) -> Path | None:
    """Return the clang++ for HIP: of HIP_CLANG_PATH, else of ROCm, else of Debian's hipcc."""
    named = places.environ.get("HIP_CLANG_PATH")
    own = [Path(named)] if named else []
    own += [root / name for name in ("lib/llvm/bin", "llvm/bin", "lib64/rocm/llvm/bin")]
    for folder in own:
        if is_file(folder / "clang++"):
            return folder / "clang++"
    scripts = (read(path) for path in (root / "bin/hipcc", *sorted(root.glob("share/hip/*"))) if is_file(path))
    packaged = _packaged_clang(root, [text for text in scripts if isinstance(text, str)])
    return packaged if packaged and is_file(packaged) else None


def _packaged_clang(root: Path, texts: Sequence[str]) -> Path | None:
    """Return the clang++ of the llvm folder in a text of hipcc, else the newest with device libraries."""
    for text in texts:
        if match := re.search(r"/usr/lib/llvm-(\d{1,3})\b", text):
            return root / f"lib/llvm-{match[1]}/bin/clang++"
    found = [path for path in root.glob("lib/llvm-*/bin/clang++") if _isas(_bitcodes_of(path))]
    return max(found, key=lambda path: int(path.parts[-3].partition("-")[2]), default=None)


def _bitcodes_of(clang: Path) -> list[Path]:
    return sorted(clang.parent.parent.glob("lib/clang/*/lib*/amdgcn/bitcode")) + sorted(
        clang.parent.parent.glob("lib/clang/*/amdgcn/bitcode")
    )


def _bitcode(root: Path) -> Path | None:
    """Return the folder of the device libraries."""
    patterns = ("amdgcn/bitcode", "lib/llvm/lib/clang/*/lib/amdgcn/bitcode", "lib/*-linux-gnu/amdgcn/bitcode")
    more = ("lib/llvm-*/lib/clang/*/amdgcn/bitcode", "lib/clang/*/amdgcn/bitcode", "lib64/amdgcn/bitcode")
    found = (path for pattern in (*patterns, *more) for path in sorted(root.glob(pattern), reverse=True))
    return next((path for path in found if _isas([path])), None)


def _isas(folders: Sequence[Path]) -> set[str]:
    files = (file.name for folder in folders if is_folder(folder) for file in folder.glob("oclc_isa_version_*.bc"))
    return {f"gfx{match[1]}" for name in files if (match := _ISA.fullmatch(name))}


def _compiles(places: Places, clang: Path | None, bitcode: Path | None) -> tuple[str, ...] | None:
    """Return the architectures that the compiler knows and the device libraries have; None if neither was asked."""
    if clang is None or bitcode is None:
        return None
    done = places.run(str(clang), "--target=amdgcn-amd-amdhsa", "--print-supported-cpus")
    if isinstance(done, Missing):
        return None
    known = set(_GFX.findall(done.stdout + done.stderr)) & _isas([bitcode])
    return tuple(sorted(known, key=lambda gfx: (len(gfx), gfx))) or None


def _kernels(root: Path) -> tuple[str, ...]:
    """Return the architectures for which rocBLAS has kernels."""
    folders = [
        path
        for folder in library_folders(root)
        for path in (folder / "rocblas/library", *folder.glob("rocblas/*/library"))
        if is_folder(path)
    ]
    found = {gfx for folder in folders for file in folder.glob("*") for gfx in _GFX.findall(file.name)}
    return tuple(sorted(found, key=lambda gfx: (len(gfx), gfx)))


def _write(found: tuple[Rocm, ...]) -> list[dict[str, Any]]:
    """Return the JSON of ROCms, whose parts are an object by name."""
    return [{**plain(one), "parts": dict(one.parts)} for one in found]


def _show(found: tuple[Rocm, ...]) -> list[str]:
    lines = []
    for one in found:
        release = f"{one.version or 'of unknown release'}{' (by HIP)' if one.derived else ''}"
        lines.append(f"{release}  {one.path}, by {one.ways}")
        if one.parts:
            lines.append("  " + ", ".join(f"{name} {text}".strip() for name, text in one.parts))
        if one.compiles is not None:
            lines.append(f"  compiles for {', '.join(one.compiles)}")
        lines += [f"  {problem}" for problem in one.problems]
    return lines


ROCMS = HostField(
    label="rocms",
    meaning=(
        "the installed ROCms; `version` is of `.info/version` or `rocm_version.h`, else HIP's major and minor "
        "(`derived`); `parts` are CMake packages, `compiles` the architectures of its compiler and device libraries, "
        "`kernels` those of rocBLAS"
    ),
    form=(
        "a list of `path`, `found_by`, `version` (or null), `hip` (or null), `derived`, `parts`, `clang`, `bitcode`, "
        "`compiles` (or null), `kernels`, `problems`, `environment`"
    ),
    probe=lambda scan: probe(scan.places),
    show=_show,
    write=_write,
    lane=Lane.ALONE,
)
