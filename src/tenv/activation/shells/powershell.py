"""PowerShell: Windows' own 5.1, and the later ones of every system.

Its text is ASCII, since 5.1 reads the output of programs in the code page of the console. PowerShell before 7.5
removes a variable with an empty value.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

NAMES = ("powershell",)


def quote(text: str) -> str:
    """Return a text as one word of PowerShell; characters beyond printable ASCII stand as numbers."""
    if text.isascii() and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter.isascii() and letter.isprintable():
        return f"`{letter}" if letter in '`"$' else letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"$([char]{int.from_bytes(units[i : i + 2])})" for i in range(0, len(units), 2))


def holds(value: str) -> bool:
    """Return whether PowerShell can hold a value: one that is UTF-8."""
    return not any("\udc80" <= letter <= "\udcff" for letter in value)


def use(command: str) -> str:
    """Return the line that runs the output of a command of tenv."""
    return f"{command} | Out-String | Invoke-Expression"


_PROMPT = r"""
if (-not $env:TENV_NO_PROMPT -and -not (Test-Path -LiteralPath 'Variable:global:TenvOwnPrompt')) {
    if (Test-Path -LiteralPath 'Function:prompt') {
        $global:TenvOwnPrompt = (Get-Item -LiteralPath 'Function:prompt').ScriptBlock
        function global:prompt {
            if ($env:TENV_TARGET) { "($env:TENV_TARGET) " + (& $global:TenvOwnPrompt) } else { & $global:TenvOwnPrompt }
        }
    }
}
"""


def render_edits(edits: Mapping[str, str | None]) -> str:
    """Return the lines that set and unset variables, and that add the target to the prompt."""
    rows = (
        f"if (Test-Path -LiteralPath 'Env:{name}') {{ Remove-Item -LiteralPath 'Env:{name}' }}"
        if value is None
        else f"Set-Item -LiteralPath 'Env:{name}' -Value {quote(value)}"
        for name, value in edits.items()
    )
    return "".join(f"{row}\n" for row in ("# tenv: powershell", *rows)) + _PROMPT.lstrip("\n")


def start(program: str, activate: Sequence[str]) -> list[str] | None:
    """Return the words that start PowerShell and then activate: its profile is read first."""
    if Path(program).stem.lower() not in (*NAMES, "pwsh"):
        return None
    return [program, "-NoExit", "-Command", use("& " + " ".join(map(quote, activate)))]


def render_hook(program: Sequence[str]) -> str:
    """Return the definition of a function ``tenv`` that runs the output of activations."""
    return _HOOK.lstrip("\n").replace("@PROGRAM@", "& " + " ".join(map(quote, program)))


_HOOK = r"""
function global:tenv {
    $words = @($args)
    if ($words.Count -gt 0 -and @('activate', 'deactivate') -ccontains $words[0]) {
        $rest = @($words | Select-Object -Skip 1)
        $answer = (@PROGRAM@ $words[0] --shell powershell @rest) -join "`n"
        if ($answer.StartsWith('# tenv: powershell')) { Invoke-Expression $answer } else { $answer }
    } else {
        @PROGRAM@ @words
    }
}
"""
