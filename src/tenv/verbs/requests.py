"""Requests on the command line: ``numpy>=2,<3``, ``cuda-toolkit[nvcc]==13.0.*``, ``conda-forge::cmake``."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tenv.core.dataclass import dataclass
from tenv.core.errors import NoSolutionError, UsageError
from tenv.core.files import read_regular
from tenv.core.names import WheelFile, file_at, is_wheel, normalize
from tenv.core.untrusted import name_fault, without_login
from tenv.core.versions import CondaRange, Range
from tenv.debugging.install_line import install_line
from tenv.sources.wheels.project_metadata import name_of_project
from tenv.targets.manifest import Manifest, WheelRequest, feature_with
from tenv.targets.sections import SECTIONS
from tenv.targets.tree_request import REVISIONS, WHY, TreeRequest, git_line, names_source, reference_fault
from tenv.targets.wheel_origin import FileRequest, file_url_fault, index_fault, split_digest

_REVERSED = re.compile(r"(?<![<>=!~])=\s*([<>])")
"""``=>`` and ``=<``, which pip and conda write the other way round."""

_SPEC = re.compile(
    r"(?:(?P<channel>[^\s:=<>!~\[\]]+)::)?(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)"
    r"(?:\[(?P<extras>[^\]]*)\])?\s*(?P<version>(?:[=<>!~*@]|(?<=\s)\d).*)?"
)

_NAMED = r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*@\s*"
_WHEEL = re.compile(rf"(?:{_NAMED})?(?P<place>[^\[\]]+)(?:\[(?P<more>[^\]]*)\])?")
_GIT_NAME = re.compile(r"([\w.-]+?)(?:\.git)?(?:@[^/@]*)?(?:#.*)?$")
"""The last part of the address of a repository, which mostly is the name of its package."""
_LOCAL = re.compile(r"(?<![+\w])file://(?:localhost)?(/[^\s#\[\]]*)")
"""The address of a wheel or a folder of this machine, as pip and uv write it."""
_FOLDER = re.compile(rf"(?:{_NAMED})?(?P<path>(?:\.{{0,2}}/|\.{{1,2}}$)[^\[\]]*)(?:\[(?P<more>[^\]]*)\])?")


@dataclass(frozen=True, slots=True)
class TypedRequest:
    """A request of the command line."""

    name: str
    """The package."""
    version: str = "*"
    """The range; ``*`` without one."""
    extras: tuple[str, ...] = ()
    """The extras of a wheel, normalized."""
    channel: str = ""
    """The channel of a conda package; empty for none."""
    tree: TreeRequest | None = None
    """The source tree that it is built from; None for a package of a channel or an index."""
    file: FileRequest | None = None
    """The one wheel that is accepted; None for a package of a channel or an index."""
    index: str = ""
    """The name or the address of its only index; empty for any."""
    keys: tuple[tuple[str, Any], ...] = ()
    """The further keys of its request, with their values."""

    @property
    def is_placed(self) -> bool:
        """Whether it names a place: a source tree or one wheel."""
        return bool(self.tree or self.file)


@dataclass(frozen=True, slots=True)
class AddOptions:
    """The options of `tenv add` about all its requests; each is empty where it is not given."""

    feature: str = ""
    """The feature of the target that the requests belong to."""
    platform: str = ""
    """The only platform that they are for."""
    editable: bool = False
    """Whether they are folders, which Python imports from."""
    branch: str = ""
    """The branch of a git repository."""
    tag: str = ""
    """Its tag."""
    rev: str = ""
    """Its commit."""
    index: str = ""
    """The only index of the packages: the name of one in the manifest, ``NAME=URL``, which is added to it, or an
    address."""
    build: bool = False
    """Whether they may be built from their source archives."""
    no_isolation: bool = False
    """Whether they are compiled against the target's torch."""
    requires: tuple[str, ...] = ()
    """Their requirements, which replace the requirements of their sources; an empty text is none."""
    cxx: str | None = None
    """The C++ standard that they are compiled with; None for their own."""
    archs: str = ""
    """The GPU architectures that they are compiled for, as ``TORCH_CUDA_ARCH_LIST``; empty for their own."""

    def section(self, name: str) -> str:
        """Return the dotted name of a section of a manifest, at the feature and the platform."""
        parts = (("feature", self.feature), ("platform", self.platform))
        return ".".join([*(part for key, value in parts if value for part in (key, value)), name])

    def words(self) -> list[str]:
        """Return the options as they are typed."""
        names = ("feature", "platform", *REVISIONS, "index")
        given = [word for name in names if (value := getattr(self, name)) for word in (f"--{name}", str(value))]
        flags = [f"--{name.replace('_', '-')}" for name in ("editable", "build", "no_isolation") if getattr(self, name)]
        more = [word for text in self.requires for word in ("--requires", text)]
        more += ["--cxx", self.cxx] if self.cxx else []
        return [*given, *flags, *more, *(["--archs", self.archs] if self.archs else [])]

    def placed(self, request: TypedRequest, typed: str, target: str) -> TypedRequest:
        """Return a request with its index and revision; raises UsageError where an option does not fit the request."""
        request = self._compiled(replace(request, index=typed_index(self.index)[0]), typed, target)
        tree = request.tree
        if self.editable and not (tree and tree.path):
            raise UsageError(f"`{typed}` is no folder, which --editable is for", hint="`tenv add --editable ./vision`")
        named = [name for name in REVISIONS if getattr(self, name)]
        if not named:
            return request
        option = f"--{named[0]}"
        if not tree or not tree.git:
            hint = f"`tenv add {option} … 'NAME @ git+https://…'` names one"
            raise UsageError(f"`{typed}` is no git repository, which {option} is for", hint=hint)
        if len(named) > 1 or tree.rev:
            raise UsageError(f"{option}: `{tree.rev or '--' + named[1]}` names the revision already")
        value = getattr(self, named[0])
        if fault := reference_fault(value):
            raise UsageError(f"{option}: {fault}")
        return replace(request, tree=replace(tree, **{named[0]: value}))

    def _compiled(self, request: TypedRequest, typed: str, target: str) -> TypedRequest:
        """Return a request with its keys for a build; raises UsageError where one of them does not fit the request."""
        for option, value in (("--requires", self.requires), ("--cxx", self.cxx), ("--archs", self.archs)):
            if value and not self.no_isolation:
                raise UsageError(f"{option} is for packages with --no-isolation, compiled against the target's torch")
        if (self.build or self.no_isolation) and request.file:
            raise UsageError(f"`{typed}` is a wheel, which is not built")
        if self.build and request.tree:
            raise UsageError(f"`{typed}` is a source tree, which is built without --build")
        if not self.no_isolation:
            return replace(request, keys=(("build", True),) if self.build else ())
        if not self.build and not request.tree:
            line = shlex.join(["tenv", "add", target, *replace(self, build=True).words(), typed])
            hint = f"`{line}` permits the build, which runs the code of the package"
            raise UsageError(f"`{typed}`: --no-isolation compiles it from its source archive", hint=hint)
        if self.editable:
            raise UsageError("--editable: a folder that is compiled with --no-isolation is not editable")
        keys: list[tuple[str, Any]] = [("build", True)] if self.build else []
        keys += [("isolation", False)]
        keys += [("requires", tuple(text for text in self.requires if text.strip()))] if self.requires else []
        keys += [("cxx", int(self.cxx))] if self.cxx else []
        keys += [("archs", self.archs)] if self.archs else []
        tree = request.tree and replace(request.tree, editable=False)
        return replace(request, tree=tree, keys=tuple(keys))

    def require_platform(self, platforms: Sequence[str], target: str) -> None:
        """Raise UsageError where the target is not for the platform."""
        if self.platform and self.platform not in platforms:
            raise UsageError(f"{target} is not for {self.platform}", hint=f"it is for {', '.join(platforms)}")


