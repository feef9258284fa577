"""``[tool.uv]`` of a project: the indexes, the sources and the bounds of its requests, and the settings that are left.

Source: https://docs.astral.sh/uv/reference/settings/.
"""

import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.errors import ManifestError
from tenv.core.names import normalize
from tenv.core.toml_reader import Table, read_toml
from tenv.core.untrusted import without_login
from tenv.core.versions import Range
from tenv.interop.pip_lines import PipLines, project_name, with_version
from tenv.interop.requests import WheelLine, compile_against_torch, holds, wheel_request
from tenv.interop.typed_values import strings_of, table_of
from tenv.targets.manifest import WheelRequest
from tenv.targets.tree_request import REVISIONS, TreeRequest, git_fault
from tenv.targets.wheel_origin import Index, is_wheel_file, read_file_request

_WORDS = ("exclude-newer", "fork-strategy", "index-strategy", "prerelease", "resolution")
"""The settings with a word that decide which version of a package is selected."""

_DEFAULTS = ("if-necessary-or-explicit", "first-index", "highest", "requires-python")
"""The words that these have without a setting."""

_BOUNDS = ("override-dependencies", "constraint-dependencies", "exclude-dependencies")
_NEVER = "sys_platform == 'never'"
"""The marker by which an override takes a package out, as projects of uv write it."""

_READ = (
    *_WORDS,
    *_BOUNDS,
    *("conflicts", "dependency-metadata", "dev-dependencies", "environments", "exclude-newer-package"),
    *("extra-build-dependencies", "extra-index-url", "find-links", "index", "index-url", "no-binary-package"),
    *("no-build-isolation-package", "sources", "workspace"),
)
_SHARED = (
    *_WORDS,
    *_BOUNDS,
    *("conflicts", "dependency-metadata", "environments", "exclude-newer-package", "extra-build-dependencies"),
    *("extra-index-url", "find-links", "index-url", "no-binary-package", "no-build-isolation-package"),
)
"""The settings of a workspace that count for its members; the others are about the root itself."""

_NO_MEANING = re.compile(
    r"add-bounds|allow-insecure-host|audit|build-backend|cache-\w+|check-url|compile-bytecode|concurrent-\w+"
    r"|default-groups|https?-proxy|keyring-provider|link-mode|managed|native-tls|no-cache|no-proxy|no-progress|offline"
    r"|package|preview(-features)?|publish-url|pypy-install-mirror|python-\w+(-\w+)*|reinstall(-package)?"
    r"|no-build(-package)?|required-(environments|version)|system-certs|trusted-publishing|upgrade(-package|-group)?"
)
"""The settings that decide how uv works, and no package; tenv builds no package that its manifest does not permit."""

_ARCHIVE = re.compile(r"\.(zip|tar(\.\w+)?|tgz)$")


def losses_of(uv: Mapping[str, Any]) -> list[str]:
    """Return the settings that a manifest can't have, a sentence for each kind."""
    chosen = [f"`{key} = {uv[key]!r}`" for key in _WORDS if isinstance(uv.get(key), str) and uv[key] not in _DEFAULTS]
    chosen += [f"`{key}`{_of(uv, key)}" for key in ("exclude-newer-package", "dependency-metadata") if uv.get(key)]
    pip = {f"pip.{key}": value for key, value in table_of(uv, "pip").items() if key != "no-build-isolation"}
    every = {key: value for key, value in uv.items() if key not in (*_READ, "pip")} | pip
    left = [key for key, value in every.items() if value and not _NO_MEANING.fullmatch(key.removeprefix("pip."))]
    others = [f"`{key}`{_of(every, key)}" for key in left]
    return [
        *([f"settings by which uv selects versions: {', '.join(chosen)}"] if chosen else []),
        *([f"settings of uv, which tenv does not read: {', '.join(others)}"] if others else []),
    ]


