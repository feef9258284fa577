"""The virtual environment of a prefix whose Python is not a conda package."""

from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import StorageError
from tenv.core.files import storage_errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenv.sources.wheels.uv import Uv

__all__ = ["make_environment"]


def make_environment(uv: "Uv", prefix: Path, python: Path, meanwhile: "Iterable[None]" = ()) -> None:
    """Make a virtual environment in a folder that may hold files, while something else is done, as `Uv` does it.

    Raises:
        StorageError: It lacks its settings: uv 0.13 does not report that it could not write them. Python takes an
            environment without them for the installation that it was made from.
    """
    uv.make_environment(prefix, python, prefix.name, meanwhile)
    file = prefix / "pyvenv.cfg"
    with storage_errors(f"can't read {file}"):
        settings = file.read_bytes()
    if b"home" not in settings:
        hint = "free some space or choose another folder, then run the same command again"
        raise StorageError(f"can't write {file}: it is empty", hint=hint)
