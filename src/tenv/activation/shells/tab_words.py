"""The completion script of each shell that has one; no Tab starts tenv.

One POSIX script completes: it gets the words of the line and prints one candidate a line. It reads the targets and the
packages of a lock from the project's own files.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from tenv.activation.shells import elvish, fish, nushell, xonsh
from tenv.activation.shells.posix_hook import FIND_PROJECT
from tenv.core.dataclass import dataclass


class WordKind(StrEnum):
    """The kind of a word of the line."""

    NOTHING = "nothing"
    TARGET = "target"
    FILE = "file"
    FOLDER = "folder"
    PACKAGE = "package"
    PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command."""

    names: tuple[str, ...]
    """Its names, such as ``--output`` and ``-o``."""
    value: WordKind | None = None
    """The kind of its value; None for a flag."""
    words: tuple[str, ...] = ()
    """Its values, if they are few."""
    help: str = ""
    """Its purpose."""


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A command of tenv."""

    name: str
    """Its name."""
    help: str
    """Its purpose."""
    options: tuple[Option, ...]
    """Its options."""
    arguments: tuple[WordKind | tuple[str, ...], ...]
    """Its arguments in order: a kind, or the possible words."""
    repeats: bool = False
    """Whether its last argument may come again."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of the command line."""

    commands: tuple[Subcommand, ...]
    """Its commands."""
    folders: tuple[str, ...]
    """The folders of the user and of tenv itself with ``manifests`` and ``locks`` in them."""


_CORE = r"""
_tenv_candidates() { # WORD…: print the completions of the last word, one a line, or :file, :folder, :program
    _tenv_command= _tenv_place=0 _tenv_before= _tenv_kind= _tenv_target=
    while [ $# -gt 1 ]; do
        _tenv_spec "$_tenv_command" "$_tenv_before" =
        if [ -z "$_tenv_kind" ]; then
            case $1 in
                -*) ;;
                *)
                    if [ -z "$_tenv_command" ]; then _tenv_command=$1; else _tenv_place=$((_tenv_place + 1)); fi
                    if [ "$_tenv_place" = 1 ] && [ -z "$_tenv_target" ]; then _tenv_target=$1; fi
                    ;;
            esac
        fi
        _tenv_before=$1
        shift
    done
    _tenv_spec "$_tenv_command" "$_tenv_before" =
    if [ -z "$_tenv_kind" ]; then
        case $1 in
            -*) _tenv_spec "$_tenv_command" - - ;;
            *) _tenv_spec "$_tenv_command" "" "$_tenv_place" ;;
        esac
    fi
    case $_tenv_kind in
        target)
            _tenv_find_project || _tenv_folder=/dev/null
            for _tenv_file in "$_tenv_folder"/manifests/*.toml @FOLDERS@; do
                _tenv_file=${_tenv_file##*/}
                _tenv_file=${_tenv_file%.toml}
                # A clone may hold files of any name; names of targets have these characters.
                case $_tenv_file in "" | [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) continue ;; esac
                printf '%s\n' "$_tenv_file"
            done
            ;;
        package)
            _tenv_find_project || _tenv_folder=/dev/null
            for _tenv_file in "$_tenv_folder" @PLACES@; do
                _tenv_file=$_tenv_file/locks/$_tenv_target.lock
                if [ -f "$_tenv_file" ]; then
                    sed -n -e 's/^  *- name: \([A-Za-z0-9._-]*\)$/\1/p' \
                        -e 's|^ *- conda: .*/\([A-Za-z0-9._-]*\)-[^-]*-[^-]*$|\1|p' "$_tenv_file" | sort -u
                    break
                fi
            done
            ;;
        file | folder | program) printf ':%s\n' "$_tenv_kind" ;;
        words) printf '%s\n' $_tenv_words ;;
    esac
}
"""


