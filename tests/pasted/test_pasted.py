"""The pasted texts and what stands in them: every text has its expected fields, and every value can be found in it."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.each import each

FOLDER = Path(__file__).parent
TEXTS = sorted(FOLDER.glob("*.txt"))
FIELDS = {
    *("source", "date", "layout", "platform", "os", "wsl", "python", "pytorch", "pytorch_cuda", "cuda_available"),
    *("driver", "driver_in_wsl", "module", "cuda", "toolkit", "toolkit_path", "gcc", "clang", "cmake", "glibc"),
    *("wheels", "gpus", "missing"),
}
OF_A_GPU = {"name", "cut", "memory_mib", "capability", "pci_address", "pci_id", "mig"}
VERSIONS = (
    "python",
    "pytorch",
    "pytorch_cuda",
    "driver",
    "driver_in_wsl",
    "cuda",
    "toolkit",
    "gcc",
    "clang",
    "cmake",
    "glibc",
)
PLATFORMS = {None, "linux-64", "linux-aarch64", "win-64"}
MODULES = {None, "open", "proprietary"}


def expected(text: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(text.with_suffix(".expected.json").read_text(encoding="utf-8"))
    return loaded


def packed(version: str) -> str:
    major, minor = version.split(".")
    return f"{int(major) * 1000 + int(minor) * 10}"


def test_there_are_thirty_texts_of_ten_layouts_and_each_has_its_fields() -> None:
    assert len(TEXTS) >= 30
    assert len({expected(text)["layout"] for text in TEXTS}) >= 10
    assert {path.name for path in FOLDER.glob("*.expected.json")} == {f"{text.stem}.expected.json" for text in TEXTS}


@each("text", TEXTS)
def test_the_fields_are_complete_and_name_their_source(text: Path) -> None:
    fields = expected(text)
    assert set(fields) == FIELDS
    address = urlsplit(fields["source"])
    assert (address.scheme, address.netloc) == ("https", "github.com")
    assert fields["platform"] in PLATFORMS
    assert fields["module"] in MODULES
    assert all(set(gpu) == OF_A_GPU for gpu in fields["gpus"] or ())
    assert all(fields[field] is None for field in fields["missing"])
    assert fields["missing"] == sorted(fields["missing"])


@each("text", TEXTS)
def test_every_value_stands_in_the_text(text: Path) -> None:
    fields, words = expected(text), text.read_text(encoding="utf-8")
    for field in VERSIONS:
        version = fields[field]
        short = f"+cu{version.replace('.', '')}" if field == "pytorch_cuda" and version else words
        assert version is None or version in words or (field == "cuda" and packed(version) in words) or short in words
    for gpu in fields["gpus"] or ():
        assert gpu["name"] in words
        assert gpu["cut"] == gpu["name"].endswith("...")
        assert gpu["memory_mib"] is None or f"{gpu['memory_mib']}Mi" in words.replace(" MiB", "MiB")
        capability = gpu["capability"]
        assert capability is None or capability in words or f"sm_{capability.replace('.', '')}" in words
        assert gpu["pci_id"] is None or gpu["pci_id"] in words
        assert gpu["pci_address"] is None or gpu["pci_address"] in words
        assert not isinstance(gpu["mig"], list) or all(f"MIG {profile}" in words for profile in gpu["mig"])
