"""The origin of a build: target, lock, switches, compilers and commit, kept beside the build and in the package.

A wheel that was just built is changed for it: its members, the notes in its metadata, and the rows of its RECORD.
"""

import base64
import csv
import hashlib
import io
import json
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from importlib.metadata import PathDistribution, distributions
from pathlib import Path
from typing import Any

from tenv import __version__
from tenv.builds.build_job import BuildJob
from tenv.builds.switches import set_switches
from tenv.core.files import write_atomic
from tenv.core.prefix import CONSTRAINT
from tenv.core.versions import Version
from tenv.environment.built_torch import NOTE

PROVENANCE = NOTE

_SCHEMA = 1
_COMPILERS = ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_CUDA_COMPILER", "CMAKE_BUILD_TYPE", "CUDA_VERSION")


def provenance(job: BuildJob) -> dict[str, Any]:
    """Return where the build came from, as plain values."""
    cache = job.cmake_cache()
    state = job.environment.state()
    switches = {**set_switches(job.environ), **job.switches}
    archs = job.environ.get("TORCH_CUDA_ARCH_LIST", "")
    return {
        "schema": _SCHEMA,
        "tenv": __version__,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "target": job.target.name,
        "lock": state.lock if state else "",
        "prefix": str(job.environment.prefix),
        "checkout": str(job.checkout),
        "commit": _commit(job),
        "version": job.version,
        "way": job.found.way.value,
        "switches": switches | ({"TORCH_CUDA_ARCH_LIST": archs} if archs else {}),
        "build": {name: cache[name] for name in _COMPILERS if name in cache},
        "summary": job.summary,
        "portable": job.request.portable,
    }


