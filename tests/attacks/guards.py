"""Turn each guard off in turn and show that an attack then succeeds: ``python -m tests.attacks.guards [GUARD ...]``.

A guard that can be taken away without any test failing stops nothing. The guards are functions of tenv; one that is off
is replaced while the tests that stand beside it here are run in a process of their own.
"""

import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import tests.conftest  # noqa: F401 (for the copies of this process)
from tenv.checks.lock_verdict import JudgedLock

__all__ = ["GUARDS", "main"]

_HERE = Path(__file__).parent


def _no_fault(*_: object, **__: object) -> str:
    return ""


def _no_faults(*_: object, **__: object) -> tuple[str, ...]:
    return ()


def _nothing(*_: object, **__: object) -> None:
    return None


def _always(*_: object, **__: object) -> bool:
    return True


# Each: where the guard's name is looked up (a function that is imported by name is there in each importer), what
# stands in for it, and the tests of which at least one must then fail.
GUARDS: dict[str, tuple[tuple[str, ...], Callable[..., Any], str]] = {
    "places of archives": (
        ("tenv.locks.lock_rows.place_fault",), _no_fault, "test_lock_values.py",
    ),
    "files of bundles": (
        ("tenv.verbs.bundle._require_files",), _nothing, "test_bundles.py -k leaves_nothing",
    ),
    "trust in bundles": (
        ("tenv.verbs.bundle_trust._require_vouched",), _nothing, "../verbs/test_bundle.py -k vouch",
    ),
    "manifests of bundles": (
        ("tenv.verbs.bundle_trust.judge_lock",), lambda *_: JudgedLock(Path(), None),
        "test_bundles.py -k does_not_satisfy",
    ),
    "files beside bundles": (
        ("tenv.verbs.bundle_trust._require_free",), lambda context, *_: context.places.places[-2].folder,
        "test_bundles.py -k overwritten",
    ),
    "Pythons of bundles": (
        ("tenv.verbs.bundle._require_pythons",), _nothing, "../verbs/test_bundle_python.py -k lock_is_not_for",
    ),
    "trust in Pythons of bundles": (
        ("tenv.verbs.bundle_trust.Trust.whole",), _always,
        "../verbs/test_bundle_python.py -k 'another_archive or no_table_has'",
    ),
    "places in mirrors": (
        ("tenv.verbs.mirror._is_plain",), _always, "../verbs/test_mirror.py -k leads_out",
    ),
    "folders that are no mirrors": (
        ("tenv.verbs.mirror._read_list",), lambda *_: {}, "../verbs/test_mirror.py -k folder_of_the_user",
    ),
    "links in mirrors": (
        ("tenv.verbs.mirror.refuse_link",), _nothing, "../verbs/test_mirror.py -k folder_of_the_user",
    ),
    "files of mirrors": (
        ("tenv.verbs.mirror._changed",), lambda *_: [], "../verbs/test_mirror.py -k lost_file",
    ),
    "safe folders of root": (
        ("tenv.core.other_users.closed_below", "tenv.environment.marks.closed_below"), _always,
        "test_safe_folders.py -k 'without_a_mark or none_of_root'",
    ),
    "the file of safe folders": (
        ("tenv.core.other_users.open_part",), _nothing, "test_safe_folders.py -k without_a_mark",
    ),
    # Two guards: a name that the manifest does not ask for is refused by the comparison with it, too.
    "names of archives and wheels": (
        ("tenv.locks.lock_rows.name_fault", "tenv.sources.archives.answers.archive_faults"),
        _no_fault,
        "test_lock_values.py",
    ),
    "addresses in locks": (
        ("tenv.locks.lock_rows.address_fault",), _no_fault, "test_lock_values.py",
    ),
    "names of conda packages": (
        ("tenv.locks.lock_rows.conda_file_fault", "tenv.rattler_api.records.conda_file_fault"),
        _no_fault,
        "../locks/test_lock_rows.py",
    ),
    "plain texts": (
        ("tenv.locks.lock_rows.text_fault",), _no_fault, "test_lock_values.py",
    ),
    "what a package unpacks to": (
        ("tenv.core.unpack_limits.UnpackLimits.check",), _nothing, "test_bombs.py -k 'one or sparse or writes'",
    ),
    # Two guards: wheels of a target without Python are refused by the comparison with the manifest, too.
    "nothing twice": (
        ("tenv.locks.lock_rows._once", "tenv.locks.satisfaction.wheel_faults"),
        _no_faults,
        "test_lock_values.py",
    ),
    "known keys alone": (
        ("tenv.core.toml_reader.Table.only",), _nothing, "test_lock_values.py",
    ),
    "names stay in the prefix": (
        ("tenv.core.prefix.leads_out", "tenv.install.plan.leads_out", "tenv.sources.archives.link.leads_out"),
        _no_fault,
        "test_records.py",
    ),
    "folders of a prefix are no links": (
        ("tenv.environment.state.Environment.check_real",), _nothing, "test_records.py -k folder",
    ),
    "archives hold no records": (
        ("tenv.sources.archives.link._check_inside",), _nothing, "test_records.py -k plants",
    ),
    "no file through a link": (
        ("tenv.core.files.refuse_link",), _nothing, "test_links.py",
    ),
    "marks of environments": (
        ("tenv.environment.trust._of_place",),
        _nothing,
        "test_foreign.py -k 'clone or without or copy or user or moved'",
    ),
    "what is most necessary": (
        ("tenv.environment.trust._gutted",), _nothing, "test_foreign.py -k gutted",
    ),
    "records are vouched for": (
        ("tenv.install.make.record_files",), _no_faults, "test_verify_proves.py",
    ),
    "targets of links": (
        ("tenv.environment.integrity._judge_link",), _nothing, "../verbs/test_kinds_of_paths.py -k blog",
    ),
    "the Python of an environment": (
        ("tenv.environment.trust._is_program",), _always,
        "../verbs/test_kinds_of_paths.py -k 'another_python and wheels'",
    ),
    "wheels of the cache that uv refuses": (
        ("tenv.sources.wheels.uv.unusable",), _no_fault, "../verbs/test_changed_caches.py -k refuses",
    ),
    "only the owner writes a safe folder": (
        ("tenv.environment.marks.closed_below",), _always, "test_foreign.py -k others_can_write",
    ),
    "links on the way to an environment": (
        ("tenv.environment.trust.spelled", "tenv.environment.state.spelled"), os.path.realpath,
        "test_foreign.py -k link_leads",
    ),
    "folders of other users": (
        ("tenv.targets.search.is_own",), _always, "../targets/test_search.py -k another_user",
    ),
    "wheels answer their manifest": (
        ("tenv.locks.satisfaction.wheel_faults",), _no_faults, "test_lock_answers.py -k wheels",
    ),
    "conda packages answer their manifest": (
        ("tenv.locks.satisfaction._conda_faults",), _no_faults, "test_lock_answers.py -k conda",
    ),
    "archives answer their manifest": (
        ("tenv.sources.archives.answers.archive_faults",), _no_faults, "test_lock_answers.py -k archives",
    ),
    "links of archives stay in them": (
        ("tenv.sources.archives.unpack.check_way",), _nothing, "../sources/archives/test_unpack.py -k test_links",
    ),
    "stores of archives that others can write": (
        ("tenv.sources.archives.store.Store._open_part",), _nothing,
        "../sources/archives/test_store.py -k others_can_write",
    ),
    "the mark of a store of archives": (
        ("tenv.sources.archives.store.Store._is_marked",), _always,
        "../sources/archives/test_store.py -k without_the_mark",
    ),
    "control characters on a terminal": (
        ("tenv.cli.output.printable",), str, "test_lock_values.py",
    ),
}  # fmt: skip


