"""Requests and locked wheels in formats for uv, and the order in which uv is queried."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tenv.core.errors import NoSolutionError
from tenv.locks.lock import Wheel
from tenv.targets.manifest import WheelRequest

__all__ = ["first_that_fits", "hashed", "install_words", "preferences", "requirement", "ways_to_keep"]

Rows = list[dict[str, Any]]


def requirement(name: str, request: WheelRequest) -> str:
    """Return a request as one line of a requirements file."""
    extras = f"[{','.join(request.extras)}]" if request.extras else ""
    if request.tree:
        return f"{name}{extras} @ {request.tree.folder.as_uri()}"
    return f"{name}{extras}{request.version.specifiers}"


def preferences(wheels: Iterable[Wheel]) -> str:
    """Return a pylock.toml with the names and versions of wheels."""
    rows = "".join(f'\n[[packages]]\nname = "{wheel.name}"\nversion = "{wheel.version}"\n' for wheel in wheels)
    return f'lock-version = "1.0"\ncreated-by = "tenv"\n{rows}'


def ways_to_keep(pins: Sequence[Wheel], *, together: bool) -> list[tuple[list[str], Sequence[Wheel]]]:
    """Return how versions may be kept, in the order in which the ways are to be tried.

    With uv 0.13, a version that is given as a preference can hide the wheels of that very version (pyyaml 6.0.3, ninja
    1.13.2), so that all are held first where nothing is to move, and no preference is the last way.

    Args:
        pins: The wheels whose versions stay where they still fit.
        together: Whether all may be held, none of them being about to move.

    Returns:
        For each way the constraints, and the wheels whose versions are preferred.
    """
    held = [f"{wheel.name}=={wheel.version}" for wheel in pins]
    first: list[tuple[list[str], Sequence[Wheel]]] = [(held, ())] if together and pins else []
    return [*first, ([], pins), *([([], ())] if pins else [])]


def first_that_fits(
    ways: Sequence[tuple[list[str], Sequence[Wheel]]], ask: Callable[[list[str], Sequence[Wheel]], Rows]
) -> Rows:
    """Return the first solution, with the packages held and preferred as each way says.

    Raises:
        NoSolutionError: No way has a solution; the error is that of the last.
    """
    for held, kept in ways[:-1]:
        try:
            return ask(held, kept)
        except NoSolutionError:
            continue
    return ask(*ways[-1])


def hashed(wheels: Iterable[Wheel]) -> str:
    """Return the requirements that hold files by sha256."""
    return "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels)


def install_words(python: Path, again: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments that install files by their sha256 into the environment of a Python.

    Args:
        python: The Python.
        again: Packages to reinstall although their version is right.
    """
    return (
        *("pip", "install", "--python", str(python), "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        # Hashes identify the file, so any index may serve it.
        *("--index-strategy", "unsafe-best-match", "--requirement", "-"),
        *(word for name in again for word in ("--reinstall-package", name)),
    )
