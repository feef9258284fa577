"""The settings files of VS Code, as VS Code reads them: with its own parser where npm has installed that."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tenv.core.jsonc import read, value_of

__all__ = ["PARSER", "expanded", "read_settings"]

_NODE = shutil.which("node")
PARSER = next(
    (
        path
        for path in os.environ.get("NODE_PATH", "").split(os.pathsep)
        if path and Path(path, "jsonc-parser").is_dir()
    ),
    None,
)
"""The folder of node modules that has `jsonc-parser`, the package that VS Code reads these files with."""

_CODE = """\
const errors = [], text = require("fs").readFileSync(0, "utf8");
const value = require("jsonc-parser").parse(text, errors, { allowTrailingComma: true });
process.stdout.write(JSON.stringify({ value, errors }));
"""


def read_settings(file: Path) -> Any:
    """Return the values of a file with comments; VS Code's parser must find the same, and no error."""
    text = file.read_text()
    value = value_of(read(text))
    if PARSER and _NODE:
        words = [_NODE, "-e", _CODE]
        environment = {**os.environ, "NODE_PATH": PARSER}
        done = subprocess.run(words, input=text, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == {"value": value, "errors": []}, file
    return value


def expanded(value: Any, folder: Path) -> Any:
    """Return values with VS Code's references to folders in place, for a window that opens a folder."""
    if isinstance(value, dict):
        return {key: expanded(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item, folder) for item in value]
    if not isinstance(value, str):
        return value
    home = os.path.expanduser("~")  # noqa: PTH111 (a text is wanted)
    text = re.sub(r"\$\{workspaceFolder(:[^}]*)?\}", lambda _: str(folder), value).replace("${userHome}", home)
    return re.sub(r"(?<=/)[^/:]+/\.\./", "", text)
