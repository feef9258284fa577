"""The installation of wheels from uv's cache into a new environment, while something else is done."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from tenv.core.errors import UnsafePackageError
from tenv.core.link_mode import LINK_MODE, LinkMode
from tenv.locks.lock import Wheel
from tenv.sources.wheels.planted_files import own_files_guarded
from tenv.sources.wheels.unpacked_size import unknown_directories
from tenv.sources.wheels.uv import Uv
from tenv.sources.wheels.virtual_environment import make_environment
from tenv.toolchain.discover import python_program

__all__ = ["EarlyInstall"]


class EarlyInstall:
    """uv at work in a new environment, with the files of its cache alone."""

    def __init__(
        self, uv: Uv, prefix: Path, python: Path, wheels: Sequence[Wheel], meanwhile: Callable[[], object]
    ) -> None:
        """Make the virtual environment, doing something else meanwhile, and start uv; raises as `make_environment`."""
        self._done: bool | None = None
        make_environment(uv, prefix, python, meanwhile)
        with contextlib.ExitStack() as stack:
            stack.enter_context(own_files_guarded(prefix))
            self._program = stack.enter_context(uv.install_cached(python_program(prefix), wheels))
            self._stack = stack.pop_all()

    @staticmethod
    def suits(uv: Uv, prefix: Path, wheels: Sequence[Wheel]) -> bool:
        """Return whether wheels can be had from the cache without a check that they still need.

        Copies are left to the time after the rules, one of which asks for the free space. So are wheels whose unpacked
        size is unknown.
        """
        asked = uv.environment
        home = Path(asked.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        cache = Path(asked.get("UV_CACHE_DIR") or home / "uv")
        try:
            near = cache.stat().st_dev == prefix.parent.stat().st_dev
        except OSError:
            return False
        linked = asked.get("UV_LINK_MODE", "") in ("", "clone", "hardlink") and asked.get(LINK_MODE) != LinkMode.COPY
        return near and linked and not unknown_directories(wheels, uv.limits)

    def is_done(self) -> bool:
        """Wait, and return whether uv has installed every wheel; if not, `Uv.install` finds what is wrong.

        Raises:
            UnsafePackageError: A wheel has put a file where tenv or Python keep their own.
        """
        if self._done is None:
            self._done = self._program.wait() == 0
            self._stack.close()
        return self._done

    def close(self) -> None:
        """End uv, if it still runs."""
        if self._done is None:
            self._done = False
            with contextlib.suppress(UnsafePackageError):  # what ended the command is the error to report
                self._stack.close()
