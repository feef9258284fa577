"""Source archives that are compiled against the target's torch, as rows of a lock: ``isolation = false``.

No code of such an archive runs before ``tenv create``: torch is not there. Its requirements are those of its
``PKG-INFO`` where they are static (PEP 643), or those that the manifest names. A wheel of the same release takes its
place where it names the torch that it was compiled against, and that torch is locked.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tomli

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError, TenvError
from tenv.core.names import normalize
from tenv.core.progress import Silent
from tenv.core.versions import Range, Version
from tenv.core.wheel_platforms import DEFAULT_GLIBC, accepted_tags, marker_values
from tenv.facts.torch_packages import TorchPackage
from tenv.locks.lock import LockedTree, Wheel
from tenv.locks.wheel_requirement import Torch, names_torch, requirement_of, torch_of
from tenv.sources.interface import Problem
from tenv.sources.wheels.choose import choose_wheel, uv_platforms
from tenv.sources.wheels.index_requests import IndexedRequests, as_asked, indexes_in_use
from tenv.sources.wheels.project_metadata import ProjectMetadata, noted_requirements, parse_core_metadata, read_project
from tenv.sources.wheels.sdist_builds import NOTED, asked_by_build, member
from tenv.sources.wheels.sdists import fetched, is_static, pins_of_build
from tenv.sources.wheels.tree_builds import requirement_faults
from tenv.sources.wheels.trees import require_pythons
from tenv.sources.wheels.urls import requirements_at
from tenv.targets.manifest import Manifest, WheelRequest

_ALWAYS = ("setuptools", "ninja")
"""The requirements of torch's ``cpp_extension.py``: without ninja it compiles one file after another."""


def is_compiled_sdist(request: WheelRequest) -> bool:
    """Return whether a request is for a source archive that is compiled against the target's torch."""
    return not request.isolated and request.tree is None


_OTHER_PYTHON = re.compile(r"all versions of \S+ depend on Python ?((?:, ?)?[<>=!~]=?[\d.*]+(?:, ?[<>=!~]=?[\d.*]+)*)")
_MOST_WHEELS = 64
"""The most wheels of a release with versions of their own that are looked at; one torch and CUDA each."""


def needs_of_build(asked: Mapping[str, WheelRequest], facts: TorchPackage | None) -> dict[str, WheelRequest]:
    """Return the packages that a build against an installed torch needs beside torch.

    Args:
        asked: The requests of its ``[build-system]``.
        facts: The row of the package in the table; None without one.
    """
    named = (*_ALWAYS, *(facts.needs if facts else ()))
    return {**{name: WheelRequest(Range("*")) for name in named}, **asked}


@dataclass(frozen=True, slots=True)
class _Release:
    """One archive."""

    archive: Wheel
    """The archive."""
    raw: bytes
    """Its bytes."""
    metadata: ProjectMetadata
    """Its metadata."""


