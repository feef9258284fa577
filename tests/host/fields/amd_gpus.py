from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, program, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root

NODES = "sys/class/kfd/kfd/topology/nodes"
ROCMINFO = """Agent 1
  Name:                    AMD EPYC 9654
  Marketing Name:          AMD EPYC 9654
Agent 2
  Name:                    gfx942
  Marketing Name:          AMD Instinct MI300X
"""
ASIC = """GPU: 0
    ASIC:
        MARKET_NAME: AMD Instinct MI300X
        TARGET_GRAPHICS_VERSION: gfx942
"""
PRODUCT = """GPU[0]		: Card Series: 		AMD Instinct MI300X
GPU[0]		: Card Model: 		0x74a1
GPU[0]		: GFX Version: 		gfx942
"""


def machine(tool: str = "", output: str = "", *targets: int) -> Machine:
    def make(root: Root, _: Patch) -> Places:
        for number, target in enumerate((0, *(targets or (90402,)))):
            put(root / NODES / str(number) / "properties", f"cpu_cores_count 8\ngfx_target_version {target}\n")
        if tool:
            put(root / "output", output)
            program(root / "bin" / tool, f"cat '{root}/output'")
        return places(root)

    return make


def without_gpu(root: Root, _: Patch) -> Places:
    put(root / NODES / "0/properties", "gfx_target_version 0\n")
    return places(root)


NAMED = [{"name": "AMD Instinct MI300X", "gfx": "gfx942"}]
SHOWN = ("AMD Instinct MI300X, gfx942",)
CASES = [
    Present(machine(), [{"name": "", "gfx": "gfx942"}], OriginKind.KERNEL, ("an AMD GPU, gfx942",)),
    Present(machine("rocminfo", ROCMINFO), NAMED, OriginKind.KERNEL, SHOWN),
    Present(machine("amd-smi", ASIC), NAMED, OriginKind.KERNEL, SHOWN),
    Present(machine("rocm-smi", PRODUCT), NAMED, OriginKind.KERNEL, SHOWN),
    Present(
        machine("rocminfo", ROCMINFO, 90010, 110000),
        [{"name": "", "gfx": "gfx90a"}, {"name": "", "gfx": "gfx1100"}],
        OriginKind.KERNEL,
        ("an AMD GPU, gfx90a", "an AMD GPU, gfx1100"),
    ),
    Absent(without_gpu, ReasonKind.NONE, "no node is a GPU"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "No such file"),
]
