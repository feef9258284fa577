"""The files of facts: tenv's own, and the user's files, which add or replace rows.

A user's file has the name and the format of its table (``cuda_driver.toml``). Its row replaces the row with the same
key, or is added if there is none; a plain table (``[forward_compat]``) is replaced as a whole.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from tenv.core.dataclass import dataclass
from tenv.core.errors import FactsError
from tenv.core.toml_reader import Table, nearest, read_toml
from tenv.facts.interface import Basis, expand

T = TypeVar("T")

_SCHEMA = 1
_DATA = Path(__file__).parent / "data"
_COMMON = ("confirmed", "note", "source")
_HEADER = re.compile(r"\s*\[\[\s*(\w+)\s*\]\]\s*(#.*)?")


@dataclass(frozen=True, slots=True)
class Section:
    """An array of tables in a data file."""

    key: tuple[str, ...]
    """The columns that identify a row."""
    columns: tuple[str, ...] = ()
    """The other columns to show to users."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The content of a data file."""

    about: str
    """Its topic, in a few words."""
    sections: Mapping[str, Section]
    """Its arrays of tables."""


_ARCHIVE = ("version", "platform", "cuda")

LAYOUTS: Mapping[str, Layout] = {
    "cuda_driver": Layout(
        "the NVIDIA driver that a CUDA toolkit needs",
        {
            "minor_version_compat": Section(("cuda_major",), ("min_linux", "min_windows")),
            "toolkit": Section(("toolkit",), ("rn_linux", "bundled_linux", "mvc_min_linux", "rn_windows")),
            "forward_compat_row": Section(("package",), ("cuda", "by_branch")),
            "forward_compat_evaluation": Section(("driver_branch",)),
            "forward_compat_open": Section(("driver_branch",), ("cuda_from",)),
            "container_require": Section(("image",), ("cuda", "fallback_branches")),
        },
    ),
    "cuda_gpu_arch": Layout(
        "the GPU architectures of a CUDA toolkit, the compute capability of a GPU",
        {
            "toolkit": Section(("major_minor",), ("min", "max", "sm")),
            "family": Section(("name",), ("cc", "toolkits")),
            "gpu": Section(("name",), ("cc", "kind")),
        },
    ),
    "gpu_driver": Layout(
        "the driver branches and the kernel module of a GPU, the CUDA of a Jetson, the Windows driver that WSL needs",
        {
            "generation": Section(("name",), ("cc", "first_linux", "ends_linux", "ends_windows", "module")),
            "jetson": Section(("l4t",), ("jetpack", "cuda", "driver", "cc")),
            "wsl": Section(("since",)),
        },
    ),
    "gpu_pci": Layout("the GPU behind a PCI device id", {"device": Section(("id",), ("chip", "cc", "kind", "name"))}),
    "cuda_host_compiler": Layout(
        "the host compilers and the glibc that a CUDA toolkit works with",
        {
            "toolkit": Section(
                ("major_minor",), ("gcc_min", "gcc_max", "clang_min", "clang_max", "msvc_min", "msvc_below")
            ),
            "gcc_break": Section(
                ("toolkit_from", "fails_from_gcc"), ("toolkit_to", "fails_below_gcc", "certain", "what")
            ),
            "glibc_header_conflict": Section(
                ("toolkit_from", "fails_from_glibc"), ("toolkit_to", "platform", "functions", "types")
            ),
            "last_for_system": Section(("system",), ("glibc", "last_toolkit")),
        },
    ),
    "created_targets": Layout(
        "where environments of the built-in targets were created",
        {"environment": Section(("target", "platform"), ("place",))},
    ),
    "cuda_parts": Layout(
        "the parts of a CUDA toolkit that a build looks for, and their packages",
        {"part": Section(("name",), ("component", "files", "apt", "conda", "torch_from", "torch_to", "switch"))},
    ),
    "libstdcxx": Layout(
        "the libstdc++ symbols of a GCC and of a distribution",
        {
            "gcc": Section(("since",), ("glibcxx", "cxxabi", "file")),
            "distro": Section(("key",), ("name", "glibc", "glibcxx", "cxxabi", "default_gcc")),
        },
    ),
    "pytorch_build": Layout(
        "what a PyTorch release needs to be built",
        {
            "release": Section(
                ("version",),
                (
                    "requires_python",
                    "cmake_min",
                    "gcc_readme",
                    "cxx_tree",
                    "cuda_min_enforced",
                    "build_backend",
                ),
            ),
            "env": Section(("name",), ("meaning",)),
            "companion": Section(("torch",), ("torchvision", "torchaudio", "triton")),
            "cusparselt_compat": Section(("torch",), ("note",)),
            "cuda_arch_matrix": Section(("torch",)),
        },
    ),
    "torch_headers": Layout(
        "the parts of CUDA that the headers of each torch include, and the Pythons that have a wheel of it",
        {"headers": Section(("torch",), ("python", "parts", "beside"))},
    ),
    "pytorch_switches": Layout(
        "which revisions of PyTorch read a switch, and its other names",
        {"switch": Section(("name",), ("first", "last", "now", "what"))},
    ),
    "torch_packages": Layout(
        "the packages that compile against an installed torch, and their variables",
        {"package": Section(("name",), ("force", "arch", "cxx", "gib", "ninja", "gpu", "downloads"))},
    ),
    "pytorch_tried": Layout(
        "which CUDA, GCC, Python, CMake and driver a revision of PyTorch is known to fail with",
        {"tried": Section(("id",), ("from", "below", "torch_from", "torch_below", "platform", "what"))},
    ),
    "cusparselt": Layout(
        "the releases of cuSPARSELt, and those that PyTorch uses",
        {
            "archive": Section(_ARCHIVE, ("sha256",)),
            "pytorch_ci": Section(("cuda",), ("version",)),
            "pytorch_wheel": Section(("torch",), ("requires",)),
        },
    ),
    "cudnn": Layout("the releases of cuDNN", {"archive": Section(_ARCHIVE, ("sha256",))}),
    "build_failures": Layout(
        "why builds fail: the lines in logs, the cause, the fix",
        {"failure": Section(("id",), ("code", "title")), "part": Section(("name",), ("install",))},
    ),
    "cuda_redist": Layout(
        "the releases of CUDA in NVIDIA's redist, and the components that a build of PyTorch uses",
        {
            "release": Section(("label",), ("date", "nvcc", "platforms")),
            "component": Section(("name", "since"), ("before", "platforms", "use")),
        },
    ),
    "rocm": Layout(
        "the GPUs, drivers and kernels of a ROCm, the ROCms and parts of a PyTorch, the architectures of a hipcc",
        {
            "release": Section(("rocm",), ("gfx", "tested", "os", "driver")),
            "driver": Section(("amdgpu",), ("rocm",)),
            "module": Section(("module",), ("driver",)),
            "pytorch": Section(("version",), ("rocm", "arch")),
            "requires": Section(("since",), ("packages", "optional")),
            "rocblas": Section(("since",), ("gfx",)),
            "compiler": Section(("hipcc",), ("system", "takes", "refuses")),
        },
    ),
    "hip_names": Layout(
        "the release of ROCm that brought or dropped a name of HIP, and CUDA's names for HIP's",
        {
            "name": Section(("library", "header", "since", "after", "gone", "macro"), ("names",)),
            "changed": Section(("library", "release", "source"), ("names",)),
            "cuda": Section(("library",), ("prefix", "becomes", "renamed", "alone")),
        },
    ),
    "torch_wheels": Layout(
        "the torch wheels of the default index: their CUDA, C++ and GPU code",
        {
            "torch": Section(
                ("version", "platform"), ("local", "cuda", "glibc", "cxx11_abi", "least_cxx", "default_cxx", "gpu_code")
            )
        },
    ),
    "magma": Layout(
        "the MAGMA binaries that PyTorch builds use",
        {
            "source_tarball": Section(("version",), ("url", "sha256")),
            "conda_pytorch": Section(("name", "version", "build"), ("updated",)),
            "windows_mkl": Section(("file",), ("url",)),
        },
    ),
}
"""Every table, by the name of its file."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a data file."""

    table: Table
    """Its columns."""
    sources: Mapping[str, str] = field(repr=False)
    """The abbreviations in its source."""
    origin: str = ""
    """Its file; empty if it is one of tenv's."""

    @property
    def source(self) -> str:
        """Where its values were read, without abbreviations."""
        return expand(self.table, self.sources)

    def basis(self) -> Basis:
        """Return how certain it is."""
        return Basis.read(self.table, self.sources)

    def read(self, cls: type[T], **given: Any) -> T:
        """Return it as a dataclass with a `Basis`; raises FactsError with its path.

        Args:
            cls: The dataclass.
            given: The values that are not in the row alone.
        """
        return self.table.read(cls, basis=self.basis(), **given)


