"""What makes `import torch` take something else, and a virtual environment without packages."""

import itertools
from pathlib import Path

import pytest

from tenv.debugging.interpreter import first_folder, shadowed_torch, strange_venv
from tests.support.each import each


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("")
    (tmp_path / "abc").mkdir()
    (tmp_path / "abc/aaa.py").write_text("")
    (tmp_path / "here.py").write_text("")
    return tmp_path


@each(
    "words, environment, shadowed",
    [
        (["-c", "import torch"], {}, True),
        (["-cimport torch"], {}, True),
        (["-m", "pytest"], {}, True),
        ([], {}, True),
        (["-"], {}, True),
        (["-X", "dev", "-u", "here.py"], {}, True),
        (["abc/aaa.py"], {}, False),
        (["-W", "here.py", "abc/aaa.py"], {}, False),
        (["-P", "here.py"], {}, False),
        (["-sI", "-c", "x"], {}, False),
        (["-c", "x"], {"PYTHONSAFEPATH": "1"}, False),
        (["abc/aaa.py"], {"PYTHONPATH": ":@"}, True),
    ],
)
def test_the_source_folder_is_noticed(
    checkout: Path, words: list[str], environment: dict[str, str], shadowed: bool
) -> None:
    environment = {name: value.replace("@", str(checkout)) for name, value in environment.items()}
    assert shadowed_torch(words, environment, checkout) == (checkout if shadowed else None)


def test_a_built_checkout_is_meant(checkout: Path) -> None:
    (checkout / "torch/_C.cpython-311-x86_64-linux-gnu.so").write_text("")
    assert shadowed_torch(["-c", "import torch"], {}, checkout) is None


def test_a_folder_is_run_by_itself(checkout: Path) -> None:
    assert first_folder(["abc"], {}, checkout) == (checkout / "abc").resolve()


@each("wheels, sees", itertools.product([False, True], [False, True]))
def test_a_venv_made_from_an_environment_lacks_its_packages(tmp_path: Path, wheels: bool, sees: bool) -> None:
    prefix, venv = tmp_path / "env", tmp_path / ".venv"
    (prefix / "bin").mkdir(parents=True)
    (venv / "bin").mkdir(parents=True)
    if wheels:
        (prefix / "pyvenv.cfg").write_text("home = /usr/bin\n")
    home = "/usr/bin" if wheels else prefix / "bin"
    (venv / "pyvenv.cfg").write_text(
        f"home = {home}\ninclude-system-site-packages = {str(sees).lower()}\n"
        f"command = {prefix}/bin/python -m venv {venv}\n"
    )
    assert strange_venv(venv / "bin/python", prefix) == (None if sees and not wheels else venv)
    assert strange_venv(prefix / "bin/python", prefix) is None
    assert strange_venv(tmp_path / "other/bin/python", prefix) is None
