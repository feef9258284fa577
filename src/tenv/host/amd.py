"""Detect the version of AMD's kernel driver, and the AMD GPUs with their architectures.

Nothing of ROCm need be installed: the kernel module and KFD's topology have both, and AMD's tools add names.
"""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from tenv.core.versions import Version
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.places import Places, exists, read
from tenv.host.report import AmdGpu, KfdAccess

_VERSION = "/sys/module/amdgpu/version"
_MODULE = "/sys/module/amdgpu"
_HEXADECIMAL = 16
_NODES = "sys/class/kfd/kfd/topology/nodes"
_TARGET = re.compile(r"^gfx_target_version[ \t]+([0-9]{1,7})$", re.MULTILINE)
_SHOWHW = re.compile(r"^[ \t]*GPU[ \t]+(NODE[ \t]+)?DID\b.*\bVBIOS\b.*$", re.MULTILINE)
_HARDWARE = re.compile(r"^[ \t]*(\d+)[ \t]+(.*\b[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\b.*)$", re.MULTILINE)
_OVERRIDE = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{1,2})")
_DEVICE = "/dev/kfd"
_NUMBER = re.compile(r"(?a)\d{1,4}(\.\d{1,4}){1,3}")


def probe_driver(places: Places) -> Fact[Version] | Missing:
    """Return the version of the amdgpu module.

    AMD's package amdgpu-dkms has one; the module of a distribution's kernel has none (rocm_smi.py reads the same file).
    """
    text = read(places.at(_VERSION))
    if isinstance(text, str):
        match = _NUMBER.match(text.strip())
        if match is None:
            return Missing(f"{_VERSION} has no version", ReasonKind.UNREADABLE)
        return Fact(Version(match.group()), _VERSION, OriginKind.KERNEL)
    if exists(places.at(_MODULE)):
        return Missing("amdgpu is the kernel's own module, which has no version", ReasonKind.NONE)
    return Missing("the module amdgpu is not loaded", ReasonKind.NONE)


def gfx_of_kfd(number: int) -> str:
    """Return the architecture of a ``gfx_target_version``: 90010 is gfx90a; an empty string for a processor's node.

    The number is major * 10000 + minor * 100 + step, and the name has minor and step in hexadecimal (rocm-bootstrap
    0.3.0 and Debian's rocm_agent_enumerator read it so).
    """
    return f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}" if number else ""


def gfx_of_override(text: str) -> str:
    """Return the architecture of a value of HSA_OVERRIDE_GFX_VERSION: ``9.0.10`` is gfx90a; empty for an odd value."""
    match = _OVERRIDE.fullmatch(text.strip())
    if match is None:
        return ""
    major, minor, step = map(int, match.groups())
    return f"gfx{major}{minor:x}{step:x}" if major and max(minor, step) < _HEXADECIMAL else ""


def parse_rocminfo(text: str) -> tuple[AmdGpu, ...]:
    """Return the GPUs in the output of ``rocminfo``."""
    found = []
    for agent in re.split(r"^[ \t]*Agent[ \t]+\d+[ \t]*$", text, flags=re.MULTILINE)[1:]:
        gfx = re.search(r"^[ \t]*Name:[ \t]+(gfx[0-9a-f]+)[ \t]*$", agent, re.MULTILINE)
        name = re.search(r"^[ \t]*Marketing Name:[ \t]*(\S.*?)?[ \t]*$", agent, re.MULTILINE)
        if gfx:
            found.append(AmdGpu(name[1] or "" if name else "", gfx[1]))
    return tuple(found)


