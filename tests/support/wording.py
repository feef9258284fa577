"""Count patterns of wording per 1,000 words: in docstrings and comments, in messages, in pages.

`python -m tests.support.wording [FOLDER …]` prints a row for each kind of text of each folder. docs/STYLE.md has
the words to write instead.
"""

import ast
import io
import re
import sys
import tokenize
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

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CODE = re.compile(r"```.*?```|`[^`]*`|<[^>]*>|https?://\S+", re.DOTALL)


def docstrings_and_comments(text: str) -> Iterator[str]:
    """Yield the docstrings of a module, those of attributes included, and its comments."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            yield token.string.lstrip("# ")


def messages(module: str) -> Iterator[str]:
    """Yield the other strings of a module that hold two words or more."""
    tree = ast.parse(module)
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in documents else None
        if isinstance(text, str) and len(_WORD.findall(text)) > 1:
            yield text


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
    return {
        "docstrings": [words for text in sources for words in docstrings_and_comments(text)],
        "messages": [words for text in sources for words in messages(text)],
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
