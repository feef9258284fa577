"""How a process that used rattler ends."""

import os
import sys
from typing import NoReturn

__all__ = ["leave", "used"]


def used() -> bool:
    """Tell whether rattler was imported in this process."""
    return "rattler" in sys.modules


def leave(status: int) -> NoReturn:
    """End the process at once, its output flushed.

    rattler's threads now and then crash while the interpreter is taken down, after all work is done; a process that
    used it leaves without that step.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
