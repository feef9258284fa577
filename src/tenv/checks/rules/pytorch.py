"""Check a target against the requirements of a PyTorch revision.

The requirements of a checkout are read from the places that enforce them (`tenv.checks.pytorch_source`). Releases have
theirs in ``tenv/facts/data/pytorch_build.toml``. Without a revision, there are no findings.

``tenv/facts/data/pytorch_tried.toml`` lists known failures of a revision with a CUDA or a driver. While the trunk has
the number of the first working release, the day of the commit decides, then the versions in its CI.
"""

import re
from collections.abc import Iterator

from tenv.checks.pytorch_source import AbiChoice, SourceRequirement, SourceTree
from tenv.checks.rules.common import asked_doubt, cuda_of, doubt, locked, locked_conda
from tenv.checks.rules.interface import Case, Finding, Scope, Severity, Unknown
from tenv.core.versions import Range, Version
from tenv.facts.pytorch_tried import KnownFailure, Part
from tenv.host.interface import Missing

CUDA = "TE601"
PYTHON = "TE602"
CMAKE = "TE603"
REVISION = "TE604"
UNLISTED = "TE609"
STANDARD = "TE606"
ABI = "TE607"
BACKEND = "TE608"
TRIED = "TE610"
DRIVER = "TE614"

_CMAKE_4 = Version("4")

_UPSTREAM = "github.com/pytorch/pytorch"


def cuda_too_old(case: Case) -> Iterator[Finding]:
    """Yield an error if the target's CUDA is older than the revision's CMake accepts."""
    cuda, asked = cuda_of(case), case.source.cuda_min if case.source else None
    if case.source and cuda and isinstance(asked, SourceRequirement) and cuda < asked.value:
        yield Finding(
            code=CUDA,
            severity=Severity.ERROR,
            subject=f"CUDA {cuda}",
            message=f"is too old for {_name(case.source)}, which requires CUDA {asked.value} or "
            f"newer{asked_doubt(case)}",
            evidence=f"requirements.cuda of {case.manifest.file}",
            source=asked.origin,
            fix=f"choose a target with CUDA {asked.value} or newer, or an older revision",
        )


def python(case: Case) -> Iterator[Finding]:
    """Yield an error if the revision supports no Python of the target, a note if it supports only some.

    Its metadata is the lower bound; a known failure with a newer Python is the upper one.
    """
    asked, minors = case.source.python if case.source else None, case.manifest.python_minors()
    evidence, section = f"python of {case.manifest.file}: {case.manifest.python}", "the manifest"
    if not minors:
        minors, evidence = _conda_python(case)
        section = "[dependencies]"
    if case.source is None or not isinstance(asked, SourceRequirement) or not minors:
        return
    refused = [minor for minor in minors if not _takes(asked.value, minor)]
    failing = {minor: found for minor in minors if (found := known_failure(case, Part.PYTHON, Version(minor)))}
    fitting = [minor for minor in minors if minor not in refused and minor not in failing]
    if refused:
        yield Finding(
            code=PYTHON,
            severity=Severity.NOTE if fitting else Severity.ERROR,
            subject=f"Python {', '.join(refused)}",
            message=f"is not supported by {_name(case.source)}, which requires {asked.value}{asked_doubt(case)}",
            evidence=evidence,
            source=asked.origin,
            fix=(
                f"create the environment with `--python {fitting[-1]}`"
                if fitting
                else f'set python = "{asked.value}" in {section} and lock again, or use another revision'
            ),
        )
    if failing and not (refused and not fitting):
        yield _too_new(case.source, failing, fitting, evidence, section)


def unfit_pythons(case: Case) -> tuple[str, ...]:
    """Return the Python minors of a target that the revision can't be built with; empty if it supports none."""
    asked, minors = case.source.python if case.source else None, case.manifest.python_minors()
    if not isinstance(asked, SourceRequirement):
        return ()
    unfit = tuple(
        minor
        for minor in minors
        if not _takes(asked.value, minor) or known_failure(case, Part.PYTHON, Version(minor)) is not None
    )
    return unfit if len(unfit) < len(minors) else ()


