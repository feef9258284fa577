"""Explains why there is no set of wheels: which tags exist, which requests exclude them, and the edit that helps.

uv describes its search. This module asks uv again, with one change at a time, for the cause.
"""

import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError, TenvError
from tenv.core.names import WheelFile, normalize
from tenv.core.toml_reader import most_similar
from tenv.core.versions import Range, Version, fits
from tenv.core.wheel_platforms import (
    DEFAULT_GLIBC,
    accepted_tags,
    evaluated,
    glibc_of,
    marker_values,
    platforms_of,
)
from tenv.locks.lock import Wheel
from tenv.sources.wheels.choose import choose_wheel
from tenv.sources.wheels.uv_output import unknown_packages, unpublished, without_wheels
from tenv.targets.manifest import Manifest, WheelRequest, with_features
from tenv.targets.wheel_origin import Index

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_SECONDS = 60.0
"""The time limit of the search for the conflict, in seconds."""

_FEW = 5  # the number of requests that a message lists
_LINES = 8  # the lines of uv's output that a message has where the cause is not found
_ANY = WheelRequest(Range("*"))
_PYTORCH = ("torch", "torchaudio", "torchvision")
_BUILD = re.compile(r"(?:==)?(?P<version>[\w.]+\+(?P<build>cu\d+|cpu|xpu|rocm[\d.]+))")
"""The version of a build that PyTorch's own index alone has."""
_TOOLKIT = "cuda-toolkit"
_OTHER_NAMES = {"cuda": _TOOLKIT, "pytorch": "torch"}
"""Products by their own names, each with its package."""

_LOOKED_AT = ("2.28", "2.31", "2.34", "2.35", "2.39", "2.40")
"""The versions of glibc to try, oldest first: those for which uv has a platform name and indexes have wheels."""

_MINORS = tuple(f"3.{minor}" for minor in range(8, 16))

Rows = Mapping[str, tuple[Wheel, str]]
Found = tuple[str, str]


class _SearchEndedError(Exception):
    """The time limit of the search is over."""


@dataclass(frozen=True, slots=True)
class WheelCase:
    """A request for wheels without a solution."""

    manifest: Manifest
    """The manifest for the platform."""
    platforms: Mapping[str, Manifest]
    """All platforms of the target."""
    platform: str
    """The platform."""
    python: str
    """The Python minor."""
    given: Mapping[str, str]
    """The versions of Python packages from other sources, by name."""
    solve: Callable[[Manifest, str, str, Mapping[str, str]], Rows]
    """Selects the wheels of a manifest for a Python minor beside given packages; raises NoSolutionError."""
    releases: Callable[[Sequence[str], str], list[dict[str, Any]]]
    """Returns the newest releases that satisfy requirements for a Python minor, with the wheels for all platforms, as
    rows of a pylock."""
    requires: Callable[[Mapping[str, str]], Mapping[str, tuple[str, ...] | None]]
    """Returns the requirements of wheels by sha256, from their URLs."""
    new: frozenset[str] = frozenset()
    """The requests that the lock does not have yet; empty where any may be the cause."""
    against_torch: frozenset[str] = frozenset()
    """The packages that are known to compile against an installed torch."""


def explain(case: WheelCase, error: NoSolutionError) -> NoSolutionError:
    """Return the error with the cause and an edit, or with the first lines of uv's output if none is found.

    Args:
        case: The request.
        error: The error with uv's output.
    """
    search = _WheelSearch(case, without_wheels(error.message))
    try:
        unknown = unknown_packages(error.message)
        found = search.unknown(unknown) or search.of_tree(unknown, error.message)
        found = found or search.single() or search.beside() or search.clash()
    except (_SearchEndedError, TenvError):
        found = None
    first, *rest = error.message.split("\n")
    if found is None:
        hint = error.hint or "`tenv lock --verbose` prints uv's full output"
        return NoSolutionError("\n".join([first, *rest[:_LINES]]), hint=hint, detail=error.message)
    return NoSolutionError(f"{first} {found[0]}", hint=found[1], detail=error.message)


