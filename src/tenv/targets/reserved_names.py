"""The variables that belong to tenv or to a shell, which neither a manifest nor a package may set.

Shells run the values of some of them as code, refuse to set others, and change how they read commands by the rest. The
sources: bash's manual ("Bourne Shell Variables", "Bash Variables"), zsh's ("Parameters Set By The Shell", "Parameters
Used By The Shell"), ksh(1), fish's ("Special variables"), xonsh's ("Environment Variables").

``LD_PRELOAD``, ``LD_AUDIT`` and what single programs run (``GIT_SSH_COMMAND``, ``PYTHONSTARTUP``) are not among them: a
build may need them, and a manifest is trusted as a build script is.
"""

import re

__all__ = ["VARIABLE_PATTERN", "reserved", "variable_fault"]

VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
"""The name of a variable."""

_TENV = r"(?i)_?TENV_.*"  # Windows ignores case, and the scripts have `_tenv_…` of their own

_RUN = """
BASH_ENV ENV PROMPT_COMMAND PROMPT PROMPT2 PROMPT3 PROMPT4 RPROMPT RPROMPT2 SPROMPT PS0 PS1 PS2 PS3 PS4 RPS1 RPS2
PREDISPLAY POSTDISPLAY ZDOTDIR FPATH fpath MODULE_PATH module_path FCEDIT HISTFILE INPUTRC PSModulePath RIGHT_PROMPT
BOTTOM_TOOLBAR MAIL MAILPATH MAILCHECK NU_LIB_DIRS NU_PLUGIN_DIRS ENV_CONVERSIONS precmd_functions preexec_functions
chpwd_functions periodic_functions zshaddhistory_functions zshexit_functions histchars
"""
_READ_ONLY = """
_ ARGC BASHOPTS BASHPID DIRSTACK EGID EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GID GROUPS HISTCMD HOSTTYPE KSH_VERSION
LINENO LOGCHECK MACHTYPE OLDPWD OPTARG OPTERR OPTIND OSTYPE PIPESTATUS PPID PWD RANDOM READNULLCMD NULLCMD REPLY SECONDS
SHELLOPTS SHLVL SRANDOM TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE UID USERNAME
"""
_READING = "CDPATH EXECIGNORE GLOBIGNORE GLOBSORT IFS POSIXLY_CORRECT TMOUT TIMEFORMAT"
_PLACES = "HOME XDG_CONFIG_HOME XDG_DATA_HOME"
"""Below them lie tenv's settings and marks, and the start files of shells."""
_LOWER_CASE = """
aliases argv builtins cdpath commands dirstack fignore fish_pid functions galiases history hostname keymaps mailpath
manpath modules nameddirs options parameters path pipestatus prompt psvar reswords saliases signals status umask
usergroups version watch widgets
"""
_WORDS = {
    **dict.fromkeys(_RUN.split(), "a shell runs its value, or what that names"),
    **dict.fromkeys((_READ_ONLY + _LOWER_CASE).split(), "a shell keeps it itself, and some refuse to set it"),
    **dict.fromkeys(_READING.split(), "it changes how a shell reads commands"),
}
_FAMILIES = r"BASH.*|(ZSH|KSH|FISH|XONSH)(_.*)?|XONSHRC.*|(__)?fish_.*|COMP_.*|PROMPT_.*"


def variable_fault(name: str) -> str:
    """Return why a variable may not be set, as words that follow its name; an empty string if it may.

    Stored scripts hold the name as code.
    """
    return reserved(name) if re.fullmatch(VARIABLE_PATTERN, name) else "is not a valid name for a variable"


def reserved(name: str) -> str:
    """Return whose a variable is that only tenv or a shell may set; an empty string if a manifest may."""
    if re.fullmatch(_TENV, name):
        return "is tenv's own"
    if name in _PLACES.split():
        return "names the folder of tenv's and the shell's settings, which decide what is trusted"
    if why := _WORDS.get("PSModulePath" if name.lower() == "psmodulepath" else name):
        return f"is the shell's own: {why}"
    return "is the shell's own" if re.fullmatch(_FAMILIES, name) else ""
