"""The system as a source: its tools are resolved, checked and fingerprinted, never installed."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.activation.changes import Watch
from tenv.environment.installed_files import NothingInstalled
from tenv.environment.state import Environment
from tenv.locks.lock import Lock
from tenv.sources.interface import Chosen, Problem, Source, Work, section_of
from tenv.sources.system.fingerprint import Drift, Fingerprint
from tenv.sources.system.taken import BESIDE, Taken, changes, fit, retime, store, take_from_machine
from tenv.targets.manifest import DEBUG_PYTHON, Manifest
from tenv.toolchain.discover import Toolchain

if TYPE_CHECKING:
    from tenv.sources.job import Job

_TOOLKIT = "cuda-toolkit"


class SystemSource(Source):
    """System tools; a lock holds their ranges, and no file."""

    section = section_of("system")

    def choose(self, problem: Problem, chosen: Chosen) -> None:
        """Select nothing: `create` resolves system tools."""

    def differences(self, lock: Lock, manifest: Manifest, platform: str) -> list[str]:
        """Return the differences between the ranges of the manifest and of the lock."""
        from tenv.locks.satisfaction import system_differences  # late: only for a lock whose manifest changed

        return system_differences(lock, manifest, platform)

    def records(self, prefix: Path) -> NothingInstalled:
        """Return no records, since system tools have no files in a prefix."""
        return NothingInstalled(prefix)

    def work(self, job: "Job") -> "SystemWork":
        """Return the work that adds system tools to an environment."""
        return SystemWork(job, self)

    def drifts(self, environment: Environment, *, deep: bool) -> Sequence[Drift]:
        """Return the changed files of system tools."""
        return changes(environment, deep=deep)

    def asked(self, request: Any) -> str:
        """Return the accepted range."""
        return str(request)


SOURCE: Source = SystemSource()


class SystemWork(Work):
    """Adds system tools to an environment."""

    _taken: Taken = Taken()
    _fingerprints: tuple[Fingerprint, ...] = ()
    _watches: tuple[Watch, ...] = ()

    def look(self) -> None:
        """Resolve the tools; raises HostError if the system lacks one."""
        self._taken = take_from_machine(self.job.context, self.job.manifest, self.job.environment)

    def is_current(self) -> bool:
        """Return whether the environment uses these tools already, unchanged."""
        return self._taken.same

    def has_harmless_changes(self) -> bool:
        """Return whether a file has new times and the same bytes."""
        return self._taken.touched

    def accept(self) -> None:
        """Record the present times of unchanged files."""
        retime(self.job.environment, self.job.target.name)

    def put(self) -> None:
        """Write the fingerprints, and the stamps that shells compare."""
        self._fingerprints, self._watches = store(self.job.environment, self.job.target.name, self._taken)

    def python(self) -> Path | None:
        """Return the host's debug build of Python, where the manifest asks for it."""
        return next((Path(tool.roles["python"]) for tool in self._taken.tools if tool.name == DEBUG_PYTHON), None)

    def toolkit_parts(self) -> tuple[Path, ...]:
        """Return the folders of NVIDIA's wheels that are taken from the environment beside this one."""
        rows = (one.roles.get("parts", "") for one in self._fingerprints if one.name == BESIDE)
        return tuple(Path(part) for row in rows for part in row.split(os.pathsep) if part)

    def brings_toolkit(self) -> bool:
        """Return whether the CUDA toolkit is a system tool."""
        return any(one.name == _TOOLKIT for one in self._fingerprints)

    def fit(self, toolchain: Toolchain) -> Toolchain:
        """Return the toolchain with the system tools."""
        return fit(toolchain, self._fingerprints)

    def watches(self) -> tuple[Watch, ...]:
        """Return the files that shells compare, to warn of a changed tool."""
        return self._watches

    def notes(self) -> Iterator[str]:
        """Yield the tools in use and their changes."""
        yield from self._taken.notes()
