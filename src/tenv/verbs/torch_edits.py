"""The edits with which a target of a fixed CUDA release takes torch: ``tenv add TARGET torch``.

The default index has a torch with one CUDA release for each minor version. A target of another release, of an older
glibc, or of a platform without such a torch would get a CPU build, or no solution.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError
from tenv.core.names import normalize
from tenv.core.versions import Range, Version
from tenv.core.wheel_platforms import DEFAULT_GLIBC, evaluated, marker_values
from tenv.facts.torch_headers import TorchMinor
from tenv.locks.lock import Wheel
from tenv.project.context import Context
from tenv.sources.wheels.urls import requirements_at
from tenv.targets.manifest import Manifest, WheelRequest
from tenv.targets.toolkit_kind import ToolkitKind, toolkit_kind
from tenv.targets.torch_cuda import torch_cuda

_TORCH = "torch"
_SECTION = "pypi-dependencies"


@dataclass(frozen=True, slots=True)
class TorchEdit:
    """One line of a manifest."""

    section: str
    """Its section: ``requirements``, ``platform.linux-64.pypi-dependencies``; empty for the top of the file."""
    key: str
    """Its key."""
    value: Any
    """Its value, as a text or a table."""
    why: str = ""
    """The reason; empty for the request of torch itself."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The torch that a target can have."""

    row: TorchMinor
    """The facts about its minor version."""
    wheel: Wheel
    """Its wheel."""
    requires: tuple[str, ...]
    """Its requirements."""
    newest: bool
    """Whether it is the newest with the target's CUDA, since the requested one has another."""


def edits_for_torch(context: Context, manifest: Manifest, wanted: Range) -> tuple[str, tuple[TorchEdit, ...]]:
    """Return the torch for the CUDA release of a target in words, and the edits that it takes; none where it just fits.

    Args:
        context: The project and the caller's environment.
        manifest: The manifest, without the request.
        wanted: The requested versions of torch.

    Raises:
        NoSolutionError: The default index has no torch with that CUDA release.
    """
    cuda = manifest.requirements.cuda
    kinds = (ToolkitKind.WHEELS, ToolkitKind.ARCHIVES)
    indexes = any(manifest.on(platform).indexes for platform in manifest.platforms)
    if cuda is None or manifest.requirements.cuda_from or indexes or toolkit_kind(manifest) not in kinds:
        return "", ()
    found = _find(context, manifest, cuda, wanted)
    version = found.wheel.version
    words = f"torch {version} has CUDA {cuda.major_minor}"
    if found.newest or wanted.text == "*":
        words = f"the newest torch with CUDA {cuda.major_minor} is {version}"
    edits = tuple(_edits(manifest, found, wanted))
    return (words, edits) if found.newest or [edit for edit in edits if edit.why] else ("", ())


def _find(context: Context, manifest: Manifest, cuda: Version, wanted: Range) -> _Found:
    """Return the newest requested torch with a CUDA release; the newest of all where none of these is requested."""
    table, uv = context.facts().torch_headers, context.uv()
    rows = [row for row in reversed(table.minors) if row.cuda.major_minor == cuda.major_minor]
    if not rows:
        there = ", ".join(dict.fromkeys(row.cuda.major_minor for row in table.minors))
        raise NoSolutionError(
            f"the default index has no torch with CUDA {cuda.major_minor}; it has torch for CUDA {there}",
            hint=f"`tenv init NAME --torch {table.minors[-1].torch}` writes a target whose toolkit follows torch; "
            f"`--torch 2.9+cu{cuda.major_minor.replace('.', '')}` takes a torch of PyTorch's own index",
        )
    asked = [(row, Range(_joined(wanted, row)), False) for row in rows]
    error = None
    for row, versions, newest in [*asked, (rows[0], Range(f"{rows[0].torch}.*"), True)]:
        platform, minor = row.platforms[0], _pythons(manifest, row)[-1]
        requirements = replace(manifest.requirements, glibc=_glibc(manifest, row))
        alone = Manifest(manifest.name, manifest.file, requirements=requirements)
        alone = replace(alone, wheels={_TORCH: WheelRequest(versions)})
        try:
            wheel, url = uv.resolve(alone, platform, minor, (), None)[_TORCH]
        except NoSolutionError as none:
            error = none
            continue
        requires = requirements_at(uv, {wheel.sha256: url}, context.progress)[wheel.sha256] or ()
        if torch_cuda(wheel.version, requires, platform, minor):
            return _Found(row, wheel, requires, newest)
    raise error or NoSolutionError(f"the indexes in use have no torch with CUDA {cuda.major_minor}")


