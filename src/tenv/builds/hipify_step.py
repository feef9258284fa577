"""Step `hipify`: for a target with ROCm, PyTorch's own ``build_amd.py`` converts the sources in the checkout.

It changes tracked files and makes others beside them. So it runs over a clean work tree alone, its changes are
listed, and a script takes them back: from git, and from copies of the sources that git does not have. It is not run
again over its own results.
"""

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tenv.builds.build_job import BuildJob, Done, build_finding
from tenv.builds.logged_run import look_up, run_step
from tenv.checks.hipified import FOLDER, SCRIPT, UNDO, Hipified, read_hipified
from tenv.checks.rules.interface import Finding
from tenv.core.errors import UsageError
from tenv.core.files import digest, make_folder, write_atomic
from tenv.core.git import Repository, find_repository, repository_at
from tenv.core.size_text import some_of
from tenv.host.machine import current_platform

_SOURCE = f"{SCRIPT} of github.com/pytorch/pytorch"
_OTHERS = (".git", ".tenv", "build")
"""Folders of a checkout that hold no sources."""
_COPIES = f"{FOLDER}/copies"
_BEGUN = f"{FOLDER}/begun"
"""The file that stands from the start of a conversion to its note: after a kill or a loss of power there is no note."""
_SUFFIXES = (".cu", ".cuh", ".c", ".cc", ".cpp", ".h", ".in", ".hpp")
"""The suffixes of the files that hipify converts (``hipify`` in torch/utils/hipify/hipify_python.py)."""
_SHOWN = 10
_AT_ONCE = 100


def of_rocm(job: BuildJob) -> bool:
    """Return whether a build is one with ROCm."""
    return "rocm" in job.target.manifest.on(current_platform()).system


def hipify(job: BuildJob) -> Done:
    """Convert the sources, unless they are converted already."""
    before, refused = read_hipified(job.checkout), list(_refused(job))
    if any(finding.code not in job.request.allow for finding in refused):
        return Done(refused)
    commit = _commit(job)
    if before and _stands(job.checkout, before, commit) and not refused:
        return Done((), _facts(before, skipped=True), job.log("hipify"), (f"hipified already; undo: {before.undo}",))
    sizes, log = _sizes(job.checkout), job.log("hipify")
    _copy(job, sizes, before)
    make_folder(job.checkout / FOLDER)
    write_atomic(job.checkout / _BEGUN, "")
    status = None
    try:
        ran = run_step(job, _command(job), log, "hipify")
        status = ran.status
    finally:  # an interrupted conversion is to be undone, too
        after = _note(job.checkout, before, sizes, commit, whole=status == 0)
    if status:
        table = job.context.facts().build_failures
        return Done([*refused, look_up(ran, "TE992", "hipify", log, table)], _facts(after), log, tuple(_lines(after)))
    return Done(refused, _facts(after), log, tuple(_lines(after)))


def would_hipify(job: BuildJob) -> Done:
    """Tell whether the sources would be converted."""
    found, refused = read_hipified(job.checkout), list(_refused(job))
    if found and _stands(job.checkout, found, _commit(job)):
        return Done(refused, {"planned": True}, lines=(f"hipified already; undo: {found.undo}",))
    words = "would convert the sources, and list what it changes"
    return Done(refused, {"planned": True}, lines=(f"{shlex.join(_command(job))} {words}",))


def _stands(root: Path, found: Hipified, commit: str) -> bool:
    """Return whether a whole conversion of a commit is still there: git takes files back, and the note stays."""
    there = all(_is_own(root, name, found) for name in found.changed) and all((root / n).is_file() for n in found.new)
    return found.whole and found.commit == commit and there


def _command(job: BuildJob) -> list[str]:
    return [str(job.toolchain.python if job.toolchain else "python"), SCRIPT]


def _facts(found: Hipified, *, skipped: bool = False) -> dict[str, object]:
    return {"skipped": skipped, "changed": sorted(found.changed), "new": list(found.new), "undo": found.undo}


