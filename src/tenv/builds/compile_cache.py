"""The compile cache of a build: ccache or sccache, set up so that a second checkout hits what the first one filled."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenv.core import process
from tenv.core.missing import Missing

__all__ = ["CacheChoice", "cache_variables", "choose_cache", "hits"]

_SIZE = "50G"
_SECONDS = 20.0
_LANGUAGES = ("C", "CXX", "CUDA")
_CCACHE_ROWS = re.compile(r"^(direct_cache_hit|preprocessed_cache_hit|cache_miss)\t(\d+)$", re.MULTILINE)
_SCCACHE_ROWS = re.compile(r"^Cache (hits|misses)\s+(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CacheChoice:
    """The compile cache that a build takes.

    Attributes:
        name: ``ccache``, ``sccache`` or ``off``.
        program: The program; None where there is none, or none is wanted.
    """

    name: str
    program: Path | None


def choose_cache(wanted: str, environ: Mapping[str, str]) -> CacheChoice:
    """Return the cache of a target: its program is searched in the environment, then on PATH."""
    if wanted == "off":
        return CacheChoice("off", None)
    found = process.find(wanted, environ.get("PATH"))
    return CacheChoice(wanted, Path(found) if found else None)


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
    return {name: value for name, value in launchers.items() if name not in environ}


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
