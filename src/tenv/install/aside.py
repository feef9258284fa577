"""Puts an environment aside for a new one in its place, and back again if that can't be made."""

import contextlib
import os
from collections.abc import Iterator

from tenv.core.errors import TenvError
from tenv.core.files import remove_tree, storage_errors
from tenv.core.prefix import MARKER
from tenv.environment.state import put_aside
from tenv.install.creation import Creation

__all__ = ["put_aside_for"]


@contextlib.contextmanager
def put_aside_for(job: Creation) -> Iterator[None]:
    """Put aside what is in the prefix while the body makes a new environment; put it back if the body fails.

    The caller holds the lock on the prefix, so that what is there after a failure is what the body has made. An error
    says where the old environment is now.

    Raises:
        ForeignFolderError: The folder holds no notes of tenv.
        StorageError: It can't be renamed.
    """
    job.aside = put_aside(job.environment)
    try:
        yield
    except BaseException:
        if job.aside:
            _put_back(job)
        raise


def _put_back(job: Creation) -> None:
    """Remove what was made instead of the old environment, and rename that to its old name, or say where it is."""
    prefix, aside, say = job.prefix, job.aside, job.context.progress.say
    assert aside is not None  # noqa: S101 (the caller has looked)
    try:
        with storage_errors(f"can't put {aside} back"):
            if (prefix / MARKER).exists():
                with job.context.registry().forgetting(prefix):
                    remove_tree(prefix, MARKER)
            elif os.path.lexists(prefix):  # it failed before it wrote the first state
                with contextlib.suppress(FileNotFoundError):
                    job.environment.meta.rmdir()
                prefix.rmdir()
            aside.rename(prefix)
    except TenvError as error:
        say(f"what was in {prefix} is in {aside}: {error.message}")
    else:
        job.aside = None
        say(f"what was in {prefix} is back")
