"""Whether the wheels of a lock satisfy a manifest and are all required.

The lock holds the requirements of a wheel. `create` compares them with the metadata of the installed packages, so a
forged requirement can't add a package to a lock.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from tenv.core.dataclass import dataclass
from tenv.core.names import WheelFile, normalize
from tenv.core.versions import fits, is_release
from tenv.core.wheel_platforms import DEFAULT_GLIBC, accepted_tags, at_patches, marker_values
from tenv.locks.lock import CondaPackage, Lock, LockedTree, Wheel
from tenv.locks.wheel_requirement import names_torch, overridden, requirement_of, sole_extra, torch_of
from tenv.targets.manifest import Manifest, WheelRequest

if TYPE_CHECKING:
    from packaging.tags import Tag

_IN_USE = "the indexes in use"
_PURL = re.compile(r"pkg:pypi/([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class LockedWheel:
    """The version and requirements of a wheel."""

    version: str
    """Its version."""
    requires: tuple[str, ...] | None
    """The requirements in its metadata; None if unknown."""


_ON_THE_INDEX: Mapping[str, tuple[str, ...]] = {
    "brotli-python": ("brotli",),
    "cupy-core": ("cupy",),
    "dask-core": ("dask",),
    "matplotlib-base": ("matplotlib",),
    "msgpack-python": ("msgpack",),
    "ninja-python": ("ninja",),
    "py-opencv": ("opencv-python", "opencv-python-headless"),
    "py-xgboost": ("xgboost",),
    "pyarrow-core": ("pyarrow",),
    "pymace": ("mace-torch",),
    "pyqt": ("pyqt5",),
    "pytables": ("tables",),
    "python-blosc": ("blosc",),
    "python-build": ("build",),
    "python-duckdb": ("duckdb",),
    "python-fastjsonschema": ("fastjsonschema",),
    "python-flatbuffers": ("flatbuffers",),
    "python-graphviz": ("graphviz",),
    "python-kaleido": ("kaleido",),
    "python-lmdb": ("lmdb",),
    "python-tzdata": ("tzdata",),
    "python-xxhash": ("xxhash",),
    "pytorch": ("torch",),
    "pytorch_cluster": ("torch-cluster",),
    "pytorch_geometric": ("torch-geometric",),
    "pytorch_scatter": ("torch-scatter",),
    "pytorch_sparse": ("torch-sparse",),
    "pytorch_spline_conv": ("torch-spline-conv",),
    "ray-core": ("ray",),
    "seaborn-base": ("seaborn",),
    "sentencepiece-python": ("sentencepiece",),
    "tensorflow-base": ("tensorflow",),
    "transformer-engine-torch": ("transformer-engine",),
    "pyg": ("torch-geometric",),
    "pytorch-cluster": ("torch-cluster",),
    "pytorch-scatter": ("torch-scatter",),
    "pytorch-sparse": ("torch-sparse",),
    "pytorch-spline-conv": ("torch-spline-conv",),
}
"""The names on the package index of conda packages with another name, by the ``dist-info`` folders that each installs.

Sources: https://github.com/prefix-dev/parselmouth (19 August 2026) for conda-forge; the last five are those of pyg.
"""


def python_packages(packages: Iterable[CondaPackage]) -> dict[str, str]:
    """Return the versions of the conda packages that a wheel would overwrite, by name, also by that on the index."""
    found = {
        package.name: package.version
        for package in packages
        if any(spec.split("[")[0].split()[:1] == ["python"] for spec in package.depends)
    }
    return {other: version for name, version in found.items() for other in _ON_THE_INDEX.get(name, ())} | found


def served_minors(lock: Lock, manifest: Manifest, platform: str) -> tuple[str, ...]:
    """Return the Python minors of a manifest on a platform: all of its range, or the one of conda's Python."""
    return manifest.python_minors() or ((minor,) if (minor := lock.conda_python(platform)) else ())


