"""Whether the toolkit's neighbours fit: other toolkits that a build could take, and the libraries beside it."""

from collections.abc import Iterator

from tenv.facts.archives import Archive
from tenv.host.interface import Missing
from tenv.lock import Wheel
from tenv.rules.common import cuda_of, doubt, locked
from tenv.rules.interface import Case, Finding, Severity
from tenv.versions import Version

__all__ = ["LIBRARY", "TWO_TOOLKITS", "library_of_other_cuda", "two_toolkits"]

TWO_TOOLKITS = "TE304"
LIBRARY = "TE305"

_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_ON_PATH = "nvcc on PATH"


def two_toolkits(case: Case) -> Iterator[Finding]:
    """Yield a warning where CUDA_HOME (or CUDA_PATH) leads to another toolkit than the nvcc on PATH."""
    if cuda_of(case) is None or isinstance(case.host.toolkits, Missing):
        return
    toolkits = case.host.toolkits.value
    named = [toolkit for toolkit in toolkits if set(_VARIABLES) & set(toolkit.found_by)]
    on_path = [toolkit for toolkit in toolkits if _ON_PATH in toolkit.found_by]
    found = {toolkit.path: toolkit for toolkit in (*named, *on_path)}
    if named and len(found) > 1:
        yield Finding(
            code=TWO_TOOLKITS,
            severity=Severity.WARNING,
            subject="CUDA_HOME and PATH",
            message=(
                "lead to different CUDA toolkits: outside an activated environment a build may compile with the nvcc "
                "of one and link the libraries of the other"
            ),
            evidence="; ".join(
                f"{', '.join(toolkit.found_by)}: {toolkit.path} ({toolkit.version or 'version not known'})"
                for toolkit in found.values()
            ),
            source="CMake's FindCUDAToolkit asks the nvcc of the build, then PATH, then CUDA_PATH",
            fix="activate the environment, which sets both, or unset CUDA_HOME and CUDA_PATH",
        )


def library_of_other_cuda(case: Case) -> Iterator[Finding]:
    """Yield a warning where NVIDIA has no cuDNN or cuSPARSELt of the locked version for the CUDA major."""
    cuda = cuda_of(case)
    if cuda is None:
        return
    for name in ("cudnn", "cusparselt"):
        for wheel in locked(case, f"nvidia-{name}-cu{cuda.major}", f"nvidia-{name}"):
            table = case.facts.cudnn if name == "cudnn" else case.facts.cusparselt
            yield from _unknown(wheel, cuda, _same(table.archives, wheel))


def _same(archives: tuple[Archive, ...], wheel: Wheel) -> list[Archive]:
    """Return the archives of a wheel's version; wheels and archives share the first three numbers."""
    version = Version.find(wheel.version)
    wanted = version.text.split(".")[:3] if version else []
    return [row for row in archives if row.cuda_major is not None and row.version.text.split(".")[:3] == wanted]


def _unknown(wheel: Wheel, cuda: Version, archives: list[Archive]) -> Iterator[Finding]:
    majors = sorted({row.cuda_major for row in archives if row.cuda_major is not None})
    if not majors or cuda.major in majors:
        return
    yield Finding(
        code=LIBRARY,
        severity=Severity.WARNING,
        subject=f"{wheel.name} {wheel.version}",
        message=(
            f"is not known to be made for CUDA {cuda.major}: NVIDIA has archives of this version for CUDA "
            f"{', '.join(map(str, majors))}{doubt(*(row.basis for row in archives))}"
        ),
        evidence=wheel.file,
        source=archives[0].basis.source,
        fix=f"ask for a version of {wheel.name} that is made for CUDA {cuda.major} in [pypi-dependencies]",
    )
