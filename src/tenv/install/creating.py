"""The state of an environment while its files change."""

from tenv.activation.shells.interface import STORED
from tenv.core.files import storage_errors
from tenv.environment.state import State, Status
from tenv.install.creation import Creation

__all__ = ["write_creating"]


def write_creating(job: Creation) -> None:
    """Write the state `creating`, with the unmanaged files of the prefix."""
    environment, plan, old = job.environment, job.plan, job.old
    with storage_errors(f"can't create {environment.prefix}"):
        environment.meta.mkdir(parents=True, exist_ok=True)
        environment.tidy()
    job.context.registry().mark(environment.prefix)
    python = old.python if old else plan.minor
    owned = {key: plan.ours(key) for key in plan.wanted}
    environment.write_state(
        State(
            Status.CREATING,
            job.target.name,
            owned=owned,
            foreign=plan.unmanaged,
            python=python,
            features=job.features,
            prefix=str(environment.prefix),
        )
    )
    with storage_errors(f"can't create {environment.prefix}"):
        for shell in STORED:  # only now: after a loss of power no ready environment lacks one
            (environment.meta / shell.SCRIPT).unlink(missing_ok=True)
