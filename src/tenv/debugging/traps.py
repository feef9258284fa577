"""What makes a Python import something else than was meant: the source folder, a virtual environment of its own."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["first_folder", "shadowed_torch", "strange_venv"]

_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SAFE = re.compile(r"-[a-zA-Z]*[IP][a-zA-Z]*")


def first_folder(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the folder that a Python puts before all others of its path; None where it leaves that out.

    Args:
        words: What follows the interpreter on its command line.
        environment: Its variables.
        folder: Its working folder.
    """
    if environment.get("PYTHONSAFEPATH"):
        return None
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif word.startswith(("-c", "-m")) or word == "-":
            return folder
        elif _SAFE.fullmatch(word):
            return None
        elif not word.startswith("-"):
            script = Path(os.path.realpath(folder / word))
            return script if script.is_dir() else script.parent
    return folder


def shadowed_torch(words: Sequence[str], environment: Mapping[str, str], folder: Path) -> Path | None:
    """Return the folder whose sources `import torch` would take without finding a built extension there."""
    first = first_folder(words, environment, folder)
    listed = [Path(part) for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    for place in (*([first] if first else []), *listed):
        package = place / "torch"
        if (package / "__init__.py").is_file():
            built = any(package.glob("_C*.so")) or any(package.glob("_C*.pyd"))
            return None if built else place
    return None


def strange_venv(program: Path, prefix: Path) -> Path | None:
    """Return the virtual environment of a program that was made from an environment and has none of its packages.

    Args:
        program: The Python that is started.
        prefix: The environment's folder.
    """
    venv = Path(os.path.abspath(program)).parent.parent  # noqa: PTH100 (the link itself stands in the environment)
    if venv == prefix:
        return None
    try:
        rows = (line.partition("=") for line in (venv / "pyvenv.cfg").read_text(errors="replace").splitlines())
        values = {key.strip(): value.strip() for key, _, value in rows}
    except OSError:
        return None
    made = any(f"{prefix}{os.sep}" in f"{values.get(key, '')}{os.sep}" for key in ("home", "executable", "command"))
    sees = values.get("include-system-site-packages", "").lower() == "true" and values.get("home", "").startswith(
        str(prefix)
    )
    # A wheel target is a virtual environment itself: one made from it leads to the Python below both.
    return venv if made and (not sees or (prefix / "pyvenv.cfg").is_file()) else None
