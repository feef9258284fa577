"""Whether a lock still answers its manifest."""

from dataclasses import replace

from tenv.core.versions import CondaRange, Range, Version
from tenv.locks.lock import from_manifest
from tenv.sources.interface import differences
from tenv.targets.manifest import CondaRequest, Manifest, Requirements, WheelRequest
from tests.support.each import each
from tests.support.lock_builders import conda, lock_of, manifest, wheel


def test_a_lock_satisfies_what_it_was_made_for() -> None:
    asked = manifest(a="*")
    assert differences(lock_of(asked, wheel("a", "1.0")), asked) == []


def test_a_looser_range_makes_no_lock_stale() -> None:
    assert differences(lock_of(manifest(a="1.*"), wheel("a", "1.0")), manifest(a=">=1,<3")) == []


def test_a_smaller_python_range_makes_no_lock_stale() -> None:
    lock = lock_of(manifest(a="*"), wheel("a", "1.0"))
    assert differences(lock, replace(manifest(a="*"), python=Range("3.12.*"))) == []


def test_a_marker_that_names_a_patch_release_is_judged_by_the_python_of_conda() -> None:
    asked = replace(
        manifest(a="*"),
        channels=("conda-forge",),
        python=None,
        dependencies={"python": CondaRequest(CondaRange("3.11.*"))},
    )
    needs = wheel("a", "1.0", "3.11"), wheel("old", "1.0", "3.11")
    first = replace(needs[0], requires=("old; python_full_version < '3.11.3'",))
    for patch, rows, faults in (
        ("3.11.15", (first,), []),
        ("3.11.15", (first, replace(needs[1], requires=())), []),
        ("3.11.2", (first,), ["linux-64: a 1.0 requires old, which is not in the lock"]),
    ):
        lock = from_manifest(asked, {"wheels": {"linux-64": rows}, "conda": {"linux-64": (conda("python", patch),)}})
        assert differences(lock, asked) == faults, (patch, rows)


@each(
    "now, difference",
    [
        (manifest(a="2.*"), "linux-64: a 1.0 is locked, the manifest requests 2.*"),
        (manifest(a="*", b="*"), "linux-64: b is not in the lock"),
        (manifest(), "linux-64: a is locked and nothing requires it"),
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
