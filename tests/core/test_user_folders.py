"""The user's folders where there is no home folder, as for a user of a container that /etc/passwd does not list."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.core import user_folders
from tenv.core.errors import HostError


@pytest.mark.parametrize(
    "folder",
    [user_folders.user_cache, user_folders.user_config, user_folders.user_data, user_folders.user_home],
    ids=lambda folder: folder.__name__,
)
def test_a_user_without_a_home_is_told_so(folder: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.setattr(Path, "home", lambda: Path("~").expanduser())
    with pytest.raises(HostError, match="no home folder"):
        folder()