def parse_request(text: str, target: str, site_packages: Path) -> TypedRequest:
    """Return a request of a target. A folder is relative to the working folder, and becomes an editable package.

    Args:
        text: The request as typed.
        target: The target, for hints.
        site_packages: Where its environment keeps packages, for hints.

    Raises:
        UsageError: The text is not a valid request.
    """
    text = _LOCAL.sub(lambda match: unquote(match[1]), text)
    if placed := _git(text) or _wheel(text) or _folder(text):
        return placed
    if text.strip().startswith("git+"):
        name = _GIT_NAME.search(text.strip())
        named = shlex.quote(f"{name[1] if name else 'NAME'} @ {text.strip()}")
        raise UsageError(f"`{text}` names no package", hint=f"`tenv add {target} {named}`, by the package's own name")
    if names_source(text):
        line = install_line(target, shlex.quote(text.strip()), site_packages)
        raise UsageError(f"`{text}`: {WHY}", hint=f"`{line}` installs it, and `tenv create` keeps it")
    match = _SPEC.fullmatch(text.strip())
    version = (match["version"] or "").strip() if match else ""
    if match is None or version.startswith("@"):
        raise UsageError(
            f"`{text}` is not a valid request",
            hint="numpy, 'numpy>=2,<3' and 'cuda-toolkit[nvcc]==13.0.*' are examples",
        )
    if _REVERSED.search(version):
        meant = _REVERSED.sub(r"\1=", text.strip())
        raise UsageError(f"`{text}` is not a valid request", hint=f"did you mean {shlex.quote(meant)}?")
    if version.startswith("=="):
        version = version.removeprefix("==").strip() if "," not in version else version
    elif version.startswith("="):  # conda's fuzzy form: 3.11 and every 3.11.x
        bare = version.removeprefix("=").strip()
        version = bare if "*" in bare or bare.count(".") > 1 else f"{bare}.*"
    return TypedRequest(match["name"], version or "*", _extras(match["extras"]), match["channel"] or "")


