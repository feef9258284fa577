"""Read from JSON how toolkits and compilers were found and what their problems are: a kind and a text."""

from tenv.core.json_reader import Values
from tenv.host.report import FoundBy, Lead, ProblemKind, ToolkitProblem

__all__ = ["read_found_by", "read_problems"]


def read_found_by(values: Values, key: str) -> tuple[FoundBy, ...]:
    """Return how something was found."""
    return tuple(FoundBy(Lead.read(one.optional(one.text, "kind")), one.text("text")) for one in values.objects(key))


def read_problems(values: Values, key: str) -> tuple[ToolkitProblem, ...]:
    """Return the problems of a toolkit."""
    return tuple(
        ToolkitProblem(ProblemKind.read(one.optional(one.text, "kind")), one.text("text"))
        for one in values.objects(key)
    )
