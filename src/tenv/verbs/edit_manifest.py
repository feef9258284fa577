"""Add packages to a manifest or drop them, keeping its comments and order, and lock it."""

import contextlib
import json
import os
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.checks.rules.interface import Finding
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBusyError, NetworkError, TenvError, UsageError
from tenv.core.files import read_regular, write_atomic
from tenv.core.names import channel_url, normalize
from tenv.core.toml_reader import nearest
from tenv.core.versions import Range
from tenv.project.context import Context
from tenv.targets.manifest import Manifest
from tenv.targets.manifest_file import TORCH, read_manifest
from tenv.targets.search import Origin, Target
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import TreeRequest
from tenv.toolchain.discover import site_packages
from tenv.verbs.create import Created, CreateRequest, create
from tenv.verbs.lock import Locked, lock_target
from tenv.verbs.lock_place import require_kept
from tenv.verbs.requests import (
    AddOptions,
    TypedRequest,
    at_own_place,
    parse_request,
    requested_names,
    require_range,
    typed_index,
)

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


_ANYWHERE = AddOptions()
_TRIES = 10
_COMPILED = ("isolation", "requires", "cxx", "archs")
_NAMES = {section.key: section.name for section in SECTIONS}


@dataclass(frozen=True, slots=True)
class Edited:
    """The result of `add` or `drop`."""

    target: Target
    """The target, with its new manifest."""
    section: str
    """The section that was written, such as ``pypi-dependencies``."""
    lines: tuple[str, ...]
    """The written changes, one line each."""
    locked: Locked
    """The lock."""
    created: Created | None = None
    """The updated environment; None if there is none, or if the caller did not request it."""
    missing: bool = False
    """Whether there is no environment."""
    notes: tuple[str, ...] = ()
    """The requests of a parent that this changes, one sentence each."""


_CHANNELS = ("conda-forge", "pytorch", "nvidia")
"""The channels in which a package is looked for where a manifest names none; the first completes all others."""


class _ChangedMeanwhileError(Exception):
    """Another command has written the manifest since it was read."""


def add(
    context: Context, name: str, specs: Sequence[str], key: str | None, tell: Callable[[Sequence[Finding]], None],
    *, made: bool = True, options: AddOptions | None = None,
) -> Edited:  # fmt: skip
    """Add packages to the manifest of a target; an existing request is replaced.

    Args:
        context: The context of the verb.
        name: The target.
        specs: The requests from the command line.
        key: The source of the packages (conda, wheels, archives); None for the default one of the target.
        tell: Receives the findings of the rules if the environment is updated.
        made: Whether to update an existing environment.
        options: The feature, the platform and the index that they are for, and the revision of a repository.

    Raises:
        UsageError: The manifest can't be edited, or a request or an option is not valid.
        NoSolutionError: No set of files satisfies the new manifest, which is then not written.
    """
    site = site_packages(context.environment(name, None).prefix)
    options = options or AddOptions()
    if options.editable:
        specs = [f"./{spec}" if os.sep not in spec and Path(spec).is_dir() else spec for spec in specs]
    requests = [options.placed(parse_request(spec, name, site), spec, name) for spec in specs]
    _require_once(requests)
    command = shlex.join(["tenv", "add", name, *options.words(), *specs])
    typed = dict(zip(requests, specs, strict=True))
    return _again(lambda: _added(context, name, typed, key, tell, command, options, made=made), command)


def _added(
    context: Context, name: str, typed: Mapping[TypedRequest, str], key: str | None,
    tell: Callable[[Sequence[Finding]], None], command: str, options: AddOptions, *, made: bool,
) -> Edited:  # fmt: skip
    target, requests = _own(context, name), tuple(typed)
    options.require_platform(target.manifest.platforms, name)
    key = key or _kind(target.manifest, requests)
    section = options.section(_NAMES[key])
    if key != "wheels" and (row := next((row for row in requests if row.is_placed), None)):
        what = "is built from a source tree" if row.tree else "is one wheel"
        raise UsageError(f"{row.name} {what}, which stands in [{_NAMES['wheels']}] alone")
    url = typed_index(options.index)[1]
    if key != "wheels" and options.index:
        raise UsageError(f"--index: only wheels come from a package index, and these stand in [{section}]")
    if key != "wheels" and requests[0].keys:
        raise UsageError(f"--build: only packages of [{_NAMES['wheels']}] are built, and these stand in [{section}]")
    for request, text in typed.items():
        require_range(request, text, key)
        if key == "wheels" and normalize(request.name) == TORCH and not request.tree:
            _require_torch(context, target, request)
    requests = tuple(at_own_place(target.manifest, request, key, command, options) for request in requests)
    read = read_regular(target.file)
    document = _document(read)
    new = [request.name for request in requests if not _has(document, request.name)]
    lines = tuple(_put(document, section, request, target.file.parent) for request in requests)
    lines += _put_index(document, target, requests[0].index, url) if url else ()
    channels = _put_channels(context, document, target, requests) if key == "conda" else ()
    asked = [row for request in requests for row in _inherited(context, document, request.name)]
    notes = (*channels, *(f"{what}, which this replaces" for _, _, what in asked))
    back = f"`{shlex.join(['tenv', 'drop', name, *new])}` takes the request back" if new else ""
    return _apply(context, target, section, lines, (read, document), tell, command, made=made, back=back, notes=notes)


