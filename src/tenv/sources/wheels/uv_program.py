"""The program uv: its settings, and how it is run."""

import contextlib
import functools
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tenv.core import process
from tenv.core.errors import EnvironmentBrokenError, HostError, NoSolutionError, TenvError
from tenv.core.http import Http
from tenv.core.unpack_limits import UnpackLimits
from tenv.sources.wheels.connections import Keyring
from tenv.sources.wheels.index_requests import UserIndexes
from tenv.sources.wheels.index_settings import UvSettings, index_rows, uv_settings
from tenv.sources.wheels.uv_output import ended_by_itself, index_urls, uv_error
from tenv.targets.config import Settings

if TYPE_CHECKING:
    from tenv.core.carried_files import CarriedFiles
    from tenv.sources.wheels.interpreters import Interpreter

_BUILD_SECONDS = 6 * 3600.0


@functools.cache
def _find() -> str:
    from uv import find_uv_bin  # late: only here

    return find_uv_bin()


@functools.cache
def _default_index() -> str:
    """Return the index that uv asks where none is named, from its answer to no request; empty where it gives none.

    uv gets none of the user's settings: it ends at a value that it does not know.
    """
    alone = ("--offline", "--no-config", "--no-cache")
    words = ["pip", "compile", "-", "--emit-index-url", *alone, "--python", sys.executable]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    done = process.run([_find(), *words], environment=environment, bound=False)
    return next(iter(index_urls("" if isinstance(done, process.Missing) else done.stdout)), "")


def _mirrored_default(settings: UvSettings, user: Settings) -> dict[str, str]:
    """Return the variable that names the user's mirror of uv's default index; none where that index is not asked."""
    named = any(row.get("default") for row in index_rows(settings.environment, settings.configuration))
    if not user.mirrors or named or settings.environment.get("UV_NO_INDEX"):
        return {}
    mirror, *_ = user.served(url := _default_index())
    return {} if mirror == url else {"UV_DEFAULT_INDEX": mirror}


class UvProgram:
    """uv with the index settings of the user.

    Attributes:
        environment: Its environment variables.
        offline: Use the cache alone.
        refresh: Ask for pages again that are fresh by the headers of their index.
        bare_servers: How many wheels each server had no file of metadata beside, for `from_index`.
        http: The client for tenv's own requests to the indexes.
        limits: The limits on the unpacked size of a wheel; a caller that knows the user's settings sets them.
        users: The named indexes of the user.
        configuration: The settings in the user's files of uv.
        carried: The files of a bundle, whose Python is taken in place of a download; None without a bundle.
    """

    def __init__(
        self, environment: Mapping[str, str], home: Path, *, offline: bool = False, user: Settings | None = None
    ) -> None:
        user = user or Settings()
        settings = uv_settings(environment, home, user)
        self.environment = {**settings.environment, **_mirrored_default(settings, user)}
        self.offline = offline or settings.offline
        self.refresh = False
        self.bare_servers: Counter[str] = Counter()
        self.limits = UnpackLimits()
        self.carried: CarriedFiles | None = None
        self.configuration = settings.configuration
        self._program = _find()
        self.users = UserIndexes.of(self.environment, settings.configuration, user)
        self._searched: dict[tuple[str, ...], list[Interpreter]] = {}
        ask = Keyring(self.environment, settings.configuration, self._output).ask
        self.http = Http(replace(settings.http, ask=ask))

    def _command(self, *arguments: str) -> list[str]:
        offline = ["--offline"] if self.offline else []
        return [self._program, *arguments, *offline, "--color", "never"]

    def indexes(self) -> list[str]:
        """Return options for index settings that have no variable."""
        return ["--no-index"] if self.environment.get("UV_NO_INDEX") else []

    @contextlib.contextmanager
    def _folder(self, settings: Mapping[str, Any] = MappingProxyType({})) -> Iterator[tuple[Path, dict[str, str]]]:
        """Yield a folder to run uv in, and its environment variables.

        The folder holds only uv's configuration, so the settings of the user's project do not affect the selection.

        Args:
            settings: More settings for uv's configuration.
        """
        with tempfile.TemporaryDirectory(prefix="tenv-") as name:
            folder = Path(name)
            environment = {**self.environment, **self.http.settings.authorities.variables(folder)}
            if not self.configuration and not settings:
                yield folder, {**environment, "UV_NO_CONFIG": "1"}
                return
            import tomlkit  # late: 22 ms, only for users with a configuration of uv

            file = folder / "uv.toml"
            file.write_text(tomlkit.dumps({**self.configuration, **settings}))
            yield folder, {**environment, "UV_CONFIG_FILE": str(file)}

    def _output(self, *arguments: str) -> str:
        """Return the output of uv; empty on failure. Thread-safe."""
        with self._folder() as (folder, environment):
            done = process.run(self._command(*arguments), environment=environment, folder=folder, bound=False)
        return "" if isinstance(done, process.Missing) or done.status else done.stdout

    def error(self, output: str, what: str, otherwise: type[TenvError] = NoSolutionError) -> TenvError:
        """Return the error for an output of uv."""
        return uv_error(output, what, self.http.settings.authorities, otherwise)

    def run(
        self,
        *arguments: str,
        text: str | None = None,
        backends: bool = False,
        settings: Mapping[str, Any] = MappingProxyType({}),
        **more: str,
    ) -> process.Completed:
        """Run uv to its end, with more environment variables; raises HostError if it does not run.

        With `backends`, it may run build backends, and all that they start ends with this process.
        """
        with self._folder(settings) as (folder, env):
            words, full = self._command(*arguments), {**env, **more}
            done = process.run(words, environment=full, folder=folder, text=text, family=backends)
        if isinstance(done, process.Missing):
            raise HostError(
                f"uv, a dependency of tenv, does not run: {done.reason}",
                hint="`pip install --force-reinstall uv` repairs it",
            )
        return ended_by_itself(done)

    def build_words(self, python: Path, source: Path, folder: Path) -> list[str]:
        """Return the command that builds a wheel from a source archive or a folder, as `build` runs it."""
        from tenv.activation import sandbox  # late: few targets have a source archive

        words = ["build", "--wheel", "--no-build-isolation", "--offline", "--color", "never"]
        words += ["--python", str(python), "--out-dir", str(folder), str(source)]
        return [sys.executable, "-I", sandbox.__file__, "", self._program, *words]

    def build(self, python: Path, archive: Path, folder: Path, environment: Mapping[str, str]) -> process.Completed:
        """Build a wheel from a source archive in the environment of a Python, without a network.

        Args:
            python: The Python of an environment with all that the build backend needs.
            archive: The source archive.
            folder: Where the wheel is written.
            environment: All variables of the build, beside those of uv.
        """
        with self._folder() as (place, own):
            kept = {name: value for name, value in own.items() if name.startswith("UV_")}
            done = process.run(
                self.build_words(python, archive, folder),
                environment={**kept, **environment},
                folder=place,
                timeout=_BUILD_SECONDS,
                family=True,
            )
        if isinstance(done, process.Missing):
            raise EnvironmentBrokenError(f"{archive.name} can't be built: {done.reason}")
        return ended_by_itself(done)