def _lines(found: Hipified) -> Iterator[str]:
    yield f"hipified: {len(found.changed)} files are changed in place, {len(found.new)} are new; all in {FOLDER}"
    names = sorted(found.changed)
    yield from (f"changed: {name}" for name in names[:_SHOWN])
    if len(names) > _SHOWN:
        yield f"and {len(names) - _SHOWN} more"
    yield f"undo: {found.undo}"


def _refused(job: BuildJob) -> Iterator[Finding]:
    """Yield why nothing may be converted."""
    root = job.checkout
    if not (root / SCRIPT).is_file():
        yield build_finding(
            "TE992", SCRIPT, "is not in the checkout, and ROCm needs it", str(root), _SOURCE, "see docs/build.md"
        )
        return
    goes_on = "`tenv build --allow TE991` converts them nevertheless"
    try:
        repository = find_repository(root, job.context.environ)
    except UsageError as error:
        yield build_finding(
            "TE991",
            str(root),
            "is in no git repository: what hipify changes in place could not be undone",
            str(error),
            _SOURCE,
            f"git init && git add -A && git commit -m base; {goes_on}",
        )
        return
    known = read_hipified(root)
    edits = _edited(root, repository, known)
    if not edits:
        return
    names = some_of(edits, _SHOWN)
    undone = f" after {known.undo}" if known and known.noted else ""
    by_hand = ""
    if (root / _BEGUN).is_file():
        by_hand = "; a conversion was killed here: `git restore .` takes it back where nothing of yours is uncommitted"
    elif known and not known.noted:
        by_hand = f"; {known.evidence} tells that {SCRIPT} was run here"
    yield build_finding(
        "TE991",
        edits[0],
        f"has uncommitted edits, and hipify changes files in place: {len(edits)} edited files ({names}){by_hand}",
        "git status --untracked-files=no",
        _SOURCE,
        f"git commit or git stash{undone}; {goes_on}",
    )


def _edited(root: Path, repository: Repository, known: Hipified | None) -> list[str]:
    """Return the tracked files with edits that no conversion made."""
    return [name for name in _edits(repository) if not _is_own(root, name, known)]


def _is_own(root: Path, name: str, known: Hipified | None) -> bool:
    """Return whether a file has the content that the conversion gave it."""
    value = known.changed.get(name, "") if known else ""
    return bool(value) and value == _digest(root / name)


def _digest(path: Path) -> str:
    try:
        return digest(path)
    except OSError:
        return ""


def _edits(repository: Repository, below: str = "") -> Iterator[str]:
    """Yield the tracked files that differ from the commit, those of submodules, too."""
    words = ("status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=no", "--ignore-submodules=untracked")
    for row in filter(None, (repository.ask(*words) or "").split("\0")):
        kind, _, rest = row.partition(" ")
        fields = rest.split(" ", 9 if kind == "u" else 7)
        if kind not in ("1", "u") or len(fields) < (10 if kind == "u" else 8):
            continue
        submodule, name = fields[1], fields[-1]
        if not submodule.startswith("S"):
            yield below + name
        elif submodule[2] == "M":  # another commit alone is no edit
            yield from _edits(repository.within(name), f"{below}{name}/")


def _commit(job: BuildJob) -> str:
    repository = repository_at(job.checkout, job.context.environ)
    return (repository.commit("HEAD") or "") if repository else ""


