"""fish, from 3.1 on.

What a script changes is saved as `tenv.activation.shells.posix` saves it, under the same names, so that one shell can
undo what another did. A list that was there is kept as a list for the shell that holds it. A universal variable is
covered by a global one and shows again when that goes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import Action, Activation, Watch
from tenv.activation.shells.fish_hook import HOOK
from tenv.core.prefix import ID_FILE, LOCK_NOTE, MARKS, META, READY

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

NAMES = ("fish",)
SCRIPT = "activate.fish"


def quote(text: str) -> str:
    """Return a text as one word of fish, in which only a backslash and a single quote mean something."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_FUNCTIONS = r"""
function _tenv_push # NAME: save a variable at the present level, once
    set -qg _TENV_SAVED_{$TENV_LEVEL}_$argv[1]; and return
    set -l _tenv_mark -
    set -l _tenv_old
    if set -qgx $argv[1]
        set _tenv_mark "="
    else if set -qg $argv[1]
        set _tenv_mark "+"
    end
    if test $_tenv_mark != -
        set _tenv_old "$$argv[1]"
        set -g _tenv_list_{$TENV_LEVEL}_$argv[1] $$argv[1]
    end
    set -gx _TENV_SAVED_{$TENV_LEVEL}_$argv[1] "$_tenv_mark$_tenv_old"
    set -l _tenv_names _TENV_NAMES_$TENV_LEVEL
    set -gx $_tenv_names "$$_tenv_names $argv[1]"
end
function _tenv_set # NAME VALUE
    _tenv_push $argv[1]
    set -gx $argv[1] $argv[2]
end
function _tenv_prepend # NAME VALUE SEPARATOR
    _tenv_push $argv[1]
    set -gx _TENV_FRONT_{$TENV_LEVEL}_$argv[1] "$argv[3]$argv[2]"
    if test -n "$$argv[1]"
        set -gx $argv[1] "$argv[2]$argv[3]$$argv[1]"
    else
        set -gx $argv[1] $argv[2]
    end
end
function _tenv_append # NAME VALUE SEPARATOR
    _tenv_push $argv[1]
    set -gx _TENV_BACK_{$TENV_LEVEL}_$argv[1] "$argv[3]$argv[2]"
    if test -n "$$argv[1]"
        set -gx $argv[1] "$$argv[1]$argv[3]$argv[2]"
    else
        set -gx $argv[1] $argv[2]
    end
end
function _tenv_unset # NAME
    _tenv_push $argv[1]
    set -eg $argv[1]
    if set -qU $argv[1]
        set -gu $argv[1] # hides the universal one
    end
end
function _tenv_join # FRONT VALUE BACK: a value between what was added to it; each of that begins with its separator
    set -l IFS ""
    set -l value "$argv[2]"
    if test -n "$argv[1]"
        set -l text (string sub -s 2 -- "$argv[1]")
        test -n "$value"; and set value "$text"(string sub -l 1 -- "$argv[1]")"$value"; or set value "$text"
    end
    if test -n "$argv[3]"
        test -n "$value"; and set value "$value$argv[3]"; or set value (string sub -s 2 -- "$argv[3]")
    end
    printf '%s\n' "$value"
end
function _tenv_cut # VALUE ADDED: a list without what was added to it
    set -l IFS ""
    set -l sep (string sub -l 1 -- "$argv[2]")
    set -l rest (string replace -- "$argv[2]$sep" "$sep" "$sep$argv[1]$sep")
    set rest (string sub -s 2 -- "$rest")
    if test -n "$argv[2]" -a -n "$rest"
        string sub -l (math (string length -- "$rest") - 1) -- "$rest"
    else
        printf '%s\n' "$argv[1]"
    end
end
function _tenv_restore # NAME: put one variable of the present level back
    set -l IFS "" # so that a line break within a value does not split it
    set -l _tenv_name_saved _TENV_SAVED_{$TENV_LEVEL}_$argv[1]
    set -l _tenv_name_front _TENV_FRONT_{$TENV_LEVEL}_$argv[1]
    set -l _tenv_name_back _TENV_BACK_{$TENV_LEVEL}_$argv[1]
    set -l _tenv_name_list _tenv_list_{$TENV_LEVEL}_$argv[1]
    set -l _tenv_mark (string sub -l 1 -- "$$_tenv_name_saved")
    set -l _tenv_old (string sub -s 2 -- "$$_tenv_name_saved")
    set -l _tenv_list
    if set -qg $_tenv_name_list
        set _tenv_list $$_tenv_name_list
        set -eg $_tenv_name_list
    else
        set _tenv_list "$_tenv_old"
    end
    set -l _tenv_now "$$argv[1]"
    if set -qg $_tenv_name_front; or set -qg $_tenv_name_back
        set -l _tenv_front "$$_tenv_name_front"
        set -l _tenv_back "$$_tenv_name_back"
        if test "$_tenv_now" != (_tenv_join "$_tenv_front" "$_tenv_old" "$_tenv_back")
            # Somebody has changed it since: take out what was added, and leave the rest.
            set _tenv_now (_tenv_cut "$_tenv_now" "$_tenv_front")
            set _tenv_list (_tenv_cut "$_tenv_now" "$_tenv_back")
            if test $_tenv_mark = - -a -n "$_tenv_list"
                set _tenv_mark "="
            end
        end
    end
    switch $_tenv_mark
        case "="
            set -gx $argv[1] $_tenv_list
        case "+"
            set -gu $argv[1] $_tenv_list
        case "*"
            set -eg $argv[1]
    end
    set -eg $_tenv_name_saved
    set -eg $_tenv_name_front
    set -eg $_tenv_name_back
