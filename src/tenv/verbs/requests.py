"""Requests on the command line: ``numpy>=2,<3``, ``cuda-toolkit[nvcc]==13.0.*``, ``conda-forge::cmake``."""

import re
import shlex
from dataclasses import dataclass

from tenv.core.errors import UsageError
from tenv.core.names import normalize
from tenv.targets.unlockable import WHY, names_source, way_to_install

__all__ = ["TypedRequest", "parse_request"]

_REVERSED = re.compile(r"(?<![<>=!~])=\s*([<>])")
"""``=>`` and ``=<``, which pip and conda write the other way round."""

_SPEC = re.compile(
    r"(?:(?P<channel>[^\s:=<>!~\[\]]+)::)?(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)"
    r"(?:\[(?P<extras>[^\]]*)\])?\s*(?P<version>(?:[=<>!~*@]|(?<=\s)\d).*)?"
)


@dataclass(frozen=True, slots=True)
class TypedRequest:
    """A request of the command line.

    Attributes:
        name: The package.
        version: The range; ``*`` without one.
        extras: The extras of a wheel, normalized.
        channel: The channel of a conda package; empty for none.
    """

    name: str
    version: str = "*"
    extras: tuple[str, ...] = ()
    channel: str = ""


def parse_request(text: str, target: str = "TARGET") -> TypedRequest:
    """Return a request of a target.

    Raises:
        UsageError: The text is not a valid request.
    """
    if names_source(text):
        raise UsageError(f"`{text}`: {WHY}", hint=way_to_install(shlex.quote(text.strip()), target))
    match = _SPEC.fullmatch(text.strip())
    version = (match["version"] or "").strip() if match else ""
    if match is None or version.startswith("@"):
        raise UsageError(
            f"`{text}` is not a valid request",
            hint="numpy, 'numpy>=2,<3' and 'cuda-toolkit[nvcc]==13.0.*' are examples",
        )
    if _REVERSED.search(version):
        meant = _REVERSED.sub(r"\1=", text.strip())
        raise UsageError(f"`{text}` is not a valid request", hint=f"did you mean {shlex.quote(meant)}?")
    if version.startswith("=="):
        version = version.removeprefix("==").strip() if "," not in version else version
    elif version.startswith("="):  # conda's fuzzy form: 3.11 and every 3.11.x
        bare = version.removeprefix("=").strip()
        version = bare if "*" in bare or bare.count(".") > 1 else f"{bare}.*"
    extras = tuple(sorted(normalize(extra) for extra in (match["extras"] or "").split(",") if extra.strip()))
    return TypedRequest(match["name"], version or "*", extras, match["channel"] or "")
