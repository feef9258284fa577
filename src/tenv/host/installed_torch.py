"""Read a torch that is installed, or its wheel, without importing it: the values that decide which toolkit fits it.

Every value is a `Fact` with the file that holds it, or a `Missing` with the reason. The files may be of anyone: they
are searched with patterns, up to a size each. `tenv.host.torch_files` finds them.

Sources: the files of the wheels of torch 1.13 to 2.15. ``torch/version.py`` has the version with the local part, which
the metadata of a wheel from the default index lacks.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.elf import ElfFaultError, ElfFile
from tenv.core.versions import Version
from tenv.core.wheel_platforms import glibc_of
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind, fact_to_json
from tenv.host.report import FoundTorch
from tenv.host.torch_files import BasePython, TorchFiles, TorchPlace, find_torch

_SMALL, _LARGE, _LIBRARY = 1 << 18, 1 << 22, 1 << 27
"""The largest file of each kind that is read, in bytes: ``cpp_extension.py`` has 140 kB, ``libc10.so`` 2 MB."""
_MOST_ROWS = 400

_VALUE = r"^{name}(?:\s*:[^=\n]{{0,80}})?\s*=\s*(?:None|['\"](?P<text>[^'\"\\\n]{{1,200}})['\"])\s*$"
_CODE = re.compile(r"code=((?:sm|compute)_\d{2,3}[af]?)\b", re.ASCII)
_FLAGS = re.compile(r'^#define\s+NVCC_FLAGS_EXTRA\s+"([^"\n]{0,20000})"', re.MULTILINE)
_DEMAND = re.compile(r"__cplusplus\s*<\s*(20\d\d)\d\dL[^#]{0,200}#error C\+\+")
_DEFAULT = re.compile(r"^[ \t]*cflags = common_cflags \+.{0,200}-std=c\+\+(\d\d)", re.MULTILINE)
_TABLE = r"^CUDA_{name}_VERSIONS(?:\s*:[^=\n]{{0,80}})?\s*=\s*\{{(?P<rows>[^{{}}]{{0,20000}})\}}"
_ROW = re.compile(r"'(\d+\.\d+)'\s*:\s*\((MINIMUM_\w+_VERSION|\([\d, ]{1,30}\))\s*,\s*\(([\d, ]{1,30})\)\)")
_LEAST = r"^MINIMUM_{name}_VERSION\s*=\s*\(([\d, ]{{1,30}})\)"
_ERROR = re.compile(rb"\0_ZN3c105ErrorC[12]E([^\0]{0,400})")
_COMPILER = re.compile(rb"GCC: \([^)\0]{0,80}\) (\d+(?:\.\d+)+)|clang version (\d+(?:\.\d+)+)")
_TAG = re.compile(r"^Tag:\s*(\S{1,300})\s*$", re.MULTILINE)
_MODULE = re.compile(r"_C\.(?:cpython-(\d{2,4}t?)|(cp\d{2,4}t?))[.-]")
_REQUIRES = re.compile(r"^Requires-Dist:[ \t]*((?:nvidia|cuda)-[^\n]{1,400})$", re.MULTILINE)
_GLIBC = re.compile(r"GLIBC_(\d+\.\d+)")
_YEARS = {"2011": 11, "2014": 14, "2017": 17, "2020": 20, "2023": 23}
_LABEL = re.compile(r"cu(\d{2})(\d)", re.ASCII)
_NO_FILES = Missing("a version has no files: name an environment or a wheel", ReasonKind.NONE)


class TorchKind(StrEnum):
    """The accelerator that a torch was compiled for."""

    CPU = "cpu"
    CUDA = "cuda"
    ROCM = "rocm"
    XPU = "xpu"


@dataclass(frozen=True, slots=True)
class CompilerBounds:
    """The host compilers that torch's ``cpp_extension.py`` accepts with one minor version of the toolkit."""

    compiler: str
    """``gcc`` or ``clang``."""
    cuda: str
    """The minor version of nvcc."""
    least: Version
    """The oldest version."""
    below: Version
    """The first version that is too new."""


