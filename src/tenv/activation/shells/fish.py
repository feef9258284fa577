"""fish, from 3.1 on: the stored script, deactivation and the hook.

The script saves changed variables in exported ones (`tenv.activation.levels`). An old list stays a list for the shell
that holds it. A global variable hides a universal one, which shows again without it. The hook sources a stored script
only if the prefix carries the mark of this user for its very path (`tenv.environment.marks`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import GIVEN, Action, Activation, Watch
from tenv.core.prefix import ID_FILE, LOCK_NOTE, MARKS, META, READY

NAMES = ("fish",)
SCRIPT = "activate.fish"


def quote(text: str) -> str:
    """Return a text as one word of fish, in which only a backslash and a single quote are special."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_FUNCTIONS = r"""
function _tenv_push # NAME: save a variable at the innermost level, once
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
function _tenv_is_own # NAME: whether a variable has a value that no activation has given it as a default
    set -l _tenv_given @GIVEN@$argv[1]
    set -q $argv[1]; and not begin
        set -q $_tenv_given; and test "$$argv[1]" = "$$_tenv_given"
    end
end
function _tenv_default # NAME VALUE: set a variable, unless the user has a value of it
    _tenv_is_own $argv[1]; and return
    _tenv_set $argv[1] $argv[2]
    _tenv_set @GIVEN@$argv[1] $argv[2]
end
function _tenv_keep # NAME…: let the deactivation restore the values that the user has given defaults since
    for name in $argv
        set -l saved _TENV_SAVED_{$TENV_LEVEL}_$name
        if set -q $saved; and _tenv_is_own $name
            set -gx $saved "=$$name"
            set -eg _tenv_list_{$TENV_LEVEL}_$name
        end
    end
end
function _tenv_unset # NAME
    _tenv_push $argv[1]
    set -eg $argv[1]
    if set -qU $argv[1]
        set -gu $argv[1] # hides the universal one
    end
end
function _tenv_join # FRONT VALUE BACK: a value between its additions, each of which begins with its separator
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
function _tenv_cut # VALUE ADDED: a list without an addition
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
function _tenv_restore # NAME: restore a variable of the innermost level
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
            # Changed since: other additions stay.
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
""".replace("@GIVEN@", GIVEN)

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

_FORGET = "functions -e _tenv_{push,set,prepend,append,is_own,default,keep,unset,join,cut,restore,pop}\n"


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    prefix = quote(str(activation.prefix))
    defaults = " ".join(change.name for change in activation.changes if change.default)
    lines = [
        f"# tenv: {activation.target} in {activation.prefix}".replace("\n", " ") + "\n",
        _FUNCTIONS.lstrip("\n"),
        f'if test "$TENV_PREFIX" = {prefix}; and set -q TENV_LEVEL\n    _tenv_keep {defaults}\n    _tenv_pop\nend\n',
        'if string match -qr "^[0-9]+\\$" -- "$TENV_LEVEL"\n    set -gx TENV_LEVEL (math $TENV_LEVEL + 1)\n',
        "else\n    set -gx TENV_LEVEL 1\nend\n",
    ]
    for change in activation.changes:
        words = [change.name]
        if change.action is not Action.UNSET:
            words.append(quote(change.value))
        if change.action in (Action.PREPEND, Action.APPEND):
            words.append(quote(change.separator))
        lines.append(f"_tenv_{'default' if change.default else change.action} {' '.join(words)}\n")
    return "".join([*lines, _render_watches(activation.watches), _PROMPT, _FORGET])


# The system's `test`, since fish's own compares times only in new versions.
_WATCHED = """function _tenv_same # FILE STAMP: whether a file exists and is as old as it was
    test -f $argv[1]; and begin
        not test -f $argv[2]; or not command test $argv[1] -nt $argv[2] -o $argv[1] -ot $argv[2]
    end
end
"""


def _render_watches(watches: Sequence[Watch]) -> str:
    """Return the lines that warn about changed files of the machine."""
    if not watches:
        return ""
    lines = [_WATCHED]
    for watch in watches:
        tests = "; and ".join(f"_tenv_same {quote(file)} {quote(stamp)}" for file, stamp in watch.files)
        lines.append(f"if not begin; {tests}; end\n    printf 'tenv: %s\\n' {quote(watch.sentence)} >&2\nend\n")
    return "".join([*lines, "functions -e _tenv_same\n"])


def use(command: str) -> str:
    """Return the line that runs the output of a command of tenv."""
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
    text = _HOOK
    for name, value in values.items():
        text = text.replace(name, value)
    return text


_HOOK = r"""
function tenv
    if test "$argv[1]" = activate -a (count $argv) -eq 2; and not string match -qr -- '^-|/' $argv[2]
        _tenv_stored $argv[2]
    else if test "$argv[1]" = activate
        _tenv_ask $argv[2..-1]
    else if test "$argv[1]" = deactivate -a (count $argv) -eq 1
