"""Host reports of machines that are not here, and a project whose targets differ by their CUDA alone."""

import json
from pathlib import Path
from typing import Any

__all__ = ["CUDAS", "make_project", "report", "write"]

CUDAS = {"cuda117": "11.7.1", "cuda118": "11.8", "cuda121": "12.1", "cuda130": "13.0"}


def make_project(folder: Path) -> Path:
    """Make a project with a target for each of `CUDAS`, and one without CUDA."""
    manifests = folder / "manifests"
    manifests.mkdir(parents=True)
    head = 'platforms = ["linux-64", "win-64"]\npython = ">=3.11,<3.13"\n'
    for name, cuda in CUDAS.items():
        (manifests / f"{name}.toml").write_text(f'{head}[requirements]\ncuda = "{cuda}"\n')
    (manifests / "cpu.toml").write_text(head)
    return folder


def report(driver: str = "", gpu: str = "", capability: str = "7.5", name: str = "node", **more: Any) -> dict[str, Any]:
    """Return the report of a good machine with a driver and a GPU; `more` are further values, by their names."""

    def fact(value: object) -> dict[str, object]:
        return {"value": value, "origin": "test"}

    gcc = {
        "path": "/usr/bin/g++",
        "version": "11.4.0",
        "default": True,
        "found_by": [{"kind": "path", "text": "g++ on PATH"}],
    }
    gpus = [{"name": gpu, "compute_capability": capability, "memory": 6 << 30}] if gpu else []
    values: dict[str, object] = {
        "platform": "linux-64",
        "hostname": name,
        "driver": driver,
        "gpus": gpus,
        "toolkits": [],
        "compilers": [{"kind": "g++", **gcc}, {"kind": "gcc", **gcc}],
        "libc": "2.35",
        "libstdcxx": {"path": "/usr/lib/libstdc++.so.6", "glibcxx": "3.4.30", "cxxabi": "1.3.13"},
        "cores": 16,
        "memory": 64 << 30,
        "disk": {"path": "/home", "free": 500 << 30, "file_system": "ext4"},
        "wsl": False,
        **more,
    }
    told = {key: fact(value) for key, value in values.items() if value != ""}
    return {"schema": 2, "tenv": "0.1.0", "driver": {"missing": "no driver"}, **told}


def write(file: Path, data: object) -> str:
    """Write a file of JSON and return its name."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return str(file)
