"""Just enough of two protocols to debug a program as VS Code does: the debug adapter protocol, and gdb's MI."""

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

__all__ = ["Adapter", "Gdb"]

_SECONDS = 60


class Adapter:
    """A client of debugpy (https://microsoft.github.io/debug-adapter-protocol)."""

    def __init__(self, host: str, port: int, seconds: float = _SECONDS) -> None:
        self.socket = socket.create_connection((host, port), seconds)
        self.stream = self.socket.makefile("rwb")
        self.sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.socket.close()

    def send(self, command: str, arguments: Mapping[str, Any] | None = None) -> None:
        """Send a request."""
        self.sent += 1
        request = {"seq": self.sent, "type": "request", "command": command, "arguments": dict(arguments or {})}
        body = json.dumps(request).encode()
        self.stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.stream.flush()

    def wait(self, key: str, value: str) -> dict[str, Any]:
        """Return the next message that says so (an event, or the answer to a command)."""
        while True:
            length = int(self.stream.readline().partition(b":")[2])
            self.stream.readline()
            message: dict[str, Any] = json.loads(self.stream.read(length))
            if message.get(key) == value:
                return message


class Gdb:
    """A gdb that is driven by its machine interface."""

    def __init__(self, program: str, folder: Path, environment: Mapping[str, str], seconds: float = _SECONDS) -> None:
        self.seconds = seconds
        self.lines: list[str] = []
        self._more = threading.Condition()
        self.process = subprocess.Popen(
            [program, "--interpreter=mi", "-q", "-nx"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environment,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            with self._more:
                self.lines.append(line.rstrip())
                self._more.notify_all()

    def send(self, command: str) -> None:
        """Give a command, of MI or of the console."""
        assert self.process.stdin
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def wait(self, true: Callable[[str], bool]) -> str:
        """Return the first line of which something is true."""
        with self._more:
            assert self._more.wait_for(lambda: any(map(true, self.lines)), self.seconds), self.lines
            return next(filter(true, self.lines))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
        self._reader.join()
