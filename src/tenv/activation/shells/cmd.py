"""Windows' cmd, in batch files.

What a script changes is saved as `tenv.activation.shells.posix` saves it, under the same names. A batch file has no
quoting that holds everything, so text goes two ways:

- What tenv writes stands between escaped quotes (``set ^"NAME=…^"``), where a caret takes the meaning of every
  character and a percent sign is doubled.
- What the shell holds is only ever put into a line with its quotes doubled, so that all of it stands between quotes.
  The helper variable `_tenv_d` has a value in that form.

Delayed expansion would need ``setlocal``, whose end takes all variables back; where the caller has turned it on, an
exclamation mark can't be written by either way, and nothing is set.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from tenv.activation.changes import Action, Activation, Change, Watch

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

NAMES = ("cmd",)
SCRIPT = "activate.bat"

_LONGEST = 8000
"""The characters of a line, of which cmd reads 8191, less the words around a value."""

_ROW = 50
"""How many names a line has."""

_UNHELD = re.compile("[\0\n\r\x1a\udc80-\udcff]")
"""Ends of lines and of files, and bytes that are no UTF-8."""


def quote(text: str) -> str:
    """Return a text as one word of cmd, for a line in which no quote is open."""
    return f'^"{_escape(text)}^"'


def _escape(text: str) -> str:
    return re.sub(r'([\^&|<>"()])', r"^\1", text).replace("%", "%%")


def _quoted(text: str) -> str:
    """Return a text for a place between quotes, with its own doubled."""
    return text.replace('"', '""').replace("%", "%%")


def holds(value: str) -> bool:
    """Return whether cmd can hold a value: one line of UTF-8 that is neither empty nor too long for a command."""
    return bool(value) and len(quote(value)) <= _LONGEST and not _UNHELD.search(value)


# A text with its quotes doubled, in `_tenv_d`, becomes the text for between escaped quotes.
_ESCAPED = "".join(f'set "_tenv_d=%_tenv_d:{letter}=^{letter}%"\n' for letter in "^&|<>()")

_HOOK = r"""
setlocal DisableDelayedExpansion
if "%~1"=="deactivate" if "%~2"=="" goto tenv_deactivate
if "%~1"=="activate" goto tenv_ask
endlocal& @PROGRAM@ %*
exit /b %ERRORLEVEL%

:tenv_deactivate
endlocal
goto tenv_undo

:tenv_ask
set "_tenv_file=%TEMP%\tenv-%RANDOM%.bat"
@PROGRAM@ %* --shell cmd >"%_tenv_file%"
set "_tenv_status=%ERRORLEVEL%"
set "_tenv_line="
if "%_tenv_status%"=="0" for /f "usebackq delims=" %%A in ("%_tenv_file%") do @set "_tenv_line=%%A"
call :tenv_double _tenv_line
if defined _tenv_d if "%_tenv_d:~0,1%"=="@" goto tenv_answer
if "%_tenv_status%"=="0" type "%_tenv_file%"
del "%_tenv_file%"
endlocal& exit /b %_tenv_status%

:tenv_answer
endlocal& set "_tenv_file=%_tenv_file%"
call "%_tenv_file%"
del "%_tenv_file%"
set "_tenv_file="
exit /b 0
"""
"""The hook; help and errors are printed, and what begins with ``@`` is run."""

_FUNCTIONS = r"""
:tenv_double
set "_tenv_d="
if defined %1 call set "_tenv_d=%%%1:"=""%%"
exit /b

:tenv_put
set "%1="
if not defined _tenv_d exit /b
@ESCAPED@set ^"%1=%_tenv_d:""=^"%^"
exit /b

:tenv_save
if defined _TENV_SAVED_%TENV_LEVEL%_%1 exit /b
set "_tenv_d=-"
if defined %1 call set "_tenv_d==%%%1:"=""%%"
@ESCAPED@set ^"_TENV_SAVED_%TENV_LEVEL%_%1=%_tenv_d:""=^"%^"
call set "_tenv_names=%%_TENV_NAMES_%TENV_LEVEL%%%"
set "_TENV_NAMES_%TENV_LEVEL%=%_tenv_names% %1"
exit /b

:tenv_join
call :tenv_double _tenv_new
set "_tenv_added=%_tenv_d%"
call :tenv_put _TENV_%1_%TENV_LEVEL%_%2
call :tenv_double %2
if not defined %2 set "_tenv_d=%_tenv_added:~1%"
if defined %2 if "%1"=="FRONT" set "_tenv_d=%_tenv_added:~1%%_tenv_added:~0,1%%_tenv_d%"
if defined %2 if "%1"=="BACK" set "_tenv_d=%_tenv_d%%_tenv_added%"
call :tenv_put %2
exit /b

