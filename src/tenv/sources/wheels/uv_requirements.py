"""Requests and locked wheels in formats for uv."""

from collections.abc import Iterable, Sequence

from tenv.locks.lock import Wheel
from tenv.targets.manifest import WheelRequest

__all__ = ["preferences", "requirement", "ways_to_keep"]


def requirement(name: str, request: WheelRequest) -> str:
    """Return a request as one line of a requirements file."""
    extras = f"[{','.join(request.extras)}]" if request.extras else ""
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
