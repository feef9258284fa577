"""Whether the archives of a lock satisfy a manifest, with trusted digests.

The manifest or the facts must have the digest. If neither has one, the URL must be the one of the manifest or below
NVIDIA's. tenv fetches from no other URL of a lock.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.locks.lock import Archive, Lock
from tenv.sources.archives.redist import NVIDIA_PLATFORMS, product
from tenv.sources.archives.version_choice import answers, rows_of
from tenv.targets.manifest import ArchiveRequest, Manifest

_SUFFIXES = {
    ".tar.gz": "tar.gz",
    ".tgz": "tar.gz",
    ".tar.xz": "tar.xz",
    ".txz": "tar.xz",
    ".tar.bz2": "tar.bz2",
    ".tbz2": "tar.bz2",
    ".zip": "zip",
    ".7z": "7z",
    ".conda": "conda",
}
KINDS = tuple(dict.fromkeys(_SUFFIXES.values()))
"""The archive formats that tenv reads."""


def kind_of(name: str) -> str:
    """Return the format of a file by its extension; empty if unknown."""
    return next((kind for suffix, kind in _SUFFIXES.items() if name.lower().endswith(suffix)), "")


def place_of(request: ArchiveRequest, name: str, component: str = "") -> str:
    """Return the destination folder of an archive in a prefix; empty for the prefix itself.

    Args:
        request: The request.
        name: Its name in ``[archives]``.
        component: The component, if the product has several; else empty.
    """
    home = request.to.strip("/").removeprefix(".").strip("/") if request.to else f"opt/{name}"
    return "/".join(filter(None, (home, component)))


def archive_faults(lock: Lock, manifest: Manifest, platform: str, facts: Facts) -> Iterator[str]:
    """Yield why the archives of a platform do not satisfy a manifest, one sentence each.

    Args:
        lock: The lock.
        manifest: The manifest for the platform.
        platform: The platform.
        facts: The tables, with the user's rows.
    """
    left = list(lock.archives.get(platform, ()))
    for name, request in manifest.archives.items():
        rows = [row for row in left if row.answers_for(name)]
        left = [row for row in left if row not in rows]
        if not rows and not request.optional:
            yield f"{name} is not in the lock"
        yield from _lacking(rows, name, request, platform, facts)
        for row in rows:
            faults = _by_address(row, request) if request.url else _by_version(row, name, request, platform)
            yield from faults
            yield from _layout(row, name, request, rows)
            if not request.url:
                yield from _vouched(row, name, request, manifest, platform, facts)
    yield from (f"{row.name} is locked and nothing requires it" for row in left)


def left_out(lock: Lock, manifest: Manifest) -> list[str]:
    """Return the optional archives of a manifest that a lock does not have, sorted.

    Args:
        lock: The lock.
        manifest: The manifest.
    """
    return sorted(
        {
            name
            for platform in manifest.platforms
            for name, request in manifest.on(platform).archives.items()
            if request.optional and not any(row.answers_for(name) for row in lock.archives.get(platform, ()))
        }
    )


def _lacking(rows: Sequence[Archive], name: str, request: ArchiveRequest, platform: str, facts: Facts) -> Iterator[str]:
    """Yield the missing components of a CUDA release, and those that nothing requires."""
    release = next((row.release for row in rows if row.part_of), "")
    if not release:
        return
    wanted = request.components or tuple(
        part.name for part in facts.cuda_redist.components_of(Version(release), NVIDIA_PLATFORMS[platform])
    )
    there = {row.name for row in rows}
    yield from (f"{one} of {name} {release} is not in the lock" for one in wanted if one not in there)
    yield from (f"{one} is locked and nothing requires it" for one in sorted(there - set(wanted)))


def _layout(row: Archive, name: str, request: ArchiveRequest, rows: Sequence[Archive]) -> Iterator[str]:
    """Yield differences in how an archive is unpacked and in its destination."""
    several = len(rows) > 1 or row.name != name
    place = place_of(request, name, row.name if several else "")
    strip = request.strip if request.url else request.strip or 1
    for what, locked, wanted in (
        ("goes to", row.to or "the prefix", place or "the prefix"),
        ("is without its first folders:", row.strip, strip),
        ("is packed as", row.kind, kind_of(urlsplit(row.url).path)),
    ):
        if locked != wanted:
            yield f"{row.name} {what} {locked} in the lock, the manifest requests {wanted}"


def _by_address(row: Archive, request: ArchiveRequest) -> Iterator[str]:
    if row.url != request.url:
        yield f"{row.name} is locked from {row.url}, the manifest requests {request.url}"
    if request.sha256 and row.sha256 != request.sha256:
        yield f"{row.name} is locked with the sha256 {row.sha256}, the manifest pins {request.sha256}"
    if row.version:
        yield f"{row.name} {row.version} is locked with a version, a request by URL has none"


def _by_version(row: Archive, name: str, request: ArchiveRequest, platform: str) -> Iterator[str]:
    if not answers(row.release or row.version, request.version):
        yield f"{name} {row.release or row.version} is locked, the manifest requests {request.version}"
    file = row.url.rpartition("/")[2]
    if not row.version or f"-{row.version}" not in file or NVIDIA_PLATFORMS[platform] not in file:
        yield f"{row.name} {row.version} is locked, and {file} is not that version for {platform}"


def _vouched(
    row: Archive, name: str, request: ArchiveRequest, manifest: Manifest, platform: str, facts: Facts
) -> Iterator[str]:
    """Yield faults in the origin of an archive that is requested by version."""
    asked = product(request.product or name)
    known = [
        fact
        for fact in rows_of(facts, name)
        if str(fact.version) == row.version and fact.platform == NVIDIA_PLATFORMS[platform]
    ]
    if known and row.sha256 not in {fact.sha256 for fact in known if _fits(fact.cuda_major, manifest)}:
        yield f"{row.name} {row.version} is locked with the sha256 {row.sha256}, which the facts do not have"
    if not row.url.startswith(asked.base) and row.url not in {fact.url for fact in known}:
        yield f"{row.name} is locked from {row.url}, which is not below {asked.base}"


def _fits(cuda_major: int | None, manifest: Manifest) -> bool:
    cuda = manifest.requirements.cuda
    return cuda_major is None or cuda is None or cuda_major == cuda.major
