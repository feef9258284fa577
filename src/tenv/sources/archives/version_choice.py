"""Selects the version of an NVIDIA product for a request, from the facts, for the target's CUDA and PyTorch."""

from collections.abc import Iterable, Sequence

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError
from tenv.core.versions import Range, Version
from tenv.facts.library_releases import RedistArchive
from tenv.facts.tables import Facts
from tenv.sources.archives.redist import NVIDIA_PLATFORMS
from tenv.targets.manifest import Manifest

__all__ = ["AUTO", "CUDA", "VersionChoice", "VersionQuery", "answers", "choose", "rows_of"]

AUTO = "auto"
CUDA = "cuda"
"""The CUDA toolkit: the product whose components form one release."""

_LABEL_DOTS = 2
"""A CUDA release has three numbers."""


@dataclass(frozen=True, slots=True)
class VersionQuery:
    """A request with its platforms.

    Attributes:
        name: The name in the manifest.
        wanted: A version, a label, a range or ``auto``.
        manifest: The manifest.
        platforms: The platforms with this request.
        kept: The version in the old lock; empty for none.
        product: The product in NVIDIA's redist, if the name is that of a component.
    """

    name: str
    wanted: str
    manifest: Manifest
    platforms: tuple[str, ...]
    kept: str = ""
    product: str = ""


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """The selected version.

    Attributes:
        version: A version in the facts, or the requested version or label.
        known: Whether the facts have it.
        reason: The reason for the selection; empty for an exact request.
    """

    version: str
    known: bool
    reason: str = ""


def rows_of(facts: Facts, name: str) -> tuple[RedistArchive, ...]:
    """Return the archives of a product in the facts, oldest first."""
    if name == "cusparselt":
        return facts.cusparselt.archives
    return facts.cudnn.archives if name == "cudnn" else ()


def answers(version: str, wanted: str) -> bool:
    """Return whether a version satisfies a request: the version itself, a label or a range."""
    if wanted in (AUTO, version) or version.startswith(f"{wanted}."):
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
    if question.wanted == AUTO:
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
    if wanted == AUTO:
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
