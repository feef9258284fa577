"""squashfs: an environment as one file, for file systems on which 15,000 small ones are slow, such as Lustre.

The image is for the folder in which the environment was made: scripts and notes hold that path, so tenv accepts it
there alone. Everything in it belongs to root, and it has no mark of a user.
"""

import shlex
from functools import partial
from pathlib import Path

from tenv.core import process
from tenv.core.errors import FormatError, HostError, StorageError
from tenv.core.files import storage_errors
from tenv.core.missing import Missing
from tenv.core.other_users import closed_below, closed_part
from tenv.core.prefix import ID_FILE, MARKER
from tenv.interop.interface import FILE, Exported, Format, Subject

_EVERYBODY = 0o005
_SECONDS = 3600.0
_OPTIONS = (
    "-noappend",
    "-quiet",
    "-no-progress",
    "-no-xattrs",
    "-all-root",
    "-comp",
    "zstd",
    "-Xcompression-level",
    "3",
)
"""Level 15, the default, takes minutes for a gigabyte."""


def _written(prefix: Path) -> tuple[int, int]:
    """Return the inode and the time of the state of an environment: each change of it writes another file."""
    info = (prefix / MARKER).stat()
    return info.st_ino, info.st_mtime_ns


def _pack(prefix: Path, written: tuple[int, int], file: Path) -> None:
    """Write the image of an environment.

    Args:
        prefix: The environment.
        written: Its state, as `_written` has it, when it was found ready.
        file: The image.

    Raises:
        HostError: There is no mksquashfs.
        StorageError: It can't be written, or the environment has changed meanwhile.
    """
    from tempfile import TemporaryDirectory  # late: few commands write an image

    program = process.find("mksquashfs", None)
    if program is None:
        raise HostError(
            "mksquashfs is not on PATH", hint="`apt install squashfs-tools` installs it on Debian and Ubuntu"
        )
    with storage_errors(f"can't write {file}"), TemporaryDirectory(prefix=f".{file.name}.", dir=file.parent) as folder:
        made = Path(folder, file.name)
        done = process.run([program, str(prefix), str(made), *_OPTIONS, "-e", ID_FILE], timeout=_SECONDS)
        if isinstance(done, Missing) or done.status:
            why = done.reason if isinstance(done, Missing) else (done.stderr or done.stdout).strip().split("\n")[-1]
            raise StorageError(f"can't write {file}: mksquashfs: {why}")
        if _written(prefix) != written:
            raise StorageError(f"{prefix} has changed while {file} was written", hint="run the same command again")
        made.replace(file)


def _export(subject: Subject) -> Exported:
    site = subject.site
    if site is None:
        raise ValueError("no environment")
    name, prefix = subject.manifest.name, site.prefix
    again = f"tenv create {name} --prefix {shlex.quote(str(prefix))} --for-others"
    if prefix.stat().st_mode & _EVERYBODY != _EVERYBODY:
        raise FormatError(f"{prefix} is closed to other users, and would be in the image", hint=f"`{again}` opens it")
    python = Path(site.toolchain.python).resolve()
    if site.python and (folder := closed_part(python, prefix)):
        raise FormatError(
            f"{python}, the Python of {prefix}, lies in {folder}, which other users can't enter",
            hint=f"`{again} --anew` takes one that they can run",
        )
    safe = prefix.parent if closed_below(prefix, prefix.parent) else prefix
    notes = [
        f"it is for {prefix} alone, by root: mount -o loop,ro,nosuid,nodev {FILE} {shlex.quote(str(prefix))}",
        f'users accept it by /etc/tenv/config.toml of root: safe-folders = ["{safe}"]',
    ]
    if site.python and not python.is_relative_to(prefix):
        notes.append(f"its Python is {python}, which each machine needs")
    asked = {name: row for on in subject.platforms for name, row in subject.manifest.on(on).wheels.items()}
    folders = {name: row.tree.folder for name, row in asked.items() if row.tree and row.tree.editable}
    notes += [f"{name} is imported from {folder}, which each machine needs" for name, folder in folders.items()]
    return Exported({f"{name}.sqfs": b""}, notes=tuple(notes), write=partial(_pack, prefix, _written(prefix)))


FORMAT = Format(name="squashfs", export=_export, needs_environment=True, holds_lock=False, whole=True)
