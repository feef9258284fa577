"""Read the output of drivers, the kernel and tools: `nvidia-smi`, `rocminfo`, `modinfo`, `lspci`, `deviceQuery`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from tenv.host.amd import parse_amd_smi, parse_rocm_smi, parse_rocminfo
from tenv.host.pasted.clean_text import Line
from tenv.host.pasted.values import Item, PastedEntry, PastedGpu, PasteLayout, gpu_lines, kernel, lacking, platform
from tenv.host.report import AmdGpu

_MODULE = re.compile(
    r"NVRM(?: version)?:\s*(?:loading )?NVIDIA UNIX (?P<open>Open )?(?P<machine>\S+ )?Kernel Module\s+"
    r"(?:for (?P<of>\S+)\s+)?(?P<version>\d+(?:\.\d+)+)"
)
_MISMATCH = re.compile(r"this kernel module has the version (?P<version>\d+(?:\.\d+)+)")
_REFUSED = re.compile(
    r"NVRM: The NVIDIA GPU (?P<address>[0-9A-Fa-f]{4}:\S+) \(PCI ID: (?P<id>10de:[0-9a-f]{4})\)"
    r"(?P<open>.* not supported by open )?"
)
_FOLDED = 3
"""How many lines of the kernel a sentence may take to the word that counts."""


def _module(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the values of the kernel module's own lines, in ``/proc/driver/nvidia/version`` and the kernel's log."""
    gpus: dict[str, PastedGpu] = {}
    first = 0
    for index, line in enumerate(lines):
        if match := _MODULE.search(line.text):
            yield PastedEntry(Item.DRIVER, match["version"], line.number)
            yield PastedEntry(Item.MODULE, "open" if match["open"] else "proprietary", line.number)
            if found := platform(match["of"] or match["machine"] or ""):
                yield PastedEntry(Item.PLATFORM, found, line.number)
        elif "NVRM:" in line.text:
            head = line.text[line.text.index("NVRM:") :]
            behind = (re.sub(r"^.*?NVRM:", "", one.text) for one in lines[index + 1 : index + _FOLDED])
            sentence = " ".join(" ".join((head.replace("#012NVRM:", " "), *behind)).split())
            if "API mismatch" in head and (match := _MISMATCH.search(sentence)):
                own = [one for one in lines[index : index + _FOLDED] if match["version"] in one.text]
                yield PastedEntry(Item.DRIVER, match["version"], own[-1].number)
            elif match := _REFUSED.match(sentence):
                first = first or line.number
                gpus.setdefault(match["address"], PastedGpu("", address=match["address"], pci_id=match["id"]))
                if match["open"]:
                    yield PastedEntry(Item.MODULE, "open", line.number)
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpus.values()), first)


MODULE_LINE = PasteLayout("the kernel module's lines", _module)

_FIELD = re.compile(r"^(?P<label>filename|version|license):\s+(?P<words>\S.*)$")
_KERNEL_OF_FILE = re.compile(r"/lib/modules/(?P<kernel>[^/]+)/.*/nvidia\.ko")


