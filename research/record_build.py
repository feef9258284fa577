"""Build a real PyTorch tree with `tenv build`, again and again, and keep what each build did.

    python research/record_build.py TREE TARGET JOURNAL [--trial NAME]... [--only NINJA_TARGET] [--tenv PROGRAM]

Each build adds lines to JOURNAL as it goes, so that one that is killed leaves what it had: one when it begins, with its
date, the tree's commit and how many of its files differ from it, the machine and its load; one for each step that ends,
and for each line that is said (the estimate, the time that is left); and one when the trial has ended, with the seconds
and the facts of each step, what was compiled and linked by Ninja's own log, the processor time, whether CMake ran, and
where the logs lie. `state` tells them apart: begun, step, said, ended. The trials:

- `build`: the build itself, which goes on where one was interrupted. The estimate is held against the time.
- `again`: the same command a second time.
- `day`: a new shell, an activation, a `create` with nothing to do, another debugpy, then the build.
- `edit`: one line more in one `.cpp`, then the build; afterwards the file is put back and built again.
- `second`: the tree is copied without its build folder beside JOURNAL, and built with the cache that the first filled.

The switches of the build (USE_CUDA=0 ...) are those of the caller's environment.
"""

import argparse
import datetime as dt
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = {name: shutil.which(name) or name for name in ("git", "bash")}
EDITED = "aten/src/ATen/native/TensorFactories.cpp"
DEBUGPYS = ("1.8.9", "1.8.14")
FEATURE = "\n[feature.debug.pypi-dependencies]\ndebugpy = "
SHOWN = 40
"""How many outputs of Ninja a line of the journal names."""


STEP = re.compile(r"([a-z]+): (ok|failed), .+")
"""How `tenv build` says that a step has ended."""