class _WheelSearch:
    def __init__(self, case: WheelCase, archives: frozenset[str]) -> None:
        self.case = case
        self._archives = {*archives}
        self._end = time.monotonic() + _SECONDS

    def rows(
        self,
        requests: Mapping[str, WheelRequest],
        *,
        glibc: str = "",
        python: str = "",
        platform: str = "",
        given: Mapping[str, str] | None = None,
    ) -> Rows:
        """Return the solution of other requests, or for another host; empty without one."""
        if time.monotonic() > self._end:
            raise _SearchEndedError
        manifest = replace(self.case.manifest, wheels=dict(requests))
        if glibc:
            manifest = replace(manifest, requirements=replace(manifest.requirements, glibc=Version(glibc)))
        beside = self.case.given if given is None else given
        try:
            return self.case.solve(manifest, platform or self.case.platform, python or self.case.python, beside)
        except NoSolutionError as error:
            self._archives |= without_wheels(error.message)
            return {}

    def unknown(self, names: Collection[str]) -> Found | None:
        """Find a request for a package that no index has."""
        wheels = self.case.manifest.wheels
        name = min((name for name in wheels if normalize(name) in names), default=None)
        if name is None:
            return None
        index = self.case.manifest.bound_indexes().get(name)
        known = {*map(normalize, wheels), *_known_names()} - {normalize(name)}
        meant = _packages_of_part(normalize(name), known) or most_similar(normalize(name), known)
        asks = f"did you mean {' or '.join(f'`{one}`' for one in meant)}? Else " if meant else ""
        what = f"the index {index} has no package" if index else "no index in use has a package"
        return f"{what} `{name}`", f"{asks}{_or_remove(name, index)}"

    def of_tree(self, names: Collection[str], output: str) -> Found | None:
        """Find a source tree, which has one version, that requires a package that no index has."""
        for tree, version, name in re.findall(r"([\w.-]+)==(\S+) depends on ([\w.-]+)", " ".join(output.split())):
            request = self.case.manifest.wheels.get(normalize(tree))
            if request and request.tree and normalize(name) in names:
                what = f"{tree} {version} requires {name}, which no index in use has"
                return what, f"name an index that has {name} in [[index]], or request it as well"
        return None

    def _permit(self, name: str) -> str:
        """Return the edit that permits the build of a source archive."""
        wheels, compiled = self.case.manifest.wheels, name in self.case.against_torch
        if name not in wheels and not compiled:
            return f'`sdists = ["{name}"]` at the top permits its build, which runs its code'
        request = wheels.get(name, WheelRequest(Range("*")))
        index = f', index = "{request.index}"' if request.index else ""
        how = ", isolation = false" if compiled else ""
        line = f'{name} = {{ version = "{request.version}"{index}, build = true{how} }}'
        against = " against the target's torch" if compiled else ""
        return f"`{line}` permits its build{against}, which runs its code"

    def single(self) -> Found | None:
        """Find a request that has no solution alone: there is no wheel for this host.

        A package that is built has one, so that its requirements have no solution, which uv names.
        """
        wheels = self.case.manifest.wheels
        for name, request in sorted((name, wheels[name]) for name in wheels.keys() & self.case.new or wheels):
            if not self.rows({name: request}, given={}):
                return self._blame(name, request, ()) if request.isolated and request.tree is None else None
        return None

    def _blame(self, name: str, request: WheelRequest, seen: tuple[str, ...]) -> Found | None:
        """Return why a request has no solution alone: its own wheels, or those of a package that they require."""
        own = self._own(name, request)
        if not own or name in seen:
            return self.no_wheel(name, request)
        if found := self._against_conda(own):
            return found
        for owner, asked in self._requirements(own):
            wanted = WheelRequest(Range(str(asked.specifier) or "*"), tuple(sorted(asked.extras)))
            other = normalize(asked.name)
            if not self.rows({other: wanted}, given={}) and (found := self._blame(other, wanted, (*seen, name))):
                return f"{owner} requires {asked.name}: {found[0]}", found[1] if seen else self._edits(name, found[1])
        return None

    def _edits(self, name: str, first: str) -> str:
        """Return the edits for a request that requires an unavailable package; the first solves that."""
        wheels = self.case.manifest.wheels
        version = self._serving(name, wheels)
        other = f'set {name} = "{version}"' if version else ""
        return ", or ".join(filter(None, (first, other, f"remove {name}")))

    def _own(self, name: str, request: WheelRequest) -> Rows:
        """Return the wheel of the newest release of a request that fits the host, without its requirements."""
        glibc = self.case.manifest.requirements.glibc or DEFAULT_GLIBC
        tags = accepted_tags(self.case.platform, self.case.python, glibc)
        with contextlib.suppress(TenvError):
            rows = self.case.releases([f"{name}{request.version.specifiers}"], self.case.python)
            return dict(choose_wheel(row, tags, self.case.python) for row in rows)
        return {}

    def no_wheel(self, name: str, request: WheelRequest) -> Found | None:
        """Return why no wheel of a request fits the host, and the edit that helps."""
        asked = f"{name} {request.version}" if str(request.version) != "*" else name
        files = self._files(name, request)
        if not files:
            return self._other_version(name, request)
        return (
            self._other_platform(name, request, asked, files)
            or self._other_glibc(name, request, asked)
            or self._other_python(name, request, asked)
            or self._other_version(name, request)
        )

    def _files(self, name: str, request: WheelRequest) -> list[WheelFile]:
        """Return the wheels of the newest release of a request, for any platform and Python."""
        line = f"{name}{request.version.specifiers}"
        for python in dict.fromkeys((self.case.python, *reversed(_MINORS))):
            try:
                rows = self.case.releases([line], python)
            except TenvError as error:
                if unpublished(error.message):  # whatever the Python
                    break
                continue
            urls = [wheel.get("url") or wheel["path"] for row in rows for wheel in row.get("wheels", [])]
            return [file for url in urls if (file := WheelFile.parse(url))]
        return []

    def _other_glibc(self, name: str, request: WheelRequest, asked: str) -> Found | None:
        have = self.case.manifest.requirements.glibc
        if self.case.platform.startswith("win"):
            return None
        if not self.rows({name: request}, glibc=_LOOKED_AT[-1], given={}):
            return None
        for glibc in _LOOKED_AT:
            if Version(glibc) > (have or DEFAULT_GLIBC) and (rows := self.rows({name: request}, glibc=glibc, given={})):
                needed = max((version for wheel, _ in rows.values() if (version := glibc_of(wheel.file))), default=None)
                needed = needed or Version(glibc)
                declared = (
                    f"`requirements.glibc` is {have}" if have else f"without `requirements.glibc` it is {DEFAULT_GLIBC}"
                )
                return (
                    f"{asked} for Python {self.case.python} has wheels for glibc {needed} and newer, and {declared}",
                    f'set glibc = "{needed}" in [requirements]',
                )
        return None

    def _other_platform(self, name: str, request: WheelRequest, asked: str, files: Sequence[WheelFile]) -> Found | None:
        here = platforms_of(files)
        if self.case.platform in here or not here or "any" in here:
            return None
        message = f"{asked} has wheels for {_listed(here)}, and none for {self.case.platform}"
        others = [p for p in self.case.platforms if p != self.case.platform and p in here]
        keep = [p for p in others if self.case.platforms[p].wheels.get(name) == request]
        if keep and name in self.case.manifest.wheels:
            return message, f"move {name} to " + " and ".join(f"[platform.{p}.pypi-dependencies]" for p in keep)
        return message, f"remove {name} from [pypi-dependencies]" if name in self.case.manifest.wheels else ""

    def _other_python(self, name: str, request: WheelRequest, asked: str) -> Found | None:
        fitting = [minor for minor in _MINORS if self.rows({name: request}, python=minor, given={})]
        if not fitting:
            return None
        message = f"{asked} has no wheel for Python {self.case.python}; it has wheels for Python {_listed(fitting)}"
        edits, manifest = [], self.case.manifest
        own = manifest.wheels.get(name)
        if own and (version := self._serving(name, manifest.wheels)):
            edits.append(_edit(name, own, version))
        wanted = Version(self.case.python).minor
        near = min((Version(minor).minor for minor in fitting), key=lambda minor: abs(minor - wanted))
        kept = [Version(minor).minor for minor in fitting if minor in manifest.python_minors()] or [near]
        if own is None or self.rows(manifest.wheels, python=f"3.{kept[0]}", given={}):
            free = manifest.python is not None
            python = f'">=3.{kept[0]},<3.{kept[-1] + 1}"' if free else f'"3.{near}.*" in [dependencies]'
            edits.append(f"set python = {python}")
        edits = edits or [f"remove {name}"]
        archive = f"; where it has a source archive, {self._permit(name)}" if own else ""
        return message, f"{', or '.join(edits)}{archive}"

    def _beginning(self, name: str, request: WheelRequest) -> Found | None:
        """Return the edit for a release that is named by the beginning of its version: 9.20 for 9.20.1.4."""
        wheels, begun = self.case.manifest.wheels, f"{request.version}.*"
        if name not in wheels or not re.fullmatch(r"\d+(\.\d+)*\.\*", begun):
            return None
        rows = self.rows({name: replace(request, version=Range(begun))}, given={})
        if not rows:
            return None
        message = f"no release of {name} is {request.version}, and {rows[name][0].version} is one of {begun}"
        return message, _edit(name, request, begun)

    def _other_version(self, name: str, request: WheelRequest) -> Found | None:
        wheels = self.case.manifest.wheels
        if found := self._beginning(name, request):
            return found
        changed = {**wheels, name: replace(request, version=_ANY.version)}
        rows = self.rows(changed) or self.rows({name: replace(request, version=_ANY.version, extras=())}, given={})
        if not rows:
            index = self.case.manifest.bound_indexes().get(name)
            what = f"the index {index} has no wheel" if index else "no index in use has a wheel"
            if name in self._archives:
                return f"{what} of {name} for {self.case.platform}, only a source archive", self._permit(name)
            return f"{what} of {name} for {self.case.platform}", _or_remove(name, index) if name in wheels else ""
        version = rows[name][0].version
        own = self._of_pytorch(name, request)
        edit = own or (_edit(name, request, self._serving(name, wheels, rows)) if name in wheels else "")
        if name in self._archives:
            message = f"{name} {request.version} has no wheel, only a source archive"
            edit = ", or ".join(filter(None, (self._permit(name), edit)))
        else:
            message = f"no release of {name} is {request.version}"
        return f"{message}; the newest with a wheel is {version}", edit

    def _of_pytorch(self, name: str, request: WheelRequest) -> str:
        """Return the command for builds that only PyTorch's own index has, by the CUDA in their versions."""
        wheels = self.case.manifest.wheels
        builds = {
            one: found
            for one in _PYTORCH
            if one in wheels and not wheels[one].index and (found := _BUILD.fullmatch(str(wheels[one].version)))
        }
        if name not in builds or request.index:
            return ""
        build = builds[name]["build"]
        asked = " ".join(f"{one}=={found['version']}" for one, found in builds.items() if found["build"] == build)
        index = f"pytorch-{build}=https://download.pytorch.org/whl/{build}"
        return f"`tenv add {self.case.manifest.name} {asked} --index {index}` takes PyTorch's own builds"

    def _serving(self, name: str, wheels: Mapping[str, WheelRequest], rows: Rows | None = None) -> str:
        """Return the version of a request to try: one for all Pythons and platforms, else for these; empty for none.

        Args:
            name: The package.
            wheels: All requests.
            rows: The solution with any version of it; None to search for that.
        """
        from packaging.version import Version as Release  # late: only here

        if rows is None:
            rows = self.rows({**wheels, name: replace(wheels[name], version=_ANY.version)})
        if not rows:
            return ""
        minors = self.case.manifest.python_minors() or (self.case.python,)
        cases = [(platform, minor) for platform in self.case.platforms for minor in minors]

        def alone(version: str, platform: str, minor: str) -> Rows:
            request = replace(wheels[name], version=Range(version))
            return self.rows({name: request}, platform=platform, python=minor, given={})

        newest = rows[name][0].version
        if all(alone(newest, *case) for case in cases):
            return newest
        found = {row[name][0].version for minor in minors if (row := alone("*", self.case.platform, minor))}
        for version in sorted(found - {newest}, key=Release):  # the oldest serves all, mostly
            exact = {**wheels, name: replace(wheels[name], version=Range(version))}
            if all(alone(version, *case) for case in cases) and self.rows(exact):
                return version
        return newest

    def beside(self) -> Found | None:
        """Find a conda package that a wheel's requirement excludes."""
        return self._against_conda(self.rows(self.case.manifest.wheels, given={})) if self.case.given else None

    def _against_conda(self, rows: Rows) -> Found | None:
        for owner, asked in self._requirements(rows):
            name, limits = normalize(asked.name), str(asked.specifier)
            version = self.case.given.get(name)
            if version is not None and not fits(asked.specifier, version):
                cause = f"{owner} requires {name} {limits}, and conda brings {name} {version}"
                return cause, f'set {name} = "{limits}" in [dependencies], or remove {owner.split()[0]}'
        return None

    def clash(self) -> Found | None:
        """Find the smallest set of conflicting requests, and the change that resolves the conflict."""
        wheels = self.case.manifest.wheels
        new = wheels.keys() & self.case.new
        names = sorted(self._conflict([], [*sorted(new), *sorted(wheels.keys() - new, reverse=True)]))
        cause = next(self._causes(names), "")
        lines = "".join(f'\n  {name} = "{wheels[name].version}"' for name in names[:_FEW])
        lines += f"\n  … and {len(names) - _FEW} more" if len(names) > _FEW else ""
        edits = [
            _edit(name, wheels[name], version)
            for name in names
            if str(wheels[name].version) != "*" and (version := self._serving(name, wheels))
        ]
        edits = edits or [
            f"remove {name}" for name in names if self.rows({n: r for n, r in wheels.items() if n != name})
        ]
        if not cause and (not edits or len(names) == 1):  # uv names the requirement of the one that nothing satisfies
            return None
        return f"these requests conflict:{lines}\n  {cause}".rstrip(), ", or ".join(edits) or "remove one of them"

    def _conflict(self, fixed: list[str], names: Sequence[str], *, sure: bool = False) -> list[str]:
        """Return the fewest of some requests that conflict beside fixed ones, the first preferred (QuickXplain).

        Source: U. Junker, "QuickXplain: Preferred Explanations and Relaxations for Over-Constrained Problems", 2004.
        """
        wheels = self.case.manifest.wheels
        if sure and fixed and not self.rows({name: wheels[name] for name in fixed}):
            return []
        if len(names) <= 1:
            return [*names]
        half = (len(names) + 1) // 2
        second = self._conflict([*fixed, *names[:half]], names[half:], sure=True)
        return [*self._conflict([*fixed, *second], names[:half], sure=bool(second)), *second]

    def _causes(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the requirements of wheels that another request excludes, the surest first."""
        wheels, unsure = self.case.manifest.wheels, []
        for name in names if len(names) > 1 else ():
            mine = self.rows({name: wheels[name]})
            rest = {other: wheels[other] for other in names if other != name}
            for owner, asked in self._requirements(self.rows(rest)):
                other = normalize(asked.name)
                if other not in mine or fits(asked.specifier, mine[other][0].version):
                    continue
                version = mine[other][0].version
                brought = (
                    f"{name} is requested as {wheels[name].version}"
                    if other == name
                    else f"{name} brings {other} {version}"
                )
                words = f"{owner} requires {other} {asked.specifier}, and {brought}"
                limited = WheelRequest(Range(str(asked.specifier)))
                if other == name or not self.rows({name: wheels[name], other: limited}):
                    yield words
                else:
                    unsure.append(words)
        yield from unsure

    def _requirements(self, rows: Rows) -> "Iterator[tuple[str, Requirement]]":
        """Yield the requirements of wheels that hold on the host, each with its owner."""
        from packaging.requirements import InvalidRequirement, Requirement  # late: only here

        values = marker_values(self.case.platform, self.case.python)
        known = self.case.requires({wheel.sha256: url for wheel, url in rows.values()})
        for name, (wheel, _) in sorted(rows.items(), key=lambda row: (row[0] not in self.case.manifest.wheels, row[0])):
            for line in known.get(wheel.sha256) or ():
                with contextlib.suppress(InvalidRequirement):
                    asked = Requirement(line)
                    if asked.marker is None or evaluated(asked.marker, values):
                        yield f"{name} {wheel.version}", asked


def _known_names() -> set[str]:
    """Return the packages that the built-in targets ask for."""
    from tenv.targets.search import built_in_manifests  # late: only for a misspelled name

    found = set()
    for manifest in built_in_manifests():
        whole = with_features(manifest)
        found |= {normalize(name) for on in whole.platforms for name in whole.on(on).wheels}
    return found


def _packages_of_part(name: str, known: Iterable[str]) -> list[str]:
    """Return the package with a part of CUDA, by the part's own name: nvcc, cudnn; none for other names.

    Args:
        name: The normalized name.
        known: The normalized names of known packages.
    """
    from tenv.targets.search import built_in_manifests  # late: as above

    parts = {part for manifest in built_in_manifests() if (row := manifest.wheels.get(_TOOLKIT)) for part in row.extras}
    if name in parts:
        return [f"{_TOOLKIT}[{name}]"]
    own = sorted((one for one in known if re.fullmatch(rf"nvidia-{name}(-cu[0-9]+)?", one)), key=lambda one: one[-2:])
    return own[-1:] or ([_OTHER_NAMES[name]] if name in _OTHER_NAMES else [])


def _or_remove(name: str, index: Index | None) -> str:
    return f"remove {name}, or correct its name" + (" or its index" if index else "")


def _edit(name: str, request: WheelRequest, version: str) -> str:
    """Return the edit that requests another version."""
    index = f', index = "{request.index}"'
    return f'set {name} = {{ version = "{version}"{index} }}' if request.index else f'set {name} = "{version}"'


def _listed(words: Sequence[str]) -> str:
    """Return a list in words; of Python minors in a row the first and the last."""
    minors = [int(word[2:]) for word in words if re.fullmatch(r"3\.\d{1,9}", word)]
    if words[2:] and len(minors) == len(words) and minors == list(range(minors[0], minors[-1] + 1)):
        return f"{words[0]} to {words[-1]}"
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
