"""PowerShell, Windows' own 5.1 and the later ones of every system.

What a script changes is saved as `tenv.activation.shells.posix` saves it, under the same names. The environment belongs
to the process, so that a script's functions live in a block of their own and nothing of them is left behind. A variable
that is set to nothing is taken away by PowerShell before 7.5.
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

NAMES = ("powershell",)
SCRIPT = "activate.ps1"

_QUOTES = "'\u2018\u2019\u201a\u201b"
"""What ends a text between single quotes: PowerShell takes typographic ones for it as well."""


def quote(text: str) -> str:
    """Return a text as one word of PowerShell."""
    return "'" + "".join(letter * 2 if letter in _QUOTES else letter for letter in text) + "'"


def holds(value: str) -> bool:
    """Return whether PowerShell can hold a value: one that is UTF-8."""
    return not any("\udc80" <= letter <= "\udcff" for letter in value)


_FUNCTIONS = r"""
    function Get-TenvValue([string] $Name) { [Environment]::GetEnvironmentVariable($Name) }
    function Set-TenvValue([string] $Name, $Value) {
        if ($null -eq $Value) {
            if (Test-Path -LiteralPath "Env:$Name") { Remove-Item -LiteralPath "Env:$Name" }
        } else {
            Set-Item -LiteralPath "Env:$Name" -Value $Value
        }
    }
    function Get-TenvLevel {
        $level = [string] $env:TENV_LEVEL
        if ($level -match '^[1-9][0-9]{0,8}$') { [int] $level } else { 0 }
    }
    # What is added begins with its separator.
    function Join-TenvValue([string] $Front, [string] $Value, [string] $Back) {
        if ($Front) {
            if ($Value) { $Value = $Front.Substring(1) + $Front[0] + $Value } else { $Value = $Front.Substring(1) }
        }
        if ($Back) {
            if ($Value) { $Value = $Value + $Back } else { $Value = $Back.Substring(1) }
        }
        $Value
    }
    function Remove-TenvAdded([string] $Value, [string] $Added) {
        if (-not $Added) { return $Value }
        $rest = $Added[0] + $Value + $Added[0]
        $place = $rest.IndexOf($Added + $Added[0], [StringComparison]::Ordinal)
        if ($place -ge 0) { $rest = $rest.Remove($place, $Added.Length) }
        if ($rest.Length -gt 2) { $rest.Substring(1, $rest.Length - 2) } else { '' }
    }
    function Save-TenvValue([string] $Name) {
        $level = Get-TenvLevel
        if ($null -ne (Get-TenvValue "_TENV_SAVED_${level}_$Name")) { return }
        $old = Get-TenvValue $Name
        if ($null -eq $old) { $saved = '-' } else { $saved = '=' + $old }
        Set-TenvValue "_TENV_SAVED_${level}_$Name" $saved
        Set-TenvValue "_TENV_NAMES_$level" ([string] (Get-TenvValue "_TENV_NAMES_$level") + ' ' + $Name)
    }
    function Update-TenvSet([string] $Name, [string] $Value) {
        Save-TenvValue $Name
        Set-TenvValue $Name $Value
    }
    function Update-TenvUnset([string] $Name) {
        Save-TenvValue $Name
        Set-TenvValue $Name $null
    }
    function Update-TenvPrepend([string] $Name, [string] $Added) {
        Save-TenvValue $Name
        Set-TenvValue "_TENV_FRONT_$(Get-TenvLevel)_$Name" $Added
        Set-TenvValue $Name (Join-TenvValue $Added ([string] (Get-TenvValue $Name)) '')
    }
    function Update-TenvAppend([string] $Name, [string] $Added) {
        Save-TenvValue $Name
        Set-TenvValue "_TENV_BACK_$(Get-TenvLevel)_$Name" $Added
        Set-TenvValue $Name (Join-TenvValue '' ([string] (Get-TenvValue $Name)) $Added)
    }
    function Restore-TenvValue([string] $Name) {
        $level = Get-TenvLevel
        $saved = [string] (Get-TenvValue "_TENV_SAVED_${level}_$Name")
        $front = [string] (Get-TenvValue "_TENV_FRONT_${level}_$Name")
        $back = [string] (Get-TenvValue "_TENV_BACK_${level}_$Name")
        $now = [string] (Get-TenvValue $Name)
        $old = $null
        if ($saved.StartsWith('=')) { $old = $saved.Substring(1) }
        if (($front + $back) -and $now -cne (Join-TenvValue $front ([string] $old) $back)) {
            # Somebody has changed it since: take out what was added, and leave the rest.
            $left = Remove-TenvAdded (Remove-TenvAdded $now $front) $back
            if ($left -or $null -ne $old) { $old = $left }
        }
        Set-TenvValue $Name $old
        Set-TenvValue "_TENV_SAVED_${level}_$Name" $null
        Set-TenvValue "_TENV_FRONT_${level}_$Name" $null
        Set-TenvValue "_TENV_BACK_${level}_$Name" $null
    }
    function Undo-Tenv {
        $level = Get-TenvLevel
        if ($level -eq 0) {
            [Console]::Error.WriteLine('tenv: no environment is active')
            return
        }
        foreach ($name in ([string] (Get-TenvValue "_TENV_NAMES_$level")).Split(' ')) {
            if ($name) { Restore-TenvValue $name }
        }
        Set-TenvValue "_TENV_NAMES_$level" $null
        if ($level -gt 1) {
            Set-TenvValue 'TENV_LEVEL' ([string] ($level - 1))
            return
        }
        Set-TenvValue 'TENV_LEVEL' $null
        if (Test-Path -LiteralPath 'Variable:global:TenvOwnPrompt') {
            Set-Item -LiteralPath 'Function:global:prompt' -Value $global:TenvOwnPrompt
            Remove-Variable -Name 'TenvOwnPrompt' -Scope Global
        }
    }
