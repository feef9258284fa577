"""The scripts of POSIX shells that activate an environment and undo it.

What a script changes is saved in exported variables, one set a level, so that activations nest and that a subshell can
undo what its parent did. The scripts work under ``set -eu``, never leave the shell, start no program and, in bash and
zsh, no process. Each change is a line of its own, which takes a quarter of the time of a call with ``eval`` in it.
"""

import itertools
import shlex
from collections.abc import Iterator, Sequence

from tenv.activation.changes import Action, Activation, Change, Watch

__all__ = ["render_activation", "render_deactivation"]

# Saved values begin with `=` where the variable was exported, with `+` where it was the shell's alone, and are `-`
# where it was not set. What was put in front or at the back begins with its separator. In zsh the functions run by its
# usual options: with glob_subst and rc_expand_param of the user an `eval` would take a value for a pattern.
_UNDO = r"""
_tenv_cut() { # SEPARATOR TEXT: take what was added out of a list, and leave the rest
    case $1$_tenv_now$1 in
        *"$1$2$1"*)
            _tenv_now=$1$_tenv_now$1
            _tenv_now=${_tenv_now%%"$1$2$1"*}$1${_tenv_now#*"$1$2$1"}
            _tenv_now=${_tenv_now#"$1"}
            _tenv_now=${_tenv_now%"$1"}
            ;;
    esac
}
_tenv_fill() { # tell in _tenv_full what a list becomes by what is put in front and at the back
    _tenv_full=$_tenv_old
    if [ -n "$_tenv_front" ]; then
        _tenv_text=${_tenv_front#?}
        _tenv_full=$_tenv_text${_tenv_full:+${_tenv_front%"$_tenv_text"}$_tenv_full}
    fi
    if [ -n "$_tenv_back" ]; then
        _tenv_text=${_tenv_back#?}
        _tenv_full=${_tenv_full:+$_tenv_full${_tenv_back%"$_tenv_text"}}$_tenv_text
    fi
}
_tenv_restore() { # NAME: put one variable of the present level back
    eval "_tenv_saved=\${_TENV_SAVED_${TENV_LEVEL}_$1-}; _tenv_now=\${$1-}"
    eval "_tenv_front=\${_TENV_FRONT_${TENV_LEVEL}_$1-}; _tenv_back=\${_TENV_BACK_${TENV_LEVEL}_$1-}"
    _tenv_old=${_tenv_saved#?}
    if [ -n "$_tenv_front$_tenv_back" ]; then
        _tenv_fill
        if [ "$_tenv_now" != "$_tenv_full" ]; then # somebody has changed it since
            if [ -n "$_tenv_front" ]; then _tenv_cut "${_tenv_front%"${_tenv_front#?}"}" "${_tenv_front#?}"; fi
            if [ -n "$_tenv_back" ]; then _tenv_cut "${_tenv_back%"${_tenv_back#?}"}" "${_tenv_back#?}"; fi
            case $_tenv_saved$_tenv_now in
                -) ;;
                -*) _tenv_saved="=" _tenv_old=$_tenv_now ;;
                *) _tenv_old=$_tenv_now ;;
            esac
        fi
    fi
    case $_tenv_saved in
        "="*) eval "$1=\$_tenv_old; export $1" ;;
        "+"*) eval "unset $1; $1=\$_tenv_old" ;;
        *) unset "$1" ;;
    esac
    unset "_TENV_SAVED_${TENV_LEVEL}_$1" "_TENV_FRONT_${TENV_LEVEL}_$1" "_TENV_BACK_${TENV_LEVEL}_$1"
}
_tenv_pop() { # undo the innermost activation
    if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi
    case ${TENV_LEVEL:-0} in
        0 | *[!0-9]*)
            echo "tenv: no environment is active" >&2
            return 1
            ;;
    esac
    case ${PS1-} in
        "(${TENV_TARGET-}) "*) PS1=${PS1#"(${TENV_TARGET-}) "} ;;
    esac
    eval "_tenv_names=\${_TENV_NAMES_${TENV_LEVEL}-}"
    eval "for _tenv_name in $_tenv_names; do _tenv_restore \"\$_tenv_name\"; done"
    unset "_TENV_NAMES_${TENV_LEVEL}"
    if [ "$TENV_LEVEL" -gt 1 ]; then TENV_LEVEL=$((TENV_LEVEL - 1)); else unset TENV_LEVEL; fi
    unset _tenv_saved _tenv_front _tenv_back _tenv_now _tenv_old _tenv_text _tenv_full _tenv_names _tenv_name
    hash -r 2>/dev/null || :
}
"""

