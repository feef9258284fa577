"""nushell, from 0.101 on: it evaluates no text, so that the stored script is a module whose overlay activates.

The hook's command reads the stored activation itself. What is changed is saved as `tenv.activation.shells.posix` saves
it, under the same names. nushell holds no text that is not UTF-8.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import ACTIVATION, Activation
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

NAMES = ("nushell",)
SCRIPT = "activate.nu"


def quote(text: str) -> str:
    """Return a text as a literal of nushell; between double quotes only a backslash and a quote mean something."""
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}"


def holds(value: str) -> bool:
    """Return whether nushell can hold a value: one that is UTF-8."""
    return not any("\udc80" <= letter <= "\udcff" for letter in value)


_FUNCTIONS = r"""
# What programs find in the environment, as text; null stands for what is not there.
def tenv-now []: nothing -> record {
  $env | transpose name value | each {|row|
    let kind = ($row.value | describe --detailed | get type)
    if $kind == "list" {
      {name: $row.name, value: ($row.value | str join (char esep))}
    } else if $kind in [string int float bool] {
      {name: $row.name, value: ($row.value | into string)}
    }
  } | compact | reduce --fold {} {|row, all| $all | merge {$row.name: $row.value} }
}
def tenv-level [now: record]: nothing -> int {
  let level = ($now.TENV_LEVEL? | default "")
  if $level =~ '^[1-9][0-9]*$' { $level | into int } else { 0 }
}
def tenv-get [now: record, name: string]: nothing -> any {
  if $name in $now { $now | get $name } else { null }
}
def tenv-join [front: string, value: any, back: string]: nothing -> string { # what is added begins with its separator
  let value = ($value | default "")
  let whole = if $front == "" { $value } else if $value == "" { $front | str substring 1.. } else {
    $"($front | str substring 1..)($front | str substring 0..0)($value)"
  }
  if $back == "" { $whole } else if $whole == "" { $back | str substring 1.. } else { $"($whole)($back)" }
}
def tenv-cut [value: string, added: string]: nothing -> string { # a list without what was added to it
  if $added == "" { return $value }
  let separator = ($added | str substring 0..0)
  let rest = ($"($separator)($value)($separator)" | str replace $"($added)($separator)" $separator)
  $rest | str replace --regex '(?s)^.' '' | str replace --regex '(?s).$' ''
}
def tenv-change [now: record, row: record]: nothing -> record {
  let level = (tenv-level $now)
  let old = (tenv-get $now $row.name)
  let separator = ($row.separator? | default (char esep))
  let saved = $"_TENV_SAVED_($level)_($row.name)"
  let names = (tenv-get $now $"_TENV_NAMES_($level)" | default "")
  let kept = if (tenv-get $now $saved) != null { $now } else {
    $now | merge {
      $saved: (if $old == null { "-" } else { $"=($old)" })
      $"_TENV_NAMES_($level)": $"($names) ($row.name)"
    }
  }
  let added = $"($separator)($row.value)"
  match $row.action {
    "set" => { $kept | merge {$row.name: $row.value} }
    "prepend" => {
      $kept | merge {$"_TENV_FRONT_($level)_($row.name)": $added, $row.name: (tenv-join $added $old "")}
    }
    "append" => { $kept | merge {$"_TENV_BACK_($level)_($row.name)": $added, $row.name: (tenv-join "" $old $added)} }
    _ => { $kept | merge {$row.name: null} }
  }
}
def tenv-restored [now: record, name: string]: nothing -> any { # what a variable of the present level was before
  let level = (tenv-level $now)
  let saved = (tenv-get $now $"_TENV_SAVED_($level)_($name)" | default "-")
  let front = (tenv-get $now $"_TENV_FRONT_($level)_($name)" | default "")
  let back = (tenv-get $now $"_TENV_BACK_($level)_($name)" | default "")
  let value = (tenv-get $now $name | default "")
  let old = if ($saved | str starts-with "=") { $saved | str substring 1.. } else { null }
  if $"($front)($back)" == "" or $value == (tenv-join $front $old $back) { return $old }
  # Somebody has changed it since: take out what was added, and leave the rest.
  let left = (tenv-cut (tenv-cut $value $front) $back)
  if $left == "" and $old == null { null } else { $left }
}
def tenv-popped [now: record]: nothing -> record { # without the innermost activation
  let level = (tenv-level $now)
  let names = (tenv-get $now $"_TENV_NAMES_($level)" | default "" | split row " " | where $it != "")
  let back = ($names | reduce --fold $now {|name, all|
    $all | merge {
      $name: (tenv-restored $now $name)
      $"_TENV_SAVED_($level)_($name)": null
      $"_TENV_FRONT_($level)_($name)": null
      $"_TENV_BACK_($level)_($name)": null
    }
  })
  $back | merge {$"_TENV_NAMES_($level)": null, TENV_LEVEL: (if $level > 1 { $"($level - 1)" } else { null })}
}
def --env tenv-become [new: record] {
  let old = (tenv-now)
  let rows = ($new | transpose name value | where {|row| $row.value != (tenv-get $old $row.name) })
  load-env ($rows | where value != null | reduce --fold {} {|row, all|
    let list = ($row.name in [PATH Path] or (
      $row.name in $env and ($env | get $row.name | describe --detailed | get type) == "list"
    ))
    $all | merge {$row.name: (if $list { $row.value | split row (char esep) } else { $row.value })}
  })
  let gone = ($rows | where value == null | get name)
  hide-env --ignore-errors ...($gone | where {|name| $name in $env })
  # What an overlay below holds shows again: a null is what no program is given.
  load-env ($gone | where {|name| $name in $env } | reduce --fold {} {|name, all| $all | merge {$name: null} })
}
def --env tenv-pop [] { # undo the innermost activation
  let now = (tenv-now)
  if (tenv-level $now) == 0 {
    print --stderr "tenv: no environment is active"
  } else {
    tenv-become (tenv-popped $now)
  }
}
def tenv-same [file: string, stamp: string]: nothing -> bool { # whether a file is there and as old as it was
  if not ($file | path exists) { return false }
  if not ($stamp | path exists) { return true }
  (try { (ls --directory $file | get 0.modified) == (ls --directory $stamp | get 0.modified) } catch { true })
}
def --env tenv-activate [activation: record] {
  let now = (tenv-now)
  let again = ((tenv-get $now TENV_PREFIX) == $activation.prefix and (tenv-level $now) > 0)
  let start = if $again { tenv-popped $now } else { $now }
  let first = ($start | merge {TENV_LEVEL: $"((tenv-level $start) + 1)"})
  tenv-become ($activation.changes | reduce --fold $first {|row, all| tenv-change $all $row })
  for watch in ($activation.watches? | default []) {
    if not ($watch.files | all {|pair| tenv-same $pair.0 $pair.1 }) { print --stderr $"tenv: ($watch.sentence)" }
  }
}
"""


def render_activation(activation: Activation) -> str:
    """Return a module: its overlay activates an environment, and hiding that undoes it."""
    head = f"# tenv: {quote(activation.target)}\n"
    if bad := [change.name for change in activation.changes if not holds(change.value)]:
        message = f"tenv: nushell can't hold the value of {', '.join(bad)}: it is not UTF-8; nothing was set"
        return f"{head}export-env {{ error make {{msg: {quote(message)}}} }}\n"
    data = quote(json.dumps(json.loads(activation.to_json()), ensure_ascii=False))
    return f"{head}{_FUNCTIONS.lstrip()}export-env {{ tenv-activate ({data} | from json) }}\n"


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints, which nushell reads from a file alone."""
    words = command.split()
    if words[1] == "hook":
        return f"{command} | save --force ($nu.user-autoload-dirs.0 | path join tenv.nu)"
    return f"{command} --shell nushell"


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f"overlay use {quote(script)}\n"


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:  # noqa: ARG001
    """Return the words that start nushell with an environment active: its start files are read first."""
    if Path(program).name != "nu":
        return None
    folder.rmdir()
    return [program, "--execute", render_source(script).strip()]


