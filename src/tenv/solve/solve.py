"""Select the files of a lock for every platform, source by source in the order of the tuple of sources."""

from tenv.locks.lock import Lock, from_manifest
from tenv.locks.lock_file import render_lock
from tenv.rattler_api.lockfile import write_conda_part
from tenv.sources.interface import Chosen, Problem, sources

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
    for source in sources():
        source.check(manifest)
    for source in sources():
        source.choose(problem, chosen)
    lock = from_manifest(manifest, chosen.files)
    return lock, render_lock(lock, write_conda_part(manifest.name, manifest.platforms, lock.channels, chosen.records))