def _too_new(
    source: SourceTree,
    failing: dict[str, tuple[KnownFailure, bool]],
    fitting: list[str],
    evidence: str,
    section: str,
) -> Finding:
    """Return the finding about Pythons that are newer than the revision."""
    row, _ = next(iter(failing.values()))
    sure = all(sure for _, sure in failing.values())
    begin = f"is too new for {_name(source)}" if sure else f"may be too new for {_name(source)}, by its day"
    fix = f"create the environment with `--python {fitting[-1]}`" if fitting else f'set python = "<{row.first}" in '
    if not fitting:
        fix += f"{section} and lock again, or choose PyTorch {row.torch_below} or newer"
    open_ = not fitting and not sure
    return Finding(
        code=PYTHON,
        severity=Severity.NOTE if fitting else Severity.ERROR if sure else Severity.WARNING,
        subject=f"Python {', '.join(failing)}",
        message=f"{begin}: {row.what}; {row.torch_below} is the first release for Python {row.first}{doubt(row.basis)}",
        evidence=evidence,
        source=row.basis.source,
        fix=fix,
        unknown=Unknown(Scope.BUILD, "pytorch_tried") if open_ else None,
    )


def _conda_python(case: Case) -> tuple[tuple[str, ...], str]:
    """Return the minor of a Python from conda and its origin: the lock, else the manifest."""
    for package in locked_conda(case, "python"):
        if found := Version.find(package.version):
            return (found.major_minor,), package.url
    wanted = case.manifest.dependencies.get("python")
    match = re.match(r"=*(3\.\d+)(\.[\d.]*\*?)?$", str(wanted.version)) if wanted else None
    return ((match[1],), f"[dependencies] of {case.manifest.file}: {match[0]}") if match else ((), "")


def cmake(case: Case) -> Iterator[Finding]:
    """Yield an error if the lock's CMake is too old, a warning if it is too new."""
    if case.source is None:
        return
    places = [("pypi-dependencies", wheel.version, wheel.file) for wheel in locked(case, "cmake")]
    places += [("dependencies", package.version, package.url) for package in locked_conda(case, "cmake")]
    for section, version, evidence in places:
        found, asked = Version.find(version), case.source.cmake_min
        if found and isinstance(asked, SourceRequirement) and found < asked.value:
            wanted = f"CMake {asked.value} or newer{_cmake_doubt(case)}"
            message = f"is too old for {_name(case.source)}, which requires {wanted}"
            fix = f'set cmake = ">={asked.value}" in [{section}] and lock again'
            yield _cmake(Severity.ERROR, found, message, evidence, asked.origin, fix)
        elif found and (failure := known_failure(case, Part.CMAKE, found)) and failure[1]:
            yield from _cmake_fails(case, case.source, found, section, evidence, failure[0])
        elif found and found >= _CMAKE_4:
            yield from _cmake_4(case, case.source, found, section, evidence)


def _cmake_fails(
    case: Case, source: SourceTree, found: Version, section: str, evidence: str, row: KnownFailure
) -> Iterator[Finding]:
    """Yield an error for a CMake that the revision is known to fail with, unless the target sets the workaround."""
    if row.fix and row.fix.partition("=")[0] in case.manifest.environment:
        return
    asks = f'ask for cmake = "{f">={row.below}" if row.below else f"<{row.first}"}" in [{section}], and lock again'
    message = f"fails with {_name(source)}: {row.what}{doubt(row.basis)}"
    fix = f"set {row.fix.replace('=', ' = ', 1)} in [activation.env], or {asks}" if row.fix else asks
    yield _cmake(Severity.ERROR, found, message, evidence, row.basis.source, fix)