@DEACTIVATE@
    else
        command @PROGRAM@ $argv
    end
end
function _tenv_ask # [ARGUMENT…]: activate by the program tenv, which reports errors
    set -l script (command @PROGRAM@ activate --shell fish $argv)
    or return
    if string match -q "source *" -- $script[1]
        eval $script[1]
    else
        printf '%s\n' $script # help, or JSON
    end
end
function _tenv_stored # TARGET: source its stored script if the environment is ready
    set -l prefix @DATA@/$argv[1]
    set -l IFS ""
    set -l home (_tenv_find_home)
    if test $status -eq 2 # another user's
        set prefix ""
    else if test -n "$home"
        set prefix $home.tenv/envs/$argv[1]
        test -L $home.tenv -o -L $home.tenv/envs; and set prefix ""
    end
    if test -n "$prefix"; and _tenv_is_ready $prefix; and _tenv_noted $prefix/@META@/@NOTE@
        source $prefix/@META@/@SCRIPT@
    else
        _tenv_ask $argv[1]
    end
end
function _tenv_find_home # print the folder of the checkout or the project; 2 if the project is another user's
    set -l folder (string replace -r '/$' '' -- $PWD)
    set -l checkout
    while true
        set -l sign
        set -l manifests $folder/manifests/*.toml
        if test -f "$folder/tenv.toml"
            set sign $folder/tenv.toml
        else if test (count $manifests) -gt 0
            set sign $folder/manifests
        end
        if test -n "$sign"
            test -O "$folder/" -a -O "$sign"; or return 2
            test -n "$checkout"; or set checkout "$folder"
            printf '%s/' "$checkout"
            return 0
        end
        if test -z "$checkout" -a -d "$folder/torch/csrc" -a -f "$folder/setup.py"
            set checkout $folder
        end
        test -n "$folder" -a -O "$folder/"; or break
        set folder (string replace -r '/[^/]*$' '' -- $folder)
    end
    test -n "$checkout"; and printf '%s/' $checkout
    return 0
end
function _tenv_is_ready # PREFIX: whether it is ready and unchanged, and carries the user's mark for this very path
    set -l meta $argv[1]/@META@
    test -O $argv[1] -a ! -L $argv[1] -a -f $meta/state.json -a -f $argv[1]/@ID@ -a -f $meta/@SCRIPT@; or return 1
    read -l state <$meta/state.json
    read -l id <$argv[1]/@ID@
    if not string match -q '@READY@*' -- $state; or not string match -qr '^[0-9a-f]+$' -- $id
        return 1
    end
    set -l mark @MARKS@/$id
    if not test -f $mark; or test $meta/@SCRIPT@ -nt $mark # changed since
        return 1
    end
    set -l lines
    while read -l line
        set -a lines $line
    end <$mark
    test "$lines[1]" -ef $argv[1]; or return 1
    for name in $lines[4..-1]
        set -l file $argv[1]/$name
        if string match -qr '^@META@/|[.]cfg$' $name
            test -f $file -a ! $file -nt $mark; or return 1
        else if string match -q '*=*' $name
            set -l program (string split -m 1 = -- $name)
            test -x $argv[1]/$program[1] -a $argv[1]/$program[1] -ef $program[2]; or return 1
        else
            test -f $file -a -x $file -a ! -L $file; or return 1
        end
    end
end
function _tenv_noted # NOTE: whether tenv compared this very lock last; prints its warning
    test -f $argv[1]; or return 1
    set -l note # the lock, the warning, the lock's size, and the files that would take precedence
    while read -l line
        set -a note "$line"
    end <$argv[1]
    test (count $note) -ge 3; and test -f $note[1]; or return 1
    command test $note[1] -nt $argv[1] -o $note[1] -ot $argv[1]; and return 1
    test (string trim (command wc -c <$note[1])) = $note[3]; or return 1
    for near in $note[4..-1]
        test -e $near; and return 1
    end
    test -n "$note[2]"; or return 0
    test -z "$TENV_LOCKED"; or return 1
    printf 'tenv: %s\n' $note[2] >&2
end
"""
