"""Whether the sources of a checkout are hipified: ``build_amd.py`` has converted them for ROCm, in place.

`tenv build` keeps a note of the changed files, with a script that undoes it. A checkout that was converted by hand has
files that no commit of PyTorch has.
"""

import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.core.files import digest

SCRIPT = "tools/amd_build/build_amd.py"
FOLDER = ".tenv/hipified"
"""The folder of the note in a checkout: the note, the lists of files, the script that undoes it."""
UNDO = f"{FOLDER}/undo.sh"
_MADE = "c10/hip/HIPMacros.h"
"""A file that every conversion from 1.1 on makes."""


@dataclass(frozen=True, slots=True)
class Hipified:
    """The files that a conversion has changed."""

    evidence: str
    """The file that tells so."""
    commit: str = ""
    """The commit that was converted; empty without git, or without a note."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """The digests of the files that it changed in place, after it."""
    new: tuple[str, ...] = ()
    """The files that it made."""
    whole: bool = False
    """Whether it came to its end."""
    noted: bool = False
    """Whether the note is there."""
    back: int = 0
    """The number of the files changed in place that git has taken back, or that were edited since."""

    @property
    def undo(self) -> str:
        """How it is undone, from the checkout's folder."""
        if self.noted:
            return f"sh {UNDO}"
        return "`git restore .` where nothing of yours is uncommitted; `git clean -nd` lists the files that it made"


def read_hipified(root: Path) -> Hipified | None:
    """Return the files that a conversion has changed in a checkout; None where there was none."""
    file = f"{FOLDER}/note.json"
    try:
        found = json.loads(read_text(root / file))
        changed, new = {str(name): str(value) for name, value in found["changed"].items()}, map(str, found["new"])
        note = Hipified(file, str(found["commit"]), changed, tuple(new), whole=found["whole"] is True, noted=True)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        note = None
    if note is not None and (note.changed or any((root / name).is_file() for name in note.new)):
        return note
    return Hipified(_MADE) if (root / _MADE).is_file() else None


def left_of(root: Path, found: Hipified | None) -> Hipified | None:
    """Return the files of a noted conversion that are still as it made them; None if all of them are gone.

    `git restore` takes changed files back, and the note stays.
    """
    if found is None or not found.noted:
        return found
    changed = {name: value for name, value in found.changed.items() if _has_digest(root / name, value)}
    new = tuple(name for name in found.new if (root / name).is_file())
    return replace(found, changed=changed, new=new, back=len(found.changed) - len(changed)) if changed or new else None


def _has_digest(path: Path, value: str) -> bool:
    try:
        return digest(path) == value
    except OSError:
        return False
