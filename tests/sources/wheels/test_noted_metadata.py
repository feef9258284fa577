"""What a wheel requires is read from an index once."""

import json
import re
from pathlib import Path

import pytest

from tenv.core.file_stamps import stamps_folder
from tenv.sources.wheels.noted_metadata import note_requirements, noted_requirements
from tests.support.projects import Project

DIGEST = "0" * 64


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else notes anything here, or removes it."""
    monkeypatch.setenv("TENV_CACHE_DIR", str(tmp_path / "cache"))


def lock_anew(project: Project) -> int:
    """Lock again without the old lock; return how many metadata tenv asked of the index, beside uv."""
    project.lock.unlink()
    project.index.asked.clear()
    project.index.askers.clear()
    project.ok("lock", "tiny")
    asked = zip(project.index.asked, project.index.askers, strict=True)
    return sum(path.endswith(".metadata") and asker.startswith("tenv/") for path, asker in asked)


def test_the_index_is_asked_once(locked: Project) -> None:
    first = locked.lock.read_bytes()
    lock_anew(locked)  # its lock may come from another cache
    notes = list(stamps_folder().glob("*.requires.json"))
    assert {note.name.partition(".")[0] for note in notes} == set(re.findall(r"sha256: (\w{64})", first.decode()))
    assert lock_anew(locked) == 0
    assert locked.lock.read_bytes() == first
    for note in notes:
        note.unlink()
    assert lock_anew(locked) == len(notes)
    assert locked.lock.read_bytes() == first


def test_a_lock_with_a_wrong_note_is_refused(locked: Project) -> None:
    lock_anew(locked)
    for note in stamps_folder().glob("*.requires.json"):
        note.write_text(json.dumps({**json.loads(note.read_text()), "requires_dist": ["delta>=1"]}))
    lock_anew(locked)
    assert "requires delta, which is not in the lock" in locked.run("lock", "tiny", "--check").err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"requires_dist": "delta", "requires_python": ""}',
        '{"requires_dist": [1], "requires_python": ""}',
        '{"requires_dist": [], "requires_python": null}',
        '{"requires_dist": [["delta"]], "requires_python": ""}',
    ],
)
def test_what_is_no_note_is_none(text: str) -> None:
    note_requirements(DIGEST, (("delta>=1",), ">=3.9"))
    assert noted_requirements(DIGEST) == (("delta>=1",), ">=3.9")
    (stamps_folder() / f"{DIGEST}.requires.json").write_text(text)
    assert noted_requirements(DIGEST) is None


@pytest.mark.parametrize("digest", ["", "../../escaped", "A" * 64, f"{DIGEST}\n", DIGEST[1:]])
def test_only_a_sha256_is_noted(digest: str) -> None:
    note_requirements(digest, ((), ""))
    assert noted_requirements(digest) is None
    assert list(stamps_folder().parent.rglob("*requires.json")) == []
