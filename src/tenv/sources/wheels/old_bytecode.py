"""The byte code of modules that an update has replaced or removed.

uv leaves that of modules in folders that stay, such as ``six.py`` in site-packages. Python compares the size and the
whole seconds of the source alone, and runs the old module where a new one of the same size came within a second.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from tenv.core.files import storage_errors
from tenv.environment.installed_files import Expected

__all__ = ["remove_old_bytecode"]


def remove_old_bytecode(prefix: Path, before: Iterable[Expected], now: Iterable[Expected], elsewhere: str = "") -> None:
    """Remove the byte code of the modules that are no longer there or have another content.

    Args:
        prefix: The environment.
        before: The files of its wheels before the update.
        now: Those after it.
        elsewhere: The folder in which Python keeps byte code outside of environments (PYTHONPYCACHEPREFIX), below it by
            the path of the module; empty for none.

    Raises:
        StorageError: A file can't be removed.
    """
    digests = {row.name: row.digest for row in now}
    root = prefix.resolve()
    for row in before:
        if row.name.endswith(".py") and not (row.digest and row.digest == digests.get(row.name)):
            folder, name = os.path.split(row.name)
            cache = root / folder / "__pycache__"
            if cache.resolve() == cache and cache.is_relative_to(root):  # a RECORD may name files anywhere
                _remove(cache, name.removesuffix(".py"))
                if elsewhere:
                    _remove(Path(elsewhere) / (prefix / folder).relative_to(prefix.anchor), name.removesuffix(".py"))


def _remove(cache: Path, module: str) -> None:
    with storage_errors(f"can't remove byte code in {cache}"):
        names = os.listdir(cache) if cache.is_dir() else []  # noqa: PTH208 (names alone)
        for name in names:
            if name.startswith(f"{module}.") and name.endswith(".pyc"):
                (cache / name).unlink(missing_ok=True)
