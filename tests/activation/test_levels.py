"""The lists of an activated shell are as they were before it."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change
from tenv.activation.levels import activated, deactivated, edits, without_active_lists
from tenv.activation.shells import posix
from tests.support.each import each

LISTS = ("PATH", "CMAKE_PREFIX_PATH", "LDFLAGS", "MANPATH")


def activation(prefix: str) -> Activation:
    return Activation(
        "mine",
        Path(prefix),
        (
            Change("PATH", Action.PREPEND, f"{prefix}/bin:{prefix}/cuda/bin", ""),
            Change("CMAKE_PREFIX_PATH", Action.PREPEND, prefix, ""),
            Change("LDFLAGS", Action.APPEND, f"-L{prefix}/lib -s", "", separator=" "),
            Change("MANPATH", Action.APPEND, f"{prefix}/man", ""),
            Change("CUDA_HOME", Action.SET, f"{prefix}/cuda", ""),
        ),
    )


def active(before: dict[str, str], folder: Path, *prefixes: str, then: str = ":") -> dict[str, str]:
    """Return the variables of a shell in which environments were activated, one after the other."""
    lines = []
    for number, prefix in enumerate(prefixes):
        script = folder / f"{number}.sh"
        script.write_text(posix.render_activation(activation(prefix)))
        lines.append(f'. "{script}"')
    words = [str(shutil.which("sh")), "-euc", "\n".join((*lines, then, f"exec {shutil.which('env')} -0"))]
    said = subprocess.run(words, env=before, capture_output=True, text=True, check=True).stdout
    return dict(row.split("=", 1) for row in said.split("\0") if "=" in row)


@each(
    "before, prefixes",
    itertools.product(
        [
            {"PATH": os.defpath},
            {"PATH": "/odd one:/usr/bin", "CMAKE_PREFIX_PATH": "/opt/a:/opt/b", "LDFLAGS": "-L/opt/u", "MANPATH": ""},
        ],
        [("/one",), ("/one", "/one"), ("/one", "/two words")],
    ),
)
def test_the_lists_are_as_before(before: dict[str, str], prefixes: tuple[str, ...], tmp_path: Path) -> None:
    seen = active(before, tmp_path, *prefixes)
    assert "/one/bin" in seen["PATH"]
    found = without_active_lists(seen)
    assert {name: found.get(name) for name in LISTS} == {name: before.get(name) for name in LISTS}
    assert found["CUDA_HOME"] == seen["CUDA_HOME"]


def test_what_the_user_added_since_stays(tmp_path: Path) -> None:
    then = "PATH=/mine:$PATH:/late; CMAKE_PREFIX_PATH=$CMAKE_PREFIX_PATH:/mine; export PATH CMAKE_PREFIX_PATH"
    found = without_active_lists(active({"PATH": os.defpath}, tmp_path, "/one", then=then))
    assert (found["PATH"], found["CMAKE_PREFIX_PATH"]) == (f"/mine:{os.defpath}:/late", "/mine")


@each("odd", [{"TENV_LEVEL": "x"}, {"TENV_LEVEL": "2"}, {"_TENV_NAMES_1": "PATH"}])
def test_what_no_activation_wrote_changes_nothing(odd: dict[str, str]) -> None:
    environ = {"PATH": "/usr/bin", **odd}
    assert without_active_lists(environ) == environ


def test_windows_has_capitals_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    made = Activation("t", Path("/p"), (Change("CUDAToolkit_ROOT", Action.SET, "C:\\new", ""),))
    before = {"CUDATOOLKIT_ROOT": "C:\\old"}
    active = activated(before, made)
    assert active["CUDATOOLKIT_ROOT"] == "C:\\new"
    assert deactivated(active) == before


def test_a_name_that_is_no_name_is_never_code() -> None:
    environ = {"TENV_LEVEL": "1", "_TENV_NAMES_1": "A B;id $(id)", "_TENV_SAVED_1_A": "=1", "_TENV_SAVED_1_B;id": "=1"}
    assert edits(environ, deactivated(environ)).keys() == {"A", "TENV_LEVEL", "_TENV_NAMES_1", "_TENV_SAVED_1_A"}