def _cmake_4(case: Case, source: SourceTree, found: Version, section: str, evidence: str) -> Iterator[Finding]:
    """Yield a warning if CMake 4 or newer stops a build of NNPACK, which x86-64 has by default.

    From 2.7 on PyTorch asks for the old policies in its submodules' stead. NNPACK configures one more project in a
    CMake of its own, for a copy of the Python package six; where the environment has six, nobody misses that copy.
    """
    fix = f'export CMAKE_POLICY_VERSION_MINIMUM=3.5, or set cmake = "<4" in [{section}]'
    if case.platform == "linux-64" and not (any(locked(case, "six")) or any(locked_conda(case, "six"))):
        message = (
            "has dropped the policies of CMake before 3.5, which NNPACK's download of six requires: the build of "
            f"{_name(source)} fails at its kernels (2d-fourier-8x8.py.o) unless Python has six"
        )
        reference = f"cmake/DownloadSix.cmake of NNPACK; {_UPSTREAM}/issues/154096, {_UPSTREAM}/issues/190066"
        yield _cmake(Severity.WARNING, found, message, evidence, reference, f'add six = "*" to [{section}], or {fix}')


def other_revision(case: Case) -> Iterator[Finding]:
    """Yield a warning if the target does not support the revision."""
    wanted = case.manifest.pytorch
    if case.source and wanted and str(case.source.release) not in wanted:
        yield Finding(
            code=REVISION,
            severity=Severity.WARNING,
            subject=_name(case.source),
            message=f"is not a revision that `{case.manifest.name}` supports: {wanted}",
            evidence=f"{case.source.version.value} ({case.source.version.origin})",
            source=f"pytorch of {case.manifest.file}",
            fix="choose a target for this revision, or widen `pytorch` in the manifest once the build works",
        )


def unlisted(case: Case) -> Iterator[Finding]:
    """Yield a note if the table has no row for the revision's minor version, with the row that is used instead."""
    if case.source is None:
        return
    releases, row = case.facts.pytorch_build.releases, case.facts.pytorch_build.release(case.source.version.value)
    if row is not None and row.version.major_minor == case.source.release.major_minor:
        return
    by = f"by the row of {row.version}, the last one before it" if row else "by nothing"
    if case.source.root is None:
        judged = f"its requirements are judged {by}"
    else:
        judged = f"what its files do not state (the cuDNN, GPUs and ABI of its wheels, cuSPARSELt) is judged {by}"
    yield Finding(
        code=UNLISTED,
        severity=Severity.NOTE,
        subject=_name(case.source),
        message=f"has no row in the table of releases: {judged}",
        evidence=f"{case.source.version.value} ({case.source.version.origin})",
        source=(
            f"the table goes from {releases[0].version} to {releases[-1].version}: tenv/facts/data/pytorch_build.toml"
        ),
        fix=(
            "check the version; for a release newer than this tenv, install a newer tenv or add your own row "
            "(TENV_FACTS, `tenv facts pytorch_build`)"
        ),
    )


def _name(source: SourceTree) -> str:
    return f"PyTorch {source.version.value}"


def _takes(wanted: Range, minor: str) -> bool:
    """Return whether a range accepts a Python minor, by its first and its last release (``>=3.6.2``)."""
    return f"{minor}.0" in wanted or f"{minor}.99" in wanted


def _cmake_doubt(case: Case) -> str:
    if case.source is None or case.source.root is not None:
        return ""
    row = case.facts.pytorch_build.release(case.source.version.value)
    return asked_doubt(case) or ("" if row is None or row.cmake_min_confirmed else " (not confirmed)")


def _cmake(severity: Severity, found: Version, message: str, evidence: str, source: str, fix: str) -> Finding:
    return Finding(CMAKE, severity, f"CMake {found}", message, evidence, source, fix)


