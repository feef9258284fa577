"""Source and binary packages of Debian, from the mirror that this machine uses anyway.

They are fetched with an apt that has its sources, lists and packages in folders of its own.
"""

import platform
import re
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Protocol

__all__ = ["extract", "fetch_binaries", "fetch_source", "list_binaries", "unpack"]

_SUITE = "trixie"
"""The release whose source packages are taken, whatever release runs here; Debian keeps it, and its keys are known."""

_BINARY_SUITE = "bookworm"
"""The release whose binary packages are taken: it has Python 3.11, GCC 11 and 12, CUDA 11.8 and MAGMA 2.6.2."""

_ONE_LINE = re.compile(r"^deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+(.+)$", re.MULTILINE)


class _Check(Protocol):
    def __call__(self, command: Sequence[str | Path], folder: Path) -> str: ...


def fetch_source(package: str, folder: Path, check: _Check) -> Path:
    """Fetch the upstream archive of a source package, whose digest apt compares with the signed index.

    Args:
        package: The source package.
        folder: Where apt keeps its lists, and where the archive goes.
        check: Runs a program that must succeed.
    """
    apt = _private_apt(folder, _source_entry("deb-src", _SUITE, "main"))
    check([*apt, "update"], folder)
    check([*apt, "source", "--download-only", package], folder)
    (archive,) = folder.glob(f"{package}_*.orig.tar.*")
    return archive


def list_binaries(packages: Sequence[str], folder: Path, check: _Check) -> str:
    """Return a line for each binary package with its file, size and digest, as the signed index has them."""
    apt = _private_apt(folder, _source_entry("deb", _BINARY_SUITE, "main contrib non-free"))
    check([*apt, "update"], folder)
    talk = check([*apt, "download", "--print-uris", *packages], folder)
    rows = sorted(" ".join(line.split()[1:]) for line in talk.splitlines() if line.startswith("'"))
    assert len(rows) == len(set(packages)), talk
    return "\n".join(rows)


def fetch_binaries(packages: Sequence[str], folder: Path, check: _Check) -> dict[str, Path]:
    """Fetch binary packages, and return where each lies, by its name.

    Args:
        packages: The packages, each of which `list_binaries` has listed.
        folder: Where apt keeps its lists, and where the packages go.
        check: Runs a program that must succeed.
    """
    apt = _private_apt(folder, _source_entry("deb", _BINARY_SUITE, "main contrib non-free"))
    check([*apt, "download", *packages], folder)
    return {path.name.partition("_")[0]: path for path in folder.glob("*.deb")}


def unpack(package: Path, folder: Path, patterns: Sequence[str]) -> None:
    """Unpack the files of a binary package that match patterns such as ``./usr/lib/*``, whole trees at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as child,
        tarfile.open(fileobj=child.stdout, mode="r|", bufsize=1 << 20) as file,
    ):
        wanted = (entry for entry in file if any(fnmatch(entry.name, pattern) for pattern in patterns))
        file.extraction_filter = _trust
        file.extractall(folder, wanted)  # noqa: S202 (as `_trust` says)
    assert child.returncode == 0, package


def _trust(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    """Let a package be unpacked as it is: apt has compared its digest. Filters of `tarfile` came with Python 3.11.4."""
    return member


def _private_apt(folder: Path, entry: str) -> list[str | Path]:
    """Return the command of an apt that has its own sources and lists in a folder."""
    (folder / "state" / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "state" / "status").touch()
    (folder / "debian.sources").write_text(entry)
    settings = {
        "Dir::Etc::SourceList": folder / "debian.sources",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "state" / "status",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",  # apt's own user can't enter a folder that is private to ours
    }
    return ["apt-get", "-q", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]


def extract(archive: Path, name: str, folder: Path) -> Path:
    """Extract one folder of the tree in an upstream archive, and return where it is."""
    with tarfile.open(archive) as file:
        members = (member for member in file if Path(member.name).parts[1:2] == (name,))
        file.extraction_filter = _trust
        file.extractall(folder, members)  # noqa: S202 (as `_trust` says)
    (found,) = folder.glob(f"*/{name}")
    return found


def _source_entry(kind: str, suite: str, components: str) -> str:
    """Return a deb822 entry for a release of Debian, at the mirror and with the keys that are in use."""
    system = platform.freedesktop_os_release()
    for entry in _entries():
        if system["VERSION_CODENAME"] in entry["Suites"].split() and "main" in entry["Components"].split():
            keys = f"Signed-By: {entry['Signed-By']}\n" if "Signed-By" in entry else ""
            uri = entry["URIs"].split()[0]
            return f"Types: {kind}\nURIs: {uri}\nSuites: {suite}\nComponents: {components}\n{keys}"
    raise AssertionError(
        f"{system['PRETTY_NAME']} has no mirror of Debian: set TENV_TEST_PYTORCH to a checkout of PyTorch"
    )


def _entries() -> Iterator[dict[str, str]]:
    """Yield the entries of this host's apt, each as the fields of a deb822 stanza."""
    home = Path("/etc/apt")
    for file in sorted(home.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE)):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", stanza, re.MULTILINE))
            if {"URIs", "Suites", "Components"} <= fields.keys():
                yield fields
    for file in (home / "sources.list", *sorted(home.glob("sources.list.d/*.list"))):
        text = file.read_text() if file.is_file() else ""
        for options, uri, suite, parts in re.findall(
            r"^deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+(.+)$", text, re.MULTILINE
        ):
            keys = re.search(r"signed-by=(\S+)", options)
            signed = {"Signed-By": keys[1]} if keys else {}
            yield {"URIs": uri, "Suites": suite, "Components": parts, **signed}
