"""The torch that a user names: by a path, or by a version, whose values the table of torch wheels has."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tenv.checks.host_options import HostOptions
from tenv.core.errors import TenvError, UsageError
from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.facts.torch_headers import TorchWheel
from tenv.host.installed_torch import InstalledTorch, TorchKind, read_torch, torch_from_label
from tenv.host.interface import Fact, Missing
from tenv.host.report import HostReport
from tenv.host.torch_files import TorchPlace
from tenv.project.context import Context
from tenv.targets.search import is_target_name

REPORT = "report"
"""The word for the torch of the host report, in place of a path or a version."""


_EARLY = re.compile(r"(\d+\.\d+(?:\.\d+)?)(?:a|b|rc|\.dev)\d+(?:\+[A-Za-z0-9.]{1,80})?", re.ASCII)
"""The version of a nightly or of a build of one's own: ``2.15.0.dev20261101+cu132``, ``2.4.0a0+07cecf4168.nv24.05``."""
_NIGHTLY = re.compile(r"\+(cu\d{3}|cpu|xpu|rocm[\d.]+)$", re.ASCII)


def named_torch(asked: str, facts: Facts, platform: str, environments: Path | None = None) -> InstalledTorch:
    """Return the torch at a path, of a version by the tables, or of a target's environment.

    Args:
        asked: A path, a version, or the name of a target.
        facts: The tables.
        platform: The platform.
        environments: The folder of the environments of targets; None where a name is no torch.

    Raises:
        UsageError: It is none of these.
    """
    path = Path(asked)
    if not path.exists() and (torch_from_label(asked) or _EARLY.fullmatch(asked)):
        return _of_version(asked, "", facts, platform)
    if not path.exists() and environments and is_target_name(asked) and (environments / asked).is_dir():
        path = environments / asked
    found = read_torch(path)
    if isinstance(found, Missing):
        raise UsageError(
            f"--torch {asked}: {found.reason}",
            hint="name an environment, its target, its Python, a wheel or a version: `--torch .venv`, "
            '`--torch 2.9+cu128`, the active one by `--torch "$VIRTUAL_ENV"`, '
            'that of Poetry by `--torch "$(poetry env info -p)"`',
        )
    return found


def torch_of_report(host: HostReport, options: HostOptions, facts: Facts, platform: str) -> InstalledTorch:
    """Return the torch that a report has: of a pasted text, or the first of the active ones.

    Raises:
        UsageError: It has none, or one of which the tables have nothing.
    """
    if isinstance(host.torches, Fact):
        found = host.torches.value[0]
        if not options.host_report:
            return named_torch(found.path, facts, platform)
        return _of_version(found.version, found.cuda.major_minor if found.cuda else found.kind, facts, platform)
    pasted = options.given.pasted if options.given else {}
    version, cuda = (_pasted(pasted, name) for name in ("pytorch", "pytorch_cuda"))
    if not Version.find(version):
        raise UsageError(
            "--torch report: the host report has no torch",
            hint="name it: `--torch 2.9+cu128`, or pass the output of collect_env with --host-report",
        )
    return _of_version(version, cuda if re.fullmatch(r"\d+\.\d", cuda) else "", facts, platform)


def _pasted(values: Mapping[str, Any], name: str) -> str:
    """Return a value of a pasted text; an empty text where it has none."""
    row = values.get(name)
    return str(row.get("value") or "") if isinstance(row, dict) else ""


def _of_version(asked: str, built: str, facts: Facts, platform: str) -> InstalledTorch:
    """Return the torch of a version, as the table has it; of another version or label, the values that these name.

    Args:
        asked: The version.
        built: The CUDA that a report names beside it, or ``cpu``, ``rocm``, ``xpu``; empty for none.
        facts: The tables.
        platform: The platform.
    """
    released, early = torch_from_label(asked), _EARLY.fullmatch(asked)
    label = _NIGHTLY.search(asked)
    if released:
        version, named = released
    else:
        version = Version(early[1]) if early else Version.find(asked) or Version("0")
        named = (torch_from_label(f"{version}{label[0]}") or (version, ""))[1] if label else ""
    row = facts.torch_wheels.wheel(version, platform) if released else None
    if row:
        own = named in ("", row.local) or bool(row.cuda and named == row.cuda.major_minor)
        same = built in ("", named) or bool(row.cuda and built == row.cuda.major_minor)
        return _from_row(row, named if named and not own else "" if same else built, own=own and same)
    if named or built:
        return _from_label(asked, named or built)
    newest = facts.torch_wheels.wheels[-1].version
    raise UsageError(
        f"--torch {asked}: the table of torch wheels has no such release for {platform}, and it names no CUDA",
        hint=f"it has 2.2 to {newest} (`tenv facts torch_wheels`); name the CUDA, an environment or a wheel: "
        "`--torch 2.1.2+cu121`, `--torch .venv`",
    )


def _from_label(version: str, label: str) -> InstalledTorch:
    """Return a torch of which only the version and its label are known."""
    said, other = "the version that was named", Missing(f"the table of torch wheels has no torch {version}")
    cuda = Version(label) if label[:1].isdigit() else None
    return InstalledTorch(
        place=f"torch {version}",
        where=TorchPlace.WHEEL,
        prefix="",
        version=Fact(version, said),
        kind=Fact(_kind(label, cuda), said),
        cuda=Fact(cuda, said) if cuda else Missing("a torch without CUDA"),
        **dict.fromkeys(("gpu_code", "cxx11_abi", "compiler", "least_cxx", "default_cxx", "glibc"), other),
    )


def _kind(label: str, cuda: Version | None) -> TorchKind:
    others = (kind for kind in (TorchKind.ROCM, TorchKind.XPU) if label.startswith(kind.value))
    return next(others, TorchKind.CUDA if cuda else TorchKind.CPU)


def _from_row(row: TorchWheel, label: str, *, own: bool) -> InstalledTorch:
    source, other = row.basis.source, Missing(f"the table has the torch {row.version}+{row.local} alone")
    cuda = row.cuda if own else Version(label) if label[:1].isdigit() else None
    local = row.local if own else f"cu{str(cuda).replace('.', '')}" if cuda else label

    def fact(value: Any, *, certain: bool = True) -> Any:
        return Fact(value, source) if certain and value not in (None, "", ()) else other

    return InstalledTorch(
        place=f"the torch {row.version} of the index",
        where=TorchPlace.WHEEL,
        prefix="",
        version=Fact(f"{row.version}+{local}" if local else str(row.version), source),
        kind=Fact(_kind(label, cuda), source),
        cuda=Fact(cuda, source if own else "the version that was named") if cuda else Missing("a torch without CUDA"),
        gpu_code=fact(row.gpu_code, certain=own),
        cxx11_abi=fact(row.cxx11_abi, certain=own or row.cxx11_abi is True),  # the new ABI never went back
        compiler=fact(row.compiler, certain=own),
        least_cxx=fact(row.least_cxx),
        default_cxx=fact(row.default_cxx),
        glibc=fact(row.glibc, certain=own),
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
