"""The lines of pip's requirements files: requests, options, and the files that they name.

Source: https://pip.pypa.io/en/stable/reference/requirements-file-format/. uv's ``pip`` commands read the same lines.
"""

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tenv.core.dataclass import dataclass
from tenv.core.file_content import in_utf8
from tenv.core.names import WheelFile, file_at, is_wheel, normalize
from tenv.core.toml_reader import read_toml
from tenv.core.untrusted import login_fault, without_login
from tenv.core.versions import Range
from tenv.interop.python_ranges import best_run, range_of
from tenv.interop.requests import (
    WheelLine,
    add_wheel,
    holds,
    wheel_request,
)
from tenv.interop.typed_values import few
from tenv.targets.manifest import PLATFORMS, WheelRequest
from tenv.targets.tree_request import TreeRequest, git_line
from tenv.targets.wheel_origin import FileRequest, Index, index_fault, split_digest

if TYPE_CHECKING:
    from packaging.markers import Marker

_OPTION = re.compile(r"(--?[A-Za-z][A-Za-z-]*)(?:\s*=\s*|\s+|(?<=^-[a-z]))?(.*)")
_INDEX, _EXTRA, _LINKS = ("-i", "--index-url", "--pypi-url"), ("--extra-index-url",), ("-f", "--find-links")
_FILES, _BOUNDS, _EDITABLE = ("-r", "--requirement"), ("-c", "--constraint"), ("-e", "--editable")
_OF_A_LINE = re.compile(r"(?<=\s)--?[A-Za-z][\w-]*(?:[= ](?!-)(?:\S*\"[^\"]*\"|\S+))?")
"""The options after a request; pip takes some of them (``--config-settings``), and drops those of a whole file."""

_BUILT = "--no-binary"
_USUAL = ("--no-binary :none:", "--only-binary :all:", "--no-binary=:none:", "--only-binary=:all:")
_OF_PIP = ("--require-hashes", "--prefer-binary", "--no-cache-dir", "--no-deps", "--progress-bar")
"""Options that say how pip installs, not what: a lock of tenv has hashes and all packages."""

_GIT = re.compile(r"git\+(?P<url>[^@#\s]+?(?://git@[^@#\s]+)?)(?:@(?P<rev>[^#\s]+))?(?:#(?P<parts>\S+))?")
_REPOSITORY = re.compile(r"https://[^\s#?]+\.git(@[^\s#?]+)?(#\S*)?")
"""An address that uv takes for a git repository, by its end."""

