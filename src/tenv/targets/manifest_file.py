"""Reads the file of a manifest, with its parents, into a `Manifest`.

The format resembles ``pixi.toml``; ``docs/manifest.md`` documents it. An unknown key is an error with its path, its
line and the nearest known key.
"""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from tenv.core.errors import ManifestError, TenvError
from tenv.core.names import CONDA_NAME, is_channel, is_sha256, normalize
from tenv.core.toml_reader import Table, locate, nearest, read_toml
from tenv.core.untrusted import (
    STORAGE_EXAMPLE,
    address_fault,
    is_storage,
    login_fault,
    name_fault,
    place_fault,
    without_login,
)
from tenv.core.versions import CondaRange, Range, Version
from tenv.targets.manifest import (
    DEBUG_PYTHON,
    PLATFORMS,
    ArchiveRequest,
    CondaRequest,
    Manifest,
    OtherRequest,
    Requirements,
    WheelRequest,
    lay,
    merge,
    placed,
    request_for_torch,
    with_features,
)
from tenv.targets.manifest_checks import (
    bound_line,
    check_bounds,
    check_features,
    check_indexes,
    check_single_supplier,
    read_compiled,
)
from tenv.targets.manifest_keys import (
    ACTIVATION,
    ARCHIVE,
    BUILD,
    BUILD_PATTERN,
    CACHES,
    CONDA,
    DEBUG_PYTHON_KEYS,
    FEATURE,
    MANIFEST,
    ON_PLATFORM,
    REQUIREMENTS,
    SYSTEM_TOOLS,
    WHEEL,
    names,
)
from tenv.targets.sections import SECTIONS, SourceSection
from tenv.targets.tree_request import read_tree
from tenv.targets.variable_requests import check_names, read_variable
from tenv.targets.wheel_origin import index_fault, is_wheel_file, read_file_request, read_indexes

_BUILD = re.compile(BUILD_PATTERN)
_IN_FEATURE = tuple(name for name in names(FEATURE) if name != "platform")
_NO_FEATURE = "none"
TORCH = "torch"
"""The CUDA of a manifest whose toolkit follows its torch."""
_MAX_DEPTH = 8


def read_manifest(
    name: str, path: Path, find: Callable[[str], Path], shown: str = "", home: Path | None = None
) -> Manifest:
    """Read the manifest of a target, and merge it with its parents.

    Args:
        name: The target's name.
        path: The manifest's file.
        find: Returns the file of a parent by its name; raises a `TenvError` if there is none.
        shown: The name of the file in messages; empty for its path.
        home: The folder that its paths are relative to; None for its own.

    Raises:
        ManifestError: The file can't be read, has an unknown key, or contradicts itself.
    """
    table = read_toml(path, ManifestError, shown or str(path))
    manifest = _read_chain(name, table, find, (name,), home or path.parent)
    whole = with_features(manifest)
    _check_whole(manifest, whole, table)
    for platform in manifest.platforms:
        check_features(manifest, platform, table)
        check_bounds(whole.on(platform), table)
        check_single_supplier(whole.on(platform), platform, table)
        check_names(manifest.on(platform).environment)
    return manifest


_parents: dict[tuple[str, str, str], Manifest] = {}
"""Parsed parents without their own parents, by name, file and text: children share a parent."""


def _read_chain(name: str, table: Table, find: Callable[[str], Path], seen: tuple[str, ...], home: Path) -> Manifest:
    key = (name, table.file, table.source)
    own = _parents.get(key) or placed(_read_one(name, table), home)
    if len(seen) > 1:
        _parents[key] = own
    parent = table.text("extends")
    if not parent:
        return own
    if parent in seen or len(seen) >= _MAX_DEPTH:
        hint = "a manifest can't extend one of the same name; rename the file" if parent == name else ""
        raise table.fail("extends", f"is a circle: {' → '.join((*seen, parent))}", hint=hint)
    try:
        path = find(parent)
    except TenvError as error:
        raise table.fail("extends", f"no manifest `{parent}`", hint=error.hint) from error
    above = _read_chain(parent, read_toml(path), find, (*seen, parent), path.parent)
    return merge(above, own)