def wheel_faults(lock: Lock, manifest: Manifest, platform: str) -> Iterator[str]:
    """Yield why the wheels of a platform do not satisfy a manifest, one sentence each.

    Args:
        lock: The lock.
        manifest: The manifest for the platform.
        platform: The platform.
    """
    minors = served_minors(lock, manifest, platform)
    locked = lock.python_minors(platform)
    missing = [minor for minor in minors if minor not in locked]
    if missing and manifest.wheels:
        yield f"Python {', '.join(missing)} is not in the lock"
    if locked and not minors:
        yield f"wheels for Python {', '.join(locked)} are locked and the manifest has no Python"
    found: dict[str, list[str]] = {}
    for minor in minors:
        if minor not in missing:
            for fault in _faults_for(lock, manifest, platform, minor):
                found.setdefault(fault, []).append(minor)
    served = [minor for minor in minors if minor not in missing]
    for fault, where in found.items():
        yield fault if where == served else f"{fault} for Python {', '.join(where)}"


def _faults_for(lock: Lock, manifest: Manifest, platform: str, minor: str) -> Iterator[str]:
    wheels, trees = lock.wheels_for(platform, minor), lock.trees_for(platform, minor)
    files: tuple[Wheel | LockedTree, ...] = (*wheels, *trees)
    locked = {file.name: file for file in files}
    yield from _tree_faults([tree for tree in trees if not tree.file], manifest.wheels)
    yield from (fault for tree in trees if tree.file and (fault := _sdist_fault(tree, manifest)))
    yield from (fault for wheel in wheels if (fault := _origin_fault(wheel, manifest)))
    if twice := {wheel.name for wheel in wheels} & {tree.name for tree in trees}:
        yield f"{min(twice)} is locked both as a wheel and from a source tree"
    for name, request in manifest.wheels.items():
        if request.tree:
            continue
        if name not in locked:
            yield f"{name} is not in the lock"
        elif locked[name].version not in request.version:
            yield f"{name} {locked[name].version} is locked, the manifest requests {request.version}"
        elif (
            not request.isolated
            and isinstance(row := locked[name], Wheel)
            and (request.must_compile or not _fits_torch(row, locked.get("torch"), platform, minor))
        ):
            yield f"{name} is locked as a wheel of an index, the manifest requests to compile it"
    yield from _bound_faults(locked, manifest.constraints, marker_values(platform, minor))
    if any(name not in locked for name in manifest.wheels):
        return
    tags = accepted_tags(platform, minor, manifest.requirements.glibc or DEFAULT_GLIBC)
    yield from (fault for wheel in wheels if (fault := _tag_fault(wheel, tags, manifest, platform)))
    conda = lock.conda.get(platform, ())
    given = python_packages(conda)
    rows, supplied = locked_wheels(files, manifest.overrides), {**_named_by_purls(lock, platform), **given}
    if not any(package.depends for package in conda):  # of an explicit list: each of them may be a package of Python
        supplied |= {normalize(package.name): package.version for package in conda}
    yield from wheels_brought(rows, manifest.wheels, supplied, _values(lock, platform, minor))
    elsewhere = set(map(normalize, given))
    yield from (f"{name} is both a wheel and a conda package" for name in locked if name in elsewhere)


def _values(lock: Lock, platform: str, minor: str) -> dict[str, str]:
    """Return the marker environment of a Python minor: with the patch release of the lock's Python from conda."""
    known = next((row.version for row in lock.conda.get(platform, ()) if row.name == "python"), "")
    full = {"python_full_version": known} if known.startswith(f"{minor}.") else {}
    return marker_values(platform, minor) | full


def _fits_torch(wheel: Wheel, torch: Wheel | LockedTree | None, platform: str, minor: str) -> bool:
    """Return whether a wheel names the torch of its lock, so that nothing has to be compiled."""
    if torch is None:
        return False
    against = torch_of(torch.version, torch.requires or (), platform, minor)
    values = marker_values(platform, minor)
    return against.is_stable and names_torch(wheel.version, wheel.requires or (), values, against)