def _require_torch(context: Context, target: Target, request: TypedRequest) -> None:
    """Refuse torch on a target of a fixed CUDA where it takes more edits than its request: one error has all of them.

    Raises:
        NoSolutionError: It takes them, or there is no torch with that CUDA.
    """
    from tenv.verbs.torch_edits import edits_for_torch, refusal  # late: only for torch

    words, edits = edits_for_torch(context, target.manifest, Range(request.version))
    if words:
        raise refusal(target.name, str(target.manifest.file), words, edits)


def _require_once(requests: Sequence[TypedRequest]) -> None:
    """Refuse several requests for one package: the manifest has one range for each."""
    for number, request in enumerate(requests):
        if normalize(request.name) in {normalize(earlier.name) for earlier in requests[:number]}:
            hint = f"one range can have several parts: '{request.name}>=2,<3'"
            raise UsageError(f"{request.name} is requested twice", hint=hint)


def _again(edit: "Callable[[], Edited]", command: str) -> Edited:
    """Edit a manifest, anew where another command has written it meanwhile: no edit of either is lost."""
    for _ in range(_TRIES):
        try:
            return edit()
        except _ChangedMeanwhileError:
            continue
    raise EnvironmentBusyError("other commands keep writing the manifest", hint=f"run it again: `{command}`")


def drop(
    context: Context, name: str, packages: Sequence[str], tell: Callable[[Sequence[Finding]], None],
    *, made: bool = True, options: AddOptions = _ANYWHERE,
) -> Edited:  # fmt: skip
    """Remove packages from the manifest of a target; ``NAME = false`` drops a request of a parent.

    A request of the target itself goes first: the replaced one of a parent holds again.

    With a feature or a platform in `options`, its own sections alone lose them.

    Raises:
        UsageError: The target is not one whose manifest can be edited, or does not ask for a package.
        NoSolutionError: No set of files satisfies the new manifest; it is then as before.
    """
    command = shlex.join(["tenv", "drop", *options.words(), name, *packages])
    rows, within = tuple(dict.fromkeys(packages)), options.section("")
    return _again(lambda: _dropped(context, name, rows, tell, command, made=made, within=within), command)


def _dropped(
    context: Context, name: str, packages: Sequence[str], tell: Callable[[Sequence[Finding]], None], command: str,
    *, made: bool, within: str,
) -> Edited:  # fmt: skip
    target = _own(context, name)
    read = read_regular(target.file)
    document = _document(read)
    lines: list[str] = []
    notes: list[str] = []
    sections: list[str] = []
    for package in packages:
        found = list(_take(document, package, within))
        inherited = [] if within else _inherited(context, document, package)
        if found and inherited:  # what its own request replaced holds again
            again = shlex.join(["tenv", "drop", name, package])
            notes += [f"{asked}, which holds again; `{again}` takes that away" for _, _, asked in inherited]
            inherited = []
        if not found and not inherited:
            known = {one for key in _NAMES for one in requested_names(target.manifest, key)}
            hint = nearest(package, known) or f"`tenv show {name}` lists its requests"
            where = f" in [{within.rstrip('.')}]" if within else ""
            raise UsageError(f"{target.file} has no request for `{package}`{where}", hint=hint)
        for section, own, asked in inherited:
            _table(document, section)[own] = False
            found.append((section, f"{own} = false"))
            notes.append(f"{asked}, which `{own} = false` takes away")
        sections += [section for section, _ in found]
        lines += [line for _, line in found]
    section = ", ".join(dict.fromkeys(sections))
    given = (read, document)
    return _apply(context, target, section, tuple(lines), given, tell, command, made=made, notes=tuple(notes))


def _own(context: Context, name: str) -> Target:
    """Return a target whose manifest belongs to the project or the user."""
    target = context.places.find(name)
    if target.origin is Origin.BUILT_IN:
        raise UsageError(
            f"the manifest of {name} is built-in, so tenv does not edit it",
            hint=f"`tenv init NAME --extends {name}` writes a manifest that extends it",
        )
    return target


