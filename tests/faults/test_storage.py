"""Full disks and unwritable folders are reported and never leave a ready environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import Ended, Project

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's mounts and capabilities"),
]

ROOT = sys.platform == "linux" and os.geteuid() == 0
# Root loses the right to write anywhere, so that the modes of folders count for it as for anyone.
PLAIN = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if ROOT else ()


def needs_mounts() -> None:
    """Skip where nobody but root may mount; for root it must work."""
    if ROOT:
        return
    probe = ["unshare", "--map-root-user", "--mount", "true"]
    if not shutil.which("unshare") or subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a small disk")


def mounted(*steps: str) -> tuple[str, ...]:
    """Return what goes before a command so that it runs with mounts of its own."""
    rights = () if ROOT else ("--map-root-user",)
    return ("unshare", "--mount", *rights, "sh", "-c", " && ".join((*steps, 'exec "$@"')), "sh")


def check(ended: Ended, *, code: str = "storage") -> None:
    assert ended.status == 8, ended.err
    assert f"error[{code}]" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("size", ["4k", "50k", "150k"])
def test_a_full_disk_is_told_with_its_way_out(heavy: Project, tmp_path: Path, size: str) -> None:
    needs_mounts()
    heavy.ok("create", "tiny")  # all that is needed is in the cache: the disk alone is at fault
    disk, state = tmp_path / "disk", tmp_path / "state.json"
    disk.mkdir()
    keep = f'"$@"; status=$?; cp {disk}/env/tenv-meta/state.json {state} 2>/dev/null; exit $status'
    mount = f"mount -t tmpfs -o size={size} tmpfs {disk}"
    rights = () if ROOT else ("--map-root-user",)
    wrapped = ("unshare", "--mount", *rights, "sh", "-c", f"{mount} && {{ {keep}; }}", "sh")
    ended = heavy.run("create", "tiny", "--prefix", str(disk / "env"), wrapped=wrapped)
    check(ended)
    assert "hint: free some space" in ended.err
    assert not state.exists() or '"state": "ready"' not in state.read_text()


def test_a_full_cache_is_told(heavy: Project, tmp_path: Path) -> None:
    needs_mounts()
    cache = tmp_path / "small"
    cache.mkdir()
    wrapped = mounted(f"mount -t tmpfs -o size=150k tmpfs {cache}")
    ended = heavy.run("create", "tiny", wrapped=wrapped, environment={"UV_CACHE_DIR": str(cache)})
    check(ended)
    assert "hint: free some space" in ended.err


def test_a_full_temporary_folder_is_no_obstacle(locked: Project, tmp_path: Path) -> None:
    needs_mounts()
    small = tmp_path / "small"
    small.mkdir()
    wrapped = mounted(
        f"mount -t tmpfs -o size=8k tmpfs {small}", f"{{ cat /dev/zero > {small}/full 2>/dev/null || true; }}"
    )
    ended = locked.run("create", "tiny", wrapped=wrapped, environment={"TMPDIR": str(small)})
    assert ended.status == 0, ended.err


def test_a_read_only_disk_is_told(locked: Project, tmp_path: Path) -> None:
    needs_mounts()
    disk = tmp_path / "disk"
    disk.mkdir()
    wrapped = mounted(f"mount --bind {disk} {disk}", f"mount -o remount,ro,bind {disk}")
    ended = locked.run("create", "tiny", "--prefix", str(disk / "env"), wrapped=wrapped)
    check(ended)
    assert "hint: the file system is read-only; choose a writable folder (`--prefix` for an environment, " in ended.err


@pytest.fixture
def users(locked: Project) -> Project:
    """The same target in the user's own folder, and a home that can't be written."""
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv"
    own.mkdir(parents=True)
    for name in ("manifests", "locks"):
        (locked.folder / name).rename(own / name)
    data = Path(os.environ["XDG_DATA_HOME"])
    data.mkdir(parents=True)
    for folder in (data, own / "locks", own):
        folder.chmod(0o555)
    return locked


def test_a_home_that_can_not_be_written_is_told(users: Project) -> None:
    ended = users.run("create", "tiny", wrapped=PLAIN)
    check(ended)
    assert "hint: choose a writable folder (`--prefix` for an environment, XDG_CONFIG_HOME for settings)" in ended.err


def test_a_home_that_can_not_be_written_is_no_obstacle_to_a_prefix(users: Project, tmp_path: Path) -> None:
    ended = users.run("create", "tiny", "--prefix", str(tmp_path / "env"), wrapped=PLAIN)
    assert ended.status == 0, ended.err
    assert f"set TENV_SAFE_FOLDERS={tmp_path / 'env'} to use it" in ended.err


def test_a_lock_that_can_not_be_written_is_told(users: Project) -> None:
    lock = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv" / "locks" / "tiny.lock"
    manifest = lock.parent.parent / "manifests" / "tiny.toml"
    manifest.write_text(f'{manifest.read_text()}gamma = "*"\n')
    before = lock.read_bytes()
    ended = users.run("lock", "tiny", wrapped=PLAIN)
    check(ended)
    assert f"can't write {lock}" in ended.err
    assert lock.read_bytes() == before


def test_a_cache_that_can_not_be_written_is_told(locked: Project, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o555)
    ended = locked.run("create", "tiny", wrapped=PLAIN, environment={"UV_CACHE_DIR": str(tmp_path / "cache" / "uv")})
    check(ended)
    assert "UV_CACHE_DIR" in ended.err


def test_an_environment_that_can_not_be_written_is_told(created: Project) -> None:
    for folder in sorted(created.prefix.rglob("*"), reverse=True):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o555)
    created.prefix.chmod(0o555)
    created.ask_for('gamma = "*"')
    created.ok("lock", "tiny")
    ended = created.run("create", "tiny", wrapped=PLAIN)
    check(ended)
    assert created.run("create", "tiny", "--frozen", "--no-wait", wrapped=PLAIN).status == 8


def test_an_environment_that_can_not_be_written_is_removed_all_the_same(created: Project) -> None:
    for folder in (created.site(), created.site().parent, created.prefix):
        folder.chmod(0o555)
    ended = created.run("remove", "tiny", wrapped=PLAIN)
    assert ended.status == 0, ended.err
    assert not created.prefix.exists()
