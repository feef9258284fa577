"""The tenv that runs, as a wheel: containers install this one, whatever an index calls by its name."""

import base64
import hashlib
import importlib.metadata
import io
import re
import shlex
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import tenv
from tenv import __version__
from tenv.core.errors import FormatError
from tenv.core.names import METADATA, normalize, pure_wheel
from tenv.core.own_distribution import DISTRIBUTION, own_distribution

__all__ = ["constraints", "own_wheel"]

_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of every file, so that the same tenv makes the same wheel."""

_BESIDE = {"manifests": "manifests", "locks": "locks", "rules": "docs/rules"}
"""What a wheel holds below `tenv/builtin`, and where a checkout has it."""


def own_wheel() -> tuple[str, bytes]:
    """Return the file name of the wheel and its bytes."""
    package = Path(tenv.__file__).parent
    files = dict(_files(package, "tenv"))
    if not (package / "builtin").is_dir():  # an editable install of a checkout
        for name, place in _BESIDE.items():
            files |= dict(_files(package.parent.parent / place, f"tenv/builtin/{name}"))
    distribution = own_distribution()
    if distribution is None:
        raise FormatError(
            f"tenv runs from {package} without being installed, so it can't be put into a container",
            hint=f"`{shlex.join([sys.executable, '-m', 'pip', 'install', '-e', str(package.parent.parent)])}`",
        )
    file = DISTRIBUTION.replace("-", "_")
    info, _, metadata = f"{file}-{__version__}{METADATA}".partition("/")
    for name in (metadata, "entry_points.txt"):
        text = distribution.read_text(name) or ""
        # An installation may be older than the name; installers compare it with that of the file.
        files[f"{info}/{name}"] = re.sub(
            r"\AMetadata-Version: (.*)\nName: .*", rf"Metadata-Version: \1\nName: {DISTRIBUTION}", text
        ).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tenv\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    rows = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in sorted(files.items())]
    files[f"{info}/RECORD"] = "".join(f"{row}\n" for row in [*rows, f"{info}/RECORD,,"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), data, zipfile.ZIP_DEFLATED)
    return pure_wheel(file, __version__), buffer.getvalue()


def _files(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def constraints() -> bytes:
    """Return the versions of what tenv needs, as they are here, for pip's `--constraint`."""
    from packaging.requirements import Requirement  # late: 34 ms

    found: dict[str, str] = {}
    own = own_distribution()
    waiting = [own.metadata["Name"]] if own else []
    while waiting:
        try:
            distribution = importlib.metadata.distribution(waiting.pop())
        except importlib.metadata.PackageNotFoundError:
            continue
        for text in distribution.requires or ():
            requirement = Requirement(text)
            name = normalize(requirement.name)
            if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                continue
            waiting.append(name)
    return "".join(f"{name}=={version}\n" for name, version in sorted(found.items())).encode()
