"""What commands print, with names in the place of what differs from run to run and from machine to machine."""

import os
import re
import sys
from pathlib import Path
from typing import Any

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tenv import __version__
from tenv.host.machine import current_platform
from tests.support.fakes import MINORS
from tests.support.projects import HERE, Ended, Project

__all__ = ["Printed", "steady", "steady_text", "whole"]

_TESTS = Path(__file__).parent.parent
_VARYING = {"seconds", "bytes", "download_bytes", "freed", "log"}
"""Keys whose values differ from run to run."""

_USUAL = ("3.11", "3.12")


def _minors(first: str, last: str) -> tuple[str, ...]:
    """Return the words by which outputs name the Pythons of the fake targets: other versions may look like these."""
    end = f"3.{int(last.partition('.')[2]) + 1}"
    words = [f">={first},<{end}", f"<{end},>={first}", f"with Python {first}"]
    return (*words, *(f"cp{minor.replace('.', '')}" for minor in (first, last)))


class Printed(SingleFileSnapshotExtension):
    """A file for each command's output, so that two branches which reword two of them do not conflict."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


def steady(value: Any, project: Project) -> Any:
    """Return printed values with what differs named instead."""
    if isinstance(value, dict):
        if value.get("name") == "MAX_JOBS":  # of this host's cores and memory
            value = {**value, "value": "<jobs>", "reason": "<machine>"}
        if value.get("python") == HERE:
            value = {**value, "python": "<minor>"}
        return {key: f"<{key}>" if key in _VARYING else steady(item, project) for key, item in value.items()}
    if isinstance(value, list):
        return list(_USUAL) if value == list(MINORS) else [steady(item, project) for item in value]
    return steady_text(value, project) if isinstance(value, str) else value


def steady_text(text: str, project: Project | None) -> str:
    """Return a text with the places of this run named instead."""
    places = {
        **({str(project.folder): "<project>", project.index.url.removesuffix("/simple"): "<index>"} if project else {}),
        sys.executable: "<python>",
        str(_TESTS.parent): "<checkout>",
        os.environ["UV_CACHE_DIR"]: "<uv cache>",
        os.environ["HOME"]: "<home>",
        os.environ["PATH"]: "<path>",
        __version__: "<version>",
    }
    for found, name in places.items():
        text = text.replace(found, name)
    text = re.sub(r"\b[0-9a-f]{64}\b", "<sha256>", text)
    for found, name in zip(_minors(*MINORS), _minors(*_USUAL), strict=True):
        text = text.replace(found, name)
    return re.sub(rf"(?<=ready  ){re.escape(HERE)}\b|(?<=, Python ){re.escape(HERE)}(?=, )", "<minor>", text)


def whole(ended: Ended, project: Project | None = None) -> str:
    """Return how a command ended, for a snapshot: its status, its output and its messages."""
    around = str(project.folder.parent) if project else os.environ["HOME"]
    text = steady_text(f"{ended.out}\n== standard error\n{ended.err}", project)
    for pattern, name in (
        (re.escape(around), "<around>"),
        (re.escape(current_platform()), "<platform>"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
        (r"\b\d+\.\d+ (?:KiB|MiB|GiB)\b|\b\d+ (?:B|bytes)\b", "<bytes>"),
        (r"\b\d+(?:\.\d+)? m?s\b", "<seconds>"),
        (r"(?<=hint: known targets: ).*(?= \()", "<targets>"),
        (r"\bprocess \d+\b", "process <id>"),
        # Each release of uv has its own lines: `cause:` and `Caused by:`, or a tree of them.
        (r"(?:^  (?:cause: |Caused by: |Failed to |No solution found|[\u00d7├╰│]).*\n)+", "  <said by uv>\n"),
        (r"^MAX_JOBS=.*\n.*", "MAX_JOBS=<machine>"),
        (r"(?<=\S) {2,}", "  ") if "<project>" in text else ("$^", ""),  # columns are as wide as the longest path
        (r"[ \t]+$", ""),
    ):
        text = re.sub(pattern, name, text, flags=re.MULTILINE)
    return f"== status {ended.status}\n{text}"
