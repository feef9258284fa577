"""Run all probes into a host report; probes that wait for programs run concurrently."""

from functools import partial
from pathlib import Path
from typing import Any

from tenv.core.threads import ahead
from tenv.host.field import Lane, host_fields
from tenv.host.interface import Fact, Missing
from tenv.host.places import Places
from tenv.host.report import HostReport
from tenv.host.scan import Scan

__all__ = ["collect"]


def collect(places: Places | None = None, folder: Path = Path()) -> HostReport:
    """Return the host report of this machine.

    Args:
        places: Where to look; None means this machine.
        folder: Where environments go, for the disk.
    """
    scan = Scan(places, folder)
    alone = [ahead(partial(_in_turn, scan, name)) for name, field in host_fields().items() if field.lane is Lane.ALONE]
    _ = scan.loader.cache  # read once, before two threads ask for it
    waiting = [*alone, ahead(partial(_in_turn, scan, *_names(Lane.DRIVER)))]
    found = _in_turn(scan, *_names(Lane.HERE))
    for wait in waiting:
        found |= wait()
    return HostReport(**found)


def _names(lane: Lane) -> list[str]:
    return [name for name, field in host_fields().items() if field.lane is lane]


def _in_turn(scan: Scan, *names: str) -> dict[str, Fact[Any] | Missing]:
    return {name: host_fields()[name].probe(scan) for name in names}
