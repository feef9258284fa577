"""Run many random kills and races, and go on where the last run stopped: ``python -m tests.faults.hammer FILE``.

FILE is the journal: one line for each kill and each race that passed, with the seed that it was drawn from.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

_TESTS = Path(__file__).with_name("test_random_kills.py")


def main() -> int:
    """Run them, print the counts of the journal, and return the status of the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("journal", type=Path)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--races", type=int, default=1000, help="commands, eight in a race")
    parser.add_argument("--seed", default="20261122")
    given = parser.parse_args()
    variables = {
        "TENV_TESTS_KILLS": str(given.kills),
        "TENV_TESTS_RACES": str(given.races),
        "TENV_TESTS_SEED": given.seed,
        "TENV_TESTS_JOURNAL": str(given.journal.absolute()),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(_TESTS)]
    status = subprocess.run(command, env={**os.environ, **variables}, check=False).returncode
    lines = given.journal.read_text().splitlines() if given.journal.is_file() else []
    counts = Counter(line.split("\t")[1] for line in lines if line.split("\t")[0] == given.seed)
    sys.stdout.write(f"seed {given.seed}: {counts['kill']} kills, {counts['race'] * 8} commands in races\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
