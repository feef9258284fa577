"""Sizes and lists for people."""

from collections.abc import Sequence

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_UNITS |= {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def format_bytes(count: float) -> str:
    """Return a size for people, in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:  # noqa: PLR2004 (binary units)
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def parse_bytes(text: str) -> int:
    """Return a size in bytes from a text such as ``64GiB``, ``1.5 TB`` or ``4096``.

    Raises:
        ValueError: The text is no size, or the size is below one byte.
    """
    import re  # late: few commands read a size

    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,3})?)\s*([kmgt]?i?)b?\s*", text, re.IGNORECASE)
    if (
        match is None
        or match[2].lower() not in _UNITS
        or (count := int(float(match[1]) * _UNITS[match[2].lower()])) < 1
    ):
        raise ValueError(f"`{text}` is not a size")
    return count


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first names of a list, and the number of the others: ``a, b and 3 more``."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
