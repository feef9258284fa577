"""Whether cuDNN, cuSPARSELt and MAGMA are made for the target's CUDA, and for the PyTorch revision.

They come as wheels, as conda packages or as archives; each kind says in its own way what CUDA it is made for: a wheel
by its name (TE303), a conda package by its dependencies, an archive by its file's name, and a version by the archives
that NVIDIA has of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tenv.checks.pytorch_source import SourceRequirement
from tenv.checks.rules.common import asked_doubt, cuda_of, doubt, locked, locked_conda
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Range, Version
from tenv.facts.redist_rows import RedistArchive
from tenv.locks.lock import CondaPackage

__all__ = ["LIBRARY", "MAGMA", "REVISION", "library_of_other_cuda", "library_of_other_revision", "magma_of_other_cuda"]

LIBRARY = "TE305"
MAGMA = "TE307"
REVISION = "TE605"

_PRODUCTS = {"cudnn": "cuDNN", "cusparselt": "cuSPARSELt"}
_CUSPARSELT_BY_DEFAULT = Version("2.2")
"""The first PyTorch that looks for cuSPARSELt unasked (USE_CUSPARSELT in data/pytorch_build.toml)."""

_CUDA_SPEC = re.compile(r"(?:cuda-version|cudatoolkit)\s+(?P<range>[<>=!~\d][^\s]*)")
_VARIANT = re.compile(r"[_-]cuda(?P<major>\d{2})[._-]")
_MAGMA_CONDA = re.compile(r"magma-cuda(?P<major>\d+)(?P<minor>\d)")


@dataclass(frozen=True, slots=True)
class _Locked:
    """A library of a lock: what it is called there, its version, the section of the manifest, and what shows it."""

    product: str
    name: str
    version: str
    section: str
    evidence: str
    made_for: str = ""


def _libraries(case: Case) -> Iterator[_Locked]:
    """Yield each cuDNN and cuSPARSELt that the lock has for the platform, wherever it comes from."""
    cuda, lock = cuda_of(case), case.lock
    if cuda is None or lock is None:
        return
    for product in _PRODUCTS:
        for wheel in locked(case, f"nvidia-{product}-cu{cuda.major}", f"nvidia-{product}"):
            yield _Locked(product, wheel.name, wheel.version, "pypi-dependencies", wheel.file)
        seen = set()  # conda-forge's cudnn 9 is libcudnn and its headers: one library, told once
        for package in locked_conda(case, f"lib{product}", product):
            if package.version not in seen:
                seen.add(package.version)
                made_for = _conda_cuda(package)
                yield _Locked(product, package.name, package.version, "dependencies", package.url, made_for)
        for archive in lock.archives.get(case.platform, ()):
            if archive.name == product:
                variant = _VARIANT.search(archive.url.rpartition("/")[2])
                made_for = f"{variant['major']}.*" if variant else ""
                yield _Locked(product, archive.name, archive.version, "archives", archive.url, made_for)


def _conda_cuda(package: CondaPackage) -> str:
    """Return the range of CUDA that a conda package asks for, or an empty string."""
    ranges = [match["range"].replace("a0", "") for spec in package.depends if (match := _CUDA_SPEC.match(spec))]
    return ",".join(ranges)


def _excludes(made_for: str, cuda: Version) -> bool:
    try:
        return bool(made_for) and cuda.major_minor not in Range(made_for)
    except ValueError:  # a notation of conda's that is not one of manifests
        return False


def library_of_other_cuda(case: Case) -> Iterator[Finding]:
    """Yield the cuDNN and cuSPARSELt that are not made for the target's CUDA.

    It is an error where they say so themselves, a warning where NVIDIA has none of that version for the CUDA major.
    """
    cuda = cuda_of(case)
    for library in _libraries(case):
        if cuda is None:
            return
        if _excludes(library.made_for, cuda):
            words, severity, source = f"is made for CUDA {library.made_for}", Severity.ERROR, "its own dependencies"
            source = "the name of the file" if library.section == "archives" else source
            yield _other_cuda(library, cuda, severity, f"{words}, and the target has CUDA {cuda}", source)
            continue
        table = case.facts.cudnn if library.product == "cudnn" else case.facts.cusparselt
        rows = _same(table.archives, library.version)
        majors = sorted({row.cuda_major for row in rows if row.cuda_major is not None})
        if majors and cuda.major not in majors:
            words = (
                f"is not known to be made for CUDA {cuda.major}: NVIDIA has archives of this version for CUDA "
                f"{', '.join(map(str, majors))}{doubt(*(row.basis for row in rows))}"
            )
            yield _other_cuda(library, cuda, Severity.WARNING, words, rows[0].basis.source)


def _other_cuda(library: _Locked, cuda: Version, severity: Severity, words: str, source: str) -> Finding:
    return Finding(
        code=LIBRARY,
        severity=severity,
        subject=f"{library.name} {library.version}",
        message=words,
        evidence=library.evidence,
        source=source,
        fix=f"ask for a version of {library.name} that is made for CUDA {cuda.major} in [{library.section}]",
    )


def _same(archives: tuple[RedistArchive, ...], text: str) -> list[RedistArchive]:
    """Return the archives of a version; wheels, conda packages and archives share the first three numbers."""
    version = Version.find(text)
    wanted = version.text.split(".")[:3] if version else []
    return [row for row in archives if row.cuda_major is not None and row.version.text.split(".")[:3] == wanted]


def library_of_other_revision(case: Case) -> Iterator[Finding]:
    """Yield the cuDNN and cuSPARSELt that are too old or too new for the PyTorch revision."""
    if case.source is None:
        return
    for library in _libraries(case):
        version = Version.find(library.version)
        if version is not None:
            judge = _cudnn if library.product == "cudnn" else _cusparselt
            yield from judge(case, library, version)


def _cudnn(case: Case, library: _Locked, version: Version) -> Iterator[Finding]:
    source = case.source
    if source is None:
        return
    name = f"PyTorch {source.version.value}"
    asked, row = source.cudnn_min, case.facts.pytorch_build.release(source.version.value)
    if isinstance(asked, SourceRequirement) and version < asked.value:
        words = f"is too old for {name}, which takes cuDNN {asked.value} or newer{asked_doubt(case)}"
        yield _other_revision(library, Severity.ERROR, words, asked.origin, f">={asked.value}")
    elif row and row.wheel_cudnn and version.major > row.wheel_cudnn.major:
        words = (
            f"is of a newer major version than what {name} was made with: its wheels have cuDNN {row.wheel_cudnn}"
            f"{doubt(row.basis)}"
        )
        last = f"<{row.wheel_cudnn.major + 1}"
        yield _other_revision(library, Severity.WARNING, words, row.basis.source, last)


def _cusparselt(case: Case, library: _Locked, version: Version) -> Iterator[Finding]:
    if case.source is None:
        return
    name = f"PyTorch {case.source.version.value}"
    for note in case.facts.pytorch_build.cusparselt_notes(case.source.version.value):
        if note.below is None or version < note.below:
            continue
        words = f"is too new for {name}, which does not compile with cuSPARSELt {note.below} and newer"
        words += doubt(note.basis)
        severity = Severity.ERROR
        if not _uses_cusparselt(case, case.source.version.value):
            words += "; it builds without it, unless USE_CUSPARSELT=1 is set"
            severity = Severity.NOTE
        yield _other_revision(library, severity, words, note.basis.source, f"<{note.below}")


def _uses_cusparselt(case: Case, release: str) -> bool:
    """Tell whether a build looks for cuSPARSELt: as the target sets USE_CUSPARSELT, else as its release does."""
    asked = case.manifest.environment.get("USE_CUSPARSELT")
    set_to = asked.text if asked else None
    if set_to is not None:
        return set_to.upper() not in ("", "0", "OFF", "NO", "FALSE", "N")
    return Version(release) >= _CUSPARSELT_BY_DEFAULT


def _other_revision(library: _Locked, severity: Severity, words: str, source: str, accepted: str) -> Finding:
    return Finding(
        code=REVISION,
        severity=severity,
        subject=f"{library.name} {library.version}",
        message=words,
        evidence=library.evidence,
        source=source,
        fix=f'ask for {library.name} = "{accepted}" in [{library.section}] and lock again, or take another revision',
    )


def magma_of_other_cuda(case: Case) -> Iterator[Finding]:
    """Yield the MAGMA that is built for another CUDA: an error for another major, else a warning."""
    cuda = cuda_of(case)
    if cuda is None:
        return
    for name, made_for, evidence in _magmas(case):
        if made_for.major_minor != cuda.major_minor:
            same_major = made_for.major == cuda.major
            yield Finding(
                code=MAGMA,
                severity=Severity.WARNING if same_major else Severity.ERROR,
                subject=name,
                message=(
                    f"is built for CUDA {made_for.major_minor}, the target has CUDA {cuda}: its static library "
                    + ("holds no code for GPUs that only the newer one knows" if made_for < cuda else "may not link")
                    if same_major
                    else f"is built for CUDA {made_for.major_minor}, the target has CUDA {cuda}: it does not link with "
                    "the cuBLAS and cuSPARSE of another major"
                ),
                evidence=evidence,
                source="the package's name; tenv/facts/data/magma.toml lists those that there are",
                fix=_magma_for(case, cuda),
            )


def _magmas(case: Case) -> Iterator[tuple[str, Version, str]]:
    """Yield each MAGMA whose name says its CUDA: its name, that CUDA, and where it stands."""
    packages = case.lock.conda.get(case.platform, ()) if case.lock else ()
    named = {package.name: package.url for package in packages}
    if not named:
        named = dict.fromkeys(case.manifest.dependencies, f"[dependencies] of {case.manifest.file}")
    archives = case.lock.archives.get(case.platform, ()) if case.lock else ()
    for archive in archives:
        named |= {match.group(): archive.url for match in _MAGMA_CONDA.finditer(archive.url)}
    for name, evidence in named.items():
        if match := _MAGMA_CONDA.fullmatch(name):
            yield name, Version(f"{match['major']}.{match['minor']}"), evidence


def _magma_for(case: Case, cuda: Version) -> str:
    row, nodot = case.facts.magma.conda_for(cuda), cuda.major_minor.replace(".", "")
    if row is not None:
        return f'ask for {row.name} = "{row.version}" of the channel pytorch in its place'
    if case.facts.magma.has_tarball(cuda):
        return f"take PyTorch's own archive for CUDA {cuda.major_minor}: {case.facts.magma.tarballs.url(cuda)}"
    return f"take conda-forge's libmagma, or leave MAGMA out (USE_MAGMA=0): there is no known magma-cuda{nodot}"
