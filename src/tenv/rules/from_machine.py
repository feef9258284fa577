"""Whether the machine has what the target takes from it: the CUDA toolkit and the compiler of ``[system]``."""

from collections.abc import Iterator
from typing import Any

from tenv.host.interface import Fact, Missing
from tenv.rules.common import chosen_gcc, chosen_toolkit
from tenv.rules.interface import Case, Finding, Severity
from tenv.versions import Range

__all__ = ["LACKING", "lacking"]

LACKING = "TE309"


def lacking(case: Case) -> Iterator[Finding]:
    """Yield an error for each tool that the target takes from the machine and that the machine does not have."""
    asked = case.manifest.system
    toolkit, gcc = chosen_toolkit(case), chosen_gcc(case)
    if toolkit is not None and toolkit.taken is None:
        yield _finding("cuda-toolkit", asked["cuda-toolkit"], toolkit.refused, case.host.toolkits)
    if gcc is not None and gcc.taken is None:
        yield _finding("gcc", asked["gcc"], gcc.refused, case.host.compilers)


def _finding(name: str, accepted: Range, refused: tuple[str, ...], looked: Fact[Any] | Missing) -> Finding:
    where = looked.reason if isinstance(looked, Missing) else looked.origin
    return Finding(
        code=LACKING,
        severity=Severity.ERROR,
        subject=name,
        message=f"the target takes {name} {accepted} from the machine, which has none that fits",
        evidence="; ".join(refused) or f"looked at: {where}",
        source="[system] of the manifest",
        fix=f"install {name} {accepted}, or name one that is there in {_VARIABLES[name]}",
    )


_VARIABLES = {"cuda-toolkit": "CUDA_HOME", "gcc": "CC and CXX"}
