from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Patch, Places, Present, Root


def vgpu_host(root: Root, _: Patch) -> Places:
    put(root / "sys/module/nvidia_vgpu_vfio/refcnt", "0\n")
    return places(root)


CASES = [
    Present(vgpu_host, "vgpu-kvm", OriginKind.KERNEL, ("vgpu-kvm",)),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "/sys/module/nvidia_vgpu_vfio does not exist"),
]
