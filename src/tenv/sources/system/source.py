"""The machine as a source: its tools are found, checked and fingerprinted, and never installed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.environment.installed_files import NothingInstalled
from tenv.locks.lock import Lock
from tenv.sources.interface import Chosen, Problem, Source, Work, section_of
from tenv.sources.system.taken import Taken, changes, retime, store, take_from_machine
from tenv.targets.manifest import DEBUG_PYTHON, Manifest
from tenv.toolchain.discover import Toolchain

if TYPE_CHECKING:
    from tenv.activation.changes import Watch
    from tenv.environment.state import Environment
    from tenv.sources.job import Job
    from tenv.sources.system.fingerprint import Drift, Fingerprint

__all__ = ["SOURCE"]

_TOOLKIT = "cuda-toolkit"


class SystemSource(Source):
    """Tools of the machine; a lock holds the ranges that are accepted, and no file."""

    section = section_of("system")

    def check(self, manifest: Manifest) -> None:
        """Refuse a tool that tenv does not know how to find."""
        if any(manifest.on(platform).system for platform in manifest.platforms):
            from tenv.sources.system.take import check_names  # late: loads every probe of tools

            check_names(manifest)

    def choose(self, problem: Problem, chosen: Chosen) -> None:
        """Choose nothing: what a machine has is asked where an environment is made."""

    def differences(self, lock: Lock, manifest: Manifest, platform: str) -> list[str]:
        """Return where the ranges that are accepted are others than those of the lock."""
        from tenv.locks.satisfaction import system_differences  # late: asked of a lock whose manifest has changed

        return system_differences(lock, manifest, platform)

    def records(self, prefix: Path) -> NothingInstalled:
        """Return no records: what is the machine's stays where it is."""
        return NothingInstalled(prefix)

    def work(self, job: "Job") -> "SystemWork":
        """Return what takes tools into an environment."""
        return SystemWork(job, self)

    def drifts(self, environment: "Environment", *, deep: bool) -> "Sequence[Drift]":
        """Return the files of the machine that are no longer what they were."""
        return changes(environment, deep=deep)

    def asked(self, request: Any) -> str:
        """Return the range that is accepted."""
        return str(request)


SOURCE: Source = SystemSource()


class SystemWork(Work):
    """Takes tools of the machine into an environment."""

    _taken: Taken = Taken()
    _fingerprints: "tuple[Fingerprint, ...]" = ()
    _watches: "tuple[Watch, ...]" = ()

    def look(self) -> None:
        """Choose the tools; raises HostError where the machine lacks one."""
        self._taken = take_from_machine(self.job.context, self.job.manifest, self.job.environment)

    def is_current(self) -> bool:
        """Tell whether the environment has these tools already, unchanged."""
        return self._taken.same

    def has_harmless_changes(self) -> bool:
        """Tell whether some file has new times and the bytes that it had."""
        return self._taken.touched

    def accept(self) -> None:
        """Write down the times that unchanged files have now."""
        retime(self.job.environment, self.job.target.name)

    def put(self) -> None:
        """Write down what is taken, and what shells compare."""
        self._fingerprints, self._watches = store(self.job.environment, self.job.target.name, self._taken)

    def python(self) -> Path | None:
        """Return the host's debug build of Python, where the manifest asks for it."""
        return next((Path(tool.roles["python"]) for tool in self._taken.tools if tool.name == DEBUG_PYTHON), None)

    def brings_toolkit(self) -> bool:
        """Tell whether the CUDA toolkit is the machine's own."""
        return any(one.name == _TOOLKIT for one in self._fingerprints)

    def fit(self, toolchain: Toolchain) -> Toolchain:
        """Return the toolchain with the tools of the machine in it."""
        from tenv.sources.system.fit import fit  # late: a create with nothing to do assembles nothing

        return fit(toolchain, self._fingerprints)

    def watches(self) -> "tuple[Watch, ...]":
        """Return what shells look at, to warn of a tool that has changed."""
        return self._watches

    def notes(self) -> Iterator[str]:
        """Yield what is taken, and what of it has changed."""
        yield from self._taken.notes()
