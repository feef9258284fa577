"""Which version of an NVIDIA product a request means: by the facts, for a CUDA and for the PyTorch that is built."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tenv.core.errors import NoSolutionError
from tenv.core.versions import Range, Version
from tenv.facts.redist_rows import RedistArchive
from tenv.facts.tables import Facts
from tenv.sources.archives.redist import NVIDIA_PLATFORMS
from tenv.targets.manifest import Manifest

__all__ = ["AUTO", "CUDA", "VersionChoice", "VersionQuery", "answers", "choose", "rows_of"]

AUTO = "auto"
CUDA = "cuda"
"""The product whose components are one release, the CUDA toolkit."""

_LABEL_DOTS = 2
"""A release of CUDA has three numbers."""


@dataclass(frozen=True, slots=True)
class VersionQuery:
    """What is asked for, on which platforms.

    Attributes:
        name: The name in the manifest.
        wanted: A version, a label, a range or ``auto``.
        manifest: The manifest.
        platforms: The platforms that ask.
        kept: The version of the old lock, or an empty string.
        product: The product in NVIDIA's redist, when the name is that of a component.
    """

    name: str
    wanted: str
    manifest: Manifest
    platforms: tuple[str, ...]
    kept: str = ""
    product: str = ""


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """What was chosen.

    Attributes:
        version: A version that the facts know, or a version or label as it was asked for.
        known: Whether the facts know it.
        reason: Why, where the manifest left it open.
    """

    version: str
    known: bool
    reason: str = ""


def rows_of(facts: Facts, name: str) -> tuple[RedistArchive, ...]:
    """Return the archives of a product that the facts know, oldest first."""
    if name == "cusparselt":
        return facts.cusparselt.archives
    return facts.cudnn.archives if name == "cudnn" else ()


def answers(version: str, wanted: str) -> bool:
    """Tell whether a version is what a request means: the version, one of that label, or one in that range."""
    if wanted in (AUTO, version) or version.startswith(f"{wanted}."):
        return True
    try:
        return version in Range(wanted)
    except ValueError:
        return False


def choose(facts: Facts, question: VersionQuery) -> VersionChoice:
    """Choose a version.

    Raises:
        NoSolutionError: Nothing that is known fits.
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
            f"so `{question.wanted}` can't be looked up",
            hint="name one version exactly",
        )
    serving = [version for version in _versions(rows) if _serves(rows, version, question)]
    fitting = [str(version) for version in serving if str(version) in accepted]
    if question.kept in fitting:
        return VersionChoice(question.kept, known=True)
    if not fitting:
        raise _nothing(question, rows)
    return VersionChoice(fitting[-1], known=True, reason=f"the newest in `{question.wanted}` that the facts know")


def _release(facts: Facts, question: VersionQuery) -> VersionChoice:
    """Choose a release of CUDA: the one that is named, else the newest that has nvcc for every platform that asks."""
    wanted, reason = question.wanted, ""
    if wanted == AUTO:
        cuda = question.manifest.requirements.cuda
        if cuda is None:
            raise _no_cuda(question)
        wanted, reason = f"{cuda.major_minor}.*", f"the newest of CUDA {cuda.major_minor}, which [requirements] names"
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
            hint=f"there are {', '.join(serving[-8:])}",
        )
    if question.kept in fitting:
        return VersionChoice(question.kept, known=False)
    return VersionChoice(fitting[-1], known=False, reason=reason or f"the newest in `{question.wanted}`")


def _no_cuda(question: VersionQuery) -> NoSolutionError:
    return NoSolutionError(
        f"archives.{question.name}: `auto` goes by the CUDA version, and the manifest names none",
        hint='add `cuda = "…"` to [requirements], or name a version',
    )


def _is_exact(wanted: str) -> bool:
    return wanted.replace(".", "").isdigit()


def _versions(rows: Iterable[RedistArchive]) -> list[Version]:
    return sorted({row.version for row in rows})


def _serves(rows: Sequence[RedistArchive], version: Version, question: VersionQuery) -> bool:
    """Tell whether a version has an archive for every platform that asks, for its CUDA."""
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
        f"archives.{question.name}: no version that the facts know is in `{question.wanted}` and has files{made_for}",
        hint=f"there are {', '.join(serving[-8:])}" if serving else f"`tenv facts {question.name}` lists what there is",
    )


def _automatic(facts: Facts, question: VersionQuery, rows: Sequence[RedistArchive]) -> VersionChoice:
    if not rows:
        raise NoSolutionError(
            f"archives.{question.name}: `auto` is known for cuda, cusparselt and cudnn alone", hint="name a version"
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
    """Return the versions of cuSPARSELt to try, best first: PyTorch's images by CUDA, its wheels, then the newest."""
    table = facts.cusparselt
    found = []
    if paired := table.for_cuda(cuda):
        found.append((paired.version, f"PyTorch's own build images pair it with CUDA {cuda.major_minor}"))
    found += [
        (wheel.version, f"the wheel of PyTorch {wheel.torch} for CUDA {cuda.major} requires it")
        for wheel in reversed(table.wheels)
        if wheel.package.endswith(f"-cu{cuda.major}") and _builds(question.manifest, wheel.torch)
    ]
    found += [(version, "the newest that the facts know") for version in reversed(table.versions())]
    below = facts.pytorch_build.cusparselt_below(_built(facts, question.manifest))
    if below is None:
        return found
    why = f"; the PyTorch that is built needs one below {below}"
    return [(version, reason + why) for version, reason in found if version < below]


def _cudnn(facts: Facts, question: VersionQuery, cuda: Version) -> list[tuple[Version, str]]:
    """Return the versions of cuDNN to try, best first: what PyTorch's releases name for the CUDA, then the newest."""
    found = []
    for release in reversed(facts.pytorch_build.releases):
        named = release.cudnn_for(cuda)
        if named and _builds(question.manifest, release.version):
            found.append((named, f"PyTorch {release.version} names it for CUDA {cuda.major_minor}"))
    return found + [(version, "the newest that the facts know") for version in reversed(facts.cudnn.versions())]


def _builds(manifest: Manifest, torch: Version) -> bool:
    return manifest.pytorch is None or str(torch) in manifest.pytorch


def _built(facts: Facts, manifest: Manifest) -> list[Version]:
    """Return the releases of PyTorch that the manifest is for."""
    return [release.version for release in facts.pytorch_build.releases if _builds(manifest, release.version)]
