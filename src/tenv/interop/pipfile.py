"""The format ``Pipfile``: the requests of Pipenv.

Source: https://pipenv.pypa.io/en/latest/pipfile.html. Its tables become those of a pyproject.toml that uv reads.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tenv.core.errors import ManifestError
from tenv.core.names import normalize
from tenv.core.toml_reader import read_toml
from tenv.interop.interface import Format, GivenFile, Imported
from tenv.interop.poetry import source_line
from tenv.interop.pyproject import read_project
from tenv.interop.typed_values import table_of, valid

_TABLES = {"packages": "", "dev-packages": "dev"}
_NO_CATEGORIES = ("source", "requires", "scripts", "pipenv", *_TABLES)
_PLACES = ("git", "path", "file", "subdirectory", "index")
_KNOWN = (*_PLACES, "version", "extras", "markers", "ref", "editable", "url")
_FIRST = "pypi"
"""The name of the first source in every Pipfile that Pipenv wrote: the index in use."""


def _read(source: GivenFile) -> Imported:
    data = read_toml(source.path, ManifestError).data
    with valid(source.path, "Pipfile"):
        tables, lost = _tables(data)
    return read_project(source, tables, "a Pipfile", lost)


def _tables(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the tables that uv reads, and what they can't have."""
    sources: dict[str, list[dict[str, Any]]] = {}
    tables = {**_TABLES, **{name: name for name, rows in data.items() if name not in _NO_CATEGORIES}}
    lines = {
        group: [_line(name, row, group, sources) for name, row in table_of(data, table).items()]
        for table, group in tables.items()
        if table in data and (table in _TABLES or isinstance(data[table], Mapping))
    }
    requires = table_of(data, "requires")
    asked = str(requires.get("python_version") or requires.get("python_full_version") or "")
    minor = ".".join(asked.split(".")[:2])
    lost = [] if minor[:1].isdigit() or asked in ("", "*") else [f"its Python `{asked}`, which is not a version"]
    lost += ["`allow_prereleases`"] if table_of(data, "pipenv").get("allow_prereleases") else []
    lost += [f"`verify_ssl = false` of {row.get('url')}" for row in _sources(data) if row.get("verify_ssl") is False]
    project = {"dependencies": lines.pop("", []), "requires-python": f"=={minor}.*" if minor[:1].isdigit() else ""}
    uv = {"sources": sources, "index": list(_indexes(data))}
    return {"project": project, "dependency-groups": lines, "tool": {"uv": uv}}, lost


def _line(name: str, given: Any, group: str, sources: dict[str, list[dict[str, Any]]]) -> str:
    row: Mapping[str, Any] = given if isinstance(given, Mapping) else {"version": str(given)}
    version = str(row.get("version", "*")).strip()
    place = {key: row[key] for key in _PLACES if row.get(key)}
    place |= {"rev": row["ref"]} if row.get("ref") else {}
    place |= {"editable": True} if row.get("editable") and "git" not in place else {}
    if "://" in str(place.get("file", "")):
        place["url"] = place.pop("file")
    elif "file" in place:
        place["path"] = place.pop("file")
    if place:
        sources.setdefault(normalize(name), []).append({**place, **({"group": group} if group else {})})
    markers = [str(row["markers"])] if row.get("markers") else []
    markers += [f"{key} {value}" for key, value in row.items() if key not in _KNOWN and isinstance(value, str)]
    version = version if version[:1] in "<>=!~" else f"=={version}"
    return source_line(name, row, "" if version == "==*" else version, markers)


def _indexes(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the sources; Pipenv asks the first one for each package that names no other."""
    for place, row in enumerate(_sources(data)):
        name, url = str(row.get("name", "")), str(row.get("url", ""))
        if url and not (place == 0 and name == _FIRST):
            yield {"name": name, "url": url, "default": place == 0, "explicit": place > 0 and bool(name)}


def _sources(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = data.get("source") or []
    found = [rows] if isinstance(rows, Mapping) else rows
    if wrong := [row for row in found if not isinstance(row, Mapping)]:
        raise TypeError(f"source: expected tables, not {wrong[0]!r:.100}")
    return list(found)


def _is_pipfile(name: str, head: bytes) -> bool:
    return name == "Pipfile" or (name.startswith("Pipfile") and b"[packages]" in head)


FORMAT = Format(name="Pipfile", read=_read, recognize=_is_pipfile)