def _modinfo(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    within = False
    for line in lines:
        match = _FIELD.match(line.text)
        if match is None:
            continue
        words = match["words"].strip()
        if match["label"] == "filename":
            within = "/nvidia.ko" in words
            if release := _KERNEL_OF_FILE.search(words):
                yield from kernel(f"Linux {release['kernel']}", line.number)
        elif within and match["label"] == "version" and re.fullmatch(r"\d+(\.\d+)+", words):
            yield PastedEntry(Item.DRIVER, words, line.number)
        elif within and match["label"] == "license":
            yield PastedEntry(Item.MODULE, "open" if "GPL" in words else "proprietary", line.number)


MODINFO = PasteLayout("modinfo nvidia", _modinfo)

_ON_BUS = r"(?P<address>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"
_LSPCI = re.compile(
    rf"^\s*{_ON_BUS} (?:VGA compatible controller|3D controller|Display controller)(?: \[03\w\w\])?: "
    r"NVIDIA Corporation (?:Device (?P<device>[0-9a-f]{4})|(?P<chip>[^\[\]]+?))?"
    r"(?: \[(?!10de:)(?P<name>[^\]]+)\])?(?: \[(?P<id>10de:[0-9a-f]{4})\])?\s*(?:\(|$)"
)


def _lspci(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the GPUs on the PCI bus; one without a name in the PCI database has its id alone."""
    found = [(line.number, match) for line in lines if (match := _LSPCI.match(line.text))]
    if found:
        gpus = (
            PastedGpu(
                match["name"] or "",
                address=match["address"],
                pci_id=match["id"] or (f"10de:{match['device']}" if match["device"] else ""),
            )
            for _, match in found
        )
        yield PastedEntry(Item.GPUS, tuple(gpus), found[0][0])


LSPCI = PasteLayout("lspci", _lspci)

_LSHW = re.compile(r"^\s*(?P<label>product|vendor|bus info|\*-[\w:]+):?(?:\s+(?P<words>\S.*))?$")
_BUSINFO = re.compile(rf"^pci@{_ON_BUS}\s+(?:\S+\s+)?display\s+(?P<product>\S.*)$")


def _lshw(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    gpus: list[PastedGpu] = []
    first, within, product = 0, False, ""
    for line in lines:
        if match := _BUSINFO.match(line.text):
            if name := _marketed(match["product"]):
                gpus.append(PastedGpu(name, address=match["address"]))
                first = first or line.number
        elif match := _LSHW.match(line.text):
            label, words = match["label"], (match["words"] or "").strip()
            if label.startswith("*-"):
                within, product = label.startswith("*-display"), ""
            elif within and label == "product":
                product = words
            elif within and label == "vendor" and "NVIDIA" in words:
                gpus.append(PastedGpu(_marketed(product)))
                first = first or line.number
            elif within and label == "bus info" and gpus and words.startswith("pci@"):
                gpus[-1] = replace(gpus[-1], address=gpus[-1].address or words.removeprefix("pci@"))
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpus), first)


def _marketed(product: str) -> str:
    """Return the name that a GPU is sold by, ``GeForce RTX 4090`` of ``AD102 [GeForce RTX 4090]``."""
    match = re.search(r"\[(?!10[dD][eE])([^\]]+)\]", product)
    return match[1] if match else ""


LSHW = PasteLayout("lshw", _lshw)

_DEVICE_OF = re.compile(r"^\s*(?:Graphics:\s+)?(?P<label>Device-\d+|Display|OpenGL|API|Audio|Network):")
_CARD = re.compile(r"Device-\d+: NVIDIA (?:(?P<chip>[^\[\]]+?) )?\[(?P<name>[^\]]+)\]")
_CARD_DRIVER = re.compile(r"\bdriver: nvidia v: (?P<version>\d+(?:\.\d+)+)")
_CARD_BUS = re.compile(rf"\bbus[- ]ID: {_ON_BUS}")
_CARD_ID = re.compile(r"\bchip-ID: (?P<id>10de:[0-9a-f]{4})\b")


def _inxi(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the NVIDIA cards of ``inxi -G``, whose words for a device may be on one line or on many."""
    starts = [index for index, line in enumerate(lines) if _DEVICE_OF.match(line.text)]
    gpus: list[PastedGpu] = []
    first = 0
    for start, end in pairwise([*starts, len(lines)]):
        block = lines[start:end]
        if (card := _CARD.search(block[0].text)) is None:
            continue
        words = " ".join(line.text for line in block)
        address, device = _CARD_BUS.search(words), _CARD_ID.search(words)
        first = first or block[0].number
        gpus.append(
            PastedGpu(
                card["name"], address=address["address"] if address else "", pci_id=device["id"] if device else ""
            )
        )
        for line in block:
            if match := _CARD_DRIVER.search(line.text):
                yield PastedEntry(Item.DRIVER, match["version"], line.number)
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpus), first)


INXI = PasteLayout("inxi", _inxi)

_PNP = re.compile(r"^\s*(?P<name>NVIDIA \S.*?)\s{2,}(?:OK\s+|Display\s+)*PCI\\VEN_10DE&DEV_[0-9A-Fa-f]{4}")