"""

_PROMPT = r"""
    if (-not $env:TENV_NO_PROMPT -and -not (Test-Path -LiteralPath 'Variable:global:TenvOwnPrompt')) {
        if (Test-Path -LiteralPath 'Function:prompt') {
            $global:TenvOwnPrompt = (Get-Item -LiteralPath 'Function:prompt').ScriptBlock
            function global:prompt { "($env:TENV_TARGET) " + (& $global:TenvOwnPrompt) }
        }
    }
"""


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests.

    It begins with a byte order mark, without which PowerShell 5.1 does not read it as UTF-8.
    """
    head = "\ufeff# tenv\n"
    if bad := [change.name for change in activation.changes if not holds(change.value)]:
        message = f"tenv: PowerShell can't hold the value of {', '.join(bad)}: it is not UTF-8; nothing was set"
        return f"{head}[Console]::Error.WriteLine({quote(message)})\n"
    lines = [
        f"{head}& {{{_FUNCTIONS}",
        f"    if ($env:TENV_PREFIX -ceq {quote(str(activation.prefix))} -and (Get-TenvLevel) -gt 0) {{ Undo-Tenv }}\n",
        "    Set-TenvValue 'TENV_LEVEL' ([string] ((Get-TenvLevel) + 1))\n",
    ]
    for change in activation.changes:
        match change.action:
            case Action.SET:
                words = f"Set '{change.name}' {quote(change.value)}"
            case Action.UNSET:
                words = f"Unset '{change.name}'"
            case side:
                words = f"{side.title()} '{change.name}' {quote(change.separator + change.value)}"
        lines.append(f"    Update-Tenv{words}\n")
    return "".join([*lines, _render_watches(activation.watches), _PROMPT.lstrip("\n"), "}\n"])


_WATCHED = r"""    function Test-TenvSame([string] $File, [string] $Stamp) {
        if (-not [IO.File]::Exists($File)) { return $false }
        -not [IO.File]::Exists($Stamp) -or
            [IO.File]::GetLastWriteTimeUtc($File) -eq [IO.File]::GetLastWriteTimeUtc($Stamp)
    }
"""


