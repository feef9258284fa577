"""The context of a verb: search path, environment variables, progress, network settings."""

import contextlib
import os
import shlex
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UnknownTargetError, UsageError
from tenv.core.truth_words import is_set
from tenv.core.versions import Version
from tenv.sources.access import Access
from tenv.targets.search import Origin, SearchPath, Target, find_places, settings_folder

if TYPE_CHECKING:
    from tenv.environment.marks import Registry
    from tenv.environment.state import Environment, State
    from tenv.environment.trust import Fault
    from tenv.facts.tables import Facts
    from tenv.targets.config import ProjectSettings


def _locked_cuda(lock: Path, name: str) -> Version | None:
    """Return the CUDA release of a lock; None where there is none that can be read."""
    from tenv.locks.lock_file import read_lock  # late: few targets take their CUDA from the lock

    try:
        text = read_lock(lock, name).requirements.get("cuda", "")
    except TenvError:
        return None
    return Version(text) if text else None


@dataclass(frozen=True, slots=True)
class Context(Access):
    """The context of a verb: what sources use, and the search path."""

    offline: bool = field(default_factory=lambda: is_set("TENV_OFFLINE"))
    """Never use the network; ``TENV_OFFLINE`` when a command does not say."""
    places: SearchPath = field(default_factory=lambda: replace(find_places(), locked_cuda=_locked_cuda))
    """The search path for targets and environments."""
    locked: bool = field(default_factory=lambda: is_set("TENV_LOCKED"))
    """Refuse an environment that does not have the files of its lock; likewise ``TENV_LOCKED``."""

    def project_settings(self) -> "ProjectSettings":
        """Return the settings in the project's ``tenv.toml``; empty outside a project."""
        from tenv.targets.config import ProjectSettings, read_project_settings  # late: few commands read it

        return read_project_settings(self.places.project) if self.places.project else ProjectSettings()

    def syncs(self) -> bool:
        """Return whether `tenv run` updates an environment first, by the settings of the project or the user."""
        sync = self.project_settings().sync
        return self.settings().sync if sync is None else sync

    def facts(self) -> "Facts":
        """Return the tables with the user's rows; raises FactsError for a file of the user that is not valid."""
        from tenv.facts.tables import default_overrides, load_facts  # late: few commands judge

        folder = next(place.folder for place in self.places.places if place.origin is Origin.USER)
        return load_facts(default_overrides(self.environ, folder))

    def find_target(self, name: str | None) -> Target:
        """Return a target by its name; None means the default target."""
        return self.places.find(name or self.default_target())

    def chosen_targets(self, name: str | None) -> list[str]:
        """Return the name of a target as a list; without one, the names of all targets of the project.

        Raises:
            UsageError: None is named, and there is no project, or it has no targets of its own.
        """
        if name:
            return [name]
        if own := self.places.project_targets():
            return own
        self.places.require_trust("no TARGET is given, and ")
        here = "the project has no targets of its own" if self.places.project else "there is no project"
        raise UsageError(f"no TARGET is given, and {here}", hint=self._first_step())

    def default_target(self) -> str:
        """Return the default target: that of ``tenv.toml``, the only one of the project, or the only environment.

        Raises:
            UsageError: There is no environment, or more than one.
            UnknownTargetError: There is no target of the name in ``tenv.toml``.
        """
        own = self.places.project_targets()
        if name := self.project_settings().default:
            known = name in own or name in self.places.names() or (self.places.environments() / name).is_dir()
            return name if known else self._refuse_default(name, own)
        if len(own) == 1:
            return own[0]
        from tenv.environment.state import environments_in  # late: commands that only judge read no environment

        names = [environment.prefix.name for environment in environments_in(self.places.environments())]
        if len(names) == 1:
            return names[0]
        if names or own:
            several = f"several environments: {', '.join(names)}" if names else f"several targets: {', '.join(own)}"
            in_project = f"`tenv default {(own or names)[0]}` sets one for the project"
            hint = in_project if self.places.project else "`tenv list` lists them"
            raise UsageError(f"no TARGET is given, and there are {several}", hint=hint)
        self.places.require_trust("no TARGET is given, and ")
        raise UsageError("no TARGET is given, and there is no environment", hint=self._first_step())

    def _first_step(self) -> str:
        """Return the commands that lead to a target: from a file of another tool, or from the built-in ones."""
        from tenv.interop.formats import importable  # late: only for errors

        ways = "`tenv create auto` makes the best one for this machine, `tenv targets` lists all"
        with contextlib.suppress(OSError):
            if not self.places.checkout and (files := importable(Path.cwd())):
                return f"`tenv import {shlex.quote(files[0])}` makes a target of that file, {ways}"
        return ways

    def default_word(self) -> str:
        """Return the default target for a hint; ``TARGET`` where there is none."""
        try:
            return shlex.quote(self.default_target())
        except TenvError:
            return "TARGET"

    def _refuse_default(self, name: str, own: list[str]) -> NoReturn:
        from tenv.targets.config import PROJECT_FILE

        hint = f"`tenv default {own[0]}` sets another one" if own else "`tenv default --unset` takes it out"
        file = self.places.project / PROJECT_FILE if self.places.project else PROJECT_FILE
        raise UnknownTargetError(f"{file}: default: there is no target `{name}`", hint=hint)

    def registry(self) -> "Registry":
        """Return the marks of this user's environments."""
        from tenv.environment.marks import Registry
        from tenv.targets.config import safe_folders, system_safe_folders

        def named() -> Iterator[Path]:
            yield from safe_folders(settings_folder(), self.environ)
            yield from system_safe_folders()

        return Registry(self.places.data, named)

    def fault_of(self, environment: "Environment", name: str = "") -> "Fault | None":
        """Return why an environment can't be used as it is; None for one that can, or where there is none.

        Args:
            environment: The environment.
            name: Its target, for the command of the hint; the name of its folder when empty.
        """
        from tenv.environment.trust import find_fault

        return find_fault(environment, self.registry(), self._creating(environment.prefix, name))

    def _creating(self, prefix: Path, name: str, unnamed: str = "") -> str:
        """Return the command that creates an environment; `unnamed` stands for the name of another folder's target."""
        known = name or prefix.name
        usual = prefix in (self.places.environments() / known, self.places.data / "envs" / known)
        where = "" if usual else f" --prefix {shlex.quote(str(prefix))}"
        return f"tenv create {shlex.quote(known if name or usual else unnamed or known)}{where}"

    def require_usable(self, environment: "Environment", name: str = "", *, gutted: bool = False) -> None:
        """Raise EnvironmentBrokenError for an environment that can't be used as it is.

        Args:
            environment: The environment.
            name: As in `fault_of`.
            gutted: Accept one whose essential files are gone or changed.
        """
        from tenv.environment.trust import Reason

        fault = self.fault_of(environment, name)
        if fault and not (gutted and fault.reason is Reason.GUTTED):
            raise fault.error()

    def require_ready(self, environment: "Environment", name: str = "", *, gutted: bool = False) -> "State":
        """Return the state of an environment that is this user's, where it was made, whole and ready.

        Raises:
            EnvironmentMissingError: There is none.
            EnvironmentBrokenError: It is not ready, or can't be used as it is.
        """
        self.require_usable(environment, name, gutted=gutted)
        command = self._creating(environment.prefix, name, "TARGET")
        return environment.require_ready(name or environment.prefix.name, command)

    def environment(self, name: str, prefix: Path | None) -> "Environment":
        """Return the environment of a target; `prefix` replaces the default folder."""
        from tenv.environment.state import Environment

        if prefix is not None:
            return Environment(Path(os.path.abspath(os.path.expanduser(prefix))))  # noqa: PTH100, PTH111 (links stay)
        return Environment(self.places.environments() / name)


def without_beside(context: Context, target: Target) -> Context:
    """Return the context without the programs of the environment that a target is beside: tenv runs none of them."""
    if not target.manifest.beside:
        return context
    from tenv.targets.torch_beside import environ_outside  # late: few targets are beside another environment

    return replace(context, environ=environ_outside(context.environ, target.manifest.beside))
