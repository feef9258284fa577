"""What an editor offers and marks in a manifest, with the schema of `tenv init`.

The language server is tombi's: the wheels of taplo (0.8.0 to 0.9.3) are built without theirs. `taplo lint` reads the
schema as taplo's server does; `scripts/editor_session.py` asks that server: `docs/guide/editors.md` has its answers.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.language_server import LanguageServer
from tests.support.projects import call

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, "taplo==0.9.3", "tombi==1.9.6"], check=True)
    return folder / "bin"


@pytest.fixture
def server(programs: Path, empty_project: Path) -> Iterator[LanguageServer]:
    assert call("init", "mine").status == 0
    with LanguageServer([str(programs / "tombi"), "lsp", "--offline"], Path.cwd()) as found:
        yield found


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
def test_the_server_offers_the_keys(text: str, offered: set[str], server: LanguageServer) -> None:
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
