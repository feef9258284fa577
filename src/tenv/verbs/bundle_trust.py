"""Decide whether a bundle may be used here, and write the manifest and the lock of a new target."""

import os
import shlex
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.checks.lock_verdict import judge_lock
from tenv.core.dataclass import dataclass
from tenv.core.errors import LockStaleError, UnknownTargetError, UsageError
from tenv.core.files import read_regular, write_atomic
from tenv.install.bundle_file import Bundle, BundleReader
from tenv.locks.lock import Lock
from tenv.locks.lock_file import parse_lock
from tenv.targets.manifest import Manifest
from tenv.targets.manifest_file import read_manifest
from tenv.targets.search import Origin, Place, Target

if TYPE_CHECKING:
    from tenv.project.context import Context


Question = Callable[[Sequence[str]], bool]
"""Prints lines about a bundle, and returns whether the user trusts it."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The word of the user for a bundle for a target that is unknown here."""

    lock_digest: str = ""
    """The sha256 of the lock that it must have; empty for none."""
    bundle_digest: str = ""
    """The digest that it must have, as `tenv bundle` prints it; empty for none."""
    ask: Question | None = None
    """Asks the user; None without a terminal."""

    @property
    def whole(self) -> bool:
        """Whether the user vouches for more than the lock names, such as a Python."""
        return bool(self.bundle_digest)


def require_trust(context: "Context", found: Bundle, reader: BundleReader, trust: Trust) -> Sequence[str]:
    """Return the names of the manifests to write here; none for a target that is known here by the same lock.

    Raises:
        LockStaleError: The lock is not the one of the target here, or not of the named digest.
        BundleRefusedError: The lock does not satisfy the manifest of the bundle.
        UsageError: Nobody vouches for the bundle.
    """
    shown = reader.shown
    lock_digest = found.head.lock.sha256
    for given, own, what in (
        (trust.lock_digest, lock_digest, "lock"),
        (trust.bundle_digest, found.digest, "head"),
    ):
        if given and given.lower().removeprefix("sha256:") != own:
            raise LockStaleError(f"{shown}: its {what} has the sha256 {own}, not {given}")
    if known := _known(context, found.head.target):
        if known.lock_file.is_file() and read_regular(known.lock_file) == found.lock:
            return ()
        raise _other_lock(known, found, shown)
    new = _new_manifests(context, found, shown)
    _require_free(context, found, new, shown)
    manifest = _require_own(context, found, reader)
    _require_vouched(found, shown, trust, _uncovered(manifest, parse_lock(found.lock, shown, found.head.target)))
    return new


def _other_lock(known: Target, found: Bundle, shown: str) -> LockStaleError:
    """Return the error for a bundle of a target that has another lock here, or none."""
    file, members = known.lock_file, (found.head.lock.name, *found.manifests)
    here = "is not that of" if file.is_file() else "there is no"
    hint = f"`tenv bundle {known.name}` makes a bundle of the lock here"
    folder = file.parent.parent
    if known.origin in (Origin.PROJECT, Origin.USER) and file == folder / found.head.lock.name and "://" not in shown:
        take = shlex.join(["tar", "-xf", shown, "-C", str(folder), *members[:2]])
        hint += f"; if you trust the bundle, `{take}` takes its lock and its manifest"
    return LockStaleError(f"{shown}: its lock has the sha256 {found.head.lock.sha256}, and {here} {file}", hint=hint)


def _known(context: "Context", name: str) -> Target | None:
    try:
        return context.places.find(name)
    except UnknownTargetError:
        return None


def _new_manifests(context: "Context", found: Bundle, shown: str) -> tuple[str, ...]:
    """Return the manifests of a bundle that are not here; raises LockStaleError for one that differs here."""
    new = []
    for member, text in found.manifests.items():
        stem = Path(member).stem
        try:
            file = context.places.find_parent(stem)
        except UnknownTargetError:
            new.append(member)
            continue
        if read_regular(file) != text:
            ours = [place.folder for place in context.places.places if place.origin is Origin.BUILT_IN]
            way = f"the bundle was written by tenv {found.head.written_by}: install that release"
            if not any(folder in file.parents for folder in ours):
                way = f"move {file} to another place, if you need it no more"
            raise LockStaleError(
                f"{shown}: its manifest {found.head.target} extends {stem}, which differs here ({file})", hint=way
            )
    return tuple(new)