class CompiledSdists:
    """The source archives that a problem asks for; each is read once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: dict[str, _Release] = {}

    def read(self, minors: Mapping[str, str]) -> None:
        """Read every archive.

        Args:
            minors: The first Python minor of each platform.

        Raises:
            NoSolutionError: No index has one, or its requirements are nowhere: one error about all such.
            NetworkError: One can't be fetched.
        """
        faults: dict[str, str] = {}
        for platform, minor in minors.items():
            for name, request in self._problem.manifest.on(platform).wheels.items():
                if is_compiled_sdist(request):
                    try:
                        self.metadata(name, request, platform, minor)
                    except NoSolutionError as error:
                        if type(error) is not NoSolutionError:
                            raise
                        faults[str(error)] = error.hint
        if faults:
            raise NoSolutionError("; ".join(faults), hint="; ".join(filter(None, dict.fromkeys(faults.values()))))

    def metadata(self, name: str, request: WheelRequest, platform: str, minor: str) -> ProjectMetadata:
        """Return the metadata of the newest release that a request accepts, or of the locked one.

        Raises:
            NoSolutionError: No index has one, or its requirements are nowhere.
            NetworkError: It can't be fetched.
        """
        if name not in self._known:
            archive, url = self._choose(name, request, platform, minor)
            raw = fetched(self._problem, archive, url)
            known = _metadata(archive, raw, request)
            require_pythons(name, known, self._problem.manifest.python_minors())
            self._known[name] = _Release(archive, raw, known)
        return self._known[name].metadata

    def _choose(self, name: str, request: WheelRequest, platform: str, minor: str) -> tuple[Wheel, str]:
        held = self._held(name, request)
        asked = replace(request, version=Range(f"=={held}")) if held else request
        manifest, rows = self._asked(name, asked, platform, minor, [name])
        if not rows:
            raise NoSolutionError(f"no index in use has a source archive of {name} for Python {minor}")
        chosen = dict([choose_wheel(rows[0], {}, minor)])
        return as_asked(manifest, chosen, {}, self._problem.access.uv().users)[name]

    def _asked(
        self, name: str, request: WheelRequest, platform: str, minor: str, built: list[str]
    ) -> tuple[Manifest, list[dict[str, Any]]]:
        """Return a manifest with a request alone, and its rows of a pylock."""
        problem, uv = self._problem, self._problem.access.uv()
        manifest = replace(problem.manifest.on(platform), wheels={name: request}, by_platform={})
        newest = problem.limits.exclude_newer
        day = ("--exclude-newer", f"{newest:%Y-%m-%dT%H:%M:%SZ}") if newest else ()
        known = {"dependency-metadata": [{"name": name, "requires-dist": []}]}
        variables = indexes_in_use(manifest, uv.environment, uv.users)
        words = ("--no-deps", "--format", "pylock.toml", *day)
        where = uv_platforms(platform, manifest.requirements.glibc or DEFAULT_GLIBC)[-1]
        requests = IndexedRequests.of_manifest(manifest)
        done = uv.compile(where, requests, minor, words, variables, built, known)
        if done.status:
            what = f"no index in use has a source archive of {name} for Python {minor}"
            raise with_way(uv.error(done.stderr, what), name, done.stderr)
        packages = tomli.loads(done.stdout).get("packages", [])
        return manifest, [row for row in packages if normalize(row["name"]) == name]

    def _held(self, name: str, request: WheelRequest) -> str:
        """Return the version of the old lock that is not to move; empty for none."""
        old, upgrade = self._problem.old, self._problem.upgrade
        if old is None or upgrade is None or name in upgrade:
            return ""
        versions = [row.version for trees in old.trees.values() for row in trees if row.name == name and row.file]
        wheels = (row for rows in old.wheels.values() for row in rows if row.name == name)
        versions += [row.version.partition("+")[0] for row in wheels]  # a wheel of an archive's release
        return next((version for version in versions if version in request.version), "")

    def wheels(
        self, platform: str, minor: str, chosen: Mapping[str, tuple[Wheel, str]]
    ) -> Iterator[tuple[str, tuple[Wheel, str]]]:
        """Yield the wheels of the archives' releases that are compiled against the torch of a lock, by name.

        Args:
            platform: The platform.
            minor: The Python minor.
            chosen: The wheels of the lock and their addresses, by name.

        Raises:
            NetworkError: An index does not respond.
        """
        asked = self._problem.manifest.on(platform).wheels
        names = [name for name, one in sorted(asked.items()) if is_compiled_sdist(one) and not one.must_compile]
        if not names or "torch" not in chosen:
            return
        wheel, url = chosen["torch"]
        requires = requirements_at(self._problem.access.uv(), {wheel.sha256: url}, Silent())[wheel.sha256]
        torch = torch_of(wheel.version, requires or (), platform, minor)
        if not torch.is_stable:
            return
        for name in names:
            if found := self._wheel(name, asked[name], platform, minor, torch):
                yield name, found

    def _wheel(
        self, name: str, request: WheelRequest, platform: str, minor: str, torch: Torch
    ) -> tuple[Wheel, str] | None:
        """Return the wheel of an archive's release that fits a torch; None without one.

        uv names the wheel with the greatest local version, and so is asked again without each that does not fit.
        """
        uv, known = self._problem.access.uv(), self._known[name]
        row = LockedTree(name, known.archive.version, (minor,), _without_torch(known.metadata.requires), isolated=False)
        glibc = self._problem.manifest.on(platform).requirements.glibc or DEFAULT_GLIBC
        tags, values, left = accepted_tags(platform, minor, glibc), marker_values(platform, minor), f"=={row.version}"
        for _ in range(_MOST_WHEELS):
            asked = replace(request, version=Range(left), build=False, isolated=True)
            try:
                manifest, rows = self._asked(name, asked, platform, minor, [])
            except NoSolutionError as error:
                if type(error) is NoSolutionError:
                    return None
                raise
            if not rows:
                return None
            version = str(rows[0]["version"])
            with contextlib.suppress(NoSolutionError):  # none of its wheels is for the platform
                _, (wheel, url) = choose_wheel(rows[0], tags, minor)
                requires = requirements_at(uv, {wheel.sha256: url}, Silent())[wheel.sha256]
                if requires is not None and names_torch(version, requires, values, torch):
                    more = [*requirement_faults(row, _without_torch(requires), values)]
                    if not more:
                        where = uv_platforms(platform, glibc)[-1]
                        return uv.with_origins(manifest, [(name, (wheel, url))], where, minor, [])[name]
                    self._problem.access.progress.say(f"{wheel.file} is not taken from the index: {more[0]}")
            if "+" not in version:
                return None
            left += f",!={version}"
        return None

    def rows(
        self, platform: str, there: Mapping[str, Mapping[str, str]], asked: Mapping[str, WheelRequest]
    ) -> Iterator[LockedTree]:
        """Yield the rows of a platform; Pythons for which the build needs the same wheels share one.

        Args:
            platform: The platform.
            there: The versions of the target's Python packages by name, for each Python minor.
            asked: The requests of the manifest.
        """
        for name, request in sorted(asked.items()):
            if not is_compiled_sdist(request):
                continue
            known = self._known[name]
            minors: dict[tuple[str, ...], list[str]] = {}
            for minor, versions in there.items():
                if name in versions:  # an index has its wheel
                    continue
                minors.setdefault(self._pins(known, platform, minor, versions), []).append(minor)
            for pins, served in sorted(minors.items()):
                archive = known.archive
                yield LockedTree(
                    name,
                    archive.version,
                    tuple(sorted(served, key=Version)),
                    known.metadata.requires,
                    file=archive.file,
                    digest=archive.sha256,
                    length=len(known.raw),
                    index=archive.index,
                    build=pins,
                    isolated=False,
                )

    def _pins(self, known: _Release, platform: str, minor: str, there: Mapping[str, str]) -> tuple[str, ...]:
        """Return the wheels that a build needs beside the packages of the target."""
        problem, archive = self._problem, known.archive
        if "torch" not in there and not {"pytorch", "libtorch"} & there.keys():
            raise NoSolutionError(
                f"{archive.name} is compiled against the target's torch, and the target has none on {platform}",
                hint="add `torch` to [pypi-dependencies]",
            )
        facts = problem.access.facts().torch_packages.find(archive.name)
        values = marker_values(platform, minor)
        needs = needs_of_build(asked_by_build(known.raw, archive.file, values), facts)
        asked = {name: request for name, request in needs.items() if name not in there and name != "torch"}
        return pins_of_build(problem, asked, archive.file, platform, minor, there)


def with_way(error: TenvError, name: str, output: str) -> TenvError:
    """Return an error of uv about a source archive with its hint: another Python, or the wheel that there is.

    Args:
        error: The error.
        name: The package.
        output: The output of uv.
    """
    flat = " ".join(output.split())
    if python := _OTHER_PYTHON.search(flat):
        error.hint = f'set python = "{python[1].replace(" ", "")}"'
    elif "no source distribution" in flat:
        error.hint = f'it has no source archive: `{name} = "*"` takes a wheel of it'
    return error


def _without_torch(requires: tuple[str, ...]) -> tuple[str, ...]:
    """Return requirements without those for torch, of which a wheel names one release, and its archive a range."""
    return tuple(text for text in requires if (row := requirement_of(text)) is None or row.name != "torch")


def _metadata(archive: Wheel, raw: bytes, request: WheelRequest) -> ProjectMetadata:
    """Return the metadata of an archive: static, or with the requirements that the manifest names.

    Raises:
        NoSolutionError: It has neither.
    """
    info = member(raw, archive.file, "PKG-INFO")
    if info is None:
        raise NoSolutionError(f"{archive.file} has no PKG-INFO")
    known = replace(parse_core_metadata(info, archive.file), dynamic=False)
    if request.requires is not None:
        return replace(known, requires=request.requires, extras=())
    if is_static(info):
        return known
    if project := read_project(member(raw, archive.file, "pyproject.toml"), archive.file, known.version):
        return replace(known, requires=project.requires, extras=project.extras)
    noted = noted_requirements(member(raw, archive.file, NOTED), archive.file) or known.requires
    plain = [text.replace('"', "'") for text in noted if "extra ==" not in text]
    raise NoSolutionError(
        f"{archive.file} leaves its requirements to its code, which does not run without torch",
        hint=f"`{_line(archive.name, request, plain)}` in the manifest names them"
        + (", as its archive notes them" if noted else ""),
    )


def _line(name: str, request: WheelRequest, requires: Sequence[str]) -> str:
    """Return the line of a manifest with a request and the requirements of its package."""

    def texts(values: Sequence[str]) -> str:
        return "[" + ", ".join(f'"{text}"' for text in values) + "]"

    words = [f'version = "{request.version}"']
    words += [f"extras = {texts(request.extras)}"] * bool(request.extras)
    words += [f'index = "{request.index}"'] * bool(request.index)
    words += ['build = "always"' if request.always else "build = true", "isolation = false"]
    words += [f"cxx = {request.cxx}"] * bool(request.cxx) + [f'archs = "{request.archs}"'] * bool(request.archs)
    return f"{name} = {{ {', '.join([*words, f'requires = {texts(requires)}'])} }}"
