"""Bring the packages of a prefix to what a lock says, in a way that can be stopped at any moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tenv.environment import Environment, State, Status
from tenv.errors import EnvironmentBrokenError, NetworkError
from tenv.files import storage_errors
from tenv.lock import Wheel
from tenv.providers.interface import Progress
from tenv.providers.pypi import Interpreter, Uv
from tenv.shells.interface import SHELLS
from tenv.toolchain import discover
from tenv.versions import same_release

__all__ = ["Plan", "begin", "install", "make_plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the packages of a prefix are brought to what the lock says.

    Attributes:
        wheels: The wheels that it shall hold.
        python: The Python that it is made with.
        scratch: Clear the prefix first, since what is in it is not known to be whole.
        ours: The packages that are tenv's, before or after.
        again: Packages that are there in the right version but not from the right file.
        foreign: Files, relative to the prefix, that are not tenv's and stay.
        dropped: Whether packages that are not tenv's go, since they were for another Python.
        damaged: Packages to fetch and install again, since their files are not what they were.
    """

    wheels: tuple[Wheel, ...]
    python: Interpreter
    scratch: bool
    ours: Mapping[str, tuple[str, str]]
    again: tuple[str, ...]
    foreign: tuple[str, ...]
    dropped: bool
    damaged: tuple[str, ...] = ()

    @property
    def packages(self) -> dict[str, tuple[str, str]]:
        """What the state remembers of the wheels."""
        return {wheel.name: (wheel.version, wheel.sha256) for wheel in self.wheels}


def make_plan(
    environment: Environment,
    wheels: tuple[Wheel, ...],
    python: Interpreter,
    old: State | None,
    *,
    exact: bool,
    other_python: bool,
) -> Plan:
    """Look at what is in the prefix and decide what may stay.

    A prefix that was ready is brought up to date in place. One that was not is cleared and filled anew, all but the
    files that were there before tenv began and those of packages that are in neither lock.

    Args:
        environment: The prefix.
        wheels: The wheels that it shall hold.
        python: The Python that it shall have.
        old: What is known about it.
        exact: Keep nothing that is not tenv's.
        other_python: It has another Python program than the one asked for.
    """
    had = old.packages if old else {}
    new = {wheel.name: (wheel.version, wheel.sha256) for wheel in wheels}
    ours = {**had, **new}
    same_minor = not old or old.python in ("", python.version.major_minor)
    ready = bool(old and old.status is Status.READY and discover(environment.prefix).python.exists())
    foreign = () if exact or not old else _foreign(environment, old, ours)
    kept = foreign if same_minor else tuple(name for name in foreign if "site-packages" not in Path(name).parts)
    return Plan(
        wheels=wheels,
        python=python,
        scratch=exact or other_python or not (ready and same_minor),
        ours=ours,
        again=tuple(name for name, key in new.items() if name in had and had[name] != key and had[name][0] == key[0]),
        foreign=kept,
        dropped=len(kept) < len(foreign),
    )


def _foreign(environment: Environment, old: State, ours: Mapping[str, object]) -> tuple[str, ...]:
    """Return the files that are not tenv's.

    While `creating`, they are those that were there before, and those of packages that are in no lock: anything else
    may be the remains of an installation that was stopped. Of a broken state nothing is known, so that every file
    counts that no record of a package of ours names.
    """
    if old.status is not Status.CREATING:
        return environment.foreign_files(ours)
    theirs = environment.files_of(set(environment.installed()) - set(ours))
    return tuple(sorted({*old.foreign, *theirs}))


def begin(environment: Environment, target: str, plan: Plan, old: State | None) -> None:
    """Write down that the environment is being changed, and what in it is not tenv's."""
    with storage_errors(f"can't create {environment.prefix}"):
        environment.meta.mkdir(parents=True, exist_ok=True)
        environment.tidy()
        for shell in SHELLS:
            (environment.meta / shell.SCRIPT).unlink(missing_ok=True)
    python = old.python if old else plan.python.version.major_minor
    state = State(Status.CREATING, target, packages=plan.ours, foreign=plan.foreign, python=python)
    environment.write_state(state)


def install(uv: Uv, environment: Environment, plan: Plan, progress: Progress) -> None:
    """Bring the packages of the prefix to what the lock says.

    Raises:
        NetworkError: A file could not be had; `untouched` tells whether all is as it was before.
        TenvError: Anything else went wrong.
    """
    prefix = environment.prefix
    if plan.scratch:
        environment.wipe(plan.foreign)
        uv.make_environment(prefix, plan.python.path, prefix.name)
    program = discover(prefix).python
    before = environment.installed()
    progress.step("downloading and installing", sum(wheel.size or 0 for wheel in plan.wheels))
    if plan.damaged:
        uv.forget(plan.damaged)
    if plan.wheels:
        try:
            uv.install(program, plan.wheels, (*plan.again, *plan.damaged), progress)
        except NetworkError as error:
            # uv has every file at hand before it takes the first old package away.
            error.untouched = not plan.scratch and environment.installed() == before
            raise
    # Only now, so that a download that fails leaves a whole environment whole.
    gone = sorted(set(environment.installed()) & set(plan.ours) - set(plan.packages))
    if gone:
        uv.remove(program, gone)
    installed = environment.installed()
    wrong = [wheel.name for wheel in plan.wheels if not same_release(installed.get(wheel.name, ""), wheel.version)]
    if wrong:
        raise EnvironmentBrokenError(f"{prefix}: {', '.join(wrong)} did not arrive in the version of the lock")
