"""Cases for the tests of the rules: a machine on which all is well, and what each test changes in it."""

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from tenv.checks.checkout_state import CheckoutState
from tenv.checks.pytorch_source import SourceTree, from_release
from tenv.checks.rules.catalogue import RULES
from tenv.checks.rules.interface import Case, Finding
from tenv.core.versions import Range, Version
from tenv.facts.tables import Facts, load_facts
from tenv.host.compat import kind_of
from tenv.host.cuda_api import override as asked_override
from tenv.host.interface import Fact, Missing
from tenv.host.report import (
    AmdGpu,
    Compat,
    Compiler,
    CompilerLimits,
    Disk,
    FoundBy,
    Gpu,
    HostReport,
    Lead,
    Libstdcxx,
    Rocm,
    Toolkit,
)
from tenv.host.rocms import PARTS
from tenv.locks.lock import Archive, CondaPackage, Lock, Wheel
from tenv.targets.manifest import Manifest, Requirements
from tenv.targets.variable_requests import VariableRequest
from tests.support.found_by import led


@cache
def facts() -> Facts:
    return load_facts()


def gxx(version: str, path: str = "/usr/bin/g++", *, default: bool = True, kind: str = "g++") -> Compiler:
    return Compiler(kind, path, Version(version), default, led(f"{path.rpartition('/')[2]} on PATH"))


def gpu(name: str, capability: str | None, pci_id: str = "") -> Gpu:
    return Gpu(name, Version(capability) if capability else None, pci_id=pci_id)


def toolkit(path: str, version: str, *found_by: str, **more: Any) -> Toolkit:
    return Toolkit(path, led(*found_by), Version(version), **more)


def rocm(version: str = "6.4.3", path: str = "/opt/rocm-6.4.3", way: str = "/opt/rocm", **more: Any) -> Rocm:
    """Return a ROCm that has all parts that PyTorch requires and compiles for three architectures."""
    kind = {"ROCM_PATH": Lead.ROCM_VARIABLE, "/opt/rocm": Lead.DEFAULT_FOLDER}.get(way, Lead.FOLDER)
    parts = tuple((name, "1.0") for name in PARTS)
    values: dict[str, Any] = {"parts": parts, "compiles": ("gfx90a", "gfx942", "gfx1100"), **more}
    return Rocm(path, (FoundBy(kind, way),), Version(version), clang=f"{path}/lib/llvm/bin/clang++", **values)


def of_rocm(*gfx: str, rocms: tuple[Rocm, ...] | None = None, **more: Any) -> dict[str, Any]:
    """Return the changes of a case for a target with ROCm on a machine with AMD GPUs."""
    gpus = tuple(AmdGpu("", one) for one in gfx or ("gfx942",))
    wanted = {"cuda": None, "manifest": {"system": {"rocm": Range("*")}}}
    return {**wanted, "rocms": (rocm(),) if rocms is None else rocms, "amd_gpus": gpus, **more}


def limits(path: str, **bounds: int) -> CompilerLimits:
    return CompilerLimits(f"{path}/include/crt/host_config.h", **bounds)


def compat(path: str, version: str) -> Compat:
    return Compat(path, Version(version), kind_of(path))


def override(said: str) -> Fact[Version] | Missing:
    """Return what CONDA_OVERRIDE_CUDA makes of the CUDA that the driver offers."""
    told = asked_override({"CONDA_OVERRIDE_CUDA": said})
    assert told is not None
    return told


def conda(name: str, version: str, *depends: str, channel: str = "conda-forge") -> CondaPackage:
    home = f"https://conda.anaconda.org/{channel}"
    url = f"{home}/linux-64/{name}-{version}-h0_0.conda"
    return CondaPackage(name, version, "h0_0", "linux-64", home, url, "0" * 64, depends=depends)


def archive(name: str, version: str, url: str) -> Archive:
    return Archive(name, version, url, "0" * 64, 1_000_000, "tar.xz")


