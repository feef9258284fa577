"""The driver's own tools, each run at most once for a whole report: NVML in a child process, and nvidia-smi."""

import importlib.util
import json
import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.process import Completed
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.host.interface import Missing, OriginKind, ReasonKind
from tenv.host.loader import Loader
from tenv.host.places import WSL_LIBRARIES, Places
from tenv.host.report import FabricState, Gpu

_DRIVER = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}", re.ASCII)
_ADDRESS = re.compile(r"(?P<domain>[0-9a-f]{4,8}):(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])")
_QUOTED = 120
_NVIDIA = 0x10DE
_CUDA = range(1000, 100_000)


@dataclass(frozen=True, slots=True)
class Answer:
    """The values that the driver's own tools report."""

    driver: Version | Missing
    """The kernel driver's version."""
    cuda: Version | Missing
    """The CUDA version of libcuda."""
    gpus: tuple[Gpu, ...] | Missing
    """The GPUs that answered."""
    lost: tuple[str, ...] = ()
    """Errors about GPUs that exist but did not answer."""


def is_driver(text: str) -> bool:
    """Return whether a text is exactly a driver version."""
    return _DRIVER.fullmatch(text.strip()) is not None


def driver_version(text: str) -> Version | Missing:
    """Return the driver version from a text that is exactly a version."""
    return Version(text.strip()) if is_driver(text) else quoted(text)


def quoted(text: str) -> Missing:
    """Return why a text has no driver version, with its first line."""
    line = first_line(text)
    return Missing(f"no driver version in `{line}`" if line else "empty answer", ReasonKind.UNREADABLE)


def first_line(text: str) -> str:
    """Return the first line of a program's output, truncated for a message."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = "".join(sign if sign.isprintable() else "\ufffd" for sign in line)  # no escapes
    return line if len(line) <= _QUOTED else line[:_QUOTED] + "…"


def cuda_version(number: int) -> Version | Missing:
    """Return the CUDA version of a driver's number such as 12040."""
    if number not in _CUDA:
        return Missing(f"{number} is not a CUDA version", ReasonKind.UNREADABLE)
    return Version(f"{number // 1000}.{number % 1000 // 10}")


def pci_address(text: str) -> str:
    """Return a PCI address in the form of sysfs (``0000:01:00.0``); an empty string for other texts."""
    match = _ADDRESS.fullmatch(text.strip().lower())
    return f"{int(match['domain'], 16):04x}:{match['rest']}" if match else ""


def pci_id(number: int) -> str:
    """Return vendor and device from NVML's number, which has the device in its upper half."""
    return f"{number & 0xFFFF:04x}:{number >> 16:04x}" if number & 0xFFFF == _NVIDIA else ""


_NEW = ("compute_cap", "mig.mode.current")  # older drivers reject a query with an unknown field
SMI_FIELDS = ("driver_version", "name", "memory.total", "pci.bus_id", "pci.device_id", *_NEW)
_REFUSED = "is not a valid field to query"
_NOT_KNOWN = re.compile(r"\[.*\]|N/A|ERR!|")
_MIB = 1 << 20


def ask_smi(places: Places) -> Answer | Missing:
    """Query nvidia-smi for the driver and the GPUs; it has no query for CUDA."""
    program = places.find("nvidia-smi")
    if program is None:
        # Under WSL, only login shells reliably have this folder on PATH.
        program = str(places.root / WSL_LIBRARIES / "nvidia-smi")
        if not os.access(program, os.X_OK):
            return Missing("not found on PATH", ReasonKind.NONE)
    fields: tuple[str, ...] = SMI_FIELDS
    done = _query(places, program, fields)
    if isinstance(done, Completed) and _REFUSED in done.stdout + done.stderr:
        fields = tuple(field for field in SMI_FIELDS if field not in _NEW)
        done = _query(places, program, fields)
    if isinstance(done, Missing):
        return done
    answer = parse_smi(done.stdout if done.stdout.strip() else done.stderr, fields)
    if done.status != 0 and isinstance(answer.driver, Missing):
        return Missing(f"{answer.driver.reason} (exit status {done.status})", ReasonKind.FAILED)
    return answer


