"""Detect the C and C++ compilers on PATH, in CC, CXX and CUDAHOSTCXX, and of nvcc; on Windows, Visual C++ too."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tenv.core.files import entries_of
from tenv.core.process import command_words
from tenv.core.threads import each
from tenv.core.versions import Version
from tenv.host import msvc
from tenv.host.field import HostField, Lane
from tenv.host.interface import Fact, Missing, OriginKind, ReasonKind
from tenv.host.libstdcxx import highest, linked_versions
from tenv.host.places import Places, is_folder, is_link
from tenv.host.report import Compiler, FoundBy, Lead

_NAMES = re.compile(r"(gcc|g\+\+|clang|clang\+\+)(-\d+(\.\d+)*)?|cc|c\+\+")
_KIND = re.compile(r"(^|-)(?P<kind>gcc|g\+\+|clang|clang\+\+)(-[\d.]+)?$")
_VARIABLES = {"CC": Lead.CC, "CXX": Lead.CXX, "CUDAHOSTCXX": Lead.CUDAHOSTCXX}
_OF_NVCC = dict.fromkeys(("NVCC_CCBIN", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"), Lead.NVCC)
_LINKS = 40  # the limit of Linux
_LAUNCHERS = {"ccache", "sccache", "distcc", "icecc"}
# CMake's defaults if neither CC nor CXX is set (CMakeDetermineCCompiler.cmake), in its order.
_CCBIN = re.compile(r"--?(?:ccbin|compiler-bindir)(?:=(?P<value>.*))?")
_FIRST = {"C": ("cc", "gcc", "clang"), "C++": ("c++", "g++", "clang++")}


@dataclass(slots=True)
class _Candidate:
    """A program that may be a compiler."""

    program: str
    """The program, with links resolved as long as the name still shows its kind."""
    kind: str
    """Its kind; an empty string if only its output shows it."""
    language: str
    """``C`` or ``C++``."""
    variables: list[str] = field(default_factory=list)
    """The variables that name it."""
    names: list[str] = field(default_factory=list)
    """Its names on PATH."""
    default: bool = False
    """Whether a build uses it."""
    nvcc: bool = False
    """Whether nvcc uses it."""

    def asked(self) -> str:
        """Return the program to run for the version: clang and clang++ are one file and print the same."""
        real = os.path.realpath(self.program)
        return real if _KIND.search(Path(real).name) else self.program

    def found_by(self) -> tuple[FoundBy, ...]:
        """Return how it was found."""
        on_path = (FoundBy(Lead.PATH, f"{', '.join(self.names)} on PATH"),) if self.names else ()
        kinds = _VARIABLES | _OF_NVCC
        return (*(FoundBy(kinds[name], name) for name in self.variables), *on_path)


def parse_version(text: str) -> Version | None:
    """Return the version from the output of ``-dumpfullversion -dumpversion``; None for other texts."""
    line = text.strip()
    return Version(line) if re.fullmatch(r"\d+(\.\d+)*", line, re.ASCII) else None


def parse_kind(text: str, language: str) -> str | None:
    """Return the kind of a compiler from the output of ``--version``; None if it is neither GCC nor clang."""
    if "clang version" in text:
        return "clang++" if language == "C++" else "clang"
    if "Free Software Foundation" in text:
        return "g++" if language == "C++" else "gcc"
    return None


def probe(places: Places) -> Fact[tuple[Compiler, ...]]:
    """Return the compilers, those that a build uses first. Each file is run once."""
    problems: list[str] = []
    candidates = _candidates(places, problems)
    _mark_defaults(candidates)
    programs = {candidate.asked(): candidate for candidate in candidates}
    answers = dict(zip(programs, each(partial(_ask, places), programs.items()), strict=True))
    found = []
    for candidate in candidates:
        version, glibcxx = answers[candidate.asked()]
        if isinstance(version, Missing):
            problems.append(f"{candidate.program} is skipped: {version.reason}")
        elif named := candidate.kind or _ask_kind(candidate, places):
            found.append(
                Compiler(
                    kind=named,
                    path=candidate.program,
                    version=version,
                    default=candidate.default,
                    found_by=candidate.found_by(),
                    nvcc=candidate.nvcc,
                    glibcxx=glibcxx if candidate.language == "C++" else None,
                )
            )
        else:
            problems.append(f"{candidate.program} is skipped: neither GCC nor clang")
    looked, kind = f"PATH, {', '.join(_VARIABLES)}", OriginKind.SEARCH
    if msvc.is_asked(places):
        looked, kind = f"{looked}, {msvc.LOOKED_AT}", OriginKind.SEARCH_MSVC
        found = [*msvc.compilers(places, problems), *found]
    found.sort(key=lambda compiler: not compiler.default)
    return Fact(tuple(found), "; ".join([looked, *dict.fromkeys(problems)]), kind)


def _candidates(places: Places, problems: list[str]) -> list[_Candidate]:
    found: dict[tuple[str, str], _Candidate] = {}

    def candidate(path: Path, language: str) -> _Candidate:
        program = _resolve(path, language)
        match = _KIND.search(program.name)
        return found.setdefault(
            (language, str(program)), _Candidate(str(program), match["kind"] if match else "", language)
        )

    for variable, path in _named(places, problems):
        candidate(path, "C" if variable == "CC" else "C++").variables.append(variable)
    variable, own = _of_nvcc(places)
    if own:
        taken = candidate(Path(own), "C++" if "++" in Path(own).name else "C")
        taken.nvcc = True
        if variable and variable not in taken.variables:
            taken.variables.append(variable)
    for folder in places.folders():
        for name in _compilers_in(folder):
            names = candidate(folder / name, "C++" if "++" in name else "C").names
            if name not in names:
                names.append(name)
    return list(found.values())


def _resolve(path: Path, language: str) -> Path:
    """Follow links as long as the name fits the language: clang++ links to clang, and gcc may link to ccache."""
    best = path
    for _ in range(_LINKS):
        if not is_link(path):
            break
        path = Path(os.path.realpath(path.parent)) / path.readlink()
        path = Path(os.path.realpath(path.parent)) / path.name
        if (match := _KIND.search(path.name)) and match["kind"].endswith("++") == (language == "C++"):
            best = path
    return Path(os.path.realpath(best.parent)) / best.name


def _named(places: Places, problems: list[str]) -> Iterator[tuple[str, Path]]:
    for variable in _VARIABLES:
        words = command_words(places.environ.get(variable, ""))
        if len(words) > 1 and Path(words[0]).name in _LAUNCHERS:
            words = words[1:]
        if not words or msvc.is_cl(words[0]):  # the folder of Visual C++ shows its version
            continue
        program = places.find(words[0])
        if program:
            yield variable, Path(program)
        else:
            problems.append(f"{variable} names {words[0]}, which does not exist")


def _of_nvcc(places: Places) -> tuple[str, str | None]:
    """Return the compiler that nvcc uses without a command line option, and the variable that names it.

    That is the last ``-ccbin`` of its flags, else NVCC_CCBIN, else the ``gcc`` on PATH, whatever CXX is (CUDA
    Compiler Driver NVCC, sections 2.1 and 4.2.1); a folder means the ``gcc`` in it.
    """
    for variable in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_CCBIN"):
        value = places.environ.get(variable, "")
        named = value if variable == "NVCC_CCBIN" else _ccbin(value)
        if named:
            program = str(Path(named) / "gcc") if is_folder(Path(named)) else named
            return variable, places.find(program)
    return "", places.find("gcc")


def _ccbin(flags: str) -> str:
    """Return the value of the last ``-ccbin`` among nvcc's flags, or an empty string."""
    words = command_words(flags)
    found = ""
    for word, following in zip(words, (*words[1:], ""), strict=False):
        if match := _CCBIN.fullmatch(word):
            found = following if match["value"] is None else match["value"]
    return found