def _of(uv: Mapping[str, Any], key: str) -> str:
    """Return the words for the packages of a setting; empty for one without packages."""
    rows = uv.get(key)
    rows = rows if isinstance(rows, list | Mapping) else ()
    names = [str(row.get("name", "")) if isinstance(row, Mapping) else str(row) for row in rows]
    return f" of {', '.join(names)}" if any(names) else ""


def indexes_of(uv: Mapping[str, Any], home: Path) -> list[Index]:
    """Return the indexes, best first; paths are relative to `home`."""
    found = [
        Index(
            without_login(str(row["url"])).rstrip("/"),
            str(row.get("name", "")),
            explicit=bool(row.get("explicit")),
            default=bool(row.get("default")),
            flat=row.get("format") == "flat",
            base=home,
        )
        for row in uv.get("index") or []
    ]
    found += [Index(without_login(str(url)).rstrip("/")) for url in strings_of(uv, "extra-index-url")]
    found += [Index(str(url).rstrip("/"), flat=True, base=home) for url in strings_of(uv, "find-links")]
    found += [Index(without_login(str(uv["index-url"])).rstrip("/"), default=True)] if uv.get("index-url") else []
    return found


def with_workspace(data: Mapping[str, Any], home: Path, notes: list[str]) -> Mapping[str, Any]:
    """Return the tables of a member of a workspace with the sources, indexes and bounds of the root, as uv has them.

    Args:
        data: The tables of a ``pyproject.toml``.
        home: Its folder.
        notes: Receives a note about the root.

    Source: https://docs.astral.sh/uv/concepts/projects/workspaces/.
    """
    tool = table_of(data, "tool")
    own = table_of(tool, "uv")
    root = None if own.get("workspace") else next(filter(None, map(_root, home.absolute().parents)), None)
    if root is None or home.absolute() not in (folders := _members(*root)):
        return data
    folder, shared = root
    sources = {**table_of(shared, "sources"), **table_of(own, "sources")}
    named = {project_name(place): place for place in reversed((folder, *folders))}
    uv = {**{key: value for key, value in shared.items() if key in _SHARED}, **own}
    uv["index"] = [*(own.get("index") or []), *(shared.get("index") or [])]
    uv["sources"] = {
        name: [_below(row, name, named, home, folder if name not in table_of(own, "sources") else home) for row in rows]
        for name, given in sources.items()
        if (rows := [given] if isinstance(given, Mapping) else given)
    }
    notes.append(f"`[tool.uv]` of the workspace counts: {folder / 'pyproject.toml'}")
    return {**data, "tool": {**tool, "uv": uv}}


def with_members(data: Mapping[str, Any], home: Path, lost: list[str], notes: list[str]) -> Mapping[str, Any]:
    """Return the tables of a workspace's root that is no project, with the requests that uv installs for its members.

    A member is requested by its name. One that is no package, and that no other member requires, has its requests here.

    Args:
        data: The tables of a ``pyproject.toml``.
        home: Its folder.
        lost: Receives the groups of the members.
        notes: Receives a note about the members.
    """
    tool = table_of(data, "tool")
    uv = table_of(tool, "uv")
    if "project" in data or not uv.get("workspace"):
        return data
    members = {name: folder for folder in _members(home, uv) if (name := project_name(folder))}
    files = {name: read_toml(folder / "pyproject.toml").data for name, folder in members.items()}
    asked = {name: strings_of(table_of(file, "project"), "dependencies") for name, file in files.items()}
    required = {
        normalize(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]) for lines in asked.values() for line in lines
    }
    lines, sources, accepted = list[str](), dict[str, Any](), list[str]()
    for name, file in files.items():
        own = table_of(table_of(file, "tool"), "uv")
        accepted += [str(text)] if (text := table_of(file, "project").get("requires-python")) else []
        if groups := [
            *table_of(file, "dependency-groups"),
            *table_of(table_of(file, "project"), "optional-dependencies"),
        ]:
            lost.append(f"the groups and extras of the member {name}: {', '.join(groups)}")
        if "build-system" in file or own.get("package") or name in required:
            lines.append(name)
            sources[name] = {"workspace": True}
            continue
        lines += asked[name]
        for key, given in table_of(own, "sources").items():
            rows = [given] if isinstance(given, Mapping) else given
            sources[key] = [_below(row, key, members, home, members[name]) for row in rows]
    notes += (
        [f"the file is no project: the members of its workspace are requested, {', '.join(files)}"] if files else []
    )
    project = {"dependencies": list(dict.fromkeys(lines)), "requires-python": ",".join(dict.fromkeys(accepted))}
    found = {**uv, "sources": {**sources, **table_of(uv, "sources")}}
    return {**data, "project": project, "tool": {**tool, "uv": found}}