:tenv_restore
set "_tenv_d=-"
if defined _TENV_SAVED_%TENV_LEVEL%_%1 call set "_tenv_d=%%_TENV_SAVED_%TENV_LEVEL%_%1:"=""%%"
set "_TENV_SAVED_%TENV_LEVEL%_%1="
if defined _TENV_FRONT_%TENV_LEVEL%_%1 goto tenv_list
if defined _TENV_BACK_%TENV_LEVEL%_%1 goto tenv_list
set "%1="
if not "%_tenv_d:~0,1%"=="=" exit /b
set "_tenv_d=%_tenv_d:~1%"
if not defined _tenv_d exit /b
@ESCAPED@set ^"%1=%_tenv_d:""=^"%^"
exit /b

:tenv_list
set "_tenv_old=%_tenv_d:~1%"
if not "%_tenv_d:~0,1%"=="=" set "_tenv_old="
call :tenv_double _TENV_FRONT_%TENV_LEVEL%_%1
set "_tenv_front=%_tenv_d%"
call :tenv_double _TENV_BACK_%TENV_LEVEL%_%1
set "_tenv_back=%_tenv_d%"
set "_TENV_FRONT_%TENV_LEVEL%_%1="
set "_TENV_BACK_%TENV_LEVEL%_%1="
set "_tenv_full=%_tenv_old%"
if defined _tenv_full if defined _tenv_front set "_tenv_full=%_tenv_front:~0,1%%_tenv_full%"
if defined _tenv_front set "_tenv_full=%_tenv_front:~1%%_tenv_full%"
if defined _tenv_full set "_tenv_full=%_tenv_full%%_tenv_back%"
if not defined _tenv_full set "_tenv_full=%_tenv_back:~1%"
call :tenv_double %1
if not "%_tenv_d%"=="%_tenv_full%" call :tenv_changed %1
set "_tenv_d=%_tenv_old%"
call :tenv_put %1
exit /b

:tenv_changed
set "_tenv_old=%_tenv_d%"
if defined _tenv_front call :tenv_cut front %1
if defined _tenv_back call :tenv_cut back %1
exit /b

:tenv_cut
if not defined _tenv_old exit /b
call set "_tenv_added=%%_tenv_%1%%"
for /f "tokens=1* delims==%%^" %%A in ("x%_tenv_added%x") do @if not "%%B"=="" goto tenv_stays
set "_tenv_sep=%_tenv_added:~0,1%"
set "_tenv_rest=%_tenv_sep%%_tenv_old%%_tenv_sep%"
call set "_tenv_rest=%%_tenv_rest:%_tenv_added%%_tenv_sep%=%_tenv_sep%%%"
set "_tenv_old=%_tenv_rest:~1,-1%"
if "%_tenv_rest%"=="%_tenv_sep%" set "_tenv_old="
exit /b

:tenv_stays
>&2 echo tenv: %2 was changed meanwhile and keeps what was added to it
exit /b

:tenv_level
set "_tenv_level=0"
if defined TENV_LEVEL set /a "_tenv_level=TENV_LEVEL" 2>nul
exit /b

:tenv_undo
call :tenv_level
if %_tenv_level% lss 1 goto tenv_none
call set "_tenv_names=%%_TENV_NAMES_%TENV_LEVEL%%%"
for %%N in (%_tenv_names%) do @call :tenv_restore %%N
set "_TENV_NAMES_%TENV_LEVEL%="
set /a "TENV_LEVEL-=1"
if "%TENV_LEVEL%"=="0" set "TENV_LEVEL="
goto tenv_tidy

:tenv_none
>&2 echo tenv: no environment is active
goto tenv_tidy

:tenv_tidy
for %%V in (d new added old front back full sep rest level names same script) do @set "_tenv_%%V="
exit /b 0
""".replace("@ESCAPED@", _ESCAPED)

# %%~t has the minute; the stamp of a file has its very time.
_OTHERS = r"""
:tenv_renew
call :tenv_double TENV_PREFIX
if "%_tenv_d%"=="@PREFIX@" call :tenv_undo
exit /b

:tenv_prompt
call :tenv_save PROMPT
call :tenv_join FRONT PROMPT
exit /b

:tenv_same
if not exist "%_tenv_new%" set "_tenv_same="
if not exist "%_tenv_old%" exit /b
for %%A in ("%_tenv_old%") do @set "_tenv_old=%%~tA"
for %%A in ("%_tenv_new%") do @if not "%%~tA"=="%_tenv_old%" set "_tenv_same="
exit /b

