"""A machine of the corpus as tenv takes it: a host report, a manifest, and where it needs them a lock or a checkout.

`README.md` describes the keys of a case. A fact that the case lacks is missing in the report too, with `UNSTATED` as
reason. A fact that the report's form has no field for stands under a key of its own (`module`, `python`, `l4t` …), and
a reader that does not know the key leaves it aside.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli

from tenv.checks.host_options import find_gpu
from tenv.core.versions import Version
from tenv.facts.tables import load_facts
from tenv.host.toolkit_content import FUNCTIONS
from tests.support.found_by import led_json

__all__ = [
    "AMD",
    "CASES",
    "FRESH",
    "INDEPENDENT",
    "LATER",
    "NOVEMBER",
    "WINTER",
    "Case",
    "cases",
    "host_report",
    "manifest",
    "project",
]

Case = dict[str, Any]

CASES = Path(__file__).parent / "cases"
LATER = Path(__file__).parent / "later"
"""Machines that were gathered after the rules were written."""
FRESH = Path(__file__).parent / "fresh"
"""The last machines, gathered in batches after some of the rules had been read."""
INDEPENDENT = Path(__file__).parent / "independent"
"""Machines that were gathered after that by someone who had not read the rules."""
NOVEMBER = Path(__file__).parent / "november"
"""Machines over all causes that were gathered when the rules had been mended on all others."""
WINTER = Path(__file__).parent / "winter"
"""Machines, most of them of 2025 and 2026, that were gathered after the rules had been mended on all of these."""
AMD = Path(__file__).parent / "amd"
"""Machines with AMD GPUs, gathered after the rules about ROCm had been written."""
UNSTATED = "the thread does not say"

_TARGET = "machine"
_PARTS = {
    **dict.fromkeys(("cudart", "nvcc", "nvrtc", "cccl", "cupti", "nvtx"), "cuda_"),
    **dict.fromkeys(("cublas", "cufft", "curand", "cusolver", "cusparse", "npp", "nvjitlink", "cufile"), "lib"),
}
"""The parts of a toolkit by their short names, each with what NVIDIA's name of it begins with."""


def cases(folder: Path = CASES) -> Iterator[Case]:
    """Yield the cases, each with its `cause`, the name of its file."""
    for file in sorted(folder.glob("*.toml")):
        for case in tomli.loads(file.read_text(encoding="utf-8"))["case"]:
            yield {**case, "cause": file.stem}


def host_report(case: Case) -> dict[str, Any]:
    """Return the host report of a case, in the form that ``tenv host --json`` writes."""
    libraries = case.get("libstdcxx")
    return {
        "schema": 2,
        "tenv": "0.1.0",
        "hostname": _fact(case["id"]),
        "platform": _fact(case["platform"]),
        "driver": _missing("no driver") if case.get("driver_missing") else _fact(case.get("driver")),
        "cuda": _missing("no driver") if case.get("driver_missing") else _fact(case.get("cuda_offered")),
        "compat": _compat(case),
        "gpus": _missing("no driver") if case.get("driver_missing") else _fact(_gpus(case) or None),
        "toolkits": _fact([_toolkit(case["toolkit"])] if "toolkit" in case else None),
        "compilers": _fact(list(_compilers(case)) or None),
        "libc": _fact(case.get("glibc")),
        "libstdcxx": _fact({**libraries, "cxxabi": _cxxabi(libraries["glibcxx"])} if libraries else None),
        "pythons": _fact(_pythons(case)),
        "memory": _fact(case["memory_gib"] << 30 if "memory_gib" in case else None),
        "wsl": _fact(case.get("wsl", False)),
        "container": _fact(case.get("container")) if "container" in case else _missing("not in a container"),
        **{
            key: _fact(case[key])
            for key in ("module", "driver_kind", "l4t", "jetpack", "python", "cmake")
            if key in case
        },
        **{key: _fact(case[key]) for key in ("prebuilt_glibcxx",) if key in case},
        **(_amd(case) if "rocm" in case else {}),
    }


def _amd(case: Case) -> dict[str, Any]:
    """Return what AMD's tools and KFD report; a ROCm without a folder in the thread is AMD's own."""
    rocm = {
        "path": f"/opt/rocm-{case['rocm']['version']}",
        "found_by": [{"kind": "default-folder", "text": "/opt/rocm"}],
        "hip": None,
        "compiles": None,
        **case["rocm"],
    }
    return {
        "amd_driver": _fact(case.get("amd_driver")),
        "amd_gpus": _none(case["amd_missing"]) if "amd_missing" in case else _fact(case["amd_gpus"]),
        "kfd": _none(case["kfd_missing"]) if "kfd_missing" in case else _fact(case.get("kfd")),
        "rocms": _fact([rocm]),
    }


