"""The system tools of environments: resolved and fingerprinted at `create`, compared later."""

import contextlib
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.activation.changes import Watch
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.files import storage_errors
from tenv.core.versions import Version
from tenv.environment.state import Environment
from tenv.host.places import Places
from tenv.sources.access import Access
from tenv.sources.system.fingerprint import (
    Drift,
    Fingerprint,
    describe,
    differences,
    read_fingerprints,
    retimed,
    take_fingerprint,
    whose,
    write_fingerprints,
)
from tenv.sources.system.interface import Tool
from tenv.targets.manifest import Manifest
from tenv.toolchain.discover import Toolchain

BESIDE = "torch"
"""The name of the tool that is the torch of another environment."""

_STAMPS = "system"
_FOLDERS = ("cudnn", "cusparselt", "nccl", "mkl", "mpi")


@dataclass(frozen=True, slots=True)
class Taken:
    """The system tools of an environment."""

    tools: tuple[Tool, ...] = ()
    """The resolved tools."""
    before: tuple[Fingerprint, ...] = ()
    """The fingerprints in the environment."""
    drifts: tuple[Drift, ...] = ()
    """The changes since those fingerprints."""

    @property
    def touched(self) -> bool:
        """Whether a file has new times and the same bytes."""
        return retimed(self.before, self.drifts) != self.before

    @property
    def same(self) -> bool:
        """Whether the environment uses these tools already, unchanged."""
        had = {(one.name, one.path, one.version, one.accepted) for one in self.before}
        now = {(tool.name, str(tool.path), tool.version, tool.accepted) for tool in self.tools}
        return had == now and not self.drifts

    def notes(self) -> list[str]:
        """Return notes for the user: the tools in use, their problems, and accepted changes."""
        kept = {(tool.name, str(tool.path)) for tool in self.tools}
        drifts = [drift for drift in self.drifts if (drift.name, drift.tool) in kept]
        accepted = [f"accepted: {what}" for what in describe(drifts)]
        taken = [f"{one.name} {one.version} {whose(one.name)}: {one.path} ({one.found_by})" for one in self.tools]
        return [*accepted, *taken, *(note for tool in self.tools for note in tool.notes)]


def take_from_machine(access: Access, manifest: Manifest, environment: Environment) -> Taken:
    """Resolve the system tools of a manifest.

    Args:
        access: The settings and services of the user.
        manifest: The manifest for this platform.
        environment: The environment.

    Raises:
        HostError: The system lacks a tool.
    """
    try:
        before = read_fingerprints(environment.meta)
    except EnvironmentBrokenError:  # resolved again below
        before = ()
    if not manifest.system and not manifest.beside:
        return Taken(before=before)
    from tenv.sources.system.take import take

    facts = access.facts()

    def most(cuda: str) -> int | None:
        limits = facts.cuda_host_compiler.limits(Version(cuda))
        return limits.gcc_max if limits else None

    kept, places = {one.name: one.path for one in before}, Places(environ=access.environ)
    tools = take(manifest, places, kept, most) if manifest.system else ()
    if manifest.beside:
        from tenv.sources.system.tools_beside import tools_beside  # late: few targets are beside another environment

        tools = (*tools, *tools_beside(manifest, places, facts, kept))
    return Taken(tools, before, tuple(differences(before)))


def store(environment: Environment, target: str, taken: Taken) -> tuple[tuple[Fingerprint, ...], tuple[Watch, ...]]:
    """Write the fingerprints of the tools and the stamps that shells compare; return both.

    Raises:
        StorageError: A file can't be written.
    """
    with storage_errors("can't read a system tool"):
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
    """Record the present times of unchanged files, which may have been rewritten with the same bytes.

    Otherwise the stored script, which compares times alone, would warn of a change.

    Args:
        environment: The environment, whose lock this process holds.
        target: Its target.

    Raises:
        StorageError: A file can't be written.
    """
    had = read_fingerprints(environment.meta)
    with storage_errors("can't read a system tool"):
        now = retimed(had, differences(had))
    if now != had:
        write_fingerprints(environment.meta, now)
        _watches(environment, now, target)


def _watch(folder: Path, fingerprint: Fingerprint, target: str) -> Watch:
    """Make a stamp for each watched file of a tool: an empty file with the same modification time."""
    times = {mark.path: mark.mtime_ns for mark in fingerprint.marks}
    pairs = []
    for number, file in enumerate(fingerprint.watched):
        stamp = _stamp(folder, fingerprint, number)
        stamp.parent.mkdir(exist_ok=True)
        stamp.touch()
        os.utime(stamp, ns=(times[file], times[file]))
        if stamp.stat().st_mtime_ns != times[file]:  # a file system with coarser times would cause false warnings
            stamp.unlink()
        pairs.append((file, str(stamp)))
    hint = _hint(folder.parent.parent, target)
    change = f"{fingerprint.name} {fingerprint.version} of the system ({fingerprint.path}) has changed or is missing"
    if fingerprint.name == BESIDE:
        change = f"the environment `{target}` is stale: torch {fingerprint.version} in {fingerprint.path} was replaced"
        hint = hint.replace("accepts the present files", "updates it")
    return Watch(tuple(pairs), f"warning: {change}; {hint}")


