"""A lock: what of it a platform and a Python take."""

from tests.support.lock_builders import conda, lock, wheel


def test_wheels_are_chosen_by_platform_and_python() -> None:
    made = lock(wheel("a", "1.0", "3.11"), wheel("a", "2.0", "3.12"))
    assert [found.version for found in made.wheels_for("linux-64", "3.12")] == ["2.0"]
    assert made.wheels_for("win-64", "3.12") == ()
    assert made.python_minors("linux-64") == ("3.11", "3.12")


def test_a_python_of_conda_is_the_only_one() -> None:
    made = lock(wheel("a", "1.0", "3.11"), conda("python", "3.12.4"))
    assert made.conda_python("linux-64") == "3.12"
    assert made.python_minors("linux-64") == ("3.12",)
    assert made.conda_python("win-64") == ""
    assert made.python_minors("win-64") == ()