def manifest(case: Case) -> str:
    """Return the manifest of what a case was asked for."""
    target, python = case["target"], case.get("python", {}).get("version")
    takes = target.get("takes") == "system" and "toolkit" in case
    lines = ['description = "What a machine of the corpus was asked for"', f'platforms = ["{case["platform"]}"]']
    if python:
        lines.append(f'python = "{_minor(python)}.*"')
    if "cmake" in case:
        lines.append('channels = ["conda-forge"]')
    if "rocm" in target:
        lines += ["[system]", f'rocm = "{target["rocm"]}"']
    if target.get("cuda") and not takes:
        lines += ["[requirements]", f'cuda = "{target["cuda"]}"']
    if takes:
        lines += ["[system]", 'cuda-toolkit = "*"']
    if "cmake" in case:
        lines += ["[dependencies]", f'cmake = "{case["cmake"]}"']
    return "\n".join(lines) + "\n"


def project(case: Case, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Write a case into an empty folder as a project of one target.

    Returns:
        The words that follow ``tenv check`` there, and the variables of the environment.
    """
    (folder / "manifests").mkdir()
    (folder / "manifests" / f"{_TARGET}.toml").write_text(manifest(case), encoding="utf-8")
    (folder / "host.json").write_text(json.dumps(host_report(case)), encoding="utf-8")
    if "cmake" in case:
        (folder / "locks").mkdir()
        (folder / "locks" / f"{_TARGET}.lock").write_text(_lock(case), encoding="utf-8")
    words = [_TARGET, "--host-report", "host.json"]
    if "pytorch" in case and ("submodules_missing" in case or "stale_build" in case):
        _checkout(case, folder / "pytorch")
        words += ["--pytorch", "pytorch"]
    elif "pytorch" in case:
        words += ["--pytorch", case["pytorch"]]
    variables = {"TORCH_CUDA_ARCH_LIST": "arch_list", "NVCC_APPEND_FLAGS": "nvcc_flags"} | {
        "HSA_OVERRIDE_GFX_VERSION": "override",
        "PYTORCH_ROCM_ARCH": "rocm_archs",
    }
    return words, {name: case[key] for name, key in variables.items() if key in case}


def _lock(case: Case) -> str:
    """Return a lock that brings the CMake of a case, which is where tenv looks for it."""
    platform = case["platform"]
    package = f"https://conda.anaconda.org/conda-forge/{platform}/cmake-{case['cmake']}-h0_0.conda"
    return f"""\
version: 7
platforms:
- name: {platform}
environments:
  {_TARGET}:
    channels:
    - url: https://conda.anaconda.org/conda-forge/
    packages:
      {platform}:
      - conda: {package}
packages:
- conda: {package}
  sha256: {"a" * 64}
  size: 1
tenv:
  schema: 6
  written-by: 0.1.0
  target: {_TARGET}
  manifest: '{"0" * 64}'
  requirements: {{}}
  requests:
    {platform}:
      dependencies:
        cmake: ['{case["cmake"]}']
  wheels:
    {platform}: []
  archives: {{}}
"""


def _fact(value: object) -> dict[str, Any]:
    return _missing(UNSTATED) if value is None else {"value": value, "origin": "the thread"}


def _missing(reason: str) -> dict[str, Any]:
    return {"missing": reason}


def _none(reason: str) -> dict[str, Any]:
    return {"missing": reason, "kind": "none"}


def _compat(case: Case) -> dict[str, Any]:
    """Return the libcuda that stands before the driver's own: cuda-compat, or one of another driver's packages."""
    if "libcuda" in case:
        path = f"/usr/lib/x86_64-linux-gnu/libcuda.so.{case['libcuda']}"
        return _fact({"path": path, "version": case["libcuda"]})
    compat = case.get("compat", {})
    if not compat.get("first"):
        return _missing("the driver's own libcuda is loaded" if compat else UNSTATED)
    cuda = compat.get("cuda", case["target"]["cuda"])
    version = compat.get("version") or _driver_of(cuda)
    path = compat.get("path", f"/usr/local/cuda-{_minor(cuda)}/compat/libcuda.so.{version}")
    return _fact({"path": path, "version": version})


def _driver_of(cuda: str) -> str:
    """Return the driver that a CUDA came with, which the cuda-compat package of that CUDA is made from."""
    shipped = load_facts().cuda_driver.native(Version(cuda), windows=False)
    assert shipped is not None, cuda
    return str(shipped.driver)


def _gpus(case: Case) -> list[dict[str, Any]]:
    return [_gpu({"name": gpu} if isinstance(gpu, str) else gpu) for gpu in case.get("gpus", [])]


def _gpu(gpu: Mapping[str, Any]) -> dict[str, Any]:
    known = find_gpu(gpu["name"])
    return {
        "name": gpu["name"],
        "compute_capability": gpu.get("capability", str(known[1]) if known else None),
        "memory": gpu["memory_mib"] << 20 if "memory_mib" in gpu else None,
        "pci_id": gpu.get("pci_id", ""),
        "pci_address": "",
        "mig": "mig" in gpu,
    }


def _toolkit(toolkit: Mapping[str, Any]) -> dict[str, Any]:
    version, lacks = toolkit["version"], toolkit.get("missing", ())
    own = toolkit.get("from") == "apt" and toolkit.get("path", "/usr") == "/usr"
    path = toolkit.get("path", "/usr/lib/nvidia-cuda-toolkit" if own else f"/usr/local/cuda-{_minor(version)}")
    there = {f"{begin}{part}": version for part, begin in _PARTS.items() if part not in lacks}
    return {
        "path": path,
        "found_by": led_json("nvcc on PATH" if "nvcc" not in lacks else path),
        "version": version,
        "components": there if lacks else {},
        "problems": [{"kind": "other", "text": "it has no nvcc"}] if "nvcc" in lacks else [],
        "compiles": "nvcc" not in lacks,
        "home": "/usr" if own else "",
        "environment": "",
        "patched": [name for name in FUNCTIONS if any(name in text for text in toolkit.get("patched", []))],
    }


def _compilers(case: Case) -> Iterator[dict[str, Any]]:
    for at, compiler in enumerate(case.get("compilers", ())):
        kind, version = compiler["kind"], compiler["version"]
        default = compiler.get("default", at == 0)
        yield {
            "kind": kind,
            "path": compiler.get("path", f"/usr/bin/{kind}-{version.partition('.')[0]}"),
            "version": version,
            "default": default,
            "glibcxx": case.get("linked_libstdcxx") if default else None,
            "found_by": [{"kind": "other", "text": "g++ on nvcc's own PATH"}]
            if compiler.get("nvcc")
            else led_json(f"{kind} on PATH"),
            "nvcc": compiler.get("nvcc", False),
        }


def _pythons(case: Case) -> list[dict[str, Any]] | None:
    """Return the Python of a case; None where the thread does not tell whether its headers are there."""
    python = case.get("python", {})
    if "headers" not in python:
        return None
    minor = _minor(python["version"])
    return [{"path": f"/usr/bin/python{minor}", "version": python["version"], "headers": python["headers"]}]


def _cxxabi(glibcxx: str) -> str:
    rows = [row for row in load_facts().libstdcxx.gccs if row.glibcxx <= Version(glibcxx)]
    return str(rows[-1].cxxabi)


def _checkout(case: Case, folder: Path) -> None:
    """Write what tenv reads of a checkout: its version, its submodules, and the build folder of an earlier build."""
    folder.mkdir()
    (folder / "version.txt").write_text(case["pytorch"] + "\n", encoding="utf-8")
    (folder / "CMakeLists.txt").write_text("project(Torch CXX C)\n", encoding="utf-8")
    lacking = case.get("submodules_missing", [])
    paths = ["third_party/protobuf", *(path for path in lacking if path != "all")]
    text = "".join(f'[submodule "{path}"]\n    path = {path}\n' for path in paths)
    (folder / ".gitmodules").write_text(text, encoding="utf-8")
    for path in paths:
        (folder / path).mkdir(parents=True)
        if path not in lacking and "all" not in lacking:
            (folder / path / "CMakeLists.txt").write_text("project(part)\n", encoding="utf-8")
    if "stale_build" in case:
        (folder / "build").mkdir()
        cache = "\n".join([f"CMAKE_HOME_DIRECTORY:INTERNAL={folder}", *case["stale_build"]["cache"]])
        (folder / "build" / "CMakeCache.txt").write_text(cache + "\n", encoding="utf-8")
        if built := case["stale_build"].get("version"):
            (folder / "torch").mkdir()
            (folder / "torch" / "version.py").write_text(f"__version__ = '{built}'\n", encoding="utf-8")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
