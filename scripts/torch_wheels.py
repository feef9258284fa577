"""Read the torch wheels of an index with range requests, and print the rows of ``facts/data/torch_wheels.toml``.

    python scripts/torch_wheels.py 2.14.1 2.15.0 > rows.toml

Of each wheel of 0.1 to 0.9 GB, 4 MB are fetched: its directory, its version, its metadata, the headers and the helper
for extensions that hold the values, and libc10. Nothing of it is run. A table goes to standard error. With
``--compare PYTHON`` the values are compared with what the torch of that Python returns when it is imported.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tenv.core.names import WheelFile
from tenv.core.wheel_platforms import platforms_of
from tenv.host.installed_torch import InstalledTorch, read_torch, read_torch_files
from tenv.host.interface import Fact, Missing
from tenv.host.torch_files import WheelTorch
from tenv.sources.wheels.metadata import open_wheel
from tenv.sources.wheels.uv_program import UvProgram

_PYTHON = "cp311"
_ASK = """
import json, torch
from torch.utils import cpp_extension as c
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip,
  "cxx11_abi": torch.compiled_with_cxx11_abi(), "gpu_code": [x for x in torch._C._cuda_getArchFlags().split()]
  if hasattr(torch._C, "_cuda_getArchFlags") and torch.version.cuda else None, "config": torch.__config__.show()[:60],
  "gcc": {k: [list(map(str, v[0])), list(map(str, v[1]))] for k, v in c.CUDA_GCC_VERSIONS.items()}}))
"""


def wheels(uv: UvProgram, version: str) -> Iterator[tuple[str, str, str]]:
    """Yield the platform, the URL and the file of one wheel of a release for each platform."""
    words = ("pip", "compile", "-", "--no-deps", "--format", "pylock.toml", "--python-version", "3.11", "--universal")
    done = uv.run(*words, "--quiet", text=f"torch=={version}\n")
    if done.status:
        print(done.stderr, file=sys.stderr)
        return
    urls = [row["url"] for row in tomllib.loads(done.stdout)["packages"][0]["wheels"]]
    files = [(url, file) for url in urls if (file := WheelFile.parse(url)) and not file.build]
    for platform in ("linux-64", "linux-aarch64", "win-64"):
        of_it = [(url, file) for url, file in files if platform in platforms_of([file])]
        chosen = next(((url, file) for url, file in of_it if file.tags.startswith(_PYTHON)), None)
        if chosen:
            yield platform, chosen[0], chosen[1].file


def _value(answer: Any) -> Any:
    return answer.value if isinstance(answer, Fact) else None


def row(version: str, platform: str, found: InstalledTorch, file: str) -> str:
    """Return the row of a wheel as TOML."""
    values: list[tuple[str, Any]] = [
        ("version", version),
        ("platform", platform),
        ("local", found.label.partition("+")[2]),
        ("cuda", str(_value(found.cuda) or "")),
        ("glibc", str(_value(found.glibc) or "")),
        ("compiler", _value(found.compiler) or ""),
        ("cxx11_abi", _value(found.cxx11_abi)),
        ("least_cxx", _value(found.least_cxx)),
        ("default_cxx", _value(found.default_cxx)),
        ("gpu_code", list(_value(found.gpu_code) or ())),
    ]
    date = datetime.now(tz=UTC).strftime("%Y-%m-%d")
    lines = [f"{name} = {json.dumps(value)}" for name, value in values if value not in ("", None, [])]
    return "\n".join(["[[torch]]", *lines, "confirmed = true", f'source = "{file}, read {date}"', ""])


def compare(python: Path) -> int:
    """Print each value that the reader and an import have of the same torch; return 1 if one differs."""
    read = read_torch(python)
    if isinstance(read, Missing):
        sys.exit(read.reason)
    said = json.loads(subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True).stdout)
    bounds = (
        {r.cuda: [str(r.least).split("."), str(r.below).split(".")] for r in read.bounds.value if r.compiler == "gcc"}
        if isinstance(read.bounds, Fact)
        else {}
    )
    rows = {
        "version": (read.label, said["version"]),
        "cuda": (str(_value(read.cuda) or None), str(said["cuda"])),
        "hip": (_value(read.hip), said["hip"]),
        "cxx11_abi": (_value(read.cxx11_abi), said["cxx11_abi"]),
        "gpu_code": (_value(read.gpu_code) and list(_value(read.gpu_code)), said["gpu_code"]),
        "gcc": (bounds, said["gcc"]),
    }
    for name, (ours, theirs) in rows.items():
        print(
            f"{name:10} {'same' if ours == theirs else 'DIFFERS'}  {str(ours)[:90]}  {'' if ours == theirs else theirs}"
        )
    print(f"{'compiler':10} {_value(read.compiler)}  {said['config'].splitlines()[1:2]}")
    return int(any(ours != theirs for ours, theirs in rows.values()))


def main() -> None:
    """Read the wheels of the named releases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--compare", type=Path, metavar="PYTHON")
    given = parser.parse_args()
    if given.compare:
        sys.exit(compare(given.compare))
    uv = UvProgram(dict(os.environ), Path.home())

    def read(version: str, platform: str, url: str, file: str) -> tuple[str, str]:
        parts = urlsplit(url)  # a local index names files
        with zipfile.ZipFile(unquote(parts.path) if parts.scheme == "file" else open_wheel(uv.http, url)) as archive:
            found = read_torch_files(WheelTorch(archive, file))
        code = " ".join(one.removeprefix("sm_") for one in _value(found.gpu_code) or ())
        line = (
            f"| {found.label} | {platform} | {_value(found.cuda) or '-'} | {_value(found.glibc) or '-'} | "
            f"{_value(found.compiler) or '-'} | {_value(found.cxx11_abi)} | {_value(found.least_cxx)} | "
            f"{_value(found.default_cxx)} | {code or '-'} |"
        )
        print(line, file=sys.stderr, flush=True)
        return row(version, platform, found, file), line

    with ThreadPoolExecutor(3) as pool:
        asked = [
            pool.submit(read, version, platform, url, file)
            for version in given.versions
            for platform, url, file in wheels(uv, version)
        ]
        for one in asked:
            print(one.result()[0], flush=True)


if __name__ == "__main__":
    main()
