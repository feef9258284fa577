"""YAML texts as plain values; whatever is wrong with one is a ValueError."""

from typing import Any

__all__ = ["load"]


def load(text: str | bytes) -> Any:
    """Return the value that a YAML text stands for.

    Args:
        text: The text, which must not nest deep: libyaml answers that with a crash.

    Raises:
        ValueError: It is no YAML, or a value in it is not what its tag says; the message tells why and where.
    """
    import yaml  # noqa: PLC0415 (late: 15 ms)

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, Loader=loader)  # noqa: S506 (both are safe loaders)
    except (yaml.YAMLError, ValueError, RecursionError) as fault:
        raise ValueError(_told(fault)) from fault
    except (LookupError, AttributeError) as fault:  # PyYAML lets them through for `!!bool x` or `!!timestamp x`
        raise ValueError("a value is not what its tag says") from fault


def _told(fault: Exception) -> str:
    """Return why a text can't be read, and on which line where that is known."""
    mark = getattr(fault, "problem_mark", None)
    problem = getattr(fault, "problem", None) or (str(fault).splitlines() or [type(fault).__name__])[0]
    return f"{problem} (line {mark.line + 1})" if mark else str(problem)