# In what bash (from 5.0 on) prints for `@a` and zsh for `(t)`, an x stands for exported alone; other shells list their
# variables, in a process.
_DO = r"""
_tenv_tell_kind() { # NAME: tell in _tenv_kind whether a variable, which is set, is exported
    case ${ZSH_VERSION:+zsh}${BASH_VERSION-} in
        zsh*) eval "_tenv_found=\${(t)$1}" ;;
        [5-9].* | [1-9][0-9]*.*) eval "_tenv_found=\${$1@a}" ;;
        *)
            if [ -z "${_tenv_listed-}" ]; then _tenv_listed=$(export -p); fi
            case $_tenv_listed in
                *" $1="*) _tenv_found=x ;;
                *) _tenv_found="" ;;
            esac
            ;;
    esac
    case $_tenv_found in
        *x*) _tenv_kind="=" ;;
        *) _tenv_kind="+" ;;
    esac
}
_tenv_save() { # NAME SET VALUE: save a variable at the present level; SET is empty if it is not set
    if [ -n "$2" ]; then _tenv_tell_kind "$1"; else _tenv_kind=-; fi
    export "_TENV_SAVED_${TENV_LEVEL}_$1=$_tenv_kind$3"
}
_tenv_stands() { # NAMES: whether the innermost activation changed these variables
    eval "[ \"\${_TENV_NAMES_${TENV_LEVEL}-}\" = \"\$1\" ]"
}
_tenv_is_list() { # NAME FRONT BACK: whether a list is what the innermost activation made of it, with these parts
    _tenv_front=$2 _tenv_back=$3
    eval "_tenv_old=\${_TENV_SAVED_${TENV_LEVEL}_$1-} _tenv_now=\${$1-}
        _tenv_text=\${_TENV_FRONT_${TENV_LEVEL}_$1-}\${_TENV_BACK_${TENV_LEVEL}_$1-}"
    if [ "$_tenv_text" != "$2$3" ]; then return 1; fi
    _tenv_old=${_tenv_old#?}
    _tenv_fill
    [ "$_tenv_now" = "$_tenv_full" ]
}
"""

_PROMPT = """case $- in
    *i*) if [ -z "${TENV_NO_PROMPT-}" ] && [ -n "${PS1-}" ]; then PS1="(${TENV_TARGET}) $PS1"; fi ;;
esac
"""

_FORGET_UNDO = "unset -f _tenv_cut _tenv_fill _tenv_restore _tenv_pop\n"
_FORGET_DO = """unset -f _tenv_tell_kind _tenv_save _tenv_stands _tenv_is_list _tenv_activate
unset _tenv_new _tenv_kind _tenv_found _tenv_listed _tenv_old _tenv_now _tenv_front _tenv_back _tenv_text _tenv_full
"""


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    body = [
        'if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi\n',
        "case ${TENV_LEVEL-} in *[!0-9]*) unset TENV_LEVEL ;; esac\n",
        *_render_renewal(activation),
        'if [ -n "$_tenv_new" ]; then\n',
        "TENV_LEVEL=$((${TENV_LEVEL:-0} + 1))\nexport TENV_LEVEL\n",
        *_render_saves(activation.changes),
        "fi\n",
        *_render_changes(activation.changes),
    ]
    return "".join(
        [
            f"# tenv: {activation.target} in {activation.prefix}".replace("\n", " ") + "\n",
            _UNDO.lstrip("\n"),
            _DO.lstrip("\n"),
            "_tenv_activate() {\n",
            *body,
            "}\n_tenv_activate\n",
            _render_watches(activation.watches),
            _PROMPT,
            "hash -r 2>/dev/null || :\n",
            _FORGET_UNDO,
            _FORGET_DO,
        ]
    )


