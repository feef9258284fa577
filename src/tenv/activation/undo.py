"""What active environments have added to the lists of the caller's variables, taken out again."""

from collections.abc import Mapping

__all__ = ["without_active_lists"]


def without_active_lists(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables with the lists as they were before any environment was activated.

    Every shell's script notes per level what it has put in front of a list and behind it (`_TENV_FRONT_1_PATH`,
    `_TENV_BACK_1_PATH`: the separator, then the text). What the user has added since stays, as at `tenv deactivate`.
    Variables that are no lists keep the values that the activation gave them.
    """
    found = dict(environ)
    text = found.get("TENV_LEVEL", "")
    for level in range(int(text) if text.isdecimal() else 0, 0, -1):
        for name in found.get(f"_TENV_NAMES_{level}", "").split():
            _restore(found, level, name)
    return found


def _restore(found: dict[str, str], level: int, name: str) -> None:
    added = [found.get(f"_TENV_{end}_{level}_{name}", "") for end in ("FRONT", "BACK")]
    value = found.get(name)
    if value is None or not any(added):
        return
    for text in filter(None, added):
        value = _cut(value, text[0], text[1:])
    if value or not found.get(f"_TENV_SAVED_{level}_{name}", "-").startswith("-"):
        found[name] = value
    else:
        del found[name]


def _cut(value: str, separator: str, text: str) -> str:
    """Take the first occurrence of a text out of a list."""
    before, found, after = f"{separator}{value}{separator}".partition(f"{separator}{text}{separator}")
    return f"{before}{separator}{after}".strip(separator) if found else value