end
function _tenv_pop # undo the innermost activation
    if not string match -qr '^[1-9][0-9]*$' -- "$TENV_LEVEL"
        echo "tenv: no environment is active" >&2
        return 1
    end
    set -l _tenv_names _TENV_NAMES_$TENV_LEVEL
    for _tenv_name in (string split -n " " -- "$$_tenv_names")
        _tenv_restore $_tenv_name
    end
    set -eg $_tenv_names
    if test $TENV_LEVEL -gt 1
        set -gx TENV_LEVEL (math $TENV_LEVEL - 1)
    else
        set -eg TENV_LEVEL
    end
    if not set -q TENV_LEVEL; and functions -q _tenv_own_prompt
        if string match -q "*_tenv_own_prompt*" -- (functions fish_prompt)
            functions -e fish_prompt
            functions -c _tenv_own_prompt fish_prompt
        end
        functions -e _tenv_own_prompt
    end
    return 0
end
"""

_PROMPT = """if status is-interactive; and not set -q TENV_NO_PROMPT; and not functions -q _tenv_own_prompt
    functions -q fish_prompt; or fish_prompt >/dev/null 2>&1
    if functions -q fish_prompt
        functions -c fish_prompt _tenv_own_prompt
        function fish_prompt
            set -l _tenv_status $status
            if set -q TENV_TARGET
                printf '(%s) ' $TENV_TARGET
            end
            function _tenv_as_it_was -a wanted
                return $wanted
            end
            _tenv_as_it_was $_tenv_status
            _tenv_own_prompt
        end
    end
end
"""

_FORGET = "functions -e _tenv_{push,set,prepend,append,unset,join,cut,restore,pop}\n"


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    prefix = quote(str(activation.prefix))
    lines = [
        f"# tenv: {activation.target} in {activation.prefix}".replace("\n", " ") + "\n",
        _FUNCTIONS.lstrip("\n"),
        f'if test "$TENV_PREFIX" = {prefix}; and set -q TENV_LEVEL\n    _tenv_pop\nend\n',
        'if string match -qr "^[0-9]+\\$" -- "$TENV_LEVEL"\n    set -gx TENV_LEVEL (math $TENV_LEVEL + 1)\n',
        "else\n    set -gx TENV_LEVEL 1\nend\n",
    ]
    for change in activation.changes:
        words = [change.name]
        if change.action is not Action.UNSET:
            words.append(quote(change.value))
        if change.action in (Action.PREPEND, Action.APPEND):
            words.append(quote(change.separator))
        lines.append(f"_tenv_{change.action} {' '.join(words)}\n")
    return "".join([*lines, _render_watches(activation.watches), _PROMPT, _FORGET])


# The system's `test`, since that of fish compares times only in new versions.
_WATCHED = """function _tenv_same # FILE STAMP: whether a file is there and as old as it was
    test -f $argv[1]; and begin
        not test -f $argv[2]; or not command test $argv[1] -nt $argv[2] -o $argv[1] -ot $argv[2]
    end
end
"""


def _render_watches(watches: Sequence[Watch]) -> str:
    """Return what tells of files of the machine that have changed."""
    if not watches:
        return ""
    lines = [_WATCHED]
    for watch in watches:
        tests = "; and ".join(f"_tenv_same {quote(file)} {quote(stamp)}" for file, stamp in watch.files)
        lines.append(f"if not begin; {tests}; end\n    printf 'tenv: %s\\n' {quote(watch.sentence)} >&2\nend\n")
    return "".join([*lines, "functions -e _tenv_same\n"])


def holds(value: str) -> bool:  # noqa: ARG001
    """Return True: fish holds any value."""
    return True


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints."""
    return f"{command} | source"


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f"source {quote(script)}\n"


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:  # noqa: ARG001
    """Return the words that start fish with an environment active: its start files are read first."""
    if Path(program).name not in NAMES:
        return None
    return [program, "-i", "-C", f"command rm -rf {quote(str(folder))}; {render_source(script)}"]


def render_deactivation() -> str:
    """Return the script that undoes the innermost activation."""
    return f"{_FUNCTIONS.lstrip()}_tenv_pop\n{_FORGET}"


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of a function ``tenv`` that activates by sourcing the stored script.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    values = {
        "@PROGRAM@": " ".join(map(quote, program)),
        "@META@": META,
        "@READY@": READY,
        "@ID@": ID_FILE,
        "@MARKS@": quote(str(home.parent / MARKS)),
        "@NOTE@": LOCK_NOTE,
        "@DATA@": quote(str(home)),
        "@SCRIPT@": SCRIPT,
        "@DEACTIVATE@": render_deactivation(),
    }
    text = HOOK
    for name, value in values.items():
        text = text.replace(name, value)
    return text
