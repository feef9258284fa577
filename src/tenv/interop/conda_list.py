"""Lists of conda specs, as ``conda list --export`` prints them and ``conda install --file`` reads them: requests.

Source: https://docs.conda.io/projects/conda/en/stable/commands/list.html. A row is ``name=version=build``; one of pip
has the build ``pypi_0``. They have no hashes, and only mamba writes the channels.
"""

import re
from pathlib import PurePath

from tenv.core.errors import ManifestError
from tenv.core.names import normalize
from tenv.core.versions import Range
from tenv.interop.interface import Draft, GivenFile, Imported, text_of
from tenv.interop.requests import conda_request, words_of
from tenv.targets.manifest import PLATFORMS, CondaRequest, WheelRequest

_ROW = re.compile(
    r"(?:(?P<channel>\S+?)(?:/(?:noarch|linux-\w+|win-\w+|osx-\w+))?::)?"
    r"(?P<spec>[A-Za-z0-9_][^=<>!~\s]*=[^=\s]+=[^=\s]+)"
)
_PLAIN = re.compile(r"[A-Za-z0-9_][\w.-]*(\s*[=<>!~].*)?")
_HEAD = 4096
_PLATFORM = re.compile(r"^#\s*platform:\s*(\S+)", re.MULTILINE)
_OF_PIP = re.compile(r"(?P<name>\S+)=(?P<version>[^=\s]+)=pypi_\d+")


def is_conda_list(name: str, head: bytes) -> bool:
    """Return whether a file is a list of conda specs: by its first rows, or by its name."""
    lines = [line for line in map(str.strip, head.decode("utf-8-sig", "replace").splitlines()) if line]
    rows = [line for line in lines if not line.startswith("#")]
    path = PurePath(name.lower())
    by_name = path.suffix == ".txt" and "conda" in path.stem
    rows = rows if len(head) < _HEAD else rows[:-1]  # the last one may be cut
    return bool(rows) and (all(map(_ROW.fullmatch, rows)) or (by_name and all(map(_PLAIN.fullmatch, rows))))


def read_conda_list(source: GivenFile) -> Imported:
    """Read a list of conda specs.

    Raises:
        ManifestError: A row is no spec.
    """
    text, lost, notes = text_of(source, ManifestError), list[str](), list[str]()
    named = [name for name in _PLATFORM.findall(text) if name in PLATFORMS]
    platforms = tuple(source.platforms or named)
    if not platforms:
        notes.append("the file has no platforms: linux-64 is used (`--platform` sets others)")
        platforms = ("linux-64",)
    conda, wheels, channels = dict[str, CondaRequest](), dict[str, WheelRequest](), list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        row = line.partition("#")[0].strip()
        if not row:
            continue
        match = _ROW.fullmatch(row)
        spec = match["spec"] if match else row
        if match and match["channel"]:
            channels.append(match["channel"])
        if of_pip := _OF_PIP.fullmatch(spec):
            wheels[normalize(of_pip["name"])] = WheelRequest(Range(of_pip["version"]))
            continue
        try:
            name, request, rest = conda_request(spec)
        except ValueError as error:
            raise ManifestError(f"{source.path}:{number}: `{row[:100]}`: {error}") from error
        conda[name] = request
        lost += [f"of `{name}` tenv can't request {rest}"] if rest else []
    if not channels:
        notes.append("the file names no channels: conda-forge is used, and conda takes the configured ones")
    notes.append("a list of specs has no hashes, so no lock is written: `tenv lock` writes one")
    draft = Draft(
        platforms=platforms,
        channels=words_of(dict.fromkeys(channels), platforms),
        dependencies=dict.fromkeys(platforms, conda),
        wheels=dict.fromkeys(platforms, wheels),
    )
    return Imported("", draft, None, tuple(dict.fromkeys(lost)), tuple(notes))
