"""Sizes for people."""

__all__ = ["format_bytes"]


def format_bytes(count: float) -> str:
    """Return a size for people, in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:  # noqa: PLR2004 (binary units)
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
