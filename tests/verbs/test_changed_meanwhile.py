"""Files that change while a command waits or reads, that keep their size and time, or that are no files at all."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tenv.core.files import read_regular
from tenv.environment.lock_note import LockStamp, read_lock_note
from tenv.environment.state import Environment, State
from tenv.project.context import Context
from tenv.verbs.lock_standing import note_current
from tests.support.fakes import make_wheel
from tests.support.projects import Project, call, finish, held, until
from tests.support.rarely import first_fast

if TYPE_CHECKING:
    import subprocess

LONG = "1" * 400


@pytest.fixture
def other(created: Project) -> str:
    """The text of a lock of the same size, with a newer alpha, for the environment with the older one."""
    make_wheel(created.index.folder, "alpha", "2.0", requires=["beta>=1"], extras={"more": ["gamma"]})
    before, info = created.lock.read_text(), created.lock.stat()
    created.ok("update", "tiny")
    made = created.lock.read_text()
    created.lock.write_text(before)
    os.utime(created.lock, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert len(made) == len(before)
    assert made != before
    return made


def replace(lock: Path, text: str) -> None:
    """Replace a lock by one of the same size and time, as `rsync -t` does."""
    info = lock.stat()
    new = lock.with_name("new")
    new.write_text(text)
    os.utime(new, ns=(info.st_atime_ns, info.st_mtime_ns))
    new.rename(lock)


def alpha(project: Project) -> str:
    """Return the version of the alpha that the environment holds."""
    return str(project.state()["packages"]["alpha"][0])


def waiting(project: Project, *words: str) -> "subprocess.Popen[str]":
    """Start a command, and return when it waits for the environment."""
    child = project.start(*words)
    assert child.stderr
    assert any("waiting: " in line for line in child.stderr)
    return child


def while_waiting(project: Project, change: Callable[[], object], *words: str) -> int:
    """Run `create` while another process makes the same environment, and change something before that one ends."""
    aside = project.folder / "aside"
    project.prefix.rename(aside)
    with held(project.prefix) as release:
        child = waiting(project, "create", "tiny", *words)
        change()
        aside.rename(project.prefix)
        release.set()
        return finish(child).status


def test_a_manifest_that_is_edited_while_create_waits_is_read_again(created: Project, other: str) -> None:
    assert while_waiting(created, lambda: created.edit('alpha  = ">=1"', 'alpha  = "==2.0"')) == 0
    assert alpha(created) == "2.0"
    assert call("create", "tiny", "--locked").status == 0


@pytest.mark.long
def test_with_locked_an_edit_of_the_manifest_is_refused_after_the_wait(created: Project, other: str) -> None:
    assert while_waiting(created, lambda: created.edit('alpha  = ">=1"', 'alpha  = "==2.0"'), "--locked") == 7
    assert alpha(created) == "1.0"
    created.fails(7, "lock-stale", "create", "tiny", "--locked")


@pytest.mark.parametrize("mode", first_fast([(), ("--locked",), ("--frozen",)], 0), ids=str)
def test_a_lock_that_is_replaced_while_create_waits_is_read_again(
    mode: tuple[str, ...], created: Project, other: str
) -> None:
    assert while_waiting(created, lambda: replace(created.lock, other), *mode) == 0
    assert alpha(created) == "2.0"
    assert created.ok("activate", "tiny").err == ""


@pytest.mark.long
def test_an_environment_that_another_process_has_made_meanwhile_is_taken(created: Project) -> None:
    before = created.state_file.stat().st_mtime_ns
    assert while_waiting(created, lambda: None) == 0
    assert created.state_file.stat().st_mtime_ns == before


USES = [
    (("activate", "tiny"), 0),
    (("run", "tiny", "--", "true"), 0),
    (("list",), 0),
    (("list", "--check"), 1),
    (("env", "tiny"), 0),
    (("verify", "tiny", "--no-probes"), 1),
]


@pytest.mark.parametrize(
    ("words", "status"),
    first_fast(USES, 2, several=True),
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_lock_of_the_same_size_and_time_is_seen(
    words: tuple[str, ...], status: int, created: Project, other: str
) -> None:
    assert created.ran(*words).status == 0
    replace(created.lock, other)
    ended = created.ran(*words)
    assert (ended.status, "alpha 1.0 → 2.0" in ended.out + ended.err) == (status, True), ended


@pytest.mark.parametrize("words", first_fast([("run", "tiny", "--", "true"), ("activate", "tiny"), ("env", "tiny")], 2))
@pytest.mark.long
def test_a_lock_of_the_same_size_and_time_is_refused_where_locked(
    words: tuple[str, ...], created: Project, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENV_LOCKED", "1")
    assert created.ran(*words).status == 0
    replace(created.lock, other)
    assert created.ran(*words).status == 7


def test_a_manifest_of_the_same_size_and_time_is_seen(created: Project, other: str) -> None:
    assert created.ok("create", "tiny").err.count("nothing to do") == 1
    text = created.manifest.read_text()
    replace(created.manifest, text.replace('alpha  = ">=1"', 'alpha  = ">1"'.ljust(len('alpha  = ">=1"'))))
    created.fails(7, "lock-stale", "create", "tiny", "--locked")
    created.ok("create", "tiny")
    assert alpha(created) == "2.0"


# The note for hooks is about the bytes that were read.


def note_says(project: Project) -> str | None:
    """Return the sentence that a hook would print; None where it would ask tenv."""
    note, info = read_lock_note(Environment(project.prefix)), project.lock.stat()
    same = note and (note.size, note.time) == (info.st_size, info.st_mtime_ns)
    return note.sentence if note and same else None


def test_a_lock_that_is_replaced_while_it_is_read_is_not_noted(
    created: Project, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (created.prefix / "tenv-meta" / "lock-note").unlink()

    def read_and_replace(path: Path) -> bytes:
        data = read_regular(path)
        replace(path, other)
        until(lambda: LockStamp.of(path))  # the clock of the file system has ticked
        return data

    with monkeypatch.context() as patched:
        patched.setattr("tenv.verbs.lock_standing.read_regular", read_and_replace)
        created.ok("list")
    assert note_says(created) is None
    created.ok("list")
    assert "alpha 1.0 → 2.0" in (note_says(created) or "")


def test_a_lock_that_is_replaced_while_create_works_is_not_noted_as_current(
    created: Project, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace_and_note(context: Context, environment: Environment, state: State) -> None:
        replace(created.lock, other)
        until(lambda: LockStamp.of(created.lock))  # the clock of the file system has ticked
        note_current(context, environment, state)

    created.ok("remove", "tiny")
    monkeypatch.setattr("tenv.verbs.create.note_current", replace_and_note)
    created.ok("create", "tiny", "--frozen")
    assert alpha(created) == "1.0"
    assert "alpha 1.0 → 2.0" in (note_says(created) or "")


# The settings of a project.


@pytest.mark.long
def test_a_pipe_in_the_place_of_tenv_toml_stops_no_command(created: Project) -> None:
    os.mkfifo(created.folder / "tenv.toml")
    for words in (("list",), ("activate", "tiny"), ("run", "tiny", "--", "true"), ("create", "tiny")):
        assert finish(created.start(*words), 60).status == 0


@pytest.mark.long
def test_the_last_key_of_a_long_tenv_toml_counts(created: Project, other: str) -> None:
    (created.folder / "tenv.toml").write_text('default = "tiny"\n' + "# more\n" * 1000 + "sync = true\n")
    replace(created.lock, other)
    assert created.ran("run", "tiny", "--", "true").status == 0
    assert alpha(created) == "2.0"


@pytest.mark.parametrize("text", ["[", 'default = "tiny"\ndefault = "tiny"\n', f"sync = {LONG}\n", "\0"])
def test_a_tenv_toml_that_says_nothing_is_refused(text: str, created: Project) -> None:
    (created.folder / "tenv.toml").write_text(text)
    assert "tenv.toml" in created.fails(2, "usage", "run", "--", "true")


# Numbers that no machine word holds.


def test_a_number_of_400_digits_in_a_state_is_a_broken_state(created: Project) -> None:
    text = json.dumps(created.state() | {"bytes": 0}).replace('"bytes": 0', f'"bytes": {LONG}')
    created.state_file.write_text(text)
    assert created.ok("list", "--json").data[0]["state"] == "broken"
    for words in (("list",), ("activate", "tiny"), ("run", "tiny", "--", "true"), ("show", "tiny")):
        ended = call(*words)
        assert ended.status in (0, 8), ended
        assert "error[bug]" not in ended.err
    created.ok("create", "tiny")
    assert created.ok("list", "--json").data[0]["state"] == "ready"


def test_a_number_of_400_digits_in_a_lock_is_an_error(created: Project) -> None:
    text = created.lock.read_text()
    changed = re.sub(r"size: \d+", f"size: {LONG}", text, count=1)
    assert changed != text
    created.lock.write_text(changed)
    for words in (("show", "tiny"), ("packages", "tiny"), ("create", "tiny", "--frozen"), ("list",)):
        ended = call(*words)
        assert ended.status in (0, 7), ended
        assert "error[bug]" not in ended.err


def test_a_number_of_400_digits_in_a_manifest_is_no_bug(created: Project) -> None:
    archive = f'url = "https://example.org/a.tar.gz", sha256 = "{"0" * 64}", strip = {LONG}'
    created.manifest.write_text(f"{created.manifest.read_text()}[archives]\nmine = {{ {archive} }}\n")
    for words in (("show", "tiny"), ("create", "tiny", "--locked"), ("targets",), ("check", "tiny")):
        ended = call(*words)
        assert ended.status in (0, 1, 3, 7), ended
        assert "error[bug]" not in ended.err


def test_no_byte_of_a_record_can_be_missing(created: Project) -> None:
    for name in ("made.json", "activation.json", "id"):
        path = created.prefix / "tenv-meta" / name
        before = path.read_bytes()
        for cut in range(0, len(before) - 1, max(1, len(before) // 20)):
            path.write_bytes(before[:cut] + before[cut + 1 :])
            assert call("activate", "tiny").status == 8, (name, cut)
        path.write_bytes(before)
    assert call("activate", "tiny").status == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_program_starts_with_the_signals_and_variables_of_its_caller(created: Project) -> None:
    text = "env | sort; grep SigIgn /proc/self/status"
    ended = created.ran("run", "tiny", "--", "sh", "-c", text, environment={"A": "1", "PYTHONHOME": ""})
    assert ended.status == 0
    assert "A=1\n" in ended.out
    assert f"TENV_PREFIX={created.prefix}\n" in ended.out
    assert int(ended.out.split()[-1], 16) & 1 << 12 == 0  # SIGPIPE, which Python ignores
    assert shutil.which("sh")