def _render_watches(watches: Sequence[Watch]) -> str:
    """Return what tells of files of the machine that have changed."""
    if not watches:
        return ""
    lines = [_WATCHED]
    for watch in watches:
        tests = " -and ".join(f"(Test-TenvSame {quote(file)} {quote(stamp)})" for file, stamp in watch.files)
        lines.append(f"    if (-not ({tests})) {{ [Console]::Error.WriteLine({quote(f'tenv: {watch.sentence}')}) }}\n")
    return "".join(lines)


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints."""
    return f"{command} | Out-String | Invoke-Expression"


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f". {quote(script)}\n"


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:  # noqa: ARG001
    """Return the words that start PowerShell with an environment active: its profile is read first."""
    if Path(program).stem.lower() not in (*NAMES, "pwsh"):
        return None
    folder.rmdir()
    return [program, "-NoExit", "-Command", render_source(script).strip()]


def render_deactivation() -> str:
    """Return the script that undoes the innermost activation."""
    return f"& {{{_FUNCTIONS}    Undo-Tenv\n}}\n"


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of a function ``tenv`` that activates by running the stored script.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    values = {
        "@PROGRAM@": "& " + " ".join(map(quote, program)),
        "@META@": META,
        "@READY@": READY,
        "@ID@": ID_FILE,
        "@MARKS@": quote(str(home.parent / MARKS)),
        "@NOTE@": LOCK_NOTE,
        "@HOME@": quote(str(home)),
        "@SCRIPT@": SCRIPT,
        "@DEACTIVATE@": render_deactivation(),
    }
    text = _HOOK
    for name, value in values.items():
        text = text.replace(name, value)
    return text


_HOOK = r"""
function global:tenv {
    # Whether the lock is the one that tenv looked at last; prints what it found then.
    function Test-TenvNote([string] $File) {
        if (-not [IO.File]::Exists($File)) { return $false }
        # The lock, what to say of it, its size, and the files that would count more.
        $note = [IO.File]::ReadAllLines($File)
        if ($note.Count -lt 3 -or -not [IO.File]::Exists($note[0]) -or
            [IO.File]::GetLastWriteTimeUtc($note[0]) -ne [IO.File]::GetLastWriteTimeUtc($File) -or
            [string] [IO.FileInfo]::new($note[0]).Length -cne $note[2]) { return $false }
        foreach ($near in $note | Select-Object -Skip 3) { if ([IO.File]::Exists($near)) { return $false } }
        if ($note[1] -and $env:TENV_LOCKED) { return $false }
        if ($note[1]) { [Console]::Error.WriteLine('tenv: ' + $note[1]) }
        $true
    }
    $words = @($args)
    if ($words.Count -eq 2 -and $words[0] -ceq 'activate' -and $words[1] -notmatch '^-|[/\\]') {
        $folder = (Get-Location -PSProvider FileSystem).ProviderPath
        $found = $null
        while ($folder) {
            $manifests = [IO.Path]::Combine($folder, 'manifests')
            if ([IO.File]::Exists([IO.Path]::Combine($folder, 'tenv.toml')) -or
                ([IO.Directory]::Exists($manifests) -and [IO.Directory]::GetFiles($manifests, '*.toml').Count -gt 0)) {
                $found = [IO.Path]::Combine($folder, '.tenv', 'envs')
                break
            }
            $folder = [IO.Path]::GetDirectoryName($folder)
        }
        if (-not $found) { $found = @HOME@ }
        $prefix = [IO.Path]::Combine($found, $words[1])
        $meta = [IO.Path]::Combine($prefix, '@META@')
        $state = [IO.Path]::Combine($meta, 'state.json')
        $script = [IO.Path]::Combine($meta, '@SCRIPT@')
        # The user's mark for this very path, as text: what links lead to is left to tenv.
        $id = [IO.Path]::Combine($prefix, '@ID@')
        $mark = $null
        if ([IO.File]::Exists($id) -and ($name = [IO.File]::ReadAllText($id).Trim()) -cmatch '^[0-9a-f]+$') {
            $mark = [IO.Path]::Combine(@MARKS@, $name)
        }
        if ($mark -and [IO.File]::Exists($mark) -and [IO.File]::Exists($state) -and [IO.File]::Exists($script) -and
            [IO.File]::GetLastWriteTimeUtc($script) -le [IO.File]::GetLastWriteTimeUtc($mark) -and
            [IO.File]::ReadAllText($state).StartsWith('@READY@')) {
            $lines = [IO.File]::ReadAllLines($mark)
            $gone = @($lines | Select-Object -Skip 3 | ForEach-Object { [IO.Path]::Combine($prefix, $_) } |
                Where-Object { -not [IO.File]::Exists($_) -or ($_ -match '[.](json|cfg)$' -and
                    [IO.File]::GetLastWriteTimeUtc($_) -gt [IO.File]::GetLastWriteTimeUtc($mark)) })
            $links = @($prefix, $found, [IO.Path]::GetDirectoryName($found)) |
                Where-Object { ([IO.File]::GetAttributes($_) -band [IO.FileAttributes]::ReparsePoint) -ne 0 }
            if ($lines.Count -ge 3 -and $lines[0] -ceq $prefix -and $gone.Count -eq 0 -and -not $links -and
                (Test-TenvNote ([IO.Path]::Combine($meta, '@NOTE@')))) {
                . $script
                return
            }
        }
    }
    if ($words.Count -ge 1 -and $words[0] -ceq 'activate') {
        # Let tenv itself find the environment, or say what is wrong.
        $rest = @($words | Select-Object -Skip 1)
        $answer = (@PROGRAM@ activate --shell powershell @rest) -join "`n"
        if ($LASTEXITCODE -eq 0 -and $answer.StartsWith('. ')) { Invoke-Expression $answer } else { $answer }
    } elseif ($words.Count -eq 1 -and $words[0] -ceq 'deactivate') {
@DEACTIVATE@
    } else {
        @PROGRAM@ @words
    }
}
"""
