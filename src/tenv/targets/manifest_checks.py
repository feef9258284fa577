"""Constraints between the sections of a manifest."""

from tenv.core.names import normalize
from tenv.core.toml_reader import Table, nearest
from tenv.targets.manifest import Manifest, tool_of
from tenv.targets.sections import SECTIONS

__all__ = ["check_features", "check_indexes", "check_single_supplier"]


def check_indexes(manifest: Manifest, table: Table) -> None:
    """Refuse a request for an index that the manifest does not name."""
    for name, request in manifest.wheels.items():
        if request.index and manifest.index(request.index) is None:
            known = [index.name for index in manifest.indexes if index.name]
            hint = nearest(request.index, known) or f'[[index]] with `name = "{request.index}"` and its `url` names it'
            raise table.table("pypi-dependencies").fail(name, f"no index `{request.index}` is named", hint=hint)


def check_features(manifest: Manifest, platform: str, table: Table) -> None:
    """Refuse features that would change a request of the target or of another feature: a feature only adds."""
    asked = {(key, name): ("", request) for key, name, request in _requests(manifest.on(platform))}
    for feature, part in manifest.features.items():
        for key, name, request in _requests(part.on(platform)):
            other, known = asked.setdefault((key, name), (feature, request))
            if not other or known != request:
                section = next(section.name for section in SECTIONS if section.key == key)
                where = f"[feature.{other}.{section}] in another version" if other else f"[{section}]"
                raise table.table("feature").fail(
                    f"{feature}.{section}.{name}",
                    f"`{name}` is asked for by {where}, and a feature only adds",
                    hint=f"remove it from [feature.{feature}.{section}]",
                )


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
