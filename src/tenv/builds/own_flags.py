"""Compiler flags that tenv adds by itself: a build folder that is built goes on without those that change no code."""

import shlex
from collections.abc import Mapping

from tenv.builds.compile_cache import PREFIX_MAP
from tenv.builds.warning_flags import OPTIONS

__all__ = ["flag_words", "same_code"]

_VARIABLES = ("CFLAGS", "CXXFLAGS")


def same_code(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Tell whether variables differ in nothing but flags of tenv that change no code.

    These are the place of the checkout in ``__FILE__``, and warnings that stay warnings: what is compiled already
    compiles without them.
    """
    return _coded(before) == _coded(now)


def flag_words(before: str, now: str) -> str:
    """Return in words how two lists of flags differ; empty where their order alone does."""
    old, new = _split(before), _split(now)
    gone = [word for word in old if word not in new]
    more = [word for word in new if word not in old]
    said = [f"{kind} {' '.join(words)}" for kind, words in (("with", more), ("without", gone)) if words]
    return ", ".join(said)


def _coded(variables: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    rows = {name: _split(value) if name in _VARIABLES else (value,) for name, value in variables.items()}
    kept = {name: tuple(word for word in words if not _is_own(word)) for name, words in rows.items()}
    return {name: words for name, words in kept.items() if words}


def _is_own(word: str) -> bool:
    return word in OPTIONS or word.startswith(f"{PREFIX_MAP}=")


def _split(value: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(value))
    except ValueError:  # a quotation that does not end
        return (value,)
