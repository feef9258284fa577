"""Builds packages of source trees with uv, and installs them into an environment.

uv runs the build backend that a tree names, with the rights of the user. Its requirements come from the index in use.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tenv.core.errors import EnvironmentBrokenError
from tenv.locks.lock import LockedTree
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.wheels.git_trees import git_environment
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.trees import requirement_line
from tenv.sources.wheels.uv import Uv
from tenv.sources.wheels.uv_output import failed_builds
from tenv.targets.tree_request import TreeRequest
from tenv.toolchain.discover import python_program

__all__ = ["build_trees", "require_as_locked", "try_builds"]

Builds = Sequence[tuple[LockedTree, TreeRequest]]
"""Rows of the lock, each with the request of the manifest."""


def build_trees(uv: Uv, python: Path, trees: Builds, *, tried: bool = False, so: str = "") -> None:
    """Build packages and install them, and nothing that they require: the lock has that.

    Args:
        uv: uv.
        python: The Python of the environment.
        trees: The packages.
        tried: Take the wheels that `try_builds` built, from uv's cache, instead of building again.
        so: The consequence for the environment if one can't be built, for the message.

    Raises:
        EnvironmentBrokenError: A package can't be built.
        NetworkError: A repository or the index of its build requirements can't be reached.
    """
    names = [tree.name for tree, _ in trees]
    if tried:  # uv takes `--reinstall-package` for an order to build again
        uv.remove(python, names)
        again: tuple[str, ...] = ()
    else:
        again = tuple(word for name in names for word in ("--reinstall-package", name))
    lines = "".join(f"{requirement_line(tree, request)}\n" for tree, request in trees)
    done = uv.run(
        *("pip", "install", "--python", str(python), "--no-deps", "--requirement", "-", *again, *uv.indexes()),
        text=lines,
        backends=True,
        settings={},
        **git_environment({}),
    )
    if done.status:
        failed = [name for name in names if name in failed_builds(done.stderr)] or names
        raise uv.error(done.stderr, f"{', '.join(failed)} can't be built{so}", EnvironmentBrokenError)


def try_builds(uv: Uv, python: Path, trees: Builds, target: str, values: Mapping[str, str]) -> None:
    """Build packages into an environment that is removed afterwards, while that of the target stays as it is.

    Args:
        uv: uv, whose cache keeps the built wheels.
        python: A Python of the same minor as that of the environment.
        trees: The packages.
        target: The target, for messages.
        values: The values of the marker environment.

    Raises:
        EnvironmentBrokenError: A package can't be built, or differs from its row.
        NetworkError: A repository or the index of its build requirements can't be reached.
    """
    with tempfile.TemporaryDirectory(prefix="tenv-") as name:
        place = Path(name) / "environment"
        uv.make_environment(place, python, "build")
        build_trees(uv, python_program(place), trees, so=", and the environment is as it was")
        require_as_locked(Wheels(place), [tree for tree, _ in trees], target, values)


def require_as_locked(there: Wheels, trees: Sequence[LockedTree], target: str, values: Mapping[str, str]) -> None:
    """Refuse built packages that differ from their rows.

    Args:
        there: The wheels of the environment that they were installed into.
        trees: The rows of the packages.
        target: The target, for messages.
        values: The values of the marker environment.

    Raises:
        EnvironmentBrokenError: One is missing or requires something else.
    """
    installed = there.versions()
    for tree in trees:
        if tree.name not in installed:
            raise EnvironmentBrokenError(f"{target}: {tree.name} was built, and is not there")
        for fault in _requirement_faults(tree, there.requirements(tree.name), values):
            raise EnvironmentBrokenError(
                f"{target}: {fault}", hint=f"`tenv update {target} {tree.name}` locks what it says now"
            )


def _requirement_faults(tree: LockedTree, built: Iterable[str], values: Mapping[str, str]) -> Iterator[str]:
    """Yield how the requirements of a built package differ from its row in the lock, one sentence each.

    Args:
        tree: The row.
        built: The requirements in the metadata of the built package.
        values: The values of the marker environment here. Another order of a marker is no difference.
    """
    built = tuple(built)
    extras = {extra for text in (*tree.requires, *built) if (row := requirement_of(text)) for extra in row.named}
    locked, found = _needs(tree.requires, extras, values), _needs(built, extras, values)
    if lacking := _listed(found - locked):
        yield f"{tree.name} requires {lacking}, which its row in the lock lacks"
    if surplus := _listed(locked - found):
        yield f"{tree.name} does not require {surplus}, as its row in the lock says"


def _needs(texts: Iterable[str], extras: Iterable[str], values: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return each requirement that holds here, with the extra that asks for it; an empty one for all."""
    rows = [row for text in texts if (row := requirement_of(text))]
    return frozenset(
        (extra, f"{row.name}{_bracketed(row.extras)}{row.specifier}")
        for extra in ("", *extras)
        for row in rows
        if row.holds(values, extra)
    )


def _bracketed(extras: tuple[str, ...]) -> str:
    return f"[{','.join(sorted(extras))}]" if extras else ""


def _listed(needs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(sorted({text for _, text in needs}))
