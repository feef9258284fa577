"""Requests and locked wheels in formats for uv."""

from collections.abc import Iterable

from tenv.locks.lock import Wheel
from tenv.targets.manifest import WheelRequest

__all__ = ["preferences", "requirement"]


def requirement(name: str, request: WheelRequest) -> str:
    """Return a request as one line of a requirements file."""
    extras = f"[{','.join(request.extras)}]" if request.extras else ""
    return f"{name}{extras}{request.version.specifiers}"


def preferences(wheels: Iterable[Wheel]) -> str:
    """Return a pylock.toml with the names and versions of wheels."""
    rows = "".join(f'\n[[packages]]\nname = "{wheel.name}"\nversion = "{wheel.version}"\n' for wheel in wheels)
    return f'lock-version = "1.0"\ncreated-by = "tenv"\n{rows}'
