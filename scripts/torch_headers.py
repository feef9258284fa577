"""Write the facts about the headers in torch's wheels on the index in use: the parts of CUDA that they include.

    python scripts/torch_headers.py 2.4 2.15 > src/tenv/facts/data/torch_headers.toml

Reads metadata and headers from the wheels by ranges, about 10 MB of each. An include of ``torch/include`` that torch
does not bring itself belongs to the wheel of NVIDIA that holds a header of this name; a name that no wheel holds is a
note. ``find-links`` in pip's configuration must not name a folder with torch, which would hide the files of the index.
"""

import contextlib
import io
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement

from tenv.core.errors import TenvError
from tenv.core.names import WheelFile, normalize
from tenv.core.versions import Version
from tenv.core.wheel_platforms import evaluated, marker_values
from tenv.project.context import Context
from tenv.sources.wheels.metadata import open_wheel
from tenv.sources.wheels.urls import requirements_at

HEAD = """\
# The parts of CUDA that the headers of torch's wheels on the default index include, and the Pythons of these wheels.
# scripts/torch_headers.py writes it, from the newest patch release of each minor.
# Columns
#   python      the Pythons that have a wheel
#   parts       the parts that torch/include needs, by the extras of the wheel cuda-toolkit
#   beside      the wheels beside the toolkit that it needs, without the suffix of CUDA's major

schema = 1
date = "{day}"

[sources]
INC = "the includes of torch/include in the wheel, and the headers in NVIDIA's wheels of CUDA 13.2"
"""
BESIDE = ("nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-cusparselt-cu13", "nvidia-nvshmem-cu13")
TOOLKIT = "cuda-toolkit==13.2.2"
PYTHON = "3.12"
OLDEST = ("3.8", "3.9", "3.10", "3.11")
OTHERS = ("all", "opencl")
"""The extras of every part, and of OpenCL, which torch's headers for other accelerators include."""
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([\w./+-]{1,200})[>"]', re.MULTILINE)
LIKELY = re.compile(r"(cu|nv|nccl)\w+\.h")
"""Names of NVIDIA's headers."""
BLOCK = 1 << 22
context = Context()
uv = context.uv()


def opened(url: str) -> zipfile.ZipFile:
    """Return a wheel of the index, read in large ranges."""
    file = open_wheel(uv.http, url)
    return zipfile.ZipFile(io.BufferedReader(file.detach(), BLOCK) if isinstance(file, io.BufferedReader) else file)


def wheels_of(spec: str, python: str = PYTHON) -> tuple[str, dict[WheelFile, dict[str, str]]]:
    """Return the version of the newest release of a requirement, and its wheels: file name to URL and sha256."""
    found = uv.releases([spec], python)  # several where a release left some Pythons, or another index has it, too
    rows = [row for row in found if "+" not in row["version"]]
    newest = max(rows, key=lambda row: Version(row["version"]))["version"]
    wheels = [one for row in rows if row["version"] == newest for one in row["wheels"]]
    files = {WheelFile.parse(one["url"]): {"url": one["url"], "sha256": one["hashes"]["sha256"]} for one in wheels}
    return newest, {file: at for file, at in files.items() if file}


def requirements(at: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requirements of a wheel."""
    return requirements_at(uv, {at["sha256"]: at["url"]}, context.progress)[at["sha256"]] or ()


def owners() -> dict[str, str]:
    """Return the part of CUDA that owns each header, by its name below an ``include``."""
    _, files = wheels_of(TOOLKIT)
    found: dict[str, str] = {}
    extras: dict[str, list[str]] = {}
    for line in requirements(next(iter(files.values()))):
        asked = Requirement(line)
        extra = re.search(r'extra == "([\w-]+)"', str(asked.marker))
        here = marker_values("linux-64", PYTHON) | {"extra": extra[1] if extra else ""}
        if extra and extra[1] not in OTHERS and asked.marker and evaluated(asked.marker, here):
            extras.setdefault(extra[1], []).append(f"{normalize(asked.name)}{asked.specifier}")
    parts: dict[str, str] = {}
    for part, packages in sorted(extras.items(), key=lambda row: len(row[1])):  # the extra for one package comes first
        for package in packages:
            parts.setdefault(package, part)
    for spec, part in [*parts.items(), *((name, re.sub(r"nvidia-|-cu\d+$", "", name)) for name in BESIDE)]:
        _, files = wheels_of(spec)
        url = next(at["url"] for file, at in files.items() if "manylinux" in file.tags and "x86_64" in file.tags)
        for name in opened(url).namelist():
            if "/include/" in name:
                found.setdefault(name.partition("/include/")[2].removeprefix("cccl/"), part)
    return found


def headers(wheel: zipfile.ZipFile) -> tuple[set[str], int]:
    """Return the names that torch's headers include and torch does not bring, and the number of headers."""
    rows = [row for row in wheel.infolist() if row.filename.startswith("torch/include/") and not row.is_dir()]
    own = {row.filename.removeprefix("torch/include/") for row in rows}
    own |= {name.removeprefix("torch/csrc/api/include/") for name in own}
    found = set()
    for row in sorted(rows, key=lambda row: row.header_offset):
        for match in INCLUDE.finditer(wheel.read(row)):
            name = match[1].decode()
            beside = "/".join((*row.filename.removeprefix("torch/include/").split("/")[:-1], name))
            if name not in own and beside not in own:
                found.add(name)
    return found, len(rows)


def row_of(minor: str, owned: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a minor version of torch."""
    for oldest in OLDEST:
        with contextlib.suppress(TenvError):
            version, files = wheels_of(f"torch=={minor}.*", oldest)
            break
    linux = {file: at for file, at in files.items() if "manylinux" in file.tags or "linux_" in file.tags}
    pythons = sorted({Version(f"3.{tag[3:]}") for file in linux if (tag := file.tags.split("-")[0])[3:].isdigit()})
    wheel = next(at for file, at in linux.items() if file.tags.startswith("cp312-cp312-") and "x86_64" in file.tags)
    included, count = headers(opened(wheel["url"]))
    parts = sorted({owned[name] for name in included if name in owned})
    beside = {re.sub(r"nvidia-|-cu\d+$", "", name) for name in BESIDE}
    unknown = sorted(name for name in included - owned.keys() if LIKELY.match(name))
    yield "\n[[headers]]"
    yield f'torch = "{minor}"'
    yield f'python = ">={pythons[0]},<3.{pythons[-1].minor + 1}"'
    yield f"parts = {listed([part for part in parts if part not in beside])}"
    yield f"beside = {listed([part for part in parts if part in beside])}"
    yield "confirmed = true"
    if unknown:
        yield f'note = "no wheel of NVIDIA has {", ".join(unknown)}"'
    yield f'source = "INC of torch {version}: {count} headers"'


def listed(words: list[str]) -> str:
    """Return a list as TOML."""
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def main() -> None:
    """Write the table for a range of minor versions."""
    import datetime as dt

    first, last = (Version(word).minor for word in sys.argv[1:3])
    print(HEAD.format(day=dt.datetime.now(tz=dt.UTC).date()), end="")
    owned = owners()
    for minor in range(first, last + 1):
        print("\n".join(row_of(f"2.{minor}", owned)), flush=True)


if __name__ == "__main__":
    main()
