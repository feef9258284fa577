"""Marks: which prefixes this user has made, kept where no repository, archive or copy can bring them from.

A prefix holds an id, 128 random bits, in ``tenv-meta/id``. The user's data folder holds a file of that name, with where
the prefix was made, its owner and its inode. The two together are the mark. A ``.tenv`` that came with a clone has no
id that this user's data folder knows; a copy has one that is known for another folder.

A mark is lines of text and no JSON, since shells read it too:

1. the prefix, all links resolved
2. the owner of the prefix, by number
3. the inode of the prefix, which a renamed folder keeps and a copy does not have
4. and following: the files without which a shell does not run the stored script, relative to the prefix; a link is
   followed by ``=`` and the path that it leads to, so that a link to another program is seen

The file is written after the scripts of the prefix, so that a script that is newer than its mark was changed since.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import StorageError
from tenv.core.files import make_folder, read_regular, same_file, write_atomic
from tenv.core.other_users import closed_below, is_own, open_below
from tenv.core.prefix import ID_FILE, MARKS, META

_ID = re.compile(r"[0-9a-f]{32}")
_LINES = 3
_MOST = 65536


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a prefix in the user's data folder."""

    real: Path
    """The prefix, all links resolved."""
    owner: int
    """Its owner, by number."""
    inode: int
    """Its inode."""

    def is_at(self, prefix: Path) -> bool:
        """Tell whether a prefix is the folder that was marked, where it was marked."""
        return same_file(self.real, prefix)

    def is_moved_to(self, prefix: Path) -> bool:
        """Tell whether a prefix is the marked folder under another name: it was renamed and not copied."""
        return prefix.stat().st_ino == self.inode and not self.is_at(prefix)


@dataclass
class Registry:
    """The marks of this user, and the folders that count without one."""

    data: Path
    """The user's data folder of tenv."""
    named: Callable[[], Iterable[Path]]
    """Returns the folders that the user's settings name as safe; asked only where a mark does not decide."""

    @property
    def folder(self) -> Path:
        """The folder of marks."""
        return self.data / MARKS

    def read_id(self, prefix: Path) -> str:
        """Return the id in a prefix; an empty text where there is none."""
        with contextlib.suppress(OSError, ValueError):
            text = read_regular(prefix / ID_FILE, _MOST).decode().strip()
            return text if _ID.fullmatch(text) else ""
        return ""

    def find(self, prefix: Path) -> Mark | None:
        """Return the mark that belongs to the id in a prefix; None without an id, or with one that is not known."""
        name = self.read_id(prefix)
        if not name:
            return None
        path = self.folder / name
        with contextlib.suppress(OSError, ValueError):
            if not is_own(path):
                return None
            lines = read_regular(path, _MOST).decode("utf-8", "surrogateescape").split("\n")
            if len(lines) > _LINES and "\0" not in lines[0]:
                return Mark(Path(lines[0]), int(lines[1]), int(lines[2]))
        return None

    def is_marked(self, prefix: Path) -> bool:
        """Tell whether a prefix carries a mark of this user for this very place, and has the owner that it had."""
        mark = self.find(prefix)
        return mark is not None and mark.is_at(prefix) and mark.owner == prefix.stat().st_uid

    def is_safe(self, prefix: Path) -> bool:
        """Tell whether a prefix lies in a folder that the user's settings name.

        Only its owner may write it: else anybody could put programs there that the user would run. The user is to judge
        the folders above the named one; of several folders that hold each other, one is enough.
        """
        meta = Path(os.path.realpath(prefix)) / META
        return any(closed_below(meta, Path(os.path.realpath(named))) for named in self.named())

    def open_part(self, prefix: Path) -> Path | None:
        """Return the folder for whose sake a prefix is not safe, though the settings name it or one above it.

        More users than its owner can write that folder. None where no such folder is named.
        """
        meta = Path(os.path.realpath(prefix)) / META
        folders = [Path(os.path.realpath(named)) for named in self.named()]
        return next((open_below(meta, folder) for folder in folders if meta.is_relative_to(folder)), None)

    def is_shared(self, prefix: Path) -> bool:
        """Tell whether a prefix is another user's, or can't be written, so that no id is put there."""
        return not is_own(prefix) or not os.access(prefix / META, os.W_OK)

    def mark(self, prefix: Path, needs: Sequence[str] = ()) -> None:
        """Mark a prefix as made by this user.

        A data folder that can't be written is no obstacle to an environment elsewhere: it stays without a mark, and
        `create` prints how to accept it.

        Args:
            prefix: The folder, which is there.
            needs: The files without which a shell does not run the stored script, relative to it.

        Raises:
            StorageError: The mark can't be written, and the prefix lies in the data folder itself.
        """
        import secrets  # late: few commands mark a prefix

        info = prefix.stat()
        known = self.find(prefix)
        name = self.read_id(prefix) if known and (known.is_at(prefix) or known.is_moved_to(prefix)) else ""
        try:
            new = name or secrets.token_hex(16)
            needed = (
                f"{name}={os.path.realpath(prefix / name)}" if (prefix / name).is_symlink() else name for name in needs
            )
            lines = (os.path.realpath(prefix), str(info.st_uid), str(info.st_ino), *needed)
            if not self.folder.is_dir():
                make_folder(self.folder)
                self.folder.chmod(0o700)
            text = "".join(f"{line}\n" for line in lines)
            write_atomic(self.folder / new, text.encode("utf-8", "surrogateescape"), durable=True)
            if not name:  # last, so that no process sees an id in the prefix that the data folder does not know
                write_atomic(prefix / ID_FILE, new + "\n", durable=True, within=prefix)
        except StorageError:
            if prefix.is_relative_to(self.data):
                raise

    @contextlib.contextmanager
    def forgetting(self, prefix: Path) -> Iterator[None]:
        """Remove the mark of a prefix that the body removes.

        The mark goes after the folder: meanwhile another process would take the folder for a stranger's.
        """
        name = self.read_id(prefix) if self.is_marked(prefix) else ""
        yield
        if name:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()
