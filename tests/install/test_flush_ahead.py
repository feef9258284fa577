"""What the disk could not take is an error, whichever wait hears of it."""

from pathlib import Path

import pytest

from tenv.core.errors import StorageError
from tenv.sources.job import Job


@pytest.mark.parametrize("failing", [1, 2])
def test_each_wait_for_the_disk_counts(failing: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Path] = []

    def flush(prefix: Path) -> None:
        waits.append(prefix)
        if len(waits) == failing:  # the kernel tells an error once
            raise StorageError("the disk is full")

    monkeypatch.setattr("tenv.sources.job.flush", flush)
    monkeypatch.setattr(Job, "prefix", Path("prefix"), raising=False)
    job = Job.__new__(Job)
    job.flush_ahead()
    job.flush_ahead()
    assert job.flushing
    with pytest.raises(StorageError):
        job.flushing()
