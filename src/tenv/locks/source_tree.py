"""Packages of a lock that are built from a source tree: rows, and whether they are what a manifest asks for.

A commit pins a repository as a digest pins a file. A folder is the user's own and is pinned by nothing, so a row may
only repeat the path of the manifest, and decides on no path itself.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.files import digest_bytes
from tenv.core.names import normalize
from tenv.core.toml_reader import Table
from tenv.core.untrusted import name_fault, place_fault, text_fault
from tenv.core.versions import is_release
from tenv.locks.wheel_requirement import requirement_of
from tenv.targets.manifest import WheelRequest
from tenv.targets.tree_request import (
    REVISIONS,
    TREE_KEYS,
    TreeRequest,
    commit_fault,
    git_fault,
    reference_fault,
)

__all__ = ["ANY_VERSION", "LockedTree", "read_trees", "tree_faults", "tree_row"]

ANY_VERSION = "dynamic:"
"""How the digest in the note of a package begins whose build backend computes its version: it may have another one."""

_KEYS = ("name", "version", "python", "requires", "commit", "dynamic", "features", *TREE_KEYS)
_MINOR = re.compile(r"3\.(0|[1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class LockedTree:
    """One package of a lock that is built from a source tree.

    Attributes:
        name: The normalized name.
        version: Its version when it was locked.
        python: The Python minors that use it, lowest first.
        requires: Its requirements when it was locked, those of extras with their marker.
        commit: The full commit; empty for a folder.
        dynamic: Whether the build backend computed them; else its ``pyproject.toml`` holds them.
        features: The features that bring it; empty where the target itself does.
        git: The URL of the repository, as in the manifest; empty for a folder.
        rev: As in the manifest.
        branch: As in the manifest.
        tag: As in the manifest.
        subdirectory: As in the manifest.
        path: The folder, as in the manifest; empty for a repository.
        editable: As in the manifest.
    """

    name: str
    version: str
    python: tuple[str, ...]
    requires: tuple[str, ...]
    commit: str = ""
    dynamic: bool = False
    features: tuple[str, ...] = ()
    git: str = ""
    rev: str = ""
    branch: str = ""
    tag: str = ""
    subdirectory: str = ""
    path: str = ""
    editable: bool = False

    @property
    def sha256(self) -> str:
        """What stands for a digest: the commit; empty for a folder."""
        return self.commit

    @property
    def size(self) -> None:
        """The size, which is unknown."""

    @property
    def request(self) -> TreeRequest:
        """The request that this row says it answers."""
        return TreeRequest(**{key: getattr(self, key) for key in TREE_KEYS})

    @property
    def note(self) -> tuple[str, ...]:
        """The entry in the state of an environment: the version, and a digest of what the row pins."""
        pinned = digest_bytes("\n".join((*self.request.asked(), self.commit)).encode())
        return self.version, f"{ANY_VERSION}{pinned}" if self.dynamic else pinned


def tree_row(tree: LockedTree) -> dict[str, Any]:
    """Return the row of a source tree in a lock."""
    row: dict[str, Any] = {"name": tree.name, "version": tree.version, **tree.request.given()}
    row |= {"commit": tree.commit} if tree.commit else {}
    row |= {"dynamic": True} if tree.dynamic else {}
    row |= {"features": tree.features} if tree.features else {}
    return {**row, "python": tree.python, "requires": list(tree.requires)}


def read_trees(table: Table, platforms: Iterable[str]) -> dict[str, tuple[LockedTree, ...]]:
    """Return the source trees of a lock by platform, each value checked as those of a manifest are."""
    table.only(platforms)
    found = {}
    for platform in table.data:
        found[platform] = tuple(_tree(row) for row in table.rows(platform))
        twice = [name for name, count in Counter(tree.name for tree in found[platform]).items() if count > 1]
        if twice:
            raise table.fail(platform, f"holds {min(twice)} twice")
    return found


def _tree(row: Table) -> LockedTree:
    row.only(_KEYS)
    texts = {key: row.text(key) for key in ("commit", "git", *REVISIONS, "subdirectory", "path")}
    tree = LockedTree(
        name=row.required_text("name"),
        version=row.required_text("version"),
        python=row.strings("python"),
        requires=row.strings("requires"),
        editable=row.flag("editable"),
        dynamic=row.flag("dynamic"),
        features=row.strings("features"),
        **texts,
    )
    faults = {key: text_fault(text) for key, text in {**texts, "version": tree.version}.items()}
    faults["name"] = name_fault(tree.name) or ("" if normalize(tree.name) == tree.name else "is not a normalized name")
    faults["version"] = faults["version"] or ("" if is_release(tree.version) else "is not a version of PEP 440")
    faults["requires"] = next(filter(None, map(_requirement_fault, tree.requires)), "")
    faults["path"] = faults["path"] or (
        "" if bool(tree.git) != bool(tree.path) else "stands with `git`, or neither does"
    )
    faults["features"] = next(filter(None, map(name_fault, tree.features)), "")
    faults["python"] = "" if tree.python and all(map(_MINOR.fullmatch, tree.python)) else "is not a list of minors"
    if tree.git:
        faults |= {"git": git_fault(tree.git), "commit": commit_fault(tree.commit)}
        faults["subdirectory"] = place_fault(tree.subdirectory)
        faults |= {key: reference_fault(texts[key]) for key in REVISIONS if texts[key]}
        faults["editable"] = "is for a folder" if tree.editable else ""
    else:
        given = [key for key in ("commit", *REVISIONS, "subdirectory") if texts[key]]
        faults |= dict.fromkeys(given, "is for a repository")
    for key, fault in faults.items():
        if fault:
            raise row.fail(key, fault)
    return tree


def _requirement_fault(text: str) -> str:
    """Return why a text is not a requirement by name: one with an address would be fetched from there."""
    if text_fault(text):
        return "holds unprintable characters"
    if "@" in text.partition(";")[0] or requirement_of(text) is None:
        return f"`{text}` is not a requirement by name"
    return ""


def tree_faults(trees: Iterable[LockedTree], asked: Mapping[str, WheelRequest]) -> Iterator[str]:
    """Yield how the source trees of a lock differ from those that a manifest asks for, one sentence each.

    Nothing that a lock says of a source tree may differ: an address and a path of its own would run code of its author.
    """
    rows = {tree.name: tree for tree in trees}
    for name, request in asked.items():
        wanted = request.tree
        if wanted is None:
            continue
        if (tree := rows.get(name)) is None:
            yield f"{name} is not in the lock"
        elif tree.request != wanted:
            yield f"{name} is locked from {tree.request}, the manifest requests {wanted}"
        elif wanted.commit and tree.commit != wanted.commit:
            yield f"{name} is locked at the commit {tree.commit}, the manifest requests {wanted.commit}"
    for name, row in rows.items():
        if name not in asked or asked[name].tree is None:
            yield f"{name} is locked from {row.request}, which the manifest does not request"
