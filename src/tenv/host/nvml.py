"""Query NVML, the driver's management library, through nvidia-ml-py in a child process."""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from tenv.core.versions import Version
from tenv.host.answer import Answer, cuda_version, driver_version, pci_address, pci_id
from tenv.host.interface import Missing, ReasonKind
from tenv.host.loader import Loader
from tenv.host.report import Gpu

__all__ = ["ask", "parse"]

_CHILD = Path(__file__).with_name("nvml_child.py")


def ask(loader: Loader) -> Answer | Missing:
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
    output = library.ask(places, str(_CHILD), str(Path(str(module.origin)).parent), **changes)
    return output if isinstance(output, Missing) else parse(output)


def parse(text: str) -> Answer | Missing:
    """Return the answer from the child's output."""
    try:
        data = json.loads(text)
        lost = tuple(f"GPU {index}: {gpu['error']}" for index, gpu in enumerate(data["gpus"]) if "error" in gpu)
        gpus = tuple(_gpu(gpu["value"]) for gpu in data["gpus"] if "value" in gpu)
        cuda = _value(data["cuda"])
        driver = _value(data["driver"])
        return Answer(
            driver if isinstance(driver, Missing) else driver_version(str(driver)),
            cuda if isinstance(cuda, Missing) else cuda_version(int(cuda)),
            Missing(data["count"]["error"], ReasonKind.FAILED) if "error" in data["count"] else gpus,
            lost,
        )
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        return Missing(f"unreadable answer: {error}", ReasonKind.UNREADABLE)


def _value(answer: dict[str, Any]) -> Any:
    return Missing(answer["error"], ReasonKind.FAILED) if "error" in answer else answer["value"]


def _gpu(asked: dict[str, Any]) -> Gpu:
    answers = {name: answer.get("value") for name, answer in asked.items()}
    capability = answers["capability"]
    return Gpu(
        name=answers["name"] or "",
        compute_capability=Version(".".join(str(part) for part in capability)) if capability else None,
        memory=answers["memory"],
        pci_id=pci_id(answers["device"] or 0),
        pci_address=pci_address(answers["address"] or ""),
        mig=answers["mig"] == 1,
    )
