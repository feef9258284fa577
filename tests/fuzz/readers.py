"""The files that tenv reads from others, each with examples and what tenv does with one."""

import functools
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenv.checks.lock_verdict import judge_lock
from tenv.facts.tables import load_facts
from tenv.host.report_json import parse
from tenv.interop.formats import recognize
from tenv.interop.interface import read_source
from tenv.locks.difference import compare
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.project_metadata import build_system, name_of_project, parse_core_metadata, read_project
from tenv.targets.config import read_project_settings, read_settings
from tenv.targets.search import Origin, Place, SearchPath
from tests.attacks.test_changed_values import FILES
from tests.interop.records import LOCKS

__all__ = ["READERS", "Reader"]

ROOT = Path(__file__).parents[2]
SNAPSHOTS = ROOT / "tests" / "interop" / "__snapshots__" / "test_format_family"
RECORD = "alpha/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\nalpha-1.0.dist-info/RECORD,,\n"
FORMS = ("conda-lock", "environment.yml", "explicit", "pixi", "pylock.toml", "requirements.txt")
INFO = "lib/python3.11/site-packages/alpha-1.0.dist-info"
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
METADATA = """\
Metadata-Version: 2.4
Name: Vision
Version: 1.0.dev3+g12ab
Requires-Python: >=3.9,<4
Provides-Extra: test
Requires-Dist: numpy>=1.26; python_version < "3.13"
Requires-Dist: pytest>=8; extra == "test"

Long text
"""
SETTINGS = 'safe-folders = ["/opt/x"]\nlink-mode = "copy"\nunpack-limit = "4 GiB"\nsync = true\n'


@dataclass(frozen=True)
class Reader:
    """One kind of file.

    Attributes:
        examples: Returns the files to change, by the name in a folder.
        use: Does with the file, below a folder, what tenv does; raises TenvError for one that is refused.
    """

    examples: Callable[[], dict[str, bytes]]
    use: Callable[[Path, str], object]


def _targets(folder: Path) -> SearchPath:
    return SearchPath(folder, (Place(Origin.PROJECT, folder), Place(Origin.BUILT_IN, ROOT)), folder / "data")


def _locks() -> dict[str, bytes]:
    names = ("legacy", "cpu", "cpu-1.10", "cuda102-win")
    return {f"locks/{name}.lock": (ROOT / "locks" / f"{name}.lock").read_bytes() for name in names}


def _judge(folder: Path, name: str) -> None:
    found = _targets(folder).find(Path(name).stem)
    judged = judge_lock(found)
    if judged.lock is not None:
        judged.lock.digest()
        before = judge_lock(_targets(ROOT).find(Path(name).stem)).lock
        assert before is not None
        compare(before, judged.lock, load_facts()).to_json()


def _manifests() -> dict[str, bytes]:
    return {f"manifests/{path.name}": path.read_bytes() for path in sorted((ROOT / "manifests").glob("[a-z]*.toml"))}


def _of_state(name: str) -> Reader:
    content, use = FILES[name]
    return Reader(lambda: {name: json.dumps(content).encode()}, lambda folder, _: use(folder))


def _wheels(folder: Path, _: str) -> None:
    records = Wheels(folder)
    list(records.names())
    list(records.files(["alpha"]))
    list(records.expected({"alpha": ("1.0", "0" * 64)}))


def _imports() -> dict[str, bytes]:
    """Return what tenv itself writes in each format that it reads, and locks of other tools."""
    found: dict[str, bytes] = {}
    for form in FORMS:
        path = SNAPSHOTS / f"test_what_is_written_is_recognized_and_read[{form}].txt"
        for part in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, _, text = part.partition("\n")
            if name.endswith((".lock", ".toml", ".yml", ".yaml", ".txt")) and "/" not in name:
                plain = text.replace("<sha256>", "ab" * 32).replace("<port>", "8000").replace("<version>", "1.0")
                found[name.replace("mixed.yml", "environment.yml")] = plain.encode()
    with tempfile.TemporaryDirectory() as folder:
        for name, write in LOCKS.items():
            path = write(Path(folder) / name)
            found[f"{name}/{path.name}"] = path.read_bytes()
    return found


def _import(folder: Path, name: str) -> None:
    source = read_source(folder / name)
    found = recognize(source)
    assert found.read is not None
    found.read(source)


def _source_tree(folder: Path, _: str) -> None:
    raw = (folder / "pyproject.toml").read_bytes()
    for read in (name_of_project, build_system, read_project):
        read(raw, "x")


def _core_metadata(folder: Path, _: str) -> None:
    parse_core_metadata((folder / "METADATA").read_bytes(), "x")


def _pasted() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((ROOT / "tests" / "pasted").glob("*.txt"))}


def _report(folder: Path, name: str) -> None:
    parse((folder / name).read_bytes().decode("utf-8", "replace"), name)


READERS: dict[str, Reader] = {
    "lock": Reader(functools.cache(_locks), _judge),
    "manifest": Reader(functools.cache(_manifests), lambda folder, name: _targets(folder).find(Path(name).stem)),
    "import": Reader(functools.cache(_imports), _import),
    "source tree": Reader(lambda: {"pyproject.toml": PROJECT.encode()}, _source_tree),
    "metadata of a backend": Reader(lambda: {"METADATA": METADATA.encode()}, _core_metadata),
    "record of a wheel": Reader(lambda: {f"{INFO}/RECORD": RECORD.encode()}, _wheels),
    **{f"note {Path(name).parts[-2]} {Path(name).stem}": _of_state(name) for name in FILES},
    "config": Reader(lambda: {"config.toml": SETTINGS.encode()}, lambda folder, _: read_settings(folder)),
    "project": Reader(lambda: {"tenv.toml": b'default = "x"\nsync = true\n'}, lambda f, _: read_project_settings(f)),
    "host report": Reader(functools.cache(_pasted), _report),
}
"""By the name of the kind."""
