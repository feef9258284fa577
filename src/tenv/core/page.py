"""Self-contained HTML pages: one template, with data as JSON, its own style and script, and nothing from elsewhere.

The content security policy of a page permits the style and the script that it was written with, by their hash, and no
request. Its data is never markup: the script sets texts alone.
"""

import base64
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tenv.core.files import open_regular

_HEAD = 4096


def render_page(name: str, title: str, data: Any) -> str:
    """Return a page as HTML.

    Args:
        name: Its script in `pages`, without the suffix.
        title: Its title.
        data: A JSON value that the script reads.
    """
    import jinja2  # late: 40 ms, for few commands

    folder = files("tenv.core") / "pages"
    names = ("page.html", "page.css", "page.js", f"{name}.js")
    template, style, shared, own = ((folder / file).read_text("utf-8") for file in names)
    script = shared + own
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(template).render(
        title=title,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=json.dumps(data, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c"),
    )


def is_page(path: Path) -> bool:
    """Return whether a file is such a page."""
    with open_regular(path) as file:
        head = file.read(_HEAD)
    return head.startswith(b"<!doctype html>") and b"<title>tenv" in head


def _hash(text: str) -> str:
    """Return the hash of an inline style or script, as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
