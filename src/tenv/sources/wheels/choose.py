"""Requests and locked wheels in formats for uv, and the wheel of a release for a platform and a Python."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.core.errors import NoSolutionError
from tenv.core.names import WheelFile, file_at, normalize
from tenv.core.versions import Version, is_newer
from tenv.core.wheel_platforms import MACHINES
from tenv.locks.lock import LockedTree, Wheel
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.wheels.uv_output import without_wheels
from tenv.targets.manifest import Manifest, WheelRequest

Rows = list[dict[str, Any]]

_UV_GLIBC_MINORS = (17, 28, *range(31, 41))
"""The minors of glibc 2 for which uv has a platform name: `uv pip compile --help`, uv 0.9 to 0.11."""


def uv_platforms(platform: str, glibc: Version) -> tuple[str, ...]:
    """Return uv's names for a platform, in the order in which to try them.

    uv has names for some glibc versions only. For a glibc between two names, the newer name comes first; its solution
    counts if all of its wheels run on the older glibc. Else the solution for the older name counts, whose wheels do.
    """
    if platform == "win-64":
        return ("x86_64-pc-windows-msvc",)
    newer = [minor for minor in _UV_GLIBC_MINORS if minor >= glibc.minor][:1] or [_UV_GLIBC_MINORS[-1]]
    older = [minor for minor in _UV_GLIBC_MINORS if minor <= glibc.minor][-1:]
    return tuple(f"{MACHINES[platform]}-manylinux_2_{minor}" for minor in dict.fromkeys([*newer, *older]))


def too_new(rows: Iterable[Mapping[str, Any]], tags: Mapping[Any, int]) -> list[str]:
    """Return constraints that exclude the releases without a wheel for the tags, such as ``numpy<2.5.0``."""
    found = []
    for row in rows:
        files = [WheelFile.parse(wheel.get("url") or wheel["path"]) for wheel in package_files(row)]
        if files and not any(tag in tags for file in files if file for tag in file.all_tags()):
            found.append(f"{normalize(row['name'])}<{row['version']}")
    return found


def cpu_torch(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the version of a torch without CUDA, as its local part reports it; empty without one."""
    versions = (str(row.get("version", "")) for row in rows if normalize(row["name"]) == "torch")
    return next((version for version in versions if version.endswith("+cpu")), "")


