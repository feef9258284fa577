"""One manifest laid over another: a child over its parent, what differs by platform over the rest."""

from dataclasses import replace
from typing import Any

from tenv.targets.manifest import Manifest, Requirements

__all__ = ["lay", "merge"]


def merge(above: Manifest, own: Manifest) -> Manifest:
    """Lay a manifest over its parent, platform by platform: nothing of a parent wins over what its child says."""
    platforms = sorted({*above.by_platform, *own.by_platform})
    return replace(
        lay(above, own), by_platform={platform: lay(above.on(platform), own.on(platform)) for platform in platforms}
    )


def lay(above: Manifest, own: Manifest) -> Manifest:
    """Lay one manifest over another: single values replace, tables are joined key by key."""
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
    )


def _kept(above: Manifest, own: Manifest, key: str) -> dict[str, Any]:
    """Return what a manifest above asks of a source and the one below does not drop."""
    dropped = own.dropped.get(key, frozenset())
    return {name: request for name, request in above.wanted(key).items() if name not in dropped}
