"""The words for yes and no in environment variables: those of click, which reads the same variables for options."""

import os
from collections.abc import Mapping

from tenv.core.errors import UsageError

TRUTH_WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("", "0", "false", "f", "no", "n", "off"), False),
}
"""The meaning of each word in lower case; uv accepts the same words."""


def is_true(word: str) -> bool | None:
    """Return the meaning of a word, in any case; None if it has neither."""
    return TRUTH_WORDS.get(word.strip().lower())


def is_set(name: str) -> bool:
    """Return whether a variable such as ``TENV_OFFLINE`` is on.

    Raises:
        UsageError: Its value is neither yes nor no.
    """
    value = os.environ.get(name, "")
    if (found := is_true(value)) is None:
        raise UsageError(f"{name} is `{value}`", hint=f"`export {name}=1` turns it on, `unset {name}` turns it off")
    return found
