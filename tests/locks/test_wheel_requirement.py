"""Markers that are evaluated once for each answer that they can have."""

import itertools

import pytest
from packaging.requirements import Requirement

from tenv.core.wheel_platforms import marker_values
from tenv.locks.wheel_requirement import requirement_of

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


@pytest.mark.parametrize("marker", MARKERS)
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
