"""Measure each command at 1, 10, 32 and 100 times the size of what it reads, and fit the exponent.

Install tenv in a virtual environment, and run with its interpreter:

    python benchmarks/scale.py --rounds 3

The largest sizes are a lock of 5,000 packages, a manifest of 300 lines, 200 targets, 100 environments and 100,000 host
reports. The CPU times t of the last three sizes n are taken for a + b * n**k, where a is the start of the program; k is
the exponent. A growth that is too small to be fitted is named as such. `--only reports` runs the axes whose name holds
that word.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports import machine
from sides import Run, run

from tenv.locks.lock_file import read_lock, render_lock
from tenv.targets.search import find_places

TENV = Path(sys.executable).with_name("tenv")
STEPS = (1, 10, 32, 100)
MOST = 1.1
FLAT = 1.5
"""How many times the memory of the smallest size the largest may take to be named flat."""
MEASURABLE = 0.03
"""Seconds by which the times of two sizes must differ for an exponent to be fitted."""
TARGET = "cpu"


@dataclass(frozen=True)
class Axis:
    """Something that may be small or large.

    Attributes:
        name: Its name, in the plural.
        base: Its smallest size.
        make: Makes one of a size in a new project.
        commands: What reads it; `{}` is the folder of the project.
    """

    name: str
    base: int
    make: Callable[[Path, int], None]
    commands: Sequence[tuple[str, ...]]


def lock(folder: Path, size: int) -> None:
    """Write a target whose lock has many wheels for this platform."""
    places = find_places(folder)
    found = places.find(TARGET)
    whole = read_lock(found.lock_file, TARGET)
    on = "linux-64"
    rows = whole.wheels[on]
    many = []
    for number in range(size):
        one = rows[number % len(rows)]
        name = f"package-{number}"
        file = f"package_{number}-{one.version}-py3-none-any.whl"
        digest = f"{number:064x}"
        many.append(replace(one, name=name, file=file, sha256=digest, requires=(f"package-{max(0, number - 1)} >= 0",)))
    (folder / "locks").mkdir()
    conda, _, _ = found.lock_file.read_text(encoding="utf-8").partition("\ntenv:")
    large = replace(whole, wheels={**whole.wheels, on: tuple(sorted(many, key=lambda wheel: wheel.name))})
    (folder / "locks" / f"{TARGET}.lock").write_bytes(render_lock(large, conda))


def manifest(folder: Path, size: int) -> None:
    """Write a target with many lines."""
    target(folder, "large", "".join(f'package-{number} = ">={number}"\n' for number in range(size)))


def targets(folder: Path, size: int) -> None:
    """Write many small targets."""
    for number in range(size):
        target(folder, f"target{number}", 'ninja = "*"\n')


def target(folder: Path, name: str, wheels: str) -> None:
    (folder / "manifests").mkdir(exist_ok=True)
    text = (
        'description = "A target of a benchmark"\nplatforms = ["linux-64"]\npython = ">=3.11,<3.14"\n\n'
        f'[requirements]\nglibc = "2.17"\ncuda = "12.6"\n\n[pypi-dependencies]\n{wheels}'
    )
    (folder / "manifests" / f"{name}.toml").write_text(text, encoding="utf-8")


def environments(folder: Path, size: int) -> None:
    """Make many environments, each of a target of its own."""
    for number in range(size):
        name = f"small{number}"
        text = f'description = "Nothing"\nplatforms = ["linux-64"]\npython = "=={sys.version_info.major}.'
        (folder / "manifests").mkdir(exist_ok=True)
        (folder / "manifests" / f"{name}.toml").write_text(f'{text}{sys.version_info.minor}.*"\n', encoding="utf-8")
        for words in (("lock", name), ("create", name, "--quiet")):
            subprocess.run([TENV, *words], cwd=folder, env=environ(folder), check=True, capture_output=True)


def reports(folder: Path, size: int) -> None:
    """Write a file with a report a line, and a folder with a file each."""
    asked = subprocess.run([TENV, "host", "--json"], cwd=folder, env=environ(folder), check=True, capture_output=True)
    plain = json.loads(asked.stdout)["data"]
    (folder / "fleet").mkdir()
    with (folder / "fleet.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(size):
            text = json.dumps(machine(plain, number))
            lines.write(f"{text}\n")
            (folder / "fleet" / f"node{number}.json").write_text(text, encoding="utf-8")


FLEET = [
    (command, "--against", where, *more)
    for command in ("check-driver", "check")
    for where, more in (("fleet.jsonl", ()), ("fleet.jsonl", ("--json",)), ("fleet", ()))
]
AXES = (
    Axis(
        "packages in a lock",
        50,
        lock,
        [("show", TARGET), ("tree", TARGET), ("packages", TARGET), ("check", TARGET), ("targets",)],
    ),
    Axis("lines of a manifest", 3, manifest, [("show", "large"), ("check", "large"), ("check-driver", "large")]),
    Axis("targets", 2, targets, [("targets",), ("check-driver",), ("check", "--against", "../one.json")]),
    Axis("environments", 1, environments, [("list",), ("targets",)]),
    Axis("reports", 1000, reports, FLEET),
)


def environ(folder: Path) -> dict[str, str]:
    dropped = ("PWD", "VIRTUAL_ENV", "PYTHON", "TENV_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    # The short way of a command reads less than the command, so the whole program is measured.
    return plain | {"XDG_DATA_HOME": str(folder / "data"), "XDG_CONFIG_HOME": str(folder / "config"), "TENV_QUICK": "0"}


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float | None:
    """Return k of t = a + b * n**k for three times at three growing sizes; None if the times hardly differ.

    The start of the program, a, falls out of the differences, whose ratio grows with k.
    """
    first, second = seconds[1] - seconds[0], seconds[2] - seconds[1]
    if first < MEASURABLE or second < MEASURABLE:
        return None
    low, high = 0.01, 5.0
    while high - low > 0.001:  # noqa: PLR2004 (more digits than are printed)
        k = (low + high) / 2
        small, middle, large = (size**k for size in sizes)
        low, high = (k, high) if (large - middle) / (middle - small) < second / first else (low, k)
    return low


def measure(folder: Path, words: Sequence[str], rounds: int) -> Run:
    """Return the round of a command with the least CPU time; a status of 1 is an answer, too."""
    command = ["sh", "-c", '"$@" || [ $? = 1 ]', "sh", str(TENV), *words]
    return min((run(command, folder, environ(folder)) for _ in range(rounds)), key=lambda one: one.cpu)


def rows(axis: Axis, top: Path, rounds: int) -> Iterator[tuple[str, bool]]:
    """Yield a line of the table for each command, and whether it grows as it should."""
    folders = []
    for step in STEPS:
        size = axis.base * step
        folder = top / f"{axis.name.replace(' ', '-')}-{size}"
        folder.mkdir()
        (folder / "tenv.toml").touch()
        axis.make(folder, size)
        folders.append(folder)
    for words in axis.commands:
        runs = [measure(folder, words, rounds) for folder in folders]
        found = exponent([axis.base * step for step in STEPS[1:]], [one.cpu for one in runs[1:]])
        times = " | ".join(f"{one.cpu * 1000:.0f} ms" for one in runs)
        memory = ", ".join(f"{one.memory >> 20}" for one in runs)
        flat = runs[-1].memory <= FLAT * runs[0].memory
        sizes = f"{axis.base:,} to {axis.base * STEPS[-1]:,} {axis.name}"
        fitted = "too little" if found is None else f"{found:.2f}"
        fine = found is None or found <= MOST
        line = f"| `{' '.join(words)}` | {sizes} | {times} | {fitted} | {memory} MiB | {'yes' if flat else 'no'} |"
        yield line, fine
    for folder in folders:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how commands grow with what they read.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="the axes whose name holds this text")
    parser.add_argument("--folder", type=Path, help="where the projects are made")
    given = parser.parse_args()
    bad = []
    print("| command | sizes | CPU, 1-fold | 10-fold | 32-fold | 100-fold | exponent | memory | flat |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="tenv-scale-", dir=given.folder) as name:
        top = Path(name).resolve()
        asked = subprocess.run([TENV, "host", "--json"], cwd=top, env=environ(top), check=True, capture_output=True)
        (top / "one.json").write_bytes(asked.stdout)
        for axis in AXES:
            if given.only in axis.name:
                for line, fine in rows(axis, top, given.rounds):
                    print(line, flush=True)
                    bad += [] if fine else [line]
    if bad:
        raise SystemExit(f"{len(bad)} commands grow with an exponent above {MOST}")


if __name__ == "__main__":
    main()