def _stamp(folder: Path, fingerprint: Fingerprint, number: int) -> Path:
    return folder / f"{fingerprint.name}-{number}"


def _hint(prefix: Path, target: str) -> str:
    """Return the hint that accepts a change, with the environment's folder, which need not be the default one."""
    return f"`tenv create --prefix {shlex.quote(str(prefix))} {target}` accepts the present files"


def changes(environment: Environment, *, deep: bool = False) -> list[Drift]:
    """Return the changed files of an environment's system tools.

    Args:
        environment: The environment.
        deep: Read every file, even with unchanged size and times.

    Raises:
        EnvironmentBrokenError: The fingerprints can't be read.
    """
    return differences(read_fingerprints(environment.meta), deep=deep)


def replaced_torch(environment: Environment, *, deep: bool = False, beyond_shell: bool = False) -> str:
    """Return how the torch that an environment was made for has changed; empty if it has not, or for other ones.

    Args:
        environment: The environment.
        deep: Read every file, even with unchanged size and times.
        beyond_shell: Skip a change that the stored script reports itself.
    """
    found = [drift for drift in changes(environment, deep=deep) if drift.name == BESIDE]
    if beyond_shell and any(_seen_by_shell(environment, drift) for drift in found):
        return ""
    return "; ".join(describe(found))


def alarm(environment: Environment, target: str, *, beyond_shell: bool = False) -> Sequence[str]:
    """Return a warning for each changed system tool of an environment.

    Args:
        environment: The environment.
        target: Its target.
        beyond_shell: Skip changes that the stored script reports itself.
    """
    found = [drift for drift in changes(environment) if drift.name != BESIDE]  # the environment is stale by that
    if beyond_shell:
        _calm(environment, found)
        loud = {drift.name for drift in found if _seen_by_shell(environment, drift)}
        found = [drift for drift in found if drift.name not in loud]
    return [f"{what}; {_hint(environment.prefix, target)}" for what in describe(found)]


def _seen_by_shell(environment: Environment, drift: Drift) -> bool:
    """Return whether the stored script, which compares times alone, detects a change."""
    for file, stamp in _stamped(environment):
        if str(file) == drift.file:
            try:
                return drift.gone or file.stat().st_mtime_ns != stamp.stat().st_mtime_ns
            except OSError:
                return not file.is_file()
    return False


def _calm(environment: Environment, drifts: Sequence[Drift]) -> None:
    """Update stamps of files that were rewritten with the same bytes, so the script does not warn."""
    changed = {drift.file for drift in drifts}
    for file, stamp in _stamped(environment):
        with contextlib.suppress(OSError):  # best effort: the environment may belong to another user
            now = file.stat().st_mtime_ns
            if str(file) not in changed and stamp.stat().st_mtime_ns != now:
                os.utime(stamp, ns=(now, now))


def _stamped(environment: Environment) -> Iterator[tuple[Path, Path]]:
    """Yield the files that the stored script compares, with their stamps."""
    for one in read_fingerprints(environment.meta):
        for number, file in enumerate(one.watched):
            yield Path(file), _stamp(environment.meta / _STAMPS, one, number)


def fit(toolchain: Toolchain, taken: Iterable[Fingerprint]) -> Toolchain:
    """Return a toolchain with system tools in place of those that the prefix lacks."""
    changes: dict[str, Any] = {}
    tools = {one.name: one for one in taken}
    if toolkit := tools.get("cuda-toolkit"):
        changes |= {
            "cuda": Path(toolkit.roles["home"]),
            "cuda_version": Version(toolkit.version),
            "nvcc": Path(toolkit.roles["nvcc"]),
        }
    if rocm := tools.get("rocm"):
        changes |= {
            "rocm": Path(rocm.roles["home"]),
            "rocm_version": Version(rocm.version),
            "hip_clang": Path(rocm.roles["clang"]),
            "bitcode": Path(rocm.roles["bitcode"]) if rocm.roles["bitcode"] else None,
            "gfx": tuple(filter(None, rocm.roles["compiles"].split(os.pathsep))),
        }
    if gcc := tools.get("gcc"):
        changes |= {"cc": Path(gcc.roles["gcc"]), "cxx": Path(gcc.roles["g++"])}
    changes |= {name: Path(tools[name].roles["home"]) for name in _FOLDERS if name in tools}
    return replace(toolchain, **changes, system=tuple(tools))
