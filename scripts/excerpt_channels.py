"""Write the excerpt of real package lists that the tests use: tests/data/channels.

    python scripts/excerpt_channels.py CHANNELS

CHANNELS is what `lock_targets.py` takes. The excerpt holds, as they stand there: every record that a lock in `locks`
names, every record that `cuda-toolkit 12.1` of the nvidia channel brings when nobody takes care, and when somebody
does, and every other record of some packages that are asked for by name in cuda121, so that the solver has something
to choose from.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tenv.__main__ import leave  # noqa: E402 (the path is set above)
from tenv.core.progress import Silent  # noqa: E402
from tenv.locks.lock_file import read_lock  # noqa: E402
from tenv.rattler_api.network import Network  # noqa: E402
from tenv.sources.conda.choose import Conda  # noqa: E402
from tenv.targets.search import find_places  # noqa: E402
from tests.support.channels import EXCERPT, Channels, place_of, read_folder  # noqa: E402
from tests.support.trap import MENDED, TRAP, read_trap  # noqa: E402

DECOYS = ("cmake", "cuda-nvcc", "cuda-version", "cudnn", "gxx_linux-64", "libnvjitlink-dev", "mkl-include", "python")


def urls(lists: dict[str, Any]) -> set[str]:
    """Return the packages that the excerpt is about."""
    locks = [read_lock(path, path.stem) for path in sorted((ROOT / "locks").glob("*.lock"))]
    found = {package.url for lock in locks for packages in lock.conda.values() for package in packages}
    with Channels(lists) as channels, tempfile.TemporaryDirectory() as folder:
        os.environ["RATTLER_CACHE_DIR"] = folder
        for text in (TRAP, MENDED):
            answer = Conda(Network(channels.mirrors())).resolve(read_trap(Path(folder), text), {}, Silent())
            found |= {record.url for records in answer.values() for record in records}
    return found


def main() -> int:
    """Write the excerpt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("channels", type=Path, help="the folder with the package lists")
    folder = parser.parse_args().channels
    lists, wanted = read_folder(folder), urls(read_folder(folder, ()))
    named = set(find_places(ROOT).find("cuda121").manifest.on("linux-64").dependencies) & set(DECOYS)
    total = 0
    for place, data in lists.items():
        here = {kind: {} for kind in ("packages", "packages.conda")}
        for kind, rows in here.items():
            for file, record in sorted(data[kind].items()):
                decoy = place.startswith("conda-forge/") and record["name"] in named
                if f"{place_of(place)}/{file}" in wanted or (decoy and place.endswith(("/linux-64", "/noarch"))):
                    rows[file] = record
        total += sum(map(len, here.values()))
        if any(here.values()) or _is_beside(place, wanted):
            path = EXCERPT / place / "repodata.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            # One record a line: a diff shows which records came and went.
            path.write_text(_dump({"info": data["info"], **here}))
            _write_incomplete(folder / place / "less-complete.json", path.parent, set().union(*here.values()))
    print(f"{total} records")
    return 0


def _is_beside(place: str, wanted: set[str]) -> bool:
    """Tell whether a list without records is asked for together with one that has some."""
    channel, _, subdir = place.rpartition("/")
    return subdir == "noarch" and any(url.startswith(place_of(f"{channel}/linux-64")) for url in wanted)


def _write_incomplete(source: Path, folder: Path, files: set[str]) -> None:
    """Write down which records of the excerpt lack some of their fields."""
    known = set(json.loads(source.read_text())) if source.is_file() else set()
    if known & files:
        (folder / source.name).write_text(json.dumps(sorted(known & files), indent=1) + "\n")


def _dump(data: dict[str, Any]) -> str:
    rows = []
    for kind in ("packages", "packages.conda"):
        lines = (f"{json.dumps(file)}: {json.dumps(record, sort_keys=True)}" for file, record in data[kind].items())
        rows.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + f'"info": {json.dumps(data["info"])},\n' + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    leave(main())
