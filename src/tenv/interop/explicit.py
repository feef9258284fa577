"""The format of explicit lists (``@EXPLICIT``): the URL of each conda package with its hash, one file per platform.

``conda create --file``, ``micromamba create -f`` and ``mamba`` install them without a solver. The part after ``#`` is
an MD5, which every version of conda reads, or ``sha256:`` and a sha256, which conda reads since 23.11 and micromamba
since 1.0. Wheels are in comments, ``# pip NAME @ URL#sha256=…``, as conda-lock writes them: ``conda-lock install`` and
micromamba install them, conda ignores them.
"""

import re
from collections.abc import Iterator
from typing import Any

from tenv.core.errors import FormatError, LockCorruptError
from tenv.core.names import CondaFile, Digest, WheelFile, channel_of, channel_word, conda_address
from tenv.core.untrusted import address_fault, without_login
from tenv.interop.conda_list import is_conda_list, read_conda_list
from tenv.interop.interface import Draft, Exported, ForeignLock, Format, GivenFile, Imported, Subject, minor_of, text_of
from tenv.interop.requests import asked_as, left_out, other_channels, pin, sdist_at, wheel_at
from tenv.locks.lock import CondaPackage, LockedTree, Wheel
from tenv.targets.manifest import PLATFORMS, WheelRequest

_LINE = re.compile(r"(?P<url>[a-z]+://[^\s#]+)(#(?P<digest>\S+))?")
_PIP = re.compile(r"#\s*pip\s+(?P<name>\S+)\s*@\s*(?P<url>[^\s#]+)(?:#|\s+--hash=)(?P<digest>\S+)")


def _export(subject: Subject) -> Exported:
    files, lost = {}, left_out(subject, wheels=subject.has_conda_python())
    for platform in subject.platforms:
        packages = subject.lock.conda.get(platform, ())
        if not packages:
            lost.append(f"{platform} has no conda packages, so no list is written for it")
            continue
        lines = [f"# platform: {platform}", "@EXPLICIT", *(_line(package, subject.md5) for package in packages)]
        lines += _pip_lines(subject, platform)
        files[f"{subject.lock.target}-{platform}.txt"] = ("\n".join(lines) + "\n").encode()
    if not files:
        raise FormatError(
            f"{subject.lock.target} has no conda packages, and an explicit list can have nothing else",
            hint=f"`tenv export requirements.txt {subject.lock.target}` writes its wheels",
        )
    lost.append("an explicit list has no requests and no channel order")
    built = {row.name for platform in subject.platforms for row in subject.archives(platform)}
    return Exported(files, tuple(lost), built=frozenset(built if subject.has_conda_python() else ()))


def _line(package: CondaPackage, md5: bool) -> str:
    if package.sha256 and not (md5 and package.md5):
        return f"{package.url}#sha256:{package.sha256}"
    return f"{package.url}#{package.md5}" if package.md5 else package.url


def _pip_lines(subject: Subject, platform: str) -> list[str]:
    if not subject.has_conda_python():
        return []
    rows = [(wheel.name, wheel.sha256) for wheel in subject.wheels(platform)]
    rows += [(row.name, row.digest) for row in subject.archives(platform)]
    return [f"# pip {name} @ {subject.located[sha256].url}#sha256={sha256}" for name, sha256 in rows]


