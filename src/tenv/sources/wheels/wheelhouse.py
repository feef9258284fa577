"""The wheelhouse of a manifest: compiled wheels for other machines, by a digest of what no machine changes.

Each wheel lies in a folder with the name of its digest. The file ``wheelhouse.json`` beside these folders has its name
and its sha256. `tenv lock` writes the sha256 into the row of the package, and `tenv create` takes those bytes alone.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError
from tenv.core.file_content import read_text
from tenv.core.files import digest, exclusive, write_atomic
from tenv.core.names import WheelFile
from tenv.core.other_users import open_part
from tenv.facts.torch_packages import TorchPackageTable
from tenv.locks.lock import Lock, LockedTree
from tenv.targets.manifest import Manifest, WheelRequest, with_features

_MAP = "wheelhouse.json"
_SCHEMA = 1
_ARCHS = "TORCH_CUDA_ARCH_LIST"
_HEX = frozenset("0123456789abcdef")
_LENGTH = 64


@dataclass(frozen=True, slots=True)
class Compiled:
    """A wheel of a wheelhouse."""

    path: Path
    """The file."""
    sha256: str
    """Its digest, as the map names it."""


def named_archs(manifest: Manifest, request: WheelRequest | None) -> str:
    """Return the GPU architectures that a manifest names for a request; empty where the machine decides."""
    variable = manifest.environment.get(_ARCHS)
    return (request.archs if request else "") or (variable.value if variable else "")


def key_of_wheelhouse(
    row: LockedTree, lock: Lock, whole: Manifest, platform: str, minor: str, table: TorchPackageTable
) -> str:
    """Return the digest of the inputs that a machine can't change; empty where the machine decides on one.

    Args:
        row: The row of the package.
        lock: Its lock.
        whole: The manifest, whose features and platforms are not applied yet.
        platform: The platform.
        minor: The Python minor.
        table: The switches of known packages.
    """
    here = with_features(whole).on(platform)
    request, facts = here.wheels.get(row.name), table.find(row.name)
    archs = named_archs(here, request)
    cuda = here.requirements.cuda is not None or bool(here.requirements.cuda_from)
    if request is None or row.isolated or not row.sha256 or (cuda and not archs):
        return ""
    source = [row.name, row.version, row.sha256, row.subdirectory, list(row.build)]
    variables = {name: variable.value for name, variable in here.environment.items()}
    force = [*facts.force, facts.arch] if facts else []
    inputs = [
        source,
        lock.compiled_against(platform, minor),
        platform,
        minor,
        archs,
        force,
        request.cxx,
        request.archs,
        variables,
    ]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def pinned_digest(row: LockedTree, minor: str) -> str:
    """Return the sha256 of the wheel that a row names for a Python minor; empty for none."""
    pins = dict(pin.split(" sha256:") for pin in row.wheels)
    return pins.get(minor, "")


def pin_wheels(
    lock: Lock, whole: Manifest, table: TorchPackageTable, old: Lock | None, say: Callable[[str], None]
) -> Lock:
    """Return a lock whose rows name the wheels of the manifest's wheelhouse.

    Where the folder is absent, or its map can't be read, rows keep the wheels of the old lock for the same inputs.

    Args:
        lock: The lock.
        whole: Its manifest.
        table: The switches of known packages.
        old: The lock before; None without one.
        say: Receives the reason why a wheel is not taken.
    """
    if not whole.wheelhouse:
        return lock
    folder = Path(whole.wheelhouse)
    part = open_part(folder)
    if part is not None:
        say(f"note: another user can write {part}, so no wheel of the wheelhouse {folder} is locked")
    known = None
    if folder.exists():
        known = {} if part is not None else _read(folder, say)
    trees = {}
    for platform, rows in lock.trees.items():
        before = {(row.name, row.version, row.sha256): row for row in old.trees.get(platform, ())} if old else {}
        new = []
        for row in rows:
            if row.isolated:
                new.append(row)
                continue
            was = before.get((row.name, row.version, row.sha256))
            pins = [
                pin
                for minor in row.python
                if (pin := _pin(row, _Case(lock, old, whole, platform, minor, table, known), was, say))
            ]
            new.append(replace(row, wheels=tuple(pins)))
        trees[platform] = tuple(new)
    return replace(lock, trees=trees)


@dataclass(frozen=True, slots=True)
class _Case:
    """The surroundings of a row for one Python minor."""

    lock: Lock
    """The lock."""
    old: Lock | None
    """The lock before."""
    whole: Manifest
    """The manifest."""
    platform: str
    """The platform."""
    minor: str
    """The Python minor."""
    table: TorchPackageTable
    """The switches of known packages."""
    known: Mapping[str, Compiled] | None
    """The map of the wheelhouse; None where the folder is absent, or its map can't be read."""

    def key(self, row: LockedTree, lock: Lock) -> str:
        """Return the digest of the inputs of a row."""
        return key_of_wheelhouse(row, lock, self.whole, self.platform, self.minor, self.table)


