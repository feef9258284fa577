"""Installs tenv from the archive that this file is part of, with a Python that has nothing but its standard library.

`tenv bundle --self` puts it into the archive as ``__main__.py``, for ``python3 tenv-VERSION.pyz FOLDER``. It imports
nothing of tenv and asks no server. uv of the archive makes the environment of the wheels, whose digests are compared.
Python 3.6 reads it, too, so that it reports which Pythons the archive is for.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_PLATFORMS = {
    ("linux", "x86_64"): "linux-64",
    ("linux", "aarch64"): "linux-aarch64",
    ("win32", "AMD64"): "win-64",
}


def main(words: "list[str]") -> int:
    """Install tenv into a new folder; return the exit status: 0, 2 for wrong words, 4 for a host, 6 for a damage."""
    archive = Path(__file__).parent
    try:
        return _main(archive, words)
    except (KeyError, StopIteration, ValueError, zipfile.BadZipFile) as error:
        return _fail(6, f"{archive.name} is damaged: {error}")
    except OSError as error:
        place = tempfile.gettempdir()
        return _fail(4, f"{error}; TMPDIR=FOLDER names another folder than {place}, where programs may be run")


def _main(archive: Path, words: "list[str]") -> int:
    if len(words) != 1 or words[0].startswith("-"):
        return _fail(2, f"usage: {Path(sys.executable).name} {archive} FOLDER")
    folder = Path(words[0]).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return _fail(2, f"{folder} exists: name a new folder")
    with zipfile.ZipFile(archive) as packed, tempfile.TemporaryDirectory(prefix="tenv-") as name:
        head = json.loads(packed.read("head.json"))
        host = f"{_PLATFORMS.get((sys.platform, platform.machine()), platform.machine())} {_minor()}"
        rows = [row for row in head["files"] if host in row["for"]]
        if not rows:
            known = ", ".join(sorted({one for row in head["files"] for one in row["for"]}))
            return _fail(4, f"{archive.name} is for {known}, not for {host}")
        home = Path(name)
        for row in rows:
            data = packed.read(f"wheels/{row['name']}")
            if hashlib.sha256(data).hexdigest() != row["sha256"]:
                return _fail(6, f"{archive.name} is damaged: {row['name']} does not have the sha256 {row['sha256']}")
            (home / row["name"]).write_bytes(data)
        wheel = next(home / row["name"] for row in rows if row["package"].startswith("uv="))
        status = _install(home, wheel, [f"{row['package']} --hash=sha256:{row['sha256']}\n" for row in rows], folder)
    if status:
        shutil.rmtree(str(folder), ignore_errors=True)  # it was new or empty
        return _fail(status, "tenv is not installed")
    program = folder / ("Scripts/tenv.exe" if sys.platform == "win32" else "bin/tenv")
    sys.stdout.write(f"tenv {head['tenv']} is ready: {program}\n")
    return 0


def _minor() -> str:
    return ".".join(map(str, sys.version_info[:2]))


def _install(home: Path, wheel: Path, requirements: "list[str]", folder: Path) -> int:
    """Make an environment of the wheels in a folder by the wheel of uv; return the exit status of uv."""
    with zipfile.ZipFile(wheel) as packed:
        member = next(name for name in packed.namelist() if name.rsplit("/", 1)[-1] in ("uv", "uv.exe"))
        uv = Path(packed.extract(member, home))
    uv.chmod(0o755)
    (home / "requirements.txt").write_text("".join(requirements))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "PYTHON"))}
    environment |= {"UV_CACHE_DIR": str(home / "cache"), "UV_NO_CONFIG": "1", "UV_LINK_MODE": "copy"}
    quiet = [str(uv), "--quiet", "--offline"]
    pip = [*quiet, "pip", "install", "--python", str(folder), "--no-index", "--no-deps", "--require-hashes"]
    for command in (
        [*quiet, "venv", str(folder), "--python", sys.executable],
        [*pip, "--find-links", str(home), "--requirement", str(home / "requirements.txt")],
    ):
        status = subprocess.run(command, env=environment, check=False).returncode
        if status:
            return status
    return 0


def _fail(status: int, message: str) -> int:
    sys.stderr.write(f"error: {message}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
