"""Check what depends on the age of a PyTorch revision: its C++ standard, ABI and build system."""

from collections.abc import Iterator

from tenv.checks.pytorch_source import AbiChoice, SourceRequirement
from tenv.checks.rules.common import asked_doubt, cuda_of, doubt
from tenv.checks.rules.interface import Case, Finding, Severity
from tenv.core.versions import Version

__all__ = ["ABI", "BACKEND", "STANDARD", "abi", "build_backend", "cxx_standard"]

STANDARD = "TE606"
ABI = "TE607"
BACKEND = "TE608"

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
