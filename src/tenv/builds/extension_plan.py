"""Why a package can't be compiled against a torch, by the extensions that its ``setup.py`` would compile."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuArchTable
from tenv.facts.torch_packages import TorchPackage
from tenv.host.installed_torch import InstalledTorch
from tenv.host.interface import Fact
from tenv.host.machine import sees_gpu

__all__ = ["Asked", "is_record", "refusals", "with_standard"]

_STANDARD = re.compile(r"[-/]std[=:](?:c|gnu)\+\+(\d\d)")
_NO_GPU = re.compile(
    r"cuda is not available|no (?:cuda )?gpu|cuda_is_available|cuda driver|no nvidia driver", re.IGNORECASE
)
_MODULE = re.compile(r"No module named '([\w.]+)'")
_ARCH = re.compile(r"(\d+)\.(\d)")

Reason = tuple[str, str]
"""A reason, and an edit or a command; that is empty for none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests of a manifest about a package.

    Attributes:
        name: The package.
        cxx: The C++ standard in place of its own; 0 for its own.
        archs: The architectures, as ``TORCH_CUDA_ARCH_LIST``.
    """

    name: str
    cxx: int
    archs: str


def is_record(found: Any) -> bool:
    """Return whether a value is the output of `tenv.builds.record_extensions`; a ``setup.py`` may print another."""

    def texts(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)

    def row(value: Any) -> bool:
        fits = isinstance(value, dict) and texts(value.get("sources")) and texts(value.get("missing"))
        return fits and isinstance(value.get("flags"), dict) and all(map(texts, value["flags"].values()))

    if not isinstance(found, dict):
        return False
    rows = found.get("extensions")
    return (isinstance(rows, list) and all(map(row, rows))) or isinstance(found.get("error"), str)


def refusals(
    record: Mapping[str, Any],
    asked: Asked,
    facts: TorchPackage | None,
    torch: InstalledTorch | None,
    table: GpuArchTable,
) -> Iterator[Reason]:
    """Yield why a build can't end well.

    Args:
        record: The output of `tenv.builds.record_extensions`; empty for a package without a ``setup.py``.
        asked: The requests of the manifest.
        facts: The row of the package; None without one.
        torch: The torch that it is compiled against; None where it can't be read.
        table: The architectures of each toolkit.
    """
    error = str(record.get("error", ""))
    if (facts and facts.gpu and not sees_gpu()) or _NO_GPU.search(error):
        yield "its setup.py wants a GPU where it is built, and this machine has none", "build it on a machine with one"
    if module := _MODULE.search(error):
        package = module[1].partition(".")[0]
        yield f"its setup.py imports {package}, which the target lacks", f'`{package} = "*"` in the manifest brings it'
    if error:
        yield f"its setup.py fails: {error}", ""
    missing = [one for row in record.get("extensions", []) for one in row["missing"]]
    if missing:
        others = f" and {len(missing) - 1} more" if missing[1:] else ""
        hint = f"a git revision may have them: `{asked.name} = {{ git = …, isolation = false }}`"
        yield f"its sources lack {missing[0]}{others}, which its setup.py names", hint
    yield from _standards(record, asked, torch)
    yield from _unknown_archs(asked, torch, table)


def _standards(record: Mapping[str, Any], asked: Asked, torch: InstalledTorch | None) -> Iterator[Reason]:
    """Yield the extensions whose flags name an older C++ standard than the headers of torch demand."""
    least = torch.least_cxx if torch else None
    if torch is None or not isinstance(least, Fact) or asked.cxx >= least.value:
        return
    for row in record.get("extensions", []):
        for flags in row["flags"].values():
            named = [int(match[1]) for flag in flags if (match := _STANDARD.fullmatch(flag))]
            if named and named[-1] < least.value:
                names = f"its setup.py names C++{named[-1]} for {row['name']}"
                hint = f"`cxx = {least.value}` at {asked.name} in the manifest raises it"
                yield f"{names}, torch {torch.label} demands C++{least.value}", hint


def _unknown_archs(asked: Asked, torch: InstalledTorch | None, table: GpuArchTable) -> Iterator[Reason]:
    """Yield the architectures that the torch's CUDA does not compile for."""
    row = table.archs(torch.cuda.value) if torch and isinstance(torch.cuda, Fact) else None
    for major, minor in _ARCH.findall(asked.archs) if row else ():
        if row and not row.supports(Version(f"{major}.{minor}")):
            yield (
                f"nvcc of CUDA {row.major_minor} does not compile for sm_{major}{minor}",
                "change TORCH_CUDA_ARCH_LIST",
            )


def with_standard(environ: Mapping[str, str], cxx: int, folder: Path) -> dict[str, str]:
    """Return the variables with which each compiler takes a C++ standard: of several options, the last one counts.

    Args:
        environ: The variables of the build.
        cxx: The standard; 0 for that of the package.
        folder: Where the scripts that start the compilers are written.
    """
    if not cxx:
        return {}
    flag, found = f"-std=c++{cxx}", {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, default in (("CC", "cc"), ("CXX", "c++")):
        words = shlex.split(environ.get(name) or process.find(default, environ.get("PATH")) or default)
        script, program = folder / default, shlex.join(words)
        # C has no such standard, and older setuptools compiles C++ with `cc`
        script.write_text(
            f'#!/bin/sh\ncase " $* " in\n*.cpp\\ *|*.cc\\ *|*.cxx\\ *) exec {program} "$@" {flag} ;;\n'
            f'*) exec {program} "$@" ;;\nesac\n'
        )
        script.chmod(0o755)
        found[name] = str(script)
    appended = f"{environ.get('NVCC_APPEND_FLAGS', '')} {flag}".strip()
    return {**found, "NVCC_APPEND_FLAGS": appended}
