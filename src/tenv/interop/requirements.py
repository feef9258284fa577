"""The format ``requirements.txt``: all wheels with versions and hashes, for all platforms and Pythons."""

from collections.abc import Iterable, Mapping

from tenv.core.errors import FormatError, ManifestError
from tenv.core.versions import Version
from tenv.interop.drafts import DEFAULT_MINORS
from tenv.interop.interface import Draft, Exported, Format, GivenFile, Imported, Subject, text_of
from tenv.interop.pip_lines import PipLines, are_pip_lines
from tenv.interop.requests import PLATFORM_MARKERS, left_out, minors_of_range
from tenv.locks.lock import Wheel

__all__ = ["FORMAT", "index_options", "marker_of", "minors_of", "releases"]


def releases(subject: Subject, file: str) -> dict[tuple[str, str], list[tuple[str, Wheel]]]:
    """Return the wheels by name and version, each with its platform.

    Args:
        subject: The exported target.
        file: The file that can have only wheels.

    Raises:
        FormatError: There is no wheel.
    """
    found: dict[tuple[str, str], list[tuple[str, Wheel]]] = {}
    for platform in subject.platforms:
        for wheel in subject.wheels(platform):
            found.setdefault((wheel.name, wheel.version), []).append((platform, wheel))
    if not found:
        raise FormatError(
            f"{subject.lock.target} has no wheels, and {file} can have nothing else",
            hint=f"`tenv export explicit {subject.lock.target}` writes its conda packages",
        )
    return dict(sorted(found.items()))


def minors_of(subject: Subject) -> dict[str, set[str]]:
    """Return the Python minors that a target has wheels for, by platform."""
    found = {}
    for platform in subject.platforms:
        minor = subject.minor(platform)
        found[platform] = {minor} if minor else {minor for wheel in subject.wheels(platform) for minor in wheel.python}
    return found


def marker_of(every: Mapping[str, set[str]], rows: list[tuple[str, Wheel]]) -> str:
    """Return the marker of a release; empty if it applies everywhere.

    Args:
        every: The minors of the whole target, of `minors_of`.
        rows: The wheels of the release, each with its platform.
    """
    here: dict[str, set[str]] = {}
    for platform, wheel in rows:
        here.setdefault(platform, set()).update(set(wheel.python) & every[platform])
    if here == every:
        return ""
    pythons = {frozenset(minors) for minors in here.values()}
    if len(pythons) == 1 and next(iter(pythons)) == frozenset().union(*every.values()):
        return _any(PLATFORM_MARKERS[platform] for platform in here)
    if set(here) == set(every) and len(pythons) == 1:
        return _pythons(next(iter(pythons)))
    return _any(
        PLATFORM_MARKERS[platform]
        if minors == every[platform]
        else f"{PLATFORM_MARKERS[platform]} and ({_pythons(frozenset(minors))})"
        for platform, minors in here.items()
    )


def _any(markers: Iterable[str]) -> str:
    listed = list(markers)
    return listed[0] if len(listed) == 1 else " or ".join(f"({marker})" for marker in listed)


def _pythons(minors: frozenset[str]) -> str:
    return " or ".join(f'python_version == "{minor}"' for minor in sorted(minors, key=Version))


def index_options(subject: Subject) -> list[str]:
    """Return pip's options for the indexes that a lock names; hashes decide which of their files are taken."""
    indexes = [index for index in subject.lock.indexes if "://" in index.url]
    return [f"{'--find-links' if index.flat else '--extra-index-url'} {index.url}" for index in indexes]


def _export(subject: Subject) -> Exported:
    found, every = releases(subject, "requirements.txt"), minors_of(subject)
    lost = left_out(subject, conda=False)
    lines = [f"# The wheels of {subject.lock.target}; `pip install --no-deps --require-hashes -r` takes them."]
    lines += index_options(subject)
    for (name, version), rows in found.items():
        marker = marker_of(every, rows)
        hashes = dict.fromkeys(wheel.sha256 for _, wheel in rows)
        address = next(filter(None, (subject.address_of(platform, wheel) for platform, wheel in rows)), "")
        head = (f"{name} @ {address}" if address else f"{name}=={version}") + (f" ; {marker}" if marker else "")
        lines.append(" \\\n    ".join([head, *(f"--hash=sha256:{digest}" for digest in hashes)]))
    return Exported({"requirements.txt": ("\n".join(lines) + "\n").encode()}, tuple(lost))


def _read(source: GivenFile) -> Imported:
    lost: list[str] = []
    if not source.platforms:
        lost.append("the file has no platforms: linux-64 is used (`--platform` sets others)")
    platforms = source.platforms or ("linux-64",)
    notes: list[str] = []
    python = _lines(source, platforms, [], DEFAULT_MINORS).narrowed(notes)
    lines = _lines(source, platforms, lost, minors_of_range(python) if python else DEFAULT_MINORS)
    lines.finish()
    if not any(lines.tables.values()):
        raise ManifestError(f"{source.path}: has no requests")
    lost.append("requirements.txt has no files, so no lock is written: `tenv lock` writes one")
    sdists = tuple(dict.fromkeys(lines.sdists))
    draft = Draft(platforms, python=python, wheels=lines.tables, indexes=tuple(lines.indexes), sdists=sdists)
    return Imported("", draft, None, tuple(dict.fromkeys(lost)), tuple(dict.fromkeys([*notes, *lines.notes])))


def _lines(source: GivenFile, platforms: tuple[str, ...], lost: list[str], minors: tuple[str, ...]) -> PipLines:
    lines = PipLines(platforms, source.path.parent, lost, minors=minors)
    try:
        lines.read(text_of(source, ManifestError), source.path.parent)
    except ValueError as error:
        raise ManifestError(f"{source.path}:{error}") from error
    return lines


FORMAT = Format(
    name="requirements.txt",
    export=_export,
    read=_read,
    recognize=lambda name, head: (
        name.lower().endswith((".txt", ".in")) and ("requirements" in name.lower() or are_pip_lines(head))
    ),
)
