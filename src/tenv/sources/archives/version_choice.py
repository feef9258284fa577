"""Selects the version of an NVIDIA product for a request, from the facts, for the target's CUDA and PyTorch.

An `Offer` is a candidate archive of that version, from the facts or from NVIDIA's live list; the two are compared. Of a
CUDA release, the components are selected here, and all must be of one release.
"""

from collections.abc import Iterable, Sequence

from tenv.core.dataclass import dataclass
from tenv.core.errors import HashMismatchError, NoSolutionError
from tenv.core.toml_reader import nearest
from tenv.core.versions import Range, Version
from tenv.facts.cuda_parts import CudaRedistTable
from tenv.facts.library_releases import RedistArchive
from tenv.facts.tables import Facts
from tenv.locks.lock import Archive
from tenv.sources.archives.redist import NVIDIA_PLATFORMS, Product, RedistFile, RedistManifest
from tenv.targets.manifest import Manifest

_AUTO = "auto"
CUDA = "cuda"
"""The CUDA toolkit: the product whose components form one release."""

_LABEL_DOTS = 2
"""A CUDA release has three numbers."""


@dataclass(frozen=True, slots=True)
class VersionQuery:
    """A request with its platforms."""

    name: str
    """The name in the manifest."""
    wanted: str
    """A version, a label, a range or ``auto``."""
    manifest: Manifest
    """The manifest."""
    platforms: tuple[str, ...]
    """The platforms with this request."""
    kept: str = ""
    """The version in the old lock; empty for none."""
    product: str = ""
    """The product in NVIDIA's redist, if the name is a component's."""


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """The selected version."""

    version: str
    """A version in the facts, or the requested version or label."""
    known: bool
    """Whether the facts have it."""
    reason: str = ""
    """The reason for the selection; empty for an exact request."""


def rows_of(facts: Facts, name: str) -> tuple[RedistArchive, ...]:
    """Return the archives of a product in the facts, oldest first."""
    if name == "cusparselt":
        return facts.cusparselt.archives
    return facts.cudnn.archives if name == "cudnn" else ()


def answers(version: str, wanted: str) -> bool:
    """Return whether a version satisfies a request: the version itself, a label or a range."""
    if wanted in (_AUTO, version) or version.startswith(f"{wanted}."):
        return True
    try:
        return version in Range(wanted)
    except ValueError:
        return False


def choose(facts: Facts, question: VersionQuery) -> VersionChoice:
    """Select a version.

    Raises:
        NoSolutionError: No known version satisfies the request.
    """
    if CUDA in (question.name, question.product):
        return _release(facts, question)
    rows = rows_of(facts, question.name)
    if question.wanted == _AUTO:
        return _automatic(facts, question, rows)
    if _is_exact(question.wanted):
        known = [str(version) for version in _versions(rows) if answers(str(version), question.wanted)]
        return VersionChoice(known[-1], known=True) if known else VersionChoice(question.wanted, known=False)
    try:
        accepted = Range(question.wanted)
    except ValueError as error:
        raise NoSolutionError(f"{question.manifest.file}: archives.{question.name}: {error}") from error
    if not rows:
        raise NoSolutionError(
            f"archives.{question.name}: NVIDIA has no list of the versions of `{question.name}`, "
            f"so tenv can't resolve `{question.wanted}`",
            hint="request an exact version",
        )
    serving = [version for version in _versions(rows) if _serves(rows, version, question)]
    fitting = [str(version) for version in serving if str(version) in accepted]
    if question.kept in fitting:
        return VersionChoice(question.kept, known=True)
    if not fitting:
        raise _nothing(question, rows)
    return VersionChoice(fitting[-1], known=True, reason=f"the newest version of the facts in `{question.wanted}`")