def _bound_faults(
    locked: Mapping[str, Wheel | LockedTree], constraints: Iterable[str], values: Mapping[str, str]
) -> Iterator[str]:
    """Yield the locked packages that constraints of the manifest exclude, one sentence each."""
    for line in constraints:
        bound = requirement_of(line)
        if bound and bound.name in locked and bound.holds(values, ""):
            version = locked[bound.name].version
            if not fits(bound.specifier, version):
                yield f"{bound.name} {version} is locked, the manifest has the constraint {line}"


def locked_wheels(files: Iterable[Wheel | LockedTree], overrides: Iterable[str] = ()) -> dict[str, LockedWheel]:
    """Return the versions and requirements of files by name, with the versions of overrides in the requirements."""
    lines = tuple(overrides)
    return {file.name: LockedWheel(file.version, overridden(file.requires, lines)) for file in files}


def unrequired_wheels(lock: Lock, manifest: Manifest, platform: str) -> frozenset[str]:
    """Return the wheels of a platform that no request brings, by name; none where requirements are unknown."""
    found: set[str] = set()
    for minor in served_minors(lock, manifest, platform):
        rows = locked_wheels((*lock.wheels_for(platform, minor), *lock.trees_for(platform, minor)), manifest.overrides)
        found |= set(_unreached(rows, manifest.wheels, {}, _values(lock, platform, minor)))
    return frozenset(found)


def required_by_wheels(lock: Lock, manifest: Manifest, platform: str) -> frozenset[str]:
    """Return the conda packages of a platform that its wheels require, by name."""
    found: set[str] = set()
    for minor in served_minors(lock, manifest, platform) if manifest.wheels else ():
        rows = locked_wheels((*lock.wheels_for(platform, minor), *lock.trees_for(platform, minor)), manifest.overrides)
        found |= reach(rows, manifest.wheels, {}, _values(lock, platform, minor)).names
    return frozenset(package.name for package in lock.conda.get(platform, ()) if normalize(package.name) in found)


def _origin_fault(wheel: Wheel, manifest: Manifest) -> str:
    """Return why a manifest does not accept the origin of a wheel; empty if it does.

    No address of a lock counts: an index is the one that the manifest names so, and a file is the requested one.
    """
    request = manifest.wheels.get(wheel.name)
    if not (request and request.file):
        if wheel.url or wheel.path:
            return f"{wheel.name} is locked from {wheel.origin}, which the manifest does not request"
        return _index_fault(wheel, manifest, request.index if request else "")
    wanted = request.file
    if (wheel.url, wheel.path) != (wanted.url, wanted.path):
        return f"{wheel.name} is locked from {wheel.origin or _IN_USE}, the manifest requests {wanted}"
    if wanted.sha256 not in ("", wheel.sha256):
        return f"{wheel.file} is locked with another sha256 than the manifest has"
    return ""


def _sdist_fault(row: LockedTree, manifest: Manifest) -> str:
    """Return why a manifest does not accept a source archive, whose build runs code; empty if it does."""
    request = manifest.wheels.get(row.name)
    if row.name not in manifest.builds or (request and (request.tree or request.file)):
        allow = f"`build = true` at {row.name}" if request else f'`sdists = ["{row.name}"]`'
        return f"{row.name} is locked as a source archive, whose build runs code, and no {allow} permits it"
    if (request is None or request.isolated) is not row.isolated:
        wanted = _isolation(request is None or request.isolated)
        return f"{row.name} is locked {_isolation(row.isolated)}, the manifest requests it {wanted}"
    if request and request.requires is not None and row.requires != request.requires:
        return f"{row.name} is locked with other requirements than the manifest names"
    return _index_fault(row, manifest, request.index if request else "")


def _isolation(isolated: bool) -> str:
    return "with an isolated build" if isolated else "to compile against the target's torch"


