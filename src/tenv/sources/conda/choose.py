"""Selects conda packages for the platforms and the host that a manifest declares, not for this host."""

import datetime as dt
from collections.abc import Mapping, Sequence

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError, NetworkError, NoSolutionError, TenvError
from tenv.core.names import channel_word
from tenv.core.progress import Progress
from tenv.core.wheel_platforms import DEFAULT_GLIBC
from tenv.locks.lock import CondaPackage
from tenv.rattler_api.network import Network
from tenv.rattler_api.records import Record, spec_fault
from tenv.rattler_api.solver import Solver, SolveRequest
from tenv.sources.conda.conflicts import explain, passed_over
from tenv.targets.manifest import Manifest, Requirements
from tenv.targets.manifest_file import REFUSED

__all__ = ["Conda", "to_package", "virtual_packages"]

_BLAME = "searching for the conflict"
_KERNEL = "4.18"  # the kernel of RHEL 8
_WINDOWS = "10"
_ANY_CUDA = "99"
"""A driver that runs every CUDA: before torch is locked, it alone decides about the release."""
_MACHINES = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "win-64": "x86_64"}


def virtual_packages(platform: str, requirements: Requirements) -> dict[str, tuple[str, str]]:
    """Return the virtual packages of the declared host: version and build string, by name."""
    found = {"__archspec": ("1", _MACHINES[platform])}
    if platform.startswith("win"):
        found |= {"__win": (_WINDOWS, "0")}
    else:
        glibc = str(requirements.glibc or DEFAULT_GLIBC)
        found |= {"__unix": ("0", "0"), "__linux": (_KERNEL, "0"), "__glibc": (glibc, "0")}
    if requirements.cuda or requirements.cuda_from:
        found["__cuda"] = (str(requirements.cuda or _ANY_CUDA), "0")
    return found


def to_package(record: Record) -> CondaPackage:
    """Return a record as a package of a lock."""
    return CondaPackage(**{name: getattr(record, name) for name in CondaPackage.__slots__ if name != "features"})


@dataclass(frozen=True, slots=True)
class Conda:
    """Selects conda packages.

    Attributes:
        network: The network settings for channels.
        time_limit: The time limit in seconds for reading package lists, and for solving one platform.
        exclude_newer: Ignore packages that are newer than this time.
    """

    network: Network
    time_limit: float = 300.0
    exclude_newer: dt.datetime | None = None

    def resolve(
        self, manifest: Manifest, kept: Mapping[str, Sequence[Record]], progress: Progress
    ) -> dict[str, list[Record]]:
        """Select the packages of every platform.

        Args:
            manifest: The manifest.
            kept: Packages of the old lock, by platform, which stay if they still satisfy the manifest.
            progress: Receives progress.

        Raises:
            NoSolutionError: No set of packages satisfies the manifest; the hint has the nearest request that does.
            NetworkError: A channel does not respond, or has an invalid record.
            ManifestError: A request is not valid.
        """
        platforms = [platform for platform in manifest.platforms if manifest.on(platform).dependencies]
        questions = [self._question(manifest.on(platform), platform, kept.get(platform, ())) for platform in platforms]
        solver = Solver(self.network)
        channels: dict[str, list[str]] = {}
        for question in questions:
            for channel in question.channels:
                channels.setdefault(channel, []).append(question.platform)
        progress.step("reading the package lists of " + ", ".join(map(channel_word, channels)))
        solver.read(channels, self.time_limit)
        progress.step(f"solving {manifest.name}", len(questions))
        found = {}
        for question, answer in zip(questions, self._answers(solver, questions), strict=True):
            if isinstance(answer, NoSolutionError) and answer.detail:
                progress.step(_BLAME)
                raise explain(solver, question, manifest.on(question.platform), answer, self.time_limit)
            if isinstance(answer, TenvError):
                raise answer
            here = manifest.on(question.platform)
            if passed_over(solver, question, here, answer):
                progress.step(_BLAME)
                raise explain(solver, question, here, NoSolutionError(""), self.time_limit)
            for record in answer:
                if fault := record.fault(question.platform):
                    raise NetworkError(
                        f"{record.channel}: {fault}",
                        hint="remove this channel from `channels`: it serves invalid records",
                    )
            _refuse(here, question.platform, answer)
            found[question.platform] = answer
            progress.advance()
        return found

    def _answers(self, solver: Solver, questions: Sequence[SolveRequest]) -> list[list[Record] | TenvError]:
        return solver.solve_all(questions, self.time_limit)

    def _question(self, manifest: Manifest, platform: str, kept: Sequence[Record]) -> SolveRequest:
        if not manifest.channels and not all(request.channel for request in manifest.dependencies.values()):
            raise ManifestError(
                f"{manifest.file}: channels: is required for [dependencies]",
                hint='`channels = ["conda-forge"]` is an example',
            )
        for name, request in manifest.dependencies.items():
            if fault := spec_fault(request.spec(name)):
                raise ManifestError(f"{request.line}: dependencies.{name}: {fault}")
        return SolveRequest(
            platform=platform,
            channels=manifest.sources(platform),
            specs=tuple(request.spec(name) for name, request in sorted(manifest.dependencies.items())),
            virtual=virtual_packages(platform, manifest.requirements),
            kept=tuple(kept),
            exclude_newer=self.exclude_newer,
        )


def _refuse(manifest: Manifest, platform: str, records: Sequence[Record]) -> None:
    """Raise ManifestError for a package that no lock can hold and that another package brings in."""
    for name in sorted(REFUSED.keys() & {record.name for record in records}):
        reason, instead = REFUSED[name]
        asking = {record.name for record in records if name in (depend.split()[0] for depend in record.depends)}
        parents = ", ".join(sorted(asking))
        raise ManifestError(
            f"{manifest.file}: dependencies: `{name}` {reason}; {parents} requires it on {platform}",
            hint=f"remove {parents}, and {instead}",
        )
