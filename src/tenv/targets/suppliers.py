"""Whether a manifest may ask for a package, and whether it asks for each thing once."""

from tenv.core.names import CONDA_NAME, normalize
from tenv.core.toml_reader import Table
from tenv.targets.manifest import Manifest, tool_of
from tenv.targets.sections import SECTIONS

__all__ = ["REFUSED", "check_features", "check_single_supplier", "conda_package"]

REFUSED = {
    "cudatoolkit-dev": (
        "holds no toolkit, but a script that downloads one when it is installed, outside every sha256",
        'use cuda-nvcc and cuda-version in [dependencies], or before CUDA 12 cuda = "11.8.0" in [archives]',
    ),
}
"""Conda packages that no lock can hold, each with the reason and what to use instead (conda-forge's recipes)."""


def conda_package(table: Table, key: str) -> str:
    """Return the name of a conda package that a manifest may request."""
    if not CONDA_NAME.fullmatch(key):
        raise table.fail(key, f"`{key}` is not the name of a conda package (lowercase letters, digits, `-`, `_`, `.`)")
    if key in REFUSED:
        reason, instead = REFUSED[key]
        raise table.fail(key, f"`{key}` {reason}", hint=instead)
    return key


def check_features(manifest: Manifest, platform: str, table: Table) -> None:
    """Refuse features that would change what the target, or another feature, asks for: a feature only adds."""
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
