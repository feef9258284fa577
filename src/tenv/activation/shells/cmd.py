"""Windows' cmd, in batch files.

A value stands between escaped quotes (``set ^"NAME=…^"``), where a caret takes the meaning of every character and a
percent sign is doubled. With delayed expansion no line can hold an exclamation mark, so nothing is set then.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tenv.activation.changes import Action, Activation, Change

NAMES = ("cmd",)

_LONGEST = 8000
"""The characters of a line, of which cmd reads 8191, less the words around a value."""

_UNHELD = re.compile("[\0\n\r\x1a\udc80-\udcff]")
"""Ends of lines and of files, and bytes that are no UTF-8."""


def quote(text: str) -> str:
    """Return a text as one word of cmd, for a line in which no quote is open."""
    return '^"' + re.sub(r'([\^&|<>"()])', r"^\1", text).replace("%", "%%") + '^"'


def holds(value: str) -> bool:
    """Return whether cmd can hold a value: one line of UTF-8 that is neither empty nor too long for a command."""
    return bool(value) and len(quote(value)) <= _LONGEST and not _UNHELD.search(value)


def use(command: str) -> str:
    """Return the line that runs the output of a command of tenv; the hook stays in a file."""
    if command.split()[1] == "hook":
        return f"{command} >FOLDER\\tenv.bat"
    return f'{command} >"%TEMP%\\tenv.bat" && call "%TEMP%\\tenv.bat"'


_DELAYED = """@rem tenv: cmd
@if "!!"=="" (
    >&2 echo tenv: delayed expansion is on, so cmd can't hold exclamation marks; no variable was set
    exit /b 1
)
"""
_PAGE = (
    '@for /f "tokens=2 delims=:." %%P in (\'chcp\') do @set "_tenv_page=%%P"\n@if defined _tenv_page chcp 65001 >nul\n'
)
_PAGE_BACK = '@if defined _tenv_page chcp %_tenv_page% >nul\n@set "_tenv_page="\n'


def render_edits(edits: Mapping[str, str | None]) -> str:
    """Return the batch file that sets and unsets variables; text beyond ASCII is read in the code page of UTF-8."""
    words = (f"{name}={'' if value is None else value}" for name, value in edits.items())
    text = "".join(f"@set {quote(word)}\n" for word in words)
    return _DELAYED + (text if text.isascii() else f"{_PAGE}{text}{_PAGE_BACK}")


def with_prompt(activation: Activation, environ: Mapping[str, str]) -> Activation:
    """Return an activation that shows the target in the prompt, which is a variable of cmd."""
    if "PROMPT" not in environ or environ.get("TENV_NO_PROMPT"):
        return activation
    prompt = Change("PROMPT", Action.PREPEND, f"({activation.target})", "names the active environment", " ")
    return replace(activation, changes=(*activation.changes, prompt))


def start(program: str, activate: Sequence[str]) -> list[str] | None:  # noqa: ARG001
    """Return None: cmd inherits the variables instead."""
    return None


def render_hook(program: Sequence[str]) -> str:
    """Return the batch file ``tenv.bat`` that runs the output of activations; other output is printed."""
    words = " ".join(f'"{word.replace("%", "%%")}"' for word in program)
    batch = program[0].lower().endswith((".bat", ".cmd"))  # without `call` it would not come back
    return _HOOK.lstrip("\n").replace("@PROGRAM@", "call " * batch + words)


_HOOK = r"""
@setlocal DisableDelayedExpansion
@if "%~1"=="activate" goto tenv_ask
@if "%~1"=="deactivate" goto tenv_ask
@endlocal& @PROGRAM@ %*
@exit /b %ERRORLEVEL%

:tenv_ask
@set "_tenv_file=%TEMP%\tenv-%RANDOM%.bat"
@@PROGRAM@ %* --shell cmd >"%_tenv_file%"
@set "_tenv_status=%ERRORLEVEL%"
@set "_tenv_script="
@for /f "usebackq" %%A in ("%_tenv_file%") do @if "%%A"=="@rem" set "_tenv_script=1"
@if defined _tenv_script goto tenv_answer
@type "%_tenv_file%"
@del "%_tenv_file%"
@endlocal& exit /b %_tenv_status%

:tenv_answer
@endlocal& set "_tenv_file=%_tenv_file%"
@call "%_tenv_file%"
@del "%_tenv_file%"
@set "_tenv_file="
@exit /b 0
"""
