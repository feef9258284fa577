"""elvish, from 0.18 on. Evaluated text has a namespace of its own, so nothing is left behind.

The hook adds its function and the prompt mark to the interactive shell by ``edit:``.
"""

from collections.abc import Mapping, Sequence

NAMES = ("elvish",)


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


def holds(value: str) -> bool:  # noqa: ARG001
    """Return True: elvish holds any value."""
    return True


def use(command: str) -> str:
    """Return the line that runs the output of a command of tenv."""
    return f"eval ({command} | slurp)"


def render_edits(edits: Mapping[str, str | None]) -> str:
    """Return the lines that set and unset variables."""
    rows = (f"unset-env {name}" if value is None else f"set-env {name} {quote(value)}" for name, value in edits.items())
    return "".join(f"{row}\n" for row in ("# tenv: elvish", *rows))


def start(program: str, activate: Sequence[str]) -> list[str] | None:  # noqa: ARG001
    """Return None: elvish runs no command after its start file, and inherits the variables instead."""
    return None


def render_hook(program: Sequence[str]) -> str:
    """Return the definition of a function ``tenv`` that evaluates the output of activations."""
    first, *rest = map(quote, program)
    return _HOOK.lstrip("\n").replace("@PROGRAM@", " ".join((f"(external {first})", *rest)))


_HOOK = r"""
use str
fn tenv {|@words|
  if (or (eq $words []) (not (has-value [activate deactivate] $words[0]))) {
    @PROGRAM@ $@words
    return
  }
  var text = (@PROGRAM@ $words[0] --shell elvish (all $words[1..]) | slurp)
  if (str:has-prefix $text '# tenv: elvish') { eval $text } else { print $text }
}
# The namespace edit: exists only in an interactive shell.
try {
  eval &ns=(ns [&tenv~=$tenv~]) 'edit:add-var tenv~ $tenv~; var own = $edit:prompt
    set edit:prompt = {
      if (and (has-env TENV_TARGET) (not (has-env TENV_NO_PROMPT))) { put ''(''(get-env TENV_TARGET)'') '' }
      if (eq (kind-of $own) fn) { $own } else { put $own }
    }'
} catch { nop }
"""
