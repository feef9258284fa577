"""Builds packages of source trees before an environment changes: a commit once for all, a folder each time."""

import base64
import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tenv.core.errors import EnvironmentBrokenError
from tenv.core.files import digest, read_regular, storage_errors, write_atomic
from tenv.core.names import METADATA, WheelFile, dist_info
from tenv.locks.lock import LockedTree, Wheel
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.access import Access
from tenv.sources.wheels.git_trees import clone
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.sdist_builds import (
    build_variables,
    built_folder,
    keep_built,
    kept_build,
    key_of_build,
    wheel_in,
)
from tenv.sources.wheels.uv import Uv
from tenv.targets.tree_request import TreeRequest


def build_tree(
    access: Access, uv: Uv, python: Path, row: LockedTree, request: TreeRequest, out: Path, so: str = ""
) -> Wheel:
    """Return the wheel that a source tree of a lock becomes: built, or kept of a commit.

    Args:
        access: The settings and services of the user.
        uv: uv.
        python: A Python of the minor that the wheel is for.
        row: The source tree.
        request: Its request in the manifest.
        out: An empty folder for the wheel of a folder.
        so: The consequence for the environment if it can't be built, for the message.

    Raises:
        EnvironmentBrokenError: It can't be built, or becomes another package.
        NetworkError: Its repository, or the index of its build requirements, can't be reached.
    """
    from tenv.sources.wheels.backend_metadata import Backend  # late: as few trees are built

    where = f"{row.name} can't be built{so}"
    if request.path:
        access.progress.step(f"building {row.name}")
        folder, editable = request.folder, request.editable
        built = Backend(uv, python, folder, where, access.environ).wheel(out, editable=editable)
        wheel_in(out, row, so)
        return built_wheel(built, row)
    variables = build_variables(access.environ)
    inputs = [request.git, request.subdirectory, row.commit]
    place = built_folder() / key_of_build(inputs, python, variables)
    if kept := kept_build(place, row):
        return kept
    access.progress.step(f"building {row.name}")
    with (
        clone(request, access) as repository,
        repository.files(row.commit, submodules=True) as tree,
    ):
        Backend(uv, python, tree, where, access.environ).wheel(out, network=False)
        return keep_built(wheel_in(out, row, so), place, row)


def built_wheel(built: Path, row: LockedTree) -> Wheel:
    """Return the wheel that a build wrote, which is not kept yet."""
    file = WheelFile.parse(built.name)
    version = file.version if file else row.version
    return Wheel(row.name, version, built.name, digest(built), None, row.python, path=str(built))


def note_origin(there: Wheels, row: LockedTree, request: TreeRequest) -> None:
    """Write the origin of an installed package into its ``direct_url.json`` (PEP 610), where its wheel's is."""
    info = next((path for path in there.distributions() if dist_info(path)[0] == row.name), None)
    if info is None:
        return
    file = info / "direct_url.json"
    text = json.dumps(_origin(row, request))
    with storage_errors(f"can't write {file}"):
        write_atomic(file, text, within=there.prefix)
        hashed = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        name = f"{info.name}/{file.name}"
        kept = [line for line in read_regular(info / "RECORD").decode().splitlines() if not line.startswith(f"{name},")]
        rows = [*kept, f"{name},sha256={hashed},{len(text.encode())}"]
        write_atomic(info / "RECORD", "\n".join(rows) + "\n", within=there.prefix)


def _origin(row: LockedTree, request: TreeRequest) -> dict[str, Any]:
    if request.path:
        return {"url": request.folder.as_uri(), "dir_info": {"editable": True} if request.editable else {}}
    wanted = request.branch or request.tag or request.rev
    asked = {"requested_revision": wanted} if wanted else {}
    below = {"subdirectory": request.subdirectory} if request.subdirectory else {}
    return {"url": request.git, "vcs_info": {"vcs": "git", "commit_id": row.commit, **asked}, **below}


def differences(
    row: LockedTree, requires: Sequence[str], target: str, values: Mapping[str, str], *, in_manifest: bool
) -> Iterator[tuple[str, str]]:
    """Yield how the requirements of a package differ from its row, each with the edit or the command for it.

    Args:
        row: The row of the package.
        requires: Its requirements.
        target: The target.
        values: The values of the marker environment.
        in_manifest: Whether the requirements of the row are from the manifest.
    """
    plain = (text.replace('"', "'") for text in requires if "extra ==" not in text)
    listed = ", ".join(f'"{text}"' for text in plain)
    edit = f"`requires = [{listed}]` at {row.name} in the manifest names them"
    hint = edit if in_manifest else f"`tenv update {target} {row.name}` locks what it says now"
    yield from ((fault, hint) for fault in requirement_faults(row, requires, values))


def requirements_in(wheel: Wheel) -> tuple[str, ...]:
    """Return the requirements in the metadata of a built wheel."""
    from email.parser import BytesHeaderParser  # late: only for packages that are built

    with zipfile.ZipFile(wheel.path) as opened:
        raw = next((opened.read(name) for name in opened.namelist() if name.endswith(METADATA)), b"")
    return tuple(map(str, BytesHeaderParser().parsebytes(raw).get_all("Requires-Dist") or ()))


def require_as_locked(row: LockedTree, wheel: Wheel, target: str, values: Mapping[str, str]) -> None:
    """Refuse a built wheel whose requirements differ from its row; raises EnvironmentBrokenError.

    Args:
        row: The row of the package.
        wheel: The wheel that it became.
        target: The target, for messages.
        values: The values of the marker environment.
    """
    for fault, hint in differences(row, requirements_in(wheel), target, values, in_manifest=False):
        raise EnvironmentBrokenError(f"{target}: {fault}", hint=hint)


def requirement_faults(tree: LockedTree, built: Iterable[str], values: Mapping[str, str]) -> Iterator[str]:
    """Yield how the requirements of a built package differ from its row in the lock, one sentence each.

    Args:
        tree: The row.
        built: The requirements in the metadata of the built package.
        values: The values of the marker environment here. Another order of a marker is no difference.
    """
    built = tuple(built)
    # the row of a package that is compiled against torch may have the requirements of the manifest, which name no extra
    named = (*tree.requires, *built) if tree.isolated else tree.requires
    extras = {extra for text in named if (row := requirement_of(text)) for extra in row.named}
    locked, found = _needs(tree.requires, extras, values), _needs(built, extras, values)
    lacking, surplus = _listed(found - locked), _listed(locked - found)
    words = [f"requires {lacking}, which its row in the lock lacks"] * bool(lacking)
    words += [f"does not require {surplus}, as its row in the lock says"] * bool(surplus)
    if words:
        yield f"{tree.name} {', and '.join(words)}"


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
