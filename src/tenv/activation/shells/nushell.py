"""nushell, from 0.108 on. It evaluates no text, so it gets variables as a record in NUON, in which null unsets.

nushell holds no text that is not UTF-8.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

NAMES = ("nushell",)


def quote(text: str) -> str:
    """Return a text as a literal of nushell; between double quotes only a backslash and a quote are special."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}"


def holds(value: str) -> bool:
    """Return whether nushell can hold a value: one that is UTF-8."""
    return not any("\udc80" <= letter <= "\udcff" for letter in value)


def use(command: str) -> str:
    """Return the line that runs the output of a command of tenv; the hook is read from a file."""
    if command.split()[1] == "hook":
        return f"{command} | save --force ($nu.user-autoload-dirs.0 | path join tenv.nu)"
    return f"{command} --shell nushell | from nuon | load-env"


def render_edits(edits: Mapping[str, str | None]) -> str:
    """Return a record of variables; null stands for one to unset, and PATH is a list."""
    row = ", ".join(f"{quote(name)}: {_value(name, value)}" for name, value in edits.items())
    return f"# tenv: nushell\n{{{row}}}\n"


def _value(name: str, value: str | None) -> str:
    if value is None:
        return "null"
    return f"[{', '.join(map(quote, value.split(os.pathsep)))}]" if name == "PATH" else quote(value)


def start(program: str, activate: Sequence[str]) -> list[str] | None:
    """Return the words that start nushell and then activate: its start files are read first."""
    if Path(program).name != "nu":
        return None
    command = "^" + " ".join(map(quote, activate))
    return [program, "--execute", f"{command} | from nuon | load-env"]


def render_hook(program: Sequence[str]) -> str:
    """Return the definition of a command ``tenv`` that loads the output of activations."""
    return _HOOK.lstrip("\n").replace("@PROGRAM@", "^" + " ".join(map(quote, program)))


_HOOK = r"""
@complete external
def --env --wrapped tenv [...words: string] {
  if ($words | is-empty) or $words.0 not-in [activate deactivate] {
    @PROGRAM@ ...$words
  } else {
    let answer = (@PROGRAM@ $words.0 --shell nushell ...($words | skip 1))
    if ($answer | str starts-with "# tenv: nushell") {
      tenv-edit ($answer | from nuon)
    } else {
      print --no-newline $answer
    }
  }
}
def --env tenv-edit [edits: record] {
  let rows = ($edits | transpose name value)
  load-env ($rows | where value != null | reduce --fold {} {|row, all|
    let old = if $row.name in $env { $env | get $row.name | describe --detailed | get type } else { "" }
    let split = $old == "list" and ($row.value | describe) == "string"
    $all | merge {$row.name: (if $split { $row.value | split row (char esep) } else { $row.value })}
  })
  let gone = ($rows | where value == null | get name)
  hide-env --ignore-errors ...($gone | where {|name| $name in $env })
  # The value of an overlay below shows again; programs do not get a null.
  load-env ($gone | where {|name| $name in $env } | reduce --fold {} {|name, all| $all | merge {$name: null} })
}
export-env {
  let own = ($env.PROMPT_COMMAND? | default "")
  $env.PROMPT_COMMAND = {||
    let mark = if TENV_TARGET in $env and TENV_NO_PROMPT not-in $env { $"\(($env.TENV_TARGET)) " } else { "" }
    let rest = if ($own | describe) == "closure" { do $own } else { $own }
    $"($mark)($rest)"
  }
}
"""
