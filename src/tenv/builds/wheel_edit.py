"""Change a wheel that was just built: its members, what is added to it, and the rows of its RECORD."""

import base64
import csv
import hashlib
import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["built_wheel", "edit_wheel"]


def built_wheel(folder: Path) -> Path | None:
    """Return the wheel of torch that was written last to a folder; None where there is none."""
    found = [path for path in folder.glob("torch-*") if path.is_file()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def edit_wheel(wheel: Path, notes: Mapping[str, str], change: Callable[[str, Path], bool] | None = None) -> None:
    """Change a wheel in place.

    Args:
        wheel: The wheel.
        notes: The texts to add to its metadata, by file name; one that is there is replaced.
        change: Is given the name of each member and a file of it, and tells whether it has changed that file.

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
    """Return a RECORD with the rows of what has changed or was added; the others stay as they are."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    left = dict(changed)
    for row in csv.reader(io.StringIO(record)):
        if row:
            digest, size = left.pop(row[0], (row[1], row[2]))
            writer.writerow((row[0], digest, size))
    writer.writerows((name, *values) for name, values in left.items())
    return text.getvalue()
