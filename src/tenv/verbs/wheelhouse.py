"""Take a compiled wheel from the wheelhouse of a manifest, or put one there, while an environment is created."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tenv.activation.changes import is_own
from tenv.audits.audited_tree import open_tree
from tenv.audits.build_note import gpu_code
from tenv.audits.library import inspect, needs_of
from tenv.audits.on_host import host_findings
from tenv.checks.rules.interface import Severity
from tenv.core.files import digest, digest_bytes, open_regular
from tenv.core.names import WheelFile
from tenv.core.versions import Version
from tenv.core.wheel_platforms import accepted_tags
from tenv.install.creation import Creation
from tenv.locks.lock import LockedTree, Wheel
from tenv.sources.wheels.sdist_builds import built_folder, keep_built, kept_build
from tenv.sources.wheels.wheelhouse import add_compiled, find_compiled, key_of_wheelhouse, named_archs, pinned_digest
from tenv.targets.manifest import with_features

_OF_MACHINE = (
    *("CC", "CXX", "CUDA_HOME", "CUDAHOSTCXX", "NVCC_CCBIN"),
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
)
"""The variables with places of a machine, which are no input of a wheel for others."""
_ANY_GLIBC = Version("2.99")
_SYMBOLS = "TE005"
"""The code of a processor, a C library or a C++ library on which libraries do not run."""


_INPUTS = (
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
    *("LIBRARY_PATH", "CUDA_HOME", "CUDAHOSTCXX", "PYTORCH_NVCC"),
    *("NVCC_CCBIN", "NVCC_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"),
)
"""The variables of the user that decide on the code of an extension."""


def given_variables(job: Creation) -> dict[str, str]:
    """Return the variables of the user that decide on the code of an extension."""
    table, environ = job.context.facts().torch_packages.rows, job.context.environ
    switches = {text.partition("=")[0] for one in table for text in (*one.force, one.arch) if text}
    return {name: environ[name] for name in (*_INPUTS, *sorted(switches)) if environ.get(name)}


def _key(job: Creation, row: LockedTree, archs: str, given: Mapping[str, str]) -> str:
    """Return the digest of a package in the wheelhouse; empty where the user's variables decide on its code."""
    environ = job.context.environ
    switched = [name for name in given if name not in _OF_MACHINE and is_own(environ, name)]
    whole = job.target.manifest
    here = with_features(whole).on(job.platform)
    if switched or archs != named_archs(here, here.wheels.get(row.name)):
        return ""
    return key_of_wheelhouse(row, job.lock, whole, job.platform, job.plan.minor, job.context.facts().torch_packages)


def from_wheelhouse(job: Creation, row: LockedTree, archs: str, given: Mapping[str, str]) -> Wheel | None:
    """Return the wheel of the wheelhouse that the lock names, if it fits this machine; None to compile it.

    Args:
        job: The creation.
        row: The row of the package.
        archs: The architectures to compile for.
        given: The variables of the user that decide on its code.
    """
    pin, house = pinned_digest(row, job.plan.minor), job.target.manifest.wheelhouse
    if not pin or not house:
        return None
    say, name = job.context.progress.say, f"{row.name} {row.version}"
    key = _key(job, row, archs, given)
    if not key:
        say(f"{name}: your variables decide on its code, so it is compiled and not taken from {house}")
        return None
    place = (
        built_folder() / f"wheelhouse-{digest_bytes(f'{key} {pin}'.encode())}"
    )  # a lock can't lead to another package's
    kept = kept_build(place, row)
    if kept is None or kept.sha256 != pin:
        found = find_compiled(Path(house), key, say)
        if found is None or found.sha256 != pin:
            why = "names another wheel" if found else "has no wheel of it"
            say(f"{name}: the lock has the wheel {pin[:12]}, and {house} {why}: it is compiled here")
            return None
        kept = _copied(found.path, pin, place, row)
        if kept is None:
            say(f"{name}: {found.path} has other bytes than the lock names: it is compiled here")
            return None
    if why := _unfit(job, Path(kept.path), archs):
        say(f"{name}: the wheel of {house} does not fit here: {why}; it is compiled here")
        return None
    say(f"{name}: taken from {house}, as the lock names it")
    return kept


def _copied(path: Path, pin: str, place: Path, row: LockedTree) -> Wheel | None:
    """Keep a copy of a wheel whose bytes have a digest; None if they have another, or can't be read."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=place.parent) as name:
        copy = Path(name) / path.name
        try:
            with open_regular(path) as source, copy.open("wb") as file:
                shutil.copyfileobj(source, file)
        except OSError:
            return None
        return keep_built(copy, place, row) if digest(copy) == pin else None


def _unfit(job: Creation, wheel: Path, archs: str) -> str:
    """Return why a wheel does not run here: its tags, its symbols, or its GPU code; empty if it does."""
    if not _has_tag(wheel.name, job.platform, job.plan.minor):
        return f"its name has no tag of Python {job.plan.minor} on {job.platform}"
    tree = open_tree(wheel)
    libraries = inspect(tree)
    found = host_findings(needs_of(libraries, tree.names), job.around.host, job.around.facts)
    wrong = [one for one in found if one.code == _SYMBOLS and one.severity is Severity.ERROR]
    if wrong:
        return f"{wrong[0].subject} {wrong[0].message}"
    code = gpu_code(libraries, archs)
    return f"it has no GPU code for sm_{code.lacking[0]}" if code.lacking and not code.none else ""


def _has_tag(file: str, platform: str, minor: str) -> bool:
    """Return whether a wheel is for a Python and a platform, on any C library: its symbols are read apart."""
    wheel, accepted = WheelFile.parse(file), accepted_tags(platform, minor, _ANY_GLIBC)
    return wheel is not None and any(tag in accepted for tag in wheel.all_tags())


def into_wheelhouse(job: Creation, row: LockedTree, archs: str, given: Mapping[str, str], wheel: Wheel) -> None:
    """Put a wheel that was compiled here into the wheelhouse of the manifest, unless it has one for its inputs."""
    house = job.target.manifest.wheelhouse
    key = _key(job, row, archs, given) if house and not row.path else ""
    purpose = f"tenv create {job.target.name}"
    if key and add_compiled(Path(house), key, Path(wheel.path), purpose, job.context.progress.say):
        job.context.progress.say(
            f"{wheel.file} is in {house} now: `tenv lock {job.target.name}` names it for other machines"
        )
