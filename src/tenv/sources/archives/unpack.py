"""Unpack an archive into a new folder, trusting nothing that it says.

The format's reader hands every entry to a `Staging`, which checks and writes it into a folder aside; that gets its name
when all of it is there.
"""

import shutil
import tempfile
from pathlib import Path

from tenv.core.errors import ArchiveRefusedError
from tenv.core.files import storage_errors
from tenv.sources.archives.extract import Contents, Staging
from tenv.sources.archives.formats.interface import ArchiveLimits, Reader

__all__ = ["reader_of", "unpack"]


def reader_of(kind: str) -> Reader:
    """Return what reads archives of a kind.

    Raises:
        ArchiveRefusedError: No archive of that kind can be read.
    """
    if kind in ("tar.gz", "tar.xz", "tar.bz2"):
        from tenv.sources.archives.formats.tar import read_tar  # late: only the format at hand is loaded

        return lambda path, taker: read_tar(path, taker, kind.removeprefix("tar."))
    if kind in ("zip", "conda"):
        from tenv.sources.archives.formats.zip import read_conda, read_zip

        return read_zip if kind == "zip" else read_conda
    if kind == "7z":
        from tenv.sources.archives.formats.sevenzip import read_7z

        return read_7z
    raise ArchiveRefusedError(f"tenv can't unpack `{kind}` archives")


def unpack(
    archive: Path,
    kind: str,
    folder: Path,
    *,
    strip: int = 0,
    windows: bool = False,
    limits: ArchiveLimits | None = None,
    name: str = "",
) -> Contents:
    """Unpack an archive whose bytes have been verified into a folder that must not exist yet.

    Args:
        archive: The file.
        kind: How it is packed.
        folder: The new folder; until all of it is there, the files lie in one aside, in the same parent.
        strip: How many leading folders of its names are dropped.
        windows: Refuse names that Windows can't hold, or does not tell apart; elsewhere the file system is asked.
        limits: What it may hold.
        name: How messages call it; its file name when empty.

    Raises:
        ArchiveRefusedError: It is damaged or hostile.
        StorageError: The disk is full, or the folder can't be written.
    """
    read = reader_of(kind)
    with storage_errors(f"can't unpack {name or archive.name}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        staging = Staging(aside / "tree", name or archive.name, archive.stat().st_size, strip, windows, limits)
        try:
            read(archive, staging)
            contents = staging.finish()
            (aside / "tree").rename(folder)
        finally:
            staging.close()
            shutil.rmtree(aside, ignore_errors=True)
    return contents
