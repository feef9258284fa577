"""A request that looks harmless: the toolkit of CUDA 12.1 from the nvidia channel, whose parts are not held to 12.1."""

from pathlib import Path

from tenv.targets.manifest import Manifest
from tenv.targets.manifest_file import read_manifest

__all__ = ["MENDED", "TRAP", "read_trap"]

TRAP = """\
platforms = ["linux-64"]
channels  = ["nvidia", "conda-forge"]

[requirements]
cuda = "12.1"

[dependencies]
cuda-toolkit = "12.1.*"
"""


MENDED = TRAP.replace('"nvidia", "conda-forge"', '"conda-forge", "nvidia"') + 'cuda-version = "12.1.*"\n'
"""The same request as tenv says that it should be."""


def read_trap(folder: Path, text: str = TRAP) -> Manifest:
    """Return the manifest of that request."""
    path = folder / "trap.toml"
    path.write_text(text)
    return read_manifest("trap", path, lambda name: folder / f"{name}.toml")
