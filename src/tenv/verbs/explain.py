"""Find the page of a rule, or the row about one cause of failed builds."""

import os
import re
from collections.abc import Collection
from pathlib import Path

import tenv
from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UsageError
from tenv.project.context import Context

_MOST_NEAR = 3
"""Codes that a hint names at most; more of them say nothing."""


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a rule, or of a cause of failed builds."""

    code: str
    """The rule's code."""
    title: str
    """Its title; the name of a cause."""
    text: str
    """The whole page, in Markdown."""


def codes() -> tuple[str, ...]:
    """Return the code of every rule."""
    return tuple(sorted(page.stem for page in _folder().glob("TE*.md")))


def explain(context: Context, code: str) -> Page:
    """Return the page of a rule, or of a cause that `explain_log` names; raises UsageError for an unknown word."""
    if code.upper() not in (known := codes()):
        rows = (one for row in context.facts().build_failures.failures for one in row.every)
        if cause := next((one for one in rows if one.name == code), None):
            text = f"# {cause.code}: {cause.name}\n\n{cause.described()}\nSource: {cause.basis.source}\n"
            return Page(cause.code, cause.name, text)
        raise _unknown(code, known)
    text = (_folder() / f"{code.upper()}.md").read_text(encoding="utf-8")
    title = text.splitlines()[0].removeprefix("#").strip().removeprefix(f"{code.upper()}:").strip()
    return Page(code.upper(), title, text)


def _unknown(code: str, known: Collection[str]) -> UsageError:
    """Return the error for a word that is no rule's code, with the command that the word means."""
    if os.sep in code or re.search(r"\w\.\w", code):
        return UsageError(f"{code}: no such file", hint="`tenv explain FILE` reads the log of a build")
    word = code.strip("[]").lower().removeprefix("error[")
    if word in error_codes():
        return UsageError(
            f"`{word}` is the code of an error, and only rules have pages",
            hint=f'docs/guide/troubleshooting.md, "Troubleshooting by message", explains `error[{word}]`; the hint '
            "below such an error has the next command",
        )
    near = [f"`{page}`" for page in known if _is_slip(code.upper(), page)]
    if 0 < len(near) <= _MOST_NEAR:
        return UsageError(f"there is no rule `{code}`", hint=f"did you mean {' or '.join(near)}?")
    listed = "docs/check.md lists them, `tenv explain TE101` prints one"
    return UsageError(f"there is no rule `{code}`", hint=f"the rules are {min(known)} to {max(known)}: {listed}")


def _is_slip(word: str, code: str) -> bool:
    """Return whether a word is a code with one wrong or two exchanged characters, or its digits alone."""
    if len(word) != len(code):
        return word == code.removeprefix("TE")
    wrong = [at for at in range(len(code)) if word[at] != code[at]]
    if len(wrong) == 2:  # noqa: PLR2004
        first, second = wrong
        return second == first + 1 and (word[first], word[second]) == (code[second], code[first])
    return len(wrong) == 1


def error_codes(kind: type[TenvError] = TenvError) -> set[str]:
    """Return the code of every error that derives from one."""
    return {found for one in kind.__subclasses__() for found in (one.code, *error_codes(one))}


def _folder() -> Path:
    """Return the folder of the pages: inside the wheel, or in the checkout of an editable install."""
    package = Path(tenv.__file__).parent
    carried = package / "builtin" / "rules"
    return carried if carried.is_dir() else package.parent.parent / "docs" / "rules"