def _spec(grammar: Grammar) -> str:
    """Return the shell function that finds the kind of a word by the command, the option before, and the place."""
    lines = ['_tenv_spec() { # COMMAND BEFORE PLACE\n    _tenv_kind= _tenv_words=\n    case "$1 $2 $3" in\n']

    def row(pattern: str, expected: WordKind | Sequence[str]) -> None:
        if isinstance(expected, WordKind):
            lines.append(f"        {pattern}) _tenv_kind={expected.value} ;;\n")
        elif expected:
            words = shlex.quote(" ".join(expected))
            lines.append(f"        {pattern}) _tenv_kind=words _tenv_words={words} ;;\n")

    row('"  0"', [command.name for command in grammar.commands])
    row('" - -"', ("--help", "--version"))
    for command in grammar.commands:
        row(f'"{command.name} - -"', [*(name for one in command.options for name in one.names), "--help"])
        for option in command.options:
            if option.value:
                names = " | ".join(f'"{command.name} {name} ="' for name in option.names)
                row(names, option.words or option.value)
        for place, expected in enumerate(command.arguments):
            row(f'"{command.name}  {place}"', expected)
        if command.repeats and command.arguments:
            row(f'"{command.name}  "*', command.arguments[-1])
    return "".join([*lines, "    esac\n}\n"])


def _core(grammar: Grammar) -> str:
    """Return the POSIX functions that complete a word."""
    manifests = " ".join(f"{shlex.quote(folder)}/manifests/*.toml" for folder in grammar.folders)
    places = " ".join(map(shlex.quote, grammar.folders))
    core = _CORE.replace("@FOLDERS@", manifests).replace("@PLACES@", places)
    return _spec(grammar) + FIND_PROJECT.lstrip("\n") + core.lstrip("\n")


_BASH = r"""
_tenv_complete() {
    local found
    found=$(_tenv_candidates "${COMP_WORDS[@]:1:COMP_CWORD}")
    local IFS=$'\n'
    case $found in
        :file) mapfile -t COMPREPLY < <(compgen -f -- "$2"); compopt -o filenames ;;
        :folder) mapfile -t COMPREPLY < <(compgen -d -- "$2"); compopt -o filenames ;;
        :program) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
        *) # not compgen -W, which runs the text of a word
            local word
            COMPREPLY=()
            while read -r word; do if [[ -n $word && $word == "$2"* ]]; then COMPREPLY+=("$word"); fi; done <<< "$found"
            ;;
    esac
}
complete -F _tenv_complete tenv
"""

_ZSH = r"""
_tenv_complete() {
    local found
    local -a line=("${(@)words[2,CURRENT]}")
    found=$(emulate sh; _tenv_candidates "${line[@]}")
    case $found in
        :file) _files ;;
        :folder) _files -/ ;;
        :program) _command_names -e ;;
        ?*) compadd -- ${(f)found} ;;
    esac
}
# As a file of fpath this is the body of a function, which completes the first time already.
if [ "${funcstack[1]-}" = _tenv ]; then _tenv_complete; fi
compdef _tenv_complete tenv
"""

_ELVISH = r"""
set edit:completion:arg-completer[tenv] = {|@words|
  var found = [(e:sh -c @CORE@ sh (all $words[1..]))]
  if (eq $found [:file]) { edit:complete-filename (all $words) } else { all $found }
}
"""

_NUSHELL = r"""
export-env {
  let before = $env.config.completions.external.completer?
  $env.config.completions.external.enable = true
  $env.config.completions.external.completer = {|spans|
    if ($spans | get 0? | default "" | path basename) != "tenv" {
      return (if $before != null { do $before $spans })
    }
    let word = ($spans | last)
    let found = (^sh -c @CORE@ sh ...($spans | skip 1) | lines)
    if ($found | get 0? | default "") =~ '^:' { return null } # files, which nushell itself completes
    $found | where {|one| $one | str starts-with $word }
  }
}
"""

