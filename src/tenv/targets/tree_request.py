"""Requests for packages that are built from a source tree: a commit of a git repository, or a folder.

Their keys are the keys of pixi's ``[pypi-dependencies]``: https://pixi.prefix.dev/latest/reference/pixi_manifest/. No
manifest can hold a repository of another program than git.
"""

import os
import re
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit

from tenv.core.dataclass import dataclass
from tenv.core.names import normalize
from tenv.core.toml_reader import Table
from tenv.core.untrusted import address_fault, place_fault, text_fault, without_login

REVISIONS = ("rev", "branch", "tag")
"""The keys that name a revision of a repository; a request has at most one."""

TREE_KEYS = ("git", *REVISIONS, "subdirectory", "path", "editable")
"""The keys of a request for a source tree, beside its extras."""

_SCHEMES = ("https", "ssh", "file")
"""The protocols of git: ``http`` is not authentic, and ``ext`` runs programs."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_LINE = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*@\s*"
    r"git\+(?P<url>\w+://(?:git@)?[^@#\s]+)(?:@(?P<rev>[^#\s]+))?(?:#subdirectory=(?P<below>\S+))?"
)
_REFERENCE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*")


@dataclass(frozen=True, slots=True)
class TreeRequest:
    """A request for a package that is built from a source tree."""

    git: str = ""
    """The URL of a repository; empty for a folder."""
    rev: str = ""
    """A full commit, or the name of a branch or a tag; empty for none."""
    branch: str = ""
    """A branch; empty for none."""
    tag: str = ""
    """A tag; empty for none."""
    subdirectory: str = ""
    """The folder of the package in the repository; empty for its top."""
    path: str = ""
    """A folder, relative to the manifest's own; empty for a repository."""
    editable: bool = False
    """Whether Python imports from the folder itself, so that an edit needs no installation."""
    base: Path = field(default=Path(), compare=False)
    """The folder of the manifest, once it is known."""

    @property
    def commit(self) -> str:
        """The commit that the manifest itself names; empty for a branch, a tag or a folder."""
        return self.rev if _COMMIT.fullmatch(self.rev) else ""

    @property
    def folder(self) -> Path:
        """The absolute folder of a request with a path."""
        return Path(os.path.abspath(self.base / self.path))  # noqa: PTH100 (links stay as they are)

    def given(self) -> dict[str, str | bool]:
        """Return the keys of the request that have a value."""
        return {key: value for key in TREE_KEYS if (value := getattr(self, key))}

    def asked(self) -> list[str]:
        """Return the request as JSON values, as in a lock."""
        return [f"{key}={'true' if value is True else value}" for key, value in self.given().items()]

    def __str__(self) -> str:
        texts = {key: "true" if value is True else f'"{value}"' for key, value in self.given().items()}
        return f"{{ {', '.join(f'{key} = {text}' for key, text in texts.items())} }}"


def git_fault(url: str) -> str:
    """Return why a text is not the address of a git repository that tenv asks; empty if it is one."""
    if "#" in url or "?" in url:
        return "expected an address without a query and a fragment"
    if url.startswith("ssh://git@"):  # the user of all of a host's visitors, no login
        return address_fault(url.replace("://git@", "://", 1), _SCHEMES)
    return address_fault(url, _SCHEMES)


def reference_fault(name: str) -> str:
    """Return why a text is not the name of a branch or a tag, or a commit (`man git-check-ref-format`)."""
    if _REFERENCE.fullmatch(name) and ".." not in name and "//" not in name and not name.endswith((".lock", "/", ".")):
        return ""
    return f"`{name}` is not the name of a branch, a tag or a commit"


def commit_fault(commit: str) -> str:
    """Return why a text is not a full commit."""
    return "" if _COMMIT.fullmatch(commit) else "is not a commit of 40 hex digits"


def git_line(text: str) -> tuple[str, tuple[str, ...], TreeRequest] | None:
    """Return the name, the extras and the request of a line such as ``it[test] @ git+https://…@main``.

    Returns:
        None for another line, or one with a marker.

    Raises:
        ValueError: A part of it is not valid; the message has the reason.
    """
    if (match := _LINE.fullmatch(text.strip())) is None:
        return None
    url, revision, below = match["url"], match["rev"] or "", match["below"] or ""
    fault = git_fault(url) or (reference_fault(revision) if revision else "") or place_fault(below)
    if fault:
        raise ValueError(fault)
    extras = tuple(sorted(normalize(extra) for extra in (match["extras"] or "").split(",") if extra.strip()))
    return normalize(match["name"]), extras, TreeRequest(git=url, rev=revision, subdirectory=below)


def read_tree(table: Table) -> TreeRequest | None:
    """Read the request for a source tree; None for a request for a wheel.

    Args:
        table: The table of the request.

    Raises:
        ManifestError: A value is not valid, or contradicts another one.
    """
    if not {"git", "path", "editable", "subdirectory", *REVISIONS} & table.data.keys():
        return None
    found = TreeRequest(
        git=table.text("git"),
        rev=table.text("rev"),
        branch=table.text("branch"),
        tag=table.text("tag"),
        subdirectory=table.text("subdirectory"),
        path=table.text("path"),
        editable=table.flag("editable"),
    )
    _require_one_kind(table, found)
    for key in REVISIONS:
        if key in table.data and (fault := reference_fault(getattr(found, key))):
            raise table.fail(key, fault)
    if found.git and (fault := git_fault(found.git)):
        hint = _ssh_hint(found.git)
        raise table.fail("git", f"`{without_login(found.git)}`: {fault}", hint=hint)
    if found.subdirectory and (fault := place_fault(found.subdirectory)):
        raise table.fail("subdirectory", "expected a folder of the repository, such as `python`")
    if found.path and (text_fault(found.path) or found.path.startswith(("~", "-")) or "\\" in found.path):
        raise table.fail("path", f"`{found.path}` is not a folder, as `../vision` is")
    return found


def _require_one_kind(table: Table, request: TreeRequest) -> None:
    """Refuse a request for both a repository and a folder, or with keys of the other one."""
    if bool(request.git) == bool(request.path):
        raise table.fail("git" if request.git else "path", "exactly one of `git` and `path` is needed")
    if "version" in table.data:
        raise table.fail("version", "the version is that of the source tree: remove this key")
    revisions = [key for key in REVISIONS if key in table.data]
    if len(revisions) > 1:
        raise table.fail(revisions[1], f"`{revisions[0]}` names the revision already")
    other = [*revisions, *(["subdirectory"] if "subdirectory" in table.data else [])] if request.path else ["editable"]
    for key in other:
        if key in table.data:
            raise table.fail(key, "is for a folder (`path`)" if request.git else "is for a repository (`git`)")


def _ssh_hint(url: str) -> str:
    """Return the hint for scp's short form of an address, ``git@host:path``."""
    if "://" in url or ":" not in url or urlsplit(url).scheme not in ("", *_SCHEMES):
        return ""
    host, _, path = url.partition(":")
    return f'git = "ssh://{host}/{path}"' if host and path and "/" not in host else ""


WHY = "a package at an address can't be locked, only a wheel, or one of an index, a git repository or a folder"

_SOURCE = re.compile(
    r"(?:[\w.-]+\s*(?:\[[^\]]*\])?\s*@\s*)?(?:(?:git|hg|svn|bzr)\+\w+:|\w+://|file:|git@|\.{0,2}/|~/|\.{1,2}$)"
)


def names_source(text: str) -> bool:
    """Tell whether a request of pip or uv names an address or a folder, such as ``git+https://…`` or ``./it``."""
    return bool(_SOURCE.match(text.strip()))