def _kind(manifest: Manifest, requests: Sequence[TypedRequest]) -> str:
    """Return the source that packages of a target come from when none is named.

    A channel means conda. A package that is asked for already stays in its section. Else wheels, unless the target's
    Python is a conda package.
    """
    if any(request.channel for request in requests):
        return "conda"
    if any(request.is_placed or request.index or request.keys for request in requests):
        return "wheels"
    for key in _NAMES:
        known = set(map(normalize, requested_names(manifest, key)))
        if all(normalize(request.name) in known for request in requests):
            return key
    return "conda" if "python" in requested_names(manifest, "conda") else "wheels"


def _document(read: bytes) -> "TOMLDocument":
    import tomlkit  # late: 22 ms

    return tomlkit.parse(read.decode("utf-8-sig").replace("\r\n", "\n"))


def _table(document: Any, section: str) -> Any:
    import tomlkit

    table = document
    *above, last = section.split(".")
    for part in (*above, last):
        if part not in table:
            table.append(part, tomlkit.table(is_super_table=part is not last))
        table = table[part]
    return table


def _compiled(old: Any, tree: TreeRequest, name: str) -> Mapping[str, Any]:
    """Return the keys of a request for its build against the target's torch, which the request in its place keeps.

    Raises:
        UsageError: The new one is an editable folder, which has no such build.
    """
    kept = {key: old[key] for key in _COMPILED if key in old} if isinstance(old, dict) else {}
    if tree.editable and kept.get("isolation") is False:
        raise UsageError(
            f"{name} is compiled against the target's torch (`isolation = false`), which an editable folder is not",
            hint=f"without `--editable` it stays so; `tenv drop` of {name} takes the request away first",
        )
    return {} if tree.editable else kept


def _put(document: Any, section: str, request: TypedRequest, home: Path) -> str:
    """Write a request into a section, where there is one in its place; return the line."""
    import tomlkit

    table = _table(document, section)
    key = next((own for own in table if normalize(own) == normalize(request.name)), request.name)
    extras = list(request.extras)
    fields = {"version": request.version, "extras": extras, "channel": request.channel, "index": request.index}
    given: dict[str, Any] = {name: value for name, value in fields.items() if value}
    old = table.get(key)
    if tree := request.tree:
        given |= {**tree.given(), **_compiled(old, tree, key)}
        if tree.path:
            given["path"] = Path(os.path.relpath(tree.folder, home)).as_posix()
        old = None
    elif file := request.file:
        given |= {"url": file.url} if file.url else {"path": Path(os.path.relpath(file.file, home)).as_posix()}
        given |= {"sha256": file.sha256} if file.sha256 else {}
        old = None
    elif isinstance(old, dict) and set(old) & {"git", "path", "url"}:
        old = None
    given |= {name: list(value) if isinstance(value, tuple) else value for name, value in request.keys}
    if isinstance(old, dict):
        for name, value in given.items():
            old[name] = value
    elif len(given) > 1 or request.is_placed:
        inline = tomlkit.inline_table()
        inline.update(given)
        table[key] = inline
    else:
        table[key] = request.version
    return f"{key} = {table[key].as_string() if hasattr(table[key], 'as_string') else table[key]}".strip()


def _put_index(document: Any, target: Target, name: str, url: str) -> tuple[str, ...]:
    """Write an explicit index into a manifest that does not name it; return the line.

    Raises:
        UsageError: The manifest, or a parent, names another one so.
    """
    import tomlkit

    if known := target.manifest.index(name):
        if known.url != url:
            raise UsageError(f"--index: {target.name} names {known.url} as `{name}`", hint=f"`--index {name}` takes it")
        return ()
    row = tomlkit.table()
    row.update({"name": name, "url": url, "explicit": True})
    if "index" not in document:
        document.append("index", tomlkit.aot())
    document["index"].append(row)
    return (f"[[index]] {name} = {url}",)


def _put_channels(context: Context, document: Any, target: Target, requests: Sequence[TypedRequest]) -> tuple[str, ...]:
    """Write the channels of conda packages into a manifest that names none; return a note.

    The channels that requests name come first: under strict priority, the packages that belong to them come from there,
    too. The others are looked for in the known channels.
    """
    if target.manifest.channels:
        return ()
    from tenv.rattler_api.solver import Solver  # late: heavy

    found = [request.channel for request in requests if request.channel]
    solver, platforms = Solver(context.network()), target.manifest.platforms
    for request in (request for request in requests if not request.channel):
        for channel in _CHANNELS:
            url = channel_url(channel, request.name)
            with contextlib.suppress(NetworkError):
                if any(solver.candidates([url], platform, request.name.lower()) for platform in platforms):
                    found.append(channel)
                    break
    channels = [*dict.fromkeys(word for word in found if word != _CHANNELS[0]), _CHANNELS[0]]
    document["channels"] = channels
    return (f"the manifest names no channel, so `channels = {json.dumps(channels)}` is written",)


