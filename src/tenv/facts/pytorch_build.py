"""The requirements of each PyTorch release for a build from source."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Annotated

from tenv.core.dataclass import dataclass
from tenv.core.toml_reader import Column, OptionalText, Table
from tenv.core.versions import Version
from tenv.facts.interface import Basis
from tenv.facts.table_files import Rows

_SCIKIT = Version("2.14")
_WHEEL_ABI = Version("2.7")

Archs = tuple[tuple[Version, tuple[str, ...]], ...]
"""The GPU architectures of wheels by CUDA release."""


def _cxx_standard(row: Table, key: str) -> int | None:
    return row.parsed(key, lambda text: int(text.removeprefix("C++")), None)


def _wheel_abi(row: Table, key: str) -> int | None:
    return row.parsed(key, int, 1 if row.parsed("version", Version, _WHEEL_ABI) >= _WHEEL_ABI else None)


def _cudas(row: Table, key: str) -> tuple[Version, ...]:
    """Return the CUDA versions in a cell such as ``12.6 (cudnn 9.10.2.21); 12.8 (cudnn 9.10.2.21)``."""
    plain = re.sub(r"\([^)]*\)", "", row.text(key))
    return tuple(Version(text) for text in re.findall(r"\d+\.\d+", plain))


def _cudnns(row: Table, _: str) -> tuple[tuple[Version, Version], ...]:
    """Return the cuDNN versions of cells such as ``11.8; 12.1 (cudnn 9.1.0.70)``, each with every CUDA before it."""
    text = f"{row.text('cuda_stable')}; {row.text('cuda_experimental')}"
    found = []
    waiting: list[Version] = []
    for cuda, cudnn in re.findall(r"(\d+\.\d+)(?:\s*\(cudnn ([\d.]+))?", text):
        waiting.append(Version(cuda))
        if cudnn:
            found += [(version, Version(cudnn.rstrip("."))) for version in waiting]
            waiting = []
    return tuple(found)


def _optional_version(row: Table, key: str) -> str:
    row.parsed(key, lambda text: Version(text.removeprefix("~=")), None)
    return row.text(key)


OptionalVersion = Annotated[str, Column(read=_optional_version)]
"""A version as text, exact unless it begins with ``~=``; empty for none."""


def _first(row: Table, key: str) -> Version:
    try:
        return Version(row.required_text(key).partition("-")[0])
    except ValueError as error:
        raise row.fail(key, f"expected a range such as 2.12-2.14: {error}") from error


def _last(row: Table, key: str) -> Version:
    try:
        return Version(row.required_text(key).rpartition("-")[2])
    except ValueError as error:
        raise row.fail(key, f"expected a range such as 2.12-2.14: {error}") from error


def _archs(row: Table, key: str) -> Archs:
    table = row.table(key)
    try:
        return tuple((Version(cuda), tuple(table.text(cuda).split())) for cuda in table.data)
    except ValueError as error:
        raise table.fail("", str(error)) from error


@dataclass(frozen=True, slots=True)
class Release:
    """A PyTorch release."""

    version: Version
    """Its version."""
    requires_python: OptionalText
    """The Python versions in its metadata (``>=3.10``)."""
    python_before: OptionalText
    """Those that the trunk took before `python_day`, while it had the number of this release."""
    python_day: date | None
    """The day on which the trunk changed that; None if it took the same all along."""
    cmake_min: Version | None
    """The oldest CMake."""
    cmake_min_confirmed: bool
    """Whether that was read in the release itself."""
    cuda_min: Annotated[Version | None, Column("cuda_min_enforced")]
    """The oldest CUDA that ``cmake/public/cuda.cmake`` does not reject."""
    cudnn_min: Annotated[Version | None, Column("cudnn_min_enforced")]
    """The oldest cuDNN that it does not reject."""
    gcc_min_header: Annotated[Version | None, Column("min_gcc_header")]
    """The oldest GCC that ``c10/util/C++17.h`` does not reject; None if nothing checks it there."""
    gcc_min_readme: Annotated[Version | None, Column("gcc_readme")]
    """The oldest GCC that the README names."""
    clang_min_header: Annotated[Version | None, Column("min_clang_header")]
    """The oldest clang that ``c10/util/C++17.h`` does not reject."""
    cxx_standard: Annotated[int | None, Column("cxx_tree", read=_cxx_standard)]
    """The C++ standard of PyTorch's own sources, 17 for C++17."""
    wheel_abi: Annotated[int | None, Column(read=_wheel_abi)]
    """``_GLIBCXX_USE_CXX11_ABI`` of the PyPI wheel: 0 or 1; None if it is not known."""
    build_backend: OptionalText
    """The build backend of the PyPI wheel, with its version."""
    cuda_stable: Annotated[tuple[Version, ...], Column(read=_cudas)]
    """The CUDA versions that its release notes call stable."""
    cuda_experimental: Annotated[tuple[Version, ...], Column(read=_cudas)]
    """Those that they call experimental."""
    cudnn: Annotated[tuple[tuple[Version, Version], ...], Column(read=_cudnns)]
    """The cuDNN that its release notes name for a CUDA version, each with that version."""
    has_find_cusparselt: bool
    """Whether its CMake looks for cuSPARSELt."""
    wheel_cuda: Version | None
    """The CUDA version of the PyPI wheel."""
    wheel_cudnn: Version | None
    """The cuDNN of the PyPI wheel."""
    basis: Basis
    """How certain this is."""

    @property
    def gcc_min(self) -> Version | None:
        """The oldest GCC: the higher one of header and README."""
        named = [version for version in (self.gcc_min_header, self.gcc_min_readme) if version is not None]
        return max(named, default=None)

    @property
    def scikit_build(self) -> bool:
        """Whether it is built by scikit-build-core (from 2.14 on), and no longer by its setup.py."""
        return self.version >= _SCIKIT

    def cudnn_for(self, cuda: Version) -> Version | None:
        """Return the cuDNN that its release notes name for a CUDA minor version, None if they name none."""
        return next((version for named, version in self.cudnn if named.major_minor == cuda.major_minor), None)

    def asked(self, day: date | None = None) -> dict[str, str]:
        """Return its known requirements by the names that `tenv.checks.pytorch_source` takes.

        With a day, they are the requirements of the trunk on that day, while it had the number of this release.
        """
        before = day is not None and self.python_day is not None and day < self.python_day
        values = {
            "python": self.python_before if before else self.requires_python,
            "cmake_min": str(self.cmake_min or ""),
            "gcc_min": str(self.gcc_min or ""),
            "clang_min": str(self.clang_min_header or ""),
            "cuda_min": str(self.cuda_min or ""),
            "cudnn_min": str(self.cudnn_min or ""),
            "cxx_standard": str(self.cxx_standard or ""),
            "build_backend": "scikit-build-core" if self.scikit_build else "setuptools",
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class EnvVariable:
    """An environment variable that PyTorch's build reads."""

    name: str
    """Its name."""
    meaning: OptionalText
    """Its effect."""
    read_in: OptionalText
    """Where it is read."""
    basis: Basis
    """How certain this is."""


@dataclass(frozen=True, slots=True)
class CusparseltNote:
    """A note on cuSPARSELt in a PyTorch release; the words are the note of its basis."""

    torch: Version
    """The release, or the minor version."""
    below: Version | None
    """The first cuSPARSELt that it does not compile with; None if nothing is known of one."""
    basis: Basis
    """The note, and how certain it is."""


@dataclass(frozen=True, slots=True)
class ArchMatrix:
    """The GPU architectures of PyTorch's own wheels."""

    first: Annotated[Version, Column("torch", read=_first)]
    """The first minor version of PyTorch."""
    last: Annotated[Version, Column("torch", read=_last)]
    """The last one."""
    x86_64: Annotated[Archs, Column("linux_x86_and_windows", read=_archs)]
    """The architectures by CUDA release, for Linux on x86_64 and for Windows."""
    aarch64: Annotated[Archs, Column("linux_aarch64", read=_archs)]
    """The same for Linux on aarch64."""
    basis: Basis
    """How certain this is."""

    def archs(self, cuda: Version, machine: str) -> tuple[str, ...] | None:
        """Return the architectures of the wheels of a CUDA minor version; None if there are no such wheels.

        Args:
            cuda: The CUDA version.
            machine: ``x86_64`` or ``aarch64``.
        """
        rows = self.aarch64 if machine == "aarch64" else self.x86_64
        return next((archs for release, archs in rows if release.major_minor == cuda.major_minor), None)


@dataclass(frozen=True, slots=True)
class Companions:
    """The packages that go with a release of torch."""

    torch: Version
    """The release."""
    torchvision: OptionalVersion
    """The torchvision whose wheel requires exactly this torch; empty if there is none."""
    torchaudio: OptionalVersion
    """The same for torchaudio, which requires no torch from 2.11 on."""
    triton: OptionalVersion
    """The triton that the wheel of torch requires, exact unless it begins with ``~=``; empty before 2.0."""
    basis: Basis
    """How certain this is."""

    def minors(self) -> dict[str, str]:
        """Return the minor version of each package that there is, by its name."""
        found = {"torchvision": self.torchvision, "torchaudio": self.torchaudio, "triton": self.triton}
        return {name: Version(text.removeprefix("~=")).major_minor for name, text in found.items() if text}


@dataclass(frozen=True, slots=True)
class PytorchBuildTable:
    """Every row of the table."""

    releases: Annotated[tuple[Release, ...], Rows("release", by=lambda row: row.version)]
    """One row per release, oldest first."""
    variables: Annotated[tuple[EnvVariable, ...], Rows("env")]
    """One row per environment variable."""
    companions: Annotated[tuple[Companions, ...], Rows("companion", by=lambda row: row.torch)]
    """The packages that go with each release."""
    cusparselt: Annotated[tuple[CusparseltNote, ...], Rows("cusparselt_compat")]
    """Notes on cuSPARSELt."""
    matrices: Annotated[tuple[ArchMatrix, ...], Rows("cuda_arch_matrix")]
    """The architectures of PyTorch's own wheels."""

    def release(self, version: str) -> Release | None:
        """Return the row nearest to a version.

        That is the release itself, else a release of the same minor version, else the last one before it, which is
        then not confirmed. Text after the dotted numbers does not count (``2.15.0a0+git1234``).

        Args:
            version: The version as written.

        Returns:
            The row; None for a version older than the table, or a text that does not begin with a version.
        """
        match = re.match(r"\d+(\.\d+)*", version)
        if match is None:
            return None
        asked = Version(match.group())
        minor = asked.major_minor
        if same := [row for row in self.releases if row.version.major_minor == minor]:
            return next((row for row in same if row.version == asked), same[-1])
        before = [row for row in self.releases if row.version < asked]
        if not before:
            return None
        basis = before[-1].basis.doubted(f"taken from the row of {before[-1].version}: the table has none for {asked}")
        return replace(before[-1], basis=basis)

    def variable(self, name: str) -> EnvVariable | None:
        """Return an environment variable by its name."""
        return next((row for row in self.variables if row.name == name), None)

    def companions_of(self, version: str) -> Companions | None:
        """Return the packages that go with a version, or with the last release of its minor version.

        Args:
            version: The version as written, such as ``2.9.0a0+git1234``.

        Returns:
            The row; None for a minor version that the table lacks, since nothing was released for it yet.
        """
        match = re.match(r"\d+\.\d+(\.\d+)*", version)
        asked = Version(match.group()) if match else Version("0")
        minor = asked.major_minor
        same = [row for row in self.companions if row.torch.major_minor == minor]
        return next((row for row in same if row.torch == asked), same[-1] if same else None)

    def cusparselt_notes(self, version: str) -> tuple[CusparseltNote, ...]:
        """Return the notes on cuSPARSELt in a release and in its minor version."""
        row = self.release(version)
        if row is None:
            return ()
        named = (row.version, Version(row.version.major_minor))
        return tuple(note for note in self.cusparselt if note.torch in named)

    def cusparselt_below(self, releases: Iterable[Version]) -> Version | None:
        """Return the first version of cuSPARSELt with which none of some releases compiles; None if there is none.

        A limit of a release holds for earlier releases: the code in question was mended later.
        """
        newest = max(releases, default=None)
        limits = [row.below for row in self.cusparselt if row.below and newest and newest <= row.torch]
        return min(limits, default=None)

    def wheel_archs(self, version: str, cuda: Version, machine: str) -> tuple[tuple[str, ...], Basis] | None:
        """Return the GPU architectures that PyTorch's own wheels of a release are built for.

        Args:
            version: The version of PyTorch.
            cuda: The CUDA version.
            machine: ``x86_64`` or ``aarch64``.

        Returns:
            The architectures and how certain they are; None if the table does not have them.
        """
        row = self.release(version)
        minor = Version(row.version.major_minor) if row else Version("0")
        for matrix in self.matrices:
            archs = matrix.archs(cuda, machine)
            if matrix.first <= minor <= matrix.last and archs:
                return archs, matrix.basis
        return None

    def newest_archs(self, cuda: Version, machine: str) -> tuple[tuple[str, ...], Basis] | None:
        """Return the GPU architectures of the newest of PyTorch's own wheels for a CUDA, as `wheel_archs` does."""
        for matrix in sorted(self.matrices, key=lambda matrix: matrix.last, reverse=True):
            if archs := matrix.archs(cuda, machine):
                return archs, matrix.basis
        return None