@dataclass(frozen=True, slots=True)
class InstalledTorch:
    """The values of a torch; each has the file that holds it, or the reason why it is not known."""

    place: str
    """The folder ``torch``, or the wheel."""
    where: TorchPlace
    """The kind of that place."""
    prefix: str
    """The environment that was searched; empty for a wheel."""
    version: Fact[str] | Missing = _NO_FILES
    """The version with its local part, ``2.15.0+cu132``."""
    kind: Fact[TorchKind] | Missing = _NO_FILES
    """The accelerator that it was compiled for."""
    cuda: Fact[Version] | Missing = _NO_FILES
    """The CUDA release of its compiler, major and minor."""
    hip: Fact[str] | Missing = _NO_FILES
    """The version of ROCm's HIP."""
    xpu: Fact[str] | Missing = _NO_FILES
    """The release of Intel's compiler."""
    python: Fact[str] | Missing = _NO_FILES
    """The tag of its Python, ``cp312``."""
    gpu_code: Fact[tuple[str, ...]] | Missing = _NO_FILES
    """Its GPU code as nvcc names it: ``sm_90`` is machine code, ``compute_90`` is PTX."""
    cxx11_abi: Fact[bool] | Missing = _NO_FILES
    """Whether its ``std::string`` is that of the new ABI (``_GLIBCXX_USE_CXX11_ABI``)."""
    compiler: Fact[str] | Missing = _NO_FILES
    """The compiler of its C++ code, ``GCC 13.3.1``."""
    least_cxx: Fact[int] | Missing = _NO_FILES
    """The oldest C++ standard that its headers compile with: 17, 20."""
    default_cxx: Fact[int] | Missing = _NO_FILES
    """The C++ standard that its ``cpp_extension.py`` adds where none is named."""
    bounds: Fact[tuple[CompilerBounds, ...]] | Missing = _NO_FILES
    """The host compilers that its ``cpp_extension.py`` accepts."""
    glibc: Fact[Version] | Missing = _NO_FILES
    """The oldest glibc that it runs on."""
    requires: Fact[tuple[str, ...]] | Missing = _NO_FILES
    """The CUDA packages that it requires, as in its metadata."""
    base: Fact[BasePython] | Missing = _NO_FILES
    """The Python that runs it."""

    @property
    def release(self) -> Version | None:
        """Its version without the local part; None if it is not known."""
        return Version.find(self.version.value) if isinstance(self.version, Fact) else None

    @property
    def label(self) -> str:
        """Its version as users write it; ``unknown`` where it is not known."""
        return self.version.value if isinstance(self.version, Fact) else "unknown"

    @property
    def has_cuda(self) -> bool:
        """Whether it was compiled for CUDA."""
        return isinstance(self.cuda, Fact)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values: each value with its origin, or the reason why it is missing."""
        bounds = self.bounds
        rows = bounds.value if isinstance(bounds, Fact) else ()
        row = [{"compiler": r.compiler, "cuda": r.cuda, "least": str(r.least), "below": str(r.below)} for r in rows]
        names = ("version", "kind", "cuda", "hip", "xpu", "python", "compiler", "glibc")
        plain = ("cxx11_abi", "least_cxx", "default_cxx")
        return {
            "place": self.place,
            "where": self.where.value,
            "prefix": self.prefix,
            **{name: fact_to_json(getattr(self, name)) for name in names},
            **{name: fact_to_json(getattr(self, name), lambda value: value) for name in plain},
            "gpu_code": fact_to_json(self.gpu_code, list),
            "bounds": fact_to_json(bounds, lambda _: row),
            "requires": fact_to_json(self.requires, list),
            "base": fact_to_json(
                self.base, lambda base: {n: getattr(base, n) for n in ("prefix", "version", "header")}
            ),
        }


def read_torch(path: Path) -> InstalledTorch | Missing:
    """Return the torch that a path leads to; see `tenv.host.torch_files.find_torch` for the paths."""
    files = find_torch(path)
    return files if isinstance(files, Missing) else read_torch_files(files)


def read_torch_files(files: TorchFiles) -> InstalledTorch:
    """Return the values of a torch by its files."""
    values = _Text.of(files.read("version.py", _SMALL))
    helper = _Text.of(files.read("utils/cpp_extension.py", _LARGE))
    tags = _Text.of(files.info("WHEEL", _SMALL))
    library = _library(files)
    kind = _kind(values)
    base = files.python
    return InstalledTorch(
        place=files.place,
        where=files.kind,
        prefix=files.prefix,
        version=values.setting("__version__"),
        kind=kind,
        cuda=_map(values.setting("cuda"), Version.find),
        hip=values.setting("hip"),
        xpu=values.setting("xpu"),
        python=_python_tag(files, tags),
        gpu_code=_gpu_code(files, kind),
        cxx11_abi=_abi(library, _Text.of(files.read("share/cmake/Torch/TorchConfig.cmake", _SMALL))),
        compiler=_compiler(library),
        least_cxx=_map(_Text.of(files.read("include/ATen/ATen.h", _SMALL)).found(_DEMAND), _YEARS.get),
        default_cxx=_map(helper.found(_DEFAULT), int),
        bounds=_bounds(helper),
        glibc=_glibc(tags, library),
        requires=_requires(_Text.of(files.info("METADATA", _LARGE))),
        base=base if isinstance(base, Missing) else Fact(base, base.source, OriginKind.SEARCH),
    )


def torch_in_short(files: TorchFiles, way: str) -> FoundTorch | None:
    """Return the contents of a torch's version file; None where it has no version.

    Args:
        files: Its files.
        way: How it was found.
    """
    values = _Text.of(files.read("version.py", _SMALL))
    version, kind = values.setting("__version__"), _kind(values)
    if isinstance(version, Missing) or isinstance(kind, Missing):
        return None
    cuda = _map(values.setting("cuda"), Version.find)
    found = cuda.value if isinstance(cuda, Fact) else None
    return FoundTorch(files.place, version.value, kind.value.value, found, way)


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a file; or why it can't be read."""

    text: str
    origin: str
    missing: Missing | None = None

    @classmethod
    def of(cls, answer: tuple[bytes, str] | Missing) -> "_Text":
        if isinstance(answer, Missing):
            return cls("", "", answer)
        return cls(answer[0].decode("utf-8", "replace"), answer[1])

    def found(self, pattern: re.Pattern[str]) -> Fact[str] | Missing:
        """Return the first group of a pattern."""
        if self.missing:
            return self.missing
        match = pattern.search(self.text)
        if match is None:
            return Missing(f"{self.origin} has no such line", ReasonKind.UNREADABLE)
        return Fact(match[1], self.origin, OriginKind.PACKAGE)

    def setting(self, name: str) -> Fact[str] | Missing:
        """Return the text that a line ``NAME = '…'`` holds, with or without a type in it."""
        if self.missing:
            return self.missing
        match = re.search(_VALUE.format(name=name), self.text, re.MULTILINE)
        if match and match["text"]:
            return Fact(match["text"], self.origin, OriginKind.PACKAGE)
        return Missing(f"{self.origin} has none", ReasonKind.NONE)


