"""The context of a verb: search path, environment variables, progress, network settings."""

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UnknownTargetError, UsageError
from tenv.core.progress import Progress, Silent
from tenv.core.truth_words import is_true
from tenv.core.user_folders import user_home
from tenv.core.versions import Version
from tenv.targets.search import SearchPath, Target, find_places, settings_folder

if TYPE_CHECKING:
    from tenv.core.carried_files import CarriedFiles
    from tenv.core.http_settings import HttpSettings
    from tenv.core.link_mode import LinkMode
    from tenv.core.unpack_limits import UnpackLimits
    from tenv.environment.marks import Registry
    from tenv.environment.state import Environment, State
    from tenv.environment.trust import Fault
    from tenv.facts.tables import Facts
    from tenv.rattler_api.network import Network
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.config import ProjectSettings, Settings


def is_set(name: str) -> bool:
    """Return whether a variable such as ``TENV_OFFLINE`` is on.

    Raises:
        UsageError: Its value is neither yes nor no.
    """
    value = os.environ.get(name, "")
    if (found := is_true(value)) is None:
        raise UsageError(f"{name} is `{value}`", hint=f"`export {name}=1` turns it on, `unset {name}` turns it off")
    return found


def _locked_cuda(lock: Path, name: str) -> Version | None:
    """Return the CUDA release of a lock; None where there is none that can be read."""
    from tenv.locks.lock_file import read_lock  # late: few targets take their CUDA from the lock

    try:
        text = read_lock(lock, name).requirements.get("cuda", "")
    except TenvError:
        return None
    return Version(text) if text else None


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a verb."""

    places: SearchPath = field(default_factory=lambda: replace(find_places(), locked_cuda=_locked_cuda))
    """The search path for targets and environments."""
    progress: Progress = field(default_factory=Silent)
    """Receives progress."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment variables of the calling process."""
    offline: bool = field(default_factory=lambda: is_set("TENV_OFFLINE"))
    """Never use the network; ``TENV_OFFLINE`` when a command does not say."""
    locked: bool = field(default_factory=lambda: is_set("TENV_LOCKED"))
    """Refuse an environment that does not have the files of its lock; likewise ``TENV_LOCKED``."""
    carried: "CarriedFiles | None" = None
    """The files that are taken from a folder, by their digests, in place of any server; None mostly."""

    def uv(self) -> "Uv":
        """Return uv with the index settings of the user."""
        from tenv.core.link_mode import LINK_MODE
        from tenv.sources.wheels.uv import Uv  # late: 10 ms, which most commands need not spend

        environ = {**self.environ, LINK_MODE: self.link_mode()}
        if self.carried:
            links = self.carried.wheels.as_uri().replace(",", "%2C")  # uv splits the list there
            environ |= {"UV_NO_INDEX": "1", "UV_FIND_LINKS": links}
            if self.carried.pythons.is_dir():
                environ["UV_PYTHON_INSTALL_MIRROR"] = self.carried.pythons.as_uri()
            if self.carried.python_table.is_file():  # else uv's own table decides
                environ["UV_PYTHON_DOWNLOADS_JSON_URL"] = str(self.carried.python_table)
        uv = Uv(environ, user_home(), offline=self.offline)
        uv.limits = self.unpack_limits()
        uv.carried = self.carried
        return uv

    def settings(self) -> "Settings":
        """Return the user's settings from ``config.toml``."""
        from tenv.targets.config import read_settings

        return read_settings(settings_folder())

    def project_settings(self) -> "ProjectSettings":
        """Return the settings in the project's ``tenv.toml``; empty outside a project."""
        from tenv.targets.config import ProjectSettings, read_project_settings  # late: few commands read it

        return read_project_settings(self.places.project) if self.places.project else ProjectSettings()

    def syncs(self) -> bool:
        """Return whether `tenv run` updates an environment first, by the settings of the project or the user."""
        sync = self.project_settings().sync
        return self.settings().sync if sync is None else sync

    def network(self) -> "Network":
        """Return the network settings of the user for conda channels."""
        from tenv.rattler_api.network import Network  # late: only commands that use channels need it

        settings, authorities = self.settings(), self.http().authorities
        return Network(settings.mirrors, offline=self.offline, authorities=authorities, carried=self.carried)

    def http(self) -> "HttpSettings":
        """Return the HTTP settings of the user for tenv's own requests."""
        from tenv.sources.wheels.index_settings import uv_settings  # late: only commands that connect need it

        return uv_settings(self.environ, user_home()).http

    def unpack_limits(self) -> "UnpackLimits":
        """Return the limits on the unpacked size of one package, by ``config.toml`` and the environment."""
        from tenv.core.unpack_limits import UnpackLimits  # late: only commands that unpack need it
        from tenv.targets.config import unpack_limit

        return UnpackLimits.of(unpack_limit(settings_folder(), self.environ)[0])

    def link_mode(self) -> "LinkMode":
        """Return how files of caches come into environments, by ``config.toml`` and the environment."""
        from tenv.targets.config import link_mode  # late: only commands that install need it

        return link_mode(settings_folder(), self.environ)[0]

    def facts(self) -> "Facts":
        """Return the tables with the user's rows; raises FactsError for a file of the user that is not valid."""
        from tenv.project.user_facts import user_facts

        return user_facts(self)

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
