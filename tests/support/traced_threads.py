"""Threads that start under coverage: no audit hook may stand in their way.

CPython up to 3.11 refuses a trace function while another thread sets one (`python/cpython#98257`), and a thread that is
refused dies before its first line. Between the two ends of `sys.settrace` another thread gets its turn only if Python
code runs there, and an audit hook is such code. filelock, which conda-lock imports, adds one when it is loaded; nothing
takes it away again.
"""

import contextlib
import importlib
import sys
from unittest import mock

__all__: list[str] = []

# Without the extra of conda-lock, nothing loads filelock.
with mock.patch.object(sys, "addaudithook"), contextlib.suppress(ImportError):
    importlib.import_module("filelock")