def _read_one(name: str, table: Table) -> Manifest:
    table.only(names(MANIFEST))
    table.text("$schema")  # for editors
    requirements, beside = _read_requirements(table.table("requirements")), _read_folder(table, "for")
    if beside and requirements.cuda is None:
        requirements = replace(requirements, cuda_from=TORCH)
    general = replace(
        _read_sections(name, table),
        description=table.text("description"),
        platforms=table.strings("platforms"),
        channels=tuple(_channel(table, "channels", name) for name in table.strings("channels")),
        pytorch=table.parsed("pytorch", Range, None),
        python=table.parsed("python", Range, None),
        sdists=tuple(normalize(_sdist(table, key)) for key in table.strings("sdists")),
        constraints=tuple(bound_line(table, "constraints", line) for line in table.strings("constraints")),
        overrides=tuple(bound_line(table, "overrides", line) for line in table.strings("overrides")),
        requirements=requirements,
        beside=beside,
        wheelhouse=_read_folder(table, "wheelhouse"),
        cache_name=_read_cache(table.table("build")),
        cache_storage=_read_storage(table.table("build")),
    )
    if len(set(general.platforms)) < len(general.platforms):
        raise table.fail("platforms", "names a platform twice")
    for platform in general.platforms:
        if platform not in PLATFORMS:
            raise table.fail(
                "platforms", f"unknown platform `{platform}`", hint=f"known platforms: {', '.join(PLATFORMS)}"
            )
    parts = {platform: _read_platform(name, part) for platform, part in _platforms(table)}
    features = {_feature_name(table, key): _read_feature(name, part) for key, part in table.table("feature").tables()}
    by_platform = {platform: lay(general, part) for platform, part in parts.items()}
    return replace(general, by_platform=by_platform, features=features)


def _read_folder(table: Table, key: str) -> str:
    path = table.text(key)
    if path and (not path.isprintable() or os.pathsep in path):
        raise table.fail(key, f"{path!r} is no folder that variables and scripts can name")
    return path


def _read_storage(table: Table) -> str:
    storage = table.text("storage")
    if fault := login_fault(storage):
        hint = "the programs of compile caches read logins from variables of their own: docs/build.md names them"
        raise table.fail("storage", f"`{without_login(storage)}` {fault}", hint=hint)
    if storage and not is_storage(storage):
        raise table.fail("storage", f"`{storage}` is no storage", hint=f"{STORAGE_EXAMPLE} is an example")
    return storage


def _read_cache(table: Table) -> str:
    if "distribute" in table.data:  # a clone would send its sources to the author of the manifest
        hint = "`tenv config distribute URL` sets it for you"
        raise table.fail("distribute", "a scheduler that gets the sources stands in your own settings alone", hint=hint)
    table.only(names(BUILD))
    cache = table.text("cache")
    if cache and cache not in CACHES:
        raise table.fail("cache", f"`{cache}` is no compile cache", hint=f"known: {', '.join(CACHES)}")
    return cache


def _platforms(table: Table) -> list[tuple[str, Table]]:
    section = table.table("platform")
    section.only(PLATFORMS)
    return list(section.tables())


def _read_platform(name: str, table: Table) -> Manifest:
    table.only(names(ON_PLATFORM))
    return _read_sections(name, table)


def _feature_name(table: Table, key: str) -> str:
    if (fault := name_fault(key)) or key == _NO_FEATURE:
        raise table.table("feature").fail(key, fault or f"`--with {key}` takes every feature off: give it another name")
    return key


