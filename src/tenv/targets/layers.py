"""Manifests laid over each other: a child over its parent, a feature over its target."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.targets.manifest import Manifest, Requirements

__all__ = ["lay", "merge", "placed", "with_features"]


def merge(above: Manifest, own: Manifest) -> Manifest:
    """Merge a manifest with its parent, platform by platform; the child wins everywhere."""
    platforms = sorted({*above.by_platform, *own.by_platform})
    names = dict.fromkeys((*above.features, *own.features))
    empty = Manifest(own.name, own.file)
    return replace(
        lay(above, own),
        by_platform={platform: lay(above.on(platform), own.on(platform)) for platform in platforms},
        features={name: merge(above.features.get(name, empty), own.features.get(name, empty)) for name in names},
    )


def with_features(manifest: Manifest, names: Iterable[str] | None = None) -> Manifest:
    """Return a manifest that asks for what some of its features add as if they stood in its own sections.

    Args:
        manifest: The manifest.
        names: The features; None for all of them. One that the manifest does not have adds nothing.
    """
    chosen = manifest.features if names is None else [name for name in manifest.features if name in set(names)]
    found = replace(manifest, features={})
    for name in chosen:
        found = merge(found, replace(manifest.features[name], name=manifest.name, file=manifest.file))
    return found


def placed(manifest: Manifest, home: Path) -> Manifest:
    """Return a manifest whose paths are relative to a folder."""
    return replace(
        manifest,
        wheels={
            name: replace(request, tree=replace(request.tree, base=home)) if request.tree else request
            for name, request in manifest.wheels.items()
        },
        by_platform={platform: placed(part, home) for platform, part in manifest.by_platform.items()},
        features={name: placed(part, home) for name, part in manifest.features.items()},
    )


def lay(above: Manifest, own: Manifest) -> Manifest:
    """Merge two manifests: single values replace, tables merge key by key."""
    return Manifest(
        name=own.name,
        file=own.file,
        description=own.description or above.description,
        platforms=own.platforms or above.platforms,
        channels=own.channels or above.channels,
        pytorch=own.pytorch or above.pytorch,
        python=own.python or above.python,
        requirements=Requirements(
            own.requirements.cuda or above.requirements.cuda, own.requirements.glibc or above.requirements.glibc
        ),
        dependencies={**_kept(above, own, "conda"), **own.dependencies},
        wheels={**_kept(above, own, "wheels"), **own.wheels},
        archives={**_kept(above, own, "archives"), **own.archives},
        system={**_kept(above, own, "system"), **own.system},
        others={
            key: {**_kept(above, own, key), **own.others.get(key, {})} for key in sorted({*above.others, *own.others})
        },
        environment={**above.environment, **own.environment},
        dropped={key: names | above.dropped.get(key, frozenset()) for key, names in own.dropped.items()},
        cache_name=own.cache_name or above.cache_name,
        cache_storage=own.cache_storage or above.cache_storage,
    )


def _kept(above: Manifest, own: Manifest, key: str) -> Mapping[str, Any]:
    """Return what a manifest above asks of a source and the one below does not drop."""
    wanted, dropped = above.wanted(key), own.dropped.get(key)
    return {name: request for name, request in wanted.items() if name not in dropped} if dropped else wanted
