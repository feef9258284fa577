"""The sections of a manifest for sources: one row per source, in the order in which sources work.

The key of a row names the module of the source: ``tenv.sources.KEY.source``.
"""

from dataclasses import dataclass

__all__ = ["SECTIONS", "SourceSection"]


@dataclass(frozen=True, slots=True)
class SourceSection:
    """One section of a manifest, and the names of its source.

    Attributes:
        key: The folder of the source below ``tenv.sources``; its key in counts, locks and states.
        name: The section of the manifest.
        kind: The kind of its packages, as rows show it.
        noun: The word for one of its packages; empty for a source that installs no files.
        keys: The keys of a request; a request that is a plain string sets the first one. Empty for a source with a
            request type of its own in `tenv.targets.manifest`.
        cache: The help text of `tenv clean --KEY`; empty for a source without a cache.
    """

    key: str
    name: str
    kind: str
    noun: str = ""
    keys: tuple[str, ...] = ()
    cache: str = ""


SECTIONS: tuple[SourceSection, ...] = (
    SourceSection(
        "conda",
        "dependencies",
        "conda",
        "conda package",
        cache="Empty the cache of conda packages, which pixi shares.",
    ),
    SourceSection(  # after conda, which may install the Python
        "wheels",
        "pypi-dependencies",
        "wheel",
        "wheel",
        cache="Empty uv's cache of wheels, which every use of uv shares.",
    ),
    SourceSection(
        "archives",
        "archives",
        "archive",
        "archive",
        cache="Empty the store of archives, packed and unpacked.",
    ),
    SourceSection("system", "system", "system"),
)
"""Every source, in the order of solving and installing."""