def _map(answer: Fact[str] | Missing, convert: Any) -> Any:
    """Return an answer with its value converted; a value that can't be is missing."""
    if isinstance(answer, Missing):
        return answer
    value = convert(answer.value)
    if value is None:
        return Missing(f"{answer.origin} has {answer.value}", ReasonKind.UNREADABLE)
    return Fact(value, answer.origin, OriginKind.PACKAGE)


def _kind(values: _Text) -> Fact[TorchKind] | Missing:
    if values.missing:
        return values.missing
    for name, kind in (("hip", TorchKind.ROCM), ("rocm", TorchKind.ROCM), ("xpu", TorchKind.XPU)):
        if isinstance(values.setting(name), Fact):
            return Fact(kind, values.origin, OriginKind.PACKAGE)
    has_cuda = isinstance(values.setting("cuda"), Fact)
    return Fact(TorchKind.CUDA if has_cuda else TorchKind.CPU, values.origin, OriginKind.PACKAGE)


def _python_tag(files: TorchFiles, tags: _Text) -> Fact[str] | Missing:
    module = files.module()
    if not isinstance(module, Missing) and (match := _MODULE.match(module[0])):
        return Fact(f"cp{match[1]}" if match[1] else match[2], module[1], OriginKind.PACKAGE)
    tag = tags.found(_TAG)
    return tag if isinstance(tag, Missing) else Fact(tag.value.partition("-")[0], tag.origin, OriginKind.PACKAGE)


def _gpu_code(files: TorchFiles, kind: Fact[TorchKind] | Missing) -> Fact[tuple[str, ...]] | Missing:
    if isinstance(kind, Fact) and kind.value is not TorchKind.CUDA:
        return Missing(f"a torch for {kind.value} has no code for NVIDIA's GPUs", ReasonKind.NONE)
    flags = _Text.of(files.read("include/ATen/cuda/CUDAConfig.h", _SMALL)).found(_FLAGS)
    return (
        flags
        if isinstance(flags, Missing)
        else Fact(tuple(dict.fromkeys(_CODE.findall(flags.value))), flags.origin, OriginKind.PACKAGE)
    )


def _library(files: TorchFiles) -> tuple[ElfFile, str] | Missing:
    answer = files.read("lib/libc10.so", _LIBRARY)
    if isinstance(answer, Missing):
        return answer
    try:
        return ElfFile(answer[0]), answer[1]
    except ElfFaultError as error:
        return Missing(f"{answer[1]}: {error}", ReasonKind.UNREADABLE)


