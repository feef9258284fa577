"""Whether the machine has what the target takes from it: the CUDA toolkit and the compiler of ``[system]``."""

from collections.abc import Iterator

from tenv.host.interface import Missing
from tenv.rules.common import chosen_gcc, chosen_toolkit
from tenv.rules.interface import Case, Finding, Severity

__all__ = ["LACKING", "lacking"]

LACKING = "TE306"


def lacking(case: Case) -> Iterator[Finding]:
    """Yield an error for each tool that the target takes from the machine and that the machine does not have."""
    host = case.host
    choices = (("cuda-toolkit", chosen_toolkit(case), host.toolkits), ("gcc", chosen_gcc(case), host.compilers))
    for name, choice, looked_at in choices:
        if choice is not None and choice.taken is None and not isinstance(looked_at, Missing):
            yield _finding(case, name, choice.refused, looked_at.origin)


def _finding(case: Case, name: str, refused: tuple[str, ...], looked_at: str) -> Finding:
    accepted = case.manifest.system[name]
    return Finding(
        code=LACKING,
        severity=Severity.ERROR,
        subject=name,
        message=f"the target takes {name} {accepted} from the machine, which has none that fits",
        evidence="; ".join(refused) or f"looked at: {looked_at}",
        source="[system] of the manifest",
        fix=f"install {name} {accepted}, or name one that is there in {_VARIABLES[name]}",
    )


_VARIABLES = {"cuda-toolkit": "CUDA_HOME", "gcc": "CC and CXX"}
