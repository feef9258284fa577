"""Bring the packages of a prefix to what a lock says, in a way that can be stopped at any moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tenv.activation.shells.interface import SHELLS
from tenv.core.errors import EnvironmentBrokenError, ForeignFolderError, NetworkError
from tenv.core.files import storage_errors
from tenv.core.names import normalize
from tenv.core.prefix import clear
from tenv.core.progress import Progress
from tenv.core.versions import same_release
from tenv.environment.installed_files import CondaPackages, Wheels, foreign_files
from tenv.environment.state import Environment, State, Status
from tenv.host.machine import current_platform
from tenv.install.conda_staging import Staged
from tenv.locks.lock import CondaPackage, Wheel
from tenv.rattler_api.install import link
from tenv.sources.wheels.interpreters import Interpreter
from tenv.sources.wheels.uv import Uv
from tenv.toolchain.discover import discover

__all__ = ["Plan", "Wanted", "begin", "install", "make_plan", "settle"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a prefix shall hold.

    Attributes:
        wheels: The wheels.
        conda: The conda packages.
        python: The Python that it is made with; None when it needs none.
        own_python: Whether that Python is one of the conda packages, and not the base of a virtual environment.
    """

    wheels: tuple[Wheel, ...]
    conda: tuple[CondaPackage, ...] = ()
    python: Interpreter | None = None
    own_python: bool = False

    @property
    def minor(self) -> str:
        """The Python minor, empty when there is no Python."""
        return self.python.version.major_minor if self.python else ""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the packages of a prefix are brought to what the lock says.

    Attributes:
        wanted: What it shall hold.
        scratch: Clear the prefix first, since what is in it is not known to be whole.
        links: Whether conda packages are to be linked or removed.
        ours: The wheels that are tenv's, before or after.
        again: Wheels that are there in the right version but not from the right file.
        relinked: Conda packages of which the same is true.
        strange: Conda packages that are not tenv's and stay.
        foreign: Files, relative to the prefix, that are not tenv's and stay.
        dropped: Whether packages that are not tenv's go, since they were for another Python.
        thorough: Trust nothing of the package cache that its digest does not prove.
        staged: The conda packages, at hand; empty where none is to be linked.
        damaged: Wheels to fetch and install again, since their files are not what they were.
    """

    wanted: Wanted
    scratch: bool
    links: bool
    ours: Mapping[str, tuple[str, str]]
    again: tuple[str, ...]
    relinked: tuple[str, ...]
    strange: tuple[str, ...]
    foreign: tuple[str, ...]
    dropped: bool
    thorough: bool = False
    staged: Staged = field(default_factory=Staged)
    damaged: tuple[str, ...] = ()

    @property
    def packages(self) -> dict[str, tuple[str, str]]:
        """What the state remembers of the wheels."""
        return {wheel.name: (wheel.version, wheel.sha256) for wheel in self.wanted.wheels}

    @property
    def conda(self) -> dict[str, tuple[str, str, str]]:
        """What the state remembers of the conda packages."""
        return {
            package.name: (package.version, package.build, package.sha256 or package.md5)
            for package in self.wanted.conda
        }

    def with_damaged(self, names: Iterable[str]) -> "Plan":
        """Return the plan that also installs these packages again, trusting nothing of them that is in a cache."""
        damaged = set(names)
        conda = damaged & set(self.conda)
        return replace(
            self,
            links=self.links or bool(conda),
            relinked=tuple(sorted({*self.relinked, *conda})),
            thorough=self.thorough or bool(conda),
            damaged=tuple(sorted(damaged & set(self.packages))),
        )


def make_plan(environment: Environment, wanted: Wanted, old: State | None, *, exact: bool, other_python: bool) -> Plan:
    """Look at what is in the prefix and decide what may stay.

    A prefix that was ready is brought up to date in place. One that was not is cleared and filled anew, all but the
    files that were there before tenv began and those of packages that are in neither lock.

    Args:
        environment: The prefix.
        wanted: What it shall hold.
        old: What is known about it.
        exact: Keep nothing that is not tenv's.
        other_python: It has another Python program than the one asked for.
    """
    had = old.packages if old else {}
    had_conda = old.conda if old else {}
    new = {wheel.name: (wheel.version, wheel.sha256) for wheel in wanted.wheels}
    bare = Plan(wanted, scratch=True, links=False, ours={**had, **new}, again=(), relinked=(), strange=(), foreign=(),
                dropped=False, thorough=exact)  # fmt: skip
    same_python = not old or old.python in ("", wanted.minor)
    scratch = exact or other_python or not (same_python and _is_whole(environment, wanted, old))
    foreign = () if exact or not old else _foreign(environment, old, bare)
    kept = foreign if same_python else tuple(name for name in foreign if "site-packages" not in Path(name).parts)
    known = {*had_conda, *bare.conda}
    changed = dict(had_conda) != bare.conda or not CondaPackages(environment.prefix).hold(bare.conda)
    return replace(
        bare,
        scratch=scratch,
        links=bool(bare.conda or had_conda) and (scratch or changed),
        again=_changed(had, new),
        relinked=tuple(n for n, key in bare.conda.items() if n in had_conda and _other_file(had_conda[n], key)),
        strange=() if exact else tuple(name for name in CondaPackages(environment.prefix).names() if name not in known),
        foreign=kept,
        dropped=len(kept) < len(foreign),
    )


def _changed(had: Mapping[str, tuple[str, str]], new: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    return tuple(name for name, key in new.items() if name in had and had[name] != key and had[name][0] == key[0])


def _other_file(had: tuple[str, str, str], new: tuple[str, str, str]) -> bool:
    return had[:2] == new[:2] and had[2] != new[2]


def _is_whole(environment: Environment, wanted: Wanted, old: State | None) -> bool:
    """Tell whether a prefix is ready and has its Python in the form that is wanted."""
    if old is None or old.status is not Status.READY:
        return False
    if not old.python:
        return wanted.python is None or wanted.own_python
    virtual = (environment.prefix / "pyvenv.cfg").is_file()
    return discover(environment.prefix).python.exists() and virtual != wanted.own_python


def _foreign(environment: Environment, old: State, plan: Plan) -> tuple[str, ...]:
    """Return the files that are not tenv's.

    While `creating`, they are those that were there before, and those of packages that are in no lock: anything else
    may be the remains of an installation that was stopped. Of a broken state nothing is known, so that every file
    counts that no record of a package of ours names.
    """
    conda = {*old.conda, *plan.conda}
    if old.status is not Status.CREATING:
        return foreign_files(environment.prefix, plan.ours, conda)
    wheels, packages = Wheels(environment.prefix), CondaPackages(environment.prefix)
    theirs = {*wheels.files(set(wheels.names()) - {*plan.ours, *map(normalize, conda)})}
    theirs |= {*packages.files(set(packages.names()) - conda)}
    return tuple(sorted({*old.foreign, *(theirs - {*packages.files(conda)})}))


def settle(plan: Plan, staged: Staged, environment: Environment, old: State | None) -> Plan:
    """Return the plan with the conda packages at hand.

    Raises:
        ForeignFolderError: A package brings a file that stands in the prefix and is not tenv's.
    """
    certain: set[str] = set()
    if old and old.status is not Status.BROKEN:  # of a broken one nobody knows whose the files are
        certain = set(plan.foreign if old.status is Status.READY else old.foreign) & set(plan.foreign)
    # No file counts as a package's for want of its note; what tenv has installed is tenv's all the same.
    packages = CondaPackages(environment.prefix)
    lost = packages.without_note(name for name, key in plan.conda.items() if old and old.conda.get(name) == key)
    taken = sorted(name for name in certain & staged.files.keys() if staged.files[name] not in lost)
    if taken:
        raise ForeignFolderError(
            f"{staged.files[taken[0]]} brings `{taken[0]}`, which is in {environment.prefix} already and not from tenv"
            + (f" (and {len(taken) - 1} more files)" if len(taken) > 1 else ""),
            hint="move it away; `--exact` removes all that tenv did not install",
        )
    foreign = tuple(name for name in plan.foreign if name not in staged.files)
    # What the cache has was looked at as closely as was asked; rattler must see for itself only what to replace in it.
    return replace(plan, staged=staged, foreign=foreign, thorough=bool(staged.damaged))


def begin(environment: Environment, target: str, plan: Plan, old: State | None) -> None:
    """Write down that the environment is being changed, and what in it is not tenv's."""
    with storage_errors(f"can't create {environment.prefix}"):
        environment.meta.mkdir(parents=True, exist_ok=True)
        environment.tidy()
        for shell in SHELLS:
            (environment.meta / shell.SCRIPT).unlink(missing_ok=True)
    python = old.python if old else plan.wanted.minor
    conda = {**(old.conda if old else {}), **plan.conda}
    state = State(Status.CREATING, target, packages=plan.ours, conda=conda, foreign=plan.foreign, python=python)
    environment.write_state(state)


