"""The steps of a build by their names, and what each reports."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from tenv.checks.rules.checkout import OF_CHECKOUT
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass

__all__ = ["CODES", "BuildStepName", "Done", "StepReport", "build_finding"]


class BuildStepName(StrEnum):
    """The steps, in their order."""

    CHECKOUT = "checkout"
    TARGET = "target"
    CREATE = "create"
    PROBE = "probe"
    CONFIGURE = "configure"
    SUMMARY = "summary"
    ESTIMATE = "estimate"
    CANARY = "canary"
    BUILD = "build"
    IMPORT = "import"


CODES = {
    "TE902": "a submodule is at another commit than the checkout pins",
    "TE904": "the products in the source tree are another target's",
    "TE905": "nothing there is a checkout that can be built",
    "TE911": "the choice of the target",
    "TE921": "the environment lacks a part of the toolkit",
    "TE922": "a tool of the environment does not work",
    "TE923": "the environment lacks a run-time requirement of torch",
    "TE931": "the revision does not read a switch",
    "TE932": "the configuration failed",
    "TE933": "no compile cache",
    "TE941": "a switch was turned off",
    "TE942": "an MPI without CUDA",
    "TE951": "the disk is too small",
    "TE952": "the memory limits the jobs",
    "TE953": "the build file can't be read",
    "TE961": "the compilation failed",
    "TE962": "the package could not be installed",
    "TE963": "a portable build lacks libraries of the environment",
    "TE964": "no index for GDB",
    "TE971": "torch does not import",
    "TE972": "another torch is imported",
    "TE973": "torch computes a wrong result",
    "TE974": "torch was built with another version than the target has",
}
"""The codes of the steps, each with a page in ``docs/rules``; the first digit is 9, the second that of the step."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a step found out.

    Attributes:
        findings: What there is to say; an error ends the build.
        facts: What it measured, as plain values.
        log: The log that it wrote.
        lines: What people want to read of it.
    """

    findings: Sequence[Finding] = ()
    facts: dict[str, Any] | None = None
    log: Path | None = None
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StepReport:
    """How a step ended.

    Attributes:
        name: The step.
        done: What it found out.
        seconds: How long it took.
    """

    name: BuildStepName
    done: Done
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether nothing that it found ends the build."""
        return all(finding.severity is not Severity.ERROR for finding in self.done.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values."""
        return {
            "name": self.name.value,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "findings": [finding.to_json() for finding in self.done.findings],
            "log": str(self.done.log or ""),
            "facts": self.done.facts or {},
        }


def build_finding(
    code: str, subject: str, message: str, evidence: str, source: str, fix: str, severity: Severity = Severity.ERROR
) -> Finding:
    """Return a finding of a step; its code must be one of `CODES`, or of the rules about a checkout."""
    if code not in CODES and code not in OF_CHECKOUT:
        raise KeyError(code)
    return Finding(code, severity, subject, message, evidence, source, fix)
