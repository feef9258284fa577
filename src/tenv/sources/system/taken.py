"""What environments take from the machine: chosen and fingerprinted at `create`, looked at again later."""

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenv.activation.changes import Watch
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.files import storage_errors
from tenv.core.versions import Version
from tenv.environment.state import Environment
from tenv.sources.interface import Access
from tenv.sources.system.fingerprint import (
    Drift,
    Fingerprint,
    describe,
    differences,
    read_fingerprints,
    retimed,
    take_fingerprint,
    write_fingerprints,
)
from tenv.sources.system.interface import Tool
from tenv.targets.manifest import Manifest

__all__ = ["Taken", "alarm", "changes", "retime", "store", "take_from_machine"]

_STAMPS = "system"


@dataclass(frozen=True, slots=True)
class Taken:
    """What an environment takes from the machine.

    Attributes:
        tools: The tools, as they are now.
        before: What the environment was made with, where it is there already.
        drifts: What of that is no longer what it was.
    """

    tools: tuple[Tool, ...] = ()
    before: tuple[Fingerprint, ...] = ()
    drifts: tuple[Drift, ...] = ()

    @property
    def touched(self) -> bool:
        """Whether some file has new times and the bytes that it had."""
        return retimed(self.before, self.drifts) != self.before

    @property
    def same(self) -> bool:
        """Whether the environment has these tools already, unchanged."""
        had = {(one.name, one.path, one.version, one.accepted) for one in self.before}
        now = {(tool.name, str(tool.path), tool.version, tool.accepted) for tool in self.tools}
        return had == now and not self.drifts

    def notes(self) -> list[str]:
        """Return what a person should know: what is taken, what was wrong with it, and what is accepted now."""
        kept = {(tool.name, str(tool.path)) for tool in self.tools}
        drifts = [drift for drift in self.drifts if (drift.name, drift.tool) in kept]
        accepted = [f"accepted: {what}" for what in describe(drifts)]
        taken = [f"{tool.name} {tool.version} of this machine: {tool.path} ({tool.found_by})" for tool in self.tools]
        return [*accepted, *taken, *(note for tool in self.tools for note in tool.notes)]


def take_from_machine(access: Access, manifest: Manifest, environment: Environment) -> Taken:
    """Choose what a manifest asks of the machine.

    Args:
        access: What sources are given.
        manifest: The manifest as it reads on this platform.
        environment: The environment that it is for.

    Raises:
        HostError: The machine lacks something.
    """
    try:
        before = read_fingerprints(environment.meta)
    except EnvironmentBrokenError:  # made anew below
        before = ()
    if not manifest.system:
        return Taken(before=before)
    from tenv.host.places import Places  # late: most targets take nothing from the machine
    from tenv.sources.system.take import take

    facts = access.facts()

    def most(cuda: str) -> int | None:
        limits = facts.cuda_host_compiler.limits(Version(cuda))
        return limits.gcc_max if limits else None

    kept = {one.name: one.path for one in before}
    tools = take(manifest, Places(environ=access.environ), kept, most)
    return Taken(tools, before, tuple(differences(before)))


def store(environment: Environment, target: str, taken: Taken) -> tuple[tuple[Fingerprint, ...], tuple[Watch, ...]]:
    """Write the fingerprints of what is taken, and the stamps that shells compare; return both.

    Raises:
        StorageError: Something can't be written.
    """
    with storage_errors("can't read what is taken from this machine"):
        fingerprints = tuple(take_fingerprint(tool) for tool in taken.tools)
    write_fingerprints(environment.meta, fingerprints)
    return fingerprints, _watches(environment, fingerprints, target)


def _watches(environment: Environment, fingerprints: Sequence[Fingerprint], target: str) -> tuple[Watch, ...]:
    folder = environment.meta / _STAMPS
    with storage_errors(f"can't write {folder}"):
        for old in folder.glob("*"):
            old.unlink()
        return tuple(_watch(folder, one, target) for one in fingerprints)


