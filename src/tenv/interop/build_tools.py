"""The tables of PDM, Hatch, Rye and setuptools in a pyproject.toml, as the tables that uv reads.

Sources: https://pdm-project.org/en/latest/reference/pep621/ and …/usage/config/, https://hatch.pypa.io/latest/config/environment/,
https://rye.astral.sh/guide/pyproject/, https://setuptools.pypa.io/en/latest/userguide/pyproject_config.html.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.names import normalize
from tenv.interop.typed_values import rows_of, strings_of, table_of

_ROOT = re.compile(r"file:///?\$\{PROJECT_ROOT\}|\{root:(?:uri|real)\}|\{root\}")
"""The folder of the project in a line of PDM or of Hatch."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EGG = re.compile(r"#egg=[\w.-]+$")
_OF_HATCH = ("dependencies", "extra-dependencies", "features", "dependency-groups", "template", "detached", "type")
_DEFAULT = "default"


def with_build_tools(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return a pyproject.toml whose groups and indexes of build tools are in the tables that uv reads.

    Returns:
        The tables, and the parts that these can't have.
    """
    tool = table_of(data, "tool")
    if not {"pdm", "hatch", "rye", "setuptools"} & tool.keys():
        return data, []
    reader = _Tools(data, tool)
    reader.pdm(table_of(tool, "pdm"))
    reader.rye(table_of(tool, "rye"))
    reader.hatch(table_of(table_of(tool, "hatch"), "envs"))
    project = {**table_of(data, "project")}
    if lines := strings_of(project, "dependencies"):
        project["dependencies"] = [_of_root(line) for line in lines]
    if "optional-dependencies" in strings_of(project, "dynamic"):
        project["optional-dependencies"] = reader.extras()
    uv = {**table_of(tool, "uv")}
    uv["index"] = [*(uv.get("index") or []), *reader.indexes]
    uv["sources"] = {**reader.sources, **table_of(uv, "sources")}
    uv["override-dependencies"] = [*strings_of(uv, "override-dependencies"), *reader.overrides]
    uv["exclude-dependencies"] = [*strings_of(uv, "exclude-dependencies"), *reader.excluded]
    given = {key: value for key, value in uv.items() if value}
    found = {**data, "project": project, "tool": {**tool, "uv": given}, "dependency-groups": reader.groups}
    return found, reader.lost


@dataclass(slots=True)
class _Tools:
    """The tables of a file, as they are converted."""

    data: Mapping[str, Any]
    """The file."""
    tool: Mapping[str, Any]
    """Its ``[tool]``."""
    groups: dict[str, list[Any]] = field(default_factory=dict)
    """The dependency groups."""
    indexes: list[dict[str, Any]] = field(default_factory=list)
    """The indexes, as in ``[[tool.uv.index]]``."""
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    """The indexes of packages, as in ``[tool.uv.sources]``."""
    overrides: list[str] = field(default_factory=list)
    """The lines that replace the requirements of packages."""
    excluded: list[str] = field(default_factory=list)
    """The packages that are not installed."""
    lost: list[str] = field(default_factory=list)
    """Receives the parts that the tables of uv can't have."""

    def __post_init__(self) -> None:
        given = table_of(self.data, "dependency-groups")
        self.groups = {name: [*rows_of(given, name)] for name in given}

    def _add(self, group: str, rows: list[Any]) -> None:
        if rows:
            name = next((known for known in self.groups if normalize(known) == normalize(group)), group)
            self.groups.setdefault(name, []).extend(row for row in rows if row not in self.groups.get(name, []))

    def pdm(self, table: Mapping[str, Any]) -> None:
        """Take the groups, the sources and the overrides of PDM."""
        groups = table_of(table, "dev-dependencies")
        for name in groups:
            self._add(name, [_of_root(line) for line in strings_of(groups, name)])
        for row in table.get("source") or []:
            self._pdm_source(row)
        resolution = table_of(table, "resolution")
        for name, version in table_of(resolution, "overrides").items():
            if "://" in str(version) or str(version).startswith("file:"):
                self.lost.append(f"PDM's override of `{name}`, `{version}`")
            else:
                self.overrides.append(f"{name}{version if str(version)[:1] in '<>=!~' else f'=={version}'}")
        # PDM compares each with the name of a package: one with a version takes nothing out.
        named = {one: bool(_NAME.fullmatch(one)) for one in strings_of(resolution, "excludes")}
        self.excluded += [one for one, is_name in named.items() if is_name]
        self.lost += [f"`{one}` of PDM's `excludes`, which is no name" for one, is_name in named.items() if not is_name]

    def _pdm_source(self, row: Mapping[str, Any]) -> None:
        name, names = str(row.get("name", "")), strings_of(row, "include_packages")
        flat = {"format": "flat"} if row.get("type") == "find_links" else {}
        only = [one for one in names if not set("*?[") & set(one)]
        self.indexes.append(
            {"name": name, "url": _of_root(str(row.get("url", ""))), "default": name == "pypi", **flat}
            | ({"explicit": True} if only and len(only) == len(names) else {})
        )
        self.sources |= {one: {"index": name} for one in only if name}
        limits = [f"`{key}`" for key in ("include_packages", "exclude_packages") if row.get(key)]
        if limits and (len(only) != len(names) or row.get("exclude_packages")):
            self.lost.append(f"{' and '.join(limits)} of the source `{name}`")

    def rye(self, table: Mapping[str, Any]) -> None:
        """Take the requests and the sources of Rye."""
        self._add("dev", strings_of(table, "dev-dependencies"))
        for row in table.get("sources") or []:
            name = str(row.get("name", ""))
            self.indexes.append({"name": name, "url": str(row.get("url", "")), "default": name == _DEFAULT})
        self.excluded += strings_of(table, "excluded-dependencies")

    def hatch(self, environments: Mapping[str, Any]) -> None:
        """Take the requests of the environments of Hatch, each as a group."""
        for name in environments:
            table = table_of(environments, name)
            self._add(name, list(self._hatch_rows(environments, name, set())))
            if left := [key for key in ("env-vars", "overrides", "python") if table.get(key)]:
                self.lost.append(f"of [tool.hatch.envs.{name}]: {', '.join(left)}")

    def _hatch_rows(self, environments: Mapping[str, Any], name: str, seen: set[str]) -> Iterator[Any]:
        """Yield the rows of an environment; what it leaves out comes from its template."""
        table = table_of(environments, name)
        template = str(table.get("template") or _DEFAULT)
        seen.add(name)
        if "dependencies" not in table and template not in seen and not table.get("detached"):
            yield from self._hatch_rows(environments, template, seen)
        for key in ("dependencies", "extra-dependencies"):
            yield from (_of_root(line) for line in strings_of(table, key))
        extras = table_of(table_of(self.data, "project"), "optional-dependencies")
        for extra in strings_of(table, "features"):
            yield from strings_of(extras, extra)
        yield from ({"include-group": group} for group in strings_of(table, "dependency-groups"))

    def extras(self) -> dict[str, list[str]]:
        """Return the extras that a build backend reads from requirements files; others are reported."""
        setuptools = table_of(table_of(table_of(self.tool, "setuptools"), "dynamic"), "optional-dependencies")
        hooks = table_of(table_of(table_of(self.tool, "hatch"), "metadata"), "hooks")
        hatch = table_of(table_of(hooks, "requirements_txt"), "optional-dependencies")
        found = {name: row.get("file") or [] for name, row in setuptools.items()} | dict(hatch)
        if not found:
            self.lost.append("its extras, which its build backend computes")
        texts = {name: [files] if isinstance(files, str) else files for name, files in found.items()}
        return {name: [f"-r {file}" for file in files] for name, files in texts.items()}


def _of_root(line: str) -> str:
    """Return a line with a path below the folder of the project as pip writes it."""
    return _EGG.sub("", _ROOT.sub(".", line)) if _ROOT.search(line) else line
