"""How often tenv's yes and no are what happened: ``python -m tests.machines.score [CAUSE …]``.

Each machine of the corpus is judged by ``tenv check`` three times: as text, as JSON, and with ``--build-only``. An
answer is right when all of them say what happened. Unknown is right only where the report lacks a fact: the case names
it, or the finding that leaves the answer open does, and the report has no such value.
"""

import contextlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.machines.convert import AMD, FRESH, INDEPENDENT, LATER, NOVEMBER, WINTER, Case, cases, host_report, project
from tests.support.projects import Ended, call

__all__ = ["Answer", "Outcome", "judge", "report", "score"]

_FOREIGN = ("CONDA", "CUDA", "NVCC", "NVIDIA", "PIXI_", "TENV_", "TORCH_", "UV_", "XDG_")
_BUILD_FACTS = {"compilers", "toolkits"}
"""Without these the question of the build is open; without any other fact, that of running."""
_QUESTIONS = ("build", "run")
_TOPICS = {"build": ("TE2", "TE3", "TE4", "TE5", "TE6"), "run": ("TE1", "TE2")}
"""The first digits of the codes that a person would look at for an answer."""


class Outcome(StrEnum):
    """What an answer is worth."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """tenv says that it does not know, though the report has all facts, or it gives no verdict at all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of tenv beside what happened.

    Attributes:
        case: The id of the machine.
        cause: The file that it stands in.
        question: `build` or `run`.
        truth: What happened, ``yes`` or ``no``.
        said: What tenv says in JSON: ``yes``, ``no``, ``unknown``, or ``none`` where it ends without a verdict.
        outcome: What the answer is worth.
        reason: Why it is not right, or an empty string.
        warned: Whether a warning or an error names the driver or the GPU (build: a later topic), right or wrong.
    """

    case: str
    cause: str
    question: str
    truth: str
    said: str
    outcome: Outcome
    reason: str
    warned: bool = True


@dataclass(frozen=True, slots=True)
class _Asked:
    """What three calls of ``tenv check`` say: JSON, the text, the two exit statuses, and what its findings need."""

    json: Mapping[str, str]
    text: Mapping[str, str]
    status: int
    build_only: int
    problem: str
    needs: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()


def judge(case: Case, folder: Path) -> Iterator[Answer]:
    """Yield tenv's answers to what is known of a case.

    Args:
        case: The machine.
        folder: An empty folder, where its project is written.
    """
    asked = _ask(case, folder)
    for question in _QUESTIONS:
        if question in case:
            said = asked.json.get(question, "none")
            outcome, reason = _weigh(case, question, said, asked)
            warned = any(code.startswith(_TOPICS[question]) for code in asked.codes)
            yield Answer(case["id"], case["cause"], question, case[question], said, outcome, reason, warned)


def score(chosen: Iterable[Case]) -> list[Answer]:
    """Return tenv's answers for machines, each in a project and a home of its own."""
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as home:
        for at, case in enumerate(chosen):
            folder = Path(home) / str(at)
            folder.mkdir()
            answers += judge(case, folder)
    return answers


def report(answers: Iterable[Answer], chosen: Iterable[Case]) -> str:
    """Return the score as text: a line for each cause, the sums, and each answer that is not right."""
    answers, chosen = list(answers), list(chosen)
    causes = sorted({case["cause"] for case in chosen})
    lines = [_row("cause", "cases", "answers", "right", "wrong", "unknown", "all-clears", "alarms")]
    for cause in (*causes, ""):
        some = [answer for answer in answers if cause in {"", answer.cause}]
        count = sum(cause in {"", case["cause"]} for case in chosen)
        tally = [sum(answer.outcome is outcome for answer in some) for outcome in Outcome]
        lines.append(_row(cause or "all", count, len(some), *tally, len(_all_clears(some)), len(_alarms(some))))
    failing = {answer.case for answer in answers if answer.truth == "no"}
    whole = {answer.case for answer in answers} - {a.case for a in answers if a.outcome is not Outcome.RIGHT}
    known = {answer.case for answer in answers}
    lines += [
        "",
        f"machines with every answer right: {len(whole)} of {len(known)}",
        f"false all-clears (yes where it failed): {len(_all_clears(answers))} of {len(failing)} failing machines",
        f"false all-clears without a warning: {len(_all_clears(a for a in answers if not a.warned))}",
        f"false alarms (no where nothing failed): {len(_alarms(answers))} of {len(known - failing)} others",
        "",
        *(_fault(answer) for answer in answers if answer.outcome is not Outcome.RIGHT),
    ]
    return "\n".join(lines) + "\n"


