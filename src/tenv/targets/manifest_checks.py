"""Constraints between the sections of a manifest, and between the keys of a package that is compiled."""

import re
from dataclasses import replace

from tenv.core.names import normalize
from tenv.core.toml_reader import Table, nearest
from tenv.targets.manifest import Manifest, WheelRequest, tool_of
from tenv.targets.sections import SECTIONS

_STANDARDS = (14, 17, 20, 23)
"""The C++ standards that a request may name."""
_ARCH = r"\d{1,2}\.\d[af]?(\+PTX)?"
_ARCHS = re.compile(rf"{_ARCH}(?:[;\s]+{_ARCH})*")


def check_indexes(manifest: Manifest, table: Table) -> None:
    """Refuse a request for an index that the manifest does not name."""
    for name, request in manifest.wheels.items():
        if request.index and manifest.index(request.index) is None:
            known = [index.name for index in manifest.indexes if index.name]
            hint = nearest(request.index, known) or f'[[index]] with `name = "{request.index}"` and its `url` names it'
            raise table.table("pypi-dependencies").fail(name, f"no index `{request.index}` is named", hint=hint)


def check_features(manifest: Manifest, platform: str, table: Table) -> None:
    """Refuse features that would change a request of the target or of another feature: a feature only adds.

    It may add extras to a package that another one requests in the same version.
    """
    asked = {(key, name): ("", request) for key, name, request in _requests(manifest.on(platform))}
    for feature, part in manifest.features.items():
        for key, name, request in _requests(part.on(platform)):
            other, known = asked.setdefault((key, name), (feature, request))
            if not _adds(known, request, new=bool(other)):
                section = next(section.name for section in SECTIONS if section.key == key)
                where = f"[feature.{other}.{section}] in another version" if other else f"[{section}]"
                raise table.table("feature").fail(
                    f"{feature}.{section}.{name}",
                    f"`{name}` is asked for by {where}, and a feature only adds",
                    hint=f"remove it from [feature.{feature}.{section}]",
                )


def _adds(known: object, request: object, *, new: bool) -> bool:
    """Return whether a request changes nothing of a known one and adds extras to it, or need not add any."""
    if isinstance(known, WheelRequest) and isinstance(request, WheelRequest):
        same = replace(known, extras=()) == replace(request, extras=())
        return same and (new or bool({*request.extras} - {*known.extras}))
    return new and known == request


def bound_line(table: Table, key: str, line: str) -> str:
    """Return a line of `constraints` or `overrides`: a name, versions and a marker.

    An override may have extras, and with them or a marker no versions: a marker that never holds takes the package out.

    Raises:
        ManifestError: It is another line.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # late: 34 ms, only for these keys

    try:
        found = Requirement(line)
    except InvalidRequirement as error:
        raise table.fail(key, f"`{line}`: {str(error).splitlines()[0]}") from error
    more = key == "overrides" and (found.extras or found.marker)
    if found.url or (found.extras and not more) or not (found.specifier or more):
        raise table.fail(key, f"`{line}` is no name with versions", hint='`"numpy<2"` is an example')
    return str(found)


def check_bounds(manifest: Manifest, table: Table) -> None:
    """Refuse a bound of a package that the manifest requests: its versions stand at the request."""
    for key in ("constraints", "overrides"):
        for line in getattr(manifest, key):
            name = normalize(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0])
            if name in manifest.wheels:
                raise table.fail(key, f"`{name}` is requested by [pypi-dependencies], whose versions count")


def _requests(manifest: Manifest) -> list[tuple[str, str, object]]:
    return [
        (section.key, name, request) for section in SECTIONS for name, request in manifest.wanted(section.key).items()
    ]


def check_single_supplier(manifest: Manifest, platform: str, table: Table) -> None:
    """Raise ManifestError if two sections supply one tool."""
    supplier: dict[str, str] = {}
    for section in SECTIONS:
        for tool in {tool_of(normalize(name)) for name in manifest.wanted(section.key)}:
            if tool in supplier:
                raise table.fail(
                    section.name,
                    f"`{tool}` is supplied by both [{supplier[tool]}] and [{section.name}] on {platform}",
                    hint="remove it from one of the two",
                )
            supplier[tool] = section.name


def read_compiled(table: Table, request: WheelRequest) -> WheelRequest:
    """Return a request with its keys for a build against the target's torch."""
    isolated = table.flag("isolation") if "isolation" in table.data else True
    for word in ("requires", "cxx", "archs") if isolated else ():
        if word in table.data:
            raise table.fail(word, "is for a package with `isolation = false`")
    if isolated and request.always:
        raise table.fail("build", "`always` is for a package with `isolation = false`: else write true")
    if isolated:
        return request
    if not request.build and request.tree is None:
        raise table.fail("isolation", "`build = true` permits the build, which runs the code of the package")
    if request.tree and request.tree.editable:
        raise table.fail("isolation", "a folder with `editable` is not compiled against the target's torch")
    requires = table.strings("requires") if "requires" in table.data else None
    if wrong := next((text for text in requires or () if not _is_requirement(text)), None):
        raise table.fail("requires", f"`{wrong}` is no requirement such as `torch>=2.4`")
    cxx = table.number("cxx") or 0
    if "cxx" in table.data and cxx not in _STANDARDS:
        raise table.fail("cxx", f"`{cxx}` is none of {', '.join(map(str, _STANDARDS))}")
    archs = table.text("archs") or ""
    if "archs" in table.data and not _ARCHS.fullmatch(archs):
        raise table.fail("archs", f"`{archs}` is no list such as `8.0;9.0+PTX`")
    return replace(request, isolated=False, requires=requires, cxx=cxx, archs=archs)


def _is_requirement(text: str) -> bool:
    """Return whether a text is a requirement of a package, and not of a file by its address."""
    from packaging.requirements import InvalidRequirement, Requirement  # late: 15 ms

    try:
        return not Requirement(text).url
    except InvalidRequirement:
        return False
