"""Source packages of Debian, fetched with apt in folders of its own, from the mirror that this machine uses anyway."""

import platform
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

__all__ = ["extract", "fetch_source"]

_SUITE = "trixie"
"""The release whose source packages are taken, whatever release runs here; Debian keeps it, and its keys are known."""

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
    (folder / "state" / "lists" / "partial").mkdir(parents=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True)
    (folder / "state" / "status").touch()
    (folder / "debian.sources").write_text(_source_entry())
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
    apt = ["apt-get", "-q", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    check([*apt, "update"], folder)
    check([*apt, "source", "--download-only", package], folder)
    (archive,) = folder.glob(f"{package}_*.orig.tar.*")
    return archive


def extract(archive: Path, name: str, folder: Path) -> Path:
    """Extract one folder of the tree in an upstream archive, and return where it is."""
    with tarfile.open(archive) as file:
        members = (member for member in file if Path(member.name).parts[1:2] == (name,))
        file.extractall(folder, members, filter="data")
    (found,) = folder.glob(f"*/{name}")
    return found


def _source_entry() -> str:
    """Return a deb822 entry for the source packages of `_SUITE`, at the mirror and with the keys that are in use."""
    system = platform.freedesktop_os_release()
    for entry in _entries():
        if system["VERSION_CODENAME"] in entry["Suites"].split() and "main" in entry["Components"].split():
            keys = f"Signed-By: {entry['Signed-By']}\n" if "Signed-By" in entry else ""
            uri = entry["URIs"].split()[0]
            return f"Types: deb-src\nURIs: {uri}\nSuites: {_SUITE}\nComponents: main\n{keys}"
    raise AssertionError(
        f"{system['PRETTY_NAME']} has no mirror of Debian: set TENV_TEST_PYTORCH to a checkout of PyTorch"
    )


def _entries() -> Iterator[dict[str, str]]:
    """Yield the entries of this machine's apt, each as the fields of a deb822 stanza."""
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
