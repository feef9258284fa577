"""The commit that tenv was installed from, read from files alone.

`tenv --version` prints it and starts no git and loads no library.
"""

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MOST = 1 << 20
_DIGITS = frozenset("0123456789abcdef")


def source_commit(package: str = _PACKAGE) -> str:
    """Return the commit of the checkout that tenv runs from, or that its wheel or an installer noted; empty if none is.

    Args:
        package: The folder of the package.
    """
    above, folder = os.path.split(os.path.dirname(package))
    found = _of_checkout(above) if folder == "src" else ""
    found = found or _read(f"{package}/commit.txt").strip()  # by scripts/note_commit.py
    if not found and folder != "src":
        found = _of_installer(os.path.dirname(package))
    return found if len(found) >= 40 and _DIGITS.issuperset(found) else ""  # noqa: PLR2004 (sha1; sha256 is longer)


def _of_checkout(root: str) -> str:
    """Return the commit that HEAD of a checkout or of a worktree leads to."""
    git = f"{root}/.git"
    if link := _read(git):  # a worktree, or a submodule
        git = os.path.join(root, link.removeprefix("gitdir:").strip())
    head = _read(f"{git}/HEAD").strip()
    name = head.removeprefix("ref: ")
    if name == head:
        return head
    if common := _read(f"{git}/commondir").strip():
        git = os.path.join(git, common)
    if commit := _read(f"{git}/{name}").strip():
        return commit
    rows = (line.split(" ", 1) for line in _read(f"{git}/packed-refs").splitlines() if " " in line)
    return next((commit for commit, ref in rows if ref == name), "")


def _of_installer(site: str) -> str:
    """Return the commit that pip or uv noted for an installation from git (PEP 610)."""
    from tenv import __version__

    starts = tuple(f"{name}-{__version__}." for name in ("torch_tenv", "tenv"))
    try:
        records = [name for name in os.listdir(site) if name.startswith(starts)]
    except OSError:
        return ""
    for name in records:
        note = _read(f"{site}/{name}/direct_url.json")
        before, _, after = note.partition('"commit_id"')
        if before and after:
            return after.partition('"')[2].partition('"')[0]
    return ""


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read(_MOST)
    except OSError:
        return ""
