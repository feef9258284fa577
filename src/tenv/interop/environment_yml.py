"""The format ``environment.yml`` of conda, mamba and micromamba.

It has no hashes and, except for the selectors of conda-lock, only one platform. An export writes the exact versions of
the lock (`--requests`: the manifest's requests). An import reads requests, with the keys that conda-lock has added
(``platforms``, ``category``, ``# [linux]`` selectors).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.core.errors import FormatError, ManifestError
from tenv.core.names import channel_urls, channel_word
from tenv.core.versions import CondaRange, Range
from tenv.interop.interface import Draft, Exported, Format, GivenFile, Imported, Subject, load_yaml, text_of
from tenv.interop.pip_lines import PipLines
from tenv.interop.requests import channel_words, conda_request, left_out, words_of
from tenv.interop.requirements import index_options
from tenv.locks.lock import LockedTree, Wheel
from tenv.targets.manifest import PLATFORMS, CondaRequest, Manifest, WheelRequest
from tenv.targets.variable_requests import VariableRequest, reserved

_KEYS = ("name", "channels", "dependencies", "platforms", "variables", "prefix", "category", "pip-repositories")
_INSTALLERS = ("pip", "uv")
"""The keys of the lists of wheels; micromamba knows the second one."""

_HEAD = 200
_SUBDIR = re.compile(rf"(?P<channel>[^\s:\[]+(?:://[^\s:\[]+)?)/(?P<platform>{'|'.join(PLATFORMS)})::")
_SELECTORS = {
    "linux": ("linux-64", "linux-aarch64"),
    "unix": ("linux-64", "linux-aarch64"),
    "linux64": ("linux-64",),
    "aarch64": ("linux-aarch64",),
    "x86_64": ("linux-64", "win-64"),
    "win": ("win-64",),
    "win64": ("win-64",),
    "osx": (),
    "osx64": (),
    "arm64": (),
}
"""The platform selectors of conda-build and conda-lock."""

_SEL = re.compile(r"sel\((linux|unix|win|osx)\)")


def _export(subject: Subject) -> Exported:
    lost = left_out(subject, variables=True)
    requests = [subject.manifest.on(platform).environment for platform in subject.platforms]
    if names := sorted({name for here in requests for name, request in here.items() if request.text is None}):
        lost.append(f"variables that use others, and additions to lists: {', '.join(names)}")
    subject = subject if subject.requests else subject.with_one_python(lost)
    files = {}
    several = len(subject.platforms) > 1
    for platform in subject.platforms:
        name = f"environment-{platform}.yml" if several else "environment.yml"
        files[name] = _text(subject, platform).encode()
    if not subject.requests:
        lost.append("an environment.yml has no hashes and URLs: another build of a version may be installed")
    if several:
        lost.append("an environment.yml has one platform: one file is written for each platform")
    trees = (tree.name for platform in subject.platforms for tree in subject.trees(platform))
    return Exported(files, tuple(lost), built=frozenset(trees))


def _text(subject: Subject, platform: str) -> str:
    import yaml  # late: 15 ms

    here = subject.manifest.on(platform)
    conda = _asked(here) if subject.requests else _pinned(subject, platform)
    wheels = (
        [_wheel_line(name, request) for name, request in sorted(here.wheels.items())]
        if subject.requests
        else sorted({_wheel(subject, platform, wheel) for wheel in subject.wheels(platform)})
        + [_tree(subject, platform, tree) for tree in subject.trees(platform)]
    )
    if wheels:
        wheels = [*index_options(subject), *wheels]
    names = {re.split(r"[ =<>!~\[]", line.rpartition("::")[2], maxsplit=1)[0] for line in conda}
    if wheels and "python" not in names:
        minor = subject.minor(platform)
        conda.append(f"python {minor}.*" if minor else f"python {here.python or '*'}")
    if wheels and "pip" not in names:
        conda.append("pip")
    data: dict[str, Any] = {
        "name": subject.lock.target,
        "channels": [*(channel_words(subject) or ["conda-forge"]), "nodefaults"],
        "dependencies": [*conda, *([{"pip": wheels}] if wheels else [])],
    }
    if variables := {name: request.text for name, request in here.environment.items() if request.text is not None}:
        data["variables"] = variables
    return f"# {subject.lock.target} for {platform}\n" + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def _wheel(subject: Subject, platform: str, wheel: Wheel) -> str:
    address = subject.address_of(platform, wheel)
    return f"{wheel.name} @ {address}" if address else f"{wheel.name}=={wheel.version}"


def _tree(subject: Subject, platform: str, tree: LockedTree) -> str:
    """Return the line for a source archive at its version, a repository at its commit, or a folder."""
    request = subject.manifest.on(platform).wheels.get(tree.name, WheelRequest(Range("*")))
    if tree.file:
        return f"{tree.name}=={tree.version}"
    at: dict[str, Any] = {"rev": tree.commit, "branch": "", "tag": ""} if tree.commit else {}
    found = replace(tree.request, base=request.tree.base if request.tree else Path(), **at)
    return _wheel_line(tree.name, replace(request, version=Range("*"), tree=found))


def _pinned(subject: Subject, platform: str) -> list[str]:
    words = {url: word for word in channel_words(subject) for url in channel_urls(word)}
    several = len({package.channel for package in subject.lock.conda.get(platform, ())}) > 1
    lines = []
    for package in subject.lock.conda.get(platform, ()):
        word = words.get(package.channel, channel_word(package.channel))
        lines.append(f"{word}::" * several + f"{package.name}={package.version}={package.build}")
    return lines


def _asked(manifest: Manifest) -> list[str]:
    lines = []
    for name, request in sorted(manifest.dependencies.items()):
        version = str(request.version)
        version = f"=={version}" if version[:1].isdigit() and not version.endswith("*") else version
        build = f"[build='{request.build}']" if request.build else ""
        lines.append(f"{request.channel}::" * bool(request.channel) + name + f" {version}" * (version != "*") + build)
    return lines


def _wheel_line(name: str, request: WheelRequest) -> str:
    extras = f"[{','.join(request.extras)}]" if request.extras else ""
    if file := request.file:
        return f"{name}{extras} @ {file.address}"
    if tree := request.tree:
        if tree.path:
            return f"-e {tree.folder}{extras}" if tree.editable else f"{name}{extras} @ {tree.folder.as_uri()}"
        below = f"#subdirectory={tree.subdirectory}" if tree.subdirectory else ""
        revision = tree.rev or tree.branch or tree.tag
        return f"{name}{extras} @ git+{tree.git}{f'@{revision}' if revision else ''}{below}"
    return f"{name}{extras}{request.version.specifiers}"


def _variables(source: GivenFile, data: dict[str, Any], lost: list[str]) -> dict[str, VariableRequest]:
    variables = data.get("variables") or {}
    if not isinstance(variables, dict):
        raise ManifestError(f"{source.path}: variables: expected a mapping")
    given = {str(key): str(value) for key, value in variables.items()}
    faults = {key: fault for key in given if (fault := reserved(key))}
    lost += [f"`{key}`, since it {fault}" for key, fault in faults.items()]
    return {key: VariableRequest.literal(key, value) for key, value in given.items() if key not in faults}


def _of_systems(items: list[Any], platforms: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield each dependency with its platforms: micromamba has `sel(linux): PACKAGE` for those of one system."""
    for item in items:
        key, text = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else ("", None)
        match = _SEL.fullmatch(str(key)) if isinstance(text, str) else None
        yield (text, tuple(on for on in platforms if on in _SELECTORS[match[1]])) if match else (item, platforms)


