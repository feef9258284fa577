"""What every verb is given: where things are found, the caller's environment, and who watches."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import UsageError
from tenv.core.progress import Progress, Silent
from tenv.targets.search import SearchPath, Target, find_places, settings_folder

if TYPE_CHECKING:
    from tenv.core.http_settings import HttpSettings
    from tenv.environment.marks import Registry
    from tenv.environment.state import Environment
    from tenv.environment.trust import Fault
    from tenv.facts.tables import Facts
    from tenv.rattler_api.network import Network
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.config import Settings

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    """What every verb is given.

    Attributes:
        places: Where targets and environments are found.
        progress: Who watches.
        environ: The environment of the calling process.
        offline: Never use the network.
    """

    places: SearchPath = field(default_factory=find_places)
    progress: Progress = field(default_factory=Silent)
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    offline: bool = False

    def uv(self) -> "Uv":
        """Return uv with this user's index settings."""
        from tenv.sources.wheels.uv import Uv  # late: 10 ms that most commands need not spend

        return Uv(self.environ, Path.home(), offline=self.offline)

    def settings(self) -> "Settings":
        """Return what the user's own ``config.toml`` says."""
        from tenv.targets.config import read_settings

        return read_settings(settings_folder())

    def network(self) -> "Network":
        """Return how conda channels are reached for this user."""
        from tenv.rattler_api.network import Network  # late: only those who use channels need it

        return Network(self.settings().mirrors, offline=self.offline, authorities=self.http().authorities)

    def http(self) -> "HttpSettings":
        """Return how tenv's own requests are made for this user."""
        from tenv.sources.wheels.index_settings import uv_settings  # late: only for those who connect

        return uv_settings(self.environ, Path.home()).http

    def facts(self) -> "Facts":
        """Return the tables with the rows of this user; raises FactsError when a file of theirs can't be used."""
        from tenv.project.user_facts import user_facts

        return user_facts(self)

    def find_target(self, name: str | None) -> Target:
        """Return a target by its name; without one, the target of the only environment here."""
        return self.places.find(name or self.only_environment())

    def only_environment(self) -> str:
        """Return the name of the only environment at hand.

        Raises:
            UsageError: There is none, or more than one.
        """
        from tenv.environment.state import environments_in  # late: who only judges reads none

        names = [environment.prefix.name for environment in environments_in(self.places.environments())]
        if len(names) == 1:
            return names[0]
        if not names:
            raise UsageError("no target is named, and no environment is here", hint="`tenv targets` lists the targets")
        raise UsageError(f"no target is named, and there are several environments: {', '.join(names)}")

    def registry(self) -> "Registry":
        """Return the marks of this user's environments."""
        from tenv.environment.marks import Registry
        from tenv.targets.config import safe_folders

        return Registry(self.places.data, lambda: safe_folders(settings_folder(), self.environ))

    def fault_of(self, environment: "Environment", name: str = "") -> "Fault | None":
        """Return why an environment can't be used as it is; None for one that can, or where there is none.

        Args:
            environment: The environment.
            name: Its target, for the command of the hint; the name of its folder when empty.
        """
        from tenv.environment.trust import find_fault

        prefix = environment.prefix
        name = name or prefix.name
        usual = prefix in (self.places.environments() / name, self.places.data / "envs" / name)
        where = "" if usual else f" --prefix {shlex.quote(str(prefix))}"
        return find_fault(environment, self.registry(), f"tenv create {shlex.quote(name)}{where}")

    def environment(self, name: str, prefix: Path | None) -> "Environment":
        """Return the environment of a target; `prefix` wins over the place that follows from the project."""
        from tenv.environment.state import Environment

        if prefix is not None:
            return Environment(Path(os.path.abspath(prefix.expanduser())))  # noqa: PTH100 (links stay as they are)
        return Environment(self.places.environments() / name)
