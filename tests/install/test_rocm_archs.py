"""The architectures that an activation lists for HIP."""

from types import SimpleNamespace
from typing import Any

from tenv.host.interface import Fact, OriginKind
from tenv.host.report import AmdGpu
from tenv.install.architectures import chosen_archs
from tenv.targets.manifest import Manifest


def job(**environ: str) -> Any:
    gpus = Fact((AmdGpu("", "gfx1031"),), "KFD", OriginKind.KERNEL)
    return SimpleNamespace(
        around=SimpleNamespace(host=SimpleNamespace(amd_gpus=gpus)),
        toolchain=SimpleNamespace(rocm="/opt/rocm", gfx=("gfx1030", "gfx1031"), rocm_version=None),
        manifest=Manifest("t", "t.toml"),
        context=SimpleNamespace(environ=environ),
    )


def test_the_override_names_the_architecture_to_compile_for() -> None:
    listed = [chosen_archs(job()), chosen_archs(job(HSA_OVERRIDE_GFX_VERSION="10.3.0"))]
    assert [archs.names for archs in listed if archs] == [("gfx1031",), ("gfx1030",)]
