"""The package lists of a channel in a folder, by rattler's index."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tenv.core.errors import StorageError
from tenv.core.files import write_atomic

_LEVEL = 19


def index_channel(folder: Path, locked: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> list[Path]:
    """Write the ``repodata.json`` of each part of a channel, plain and compressed.

    The same packages give the same bytes. rattler reads each package, which has the dependencies of its build; channels
    repair these later. A locked package has those of its lock, and keeps them in later lists.

    Args:
        folder: The channel.
        locked: The dependencies and the constraints of packages of a lock, by their path in the channel.

    Returns:
        The lists.

    Raises:
        StorageError: A package can't be read, or a list can't be written.
    """
    from rattler.index import index_fs  # late: 40 ms and 25 MB

    (folder / "noarch").mkdir(exist_ok=True)
    try:
        asyncio.run(index_fs(folder, write_zst=False, write_shards=False))
    except Exception as error:  # rattler's errors have no common base below Exception
        raise StorageError(f"can't index {folder}: {error}") from error
    return [path for part in sorted(folder.iterdir()) for path in _settle(part, locked)]


def _settle(part: Path, locked: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> tuple[Path, ...]:
    """Write the list of a part without times of indexing, and with the dependencies of the lock."""
    import zstandard  # late: only for a mirror

    path = part / "repodata.json"
    if not path.is_file():
        return ()
    data: dict[str, Any] = json.loads(path.read_bytes())
    for kind in ("packages", "packages.conda"):
        for name, row in data.get(kind, {}).items():
            row.pop("indexed_timestamp", None)  # of rattler 0.28: the time of this call
            if package := locked.get(f"{part.name}/{name}"):
                depends, constrains = package
                row.pop("constrains", None)
                row.update({"depends": [*depends]} | ({"constrains": [*constrains]} if constrains else {}))
    text = json.dumps(data, sort_keys=True, separators=(",", ":")) + "\n"
    packed = path.with_name(f"{path.name}.zst")
    write_atomic(path, text)
    write_atomic(packed, zstandard.ZstdCompressor(_LEVEL).compress(text.encode()))
    return path, packed
