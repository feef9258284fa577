"""Select the files of a lock for every platform, source by source in the order of the tuple of sources.

A target and all of its features are one question, so that none changes the version of what another brings.
"""

from dataclasses import replace

from tenv.core.errors import NoSolutionError
from tenv.locks.lock import Lock, from_manifest
from tenv.locks.lock_features import divide, take
from tenv.locks.lock_file import parse_lock, render_lock
from tenv.rattler_api.lockfile import write_conda_part
from tenv.sources.interface import Chosen, Problem, sources
from tenv.sources.staleness import differences
from tenv.targets.manifest import Manifest, with_features

__all__ = ["solve"]


def solve(problem: Problem) -> tuple[Lock, bytes]:
    """Select the files. Every source validates the requests before the first one begins.

    Returns:
        The lock and its bytes.

    Raises:
        ManifestError: A source can't serve a request.
        NoSolutionError: No set of files satisfies the manifest.
        NetworkError: An index or a channel does not answer.
    """
    manifest, chosen = problem.manifest, Chosen()
    together = replace(problem, manifest=with_features(manifest))
    for source in sources():
        source.check(together.manifest)
    for source in sources():
        source.choose(together, chosen)
    lock = from_manifest(manifest, divide(manifest, chosen.files))
    text = render_lock(lock, write_conda_part(manifest.name, manifest.platforms, lock.channels, chosen.records))
    if manifest.features:
        _check_without_features(parse_lock(text, f"the lock of {manifest.name}", manifest.name), manifest)
    return lock, text


def _check_without_features(lock: Lock, manifest: Manifest) -> None:
    """Refuse a lock of which the target can't be made without a feature: a wheel may need what only that one brings."""
    if lacking := differences(take(lock), with_features(manifest, ())):
        raise NoSolutionError(
            f"{manifest.name} can't be made without its features: {lacking[0]}",
            hint="ask for it in the section of the target itself, not below [feature.…]",
        )
