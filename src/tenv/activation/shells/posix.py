"""bash, zsh, dash and other shells with the syntax of POSIX: the stored script, deactivation and the hook.

An activation saves variables in exported ones (`tenv.activation.levels`), so that activations nest and a subshell can
undo those of its parent. The scripts work under ``set -eu``, never leave the shell, start no program and, in bash and
zsh, no process. Each change is a line of its own, which takes a quarter of the time of a call with ``eval``.
"""

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import GIVEN, Action, Activation, Change, Watch
from tenv.activation.shells.posix_hook import FIND_PROJECT, HOOK
from tenv.core.prefix import ID_FILE, LOCK_NOTE, MARKS, META, READY

quote = shlex.quote

NAMES = ("bash", "zsh", "sh", "dash", "ksh", "mksh")
SCRIPT = "activate.sh"

# In zsh the functions run by its usual options: with glob_subst and rc_expand_param of the user an `eval` would take a
# value for a pattern.
_UNDO = r"""
_tenv_cut() { # SEPARATOR TEXT: remove an addition from the list in _tenv_now
    case $1$_tenv_now$1 in
        *"$1$2$1"*)
            _tenv_now=$1$_tenv_now$1
            _tenv_now=${_tenv_now%%"$1$2$1"*}$1${_tenv_now#*"$1$2$1"}
            _tenv_now=${_tenv_now#"$1"}
            _tenv_now=${_tenv_now%"$1"}
            ;;
    esac
}
_tenv_fill() { # set _tenv_full to the list in _tenv_old with its additions
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
_tenv_restore() { # NAME: restore a variable of the innermost level
    eval "_tenv_saved=\${_TENV_SAVED_${TENV_LEVEL}_$1-}; _tenv_now=\${$1-}"
    eval "_tenv_front=\${_TENV_FRONT_${TENV_LEVEL}_$1-}; _tenv_back=\${_TENV_BACK_${TENV_LEVEL}_$1-}"
    _tenv_old=${_tenv_saved#?}
    if [ -n "$_tenv_front$_tenv_back" ]; then
        _tenv_fill
        if [ "$_tenv_now" != "$_tenv_full" ]; then # changed since: other additions stay
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

# In the output of `@a` of bash (from 5.0 on) and `(t)` of zsh, only exported variables have an x; other shells list
# their variables, in a process.
_DO = r"""
_tenv_find_kind() { # NAME: set _tenv_kind by whether a variable, which is set, is exported
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
_tenv_save() { # NAME SET VALUE: save a variable at the innermost level; SET is empty if it is not set
    if [ -n "$2" ]; then _tenv_find_kind "$1"; else _tenv_kind=-; fi
    export "_TENV_SAVED_${TENV_LEVEL}_$1=$_tenv_kind$3"
}
_tenv_is_own() { # NAME: whether a variable has a value that no activation has given it as a default
    eval "[ -n \"\${$1+x}\" ] && [ \"\${$1+=\$$1}\" != \"\${_TENV_GIVEN_$1+=\$_TENV_GIVEN_$1}\" ]"
}
_tenv_keep() { # NAME: let the deactivation restore the value that the user has given a default since
    eval "if [ -n \"\${_TENV_SAVED_${TENV_LEVEL}_$1+x}\" ]; then _TENV_SAVED_${TENV_LEVEL}_$1=\"=\$$1\"; fi"
}
_tenv_stands() { # NAMES: whether the innermost activation changed these variables
    eval "[ \"\${_TENV_NAMES_${TENV_LEVEL}-}\" = \"\$1\" ]"
}
_tenv_is_list() { # NAME FRONT BACK: whether a list is as the innermost activation made it, with these additions
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
_FORGET_DO = """unset -f _tenv_find_kind _tenv_save _tenv_is_own _tenv_keep _tenv_stands _tenv_is_list _tenv_activate
unset _tenv_new _tenv_kind _tenv_found _tenv_listed _tenv_old _tenv_now _tenv_front _tenv_back _tenv_text _tenv_full
unset _tenv_all _tenv_own _tenv_each
"""


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    always = [change for change in activation.changes if not change.default]
    defaults = [change for change in activation.changes if change.default]
    body = [
        'if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi\n',
        "case ${TENV_LEVEL-} in *[!0-9]*) unset TENV_LEVEL ;; esac\n",
        *_render_names(_names(always), _names(defaults)),
        *_render_renewal(activation, _names(defaults)),
        'if [ -n "$_tenv_new" ]; then\n',
        "TENV_LEVEL=$((${TENV_LEVEL:-0} + 1))\nexport TENV_LEVEL\n",
        *_render_saves(always, defaults),
        "fi\n",
        *_render_changes(always, defaults),
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
    """Return the additions before and after each list, behind their separator."""
    parts: dict[str, dict[Action, str]] = {}
    for change in changes:
        if change.action in (Action.PREPEND, Action.APPEND):
            parts.setdefault(change.name, {})[change.action] = change.separator + change.value
    return parts


def _render_names(always: Sequence[str], defaults: Sequence[str]) -> Iterator[str]:
    """Yield the lines that find the variables to change, and the defaults of which the user has a value."""
    yield f"_tenv_own=' '\n_tenv_all={quote(' '.join(always))}\n"
    if defaults:
        yield f"""for _tenv_each in {" ".join(defaults)}; do
    if _tenv_is_own "$_tenv_each"; then
        _tenv_own="$_tenv_own$_tenv_each "
    else
        _tenv_all="$_tenv_all $_tenv_each {GIVEN}$_tenv_each"
    fi
done
"""


def _render_renewal(activation: Activation, defaults: Sequence[str]) -> Iterator[str]:
    """Yield the lines that undo an innermost activation of the same prefix, unless it is this very one."""
    tests = ['_tenv_stands "$_tenv_all"']
    for name, parts in _parts(activation.changes).items():
        tests.append(shlex.join(("_tenv_is_list", name, parts.get(Action.PREPEND, ""), parts.get(Action.APPEND, ""))))
    mark = quote(f"({activation.target}) ")
    keep = "".join(f'        case $_tenv_own in *" {name} "*) _tenv_keep {name} ;; esac\n' for name in defaults)
    yield f"""_tenv_new=x
if [ "${{TENV_PREFIX-}}" = {quote(str(activation.prefix))} ] && [ "${{TENV_LEVEL:-0}}" -gt 0 ]; then
    if {" && ".join(tests)}; then
        _tenv_new=""
        case ${{PS1-}} in {mark}*) PS1=${{PS1#{mark}}} ;; esac
    else
{keep}        _tenv_pop
    fi
fi
"""


def _render_saves(always: Sequence[Change], defaults: Sequence[Change]) -> Iterator[str]:
    """Yield the lines that save the variables at the innermost level."""
    yield from map(_render_save, _names(always))
    for name in _names(defaults):
        yield _unless_own(name, _render_save(name) + _render_save(GIVEN + name))
    for name, parts in _parts(always).items():
        for action, text in parts.items():
            side = "FRONT" if action is Action.PREPEND else "BACK"
            yield f'export "_TENV_{side}_${{TENV_LEVEL}}_{name}="{quote(text)}\n'
    yield 'export "_TENV_NAMES_${TENV_LEVEL}=$_tenv_all"\n'


def _render_save(name: str) -> str:
    return f'_tenv_save {name} "${{{name}+x}}" "${{{name}-}}"\n'


def _unless_own(name: str, lines: str) -> str:
    """Return lines for a default of which the user has no value."""
    return f'case $_tenv_own in *" {name} "*) ;; *)\n{lines};; esac\n'


def _render_changes(always: Sequence[Change], defaults: Sequence[Change]) -> Iterator[str]:
    """Yield the lines that change the variables; lists stay as they are in a renewal."""
    for action, group in itertools.groupby(always, key=lambda change: change.action):
        match action:
            case Action.SET:  # one command for all takes half the time
                yield f"export {' '.join(f'{change.name}={quote(change.value)}' for change in group)}\n"
            case Action.UNSET:
                yield f"unset {' '.join(change.name for change in group)}\n"
            case Action.PREPEND | Action.APPEND:
                lists = list(group)
                yield 'if [ -n "$_tenv_new" ]; then\n'
                yield from map(_render_list, lists)
                yield f"fi\nexport {' '.join(_names(lists))}\n"
    for change in defaults:
        value = quote(change.value)
        yield _unless_own(change.name, f"export {change.name}={value} {GIVEN}{change.name}={value}\n")


def _render_list(change: Change) -> str:
    name, value, separator = change.name, quote(change.value), quote(change.separator)
    if change.action is Action.PREPEND:
        return f'{name}={value}${{{name}:+{separator}"${name}"}}\n'
    return f'{name}=${{{name}:+"${name}"{separator}}}{value}\n'


# A stamp has the time that the file had; without a stamp or -nt, a changed file is not reported.
_WATCHED = r"""_tenv_same() { # FILE STAMP: whether a file exists and is as old as it was
    [ -f "$1" ] && { [ ! -f "$2" ] || ! { [ "$1" -nt "$2" ] || [ "$1" -ot "$2" ]; } 2>/dev/null; }
}
"""


def _render_watches(watches: Sequence[Watch]) -> str:
    """Return the lines that warn about changed files of the machine, by tests of the shell itself."""
    if not watches:
        return ""
    lines = [_WATCHED]
    for watch in watches:
        tests = " && ".join(f"_tenv_same {quote(file)} {quote(stamp)}" for file, stamp in watch.files)
        lines.append(f"if {tests}; then :; else printf 'tenv: %s\\n' {quote(watch.sentence)} >&2; fi\n")
    return "".join([*lines, "unset -f _tenv_same\n"])


def use(command: str) -> str:
    """Return the line that runs the output of a command of tenv."""
    return f'eval "$({command})"'


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f". {quote(script)}\n"


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:
    """Return the words that start bash or zsh with an environment active; None for others.

    Start files put folders before PATH, so they are read first. zsh finds them by ZDOTDIR, which is put back.
    """
    tidy = f"command rm -rf {quote(str(folder))}\n"
    activate = render_source(script)
    match Path(program).name:
        case "bash":
            (folder / "start.sh").write_text(f"if [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n{activate}{tidy}")
            return [program, "--rcfile", str(folder / "start.sh"), "-i"]
        case "zsh":
            own = environment.get("ZDOTDIR", "")
            home = quote(own or environment.get("HOME", ""))
            back = f"export ZDOTDIR={quote(own)}\n" if own else "unset ZDOTDIR\n"
            for name in (".zshenv", ".zshrc"):
                again = f"export ZDOTDIR={quote(str(folder))}\n" if name == ".zshenv" else activate + tidy
                read = f"if [ -f {home}/{name} ]; then . {home}/{name}; fi\n"
                (folder / name).write_text(back + read + again)
            return ["env", f"ZDOTDIR={folder}", program, "-i"]
        case _:
            return None


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of a function ``tenv`` that activates by sourcing the stored script.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    names = {
        "@PROGRAM@": shlex.join(program),
        "@META@": META,
        "@READY@": READY,
        "@NOTE@": LOCK_NOTE,
        "@ID@": ID_FILE,
        "@DATA@": quote(str(home)),
        "@MARKS@": quote(str(home.parent / MARKS)),
    }
    text = HOOK.replace("@DEACTIVATE@", render_deactivation()).replace("@FIND_PROJECT@", FIND_PROJECT.strip("\n"))
    for name, value in names.items():
        text = text.replace(name, value)
    return text
