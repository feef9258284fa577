"""Builds packages of source trees with uv, and installs them into an environment.

uv runs the build backend that a tree names, with the rights of the user. What that needs comes from the index in use.
"""

from collections.abc import Sequence
from pathlib import Path

from tenv.core.errors import EnvironmentBrokenError
from tenv.locks.source_tree import LockedTree
from tenv.sources.wheels.git_trees import git_environment
from tenv.sources.wheels.trees import requirement_line
from tenv.sources.wheels.uv import Uv
from tenv.targets.tree_request import TreeRequest

__all__ = ["build_trees"]


def build_trees(uv: Uv, python: Path, trees: Sequence[tuple[LockedTree, TreeRequest]]) -> None:
    """Build packages and install them, and nothing that they require: the lock has that.

    Args:
        uv: uv.
        python: The Python of the environment.
        trees: The rows of the lock, each with the request of the manifest.

    Raises:
        EnvironmentBrokenError: A package can't be built.
        NetworkError: A repository or the index of its build requirements can't be reached.
    """
    again = (word for tree, _ in trees for word in ("--reinstall-package", tree.name))
    lines = "".join(f"{requirement_line(tree, request)}\n" for tree, request in trees)
    done = uv.run(
        *("pip", "install", "--python", str(python), "--no-deps", "--requirement", "-", *again, *uv.indexes()),
        text=lines,
        **git_environment({}),
    )
    if done.status:
        names = ", ".join(tree.name for tree, _ in trees)
        raise uv.error(done.stderr, f"{names} can't be built", EnvironmentBrokenError)
