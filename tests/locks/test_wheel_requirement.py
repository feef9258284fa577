"""Markers that are evaluated once for each answer that they can have."""

import functools
import itertools

from packaging.requirements import Requirement

from tenv.core.wheel_platforms import marker_values
from tenv.locks.lock_file import read_lock
from tenv.locks.wheel_requirement import requirement_of, sole_extra
from tests.support.each import each
from tests.support.projects import SOURCE

MARKERS = (
    "",
    "python_version < '3.12'",
    "extra == 'test'",
    "extra == 'All_of.it'",
    "extra != 'test'",
    "extra == ''",
    "extra in 'test docs'",
    "python_version >= '3.12' and extra == 'test'",
    "(sys_platform == 'linux' and platform_machine == 'x86_64' or sys_platform == 'win32') and extra == 'test'",
    "os.name == 'nt'",
    "platform.machine == 'x86_64' and python_implementation == 'CPython'",
    "'linux' in sys_platform",
    "python_full_version >= '3.11.4' or extra == 'docs'",
    "implementation_version >= '3'",
)


@each("marker", MARKERS)
def test_each_answer_is_that_of_packaging(marker: str) -> None:
    text = f"Some_Thing[Extra.One]>=1,<3{f' ; {marker}' if marker else ''}"
    ours, theirs = requirement_of(text), Requirement(text)
    assert ours is not None
    assert (ours.name, ours.extras, ours.is_conditional) == ("some-thing", ("extra-one",), bool(marker))
    cases = itertools.product(
        ("linux-64", "linux-aarch64", "win-64"), ("3.8", "3.11", "3.13"), ("", "test", "docs", "all-of-it", "other")
    )
    for platform, minor, extra in (*cases, ("linux-64", "3.11", "")):
        values = {**marker_values(platform, minor), "extra": extra}
        expected = theirs.marker is None or theirs.marker.evaluate(values)
        assert ours.holds(values, extra) == expected, (platform, minor, extra)


def test_what_is_no_requirement_has_none() -> None:
    assert requirement_of("old-form (>=1.0) ; python_version") is None


def test_a_comparison_that_is_not_defined_hides_no_requirement() -> None:
    row = requirement_of("alpha; platform_python_implementation === 'CPython'")
    assert row
    assert row.holds(marker_values("linux-64", "3.12"), "")


@functools.cache
def locked() -> set[str]:
    """Return the requirements of all wheels of the shipped locks with CUDA."""
    locks = (read_lock(path, path.stem) for path in (SOURCE.parent / "locks").glob("cuda*.lock"))
    rows = (wheel for lock in locks for wheels in lock.wheels.values() for wheel in wheels)
    return {text for wheel in rows for text in wheel.requires or ()}


def test_a_requirement_of_an_extra_alone_holds_with_that_extra_alone() -> None:
    plain = [text for text in locked() if sole_extra(text)]
    assert len(plain) > len(locked()) / 2
    values = marker_values("linux-64", "3.12")
    for text in plain:
        row, extra = requirement_of(text), sole_extra(text)
        assert row, text
        assert row.named == {extra}
        assert [row.holds(values, one) for one in (extra, "", "another")] == [True, False, False], text


@each(
    "text",
    [
        "alpha",
        "alpha; extra != 'a'",
        "alpha; extra == 'a' or os_name == 'nt'",
        "alpha; python_version < '3.9' and extra == 'a'",
        "alpha >>1; extra == 'a'",
        "alpha ~=1; extra == 'a'",
        "alpha[,]; extra == 'a'",
        "-alpha; extra == 'a'",
        "alpha @ https://example.org/alpha.whl ; extra == 'a'",
        "alpha; extra == ''",
        "alpha; extra == 'a\"",
    ],
)
def test_other_requirements_are_parsed(text: str) -> None:
    assert sole_extra(text) == ""


def test_the_extra_of_a_requirement_is_normalized() -> None:
    assert sole_extra('Alpha[One, two_2] >=1.2, !=2 ; extra == "All_of.it"') == "all-of-it"