def _pnp(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    found = [(line.number, PastedGpu(match["name"])) for line in lines if (match := _PNP.match(line.text))]
    if found:
        yield PastedEntry(Item.GPUS, tuple(gpu for _, gpu in found), found[0][0])


PNP_DEVICES = PasteLayout("Get-PnpDevice", _pnp)


_HEADER = re.compile(
    r"NVIDIA-SMI\s+(?P<smi>\d+(?:\.\d+)+)\s+(?:Driver|KMD)\s+Version:\s*(?P<driver>\d+(?:\.\d+)+)"
    r"(?:\s+CUDA\s+(?:UMD\s+)?Version:\s*(?P<cuda>[^\s|]+))?"
)
_ADDRESS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]|N/A"
_FIRST = re.compile(
    rf"^[\s|#]*(?P<index>\d{{1,3}})\s+(?P<name>\S.*?)\s+(?P<mode>On|Off|WDDM|TCC|MCDM|N/A)\s*\|\s*(?P<address>{_ADDRESS})"
    r"\s*(?:On|Off|N/A)?\s*\|"
)
_MEMORY = re.compile(r"\|\s*\d+\s*MiB\s*/\s*(?P<total>\d{1,9})\s*MiB\s*\|")
_MIG_MODE = re.compile(r"\|\s*(?P<mode>Enabled|Disabled)\*?\s*\|?\s*$")
_BEHIND = 4
"""How many lines a GPU takes."""