def _release(facts: Facts, question: VersionQuery) -> VersionChoice:
    """Select a CUDA release: the requested one, else the newest with nvcc for every platform of the request."""
    wanted, reason = question.wanted, ""
    if wanted == _AUTO:
        cuda = question.manifest.requirements.cuda
        if cuda is None:
            raise _no_cuda(question)
        wanted, reason = f"{cuda.major_minor}.*", f"the newest of CUDA {cuda.major_minor}, from [requirements]"
    if _is_exact(wanted) and wanted.count(".") >= _LABEL_DOTS:
        return VersionChoice(wanted, known=False)
    try:
        accepted = Range(f"{wanted}.*" if _is_exact(wanted) else wanted)
    except ValueError as error:
        raise NoSolutionError(f"{question.manifest.file}: archives.{question.name}: {error}") from error
    theirs = {NVIDIA_PLATFORMS[platform] for platform in question.platforms}
    serving = [row.label.text for row in facts.cuda_redist.releases if theirs <= set(row.platforms)]
    fitting = [label for label in serving if label in accepted]
    if not fitting:
        raise NoSolutionError(
            f"archives.{question.name}: no release of CUDA in `{wanted}` is known on {', '.join(question.platforms)}",
            hint=f"known releases: {', '.join(serving[-8:])}",
        )
    if question.kept in fitting:
        return VersionChoice(question.kept, known=False)
    return VersionChoice(fitting[-1], known=False, reason=reason or f"the newest in `{question.wanted}`")


def _no_cuda(question: VersionQuery) -> NoSolutionError:
    return NoSolutionError(
        f"archives.{question.name}: `auto` requires the CUDA version of [requirements], which is missing",
        hint='add `cuda = "…"` to [requirements], or request a version',
    )


def _is_exact(wanted: str) -> bool:
    return wanted.replace(".", "").isdigit()


def _versions(rows: Iterable[RedistArchive]) -> list[Version]:
    return sorted({row.version for row in rows})


def _serves(rows: Sequence[RedistArchive], version: Version, question: VersionQuery) -> bool:
    """Return whether a version has an archive for the CUDA of every platform of the request."""
    for platform in question.platforms:
        cuda = question.manifest.on(platform).requirements.cuda
        here = [row for row in rows if row.version == version and row.platform == NVIDIA_PLATFORMS[platform]]
        if not any(row.cuda_major is None or cuda is None or row.cuda_major == cuda.major for row in here):
            return False
    return True


def _nothing(question: VersionQuery, rows: Sequence[RedistArchive]) -> NoSolutionError:
    cuda = question.manifest.requirements.cuda
    serving = [str(version) for version in _versions(rows) if _serves(rows, version, question)]
    made_for = (f" for CUDA {cuda}" if cuda else "") + f" on {', '.join(question.platforms)}"
    return NoSolutionError(
        f"archives.{question.name}: no version of the facts is in `{question.wanted}` and has files{made_for}",
        hint=f"known versions: {', '.join(serving[-8:])}" if serving else f"`tenv facts {question.name}` lists them",
    )


def _automatic(facts: Facts, question: VersionQuery, rows: Sequence[RedistArchive]) -> VersionChoice:
    if not rows:
        raise NoSolutionError(
            f"archives.{question.name}: `auto` exists for cuda, cusparselt and cudnn alone", hint="request a version"
        )
    cuda = question.manifest.requirements.cuda
    if cuda is None:
        raise _no_cuda(question)
    candidates = _cusparselt(facts, question, cuda) if question.name == "cusparselt" else _cudnn(facts, question, cuda)
    for version, reason in candidates:
        for known in reversed(_versions(rows)):
            if answers(str(known), str(version)) and _serves(rows, known, question):
                return VersionChoice(str(known), known=True, reason=reason)
    raise _nothing(question, rows)


def _cusparselt(facts: Facts, question: VersionQuery, cuda: Version) -> list[tuple[Version, str]]:
    """Return candidate versions of cuSPARSELt, best first: of PyTorch's images, of its wheels, then the newest."""
    table = facts.cusparselt
    found = []
    if paired := table.for_cuda(cuda):
        found.append((paired.version, f"PyTorch's own build images pair it with CUDA {cuda.major_minor}"))
    found += [
        (wheel.version, f"the wheel of PyTorch {wheel.torch} for CUDA {cuda.major} requires it")
        for wheel in reversed(table.wheels)
        if wheel.package.endswith(f"-cu{cuda.major}") and _builds(question.manifest, wheel.torch)
    ]
    found += [(version, "the newest version of the facts") for version in reversed(table.versions())]
    below = facts.pytorch_build.cusparselt_below(_built(facts, question.manifest))
    if below is None:
        return found
    why = f"; the target's PyTorch requires a version below {below}"
    return [(version, reason + why) for version, reason in found if version < below]