def _root(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the root of a workspace, with its ``[tool.uv]``; None for another folder."""
    with suppress(Exception):  # no file, or one that is not valid
        uv = read_toml(folder / "pyproject.toml").data["tool"]["uv"]
        return (folder, uv) if uv["workspace"] else None
    return None


def _members(root: Path, uv: Mapping[str, Any]) -> list[Path]:
    """Return the folders of the members of a workspace, which its user owns."""
    table = table_of(uv, "workspace")

    def found(key: str) -> set[Path]:
        words = [word for word in strings_of(table, key) if not word.startswith("/") and ".." not in word.split("/")]
        return {folder for word in words for folder in root.glob(word) if folder.stat().st_uid == root.stat().st_uid}

    return sorted(found("members") - found("exclude"))


def _below(row: Any, name: str, named: Mapping[str, Path], home: Path, base: Path) -> Any:
    """Return a source whose path is relative to the folder of a member, another member among the sources."""
    if row.get("workspace") and (place := named.get(normalize(name))):
        return {"path": os.path.relpath(place, home.absolute()), "editable": True}
    return {**row, "path": os.path.relpath(base.absolute() / row["path"], home.absolute())} if row.get("path") else row


@dataclass(slots=True)
class UvTables:
    """The tables that decide about the requests of a group."""

    uv: Mapping[str, Any]
    """``[tool.uv]``."""
    home: Path
    """The folder of the file."""
    groups: Collection[str]
    """The group or extra with those that it includes; an empty name for the project itself."""
    lost: list[str]
    """Receives the losses in a manifest."""
    notes: list[str]
    """Receives what a reader may want to know."""

    def apply(self, lines: PipLines, *, report: bool) -> None:
        """Give requests their sources, their bounds and the way of their build.

        Args:
            lines: The requests.
            report: Whether to report the bounds of packages that are not requested.
        """
        for platform, table in lines.tables.items():
            for name, request in list(table.items()):
                if found := self._sourced(name, request, platform):
                    table[name] = found
                else:
                    del table[name]
        for key in _BOUNDS:
            self._bound(key, lines, report=report)
        self._compiled(lines)

    def _sourced(self, name: str, request: WheelRequest, platform: str) -> WheelRequest | None:
        """Return a request with its source of ``[tool.uv.sources]``; None for a member that is not there."""
        from packaging.markers import Marker  # late: 34 ms

        sources = {normalize(key): value for key, value in table_of(self.uv, "sources").items()}
        rows = sources.get(name) or []
        for row in [rows] if isinstance(rows, Mapping) else rows:
            only = normalize(str(row.get("extra") or row.get("group") or ""))
            marker = Marker(str(row["marker"])) if row.get("marker") else None
            if (only and only not in self.groups) or holds(marker, platform, "") is False:
                continue
            return self._from(name, request, row)
        return request

    def _from(self, name: str, request: WheelRequest, row: Mapping[str, Any]) -> WheelRequest | None:
        if row.get("index"):
            return self._of_index(name, request, str(row["index"]))
        if row.get("git") and not git_fault(str(row["git"])):
            given: dict[str, Any] = {key: str(row[key]) for key in (*REVISIONS, "subdirectory") if row.get(key)}
            return replace(request, version=Range("*"), tree=TreeRequest(git=str(row["git"]), **given))
        if is_wheel_file(row, row.get("path")):
            given = {key: row[key] for key in ("url", "path") if key in row}
            with suppress(ManifestError):  # a source archive, which the losses name
                file = replace(read_file_request(Table(given, path=(name,)), name), base=self.home)
                return replace(request, version=Range("*"), file=file)
        path = str(row.get("path", "")) or (self._member(name) if row.get("workspace") else "")
        if path and not _ARCHIVE.search(path):
            if not (self.home / path).is_dir():
                self.lost.append(f"the folder `{path}` of `{name}`, which is not there: `tenv lock` needs it")
            editable = bool(row.get("editable", row.get("workspace", False)))
            return replace(request, version=Range("*"), tree=TreeRequest(path=path, editable=editable, base=self.home))
        if row.get("workspace"):  # no index is asked for the name of a project's own package
            self.lost.append(f"`{name}`, a member of the workspace, which is not there")
            return None
        self.lost.append(f"the source of `{name}`, {without_login(str(dict(row)))}: it is requested from the indexes")
        return request

    def _of_index(self, name: str, request: WheelRequest, index: str) -> WheelRequest:
        if any(row.get("name") == index for row in self.uv.get("index") or []):
            return replace(request, index=index)
        self.lost.append(f"the index `{index}` of `{name}`, which the file does not name: the indexes in use serve it")
        return request

    def _member(self, name: str) -> str:
        folders = _members(self.home, self.uv)
        return next(
            (folder.relative_to(self.home).as_posix() for folder in folders if project_name(folder) == name), ""
        )

    def _bound(self, key: str, lines: PipLines, *, report: bool) -> None:
        """Apply a setting that bounds packages to the requested ones; a marker decides about a platform."""
        rows, free = dict[str, list[WheelLine]](), list[str]()
        for text in strings_of(self.uv, key):
            name = normalize(re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0])
            requested = any(name in table for table in lines.tables.values())
            if " @ " in text:
                free.append(name)
            elif not requested:
                kept = lines.constraints if key.startswith("constraint") else lines.overrides
                kept.append(f"{text} ; {_NEVER}" if key.startswith("exclude") else text)
            else:
                rows.setdefault(name, []).append(wheel_request(text))
        gone = set[str]()
        for name, platform, table in ((name, *row) for row in lines.tables.items() for name in rows if name in row[1]):
            held = [row for row in rows[name] if holds(row.marker, platform, lines.minor, lines.minors) is not False]
            if key.startswith("exclude") or (key.startswith("override") and not held):
                gone.add(name)
                del table[name]
                continue
            for row in held:
                (version, extras), own = (row.request.version, row.request.extras), table[name]
                over = key.startswith("override")
                table[name] = replace(own, version=version, extras=extras) if over else with_version(own, version)
        if gone:
            self.notes.append(f"uv's `{key}` takes these out: {', '.join(sorted(gone))}")
        if free and report:
            self.lost.append(f"`{key}` of packages that are not requested: {', '.join(free)}")

    def _compiled(self, lines: PipLines) -> None:
        """Request the packages that uv builds in the project's environment as compiled against the target's torch."""
        more = table_of(self.uv, "extra-build-dependencies")
        with_torch = [name for name in more if any(_names_torch(row) for row in more[name])]
        names = {normalize(name) for name in (*strings_of(self.uv, "no-build-isolation-package"), *with_torch)}
        left = {normalize(name) for name in more} - names
        for table in lines.tables.values():
            left |= compile_against_torch(table, names)
        if found := sorted(left & {name for table in lines.tables.values() for name in table}):
            self.lost.append(f"the requirements with which uv builds these: {', '.join(found)}")


def _names_torch(row: Any) -> bool:
    text = str(row.get("requirement", "") if isinstance(row, Mapping) else row)
    return normalize(re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0]) == "torch"
