"""The compile cache of a build: ccache or sccache, set up so that a second checkout hits what the first one filled."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenv.builds.shared_cache import storage_variables
from tenv.core import process
from tenv.core.missing import Missing

__all__ = ["LOG", "CacheChoice", "cache_variables", "choose_cache", "hits", "noted_hits", "path_flags"]

LOG = "CCACHE_STATSLOG"
"""The file in which ccache (4.4 and later) notes what became of each compilation: of this build alone, where the counts
of the cache are of all builds that use it."""

_SIZE = "50G"
_SECONDS = 20.0
_PREFIX_MAP = "-fmacro-prefix-map"
_LANGUAGES = ("C", "CXX", "CUDA")
_CCACHE_ROWS = re.compile(r"^(direct_cache_hit|preprocessed_cache_hit|cache_miss)\t(\d+)$", re.MULTILINE)
_SCCACHE_ROWS = re.compile(r"^Cache (hits|misses)\s+(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CacheChoice:
    """The compile cache that a build takes.

    Attributes:
        name: ``ccache``, ``sccache`` or ``off``.
        program: The program; None where there is none, or none is wanted.
        storage: What machines share of it; empty for nothing.
    """

    name: str
    program: Path | None
    storage: str = ""


def choose_cache(wanted: str, environ: Mapping[str, str], storage: str = "") -> CacheChoice:
    """Return the cache of a target: its program is searched in the environment, then on PATH."""
    if wanted == "off":
        return CacheChoice("off", None)
    found = process.find(wanted, environ.get("PATH"))
    return CacheChoice(wanted, Path(found) if found else None, storage)


def cache_variables(choice: CacheChoice, checkout: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make a build use a cache; what the user has set stays.

    Paths below the checkout are hashed relative to it, and the working folder is not hashed, so that another checkout
    hits. The compiler counts by its content: an environment that is made again has other times and the same bytes.
    """
    if choice.program is None:
        return {}
    launchers = {f"CMAKE_{language}_COMPILER_LAUNCHER": str(choice.program) for language in _LANGUAGES}
    if choice.name == "ccache":
        launchers |= {
            "CCACHE_BASEDIR": str(checkout),
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_COMPILERCHECK": "content",
            "CCACHE_MAXSIZE": _SIZE,
        }
    else:
        launchers |= {"SCCACHE_CACHE_SIZE": _SIZE, "SCCACHE_BASEDIRS": str(checkout)}
    launchers |= storage_variables(choice.name, choice.storage, environ)
    return {name: value for name, value in launchers.items() if name not in environ}


def path_flags(checkout: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return CFLAGS and CXXFLAGS by which `__FILE__` is relative to a checkout, for compilers that can do that.

    PyTorch's kernels for AVX2 and AVX512 are included by their whole paths, which their messages then hold: the objects
    of another checkout would differ. ccache does not hash the value of this option (GCC 8 and later, clang 10).
    """
    found = {}
    for variable, compiler, default in (("CFLAGS", "CC", "cc"), ("CXXFLAGS", "CXX", "c++")):
        option, flags = f"{_PREFIX_MAP}={checkout}=.", environ.get(variable, "")
        words = [*shlex.split(environ.get(compiler, "") or default), option, "-E", "-x", "c", os.devnull]
        said = process.run(words, environment=environ, timeout=_SECONDS)
        if _PREFIX_MAP not in flags and not isinstance(said, Missing) and said.status == 0:
            found[variable] = f"{flags} {option}".strip()
    return found


def hits(choice: CacheChoice, environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Return how many compilations the cache has served, and how many it had to run; None where it does not say."""
    if choice.program is None:
        return None
    words = ["--print-stats"] if choice.name == "ccache" else ["--show-stats"]
    said = process.run([str(choice.program), *words], environment=environ, timeout=_SECONDS)
    if isinstance(said, Missing) or said.status:
        return None
    if choice.name == "ccache":
        rows = {name: int(number) for name, number in _CCACHE_ROWS.findall(said.stdout)}
        found = rows.get("direct_cache_hit", 0) + rows.get("preprocessed_cache_hit", 0)
        return (found, rows.get("cache_miss", 0)) if rows else None
    rows = {name: int(number) for name, number in _SCCACHE_ROWS.findall(said.stdout)}
    return (rows.get("hits", 0), rows.get("misses", 0)) if rows else None


def noted_hits(log: Path) -> tuple[int, int] | None:
    """Return the hits and misses that ccache has noted in a file; None where it has noted nothing."""
    try:
        rows = Counter(log.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return None
    found = rows["direct_cache_hit"] + rows["preprocessed_cache_hit"], rows["cache_miss"]
    return found if any(found) else None
