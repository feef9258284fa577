"""A client of a language server: what it offers at a place of a TOML file, what it explains and what it marks."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

__all__ = ["LanguageServer"]

_TRIES = 20
"""How often a completion is asked for: a server reads the schema in the background."""


class LanguageServer:
    """A running language server, over its standard input and output.

    Args:
        command: The words that start it.
        folder: The folder that it takes as the workspace.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder
        )
        self._number = 0
        self._versions: dict[str, int] = {}
        self._marks: dict[str, list[Any]] = {}
        uri = folder.as_uri()
        capabilities = {"workspace": {"configuration": False}, "textDocument": {"completion": {}, "hover": {}}}
        started = self._request(
            "initialize",
            {
                "processId": None,
                "rootUri": uri,
                "capabilities": capabilities,
                "workspaceFolders": [{"uri": uri, "name": "t"}],
            },
        )
        self.name: str = started.get("serverInfo", {}).get("name", "")
        self._send({"method": "initialized", "params": {}})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._process.kill()
        with self._process:  # closes its pipes
            pass

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        pipe: IO[bytes] = self._process.stdin  # type: ignore[assignment]
        pipe.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        pipe.flush()

    def _read(self) -> dict[str, Any]:
        pipe: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        length = 0
        while line := pipe.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found: dict[str, Any] = json.loads(pipe.read(length))
        return found

    def _request(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("method") == "textDocument/publishDiagnostics":
                self._marks[message["params"]["uri"]] = message["params"]["diagnostics"]
            elif "method" in message and "id" in message:  # the server's own request, such as for its settings
                self._send({"id": message["id"], "result": [{"schema": {"enabled": True}}]})
            elif message.get("id") == self._number:
                return message.get("result")

    def _open(self, file: Path, text: str) -> dict[str, Any]:
        """Show a text to the server, and return the place of its `|`; the end where it has none."""
        before, _, after = text.partition("|")
        uri = file.as_uri()
        version = self._versions[uri] = self._versions.get(uri, 0) + 1
        if version == 1:
            document = {"uri": uri, "languageId": "toml", "version": version, "text": before + after}
            self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        else:
            changed = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": before + after}]}
            self._send({"method": "textDocument/didChange", "params": changed})
        place = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
        return {"textDocument": {"uri": uri}, "position": place}

    def labels(self, file: Path, text: str) -> set[str]:
        """Return what is offered at the `|` of a text."""
        place = self._open(file, text)
        for _ in range(_TRIES):
            found = self._request("textDocument/completion", place)
            if rows := found["items"] if isinstance(found, dict) else found or []:
                return {row["label"] for row in rows}
        return set()

    def meaning(self, file: Path, text: str) -> str:
        """Return what is explained at the `|` of a text; empty where nothing is."""
        found = self._request("textDocument/hover", self._open(file, text))
        return str(found["contents"]["value"]) if found else ""

    def marks(self, file: Path, text: str) -> list[tuple[int, str, str]]:
        """Return what is marked in a text: the line, counted from 1, the marked characters and the message."""
        place = self._open(file, text)
        # An answer about the new text comes after what was published for it.
        self._request("textDocument/completion", place)
        lines = text.replace("|", "", 1).splitlines()
        return [
            (start["line"] + 1, lines[start["line"]][start["character"] : end["character"]], row["message"])
            for row in self._marks.get(file.as_uri(), [])
            for start, end in [(row["range"]["start"], row["range"]["end"])]
        ]
