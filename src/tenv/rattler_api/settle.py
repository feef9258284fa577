"""Settle the records of linked packages: prepared while rattler links the others, and written when it has ended."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from tenv.core.file_content import read_text
from tenv.core.names import CondaFile
from tenv.rattler_api.faults import storage_error
from tenv.rattler_api.records import Record

__all__ = ["Settling", "watched"]

_PAUSE = 0.02
"""Seconds between two looks at the records."""

_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)


class Settling:
    """The records of a prefix that rattler is about to write.

    py-rattler 0.28 writes the URL that it was given, and the files in the order in which its threads linked them. It
    reads every record again at its end, so that none may be changed before.
    """

    def __init__(self, records: Sequence[Record], prefix: Path) -> None:
        """Look at what is there before rattler begins."""
        self._notes = {
            record.url: prefix / "conda-meta" / CondaFile(record.name, record.version, record.build).note
            for record in records
        }
        self._before = {url: _stamp(note) for url, note in self._notes.items()}
        self._ready: dict[str, tuple[tuple[int, int], bytes]] = {}

    def look(self) -> None:
        """Prepare the records that are new since the last look; what can't be read is left to `finish`."""
        for url, note in self._notes.items():
            if url not in self._ready and (now := _stamp(note)) != self._before[url]:
                with contextlib.suppress(*_UNREADABLE):
                    self._ready[url] = now, _settled(note, url)

    def finish(self) -> None:
        """Write the canonical URL, and the files in their order, into each record that rattler has written.

        A record that is missing is left to those who count the packages.

        Raises:
            StorageError: One can't be written.
            ValueError, LookupError, TypeError, AttributeError: One can't be read.
        """
        for url, note in self._notes.items():
            if (now := _stamp(note)) == self._before[url]:
                continue
            stamp, text = self._ready.get(url, ((0, 0), b""))
            try:
                _write(note, text if stamp == now else _settled(note, url))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error, f"can't write {note}") from error


async def watched(work: Coroutine[Any, Any, None], settling: Settling, beside: Callable[[], None]) -> None:
    """Run rattler, do something else once it works, and prepare the records meanwhile."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0)  # so that it begins
    beside()
    while not (await asyncio.wait({task}, timeout=_PAUSE))[0]:
        settling.look()
    task.result()


def _stamp(note: Path) -> tuple[int, int]:
    try:
        status = note.stat()
    except OSError:  # missing ones are counted after linking
        return 0, 0
    return status.st_ino, status.st_mtime_ns


def _settled(note: Path, url: str) -> bytes:
    data = json.loads(read_text(note))
    data["url"] = url
    data["files"].sort()
    data["paths_data"]["paths"].sort(key=lambda row: row["_path"])
    return f"{json.dumps(data)}\n".encode()


def _write(note: Path, text: bytes) -> None:
    with note.open("r+b") as file:  # not emptied first: ext4 then writes each file to the disk when it is closed
        file.write(text)
        file.truncate()