def read_environment(source: GivenFile) -> Imported:
    """Read an ``environment.yml``."""
    data = load_yaml(source, ManifestError)
    usual = {"allow-pypi-requests": True}  # of conda-lock
    lost = [f"`{key}`" for key, value in data.items() if key not in _KEYS and usual.get(key) != value]
    channels = [str(word) for word in _list(source, data, "channels")]
    notes: list[str] = []
    platforms = _platforms(source, data, lost, notes)
    conda: dict[str, dict[str, CondaRequest]] = {platform: {} for platform in platforms}
    selectors = _Selectors(text_of(source, ManifestError), platforms, lost)
    pip: list[str] = []
    for item, allowed in _of_systems(_list(source, data, "dependencies"), platforms):
        if isinstance(item, str):
            text, only = _of_subdir(item)
            name, request, rest = _parsed(source, text, conda_request)
            where = tuple(on for on in selectors.where(item) if on in allowed)
            if only and only not in where:
                notes.append(f"for {only} alone (`--platform` adds it): {item}")
            _add(conda, tuple(on for on in where if only in ("", on)), name, request, lost)
            lost += [f"of `{name}` tenv can't request {rest}"] if rest else []
        elif isinstance(item, dict) and item and all(isinstance(key, str) for key in item):
            pip += [line for key in _INSTALLERS for line in _pip(source, item.get(key, []))]
            lost += [f"`{key}` of the dependencies is not imported" for key in item if key not in _INSTALLERS]
        else:
            raise ManifestError(f"{source.path}: dependencies: expected a package or a `pip:` list, got {item!r:.100}")
    lines = PipLines(platforms, source.path.parent, lost, _minor(conda))
    for url in _list(source, data, "pip-repositories"):  # of conda-lock: further indexes
        lines.add(f"--extra-index-url {url}", platforms, source.path.parent)
    for line in pip:  # last, since their markers may depend on the Python
        where = selectors.where(line)
        _parsed(source, line, lambda text, where=where: lines.add(text, where, source.path.parent))
    lines.finish()
    draft = Draft(
        platforms=platforms,
        channels=words_of([word for word in channels if word != "nodefaults"], platforms),
        dependencies=conda,
        wheels={platform: lines.tables.get(platform, {}) for platform in platforms},
        indexes=tuple(lines.indexes),
        environment=dict.fromkeys(platforms, _variables(source, data, lost)),
        sdists=tuple(dict.fromkeys(lines.sdists)),
        bounds={"constraints": tuple(lines.constraints)},
    )
    if not channels and any(conda.values()):
        notes.append("the file names no channels: conda-forge is used, and conda takes the configured ones")
    notes.append("an environment.yml has no hashes, so no lock is written: `tenv lock` writes one")
    name = str(data.get("name") or "")
    return Imported(name, draft, None, tuple(dict.fromkeys(lost)), tuple(dict.fromkeys([*notes, *lines.notes])))


