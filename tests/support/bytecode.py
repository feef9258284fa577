"""Keeps the bytecode of what tests import and start, also where PYTHONDONTWRITEBYTECODE is set: it halves their time.

Nothing is written beside the sources there, as asked; the bytecode goes into the virtual environment of the tests.
"""

import os
import shutil
import sys
from pathlib import Path

__all__ = ["forget_bytecode"]

if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(sys.prefix, "bytecode-of-tests"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


def forget_bytecode(folder: Path) -> None:
    """Remove the bytecode of modules below a folder, where the next test has others with the same names.

    Python takes bytecode for another module's where both have one size and were written within one second.
    """
    if sys.pycache_prefix:
        shutil.rmtree(f"{sys.pycache_prefix}{folder}", ignore_errors=True)
