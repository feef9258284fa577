import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from tenv.core.versions import CondaRange, Range, Version, fits, is_release, same_release
from tests.support.each import each

dotted = st.lists(st.integers(0, 999), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))


def test_a_version_prints_as_written() -> None:
    assert str(Version("580.65.06")) == "580.65.06"


@each("older, newer", [("580.65.06", "580.65.7"), ("9.2", "10.0"), ("12.1", "12.1.1"), ("535.104.12", "545.29.06")])
def test_versions_compare_as_numbers(older: str, newer: str) -> None:
    assert Version(older) < Version(newer)
    assert Version(older) != Version(newer)


def test_trailing_zeros_do_not_count() -> None:
    assert Version("12.1") == Version("12.1.0")
    assert hash(Version("12.1")) == hash(Version("12.1.0"))


@given(dotted)
def test_what_is_printed_reads_back_to_the_letter(text: str) -> None:
    assert str(Version(text)) == text
    assert Version(str(Version(text))) == Version(text)
    assert str(Version.find(f"CUDA {text}.0 here")) == f"{text}.0"


@given(dotted, dotted, dotted)
def test_order_is_total(a: str, b: str, c: str) -> None:
    low, middle, high = sorted(map(Version, (a, b, c)))
    assert low <= middle <= high
    assert low <= high


@each("text", ["", "12.", "a", "1.2a", "12..1", "-1", "1 2"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a dotted version"):
        Version(text)


@each("text, found", [("cuda 13.0.88 x", "13.0.88"), ("3.11.7", "3.11.7"), ("none", None)])
def test_a_version_is_found_in_a_text(text: str, found: str | None) -> None:
    assert (str(Version.find(text)) if found else Version.find(text)) == found


@each(
    "wanted, inside, outside",
    [
        ("*", "0.1", None),
        ("3.11.*", "3.11.9", "3.12.0"),
        ("1.2", "1.2.0", "1.2.1"),
        (">=11,<13", "12.4", "13"),
        ("~=2.1", "2.9", "3.0"),
        ("=2.1", "2.1", "2.2"),
        ("13.0.3.*", "13.0.3.0", "13.0.2"),
        ("0.8.1.*", "0.8.1.post1", "0.9.0"),
    ],
)
def test_a_range_holds_what_it_says(wanted: str, inside: str, outside: str | None) -> None:
    assert inside in Range(wanted)
    assert outside is None or outside not in Range(wanted)


@each("text", [">>1", "1.2 or 1.3", "a.b", ">=", "1,,x"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version range"):
        Range(text)


@given(dotted)
def test_an_exact_range_holds_its_own_version(text: str) -> None:
    assert text in Range(text)


@each(
    "one, other, same",
    [
        ("2023.03", "2023.3", True),
        ("1.0", "1.0.0", True),
        ("1.0+local_1", "1.0+local.1", True),
        ("1.0", "1.1", False),
        ("", "1.0", False),
    ],
)
def test_one_release_may_be_written_in_several_ways(one: str, other: str, same: bool) -> None:
    assert same_release(one, other) is same


@each(
    "text, spec",
    [
        ("*", "*"),
        ("1.2", "==1.2"),
        ("1.2.*", "1.2.*"),
        ("=1.2", "=1.2"),
        (">=11,<13", ">=11,<13"),
        ("2.6.1|>=2.8,<3", "==2.6.1|>=2.8,<3"),
        ("1!2.0.post1", "==1!2.0.post1"),
        ("!=1.2.*", "!=1.2.*"),
    ],
)
def test_a_range_of_conda_is_written_for_its_solver(text: str, spec: str) -> None:
    assert CondaRange(text).spec == spec
    assert str(CondaRange(text)) == text


@each("text", ["", ">>2", "1.2]", '1"', "abc", ">=1,", "1 2"])
def test_what_is_no_range_of_conda_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version range"):
        CondaRange(text)


NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda numbers: ".".join(map(str, numbers)))
CLAUSES = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "=", ""]), NUMBERS),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!=", "=", ""]), NUMBERS),
    st.just("*"),
)


@given(st.lists(CLAUSES, min_size=1, max_size=3), NUMBERS)
def test_plain_ranges_hold_what_packaging_says(clauses: list[str], version: str) -> None:
    wanted = Range(",".join(clauses))
    assert (version in wanted) is wanted.specifiers.contains(version, prereleases=True)


@each("text", [">=3.*", "<2.*", "~=2", "2..1", ">=", "1.*.2"])
def test_what_packaging_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version range"):
        Range(text)


@each(
    "limits, version, fit",
    [
        (">=1,<3", "2.1", True),
        (">=1,<3", "3", False),
        (">=1", "2.0rc1", True),
        (">=1", "9" * 5000, False),
        (f">={'9' * 5000}", "2", False),
        (">=1", "not a version", False),
    ],
)
def test_a_version_that_nothing_can_read_lies_in_no_range(limits: str, version: str, *, fit: bool) -> None:
    assert fits(SpecifierSet(limits), version) is fit


def test_a_number_of_too_many_digits_is_no_release() -> None:
    assert not is_release("9" * 5000)
    assert not same_release("9" * 5000, "8" * 5000)
