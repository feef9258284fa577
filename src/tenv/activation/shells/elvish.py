"""elvish, from 0.18 on.

What a script changes is saved as `tenv.activation.shells.posix` saves it, under the same names. Every variable of the
environment is exported in elvish. What is evaluated has a namespace of its own, so that nothing is left behind; the
hook adds its function and the prompt mark to the interactive shell by way of ``edit:``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import Action, Activation, Watch
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

NAMES = ("elvish",)
SCRIPT = "activate.elv"


def quote(text: str) -> str:
    """Return a text as one word of elvish, whose source is UTF-8: other bytes are escaped."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


_FUNCTIONS = r"""
use re
use str
fn tenv-key {|kind name| put '_TENV_'$kind'_'(get-env TENV_LEVEL)'_'$name }
fn tenv-get {|name| if (has-env $name) { get-env $name } else { put '' } }
fn tenv-push {|name| # save a variable at the present level, once
  if (has-env (tenv-key SAVED $name)) { return }
  var mark = '-'
  if (has-env $name) { set mark = '=' }
  set-env (tenv-key SAVED $name) $mark(tenv-get $name)
  var names = '_TENV_NAMES_'(get-env TENV_LEVEL)
  set-env $names (tenv-get $names)' '$name
}
fn tenv-set {|name value|
  tenv-push $name
  set-env $name $value
}
fn tenv-prepend {|name value separator|
  tenv-push $name
  set-env (tenv-key FRONT $name) $separator$value
  if (not-eq (tenv-get $name) '') { set value = $value$separator(get-env $name) }
  set-env $name $value
}
fn tenv-append {|name value separator|
  tenv-push $name
  set-env (tenv-key BACK $name) $separator$value
  if (not-eq (tenv-get $name) '') { set value = (get-env $name)$separator$value }
  set-env $name $value
}
fn tenv-unset {|name|
  tenv-push $name
  unset-env $name
}
fn tenv-split {|added| # the separator that begins what was added, and the rest
  for each [':' ';' ' '] {
    if (str:has-prefix $added $each) {
      put $each (str:trim-prefix $added $each)
      return
    }
  }
  put '' ''
}
fn tenv-cut {|value added| # a list without what was added to it
  var separator text = (tenv-split $added)
  var rest = $separator$value$separator
  if (and (not-eq $added '') (str:contains $rest $added$separator)) {
    set rest = (str:join $separator [(str:split &max=2 $added$separator $rest)])
  }
  put (str:trim-suffix (str:trim-prefix $rest $separator) $separator)
}
fn tenv-restore {|name| # put one variable of the present level back
  var saved = (tenv-get (tenv-key SAVED $name))
  var front = (tenv-get (tenv-key FRONT $name))
  var back = (tenv-get (tenv-key BACK $name))
  var now = (tenv-get $name)
  var there = (str:has-prefix $saved '=')
  var old = ''
  if $there { set old = (str:trim-prefix $saved '=') }
  if (not-eq $front$back '') {
    var full = $old
    var separator text = (tenv-split $front)
    if (eq $full '') { set full = $text } elif (not-eq $front '') { set full = $text$separator$full }
    set separator text = (tenv-split $back)
    if (eq $full '') { set full = $text } else { set full = $full$back }
    if (not-eq $now $full) {
      # Somebody has changed it since: take out what was added, and leave the rest.
      set old = (tenv-cut (tenv-cut $now $front) $back)
      set there = (or $there (not-eq $old ''))
    }
  }
  if $there { set-env $name $old } else { unset-env $name }
  unset-env (tenv-key SAVED $name)
  unset-env (tenv-key FRONT $name)
  unset-env (tenv-key BACK $name)
}
fn tenv-pop { # undo the innermost activation
  var level = (tenv-get TENV_LEVEL)
  if (not (re:match '^[1-9][0-9]*$' $level)) {
    echo 'tenv: no environment is active' >&2
    return
  }
  for name [(str:split ' ' (tenv-get '_TENV_NAMES_'$level))] {
    if (not-eq $name '') { tenv-restore $name }
  }
  unset-env '_TENV_NAMES_'$level
  if (> $level 1) { set-env TENV_LEVEL (to-string (- $level 1)) } else { unset-env TENV_LEVEL }
}
"""


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    prefix = quote(str(activation.prefix))
    lines = [
        f"# tenv: {quote(activation.target)}\n",
        _FUNCTIONS.lstrip("\n"),
        f"if (and (eq (tenv-get TENV_PREFIX) {prefix}) (has-env TENV_LEVEL)) {{ tenv-pop }}\n",
        "if (re:match '^[0-9]+$' (tenv-get TENV_LEVEL)) { set-env TENV_LEVEL (to-string (+ (get-env TENV_LEVEL) 1)) ",
        "} else { set-env TENV_LEVEL 1 }\n",
    ]
    for change in activation.changes:
        words = [change.name]
        if change.action is not Action.UNSET:
            words.append(quote(change.value))
        if change.action in (Action.PREPEND, Action.APPEND):
            words.append(quote(change.separator))
        lines.append(f"tenv-{change.action} {' '.join(words)}\n")
    return "".join([*lines, _render_watches(activation.watches)])


# The system's `test`: elvish itself can't read times before 0.20.
_WATCHED = """fn tenv-same {|file stamp| # whether a file is there and as old as it was
  put (and ?(e:test -f $file) (or (not ?(e:test -f $stamp)) (not ?(e:test $file -nt $stamp -o $file -ot $stamp))))
}
"""


def _render_watches(watches: Sequence[Watch]) -> str:
    """Return what tells of files of the machine that have changed."""
    if not watches:
        return ""
    lines = [_WATCHED]
    for watch in watches:
        tests = " ".join(f"(tenv-same {quote(file)} {quote(stamp)})" for file, stamp in watch.files)
        lines.append(f"if (not (and {tests})) {{ echo tenv: {quote(watch.sentence)} >&2 }}\n")
    return "".join(lines)


