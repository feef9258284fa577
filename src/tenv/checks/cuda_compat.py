"""Decide whether an environment uses its cuda-compat. The driver and the GPUs decide, so the answer can change."""

from pathlib import Path
from typing import TYPE_CHECKING

from tenv.activation.changes import ACTIVATION, Action, read_activation
from tenv.checks.rules.common import cuda_on
from tenv.checks.rules.driver import Verdict
from tenv.checks.rules.driver_rules import stand
from tenv.environment.state import Environment
from tenv.targets.search import Target

if TYPE_CHECKING:
    from tenv.checks.before_create import Surroundings

__all__ = ["is_allowed", "is_as_allowed"]


def is_allowed(target: Target, platform: str, around: "Surroundings") -> bool:
    """Return whether programs need cuda-compat: the driver is too old, and the GPUs support forward compatibility.

    Args:
        target: The target.
        platform: The platform of this host.
        around: The host to judge by.
    """
    cuda = cuda_on(target.manifest.on(platform), around.host)
    return stand(cuda, around.host, around.facts).verdict is Verdict.FORWARD


def is_as_allowed(folder: Path, environment: Environment, *, allowed: bool) -> bool:
    """Return whether an environment's activation uses cuda-compat exactly if it may.

    An older cuda-compat in front of a newer driver breaks CUDA, so a driver update requires a new decision.

    Args:
        folder: The folder of the environment's cuda-compat.
        environment: The environment.
        allowed: Whether it may use it.
    """
    changes = read_activation(environment.meta / ACTIVATION).changes
    used = any(row.action is Action.PREPEND and row.value == str(folder) for row in changes)
    return used == allowed
