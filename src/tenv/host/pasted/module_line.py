"""Read ``/proc/driver/nvidia/version``, the kernel module's own line."""

import re
from collections.abc import Iterator, Sequence

from tenv.host.pasted.interface import Item, Line, PasteLayout, Said
from tenv.host.pasted.values import platform

__all__ = ["MODULE_LINE"]

_LINE = re.compile(
    r"NVRM version:\s*NVIDIA UNIX (?P<open>Open )?(?P<machine>\S+ )?Kernel Module\s+(?:for (?P<of>\S+)\s+)?"
    r"(?P<version>\d+(?:\.\d+)+)"
)


def _read(lines: Sequence[Line]) -> Iterator[Said]:
    for line in lines:
        if match := _LINE.search(line.text):
            yield Said(Item.DRIVER, match["version"], line.number)
            yield Said(Item.MODULE, "open" if match["open"] else "proprietary", line.number)
            if found := platform(match["of"] or match["machine"] or ""):
                yield Said(Item.PLATFORM, found, line.number)


MODULE_LINE = PasteLayout("/proc/driver/nvidia/version", _read)
