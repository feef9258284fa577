"""Leave users, passwords and tokens out of what an import writes: manifests and locks are shared."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tenv.core.untrusted import without_login
from tenv.interop.interface import ForeignLock, Imported

__all__ = ["without_logins"]


def without_logins(found: Imported) -> Imported:
    """Return what was imported without the logins in the addresses of channels and packages; a note says so."""
    draft = replace(
        found.draft,
        channels=tuple(dict.fromkeys(map(without_login, found.draft.channels))),
        dependencies={
            platform: {name: replace(row, channel=without_login(row.channel)) for name, row in rows.items()}
            for platform, rows in found.draft.dependencies.items()
        },
    )
    part = found.part and ForeignLock(
        tuple(dict.fromkeys(map(without_login, found.part.channels))),
        {platform: tuple(map(_plain_row, rows)) for platform, rows in found.part.conda.items()},
        found.part.wheels,
        found.part.options,
    )
    if (draft, part) == (found.draft, found.part):
        return found
    note = "the login of a channel, which belongs in ~/.netrc or in rattler's store of logins"
    return replace(found, draft=draft, part=part, lost=(*found.lost, note))


def _plain_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row of a conda package with an address that has no login."""
    url = row.get("conda")
    return {**row, "conda": without_login(url)} if isinstance(url, str) else row
