"""The batch file that the hook of cmd is; ``@NAME@`` is filled in by `tenv.activation.shells.cmd`.

A stored script is run only where the prefix carries the mark of this user for its very path (`tenv.environment.marks`)
and there is nothing to say of the lock; all else is left to ``tenv activate``. Batch files can't compare times:
``xcopy /l /d`` prints, without copying, whether a file is newer than another.
"""

__all__ = ["HOOK"]

HOOK = r"""
setlocal DisableDelayedExpansion
if "%~1"=="deactivate" if "%~2"=="" goto tenv_deactivate
if not "%~1"=="activate" goto tenv_program
set "_tenv_target=%~2"
if not defined _tenv_target goto tenv_ask
if not "%~3"=="" goto tenv_ask
if "%_tenv_target:~0,1%"=="-" goto tenv_ask
if not "%_tenv_target:/=%"=="%_tenv_target%" goto tenv_ask
if not "%_tenv_target:\=%"=="%_tenv_target%" goto tenv_ask
set "_tenv_folder=%CD%"
goto tenv_search

:tenv_deactivate
endlocal
goto tenv_undo

:tenv_program
endlocal& @PROGRAM@ %*
exit /b

:tenv_search
set "_tenv_envs=%_tenv_folder%\.tenv\envs"
if exist "%_tenv_folder%\tenv.toml" goto tenv_check
if exist "%_tenv_folder%\manifests\*.toml" goto tenv_check
set "_tenv_envs=@HOME@"
for %%P in ("%_tenv_folder%\..") do @set "_tenv_next=%%~fP"
if "%_tenv_next%"=="%_tenv_folder%" goto tenv_check
set "_tenv_folder=%_tenv_next%"
goto tenv_search

:tenv_check
set "_tenv_prefix=%_tenv_envs%\%_tenv_target%"
set "_tenv_meta=%_tenv_prefix%\@META@"
set "_tenv_script=%_tenv_meta%\@SCRIPT@"
set "_tenv_note=%_tenv_meta%\@NOTE@"
set "_tenv_bad="
for %%F in (state.json @ID@ @SCRIPT@ @NOTE@) do @if not exist "%_tenv_meta%\%%F" goto tenv_ask
for %%A in ("%_tenv_prefix%" "%_tenv_envs%" "%_tenv_envs%\..") do @call :tenv_link "%%~aA"
set "_tenv_state="
set "_tenv_a=%_tenv_meta%\state.json"
for /f "usebackq tokens=1,2 delims={:, " %%A in ("%_tenv_a%") do @if not defined _tenv_state set "_tenv_state=%%~A %%~B"
if not "%_tenv_state%"=="state ready" goto tenv_ask
set "_tenv_id="
for /f "usebackq" %%A in ("%_tenv_meta%\@ID@") do @set "_tenv_id=%%A"
if not defined _tenv_id goto tenv_ask
if defined _tenv_bad goto tenv_ask
for /f "delims=0123456789abcdef" %%A in ("%_tenv_id%") do @goto tenv_ask
set "_tenv_mark=@MARKS@\%_tenv_id%"
if not exist "%_tenv_mark%" goto tenv_ask
set "_tenv_first="
for /f "usebackq delims=" %%A in ("%_tenv_mark%") do @if not defined _tenv_first set "_tenv_first=%%A"
if /i not "%_tenv_first%"=="%_tenv_prefix%" goto tenv_ask
set "_tenv_a=%_tenv_script%"
set "_tenv_b=%_tenv_mark%"
call :tenv_older
for /f "usebackq skip=3 delims=" %%A in ("%_tenv_mark%") do @call :tenv_needed "%%A"
if defined _tenv_bad goto tenv_ask
set "_tenv_lock="
set "_tenv_size="
for /f "usebackq delims=" %%A in ("%_tenv_note%") do @call :tenv_noted "%%A"
if not defined _tenv_size goto tenv_ask
for %%A in ("%_tenv_lock%") do @if not "%%~zA"=="%_tenv_size%" goto tenv_ask
set "_tenv_a=%_tenv_lock%"
set "_tenv_b=%_tenv_note%"
call :tenv_older
set "_tenv_a=%_tenv_note%"
set "_tenv_b=%_tenv_lock%"
call :tenv_older
if defined _tenv_bad goto tenv_ask
endlocal& set "_tenv_script=%_tenv_script%"
call "%%_tenv_script%%"
set "_tenv_script="
exit /b 0

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

:tenv_link
for /f "tokens=2 delims=l" %%A in ("x%~1.") do @set "_tenv_bad=1"
exit /b

:tenv_older
set "_tenv_newer=1"
for /f "tokens=1" %%A in ('xcopy /d /l /y "%_tenv_a%" "%_tenv_b%"') do @if "%%A"=="0" set "_tenv_newer="
if defined _tenv_newer set "_tenv_bad=1"
exit /b

:tenv_needed
set "_tenv_a=%_tenv_prefix%\%~1"
if not exist "%_tenv_a%" set "_tenv_bad=1"
if "%_tenv_a:~-4%"==".cfg" call :tenv_older
if "%_tenv_a:~-5%"==".json" call :tenv_older
exit /b

:tenv_noted
if not defined _tenv_lock goto tenv_noted_lock
if not defined _tenv_size goto tenv_noted_size
if exist "%~1" set "_tenv_bad=1"
exit /b

:tenv_noted_lock
set "_tenv_lock=%~1"
exit /b

:tenv_noted_size
set "_tenv_size=%~1"
exit /b
"""
