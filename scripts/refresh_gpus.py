"""Write ``gpu_pci.toml`` anew from a downloaded pci.ids, and say what changed.

``python scripts/refresh_gpus.py PCI_IDS [--list FILE]``

pci.ids names the chip of each device of NVIDIA, and a chip has one compute capability. ``--list`` takes a text with one
GPU a line, as NVIDIA's list of compute capabilities names them (``NVIDIA L20<TAB>8.9``): what the tables do not find by
its name, or find with another capability, is printed, and the status is 1.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tenv.facts.tables import load_facts

TABLE = Path(__file__).parent.parent / "src/tenv/facts/data/gpu_pci.toml"

# Chips by the begin of their code name, the longer one first, and the compute capability that is built into them.
CHIPS = {
    "GF100": "2.0", "GF110": "2.0", "GF": "2.1",
    "GK110": "3.5", "GK180": "3.5", "GK208": "3.5", "GK210": "3.7", "GK20A": "3.2", "GK": "3.0",
    "GM107": "5.0", "GM108": "5.0", "GM20B": "5.3", "GM20": "5.2",
    "GP100": "6.0", "GP10B": "6.2", "GP10": "6.1",
    "GV100": "7.0", "GV11B": "7.2", "TU1": "7.5",
    "GA100": "8.0", "GA10B": "8.7", "GA10": "8.6", "AD10": "8.9", "GH100": "9.0",
    "GB100": "10.0", "GB102": "10.0", "GB110": "10.3", "GB112": "10.3", "GB120": "10.3",
    "GB10B": "11.0", "GB20B": "12.1", "GB20": "12.0",
}  # fmt: skip
_CHIP = re.compile(r"(?P<chip>(?:G[FKMPVAHB]|TU|AD)\d\w*?)(?:GLM|GL|M|S)?\b")
_NO_GPU = re.compile(r"Audio|USB|UCSI|Bridge|bridge|NVSwitch|NVLink|host|Serial|I2C", re.IGNORECASE)
_INTERNAL = re.compile(
    r"^G[FKMPVA][A-Z]?\d|^GH100|FPGA|\bINT\d*\b|INT SKU|-ES\b|\bES-A|^N1\dP|^D1\d|NB1|^Q1\d|JMJWOA|Dev ?ID|Skinny"
    r"|ESI$|EXK|Engineering|^PG\d|Reserved|SKU"
)
"""Names of samples and boards that are not sold."""
_KINDS = (
    ("Jetson", r"Jetson|DRIVE|Tegra"),
    ("GeForce", r"GeForce|TITAN|GTX|RTX Spark|\bMX\d{3}|\bGT \d"),
    ("mining", r"CMP|P10[246]-|Mining"),
    ("pro", r"Quadro|NVS|NVQ|RTX [A-Z]?\d{3,4}|RTX PRO|\bT\d{3,4}\b|\bT\d{3,4}M\b|[KMP]\d{3,4}M\b"),
    ("data centre", r"Tesla|GRID|\b[ABHLKMPTV]\d{1,3}[A-Z]*\b|GH200|GB[23]00|PG\d{3}|HGX|AX800|DGX|A800|H800"),
)


@dataclass(frozen=True)
class Device:
    """A device of pci.ids that is a GPU."""

    pci_id: str
    chip: str
    capability: str
    name: str

    @property
    def kind(self) -> str:
        """What it is sold as, by its name."""
        return next((kind for kind, pattern in _KINDS if re.search(pattern, self.name)), "other")

    def line(self) -> str:
        """Return its row."""
        values = (("id", f"10de:{self.pci_id}"), ("chip", self.chip), ("cc", self.capability))
        rest = (("kind", self.kind), ("name", self.name), ("source", "PCIIDS"))
        cells = ", ".join(f'{key} = "{value}"' for key, value in (*values, *rest))
        return f"  {{ {cells}, confirmed = true }},"


def devices(text: str) -> Iterator[Device]:
    """Yield the GPUs of a pci.ids with a marketing name, from Fermi on."""
    ours = False
    for line in text.splitlines():
        if re.match("[0-9a-f]{4}  ", line):
            ours = line.startswith("10de ")
        match = re.fullmatch(r"\t([0-9a-f]{4})  (.*)", line) if ours else None
        if match is None or _NO_GPU.search(match[2]):
            continue
        chip, name = _CHIP.match(match[2]), re.search(r"\[(.*)\]", match[2])
        capability = next((cc for begin, cc in CHIPS.items() if chip and chip["chip"].startswith(begin)), None)
        if chip and name and capability and (not _INTERNAL.search(name[1]) or re.match("GB10$|GH200", name[1])):
            yield Device(match[1], chip["chip"], capability, name[1].replace('"', "'"))


def table(found: list[Device], date: str) -> str:
    """Return the whole file."""
    rows = "\n".join(device.line() for device in found)
    return f"""\
# PCI device id -> GPU.  Written by scripts/refresh_gpus.py from pci.ids of {date} (3-clause BSD licence); not by hand.
# Columns
#   id    vendor and device, as `lspci -nn` prints them
#   chip  the code name of the chip
#   cc    the compute capability that is built into the chip
#   kind  what it is sold as, by its name
#   name  the marketing name in pci.ids

schema = 1
date = "{date}"

# What the abbreviations in `source` stand for.
[sources]
PCIIDS = "pci.ids of {date} (pci-ids.ucw.cz); the compute capability by the chip (scripts/refresh_gpus.py)"
""".replace("\n\n# What", "\ndevice = [\n" + rows + "\n]\n\n# What", 1)


def changes(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """Yield what is new, gone and changed, a line each."""
    for key in sorted(before.keys() | after.keys()):
        if key not in before:
            yield f"+ {key}  {after[key]}"
        elif key not in after:
            yield f"- {key}  {before[key]}"
        elif before[key] != after[key]:
            yield f"~ {key}  {before[key]} -> {after[key]}"


def missing(text: str) -> Iterator[str]:
    """Yield the GPUs of a list that the tables do not find, or find with another compute capability."""
    from tenv.checks.host_options import find_gpu

    for line in text.splitlines():
        name, _, capability = line.rpartition("\t")
        found = find_gpu(name) if name else None
        if name and (found is None or str(found[1]) != capability.strip()):
            yield f"{name}: {found[1] if found else 'not found'}, the list says {capability}"


def main() -> int:
    """Write the table and say what changed; 1 where the list has what the tables lack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pci_ids", type=Path)
    parser.add_argument("--list", type=Path)
    asked = parser.parse_args()
    before = {row.pci_id: f"{row.name} {row.capability}" for row in load_facts().gpu_pci.devices}
    text = asked.pci_ids.read_text(encoding="utf-8", errors="replace")
    dated = re.search(r"Date:\s+(\d{4}-\d\d-\d\d)", text)
    TABLE.write_text(table(list(devices(text)), dated[1] if dated else "unknown"), encoding="utf-8")
    after = {row.pci_id: f"{row.name} {row.capability}" for row in load_facts().gpu_pci.devices}
    told = list(changes(before, after))
    sys.stdout.write("".join(f"{line}\n" for line in (*told, f"{len(after)} devices, {len(told)} changes")))
    lacking = list(missing(asked.list.read_text(encoding="utf-8"))) if asked.list else []
    sys.stdout.write("".join(f"{line}\n" for line in lacking))
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