def parse_amd_smi(text: str) -> tuple[AmdGpu, ...]:
    """Return the GPUs in the output of ``amd-smi static --asic``, as text or with ``--json``.

    A prompt with the command may come before the JSON.
    """
    start = re.search(r"^[\[{]", text, re.MULTILINE)
    try:
        rows, _ = json.JSONDecoder().raw_decode(text, start.start() if start else 0)
    except (ValueError, RecursionError):
        rows = _blocks(text)
    if isinstance(rows, dict):
        rows = rows.get("gpu_data", [])
    asics = (row.get("asic", row) for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()
    return tuple(
        AmdGpu(_text(asic, "market_name"), _text(asic, "target_graphics_version"))
        for asic in asics
        if isinstance(asic, dict)
    )


def _blocks(text: str) -> list[dict[str, str]]:
    blocks = re.split(r"^[ \t]*GPU:[ \t]*\d+[ \t]*$", text, flags=re.MULTILINE)[1:]
    return [
        {key.lower(): words.strip() for key, words in re.findall(r"^[ \t]*(\w+):[ \t]*(\S.*)$", block, re.MULTILINE)}
        for block in blocks
    ]


def _text(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) and value != "N/A" else ""


def parse_rocm_smi(text: str) -> tuple[AmdGpu, ...]:
    """Return the GPUs in the output of ``rocm-smi --showproductname``, or in the table of ``rocm-smi --showhw``.

    The table has no names, and architectures from ROCm 6 on (its column GFX VER; showAllConciseHw of rocm_smi.py).
    """
    names: dict[str, str] = {}
    archs: dict[str, str] = {}
    for number, key, words in re.findall(r"^GPU\[(\d+)\]\s*:\s*([\w ]+?):[ \t]*(\S.*?)[ \t]*$", text, re.MULTILINE):
        if key.lower() == "card series" and words != "N/A":
            names[number] = words
        elif key.lower() == "gfx version" and words.startswith("gfx"):
            archs[number] = words
        else:
            names.setdefault(number, "")
    _, header, table = text.partition(found[0]) if (found := _SHOWHW.search(text)) else ("", "", "")
    for number, row in _HARDWARE.findall(table) if header else ():
        names.setdefault(number, "")
        if gfx := re.search(r"\bgfx[0-9a-f]+\b", row):
            archs.setdefault(number, gfx[0])
    return tuple(AmdGpu(name, archs.get(number, "")) for number, name in names.items())


def probe(places: Places) -> Fact[tuple[AmdGpu, ...]] | Missing:
    """Return the AMD GPUs; a name only if a tool of AMD answers, which runs only where KFD has a GPU."""
    listed = tuple(_of_kfd(places))
    if not listed:
        text = f"/{_NODES}: " + ("no node is a GPU" if exists(places.root / _NODES) else "No such file or directory")
        return Missing(text, ReasonKind.NONE)
    for name, arguments, parse in (
        ("rocminfo", (), parse_rocminfo),
        ("amd-smi", ("static", "--asic", "--json"), parse_amd_smi),
        ("rocm-smi", ("--showproductname",), parse_rocm_smi),
    ):
        program = places.find(name)
        done = places.run(program, *arguments) if program else None
        found = () if done is None or isinstance(done, Missing) else parse(done.stdout)
        if len(found) == len(listed) and all(gpu.gfx in ("", one.gfx) for gpu, one in zip(found, listed, strict=True)):
            named = tuple(AmdGpu(gpu.name, one.gfx) for gpu, one in zip(found, listed, strict=True))
            return Fact(named, f"/{_NODES}, {name}", OriginKind.KERNEL)
    return Fact(listed, f"/{_NODES}", OriginKind.KERNEL)


def _of_kfd(places: Places) -> Iterator[AmdGpu]:
    nodes = (places.root / _NODES).glob("*/properties")
    for file in sorted(nodes, key=lambda path: (len(path.parent.name), path.parent.name)):
        text = read(file)
        match = _TARGET.search(text) if isinstance(text, str) else None
        if match and int(match[1]):
            yield AmdGpu("", gfx_of_kfd(int(match[1])))


def probe_kfd(places: Places) -> Fact[KfdAccess] | Missing:
    """Return whether this user may open KFD's device, which ROCm reads and writes, and the group of the device."""
    path = places.at(_DEVICE)
    try:
        number = path.stat().st_gid
    except OSError as error:
        absent = isinstance(error, FileNotFoundError | NotADirectoryError)
        kind = ReasonKind.NONE if absent else ReasonKind.UNREADABLE
        return Missing(f"{_DEVICE}: {error.strerror}", kind)
    return Fact(KfdAccess(os.access(path, os.R_OK | os.W_OK), _group(number)), _DEVICE, OriginKind.KERNEL)


def _group(number: int) -> str:
    """Return the name of a group; its number if it has none, as in a container."""
    try:
        import grp  # late: Windows has none
    except ImportError:
        return str(number)
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


AMD_DRIVER = HostField(
    label="amd driver",
    meaning="the version of AMD's kernel module (amdgpu-dkms); the module of a distribution's kernel has none",
    form='`"6.14.14"`',
    probe=lambda scan: probe_driver(scan.places),
)

AMD_GPUS = HostField(
    label="amd gpus",
    meaning="the AMD GPUs that KFD lists, with the architecture that a build compiles for",
    form="a list of `name` (or empty), `gfx`",
    probe=lambda scan: probe(scan.places),
    show=lambda gpus: [f"{gpu.name or 'an AMD GPU'}, {gpu.gfx}" for gpu in gpus],
    lane=Lane.ALONE,
)

KFD = HostField(
    label="amd kfd",
    meaning="whether this user may open `/dev/kfd`, without which ROCm finds no GPU, and the group of the device",
    form="`opens` (true or false), `group`",
    probe=lambda scan: probe_kfd(scan.places),
    show=lambda kfd: [f"this user {'may' if kfd.opens else 'may not'} open {_DEVICE} (group {kfd.group})"],
)
