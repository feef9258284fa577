"""What leads to toolkits and compilers, and what is wrong with them, read from JSON: a kind, and a text for people."""

from tenv.core.json_reader import Values
from tenv.host.report import FoundBy, Lead, ProblemKind, ToolkitProblem

__all__ = ["read_found_by", "read_problems"]


def read_found_by(values: Values, key: str) -> tuple[FoundBy, ...]:
    """Return what leads to something."""
    return tuple(FoundBy(Lead.read(one.optional(one.text, "kind")), one.text("text")) for one in values.objects(key))


def read_problems(values: Values, key: str) -> tuple[ToolkitProblem, ...]:
    """Return what is wrong with a toolkit."""
    return tuple(
        ToolkitProblem(ProblemKind.read(one.optional(one.text, "kind")), one.text("text"))
        for one in values.objects(key)
    )