def retime(environment: Environment, target: str) -> None:
    """Take the times that unchanged files of the machine have now: the same bytes may have been written again.

    Without that the stored script, which looks at times alone, would tell of a change that there is none of.

    Args:
        environment: The environment, which this process holds.
        target: Its target.

    Raises:
        StorageError: Something can't be written.
    """
    had = read_fingerprints(environment.meta)
    with storage_errors("can't read what is taken from this machine"):
        now = retimed(had, differences(had))
    if now != had:
        write_fingerprints(environment.meta, now)
        _watches(environment, now, target)


def _watch(folder: Path, fingerprint: Fingerprint, target: str) -> Watch:
    """Make a stamp for each watched file of a tool: an empty file with the same time of last change."""
    times = {mark.path: mark.mtime_ns for mark in fingerprint.marks}
    pairs = []
    for number, file in enumerate(fingerprint.watched):
        stamp = _stamp(folder, fingerprint, number)
        stamp.parent.mkdir(exist_ok=True)
        stamp.touch()
        os.utime(stamp, ns=(times[file], times[file]))
        if stamp.stat().st_mtime_ns != times[file]:  # a file system with coarser times: no stamp, no false alarm
            stamp.unlink()
        pairs.append((file, str(stamp)))
    said = f"{fingerprint.name} {fingerprint.version} of this machine ({fingerprint.path}) has changed or is gone"
    return Watch(tuple(pairs), f"warning: {said}; {_hint(folder.parent.parent, target)}")


def _stamp(folder: Path, fingerprint: Fingerprint, number: int) -> Path:
    return folder / f"{fingerprint.name}-{number}"


def _hint(prefix: Path, target: str) -> str:
    """Return what accepts a change, with the environment's folder, since that need not be the usual one."""
    return f"`tenv create --prefix {shlex.quote(str(prefix))} {target}` accepts what is there now"


def changes(environment: Environment, *, deep: bool = False) -> list[Drift]:
    """Return what an environment takes from the machine and is no longer what it was.

    Args:
        environment: The environment.
        deep: Read every file, whatever its size and times tell.

    Raises:
        EnvironmentBrokenError: The fingerprints can't be read.
    """
    return differences(read_fingerprints(environment.meta), deep=deep)


def alarm(environment: Environment, target: str, *, beyond_shell: bool = False) -> Sequence[str]:
    """Return a sentence for each tool of the machine that is no longer what an environment was made with.

    Args:
        environment: The environment.
        target: Its target.
        beyond_shell: Leave out what the stored script will tell by itself.
    """
    found = changes(environment)
    if beyond_shell:
        _calm(environment, found)
        loud = {drift.name for drift in found if _seen_by_shell(environment, drift)}
        found = [drift for drift in found if drift.name not in loud]
    return [f"{what}; {_hint(environment.prefix, target)}" for what in describe(found)]


def _seen_by_shell(environment: Environment, drift: Drift) -> bool:
    """Tell whether the stored script, which compares times alone, sees that a file has changed."""
    for file, stamp in _stamped(environment):
        if str(file) == drift.file:
            try:
                return drift.gone or file.stat().st_mtime_ns != stamp.stat().st_mtime_ns
            except OSError:
                return not file.is_file()
    return False


def _calm(environment: Environment, drifts: Sequence[Drift]) -> None:
    """Keep the stored script from telling of files that were written again with the same bytes."""
    changed = {drift.file for drift in drifts}
    for file, stamp in _stamped(environment):
        with contextlib.suppress(OSError):  # a courtesy: the environment may be another user's
            now = file.stat().st_mtime_ns
            if str(file) not in changed and stamp.stat().st_mtime_ns != now:
                os.utime(stamp, ns=(now, now))


def _stamped(environment: Environment) -> Iterator[tuple[Path, Path]]:
    """Yield the files that the stored script looks at, with the stamp of each."""
    for one in read_fingerprints(environment.meta):
        for number, file in enumerate(one.watched):
            yield Path(file), _stamp(environment.meta / _STAMPS, one, number)
