"""The format ``setup.cfg``: the requests in setuptools' ``[options]``.

Source: https://setuptools.pypa.io/en/latest/userguide/declarative_config.html. They become the tables of a
pyproject.toml.
"""

import configparser
import re
from typing import TYPE_CHECKING, Any

from tenv.core.errors import ManifestError
from tenv.interop.interface import Format, GivenFile, Imported, text_of
from tenv.interop.pyproject import read_project

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE = "file:"
_OLD = ("tests_require",)
"""Keys with requests in place of which extras stand today."""


def _read(source: GivenFile) -> Imported:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text_of(source, ManifestError))
    except configparser.Error as error:
        raise ManifestError(f"{source.path}: invalid setup.cfg: {str(error).splitlines()[0]}") from error
    options: Mapping[str, str] = parser["options"] if parser.has_section("options") else {}
    extras = parser["options.extras_require"] if parser.has_section("options.extras_require") else {}
    name = parser.get("metadata", "name", fallback="")
    project = {
        "name": "" if ":" in name else name,
        "requires-python": options.get("python_requires", ""),
        "dependencies": [],
        "optional-dependencies": {key: _lines(text) for key, text in extras.items() if key not in parser.defaults()},
        "description": "" if (text := parser.get("metadata", "description", fallback="")).startswith(_FILE) else text,
    }
    lost = [f"`{key}`: {', '.join(rows)}" for key in _OLD if (rows := _lines(options.get(key, "")))]
    asked = options.get("install_requires", "")
    links = _lines(options.get("dependency_links", ""))
    tool: dict[str, Any] = {"uv": {"find-links": links}} if links else {}
    if asked.strip().startswith(_FILE):
        words = asked.strip().removeprefix(_FILE).replace("\n", ",").split(",")
        project["dynamic"] = ["dependencies"]
        tool["setuptools"] = {"dynamic": {"dependencies": {"file": [word.strip() for word in words if word.strip()]}}}
    else:
        project["dependencies"] = _lines(asked)
    data = {"project": project, "build-system": {"requires": ["setuptools"]}, "tool": tool}
    return read_project(source, data, "a setup.cfg", lost)


def _lines(text: str) -> list[str]:
    """Return the values of a list, which ends its values at lines or at semicolons."""
    text = "\n".join(re.sub(r"(^|\s)#.*", "", line) for line in text.splitlines())
    lines = text.splitlines() if "\n" in text.strip() else [text] if " ;" in text or "; " in text else text.split(";")
    return [line.strip() for line in lines if line.strip()]


FORMAT = Format(name="setup.cfg", read=_read, recognize=lambda name, _: name == "setup.cfg")
