"""Bring the packages of a prefix to what a lock says, in a way that can be stopped at any moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from tenv.environment import Environment, State, Status
from tenv.errors import EnvironmentBrokenError
from tenv.files import storage_errors
from tenv.lock import Wheel
from tenv.providers.interface import Progress
from tenv.providers.pypi import Interpreter, Uv
from tenv.shells import posix
from tenv.toolchain import discover

__all__ = ["Plan", "begin", "install", "make_plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the packages of a prefix are brought to what the lock says.

    Attributes:
        wheels: The wheels that it shall hold.
        python: The Python that it is made with.
        scratch: Clear the prefix first, since what is in it is not known to be whole.
        ours: The packages that are tenv's, before or after.
        foreign: Files, relative to the prefix, that are not tenv's and stay.
        dropped: Whether files that are not tenv's go, since they were for another Python.
    """

    wheels: tuple[Wheel, ...]
    python: Interpreter
    scratch: bool
    ours: Mapping[str, str]
    foreign: tuple[str, ...]
    dropped: bool


def make_plan(
    environment: Environment, wheels: tuple[Wheel, ...], python: Interpreter, old: State | None, *, exact: bool
) -> Plan:
    """Look at what is in the prefix and decide what may stay.

    A prefix that was ready is brought up to date in place. One that was not is cleared and filled anew, all but the
    files that were there before tenv began and those of packages that are in neither lock.
    """
    ours = {**(old.packages if old else {}), **{wheel.name: wheel.version for wheel in wheels}}
    same_python = not old or old.python in ("", python.version.major_minor)
    ready = bool(old and old.status is Status.READY and discover(environment.prefix).python.exists())
    foreign: set[str] = set()
    if old and not exact:
        if old.status is Status.READY:
            foreign.update(environment.foreign_files(ours))
        else:
            foreign.update(old.foreign)
            foreign.update(environment.files_of(set(environment.installed()) - set(ours)))
    return Plan(
        wheels=wheels,
        python=python,
        scratch=not (ready and same_python) or exact,
        ours=ours,
        foreign=tuple(sorted(foreign)) if same_python else (),
        dropped=bool(foreign) and not same_python,
    )


def begin(environment: Environment, target: str, plan: Plan, old: State | None) -> None:
    """Write down that the environment is being changed, and what in it is not tenv's."""
    with storage_errors(f"can't create {environment.prefix}"):
        environment.meta.mkdir(parents=True, exist_ok=True)
        (environment.meta / posix.SCRIPT).unlink(missing_ok=True)
    python = old.python if old else plan.python.version.major_minor
    state = State(Status.CREATING, target, packages=plan.ours, foreign=plan.foreign, python=python)
    environment.write_state(state)


def install(uv: Uv, environment: Environment, plan: Plan, progress: Progress) -> None:
    """Bring the packages of the prefix to what the lock says."""
    prefix = environment.prefix
    if plan.scratch:
        environment.wipe(plan.foreign)
        uv.make_environment(prefix, plan.python.path, prefix.name)
    program = discover(prefix).python
    gone = sorted(set(environment.installed()) & set(plan.ours) - {wheel.name for wheel in plan.wheels})
    if gone:
        uv.remove(program, gone)
    progress.step("downloading and installing", sum(wheel.size or 0 for wheel in plan.wheels))
    if plan.wheels:
        uv.install(program, plan.wheels, progress)
    installed = environment.installed()
    wrong = [wheel.name for wheel in plan.wheels if installed.get(wheel.name) != wheel.version]
    if wrong:
        raise EnvironmentBrokenError(f"{prefix}: {', '.join(wrong)} did not arrive in the version of the lock")
