"""A file that was edited in one environment, or in a cache, does not arrive in another one as ready."""

import fcntl
import os
import sys
from pathlib import Path

import pytest

from tenv.rattler_api.cache import cache_folder
from tenv.sources.wheels import uv
from tests.support.conda_project import Conda
from tests.support.projects import Project
from tests.support.rarely import first_fast

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hard links into caches")


def edit(path: Path) -> None:
    """Change one byte in place, as an editor does that keeps the inode."""
    with path.open("r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(bytes([first[0] ^ 1]))


@pytest.mark.long
def test_a_wheel_that_was_edited_in_another_environment_is_fetched_again(created: Project, tmp_path: Path) -> None:
    module = created.site() / "alpha.py"
    if module.stat().st_nlink == 1:
        pytest.skip("uv copied or cloned its cache")
    right = module.read_bytes()
    edit(module)
    ended = created.ok("create", "tiny", "--prefix", str(tmp_path / "other"))
    (other,) = (tmp_path / "other").glob("lib/python3*/site-packages/alpha.py")
    assert other.read_bytes() == right
    assert "uv's cache has changed files of alpha, which are fetched again" in ended.err
    created.ok("verify", "tiny", "--prefix", str(tmp_path / "other"), "--no-probes")
    assert created.ran("verify", "tiny", "--no-probes").status == 8
    created.ok("create", "tiny", "--repair")
    assert module.read_bytes() == right


@pytest.mark.parametrize("name", first_fast(["METADATA", "WHEEL"]))
def test_a_wheel_of_the_cache_that_uv_refuses_is_fetched_again(created: Project, tmp_path: Path, name: str) -> None:
    file = next(created.site().glob(f"beta-*.dist-info/{name}"))
    if file.stat().st_nlink == 1:
        pytest.skip("uv copied or cloned its cache")
    with file.open("r+") as opened:
        text = opened.read().replace("1.0", "9.0")
        opened.seek(0)
        opened.write(text)
    ended = created.ok("create", "tiny", "--prefix", str(tmp_path / "other"))
    assert "uv's cache has changed files of beta, which are fetched again" in ended.err
    created.ok("verify", "tiny", "--prefix", str(tmp_path / "other"), "--no-probes")
    assert created.ran("verify", "tiny", "--no-probes").status == 8
    created.ok("create", "tiny", "--repair")
    created.ok("verify", "tiny", "--no-probes")


def test_a_changed_wheel_is_fetched_again_while_another_process_uses_the_cache(
    created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uv, "_PATIENCE", 1)
    file = next(created.site().glob("beta-*.dist-info/METADATA"))
    if file.stat().st_nlink == 1:
        pytest.skip("uv copied or cloned its cache")
    with file.open("r+") as opened:
        text = opened.read().replace("1.0", "9.0")
        opened.seek(0)
        opened.write(text)
    with Path(os.environ["UV_CACHE_DIR"], ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        ended = created.ok("create", "tiny", "--prefix", str(tmp_path / "other"))
    assert "uv's cache has changed files of beta, which are fetched again" in ended.err
    created.ok("verify", "tiny", "--prefix", str(tmp_path / "other"), "--no-probes")


def test_an_unchanged_cache_is_not_fetched_again(created: Project, tmp_path: Path) -> None:
    ended = created.ok("create", "tiny", "--offline", "--prefix", str(tmp_path / "other"))
    assert "fetched again" not in ended.err
    assert list(Path(os.environ["HOME"]).rglob("stamps/wheel-*.json"))


@pytest.mark.parametrize("name", first_fast(["share/data.txt", "info/paths.json"]))
def test_a_flipped_byte_in_the_conda_cache_is_found_at_install(conda: Conda, name: str) -> None:
    conda.lock("data")
    conda.create()
    conda.create("--exact", "--prefix", str(conda.prefix.with_name("second")))  # notes what it has seen
    edit(cache_folder() / "data-1-0" / name)
    third = conda.prefix.with_name("third")
    conda.create("--prefix", str(third))
    assert (third / "share" / "data.txt").read_text() == "old\n"
    assert conda.project.ran("verify", "tiny", "--no-probes", "--prefix", str(third)).status == 0


def test_a_package_of_a_foreign_conda_cache_is_compared(
    conda: Conda, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conda.lock("data")
    conda.create()
    edit(cache_folder() / "data-1-0" / "share" / "data.txt")
    monkeypatch.setenv("TENV_CACHE_DIR", str(tmp_path / "no-notes"))
    other = conda.prefix.with_name("other")
    conda.create("--prefix", str(other))
    assert (other / "share" / "data.txt").read_text() == "old\n"