def typed_index(text: str) -> tuple[str, str]:
    """Return the word of ``--index`` for requests, and the address of a new index; each is empty for none.

    Raises:
        UsageError: It is neither a name, ``NAME=URL``, nor an address.
    """
    name, separator, url = text.partition("=") if re.match(r"[\w.-]+=", text) else ("", "", "")
    word, url = (name, url.rstrip("/")) if separator else (text.rstrip("/"), "")
    fault = index_fault(url) if url else index_fault(word) if "://" in word else word and name_fault(word)
    if fault:
        hint = "--index pytorch-cu128=https://download.pytorch.org/whl/cu128 is an example"
        raise UsageError(f"--index: `{without_login(text)}`: {fault}", hint=hint)
    return word, url


def require_range(request: TypedRequest, typed: str, key: str) -> None:
    """Refuse a request whose versions are no range, which would else be an error of the manifest's line.

    Args:
        request: The request.
        typed: The request as typed.
        key: The source of the package (conda, wheels, archives): conda has a notation of its own.

    Raises:
        UsageError: They are none.
    """
    if request.is_placed:
        return
    try:
        (CondaRange if key == "conda" else Range)(request.version)
    except ValueError as error:
        name = request.name
        hint = f"{name}, '{name}>=2,<3' and '{name}==2.1.*' are examples"
        if ";" in typed:
            hint = "a request has no marker: `[platform.linux-64.pypi-dependencies]` holds what one platform alone has"
        raise UsageError(f"`{typed}` is not a valid request: {error}", hint=hint) from error


def requested_names(manifest: Manifest, key: str) -> set[str]:
    """Return the names that a manifest asks of a source on any platform."""
    views = (manifest, *(manifest.on(platform) for platform in manifest.platforms))
    return {name for view in views for name in view.wanted(key)}


def at_own_place(
    manifest: Manifest, request: TypedRequest, key: str, command: str, options: AddOptions
) -> TypedRequest:
    """Refuse a request that belongs to another place: a feature only adds to the target and to its other features.

    For more extras of a package that the target itself asks for, return the request in the target's versions and index;
    any other request is returned as it is.

    Args:
        manifest: The manifest, without the request.
        request: The request.
        key: The source of the package.
        command: The command as typed: ``tenv add TARGET`` and the rest.
        options: The options of the command.

    Raises:
        UsageError: A feature asks for the package of the target itself, or the target or another feature for the one
            of a feature, in another version.
    """
    name, words = normalize(request.name), shlex.split(command)
    asked = any(name in map(normalize, requested_names(manifest, section.key)) for section in SECTIONS)
    found = {feature_with(manifest, name, platform) for platform in manifest.platforms} - {""}
    if not options.feature and found and not asked:
        feature = min(found)
        hint = f"`{shlex.join([*words[:3], '--feature', feature, *words[3:]])}`"
        raise UsageError(f"{request.name} is a package of the feature {feature}", hint=hint)
    if not options.feature:
        return request
    place = words.index("--feature")
    if asked:
        if key == "wheels" and (more := _with_own_version(manifest, request, words, options)):
            return more
        line = f"`{shlex.join([*words[:place], *words[place + 2 :]])}` changes it for both"
        hint = line if request.version not in ("", "*") else ""
        why = f"{manifest.name} itself asks for {request.name}, so that the feature {options.feature} has it"
        raise UsageError(why, hint=hint)
    for feature, part in manifest.features.items():
        views = [part.on(platform).wanted(key) for platform in manifest.platforms]
        rows = [row for view in views for one, row in view.items() if normalize(one) == name]
        others = {str(getattr(row, "version", "")) for row in rows}
        if feature != options.feature and others - {request.version}:
            there = shlex.join([*words[: place + 1], feature, *words[place + 2 :]])
            hint = f"`{there}` changes it there; then `{command}` adds it"
            why = f"the feature {feature} asks for {request.name} {min(others)}, and features only add to each other"
            raise UsageError(why, hint=hint)
    return request


