"""The tables ``[tool.poetry]`` of a pyproject.toml, as the tables that uv reads.

Source: https://python-poetry.org/docs/dependency-specification/ and …/repositories/.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.names import normalize
from tenv.interop.typed_values import rows_of, strings_of, table_of

_PYTHON = "python"
_PYPI = "pypi"
"""The source that each project has without naming it: the index in use."""

_ANY_OF = re.compile(r"\|\|?")
_CLAUSE = re.compile(r"(?P<sign>\^|~=|~|>=|<=|==|!=|<|>|=)?\s*(?P<version>[^\s,<>=!^~]+)")
_GIT = re.compile(r"(?:git\+)?(?P<url>(?:[a-z+]+://)?(?:[\w.-]+@)?[^@#\s]+)(?:[@#](?P<rev>[^@#\s]+))?")
_PLACES = ("git", "url", "path", "file")
_REVISIONS = ("rev", "tag", "branch")


def pep440(text: str) -> str | None:
    """Return the PEP 440 form of a constraint, such as ``>=1.2,<2`` for ``^1.2``; None for one of several ranges."""
    text = text.strip()
    if "|" in text:
        return None
    if text in ("", "*"):
        return ""
    return ",".join(filter(None, (_clause(match["sign"] or "", match["version"]) for match in _CLAUSE.finditer(text))))


def _clause(sign: str, version: str) -> str:
    if sign not in ("^", "~"):
        return "" if version == "*" else f"{sign if sign not in ('', '=') else '=='}{version}"
    parts = [int(part) for part in re.findall(r"\d+", re.match(r"[\d.]*", version)[0])]  # type: ignore[index]
    if sign == "~":
        at = min(1, len(parts) - 1)
    else:
        at = next((place for place, part in enumerate(parts) if part), len(parts) - 1)
    upper = [*parts[:at], parts[at] + 1] if parts else []
    return f">={version},<{'.'.join(map(str, upper))}" if upper else f">={version}"


def source_line(name: str, row: Mapping[str, Any], version: str | None, markers: list[str]) -> str:
    """Return the PEP 508 line of a request, without its place."""
    extras = f"[{','.join(strings_of(row, 'extras'))}]" if row.get("extras") else ""
    line = f"{name}{extras}{version or ''}"
    return f"{line} ; {' and '.join(f'({marker})' for marker in markers)}" if markers else line


@dataclass(slots=True)
class _Poetry:
    """The tables of Poetry, as they are converted."""

    lost: list[str] = field(default_factory=list)
    """Receives what the tables that uv reads can't have."""
    sources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The places of packages, as in ``[tool.uv.sources]``."""

    def lines(self, table: Mapping[str, Any], group: str = "") -> dict[str, list[str]]:
        """Return the lines of each package of a table, without Python."""
        found: dict[str, list[str]] = {}
        for name, value in table.items():
            if normalize(name) != _PYTHON:
                rows = value if isinstance(value, list) else [value]
                found[normalize(name)] = [line for row in rows for line in self._line(name, row, group)]
        return found

    def python(self, given: Any) -> str:
        """Return the range of Pythons; of several ranges, the one that begins last."""
        text = given.get("version", "") if isinstance(given, Mapping) else given
        if not isinstance(text, str):
            self.lost.append(f"its Python `{given}`, which is not a range")
            return ""
        newest = max(_ANY_OF.split(text), key=lambda part: [int(one) for one in re.findall(r"\d{1,9}", part)[:2]])
        if newest != text:
            self.lost.append(f"its Python in one of several ranges, `{text}`: it is `{newest.strip()}` now")
        return pep440(newest) or ""

    def _line(self, name: str, given: Any, group: str) -> Iterator[str]:
        row: Mapping[str, Any] = given if isinstance(given, Mapping) else {"version": str(given)}
        version = pep440(str(row.get("version", "*")))
        if version is None:
            self.lost.append(f"`{name}` in one of several ranges, `{row['version']}`: any version is accepted now")
        markers = [str(row["markers"])] if row.get("markers") else []
        markers += [f"sys_platform == '{row['platform']}'"] if row.get("platform") else []
        if accepted := str(row.get("python", "")):
            parts = [_CLAUSE.fullmatch(part.strip()) for part in (pep440(accepted) or "").split(",") if part.strip()]
            markers += [f"python_version {part['sign']} '{part['version']}'" for part in parts if part]
            if not parts:
                self.lost.append(f"of `{name}` tenv can't express its Python `{accepted}`")
        self._place(normalize(name), row, markers, group)
        yield source_line(name, row, version, markers)

    def _place(self, name: str, row: Mapping[str, Any], markers: list[str], group: str) -> None:
        place = {key: str(row[key]) for key in (*_PLACES, *_REVISIONS, "subdirectory") if row.get(key)}
        place |= {"path": place.pop("file")} if "file" in place else {}
        if match := _GIT.fullmatch(place.get("git", "")):
            place["git"] = match["url"]
            place |= {"rev": match["rev"]} if match["rev"] and not any(key in place for key in _REVISIONS) else {}
        place |= {"index": str(row["source"])} if str(row.get("source") or _PYPI).lower() != _PYPI else {}
        if not place:
            return
        more: dict[str, Any] = {"editable": True} if row.get("develop") else {}
        more |= {"marker": " and ".join(f"({marker})" for marker in markers)} if markers else {}
        self.sources.setdefault(name, []).append({**place, **more, **({"group": group} if group else {})})


def with_poetry(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return a pyproject.toml whose requests of Poetry are in the tables that uv reads, and what these can't have."""
    tool = table_of(data, "tool")
    poetry = table_of(tool, "poetry")
    if not poetry:
        return data, []
    reader = _Poetry()
    project, asked = dict(table_of(data, "project")), table_of(poetry, "dependencies")
    own = reader.lines(asked)
    optional = {normalize(name) for name, row in asked.items() if isinstance(row, Mapping) and row.get("optional")}
    if "dependencies" not in project or "dependencies" in strings_of(project, "dynamic"):
        project["dependencies"] = [line for name, lines in own.items() if name not in optional for line in lines]
        named_by = {
            normalize(re.split(r"[\s\[]", str(name))[0]) for names in _extras(poetry).values() for name in names
        }
        if free := sorted(optional - named_by):
            reader.lost.append(f"optional, and in no extra: {', '.join(free)}")
        if unknown := sorted({name for name in named_by if name not in own}):
            reader.lost.append(f"of extras, packages that `dependencies` does not have: {', '.join(unknown)}")
        extras = {
            extra: [line for name in names for line in own.get(normalize(re.split(r"[\s\[]", str(name))[0]), [])]
            for extra, names in _extras(poetry).items()
        }
        project["optional-dependencies"] = {**table_of(project, "optional-dependencies"), **extras}
        project["dynamic"] = [name for name in strings_of(project, "dynamic") if name != "dependencies"]
    else:
        project["dependencies"] = _with_versions(strings_of(project, "dependencies"), own, reader.lost)
    project.setdefault("name", poetry.get("name", ""))
    project.setdefault("description", poetry.get("description", ""))
    if "requires-python" not in project:
        project["requires-python"] = reader.python(asked.get(_PYTHON, ""))
    tables = table_of(poetry, "group")
    groups = {name: dict(table_of(table_of(tables, name), "dependencies")) for name in tables}
    if old := table_of(poetry, "dev-dependencies"):
        groups["dev"] = {**groups.get("dev", {}), **old}
    named = dict(table_of(data, "dependency-groups"))
    for name, table in groups.items():
        lines = [line for lines in reader.lines(table, name).values() for line in lines]
        named[name] = [*(rows_of(named, name) if name in named else []), *lines]
    uv = dict(tool.get("uv") or {})
    uv["sources"] = {**reader.sources, **(uv.get("sources") or {})}
    uv["index"] = [*(uv.get("index") or []), *_indexes(poetry)]
    later = [row for row in poetry.get("source") or [] if row.get("priority") in ("supplemental", "secondary")]
    reader.lost += [
        f"the priority `{row['priority']}` of the source `{row.get('name')}`: it is asked before the default index"
        for row in later
    ]
    return {**data, "project": project, "dependency-groups": named, "tool": {**tool, "uv": uv}}, reader.lost


def _with_versions(lines: list[str], own: Mapping[str, list[str]], lost: list[str]) -> list[str]:
    """Return the lines of ``[project]`` with those of Poetry for the same packages; others of Poetry do not count.

    The versions of both hold: `_enrich_dependency` of poetry-core.
    """
    named = dict.fromkeys(normalize(re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0]) for line in lines)
    if free := sorted(own.keys() - named.keys()):
        lost.append(f"[tool.poetry.dependencies] of packages that [project] does not have: {', '.join(free)}")
    return [*lines, *(line for name in named for line in own.get(name, []))]


def _extras(poetry: Mapping[str, Any]) -> Mapping[str, list[str]]:
    extras = table_of(poetry, "extras")
    return {name: strings_of(extras, name) for name in extras}


def _indexes(poetry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield Poetry's sources as indexes; one without an address is the usual index."""
    for row in poetry.get("source") or []:
        if row.get("url"):
            default = row.get("priority") == "default" or bool(row.get("default"))
            explicit = row.get("priority") == "explicit"
            yield {"name": str(row.get("name", "")), "url": str(row["url"]), "explicit": explicit, "default": default}
