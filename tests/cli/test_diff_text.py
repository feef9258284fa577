"""How `tenv diff` writes values of locks for people."""

from dataclasses import replace

from tenv.cli.diff import change_text, outline
from tenv.facts.tables import load_facts
from tenv.locks.difference import ValueChange, compare
from tenv.locks.lock import Lock, Wheel
from tests.support.each import each


@each(
    "old, new, shown",
    [
        ("", '["*", "", ""]', "none → *"),
        ('[">=3.27,<4", "", ""]', '[">=3.31", "conda-forge", ""]', ">=3.27,<4 → >=3.31 (conda-forge)"),
        ('["13.0.3.*", "crt", "cublas"]', "", "13.0.3.* (crt, cublas) → none"),
        ('["*"]', '["*", "", ""]', '["*"] → ["*", "", ""]'),  # different values are never shown as equal
        ("a" * 64, "b" * 64, f"{'a' * 12} → {'b' * 12}"),
        ("a" * 64, "a" * 63 + "b", f"{'a' * 64} → {'a' * 63}b"),
        ("[1, 2]", "[", "[1, 2] → ["),
        ("[" * 5000, "[]", f"{'[' * 5000} → []"),
    ],
)
def test_a_request_is_shown_as_it_is_written(old: str, new: str, shown: str) -> None:
    assert change_text(ValueChange("request", "request", old, new), ()) == shown


def test_a_changed_value_of_the_same_file_is_named() -> None:
    wheel = Wheel("a", "1", "a-1-py3-none-any.whl", "0" * 64, 1, ("3.12",))
    old, new = (
        Lock("t", ("linux-64",), {"linux-64": (one,)}, {}, {}, "0")
        for one in (wheel, replace(wheel, features=("debug",)))
    )
    [line] = outline(compare(old, new, load_facts()))
    assert "~ a  1, changed: features  " in line
