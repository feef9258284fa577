"""The variables of ``[activation.env]``: the names that tenv and shells keep for themselves, and the values.

tenv expands ``$NAME`` in a value once, when it creates an environment; no shell evaluates it.

Shells run the values of some variables as code, refuse to set others, and change how they read commands by the rest.
No manifest and no package may set these. The sources: bash's manual ("Bourne Shell Variables", "Bash Variables"), zsh's
("Parameters Set By The Shell", "Parameters Used By The Shell"), ksh(1), fish's ("Special variables"), xonsh's
("Environment Variables"). ``LD_PRELOAD``, ``LD_AUDIT`` and the commands of single programs (``GIT_SSH_COMMAND``,
``PYTHONSTARTUP``) are not among them: a build may need them, and a manifest is trusted as a build script is.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError
from tenv.core.toml_reader import Table, nearest

VARIABLE_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*"
"""The name of a variable."""


_TENV = r"(?i)_?TENV_.*"  # Windows ignores case, and the scripts have `_tenv_…` of their own

_RUN = """
BASH_ENV ENV PROMPT_COMMAND PROMPT PROMPT2 PROMPT3 PROMPT4 RPROMPT RPROMPT2 SPROMPT PS0 PS1 PS2 PS3 PS4 RPS1 RPS2
PREDISPLAY POSTDISPLAY ZDOTDIR FPATH fpath MODULE_PATH module_path FCEDIT HISTFILE INPUTRC PSModulePath RIGHT_PROMPT
BOTTOM_TOOLBAR MAIL MAILPATH MAILCHECK NU_LIB_DIRS NU_PLUGIN_DIRS ENV_CONVERSIONS precmd_functions preexec_functions
chpwd_functions periodic_functions zshaddhistory_functions zshexit_functions histchars
"""
_KEPT_BY_SHELLS = """
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
    **dict.fromkeys((_KEPT_BY_SHELLS + _LOWER_CASE).split(), "a shell keeps it itself, and some refuse to set it"),
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
    if name == "SCCACHE_CONF":
        return "names the scheduler that gets the sources of a build: `tenv config distribute URL` sets it for you"
    if name in _PLACES.split():
        return "names the folder of tenv's and the shell's settings, which decide what is trusted"
    if why := _WORDS.get("PSModulePath" if name.lower() == "psmodulepath" else name):
        return f"is the shell's own: {why}"
    return "is the shell's own" if re.fullmatch(_FAMILIES, name) else ""


class Action(StrEnum):
    """The change of a variable."""

    SET = "set"
    PREPEND = "prepend"
    APPEND = "append"
    UNSET = "unset"


_BY_TENV = """
TENV_PREFIX TENV_TARGET HOME VIRTUAL_ENV CONDA_PREFIX CUDA_HOME CUDA_PATH CUDAToolkit_ROOT CUDA_ROOT CUDACXX CUDNN_ROOT
CUSPARSELT_ROOT NCCL_ROOT MAGMA_HOME MPI_HOME MKLROOT INTEL_MKL_DIR CC CXX CUDAHOSTCXX NVCC_CCBIN MAX_JOBS
CMAKE_GENERATOR TORCH_CUDA_ARCH_LIST _GLIBCXX_USE_CXX11_ABI ROCM_PATH ROCM_HOME HIP_PATH HIP_CLANG_PATH
HIP_DEVICE_LIB_PATH PYTORCH_ROCM_ARCH
"""
_BY_COMPILERS = """
CONDA_BUILD_SYSROOT CPP GCC GXX GCC_AR GCC_NM GCC_RANLIB F77 F90 FC GFORTRAN ADDR2LINE AR AS CXXFILT DWP ELFEDIT GPROF
LD LD_GOLD NM OBJCOPY OBJDUMP RANLIB READELF SIZE STRINGS STRIP
"""
DERIVED = frozenset((_BY_TENV + _BY_COMPILERS).split())
"""Variables that a value may name beside the manifest's own: the variables of tenv and of conda's compiler packages."""

_LISTS = ("PATH", "LD_LIBRARY_PATH")
"""Lists of folders that are never replaced: a shell with a replaced PATH finds no programs."""

_REFERENCE = r"(?a)\$(?:(?P<dollar>\$)|\{(?P<braced>\w+)\}|(?P<plain>[A-Za-z_]\w*))|(?P<lone>\$)"


def is_list(name: str) -> bool:
    """Return whether a variable is a list of folders that is never replaced."""
    return name.upper() in _LISTS


def separator_of(name: str) -> str:
    """Return the separator of a variable: a blank for a list of options, else the separator of PATH."""
    return " " if name.endswith("FLAGS") else os.pathsep