def _abi(library: tuple[ElfFile, str] | Missing, config: _Text) -> Fact[bool] | Missing:
    """Return the ABI by the arguments of the constructors of ``c10::Error``; a version does not decide it."""
    if isinstance(library, Missing):
        return library
    elf, origin = library
    try:
        names = [match[1] for match in _ERROR.finditer(elf.strings)]
    except ElfFaultError as error:
        return Missing(f"{origin}: {error}", ReasonKind.UNREADABLE)
    new = any(b"__cxx11" in name for name in names)
    old = any(b"Ss" in name for name in names)
    if new is not old:
        return Fact(new, f"{origin} (c10::Error)", OriginKind.PACKAGE)
    flag = config.found(re.compile(r"_GLIBCXX_USE_CXX11_ABI=([01])"))
    if isinstance(flag, Fact):
        return Fact(flag.value == "1", flag.origin, OriginKind.PACKAGE)
    return Missing(f"{origin} has no constructor of c10::Error", ReasonKind.UNREADABLE)


def _compiler(library: tuple[ElfFile, str] | Missing) -> Fact[str] | Missing:
    if isinstance(library, Missing):
        return library
    elf, origin = library
    try:
        comment = elf.section(".comment")
    except ElfFaultError as error:
        return Missing(f"{origin}: {error}", ReasonKind.UNREADABLE)
    found = [(f"GCC {m[1].decode()}" if m[1] else f"clang {m[2].decode()}") for m in _COMPILER.finditer(comment)]
    if not found:
        return Missing(f"{origin} names no compiler", ReasonKind.NONE)
    newest = max(found, key=lambda name: Version.find(name) or Version("0"))  # the C library's files name an older one
    return Fact(newest, f"{origin} (.comment)", OriginKind.PACKAGE)


def _bounds(helper: _Text) -> Fact[tuple[CompilerBounds, ...]] | Missing:
    if helper.missing:
        return helper.missing
    rows = []
    for compiler, name in (("gcc", "GCC"), ("clang", "CLANG")):
        table = re.search(_TABLE.format(name=name), helper.text, re.MULTILINE)
        least = re.search(_LEAST.format(name=name), helper.text, re.MULTILINE)
        for cuda, low, high in _ROW.findall(table["rows"])[:_MOST_ROWS] if table else ():
            lowest = (least[1] if least else "") if low.startswith("MINIMUM") else low.strip("()")
            if (lower := _tuple(lowest)) and (upper := _tuple(high)):
                rows.append(CompilerBounds(compiler, cuda, lower, upper))
    if not rows:
        return Missing(f"{helper.origin} has no bounds of compilers", ReasonKind.NONE)
    return Fact(tuple(rows), helper.origin, OriginKind.PACKAGE)


def _tuple(text: str) -> Version | None:
    """Return the version of a tuple's numbers: ``13, 0`` is 13.0."""
    return Version.find(".".join(part.strip() for part in text.split(",") if part.strip()))


def _glibc(tags: _Text, library: tuple[ElfFile, str] | Missing) -> Fact[Version] | Missing:
    """Return the oldest glibc: the tag's; without one in the metadata, the newest symbol of libc10."""
    tag = tags.found(_TAG)
    if isinstance(tag, Fact) and (found := glibc_of(tag.value)):
        return Fact(found, tag.origin, OriginKind.PACKAGE)
    if isinstance(library, Missing):
        return library
    try:
        names = [name for versions in library[0].required_versions().values() for name in versions]
    except ElfFaultError as error:
        return Missing(f"{library[1]}: {error}", ReasonKind.UNREADABLE)
    needed = [Version(match[1]) for name in names if (match := _GLIBC.fullmatch(name))]
    newest = max(needed, default=None)
    return (
        Fact(newest, f"{library[1]} (its symbols)", OriginKind.PACKAGE)
        if newest
        else Missing(f"{library[1]} needs no glibc", ReasonKind.NONE)
    )


def _requires(metadata: _Text) -> Fact[tuple[str, ...]] | Missing:
    if metadata.missing:
        return metadata.missing
    head = metadata.text.partition("\n\n")[0]
    return Fact(
        tuple(row.rstrip() for row in _REQUIRES.findall(head)[:_MOST_ROWS]), metadata.origin, OriginKind.PACKAGE
    )


def torch_from_label(text: str) -> tuple[Version, str] | None:
    """Return the release and the CUDA of a version such as ``2.9+cu128``: 2.9 and ``12.8``; None for another text.

    The second part is ``cpu``, ``rocm…`` or ``xpu`` as written for such a torch, and empty where there is none.
    """
    match = re.fullmatch(r"(?:torch==)?(\d+\.\d+(?:\.\d+)?)(?:\+([a-z0-9.]{1,40}))?", text, re.ASCII)
    if match is None:
        return None
    label = match[2] or ""
    cuda = _LABEL.fullmatch(label)
    return Version(match[1]), f"{cuda[1]}.{cuda[2]}" if cuda else label
