"""Make a target from a file of another tool: the manifest, and the lock if the file has hashes."""

import contextlib
import re
import shlex
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from tenv.checks.rules.interface import Finding, Severity
from tenv.checks.rules.toolkit import check_lock
from tenv.core.dataclass import dataclass
from tenv.core.errors import (
    FormatError,
    LockCorruptError,
    LockStaleError,
    ManifestError,
    NetworkError,
    NoSolutionError,
    TenvError,
    UsageError,
)
from tenv.core.files import write_atomic
from tenv.core.names import channel_of, channel_urls, channel_word, is_channel
from tenv.interop.chosen_files import without_features
from tenv.interop.drafts import against_torch, render_draft, with_cuda, without_doubles, without_logins
from tenv.interop.formats import ONLY_WRITTEN, find_format, importable, recognize
from tenv.interop.interface import Draft, ForeignLock, Format, Imported, read_source
from tenv.interop.pixi import lock_text
from tenv.interop.python_ranges import range_of
from tenv.interop.requests import asked_wheels, top_level
from tenv.interop.typed_values import few
from tenv.locks.lock import Lock, LockedTree, Wheel, from_manifest
from tenv.locks.lock_file import read_lock, render_lock
from tenv.locks.satisfaction import unrequired
from tenv.project.context import Context
from tenv.sources.interface import Problem, SolveOptions, differences
from tenv.sources.wheels.project_metadata import ProjectMetadata
from tenv.sources.wheels.sdists import read_sdist
from tenv.sources.wheels.trees import Trees, static_metadata
from tenv.targets.manifest import PLATFORMS, Manifest, with_features
from tenv.targets.manifest_file import read_manifest
from tenv.targets.tree_request import TREE_KEYS, TreeRequest
from tenv.verbs.export import refuse_existing
from tenv.verbs.init import ignore_environments
from tenv.verbs.lock_place import begun_project, require_kept

