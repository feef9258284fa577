"""`tenv merge-driver` on locks of conda packages: real merges by git, with channels on 127.0.0.1."""

import tomllib
from pathlib import Path

import pytest

from tenv.locks.lock_file import read_lock
from tests.support.channels import Channels, Trouble, package
from tests.support.projects import Project
from tests.verbs.test_merge import BASE, Merging, with_driver

pytestmark = pytest.mark.long

MANIFEST = """\
platforms = ["linux-64", "win-64"]
channels  = ["main-line", "side-line"]

[dependencies]
base = "*"
"""


@pytest.fixture
def merging(project: Project, channels: Channels, monkeypatch: pytest.MonkeyPatch) -> Merging:
    """A repository whose target asks for the conda package `base`; the channels have more since its first commit."""
    for platform in ("linux-64", "win-64"):
        channels.add("main-line", package("base", "1.0"), package("alpha", "1.0", "0", "base"), platform=platform)
        channels.add("main-line", package("beta", "1.0", "0", "base <2"), platform=platform)
        channels.add("side-line", package("gamma", "1.0"), platform=platform)
    project.manifest.write_text(MANIFEST)
    project.ok("lock", "tiny")
    made = with_driver(project, monkeypatch)
    for platform in ("linux-64", "win-64"):
        channels.add("main-line", package("base", "1.5"), package("base", "2.0"), platform=platform)
    return made


def chosen(merging: Merging, platform: str = "linux-64") -> dict[str, str]:
    return {row.name: row.version for row in read_lock(merging.project.lock, "tiny").conda[platform]}


def asks(merging: Merging, line: str, *, above: str = "") -> None:
    """Let the manifest ask for more, and lock and commit it."""
    manifest = merging.project.manifest
    text = manifest.read_text()
    manifest.write_text(text.replace(above, f"{line}\n{above}") if above else f"{text}{line}\n")
    merging.project.ok("lock", "tiny")
    merging.commit(line)


def test_packages_that_both_sides_have_added_are_in_the_merged_lock(merging: Merging) -> None:
    merging.branch()
    asks(merging, 'alpha = "*"', above='base = "*"')
    merging.main()
    asks(merging, '\n[platform.win-64.dependencies]\ngamma = "*"')
    said = merging.git("merge", "side")
    assert "locks/tiny.lock: solved again from both sides\n" in said
    assert chosen(merging) == {"alpha": "1.0", "base": "1.0"}
    assert chosen(merging, "win-64") == {"alpha": "1.0", "base": "1.0", "gamma": "1.0"}
    assert merging.git("status", "--short", "--untracked-files=no") == ""
    merging.project.ok("lock", "tiny", "--check")
    before = merging.project.lock.read_bytes()
    merging.project.ok("lock", "tiny")
    assert merging.project.lock.read_bytes() == before
    assert b"127.0.0.1" not in before


def test_what_one_side_has_updated_is_kept_where_the_other_s_package_lets_it(merging: Merging) -> None:
    merging.branch()
    merging.update("base")
    assert chosen(merging) == {"base": "2.0"}
    merging.main()
    asks(merging, 'gamma = "*"')
    merging.git("merge", "side")
    assert chosen(merging) == {"base": "2.0", "gamma": "1.0"}


def test_sides_that_do_not_go_together_are_solved_by_what_does(merging: Merging) -> None:
    merging.branch()
    merging.update("base")
    merging.main()
    asks(merging, 'beta = "*"')
    merging.git("merge", "side")
    assert chosen(merging)["beta"] == "1.0"
    assert chosen(merging)["base"] in ("1.0", "1.5")
    merging.project.ok("lock", "tiny", "--check")


def test_lines_at_one_place_leave_a_conflict_until_the_manifest_is_right(merging: Merging) -> None:
    merging.branch()
    asks(merging, 'alpha = "*"')
    merging.main()
    asks(merging, 'gamma = "*"')
    said = merging.git("merge", "side", fails=True)
    assert "error[lock-conflict]: locks/tiny.lock can't be merged while manifests/tiny.toml is in conflict" in said
    manifest = merging.project.manifest
    lines = [line for line in manifest.read_text().splitlines() if not line.startswith(("<<<<", "====", ">>>>"))]
    manifest.write_text("\n".join(lines) + "\n")
    assert tomllib.loads(manifest.read_text())["dependencies"].keys() == {"base", "alpha", "gamma"}
    merging.project.ok("merge-driver", "locks/tiny.lock")
    assert chosen(merging) == {"alpha": "1.0", "base": "1.0", "gamma": "1.0"}
    merging.git("add", "locks", "manifests")
    merging.git("commit", "-qm", "merged")


def test_requests_that_exclude_each_other_leave_a_conflict(merging: Merging) -> None:
    merging.branch()
    asks(merging, 'beta = "*"', above='base = "*"')
    merging.main()
    asks(merging, '\n[platform.linux-64.dependencies]\nbase = ">=2"')
    said = merging.git("merge", "side", fails=True)
    assert "error[no-solution]" in said
    assert merging.git("diff", "--name-only", "--diff-filter=U").split() == ["locks/tiny.lock"]
    assert Path(merging.project.lock).read_bytes().startswith(b"<<<<<<< ours\n")


def test_a_channel_that_is_gone_leaves_a_conflict(
    merging: Merging, channels: Channels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    merging.branch()
    asks(merging, 'alpha = "*"', above='base = "*"')
    merging.main()
    asks(merging, 'gamma = "*"')
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "empty"))
    with channels.failing(Trouble.ERROR):
        said = merging.git("merge", "side", fails=True)
    assert "error[network]" in said
    assert "then `tenv merge-driver locks/tiny.lock`" in said
    merging.project.ok("merge-driver", "locks/tiny.lock")
    assert chosen(merging) == {"alpha": "1.0", "base": "1.0", "gamma": "1.0"}


def test_both_sides_may_bring_the_lock(merging: Merging) -> None:
    merging.git("rm", "-q", "locks/tiny.lock")
    merging.git("commit", "-qm", "no lock")
    merging.git("tag", "-f", BASE)
    merging.branch()
    merging.project.ok("lock", "tiny")
    merging.commit("with everything new")
    merging.main()
    asks(merging, 'beta = "*"')
    merging.git("merge", "side")
    assert chosen(merging) == {"base": "1.5", "beta": "1.0"}
