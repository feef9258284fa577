"""The functions of the hook of POSIX shells; `tenv.activation.shells.posix` replaces each ``@NAME@``.

The hook sources a stored script only if the prefix carries the mark of this user for its very path
(`tenv.environment.marks`). It leaves everything else to ``tenv activate``, which decides and explains.
"""

FIND_PROJECT = r"""
_tenv_find_project() { # set _tenv_folder to the project's folder; 1 if there is none, 2 if it is another user's
    _tenv_folder=${PWD%/} _tenv_checkout=""
    while :; do
        if _tenv_find_sign "$_tenv_folder"; then
            if [ -O "$_tenv_folder/" ] && [ -O "$_tenv_sign" ]; then return 0; fi
            return 2
        fi
        if [ -z "$_tenv_checkout" ] && [ -d "$_tenv_folder/torch/csrc" ] && [ -f "$_tenv_folder/setup.py" ]; then
            _tenv_checkout=$_tenv_folder
        fi
        if [ -z "$_tenv_folder" ] || [ ! -O "$_tenv_folder/" ]; then return 1; fi
        _tenv_folder=${_tenv_folder%/*}
    done
}
_tenv_find_sign() { # FOLDER: set _tenv_sign to the file or folder that makes a folder a project
    _tenv_sign=$1/tenv.toml
    if [ -f "$_tenv_sign" ]; then return 0; fi
    if [ -n "${ZSH_VERSION-}" ]; then setopt localoptions nonomatch; fi
    for _tenv_sign in "$1"/manifests/*.toml; do
        if [ -e "$_tenv_sign" ] || [ -L "$_tenv_sign" ]; then
            _tenv_sign=$1/manifests
            return 0
        fi
    done
    return 1
}
"""
"""The search for the project, as `tenv.targets.search` does it; completion has it too."""