def known_failure(case: Case, part: Part, version: Version) -> tuple[KnownFailure, bool] | None:
    """Return why a part fails with the revision, and whether it is certain; None if no failure is known.

    Args:
        case: The case.
        part: CUDA, GCC, Python, CMake or the driver.
        version: The version of the part.
    """
    source = case.source
    if source is None:
        return None
    found = case.facts.pytorch_tried.find(part, version, source.version.value, case.platform, source.day)
    cuda = cuda_of(case)
    if found is None or (found[0].with_cuda and cuda is None):
        return None
    row, sure = found
    if row.cuda_from is not None and (cuda is None or cuda < row.cuda_from):
        return None
    if sure or source.tested is None or part in (Part.GCC, Part.CMAKE, Part.DRIVER):
        return found
    listed = source.tested.cudas if part is Part.CUDA else source.tested.pythons
    if not listed:
        return found
    # A list that ends before the failing version is older than its support; a new CUDA comes with all its minors.
    return (row, True) if row.first is not None and listed[-1] < row.first else None


def cuda_tried(case: Case) -> Iterator[Finding]:
    """Yield an error if the revision is known to fail with the CUDA, a note if no build of both is known."""
    cuda, source = cuda_of(case), case.source
    if cuda is None or source is None:
        return
    if found := known_failure(case, Part.CUDA, cuda):
        yield _failure(case, source, cuda, *found)
    elif untried := _untried(case, source, cuda):
        builds, origin = untried
        yield Finding(
            code=TRIED,
            severity=Severity.NOTE,
            subject=f"CUDA {cuda}",
            message=f"no build of PyTorch {source.version.value} with it is known: {builds}",
            evidence=f"{source.version.value} ({source.version.origin})",
            source=origin,
            fix="try it, or choose a target with one of these",
        )


def driver_tried(case: Case) -> Iterator[Finding]:
    """Yield an error if builds of the revision are known to fail on the driver, a warning if its day decides."""
    driver, source = case.host.driver, case.source
    if source is None or isinstance(driver, Missing) or not (found := known_failure(case, Part.DRIVER, driver.value)):
        return
    row, sure = found
    yield Finding(
        code=DRIVER,
        severity=Severity.ERROR if sure else Severity.WARNING,
        subject=f"driver {driver.value}",
        message=f"{'fails' if sure else 'failed on some days'} with PyTorch {source.version.value}: "
        f"{row.what}{doubt(row.basis)}",
        evidence=f"{source.version.value} ({source.version.origin}); driver {driver.value} ({driver.origin})",
        source=row.basis.source,
        fix=f"install NVIDIA driver {row.below} or newer, or choose a release of PyTorch",
        unknown=None if sure else Unknown(Scope.RUN, "pytorch_tried"),
    )


def _failure(case: Case, source: SourceTree, cuda: Version, row: KnownFailure, sure: bool) -> Finding:
    torch = source.version.value
    message = f"fails with PyTorch {torch}: {row.what}"
    if not sure:
        message = f"failed with the trunk before {row.torch_below}, and {torch} is of these days: {row.what}"
    old = row.below is not None and row.first is None
    other = f"CUDA {row.below} or newer" if old else f"a CUDA before {row.first}"
    revision = f"PyTorch {row.torch_below} or newer" if not old else "an older revision"
    return Finding(
        code=TRIED,
        severity=Severity.ERROR if sure else Severity.WARNING,
        subject=f"CUDA {cuda}",
        message=f"{message}{doubt(row.basis)}",
        evidence=f"{torch} ({source.version.origin}); requirements.cuda of {case.manifest.file}",
        source=row.basis.source,
        fix=f"choose a target with {other}, or {revision}",
        unknown=None if sure else Unknown(Scope.BUILD, "pytorch_tried"),
    )


