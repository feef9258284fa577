"""The words for yes and no in environment variables: those of click, which reads the same variables for options."""

from collections.abc import Mapping

TRUTH_WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("", "0", "false", "f", "no", "n", "off"), False),
}
"""The meaning of each word in lower case; uv accepts the same words."""


def is_true(word: str) -> bool | None:
    """Return the meaning of a word, in any case; None if it has neither."""
    return TRUTH_WORDS.get(word.strip().lower())
