"""The file of a lock: there and back, and what is said of one that is damaged."""

from dataclasses import replace
from pathlib import Path

import pytest

from tenv.core.errors import LockConflictError, LockCorruptError, LockMissingError, TenvError
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock, render_lock
from tenv.rattler_api.lockfile import write_conda_part
from tests.support.each import each
from tests.support.lock_builders import lock_of, manifest, wheel


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.lock"


def text_of(lock: Lock) -> bytes:
    return render_lock(lock, "version: 7\nplatforms:\n- name: linux-64\nenvironments: {}\npackages: []\n")


def test_a_lock_reads_back_as_it_was_written(path: Path) -> None:
    made = lock_of(manifest(a="*"), wheel("a", "1.0"), replace(wheel("b", "2"), size=None))
    path.write_bytes(text_of(made))
    assert read_lock(path, "t") == made
    assert text_of(read_lock(path, "t")) == text_of(made)


def test_rattler_reads_past_what_is_ours(path: Path) -> None:
    made = lock_of(manifest(a="*"), wheel("a", "1.0"))
    path.write_bytes(render_lock(made, write_conda_part("t", ("linux-64",), ("conda-forge",))))
    from rattler import LockFile

    assert [name for name, _ in LockFile.from_path(path).environments()] == ["t"]


def test_a_lock_names_no_host(path: Path) -> None:
    assert b"//" not in text_of(lock_of(manifest(a="*"), wheel("a", "1.0")))


@each(
    "change, kind, message",
    [
        (lambda raw: None, LockMissingError, "there is no lock for `t`"),
        (lambda raw: b"", LockCorruptError, "is not a lock of tenv"),
        (lambda raw: raw[: len(raw) // 2], LockCorruptError, "t.lock"),
        (lambda raw: b"\xff\xfe" + raw, LockCorruptError, "not valid YAML"),
        (lambda raw: b"[]", LockCorruptError, "is not a lock of tenv"),
        (lambda raw: b"[" * 100_000, LockCorruptError, "nested too deep"),
        (lambda raw: b"- " * 100_000, LockCorruptError, "nested too deep"),
        (lambda raw: b"? - " * 50_000, LockCorruptError, "a key is not a text"),
        (
            lambda raw: raw.replace(b"target: t", b"target: 2001-13-45"),
            LockCorruptError,
            "is the lock of `2001-13-45`, not of `t`",
        ),
        *(
            (lambda raw, other=other: raw.replace(b"schema: 6", other), LockCorruptError, "tenv.schema: tenv ")
            for other in (b"schema: 5", b"schema: 7", b"schema: 6.0", b"schema: '6'", b"schema: [6]", b"schema: x", b"")
        ),
        (lambda raw: raw.replace(b"version: 7", b"version: 6", 1), LockCorruptError, "t.lock: version: tenv "),
        (lambda raw: raw.replace(b"target: t", b"target: u"), LockCorruptError, "is the lock of `u`, not of `t`"),
        (
            lambda raw: raw.replace(wheel("a", "1.0").sha256.encode(), b"ab12"),
            LockCorruptError,
            "sha256: is not 64 hex digits",
        ),
        (lambda raw: raw.replace(b"file: a-", b"file: ../a-"), LockCorruptError, "is not the name of a wheel"),
        (lambda raw: raw.replace(b"file: a-", b"file: z-"), LockCorruptError, "is not a wheel of a 1.0"),
        (
            lambda raw: raw.replace(b"  target: t", b"<<<<<<< ours\n  target: t\n=======\n  target: t\n>>>>>>> theirs"),
            LockConflictError,
            "has conflict markers of an unresolved merge",
        ),
    ],
)
def test_a_damaged_lock_is_told_as_what_it_is(path: Path, change: object, kind: type[TenvError], message: str) -> None:
    assert callable(change)
    path.unlink(missing_ok=True)
    raw = change(text_of(lock_of(manifest(a="*"), wheel("a", "1.0"))))
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(kind) as error:
        read_lock(path, "t")
    assert message in error.value.message
    assert error.value.status == 7


def test_the_hint_for_a_lock_that_was_cut_names_the_command(path: Path) -> None:
    raw = text_of(lock_of(manifest(a="*"), wheel("a", "1.0")))
    for end in (len(raw) // 4, len(raw) // 2, len(raw) - 30):
        path.write_bytes(raw[:end])
        with pytest.raises(LockCorruptError) as caught:
            read_lock(path, "t")
        assert caught.value.hint == "`tenv lock t` replaces it", caught.value.message