def _index_fault(wheel: Wheel | LockedTree, manifest: Manifest, asked: str) -> str:
    wanted = manifest.index(asked) if asked else None
    if wanted:
        other = wheel.index != wanted
        return (
            f"{wheel.name} is locked from {wheel.origin or _IN_USE}, the manifest requests the index {wanted}"
            if other
            else ""
        )
    if wheel.index is None:
        return ""
    named = next((index for index in manifest.indexes if index == wheel.index), None)
    if named is None:
        return f"{wheel.name} is locked from {wheel.origin}, which the manifest does not name"
    return f"{wheel.name} is locked from {wheel.origin}, which serves only requests for it" if named.explicit else ""


def _tree_faults(trees: Iterable[LockedTree], asked: Mapping[str, WheelRequest]) -> Iterator[str]:
    """Yield how the source trees of a lock differ from those that a manifest asks for, one sentence each.

    No value of a source tree in a lock may differ: an address or a path of its own would run code of its author.
    """
    rows = {tree.name: tree for tree in trees}
    for name, request in asked.items():
        wanted = request.tree
        if wanted is None:
            continue
        if (tree := rows.get(name)) is None:
            yield f"{name} is not in the lock"
        elif tree.request != wanted:
            yield f"{name} is locked from {tree.request}, the manifest requests {wanted}"
        elif tree.isolated is not request.isolated:
            now, then = _isolation(request.isolated), _isolation(tree.isolated)
            yield f"{name} is locked {then}, the manifest requests it {now}"
        elif request.requires is not None and tree.requires != request.requires:
            yield f"{name} is locked with other requirements than the manifest names"
        elif wanted.commit and tree.commit != wanted.commit:
            yield f"{name} is locked at the commit {tree.commit}, the manifest requests {wanted.commit}"
    for name, row in rows.items():
        if name not in asked or asked[name].tree is None:
            yield f"{name} is locked from {row.request}, which the manifest does not request"


def _named_by_purls(lock: Lock, platform: str) -> dict[str, str]:
    """Return the versions of conda packages by their name on the index, where that differs."""
    found = {}
    for package in lock.conda.get(platform, ()):
        for name in _PURL.findall(lock.details.get(package.url, {}).get("purls", "")):
            found[normalize(name)] = package.version
    return found


def _tag_fault(wheel: Wheel, tags: Mapping[object, int], manifest: Manifest, platform: str) -> str:
    if any(tag in tags for tag in _tags(wheel.file)):
        return ""
    glibc = manifest.requirements.glibc
    where = f"{platform} with glibc {glibc}" if glibc and platform.startswith("linux") else platform
    return f"{wheel.file} is not for {where}"


@lru_cache(maxsize=4096)  # a wheel for every platform is looked at for each platform and Python
def _tags(file: str) -> "Iterable[Tag]":
    parsed = WheelFile.parse(file)
    return parsed.all_tags() if parsed else ()


def wheels_brought(
    there: Mapping[str, LockedWheel],
    asked: Mapping[str, WheelRequest],
    given: Mapping[str, str],
    values: Mapping[str, str],
) -> Iterator[str]:
    """Yield missing wheels and wheels that nothing requires, one sentence each.

    Args:
        there: The wheels of one Python minor, by normalized name.
        asked: The requests of the manifest.
        given: The versions of Python packages from other sources, by name.
        values: The values of the marker environment.
    """
    elsewhere = {normalize(name): version for name, version in given.items()}
    faults, (first, _) = reach(there, asked, elsewhere, values).faults, at_patches(values)
    # uv selects for the first patch release of a minor, and other tools for that of a Python from conda.
    here = reach(there, asked, elsewhere, first).faults if faults and first != values else faults
    yield from (fault for fault in faults if fault in here)
    yield from (f"{name} is locked and nothing requires it" for name in _unreached(there, asked, elsewhere, values))


