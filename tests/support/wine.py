"""Windows' cmd as Debian's package wine64 has it, in a prefix of links that takes no time and no space to make.

Wine 8's cmd differs from Windows' in what these tests see, and in nothing else that they use:

- A value that is put into a line is read again for percent signs, so that a variable with two of them can't be copied.
- After ``call``, the status of a batch file is 0 or 1.
- Batch files are read in the code page of the system, whatever ``chcp`` has chosen.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath

__all__ = ["WINE", "Cmd", "on_windows"]

_LIBRARIES = Path("/usr/lib/x86_64-linux-gnu/wine/x86_64-windows")
WINE = next((path for path in (shutil.which("wine64"), "/usr/lib/wine/wine64") if path and Path(path).exists()), None)
"""Wine, or None: CI does not install it, since its 100 MB take more than a minute."""

_OWN = ("PWD", "OLDPWD", "SHLVL", "_")


def on_windows(path: Path) -> PureWindowsPath:
    """Return a path of this machine as Wine names it."""
    return PureWindowsPath("Z:" + str(path).replace("/", "\\"))


class Cmd:
    """A cmd that runs batch files in a folder."""

    def __init__(self, folder: Path) -> None:
        """Make a prefix in an empty folder."""
        self.prefix = folder / "wine"
        (self.prefix / "drive_c" / "windows").mkdir(parents=True)
        (self.prefix / "drive_c" / "windows" / "system32").symlink_to(_LIBRARIES)
        (self.prefix / "dosdevices").mkdir()
        (self.prefix / "dosdevices" / "c:").symlink_to("../drive_c")
        (self.prefix / "dosdevices" / "z:").symlink_to("/")
        (self.prefix / ".update-timestamp").write_text("disable\n")

    def run(
        self, folder: Path, steps: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[dict[str, dict[str, str]], str, str]:
        """Run lines of a batch file; return what programs saw at each `shot`, what was printed, and what was said."""
        text = ["@echo off\n", 'set "PATH=C:\\windows\\system32"\n', 'set "PROMPT=$P$G"\n', *steps]
        (folder / "run.bat").write_bytes(os.fsencode("".join(text).replace("\n", "\r\n")))
        own = {"WINEPREFIX": str(self.prefix), "WINEDEBUG": "-all", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        assert WINE
        out, err = folder / "out.txt", folder / "err.txt"
        # No pipes: services that Wine starts hold them for half a minute.
        with out.open("wb") as output, err.open("wb") as errors:
            words = [WINE, "cmd", "/c", "run.bat"]
            environment = {**environment, **own}
            subprocess.run(words, cwd=folder, env=environment, stdout=output, stderr=errors, check=False, timeout=600)
        seen: dict[str, dict[str, str]] = {}
        current: dict[str, str] | None = None
        rest = []
        for line in os.fsdecode(out.read_bytes()).split("\r\n"):
            if line.startswith("[shot "):
                current = seen.setdefault(line[6:-1], {})
            elif line == "[end]":
                current = None
            elif current is None:
                rest.append(line)
            else:
                name, _, value = line.partition("=")
                if name not in _OWN:
                    current[name] = value
        return seen, "\n".join(rest).strip("\n"), os.fsdecode(err.read_bytes()).replace("\r\n", "\n")

    def shot(self, name: str) -> str:
        """Return the lines that show what a program finds in its environment; a new cmd has a prompt of its own."""
        return f"echo [shot {name}]\ncmd /c set\necho PROMPT=%PROMPT%\necho [end]\n"
