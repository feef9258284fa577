"""The torch that `tenv build` made and that sits in an environment, from the note that it left there."""

import json
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.names import infos_of
from tenv.core.prefix import site_packages

NOTE = "tenv-build.json"
"""The file's name, in ``CHECKOUT/.tenv/builds/TARGET`` and in the metadata of the package."""

_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class BuiltTorch:
    """A torch that tenv built."""

    version: str
    """The version of PyTorch."""
    target: str
    """The target that it was built with."""
    prefix: str
    """The environment that built it: its run paths lead there."""
    checkout: str
    """The checkout."""
    commit: str
    """Its commit, with ``+changes`` where files were changed; empty where that is unknown."""
    file: Path
    """The note."""

    def __str__(self) -> str:
        """Return it in a few words: ``2.9.0 (commit 0123456789ab)``."""
        changed = "+changes" if self.commit.endswith("+changes") else ""
        return f"{self.version} (commit {self.commit[:12]}{changed})" if self.commit else self.version

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        names = ("version", "target", "prefix", "checkout", "commit")
        return {name: getattr(self, name) for name in names}


def built_torch(prefix: Path) -> BuiltTorch | None:
    """Return the built torch of an environment; None where there is none, or another one was installed since.

    A package has the note among its metadata. A ``setup.py develop`` leaves a link alone: its note lies in the checkout
    around the environment.
    """
    site = site_packages(prefix)
    for file in sorted(site.glob(f"{infos_of('torch')}/{NOTE}")):
        if found := read_built_torch(file):
            return found
    if (site / "torch.egg-link").is_file():
        for file in sorted(prefix.parent.parent.glob(f"builds/*/{NOTE}")):
            found = read_built_torch(file)
            if found and found.prefix == str(prefix):
                return found
    return None


def read_built_torch(file: Path) -> BuiltTorch | None:
    """Return the torch that a note is about; None for any other file."""
    try:
        if file.stat().st_size > _MOST:
            return None
        values = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    texts = [values.get(name) for name in ("version", "target", "prefix", "checkout", "commit")]
    version, target, prefix, checkout, commit = (text if isinstance(text, str) else "" for text in texts)
    return BuiltTorch(version, target, prefix, checkout, commit, file) if target else None