def _read_feature(name: str, table: Table) -> Manifest:
    """Read the additions of a feature: the sections that bring files, for all platforms and for some."""
    table.only(names(FEATURE))
    general, by_platform = _read_sections(name, table), {}
    for platform, part in _platforms(table):
        part.only(_IN_FEATURE)
        by_platform[platform] = lay(general, _read_sections(name, part))
    return replace(general, by_platform=by_platform)


def _read_sections(name: str, table: Table) -> Manifest:
    """Read the sections that ``[platform.NAME]`` may have too."""
    activation = table.table("activation")
    activation.only(names(ACTIVATION))
    variables = activation.table("env")
    wheels = table.table("pypi-dependencies")
    return Manifest(
        name=name,
        file=table.file,
        dependencies={conda_package(p, key): _read_conda(p, key) for p, key in _each(table.table("dependencies"))},
        wheels={normalize(_package(part, key)): _read_wheel(part, key) for part, key in _each(wheels)},
        indexes=read_indexes(table),
        archives={_package(part, key): _read_archive(part, key) for part, key in _each(table.table("archives"))},
        system=dict(_read_system(part, key) for part, key in _each(table.table("system"))),
        others={
            section.key: {_package(part, key): _read_other(section, part, key) for part, key in _each(found)}
            for section in SECTIONS
            if section.keys and (found := table.table(section.name)).data
        },
        environment={key: read_variable(variables, key, name) for key in variables.data},
        dropped={section.key: _dropped(section, table.table(section.name)) for section in SECTIONS},
    )


def _read_system(table: Table, key: str) -> tuple[str, Range]:
    """Return the accepted versions of the host's tools, by tenv's name of each tool."""
    if _package(table, key) != "python":
        if (name := normalize(key)) not in SYSTEM_TOOLS:
            hint = nearest(key, SYSTEM_TOOLS) or f"known tools: {', '.join(SYSTEM_TOOLS)}"
            raise table.fail(key, "tenv can't resolve this from the system", hint=hint)
        return name, _range(table, key)
    inner = table.table(key) if isinstance(table.data[key], dict) else Table({})
    inner.only(names(DEBUG_PYTHON_KEYS))
    if not inner.flag("debug"):
        raise table.fail(
            key,
            "only a debug build of Python is taken from the host by name",
            hint='write { version = ">=3.11", debug = true }, or name the Pythons at the top: python = ">=3.11,<3.15"',
        )
    return DEBUG_PYTHON, inner.parsed("version", Range, Range("*"))


def _each(table: Table) -> list[tuple[Table, str]]:
    return [(table, key) for key in table.data if table.data[key] is not False]


def _dropped(section: SourceSection, table: Table) -> frozenset[str]:
    """Return the names that a section drops from a parent's requests (``NAME = false``)."""
    dropped = (key for key, value in table.data.items() if value is False)
    return frozenset(map(normalize, dropped) if section.key == "wheels" else dropped)


def _package(table: Table, key: str) -> str:
    if fault := name_fault(key):
        raise table.fail(key, fault)
    return key


def _sdist(table: Table, name: str) -> str:
    if fault := name_fault(name):
        raise table.fail("sdists", fault)
    return name


def _channel(table: Table, key: str, name: str) -> str:
    """Return the name of a channel: a name, a label, or a URL."""
    if fault := login_fault(name):
        host = urlsplit(name).hostname or "HOST"
        hint = f'write "{without_login(name)}"; `pixi auth login {host}` or ~/.netrc keeps the login'
        raise table.fail(key, f"`{without_login(name)}` {fault}", hint=hint)
    if not is_channel(name):
        raise table.fail(key, f"`{name}` is not a channel", hint="a channel is NAME, NAME/label/LABEL or a URL")
    return name.rstrip("/")


def _range(table: Table, key: str) -> Range:
    text = table.required_text(key)
    try:
        return Range(text)
    except ValueError as error:
        raise table.fail(key, str(error)) from error


def _is_text(table: Table, key: str) -> bool:
    value = table.data[key]
    if isinstance(value, str):
        return True
    if isinstance(value, dict):
        return False
    raise table.fail(key, "expected a version such as `*` or `>=1.2,<2`, or a table such as { version = ... }")


