"""Whether an environment may use its cuda-compat: that is for the driver and the GPUs to say, so it may change."""

from typing import TYPE_CHECKING

from tenv.activation.changes import ACTIVATION, Action, read_activation
from tenv.checks.driver_report import check, judge_host
from tenv.checks.rules.common import cuda_on
from tenv.checks.rules.driver import Verdict
from tenv.environment.state import Environment
from tenv.host.machine import current_platform
from tenv.project.context import Context
from tenv.targets.search import Target
from tenv.toolchain.discover import discover

if TYPE_CHECKING:
    from tenv.checks.before_create import Surroundings

__all__ = ["is_allowed", "is_as_allowed"]


def is_allowed(context: Context, target: Target, around: "Surroundings | None") -> bool:
    """Tell whether programs may be run with cuda-compat: where the driver is too old and the GPUs are such.

    Args:
        context: Where things are found.
        target: The target.
        around: The machine to judge by; None for this one.
    """
    if around is not None:
        cuda = cuda_on(target.manifest.on(current_platform()), around.host)
        return judge_host(cuda, around.host, around.facts).verdict is Verdict.FORWARD
    return any(row.verdict.verdict is Verdict.FORWARD for row in check(context, target.name).rows)


def is_as_allowed(context: Context, target: Target, environment: Environment, around: "Surroundings | None") -> bool:
    """Tell whether the activation of an environment uses cuda-compat where it may, and only there.

    An older cuda-compat before a newer driver breaks what would work, so that a new driver is a reason to look again.
    """
    folder = discover(environment.prefix).compat
    if folder is None:
        return True
    changes = read_activation(environment.meta / ACTIVATION).changes
    used = any(row.action is Action.PREPEND and row.value == str(folder) for row in changes)
    return used == is_allowed(context, target, around)