:tenv_delayed
>&2 echo tenv: delayed expansion is on, so cmd can't hold exclamation marks; no variable was set
exit /b 1
"""

_PAGE = (
    'for /f "tokens=2 delims=:." %%P in (\'chcp\') do @set "_tenv_page=%%P"\nif defined _tenv_page chcp 65001 >nul\n'
)
_PAGE_BACK = 'if defined _tenv_page chcp %_tenv_page% >nul\nset "_tenv_page="\n'


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    valued = [change for change in activation.changes if change.action is not Action.UNSET]
    if bad := [change.name for change in valued if not holds(change.value)]:
        reason = "it is empty, too long, has an end of a line or is not UTF-8; no variable was set"
        return _file(f">&2 echo tenv: cmd can't hold the value of {', '.join(bad)}: {reason}\nexit /b 1\n")
    added = [change for change in activation.changes if change.action in (Action.PREPEND, Action.APPEND)]
    plain = [change for change in activation.changes if change not in added]
    lines = [
        'if "!!"=="" goto tenv_delayed\n',
        "@PAGE@if defined TENV_LEVEL call :tenv_renew\n",
        'call :tenv_level\nset /a "TENV_LEVEL=_tenv_level+1"\n',
        *_render_saves([change.name for change in activation.changes]),
        *map(_render_join, added),
        f'set "_tenv_new= ({_quoted(activation.target)})"\n',
        "if not defined TENV_NO_PROMPT if defined PROMPT call :tenv_prompt\n",
        *_render_watches(activation.watches),
        "call :tenv_tidy\ngoto tenv_values\n",
        _FUNCTIONS,
        _OTHERS.replace("@PREFIX@", _quoted(str(activation.prefix))),
        ":tenv_values\n",
        *(f"set {quote(f'{change.name}={change.value}')}\n" for change in plain),
        "@BACK@exit /b 0\n",
    ]
    text = "".join(lines)
    page, back = ("", "") if text.isascii() else (_PAGE, _PAGE_BACK)
    return _file(text.replace("@PAGE@", page, 1).replace("@BACK@", back, 1))


def _render_saves(names: Sequence[str]) -> list[str]:
    """Return the lines that save variables, each within the length of a line."""
    each = list(dict.fromkeys(names))
    rows = [each[i : i + _ROW] for i in range(0, len(each), _ROW)]
    return [f"for %%N in ({' '.join(row)}) do @call :tenv_save %%N\n" for row in rows]


def _render_join(change: Change) -> str:
    side = "FRONT" if change.action is Action.PREPEND else "BACK"
    return f"set {quote(f'_tenv_new={change.separator}{change.value}')}\ncall :tenv_join {side} {change.name}\n"


def _file(text: str) -> str:
    """Return lines as a batch file that shows none of them; a label is found only where lines end as in Windows."""
    return _silent(text).replace("\n", "\r\n")


def _silent(text: str) -> str:
    lines = (line if line.startswith(":") else f"@{line}" for line in text.split("\n") if line)
    return "\n".join(lines) + "\n"


def _render_watches(watches: Sequence[Watch]) -> list[str]:
    """Return the lines that warn of files of the machine that have changed."""
    lines = []
    for watch in watches:
        lines.append('set "_tenv_same=1"\n')
        for file, stamp in watch.files:
            lines.append(f'set "_tenv_new={_quoted(file)}"\nset "_tenv_old={_quoted(stamp)}"\ncall :tenv_same\n')
        lines.append(f"if not defined _tenv_same >&2 echo tenv: {_escape(watch.sentence)}\n")
    return lines


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints: cmd reads lines with labels from a file alone."""
    if command.split()[1] == "hook":
        return f"{command} >FOLDER\\tenv.bat"
    return f'{command} >"%TEMP%\\tenv.bat" && call "%TEMP%\\tenv.bat"'


def render_source(script: str) -> str:
    """Return the lines of a batch file that run a script: ``call`` changes a path that stands in its line."""
    return f'@set "_tenv_script={_quoted(script)}"\n@call "%%_tenv_script%%"\n@set "_tenv_script="\n'


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:  # noqa: ARG001
    """Return the words that start cmd with an environment active."""
    if PurePath(program).stem.lower() not in NAMES:
        return None
    folder.rmdir()
    return [program, "/k", script]


def render_deactivation() -> str:
    """Return the batch file that undoes the innermost activation."""
    return _silent(f"call :tenv_undo\nexit /b 0\n{_FUNCTIONS}")


def render_hook(program: Sequence[str], home: Path) -> str:  # noqa: ARG001 (no stored script is searched for)
    """Return the batch file ``tenv.bat`` that activates by running what tenv prints.

    tenv decides each time: a batch file can't compare the times of files, so it could not tell a changed script.

    Args:
        program: The words that start tenv.
        home: The folder of the environments outside a project.
    """
    batch = program[0].lower().endswith((".bat", ".cmd"))  # without `call` it would not come back
    words = "call " * batch + " ".join(f'"{_quoted(word)}"' for word in program)
    return _silent(f"{_HOOK}{_FUNCTIONS}").replace("@PROGRAM@", words)
