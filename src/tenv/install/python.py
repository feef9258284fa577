"""The Python of an environment."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import EnvironmentBrokenError, NetworkError, UsageError
from tenv.core.versions import Version
from tenv.environment.state import State
from tenv.locks.lock import Lock
from tenv.targets.search import Target

if TYPE_CHECKING:
    from tenv.sources.wheels.interpreters import Interpreter
    from tenv.sources.wheels.uv import Uv

__all__ = ["choose_python"]


def choose_python(
    uv: "Uv",
    target: Target,
    lock: Lock,
    platform: str,
    wanted: str | None,
    old: State | None,
    unfit: Collection[str] = (),
) -> "Interpreter":
    """Return the Python to use: the requested one, the environment's, the best of the host, or a downloaded one.

    Args:
        uv: Finds and downloads Pythons.
        target: The target.
        lock: Its lock.
        platform: The platform.
        wanted: The requested minor or program; None to choose.
        old: The state of the environment; None without one.
        unfit: The minors not to choose if the lock serves others.
    """
    minors = lock.python_minors(platform) or target.manifest.python_minors()
    hint = f"`tenv create {target.name} --python {max(minors, key=Version)}` takes the newest of them" if minors else ""
    if wanted and (Path(wanted).is_file() or "/" in wanted):
        found = uv.inspect(Path(wanted).absolute())
        if found is None or found.version.major_minor not in minors:
            have = f"is Python {found.version}" if found else "is not a working Python"
            raise UsageError(
                f"`--python {wanted}` {have}; the lock of {target.name} serves {', '.join(minors)}", hint=hint
            )
        return found
    if wanted and wanted not in minors:
        raise UsageError(f"`--python {wanted}`: the lock of {target.name} serves {', '.join(minors)}", hint=hint)
    preferred = wanted or (old.python if old and old.python in minors else "")
    open_ = [minor for minor in minors if minor not in unfit] or minors
    here = uv.interpreters([preferred] if preferred else open_)
    if here:
        return here[0]
    minor = preferred or max(open_, key=Version)
    try:
        program = uv.fetch_python(minor)
    except NetworkError as error:
        if not (unfit and (others := uv.interpreters(minors))):
            error.hint = _with_others(uv, target.name, [one for one in minors if one != minor], error.hint)
            raise
        other = others[0].version.major_minor
        error.hint = f"install Python {minor}, or use `--python {other}`, with which this PyTorch can't be built"
        raise
    fetched = uv.inspect(program)
    if fetched is None:
        raise EnvironmentBrokenError(f"the downloaded Python {program} does not run")
    return fetched


def _with_others(uv: "Uv", target: str, minors: Collection[str], hint: str) -> str:
    """Return a hint with the minors that this machine has, newest last, before what it says."""
    here = sorted((minor for minor in minors if uv.interpreters([minor])), key=Version)
    if not here:
        return hint
    have = f"this machine has Python {', '.join(here)}: `tenv create {target} --python {here[-1]}` takes it"
    return f"{have}; or {hint}" if hint else have
