"""What an editor offers and marks in a manifest, with the schema of `tenv init`.

The language server is tombi's: the wheels of taplo (0.8.0 to 0.9.3) are built without theirs. `taplo lint` reads the
schema as taplo's server does.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.projects import call

pytestmark = pytest.mark.real


class Server:
    """A language server over its standard input and output."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.process = subprocess.Popen(
            [str(program), "lsp", "--offline"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        self.number = 0
        self.published: dict[str, list[Any]] = {}
        uri = folder.as_uri()
        capabilities = {"workspace": {"configuration": False}, "textDocument": {"completion": {}}}
        self.request(
            "initialize",
            {
                "processId": None,
                "rootUri": uri,
                "capabilities": capabilities,
                "workspaceFolders": [{"uri": uri, "name": "t"}],
            },
        )
        self.send({"method": "initialized", "params": {}})

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        pipe: IO[bytes] = self.process.stdin  # type: ignore[assignment]
        pipe.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        pipe.flush()

    def read(self) -> dict[str, Any]:
        pipe: IO[bytes] = self.process.stdout  # type: ignore[assignment]
        length = 0
        while line := pipe.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found: dict[str, Any] = json.loads(pipe.read(length))
        return found

    def request(self, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("method") == "textDocument/publishDiagnostics":
                self.published[message["params"]["uri"]] = message["params"]["diagnostics"]
            elif "method" in message and "id" in message:  # the server's own request, such as for its settings
                self.send({"id": message["id"], "result": [{"schema": {"enabled": True}}]})
            elif message.get("id") == self.number:
                return message.get("result")

    def labels(self, file: Path, text: str) -> set[str]:
        """Return what is offered at the `|` of a text."""
        before, _, after = text.partition("|")
        uri = file.as_uri()
        document = {"uri": uri, "languageId": "toml", "version": 1, "text": before + after}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        place = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
        for _ in range(20):  # the schema is read in the background
            found = self.request("textDocument/completion", {"textDocument": {"uri": uri}, "position": place})
            rows = found["items"] if isinstance(found, dict) else found or []
            if rows:
                return {row["label"] for row in rows}
        return set()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, "taplo==0.9.3", "tombi==1.9.6"], check=True)
    return folder / "bin"


@pytest.fixture
def server(programs: Path, empty_project: Path) -> Iterator[Server]:
    assert call("init", "mine").status == 0
    found = Server(programs / "tombi", Path.cwd())
    yield found
    found.process.kill()
    with found.process:  # closes its pipes
        pass


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("pl|", {"platforms", "platform"}),
        ("[requirements]\n|", {"cuda", "glibc"}),
        ("[build]\n|", {"cache"}),
        ("[system]\n|", {"gcc", "cuda-toolkit"}),
        ("[pypi-dependencies]\nnumpy = { | }\n", {"version", "extras"}),
        ("[dependencies]\nmagma = { | }\n", {"version", "channel", "build"}),
        ('[build]\ncache = "|"\n', {'"ccache"', '"sccache"', '"off"'}),
    ],
)
def test_the_server_offers_the_keys(text: str, offered: set[str], server: Server) -> None:
    file = Path("manifests/mine.toml").absolute()
    assert offered <= server.labels(file, f"#:schema ./tenv.schema.json\n{text}")


@pytest.mark.usefixtures("empty_project")
@pytest.mark.parametrize(
    ("text", "line", "marked"),
    [
        ('descripton = "x"\n', 2, "descripton"),
        ('[pypi-dependencies]\nnumpy = { verison = "1" }\n', 3, "verison"),
        ('[build]\ncache = "scache"\n', 3, "scache"),
        ("[platform.win64]\n", 2, "win64"),
    ],
)
def test_taplo_marks_a_typo(text: str, line: int, marked: str, programs: Path) -> None:
    assert call("init", "mine").status == 0
    file = Path("manifests/mine.toml")
    taplo = [str(programs / "taplo"), "--colors", "never", "lint", str(file)]
    assert subprocess.run(taplo, capture_output=True, check=False).returncode == 0
    file.write_text(f"#:schema ./tenv.schema.json\n{text}")
    done = subprocess.run(taplo, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"mine.toml:{line}:" in done.stderr
    assert marked in done.stderr
