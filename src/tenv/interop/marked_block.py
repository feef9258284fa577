"""A part of another tool's file that tenv writes anew each time, between two lines; the rest is the user's."""

from tenv.interop.interface import Addition

__all__ = ["add_block", "block"]

_BEGIN, _END = "# >>> tenv >>>", "# <<< tenv <<<"


def block(text: str) -> bytes:
    """Return a text between the two lines."""
    return f"{_BEGIN}\n{text}{_END}\n".encode()


def add_block(name: str, old: bytes, new: bytes, force: bool) -> Addition:  # noqa: ARG001 (the signature of all formats)
    """Put a block in the place of the one before, or behind what is there.

    Raises:
        ValueError: The file has the line that begins a block and none that ends it.
    """
    text = old.decode("utf-8")
    start = text.find(_BEGIN)
    if start < 0:
        return Addition((f"{text}\n" if text and not text.endswith("\n") else text).encode() + new)
    end = text.find(f"{_END}\n", start)
    if end < 0:
        raise ValueError(f"a line `{_BEGIN}` without its `{_END}`")
    return Addition((text[:start] + new.decode() + text[end + len(_END) + 1 :]).encode())