def _read(source: GivenFile) -> Imported:
    if b"@EXPLICIT" not in source.raw and is_conda_list(source.path.name, source.raw):
        return read_conda_list(source)
    text = text_of(source, LockCorruptError)
    found = re.search(r"^#\s*platform:\s*(\S+)", text, re.MULTILINE)
    rows = [_row(source, number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if _counts(line)]
    if not rows:
        raise LockCorruptError(f"{source.path}: lists no packages")
    platform = _platform(source, found[1] if found else "", rows)
    channels = tuple(dict.fromkeys(channel_of(row["conda"]) for row in rows))
    others = other_channels({name: place for name, _, place in map(_named, rows)})
    asked = {name: asked_as(name, version, others.get(name, "")) for name, version, _ in map(_named, rows)}
    hashed = all("sha256" in row or "md5" in row for row in rows)
    notes = ["an explicit list has no requests: all its packages are requested"]
    if not hashed:
        notes.append("some lines have no hash, so no lock is written: `tenv lock` writes one")
    lost: list[str] = []
    files = tuple(_pip(text, next((minor_of(v) for n, v, _ in map(_named, rows) if n == "python"), ""), lost))
    wheels = tuple(file for file in files if isinstance(file, Wheel))
    archives = tuple(file for file in files if isinstance(file, LockedTree))
    draft = Draft(
        platforms=(platform,),
        channels=tuple(channel_word(channel) for channel in channels),
        dependencies={platform: asked},
        wheels={platform: {file.name: WheelRequest(pin(file.name, file.version)) for file in files}},
        sdists=tuple(sorted(archive.name for archive in archives)),
    )
    trees, unread = {platform: archives}, frozenset(archive.name for archive in archives)
    part = ForeignLock(channels, {platform: tuple(rows)}, {platform: wheels}, trees=trees, unread=unread)
    return Imported("", draft, part if hashed else None, tuple(lost), tuple(notes))


def _named(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return the name, the version and the channel of a package from its URL."""
    file = CondaFile.parse(row["conda"]) or CondaFile("", "", "")  # `_row` has checked it
    return file.name, file.version, channel_of(row["conda"])


def _pip(text: str, minor: str, lost: list[str]) -> Iterator[Wheel | LockedTree]:
    """Yield the wheels and the source archives in comments for pip."""
    for line in re.findall(r"^#\s*pip\s.*$", text, re.MULTILINE):
        match = _PIP.fullmatch(line.strip())
        digest = Digest.read(match["digest"]) if match else None
        file = _file(match["url"], match["name"], digest.value, minor) if match and digest and minor else None
        if file is None:
            lost.append(f"the line `{line.strip()[:200]}`, since it is no wheel or source archive with a hash")
        else:
            yield file


def _file(url: str, name: str, sha256: str, minor: str) -> Wheel | LockedTree | None:
    found = WheelFile.parse(url)
    return wheel_at(url, name, found.version if found else "", sha256, None, (minor,)) or sdist_at(
        url, name, "", sha256, None, (minor,)
    )


def _counts(line: str) -> bool:
    word = line.strip()
    return bool(word) and not word.startswith("#") and word != "@EXPLICIT"


def _row(source: GivenFile, number: int, line: str) -> dict[str, Any]:
    match = _LINE.fullmatch(line)
    file = CondaFile.parse(match["url"]) if match else None
    digest = Digest.read(match["digest"]) if match and match["digest"] else None
    if match is None or file is None or file.ending == ".json" or (match["digest"] and digest is None):
        raise LockCorruptError(f"{source.path}:{number}: `{line[:200]}` is not the URL of a conda package")
    url = conda_address(without_login(match["url"].partition("?")[0]))
    if fault := address_fault(url, ("https", "http", "file")):
        raise LockCorruptError(f"{source.path}:{number}: `{url[:200]}`: {fault}")
    return {"conda": url, **({digest.kind: digest.value} if digest else {})}


def _platform(source: GivenFile, named: str, rows: list[dict[str, Any]]) -> str:
    subdirs = {row["conda"].rsplit("/", 2)[1] for row in rows} - {"noarch"}
    known: list[str] = [name for name in (named, *source.platforms, *sorted(subdirs)) if name]
    if not known or known[0] not in PLATFORMS or not subdirs <= {known[0]}:
        listed = ", ".join(sorted({*subdirs, *([named] if named else [])})) or "none"
        raise FormatError(
            f"{source.path}: is not for one platform that tenv supports, but for {listed}",
            hint=f"known: {', '.join(PLATFORMS)}; `--platform` sets one if the list has none",
        )
    return known[0]


FORMAT = Format(
    name="explicit",
    export=_export,
    read=_read,
    recognize=lambda name, head: b"@EXPLICIT" in head or is_conda_list(name, head),
    needs_urls=Subject.has_conda_python,
)