def render_deactivation() -> str:
    """Return the script that undoes the innermost activation."""
    return f"do --env {{{_FUNCTIONS}tenv-pop\n}}\n"


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of a command ``tenv`` that activates by the stored data.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    values = {
        "@PROGRAM@": "^" + " ".join(map(quote, program)),
        "@META@": META,
        "@READY@": READY,
        "@NOTE@": LOCK_NOTE,
        "@HOME@": quote(str(home)),
        "@ID@": ID_FILE,
        "@MARKS@": quote(str(home.parent / MARKS)),
        "@DATA@": ACTIVATION,
    }
    text = _HOOK
    for name, value in values.items():
        text = text.replace(name, value)
    return f"{_FUNCTIONS.lstrip()}{text}"


_HOOK = r"""
def tenv-is-project [folder: string]: nothing -> bool {
  if ($"($folder)/tenv.toml" | path type) == "file" { return true }
  if ($"($folder)/manifests" | path expand | path type) != "dir" { return false }
  (try { ls ($"($folder)/manifests" | path expand) | any {|row| ($row.name | str ends-with ".toml") } } catch { false })
}
def tenv-is-ready [folder: string, prefix: string]: nothing -> bool { # carries the user's mark at this very path
  let state = (try { open --raw $"($prefix)/@META@/state.json" } catch { "" })
  let id = (try { open --raw $"($prefix)/@ID@" | str trim } catch { "" })
  if not ($state | str starts-with '@READY@') or $id !~ '^[0-9a-f]+$' { return false }
  let mark = (try { open --raw $"(@MARKS@)/($id)" | lines } catch { [] })
  if ($mark | length) < 3 { return false }
  # Links below the project's folder: tenv decides.
  let below = ($prefix | str replace $folder "")
  if $mark.0 != ($prefix | path expand) or $mark.0 != $"($folder | path expand)($below)" { return false }
  let made = (ls $"(@MARKS@)/($id)").0.modified
  $mark | skip 3 | all {|name|
    let file = ($"($prefix)/($name)" | path expand)
    if ($file | path type) != "file" { false } else {
      if $name =~ '^@META@/|[.]cfg$' { (ls $file).0.modified <= $made } else { (ls --long $file).0.mode? =~ 'x' }
    }
  }
}
def --env tenv-ask [words: list<string>] { # let tenv itself find the environment, or say what is wrong
  let answer = (@PROGRAM@ activate --shell nushell ...$words)
  if not ($answer | str starts-with "overlay use ") { print --no-newline $answer; return }
  let script = ($answer | str trim --right | str replace "overlay use " "" | from json)
  tenv-activate (open --raw ($script | path dirname | path join @DATA@) | from json)
}
# Whether the lock is the one that tenv looked at last; prints what it found then.
def tenv-noted [file: string]: nothing -> bool {
  # The lock, what to say of it, its size, and the files that would count more.
  let note = (try { open --raw $file | lines } catch { [] })
  if ($note | length) < 3 { return false }
  let lock = (try { ls ($note | get 0) | first } catch { null })
  let own = (try { ls $file | first } catch { null })
  if $lock == null or $own == null { return false }
  if $lock.modified != $own.modified or ($lock.size | into int) != ($note | get 2 | into int) { return false }
  if ($note | skip 3 | any {|near| $near | path exists }) { return false }
  if ($note | get 1) == "" { return true }
  if TENV_LOCKED in $env { return false }
  print --stderr $"tenv: ($note | get 1)"
  true
}
def --env tenv-stored [target: string] { # activate by the stored data of a target, where its environment is ready
  mut folder = $env.PWD
  while $folder != "" and not (tenv-is-project $folder) { $folder = ($folder | str replace --regex '/[^/]*$' '') }
  let home = if (tenv-is-project $folder) { $"($folder)/.tenv/envs" } else { @HOME@ }
  let prefix = $"($home)/($target)"
  let meta = $"($prefix)/@META@"
  let above = if ($prefix | str starts-with $"($folder)/.tenv/") { $folder } else { $home }
  # A user's own `ls` may answer something else.
  if not (try { tenv-is-ready $above $prefix } catch { false }) { tenv-ask [$target]; return }
  if not (tenv-noted $"($meta)/@NOTE@") { tenv-ask [$target]; return }
  let data = (try { open --raw $"($meta)/@DATA@" | from json } catch { null })
  if $data == null { tenv-ask [$target] } else { tenv-activate $data }
}
@complete external
def --env --wrapped tenv [...words: string] {
  let count = ($words | length)
  if $count == 2 and $words.0 == "activate" and $words.1 !~ '^-|/' {
    tenv-stored $words.1
  } else if $count > 0 and $words.0 == "activate" {
    tenv-ask ($words | skip 1)
  } else if $count == 1 and $words.0 == "deactivate" {
    tenv-pop
  } else {
    @PROGRAM@ ...$words
  }
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