def _untried(case: Case, source: SourceTree, cuda: Version) -> tuple[str, str] | None:
    """Return the known CUDAs of the revision and their source if they exclude a CUDA; None else."""
    row = case.facts.pytorch_build.release(source.version.value)
    origin = ""
    known: set[Version] = set()
    if source.tested is not None:
        known, origin = set(source.tested.cudas), source.tested.file
    if row is not None and row.version.major_minor == source.release.major_minor:
        known |= {*row.cuda_stable, *row.cuda_experimental}
        origin = "; ".join(filter(None, (origin, row.basis.source)))
        # Without a list of its own releases, only a newer CUDA is one that nobody is known to have built with.
        if not known and row.wheel_cuda and row.wheel_cuda < Version(cuda.major_minor):
            return f"its wheel of the index was made with CUDA {row.wheel_cuda.major_minor}", origin
    minors = sorted({Version(one.major_minor) for one in known})
    if not minors or minors[0] <= Version(cuda.major_minor) <= minors[-1]:
        return None
    return f"its own were made with CUDA {', '.join(map(str, minors))}", origin


_NVCC_KNOWS = {17: Version("11.0"), 20: Version("12.0")}
"""The first CUDA whose nvcc takes ``-std=c++NN`` (CUDA Toolkit release notes of 11.0 and 12.0)."""


def cxx_standard(case: Case) -> Iterator[Finding]:
    """Yield an error if nvcc does not support the C++ standard of the revision."""
    cuda, asked = cuda_of(case), case.source.cxx_standard if case.source else None
    if case.source is None or cuda is None or not isinstance(asked, SourceRequirement):
        return
    first = _NVCC_KNOWS.get(asked.value)
    if first is not None and cuda < first:
        yield Finding(
            code=STANDARD,
            severity=Severity.ERROR,
            subject=f"CUDA {cuda}",
            message=(
                f"does not support C++{asked.value}, which PyTorch {case.source.version.value} requires: nvcc accepts "
                f"-std=c++{asked.value} from CUDA {first} on{asked_doubt(case)}"
            ),
            evidence=f"C++{asked.value} ({asked.origin})",
            source=f"CUDA Toolkit release notes, {first}",
            fix=f"choose a target with CUDA {first} or newer, or an older revision",
        )


def abi(case: Case) -> Iterator[Finding]:
    """Yield a note if a build gets another libstdc++ ABI than PyTorch's own wheels of the revision."""
    row = case.facts.pytorch_build.release(case.source.version.value) if case.source else None
    if case.source is None or row is None or row.wheel_abi != 0 or not case.platform.startswith("linux"):
        return
    choice = case.source.abi
    fix = "compile extensions against this build, not against the wheels"
    if choice.value is AbiChoice.ENVIRONMENT:
        fix = f"{fix}; or export _GLIBCXX_USE_CXX11_ABI=0 before the build to get the ABI of the wheels"
    yield Finding(
        code=ABI,
        severity=Severity.NOTE,
        subject=f"PyTorch {case.source.version.value}",
        message=(
            "gets the C++11 ABI of libstdc++ here (_GLIBCXX_USE_CXX11_ABI=1, the compiler's default), but its "
            f"wheels have the old one (0): extensions compiled for the wheels do not load{doubt(row.basis)}"
        ),
        evidence=f"ABI selected by: the {choice.value} ({choice.origin})",
        source=row.basis.source,
        fix=fix,
    )


def build_backend(case: Case) -> Iterator[Finding]:
    """Yield a warning if the lock lacks the build backend of the revision."""
    asked = case.source.build_backend if case.source else None
    if case.source is None or case.lock is None or not isinstance(asked, SourceRequirement):
        return
    names = {wheel.name for wheel in case.lock.wheels.get(case.platform, ())}
    names |= {package.name for package in case.lock.conda.get(case.platform, ())}
    if asked.value in ("setuptools", "scikit-build-core") and names and asked.value not in names:
        section = "pypi-dependencies" if case.lock.wheels.get(case.platform) else "dependencies"
        yield Finding(
            code=BACKEND,
            severity=Severity.WARNING,
            subject=asked.value,
            message=(
                f"builds PyTorch {case.source.version.value}, but the target does not bring it: `pip install "
                f"--no-build-isolation` fails with a missing module{asked_doubt(case)}"
            ),
            evidence=f"not in the lock of `{case.lock.target}` for {case.platform}",
            source=asked.origin,
            fix=f'add {asked.value} = "*" to [{section}] and lock again',
        )
