"""Reads a request for an archive that is a table."""

from tenv.core.names import is_sha256
from tenv.core.toml_reader import Table
from tenv.core.untrusted import address_fault, login_fault, name_fault, place_fault
from tenv.targets.manifest import ArchiveRequest
from tenv.targets.manifest_keys import ARCHIVE, names

__all__ = ["read_archive"]


def read_archive(table: Table, key: str, version: str) -> ArchiveRequest:
    """Return a request of ``[archives]``; raises ManifestError with the path of a wrong value.

    Args:
        table: The section.
        key: The name of the request.
        version: Its version, as it was read; empty without one.
    """
    inner = table.table(key)
    inner.only(names(ARCHIVE))
    strip = inner.data.get("strip", 0)
    if not isinstance(strip, int) or isinstance(strip, bool) or strip < 0:
        raise inner.fail("strip", "expected a number of folders, 0 or more")
    url, to = _archive_url(inner), _archive_place(inner)
    components = tuple(sorted(set(inner.strings("components"))))
    optional, product = inner.flag("optional"), inner.text("product")
    archive = ArchiveRequest(version, url, inner.text("sha256"), strip, to, product, components, optional)
    if wrong := next((name for name in components if name_fault(name)), ""):
        raise inner.fail("components", f"`{wrong}` is not the name of a component")
    if "components" in inner.data and (not components or url or archive.product):
        raise inner.fail("components", "expected names of components of a product that has a version")
    if archive.product and name_fault(archive.product):
        raise inner.fail("product", f"`{archive.product}` is not the name of a product")
    if optional and not url:
        raise inner.fail("optional", "only a request by `url` can be optional")
    if bool(archive.version) == bool(archive.url):
        raise table.fail(key, "needs either a `version` of a known product or a `url`")
    if archive.sha256 and not is_sha256(archive.sha256):
        raise inner.fail("sha256", "expected 64 hex digits")
    return archive


def _archive_url(table: Table) -> str:
    url = table.text("url")
    if url and (fault := address_fault(url)):
        hint = "put user and password into ~/.netrc, which tenv reads" if login_fault(url) else ""
        raise table.fail("url", fault, hint=hint)
    return url


def _archive_place(table: Table) -> str:
    """Return the destination folder of an archive, which must be inside the prefix."""
    to = table.text("to")
    if fault := place_fault(to):
        raise table.fail("to", fault)
    return to
