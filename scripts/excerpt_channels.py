"""Write the excerpt of real package lists that the tests use: tests/data/channels.

    python scripts/excerpt_channels.py CHANNELS

CHANNELS is what `lock_targets.py` takes. The excerpt holds, as they stand there: every record that the lock of cuda121
names, every record that `cuda-toolkit 12.1` of the nvidia channel brings when nobody takes care, and, for both, every
other record of the packages that are asked for by name in cuda121, so that the solver has something to choose from.
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

from tenv.engine import session  # noqa: E402 (the path is set above)
from tenv.engine.network import Network  # noqa: E402
from tenv.lock import read_lock  # noqa: E402
from tenv.providers.conda import Conda  # noqa: E402
from tenv.providers.interface import Silent  # noqa: E402
from tenv.targets import find_places  # noqa: E402
from tests.channels import EXCERPT, Channels, place_of, read_folder  # noqa: E402
from tests.trap import read_trap  # noqa: E402

DECOYS = ("cmake", "cuda-nvcc", "cuda-version", "cudnn", "gxx_linux-64", "libnvjitlink-dev", "mkl-include", "python")


def urls(lists: dict[str, Any]) -> set[str]:
    """Return the packages that the excerpt is about."""
    lock = read_lock(ROOT / "locks" / "cuda121.lock", "cuda121")
    found = {package.url for packages in lock.conda.values() for package in packages}
    with Channels(lists) as channels, tempfile.TemporaryDirectory() as folder:
        os.environ["RATTLER_CACHE_DIR"] = folder
        answer = Conda(Network(channels.mirrors())).resolve(read_trap(Path(folder)), {}, Silent())
    return found | {record.url for records in answer.values() for record in records}


def main() -> int:
    """Write the excerpt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("channels", type=Path, help="the folder with the package lists")
    lists = read_folder(parser.parse_args().channels, ())
    wanted = urls(lists)
    named = set(find_places(ROOT).find("cuda121").manifest.dependencies) & set(DECOYS)
    total = 0
    for place, data in lists.items():
        here = {kind: {} for kind in ("packages", "packages.conda")}
        for kind, rows in here.items():
            for file, record in sorted(data[kind].items()):
                decoy = place.startswith("conda-forge/") and record["name"] in named
                if f"{place_of(place)}/{file}" in wanted or (decoy and place.endswith(("/linux-64", "/noarch"))):
                    rows[file] = record
        total += sum(map(len, here.values()))
        if place.endswith(("/linux-aarch64", "/win-64")):
            continue
        channel = place.rpartition("/")[0]
        if any(here.values()) or any(url.startswith(place_of(f"{channel}/linux-64")) for url in wanted):
            path = EXCERPT / place / "repodata.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            # One record a line: a diff shows which records came and went.
            path.write_text(_dump({"info": data["info"], **here}))
    print(f"{total} records")
    return 0


def _dump(data: dict[str, Any]) -> str:
    rows = []
    for kind in ("packages", "packages.conda"):
        lines = (f"{json.dumps(file)}: {json.dumps(record, sort_keys=True)}" for file, record in data[kind].items())
        rows.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + f'"info": {json.dumps(data["info"])},\n' + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    session.leave(main())