def _of_subdir(item: str) -> tuple[str, str]:
    """Return a request without the platform of its channel (``conda-forge/linux-64::cupy``), and that platform."""
    if "://" in item and (subdir := item.rsplit("/", 2)[-2]) in PLATFORMS:  # the address of a package
        return item, subdir
    found = _SUBDIR.match(item)
    return (f"{found['channel']}::{item[found.end() :]}", found["platform"]) if found else (item, "")


def _minor(conda: Mapping[str, Mapping[str, CondaRequest]]) -> str:
    """Return the only Python minor that is requested from conda, or an empty string."""
    asked = {str(table["python"].version) for table in conda.values() if "python" in table}
    found = re.match(r"(3\.\d+)(\.|$)", asked.pop()) if len(asked) == 1 else None
    return found[1] if found else ""


def _list(source: GivenFile, data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key) or []
    if not isinstance(value, list):
        raise ManifestError(f"{source.path}: {key}: expected a list")
    return value


def _platforms(source: GivenFile, data: Mapping[str, Any], lost: list[str], notes: list[str]) -> tuple[str, ...]:
    named = [str(word) for word in _list(source, data, "platforms")]
    if not named:
        found = re.match(r"# \S+ for (\S+)\s", source.raw[:_HEAD].decode(errors="replace"))
        if found and found[1] in PLATFORMS and not source.platforms:  # the first line of tenv's export
            return (found[1],)
        if not source.platforms:
            notes.append("the file has no platforms: linux-64 is used (`--platform` sets others)")
        return source.platforms or ("linux-64",)
    taken, left = source.choose(named)
    if left:
        lost.append(f"skipped platforms: {', '.join(left)}")
    if not taken:
        raise FormatError(f"{source.path}: has no platform that tenv supports", hint=f"known: {', '.join(PLATFORMS)}")
    return taken


