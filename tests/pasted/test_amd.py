"""The output of AMD's tools and of `collect_env` is read as a host report."""

from tenv.core.versions import Version
from tenv.host.amd import parse_amd_smi
from tenv.host.interface import Fact, Missing
from tenv.host.pasted.reader import read, to_report
from tenv.host.report import AmdGpu, HostReport
from tenv.host.report_json import parse

ROCMINFO = """ROCk module version 6.12.12 is loaded
=====================
HSA System Attributes
=====================
Agent 1
*******
  Name:                    AMD Ryzen 9 7950X 16-Core Processor
  Marketing Name:          AMD Ryzen 9 7950X 16-Core Processor
*******
Agent 2
*******
  Name:                    gfx1100
  Uuid:                    GPU-0
  Marketing Name:          Radeon RX 7900 XTX
"""
AMD_SMI = (
    "AMDSMI Tool: 26.0.2+39589fda | AMDSMI Library version: 26.0.2 | ROCm version: 7.0.2 | amdgpu version: 6.14.14 | "
    "amd_hsmp version: N/A\n"
)
COLLECTED = """PyTorch version: 2.9.0+rocm6.4
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.4.43484-123eb5128
OS: Ubuntu 24.04.3 LTS (x86_64)
Is CUDA available: True
CUDA runtime version: Could not collect
GPU models and configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)
Nvidia driver version: Could not collect
HIP runtime version: 6.4.43484
MIOpen runtime version: 3.4.0
"""


def report(text: str) -> HostReport:
    return to_report(read(text))


def gpus(found: HostReport) -> tuple[AmdGpu, ...]:
    assert isinstance(found.amd_gpus, Fact)
    return found.amd_gpus.value


def test_rocminfo_has_the_module_and_the_gpus_without_the_processor() -> None:
    found = report(ROCMINFO)
    assert isinstance(found.amd_driver, Fact)
    assert found.amd_driver.value == Version("6.12.12")
    assert gpus(found) == (AmdGpu("Radeon RX 7900 XTX", "gfx1100"),)
    assert isinstance(found.gpus, Missing)


def test_amd_smi_has_the_release_and_the_module() -> None:
    found = report(AMD_SMI)
    assert isinstance(found.rocms, Fact)
    assert [one.version for one in found.rocms.value] == [Version("7.0.2")]
    assert isinstance(found.amd_driver, Fact)
    assert found.amd_driver.value == Version("6.14.14")
    assert isinstance(report(AMD_SMI.replace("7.0.2", "N/A")).rocms, Missing)


def test_collect_env_names_the_gpu_and_no_rocm_of_the_machine() -> None:
    found = report(COLLECTED)
    assert gpus(found) == (AmdGpu("AMD Instinct MI300X", "gfx942"),)
    assert isinstance(found.rocms, Missing)


def test_both_tools_complete_each_other() -> None:
    assert gpus(report(ROCMINFO + COLLECTED.replace("AMD Instinct MI300X (gfx942:sramecc+:xnack-)", "No CUDA")))


ASIC_JSON = """[{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942"}}]"""


def test_the_json_of_amd_smi_is_a_host_report() -> None:
    for text in (ASIC_JSON, f'{{"gpu_data": {ASIC_JSON}}}', f"$ amd-smi static --asic --json\n{ASIC_JSON}\n"):
        assert gpus(parse(text, "asic.json").report) == (AmdGpu("AMD Instinct MI300X", "gfx942"),)


def test_brackets_without_end_are_no_gpus() -> None:
    assert parse_amd_smi("[ 1,\n" + "[\n" * 30_000 + "TARGET_GRAPHICS_VERSION\n") == ()


def test_several_gpus_of_amd_in_a_collected_list_are_none_of_nvidia() -> None:
    rows = ["AMD Instinct MI250X (gfx90a:sramecc+:xnack-)", "AMD Instinct MI250X (gfx90a:sramecc+:xnack-)"]
    lines = "\n".join(f"GPU {number}: {row}" for number, row in enumerate(rows))
    text = COLLECTED.replace("AMD Instinct MI300X (gfx942:sramecc+:xnack-)", f"\n{lines}")
    assert gpus(report(text)) == (AmdGpu("AMD Instinct MI250X", "gfx90a"),) * 2
    assert isinstance(report(text).gpus, Missing)


def test_a_list_of_both_makers_is_split() -> None:
    found = report(
        COLLECTED.replace("AMD Instinct MI300X (gfx942:sramecc+:xnack-)", "\nGPU 0: AMD Radeon VII\nGPU 1: NVIDIA A100")
    )
    assert gpus(found) == (AmdGpu("AMD Radeon VII", ""),)
    assert isinstance(found.gpus, Fact)
    assert [gpu.name for gpu in found.gpus.value] == ["NVIDIA A100"]


def test_the_row_of_detectron2_with_a_number_of_hip() -> None:
    text = "detectron2  0.6\nPyTorch  2.1.0+rocm5.6\nGPU available  True\nGPU 0,1  AMD Instinct MI210 (arch=9.0)\n"
    assert gpus(report(text)) == (AmdGpu("AMD Instinct MI210", ""),) * 2


def test_rocminfo_of_wsl() -> None:
    found = report(ROCMINFO.replace("ROCk module version 6.12.12 is loaded", "WSL environment detected."))
    assert gpus(found) == (AmdGpu("Radeon RX 7900 XTX", "gfx1100"),)
    assert isinstance(found.wsl, Fact)
    assert found.wsl.value


def test_the_hardware_table_of_rocm_smi_with_and_without_architectures() -> None:
    newer = (
        "======================== ROCm System Management Interface ========================\n"
        "GPU  NODE  DID     GUID   GFX VER  GFX RAS  SDMA RAS  UMC RAS  VBIOS             BUS           PARTITION ID\n"
        "0    1     0x744c  45560  gfx1100  N/A      N/A       N/A      113-D70401XT-P11  0000:03:00.0  0\n"
        "1    2     0x164e  11254  gfx1036  N/A      N/A       N/A      102-RAPHAEL-008   0000:0e:00.0  0\n"
    )
    assert gpus(report(newer)) == (AmdGpu("", "gfx1100"), AmdGpu("", "gfx1036"))
    older = (
        "GPU  DID   GFX RAS   SDMA RAS  UMC RAS   VBIOS           BUS\n"
        "0    740c  ENABLED   ENABLED   ENABLED   113-D67301-063  0000:C1:00.0\n"
    )
    assert gpus(report(older)) == (AmdGpu("", ""),)