_PIN = re.compile(r"\d[\w.+]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """The request for an import."""

    file: Path
    """The file."""
    format: str | None = None
    """Its format; None to detect it from its name and first lines."""
    name: str | None = None
    """The target's name; None for the name in the file, or its folder's."""
    environment: str = ""
    """The environment to import if the file holds several; empty for the default one."""
    platforms: tuple[str, ...] = ()
    """The platforms to import; empty for all in the file."""
    force: bool = False
    """Overwrite existing files."""
    lock: bool = True
    """Also write a lock if the file has hashes."""

    def command(self, platforms: tuple[str, ...] = ()) -> str:
        """Return the command that imports the file again, with other platforms if some are named."""
        options = {"--format": self.format, "--name": self.name, "--environment": self.environment}
        words = [word for option, value in options.items() if value for word in (option, value)]
        words += [word for platform in platforms or self.platforms for word in ("--platform", platform)]
        return shlex.join(("tenv", "import", str(self.file), *words))


@dataclass(frozen=True, slots=True)
class ImportedTarget:
    """The result of an import."""

    target: str
    """The target's name."""
    format: str
    """The format of the file."""
    manifest: Path
    """The manifest's file."""
    lock: Path | None
    """The lock's file; None without a lock."""
    counts: dict[str, dict[str, int]]
    """The number of conda packages and wheels in the lock, by platform."""
    lost: tuple[str, ...]
    """The parts of the file that the target lacks, one sentence each."""
    notes: tuple[str, ...] = ()
    """What a reader may want to know of the target, a sentence each."""
    begun: Path | None = None
    """The folder that this import has made a project; None for a project that was there."""


def import_file(context: Context, request: ImportRequest, *, user: bool = False) -> ImportedTarget:
    """Make a target from a file of another tool; where there is no project, the working folder becomes one.

    Args:
        context: The context of the verb.
        request: The file to import.
        user: Make it one of the user's own targets.

    Raises:
        UsageError: The target's name is not valid, or the project belongs to another user.
        FormatError: tenv does not read the format of the file, or the file has nothing that a target can hold.
        LockCorruptError, ManifestError: The file can't be read.
        LockStaleError: Its packages do not satisfy its requests.
        FileExistsAlreadyError: The target exists, and `force` is not set.
    """
    if unknown := [name for name in request.platforms if name not in PLATFORMS]:
        raise UsageError(f"unknown platform `{unknown[0]}`", hint=f"known platforms: {', '.join(PLATFORMS)}")
    if request.file.is_dir():
        files = [shlex.quote(str(request.file / name)) for name in importable(request.file)[:3]]
        hint = " or ".join(f"`tenv import {file}`" for file in files) or "an import reads one file"
        raise FormatError(f"{request.file}: is a folder", hint=hint)
    source = read_source(request.file, request.environment, request.platforms)
    chosen = find_format(request.format, ONLY_WRITTEN) if request.format else recognize(source)
    if chosen.read is None:
        raise FormatError(f"`{chosen.name}` has no import, only an export")
    found = _without_own_index(context, without_logins(chosen.read(source)))
    name = _name(request, found)
    begun = None
    if context.places.project is None and not user:
        if context.places.refused:
            raise UsageError(
                f"{context.places.refused} belongs to another user, so it is no project of yours",
                hint="`tenv import --user` writes to your configuration folder",
            )
        begun = context.places.checkout or Path.cwd()
        context = begun_project(context, begun)
    place = context.places.places[0]
    paths = [place.manifest_file(name), place.lock_file(name)]
    if found.part and request.lock:
        command = request.command()
        require_kept(paths[1], command, f"`{command} --no-lock` writes the manifest alone")
    refuse_existing(paths if found.part and request.lock else paths[:1], force=request.force)
    made = _write(context, chosen, request, found, name, *paths)
    if begun:
        ignore_environments(begun)
    return replace(made, begun=begun)


def _without_own_index(context: Context, found: Imported) -> Imported:
    """Return an import without the default index that the user has set anyway: a mirror stays with its user."""
    if not any(index.default for index in found.draft.indexes):
        return found
    own = context.uv().environment.get("UV_DEFAULT_INDEX", "").rstrip("/")
    indexes = tuple(index for index in found.draft.indexes if not (index.default and index.url == own))
    return replace(found, draft=replace(found.draft, indexes=indexes))


def _name(request: ImportRequest, found: Imported) -> str:
    if request.name is not None:
        if not _NAME.fullmatch(request.name):
            raise UsageError(
                f"`{request.name}` is not a name for a target", hint="`--name` takes letters, digits, `.`, `_` and `-`"
            )
        return request.name
    for name in (found.name, request.file.absolute().parent.name):
        if word := re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._"):
            return word
    raise UsageError(f"{request.file}: names no target", hint="`--name NAME` names the target")


def _write(
    context: Context, chosen: Format, request: ImportRequest, found: Imported, name: str, manifest: Path, lock: Path
) -> ImportedTarget:
    draft, doubts = with_cuda(found.draft, found.part)
    draft, doubles, more = without_doubles(draft)
    lost, notes = [*found.lost, *doubts, *doubles], [*found.notes, *more]
    draft, part, compiled = against_torch(draft, found.part if request.lock else None)
    raw = b""
    if compiled:
        notes.append(f"compiled against the target's torch, which runs their code: {', '.join(compiled)}")
    if draft.sdists:
        named = ", ".join(draft.sdists)
        notes.append(f"built from source archives, where no wheel fits, which runs their code: {named}")
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        trial = _Trial(context, request, name, Path(folder), manifest.absolute().parent)
        if part:
            draft, part, raw = trial.fit(draft, part, lost, notes)
        text, asked = trial.manifest(draft)
        if not (part or found.part or found.draft.python) and draft.python:
            draft = _with_python_of_pins(context, asked, draft, notes)
            text, asked = trial.manifest(draft)
    write_atomic(manifest, text)
    if part:
        write_atomic(lock, raw)
    counts = _counts(asked, part) if part else {}
    lines = tuple(dict.fromkeys(lost)), tuple(dict.fromkeys(notes))
    return ImportedTarget(name, chosen.name, manifest, lock if part else None, counts, *lines)


def _with_python_of_pins(context: Context, asked: Manifest, draft: Draft, notes: list[str]) -> Draft:
    """Return a draft, whose file names no Python, with the Pythons that have wheels of its pins."""
    from tenv.verbs.published import pythons_of_pins  # late: few files have pins

    rows = [row for table in draft.wheels.values() for row in table.items()]
    pins = {name: str(row.version) for name, row in rows if _PIN.fullmatch(str(row.version))}
    if not pins:
        return draft
    said = next(place for place, line in enumerate(notes) if line.endswith(f"`python` is set to {draft.python}"))
    if not (minors := pythons_of_pins(context, asked, pins)):
        notes[said] += ", and wheels of its pins may be for others"
        return draft
    python = range_of(minors)
    notes[said] = notes[said].replace(draft.python, f"{python}, for which the indexes have wheels of its pins")
    return replace(draft, python=python)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A manifest and a lock that are tried before they are written."""

    context: Context
    """The context of the verb."""
    request: ImportRequest
    """The request for the import."""
    name: str
    """The target's name."""
    folder: Path
    """A folder for the trial."""
    home: Path
    """The folder of the manifest."""

    def manifest(self, draft: Draft) -> tuple[str, Manifest]:
        """Return the text of a manifest, and the manifest that tenv reads of it."""
        text = render_draft(draft, self.request.file.name, self.home)
        trial = self.folder / f"{self.name}.toml"
        trial.write_text(text, encoding="utf-8")
        return text, _read_back(self.request.file, self.name, trial, self.home)

    def lock(self, asked: Manifest, part: ForeignLock) -> Lock:
        """Return the lock that tenv reads of its own text."""
        trial = self.folder / f"{self.name}.lock"
        trial.write_bytes(_lock_bytes(self.request.file, asked, part))
        return read_lock(trial, self.name)

    def fit(
        self, draft: Draft, part: ForeignLock, lost: list[str], notes: list[str]
    ) -> tuple[Draft, ForeignLock | None, bytes]:
        """Return a draft and a lock that satisfies it; None for the lock if a package is required that it can't have.

        Args:
            draft: The draft.
            part: The content of the lock.
            lost: Receives the reason if there is no lock.
            notes: Receives the requests and channels that are added.

        Raises:
            LockStaleError: The packages do not satisfy the requests.
        """
        draft = _with_channels(draft, part, notes)
        plain, asked, more = draft, self.manifest(draft)[1], list[str]()
        given = part.left.keys()
        every = part
        part = _completed(self.context, asked, replace(part, wheels=_with_origins(asked, part)), lost)
        if gone := _unread_features(every, part.left.keys() - given):
            lost.append(f"the groups that need these packages: {', '.join(gone)} (`--environment` takes one)")
            kept = {name: tables for name, tables in draft.features.items() if name not in gone}
            plain = draft = replace(draft, features=kept)
            left = {name: reason for name, reason in part.left.items() if name in given}
            part, asked = replace(without_features(part, gone), left=left), self.manifest(draft)[1]
        made = self.lock(asked, part)
        if added := _with_unrequired(draft, asked, made, more):
            asked = self.manifest(added)[1]
            draft, made = added, self.lock(asked, part)
        gaps = [f"{part.requirers[name]} requires {name}" for name in sorted(part.left) if name in part.requirers]
        faults = [*part.faults, *differences(made, asked), *gaps]
        if faults and part.left:
            names, why = ", ".join(sorted(part.left)), faults[0]
            lost.append(f"its lock, since tenv can't lock {names}, and {why}: `tenv lock {self.name}` writes one")
            if part.left.keys() > given:  # they bring their requirements when they are locked
                return plain, None, b""
        notes += more
        if faults and part.left:
            return draft, None, b""
        if faults:
            _refuse(self.request.file, faults)
        if apart := [found for found in check_lock(made) if found.severity is Severity.ERROR]:
            lost += _apart(self.request, apart, draft.platforms)
            return plain, None, b""
        if weak := sorted({row.name for rows in made.conda.values() for row in rows if not row.sha256}):
            notes.append(f"only an MD5 is known of {few(weak)}: `tenv update {self.name}` locks them by sha256")
        return draft, part, made.text


def _unread_features(part: ForeignLock, names: Collection[str]) -> list[str]:
    """Return the features that alone bring some packages; none if the target itself needs one of these."""
    rows = [row for trees in part.trees.values() for row in trees if row.name in names]
    return sorted({name for row in rows for name in row.features}) if all(row.features for row in rows) else []


def _with_channels(draft: Draft, part: ForeignLock, notes: list[str]) -> Draft:
    """Return a draft with the channels of all locked packages; those that only a request names come last."""
    known = {url for word in draft.channels for url in channel_urls(word)}
    known |= {url for platform in draft.platforms for word in draft.channels for url in channel_urls(word, platform)}
    there = dict.fromkeys(_channel_of(row) for rows in part.conda.values() for row in rows)
    if not (new := [word for url in there if url not in known and is_channel(word := channel_word(url))]):
        return draft
    notes.append(f"packages of these channels are locked, which only requests name: {', '.join(new)}")
    return replace(draft, channels=(*draft.channels, *new))


def _channel_of(row: Mapping[str, Any]) -> str:
    return str(row.get("channel") or channel_of(str(row["conda"]))).rstrip("/")


def _completed(context: Context, asked: Manifest, part: ForeignLock, lost: list[str]) -> ForeignLock:
    """Return a lock whose source trees and archives have all values of their rows; no code of theirs runs for it.

    A tree gets the request of the manifest. Its requirements are read where the file has none, and those of a folder in
    any case. An archive gets the wheels that its build needs.

    Args:
        context: The context of the verb.
        asked: The manifest.
        part: The content of the lock.
        lost: Receives what can't be read; the lock is then without the package.
    """
    problem = Problem(context, with_features(asked), None, (), SolveOptions(ask_backends=False, explain=False))
    trees: dict[str, tuple[LockedTree, ...]] = {}
    left, read, silent = dict(part.left), Trees(problem), ""
    for platform, rows in part.trees.items():
        found = list[LockedTree]()
        for row in rows:
            try:
                if silent and row.file:  # the index of the next archive is seldom another one
                    raise NetworkError(silent)
                found += _read_row(problem, read, platform, row, known=row.name not in part.unread)
            except TenvError as error:
                left[row.name] = error.message.splitlines()[0].rstrip(":")
                silent = left[row.name] if isinstance(error, NetworkError) and error.unanswered else silent
                version = f" {row.version}" * (row.version != "0")  # of a tree whose version the file lacks
                lost.append(f"{row.name}{version} in the lock: {left[row.name]}")
        trees[platform] = tuple(found)
    return replace(part, trees=trees, left=left)


def _read_row(problem: Problem, trees: Trees, platform: str, row: LockedTree, *, known: bool) -> list[LockedTree]:
    """Return the rows for a row of another tool's lock; none if the manifest has no request for it."""
    here = problem.manifest.on(platform)
    request = here.wheels.get(row.name)
    if row.file:
        index = here.index(request.index) if request and request.index else None
        rows = read_sdist(problem, platform, replace(row, index=index), known=known)
        return [replace(one, features=row.features) for one in rows]
    if request is None or request.tree is None:
        return []
    tree = request.tree
    keys: dict[str, Any] = {**dict.fromkeys(TREE_KEYS, ""), "editable": False, **tree.given()}
    row = replace(row, **keys)
    if tree.path:
        found = _metadata_of(row.name, tree)
        if found is None and not known:
            raise NoSolutionError("its build backend has its requirements, and an import runs none")
    else:
        found = None if known else trees.of(row.name, tree)[0]
    return [replace(row, version=found.version, requires=found.requires, dynamic=False) if found else row]


def _with_origins(asked: Manifest, part: ForeignLock) -> dict[str, tuple[Wheel, ...]]:
    """Return the wheels with the index or the file that the manifest requests them from."""
    found = {}
    for platform, rows in part.wheels.items():
        here = with_features(asked).on(platform)
        wanted = {row.name: here.wheels.get(row.name) for row in rows}
        found[platform] = tuple(
            replace(row, url=request.file.url, path=request.file.path)
            if (request := wanted[row.name]) and request.file
            else replace(row, index=here.index(request.index) if request and request.index else None)
            for row in rows
        )
    return found


def _metadata_of(name: str, tree: TreeRequest) -> ProjectMetadata | None:
    with contextlib.suppress(NoSolutionError):  # it is left to `create`, as in a check of the lock
        return static_metadata(name, tree)
    return None


def _with_unrequired(draft: Draft, asked: Manifest, made: Lock, notes: list[str]) -> Draft | None:
    """Return a draft that also requests the locked packages that nothing requires; None if there is none.

    The package that required them is one that a lock can't have, such as the project itself.
    """
    conda, wheels, names = {}, {}, set[str]()
    for platform in draft.platforms:
        no_conda, no_wheels = unrequired(made, asked.on(platform), platform)
        rows = [row for row in made.conda.get(platform, ()) if row.name in no_conda]
        new = top_level([(row.name, row.version, row.depends) for row in rows])
        every: tuple[Wheel | LockedTree, ...] = (
            *made.wheels.get(platform, ()),
            *(tree for tree in made.trees.get(platform, ()) if tree.file),
        )
        files = [row for row in every if row.name in no_wheels and not row.features]
        more = asked_wheels([(row.name, row.version, row.requires or ()) for row in files])
        conda[platform] = {**new, **draft.dependencies.get(platform, {})}
        wheels[platform] = {**more, **draft.wheels.get(platform, {})}
        names |= {*new, *more}
    if not names:
        return None
    notes.append(f"requested, since no other package of the lock requires them: {', '.join(sorted(names))}")
    return replace(draft, dependencies=conda, wheels=wheels)


def _apart(request: ImportRequest, found: list[Finding], platforms: tuple[str, ...]) -> list[str]:
    """Return why packages of a lock do not fit together, one sentence for each cause.

    Where only some platforms are at fault, the last one has the command that takes the lock of the others.
    """
    causes: dict[tuple[str, str, str], list[str]] = {}
    for one in found:
        causes.setdefault((one.message, one.code, one.fix), []).append(one.subject)
    said = []
    for (message, code, fix), (first, *others) in causes.items():
        more = f", and so are {', '.join(others)}" if others else ""
        said.append(f"its lock: {first} {message} ({code}){more}: {fix}")
    if whole := [name for name in platforms if not any(one.subject.endswith(f" on {name}") for one in found)]:
        said.append(f"the lock of {', '.join(whole)}, too: `{request.command(tuple(whole))} --force` takes it")
    return said


def _refuse(file: Path, faults: list[str]) -> NoReturn:
    """Raise an error for a file whose packages do not satisfy its requests: no tool installed that set."""
    listed = "".join(f"\n  {fault}" for fault in faults)
    raise LockStaleError(
        f"{file}: its packages do not satisfy its requests:{listed}",
        hint="`--no-lock` writes the manifest alone; the tool that wrote the file updates it",
    )


def _counts(manifest: Manifest, part: ForeignLock) -> dict[str, dict[str, int]]:
    return {
        platform: {
            "conda": len(part.conda.get(platform, ())),
            "wheels": len(part.wheels.get(platform, ())) + len(part.trees.get(platform, ())),
        }
        for platform in manifest.platforms
    }


def _read_back(file: Path, name: str, trial: Path, home: Path) -> Manifest:
    def none(parent: str) -> Path:
        raise ManifestError(f"no manifest `{parent}`")

    try:
        return read_manifest(name, trial, none, trial.name, home)
    except TenvError as error:
        raise ManifestError(f"{file}: can't be converted to a manifest: {error.message}", hint=error.hint) from error


def _lock_bytes(file: Path, manifest: Manifest, part: ForeignLock) -> bytes:
    rows = {platform: ({"name": platform}, part.conda.get(platform, ())) for platform in manifest.platforms}
    wheels = {platform: tuple(sorted(part.wheels.get(platform, ()), key=str)) for platform in manifest.platforms}
    channels = tuple(part.channels) or tuple(url for word in manifest.channels for url in channel_urls(word))
    try:
        conda = lock_text(manifest.name, channels, rows, part.options)
    except ValueError as error:
        raise LockCorruptError(f"{file}: can't be converted to a lock: {error}") from error
    made = from_manifest(manifest, {"wheels": wheels, "trees": part.trees})
    every = from_manifest(with_features(manifest), {}).requests  # they count where wheels have no requirements
    return render_lock(replace(made, requests=every), conda)
