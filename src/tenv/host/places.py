"""Where the probes look; tests pass a folder instead of a machine."""

import os
import platform
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.files import read_regular
from tenv.core.prefix import MARKER
from tenv.host.interface import Missing, ReasonKind

WSL_LIBRARIES = "usr/lib/wsl/lib"

exists, is_file, is_folder, is_link = os.path.exists, os.path.isfile, os.path.isdir, os.path.islink
"""Whether something is there, as far as this user may look.

PATH, LD_LIBRARY_PATH and CUDA_HOME may name folders of other users, for which the methods of `Path` fail.
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the probes look."""

    root: Path = Path("/")
    """The folder that replaces the root of the file system."""
    path: str | None = None
    """The PATH to search programs on; None means PATH of `environ`."""
    library: str = "libnvidia-ml.so.1"
    """NVML's library: a name for the system's loader, or a path."""
    timeout: float = 5.0
    """Seconds after which a program or a library counts as failed."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment variables."""
    cuda_library: str = "libcuda.so.1"
    """The library of the CUDA driver: a name for the system's loader, or a path."""
    machine: str = field(default_factory=platform.machine)
    """The processor family, as ``uname -m`` names it."""

    def at(self, path: str) -> Path:
        """Return the location of an absolute path of that machine."""
        return self.root / path.lstrip("/")

    def named(self, path: Path) -> str:
        """Return a path as that machine names it."""
        return f"/{path.relative_to(self.root)}" if path.is_relative_to(self.root) else str(path)

    def variable(self, name: str) -> str:
        """Return an environment variable; an empty string if it is not set. Windows has names in upper case."""
        return self.environ.get(name) or self.environ.get(name.upper(), "")

    def folders(self) -> list[Path]:
        """Return the folders of PATH, each once. Relative folders are skipped: they do not describe the machine."""
        text = self.environ.get("PATH", os.defpath) if self.path is None else self.path
        return [Path(folder) for folder in dict.fromkeys(text.split(os.pathsep)) if Path(folder).is_absolute()]

    def find(self, program: str) -> str | None:
        """Return the absolute path of a program on PATH, or None."""
        return process.find(program, self.environ.get("PATH", os.defpath) if self.path is None else self.path)

    def run(self, *arguments: str, **changes: str) -> process.Completed | Missing:
        """Run a program within the time limit, with some environment variables changed."""
        # Probes run in threads; a short-lived child need not be bound to this process.
        environment = {**self.environ, **changes}
        return process.run(arguments, environment=environment, timeout=self.timeout, bound=False)


def read(path: Path) -> str | Missing:
    """Return a regular file's text, or why it can't be read."""
    try:
        return read_regular(path).decode("utf-8", "replace")
    except OSError as error:
        absent = isinstance(error, FileNotFoundError | NotADirectoryError)
        return Missing(error.strerror or str(error), ReasonKind.NONE if absent else ReasonKind.UNREADABLE)


def environment_of(path: Path) -> Path | None:
    """Return the tenv environment that contains a path: an active one is in variables and PATH."""
    return next((folder for folder in (path, *path.parents) if is_file(folder / MARKER)), None)


def is_wsl(root: Path = Path("/")) -> bool:
    """Return whether this is Linux under Windows, which uses the Windows driver."""
    release = read(root / "proc/sys/kernel/osrelease")
    if isinstance(release, str) and "microsoft" in release.casefold():
        return True
    # A custom kernel may lack the name, but the GPU's device and libraries exist.
    return is_folder(root / WSL_LIBRARIES) and exists(root / "dev/dxg")
