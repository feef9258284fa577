"""uv's own Pythons: fetched where a machine has none, and carried by a bundle.

uv holds a table of their archives, each with its sha256, and compares every archive that it unpacks. So an archive of a
bundle is as good as a downloaded one where the table has it.
"""

import json
import re
from pathlib import Path
from urllib.parse import quote, unquote

from tenv.core.dataclass import dataclass
from tenv.core.errors import HashMismatchError, NetworkError, StorageError, TenvError, UsageError
from tenv.core.files import storage_errors
from tenv.core.versions import Version
from tenv.sources.wheels.uv_output import CHECK_INDEX
from tenv.sources.wheels.uv_program import UvProgram

KEY = "python"
"""The kind of such an archive in a bundle."""

_MIRROR = "install it with the system's package manager, or set UV_PYTHON_INSTALL_MIRROR to a mirror of uv's Pythons"
"""The hint for a Python that can't be fetched: uv's Pythons come from a server of their own, which is no index."""

_ORIGIN = "https://github.com/astral-sh/python-build-standalone/releases/download"
"""The address that UV_PYTHON_INSTALL_MIRROR stands for, https://docs.astral.sh/uv/reference/environment/."""

_NAME = re.compile(
    r"cpython-(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)\+(\d{8})-([a-z0-9_-]+?)-install_only(?:_stripped)?\.tar\.gz", re.ASCII
)
_HOSTS = {
    "linux-64": ("linux", "x86_64", "gnu", "x86_64-unknown-linux-gnu"),
    "linux-aarch64": ("linux", "aarch64", "gnu", "aarch64-unknown-linux-gnu"),
    "osx-64": ("macos", "x86_64", "none", "x86_64-apple-darwin"),
    "osx-arm64": ("macos", "aarch64", "none", "aarch64-apple-darwin"),
    "win-64": ("windows", "x86_64", "none", "x86_64-pc-windows-msvc"),
}
"""uv's names of a platform, and the one in the name of an archive."""


@dataclass(frozen=True, slots=True)
class PythonArchive:
    """An archive of one of uv's Pythons, by its name."""

    name: str
    """Its file name."""
    version: str
    """Its Python version."""
    build: str
    """The day of its build, such as ``20251014``."""
    platform: str
    """Its platform."""

    @classmethod
    def parse(cls, name: str) -> "PythonArchive | None":
        """Return the archive of a name; None for another name."""
        match = _NAME.fullmatch(name)
        platform = next((one for one, host in _HOSTS.items() if match and host[3] == match[3]), "")
        return cls(name, match[1], match[2], platform) if match and platform else None

    @property
    def minor(self) -> str:
        """Its Python minor."""
        return Version(self.version).major_minor

    def place(self, folder: Path) -> Path:
        """Return its path in a folder with the layout of uv's server."""
        return folder / self.build / self.name

    def table(self, sha256: str) -> str:
        """Return a table for uv that has this archive alone."""
        system, machine, libc, _ = _HOSTS[self.platform]
        major, minor, rest = self.version.split(".")
        patch = re.match(r"\d+", rest)
        row = {
            "name": "cpython",
            "arch": {"family": machine, "variant": None},
            "os": {"macos": "darwin"}.get(system, system),
            "libc": libc,
            "major": int(major),
            "minor": int(minor),
            "patch": int(patch[0]) if patch else 0,
            "prerelease": rest.lstrip("0123456789"),
            "url": f"{_ORIGIN}/{self.build}/{quote(self.name)}",
            "sha256": sha256,
            "variant": None,
            "build": self.build,
        }
        return json.dumps({f"cpython-{self.version}-{system}-{machine}-{libc}": row})