def _compilers_in(folder: Path) -> list[str]:
    names = [path.name for path in entries_of(folder) if _NAMES.fullmatch(path.name)]
    # Short names first: users type these.
    return sorted((name for name in names if os.access(folder / name, os.X_OK)), key=lambda name: (len(name), name))


def _mark_defaults(candidates: list[_Candidate]) -> None:
    for language, variable in (("C", "CC"), ("C++", "CXX")):
        mine = [candidate for candidate in candidates if candidate.language == language]
        chosen = next((candidate for candidate in mine if variable in candidate.variables), None)
        for name in _FIRST[language]:
            chosen = chosen or next((candidate for candidate in mine if name in candidate.names), None)
        if chosen:
            chosen.default = True


def _ask(places: Places, asked: tuple[str, _Candidate]) -> tuple[Version | Missing, Version | None]:
    """Return a compiler's version, and the highest GLIBCXX of the libstdc++ that a g++ links."""
    program, candidate = asked
    version = _version(places, program)
    if isinstance(version, Missing) or candidate.language != "C++" or candidate.kind == "clang++":
        return version, None
    done = places.run(program, "-print-file-name=libstdc++.so", LC_ALL="C")
    library = "" if isinstance(done, Missing) or done.status else done.stdout.strip()
    versions = linked_versions(Path(library)) if Path(library).is_absolute() else ()
    return version, highest(versions, "GLIBCXX")


def _version(places: Places, program: str) -> Version | Missing:
    done = places.run(program, "-dumpfullversion", "-dumpversion", LC_ALL="C")
    if isinstance(done, Missing):
        return done
    version = parse_version(done.stdout) if done.status == 0 else None
    if version is None:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[:1]
        return Missing(f"exit status {done.status}" + (f", `{said[0]}`" if said else ""), ReasonKind.FAILED)
    return version


def _ask_kind(candidate: _Candidate, places: Places) -> str | None:
    done = places.run(candidate.program, "--version", LC_ALL="C")
    return None if isinstance(done, Missing) else parse_kind(done.stdout, candidate.language)


def _show(compiler: Compiler) -> str:
    mark = ", default" if compiler.default else ""
    mark += ", used by nvcc" if compiler.nvcc else ""
    links = f", links GLIBCXX_{compiler.glibcxx}" if compiler.glibcxx else ""
    return f"{compiler.kind} {compiler.version}  {compiler.path}, by {compiler.ways}{mark}{links}"


COMPILERS = HostField(
    label="compilers",
    meaning=(
        "gcc, g++, clang and clang++ of all versions on PATH, in CC, CXX and CUDAHOSTCXX, and nvcc's host "
        "compiler; on Windows, the toolsets of Visual C++; those that a build uses by default come first"
    ),
    form=(
        "a list of `kind`, `path`, `version`, `default`, `found_by` (a list of `kind`, `text`), `nvcc`, `glibcxx` (or "
        "null)"
    ),
    probe=lambda scan: probe(scan.places),
    show=lambda compilers: list(map(_show, compilers)),
    lane=Lane.ALONE,
)
