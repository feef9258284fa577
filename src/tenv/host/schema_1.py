"""Read host reports of schema 1, which had no kinds, by the meaning of their texts.

Only this module decides by text. The patterns match the texts that tenv wrote with schema 1, so they never follow
rewordings of the probes.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from tenv.core.json_reader import Values
from tenv.core.worded import Worded
from tenv.host.compat import kind_of
from tenv.host.interface import OriginKind, ReasonKind
from tenv.host.report import Lead, ProblemKind

__all__ = ["upgrade"]

K = TypeVar("K", bound=Worded)
_Texts = tuple[tuple[str, K], ...]
"""Patterns of whole texts, each with its kind; the first match counts."""

_REASON: _Texts[ReasonKind] = (
    ("the report does not say", ReasonKind.UNREPORTED),
    (r"driver \S+ is assumed, .*", ReasonKind.ASSUMED),
)
_REASONS: dict[str, _Texts[ReasonKind]] = {
    "compat": (
        *_REASON,
        (".*(the driver's own.*|lies in no folder of cuda-compat)", ReasonKind.DRIVERS_OWN),
        ("the loader finds no .*", ReasonKind.NONE),
    ),
    "cuda": (
        *_REASON,
        ("CONDA_OVERRIDE_CUDA is empty, which means no CUDA", ReasonKind.NO_CUDA),
        ("CONDA_OVERRIDE_CUDA is `.*", ReasonKind.NO_VERSION),
    ),
    "driver": (*_REASON, (".*Jetson Linux.*", ReasonKind.JETSON)),
    "libc": (*_REASON, ("the C library.*", ReasonKind.NOT_GLIBC)),
}
_ORIGIN: _Texts[OriginKind] = (("assumed", OriginKind.ASSUMED),)
_ORIGINS: dict[str, _Texts[OriginKind]] = {
    "cuda": (*_ORIGIN, ("CONDA_OVERRIDE_CUDA", OriginKind.OVERRIDE)),
    "compilers": (*_ORIGIN, (r".*the developer's prompt, vswhere\.exe.*", OriginKind.SEARCH_MSVC)),
}
_TOOLKIT_LEADS: _Texts[Lead] = (
    ("CUDA_HOME|CUDA_PATH", Lead.CUDA_VARIABLE),
    (r"[^\W\d]\w*", Lead.MODULE_VARIABLE),
    ("nvcc on PATH", Lead.PATH),
    ("nvcc on PATH, behind another", Lead.PATH_BEHIND),
    ("/usr/local/cuda", Lead.DEFAULT_FOLDER),
    ("/etc/alternatives/cuda", Lead.ALTERNATIVE),
    ("the environment", Lead.ENVIRONMENT),
    (".*", Lead.FOLDER),
)
_COMPILER_LEADS: _Texts[Lead] = (
    ("CC", Lead.CC),
    ("CXX", Lead.CXX),
    ("CUDAHOSTCXX", Lead.CUDAHOSTCXX),
    (".* on PATH", Lead.PATH),
    ("vswhere", Lead.VSWHERE),
    ("VCToolsInstallDir|VSINSTALLDIR(, VCToolsVersion)?", Lead.PROMPT),
)
_PROBLEMS: _Texts[ProblemKind] = (
    ("the headers are those.*", ProblemKind.HEADERS),
    ("there is no bin/nvcc in it", ProblemKind.NO_NVCC),
    (".* leads to .*, which is not there", ProblemKind.GONE),
    (".* does not tell its toolkit: .*", ProblemKind.UNPLACED),
    (".* --version names no release .*", ProblemKind.NVCC_FAILS),
    (".* gave no answer within .*|.* can't be started: .*", ProblemKind.NVCC_FAILS),
    ("it has several descriptions that differ: .*", ProblemKind.DESCRIPTIONS),
    (r"version\.\w+ can't be read: .*", ProblemKind.DESCRIPTION),
    (r"version\.json names .*", ProblemKind.NO_LIBRARY),
    (r"version\.json says \S+ of .*", ProblemKind.COMPONENT),
    (r"version\.json says .*", ProblemKind.RELEASE),
)


def upgrade(report: Values) -> Values:
    """Convert a report of schema 1 to schema 2, with the kinds that its texts mean.

    Raises:
        HostReportError: A text within a value is not a string. The reader of schema 2 reports all other faults.
    """
    answers = {
        name: _answer(name, found, report) if isinstance(found, dict) else found for name, found in report.data.items()
    }
    return Values(answers, report.source, report.path)


def _answer(name: str, found: dict[str, Any], report: Values) -> dict[str, Any]:
    reason, origin = found.get("missing"), found.get("origin")
    if isinstance(reason, str):
        return {**found, "kind": _kind(ReasonKind.OTHER, _REASONS.get(name, _REASON), reason)}
    if not isinstance(origin, str) or "value" not in found:
        return found
    kind = _kind(OriginKind.OTHER, _ORIGINS.get(name, _ORIGIN), origin)
    if name in _VALUES:
        return {**found, "value": _VALUES[name](report.object(name)), "kind": kind}
    return {**found, "kind": kind}


def _kind(other: K, texts: _Texts[K], text: str) -> K:
    found: K = _matched(other, texts, text)
    return found


@lru_cache(maxsize=4096)  # a fleet repeats the same texts
def _matched(other: Any, texts: _Texts[Any], text: str) -> Any:
    return next((kind for pattern, kind in texts if re.fullmatch(pattern, text, re.DOTALL)), other)


def _worded(other: K, texts: _Texts[K], found: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"kind": _kind(other, texts, text), "text": text} for text in found]


def _compat(answer: Values) -> dict[str, Any]:
    compat = answer.object("value")
    return {**compat.data, "kind": kind_of(compat.text("path"))}


def _toolkits(answer: Values) -> list[dict[str, Any]]:
    return [
        {
            **toolkit.data,
            "found_by": _worded(Lead.OTHER, _TOOLKIT_LEADS, toolkit.texts("found_by")),
            "problems": _worded(ProblemKind.OTHER, _PROBLEMS, toolkit.optional(toolkit.texts, "problems") or ()),
        }
        for toolkit in answer.objects("value")
    ]


def _compilers(answer: Values) -> list[dict[str, Any]]:
    return [
        {
            **compiler.data,
            "found_by": _worded(Lead.OTHER, _COMPILER_LEADS, tuple(compiler.text("found_by").split("; "))),
        }
        for compiler in answer.objects("value")
    ]


_VALUES: dict[str, Callable[[Values], Any]] = {"compat": _compat, "toolkits": _toolkits, "compilers": _compilers}
"""The values that contain texts, each with its conversion to schema 2."""