@dataclass(frozen=True, slots=True)
class Rows:
    """How `Data.table` reads a field: an annotation beside its type, ``tuple[ROW, ...]``."""

    section: str
    """The array of tables."""
    by: Callable[[Any], Any] | None = None
    """The key to sort by; None for the order of the file."""


@dataclass(frozen=True, slots=True)
class Data:
    """A data file, with the user's rows in it."""

    name: str
    """Its name."""
    sections: Mapping[str, tuple[Row, ...]]
    """The rows of its arrays of tables."""
    tables: Mapping[str, Row]
    """Its plain tables."""
    base: str
    """The base address of its relative paths, or an empty string."""
    date: str = ""
    """The day when its rows were read in their sources; an empty string if unknown."""

    def read(self, section: str, cls: type[T], by: Callable[[T], Any] | None = None) -> tuple[T, ...]:
        """Return the rows of an array of tables as dataclasses; raises FactsError with the path of a faulty row.

        Args:
            section: The array of tables.
            cls: The dataclass.
            by: The key to sort by; None for the order of the file.
        """
        rows = [row.read(cls) for row in self.sections[section]]
        return tuple(sorted(rows, key=by) if by else rows)

    def table(self, cls: type[T]) -> T:
        """Return all rows as a dataclass, each field by its `Rows`; raises FactsError if a row is invalid."""
        values = {}
        for name, annotation in get_type_hints(cls, include_extras=True).items():
            kind, rows = get_args(annotation)
            values[name] = self.read(rows.section, get_args(kind)[0], rows.by)
        return cls(**values)


