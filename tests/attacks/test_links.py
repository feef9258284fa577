"""Links that a repository or an archive may hold: no file is written through one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.outside import make_victims
from tests.support.archive_server import ask
from tests.support.projects import Project, call
from tests.support.redist import Server


def _point(link: Path, victim: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(victim)


LINKS: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "the lock": (lambda folder: folder / "locks" / "tiny.lock", ("lock", "tiny", "--trust-first-use")),
    "the folder's .gitignore": (lambda folder: folder / ".tenv" / ".gitignore", ("create", "tiny")),
    "the lock file of a prefix": (lambda folder: folder / ".tenv" / "envs" / ".tiny.lock", ("create", "tiny")),
    "the owner of a prefix": (lambda folder: folder / ".tenv" / "envs" / ".tiny.owner", ("create", "tiny")),
    "an exported file": (
        lambda folder: folder / "out" / "pixi.toml",
        ("export", "pixi", "tiny", "-o", "out", "--force"),
    ),
    "an imported manifest": (
        lambda folder: folder / "manifests" / "theirs.toml",
        ("import", "requirements.txt", "--name", "theirs", "--force"),
    ),
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
def test_no_file_is_written_through_a_link(name: str, there: bool, project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    if name != "the lock":
        project.ok("lock", "tiny")
    (project.folder / "requirements.txt").write_text("alpha==1.0\n")
    victims = make_victims(project)
    victim = project.folder / ("package.json" if there else "planted.json")
    place, words = LINKS[name]
    _point(place(project.folder), victim)
    before = victims.hashes()
    ended = call(*words)
    assert ended.status == 8 or name == "the folder's .gitignore", ended.err
    assert "error[bug]" not in ended.err
    assert victims.hashes() == before


def test_no_lock_is_written_into_a_folder_that_a_link_leads_to(project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    elsewhere = project.folder.parent / "victim"
    elsewhere.mkdir()
    (project.folder / "locks").symlink_to(elsewhere)
    assert "tenv does not write through links" in project.fails(8, "storage", "lock", "tiny")
    assert not list(elsewhere.iterdir())