def holds(value: str) -> bool:  # noqa: ARG001
    """Return True: elvish holds any value."""
    return True


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints."""
    return f"eval ({command} | slurp)"


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f"eval (slurp < {quote(script)})\n"


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:  # noqa: ARG001
    """Return None: elvish takes no command to run after its start file, and inherits the variables instead."""
    return None


def render_deactivation() -> str:
    """Return the script that undoes the innermost activation."""
    return f"{_FUNCTIONS.lstrip()}tenv-pop\n"


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of a function ``tenv`` that activates by evaluating the stored script.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    first, *rest = map(quote, program)
    values = {
        "@PROGRAM@": f"(external {first})" + "".join(f" {word}" for word in rest),
        "@META@": META,
        "@READY@": READY,
        "@ID@": ID_FILE,
        "@MARKS@": quote(str(home.parent / MARKS)),
        "@NOTE@": LOCK_NOTE,
        "@HOME@": quote(str(home)),
        "@SCRIPT@": SCRIPT,
    }
    text = _FUNCTIONS.lstrip("\n") + _HOOK
    for name, value in values.items():
        text = text.replace(name, value)
    return text


_HOOK = r"""
use path
fn tenv-ask {|@words| # let tenv itself find the environment, or say what is wrong
  var script = (@PROGRAM@ activate --shell elvish $@words | slurp)
  if (str:has-prefix $script 'eval (slurp < ') { eval $script } else { print $script }
}
fn tenv-is-project {|folder|
  or (path:is-regular $folder/tenv.toml) (> (count [$folder/manifests/*[nomatch-ok].toml]) 0)
}
fn tenv-is-ready {|folder home target| # whether it is ready, has the user's mark for this path, and is as that says
  var prefix = $home/$target
  var read = {|file| if (path:is-regular $file) { slurp < $file } else { put '' } }
  var id = (str:trim-space ($read $prefix/@ID@))
  var mark = [(str:split "\n" ($read @MARKS@/$id))]
  if (not (and (re:match '^[0-9a-f]+$' $id) (> (count $mark) 3))) { put $false; return }
  var script = $prefix/@META@/@SCRIPT@
  if (or (not (path:is-regular $script)) ?(e:test $script -nt @MARKS@/$id)) { put $false; return } # changed since
  if (not (str:has-prefix ($read $prefix/@META@/state.json) '@READY@')) { put $false; return }
  # Links below the project's folder or that of the environments: tenv decides.
  var above below = $home $target
  if (str:has-suffix $home /.tenv/envs) { set above below = $folder/ .tenv/envs/$target }
  if (not (eq $mark[0] (path:join (path:eval-symlinks $above) $below))) { put $false; return }
  if (not (eq $mark[0] (path:eval-symlinks $prefix))) { put $false; return }
  for name $mark[3..] {
    if (eq $name '') { continue }
    if (not (path:is-regular &follow-symlink=$true $prefix/$name)) { put $false; return }
    if (re:match '^@META@/|[.]cfg$' $name) {
      if ?(e:test $prefix/$name -nt @MARKS@/$id) { put $false; return }
    } elif (not ?(e:test -x $prefix/$name)) { put $false; return }
  }
  put $true
}
fn tenv-noted {|file| # whether the lock is the one that tenv looked at last; prints what it found then
  if (not (path:is-regular $file)) { put $false; return }
  var note = [(from-lines < $file)] # the lock, what to say of it, its size, and the files that would count more
  if (or (< (count $note) 3) (not (path:is-regular &follow-symlink=$true $note[0]))) { put $false; return }
  if ?(e:test $note[0] -nt $file -o $note[0] -ot $file) { put $false; return }
  if (not-eq (str:trim-space (e:wc -c < $note[0] | slurp)) $note[2]) { put $false; return }
  for near $note[3..] { if ?(e:test -e $near) { put $false; return } }
  if (not-eq $note[1] '') {
    if (has-env TENV_LOCKED) { put $false; return }
    echo 'tenv: '$note[1] >&2
  }
  put $true
}
fn tenv-stored {|target| # evaluate the stored script of a target, where its environment is ready
  var folder = $pwd
  while (not (or (eq $folder '') (tenv-is-project $folder))) {
    set folder = (re:replace '/[^/]*$' '' $folder)
  }
  var home = @HOME@
  if (tenv-is-project $folder) { set home = $folder/.tenv/envs }
  var prefix = $home/$target
  if (and (tenv-is-ready $folder $home $target) (tenv-noted $prefix/@META@/@NOTE@)) {
    eval (slurp < $prefix/@META@/@SCRIPT@)
  } else {
    tenv-ask $target
  }
}
fn tenv {|@words|
  var count = (count $words)
  if (and (== $count 2) (eq $words[0] activate) (not (re:match '^-|/' $words[1]))) {
    tenv-stored $words[1]
  } elif (and (> $count 0) (eq $words[0] activate)) {
    tenv-ask (all $words[1..])
  } elif (and (== $count 1) (eq $words[0] deactivate)) {
    tenv-pop
  } else {
    @PROGRAM@ $@words
  }
}
# The namespace edit: is there in an interactive shell alone.
try {
  eval &ns=(ns [&tenv~=$tenv~]) 'edit:add-var tenv~ $tenv~; var own = $edit:prompt
    set edit:prompt = {
      if (and (has-env TENV_TARGET) (not (has-env TENV_NO_PROMPT))) { put ''(''(get-env TENV_TARGET)'') '' }
      if (eq (kind-of $own) fn) { $own } else { put $own }
    }'
} catch { nop }
"""
