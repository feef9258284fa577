"""Unpacks an archive into a new folder without trusting its content.

The reader of the format passes every entry to a `Staging`, which checks it and writes it to a temporary folder. The
folder is renamed when it is complete.
"""

import shutil
import tempfile
from pathlib import Path

from tenv.core.errors import ArchiveRefusedError
from tenv.core.files import storage_errors
from tenv.core.unpack_limits import UnpackLimits
from tenv.sources.archives.extract import Contents, Staging
from tenv.sources.archives.formats.interface import Reader

__all__ = ["reader_of", "unpack"]


def reader_of(kind: str) -> Reader:
    """Return the reader of a format.

    Raises:
        ArchiveRefusedError: tenv has no reader for the format.
    """
    if kind in ("tar.gz", "tar.xz", "tar.bz2"):
        from tenv.sources.archives.formats.tar import read_tar  # late: load only the needed format

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
    limits: UnpackLimits | None = None,
    name: str = "",
) -> Contents:
    """Unpack a verified archive into a new folder.

    Args:
        archive: The file.
        kind: Its format.
        folder: The new folder, which must not exist; files go to a temporary folder beside it first.
        strip: The number of leading folders to remove from its names.
        windows: Refuse names that Windows can't hold or distinguish; otherwise the file system decides.
        limits: The limits on its content.
        name: Its name in messages; empty for its file name.

    Raises:
        ArchiveRefusedError: The archive is damaged or unsafe.
        StorageError: The disk is full, or the folder is not writable.
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