def package_files(package: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files of a row of a pylock: the wheels of an index, or the one that an address names."""
    return [*package.get("wheels", []), *([package["archive"]] if "archive" in package else [])]


def build_words(names: Iterable[str]) -> list[str]:
    """Return uv's options that allow wheels alone, and for some packages their source archives alone."""
    return ["--only-binary", ":all:", *(word for name in sorted(names) for word in ("--no-binary", name))]


def need_builds(built: list[str], manifest: Manifest, ask: Callable[[], object], lacks: Callable[[str], bool]) -> None:
    """Add the packages to `built` that a solution needs built from source archives, which runs code.

    A package without any wheel is built where it is needed: an older release of another one, which does without it, is
    no solution. uv names those others that it found no wheel of, one in each resolution. Where it names none, all that
    are left are tried, and then each without.

    Args:
        built: The packages to build, which `ask` reads; it holds those of the old lock, which stay if they fit.
        manifest: The manifest, which permits builds.
        ask: Resolves the requests; raises NoSolutionError.
        lacks: Returns whether the indexes in use have no wheel that a requirement accepts.
    """
    own = {name: request for name, request in manifest.wheels.items() if name in manifest.builds}
    apart = {name for name, request in own.items() if request.index or request.file or not request.isolated}
    asked = {name: f"{name}{own[name].version.specifiers if name in own else ''}" for name in manifest.builds - apart}
    bare = [name for name in sorted(asked) if lacks(asked[name])]
    built += [name for name in bare if name not in built]
    if built and not _fault(ask):
        return
    built[:] = bare
    left = manifest.builds - set(bare)
    while left and (fault := _fault(ask)):
        named = sorted(left & without_wheels(fault.message))
        if not named:
            break
        built += named
        left -= set(named)
    else:
        return
    built += sorted(left)
    for name in sorted(left) if len(left) > 1 else ():  # one that has a wheel needs no build
        built.remove(name)
        if _fault(ask):
            built.append(name)


def known_metadata(rows: Iterable[Wheel | LockedTree]) -> dict[str, Any]:
    """Return uv's setting with the requirements of source archives, for which it then runs no build backend."""
    found = []
    for row in rows:
        extras = {extra for text in row.requires or () if (one := requirement_of(text)) for extra in one.named}
        known = {"name": row.name, "version": row.version, "requires-dist": list(row.requires or ())}
        found.append({**known, "provides-extra": sorted(extras)})
    return {"dependency-metadata": found} if found else {}


def _fault(ask: Callable[[], object]) -> NoSolutionError | None:
    try:
        ask()
    except NoSolutionError as error:
        return error
    return None


def choose_wheel(package: Mapping[str, Any], tags: Mapping[Any, int], python: str) -> tuple[str, tuple[Wheel, str]]:
    """Return a package's name with its best wheel, or with its source archive where it has no wheel, and the URL.

    uv fetches a wheel whose index has no digest of it, and computes one.
    """
    name = normalize(package["name"])
    ranked = []
    for row in package_files(package):
        url = row.get("url") or Path(row["path"]).absolute().as_uri()
        file = WheelFile.parse(url)
        if file is None or "sha256" not in row.get("hashes", {}):
            continue
        rank = min((tags[tag] for tag in file.all_tags() if tag in tags), default=None)
        if rank is not None:
            digest = row["hashes"]["sha256"]
            wheel = Wheel(name, package.get("version", file.version), file.file, digest, row.get("size"), (python,))
            ranked.append((rank, file.file, wheel, url))
    source = package.get("sdist")
    if source and not package_files(package) and "sha256" in source["hashes"]:
        row = source
        url = row.get("url") or Path(row["path"]).absolute().as_uri()
        archive = Wheel(name, package["version"], file_at(url), row["hashes"]["sha256"], row.get("size"), (python,))
        return name, (archive, url)
    if not ranked:
        raise NoSolutionError(f"{name} {package.get('version', '')}: the index has no matching wheel with a sha256")
    _, _, wheel, url = min(ranked, key=lambda row: row[:2])
    return name, (wheel, url)


def join(resolved: Iterable[dict[str, tuple[Wheel, str]]], sizes: Mapping[str, int]) -> tuple[Wheel, ...]:
    """Join the wheels of each Python minor into the wheels of a platform: one row per file, in a stable order.

    Args:
        resolved: The wheels of each minor.
        sizes: Sizes in bytes, by sha256.
    """
    rows: dict[tuple[str, str, str], Wheel] = {}
    for choice in resolved:
        for wheel, _ in choice.values():
            key = (wheel.name, wheel.version, wheel.file)
            have = rows.get(key)
            minors = {*(have.python if have else ()), *wheel.python}
            size = wheel.size if wheel.size is not None else sizes.get(wheel.sha256)
            rows[key] = replace(wheel, size=size, python=tuple(sorted(minors, key=Version)))
    return tuple(rows[key] for key in sorted(rows))


def requirement(name: str, request: WheelRequest) -> str:
    """Return a request as one line of a requirements file."""
    extras = f"[{','.join(request.extras)}]" if request.extras else ""
    if request.tree:
        return f"{name}{extras} @ {request.tree.folder.as_uri()}"
    if request.file:
        digest = f"#sha256={request.file.sha256}" if request.file.sha256 else ""
        return f"{name}{extras} @ {request.file.address}{digest}"
    return f"{name}{extras}{request.version.specifiers}"


def preferences(wheels: Iterable[Wheel]) -> str:
    """Return a pylock.toml with the names and versions of wheels."""
    rows = "".join(f'\n[[packages]]\nname = "{wheel.name}"\nversion = "{wheel.version}"\n' for wheel in wheels)
    return f'lock-version = "1.0"\ncreated-by = "tenv"\n{rows}'


def keep_versions(
    pins: Sequence[Wheel], upgrade: Sequence[str], ask: Callable[[list[str], Sequence[Wheel]], Rows]
) -> Rows:
    """Return a solution in which as many versions stay as can.

    A preference of uv's is no means to keep a version: uv 0.13 looks for a preferred version on the first index that
    has it, and takes another version where that index has no wheel for the platform, even if a later index has one. So
    a solution with preferences alone decides the versions of the packages to upgrade, and which others may have to
    move.

    Args:
        pins: The wheels whose versions stay where they still fit.
        upgrade: The packages that are selected anew.
        ask: Returns a solution with constraints, and with the wheels whose versions are preferred.

    Raises:
        NoSolutionError: The requests have no solution, whatever moves.
    """
    if not pins:
        return ask([], ())
    held, cause = _tried(ask, _equal(pins))
    if held is not None and not upgrade:
        return held
    free, _ = _tried(ask, [], pins)
    found = ask([], ()) if free is None else free
    chosen, before = _versions(found), _versions(held or ())
    named = [name for name in upgrade if chosen.get(name)]
    if held is not None and not any(is_newer(chosen[name], before.get(name, "")) for name in named):
        return held
    fixed = [f"{name}=={chosen[name]}" for name in named]
    moved = [pin for pin in pins if chosen.get(pin.name, pin.version) != pin.version]
    stay = [pin for pin in pins if pin not in moved]
    # The message of uv names what conflicts: all others are tried first, and at once.
    left = [[pin for pin in moved if pin.name in cause], [pin for pin in moved if pin.name not in cause]]
    while left:
        part = left.pop()
        rows = _tried(ask, [*fixed, *_equal([*stay, *part])])[0] if part else None
        if rows is not None:
            found, stay = rows, [*stay, *part]
        elif len(part) > 1:
            left += [part[len(part) // 2 :], part[: len(part) // 2]]
    return found


def _equal(wheels: Iterable[Wheel]) -> list[str]:
    return [f"{wheel.name}=={wheel.version}" for wheel in wheels]


def _versions(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {normalize(row["name"]): str(row.get("version", "")) for row in rows}


def _tried(
    ask: Callable[[list[str], Sequence[Wheel]], Rows], held: list[str], kept: Sequence[Wheel] = ()
) -> tuple[Rows | None, str]:
    """Return a solution, or None and the message of the error."""
    try:
        return ask(held, kept), ""
    except NoSolutionError as error:
        return None, error.message


def hashed(wheels: Iterable[Wheel], *, alone: bool = False) -> str:
    """Return the requirements that hold files by sha256.

    A version is held with its local part: to `==2.13.0`, uv takes a `2.13.0+cpu` of another index first.

    Args:
        wheels: The files; a `path` is absolute.
        alone: Whether the user allows no address, only present files.
    """
    lines = []
    for wheel in wheels:
        place = Path(wheel.path).as_uri() if wheel.path else "" if alone else wheel.url
        what = f"{wheel.name} @ {place}" if place else f"{wheel.name}==={wheel.version}"
        lines.append(f"{what} --hash=sha256:{wheel.sha256}\n")
    return "".join(lines)


def install_words(python: Path, again: Iterable[str], files: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the arguments that install files by their sha256 into the environment of a Python.

    Args:
        python: The Python.
        again: Packages to reinstall although their version is right.
        files: More files with requirements.
    """
    return (
        *("pip", "install", "--python", str(python), "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        # Hashes identify the file, so any index may serve it.
        *("--index-strategy", "unsafe-best-match", "--requirement", "-"),
        *(word for file in files for word in ("--requirement", file)),
        *(word for name in again for word in ("--reinstall-package", name)),
    )
