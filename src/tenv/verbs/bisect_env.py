"""Build the commit that `git bisect run` has checked out, with the target that it needs, and try it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from tenv.builds.build_job import BuildRequest, BuildStepName, StepReport
from tenv.builds.logged_run import SIGNAL_SOURCE
from tenv.checks.rules.interface import Severity
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.git import find_repository
from tenv.core.missing import Missing
from tenv.project.context import Context
from tenv.targets.search import AUTO
from tenv.verbs.activate import find_activation
from tenv.verbs.build import Built, build, checkout_context
from tenv.verbs.run import missing_program

OF_COMMIT = ("TE932", "TE961", "TE962", "TE971", "TE973")
"""The codes of failures whose cause is none that is known: CMake, a compiler, the package, the import, the result.

A cause that the table knows (TE801 to TE819) is one of the machine or of the toolchain: no space, no memory, a compiler
that is too new. So is every finding of the steps before.
"""

OF_BUILD_FOLDER = ("TE612", "TE904")
"""The codes of a build folder of another revision or target, which a build from scratch mends."""


class BisectStatus(IntEnum):
    """The meaning of an exit status for `git bisect run` (git-bisect(1))."""

    GOOD = 0
    BAD = 1
    SKIP = 125


@dataclass(frozen=True, slots=True)
class Bisected:
    """The result for a commit."""

    commit: str
    """The commit."""
    built: Built
    """The build."""
    status: int
    """The status for git: the command's where it was run."""
    ran: bool
    """Whether the command was run."""

    @property
    def sentence(self) -> str:
        """One line for people."""
        where = f"commit {self.commit[:12]} with {self.built.target or 'no target'}"
        if self.ran:
            return f"{where}: the command ended with status {self.status}"
        if self.built.ok:
            return f"{where}: builds and imports"
        step = self.built.steps[-1].name.value
        blame = "the toolchain or the machine" if self.status == BisectStatus.SKIP else "the commit"
        return f"{where}: step {step} failed by {blame}"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"commit": self.commit, "status": self.status, "ran": self.ran, **self.built.to_json()}


def bisect_env(
    context: Context,
    request: BuildRequest,
    targets: Sequence[str],
    words: Sequence[str],
    say: Callable[[StepReport], None],
) -> Bisected:
    """Build the commit that is checked out, then run a command in its environment.

    Args:
        context: The context of the verb.
        request: The build, without a target.
        targets: The targets; the first one that builds the revision is taken. Empty: the best one for it.
        words: The command; empty to try no more than the build and the import.
        say: Receives each step when it ends.

    Raises:
        TenvError: The checkout is none, or its toolchain can't be made.
    """
    repository = find_repository(request.checkout, context.environ)
    commit = repository.commit("HEAD") or ""
    if (request.checkout / ".gitmodules").is_file():
        for of_git in (("sync", "--recursive"), ("update", "--init", "--recursive")):
            _update(context, request.checkout, of_git)
    built = _build_first(context, request, targets or (AUTO,), say)
    if not built.ok:
        return Bisected(commit, built, BisectStatus.BAD if is_of_commit(built) else BisectStatus.SKIP, ran=False)
    if not words:
        return Bisected(commit, built, BisectStatus.GOOD, ran=False)
    own = checkout_context(context, request.checkout)
    environ = find_activation(own, built.target, Path(built.prefix)).apply(context.environ)
    program = process.find(words[0], environ.get("PATH"))
    if program is None:
        raise missing_program(context, words[0], built.target, environ)
    return Bisected(commit, built, process.spawn([program, *words[1:]], environ), ran=True)


def _update(context: Context, checkout: Path, words: Sequence[str]) -> None:
    """Check out the submodules that the commit pins; a host that can't be reached is no fault of the commit."""
    done = process.run(["git", "submodule", *words], environment=context.environ, folder=checkout)
    if isinstance(done, Missing) or done.status:
        said = done.reason if isinstance(done, Missing) else (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"git submodule {words[0]} failed: {said}", hint="`tenv build` names the submodules")


def _build_first(
    context: Context, request: BuildRequest, targets: Sequence[str], say: Callable[[StepReport], None]
) -> Built:
    """Build with the first target that builds the revision, from scratch where the folder is another one's."""
    for name in targets:
        # CMake runs anew: the files of another commit are there, and compiled files come out of the cache.
        asked = replace(request, target=name, fresh=True)
        built = build(context, asked, say)
        if not built.ok and _codes(built) & set(OF_BUILD_FOLDER):
            built = build(context, replace(asked, clean=True), say)
        if built.ok or built.steps[-1].name is not BuildStepName.TARGET:
            return built
    return built


def _codes(built: Built) -> set[str]:
    return {row.code for row in built.steps[-1].done.findings if row.severity is Severity.ERROR}


def is_of_commit(built: Built) -> bool:
    """Return whether a build failed by the commit: by errors alone that are neither known causes nor signals."""
    errors = [row for row in built.steps[-1].done.findings if row.severity is Severity.ERROR]
    return bool(errors) and all(row.code in OF_COMMIT and row.source != SIGNAL_SOURCE for row in errors)
