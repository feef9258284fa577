"""Whether the archives of a lock are those that a manifest asks for, with bytes that somebody vouches for.

A digest is vouched for by the manifest or by the facts. Where neither has one, the file lies at the manifest's address
or below NVIDIA's; nothing else that a lock names is asked.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.locks.lock import Archive, Lock
from tenv.sources.archives.formats.interface import kind_of
from tenv.sources.archives.redist import NVIDIA_PLATFORMS, product
from tenv.sources.archives.version_choice import answers, rows_of
from tenv.targets.manifest import ArchiveRequest, Manifest

__all__ = ["archive_faults", "place_of"]


def place_of(request: ArchiveRequest, name: str, component: str = "") -> str:
    """Return the folder in a prefix that an archive goes to; empty for the prefix itself.

    Args:
        request: What is asked for.
        name: Its name in ``[archives]``.
        component: The component of a product of several, or an empty string.
    """
    home = request.to.strip("/").removeprefix(".").strip("/") if request.to else f"opt/{name}"
    return "/".join(filter(None, (home, component)))


def archive_faults(lock: Lock, manifest: Manifest, platform: str, facts: Facts) -> Iterator[str]:
    """Yield where the archives of a platform do not answer a manifest, a sentence each.

    Args:
        lock: The lock.
        manifest: The manifest as it reads on the platform.
        platform: The platform.
        facts: The tables, with the rows of this user.
    """
    left = list(lock.archives.get(platform, ()))
    for name, request in manifest.archives.items():
        rows = [row for row in left if row.answers_for(name)]
        left = [row for row in left if row not in rows]
        if not rows:
            yield f"{name} is not in the lock"
        yield from _lacking(rows, name, request, platform, facts)
        for row in rows:
            faults = _by_address(row, request) if request.url else _by_version(row, name, request, platform)
            yield from faults
            yield from _layout(row, name, request, rows)
            if not request.url:
                yield from _vouched(row, name, request, manifest, platform, facts)
    yield from (f"{row.name} is locked and nothing asks for it" for row in left)


def _lacking(rows: Sequence[Archive], name: str, request: ArchiveRequest, platform: str, facts: Facts) -> Iterator[str]:
    """Yield the components of a release of CUDA that are asked for and not there, and those that nobody asks for."""
    release = next((row.release for row in rows if row.part_of), "")
    if not release:
        return
    wanted = request.components or tuple(
        part.name for part in facts.cuda_redist.components_of(Version(release), NVIDIA_PLATFORMS[platform])
    )
    there = {row.name for row in rows}
    yield from (f"{one} of {name} {release} is not in the lock" for one in wanted if one not in there)
    yield from (f"{one} is locked and nothing asks for it" for one in sorted(there - set(wanted)))


def _layout(row: Archive, name: str, request: ArchiveRequest, rows: Sequence[Archive]) -> Iterator[str]:
    """Yield what is wrong with how an archive is unpacked and where it goes."""
    several = len(rows) > 1 or row.name != name
    place = place_of(request, name, row.name if several else "")
    strip = request.strip if request.url else request.strip or 1
    for what, locked, wanted in (
        ("goes to", row.to or "the prefix", place or "the prefix"),
        ("is without its first folders:", row.strip, strip),
        ("is packed as", row.kind, kind_of(urlsplit(row.url).path)),
    ):
        if locked != wanted:
            yield f"{row.name} {what} {locked} in the lock, {wanted} is wanted"


def _by_address(row: Archive, request: ArchiveRequest) -> Iterator[str]:
    if row.url != request.url:
        yield f"{row.name} is locked from {row.url}, {request.url} is wanted"
    if request.sha256 and row.sha256 != request.sha256:
        yield f"{row.name} is locked with the sha256 {row.sha256}, the manifest pins {request.sha256}"
    if row.version:
        yield f"{row.name} {row.version} is locked, a file by its address has no version"


def _by_version(row: Archive, name: str, request: ArchiveRequest, platform: str) -> Iterator[str]:
    if not answers(row.release or row.version, request.version):
        yield f"{name} {row.release or row.version} is locked, {request.version} is wanted"
    file = row.url.rpartition("/")[2]
    if not row.version or f"-{row.version}" not in file or NVIDIA_PLATFORMS[platform] not in file:
        yield f"{row.name} {row.version} is locked, and {file} is not that version for {platform}"


def _vouched(
    row: Archive, name: str, request: ArchiveRequest, manifest: Manifest, platform: str, facts: Facts
) -> Iterator[str]:
    """Yield what is wrong with the origin of an archive that is asked for by its version."""
    asked = product(request.product or name)
    known = [
        fact
        for fact in rows_of(facts, name)
        if str(fact.version) == row.version and fact.platform == NVIDIA_PLATFORMS[platform]
    ]
    if known and row.sha256 not in {fact.sha256 for fact in known if _fits(fact.cuda_major, manifest)}:
        yield f"{row.name} {row.version} is locked with the sha256 {row.sha256}, which the facts do not have"
    if not row.url.startswith(asked.base) and row.url not in {fact.url for fact in known}:
        yield f"{row.name} is locked from {row.url}, which does not lie below {asked.base}"


def _fits(cuda_major: int | None, manifest: Manifest) -> bool:
    cuda = manifest.requirements.cuda
    return cuda_major is None or cuda is None or cuda_major == cuda.major
