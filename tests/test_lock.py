from dataclasses import replace
from pathlib import Path

import pytest

from tenv.engine.lockfile import write_conda_part
from tenv.errors import LockConflictError, LockCorruptError, LockMissingError, LockNewerError, TenvError
from tenv.lock import Lock, Wheel, from_manifest
from tenv.lock_file import read_lock, render_lock
from tenv.manifest import Manifest, Requirements, WheelRequest
from tenv.staleness import differences
from tenv.versions import Range, Version

SHA = "0" * 64


def wheel(name: str, version: str, *python: str) -> Wheel:
    return Wheel(
        name, version, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", SHA, 10, python or ("3.11", "3.12")
    )


def manifest(**wheels: str) -> Manifest:
    requests = {name.replace("_", "-"): WheelRequest(Range(text)) for name, text in wheels.items()}
    return Manifest(
        "t",
        "t.toml",
        platforms=("linux-64",),
        python=Range(">=3.11,<3.13"),
        requirements=Requirements(Version("13.0"), Version("2.28")),
        wheels=requests,
    )


def lock_of(asked: Manifest, *wheels: Wheel) -> Lock:
    return from_manifest(asked, {"linux-64": wheels})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.lock"


def text_of(lock: Lock) -> bytes:
    return render_lock(lock, "version: 7\nplatforms:\n- name: linux-64\nenvironments: {}\npackages: []\n")


def test_a_lock_reads_back_as_it_was_written(path: Path) -> None:
    lock = lock_of(manifest(a="*"), wheel("a", "1.0"), replace(wheel("b", "2"), size=None))
    path.write_bytes(text_of(lock))
    assert read_lock(path, "t") == lock
    assert text_of(read_lock(path, "t")) == text_of(lock)


def test_rattler_reads_past_what_is_ours(path: Path) -> None:
    lock = lock_of(manifest(a="*"), wheel("a", "1.0"))
    path.write_bytes(render_lock(lock, write_conda_part("t", ("linux-64",), ("conda-forge",))))
    from rattler import LockFile

    assert [name for name, _ in LockFile.from_path(path).environments()] == ["t"]


def test_a_lock_names_no_host(path: Path) -> None:
    assert b"//" not in text_of(lock_of(manifest(a="*"), wheel("a", "1.0")))


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda raw: None, LockMissingError, "there is no lock for `t`"),
        (lambda raw: b"", LockCorruptError, "is not a lock of tenv"),
        (lambda raw: raw[: len(raw) // 2], LockCorruptError, "t.lock"),
        (lambda raw: b"\xff\xfe" + raw, LockCorruptError, "not YAML"),
        (lambda raw: b"[]", LockCorruptError, "is not a lock of tenv"),
        (lambda raw: raw.replace(b"schema: 1", b"schema: 2"), LockNewerError, "was written by tenv"),
        (lambda raw: raw.replace(b"version: 7", b"version: 8", 1), LockNewerError, "was written by tenv"),
        (lambda raw: raw.replace(b"schema: 1", b"schema: x"), LockCorruptError, "tenv.schema: is missing"),
        (lambda raw: raw.replace(b"target: t", b"target: u"), LockCorruptError, "is the lock of `u`, not of `t`"),
        (lambda raw: raw.replace(SHA.encode(), b"12"), LockCorruptError, "sha256: is not 64 hex digits"),
        (lambda raw: raw.replace(b"file: a-", b"file: ../a-"), LockCorruptError, "is not the name of a wheel"),
        (lambda raw: raw.replace(b"file: a-", b"file: z-"), LockCorruptError, "is not a wheel of a 1.0"),
        (
            lambda raw: raw.replace(b"  target: t", b"<<<<<<< ours\n  target: t\n=======\n  target: t\n>>>>>>> theirs"),
            LockConflictError,
            "holds the marks of an unresolved merge",
        ),
    ],
)
def test_a_damaged_lock_is_told_as_what_it_is(path: Path, change: object, kind: type[TenvError], message: str) -> None:
    assert callable(change)
    raw = change(text_of(lock_of(manifest(a="*"), wheel("a", "1.0"))))
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(kind) as error:
        read_lock(path, "t")
    assert message in error.value.message
    assert error.value.status == 7


def test_a_lock_satisfies_what_it_was_made_for() -> None:
    asked = manifest(a="*")
    assert differences(lock_of(asked, wheel("a", "1.0")), asked) == []


def test_a_looser_range_makes_no_lock_stale() -> None:
    assert differences(lock_of(manifest(a="1.*"), wheel("a", "1.0")), manifest(a=">=1,<3")) == []


def test_a_smaller_python_range_makes_no_lock_stale() -> None:
    lock = lock_of(manifest(a="*"), wheel("a", "1.0"))
    assert differences(lock, replace(manifest(a="*"), python=Range("3.12.*"))) == []


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        (manifest(a="2.*"), "linux-64: a 1.0 is locked, 2.* is wanted"),
        (manifest(a="*", b="*"), "linux-64: b is not in the lock"),
        (manifest(), "linux-64: a is locked but no longer wanted"),
        (
            replace(manifest(a="*"), wheels={"a": WheelRequest(Range("*"), ("x",))}),
            "linux-64: a was locked without the extra x",
        ),
        (replace(manifest(a="*"), python=Range(">=3.11,<3.14")), "linux-64: Python 3.13 is not in the lock"),
        (replace(manifest(a="*"), platforms=("linux-64", "win-64")), "platform win-64 is not in the lock"),
        (
            replace(manifest(a="*"), requirements=Requirements(Version("13.2"), Version("2.28"))),
            "requirements.cuda is 13.2, the lock was made for 13.0",
        ),
    ],
)
def test_what_a_lock_no_longer_answers_is_named(now: Manifest, difference: str) -> None:
    assert differences(lock_of(manifest(a="*"), wheel("a", "1.0")), now) == [difference]


def test_wheels_are_chosen_by_platform_and_python() -> None:
    lock = lock_of(manifest(a="*"), wheel("a", "1.0", "3.11"), wheel("a", "2.0", "3.12"))
    assert [found.version for found in lock.wheels_for("linux-64", "3.12")] == ["2.0"]
    assert lock.wheels_for("win-64", "3.12") == ()
    assert lock.python_minors("linux-64") == ("3.11", "3.12")