def install(uv: Uv, environment: Environment, plan: Plan, progress: Progress) -> None:
    """Bring the packages of the prefix to what the lock says.

    Raises:
        NetworkError: A file could not be had; `untouched` tells whether all is as it was before.
        TenvError: Anything else went wrong.
    """
    python = plan.wanted.python
    if plan.scratch:
        clear(environment.prefix, plan.foreign)
        if python and not plan.wanted.own_python:
            uv.make_environment(environment.prefix, python.path, environment.prefix.name)
    if plan.links:
        _remove_gone(uv, environment, plan)  # before a conda package of that name lays its own files there
        _link(environment, plan, progress)
    if python:
        _install_wheels(uv, environment, plan, progress)


def _link(environment: Environment, plan: Plan, progress: Progress) -> None:
    progress.step("installing conda packages", len(plan.staged.records))
    packages = CondaPackages(environment.prefix)
    for name in packages.without_note(plan.conda):
        for note in packages.notes().get(name, ()):  # rattler would stop over one that it can't read
            note.unlink()
    link(
        plan.staged.records,
        environment.prefix,
        current_platform(),
        plan.staged.archives,
        kept=plan.strange,
        again=plan.relinked,
        thorough=plan.thorough,
        on_linked=progress.advance,
    )
    if not packages.hold(plan.conda):
        missing = sorted(plan.conda.keys() - packages.names())
        raise EnvironmentBrokenError(f"{environment.prefix}: {', '.join(missing)} did not arrive as the lock says")


