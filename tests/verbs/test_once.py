"""What `create` looks at, it looks at once: the host, the platform, and the toolchain before and after."""

import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import isgeneratorfunction
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tenv.checks.rules import toolkit
from tenv.host import collect, driver, gpus, machine
from tenv.locks import lock_file
from tenv.sources import interface
from tenv.toolchain.discover import discover
from tests.support.conda_project import Conda
from tests.support.projects import Project
from tests.support.rarely import first_fast

LOOKS: dict[str, Callable[..., Any]] = {
    "platform": machine.current_platform,
    "host": collect.collect,
    "driver": driver.probe,
    "gpus": gpus.probe,
    "cores": machine._cores,
    "memory": machine._memory,
    "gpu devices": machine.sees_gpu,
    "lock parsed": lock_file._parse.__wrapped__,
    "lock judged": toolkit._check,
    "lock held against the manifest": interface.differences,
    "toolchain": discover,
}


def _spied(*words: Any, **more: Any) -> Any:  # its code takes the place of a look's, under whatever name that is known
    return __spy__(*words, **more)  # type: ignore[name-defined]  # noqa: F821 (a global of the look's module)


def _spied_generator(*words: Any, **more: Any) -> Any:
    yield from __spy__(*words, **more)  # type: ignore[name-defined]  # noqa: F821 (as above)


def _spy(monkeypatch: pytest.MonkeyPatch, name: str, look: Any, found: Counter[str]) -> None:
    copy = FunctionType(look.__code__, look.__globals__, look.__name__, look.__defaults__, look.__closure__)
    copy.__kwdefaults__ = look.__kwdefaults__
    key = f"__spy_on_{look.__name__}__"

    def count(*words: Any, **more: Any) -> Any:
        found[name] += 1
        return copy(*words, **more)

    monkeypatch.setitem(look.__globals__, key, count)
    spied = _spied_generator if isgeneratorfunction(look) else _spied
    monkeypatch.setattr(look, "__code__", spied.__code__.replace(co_names=(key,)))
    monkeypatch.setattr(look, "__defaults__", None)
    monkeypatch.setattr(look, "__kwdefaults__", None)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count the looks of what is run here, whoever takes them, and the times that each lock file is opened."""
    found: Counter[str] = Counter()

    def opened(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if str(file).endswith(".lock") and "/locks/" in str(file) and "r" in mode:
            found[f"read {Path(file).parent.parent.name}/{Path(file).name}"] += 1
        return real(file, mode, *rest, **more)

    def opened_below(file: Any, flags: int, *rest: Any, **more: Any) -> int:
        if str(file).endswith(".lock") and "/locks/" in str(file) and not flags & (os.O_WRONLY | os.O_RDWR):
            found[f"read {Path(file).parent.parent.name}/{Path(file).name}"] += 1
        return real_below(file, flags, *rest, **more)

    lock_file._parse.cache_clear()
    toolkit.check_lock.cache_clear()
    real, real_below = io.open, os.open
    with monkeypatch.context() as patch:
        patch.setattr(io, "open", opened)
        patch.setattr(os, "open", opened_below)
        for name, look in LOOKS.items():
            _spy(patch, name, look, found)
        yield found


def looks(found: Counter[str]) -> dict[str, int]:
    """Return the counts of the looks that were taken, without those at files."""
    return {name: found[name] for name in LOOKS if found[name]}


READS, IDLE = 3, 2
"""How often a `create` reads the lock, with and without a change: at first, again when it holds the environment, since
another process may have changed it, and for the note of hooks. It is parsed once.
"""
ONE_EACH = {"platform": 1, "host": 1, "driver": 1, "gpus": 1, "cores": 1, "memory": 1}


def test_a_create(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as found:
        locked.ok("create", "tiny")
    assert found["read project/tiny.lock"] == READS
    assert looks(found) == {
        **ONE_EACH,
        "lock parsed": 1,
        "lock judged": 1,
        "lock held against the manifest": 1,
        "toolchain": 1,  # there is nothing before
    }


def test_an_update(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.ask_for('beta = "*"')
    created.ok("lock", "tiny")
    with counted(monkeypatch) as found:
        assert "nothing to do" not in created.ok("create", "tiny").err
    assert found["read project/tiny.lock"] == READS
    assert looks(found) == {
        **ONE_EACH,
        "lock parsed": 1,
        "lock judged": 1,
        "lock held against the manifest": 1,
        "toolchain": 2,
    }


def test_a_create_that_locks(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    created.ask_for('gamma = "*"')
    with counted(monkeypatch) as found:
        assert "locked again" in created.ok("create", "tiny").err
    assert found["read project/tiny.lock"] == READS
    assert looks(found) == {
        **ONE_EACH,
        "lock parsed": 2,  # the one that was there, and the one that was made
        "lock judged": 2,
        "lock held against the manifest": 1,
        "toolchain": 2,
    }


@pytest.mark.long
def test_a_create_that_locks_where_there_was_no_lock(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as found:
        project.ok("create", "tiny")
    assert found["read project/tiny.lock"] <= READS  # the first time it is not there
    assert looks(found) == {**ONE_EACH, "lock parsed": 1, "lock judged": 1, "toolchain": 1}


@pytest.mark.parametrize("words", first_fast([("update", "tiny", "alpha"), ("lock", "tiny"), ("update", "tiny")], 2))
def test_a_lock_that_is_there(locked: Project, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as found:
        assert locked.ok(*words, "--json").data["changed"] is False
    assert found["read project/tiny.lock"] == 1
    once = {"lock parsed": 1, "lock judged": 1, "lock held against the manifest": 1}
    assert looks(found) == once  # what is chosen anew is the same bytes


def test_a_create_with_nothing_to_do(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as found:
        assert "nothing to do" in created.ok("create", "tiny").err
    assert found["read project/tiny.lock"] == IDLE
    assert looks(found) == {"platform": 1, "toolchain": 1}


def test_a_create_of_conda_packages(conda: Conda, monkeypatch: pytest.MonkeyPatch) -> None:
    conda.lock("tool", "data")
    with counted(monkeypatch) as found:
        conda.create()
    assert found["read project/tiny.lock"] == READS
    assert looks(found) == {
        **ONE_EACH,
        "lock parsed": 1,
        "lock judged": 1,
        "lock held against the manifest": 1,
        "toolchain": 1,
    }


def test_a_repair(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with counted(monkeypatch) as found:
        created.ok("create", "tiny", "--repair")
    assert found["read project/tiny.lock"] == READS
    assert looks(found)["toolchain"] == 2
    assert looks(found)["platform"] == looks(found)["host"] == 1
