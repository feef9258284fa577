"""What built packages of source trees require, held against the lock: no row decides what its tree does not say."""

from collections.abc import Iterable, Iterator, Mapping

from tenv.locks.lock import LockedTree
from tenv.locks.wheel_requirement import requirement_of

__all__ = ["requirement_faults"]


def requirement_faults(tree: LockedTree, built: Iterable[str], values: Mapping[str, str]) -> Iterator[str]:
    """Yield how the requirements of a built package differ from its row in the lock, one sentence each.

    Args:
        tree: The row.
        built: What the metadata of the built package require.
        values: The values of the marker environment here. Another order of a marker is no difference.
    """
    built = tuple(built)
    extras = {extra for text in (*tree.requires, *built) if (row := requirement_of(text)) for extra in row.named}
    locked, found = _needs(tree.requires, extras, values), _needs(built, extras, values)
    if lacking := _listed(found - locked):
        yield f"{tree.name} requires {lacking}, which its row in the lock lacks"
    if surplus := _listed(locked - found):
        yield f"{tree.name} does not require {surplus}, as its row in the lock says"


def _needs(texts: Iterable[str], extras: Iterable[str], values: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return each requirement that holds here, with the extra that asks for it; an empty one for all."""
    rows = [row for text in texts if (row := requirement_of(text))]
    return frozenset(
        (extra, f"{row.name}{_bracketed(row.extras)}{row.specifier}")
        for extra in ("", *extras)
        for row in rows
        if row.holds(values, extra)
    )


def _bracketed(extras: tuple[str, ...]) -> str:
    return f"[{','.join(sorted(extras))}]" if extras else ""


def _listed(needs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(sorted({text for _, text in needs}))
