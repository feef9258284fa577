"""The day of a checkout's commit: it tells which trunk it is, since a version such as ``2.9.0a0`` is that of months."""

import re
from datetime import UTC, date, datetime
from pathlib import Path

from tenv.core import process

__all__ = ["commit_day"]

_TRUNK = re.compile(r"\d+(\.\d+)*a\d")
_COMMITTER = re.compile(r"^committer [^\n]*> (\d{1,11}) [+-]\d{4}$", re.MULTILINE)
_SECONDS = 5.0
_QUIET = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def commit_day(root: Path, version: str) -> date | None:
    """Return the day, in UTC, on which the checked out commit was made; None if nothing needs it or tells it.

    Only the plumbing of git is run, which starts no program that the repository's settings name. An archive without a
    repository of its own has no day, even in the repository of something else.

    Args:
        root: The checkout.
        version: Its version; only one of the trunk (``2.9.0a0``) leaves its day open.
    """
    if not _TRUNK.match(version) or not (root / ".git").exists():
        return None
    program = process.find("git")
    if program is None:
        return None
    words = [program, f"--git-dir={root / '.git'}", "cat-file", "commit", "HEAD"]
    done = process.run(words, environment=_QUIET, timeout=_SECONDS)
    if isinstance(done, process.Missing) or done.status:
        return None
    match = _COMMITTER.search(done.stdout.partition("\n\n")[0])
    try:
        return datetime.fromtimestamp(int(match[1]), UTC).date() if match else None
    except (ValueError, OverflowError, OSError):
        return None
