"""The torch that a user names: by a path, or by a version, whose values the table of torch wheels has."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tenv.checks.host_options import HostOptions
from tenv.core.errors import TenvError, UsageError
from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.facts.torch_wheels import TorchWheel
from tenv.host.installed_torch import InstalledTorch, TorchKind, read_torch, torch_from_label
from tenv.host.interface import Fact, Missing
from tenv.host.report import HostReport
from tenv.host.torch_files import TorchPlace
from tenv.project.context import Context

__all__ = ["REPORT", "named_torch", "targets_of", "torch_of_report"]

REPORT = "report"
"""The word for the torch of the host report, in place of a path or a version."""


def named_torch(asked: str, facts: Facts, platform: str) -> InstalledTorch:
    """Return the torch at a path, or the torch of a version by the tables; raises UsageError for neither."""
    path, version = Path(asked), torch_from_label(asked)
    if version and not path.exists():
        return _of_version(*version, facts, platform)
    found = read_torch(path)
    if isinstance(found, Missing):
        raise UsageError(
            f"--torch {asked}: {found.reason}",
            hint="name an environment, its Python, a wheel or a version: `--torch .venv`, `--torch 2.9+cu128`",
        )
    return found


def torch_of_report(host: HostReport, options: HostOptions) -> str:
    """Return the version of the torch that a report has: of a pasted text, or the first of the active ones.

    Raises:
        UsageError: It has none.
    """
    if isinstance(host.torches, Fact):
        return host.torches.value[0].version
    pasted = options.given.pasted if options.given else {}
    version, cuda = (_pasted(pasted, name) for name in ("pytorch", "pytorch_cuda"))
    if not version:
        raise UsageError(
            "--torch report: the host report has no torch",
            hint="name it: `--torch 2.9+cu128`, or pass the output of collect_env with --host-report",
        )
    release = Version.find(version)
    local = f"+cu{cuda.replace('.', '')}" if re.fullmatch(r"\d+\.\d", cuda) else ""
    return version if "+" in version or not release else f"{release}{local}"


def _pasted(values: Mapping[str, Any], name: str) -> str:
    """Return a value of a pasted text; an empty text where it has none."""
    row = values.get(name)
    return str(row.get("value") or "") if isinstance(row, dict) else ""


def _of_version(version: Version, label: str, facts: Facts, platform: str) -> InstalledTorch:
    """Return the torch of a release, as the table has it; with another label, the values that it does not change."""
    row = facts.torch_wheels.wheel(version, platform)
    if row is None:
        newest = facts.torch_wheels.wheels[-1].version
        raise UsageError(
            f"--torch {version}: the table of torch wheels has no such release for {platform}",
            hint=f"it has 2.2 to {newest} (`tenv facts torch_wheels`); name an environment or a wheel: `--torch .venv`",
        )
    own = label in ("", row.local) or bool(row.cuda and label == row.cuda.major_minor)
    return _from_row(row, label, own=own)


def _from_row(row: TorchWheel, label: str, *, own: bool) -> InstalledTorch:
    source, none = row.basis.source, Missing("a version has no files: name an environment or a wheel")
    other = Missing(f"the table has the torch {row.version}+{row.local} alone")
    cuda = (row.cuda if own else Version(label) if label[:1].isdigit() else None) or Missing("a torch without CUDA")
    kind = (
        *(kind for kind in (TorchKind.ROCM, TorchKind.XPU) if label.startswith(kind.value)),
        TorchKind.CPU if isinstance(cuda, Missing) else TorchKind.CUDA,
    )[0]
    local = row.local if own else f"cu{str(cuda).replace('.', '')}" if isinstance(cuda, Version) else label

    def fact(value: Any, *, certain: bool = True) -> Any:
        return Fact(value, source) if certain and value not in (None, "", ()) else other

    return InstalledTorch(
        place=f"the torch {row.version} of the index",
        where=TorchPlace.WHEEL,
        prefix="",
        version=Fact(f"{row.version}+{local}" if local else str(row.version), source),
        kind=Fact(kind, source),
        cuda=cuda if isinstance(cuda, Missing) else Fact(cuda, source if own else "the version that was named"),
        hip=none,
        xpu=none,
        python=none,
        gpu_code=fact(row.gpu_code, certain=own),
        cxx11_abi=fact(row.cxx11_abi, certain=own or row.cxx11_abi is True),  # the new ABI never went back
        compiler=fact(row.compiler, certain=own),
        least_cxx=fact(row.least_cxx),
        default_cxx=fact(row.default_cxx),
        bounds=none,
        glibc=fact(row.glibc, certain=own),
        requires=none,
        base=none,
    )


def targets_of(context: Context, torch: InstalledTorch, platform: str) -> tuple[str, ...]:
    """Return the targets that have the CUDA release of a torch on a platform; all without CUDA for a torch without."""
    wanted = torch.cuda.value.major_minor if isinstance(torch.cuda, Fact) else ""
    found = []
    for name in context.places.names():
        try:
            manifest = context.places.find(name).manifest
        except TenvError:
            continue
        cuda = manifest.on(platform).requirements.cuda
        if (not manifest.platforms or platform in manifest.platforms) and cuda and cuda.major_minor == wanted:
            found.append(name)
    return tuple(sorted(found, key=lambda name: ("-" in name, name)))
