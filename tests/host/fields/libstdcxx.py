from tenv.host import libstdcxx
from tenv.host.interface import OriginKind, ReasonKind
from tests.host.builders import places, put
from tests.host.field_cases import Absent, Machine, Patch, Places, Present, Root

PATH = "usr/lib64/libstdc++.so.6"
SYMBOLS = ("GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "CXXABI_1.3.13")


def library(*symbols: str) -> Machine:
    """A machine with a library that defines symbols; `test_parts` reads real ones."""

    def machine(root: Root, patch: Patch) -> Places:
        put(root / PATH)
        if symbols:
            patch.setattr(libstdcxx, "defined_versions", lambda _: symbols)
        return places(root)

    return machine


CASES = [
    Present(
        library(*SYMBOLS),
        {"path": f"ROOT/{PATH}", "glibcxx": "3.4.30", "cxxabi": "1.3.13"},
        OriginKind.LOADER,
        (f"GLIBCXX_3.4.30, CXXABI_1.3.13  ROOT/{PATH}",),
    ),
    Absent(library(*SYMBOLS[:2]), ReasonKind.UNREADABLE, "defines no GLIBCXX or no CXXABI version"),
    Absent(library(), ReasonKind.UNREADABLE, "can't be read as a library"),
    Absent(lambda root, _: places(root), ReasonKind.NONE, "the loader finds no libstdc++.so.6"),
]