@dataclass(frozen=True)
class Journal:
    """A file of lines, each a JSON value, that grows while a build runs.

    Attributes:
        file: The file.
    """

    file: Path

    def add(self, row: dict[str, Any]) -> None:
        """Add a line, which is on disk when this returns."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())


@dataclass
class Tree:
    """A checkout, and how it is built.

    Attributes:
        folder: The checkout.
        target: The target.
        only: The target of Ninja that is built; empty for everything.
        tenv: The program.
        journal: What takes a line for each thing that a build does.
    """

    folder: Path
    target: str
    only: str
    tenv: str
    journal: Journal

    def git(self, *words: str) -> str:
        """Return what git says about the checkout; an empty text where it is none."""
        done = subprocess.run([PROGRAMS["git"], *words], cwd=self.folder, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    @property
    def described(self) -> dict[str, Any]:
        """The commit, and how far the files are from it."""
        changed = self.git("status", "--short", "--untracked-files=no").splitlines()
        return {"folder": str(self.folder), "commit": self.git("rev-parse", "HEAD"), "changed": len(changed)}

    @property
    def build_command(self) -> list[str]:
        """The command that builds."""
        return [self.tenv, "build", self.target, "--json", *(["--only", self.only] if self.only else [])]

    def ninja_log(self) -> list[str]:
        """Return the rows of Ninja's log, of all build folders of the checkout."""
        logs = [self.folder / "build/.ninja_log", *self.folder.glob(".tenv/build/*/.ninja_log")]
        return [line for log in logs if log.is_file() for line in log.read_text(encoding="utf-8").splitlines()]

    def cmake_times(self) -> list[int]:
        """Return when CMake last wrote each build folder's rules."""
        rules = [self.folder / "build/build.ninja", *self.folder.glob(".tenv/build/*/build.ninja")]
        return [rule.stat().st_mtime_ns for rule in rules if rule.is_file()]

    def shell(self, line: str) -> None:
        """Run a line in a new shell.

        Raises:
            SystemExit: It failed.
        """
        done = subprocess.run(
            [PROGRAMS["bash"], "-c", line], cwd=self.folder, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{line}: status {done.returncode}\n{done.stdout}{done.stderr}")


def recorded(name: str, tree: Tree, words: Sequence[str]) -> dict[str, Any]:
    """Run a command that builds, add lines to the journal meanwhile, and return that of its end."""
    log, rules, begun, used = tree.ninja_log(), tree.cmake_times(), time.monotonic(), processor_seconds()
    load = os.getloadavg()[0]
    row: dict[str, Any] = {
        "trial": name,
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "tree": tree.described,
        "machine": {"cores": os.cpu_count(), "load": round(load, 2)},
        "command": shlex.join(words),
    }
    tree.journal.add({**row, "state": "begun"})
    status, said = watched(name, tree, words)
    answer = said.get("data") or {}
    made = [line.split("\t")[3] for line in tree.ninja_log()[len(log) :] if "\t" in line]
    row |= {
        "state": "ended",
        "status": status,
        "seconds": round(time.monotonic() - begun, 1),
        "processor": round(processor_seconds() - used, 1),
        "steps": {step["name"]: [step["ok"], step["seconds"]] for step in answer.get("steps", ())},
        "facts": {step["name"]: _short(step["facts"]) for step in answer.get("steps", ())},
        "error": said.get("error"),
        "torch": answer.get("torch"),
        "made": len(made),
        "objects": sum(name.endswith(".o") for name in made),
        "outputs": made[:SHOWN],
        "cmake_ran": tree.cmake_times() != rules,
        "logs": [step["log"] for step in answer.get("steps", ()) if step["log"]],
    }
    return row


def watched(name: str, tree: Tree, words: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """Run a command that builds, and return its status and what it printed; each line that it says is kept at once."""
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        child = subprocess.Popen(words, cwd=tree.folder, stdout=printed, stderr=subprocess.PIPE, text=True)
        with child:
            for line in child.stderr or ():
                sys.stderr.write(line)
                row: dict[str, Any] = {"trial": name, "state": "said", "line": line.rstrip()}
                if match := STEP.fullmatch(line.rstrip()):
                    row |= {"state": "step", "step": match[1], "ok": match[2] == "ok"}
                tree.journal.add({**row, "at": round(time.monotonic() - begun, 1), "load": os.getloadavg()[0]})
        printed.seek(0)
        try:
            said = json.load(printed)
        except ValueError:  # it was killed before it could print
            said = {}
    return child.returncode, said


def processor_seconds() -> float:
    """Return the processor time of all programs that have ended below this one."""
    counted = os.times()
    return counted.children_user + counted.children_system


def _short(facts: Any) -> Any:
    """Leave out what a line can't hold: lists and tables of more than some entries."""
    if isinstance(facts, dict):
        return {name: _short(value) for name, value in facts.items() if not _long(value)}
    return facts


def _long(value: Any) -> bool:
    return isinstance(value, list | dict) and len(value) > SHOWN


def trial_build(tree: Tree, _: Path) -> dict[str, Any]:
    """Build, and hold the estimate against the time."""
    row = recorded("build", tree, tree.build_command)
    estimate = row["facts"].get("build", {}).get("estimate")
    spent = row["facts"].get("build", {}).get("spent", {}).get("compiling")
    return {**row, "estimate": estimate, "ratio": round(spent / estimate, 2) if spent and estimate else None}


def trial_again(tree: Tree, _: Path) -> dict[str, Any]:
    """Build a second time."""
    return recorded("again", tree, tree.build_command)


def trial_day(tree: Tree, _: Path) -> dict[str, Any]:
    """Do what people do between two builds, then build."""
    tenv, target = shlex.quote(tree.tenv), tree.target
    manifest = tree.folder / "manifests" / f"{target}.toml"
    for version in DEBUGPYS:
        text = manifest.read_text(encoding="utf-8").partition(FEATURE)[0]
        manifest.write_text(f'{text}{FEATURE}"{version}"\n', encoding="utf-8")
        tree.shell(f"{tenv} lock {target} && {tenv} create {target} --with debug")
    tree.shell(
        f'eval "$({tenv} activate {target} --shell bash)" && {tenv} create {target} && python -c "import debugpy"'
    )
    line = f'eval "$({tenv} activate {target} --shell bash)" && exec {shlex.join(tree.build_command)}'
    return recorded("day", tree, ["env", "-i", *_kept(), "bash", "-c", line])


def _kept() -> list[str]:
    """Return the variables that a new shell of the same user has, and the switches of the build."""
    names = ("HOME", "PATH", "TERM", "LANG", "MAX_JOBS", "SSL_CERT_FILE")
    switches = [name for name in os.environ if name.startswith(("USE_", "BUILD_", "UV_", "PIP_"))]
    return [f"{name}={os.environ[name]}" for name in (*names, *switches) if name in os.environ]


def trial_edit(tree: Tree, _: Path) -> dict[str, Any]:
    """Edit one source and build; then put it back and build again."""
    source = tree.folder / EDITED
    held = source.read_bytes()
    try:
        source.write_bytes(held + b"\nnamespace at::native { int tenv_was_here() { return 1; } }\n")
        return recorded("edit", tree, tree.build_command)
    finally:
        source.write_bytes(held)
        tree.journal.add(recorded("put back", tree, tree.build_command))


def trial_second(tree: Tree, place: Path) -> dict[str, Any]:
    """Build a copy of the checkout with the cache that the first has filled."""
    copy = place / "second" / tree.folder.name
    shutil.rmtree(copy.parent, ignore_errors=True)
    ignored = tree.git("ls-files", "--others", "--ignored", "--exclude-standard", "--directory").splitlines()
    # A submodule whose files lie in the tree itself may be ignored in parts, and is no product.
    products = {name.rstrip("/") for name in ignored if not name.startswith("third_party/")}

    def made(name: str, entries: list[str]) -> set[str]:
        inside = Path(name).relative_to(tree.folder)
        return {entry for entry in entries if str(inside / entry) in products}

    shutil.copytree(tree.folder, copy, symlinks=True, ignore=made)
    return recorded("second", Tree(copy, tree.target, tree.only, tree.tenv, tree.journal), tree.build_command)


TRIALS: dict[str, Callable[[Tree, Path], dict[str, Any]]] = {
    "build": trial_build,
    "again": trial_again,
    "day": trial_day,
    "edit": trial_edit,
    "second": trial_second,
}


def main() -> int:
    """Run the trials, and add their lines to the journal."""
    parser = argparse.ArgumentParser(description="Build a real PyTorch tree, and keep what each build did.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("target")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--trial", action="append", choices=TRIALS)
    parser.add_argument("--only", default="")
    parser.add_argument("--tenv", default=shutil.which("tenv") or "tenv")
    given = parser.parse_args()
    journal = Journal(given.journal.resolve())
    tree = Tree(given.tree.resolve(), given.target, given.only, given.tenv, journal)
    failed = False
    for name in given.trial or TRIALS:
        row = TRIALS[name](tree, journal.file.parent)
        failed = failed or bool(row["status"])
        journal.add(row)
        print(json.dumps(row, indent=1), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
