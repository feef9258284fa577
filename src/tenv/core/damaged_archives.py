"""The errors that Python's modules raise for a damaged zip archive; each may be any of them."""

import lzma
import struct
import zipfile
import zlib

DAMAGED_ZIP: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, lzma.LZMAError, zlib.error, struct.error, EOFError),
    *(ValueError, LookupError, OverflowError, MemoryError),
    RuntimeError,  # an encrypted member; NotImplementedError is an unknown compression
    OSError,  # a damaged stream of bzip2, without an errno
)