_XONSH = r"""
def _tenv_completion():
    import os
    import subprocess
    from xonsh.completers.completer import add_one_completer
    from xonsh.completers.tools import contextual_command_completer_for

    @contextual_command_completer_for("tenv")
    def tenv(command):
        words = [argument.value for argument in command.args[1 : command.arg_index]] + [command.prefix]
        found = subprocess.run(["sh", "-c", @CORE@, "sh", *words], stdout=subprocess.PIPE).stdout
        lines = os.fsdecode(found).split("\n")[:-1]
        if lines and lines[0].startswith(":"):
            return None
        return {line for line in lines if line.startswith(command.prefix)}

    add_one_completer("tenv", tenv, "start")


_tenv_completion()
del _tenv_completion
"""

# The script goes through standard input: PowerShell before 7.3 loses quotes and empty words of a program's arguments.
_POWERSHELL = r"""
Register-ArgumentCompleter -Native -CommandName tenv -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    if (-not (Get-Command sh -CommandType Application -ErrorAction SilentlyContinue)) { return }
    $words = @()
    foreach ($element in $commandAst.CommandElements) {
        if ($element.Extent.EndOffset -ge $cursorPosition) { break }
        if ($element -is [System.Management.Automation.Language.StringConstantExpressionAst]) {
            $words += $element.Value
        } else {
            $words += $element.Extent.Text
        }
    }
    $asked = @($words | Select-Object -Skip 1) + "$wordToComplete"
    $quoted = $asked | ForEach-Object { "'" + $_.Replace("'", "'\''") + "'" }
    $found = @((@CORE@ + ($quoted -join ' ')) | sh -s)
    if ($found.Count -and $found[0].StartsWith(':')) { return } # files, which PowerShell itself completes
    foreach ($one in $found) {
        if ($one.StartsWith($wordToComplete, [StringComparison]::Ordinal)) {
            [System.Management.Automation.CompletionResult]::new($one, $one, 'ParameterValue', $one)
        }
    }
}
"""


def _with_core(template: str, quoted: str) -> str:
    return template.replace("@CORE@", quoted).lstrip("\n")


def _powershell(grammar: Grammar) -> str:
    core = f"{_core(grammar)}_tenv_candidates ".replace("'", "''")
    return _with_core(_POWERSHELL, f"'{core}'")


_FISH = r"""
function __tenv_core
    sh -c @CORE@ sh $argv
end
function __tenv_words
    set -l words (commandline -opc) (commandline -ct)
    for word in (__tenv_core $words[2..-1])
        switch $word
            case :file :folder
                __fish_complete_path (commandline -ct)
            case :program
                __fish_complete_command
            case '*'
                set -l help (string match -- "$word=*" @HELP@ | string replace -r '^[^=]*=' '')
                printf '%s\t%s\n' $word $help[1]
        end
    end
end
complete -c tenv -f -a '(__tenv_words)'
"""


def _fish(grammar: Grammar) -> str:
    helps = {f"{command.name}={command.help}": None for command in grammar.commands}
    for command in grammar.commands:
        helps |= {f"{option.names[0]}={option.help}": None for option in command.options if option.help}
    text = _with_core(_FISH, fish.quote(f'{_core(grammar)}_tenv_candidates "$@"'))
    return text.replace("@HELP@", " ".join(map(fish.quote, helps)))


COMPLETIONS: Mapping[str, Callable[[Grammar], str]] = {
    "bash": lambda grammar: _core(grammar) + _BASH.lstrip("\n"),
    "zsh": lambda grammar: f"#compdef tenv\n{_core(grammar)}{_ZSH.lstrip()}",
    "fish": _fish,
    "elvish": lambda grammar: _with_core(_ELVISH, elvish.quote(f'{_core(grammar)}_tenv_candidates "$@"')),
    "nushell": lambda grammar: _with_core(_NUSHELL, nushell.quote(f'{_core(grammar)}_tenv_candidates "$@"')),
    "xonsh": lambda grammar: _with_core(_XONSH, xonsh.quote(f'{_core(grammar)}_tenv_candidates "$@"')),
    "powershell": _powershell,
}
"""The function that renders the script of each shell with completion."""