@dataclass(frozen=True, slots=True)
class _File:
    sections: dict[str, dict[tuple[str, ...], Row]]
    tables: dict[str, Row]
    columns: dict[str, set[str]]
    values: dict[str, Any]


def default_overrides(environ: Mapping[str, str], config_folder: Path) -> tuple[Path, ...]:
    """Return the places of the user's own facts, highest precedence first.

    Args:
        environ: The caller's environment; ``TENV_FACTS`` there names files and folders, separated as in ``PATH``.
        config_folder: The user's configuration folder, whose ``facts`` folder is used if it exists.
    """
    items = environ.get("TENV_FACTS", "").split(os.pathsep)
    named = tuple(Path(os.path.expanduser(item)) for item in items if item)  # noqa: PTH111 (any user)
    folder = config_folder / "facts"
    return (*named, folder) if folder.is_dir() else named


def find_overrides(places: Sequence[Path]) -> dict[str, tuple[Path, ...]]:
    """Return the user's files of each table, highest precedence first.

    Args:
        places: Files and folders, highest precedence first.

    Raises:
        FactsError: A place does not exist, or a file does not have the name of a table.
    """
    found: dict[str, tuple[Path, ...]] = {}
    for place in places:
        if not place.exists():
            raise FactsError(f"{place}: no such file or folder", hint="TENV_FACTS names files and folders")
        for file in sorted(place.glob("*.toml")) if place.is_dir() else [place]:
            if file.stem not in LAYOUTS or file.suffix != ".toml":
                hint = nearest(file.stem, LAYOUTS) or f"the tables are {', '.join(LAYOUTS)}"
                raise FactsError(f"{file}: unknown table of facts", hint=hint)
            found[file.stem] = (*found.get(file.stem, ()), file)
    return found