def _with_own_version(
    manifest: Manifest, request: TypedRequest, words: list[str], options: AddOptions
) -> TypedRequest | None:
    """Return a request for more extras in the versions and the index of the target's own; None for another request.

    Raises:
        UsageError: Its platforms ask for other versions.
    """
    name, platforms = normalize(request.name), [options.platform] if options.platform else manifest.platforms
    rows = [row for platform in platforms if (row := manifest.on(platform).wheels.get(name))]
    if not rows or not all(_adds_extras(request, row) for row in rows):
        return None
    if len({(str(row.version), row.index) for row in rows}) > 1:
        line = shlex.join([*words[:3], "--platform", platforms[0], *words[3:]])
        why = f"the platforms of {manifest.name} ask for {request.name} in different versions or from different indexes"
        raise UsageError(why, hint=f"`{line}` adds the extras for one")
    return replace(request, version=str(rows[0].version), index=rows[0].index)


def _adds_extras(request: TypedRequest, row: WheelRequest) -> bool:
    """Return whether a request asks for no more than further extras of a wheel of an index."""
    changes = request.is_placed or request.keys or row != WheelRequest(row.version, row.extras, index=row.index)
    same = request.version in ("*", str(row.version)) and request.index in ("", row.index)
    return not changes and same and bool({*request.extras} - {*row.extras})


def _extras(text: str | None) -> tuple[str, ...]:
    return tuple(sorted(normalize(extra) for extra in (text or "").split(",") if extra.strip()))


def _git(text: str) -> TypedRequest | None:
    """Return the request for a package of a git repository, as pip and uv write it; None for another request."""
    try:
        found = git_line(text)
    except ValueError as error:
        raise UsageError(f"`{text}`: {error}") from error
    return TypedRequest(found[0], "", found[1], tree=found[2]) if found else None


def _wheel(text: str) -> TypedRequest | None:
    """Return the request for one wheel at an address or in a folder; None for another request."""
    match = _WHEEL.fullmatch(text.strip())
    if match is None or not is_wheel(match["place"].partition("#")[0]):
        return None
    url, near, fault = "", match["place"], ""
    if "://" in near:
        try:
            url, digest = split_digest(near)
        except ValueError as error:
            raise UsageError(f"`{text}`: {error}") from error
        near, fault = "", file_url_fault(url)
    else:
        digest = ""
        if not (Path.cwd() / near).is_file():
            raise UsageError(f"{Path.cwd() / near} does not exist", hint="a wheel is named from here")
    file = WheelFile.parse(file_at(url) if url else Path(near).name)
    if fault or file is None:
        raise UsageError(f"`{without_login(text)}`: {fault or 'is not the name of a wheel'}")
    if match["name"] and normalize(match["name"]) != file.name:
        raise UsageError(f"`{text}`: {file.file} is a wheel of {file.name}, not of {match['name']}")
    request = FileRequest(url, near, digest, Path.cwd())
    return TypedRequest(file.name, "", _extras(match["extras"] or match["more"]), file=request)


def _folder(text: str) -> TypedRequest | None:
    """Return the request for a package of a folder; None for another request.

    Its name is that of its ``pyproject.toml``; one that only a ``setup.py`` knows is typed: ``vision @ ./vision``.
    """
    match = _FOLDER.fullmatch(text.strip())
    if match is None:
        return None
    folder = Path.cwd() / match["path"]
    if not folder.exists():
        raise UsageError(f"{folder} does not exist", hint="a folder is named from here, such as ./vision")
    if not folder.is_dir():
        return None
    file = folder / "pyproject.toml"
    try:
        name = name_of_project(read_regular(file) if file.is_file() else None, str(folder))
    except NoSolutionError as error:
        raise UsageError(error.message, hint=error.hint) from error
    name = name or normalize(match["name"] or "")
    if not name:
        hint = f"`NAME @ {match['path']}` names it"
        raise UsageError(f"{folder}: no [project] of a pyproject.toml has the name of the package", hint=hint)
    tree = TreeRequest(path=match["path"], editable=True, base=Path.cwd())
    return TypedRequest(name, "", _extras(match["extras"] or match["more"]), tree=tree)
