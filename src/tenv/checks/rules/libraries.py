"""Check cuDNN, cuSPARSELt, MAGMA and Triton against the target's CUDA and the PyTorch revision.

They come as wheels, conda packages or archives. The CUDA release that they are built for is in a wheel's name (TE303),
in a conda package's dependencies, in an archive's file name, and in the list of NVIDIA's archives of a version.
"""

import re
from collections.abc import Iterator

from tenv.checks.pytorch_source import SourceRequirement
from tenv.checks.rules.common import asked_doubt, cuda_of, doubt, locked, locked_conda
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.versions import Range, Version
from tenv.facts.library_releases import RedistArchive
from tenv.locks.lock import CondaPackage

LIBRARY = "TE305"
MAGMA = "TE307"
REVISION = "TE605"

_PRODUCTS = {"cudnn": "cuDNN", "cusparselt": "cuSPARSELt"}
_CUSPARSELT_BY_DEFAULT = Version("2.2")
"""The first PyTorch that searches for cuSPARSELt by default (USE_CUSPARSELT in data/pytorch_build.toml)."""

_CUDA_SPEC = re.compile(r"(?:cuda-version|cudatoolkit)\s+(?P<range>[<>=!~\d][^\s]*)")
_VARIANT = re.compile(r"[_-]cuda(?P<major>\d{2})[._-]")
_MAGMA_CONDA = re.compile(r"magma-cuda(?P<major>\d+)(?P<minor>\d)")


@dataclass(frozen=True, slots=True)
class _Locked:
    """A library of a lock: its name there, its version, its section of the manifest, and the evidence."""

    product: str
    name: str
    version: str
    section: str
    evidence: str
    made_for: str = ""


def _libraries(case: Case) -> Iterator[_Locked]:
    """Yield each cuDNN and cuSPARSELt in the lock for the platform, from any source."""
    cuda, lock = cuda_of(case), case.lock
    if cuda is None or lock is None:
        return
    for product in _PRODUCTS:
        for wheel in locked(case, f"nvidia-{product}-cu{cuda.major}", f"nvidia-{product}"):
            yield _Locked(product, wheel.name, wheel.version, "pypi-dependencies", wheel.file)
        seen = set()  # conda-forge's cudnn 9 is libcudnn and its headers: report one library
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
    """Return the range of CUDA that a conda package requires, or an empty string."""
    ranges = [match["range"].replace("a0", "") for spec in package.depends if (match := _CUDA_SPEC.match(spec))]
    return ",".join(ranges)


def _excludes(made_for: str, cuda: Version) -> bool:
    try:
        return bool(made_for) and cuda.major_minor not in Range(made_for)
    except ValueError:  # conda syntax that manifests do not have
        return False


def library_of_other_cuda(case: Case) -> Iterator[Finding]:
    """Yield the cuDNN and cuSPARSELt that are not built for the target's CUDA.

    It is an error by their metadata, a warning if NVIDIA has no archive of the version for the CUDA major.
    """
    cuda = cuda_of(case)
    for library in _libraries(case):
        if cuda is None:
            return
        if _excludes(library.made_for, cuda):
            words, severity, source = f"is built for CUDA {library.made_for}", Severity.ERROR, "its own dependencies"
            source = "the name of the file" if library.section == "archives" else source
            yield _other_cuda(library, cuda, severity, f"{words}, but the target has CUDA {cuda}", source)
            continue
        table = case.facts.cudnn if library.product == "cudnn" else case.facts.cusparselt
        rows = _same(table.archives, library.version)
        majors = sorted({row.cuda_major for row in rows if row.cuda_major is not None})
        if majors and cuda.major not in majors:
            words = (
                f"may not be built for CUDA {cuda.major}: NVIDIA has archives of this version for CUDA "
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
        fix=f"set a version of {library.name} that is built for CUDA {cuda.major} in [{library.section}]",
    )


def _same(archives: tuple[RedistArchive, ...], text: str) -> list[RedistArchive]:
    """Return the archives of a version. Wheels, conda packages and archives share the first three numbers."""
    version = Version.find(text)
    wanted = version.text.split(".")[:3] if version else []
    return [row for row in archives if row.cuda_major is not None and row.version.text.split(".")[:3] == wanted]


def library_of_other_revision(case: Case) -> Iterator[Finding]:
    """Yield the cuDNN, cuSPARSELt and Triton that are too old or too new for the PyTorch revision."""
    if case.source is None:
        return
    yield from _triton(case, case.source.version.value)
    for library in _libraries(case):
        version = Version.find(library.version)
        if version is not None:
            judge = _cudnn if library.product == "cudnn" else _cusparselt
            yield from judge(case, library, version)