def _ask(case: Case, folder: Path) -> _Asked:
    words, variables = project(case, folder)
    with _in(folder, variables):
        plain, data, build = (
            call("check", *words),
            call("check", *words, "--json"),
            call("check", *words, "--build-only"),
        )
    problem = plain.err.strip() if plain.status not in {0, 1} else ""
    if problem:
        return _Asked({}, _of_text(plain.out), plain.status, build.status, problem)
    return _Asked(_of_json(data), _of_text(plain.out), plain.status, build.status, "", *_found(data))


def _found(data: Ended) -> tuple[frozenset[str], frozenset[str]]:
    """Return the values that an open answer needs, and the codes of warnings and errors."""
    codes = (one["code"] for one in json.loads(data.out)["findings"] if one["severity"] != "note")
    return frozenset(data.data["needs"]), frozenset(codes)


@contextlib.contextmanager
def _in(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Work in a folder, with a home of its own and no variable that describes this machine."""
    before = dict(os.environ)
    kept = {name: value for name, value in before.items() if not name.startswith(_FOREIGN)}
    homes = {f"XDG_{name}_HOME": str(folder / "home" / name) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
    try:
        os.environ.clear()
        os.environ.update(kept, HOME=str(folder / "home"), PWD=str(folder), **homes, **variables)
        with contextlib.chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _of_json(ended: Ended) -> dict[str, str]:
    return {question: {True: "yes", False: "no"}.get(ended.data[question], "unknown") for question in _QUESTIONS}


def _of_text(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(build|run):\s+(yes|no|unknown)\b", text, flags=re.MULTILINE))


def _weigh(case: Case, question: str, said: str, asked: _Asked) -> tuple[Outcome, str]:
    """Return what an answer is worth, and why it is not right."""
    if asked.problem:
        return Outcome.UNKNOWN, asked.problem.splitlines()[0]
    if asked.text.get(question) != said:
        return Outcome.WRONG, f"the text says {asked.text.get(question, 'nothing')}, JSON {said}"
    both = all(asked.json[name] == "yes" for name in _QUESTIONS)
    if (asked.build_only == 0) != (asked.json["build"] == "yes") or (asked.status == 0) != both:
        return Outcome.WRONG, f"status {asked.status}, with --build-only {asked.build_only}, beside {asked.json}"
    if said == "unknown":
        absent = {name for name, value in host_report(case).items() if isinstance(value, dict) and "missing" in value}
        lacking = {*case.get("lacks", []), *(asked.needs & absent)}
        lacks = [fact for fact in lacking if (fact in _BUILD_FACTS) == (question == "build")]
        return (Outcome.RIGHT, "") if lacks else (Outcome.UNKNOWN, "the report lacks nothing")
    return (Outcome.RIGHT, "") if said == case[question] else (Outcome.WRONG, "")


def _all_clears(answers: Iterable[Answer]) -> set[str]:
    return {answer.case for answer in answers if answer.truth == "no" and answer.said == "yes"}


def _alarms(answers: Iterable[Answer]) -> set[str]:
    answers = list(answers)
    failing = {answer.case for answer in answers if answer.truth == "no"}
    return {answer.case for answer in answers if answer.said == "no" and answer.case not in failing}


def _row(*cells: object) -> str:
    first, *rest = map(str, cells)
    return f"{first:<16}" + "".join(f"{cell:>11}" for cell in rest)


def _fault(answer: Answer) -> str:
    why = f"  ({answer.reason})" if answer.reason else ""
    return f"{answer.cause}/{answer.case}: {answer.question} {answer.truth}, tenv says {answer.said}{why}"


if __name__ == "__main__":
    chosen = sys.argv[1:]
    apart = {
        "later": LATER,
        "independent": INDEPENDENT,
        "fresh": FRESH,
        "november": NOVEMBER,
        "winter": WINTER,
        "amd": AMD,
    }
    known = [*cases(), *(case for name, folder in apart.items() if name in chosen for case in cases(folder))]
    wanted = [case for case in known if not chosen or case["cause"] in chosen]
    sys.stdout.write(report(score(wanted), wanted))