def _sizes(root: Path) -> dict[str, tuple[int, int]]:
    """Return the time and the size of each source; the conversion writes no file that stays the same."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name not in _OTHERS]
        folders[:] = [name for name in folders if name not in (".git", "__pycache__")]
        for name in files:
            path = Path(folder, name)
            try:
                status = path.lstat()
            except OSError:
                continue
            found[path.relative_to(root).as_posix()] = (status.st_mtime_ns, status.st_size)
    return found


def _copy(job: BuildJob, sizes: Mapping[str, tuple[int, int]], before: Hipified | None) -> None:
    """Copy the sources that no commit has: a conversion changes them, too, and git can't bring them back.

    A source that an earlier conversion has changed keeps its first copy.
    """
    root = job.checkout
    try:
        repository = find_repository(root, job.context.environ)
    except UsageError:
        return
    tracked = set((repository.ask("ls-files", "-z", "--recurse-submodules") or "").split("\0"))
    made = set(before.new if before else ())
    own = [name for name in sizes if name not in tracked and name not in made and name.endswith(_SUFFIXES)]
    for name in (*own, *_edited(root, repository, before)):
        if (root / name).is_file() and not (_is_own(root, name, before) and (root / _COPIES / name).is_file()):
            make_folder((root / _COPIES / name).parent)
            shutil.copy2(root / name, root / _COPIES / name)


def _note(
    root: Path, before: Hipified | None, sizes: Mapping[str, tuple[int, int]], commit: str, *, whole: bool
) -> Hipified:
    """Write the note of all changes, with the script that undoes it, and return it."""
    now = _sizes(root)
    old = before if before and before.noted else None
    new = {name for name in now if name not in sizes} | {name for name in (old.new if old else ()) if name in now}
    touched = {name for name, state in now.items() if name in sizes and sizes[name] != state}
    touched |= {*(old.changed if old else ())}
    changed = {name: value for name in sorted(touched - new) if (value := _digest(root / name))}
    folder = root / FOLDER
    make_folder(folder)
    found = Hipified(f"{FOLDER}/note.json", commit, changed, tuple(sorted(new)), whole=whole, noted=True)
    write_atomic(folder / "changed.sha256", "".join(f"{value}  {name}\n" for name, value in changed.items()))
    write_atomic(folder / "new.txt", "".join(f"{name}\n" for name in found.new))
    write_atomic(root / UNDO, _undo(root, found))
    rows = {"commit": commit, "whole": whole, "changed": changed, "new": found.new}
    write_atomic(folder / "note.json", json.dumps(rows, indent=1) + "\n")
    (root / _BEGUN).unlink(missing_ok=True)
    return found


def _undo(root: Path, found: Hipified) -> str:
    """Return the script that takes a conversion back; edits that were made since are not lost without a word."""
    lines = [
        "#!/bin/sh",
        f"# Takes back what {SCRIPT} changed.",
        "set -e",
        'cd "$(dirname "$0")/../.."',
    ]
    if found.changed:  # sha256sum refuses an empty list
        lines += [
            f'if [ "$1" != --force ] && ! sha256sum --quiet --check {FOLDER}/changed.sha256; then',
            f'  echo "edited since the conversion: save the edits, then run: sh {UNDO} --force" >&2',
            "  exit 1",
            "fi",
        ]
    groups: dict[str, list[str]] = {}
    copied = [name for name in found.changed if (root / _COPIES / name).is_file()]
    for name in found.changed if found.commit else ():
        if name not in copied:
            groups.setdefault(_repository_of(root, name), []).append(name)
    for folder, names in groups.items():
        below, place = f"{folder}/" if folder else "", shlex.quote(folder or ".")
        restore = f"git --literal-pathspecs -C {place} restore --source=HEAD --staged --worktree --"
        lines += _each(restore, [n.removeprefix(below) for n in names])
    lines += [f"cp -p -- {shlex.join((f'{_COPIES}/{name}', name))}" for name in copied]
    lines += _each("rm -f --", found.new)
    lines.append(f"rm -rf {FOLDER}")
    if left := 0 if found.commit else len(found.changed):
        lines.append(f'echo "{left} files stay as they are: git has no earlier content of them" >&2; exit 1')
    lines.append('echo "the sources are as they were"')
    return "\n".join(lines) + "\n"


def _each(command: str, names: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(names), _AT_ONCE):
        yield f"{command} {shlex.join(names[start : start + _AT_ONCE])}"


def _repository_of(root: Path, name: str) -> str:
    """Return the submodule of a file, as a path in the checkout; empty for the checkout itself."""
    parents = (root / name).parents
    found = next((folder for folder in parents if folder == root or (folder / ".git").exists()), root)
    return "" if found == root else found.relative_to(root).as_posix()
