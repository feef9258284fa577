"""Run git: files of a revision, three-way merges of texts, settings of a repository."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.core import process
from tenv.core.errors import UsageError

_SECONDS = 60.0
_SAFE = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
"""A folder within a clone may look like a bare repository, whose configuration names programs that git would run."""


class Repository:
    """A git repository with a work tree.

    Attributes:
        folder: Its top folder.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = environment

    def ask(self, *arguments: str, text: str | None = None) -> str | None:
        """Return the output of a git command; None if it fails.

        Raises:
            UsageError: git is not installed or does not answer.
        """
        done = _git(self.folder, self._environment, arguments, text)
        return None if done.status else done.stdout

    def within(self, path: str) -> "Repository":
        """Return the repository of a submodule, by its path from the top."""
        return Repository(self.folder / path, self._environment)

    def read(self, revision: str, path: str) -> bytes | None:
        """Return a file of a revision; None if the revision or the file does not exist.

        Args:
            revision: A revision, or ``:2`` or ``:3`` for a side of a conflict.
            path: The file, from the top of the repository.
        """
        text = None if revision.startswith("-") else self.ask("cat-file", "blob", f"{revision}:{path}")
        return None if text is None else text.encode()

    def commit(self, revision: str) -> str | None:
        """Return the id of a named commit; None if there is none."""
        found = self.ask("rev-parse", "--quiet", "--verify", f"{revision}^{{commit}}")
        return found.strip() if found else None

    def relative(self, path: Path) -> str | None:
        """Return a path in git's form, relative to the top folder; None for a path outside."""
        try:
            return path.resolve().relative_to(self.folder.resolve()).as_posix()
        except ValueError:
            return None

    def files(self, revision: str, folder: str) -> tuple[str, ...]:
        """Return the files directly in a folder of a revision, relative to the top folder."""
        listed = self.ask("ls-tree", "--name-only", "-z", revision, f"{folder}/" if folder else ".")
        return tuple(name for name in (listed or "").split("\0") if name)

    def heads(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the commits of a running merge: those in git's environment variables and under git's own names."""
        marked = (name.removeprefix("GITHEAD_") for name in self._environment if name.startswith("GITHEAD_"))
        return (*marked, *(commit for name in names if (commit := self.commit(name))))

    def bringers(self, path: str, text: bytes) -> tuple[str, ...]:
        """Return the latest commits, on any branch or unreachable, that changed a file to or from a text."""
        blob = self.ask("hash-object", "--no-filters", "--stdin", text=text.decode("utf-8", "replace"))
        if blob is None:
            return ()
        found = self.ask("log", "--all", "--reflog", "-20", "--format=%H", f"--find-object={blob.strip()}", "--", path)
        return tuple((found or "").split())

    def merge_texts(self, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
        """Return git's merge of two texts and their common ancestor; None if they conflict."""
        with tempfile.TemporaryDirectory(prefix="tenv-") as name:
            files = [Path(name) / side for side in ("ours", "base", "theirs")]
            for file, text in zip(files, (ours, base, theirs), strict=True):
                file.write_bytes(text)
            merged = self.ask("merge-file", "--stdout", *map(str, files))
        return None if merged is None else merged.encode()


def find_repository(folder: Path, environment: Mapping[str, str]) -> Repository:
    """Return the repository that contains a folder.

    Raises:
        UsageError: There is no repository, or git is not installed.
    """
    done = _git(folder, environment, ("rev-parse", "--show-toplevel"), None)
    if done.status:
        said = done.stderr.strip().splitlines()
        raise UsageError(f"{folder} is not in a git repository" + (f": {said[-1]}" if said else ""))
    return Repository(Path(done.stdout.rstrip("\n")), environment)


def _git(folder: Path, environment: Mapping[str, str], words: Sequence[str], text: str | None) -> process.Completed:
    program = process.find("git", environment.get("PATH"))
    if program is None:
        raise UsageError("git is not on PATH", hint="pass two lock files, which needs no git")
    done = process.run([program, *_SAFE, *words], environment=environment, folder=folder, text=text, timeout=_SECONDS)
    if isinstance(done, process.Missing):
        raise UsageError(f"git failed: {done.reason}")
    return done


def repository_at(folder: Path, environ: Mapping[str, str]) -> Repository | None:
    """Return the repository of a folder; None where git has none, does not answer or is not installed."""
    try:
        return find_repository(folder, environ)
    except UsageError:
        return None
