"""The record of a ``setup.py``: the extensions that it would compile, and whether ninja compiles them."""

import contextlib
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tenv.activation import sandbox
from tenv.builds import objects_apart, record_extensions
from tenv.core import process
from tenv.core.names import info_of
from tenv.facts.torch_packages import TorchPackage
from tenv.sources.wheels.sdist_builds import wants_network

CONFIG = "DIST_EXTRA_CONFIG"
"""The variable by which setuptools reads one more ``setup.cfg``."""
NINJA = "use_ninja = 1\n"
"""The line of ``[build_ext]`` there with which torch's command takes ninja, whatever the ``setup.py`` chose."""
_UNITS = (".cu", ".cpp", ".cc", ".cxx", ".c")
_SECONDS = 600.0
_HOOKS = "setuptools.finalize_distribution_options"


def is_record(found: Any) -> bool:
    """Return whether a value is the output of `tenv.builds.record_extensions`; a ``setup.py`` may print another."""

    def texts(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)

    def row(value: Any) -> bool:
        lists = ("sources", "missing", "others")
        fits = isinstance(value, dict) and all(texts(value.get(name, [])) for name in lists)
        fits = fits and {"sources", "missing"} <= {*value}
        return fits and isinstance(value.get("flags"), dict) and all(map(texts, value["flags"].values()))

    if not isinstance(found, dict):
        return False
    rows = found.get("extensions")
    lists = ("absent", "gone", "requires")
    if not (texts([found.get("archs", "")]) and all(texts(found.get(name) or []) for name in lists)):
        return False
    return (isinstance(rows, list) and all(map(row, rows))) or isinstance(found.get("error"), str)


def recorded(
    python: Path, environ: Mapping[str, str], folder: Path, facts: TorchPackage | None = None
) -> dict[str, Any]:
    """Return the extensions that the ``setup.py`` of a folder would compile, or its error; it runs without a network.

    An ``idle`` ninja counts as one that compiles them, since `NINJA` is set: without it, setuptools compiles one file
    after another, all again after an end in mid-build, and an extension as a whole after an edit of one file.

    Args:
        python: The Python with the torch.
        environ: The variables of the build.
        folder: The folder of ``setup.py``.
        facts: The row of the package, which may leave ninja idle; None without one.
    """
    words = [sys.executable, "-I", sandbox.__file__, "", str(python), record_extensions.__file__]
    done = process.run(words, environment=environ, folder=folder, timeout=_SECONDS, family=True)
    if isinstance(done, process.Missing):
        return {"error": done.reason}
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(sandbox.SAYS)]
    with contextlib.suppress(ValueError, IndexError):
        found = json.loads(done.stdout.splitlines()[-1])
        if is_record(found):
            error = found.get("error", "")
            if error and not wants_network(error):  # of a program that it started
                own = f"{error} ({lines[-1].strip()})" if "CalledProcessError" in error and lines else error
                found["error"] = next((line for line in lines if wants_network(line)), own)
            found["idle"] = bool(found.get("idle")) and (facts is None or facts.ninja)
            found["ninja"] = bool(found.get("ninja")) or found["idle"]
            return dict(found)
    return {"error": lines[-1].strip() if lines else f"it ended with status {done.status}"}


def with_ninja(record: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Return the variable with which ninja compiles the sources that a ``setup.py`` keeps from it.

    Args:
        record: The record of the package.
        folder: Where the file of the setting is written.
    """
    if not record.get("idle"):
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    (file := folder / "setup.cfg").write_text(f"[build_ext]\n{NINJA}")
    return {CONFIG: str(file)}


def with_parts(record: Mapping[str, Any], environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the variable by which setuptools keeps the objects of extensions that share a source apart.

    Args:
        record: The record of the package.
        environ: The variables of the build.
        folder: Where the entry point is written.
    """
    if not sharing(record):
        return {}
    info = folder / info_of("tenv_objects", "1")
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tenv-objects\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{_HOOKS}]\ntenv = tenv_objects_apart:apart\n")
    shutil.copyfile(objects_apart.__file__, folder / "tenv_objects_apart.py")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), environ.get("PYTHONPATH"))))}


def units_of(record: Mapping[str, Any]) -> list[str]:
    """Return the sources that a ``setup.py`` hands to a compiler."""
    return [one for row in record.get("extensions", []) for one in row["sources"] if one.endswith(_UNITS)]


def sharing(record: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the extensions that compile a source which another one compiles, too."""
    rows = record.get("extensions", [])
    counts = Counter(os.path.normpath(source) for row in rows for source in {*row["sources"]})
    shared = {source for source, count in counts.items() if count > 1}
    return frozenset(row["name"] for row in rows if shared & {os.path.normpath(source) for source in row["sources"]})