def wheel(name: str, version: str, size: int = 1_000_000) -> Wheel:
    return Wheel(name, version, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", "0" * 64, size, ("3.12",))


def host(**changes: Any) -> HostReport:
    """Return a machine on which all is well; a change is a value, a Fact or a Missing."""
    values: dict[str, Any] = {
        "platform": "linux-64",
        "driver": Version("580.65.06"),
        "cuda": Version("13.0"),
        "compat": Missing("none"),
        "gpus": (gpu("NVIDIA A100-SXM4-80GB", "8.0"),),
        "toolkits": (),
        "compilers": (gxx("13.3.0"),),
        "libc": Version("2.39"),
        "libstdcxx": Libstdcxx("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.33", Version("3.4.33"), Version("1.3.15")),
        "cores": 16,
        "memory": 64 << 30,
        "disk": Disk("/home/me", 500 << 30, "ext4"),
        "wsl": False,
        "container": Missing("none"),
        "ptrace_scope": 1,
        "hostname": "box",
    } | changes
    if isinstance(values["driver"], Missing) and "cuda" not in changes:
        values["cuda"] = values["driver"]
    told = (Fact, Missing)
    known = {k: v if isinstance(v, told) else Fact(v, f"probe of {k}") for k, v in values.items()}
    return replace(HostReport.unknown(), **known)


def release(version: str) -> SourceTree:
    row = facts().pytorch_build.release(version)
    assert row is not None
    return from_release(version, row.asked(), "tenv/facts/data/pytorch_build.toml")


def case(
    cuda: str | None = "13.0",
    torch: str | None = None,
    wheels: tuple[Wheel, ...] = (),
    conda: tuple[CondaPackage, ...] = (),
    archives: tuple[Archive, ...] = (),
    manifest: dict[str, Any] | None = None,
    platform: str = "linux-64",
    offers: Fact[Version] | Missing | None = None,
    arch_list: str = "",
    exported: dict[str, str] | None = None,
    state: CheckoutState | None = None,
    activated: dict[str, str] | None = None,
    **changes: Any,
) -> Case:
    """Return a case; `offers` is the CUDA that the machine's driver offers, other changes go to `host`.

    A `state` makes a checkout of the version `torch`.
    """
    changes |= {"cuda": offers} if offers else {}
    wanted = Manifest(
        name="t",
        file="manifests/t.toml",
        platforms=(platform,),
        pytorch=Range(">=2.1,<2.16"),
        python=Range(">=3.11,<3.13"),
        requirements=Requirements(Version(cuda) if cuda else None, Version("2.28")),
    )
    said = dict(manifest or {})
    if variables := said.get("environment"):
        said["environment"] = {name: VariableRequest.literal(name, value) for name, value in variables.items()}
    wanted = replace(wanted, **said)
    asked = {"cuda": cuda} if cuda else {}
    lock = Lock("t", (platform,), {platform: wheels}, asked, {}, "")
    lock = replace(lock, conda={platform: conda} if conda else {}, archives={platform: archives} if archives else {})
    source = release(torch) if torch else None
    if source and state:
        source = replace(source, root=Path("pytorch"), state=state)
    return Case(wanted, platform, lock, host(**changes), source, facts(), arch_list, activated, exported=exported or {})


def found(code: str, asked: Case) -> list[Finding]:
    """Return the findings of a code."""
    return [one for rule in RULES if code in rule.codes for one in rule(asked) if one.code == code]


@dataclass(frozen=True)
class Limit:
    """What ``limits/CODE.py`` says of a code; each case is what changes in `case`.

    Attributes:
        severity: What its findings are.
        speaks: A case in which it is found: the example of its page.
        silent: Cases just on the other side of the limit.
        also: Further cases in which it is found, where several rules yield the code.
    """

    severity: str
    speaks: dict[str, Any]
    silent: list[dict[str, Any]]
    also: list[dict[str, Any]]


@cache
def limits_of(code: str) -> Limit:
    told = import_module(f"tests.checks.rules.limits.{code.lower()}")
    return Limit(told.SEVERITY, told.SPEAKS, told.SILENT, getattr(told, "ALSO", []))
