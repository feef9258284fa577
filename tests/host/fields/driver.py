from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, program, put, text
from tests.host.field_cases import Absent, Patch, Places, Present, Root

MODULE = "sys/module/nvidia/version"


def loaded(root: Root, _: Patch) -> Places:
    put(root / MODULE, "570.133.20\n")
    return places(root)


def behind(root: Root, _: Patch) -> Places:
    """A machine whose driver was updated while nvidia-smi is still that of the old one."""
    program(root / "bin/nvidia-smi", "echo '550.54.15, NVIDIA L4, 23034, 00000000:01:00.0, 0x27B810DE, 8.9, [N/A]'")
    return loaded(root, _)


def jetson(root: Root, _: Patch) -> Places:
    put(root / "etc/nv_tegra_release", "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic")
    return places(root)


def unwell(root: Root, _: Patch) -> Places:
    put(root / "mismatch", text("smi-mismatch.txt"))
    program(root / "bin/nvidia-smi", f"cat '{root}/mismatch'; exit 18")
    return places(root)


def hung(root: Root, _: Patch) -> Places:
    program(root / "bin/nvidia-smi", "exec sleep 60")
    return places(root, timeout=0.2)


CASES = [
    Present(loaded, "570.133.20", OriginKind.KERNEL, ("570.133.20",)),
    Present(behind, "570.133.20", OriginKind.KERNEL, ("570.133.20",)),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "nvidia-smi: not found on PATH"),
    Absent(unwell, ReasonKind.FAILED, "Driver/library version mismatch"),
    Absent(hung, ReasonKind.TIMEOUT, "gave no answer within 0.2 s"),
    Absent(jetson, ReasonKind.JETSON, "Jetson Linux 36.4.0"),
]