def _triton(case: Case, torch: str) -> Iterator[Finding]:
    """Yield a Triton of another minor version than the wheel of the revision requires: torch.compile may fail."""
    row = case.facts.pytorch_build.companions_of(torch)
    pin = row.triton.removeprefix("~=") if row else ""
    if row is None or not pin:
        return
    rows, minor = [*locked(case, "triton")], Version(pin).major_minor
    wrong = [wheel for wheel in rows if Version(wheel.version).major_minor != minor]
    if not wrong:
        return
    feature = wrong[0].features[0] if wrong[0].features else ""
    section = f"{f'feature.{feature}.' if feature else ''}platform.{case.platform}.pypi-dependencies"
    minors: dict[str, list[str]] = {}
    for wheel in wrong:
        minors.setdefault(wheel.version, []).extend(wheel.python)
    several = len({wheel.version for wheel in rows}) > 1
    words = [
        f"{version} (Python {', '.join(sorted(names, key=Version))})" if several else version
        for version, names in minors.items()
    ]
    yield Finding(
        code=REVISION,
        severity=Severity.NOTE if feature else Severity.WARNING,
        subject=f"triton {', '.join(words)}",
        message=f"goes with another PyTorch than {torch}, whose wheels require triton {row.triton}: "
        f"torch.compile may fail{f', with the feature {feature} alone' if feature else ''}{doubt(row.basis)}",
        evidence=wrong[0].file,
        source=row.basis.source,
        fix=_paired(case, torch, f'set triton = "{pin}" in [{section}] and lock again', feature),
    )


def _paired(case: Case, torch: str, edit: str, feature: str) -> str:
    """Return the command that makes a target with the Triton of a revision; the edit where the target excludes it."""
    release, name = Version.find(torch), case.manifest.name
    accepted = case.manifest.pytorch
    if release is None or (accepted is not None and str(release) not in accepted):
        return edit
    child = f"{name}-torch{release.major_minor}"
    new, made = f"tenv init {child} --extends {name} --pytorch {release}", f"tenv create {child}"
    return f"`{new} && {made}{f' --with {feature}' if feature else ''}`"


def _cudnn(case: Case, library: _Locked, version: Version) -> Iterator[Finding]:
    source = case.source
    if source is None:
        return
    name = f"PyTorch {source.version.value}"
    asked, row = source.cudnn_min, case.facts.pytorch_build.release(source.version.value)
    if isinstance(asked, SourceRequirement) and version < asked.value:
        words = f"is too old for {name}, which requires cuDNN {asked.value} or newer{asked_doubt(case)}"
        yield _other_revision(library, Severity.ERROR, words, asked.origin, f">={asked.value}")
    elif row and row.wheel_cudnn and version.major > row.wheel_cudnn.major:
        words = (
            f"has a newer major version than {name} was built with: its wheels have cuDNN {row.wheel_cudnn}"
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
        words = f"is too new for {name}, which does not compile with cuSPARSELt {note.below} or newer"
        words += doubt(note.basis)
        severity = Severity.ERROR
        if not _uses_cusparselt(case, case.source.version.value):
            words += "; the build skips it unless USE_CUSPARSELT=1 is set"
            severity = Severity.NOTE
        yield _other_revision(library, severity, words, note.basis.source, f"<{note.below}")


def _uses_cusparselt(case: Case, release: str) -> bool:
    """Return whether a build searches for cuSPARSELt: as the target sets USE_CUSPARSELT, else as the release does."""
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
        fix=f'set {library.name} = "{accepted}" in [{library.section}] and lock again, or use another revision',
    )


def magma_of_other_cuda(case: Case) -> Iterator[Finding]:
    """Yield a MAGMA that is built for another CUDA: an error for another major, else a warning."""
    cuda = cuda_of(case)
    if cuda is None:
        return
    for name, made_for, evidence in _magmas(case):
        if made_for.major_minor != cuda.major_minor:
            same_major = made_for.major == cuda.major
            if not same_major:
                effect = "it does not link with cuBLAS and cuSPARSE of another major"
            elif made_for < cuda:
                effect = "its static library has no code for GPUs that only the newer CUDA supports"
            else:
                effect = "its static library may not link"
            yield Finding(
                code=MAGMA,
                severity=Severity.WARNING if same_major else Severity.ERROR,
                subject=name,
                message=f"is built for CUDA {made_for.major_minor}, but the target has CUDA {cuda}: {effect}",
                evidence=evidence,
                source="the package's name; tenv/facts/data/magma.toml lists the existing ones",
                fix=_magma_for(case, cuda),
            )


def _magmas(case: Case) -> Iterator[tuple[str, Version, str]]:
    """Yield each MAGMA whose name has a CUDA release: its name, the release, and the evidence."""
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
        return f'replace it with {row.name} = "{row.version}" of the channel pytorch'
    if case.facts.magma.has_tarball(cuda):
        return f"use PyTorch's own archive for CUDA {cuda.major_minor}: {case.facts.magma.tarballs.url(cuda)}"
    return f"use conda-forge's libmagma, or build without MAGMA (USE_MAGMA=0): there is no known magma-cuda{nodot}"