_SETUP_NAME = re.compile(r"""\bname\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_ADDRESS = re.compile(r"(https?|file):|\w+\+\w+:")
_PATH = re.compile(r"~?\.{0,2}/|\.{1,2}(\[|$)|[\w.-]+/[^\s@;]*$")
_FAMILY = ("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchao", "pytorch-triton")
_ARCHIVE = re.compile(
    r"(?:(?P<github>https://github\.com/[^/\s]+/[^/\s]+)/archive/(?:refs/(?:heads|tags)/)?(?P<rev>[^#?\s]+?)"
    r"|(?P<gitlab>https://gitlab\.com/\S+?)/-/archive/(?P<ref>[^/\s]+)/[^/\s#?]+?)"
    r"(?:\.zip|\.tar\.gz)(?P<rest>[#?]\S*)?"
)
"""The address of an archive that a forge makes of a commit, a tag or a branch."""

_PIP_LINE = re.compile(
    r"-{1,2}[A-Za-z]\S*(?:[ =].*)?|git\+\S+|https?://\S+"
    r"|[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\])?\s*(?P<more>(?:[=!<>~]=|[<>]|@\s|;).*)?"
)
_HEAD = 4096
_LOCAL = re.compile(r"file://(?:localhost)?(?P<path>/[^#?]+)(?:#(?:.*&)?subdirectory=(?P<below>[^&]+))?")
_TORCH_INDEX = re.compile(r"https://download\.pytorch\.org/whl/(?:nightly/|test/)?(?P<name>[\w.]+)/?")


def of_torch(url: str) -> str:
    """Return the name for an index of PyTorch, such as ``pytorch-cu121``; empty for another index."""
    found = _TORCH_INDEX.fullmatch(url)
    return f"pytorch-{found['name']}" if found else ""


def repository_of(address: str) -> tuple[str, str, str] | None:
    """Return the git repository, the revision and the rest of an address of a forge's archive; None for another."""
    match = _ARCHIVE.fullmatch(address)
    return (match["github"] or match["gitlab"], match["rev"] or match["ref"], match["rest"] or "") if match else None


def are_pip_lines(head: bytes) -> bool:
    """Return whether a file begins with lines of pip, one of them with a version, a marker, an address or an option."""
    found = _matches(head)
    return all(found) and any(one["more"] or one[0].startswith("-") or ":" in one[0] for one in found if one)


def are_names(head: bytes) -> bool:
    """Return whether a file begins with lines of pip, such as the name of a package alone, which any word may be."""
    return bool(found := _matches(head)) and all(found)


def _matches(head: bytes) -> list[re.Match[str] | None]:
    text = head.decode("utf-8-sig", "replace")
    lines = [re.sub(r"(^|\s)#.*", "", line).strip().rstrip("\\").strip() for line in text.splitlines()]
    whole = lines if len(head) < _HEAD else lines[:-1]
    return [_PIP_LINE.fullmatch(line) for line in whole if line]


def project_name(folder: Path) -> str:
    """Return the normalized name of the project in a folder; empty if neither of its files has it as a text."""
    with contextlib.suppress(Exception):  # no file, or one that is not valid: the folder has no name
        if name := read_toml(folder / "pyproject.toml").table("project").text("name"):
            return normalize(name)
    with contextlib.suppress(OSError, ValueError):
        text = (folder / "setup.py").read_text(encoding="utf-8")
        return normalize(found[1]) if (found := _SETUP_NAME.search(text)) else ""
    return ""


def with_version(request: WheelRequest, bound: Range) -> WheelRequest:
    """Return a request whose version is also within a bound."""
    versions = [str(one) for one in (request.version, bound) if str(one) != "*"]
    return replace(request, version=Range(",".join(dict.fromkeys(versions)) or "*"))


@dataclass(slots=True)
class PipLines:
    """The requests and indexes of requirements files, as they are read line by line."""

    platforms: tuple[str, ...]
    """The platforms of the import."""
    home: Path
    """The folder of the file, for paths."""
    lost: list[str]
    """Receives the losses in a manifest."""
    minor: str = ""
    """The Python minor, or an empty string if there may be several."""
    tables: dict[str, dict[str, WheelRequest]] = field(default_factory=dict)
    """The requests by platform and name."""
    indexes: list[Index] = field(default_factory=list)
    """The indexes, best first."""
    minors: tuple[str, ...] = ()
    """The Python minors that there may be, if there is no one minor; empty for any."""
    notes: list[str] = field(default_factory=list)
    """Receives what a reader may want to know."""
    sdists: list[str] = field(default_factory=list)
    """The normalized names of the packages that are to be built from their source archives."""
    constraints: list[str] = field(default_factory=list)
    """Bounds of packages that are not requested, as PEP 508 lines."""
    overrides: list[str] = field(default_factory=list)
    """Lines in the place of the requirements of packages, as PEP 508 lines."""
    _bounds: dict[str, dict[str, WheelRequest]] = field(default_factory=dict)
    _unsure: set[str] = field(default_factory=set)
    _lines: dict[str, list[WheelLine]] = field(default_factory=dict)
    _seen: set[Path] = field(default_factory=set)
    _skipped: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def read(self, text: str, home: Path, bounds: bool = False) -> None:
        """Add the lines of a file.

        Args:
            text: Its text.
            home: Its folder.
            bounds: Whether its requests only bound others.

        Raises:
            ValueError: A line is not valid; the message has its number.
        """
        # A continued line keeps its number.
        text = re.sub(r"\\\r?\n", lambda _: " \x00", text)
        number = 0
        for line in text.splitlines():
            number += 1
            words = re.sub(r"(^|\s)#.*", "", line.replace("\x00", "")).strip()
            try:
                self.add(words, self.platforms, home, bounds=bounds)
            except ValueError as error:
                raise ValueError(f"{number}: {error}") from error
            number += line.count("\x00")

    def add(self, line: str, platforms: tuple[str, ...], home: Path, *, bounds: bool = False) -> None:
        """Add one line.

        Raises:
            ValueError: It is not valid.
        """
        words = re.sub(r"\s--hash[= ]\S+", "", line).strip()
        if not words.startswith("-") and (options := _OF_A_LINE.findall(words)):
            self.lost += [f"pip's option `{option}` of `{words.split()[0][:100]}`" for option in options]
            words = _OF_A_LINE.sub("", words).strip()
        if not words:
            return
        if words.startswith("-"):
            self._option(words, platforms, home)
            return
        request, *markers = re.split(r"\s;|;\s", words, maxsplit=1)
        request = self._of_repository(request.strip())
        if _is_source(request, home):
            self._source(request, self._where(request, "".join(markers), platforms), home)
            return
        found = wheel_request(words)
        if bounds and found.request.version != Range("*"):
            self.constraints.append(words)
        tables = self._bounds if bounds else self.tables
        self._lines.setdefault(found.name, []).append(found)
        for platform in self._where(found.name, found.marker, platforms):
            table, certain = tables.setdefault(platform, {}), found.name not in self._unsure
            add_wheel(table, found.name, found.request, self.lost, together=certain)

    def narrowed(self, notes: list[str], *, oldest: bool = False) -> str:
        """Return the range of the Pythons of `best_run` for which all lines ask for the same.

        Args:
            notes: Receives a note about the range.
            oldest: Whether the oldest Pythons are wanted, since the file was made with the oldest one.

        Returns:
            The range; empty if it is that of all Pythons.
        """
        cases = [(name, row.marker, on) for name, rows in self._lines.items() for row in rows for on in self.platforms]
        differ = [case for case in cases if case[1] and holds(case[1], case[2], "", self.minors) is None]
        plain = len(differ) < sum(holds(marker, on, "", self.minors) is not False for _, marker, on in cases)
        answers = {one: tuple(holds(marker, on, one) for _, marker, on in differ) for one in self.minors}
        some = [one for one in self.minors if plain or any(answers[one])]
        first = [*takewhile(lambda minor: answers[minor] == answers[self.minors[0]], self.minors)]
        kept = first if oldest else best_run(answers, some)
        if self.minor or len(kept) == len(self.minors):
            return ""
        found = range_of(kept)
        notes.append(
            f"`python` is set to {found}: the requests of {few(sorted({one[0] for one in differ}))} differ by Python"
        )
        return found

    def finish(self) -> None:
        """Apply the bounds, and the index of PyTorch to the packages that it is for."""
        for platform, bounds in self._bounds.items():
            table = self.tables.get(platform, {})
            for name in bounds.keys() & table.keys():
                table[name] = with_version(table[name], bounds[name].version)
        named = {name for table in self.tables.values() for name in table}
        self.constraints = [line for line in dict.fromkeys(self.constraints) if wheel_request(line).name not in named]
        apart: dict[str, list[str]] = {}
        for what, others in self._skipped:
            if what not in named:
                apart.setdefault(", ".join(others), []).append(what)
        self.notes += [
            f"for {on} alone (`--platform` adds it): {', '.join(dict.fromkeys(one))}" for on, one in apart.items()
        ]
        for place, index in enumerate(self.indexes):
            if (name := of_torch(index.url)) and not index.explicit and self._ask_of(name):
                self.indexes[place] = replace(index, name=name, explicit=True, default=False)

    def _ask_of(self, index: str) -> bool:
        asked = False
        for table in self.tables.values():
            for name, request in table.items():
                if name in _FAMILY and not (request.tree or request.file or request.index):
                    table[name] = replace(request, index=index)
                    asked = True
        return asked

    def _where(self, what: str, marker: "str | Marker | None", platforms: tuple[str, ...]) -> tuple[str, ...]:
        """Return the platforms on which a marker may hold; a note reports one that holds on others alone."""
        from packaging.markers import InvalidMarker, Marker  # late: 34 ms

        try:
            parsed = Marker(marker.strip()) if isinstance(marker, str) and marker.strip() else marker or None
        except InvalidMarker as error:
            raise ValueError(f"`{str(marker).strip()}` is not a marker: {str(error).splitlines()[0]}") from error
        assert not isinstance(parsed, str)  # noqa: S101 (for mypy)
        answers = {platform: holds(parsed, platform, self.minor, self.minors) for platform in PLATFORMS}
        if any(answers[platform] is None for platform in platforms):
            self.lost.append(f"of `{what}` tenv can't express its marker `{parsed}`")
            self._unsure.add(what)
        found = tuple(platform for platform in platforms if answers[platform] is not False)
        others = [platform for platform in PLATFORMS if answers[platform] is not False]
        if not found and others:
            self._skipped.append((what, tuple(others)))
        elif not found and any(holds(parsed, platform, self.minor) is not False for platform in platforms):
            self.notes.append(f"`{what}` is for other Pythons than the target's")
        return found

    def _of_repository(self, request: str) -> str:
        """Return the line for the git repository whose archive a line names; any other line as it is."""
        head, _, place = request.rpartition(" ")
        if not (found := repository_of(place)):
            return request
        repository, revision, rest = found
        self.notes.append(f"`{place}` is requested as the git repository, at {revision}")
        rest = rest if rest.startswith(("#egg=", "#subdirectory=")) else ""
        return f"{head} git+{repository}@{revision}{rest}".strip()

    def _put(self, platforms: Iterable[str], name: str, request: WheelRequest) -> None:
        key, tables = normalize(name), [self.tables.setdefault(platform, {}) for platform in platforms]
        if any(table.get(key, request) != request for table in tables):
            self.lost.append(f"an earlier request for {key}: the last line counts")
        for table in tables:
            table[key] = request

    def _option(self, words: str, platforms: tuple[str, ...], home: Path) -> None:
        match = _OPTION.match(words)
        option, value = (match[1], match[2].strip()) if match else (words, "")
        if option in (*_INDEX, *_EXTRA, *_LINKS):
            self._index(Index(value.rstrip("/"), default=option in _INDEX, flat=option in _LINKS, base=home))
        elif option in (*_FILES, *_BOUNDS):
            self._file(value, home, bounds=option in _BOUNDS)
        elif option in _EDITABLE:
            self._source(value, platforms, home, editable=True)
        elif option == _BUILT and not value.startswith(":"):
            self.sdists += [normalize(name) for name in value.split(",") if name.strip()]
            self.lost.append(f"`{words[:200]}` where a wheel fits, which tenv takes")
        elif option not in _OF_PIP and words not in _USUAL:
            self.lost.append(f"pip's option `{words[:200]}`")

    def _index(self, index: Index) -> None:
        if login_fault(index.url):
            self.lost.append(f"the login of {without_login(index.url)}, which belongs in ~/.netrc")
            index = replace(index, url=without_login(index.url))
        if fault := index_fault(index.url):
            self.lost.append(f"the index `{index.url}`: {fault}")
        elif index not in self.indexes:
            for before in [one for one in self.indexes if one.default and index.default]:  # the last counts, as for pip
                self.lost.append(f"the index {before.url}: {index.url} stands in its place further down")
                self.indexes.remove(before)
            self.indexes.append(index)

    def _file(self, name: str, home: Path, *, bounds: bool) -> None:
        path = home / name
        if "://" in name or not path.is_file():
            self.lost.append(f"the lines of `{name}`, which is not there")
        elif path.resolve() not in self._seen:
            self._seen.add(path.resolve())
            try:
                self.read(in_utf8(path.read_bytes()).decode("utf-8-sig"), path.parent, bounds)
            except ValueError as error:  # UnicodeDecodeError is one
                raise ValueError(f"{name}: {error}") from error

    def _source(self, text: str, platforms: Iterable[str], home: Path, *, editable: bool = False) -> None:
        """Add a request with an address or a path."""
        name, extras, place = _named(text)
        place = re.sub(r"^file:(?!/)", "", place)  # a path below the folder, as Rye writes it
        digest = ""
        if (local := _LOCAL.match(place)) and Path(found := unquote(local["path"])).exists():
            with contextlib.suppress(ValueError):  # a digest of another kind
                digest = split_digest(place)[1]
            place = str(Path(found, unquote(local["below"] or "")))
        if place.startswith("git+") or _REPOSITORY.fullmatch(place):
            place = f"git+{place.removeprefix('git+')}"
            self._git(name, extras, place, platforms, text)
        elif _ADDRESS.match(place):
            self._file_at(name, extras, place, platforms, text)
        else:
            self._path(name, extras, place, platforms, home, editable, digest)

    def _git(self, name: str, extras: tuple[str, ...], place: str, platforms: Iterable[str], text: str) -> None:
        match = _GIT.fullmatch(place)
        parts: Mapping[str, str] = (
            dict(part.partition("=")[::2] for part in (match["parts"] or "").split("&")) if match else {}
        )
        egg, _, listed = parts.get("egg", "").partition("[")
        name, extras = name or egg, extras or _extras(listed)
        if match and not name:
            name = match["url"].rstrip("/").rpartition("/")[2].removesuffix(".git")
            self.notes.append(f"`{text}` is requested as {normalize(name)}: the line has no name")
        url = match["url"].replace("http://", "https://", 1) if match else ""
        rev = f"@{match['rev']}" if match and match["rev"] else ""
        below = f"#subdirectory={parts['subdirectory']}" if parts.get("subdirectory") else ""
        try:
            tree = git_line(f"{name} @ git+{url}{rev}{below}")
        except ValueError as error:
            self.lost.append(f"`{without_login(text)}`: {error}")
            return
        if tree is None:
            self.lost.append(f"`{without_login(text)}`")
            return
        self._put(platforms, tree[0], WheelRequest(Range("*"), extras or tree[1], tree[2]))

    def _file_at(self, name: str, extras: tuple[str, ...], place: str, platforms: Iterable[str], text: str) -> None:
        try:
            url, digest = split_digest(place)
        except ValueError:
            url, digest = place.partition("#")[0], ""
        file = WheelFile.parse(file_at(url))
        if file is None or login_fault(url) or not url.startswith("http"):
            self.lost.append(
                f"`{without_login(text)}`: only the address of a wheel or of a git repository can be locked"
            )
            return
        request = WheelRequest(Range("*"), extras, file=FileRequest(url=url, sha256=digest))
        self._put(platforms, name or file.name, request)

    def _path(
        self,
        name: str,
        extras: tuple[str, ...],
        place: str,
        platforms: Iterable[str],
        home: Path,
        editable: bool,
        digest: str = "",
    ) -> None:
        path, _, listed = place.partition("[")
        extras = extras or _extras(listed)
        if is_wheel(path) and (file := WheelFile.parse(path.rpartition("/")[2])):
            self._put(
                platforms,
                file.name,
                WheelRequest(Range("*"), extras, file=FileRequest(path=path, sha256=digest, base=home)),
            )
        elif (home / path).is_file():
            self.lost.append(f"`{place}`: of files, only a wheel can be locked")
        elif own := project_name(home / path) or name:
            tree = TreeRequest(path=path, editable=editable, base=home)
            self._put(platforms, own, WheelRequest(Range("*"), extras, tree))
        elif not (home / path).exists():
            self.lost.append(f"`{place}`, a folder that is not there, as of a submodule")
        else:
            self.lost.append(f"`{place}`, a folder whose project has no name in its files")


def _extras(listed: str) -> tuple[str, ...]:
    """Return the extras of a list that ends with a bracket."""
    return tuple(sorted(normalize(one) for one in listed.rstrip("]").split(",") if one.strip()))


def _is_source(text: str, home: Path) -> bool:
    """Return whether a line has an address or a path in the place of a version."""
    place = _named(text)[2]
    return bool(_ADDRESS.match(place) or _PATH.match(place) or (is_wheel(place) and (home / place).is_file()))


def _named(text: str) -> tuple[str, tuple[str, ...], str]:
    """Return the name, the extras and the place of a line such as ``it[test] @ https://…``; the place alone else."""
    match = re.match(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*@\s*(?P<place>\S.*)", text)
    if match is None:
        return "", (), text
    extras = tuple(sorted(normalize(extra) for extra in (match["extras"] or "").split(",") if extra.strip()))
    return match["name"], extras, match["place"].strip()