def read_data(name: str, files: Sequence[Path] = ()) -> Data:
    """Read a data file with the user's rows in it.

    Args:
        name: The name of the table.
        files: The user's files of that table, highest precedence first.

    Raises:
        FactsError: A file is unreadable or has an unknown key.
    """
    layout = LAYOUTS[name]
    own_rows = read_toml(_DATA / f"{name}.toml", FactsError, f"tenv/facts/data/{name}.toml")
    merged = _read(own_rows, layout, "")
    for file in reversed(files):
        table = read_toml(file, FactsError)
        table.only({*layout.sections, *merged.tables, *merged.values, "schema", "sources"})
        own = _read(table, layout, str(file))
        for section, rows in own.sections.items():
            for row in rows.values():
                row.table.only(merged.columns[section])
                expand(row.table, row.sources)  # a row without a source is rejected before it is used
            merged.sections[section].update(rows)
        merged.tables.update(own.tables)
    sections = {section: tuple(rows.values()) for section, rows in merged.sections.items()}
    base, date = (str(merged.values.get(key, "")) for key in ("base", "date"))
    return Data(name, sections, merged.tables, base, date)


def _read(table: Table, layout: Layout, origin: str) -> _File:
    schema = table.data.get("schema", _SCHEMA)
    if schema != _SCHEMA:
        raise table.fail("schema", f"this tenv reads schema {_SCHEMA}, not {schema}")
    names = table.table("sources")
    sources = {key: names.text(key) for key in names.data}
    sections: dict[str, dict[tuple[str, ...], Row]] = {}
    columns: dict[str, set[str]] = {}
    for section, shape in layout.sections.items():
        rows: dict[tuple[str, ...], Row] = {}
        for row in _rows(table, section):
            key = tuple(str(row.data.get(column, "")) for column in shape.key)
            if key in rows:
                raise row.fail("", f"there are two rows for {' '.join(key).strip()}")
            if not key[0]:
                raise row.fail(shape.key[0], "is required")
            rows[key] = Row(row, sources, origin)
        sections[section] = rows
        columns[section] = {*_COMMON, *shape.key}.union(*(row.table.data for row in rows.values()))
    plain = [key for key, value in table.data.items() if isinstance(value, dict) and key != "sources"]
    tables = {key: Row(table.table(key), sources, origin) for key in plain}
    values = {key: value for key, value in table.data.items() if key not in sections and key not in tables}
    return _File(sections, tables, columns, values)


def _rows(table: Table, section: str) -> Iterator[Table]:
    """Yield the rows of an array of tables, each with its own lines of the file.

    With the whole file, a message could only name the first line of the first row.
    """
    lines = table.source.splitlines()
    starts = [
        number
        for number, line in enumerate(lines)
        if "[[" in line and (header := _HEADER.fullmatch(line)) and header[1] == section
    ]
    rows = list(table.rows(section))
    if len(starts) != len(rows):  # written in one line, `toolkit = [{…}]`
        yield from rows
        return
    for index, (row, start) in enumerate(zip(rows, starts, strict=True)):
        end = starts[index + 1] if index + 1 < len(starts) else len(lines)
        text = "\n" * start + "\n".join(lines[start:end])
        yield Table(row.data, text, table.file, (section,), table.error)
