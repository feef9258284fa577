"""What Ninja would do: the tasks of a build that are not done yet, and what tasks took that are."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tenv.builds.task_costs import Task, TaskKind, kind_of
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.missing import Missing

__all__ = ["LogRow", "damage", "is_object", "kind_of_object", "read_log", "remaining", "targets"]

_STATUS = re.compile(r"^\[ *\d+/\d+\] ")
_SECONDS = 300.0
_OBJECT = re.compile(r"\.(cu|cpp|cc|cxx|c|S|s|asm)\.o(bj)?$")
_KINDS = {"cu": TaskKind.CUDA, "c": TaskKind.C, "S": TaskKind.C, "s": TaskKind.C, "asm": TaskKind.C}


def remaining(folder: Path, names: Iterable[str], environ: Mapping[str, str]) -> tuple[Task, ...] | None:
    """Return what Ninja has still to do for some of its targets; None where that can't be asked.

    The build file is named by its whole path: Ninja then does not know it for what CMake makes, and tells of the tasks
    instead of ending at "Re-running CMake", as PyTorch's globs would have it do each time. Where another generator was
    used, the compile commands are counted.
    """
    program = process.find("ninja", environ.get("PATH"))
    if program and (folder / "build.ninja").is_file():
        plain = {**environ, "NINJA_STATUS": "[%f/%t] "}
        words = [program, "-n", "-f", str(folder / "build.ninja"), *names]
        said = process.run(words, environment=plain, folder=folder, timeout=_SECONDS)
        if not isinstance(said, Missing) and said.status == 0:
            rows = [_STATUS.sub("", line) for line in said.stdout.splitlines() if _STATUS.match(line)]
            return tuple(task for row in rows if (task := kind_of(row)))
    return _commands(folder)


def damage(folder: Path, environ: Mapping[str, str]) -> str:
    """Return what Ninja says of a build file that it can't read; empty where it can, or where there is none.

    What it says of a missing source or target is not asked: CMake may be run again first, which makes the file anew.
    """
    program = process.find("ninja", environ.get("PATH"))
    if program is None or not (folder / "build.ninja").is_file():
        return ""
    said = process.run([program, "-t", "rules"], environment=environ, folder=folder, timeout=_SECONDS)
    if isinstance(said, Missing) or said.status == 0:
        return ""
    return next((line for line in said.stderr.splitlines() if line.startswith("ninja: error: ")), "")


def _commands(folder: Path) -> tuple[Task, ...] | None:
    try:
        rows = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
        outputs = [str(row.get("output") or f"{row['file']}.o") for row in rows]
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return tuple(Task(kind_of_object(output), output) for output in outputs)


def kind_of_object(output: str) -> TaskKind:
    """Return what makes an object, by its name; `TaskKind.OTHER` for what is no object."""
    match = _OBJECT.search(output)
    return _KINDS.get(match[1], TaskKind.CXX) if match else TaskKind.OTHER


@dataclass(frozen=True, slots=True)
class LogRow:
    """What Ninja's log has of an output.

    Attributes:
        start: When its task began, in milliseconds since the start of that Ninja.
        end: When it ended.
        stamp: The time stamp that Ninja notes; 0 in logs of old versions.
        command: The digest of the command; the outputs of one task share it.
    """

    start: int
    end: int
    stamp: int
    command: str

    @property
    def seconds(self) -> float:
        """How long the task took, elapsed."""
        return (self.end - self.start) / 1000


def read_log(folder: Path) -> dict[str, LogRow]:
    """Return Ninja's log by outputs, the latest last; empty where there is none.

    The log is in the order of the time stamps that Ninja notes, but where Ninja has rewritten it.
    """
    try:
        lines = (folder / ".ninja_log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, LogRow] = {}
    for line in lines:
        fields = line.split("\t")
        if len(fields) >= 4 and all(field.isdigit() for field in fields[:3]):  # noqa: PLR2004
            found.pop(fields[3], None)  # old versions of Ninja note no time: then the order of the lines counts
            found[fields[3]] = LogRow(int(fields[0]), int(fields[1]), int(fields[2]), "".join(fields[4:5]))
    return dict(sorted(found.items(), key=lambda row: row[1].stamp))


def is_object(output: str) -> bool:
    """Tell whether an output of Ninja is what a compiler makes of one source."""
    return _OBJECT.search(output) is not None


def targets(folder: Path, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the names of what Ninja can make."""
    program = process.find("ninja", environ.get("PATH"))
    if program is None or not (folder / "build.ninja").is_file():
        return frozenset()
    said = process.run([program, "-t", "targets", "all"], environment=environ, folder=folder, timeout=_SECONDS)
    if isinstance(said, Missing) or said.status:
        return frozenset()
    return frozenset(line.rpartition(": ")[0] for line in said.stdout.splitlines())
