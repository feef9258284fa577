"""Candidate archives from the facts and from NVIDIA's live list, and their comparison."""

from collections.abc import Sequence

from tenv.core.dataclass import dataclass
from tenv.core.errors import HashMismatchError, NoSolutionError
from tenv.core.versions import Version
from tenv.facts.library_releases import RedistArchive
from tenv.sources.archives.redist import NVIDIA_PLATFORMS, Product, RedistFile
from tenv.sources.archives.version_choice import VersionChoice, VersionQuery

__all__ = ["Offer", "compare", "from_file", "from_row", "none_fits", "pick"]


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate archive.

    Attributes:
        component: Its component.
        version: Its version.
        cuda_major: Its CUDA major; None if it serves all.
        url: Its URL.
        sha256: Its digest in hex.
        size: Its size in bytes; None if unknown.
        trust: The origin of the digest: ``facts`` or ``redist``.
        release: Its CUDA release, if it is a component; else empty.
    """

    component: str
    version: str
    cuda_major: int | None
    url: str
    sha256: str
    size: int | None
    trust: str
    release: str = ""


def from_file(asked: Product, file: RedistFile) -> Offer:
    """Return a candidate from a live list."""
    return Offer(
        file.component, file.version, file.cuda_major, asked.base + file.path, file.sha256, file.size, "redist"
    )


def from_row(name: str, row: RedistArchive) -> Offer:
    """Return a candidate from a row of the facts."""
    return Offer(name, str(row.version), row.cuda_major, row.url, row.sha256, row.size, "facts")


def pick(
    question: VersionQuery, choice: VersionChoice, platform: str, cuda: Version | None, offers: Sequence[Offer]
) -> Offer:
    """Return the candidate for the target's CUDA."""
    by_major = {offer.cuda_major: offer for offer in offers}
    if cuda is not None and cuda.major in by_major:
        return by_major[cuda.major]
    if None in by_major:
        return by_major[None]
    if cuda is None and len(by_major) == 1:
        return next(iter(by_major.values()))
    raise none_fits(question, choice, platform, cuda, offers)


def none_fits(
    question: VersionQuery, choice: VersionChoice, platform: str, cuda: Version | None, offers: Sequence[Offer]
) -> NoSolutionError:
    """Return the error for a version without an archive for a platform and CUDA."""
    majors = ", ".join(str(offer.cuda_major) for offer in offers)
    made_for = f" for CUDA {cuda}" if cuda else ", and the manifest names no CUDA" if majors else ""
    hint = (
        f"it has files for CUDA {majors}"
        if majors
        else f"NVIDIA's name of the platform is {NVIDIA_PLATFORMS[platform]}"
    )
    return NoSolutionError(
        f"archives.{question.name}: {question.name} {choice.version} has no file on {platform}{made_for}", hint=hint
    )


def compare(name: str, known: Offer, live: Offer) -> None:
    """Raise HashMismatchError if NVIDIA lists another file under the name of a row of the facts."""
    if live.sha256 == known.sha256 and (known.size is None or live.size in (None, known.size)):
        return
    raise HashMismatchError(
        f"{name} {known.version}: NVIDIA now lists another file under the name {known.url.rpartition('/')[2]}\n"
        f"  the facts  sha256 {known.sha256}, {known.size or 'unknown'} bytes\n"
        f"  the list   sha256 {live.sha256}, {live.size or 'unknown'} bytes",
        hint="NVIDIA replaced the file; put the row that you trust into "
        f"facts/{name}.toml of your configuration folder, or request the file with `url` and `sha256`",
    )
