"""Ask taplo's language server what an editor offers, explains and marks in a manifest, and print the page about it.

    python scripts/editor_session.py FOLDER >docs/guide/editors.md

FOLDER is where `npm install @taplo/lsp` was run: the server that VS Code's "Even Better TOML" starts, as WebAssembly,
which `scripts/taplo_server.mjs` runs in node. Nothing is fetched.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "src")]

from tenv.targets.manifest_keys import schema_text  # noqa: E402 (the checkout is no installed package)
from tests.support.language_server import LanguageServer  # noqa: E402 (as above)

HEAD = "#:schema ./tenv.schema.json\n"
OFFERED = (
    "pl|",
    "[requirements]\n|",
    "[build]\n|",
    '[build]\ncache = "|"',
    "[system]\n|",
    "[pypi-dependencies]\nnumpy = { | }",
    "[dependencies]\nmagma = { | }",
    '[archives]\nmagma = { url = "https://example.org/magma.tar.gz", | }',
)
EXPLAINED = (
    'pytorch = "|>=2.1"',
    'extends = "|cuda130"',
    '[requirements]\ncuda = "|13.0"',
    '[build]\ncache = "|ccache"',
    '[pypi-dependencies]\nnumpy = { version = "|2" }',
)
WRONG = (
    'descripton = "x"',
    'platform = ["linux-64"]',
    'platforms = ["linux64"]',
    '[requirement]\ncuda = "13.0"',
    '[requirements]\ncudas = "13.0"',
    '[build]\ncache = "scache"',
    '[pypi-dependencies]\nnumpy = { verison = "1" }',
    '[platform.win64.dependencies]\ncmake = "*"',
    '[archives]\nmagma = { sha265 = "00" }',
    "[dependencies]\ncmake = 3",
)
PAGE = """\
# In an editor

`tenv init` writes `manifests/tenv.schema.json` and names it in the first line of the manifest, `#:schema
./tenv.schema.json`. An editor with a language server for TOML then completes keys and values, explains them, and marks
what tenv would refuse. `tenv export schema -o manifests/tenv.schema.json --force` writes the schema of a newer tenv.

| editor | what to install |
|---|---|
| VS Code | the extension Even Better TOML, which has taplo's language server |
| Helix, Neovim, Zed and others | `tombi lsp`, or `taplo lsp stdio` of a taplo that cargo built with the feature `lsp` |

The wheels of taplo on package indexes are built without the language server: `taplo lint` works there, `taplo lsp` is
no command. `uvx tombi lsp` works.

`scripts/editor_session.py` made this page: it asked the language server of taplo's package for node, {version}, which
Even Better TOML starts too. The line of the schema stands above each manifest and is not counted. A bar `|` is the
cursor.
"""


def cell(text: str) -> str:
    """Return a text as code that stands in one cell of a table."""
    return "<br>".join(f"`{line}`" for line in text.replace("|", "¦").splitlines())


def shown(labels: set[str], text: str) -> list[str]:
    """Return what an editor shows of the labels: those that begin with the typed word, without keys deeper down."""
    typed = re.split(r"[\s\"|]", text.partition("|")[0])[-1]
    return sorted(label for label in labels if label.startswith(typed) and label.count(".") < 2)  # noqa: PLR2004


def page(server: LanguageServer, file: Path, version: str) -> str:
    """Return the page with the answers of a server."""
    rows = [PAGE.format(version=version).replace("A bar `|`", "A bar `¦`")]
    rows += ["## What is offered", "", "| at | offered |", "|---|---|"]
    for text in OFFERED:
        labels = shown(server.labels(file, HEAD + text + "\n"), text)
        rows.append(f"| {cell(text)} | {', '.join(f'`{label}`' for label in labels)} |")
    rows += ["", "## What is explained", "", "| over | text |", "|---|---|"]
    rows += [f"| {cell(text)} | {server.meaning(file, HEAD + text + chr(10))} |" for text in EXPLAINED]
    rows += ["", "## What is marked", "", "| manifest | line | marked | message |", "|---|--:|---|---|"]
    for text in WRONG:
        line, marked, said = next(mark for mark in server.marks(file, HEAD + text + "\n") if mark[1])
        rows.append(f"| {cell(text)} | {line - 1} | {cell(marked)} | {said} |")
    return "\n".join(rows) + "\n"


def main(package: Path) -> None:
    """Print the page."""
    version = json.loads((package / "node_modules/@taplo/lsp/package.json").read_text())["version"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tenv.schema.json").write_text(schema_text())
        command = ["node", str(CHECKOUT / "scripts/taplo_server.mjs"), str(package.resolve())]
        with LanguageServer(command, folder) as server:
            print(page(server, folder / "mine.toml", version), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