def _pin(row: LockedTree, case: _Case, was: LockedTree | None, say: Callable[[str], None]) -> str:
    """Return the wheel of a row for one minor, as the lock has it; empty for none."""
    key = case.key(row, case.lock)
    found = case.known.get(key) if key and case.known else None
    if found is None:
        same = was is not None and case.old is not None and case.key(was, case.old) == key != ""
        kept = pinned_digest(was, case.minor) if was is not None and same and case.known is None else ""
        return f"{case.minor} sha256:{kept}" if kept else ""
    if fault := _fault(found, row):
        say(f"note: {found.path} {fault}, so it is not locked")
        return ""
    return f"{case.minor} sha256:{found.sha256}"


def _fault(found: Compiled, row: LockedTree) -> str:
    file = WheelFile.parse(found.path.name)
    if file is None or file.name != row.name or not row.becomes(file.version):
        return f"is no wheel of {row.name} {row.version}"
    part = open_part(found.path)
    if part is not None:
        return "can be written by another user"
    try:
        return "" if digest(found.path) == found.sha256 else f"has other bytes than {_MAP} names"
    except OSError as error:
        return f"can't be read ({error.strerror})"


def find_compiled(folder: Path, key: str, say: Callable[[str], None]) -> Compiled | None:
    """Return the wheel that the map of a wheelhouse names for a digest; None without one."""
    return (_read(folder, say) or {}).get(key)


def _read(folder: Path, say: Callable[[str], None]) -> dict[str, Compiled] | None:
    """Return the wheels of a map by their digests; None where it can't be read."""
    file = folder / _MAP
    try:
        values = json.loads(read_text(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        say(f"note: {file} can't be read, so no wheel of it is taken")
        return None
    rows = values.get("wheels") if isinstance(values, dict) and values.get("schema") == _SCHEMA else None
    if not isinstance(rows, dict):
        say(f"note: {file} is no map of a wheelhouse of schema {_SCHEMA}, so no wheel of it is taken")
        return None
    return {key: Compiled(folder / key / row["file"], row["sha256"]) for key, row in rows.items() if _is_row(key, row)}


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == _LENGTH and _HEX.issuperset(value)


def _is_row(key: str, row: object) -> bool:
    """Return whether a row names a wheel in the folder of its digest, and no other place."""
    if not (_is_digest(key) and isinstance(row, dict) and _is_digest(row.get("sha256"))):
        return False
    file = row.get("file")
    return isinstance(file, str) and Path(file).name == file and WheelFile.parse(file) is not None


def add_compiled(folder: Path, key: str, built: Path, purpose: str, say: Callable[[str], None]) -> bool:
    """Put a wheel into a wheelhouse that has none for its digest; a folder that can't be written stays as it is.

    Args:
        folder: The wheelhouse.
        key: The digest of the inputs.
        built: The wheel.
        purpose: The command, for one that waits.
        say: Receives the reason why it is not put there.

    Returns:
        Whether it was put there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(folder / _MAP, purpose, say):
            known = _read(folder, say)
            if known is None or key in known:
                return False
            (folder / key).mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as name:
                new = Path(name) / built.name
                shutil.copyfile(built, new)
                row = {"file": built.name, "sha256": digest(new)}
                new.replace(folder / key / built.name)
            rows = {one: {"file": found.path.name, "sha256": found.sha256} for one, found in known.items()}
            text = json.dumps({"schema": _SCHEMA, "wheels": {**rows, key: row}}, indent=1, sort_keys=True)
            write_atomic(folder / _MAP, f"{text}\n")
    except (OSError, TenvError) as error:
        say(f"note: the wheelhouse {folder} does not get {built.name}: {error}")
        return False
    return True