def _read_conda(table: Table, key: str) -> CondaRequest:
    number = locate(table.source, (*table.path, key))
    line = f"{table.file}:{number}" if number else table.file
    if _is_text(table, key):
        table.required_text(key)
        return CondaRequest(table.parsed(key, CondaRange, CondaRange("*")), line=line)
    inner = table.table(key)
    inner.only(names(CONDA))
    channel, build = inner.text("channel"), inner.text("build")
    if build and not _BUILD.fullmatch(build):
        raise inner.fail("build", f"`{build}` is not a build string or a pattern of one such as `*_cuda`")
    version = inner.parsed("version", CondaRange, CondaRange("*"))
    return CondaRequest(version, channel and _channel(inner, "channel", channel), build, line)


def _read_wheel(table: Table, key: str) -> WheelRequest:
    if _is_text(table, key):
        return WheelRequest(_range(table, key))
    inner = table.table(key)
    inner.only(names(WHEEL))
    extras = inner.strings("extras")
    for extra in extras:
        if name_fault(extra):
            raise inner.fail("extras", f"`{extra}` is not the name of an extra")
    version, index = inner.parsed("version", Range, Range("*")), inner.text("index")
    if is_wheel_file(inner.data, inner.data.get("path")):
        return WheelRequest(version, tuple(sorted(extras)), file=read_file_request(inner, normalize(key)))
    if "sha256" in inner.data:
        raise inner.fail("sha256", "is the digest of a wheel at a `url` or a `path`")
    if "://" in index and (fault := index_fault(index)):
        raise inner.fail("index", f"`{without_login(index)}`: {fault}")
    tree = read_tree(inner)
    for word in ("index", "build") if tree else ():
        if word in inner.data:
            raise inner.fail(word, "is no part of a request for a source tree: remove this key")
    always = inner.data.get("build") == "always"
    if isinstance(inner.data.get("build"), str) and not always:
        raise inner.fail("build", f'`{inner.data["build"]}` is none of true, false and "always"')
    build = always or inner.flag("build")
    request = WheelRequest(version, tuple(sorted(extras)), tree, index, build=build, always=always)
    return read_compiled(inner, request)


def _read_archive(table: Table, key: str) -> ArchiveRequest:
    if _is_text(table, key):
        return ArchiveRequest(version=_archive_version(table, key))
    inner = table.table(key)
    return read_archive(table, key, _archive_version(inner, "version") if "version" in inner.data else "")


def _read_other(section: SourceSection, table: Table, key: str) -> OtherRequest:
    if _is_text(table, key):
        return OtherRequest({section.keys[0]: table.required_text(key)})
    inner = table.table(key)
    inner.only(section.keys)
    return OtherRequest({name: inner.required_text(name) for name in inner.data})


def _archive_version(table: Table, key: str) -> str:
    text = table.required_text(key)
    return text if text == "auto" else _range(table, key).text


def _read_requirements(table: Table) -> Requirements:
    table.only(names(REQUIREMENTS))
    glibc = table.parsed("glibc", Version, None)
    if table.text("cuda") == TORCH:
        return Requirements(None, glibc, TORCH)
    return Requirements(table.parsed("cuda", Version, None), glibc)