HOOK = r"""
tenv() {
    if [ -n "${ZSH_VERSION-}" ]; then emulate -LR zsh; fi
    case "${1-}:$#" in
        activate:2)
            case $2 in
                -* | */*) _tenv_eval "$2" ;;
                *) _tenv_stored "$2" ;;
            esac
            ;;
        activate:*)
            shift
            _tenv_eval "$@"
            ;;
        deactivate:1)
@DEACTIVATE@
            ;;
        *) @PROGRAM@ "$@" ;;
    esac
}
_tenv_eval() { # [ARGUMENT…]: activate by the program tenv, which reports errors
    _tenv_script=$(@PROGRAM@ activate --shell sh "$@") || {
        set -- "$?"
        unset _tenv_script
        return "$1"
    }
    case $_tenv_script in
        ". "*) eval "$_tenv_script" ;;
        *) printf '%s\n' "$_tenv_script" ;; # help, or JSON
    esac
    unset _tenv_script
}
_tenv_stored() { # TARGET: source its stored script if the environment is ready
    _tenv_find_project && set -- "$1" 0 || set -- "$1" "$?"
    case $2$_tenv_checkout in
        2*) set -- "$1" "" ;; # another user's
        1) set -- "$1" @DATA@/"$1" ;;
        *)
            _tenv_folder=${_tenv_checkout:-$_tenv_folder}
            set -- "$1" "$_tenv_folder/.tenv/envs/$1" "$_tenv_folder/.tenv/envs" "$_tenv_folder/.tenv"
            ;;
    esac
    if [ ! -L "${3-}" ] && [ ! -L "${4-}" ] && _tenv_is_ready "$2" && _tenv_noted "$2/@META@/@NOTE@"; then
        set -- "$2/@META@/activate.sh"
        unset _tenv_folder _tenv_checkout _tenv_sign _tenv_line _tenv_mark
        . "$1"
    else
        unset _tenv_folder _tenv_checkout _tenv_sign _tenv_line _tenv_mark
        _tenv_eval "$1"
    fi
}
@FIND_PROJECT@
_tenv_is_ready() { # PREFIX: whether it is ready and unchanged, and carries the user's mark for this very path
    if [ -L "$1" ] || [ ! -O "$1" ] || [ ! -f "$1/@META@/state.json" ] || [ ! -f "$1/@ID@" ]; then return 1; fi
    IFS= read -r _tenv_line <"$1/@META@/state.json" || :
    case $_tenv_line in
        '@READY@'*) ;;
        *) return 1 ;;
    esac
    IFS= read -r _tenv_mark <"$1/@ID@" || :
    case $_tenv_mark in
        "" | *[!0-9a-f]*) return 1 ;;
    esac
    _tenv_mark=@MARKS@/$_tenv_mark
    if [ ! -f "$_tenv_mark" ] || [ ! -f "$1/@META@/activate.sh" ]; then return 1; fi
    if [ "$1/@META@/activate.sh" -nt "$_tenv_mark" ]; then return 1; fi # changed since
    {
        IFS= read -r _tenv_line || return 1
        if [ ! "$_tenv_line" -ef "$1" ]; then return 1; fi
        IFS= read -r _tenv_line && IFS= read -r _tenv_line || return 1
        while IFS= read -r _tenv_line; do
            case $_tenv_line in
                @META@/* | *.cfg) [ -f "$1/$_tenv_line" ] && [ ! "$1/$_tenv_line" -nt "$_tenv_mark" ] || return 1 ;;
                *=*) [ -x "$1/${_tenv_line%%=*}" ] && [ "$1/${_tenv_line%%=*}" -ef "${_tenv_line#*=}" ] || return 1 ;;
                *) [ -f "$1/$_tenv_line" ] && [ -x "$1/$_tenv_line" ] && [ ! -L "$1/$_tenv_line" ] || return 1 ;;
            esac
        done
    } <"$_tenv_mark"
}
_tenv_measure() { # FILE: set _tenv_now to its size in bytes, by a process if the shell has no way of its own
    case ${ZSH_VERSION:+zsh}${BASH_VERSION-} in
        zsh*)
            if zmodload -F zsh/stat b:zstat 2>/dev/null; then
                zstat -A _tenv_text +size "$1" 2>/dev/null || return 1
                _tenv_now=${_tenv_text[1]}
                return 0
            fi
            ;;
        [5-9].* | [1-9][0-9]*.*)
            typeset LC_ALL=C _tenv_text 2>/dev/null || return 1 # a length counts bytes
            mapfile -d "" _tenv_text <"$1" 2>/dev/null || return 1 # one element: a lock has no NUL
            _tenv_now=${#_tenv_text}
            return 0
            ;;
    esac
    _tenv_now=$(command wc -c <"$1" 2>/dev/null)
}
_tenv_noted() { # NOTE: whether tenv compared this very lock last; prints its warning
    [ -f "$1" ] || return 1
    { # the lock, the warning, the lock's size, and the files that would take precedence
        IFS= read -r _tenv_lock && IFS= read -r _tenv_warning && read -r _tenv_size || return 1
        IFS= read -r _tenv_near || :
        IFS= read -r _tenv_user || :
    } <"$1"
    _tenv_now=$_tenv_size
    if [ ! -f "$_tenv_lock" ] || [ "$_tenv_lock" -nt "$1" ] || [ "$_tenv_lock" -ot "$1" ] ||
        [ -e "$_tenv_near" ] || [ -e "$_tenv_user" ]; then
        _tenv_now=
    elif [ -n "$_tenv_warning" ] && [ -n "${TENV_LOCKED-}" ]; then
        _tenv_now=
    else
        _tenv_measure "$_tenv_lock" || _tenv_now=$_tenv_size
    fi
    set -- "${_tenv_now##* }" "$_tenv_size" "$_tenv_warning"
    unset _tenv_lock _tenv_warning _tenv_size _tenv_near _tenv_user _tenv_now
    [ "$1" = "$2" ] || return 1
    if [ -n "$3" ]; then printf 'tenv: %s\n' "$3" >&2; fi
}
"""
