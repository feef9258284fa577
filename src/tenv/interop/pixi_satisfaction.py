"""Whether a ``pixi.lock`` is for the workspace beside it: its platforms, their hosts, and the indexes of its wheels.

`tenv.locks.satisfaction` compares the packages with the requests. Here is what only pixi's own files have. Source:
pixi's module ``satisfiability``, whose test files are the cases of tests/interop/pixi_cases.toml.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tenv.core.errors import LockStaleError
from tenv.core.names import file_at
from tenv.core.versions import same_release
from tenv.interop.interface import Draft, ForeignLock, GivenFile
from tenv.interop.pixi_workspace import Workspace

__all__ = ["age_faults", "host_faults", "index_faults", "places_of", "virtual_of"]


def places_of(
    workspace: Workspace | None,
    name: str,
    places: dict[str, Mapping[str, Any]],
    source: GivenFile,
    lost: list[str],
) -> dict[str, Mapping[str, Any]]:
    """Return the platforms of a lock that its workspace has, too; those of one of them alone are lost.

    Raises:
        LockStaleError: There is none.
    """
    wanted = workspace.places(name, places) if workspace else {}
    if workspace is None or not wanted:
        return places
    file = workspace.path.name
    if gone := [platform for platform in places if platform not in wanted]:
        lost.append(f"skipped platforms: {', '.join(gone)}, which {file} does not have")
    if new := [platform for platform in wanted if platform not in places and platform in source.choose(wanted)[0]]:
        lost.append(f"platforms of {file} without packages in the lock: {', '.join(new)}")
    if kept := {platform: entry for platform, entry in places.items() if platform in wanted}:
        return kept
    raise LockStaleError(
        f"{source.path}: is for {', '.join(places)}, and {file} is for {', '.join(wanted)}",
        hint="`pixi lock` updates it",
    )


def host_faults(draft: Draft, places: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield how the host of a workspace differs from the host that its lock was made for; older locks have none."""
    for platform, entry in places.items():
        made = virtual_of({platform: entry})
        for key, wanted in (("cuda", draft.cuda), ("glibc", draft.glibc)):
            had = made.get(f"__{key}", "")
            if wanted and had and not same_release(wanted, had):
                yield f"{platform}: its platforms declare {key} {wanted}, the lock was made for {had}"


def age_faults(workspace: Workspace, part: ForeignLock) -> Iterator[str]:
    """Yield the conda packages of a lock that are newer than the day or the moment of ``exclude-newer``."""
    try:
        limit = datetime.fromisoformat(text := str(workspace.head.get("exclude-newer", "")))
    except ValueError:  # none, or a span such as `7d`
        return
    if "T" not in text:
        limit += timedelta(days=1)
    limit = limit if limit.tzinfo else limit.replace(tzinfo=UTC)
    rows = {str(row["conda"]): row.get("timestamp") for rows in part.conda.values() for row in rows}
    for url, made in rows.items():
        if isinstance(made, int) and made > limit.timestamp() * 1000:
            yield f"{file_at(url)} is newer than `exclude-newer` = {text}"


def index_faults(draft: Draft, part: ForeignLock, environment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requested wheels that are locked from another index than their request names.

    Only locks of version 7 have the index of a wheel. A request without an index takes it from those of the
    environment; a package that only others require may be from any index. Source: pixi's module ``satisfiability``.
    """
    known = [*environment.get("indexes", ()), *(row.get("url", "") for row in environment.get("find-links", ()))]
    named = {index.key: index.address for index in draft.indexes}
    for platform, rows in part.wheels.items():
        origins = {wheel.name: part.origins.get(wheel.sha256, "") for wheel in rows}
        for name, request in draft.wheels.get(platform, {}).items():
            had = origins.get(name, "")
            wanted = [named.get(request.index, request.index)] if request.index else known
            if had and wanted and not (request.tree or request.file) and had not in (row.rstrip("/") for row in wanted):
                yield f"{platform}: {name} is locked from {had}, the manifest requests {' or '.join(wanted)}"


def virtual_of(places: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the virtual packages that a lock was made for, by name, as its platforms have them."""
    found: dict[str, str] = {}
    for entry in places.values():
        for word in entry.get("virtual-packages") or []:
            name, _, version = str(word).partition("=")
            found.setdefault(name, version.partition("=")[0])
    return found
