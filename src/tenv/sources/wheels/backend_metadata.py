"""The metadata and the wheel that the build backend of a source tree makes, by the hooks of PEP 517 and PEP 660.

The backend runs with the rights of the user, in an environment of its own with its requirements from the index in use.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, NoSolutionError
from tenv.core.files import read_regular
from tenv.core.names import is_dist_info
from tenv.sources.wheels.git_trees import git_environment
from tenv.sources.wheels.project_metadata import (
    ProjectMetadata,
    build_system,
    parse_core_metadata,
    requirement_lines,
)
from tenv.sources.wheels.sdist_builds import hint_of_failure, last_lines
from tenv.sources.wheels.uv import Uv
from tenv.toolchain.discover import python_program

if TYPE_CHECKING:
    from pyproject_hooks import BuildBackendHookCaller

_SECONDS = 1800.0
"""A backend without the hook for metadata builds the whole wheel."""


_HINT = "write `version` and `dependencies` in the [project] of its pyproject.toml, without `dynamic`"


@dataclass(frozen=True, slots=True)
class Backend:
    """The build backend of a source tree."""

    uv: Uv
    """uv, which installs the requirements of the backend."""
    python: Path
    """The Python that runs it."""
    folder: Path
    """The source tree."""
    where: str
    """The source tree, and the failure where it is to write a wheel, for messages."""
    environ: Mapping[str, str]
    """The variables of the backend."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """More variables for uv."""

    def metadata(self) -> ProjectMetadata:
        """Return the metadata of the source tree.

        Raises:
            NoSolutionError: The tree has no build backend, or it fails.
            NetworkError: The index of its requirements can't be reached.
        """
        with self._hooks() as (caller, place):
            info = caller.prepare_metadata_for_build_wheel(str(place))
            if not is_dist_info(info):
                raise ValueError(f"{info!r} is not the name of a folder of metadata")
            return parse_core_metadata(read_regular(place / info / "METADATA"), self.where)

    def wheel(self, out: Path, *, editable: bool = False, network: bool = True) -> Path:
        """Return the wheel that the backend writes.

        Args:
            out: The folder for the wheel.
            editable: Whether the wheel imports from the source tree itself.
            network: Whether the backend may open a socket (Linux).

        Raises:
            EnvironmentBrokenError: The tree has no build backend, or it fails.
            NetworkError: The index of its requirements can't be reached.
        """
        out.mkdir(exist_ok=True)
        try:
            with self._hooks(wheel=True, editable=editable, network=network) as (caller, _):
                name = (caller.build_editable if editable else caller.build_wheel)(str(out))
                if "/" in name or not (out / name).is_file():
                    raise ValueError(f"{name!r} is not the name of a wheel that it wrote")
                return out / name
        except NoSolutionError as error:
            raise EnvironmentBrokenError(error.message, hint=error.hint) from error

    @contextlib.contextmanager
    def _hooks(
        self, *, wheel: bool = False, editable: bool = False, network: bool = True
    ) -> "Iterator[tuple[BuildBackendHookCaller, Path]]":
        """Yield the hooks of the backend with all that it requires, and a folder that is removed afterwards."""
        from pyproject_hooks import BackendUnavailable, BuildBackendHookCaller, HookMissing  # late

        file, where = self.folder / "pyproject.toml", self.where
        requires, backend, inside = build_system(read_regular(file) if file.is_file() else None, where)
        with tempfile.TemporaryDirectory(prefix="tenv-") as name:
            place = Path(name)
            self.uv.make_environment(place / "environment", self.python, "build")
            own = python_program(place / "environment")
            hooks = _Hooks(own, where, self.environ, network=network)
            self._install(own, requires)
            try:
                caller = BuildBackendHookCaller(str(self.folder), backend, inside, hooks.run, str(own))
                asked = caller.get_requires_for_build_editable if editable else caller.get_requires_for_build_wheel
                self._install(own, requirement_lines(asked()))
                hooks.builds = wheel
                yield caller, place
            except BackendUnavailable as error:
                why = "".join(str(error).strip().splitlines()[-1:])
                raise NoSolutionError(f"{where}: its build backend {backend} can't be imported: {why}") from error
            except HookMissing as error:
                raise NoSolutionError(f"{where}: its build backend {backend} has no {error.hook_name}") from error
            except (KeyError, ValueError, TypeError, AttributeError, OSError) as error:
                raise NoSolutionError(f"{where}: its build backend {backend} does not answer: {error}") from error

    def _install(self, python: Path, requires: Iterable[str]) -> None:
        lines = "".join(f"{line}\n" for line in requires)
        if not lines:
            return
        words = ("pip", "install", "--python", str(python), "--requirement", "-", *self.uv.indexes())
        done = self.uv.run(*words, text=lines, backends=True, settings={}, **self.settings)
        if done.status:
            raise self.uv.error(done.stderr, f"{self.where}: what its build backend requires can't be installed")


class _Hooks:
    """Runs the hooks of a backend."""

    def __init__(self, python: Path, where: str, environ: Mapping[str, str], *, network: bool) -> None:
        path = os.pathsep.join(filter(None, (str(python.parent), environ.get("PATH"))))
        kept = {name: value for name, value in git_environment(environ).items() if not name.startswith("PYTHON")}
        self._environ = {**kept, "PATH": path, "VIRTUAL_ENV": str(python.parent.parent)}
        self._where = where
        self._network = network
        self.builds = False  # whether it writes the wheel: another failure is one of its metadata

    def run(self, cmd: Sequence[str], cwd: str | None = None, extra_environ: Mapping[str, str] | None = None) -> None:
        """Run a hook; names and meaning of the arguments are those of `pyproject_hooks`.

        Raises:
            NoSolutionError: It fails.
        """
        environment = {**self._environ, **(extra_environ or {})}
        if not self._network:
            from tenv.activation import sandbox  # late: only for a commit of a repository

            cmd = [sys.executable, "-I", sandbox.__file__, "", *cmd]
        done = process.run(
            cmd, environment=environment, folder=Path(cwd) if cwd else None, timeout=_SECONDS, family=True
        )
        if isinstance(done, process.Missing):
            raise NoSolutionError(f"{self._where}: its build backend does not run: {done.reason}")
        if done.status:
            shown = last_lines(done.stderr or done.stdout)
            does = "" if self.builds else "can't say what it requires, and "
            what = f"{self._where}: its build backend {does}ends with {done.status}"
            hint = _HINT if not self.builds else "" if self._network else hint_of_failure(done.stderr)
            raise NoSolutionError(f"{what}:{shown}" if shown else what, hint=hint)