def _joined(wanted: Range, row: TorchMinor) -> str:
    minor = f"=={row.torch}.*"
    return minor if wanted.text == "*" else f"{wanted.text},{minor}"


def _glibc(manifest: Manifest, row: TorchMinor) -> Version:
    return max(manifest.requirements.glibc or DEFAULT_GLIBC, row.glibc)


def _pythons(manifest: Manifest, row: TorchMinor) -> list[str]:
    """Return the Pythons of a target that torch has wheels for; those of torch where there is none."""
    accepted, minors = Range(row.python), manifest.python_minors()
    fitting = [minor for minor in minors if f"{minor}.0" in accepted]
    return fitting or [minor for n in range(30) if f"{(minor := f'3.{n}')}.0" in accepted]


def _edits(manifest: Manifest, found: _Found, wanted: Range) -> Iterator[TorchEdit]:
    """Yield the edits, in the order of a manifest."""
    row, here = found.row, manifest.requirements
    minors, fitting = manifest.python_minors(), _pythons(manifest, row)
    if minors and list(minors) != fitting:
        last = Version(fitting[-1]).minor + 1
        yield TorchEdit("", "python", f">={fitting[0]},<3.{last}", f"torch has wheels for Python {row.python}")
    if (here.glibc or DEFAULT_GLIBC) < row.glibc:
        yield TorchEdit(
            "requirements", "glibc", str(row.glibc), f"its wheels need it; it is {here.glibc or DEFAULT_GLIBC}"
        )
    having = [
        platform
        for platform in manifest.platforms
        if platform in row.platforms and torch_cuda(found.wheel.version, found.requires, platform, fitting[-1])
    ]
    everywhere = len(having) == len(manifest.platforms)
    lacking = ", ".join(platform for platform in manifest.platforms if platform not in having)
    why = "" if everywhere else f"on {lacking} it is a CPU build"
    asked = f"{row.torch}.*" if found.newest or wanted.text == "*" else wanted.text
    sections = [_SECTION] if everywhere else [f"platform.{platform}.{_SECTION}" for platform in having]
    for section in sections:
        yield TorchEdit(section, _TORCH, asked, why)
    yield from _pins(manifest, found, having, sections, fitting[-1])


def _pins(
    manifest: Manifest, found: _Found, platforms: Sequence[str], sections: Sequence[str], python: str
) -> Iterator[TorchEdit]:
    """Yield the requests that exclude a version which torch pins, as torch pins it."""
    from packaging.requirements import Requirement  # late: only here

    seen = set()
    for platform in platforms:
        values = marker_values(platform, python)
        own = [name for name in manifest.features if name not in manifest.inherited]
        views = [("", manifest.on(platform)), *((name, manifest.features[name].on(platform)) for name in own)]
        for asked in map(Requirement, found.requires):
            pin = str(asked.specifier).removeprefix("==")
            if not _is_pin(str(asked.specifier)) or (asked.marker and not evaluated(asked.marker, values)):
                continue
            name = normalize(asked.name)
            for feature, view in views:
                request = view.wheels.get(name)
                if request is None or request.tree or pin in request.version:
                    continue
                section = (
                    f"feature.{feature}.{_SECTION}"
                    if feature
                    else sections[min(platforms.index(platform), len(sections) - 1)]
                )
                if (section, name) not in seen:
                    seen.add((section, name))
                    value = {"version": pin, "extras": list(request.extras)} if request.extras else pin
                    yield TorchEdit(section, name, value, f"torch {found.wheel.version} requires {asked.specifier}")


def _is_pin(specifier: str) -> bool:
    return specifier.startswith("==") and "," not in specifier and "*" not in specifier


def refusal(name: str, file: str, words: str, edits: Sequence[TorchEdit]) -> NoSolutionError:
    """Return the error that names a torch and the edits which it takes."""
    lines: list[str] = []
    for section in dict.fromkeys(edit.section for edit in edits):
        lines += [f"[{section}]"] if section else []
        for edit in edits:
            if edit.section == section:
                why = f"   # {edit.why}" if edit.why else ""
                lines.append(f"{edit.key} = {_toml(edit.value)}{why}")
    listed = "".join(f"\n  {line}" for line in lines)
    return NoSolutionError(
        f"{words}, and {name} takes it with these lines in {file}:{listed}",
        hint=f"`tenv lock {name}` after that",
    )


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
