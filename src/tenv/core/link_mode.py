"""How files of caches come into environments."""

from enum import StrEnum

LINK_MODE = "TENV_LINK_MODE"
"""The variable that sets it; it wins over ``link-mode`` of ``config.toml``."""


class LinkMode(StrEnum):
    """How files of caches come into environments."""

    AUTO = "auto"
    """Clones where the file system has them, else hard links, else copies."""
    COPY = "copy"
    """Copies, which no edit in an environment connects with a cache."""
