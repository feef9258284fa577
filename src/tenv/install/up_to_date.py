"""Whether an environment already is what is asked for, so that `create` has nothing to do."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tenv import __version__
from tenv.activation.changes import ACTIVATION, read_activation
from tenv.activation.shells.interface import SHELLS
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.prefix import MARKER
from tenv.environment.create_note import note_files
from tenv.environment.made_files import lacks_scripts
from tenv.environment.state import Environment, State, Status
from tenv.install.creation import Creation
from tenv.sources.owners import holds

__all__ = ["is_current", "note_current_files"]


def is_current(job: Creation) -> bool:
    """Return whether the environment satisfies the request; its state is stored in the job."""
    state = job.look()
    if state is None or state.status is not Status.READY or job.fault:
        return False
    if job.exact or job.repair:
        return False
    if not all(work.is_current() for work in job.works) or not _is_made_from(state, job):
        return False
    return job.has_python(state.python) and _is_there(state, job) and _compat_is_right(job)


def _compat_is_right(job: Creation) -> bool:
    """Return whether the use of cuda-compat fits the driver; true for an environment without cuda-compat."""
    folder = job.before.compat
    if folder is None:
        return True
    from tenv.checks.before_create import allows_compat, uses_compat_as_allowed  # late: few environments hold it

    allowed = allows_compat(job.target, job.platform, job.around)
    return uses_compat_as_allowed(folder, job.environment, allowed=allowed)


def _is_made_from(state: State, job: Creation) -> bool:
    """Return whether this tenv made the environment on this platform from the present lock and manifest."""
    if state.written_by != __version__:  # another version may lay out toolkit and activation differently
        return False
    return (
        state.platform == job.platform
        and state.lock == job.lock_digest != ""
        and state.features == job.features
        and (job.kept or state.manifest == job.target.manifest.settings_digest())
    )


def _is_there(state: State, job: Creation) -> bool:
    """Return whether the environment has every file that its state names, without reading their content."""
    return (
        holds(job.environment, state.owned)
        and (not state.python or job.before.python.exists())
        and _can_be_activated(job.environment)
    )


def _can_be_activated(environment: Environment) -> bool:
    """Return whether the stored activation exists; missing scripts of shells are made from it."""
    scripts = [environment.meta / shell.SCRIPT for shell in SHELLS]
    if not (environment.meta / ACTIVATION).is_file() or any(os.path.lexists(f) and not f.is_file() for f in scripts):
        return False
    if lacks_scripts(environment):
        try:
            read_activation(environment.meta / ACTIVATION)
        except EnvironmentBrokenError:
            return False
    return True


def note_current_files(job: Creation, state: State) -> None:
    """Note what decided that there is nothing to do, where files alone decide.

    Archives are left out, since each of their files was looked for, and cuda-compat, which depends on the driver.

    Args:
        job: A job for which `is_current` is true.
        state: The state of its environment.
    """
    further = any(work.looks_further() for work in job.works) or job.before.compat or state.of("archives")
    if sys.platform == "linux" and not further and job.context.registry().is_marked(job.prefix):
        searched = [place.folder for place in job.context.places.places]
        note_files(job.environment, __version__, searched, _looked_at(job, searched))


def _looked_at(job: Creation, searched: list[Path]) -> Iterator[Path]:
    """Yield the files and folders that `is_current` has looked at."""
    yield from (job.target.lock_file, *job.target.files, job.prefix / MARKER)
    for folder in searched:
        yield from (folder / "manifests", folder / "locks" / f"{job.target.name}.lock")
    yield from (job.environment.meta / shell.SCRIPT for shell in SHELLS)
    yield from (job.prefix / "conda-meta", job.prefix / "lib", *job.prefix.glob("lib/python3*/site-packages"))
