"""Severities and texts of the rules of ROCm that depend on the machine."""

from tenv.host.amd import gfx_of_override
from tenv.host.interface import Missing, ReasonKind
from tenv.host.report import KfdAccess
from tests.checks.rules.cases import case, found, of_rocm, rocm
from tests.support.each import each


def test_a_gpu_without_kernels_beside_one_with_kernels_is_a_warning() -> None:
    both = case(**of_rocm("gfx1100", "gfx1036", rocms=(rocm(kernels=("gfx1030", "gfx1100")),)))
    assert [(str(one.severity), one.subject) for one in found("TE210", both)] == [("warning", "gfx1036")]


def test_an_override_is_in_the_evidence() -> None:
    changed = of_rocm("gfx1031", rocms=(rocm(kernels=("gfx90a",)),), exported={"HSA_OVERRIDE_GFX_VERSION": "10.3.0"})
    (finding,) = found("TE210", case(**changed))
    assert finding.subject == "gfx1030"
    assert finding.evidence.endswith("and act as gfx1030 by HSA_OVERRIDE_GFX_VERSION=10.3.0")


@each(
    "text, gfx",
    [
        ("10.3.0", "gfx1030"),
        ("9.0.10", "gfx90a"),
        ("11.5.1", "gfx1151"),
        ("10.3", ""),
        ("10.3.0.0", ""),
        ("0.0.0", ""),
        ("10.16.0", ""),
        ("\u0661\u0660.3.0", ""),
        ("9" * 6000 + ".0.0", ""),
    ],
)
def test_the_architecture_of_an_override(text: str, gfx: str) -> None:
    assert gfx_of_override(text) == gfx


def test_without_kfd_wsl_decides_nothing() -> None:
    none = Missing("no node is a GPU", ReasonKind.NONE)
    (finding,) = found("TE117", case(**of_rocm(amd_gpus=none, wsl=True)))
    assert (str(finding.severity), finding.unknown is not None) == ("warning", True)
    assert "/dev/dxg" in finding.message


def test_a_closed_device_names_its_group() -> None:
    (finding,) = found("TE117", case(**of_rocm(kfd=KfdAccess(opens=False, group="render"))))
    assert "usermod -aG render USER" in finding.fix