@contextmanager
def _off(name: str) -> Iterator[None]:
    """Take a guard away."""
    patch = pytest.MonkeyPatch()
    places, instead, _ = GUARDS[name]
    for place in places:
        owner, _, function = place.rpartition(".")
        try:
            target: Any = importlib.import_module(owner)
        except ModuleNotFoundError:  # a method
            module, _, kind = owner.rpartition(".")
            target = getattr(importlib.import_module(module), kind)
        patch.setattr(target, function, instead)
    yield
    patch.undo()


class _Off:
    """The plugin of pytest that takes a guard away for a whole session."""

    def __init__(self, name: str) -> None:
        self._name = name

    def pytest_configure(self, config: pytest.Config) -> None:
        stack = ExitStack()
        stack.enter_context(_off(self._name))
        config.add_cleanup(stack.close)


def _attack(name: str) -> int:
    """Run the tests of a guard without it; return the status of pytest."""
    tests, _, chosen = GUARDS[name][2].partition(" -k ")
    words = [str(_HERE / tests), *(["-k", chosen.strip("'")] if chosen else [])]
    early = "ignore::pytest.PytestAssertRewriteWarning"  # of the libraries that are imported before pytest begins
    return pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-W", early, *words], plugins=[_Off(name)])


def _succeeds(name: str) -> tuple[bool, str]:
    """Return whether an attack succeeds without a guard, and what pytest says.

    The attack runs in a copy of this process, which has imported what takes longer than most attacks.
    """
    with tempfile.TemporaryFile("w+") as printed:
        child = os.fork()
        if not child:
            os.dup2(printed.fileno(), 1)
            os.dup2(printed.fileno(), 2)
            status = _attack(name)
            sys.stdout.flush()
            os._exit(status)
        _, status = os.waitpid(child, 0)
        printed.seek(0)
        said = printed.read().splitlines()
    lines = [line for line in said if line.startswith(("FAILED", "ERROR"))]
    return os.waitstatus_to_exitcode(status) == 1 and bool(lines), (lines or said or [""])[-1]


def main(names: list[str]) -> int:
    """Turn the guards off that are named, all without a name, or those that the lines of standard input name for `-`.

    Returns:
        How many of them stop nothing that a test shows.
    """
    useless = 0
    for name in map(str.strip, sys.stdin) if names == ["-"] else names or GUARDS:
        succeeds, said = _succeeds(name)
        useless += not succeeds
        print(f"{'attacked ' if succeeds else 'NO ATTACK'}  without {name!r}: {said[:150]}", flush=True)
    return useless


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
