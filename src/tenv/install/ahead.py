"""The reading of the cache of conda packages for a first environment, while the lock is judged."""

import contextlib
import os

from tenv.core.errors import TenvError
from tenv.install.creation import Creation
from tenv.sources.conda.source import CondaWork

__all__ = ["drop_early", "is_first", "read_ahead"]

_OF_CHECKOUT = ("CMakeLists.txt", "setup.py", "version.txt")
"""Files of which a PyTorch checkout has one: which Python fits it, the rules know."""


def is_first(job: Creation) -> bool:
    """Return whether a first environment is made as its lock says, if that can be used; asks for no tool."""
    if job.old or job.fault or job.exact or job.python_wanted or not job.check or "around" in vars(job):
        return False
    return not any(os.path.lexists(path) for path in (job.prefix, *_OF_CHECKOUT))


def read_ahead(job: Creation, held: contextlib.ExitStack) -> None:
    """Begin to read what the cache has of the conda packages of a first environment; nothing is fetched yet.

    This comes before anything is drawn: a process with other threads can't be copied.

    Args:
        job: The job.
        held: Gets what ends when the command ends.
    """
    read, conda = job.lock_read, _work(job)
    if not isinstance(read, bytes) or b"\n- conda: " not in read or job.target.manifest.features or not is_first(job):
        return
    from tenv.sources.conda.early_link import EarlyLink  # late: only for a first environment

    with contextlib.suppress(TenvError, OSError):  # what is wrong is reported by the step that needs it
        if EarlyLink.suits(job.prefix, job.context.link_mode()):
            conda.early = EarlyLink(read, job.target.name, job.platform, job.prefix, job.context)
            held.callback(conda.early.close)


def drop_early(job: Creation) -> None:
    """End the reading, where the environment was not begun with it."""
    conda = _work(job)
    if conda.early:
        conda.early.close()
        conda.early = None


def _work(job: Creation) -> CondaWork:
    return next(work for work in job.works if isinstance(work, CondaWork))