def _require_free(context: "Context", found: Bundle, new: Sequence[str], shown: str) -> Path:
    """Return the user's folder; raises LockStaleError where a file of other bytes is in the place of a new one.

    A lock in a nearer place would be preferred to the new one.
    """
    texts = {member: found.manifests[member] for member in new} | {found.head.lock.name: found.lock}
    for place in context.places.places:
        for member, text in texts.items():
            file = place.folder / member
            if os.path.lexists(file) and not (file.is_file() and not file.is_symlink() and read_regular(file) == text):
                raise LockStaleError(
                    f"{shown}: its {member} is not {file}, and tenv does not overwrite that file",
                    hint=f"move {file} to another place, if you need it no more",
                )
        if place.origin is Origin.USER:
            return place.folder
    raise AssertionError  # each search has the user's folder


def _require_vouched(found: Bundle, shown: str, trust: Trust, settings: Sequence[str]) -> None:
    """Raise UsageError unless the user vouches for the lock, and for the settings that the lock does not cover."""
    if trust.bundle_digest or (trust.lock_digest and not settings):
        return
    lines = [
        f"{shown} is a bundle of {found.head.target}, which is no target here",
        f"  lock    sha256:{found.head.lock.sha256}",
        f"  bundle  sha256:{found.digest}",
        *([f"  its manifest sets {', '.join(settings)}"] if settings else []),
    ]
    if trust.ask and trust.ask(lines):
        return
    if trust.ask:
        raise UsageError(f"{shown} is not trusted: nothing was changed")
    if trust.lock_digest:
        raise UsageError(
            f"{shown}: its manifest sets {', '.join(settings)}, which the digest of a lock does not cover",
            hint=f"`--bundle-digest {found.digest}` vouches for all of it, if you know that digest from its maker",
        )
    raise UsageError(
        f"{shown} is a bundle of {found.head.target}, which is no target here, and nothing vouches for it",
        hint="`--lock-digest SHA256` or `--bundle-digest SHA256` does, with the digest that `tenv bundle` printed",
    )


def _require_own(context: "Context", found: Bundle, reader: BundleReader) -> Manifest:
    """Return the manifest of a bundle, which extends each other one in it, and which its lock satisfies.

    Raises:
        ManifestError: It can't be read.
        BundleRefusedError: It does not fit the rest of the bundle.
    """
    name = found.head.target
    idle = {Path(member).stem for member in found.manifests} - {name}
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        place = unpacked_place(Path(folder), found)

        def find_parent(stem: str) -> Path:
            idle.discard(stem)
            own = place.manifest_file(stem)
            return own if own.is_file() else context.places.find_parent(stem)

        file, lock = place.manifest_file(name), place.lock_file(name)
        manifest = read_manifest(name, file, find_parent, f"{name}.toml of the bundle")
        target = context.places.followed(Target(name, file, Origin.USER, manifest, lock, lock))
        judged = judge_lock(target, found.lock)
    if idle:  # it would be a target of its own here, that nobody has looked at
        raise reader.refusal(f"is altered: {name} does not extend {min(idle)}")
    if judged.faults:
        listed = "".join(f"\n  {line}" for line in judged.faults)
        raise reader.refusal(f"is altered: its lock does not satisfy its manifest:{listed}")
    return target.manifest


def unpacked_place(folder: Path, found: Bundle) -> Place:
    """Write the manifests and the lock of a bundle into a folder, and return it as a place of targets."""
    for member, text in found.manifests.items():
        write_atomic(folder / member, text)
    write_atomic(folder / found.head.lock.name, found.lock)
    return Place(Origin.USER, folder)


def _uncovered(manifest: Manifest, lock: Lock) -> list[str]:
    """Return the settings of a manifest that change an activation or a build, and that its lock does not have.

    Other requests than at the time of the lock may be satisfied by it, and permit a later lock to build code.
    """
    parts = [manifest, *manifest.by_platform.values()]
    parts += [part for feature in manifest.features.values() for part in (feature, *feature.by_platform.values())]
    names = sorted({name for part in parts for name in part.environment})
    storages = sorted({f"build.cache-storage {part.cache_storage}" for part in parts if part.cache_storage})
    return [*names, *storages, *(["other requests than its lock has"] if lock.manifest != manifest.digest() else [])]


def adopt(context: "Context", found: Bundle, new: Sequence[str], shown: str) -> None:
    """Write the manifest and the lock of a bundle to the user's folder: a target is known only with its lock.

    Raises:
        LockStaleError: Another file is in their place by now.
    """
    home = _require_free(context, found, new, shown)
    write_atomic(home / found.head.lock.name, found.lock)
    for member in reversed(new):  # those that it extends, and then its own
        write_atomic(home / member, found.manifests[member])
    context.progress.say(f"{home / 'manifests' / found.head.target}.toml and its lock are new, from the bundle")
