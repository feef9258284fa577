"""The folders of the user, by the rules of the system: on Linux, those of XDG."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenv.core.errors import HostError


def user_cache(program: str = "tenv") -> Path:
    """Return the folder of a program's caches; raises HostError if the user has no home folder."""
    from platformdirs import user_cache_path  # late: 19 ms

    with _home():
        return user_cache_path(program, appauthor=False)


def user_config() -> Path:
    """Return the folder of tenv's settings; raises HostError if the user has no home folder."""
    from platformdirs import user_config_path  # late: 19 ms

    with _home():
        return user_config_path("tenv", appauthor=False)


def user_data() -> Path:
    """Return the folder of tenv's data; raises HostError if the user has no home folder."""
    from platformdirs import user_data_path  # late: 19 ms

    with _home():
        return user_data_path("tenv", appauthor=False)


def user_home() -> Path:
    """Return the home folder; raises HostError if there is none."""
    with _home():
        return Path.home()


@contextmanager
def _home() -> Iterator[None]:
    """Name the setting that helps where a container runs as a user that has no entry in /etc/passwd, without HOME."""
    try:
        yield
    except RuntimeError as error:
        raise HostError("this user has no home folder", hint="set HOME to a folder that is yours") from error
