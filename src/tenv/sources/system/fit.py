"""Adds system tools to the toolchain of a prefix."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.core.versions import Version
from tenv.sources.system.fingerprint import Fingerprint
from tenv.toolchain.discover import Toolchain

__all__ = ["fit"]

_FOLDERS = ("cudnn", "cusparselt", "nccl", "mkl", "mpi")


def fit(toolchain: Toolchain, taken: Iterable[Fingerprint]) -> Toolchain:
    """Return a toolchain with system tools in place of those that the prefix lacks."""
    changes: dict[str, Any] = {}
    tools = {one.name: one for one in taken}
    if toolkit := tools.get("cuda-toolkit"):
        changes |= {
            "cuda": Path(toolkit.roles["home"]),
            "cuda_version": Version(toolkit.version),
            "nvcc": Path(toolkit.roles["nvcc"]),
        }
    if gcc := tools.get("gcc"):
        changes |= {"cc": Path(gcc.roles["gcc"]), "cxx": Path(gcc.roles["g++"])}
    changes |= {name: Path(tools[name].roles["home"]) for name in _FOLDERS if name in tools}
    return replace(toolchain, **changes, system=tuple(tools))
