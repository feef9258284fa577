"""The installation of wheels into a new environment, while something else is done."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from tenv.core.errors import CancelledError, TenvError
from tenv.core.files import device_of
from tenv.core.link_mode import LINK_MODE, LinkMode
from tenv.core.process import Background, Completed
from tenv.core.progress import Progress
from tenv.core.threads import ahead
from tenv.locks.lock import Wheel
from tenv.sources.wheels.cached_files import noted_files
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.planted_files import own_files_guarded
from tenv.sources.wheels.unpacked_size import unknown_directories
from tenv.sources.wheels.uv import Uv
from tenv.sources.wheels.virtual_environment import make_environment
from tenv.toolchain.discover import python_program

if TYPE_CHECKING:
    from tenv.core.file_stamps import Stamp

__all__ = ["EarlyInstall"]

_PAUSE = 0.03
_MOST = 1 << 28
"""The bytes of wheels that may be fetched before the rules have an answer; with more, their time does not count."""


class EarlyInstall:
    """uv at work in a new environment: with the files of its cache alone, or fetching a few.

    Attributes:
        noted: What `noted_files` returned while uv worked.
    """

    def __init__(self, uv: Uv, prefix: Path, python: Path, wheels: Sequence[Wheel], meanwhile: Iterable[None]) -> None:
        """Make the virtual environment, doing something else meanwhile, and start uv; raises as `make_environment`."""
        self._ended = False
        self._done: Completed | None = None
        self._wheels = wheels
        self._follow: Callable[[Progress], Completed | None]
        self.noted: Mapping[str, Mapping[str, Stamp]] = {}
        fetches = _can_fetch(uv, _lacking(uv, wheels))
        make_environment(uv, prefix, python, meanwhile)
        with contextlib.ExitStack() as stack:
            stack.enter_context(own_files_guarded(prefix))
            python = python_program(prefix)
            if fetches:
                self._follow = stack.enter_context(uv.installing(python, wheels))
            else:
                program = stack.enter_context(uv.install_cached(python, wheels))
                self._follow = lambda _: _reading_ahead(program, prefix)
            self._stack = stack.pop_all()

    @staticmethod
    def suits(uv: Uv, prefix: Path, wheels: Sequence[Wheel]) -> bool:
        """Return whether wheels can be had without a check that they still need.

        Copies are left to the time after the rules, one of which asks for the free space. So are wheels whose unpacked
        size is unknown, and large ones to fetch where there is no cache.
        """
        asked, cache = uv.environment, uv.cache
        try:
            near = device_of(cache) == device_of(prefix)
        except OSError:
            return False
        linked = asked.get("UV_LINK_MODE", "") in ("", "clone", "hardlink") and asked.get(LINK_MODE) != LinkMode.COPY
        had = os.path.isdir(cache) or _can_fetch(uv, wheels)  # noqa: PTH112 (no error for a forbidden one)
        return near and linked and had and not unknown_directories(wheels, uv.limits)

    def result(self, progress: Progress) -> Completed | None:
        """Wait, and return how uv ended; None where that says nothing of the wheels, which `Uv.install` then does.

        Raises:
            UnsafePackageError: A wheel has put a file where tenv or Python keep their own.
            ArchiveRefusedError: A wheel unpacks to more than the limits.
        """
        if not self._ended:
            self._ended = True
            with self._stack:
                self.noted = noted_files(self._wheels)
                self._done = self._follow(progress)
        return self._done

    def close(self) -> None:
        """End uv, if it still runs, and remove what it has half unpacked."""
        if not self._ended:
            self._ended = True
            with contextlib.suppress(TenvError), self._stack:  # what ended the command is the error to report
                raise CancelledError("no longer needed")


def _reading_ahead(program: Background, prefix: Path) -> Completed | None:
    """Wait for uv, and read the records of the wheels that it has put there meanwhile."""
    there, ended = Wheels(prefix), Event()

    def read() -> None:
        while not ended.wait(_PAUSE):
            there.read_ahead()

    read_all = ahead(read)
    try:
        status = program.wait()
    finally:
        ended.set()
    read_all()
    return Completed(0, "", "") if status == 0 else None


def _can_fetch(uv: Uv, wheels: Sequence[Wheel]) -> bool:
    """Return whether some wheels may be fetched before the rules have an answer; false where there are none."""
    sizes = [wheel.size or _MOST for wheel in wheels]
    return bool(sizes) and sum(sizes) < _MOST and not uv.offline and sys.platform != "win32"


def _lacking(uv: Uv, wheels: Sequence[Wheel]) -> list[Wheel]:
    """Return the wheels of which uv's cache has no version (uv 0.13); where uv keeps them elsewhere, those are all."""
    places = [os.fspath(place) for pattern in ("pypi", "index/*") for place in uv.cache.glob(f"wheels-v*/{pattern}")]
    return [wheel for wheel in wheels if not any(_has(f"{place}/{wheel.name}", wheel) for place in places)]


def _has(folder: str, wheel: Wheel) -> bool:
    with contextlib.suppress(OSError):
        return any(name.startswith(f"{wheel.version}-") for name in os.listdir(folder))  # noqa: PTH208 (names alone)
    return False
