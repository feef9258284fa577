"""How many instructions the short commands take, as callgrind counts them, and how many modules they load.

Unlike times, both hardly change from run to run, so a small step backwards is seen.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["lines"]

_COLLECTED = re.compile(r"Collected : (\d+)")
_IMPORTED = re.compile(r"import time: +(\d+) \| +\d+ \| *(\S+)")
_SHOWN = 3


def lines(tenv: Path, commands: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a table with a row for each command, the bare interpreter first.

    Args:
        tenv: The program, a script of the interpreter that runs this.
        commands: The arguments of each command.
        folder: Where they run.
        environment: Their environment variables.
    """
    yield "| command | million instructions | ratio | modules | slowest imports |"
    yield "|---|--:|--:|--:|---|"
    bare = 0
    for words in ((sys.executable, "-c", "pass"), *((str(tenv), *command) for command in commands)):
        program = words if words[0] == sys.executable else (sys.executable, *words)
        number = _instructions(program, folder, environment)
        bare = bare or number
        imports = _imports(program, folder, environment)
        slow = sorted(imports, key=lambda row: row[1], reverse=True)[:_SHOWN]
        named = ", ".join(f"{name} {time / 1000:.1f} ms" for name, time in slow)
        shown = " ".join(["python" if words[0] == sys.executable else "tenv", *words[1:]])
        counted = f"{number / 1e6:.0f} | {number / bare:.2f}" if number else "- | -"
        yield f"| `{shown}` | {counted} | {len(imports)} | {named} |"


def _instructions(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """Return how many instructions a program takes; 0 where it becomes another program, which ends the count."""
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words]
    done = subprocess.run(counted, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    found = _COLLECTED.search(done.stderr)
    return int(found[1]) if found else 0


def _imports(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return each imported module with the microseconds that it took by itself."""
    timed = [words[0], "-X", "importtime", *words[1:]]
    done = subprocess.run(timed, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return [(name, int(time)) for time, name in _IMPORTED.findall(done.stderr)]
