"""The levels of activation of a shell as data: the variables before and after an activation or a deactivation.

Each activation in a shell is one level, and `TENV_LEVEL` is the innermost. Exported variables hold the values that a
deactivation restores, so one shell can undo the activation of another:

- `_TENV_NAMES_1`: the names of the changed variables.
- `_TENV_SAVED_1_NAME`: `=` and the value before; `+` and the value of a variable that was not exported; `-` if it was
  not set.
- `_TENV_FRONT_1_NAME`, `_TENV_BACK_1_NAME`: the separator and the text that was added to a list.

POSIX shells and fish have scripts that do the same without Python (`tenv.activation.shells.posix` and `fish`).
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tenv.activation.changes import Action, Activation, is_own
from tenv.targets.variable_requests import VARIABLE_PATTERN


def level_of(environ: Mapping[str, str]) -> int:
    """Return the number of activations of a shell."""
    text = environ.get("TENV_LEVEL", "")
    return int(text) if re.fullmatch("[1-9][0-9]{0,3}", text, re.ASCII) else 0


def activated(environ: Mapping[str, str], activation: Activation) -> dict[str, str]:
    """Return the variables after an activation; one of the innermost environment renews it rather than nests."""
    new = dict(environ)
    activation = replace(activation, changes=tuple(replace(one, name=_key(one.name)) for one in activation.changes))
    level = level_of(new)
    if level and new.get("TENV_PREFIX") == str(activation.prefix):
        for change in activation.changes:
            saved = f"_TENV_SAVED_{level}_{change.name}"
            if change.default and saved in new and is_own(new, change.name):  # the user has set it since
                new[saved] = f"={new[change.name]}"
        new = deactivated(new)
    level = level_of(new) + 1
    changes = tuple(activation.changes_in(new))
    new["TENV_LEVEL"] = str(level)
    new[f"_TENV_NAMES_{level}"] = " ".join(dict.fromkeys(change.name for change in changes))
    for change in changes:
        old = new.pop(change.name, None)
        new.setdefault(f"_TENV_SAVED_{level}_{change.name}", "-" if old is None else f"={old}")
        if change.action in (Action.PREPEND, Action.APPEND):
            side = "FRONT" if change.action is Action.PREPEND else "BACK"
            new[f"_TENV_{side}_{level}_{change.name}"] = change.separator + change.value
        value = change.on(old)
        if value is not None:
            new[change.name] = value
    return new


def deactivated(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without the innermost activation; as they are if no environment is active."""
    new = dict(environ)
    level = level_of(new)
    if not level:
        return new
    for name in _names(new, level):
        value = _before(new, level, name)
        if value is None:
            new.pop(name, None)
        else:
            new[name] = value
        for part in ("SAVED", "FRONT", "BACK"):
            new.pop(f"_TENV_{part}_{level}_{name}", None)
    new.pop(f"_TENV_NAMES_{level}", None)
    del new["TENV_LEVEL"]
    return new | ({"TENV_LEVEL": str(level - 1)} if level > 1 else {})


def edits(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return the variables that differ, with their new values; None for one to unset."""
    changed: dict[str, str | None] = dict.fromkeys(sorted(before.keys() - after.keys()))
    return changed | {name: value for name, value in after.items() if before.get(name) != value}


def without_active_lists(environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables with the lists as they were before any environment was activated.

    Additions of the user since then stay, and variables that are no lists keep their values.
    """
    new = dict(environ)
    for level in range(level_of(new), 0, -1):
        for name in _names(new, level):
            if name in new and any(_added(new, level, name)):
                value = _before(new, level, name)
                if value is None:
                    del new[name]
                else:
                    new[name] = value
    return new


def _names(environ: Mapping[str, str], level: int) -> Iterator[str]:
    """Yield the variables that an activation changed; a name is code in a shell's script."""
    for name in environ.get(f"_TENV_NAMES_{level}", "").split():
        if re.fullmatch(VARIABLE_PATTERN, name):
            yield _key(name)


def _key(name: str) -> str:
    """Return the name of a variable in `os.environ`, which has capital letters on Windows."""
    return name.upper() if sys.platform == "win32" else name


def _added(environ: Mapping[str, str], level: int, name: str) -> tuple[str, str]:
    """Return the separator and text at the front and at the back of a list."""
    return environ.get(f"_TENV_FRONT_{level}_{name}", ""), environ.get(f"_TENV_BACK_{level}_{name}", "")


def _before(environ: Mapping[str, str], level: int, name: str) -> str | None:
    """Return the value that a deactivation restores; additions of the user to a list stay."""
    saved = environ.get(f"_TENV_SAVED_{level}_{name}", "-")
    front, back = _added(environ, level, name)
    value, exported = saved[1:], saved.startswith("=")
    now = environ.get(name, "")
    if now != _filled(value, front, back) and (front or back):
        value = _cut(_cut(now, front), back)
        exported = exported or bool(value)
    return value if exported else None


def _filled(value: str, front: str, back: str) -> str:
    """Return a list with its additions."""
    if front:
        value = front[1:] + (front[0] + value if value else "")
    return (value + back if value else back[1:]) if back else value


def _cut(value: str, added: str) -> str:
    """Return a list without the first occurrence of an addition."""
    separator = added[:1]
    before, found, after = f"{separator}{value}{separator}".partition(f"{added}{separator}") if added else ("", "", "")
    return f"{before}{separator}{after}"[1:-1] if found else value