def _table(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for index, line in enumerate(lines):
        if match := _HEADER.search(line.text):
            yield from _header(match, line.number)
        elif "Persistence-M" in line.text and "Bus-Id" in line.text:
            pass  # the header of the columns on Linux
        elif "TCC/WDDM" in line.text or re.search(r"Name\s+(TCC|Driver-Model)\b", line.text):
            yield PastedEntry(Item.PLATFORM, "win-64", line.number)
            yield PastedEntry(Item.WSL, False, line.number)
        elif _FIRST.match(line.text) and not _belongs(lines, index):
            yield _gpus(lines, index)


def _header(match: "re.Match[str]", line: int) -> Iterator[PastedEntry]:
    yield PastedEntry(Item.DRIVER, match["driver"], line)
    if match["smi"] != match["driver"]:  # the Linux nvidia-smi with the Windows driver
        yield PastedEntry(Item.DRIVER_IN_WSL, match["smi"], line)
        yield PastedEntry(Item.WSL, True, line)
    if match["cuda"]:
        known = re.fullmatch(r"\d+\.\d+", match["cuda"])
        yield PastedEntry(Item.CUDA, match["cuda"] if known else None, line, match["cuda"][:40])


def _belongs(lines: Sequence[Line], index: int) -> bool:
    """Return whether a GPU's row continues a table that began above it."""
    return any(_FIRST.match(line.text) for line in lines[max(0, index - _BEHIND - 1) : index])


def _gpus(lines: Sequence[Line], start: int) -> PastedEntry:
    gpus, index, last = [], start, start
    seen: set[str] = set()
    while index < len(lines) and index - last <= _BEHIND + 1:
        match = _FIRST.match(lines[index].text)
        if match and match["index"] not in seen:
            seen.add(match["index"])
            gpus.append(_table_gpu(match, lines[index + 1 : index + _BEHIND]))
            last = index
        elif match:
            break
        index += 1
    return PastedEntry(Item.GPUS, tuple(gpus), lines[start].number)


def _table_gpu(match: "re.Match[str]", behind: Sequence[Line]) -> PastedGpu:
    memory, mig = None, None
    for line in behind:
        if _FIRST.match(line.text) or line.text.lstrip().startswith("+"):
            break
        if memory is None and (found := _MEMORY.search(line.text)):
            memory = int(found["total"])
        elif found := _MIG_MODE.search(line.text):
            mig = found["mode"] == "Enabled"
    address = "" if match["address"] == "N/A" else match["address"]
    return PastedGpu(match["name"].strip(), memory, address=address, mig=mig)


SMI_TABLE = PasteLayout("nvidia-smi", _table)


def _list(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    return gpu_lines([line if "UUID:" in line.text else Line(line.number, "") for line in lines])


SMI_LIST = PasteLayout("nvidia-smi -L", _list)


_BEGIN = re.compile(r"=+\s*NVSMI LOG\s*=+")
_ATTACHED = re.compile(r"^\s*Attached GPUs\s*:\s*\d+\s*$")
_BEFORE = 5
"""How many lines precede the count of GPUs, and separate a GPU from its name."""

_QUERY_GPU = re.compile(r"^\s*GPU (?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_PAIR = re.compile(r"^(?P<indent>\s*)(?P<label>[A-Za-z][^:]*?)\s*:\s*(?P<words>.*)$")
_HEAD = re.compile(r"^(?P<indent>\s*)(?P<label>[A-Za-z][\w /-]*?)\s*$")
_VERSIONS = {
    "driver version": Item.DRIVER,
    "kmd version": Item.DRIVER,
    "cuda version": Item.CUDA,
    "cuda umd version": Item.CUDA,
}


def _query(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    start = _query_start(lines)
    if start is None:
        return
    gpus: list[PastedGpu] = []
    first, section = 0, ""
    for line in lines[start + 1 :]:
        if gpus and _BEGIN.search(line.text):
            break  # another run: the first one counts
        if match := _QUERY_GPU.match(line.text):
            gpus.append(PastedGpu("", address=match["address"]))
            first, section = first or line.number, ""
        elif match := _PAIR.match(line.text):
            label, words = match["label"].lower(), match["words"].strip()
            if not gpus and label in _VERSIONS:
                found = re.match(r"\d+(\.\d+)+", words)
                yield PastedEntry(_VERSIONS[label], found[0] if found else None, line.number, words[:40])
            elif gpus:
                gpus[-1] = _with(gpus[-1], section, label, words)
        elif match := _HEAD.match(line.text):
            section = match["label"].lower()
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpus), first)


_FABRIC = ("not started", "in progress", "completed")


def _query_start(lines: Sequence[Line]) -> int | None:
    """Return the start of the tree; users often omit its first lines."""
    for index, line in enumerate(lines):
        if _BEGIN.search(line.text):
            return index
        if _ATTACHED.match(line.text):
            return max(index - _BEFORE, -1)
        if _QUERY_GPU.match(line.text) and any(
            "Product Name" in behind.text for behind in lines[index : index + _BEFORE]
        ):
            return index - 1
    return None


def _with(gpu: PastedGpu, section: str, label: str, words: str) -> PastedGpu:
    """Return a GPU with the value of one line of its section."""
    if label == "product name" and not gpu.name and not lacking(words):
        return replace(gpu, name=words)
    if section == "fb memory usage" and label == "total" and (match := re.match(r"(\d{1,9})\s*MiB", words)):
        return replace(gpu, memory=int(match[1]))
    if section == "mig mode" and label == "current" and words in ("Enabled", "Disabled"):
        return replace(gpu, mig=words == "Enabled")
    if section == "fabric" and label == "state" and words.lower() in _FABRIC:
        return replace(gpu, fabric=words.lower().replace(" ", "-"))
    return gpu


SMI_QUERY = PasteLayout("nvidia-smi -q", _query)


def _rows(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield what ``nvidia-smi --query-gpu=… --format=csv`` prints below its headers."""
    for index, line in enumerate(lines):
        heads = [re.sub(r"\s*\[.*\]", "", head.strip().lower()) for head in line.text.split(",")]
        if "name" not in heads or not {"driver_version", "memory.total", "compute_cap"}.intersection(heads):
            continue
        rows = []
        for after in lines[index + 1 :]:
            cells = [cell.strip() for cell in after.text.split(",")]
            if len(cells) != len(heads):
                break
            rows.append(dict(zip(heads, cells, strict=True)))
        if rows:
            driver = rows[0].get("driver_version", "")
            if re.fullmatch(r"\d+(\.\d+)+", driver):
                yield PastedEntry(Item.DRIVER, driver, line.number + 1)
            yield PastedEntry(Item.GPUS, tuple(map(_of_row, rows)), line.number + 1)
            return


def _of_row(row: dict[str, str]) -> PastedGpu:
    memory, capability = re.match(r"(\d{1,9})\b", row.get("memory.total", "")), row.get("compute_cap", "")
    mode = row.get("mig.mode.current")
    return PastedGpu(
        row["name"],
        int(memory[1]) if memory else None,
        capability if re.fullmatch(r"\d{1,2}\.\d", capability) else "",
        row.get("pci.bus_id", ""),
        {"Enabled": True, "Disabled": False}.get(mode or ""),
    )


SMI_ROWS = PasteLayout("nvidia-smi --query-gpu", _rows)


_DEVICE = re.compile(r"^\s*Device \d+: \"(?P<name>[^\"]+)\"")
_DRIVER = re.compile(r"^\s*CUDA Driver Version / Runtime Version\s+(?P<cuda>\d+\.\d+)\s*/")
_CAPABILITY = re.compile(r"^\s*CUDA Capability Major/Minor version number:\s+(?P<capability>\d{1,2}\.\d)\s*$")


def _devices(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    gpus: list[PastedGpu] = []
    first = 0
    for line in lines:
        if match := _DEVICE.match(line.text):
            gpus.append(PastedGpu(match["name"]))
            first = first or line.number
        elif match := _DRIVER.match(line.text):
            yield PastedEntry(Item.CUDA, match["cuda"], line.number)
        elif gpus and (match := _CAPABILITY.match(line.text)):
            gpus[-1] = replace(gpus[-1], capability=match["capability"])
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpus), first)


DEVICE_QUERY = PasteLayout("deviceQuery", _devices)

_STARTED = re.compile(
    r"\bcuda:(?P<torch>\d{1,3}) (?P<name>\S.*?) : \w+\s*$|"
    r"^\s*Device (?P<number>\d{1,3}): (?P<named>[^\",][^,]*), compute capability (?P<capability>\d{1,2}\.\d)\b"
)


def _started(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    """Yield the GPUs that ComfyUI and llama.cpp name when they start, each once."""
    gpus: dict[str, tuple[int, PastedGpu]] = {}
    for line in lines:
        if match := _STARTED.search(line.text):
            gpu = PastedGpu(match["name"] or match["named"], capability=match["capability"] or "")
            gpus.setdefault(match["torch"] or match["number"], (line.number, gpu))
    if gpus:
        yield PastedEntry(Item.GPUS, tuple(gpu for _, gpu in gpus.values()), next(iter(gpus.values()))[0])


STARTED = PasteLayout("the start of a program", _started)


_LOADED = re.compile(r"ROCk module version (\d+(?:\.\d+)+) is loaded")
_SMI = re.compile(r"AMDSMI Tool:.*?ROCm version:\s*(?P<rocm>[\d.]+|N/A)(?:\s*\|\s*amdgpu version:\s*(?P<driver>\S+))?")
_MODEL = re.compile(
    r"GPU models and configuration\s*:\s*(?P<name>AMD .*?|Radeon .*?)(?:\s*\((?P<gfx>gfx[0-9a-f]+)\S*\))?\s*$"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)+")
_ARCHITECTURE = re.compile(r"TARGET_GRAPHICS_VERSION|target_graphics_version")  # with --json, the second


def _amd_gpus(found: Sequence[AmdGpu], line: int) -> Iterator[PastedEntry]:
    if found:
        yield PastedEntry(Item.AMD_GPUS, tuple(PastedGpu(gpu.name, capability=gpu.gfx) for gpu in found), line)


def _first(lines: Sequence[Line], pattern: str | re.Pattern[str]) -> int:
    return next((line.number for line in lines if re.search(pattern, line.text)), 1)


def _rocminfo(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        if match := _LOADED.search(line.text):
            yield PastedEntry(Item.AMD_DRIVER, match[1], line.number)
        if line.text.strip() == "WSL environment detected.":
            yield PastedEntry(Item.WSL, True, line.number)
    text = "\n".join(line.text for line in lines)
    yield from _amd_gpus(parse_rocminfo(text), _first(lines, r"^\s*Name:\s+gfx"))


def _amd_smi(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        match = _SMI.search(line.text)
        if match and match["rocm"] != "N/A":
            yield PastedEntry(Item.ROCM, match["rocm"], line.number)
        if match and match["driver"] and _NUMBER.fullmatch(match["driver"]):
            yield PastedEntry(Item.AMD_DRIVER, match["driver"], line.number)
    text = "\n".join(line.text for line in lines)
    if _ARCHITECTURE.search(text):
        yield from _amd_gpus(parse_amd_smi(text), _first(lines, _ARCHITECTURE))


def _rocm_smi(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    text = "\n".join(line.text for line in lines)
    yield from _amd_gpus(parse_rocm_smi(text), _first(lines, r"^\s*GPU(\[\d+\]|\s+(NODE\s+)?DID\b)"))


def _collected(lines: Sequence[Line]) -> Iterator[PastedEntry]:
    for line in lines:
        if match := _MODEL.search(line.text):
            yield from _amd_gpus([AmdGpu(match["name"], match["gfx"] or "")], line.number)


ROCMINFO = PasteLayout("rocminfo", _rocminfo)
AMD_SMI = PasteLayout("amd-smi", _amd_smi)
ROCM_SMI = PasteLayout("rocm-smi", _rocm_smi)
COLLECTED_AMD = PasteLayout("collect_env with ROCm", _collected)