class ManagedPythons(UvProgram):
    """uv as the source of Pythons."""

    def fetch_python(self, minor: str) -> Path:
        """Return the program of a Python of a minor that uv has, takes from a bundle, or downloads.

        Raises:
            NetworkError: The download fails.
            HashMismatchError: The archive of the bundle is not the one in uv's table.
            UsageError: uv's table lacks the archive of the bundle, and nothing else vouches for it.
        """
        found = self.run("python", "find", "--managed-python", minor)
        if found.status:
            own = self._carried_python(minor)
            done = self.run("python", "install", "--no-bin", own.version if own else minor)
            if done.status:
                raise self._refusal(own, done.stderr) if own else self._failure(minor, done.stderr)
            found = self.run("python", "find", "--managed-python", minor)
        if found.status or not found.stdout.strip():
            raise NetworkError(f"this machine has no Python {minor}, and uv can't download one", hint=_MIRROR)
        return Path(found.stdout.strip())

    def _failure(self, minor: str, output: str) -> TenvError:
        error = self.error(output, f"this machine has no Python {minor}, and uv can't download one", NetworkError)
        if self.carried:
            again = f"tenv bundle {self.carried.target} --with-python --python {minor}"
            error.hint = f"`{again}` makes a bundle that has one; or {_MIRROR}"
        elif error.hint in ("", CHECK_INDEX):
            error.hint = _MIRROR
        return error

    def _carried_python(self, minor: str) -> PythonArchive | None:
        files = sorted(self.carried.pythons.glob("*/*")) if self.carried else []
        archives = (PythonArchive.parse(path.name) for path in files)
        return next((one for one in archives if one and one.minor == minor), None)

    def _refusal(self, own: PythonArchive, output: str) -> TenvError:
        error = self.error(output, f"uv can't install {own.name} of the bundle", NetworkError)
        if isinstance(error, HashMismatchError):
            return HashMismatchError(
                f"the bundle has another {own.name} than uv's table of Pythons",
                hint="nothing of it is used: ask the maker of the bundle for another one",
            )
        if isinstance(error, StorageError) or (self.carried and self.carried.python_table.is_file()):
            return error
        return UsageError(
            f"the lock does not name {own.name} of the bundle, and the table of this uv does not have it",
            hint="`--bundle-digest SHA256` vouches for it, with the digest that `tenv bundle` printed; or install "
            f"Python {own.minor} with the system's package manager",
        )

    def fetch_archive(self, platform: str, minor: str, folder: Path, cache: str = "") -> tuple[PythonArchive, Path]:
        """Return the archive of uv's newest Python of a minor for any platform; uv compares it with its table.

        Args:
            platform: The platform.
            minor: The minor.
            folder: An empty folder for the download.
            cache: The folder of the user for such archives (UV_PYTHON_CACHE_DIR); empty for none.

        Raises:
            NetworkError: uv has no such Python, or can't download it.
        """
        system, machine, libc, _ = _HOSTS[platform]
        words = ("--only-downloads", "--all-platforms", "--all-arches", "--output-format", "json")
        done = self.run("python", "list", *words, minor)
        wanted = {"implementation": "cpython", "variant": "default", "os": system, "arch": machine, "libc": libc}
        rows = [] if done.status else json.loads(done.stdout or "[]")
        row = next((one for one in rows if wanted.items() <= one.items()), None)
        if row is None:
            raise NetworkError(f"uv offers no Python {minor} for {platform}", hint="`--python MINOR` chooses another")
        name = unquote(row["url"].rpartition("/")[2])
        own = PythonArchive.parse(name)
        if own is None or own.platform != platform:
            raise NetworkError(f"uv offers {name} as Python {minor} for {platform}, which no bundle can carry")
        archives = Path(cache or folder / "archives").absolute()
        command = ("python", "install", "--no-bin", "--install-dir", str(folder / "installed"), row["key"])
        done = self.run(*command, UV_PYTHON_CACHE_DIR=str(archives))
        if done.status:
            error = self.error(done.stderr, f"uv can't download {name}", NetworkError)
            error.hint = "set UV_PYTHON_INSTALL_MIRROR to a mirror of uv's Pythons, or UV_PYTHON_CACHE_DIR"
            raise error
        with storage_errors(f"can't read {archives}"):
            found = sorted(archives.glob(f"*-{name.replace('+', '-')}"))
        if not found:
            raise NetworkError(f"uv keeps no archive {name} in {archives}")
        return own, found[-1]