def _cudnn(facts: Facts, question: VersionQuery, cuda: Version) -> list[tuple[Version, str]]:
    """Return candidate versions of cuDNN, best first: of PyTorch's releases for the CUDA, then the newest."""
    found = []
    for release in reversed(facts.pytorch_build.releases):
        named = release.cudnn_for(cuda)
        if named and _builds(question.manifest, release.version):
            found.append((named, f"PyTorch {release.version} names it for CUDA {cuda.major_minor}"))
    return found + [(version, "the newest version of the facts") for version in reversed(facts.cudnn.versions())]


def _builds(manifest: Manifest, torch: Version) -> bool:
    return manifest.pytorch is None or str(torch) in manifest.pytorch


def _built(facts: Facts, manifest: Manifest) -> list[Version]:
    """Return the PyTorch releases that the manifest supports."""
    return [release.version for release in facts.pytorch_build.releases if _builds(manifest, release.version)]


# Candidate archives


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate archive."""

    component: str
    """Its component."""
    version: str
    """Its version."""
    cuda_major: int | None
    """Its CUDA major; None if it serves all."""
    url: str
    """Its URL."""
    sha256: str
    """Its digest in hex."""
    size: int | None
    """Its size in bytes; None if unknown."""
    trust: str
    """The origin of the digest: ``facts`` or ``redist``."""
    release: str = ""
    """Its CUDA release, if it is a component; else empty."""


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


# A CUDA release


def toolkit(
    table: CudaRedistTable, question: VersionQuery, release: str, live: RedistManifest, platform: str
) -> tuple[str, ...]:
    """Return the components of a release that a build of PyTorch uses.

    Args:
        table: The components and the releases that have them.
        question: The query, for messages.
        release: The release.
        live: NVIDIA's manifest of it.
        platform: NVIDIA's name of the platform.

    Raises:
        NoSolutionError: The release lacks a component, or has none for the platform.
    """
    parts = table.components_of(Version(release), platform)
    lacking = [part for part in parts if not live.files(part.name, platform)]
    if len(lacking) == len(parts):
        raise NoSolutionError(
            f"archives.{question.name}: NVIDIA has no CUDA {release} for {platform}",
            hint="remove the platform from `platforms`, or move the request to [platform.NAME.archives]",
        )
    if lacking:
        raise NoSolutionError(
            f"archives.{question.name}: CUDA {release} lacks {lacking[0].name} for {platform}: {lacking[0].use}",
            hint=f'name the components: `{question.name} = {{ version = "{release}", components = [...] }}`',
        )
    return tuple(part.name for part in parts)


def check_components(question: VersionQuery, names: Sequence[str], live: RedistManifest, platform: str) -> None:
    """Raise an error for a component that a release lacks on a platform."""
    lacking = next((name for name in names if not live.files(name, platform)), "")
    if not lacking:
        return
    there = [name for name in live.components() if live.files(name, platform)]
    raise NoSolutionError(
        f"archives.{question.name}: CUDA {live.label or question.wanted} has no component {lacking} for {platform}",
        hint=nearest(lacking, there) or f"it has {', '.join(there)}",
    )


def check_one_release(file: str, platform: str, archives: Sequence[Archive]) -> None:
    """Raise an error for components of two CUDA releases, since compiler, headers and libraries must match."""
    releases: dict[str, str] = {}
    for archive in archives:
        if archive.release:
            releases.setdefault(archive.release, archive.part_of or archive.name)
    if len(releases) > 1:
        parts = ", ".join(f"{name} {release}" for release, name in sorted(releases.items()))
        newest = max(releases, key=Version)
        raise NoSolutionError(
            f"{file}: [archives] mixes releases of CUDA on {platform}: {parts}",
            hint=f'request one release: `version = "{newest}"` for each',
        )
