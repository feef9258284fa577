"""bash, zsh, dash and other shells with the syntax of POSIX.

What a script changes is saved in exported variables, one set a level, so that activations nest and that a subshell can
undo what its parent did. The scripts start no program, work under ``set -eu`` and never leave the shell.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import Action, Activation, Watch
from tenv.activation.shells.posix_hook import HOOK
from tenv.core.prefix import ID_FILE, LOCK_NOTE, MARKS, META

__all__ = [
    "NAMES",
    "SCRIPT",
    "holds",
    "quote",
    "render_activation",
    "render_deactivation",
    "render_hook",
    "render_source",
    "start",
    "use",
]

quote = shlex.quote

NAMES = ("bash", "zsh", "sh", "dash", "ksh", "mksh")
SCRIPT = "activate.sh"

# Saved values begin with `=` where the variable was exported, with `+` where it was the shell's alone, and are `-`
# where it was not set. What was put in front or at the back begins with its separator. In zsh the functions run by its
# usual options: with glob_subst and rc_expand_param of the user an `eval` would take a value for a pattern.
_FUNCTIONS = r"""
_tenv_push() { # NAME: save a variable at the present level, once
    eval "if [ -n \"\${_TENV_SAVED_${TENV_LEVEL}_$1+x}\" ]; then return 0; fi"
    case $_tenv_exported in
        *" $1="* | *" $1 "*) _tenv_mark="=" ;; # zsh: export -T PATH path=( … )
        *) _tenv_mark="+" ;;
    esac
    eval "if [ -z \"\${$1+x}\" ]; then _tenv_mark=-; fi; _TENV_SAVED_${TENV_LEVEL}_$1=\$_tenv_mark\${$1-}"
    eval "export _TENV_SAVED_${TENV_LEVEL}_$1; _TENV_NAMES_${TENV_LEVEL}=\"\${_TENV_NAMES_${TENV_LEVEL}-} $1\""
}
_tenv_set() { # NAME VALUE
    if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi
    _tenv_push "$1"
    eval "$1=\$2; export $1"
}
_tenv_prepend() { # NAME VALUE SEPARATOR
    if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi
    _tenv_push "$1"
    eval "$1=\$2\${$1:+\$3\$$1}; export $1; _TENV_FRONT_${TENV_LEVEL}_$1=\$3\$2; export _TENV_FRONT_${TENV_LEVEL}_$1"
}
_tenv_append() { # NAME VALUE SEPARATOR
    if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi
    _tenv_push "$1"
    eval "$1=\${$1:+\$$1\$3}\$2; export $1; _TENV_BACK_${TENV_LEVEL}_$1=\$3\$2; export _TENV_BACK_${TENV_LEVEL}_$1"
}
_tenv_unset() { # NAME
    if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi
    _tenv_push "$1"
    unset "$1"
}
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
_tenv_restore() { # NAME: put one variable of the present level back
    eval "_tenv_saved=\${_TENV_SAVED_${TENV_LEVEL}_$1-}; _tenv_now=\${$1-}"
    eval "_tenv_front=\${_TENV_FRONT_${TENV_LEVEL}_$1-}; _tenv_back=\${_TENV_BACK_${TENV_LEVEL}_$1-}"
    _tenv_old=${_tenv_saved#?}
    if [ -n "$_tenv_front$_tenv_back" ]; then
        _tenv_full=$_tenv_old
        if [ -n "$_tenv_front" ]; then
            _tenv_text=${_tenv_front#?}
            _tenv_full=$_tenv_text${_tenv_full:+${_tenv_front%"$_tenv_text"}$_tenv_full}
        fi
        if [ -n "$_tenv_back" ]; then
            _tenv_text=${_tenv_back#?}
            _tenv_full=${_tenv_full:+$_tenv_full${_tenv_back%"$_tenv_text"}}$_tenv_text
        fi
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

_PROMPT = """case $- in
    *i*) if [ -z "${TENV_NO_PROMPT-}" ] && [ -n "${PS1-}" ]; then PS1="(${TENV_TARGET}) $PS1"; fi ;;
esac
"""

_FORGET = "unset -f _tenv_push _tenv_set _tenv_prepend _tenv_append _tenv_unset _tenv_cut _tenv_restore _tenv_pop\n"


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    prefix = shlex.quote(str(activation.prefix))
    lines = [
        f"# tenv: {activation.target} in {activation.prefix}".replace("\n", " ") + "\n",
        _FUNCTIONS.lstrip("\n"),
        f'if [ "${{TENV_PREFIX-}}" = {prefix} ] && [ -n "${{TENV_LEVEL-}}" ]; then _tenv_pop; fi\n',
        "TENV_LEVEL=$((${TENV_LEVEL:-0} + 1))\nexport TENV_LEVEL\n_tenv_exported=$(export -p)\n",
    ]
    for change in activation.changes:
        match change.action:
            case Action.SET:
                lines.append(f"_tenv_set {change.name} {shlex.quote(change.value)}\n")
            case Action.PREPEND | Action.APPEND as side:
                words = shlex.join((f"_tenv_{side}", change.name, change.value, change.separator))
                lines.append(f"{words}\n")
            case Action.UNSET:
                lines.append(f"_tenv_unset {change.name}\n")
    lines += [
        'eval "export _TENV_NAMES_${TENV_LEVEL}"\nunset _tenv_exported _tenv_mark\n',
        _render_watches(activation.watches),
        _PROMPT,
        "hash -r 2>/dev/null || :\n",
        _FORGET,
    ]
    return "".join(lines)


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
        tests = " && ".join(f"_tenv_same {quote(file)} {quote(stamp)}" for file, stamp in watch.files)
        lines.append(f"if {tests}; then :; else printf 'tenv: %s\\n' {quote(watch.sentence)} >&2; fi\n")
    return "".join([*lines, "unset -f _tenv_same\n"])


def holds(value: str) -> bool:  # noqa: ARG001
    """Return True: a POSIX shell holds any value."""
    return True


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints."""
    return f'eval "$({command})"'


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f". {shlex.quote(script)}\n"


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


def render_deactivation() -> str:
    """Return the script that undoes the innermost activation."""
    return f"{_FUNCTIONS.lstrip()}_tenv_pop || :\n{_FORGET}"


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of a function ``tenv`` that activates by sourcing the stored script.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    names = {
        "@PROGRAM@": shlex.join(program),
        "@META@": META,
        "@NOTE@": LOCK_NOTE,
        "@ID@": ID_FILE,
        "@DATA@": shlex.quote(str(home)),
        "@MARKS@": shlex.quote(str(home.parent / MARKS)),
    }
    text = HOOK.replace("@DEACTIVATE@", render_deactivation())
    for name, value in names.items():
        text = text.replace(name, value)
    return text
