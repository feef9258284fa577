"""The version of NVIDIA's kernel driver, by the first of four probes that answers.

This is the number that a toolkit's minimum is compared with. It is neither the newest CUDA version that the driver's
libraries offer (``nvidia-smi`` prints that beside it) nor the version of an installed toolkit. Under WSL it is the
number of the Windows driver, which counts in another series than that of Linux: see `is_wsl`.
"""

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tenv.host.interface import Fact, Missing
from tenv.process import find, run
from tenv.versions import Version

__all__ = ["Places", "is_wsl", "parse_proc", "parse_smi", "parse_sys", "probe"]

_DRIVER = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}", re.ASCII)
# The closed module says `x86_64 Kernel Module  535.183.01`, the open one `Open Kernel Module for x86_64  580.65.06`.
_MODULE = re.compile(rf"\bModule\b[^\n]*?\s(?P<driver>{_DRIVER.pattern})(?!\S)", re.ASCII)
_QUOTED = 120
_WSL_LIBRARIES = "usr/lib/wsl/lib"
_NVML = """\
import sys
sys.path.extend(sys.argv[1:])
import pynvml
try:
    pynvml.nvmlInit()
    print(pynvml.nvmlSystemGetDriverVersion())
except pynvml.NVMLError as error:
    sys.exit(str(error))
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the probes look.

    Attributes:
        root: The folder that stands for the root of the file system.
        path: The PATH on which ``nvidia-smi`` is searched; None means this process's own.
        library: NVML's library: a name for the system's loader, or a path.
        timeout: Seconds that a probe may take before it counts as failed.
    """

    root: Path = Path("/")
    path: str | None = None
    library: str = "libnvidia-ml.so.1"
    timeout: float = 5.0


def is_wsl(root: Path = Path("/")) -> bool:
    """Tell whether this is Linux under Windows, where the driver is the one of Windows."""
    release = _read(root / "proc/sys/kernel/osrelease")
    if isinstance(release, str) and "microsoft" in release.casefold():
        return True
    # A kernel of one's own need not carry the name; the GPU's device and libraries are there all the same.
    return (root / _WSL_LIBRARIES).is_dir() and (root / "dev/dxg").exists()


def parse_proc(text: str) -> Version | Missing:
    """Return the driver's version from the text of ``/proc/driver/nvidia/version``."""
    match = _MODULE.search(text)
    return Version(match["driver"]) if match else _unreadable(text)


def parse_sys(text: str) -> Version | Missing:
    """Return the driver's version from the text of ``/sys/module/nvidia/version``."""
    line = text.strip()
    return Version(line) if _DRIVER.fullmatch(line) else _unreadable(text)


def parse_smi(text: str) -> Version | Missing:
    """Return the driver's version from what ``nvidia-smi --query-gpu=driver_version`` prints.

    It prints one line per GPU, ``ERR!`` or a sentence for a GPU that has failed, and its own errors to standard output
    too. Such an error may name the version of a library, so only a line that is a version and no more counts.
    """
    for line in text.splitlines():
        if _DRIVER.fullmatch(line.strip()):
            return Version(line.strip())
    return _unreadable(text)


def probe(places: Places | None = None) -> Fact[Version] | Missing:
    """Return the version of the kernel driver.

    Nothing is started unless a library or a program of the driver is there: where there is none, the answer costs a
    few failed look-ups. Where there is one and it hangs, each of the first two probes may take `Places.timeout`
    seconds.

    Args:
        places: Where to look; None means this machine.

    Returns:
        The version with the probe that answered, or `Missing` with every probe's reason.
    """
    places = places or Places()
    probes = [
        ("NVML", _nvml),
        ("nvidia-smi", _smi),
        ("/sys/module/nvidia/version", _sys),
        ("/proc/driver/nvidia/version", _proc),
    ]
    if sys.platform == "win32":
        probes = [("nvidia-smi", _smi)]
    reasons = []
    for name, ask in probes:
        answer = ask(places)
        if isinstance(answer, Version):
            return Fact(answer, name)
        reasons.append(f"{name}: {answer.reason}")
    return Missing("; ".join(reasons))


def _nvml(places: Places) -> Version | Missing:
    """Ask NVML in a child process: a driver's library may hang, or crash the process that calls it."""
    library = _library(places)
    if isinstance(library, Missing):
        return library
    environment = dict(os.environ)
    if os.path.dirname(library):  # noqa: PTH120 (a name for the loader is no path)
        # nvidia-ml-py asks the loader for the bare name.
        known = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = os.pathsep.join([str(Path(library).parent), *([known] if known else [])])
    # Without `site` the child starts faster, and nvidia-ml-py is found where this process would find it.
    folders = [folder for folder in sys.path if Path(folder).is_absolute()]
    child = [sys.executable, "-I", "-S", "-c", _NVML, *folders]
    done = run(child, environment=environment, timeout=places.timeout)
    if isinstance(done, Missing):
        return Missing(f"asking {library}: {done.reason}")
    if done.status < 0:
        return Missing(f"{library} crashed (signal {-done.status})")
    if done.status > 0:
        return Missing((done.stderr.strip().splitlines() or [f"exit status {done.status}"])[-1])
    return parse_sys(done.stdout)


def _library(places: Places) -> str | Missing:
    """Return what the loader can load, as it was asked for."""
    reason = ""
    for library in (places.library, str(places.root / _WSL_LIBRARIES / "libnvidia-ml.so.1")):
        try:
            ctypes.CDLL(library)
        except OSError as error:
            reason = reason or str(error)
        else:
            return library
    return Missing(reason)


def _smi(places: Places) -> Version | Missing:
    program = find("nvidia-smi", places.path)
    if program is None:
        # Login shells have this folder on PATH under WSL, others often do not.
        program = str(places.root / _WSL_LIBRARIES / "nvidia-smi")
        if not os.access(program, os.X_OK):
            return Missing("not found on PATH")
    done = run([program, "--query-gpu=driver_version", "--format=csv,noheader"], timeout=places.timeout)
    if isinstance(done, Missing):
        return done
    answer = parse_smi(done.stdout if done.stdout.strip() else done.stderr)
    if isinstance(answer, Missing) and done.status != 0:
        return Missing(f"{answer.reason} (exit status {done.status})")
    return answer


def _sys(places: Places) -> Version | Missing:
    text = _read(places.root / "sys/module/nvidia/version")
    return text if isinstance(text, Missing) else parse_sys(text)


def _proc(places: Places) -> Version | Missing:
    text = _read(places.root / "proc/driver/nvidia/version")
    return text if isinstance(text, Missing) else parse_proc(text)


def _read(path: Path) -> str | Missing:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return Missing(error.strerror or str(error))


def _unreadable(text: str) -> Missing:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not line:
        return Missing("gave nothing")
    return Missing(f"no driver version in `{line if len(line) <= _QUOTED else line[:_QUOTED] + '…'}`")