def _query(places: Places, program: str, fields: Sequence[str]) -> Completed | Missing:
    return places.run(program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def parse_smi(text: str, fields: Sequence[str] = SMI_FIELDS) -> Answer:
    """Return the answer from the output of ``nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits``.

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
    gpus = tuple(_smi_gpu(row) for row in known)
    cuda = Missing("not asked", ReasonKind.NONE)
    if not known:
        return Answer(driver, cuda, Missing(said[0] if said else "lists no GPU", ReasonKind.UNREADABLE))
    return Answer(driver, cuda, gpus, tuple(said))


def _smi_gpu(row: dict[str, str]) -> Gpu:
    known = {field: "" if _NOT_KNOWN.fullmatch(cell) else cell for field, cell in row.items()}
    memory, device, capability = known["memory.total"], known["pci.device_id"], known.get("compute_cap", "")
    return Gpu(
        name=known["name"],
        compute_capability=Version(capability) if re.fullmatch(r"\d{1,3}\.\d{1,3}", capability) else None,
        memory=None if (size := whole_number(memory)) is None else size * _MIB,
        pci_id=pci_id(int(device, 16)) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", device) else "",
        pci_address=pci_address(known["pci.bus_id"]),
        mig=known.get("mig.mode.current") == "Enabled",
    )


_FABRIC = {1: FabricState.NOT_STARTED, 2: FabricState.IN_PROGRESS, 3: FabricState.COMPLETED}
"""``NVML_GPU_FABRIC_STATE_*`` of nvml.h; 0 means that the GPU has no NVSwitch."""
_NVML_CHILD = Path(__file__).with_name("nvml_child.py")


def _ask_nvml(loader: Loader) -> Answer | Missing:
    """Query NVML for the driver, its CUDA version and the GPUs. Nothing is run if its library does not exist."""
    places = loader.places
    library = loader.find(places.library)
    if isinstance(library, Missing):
        return library
    changes = {}
    if not library.known:  # nvidia-ml-py loads the bare name
        known = places.environ.get("LD_LIBRARY_PATH")
        changes["LD_LIBRARY_PATH"] = os.pathsep.join([str(library.path.parent), *([known] if known else [])])
    module = importlib.util.find_spec("pynvml")
    if module is None:
        return Missing("nvidia-ml-py is not installed", ReasonKind.NONE)
    output = library.ask(places, str(_NVML_CHILD), str(Path(str(module.origin)).parent), **changes)
    return output if isinstance(output, Missing) else parse_nvml(output)


def parse_nvml(text: str) -> Answer | Missing:
    """Return the answer from the child's output."""
    try:
        data = json.loads(text)
        lost = tuple(f"GPU {index}: {gpu['error']}" for index, gpu in enumerate(data["gpus"]) if "error" in gpu)
        gpus = tuple(_nvml_gpu(gpu["value"]) for gpu in data["gpus"] if "value" in gpu)
        cuda = _nvml_value(data["cuda"])
        driver = _nvml_value(data["driver"])
        return Answer(
            driver if isinstance(driver, Missing) else driver_version(str(driver)),
            cuda if isinstance(cuda, Missing) else cuda_version(int(cuda)),
            Missing(data["count"]["error"], ReasonKind.FAILED) if "error" in data["count"] else gpus,
            lost,
        )
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        return Missing(f"unreadable answer: {error}", ReasonKind.UNREADABLE)


def _nvml_value(answer: dict[str, Any]) -> Any:
    return Missing(answer["error"], ReasonKind.FAILED) if "error" in answer else answer["value"]


def _nvml_gpu(asked: dict[str, Any]) -> Gpu:
    answers = {name: answer.get("value") for name, answer in asked.items()}
    capability = answers["capability"]
    return Gpu(
        name=answers["name"] or "",
        compute_capability=Version(".".join(str(part) for part in capability)) if capability else None,
        memory=answers["memory"],
        pci_id=pci_id(answers["device"] or 0),
        pci_address=pci_address(answers["address"] or ""),
        mig=answers["mig"] == 1,
        fabric=_FABRIC.get(answers.get("fabric") or 0),
    )


class Nvidia:
    """The driver's own tools on one machine. The first access runs a tool.

    Attributes:
        places: Where to look.
        loader: The loader that finds its libraries.
    """

    def __init__(self, places: Places, loader: Loader | None = None) -> None:
        self.places = places
        self.loader = loader or Loader(places)

    @cached_property
    def nvml(self) -> Answer | Missing:
        """The answer of NVML."""
        return _ask_nvml(self.loader)

    @cached_property
    def smi(self) -> Answer | Missing:
        """The answer of nvidia-smi."""
        return ask_smi(self.places)

    def tools(self) -> list[tuple[str, OriginKind, Callable[[], Answer | Missing]]]:
        """Return the tools by name and kind, the better one first. Calling one runs it."""
        return [
            ("NVML", OriginKind.NVML, lambda: self.nvml),
            ("nvidia-smi", OriginKind.NVIDIA_SMI, lambda: self.smi),
        ]