_SELECTED = re.compile(
    r"^[ \t]*-[ \t]+(?P<item>[^#\s](?:[^#\n]*[^#\s])?)(?:[ \t]+#[ \t]*(?:\[(?P<word>[^\]\n]+)\])?[^\n]*)?[ \t\r]*$",
    re.MULTILINE,
)


class _Selectors:
    """The selectors in comments after dependencies, such as ``- gcc  # [linux]``, in the order of the file."""

    def __init__(self, text: str, platforms: tuple[str, ...], lost: list[str]) -> None:
        self._platforms, self._lost = platforms, lost
        self._words: dict[str, list[str]] = {}
        for row in _SELECTED.finditer(text):
            self._words.setdefault(row["item"].strip("'\""), []).append((row["word"] or "").strip())

    def where(self, item: str) -> tuple[str, ...]:
        """Return the platforms of the next line of an item; the same line may stand there several times."""
        words = self._words.get(item.strip()) or [""]
        word = words.pop(0) if len(words) > 1 else words[0]
        if not word:
            return self._platforms
        found = _selected(word)
        if found is None:
            self._lost.append(f"the selector `[{word}]` of `{item}`: the request is for all platforms")
            return self._platforms
        if found and not set(found) & set(self._platforms):
            self._lost.append(f"`{item}`, which is for {', '.join(found)} alone (`--platform` adds it)")
        return tuple(name for name in self._platforms if name in found)


def _selected(word: str) -> tuple[str, ...] | None:
    """Return the platforms of a selector; None for one that names something else."""
    found = set(PLATFORMS)
    for part in word.split(" and "):
        name = part.strip().removeprefix("not ").strip()
        here = {platform for one in name.split(" or ") for platform in _SELECTORS.get(one.strip(), ("?",))}
        if "?" in here:
            return None
        found &= here if name == part.strip() else set(PLATFORMS) - here
    return tuple(name for name in PLATFORMS if name in found)


def _pip(source: GivenFile, lines: Any) -> list[str]:
    if not isinstance(lines, list):
        raise ManifestError(f"{source.path}: dependencies: expected a list below `pip:`")
    return [re.sub(r"\s+#.*", "", str(line)) for line in lines]


def _parsed(source: GivenFile, text: str, parse: Any) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise ManifestError(f"{source.path}: dependencies: `{text[:100]}`: {error}") from error


def _add(
    tables: dict[str, dict[str, CondaRequest]],
    platforms: tuple[str, ...],
    name: str,
    request: CondaRequest,
    lost: list[str],
) -> None:
    """Add a request; conda takes two of one name together."""
    for platform in platforms:
        before = tables[platform].get(name)
        tables[platform][name] = _both(name, before, request, lost) if before and before != request else request


def _both(name: str, one: CondaRequest, other: CondaRequest, lost: list[str]) -> CondaRequest:
    versions = [str(request.version) for request in (one, other) if str(request.version) != "*"]
    version = ",".join(dict.fromkeys(versions)) or "*"
    if "|" in version or (one.build and other.build) or (one.channel and other.channel not in ("", one.channel)):
        lost.append(f"`{name}` is requested twice, and the second request counts: {other}")
        return other
    return CondaRequest(CondaRange(version), one.channel or other.channel, one.build or other.build)


FORMAT = Format(
    name="environment.yml",
    export=_export,
    read=read_environment,
    recognize=lambda name, head: name.endswith((".yml", ".yaml")) and b"dependencies:" in head,
)
