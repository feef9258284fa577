"""How the toolkits and compilers of tests were found, by text alone."""

from typing import Any

from tenv.host.report import FoundBy, Lead

__all__ = ["led", "led_json"]

_KINDS = {
    "CUDA_HOME": Lead.CUDA_VARIABLE,
    "CUDA_PATH": Lead.CUDA_VARIABLE,
    "nvcc on PATH": Lead.PATH,
    "nvcc on PATH, behind another": Lead.PATH_BEHIND,
    "/usr/local/cuda": Lead.DEFAULT_FOLDER,
    "/etc/alternatives/cuda": Lead.ALTERNATIVE,
    "CC": Lead.CC,
    "CXX": Lead.CXX,
    "CUDAHOSTCXX": Lead.CUDAHOSTCXX,
    "vswhere": Lead.VSWHERE,
    "the environment": Lead.ENVIRONMENT,
}


def led(*texts: str) -> tuple[FoundBy, ...]:
    """Return the ways with these texts, each of the kind that a probe would give it."""
    return tuple(FoundBy(_KINDS.get(text) or _other(text), text) for text in texts)


def led_json(*texts: str) -> list[dict[str, Any]]:
    """Return the same as a host report has it."""
    return [{"kind": str(found.kind), "text": found.text} for found in led(*texts)]


def _other(text: str) -> Lead:
    if text.endswith(" on PATH"):
        return Lead.PATH
    return Lead.MODULE_VARIABLE if text.isidentifier() else Lead.FOLDER