@dataclass(frozen=True, slots=True)
class VariableRequest:
    """The request of a manifest for a variable."""

    value: str = ""
    """The unexpanded value, or the part to prepend or append."""
    action: Action = Action.SET
    """The change."""
    manifest: str = field(default="", compare=False)
    """The name of its manifest, which may be a parent."""
    line: str = field(default="", compare=False)
    """Its file and line, such as ``manifests/mine.toml:12``."""

    @classmethod
    def literal(cls, name: str, text: str) -> "VariableRequest":
        """Return a request for a literal value; it is prepended to a list that is never replaced."""
        return cls(text.replace("$", "$$"), Action.PREPEND if is_list(name) and text else Action.SET)

    @property
    def text(self) -> str | None:
        """The literal value that the variable is set to; None for a list, an unset variable or a value with names."""
        return None if self.action is not Action.SET or self.names() else self.expanded({})

    def to_plain(self) -> object:
        """Return the request as TOML values, as in a manifest."""
        match self.action:
            case Action.SET:
                return self.value
            case Action.UNSET:
                return {"unset": True}
            case action:
                return {action.value: self.value}

    def to_toml(self) -> str:
        """Return the request as text, as in a manifest."""
        value = json.dumps(self.value, ensure_ascii=False).replace("\x7f", "\\u007f")
        match self.action:
            case Action.SET:
                return value
            case Action.UNSET:
                return "{ unset = true }"
            case action:
                return f"{{ {action.value} = {value} }}"

    def names(self) -> tuple[str, ...]:
        """Return the variables that the value names."""
        found = (match["braced"] or match["plain"] for match in re.finditer(_REFERENCE, self.value))
        return tuple(name for name in found if name)

    def expanded(self, values: Mapping[str, str]) -> str:
        """Return the value with all variables expanded.

        Raises:
            ManifestError: A variable is not set, or the value is longer than a program can be given.
        """
        where = f"{self.line}: " if self.line else ""
        for name in self.names():
            if name not in values:
                raise ManifestError(
                    f"{where}`${name}` is not set in this environment", hint=f"`$${name}` is the text ${name}"
                )
        length = len(self.value) + sum(len(values[name]) for name in self.names())
        if length > _LONGEST:
            raise ManifestError(f"{where}the value has {length} characters, and {_LONGEST} is the most")
        return re.sub(_REFERENCE, lambda m: "$" if m["dollar"] else values[m["braced"] or m["plain"]], self.value)


_LONGEST = 128 * 1024
"""Linux gives a program no longer value (MAX_ARG_STRLEN, execve(2))."""


def read_variable(table: Table, key: str, manifest: str) -> VariableRequest:
    """Read one variable of ``[activation.env]``."""
    if fault := variable_fault(key):
        raise table.fail(key, f"`{key}` {fault}")
    line = table.where(key)
    if not isinstance(table.data[key], dict):
        if is_list(key):
            hint = f'{key} = {{ prepend = "FOLDER" }} keeps the present folders, and so does {{ append = "FOLDER" }}'
            raise table.fail(
                key, "can't be replaced, since a shell would then find no system programs and libraries", hint=hint
            )
        return VariableRequest(_value(table, key, key), Action.SET, manifest, line)
    inner = table.table(key)
    inner.only(("prepend", "append", "unset"))
    if len(inner.data) != 1:
        raise table.fail(key, "expected one of prepend, append and unset")
    if "unset" in inner.data:
        if not inner.flag("unset") or key.upper() in _LISTS[:1]:
            path = key.upper() in _LISTS[:1]
            raise inner.fail(
                "unset",
                f"{key} can't be unset: no program would be found" if path else "must be true",
                hint=f"`{key} = {{ prepend = … }}` puts folders before the others"
                if path
                else f"`{key} = {{ unset = true }}` unsets the variable",
            )
        return VariableRequest("", Action.UNSET, manifest, line)
    (side,) = inner.data
    if not inner.data[side]:
        raise inner.fail(side, "is required")
    return VariableRequest(_value(inner, side, key), Action(side), manifest, line)


def _value(table: Table, key: str, name: str) -> str:
    parts = table.strings(key) if isinstance(table.data[key], list) else (table.text(key),)
    value = separator_of(name).join(parts)
    if "\0" in value or "\n" in value:
        raise table.fail(key, "has a line break or a null byte, which a variable can't hold")
    if any(match["lone"] for match in re.finditer(_REFERENCE, value)):
        raise table.fail(key, "has a `$` without a name after it", hint="`$$` is a dollar sign")
    return value


def check_names(variables: Mapping[str, VariableRequest], more: Sequence[str] = ()) -> None:
    """Check that each value names only variables that are set before it.

    Raises:
        ManifestError: A value names a variable that neither tenv nor the manifest sets before it.
    """
    known = {*DERIVED, *more}
    for name, request in variables.items():
        for used in request.names():
            if used not in known:
                own = "; { prepend = … } extends the present value" if used == name else ""
                hint = nearest(used, known) or f"`$${used}` is the text ${used}"
                where = f"{request.line}: " if request.line else ""
                raise ManifestError(f"{where}activation.env.{name}: `${used}` is not set before it{own}", hint=hint)
        if request.action is Action.SET:
            known.add(name)
