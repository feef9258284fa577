"""Markers of strangers on the platforms of tenv."""

from packaging.markers import Marker

from tenv.core.wheel_platforms import evaluated, marker_values
from tests.support.each import each


@each(
    "marker, true",
    [
        ('sys_platform == "linux"', True),
        ('sys_platform == "win32"', False),
        ('platform_python_implementation === "CPython"', True),
        ('sys_platform === "win32"', True),  # not defined, so it hides nothing
        (f'python_version < "{"9" * 5000}"', True),
        (f'python_version > "{"9" * 5000}" and sys_platform == "win32"', True),
    ],
)
def test_a_comparison_that_cannot_be_made_hides_no_requirement(marker: str, *, true: bool) -> None:
    assert evaluated(Marker(marker), marker_values("linux-64", "3.12")) is true
