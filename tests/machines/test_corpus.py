"""The corpus of real machines: its shape, that every machine can be judged, and how answers are weighed."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tenv.host.interface import Fact
from tenv.host.report_json import from_json
from tests.machines.convert import AMD, FRESH, INDEPENDENT, LATER, NOVEMBER, WINTER, Case, cases, host_report, manifest
from tests.machines.score import Answer, Outcome, judge, report
from tests.support.each import each

ALL = list(cases())
NEW = [*cases(LATER), *cases(INDEPENDENT), *cases(FRESH), *cases(NOVEMBER), *cases(WINTER), *cases(AMD)]
TESTS = Path(__file__).parent.parent
CAUSES = (
    *("checkout", "clang", "cmake", "compat", "container", "driver-cuda", "gcc", "glibc", "gpu-driver", "gpu-toolkit"),
    *("jetson", "libstdcxx", "mismatch", "python", "pytorch-cuda", "toolkit-parts", "vgpu-mig", "wsl"),
)
KEYS = {
    *("id", "source", "date", "cause", "platform", "wsl", "container", "driver", "driver_missing", "driver_kind"),
    *("module", "cuda_offered", "libcuda", "compat", "gpus", "toolkit", "target", "compilers", "glibc", "libstdcxx"),
    *("linked_libstdcxx", "prebuilt_glibcxx", "python", "cmake", "pytorch", "arch_list", "submodules_missing"),
    *("amd_driver", "amd_gpus", "amd_missing", "kfd", "kfd_missing", "override", "rocm", "rocm_archs"),
    *("stale_build", "l4t", "jetpack", "memory_gib", "nvcc_flags", "build", "run", "why", "inferred", "lacks"),
}
PLAIN: Case = {
    "id": "plain",
    "cause": "driver-cuda",
    "platform": "linux-64",
    "driver": "535.104.12",
    "gpus": ["NVIDIA GeForce RTX 3090"],
    "target": {"cuda": "12.1"},
    "inferred": [],
}


def fails(case: Case) -> bool:
    return "no" in {case.get("build"), case.get("run")}


def test_every_cause_has_eight_machines_and_plain_questions_are_not_the_most_of_them() -> None:
    count = Counter(case["cause"] for case in ALL)
    assert sorted(count) == list(CAUSES)
    assert min(count.values()) >= 8
    assert count["driver-cuda"] <= 40
    assert len(ALL) >= 150


def test_half_of_the_machines_have_no_failure() -> None:
    working = sum(not fails(case) for case in ALL)
    assert 0.5 <= working / len(ALL) < 0.6


def test_the_independent_machines_are_forty_and_half_of_them_have_no_failure() -> None:
    independent = list(cases(INDEPENDENT))
    assert len(independent) >= 40
    assert 0.45 <= sum(not fails(case) for case in independent) / len(independent) < 0.6
    plain = [case for case in independent if not {"toolkit", "compat", "wsl", "arch_list", "container"} & set(case)]
    assert sum("build" not in case and "l4t" not in case for case in plain) <= 10


def test_sixty_machines_and_more_have_nothing_inferred() -> None:
    assert sum(not case["inferred"] for case in ALL) >= 60


@each("case", [*ALL, *NEW])
def test_a_machine_is_written_whole(case: Case) -> None:
    assert set(case) <= KEYS
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", case["date"])
    assert urlsplit(case["source"]).scheme == "https"
    answers = [case[question] for question in ("build", "run") if question in case]
    assert answers
    assert set(answers) <= {"yes", "no"}
    assert case["why"].endswith(".")
    stated = {name.split(".")[0] for name in case["inferred"]} - {"headers"}
    assert stated <= {*case, "container", "wsl"}, "something inferred is no fact of the case"


@each("case", [*ALL, *NEW])
def test_a_machine_becomes_a_host_report_and_a_manifest(case: Case) -> None:
    found = from_json(host_report(case))
    for name, key in (("driver", "driver"), ("libc", "glibc"), ("cuda", "cuda_offered")):
        fact = getattr(found, name)
        assert isinstance(fact, Fact) == (key in case)
        assert not isinstance(fact, Fact) or str(fact.value) == case[key]
    if isinstance(found.gpus, Fact):
        assert len(found.gpus.value) == len(case["gpus"])
    if "rocm" in case["target"]:
        assert len(found.rocms.value if isinstance(found.rocms, Fact) else ()) == 1
        return
    assert (f'cuda = "{case["target"]["cuda"]}"' in manifest(case)) != (
        not case["target"]["cuda"] or ("toolkit" in case and case["target"].get("takes") == "system")
    )


def test_no_machine_is_in_another_test_or_twice() -> None:
    assert max(Counter(case["id"] for case in (*ALL, *NEW)).values()) == 1
    assert not {case["source"] for case in ALL} & {case["source"] for case in NEW}
    own = {case["source"] for case in (*ALL, *NEW)}
    files = (path for path in TESTS.rglob("*") if path.suffix in {".py", ".txt", ".csv", ".json", ".toml"})
    apart = {"machines", "pasted", "logs"}  # a log is tried on the table of causes: no rule is tuned on it
    others = [path for path in files if apart.isdisjoint(path.parts)]
    named = set()
    for path in others:
        named |= set(re.findall(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+", path.read_text("utf-8")))
    assert not own & named


def test_an_answer_is_weighed_by_what_happened(tmp_path: Path) -> None:
    def weigh(name: str, **changed: object) -> list[tuple[str, str, Outcome]]:
        folder = tmp_path / name
        folder.mkdir()
        return [(a.question, a.said, a.outcome) for a in judge({**PLAIN, **changed}, folder)]

    assert weigh("works", run="yes") == [("run", "yes", Outcome.RIGHT)]
    assert weigh("fails", run="no") == [("run", "yes", Outcome.WRONG)]
    assert weigh("old", driver="470.57.02", run="no") == [("run", "no", Outcome.RIGHT)]
    assert weigh("alarm", driver="470.57.02", run="yes") == [("run", "no", Outcome.WRONG)]
    assert weigh("refused", pytorch="no version", run="yes") == [("run", "none", Outcome.UNKNOWN)]


def test_a_status_that_contradicts_the_answers_makes_them_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tests.machines import score

    asked = score._Asked({"build": "no", "run": "yes"}, {"build": "no", "run": "yes"}, 0, 1, "")
    monkeypatch.setattr(score, "_ask", lambda case, folder: asked)
    answer = next(judge({**PLAIN, "run": "yes"}, tmp_path))
    assert answer.outcome is Outcome.WRONG
    assert "status 0" in answer.reason


@pytest.mark.parametrize(
    ("lacks", "outcome"), [(["driver"], Outcome.RIGHT), (["compilers"], Outcome.UNKNOWN), ([], Outcome.UNKNOWN)]
)
def test_unknown_is_right_only_where_a_fact_of_that_question_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacks: list[str], outcome: Outcome
) -> None:
    from tests.machines import score

    said = {"build": "yes", "run": "unknown"}
    monkeypatch.setattr(score, "_ask", lambda case, folder: score._Asked(said, said, 1, 0, ""))
    assert next(judge({**PLAIN, "run": "yes", "lacks": lacks}, tmp_path)).outcome is outcome


def test_the_score_counts_all_clears_and_alarms_by_cause() -> None:
    chosen = [{**PLAIN, "id": name, "cause": cause} for name, cause in (("a", "gcc"), ("b", "gcc"), ("c", "wsl"))]
    answers = [
        Answer("a", "gcc", "build", "no", "yes", Outcome.WRONG, ""),
        Answer("b", "gcc", "build", "yes", "no", Outcome.WRONG, "why"),
        Answer("c", "wsl", "run", "yes", "yes", Outcome.RIGHT, ""),
    ]
    text = report(answers, chosen)
    assert "gcc                       2          2          0          2          0          1          1" in text
    assert "false all-clears (yes where it failed): 1 of 1 failing machines" in text
    assert "false alarms (no where nothing failed): 1 of 2 others" in text
    assert "gcc/b: build yes, tenv says no  (why)" in text
