"""The settings and services of the user, as sources use them."""

import os
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.progress import Progress, Silent
from tenv.core.user_folders import user_home
from tenv.targets.search import settings_folder

if TYPE_CHECKING:
    from tenv.core.carried_files import CarriedFiles
    from tenv.core.http_settings import HttpSettings
    from tenv.core.link_mode import LinkMode
    from tenv.core.unpack_limits import UnpackLimits
    from tenv.facts.tables import Facts
    from tenv.rattler_api.network import Network
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.config import Settings


@dataclass(frozen=True, slots=True)
class Access:
    """The settings and services of the user."""

    progress: Progress = field(default_factory=Silent)
    """Receives progress."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment variables of the calling process."""
    offline: bool = False
    """Never use the network."""
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
        uv = Uv(environ, user_home(), offline=self.offline, user=self.settings())
        uv.limits = self.unpack_limits()
        uv.carried = self.carried
        return uv

    def settings(self) -> "Settings":
        """Return the user's settings from ``config.toml``."""
        from tenv.targets.config import read_settings

        return read_settings(settings_folder())

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
        """Return the tables with the user's rows."""
        raise NotImplementedError
