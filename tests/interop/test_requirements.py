"""`requirements.txt` of large locks."""

import time

from tenv.interop.interface import Subject
from tenv.interop.requirements import FORMAT
from tests.support.lock_builders import lock, manifest, wheel

PLATFORMS = ("linux-64", "linux-aarch64")


def spent(count: int) -> float:
    """Return the seconds of the processor that an export of some wheels takes."""
    wheels = [wheel(f"p{number}", f"1.{number}") for number in range(count)]
    subject = Subject(manifest(), lock(*wheels, platforms=PLATFORMS), PLATFORMS)
    assert FORMAT.export is not None
    start = time.process_time()
    written = FORMAT.export(subject)
    took = time.process_time() - start
    assert written.files["requirements.txt"].count(b"==") == count
    return took


def test_the_time_of_an_export_grows_with_the_number_of_wheels() -> None:
    """Eight times as many take about eight times as long; by their square, it would be 64 times."""
    assert min(spent(8000) for _ in range(2)) < 30 * min(spent(1000) for _ in range(3))
