"""The records of wheels."""

from pathlib import Path

import pytest

from tenv.sources.wheels.installed import Wheels

OWNED = {"alpha": ("1.0", "sha256:0")}
DIGEST = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A RECORD."""
    info = tmp_path / "lib" / "python3.12" / "site-packages" / "alpha-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "RECORD").write_text(f"alpha.py,{DIGEST},0\n")
    return info / "RECORD"


def names(there: Wheels) -> list[str]:
    return [Path(row.name).name for row in there.expected(OWNED)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"a.py,{DIGEST},0\r\nb.py,,\r\n", ["a.py", "b.py"]),
        (f'"a,b.py",{DIGEST},0\nb.py,,\n', ["a,b.py", "b.py"]),
        (f"a.py,{DIGEST},0\n\nb.py", ["a.py", "b.py"]),
        (f"{'a' * 200_000}.py,,\n", []),
        ("", []),
    ],
    ids=["lines of Windows", "quotes", "no line break at the end", "too long", "empty"],
)
def test_every_form_of_a_record(tmp_path: Path, record: Path, text: str, found: list[str]) -> None:
    record.write_bytes(text.encode())
    assert names(Wheels(tmp_path))[1:] == found


def test_folders_are_those_of_lines_below_a_folder(tmp_path: Path, record: Path) -> None:
    record.write_text("nvidia/cu13/include/cuda.h,,\nother/nvidia/no/a.h,,\nnvidia/cudnn/lib/libcudnn.so,,\n")
    below = record.parent.parent / "nvidia"
    assert Wheels(tmp_path).folders(["alpha"], below) == (below / "cu13", below / "cudnn")
    assert Wheels(tmp_path).folders(["alpha"], record.parent.parent / "numpy") == ()
