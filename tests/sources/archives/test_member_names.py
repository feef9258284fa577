"""The names of an archive's members and the ways of its links, by their texts alone."""

import pytest

from tenv.core.unpack_limits import UnpackLimits
from tenv.sources.archives.member_names import check_target, check_way, parts_of
from tests.support.each import each

LIMITS = UnpackLimits()


def test_a_name_is_taken_apart() -> None:
    assert parts_of("./a//b/c.h", LIMITS, windows=True) == ("a", "b", "c.h")
    assert parts_of("./", LIMITS, windows=True) == ()
    assert parts_of("aux.h", LIMITS, windows=False) == ("aux.h",)


@each(
    "name, fault",
    [
        ("../x", "leads out of the archive"),
        ("a/../../x", "leads out of the archive"),
        ("/etc/passwd", "is an absolute path"),
        ("C:/x", "is an absolute path"),
        ("a\\b", "is a name with a backslash in it"),
        ("a\nb", "is a name with a control character in it"),
        ("a\udcff", "is a name that is not UTF-8"),
        ("x" * 256, "is longer or deeper than the limit"),
        ("/".join("x" * 2000), "is longer or deeper than the limit"),
        ("aux.h", "is a name that Windows can't hold"),
        ("a /b", "is a name that Windows can't hold"),
    ],
)
def test_a_name_that_must_not_be_used_is_told(name: str, fault: str) -> None:
    with pytest.raises(ValueError, match=r"^is|^leads") as caught:
        parts_of(name, LIMITS, windows=True)
    assert str(caught.value) == fault


@each(
    "target, fault",
    [
        ("", "is a link with an empty or too long target"),
        ("x" * 256, "is a link with an empty or too long target"),
        ("/etc", "is a link that leads out of the archive, to '/etc'"),
        ("a\udcff", "is a link to a name that is not UTF-8"),
        (f"a{chr(0xD800)}", "is a link to a name that is not UTF-8"),
        ("/".join("x" * 5000), "is a link with an empty or too long target"),
    ],
)
def test_a_target_that_must_not_be_is_told(target: str, fault: str) -> None:
    with pytest.raises(ValueError, match=r"^is a link") as caught:
        check_target(target, LIMITS, hard=False)
    assert str(caught.value) == fault


def test_links_are_followed_through_each_other() -> None:
    links = {("lib64",): "lib", ("lib", "up"): ".."}
    check_way(("a", "b"), "../lib64/x.so", links)
    check_way(("a",), "lib64/up/lib/x", links)
    with pytest.raises(ValueError, match=r"leads out of the archive, to .lib64/up"):
        check_way(("a",), "lib64/up/../x", links)
    with pytest.raises(ValueError, match="leads in a circle"):
        check_way(("a",), "b/x", {("a",): "b", ("b",): "a"})