def _commit(job: BuildJob) -> str:
    from tenv.core.git import repository_at

    repository = repository_at(job.checkout, job.context.environ) if (job.checkout / ".git").exists() else None
    if repository is None:
        return ""
    commit = repository.commit("HEAD") or ""
    changed = repository.ask("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
    return f"{commit}+changes" if commit and changed else commit


def is_built(job: BuildJob) -> bool:
    """Return whether everything has been built since the build folder was configured last."""
    try:
        return (job.notes / PROVENANCE).stat().st_mtime_ns >= job.stamp_file.stat().st_mtime_ns
    except OSError:
        return False


def installed_torch(job: BuildJob) -> PathDistribution | None:
    """Return the metadata of the torch that the environment's Python imports; None without one."""
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    for found in distributions(name="torch", path=[str(job.toolchain.site_packages), str(job.checkout)]):
        if isinstance(found, PathDistribution):
            return found
    return None


def write_provenance(job: BuildJob) -> list[Path]:
    """Write the origin of the build, and return the written files."""
    text = json.dumps(provenance(job), indent=1, sort_keys=True) + "\n"
    written = [job.notes / PROVENANCE]
    write_atomic(written[0], text)
    if job.extension:
        return written
    if job.request.wheel is not None:
        newest = built_wheel(job.request.wheel)
        if newest is None:
            return written
        edit_wheel(newest, {PROVENANCE: text})
        return [*written, newest]
    found = installed_torch(job)
    folder = Path(str(found._path)) if found else None  # noqa: SLF001 (importlib.metadata names no folder otherwise)
    if folder is not None and folder.is_dir():
        write_atomic(folder / PROVENANCE, text)
        written.append(folder / PROVENANCE)
    _constrain(job, found)
    return written


def _constrain(job: BuildJob, found: PathDistribution | None) -> None:
    """Keep pip and uv from replacing the torch that was built.

    A pip.conf of the environment names the constraint, and its activation does so for uv (UV_CONSTRAINT). torchvision,
    torchaudio and triton of other versions would bring another torch, or fail beside this one.
    """
    if found is None:
        return
    prefix = job.environment.prefix
    constraint = prefix / CONSTRAINT
    rows = {"torch": found.version, **{name: f"{minor}.*" for name, minor in companions(job, found.version).items()}}
    write_atomic(constraint, "".join(f"{name}=={version}\n" for name, version in rows.items()))
    conf = prefix / "pip.conf"  # read by the pip of this environment, whatever shell it is called from
    if not conf.exists() or str(constraint) in conf.read_text(encoding="utf-8", errors="replace"):
        write_atomic(conf, f"[install]\nconstraint = {constraint}\n")


def companions(job: BuildJob, version: str) -> dict[str, str]:
    """Return the minor versions of the packages that go with a built torch, by name.

    triton is the one of the environment, which the target took from the revision's own pin, if it has one.
    """
    assert job.toolchain is not None  # noqa: S101 (the environment is there)
    row = job.context.facts().pytorch_build.companions_of(version)
    known = row.minors() if row else {}
    for here in distributions(name="triton", path=[str(job.toolchain.site_packages)]):
        known["triton"] = Version(here.version).major_minor
    return known


def built_wheel(folder: Path) -> Path | None:
    """Return the wheel of torch that was written last to a folder; None without one."""
    found = [path for path in folder.glob("torch-*") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def edit_wheel(wheel: Path, notes: Mapping[str, str], change: Callable[[str, Path], bool] | None = None) -> None:
    """Change a wheel in place.

    Args:
        wheel: The wheel.
        notes: The texts to add to its metadata, by file name; one that is there is replaced.
        change: Receives the name of each member and a file of it; returns whether it has changed that file.

    Raises:
        OSError: The disk has no room for a second wheel, or for its largest member.
    """
    aside = wheel.with_suffix(".tmp")
    with (
        zipfile.ZipFile(wheel) as old,
        zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as new,
        tempfile.TemporaryDirectory(dir=wheel.parent, prefix=".edit-") as work,
    ):
        record = next(name for name in old.namelist() if name.endswith("/RECORD"))
        added = {f"{record.rpartition('/')[0]}/{name}": text.encode() for name, text in notes.items()}
        rows = dict[str, tuple[str, str]]()
        for entry in old.infolist():
            if entry.filename == record or entry.filename in added:
                continue
            if change is None or entry.is_dir():
                _copy(old, entry, new)
                continue
            file = Path(work, "member")
            with old.open(entry) as source, file.open("wb") as target:
                shutil.copyfileobj(source, target)
            if change(entry.filename, file):
                rows[entry.filename] = _row(file.read_bytes())
            with file.open("rb") as source, new.open(_like(entry), "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target)
        for name, content in added.items():
            new.writestr(name, content)
            rows[name] = _row(content)
        new.writestr(_like(old.getinfo(record)), _merged(old.read(record).decode(), rows))
    aside.replace(wheel)


def _copy(old: zipfile.ZipFile, entry: zipfile.ZipInfo, new: zipfile.ZipFile) -> None:
    if entry.is_dir():
        new.writestr(_like(entry), b"")
        return
    with old.open(entry) as source, new.open(_like(entry), "w", force_zip64=True) as target:
        shutil.copyfileobj(source, target)


def _like(entry: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return a member of the same name, time and mode, whose sizes and place are still to be written."""
    made = zipfile.ZipInfo(entry.filename, entry.date_time)
    made.external_attr, made.create_system, made.compress_type = (
        entry.external_attr,
        entry.create_system,
        zipfile.ZIP_DEFLATED,
    )
    return made


def _row(content: bytes) -> tuple[str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}", str(len(content))


def _merged(record: str, changed: Mapping[str, tuple[str, str]]) -> str:
    """Return a RECORD with new rows for changed and added files; the others stay."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    left = dict(changed)
    for row in csv.reader(io.StringIO(record)):
        if row:
            digest, size = left.pop(row[0], (row[1], row[2]))
            writer.writerow((row[0], digest, size))
    writer.writerows((name, *values) for name, values in left.items())
    return text.getvalue()