def _install_wheels(uv: Uv, environment: Environment, plan: Plan, progress: Progress) -> None:
    wheels = plan.wanted.wheels
    program = discover(environment.prefix).python
    there = Wheels(environment.prefix)
    before = there.versions()
    if wheels or not plan.wanted.own_python:
        progress.step("downloading and installing", sum(wheel.size or 0 for wheel in wheels))
    if plan.damaged:
        uv.forget(plan.damaged)
    if wheels:
        try:
            uv.install(program, wheels, (*plan.again, *plan.damaged), progress)
        except NetworkError as error:
            # uv has every file at hand before it takes the first old package away.
            error.untouched = not plan.scratch and not plan.links and there.versions() == before
            raise
    # Only now, so that a download that fails leaves a whole environment whole.
    if not plan.links:
        _remove_gone(uv, environment, plan)
    installed = there.versions()
    wrong = [wheel.name for wheel in wheels if not same_release(installed.get(wheel.name, ""), wheel.version)]
    if wrong:
        raise EnvironmentBrokenError(
            f"{environment.prefix}: {', '.join(wrong)} did not arrive in the version of the lock"
        )


def _remove_gone(uv: Uv, environment: Environment, plan: Plan) -> None:
    """Remove the wheels of the lock before that are not in this one."""
    gone = sorted(set(Wheels(environment.prefix).names()) & set(plan.ours) - set(plan.packages))
    if gone:
        uv.remove(discover(environment.prefix).python, gone)
