"""The codes of an audit, each with a page in ``docs/rules``."""

from tenv.checks.rules.interface import Finding, Severity, Unknown

__all__ = ["CODES", "audit_finding"]

CODES = {
    "TE001": "a file can't be read",
    "TE002": "a library that is found nowhere",
    "TE003": "a library from outside the environment",
    "TE004": "a stub of the CUDA driver",
    "TE005": "a host with older libraries or another processor",
    "TE006": "a driver that is too old for the CUDA run time",
    "TE007": "a GPU without code",
    "TE008": "architectures that were asked for and are not there",
    "TE009": "a wheel's tag that promises too much",
    "TE010": "two C++ ABIs",
    "TE011": "a folder of the build machine in a run path",
    "TE012": "a build that differs from its target",
}


def audit_finding(
    code: str,
    severity: Severity,
    subject: str,
    message: str,
    evidence: str,
    source: str,
    fix: str,
    unknown: Unknown | None = None,
) -> Finding:
    """Return a finding of an audit; raises KeyError for a code that is not one of `CODES`."""
    if code not in CODES:
        raise KeyError(code)
    return Finding(code, severity, subject, message, evidence, source, fix, unknown)
