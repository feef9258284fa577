"""`requirements.txt` of large locks, the Pythons of a `pylock.toml`, and the needs of an image."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from tenv.core.versions import Range
from tenv.interop import pylock, squashfs
from tenv.interop.interface import Located, Subject
from tenv.interop.requirements import FORMAT
from tenv.targets.manifest import WheelRequest
from tenv.targets.tree_request import TreeRequest
from tests.support.lock_builders import lock, manifest, wheel

if TYPE_CHECKING:
    from tenv.interop.interface import Site

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


def test_a_pylock_has_the_pythons_of_the_manifest_in_the_form_of_pep_440() -> None:
    asked = (("3.11.*", "==3.11.*"), ("3.12", "==3.12"), ("=3.12", "==3.12"), (">=3.11,<3.15", "<3.15,>=3.11"))
    one, url = wheel("p", "1.0"), "https://example.org/p-1.0-py3-none-any.whl"
    for text, written in (*asked, ("*", "")):
        asking = replace(manifest(), python=Range(text))
        subject = Subject(asking, lock(one, platforms=PLATFORMS), PLATFORMS, located={one.sha256: Located(url)})
        assert pylock.FORMAT.export is not None
        found = pylock.FORMAT.export(subject).files["pylock.toml"].decode()
        assert f'requires-python = "{written}"' in found, text


def test_an_image_needs_the_folders_of_editable_packages(tmp_path: Path) -> None:
    trees = {name: TreeRequest(path=name, editable=name == "near", base=tmp_path) for name in ("copied", "near")}
    asking = replace(manifest(), wheels={name: WheelRequest(Range("*"), tree=tree) for name, tree in trees.items()})
    tmp_path.chmod(0o755)
    (tmp_path / "tenv-meta").mkdir()
    (tmp_path / "tenv-meta" / "state.json").touch()
    site = SimpleNamespace(prefix=tmp_path, python="", toolchain=SimpleNamespace(python=""))
    assert squashfs.FORMAT.export is not None
    notes = squashfs.FORMAT.export(Subject(asking, lock(), ("linux-64",), site=cast("Site", site))).notes
    assert notes[2:] == (f"near is imported from {tmp_path / 'near'}, which each machine needs",)