def render_deactivation() -> str:
    """Return the script that undoes the innermost activation."""
    return f"{_UNDO.lstrip()}_tenv_pop || :\n{_FORGET_UNDO}"


def _names(changes: Sequence[Change]) -> list[str]:
    return list(dict.fromkeys(change.name for change in changes))


def _parts(changes: Sequence[Change]) -> dict[str, dict[Action, str]]:
    """Return what is put before and after each list, behind its separator."""
    parts: dict[str, dict[Action, str]] = {}
    for change in changes:
        if change.action in (Action.PREPEND, Action.APPEND):
            parts.setdefault(change.name, {})[change.action] = change.separator + change.value
    return parts


def _render_renewal(activation: Activation) -> Iterator[str]:
    """Yield what leaves the saved values alone if this very activation is the innermost, and else undoes that."""
    tests = [f"_tenv_stands {shlex.quote(' '.join(_names(activation.changes)))}"]
    for name, parts in _parts(activation.changes).items():
        tests.append(shlex.join(("_tenv_is_list", name, parts.get(Action.PREPEND, ""), parts.get(Action.APPEND, ""))))
    mark = shlex.quote(f"({activation.target}) ")
    yield f"""_tenv_new=x
if [ "${{TENV_PREFIX-}}" = {shlex.quote(str(activation.prefix))} ] && [ "${{TENV_LEVEL:-0}}" -gt 0 ]; then
    if {" && ".join(tests)}; then
        _tenv_new=""
        case ${{PS1-}} in {mark}*) PS1=${{PS1#{mark}}} ;; esac
    else
        _tenv_pop
    fi
fi
"""


def _render_saves(changes: Sequence[Change]) -> Iterator[str]:
    """Yield what saves the variables at the present level."""
    for name in _names(changes):
        yield f'_tenv_save {name} "${{{name}+x}}" "${{{name}-}}"\n'
    for name, parts in _parts(changes).items():
        for action, text in parts.items():
            side = "FRONT" if action is Action.PREPEND else "BACK"
            yield f'export "_TENV_{side}_${{TENV_LEVEL}}_{name}="{shlex.quote(text)}\n'
    yield f'export "_TENV_NAMES_${{TENV_LEVEL}}={" ".join(_names(changes))}"\n'


def _render_changes(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the lines that change the variables; a list that stands as it was made is left as it is."""
    for action, group in itertools.groupby(changes, key=lambda change: change.action):
        match action:
            case Action.SET:  # one command for all takes half the time
                yield f"export {' '.join(f'{change.name}={shlex.quote(change.value)}' for change in group)}\n"
            case Action.UNSET:
                yield f"unset {' '.join(change.name for change in group)}\n"
            case Action.PREPEND | Action.APPEND:
                lists = list(group)
                yield 'if [ -n "$_tenv_new" ]; then\n'
                yield from map(_render_list, lists)
                yield f"fi\nexport {' '.join(_names(lists))}\n"


def _render_list(change: Change) -> str:
    name, value, separator = change.name, shlex.quote(change.value), shlex.quote(change.separator)
    if change.action is Action.PREPEND:
        return f'{name}={value}${{{name}:+{separator}"${name}"}}\n'
    return f'{name}=${{{name}:+"${name}"{separator}}}{value}\n'


# A stamp has the time that the file had; where a shell can't tell (no stamp, no -nt), nothing is said.
_WATCHED = r"""_tenv_same() { # FILE STAMP: whether a file is there and as old as it was
    [ -f "$1" ] && { [ ! -f "$2" ] || ! { [ "$1" -nt "$2" ] || [ "$1" -ot "$2" ]; } 2>/dev/null; }
}
"""


def _render_watches(watches: Sequence[Watch]) -> str:
    """Return what tells of files of the machine that have changed; tests of the shell itself, no program."""
    if not watches:
        return ""
    lines = [_WATCHED]
    for watch in watches:
        tests = " && ".join(f"_tenv_same {shlex.quote(file)} {shlex.quote(stamp)}" for file, stamp in watch.files)
        lines.append(f"if {tests}; then :; else printf 'tenv: %s\\n' {shlex.quote(watch.sentence)} >&2; fi\n")
    return "".join([*lines, "unset -f _tenv_same\n"])
