"""Whether an environment already is what is asked for, so that `create` has nothing to do."""

from tenv import __version__
from tenv.activation.changes import ACTIVATION
from tenv.activation.shells.interface import STORED
from tenv.environment.state import Environment, State, Status
from tenv.install.creation import Creation
from tenv.sources.owners import holds

__all__ = ["is_current"]


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
        and (job.request.kept or state.manifest == job.target.manifest.settings_digest())
    )


def _is_there(state: State, job: Creation) -> bool:
    """Return whether the environment has every file that its state names, without reading their content."""
    return (
        holds(job.environment, state.owned)
        and (not state.python or job.before.python.exists())
        and _can_be_activated(job.environment)
    )


def _can_be_activated(environment: Environment) -> bool:
    """Return whether the stored activation and the stored scripts exist."""
    return all((environment.meta / name).is_file() for name in (ACTIVATION, *(shell.SCRIPT for shell in STORED)))
