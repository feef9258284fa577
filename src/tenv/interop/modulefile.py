"""modulefile: an environment as modulefiles, in Tcl for Environment Modules (5.1 and later), and in Lua for Lmod.

Loading sets the variables of an activation, and unloading restores the values from before by ``pushenv``
(https://modules.readthedocs.io/en/latest/modulefile.html, https://lmod.readthedocs.io/en/latest/050_lua_modulefiles.html).
Lmod reads Tcl, too, but its ``pushenv`` of there brings no value back (8.6.19). Of two files of one name it takes the
one in Lua, which Environment Modules skips. Both drop repeated parts of a list. Of options such as ``-include`` each
counts, so that a list of options is pushed as a whole.
"""

import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator

from tenv.activation.changes import GIVEN, Action, Change
from tenv.core.errors import FormatError
from tenv.interop.interface import Exported, Format, Subject

_OLD = "_TENV_OLD_"
"""Begins the name of the variable with the options from before a module was loaded; the name of the target follows."""

_LETTERS = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_OF_TCL = {**_LETTERS, **{letter: f"\\{letter}" for letter in "$[]{};"}}


def _tcl(text: str) -> str:
    """Return a text as one word of Tcl."""
    return f'"{"".join(_OF_TCL.get(letter, letter) for letter in text)}"'


def _lua(text: str) -> str:
    """Return a text as a string of Lua."""
    return f'"{"".join(_LETTERS.get(letter, letter) for letter in text)}"'


def _is_path(change: Change) -> bool:
    """Return whether a change adds folders, each of which counts once."""
    return change.action in (Action.PREPEND, Action.APPEND) and change.separator == ":"


def _in_tcl(change: Change, target: str) -> Iterator[str]:
    """Yield the lines of a change. A modulefile is run again to unload it, when the variables have their new values."""
    name, value = change.name, _tcl(change.value)
    if _is_path(change):
        yield f"{change.action}-path {name} {value}"
    elif change.action in (Action.PREPEND, Action.APPEND):
        old = f"{_OLD}{re.sub(r'[^A-Za-z0-9]', '_', target)}_{name}"
        added, between = value[1:-1], _tcl(change.separator)[1:-1]
        whole = f"{added}{between}$old" if change.action is Action.PREPEND else f"$old{between}{added}"
        yield f"if {{![module-info mode load] && [info exists env({old})]}} {{ set old $env({old})"
        yield f'}} elseif {{[info exists env({name})]}} {{ set old $env({name}) }} else {{ set old "" }}'
        yield f"setenv {old} $old"
        yield f'if {{$old eq ""}} {{ pushenv {name} {value} }} else {{ pushenv {name} "{whole}" }}'
    elif change.action is Action.UNSET:  # `unsetenv` would not bring the value back
        yield f'if {{[info exists env({name})]}} {{ pushenv {name} "" }}'
    elif change.default:
        given = GIVEN + name
        yield f"if {{![info exists env({name})] || ([info exists env({given})] && $env({name}) eq $env({given}))}} {{"
        yield from (f"    pushenv {name} {value}", f"    setenv {given} {value}", "}")
    else:
        yield f"pushenv {name} {value}"


def _in_lua(change: Change) -> Iterator[str]:
    """Yield the lines of a change, as `_in_tcl` does."""
    name, value = _lua(change.name), _lua(change.value)
    if _is_path(change):
        yield f"{change.action}_path({name}, {value})"
    elif change.action in (Action.PREPEND, Action.APPEND):
        old = f"os.getenv({name})"
        parts = (value, old) if change.action is Action.PREPEND else (old, value)
        joined = f" .. {_lua(change.separator)} .. ".join(parts)
        yield f'pushenv({name}, ({old} or "") ~= "" and {joined} or {value})'
    elif change.action is Action.UNSET:
        yield f'if os.getenv({name}) then pushenv({name}, "") end'
    elif change.default:
        given = _lua(GIVEN + change.name)
        yield f"if not os.getenv({name}) or os.getenv({name}) == os.getenv({given}) then"
        yield from (f"    pushenv({name}, {value})", f"    setenv({given}, {value})", "end")
    else:
        yield f"pushenv({name}, {value})"


def _require_settable(changes: Iterable[Change], name: str) -> None:
    """Raise FormatError for a value of several lines, or with other control characters than tabs.

    Environment Modules 5.2 prints a line break unquoted, so that a shell runs the second line as a command.
    """
    for change in changes:
        if any(letter != "\t" and unicodedata.category(letter) == "Cc" for letter in change.value):
            raise FormatError(
                f"the activation sets {change.name} to a value with a line break or another control character, and no "
                "modulefile can",
                hint=f'`eval "$(tenv activate {name})"` can; `tenv env {name} --explain {change.name}` has its origin',
            )


def _export(subject: Subject) -> Exported:
    site = subject.site
    if site is None:
        raise ValueError("no environment")
    name, changes = subject.manifest.name, site.activation.changes
    made = f"Made by `tenv export modulefile {name}`. Run it again after each `tenv create {name}`."
    what, gone = f"{name}: {subject.manifest.description}", f"{site.prefix}: the environment is gone"
    _require_settable(changes, name)
    state = f"{site.prefix}/tenv-meta/state.json"
    in_tcl = [
        *("#%Module1.0", f"# {made}", f"module-whatis {_tcl(what)}"),
        f"if {{[module-info mode load] && ![file exists {_tcl(state)}]}} {{",
        *(f"    puts stderr {_tcl(gone)}", "    break", "}"),
        *(line for change in changes for line in _in_tcl(change, name)),
    ]
    in_lua = [
        *(f"-- {made}", f"whatis({_lua(what)})"),
        f'if mode() == "load" and not isFile({_lua(state)}) then LmodError({_lua(gone)}) end',
        *(line for change in changes for line in _in_lua(change)),
    ]
    notes = [f"run: module use {shlex.quote(f'{site.folder}/modulefiles')} && module load tenv/{name}"]
    if number := next((change.value for change in changes if change.name == "MAX_JOBS" and change.default), ""):
        notes.append(f"MAX_JOBS is {number} on every node, as on this machine; one that is set before the load wins")
    if watched := [file for watch in site.activation.watches for file, _ in watch.files]:
        notes.append(f"the module does not see changes of {', '.join(watched)}, as `tenv activate {name}` does")
    texts = {f"modulefiles/tenv/{name}": in_tcl, f"modulefiles/tenv/{name}.lua": in_lua}
    files = {file: "".join(f"{line}\n" for line in lines).encode() for file, lines in texts.items()}
    return Exported(files, notes=tuple(notes))


FORMAT = Format(name="modulefile", export=_export, needs_environment=True, holds_lock=False, whole=True)