def _check_whole(manifest: Manifest, whole: Manifest, table: Table) -> None:
    """Check the constraints between sections of a merged manifest; `whole` is that with its features."""
    if not manifest.platforms:
        raise table.fail("platforms", "is required", hint='`platforms = ["linux-64"]` is an example')
    for platform, _ in _platforms(table):  # a parent may have more platforms
        if platform not in manifest.platforms:
            raise table.table("platform").fail(platform, f"`{platform}` is not one of the manifest's platforms")
    conda_python = any("python" in manifest.on(platform).dependencies for platform in manifest.platforms)
    wheels = any(whole.on(platform).wheels for platform in manifest.platforms)
    if conda_python and manifest.python:
        raise table.fail("python", "is set both here and in [dependencies]", hint="remove one of the two")
    if wheels and not conda_python and not manifest.python:
        raise table.fail(
            "python",
            "is required for [pypi-dependencies], since no conda package supplies a Python",
            hint='`python = ">=3.11,<3.15"` is an example',
        )
    follows = manifest.requirements.cuda_from and not manifest.beside
    if follows and not all(request_for_torch(manifest.on(on)) for on in manifest.platforms):
        raise table.table("requirements").fail(
            "cuda",
            f"`{TORCH}` means the CUDA of the locked torch, and there is no request for it",
            hint='`torch = "*"` in [pypi-dependencies] is an example, or `pytorch = "*"` in [dependencies]',
        )
    for view in map(whole.on, manifest.platforms):
        check_indexes(view, table)
    if manifest.python and not manifest.python_minors():
        raise table.fail("python", f"`{manifest.python}` contains no Python 3 minor")


REFUSED = {
    "cudatoolkit-dev": (
        "holds no toolkit, but a script that downloads one when it is installed, outside every sha256",
        'use cuda-nvcc and cuda-version in [dependencies], or before CUDA 12 cuda = "11.8.0" in [archives]',
    ),
}
"""Conda packages that no lock can hold, each with the reason and a substitute (conda-forge's recipes)."""


def conda_package(table: Table, key: str) -> str:
    """Return the name of a conda package that a manifest may request."""
    if not CONDA_NAME.fullmatch(key):
        raise table.fail(key, f"`{key}` is not the name of a conda package (lowercase letters, digits, `-`, `_`, `.`)")
    if key in REFUSED:
        reason, instead = REFUSED[key]
        raise table.fail(key, f"`{key}` {reason}", hint=instead)
    return key


def read_archive(table: Table, key: str, version: str) -> ArchiveRequest:
    """Return a request of ``[archives]``; raises ManifestError with the path of a wrong value.

    Args:
        table: The section.
        key: The name of the request.
        version: Its version, as it was read; empty without one.
    """
    inner = table.table(key)
    inner.only(names(ARCHIVE))
    strip = inner.data.get("strip", 0)
    if not isinstance(strip, int) or isinstance(strip, bool) or strip < 0:
        raise inner.fail("strip", "expected a number of folders, 0 or more")
    url, to = _archive_url(inner), _archive_place(inner)
    components = tuple(sorted(set(inner.strings("components"))))
    optional, product = inner.flag("optional"), inner.text("product")
    archive = ArchiveRequest(version, url, inner.text("sha256"), strip, to, product, components, optional)
    if wrong := next((name for name in components if name_fault(name)), ""):
        raise inner.fail("components", f"`{wrong}` is not the name of a component")
    if "components" in inner.data and (not components or url or archive.product):
        raise inner.fail("components", "expected names of components of a product that has a version")
    if archive.product and name_fault(archive.product):
        raise inner.fail("product", f"`{archive.product}` is not the name of a product")
    if optional and not url:
        raise inner.fail("optional", "only a request by `url` can be optional")
    if bool(archive.version) == bool(archive.url):
        raise table.fail(key, "needs either a `version` of a known product or a `url`")
    if archive.sha256 and not is_sha256(archive.sha256):
        raise inner.fail("sha256", "expected 64 hex digits")
    return archive


def _archive_url(table: Table) -> str:
    url = table.text("url")
    if url and (fault := address_fault(url)):
        hint = "put user and password into ~/.netrc, which tenv reads" if login_fault(url) else ""
        raise table.fail("url", fault, hint=hint)
    return url


def _archive_place(table: Table) -> str:
    """Return the destination folder of an archive, which must be inside the prefix."""
    to = table.text("to")
    if fault := place_fault(to):
        raise table.fail("to", fault)
    return to
