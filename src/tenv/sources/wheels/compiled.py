"""Source archives that are compiled against the target's torch, as rows of a lock: ``isolation = false``.

No code of such an archive runs before ``tenv create``: torch is not there. Its requirements are those of its
``PKG-INFO`` where they are static (PEP 643), or those that the manifest names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import tomli

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError
from tenv.core.names import normalize
from tenv.core.versions import Range, Version
from tenv.core.wheel_platforms import DEFAULT_GLIBC, marker_values
from tenv.facts.torch_packages import TorchPackage
from tenv.locks.lock import LockedTree, Wheel
from tenv.sources.interface import Problem
from tenv.sources.wheels.choose import choose_wheel, uv_platforms
from tenv.sources.wheels.index_requests import IndexedRequests, as_asked, indexes_in_use
from tenv.sources.wheels.project_metadata import ProjectMetadata, noted_requirements, parse_core_metadata
from tenv.sources.wheels.sdist_builds import NOTED, asked_by_build, member
from tenv.sources.wheels.sdists import fetched, is_static
from tenv.targets.manifest import Manifest, WheelRequest

__all__ = ["CompiledSdists", "is_compiled_sdist", "needs_of_build"]

_ALWAYS = ("setuptools", "ninja")
"""The requirements of torch's ``cpp_extension.py``: without ninja it compiles one file after another."""


def is_compiled_sdist(request: WheelRequest) -> bool:
    """Return whether a request is for a source archive that is compiled against the target's torch."""
    return not request.isolated and request.tree is None


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
    """One archive.

    Attributes:
        archive: The archive.
        raw: Its bytes.
        metadata: Its metadata.
    """

    archive: Wheel
    raw: bytes
    metadata: ProjectMetadata


class CompiledSdists:
    """The source archives that a problem asks for; each is read once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: dict[str, _Release] = {}

    def metadata(self, name: str, request: WheelRequest, platform: str, minor: str) -> ProjectMetadata:
        """Return the metadata of the newest release that a request accepts, or of the locked one.

        Raises:
            NoSolutionError: No index has one, or its requirements are nowhere.
            NetworkError: It can't be fetched.
        """
        if name not in self._known:
            archive, url = self._choose(name, request, platform, minor)
            raw = fetched(self._problem, archive, url)
            self._known[name] = _Release(archive, raw, _metadata(archive, raw, request))
        return self._known[name].metadata

    def _choose(self, name: str, request: WheelRequest, platform: str, minor: str) -> tuple[Wheel, str]:
        problem = self._problem
        uv, held = problem.access.uv(), self._held(name, request)
        asked = replace(request, version=Range(f"=={held}")) if held else request
        manifest = replace(problem.manifest.on(platform), wheels={name: asked}, by_platform={})
        newest = problem.limits.exclude_newer
        day = ("--exclude-newer", f"{newest:%Y-%m-%dT%H:%M:%SZ}") if newest else ()
        known = {"dependency-metadata": [{"name": name, "requires-dist": []}]}
        variables = indexes_in_use(manifest, uv.environment, uv.users)
        words = ("--no-deps", "--format", "pylock.toml", *day)
        where = uv_platforms(platform, manifest.requirements.glibc or DEFAULT_GLIBC)[-1]
        requests = IndexedRequests.of_manifest(manifest)
        done = uv.compile(where, requests, minor, words, variables, [name], known)
        if done.status:
            raise uv.error(done.stderr, f"no index in use has a source archive of {name} for Python {minor}")
        rows = [row for row in tomli.loads(done.stdout).get("packages", []) if normalize(row["name"]) == name]
        if not rows:
            raise NoSolutionError(f"no index in use has a source archive of {name} for Python {minor}")
        chosen = dict([choose_wheel(rows[0], {}, minor)])
        return as_asked(manifest, chosen, {}, uv.users)[name]

    def _held(self, name: str, request: WheelRequest) -> str:
        """Return the version of the old lock that is not to move; empty for none."""
        old, upgrade = self._problem.old, self._problem.upgrade
        if old is None or upgrade is None or name in upgrade:
            return ""
        rows = (row for trees in old.trees.values() for row in trees if row.name == name and row.file)
        return next((row.version for row in rows if row.version in request.version), "")

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
        if not asked:
            return ()
        requirements = problem.manifest.on(platform).requirements
        backend = Manifest(f"the build of {archive.file}", archive.file, wheels=asked, requirements=requirements)
        newest = problem.limits.exclude_newer
        rows = problem.access.uv().resolve(backend, platform, minor, (), None, there, newest)
        return tuple(sorted(f"{name}=={row.version} sha256:{row.sha256}" for name, (row, _) in rows.items()))


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
    noted = noted_requirements(member(raw, archive.file, NOTED), archive.file) or known.requires
    plain = [text for text in noted if "extra ==" not in text]
    listed = ", ".join(f'"{text}"' for text in plain)
    asks = str(request.version)
    line = f'{archive.name} = {{ version = "{asks}", build = true, isolation = false, requires = [{listed}] }}'
    raise NoSolutionError(
        f"{archive.file} leaves its requirements to its code, which does not run without torch",
        hint=f"`{line}` in the manifest names them" + (", as its archive notes them" if noted else ""),
    )
