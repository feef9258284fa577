"""What machines may share of a compile cache, as manifests and settings name it."""

import re
from urllib.parse import urlsplit

__all__ = ["STORAGE_EXAMPLE", "STORAGE_PATTERN", "is_storage"]

STORAGE_PATTERN = r"gha|(https?|rediss?|s3|gs|memcached|file)://\S+"
"""The storages that sccache and ccache document: WebDAV and plain HTTP, Redis, S3, Google's, memcached, a folder, and
``gha``, the cache of GitHub Actions."""

STORAGE_EXAMPLE = "redis://cache.example.org:6379"


def is_storage(text: str) -> bool:
    """Tell whether a text names a storage."""
    if re.fullmatch(STORAGE_PATTERN, text) is None:
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return text == "gha" or bool(parts.path if parts.scheme == "file" else parts.netloc)