def _take(document: Any, package: str, within: str = "") -> "list[tuple[str, str]]":
    """Take a package out of every section, those of platforms and features too; return where it stood.

    Args:
        document: The manifest.
        package: The package.
        within: The beginning of the names of the only sections that lose it, such as ``feature.debug.``.
    """
    found = []
    for section, table in _sections(document):
        if not section.startswith(within):
            continue
        for own in [own for own in table or () if normalize(own) == normalize(package) and table[own] is not False]:
            del table[own]
            found.append((section, f"{own} (removed)"))
    for section in {section for section, _ in found}:
        _remove_empty(document, section.split("."))
    return found


def _remove_empty(table: Any, path: Sequence[str]) -> None:
    """Remove the table of a dotted path where neither a key nor a comment is left in it, and those above it."""
    if len(path) > 1:
        _remove_empty(table[path[0]], path[1:])
    if not table[path[0]] and "#" not in table[path[0]].as_string():
        del table[path[0]]


def _sections(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the table of every section with requests, those of platforms and features too."""
    for feature, whole in [("", document), *document.get("feature", {}).items()]:
        for platform, part in [("", whole), *whole.get("platform", {}).items()]:
            at = AddOptions(feature, platform)
            yield from ((at.section(section), part[section]) for section in _NAMES.values() if section in part)


def _has(document: "TOMLDocument", package: str) -> bool:
    """Return whether a manifest itself says something about a package."""
    own = (name for _, table in _sections(document) for name in table)
    return any(normalize(name) == normalize(package) for name in own)


def _inherited(context: Context, document: "TOMLDocument", package: str) -> "list[tuple[str, str, str]]":
    """Return the sections in which a parent asks for a package, each with the name there and the request."""
    parent = str(document.get("extends", ""))
    if not parent:
        return []
    places = context.places
    above = read_manifest(parent, places.find_parent(parent), places.find_parent)
    return [
        (_NAMES[key], own, f"{parent} asks for {own} {_range(above, key, own)}".rstrip())
        for key in _NAMES
        for own in sorted(requested_names(above, key))
        if normalize(own) == normalize(package)
    ]


def _range(manifest: Manifest, key: str, name: str) -> str:
    """Return the range that a manifest asks for on the first platform on which it asks for a package."""
    views = (manifest, *(manifest.on(platform) for platform in manifest.platforms))
    asked = next(view.wanted(key)[name] for view in views if name in view.wanted(key))
    return str(getattr(asked, "version", ""))


@contextlib.contextmanager
def _taken_back(file: Path, before: bytes, after: bytes, within: Path | None) -> Iterator[None]:
    """Write a lock; if that fails, take the edit of its manifest back, unless another command has written it since."""
    try:
        yield
    except BaseException as error:
        try:
            if read_regular(file) == after:
                write_atomic(file, before, within=within)
        except (TenvError, OSError) as worse:
            if isinstance(error, TenvError):
                error.message += f"; {file} is edited, and that can't be taken back: {worse}"
        raise


def _apply(
    context: Context, target: Target, section: str, lines: tuple[str, ...], edited: "tuple[bytes, TOMLDocument]",
    tell: Callable[[Sequence[Finding]], None], command: str, *, made: bool, back: str = "",
    notes: tuple[str, ...] = (),
) -> Edited:  # fmt: skip
    """Lock the new manifest, then write both files, then bring the environment up to date.

    An error of the last step says that the files are written, and `back`, which takes the edit back.

    Raises:
        _ChangedMeanwhileError: The manifest has changed since it was read; nothing is written.
    """
    read, text = edited[0], edited[1].as_string()
    with tempfile.TemporaryDirectory(prefix="tenv-") as folder:
        trial = Path(folder) / target.file.name
        trial.write_text(text, encoding="utf-8")
        manifest = read_manifest(target.name, trial, context.places.find_parent, str(target.file), target.file.parent)
    new = replace(target, manifest=manifest)
    locked = lock_target(context, new, dry_run=True)
    if locked.changed:
        require_kept(locked.path, command)
    if read_regular(target.file) != read:
        raise _ChangedMeanwhileError
    write_atomic(target.file, text, within=context.places.project)
    if locked.changed:
        with _taken_back(target.file, read, text.encode(), context.places.project):
            write_atomic(locked.path, locked.lock.text, within=context.places.project)
    created = None
    missing = context.environment(target.name, None).state() is None
    if made and not missing:
        try:
            created = create(context, CreateRequest(target.name), tell)
        except TenvError as error:
            error.message += f"\n{target.file} and {locked.path} are written: {', '.join(lines)}"
            hints = (error.hint, f"`tenv create {target.name}` tries again", back)
            error.hint = "; ".join(hint for hint in hints if hint)
            raise
    return Edited(new, section, lines, locked, created, missing, notes)
