"""What to begin with when two locks become one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tenv.locks.lock import Archive, CondaPackage, Lock, Wheel
from tenv.locks.lock_file import parse_lock, render_lock
from tenv.locks.three_way import _conda_text, begin_with, newer
from tests.support.each import each
from tests.support.lock_builders import archive, conda, lock, wheel

LINUX, ARM = "linux-64", "linux-aarch64"


def read(*packages: Wheel | CondaPackage | Archive, platforms: tuple[str, ...] = (LINUX,)) -> Lock:
    """Return a lock as it is read from its file."""
    made = lock(*packages, platforms=platforms)
    conda = [row for row in packages if isinstance(row, CondaPackage)]
    rows = [{"conda": row.url, "sha256": row.sha256, "size": row.size, "depends": list(row.depends)} for row in conda]
    text = render_lock(made, _conda_text(made, yaml.safe_dump({"packages": rows}).encode()))
    return parse_lock(text, "t.lock", "t")


def kept(base: Lock | None, ours: Lock, theirs: Lock) -> dict[str, str]:
    found = begin_with(base, ours, theirs)
    rows = {row.name: row.version for row in found.wheels[LINUX]}
    rows |= {row.name: row.version for row in found.conda.get(LINUX, ())}
    return rows | {row.name: row.version for row in found.archives.get(LINUX, ())}


@pytest.mark.parametrize("kind", [wheel, conda, archive])
@each(
    "base, ours, theirs, version",
    [
        ("1", "1", "1", "1"),
        ("1", "2", "1", "2"),
        ("1", "1", "2", "2"),
        ("2", "1", "2", "1"),  # one side went back on purpose
        ("1", "2", "3", "3"),
        ("1", "10", "9", "10"),
        ("1", "2", "2", "2"),
        ("1", "", "1", ""),  # one side removed it
        ("1", "1", "", ""),
        ("1", "2", "", "2"),  # and the other needs it in a newer version
        ("1", "", "2", "2"),
        ("", "1", "", "1"),
        ("", "", "1", "1"),
        ("", "1", "2", "2"),
    ],
)
def test_each_package_by_itself(kind: Callable[..., Any], base: str, ours: str, theirs: str, version: str) -> None:
    sides = [read(*([kind("p", text)] if text else []), kind("other", "1")) for text in (base, ours, theirs)]
    assert kept(sides[0], sides[1], sides[2]) == {"other": "1", **({"p": version} if version else {})}


def test_without_an_ancestor_the_newer_is_taken() -> None:
    assert kept(None, read(wheel("p", "1"), wheel("q", "2")), read(wheel("p", "2"))) == {"p": "2", "q": "2"}


def test_each_python_is_chosen_for_by_itself() -> None:
    base = read(wheel("p", "1"))
    ours = read(wheel("p", "2", "3.11"), wheel("p", "1", "3.12"))
    theirs = read(wheel("p", "1", "3.11"), wheel("p", "3", "3.12"))
    found = begin_with(base, ours, theirs).wheels[LINUX]
    assert [(row.version, row.python) for row in found] == [("2", ("3.11",)), ("3", ("3.12",))]


def test_what_the_channel_says_of_a_package_stays() -> None:
    found = begin_with(None, read(conda("p", "1", "x >=1")), read(conda("q", "1", "x >=1")))
    assert [(row.name, row.depends, row.size) for row in found.conda[LINUX]] == [
        ("p", ("x >=1",), 10),
        ("q", ("x >=1",), 10),
    ]


def test_the_platforms_of_both_are_there() -> None:
    assert begin_with(None, read(platforms=(LINUX,)), read(platforms=(ARM,))).platforms == (LINUX, ARM)


def test_it_passes_for_the_lock_of_no_manifest() -> None:
    assert begin_with(None, replace(read(), manifest="x"), read()).manifest == "0" * 64


@each("one, other", [("1.10", "1.9"), ("2023.2.0", "2023.1.9"), ("9e", "9d"), ("1.1.1w", "1.1.1q"), ("2024a", "2023d")])
def test_versions_of_both_worlds_can_be_compared(one: str, other: str) -> None:
    assert newer(one, other)
    assert not newer(other, one)
    assert not newer(one, one)
