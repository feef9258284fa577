"""Which CUDA goes before a newer one: only where PyTorch and NVIDIA both leave the newer one aside."""

from tenv.checks.before_create import Surroundings
from tenv.checks.choose_target import Candidate, TargetChoice, is_stable, why_aside
from tenv.checks.pytorch_source import find_source
from tenv.checks.rules.driver import Verdict
from tenv.core.versions import Version
from tests.checks.rules.cases import facts, host
from tests.support.each import each


def around(pytorch: str, glibc: str) -> Surroundings:
    return Surroundings(host(libc=Version(glibc)), find_source(pytorch, facts()), facts())


@each(
    "pytorch, glibc, cuda, aside",
    [
        ("2.4.1", "2.27", "12.4", True),
        ("2.4.0a0+git8168338", "2.27", "12.4.1", True),
        ("2.4", "2.31", "12.4", False),  # Ubuntu 20.04, for which NVIDIA packages it
        ("2.4", "2.17", "12.4", False),  # RHEL 7 as well
        ("2.5", "2.27", "12.4", False),  # stable
        ("2.4", "2.27", "12.1", False),
        ("2.3", "2.27", "12.1", False),  # experimental, and in the wheels on the index
        ("2.99", "2.27", "12.4", False),  # nothing is known of that release
    ],
)
def test_a_cuda_is_left_aside_by_both_or_not_at_all(pytorch: str, glibc: str, cuda: str, *, aside: bool) -> None:
    assert bool(why_aside(Version(cuda), around(pytorch, glibc))) is aside


def test_what_is_stable_is_in_the_release_s_list_or_in_its_wheels() -> None:
    stable = [cuda for cuda in ("11.8", "12.1", "12.4", "12.6") if is_stable(Version(cuda), around("2.4", "2.27"))]
    assert stable == ["11.8", "12.1"]
    assert is_stable(Version("12.1.1"), around("2.3", "2.27"))
    assert not is_stable(Version("12.1"), Surroundings(host(), None, facts()))


def candidate(name: str, cuda: str, *, suits: bool = True, aside: str = "") -> Candidate:
    return Candidate(name, Version(cuda), True, Verdict.NATIVE, suits, f"CUDA {cuda} runs", aside=aside)


def test_what_was_left_aside_is_taken_where_nothing_else_can_be_had() -> None:
    newer, taken, older = candidate("c4", "12.4", aside="it is new"), candidate("c1", "12.1"), candidate("b8", "11.8")
    choice = TargetChoice("c1", "CUDA 12.1 runs, for PyTorch 2.4", (newer, taken, older), (newer,))
    assert list(choice.lines()) == ["auto: c1, since CUDA 12.1 runs, for PyTorch 2.4", "auto: not c4, since it is new"]
    assert next((row["target"], row["reason"]) for row in choice.to_json()["ranking"]) == ("c4", "it is new")
    second = choice.without("no file")
    assert second is not None
    assert [*second.lines()][:3] == [
        "auto: b8, since CUDA 11.8 runs, for PyTorch 2.4",
        "auto: not c4, since it is new",
        "auto: not c1, since no file",
    ]
    third = second.without("no file either")
    assert third is not None
    assert [*third.lines()] == [
        "auto: c4, since CUDA 12.4 runs, for PyTorch 2.4",
        "auto: not c1, since no file",
        "auto: not b8, since no file either",
    ]
    assert third.without("gone") is None