def _unreached(
    there: Mapping[str, LockedWheel],
    asked: Mapping[str, WheelRequest],
    elsewhere: Mapping[str, str],
    values: Mapping[str, str],
) -> list[str]:
    """Return the wheels that no patch release of a Python minor requires; none where requirements are unknown."""
    left = set(there)
    for one in (values, *at_patches(values)):
        found = reach(there, asked, elsewhere, one) if left else None
        left -= found.names if found and found.complete else left
    return sorted(left)


@dataclass(frozen=True, slots=True)
class Reached:
    """The packages that some requests bring."""

    names: frozenset[str]
    """The normalized names of all requested and required packages, present or not."""
    faults: tuple[str, ...]
    """The required packages that are missing or have another version, a sentence each."""
    complete: bool
    """Whether the requirements of every wheel among them are known."""
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The requirements of each of these wheels, with the requested extras."""


def reach(
    there: Mapping[str, LockedWheel],
    asked: Mapping[str, WheelRequest],
    elsewhere: Mapping[str, str],
    values: Mapping[str, str],
) -> Reached:
    """Return the packages that requests bring, by the requirements of wheels.

    Args:
        there: The wheels of one Python minor, by normalized name.
        asked: The requests.
        elsewhere: Python packages from elsewhere, by normalized name, with their versions.
        values: The values of the marker environment.
    """
    waiting = [(name, extra) for name, request in asked.items() for extra in ("", *map(normalize, request.extras))]
    reached, faults, complete = set(waiting), list[str](), True
    needs: dict[str, set[str]] = {}
    while waiting:
        name, extra = waiting.pop()
        wheel = there.get(name)
        if wheel is None:
            continue
        if wheel.requires is None:
            complete = False
            continue
        for needed, extras, fault in _needs(name, extra, wheel, there, elsewhere, values):
            if fault:
                faults.append(fault)
            needs.setdefault(name, set()).add(needed)
            new = {(needed, one) for one in ("", *extras)} - reached
            reached |= new
            waiting += sorted(new)
    required = {name: frozenset(names) for name, names in needs.items()}
    return Reached(frozenset(name for name, _ in reached), tuple(faults), complete, required)


def _needs(
    name: str,
    extra: str,
    wheel: LockedWheel,
    there: Mapping[str, LockedWheel],
    elsewhere: Mapping[str, str],
    values: Mapping[str, str],
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield the requirements of a wheel with one of its extras: name, extras, and the fault, if any."""
    for text in wheel.requires or ():
        if sole_extra(text) not in ("", extra):
            continue
        requirement = requirement_of(text)
        if requirement is None:
            yield _first_name(text), (), ""
            continue
        if not requirement.holds(values, extra):
            continue
        if extra and not requirement.is_conditional:  # already counted without the extra
            continue
        needed = requirement.name
        version = there[needed].version if needed in there else elsewhere.get(needed)
        fault = ""
        if version is None:
            fault = f"{name} {wheel.version} requires {needed}, which is not in the lock"
        elif is_release(version) and not fits(requirement.specifier, version):
            fault = f"{needed} {version} is locked, {name} {wheel.version} requires {requirement.specifier}"
        yield needed, requirement.extras, fault


def required_names(requires: Iterable[str], values: Mapping[str, str]) -> Iterator[str]:
    """Yield the normalized names of the requirements in the metadata of a wheel, without extras.

    Args:
        requires: The requirements, as the metadata has them.
        values: The values of the marker environment.
    """
    for text in requires:
        if sole_extra(text):
            continue
        requirement = requirement_of(text)
        if requirement is None:
            yield _first_name(text)
        elif requirement.holds(values, ""):
            yield requirement.name


def _first_name(text: str) -> str:
    """Return the name at the start of a requirement that can't be parsed."""
    length = next((number for number, sign in enumerate(text) if not (sign.isalnum() or sign in "-_.")), len(text))
    return normalize(text[:length])
