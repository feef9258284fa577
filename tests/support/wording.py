"""Count patterns of wording per 1,000 words: in docstrings and comments, in messages, in pages.

`python -m tests.support.wording [FOLDER …]` prints a row for each kind of text of each folder. docs/STYLE.md has
the words to write instead.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PATTERNS = {
    "mouth and ear": r"\b(?:say|says|said|saying|tell|tells|telling|told|hear|hears|heard|speak|speaks|spoken)\b",
    "what": r"\bwhat\b",
    "German order": r"\bfrom the step on\b|\b(?:is|are|was|were) to be\b|\bto be had\b|\bthere is none\b",
    "that of": r"\b(?:that|those) of\b",
}
"""Each pattern of wording, as a regular expression without case."""

SEVERAL = "several reasons"
"""Sentences with two reasons or more: `so that`, `since`, `because`, a colon, a semicolon."""

_REASONS = re.compile(r"\bso that\b|\bsince\b|\bbecause\b|: |; ")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*|] ")
_ENTRY = re.compile(r"^ *(?::param )?[\w*]+:(?: |$)", re.MULTILINE)
"""The name of an argument, an attribute or a section in a docstring, whose colon gives no reason."""

_STRING_OR_COMMENT = re.compile(
    r"""(["'])\1\1(?:\\.|[^\\])*?\1\1\1|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*""",
    re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CODE = re.compile(r"```.*?```|`[^`]*`|<[^>]*>|https?://\S+", re.DOTALL)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a module, each with its line; tokens would take thirty times as long."""
    line, at = 1, 0
    for found in _STRING_OR_COMMENT.finditer(text):
        if found[0].startswith("#"):
            line, at = line + text.count("\n", at, found.start()), found.start()
            yield line, found[0]


def docstrings_and_messages(module: str) -> tuple[list[str], list[str]]:
    """Return the docstrings of a module, those of attributes included, and its other strings of two words or more."""
    nodes = list(ast.walk(ast.parse(module)))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    docstrings = [str(node.value) for node in texts if id(node) in alone]
    others = (str(node.value) for node in texts if id(node) not in alone)
    return docstrings, [text for text in others if len(_WORD.findall(text)) > 1]


def rates(texts: Sequence[str]) -> dict[str, float]:
    """Return the number of each pattern per 1,000 words, and the number of `words`."""
    clean = [_CODE.sub("0", text) for text in texts]
    words = sum(len(_WORD.findall(text)) for text in clean)
    counts = {name: sum(len(re.findall(p, text, re.IGNORECASE)) for text in clean) for name, p in PATTERNS.items()}
    parts = (part for text in clean for part in _SENTENCE.split(_ENTRY.sub("\n\n", text)))
    counts[SEVERAL] = sum(len(_REASONS.findall(part)) > 1 for part in parts)
    return {"words": words, **{name: 1000 * count / max(words, 1) for name, count in counts.items()}}


def kinds_of_text(folder: Path) -> dict[str, list[str]]:
    """Return the docstrings, messages and pages below a folder."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    parts = [docstrings_and_messages(text) for text in sources]
    noted = [words.lstrip("# ") for text in sources for _, words in comments(text) if "noqa" not in words]
    return {
        "docstrings": [*(words for documents, _ in parts for words in documents), *noted],
        "messages": [words for _, messages in parts for words in messages],
        "pages": [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))],
    }


def main(folders: Sequence[str]) -> None:
    """Print a row for each kind of text of each folder."""
    print(f"{'text':40}{'words':>8}" + "".join(f"{name:>17}" for name in (*PATTERNS, SEVERAL)))  # noqa: T201
    for folder in folders:
        for kind, texts in kinds_of_text(Path(folder)).items():
            if texts:
                row = rates(texts)
                figures = "".join(f"{row[name]:17.1f}" for name in (*PATTERNS, SEVERAL))
                print(f"{folder + ' ' + kind:40}{row['words']:8.0f}{figures}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:] or ["src", "docs"])
