from tenv.host.interface import OriginKind
from tests.host.builders import places
from tests.host.field_cases import Present

CASES = [
    Present(lambda root, _: places(root), "linux-64", OriginKind.SYSTEM, ("linux-64",)),
    Present(lambda root, _: places(root, machine="aarch64"), "linux-aarch64", OriginKind.SYSTEM, ("linux-aarch64",)),
]
