"""Query nvidia-smi, the driver's own program, once for all values."""

import os
import re
from collections.abc import Sequence

from tenv.core.process import Completed
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.host.answer import Answer, driver_version, is_driver, pci_address, pci_id, quoted
from tenv.host.interface import Missing, ReasonKind
from tenv.host.places import WSL_LIBRARIES, Places
from tenv.host.report import Gpu

__all__ = ["FIELDS", "ask", "parse"]

FIELDS = ("driver_version", "name", "memory.total", "pci.bus_id", "pci.device_id", "compute_cap", "mig.mode.current")
_NEW = ("compute_cap", "mig.mode.current")  # older drivers reject a query with an unknown field
_REFUSED = "is not a valid field to query"
_NOT_KNOWN = re.compile(r"\[.*\]|N/A|ERR!|")
_MIB = 1 << 20


def ask(places: Places) -> Answer | Missing:
    """Query nvidia-smi for the driver and the GPUs; it has no query for CUDA."""
    program = places.find("nvidia-smi")
    if program is None:
        # Under WSL, only login shells reliably have this folder on PATH.
        program = str(places.root / WSL_LIBRARIES / "nvidia-smi")
        if not os.access(program, os.X_OK):
            return Missing("not found on PATH", ReasonKind.NONE)
    fields: tuple[str, ...] = FIELDS
    done = _query(places, program, fields)
    if isinstance(done, Completed) and _REFUSED in done.stdout + done.stderr:
        fields = tuple(field for field in FIELDS if field not in _NEW)
        done = _query(places, program, fields)
    if isinstance(done, Missing):
        return done
    answer = parse(done.stdout if done.stdout.strip() else done.stderr, fields)
    if done.status != 0 and isinstance(answer.driver, Missing):
        return Missing(f"{answer.driver.reason} (exit status {done.status})", ReasonKind.FAILED)
    return answer


def _query(places: Places, program: str, fields: Sequence[str]) -> Completed | Missing:
    return places.run(program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def parse(text: str, fields: Sequence[str] = FIELDS) -> Answer:
    """Return the answer from what ``nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits`` prints.

    It prints one line per GPU, ``ERR!`` or a sentence for a failed GPU, and its own errors to standard output. Such an
    error may contain a library version, so only lines with all fields count.
    """
    rows, said = [], []
    for line in filter(None, map(str.strip, text.splitlines())):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(fields):
            rows.append(dict(zip(fields, cells, strict=True)))
        else:
            said.append(line)
    drivers = [row["driver_version"] for row in rows if is_driver(row["driver_version"])]
    driver = driver_version(drivers[0]) if drivers else quoted(text)
    known = [row for row in rows if "name" in row and (drivers or not _NOT_KNOWN.fullmatch(row["name"]))]
    gpus = tuple(_gpu(row) for row in known)
    cuda = Missing("not asked", ReasonKind.NONE)
    if not known:
        return Answer(driver, cuda, Missing(said[0] if said else "lists no GPU", ReasonKind.UNREADABLE))
    return Answer(driver, cuda, gpus, tuple(said))


def _gpu(row: dict[str, str]) -> Gpu:
    known = {field: "" if _NOT_KNOWN.fullmatch(cell) else cell for field, cell in row.items()}
    memory, device, capability = known["memory.total"], known["pci.device_id"], known.get("compute_cap", "")
    return Gpu(
        name=known["name"],
        compute_capability=Version(capability) if re.fullmatch(r"\d+\.\d+", capability) else None,
        memory=None if (size := whole_number(memory)) is None else size * _MIB,
        pci_id=pci_id(int(device, 16)) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", device) else "",
        pci_address=pci_address(known["pci.bus_id"]),
        mig=known.get("mig.mode.current") == "Enabled",
    )
