"""The sections of a manifest for sources: one row per source, in the order in which sources work.

The key of a row names the module of the source: ``tenv.sources.KEY.source``.
"""

from tenv.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SourceSection:
    """One section of a manifest, and the names of its source."""

    key: str
    """The folder of the source below ``tenv.sources``, its key in counts, locks and states."""
    name: str
    """The section of the manifest."""
    kind: str
    """The kind of its packages in rows about them."""
    noun: str = ""
    """One of its packages in words; empty for a source that brings no files into a prefix."""
    keys: tuple[str, ...] = ()
    """The keys of a request, the first of them for a text alone; empty for a source whose requests have a type of their
    own in `tenv.targets.manifest`."""
    cache: str = ""
    """The help of `tenv clean --KEY`; empty for a source that keeps nothing."""
    option: str = ""
    """The option of `tenv add` that means it, without its dashes; empty for none."""


SECTIONS: tuple[SourceSection, ...] = (
    SourceSection(
        "conda",
        "dependencies",
        "conda",
        "conda package",
        cache="Empty the cache of conda packages, which pixi shares.",
        option="conda",
    ),
    SourceSection(  # after conda, which may install the Python
        "wheels",
        "pypi-dependencies",
        "wheel",
        "wheel",
        cache="Empty uv's cache of wheels, which every use of uv shares.",
        option="pypi",
    ),
    SourceSection(
        "archives",
        "archives",
        "archive",
        "archive",
        cache="Empty the store of archives, packed and unpacked.",
        option="archive",
    ),
    SourceSection("system", "system", "system"),
)
"""Every source, in the order of solving and installing."""
