"""Read the lines of a log without colors, time stamps and the prefixes of Docker, pip and CI, and search them."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from tenv.core.dataclass import dataclass

_ESCAPES = re.compile(
    r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]"
)
_STAMP = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",  # GitHub Actions, Azure, journald
    r"\d\d:\d\d:\d\d(?:[.,]\d+)?",  # Jenkins
    r"[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d",  # syslog
)
_PREFIXES = re.compile(
    r"^(?:"
    rf"\[?(?:{'|'.join(_STAMP)})\]?(?:\s|$)"
    r"|\#\d+ +(?:\d+\.\d+ +|\[[^\]]*\] +)?"  # docker's BuildKit
    r"|\d+\.\d+(?: +(?=\S)|$)"  # docker's summary of the step that failed
    r"|>(?=[A-Za-z ])"  # a quotation
    r"|(?:[\w.-]+ +)?\| (?=\S)"  # docker compose
    r"|\s*(?:[\w.+-]+)?(?<!>)> (?=\s*\S)"  # nix
    r"|\d+>(?=\S)"  # MSBuild
    r"|\s*>> \d+ {4}"  # spack's summary of the errors
    r"|- (?:DEBUG|INFO|WARNING|ERROR) - "  # Python's logging, behind the time
    r"|\[[A-Za-z][\w.+-]+(?: (?:configure|build|install))?\](?: (?=\S| {2})| ?$)"  # TheRock's parts
    r"|\((?:\w+ )?pid=\d+(?:, ip=[\d.]+)?\) (?:[A-Z]+ \d\d-\d\d \d\d:\d\d:\d\d \[[^\]]*\](?:\s|$))?"  # Ray, vLLM
    r"|##\[\w+\]"
    r"|::(?:error|warning|group|debug)(?: [^:]*)?::"
    r")"
)
_PIP = re.compile(r"^(?: {1,6}(?=\S)|\u2502 ?|\s*[\u2570\u251c]\u2500[>\u25b6]\s*|\s*\u00d7\s*)")
_BYTES = re.compile(r"b(['\"]).*\1")
"""A line that a script of Python printed as bytes."""
_FOLDED = re.compile(r"^\S+:\d+:\d+:(?: (?:fatal )?error:)?$")
"""What clang prints of an error on a line of its own where the terminal is narrow."""
_MOST_PREFIXES = 4
_LONGEST = 1000
"""How many characters of a line are read. Command lines are longer, but their tails hold no errors."""

_ENGLISH = (
    ("\u6ca1\u6709\u90a3\u4e2a\u6587\u4ef6\u6216\u76ee\u5f55", "No such file or directory"),  # Chinese
    ("\u6c92\u6709\u6b64\u4e00\u6a94\u6848\u6216\u76ee\u9304", "No such file or directory"),  # Chinese, traditional
    ("Datei oder Verzeichnis nicht gefunden", "No such file or directory"),
    ("Aucun fichier ou dossier de ce type", "No such file or directory"),
    ("No existe el archivo o el directorio", "No such file or directory"),
    ("No existe el fichero o el directorio", "No such file or directory"),
    ("Arquivo ou diret\u00f3rio inexistente", "No such file or directory"),
    ("File o directory non esistente", "No such file or directory"),
    ("\u81f4\u547d\u9519\u8bef\uff1a", "fatal error: "),
    ("\u9519\u8bef\uff1a", "error: "),
    ("schwerwiegender Fehler: ", "fatal error: "),
    ("Fehler: ", "error: "),
    ("erreur fatale: ", "fatal error: "),
    ("erreur: ", "error: "),
    ("\u65e0\u6cd5\u89e3\u6790\u7684\u5916\u90e8\u7b26\u53f7", "unresolved external symbol"),  # MSVC, Chinese
    ("\u65e0\u6cd5\u6253\u5f00\u7f16\u8bd1\u5668\u751f\u6210\u7684\u6587\u4ef6", "Cannot open compiler generated file"),
    ("\u65e0\u6cd5\u6253\u5f00\u5305\u62ec\u6587\u4ef6", "Cannot open include file"),
    ("\u65e0\u6cd5\u6253\u5f00\u8f93\u5165\u6587\u4ef6", "cannot open input file"),
    ("\u65e0\u6cd5\u6253\u5f00\u6587\u4ef6", "cannot open file"),
    ("\u627e\u4e0d\u5230\u6807\u8bc6\u7b26", "identifier not found"),
    ("\u4e0d\u660e\u786e\u7684\u7b26\u53f7", "ambiguous symbol"),
)
"""Localized messages of compilers and of MSVC's linker with their English form."""

_REFERENCE = re.compile(
    r"\u5bf9\s*[\u2018\u201c\"'](?P<zh>.+?)[\u2019\u201d\"']\s*\u672a\u5b9a\u4e49\u7684\u5f15\u7528"  # Chinese
    r"|(?:[Nn]icht definierter|[Uu]ndefinierter) Verweis auf [\u00bb\u201e`](?P<de>.+)[\u00ab\u201c']"
    r"|r\u00e9f\u00e9rence ind\u00e9finie vers \u00ab\s*(?P<fr>.+?)\s*\u00bb"
    r"|referencia a [`\u00ab\u201c](?P<es>.+)['\u00bb\u201d] sin definir"
    r"|\u043d\u0435\u043e\u043f\u0440\u0435\u0434\u0435\u043b\u0451\u043d\u043d\u0430\u044f "
    r"\u0441\u0441\u044b\u043b\u043a\u0430 \u043d\u0430 [\u00ab`](?P<ru>.+)[\u00bb']"
)
"""What GNU ld prints in other languages for an undefined reference."""
_LIBRARY = re.compile(
    r"(?:\u627e\u4e0d\u5230|ne peut trouver|impossible de trouver|no se puede encontrar)\s*(?P<name>-l\S+)"
    r"|kann (?P<de>-l\S+) nicht finden"
)
"""What GNU ld prints in other languages for a library that it does not find."""
_LINKER = re.compile(
    r"(?P<who>(?:ld|lld|mold)[\w.-]*: (?:error|fatal): )"
    r"(?:undefined (?:symbol|reference(?: due to --no-allow-shlib-undefined)?): "
    r"(?:__declspec\(dllimport\) )?(?P<symbol>.+?)\s*"
    r"|(?:unable to find library |library not found: )(?:-l)?(?P<library>\S+))$"
)
"""What lld and mold print for what GNU ld calls an undefined reference and a library that it cannot find."""
_DRIVER = re.compile(r"^\S*clang\S*: error: [A-Z](?=[a-z])")
"""What clang up to LLVM 11 began with a capital letter."""
_UNQUOTED = re.compile(r"undefined reference to ?(?=[\w~][^`']*'$)")
"""GNU ld's words where Markdown took the backtick that opens a name."""
_FOREIGN = (
    "Datei oder",
    "Aucun fichier",
    "No existe el",
    "Arquivo ou",
    "File o directory non",
    "rreur",
    "Fehler",
    "Verweis auf ",
    "referencia a ",
    "ne peut trouver",
    "de trouver -l",
    "encontrar -l",
    "kann -l",
)
"""What lines of pure ASCII in other languages hold."""

_MANGLED = re.compile(r"_Z(?:T[ISV])?L?(?P<nested>N)?[rVK]*(?=\d)")
_LENGTH = re.compile(r"[1-9]\d{0,3}")

_CLASSES = "AbBdDsSwWZ0123456789nrtfvxuUN"
_SHORTEST = 3
_PLAIN = re.compile(r"(?:[^\\\[().^$|?*+{](?![?*+{]))+")
_GROUP = re.compile(r"\?(?:P<\w+>|i?:)|(?!\?)")
"""The beginning of a group whose text is in every match."""
_REPEATED = re.compile(r"[?*+]\??|\{[\d,]+\}\??")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log."""

    number: int
    """Its number, from 1."""
    text: str
    """Its text."""


def clean(lines: Iterable[str]) -> Iterator[LogLine]:
    """Yield the lines of a log as the program printed them.

    Of an error that clang folded behind its place, the first line has the whole and the second one nothing.
    """
    folded: LogLine | None = None
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if "\r" in text:  # earlier text on the line was overwritten
            text = text.rpartition("\r")[2]
        read = LogLine(number, _plain(text[:_LONGEST]))
        if folded:
            yield LogLine(folded.number, f"{folded.text} {read.text.strip()}")
            read = LogLine(number, "")
        folded = read if _FOLDED.search(read.text) else None
        if folded is None:
            yield read
    if folded:
        yield folded


def readable(symbol: str) -> str:
    """Return the name of a mangled C++ function or object with its namespaces and without arguments.

    The scheme is the Itanium C++ ABI's: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling. A symbol of
    another form is returned as it is.
    """
    found = _MANGLED.match(symbol)
    if found is None:
        return symbol
    names, rest = list[str](), symbol[found.end() :]
    while length := _LENGTH.match(rest):
        start = length.end()
        end = start + int(length[0])
        names.append(rest[start:end])
        rest = rest[end:]
        if not found["nested"]:
            break
    return "::".join(names) or symbol


def _plain(text: str) -> str:
    if "\x1b" in text or not text.isprintable():
        text = _ESCAPES.sub("", text)
    if not text.isascii() or any(word in text for word in _FOREIGN):
        text = _in_english(text)
    if ": undefined " in text or "library" in text:
        text = _LINKER.sub(_like_ld, text)
    text = _unframed(text).rstrip()
    inner = _PIP.sub("", text[2:-1].rstrip() if _BYTES.fullmatch(text) else text, count=1)
    inner = _unframed(inner)
    if "clang" in inner and (old := _DRIVER.match(inner)):
        inner = f"{inner[: old.end() - 1]}{inner[old.end() - 1].lower()}{inner[old.end() :]}"
    return _UNQUOTED.sub("undefined reference to `", inner) if "undefined reference to" in inner else inner


def _unframed(text: str) -> str:
    for _ in range(_MOST_PREFIXES):
        match = _PREFIXES.match(text)
        if match is None or not match.end():
            break
        text = text[match.end() :]
    return text


def _in_english(text: str) -> str:
    for said, english in _ENGLISH:
        text = text.replace(said, english)
    text = _REFERENCE.sub(lambda found: f"undefined reference to `{_only_group(found)}'", text)
    return _LIBRARY.sub(lambda found: f"cannot find {_only_group(found)}", text)


def _like_ld(found: re.Match[str]) -> str:
    symbol, library = found["symbol"], found["library"]
    return found["who"] + (f"undefined reference to `{symbol}'" if symbol else f"cannot find -l{library}")


def _only_group(found: re.Match[str]) -> str:
    return next(group for group in found.groups() if group is not None)


@cache
def literals(pattern: str) -> tuple[str, ...]:
    """Return texts of which every match of a pattern holds one, in lower case; empty if none are certain."""
    return _one_of(pattern.removeprefix("(?i)"), 0)[0]


def _one_of(pattern: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the literals of the alternatives from an index on, and the index behind their end.

    All alternatives count, or none does.
    """
    found: list[tuple[str, ...]] = []
    while True:
        held, at = _held(pattern, at)
        found.append(held)
        at += 1
        if pattern[at - 1 : at] != "|":
            return tuple(text for texts in found for text in texts) if all(found) else (), at


def _held(pattern: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the best literals of one alternative from an index on, the longest, and the index of its end."""
    found: list[tuple[str, ...]] = []
    run = ""
    while pattern[at : at + 1] not in ("", "|", ")"):
        if plain_run := _PLAIN.match(pattern, at):
            run, at = run + plain_run[0], plain_run.end()
            continue
        sign, at = pattern[at], at + 1
        plain, within = "" if sign in "^$.[(" else sign, tuple[str, ...]()
        if sign == "\\":
            plain, at = "" if pattern[at] in _CLASSES else pattern[at], at + 1
        elif sign == "[":
            at = _class_end(pattern, at)
        elif sign == "(":
            start = _GROUP.match(pattern, at)
            within, at = _one_of(pattern, start.end() if start else at)
            within = within if start else ()  # it looks ahead or back, or means an earlier group
        repeated = _REPEATED.match(pattern, at)
        if repeated and not repeated[0].startswith("+"):  # it may be left out
            plain, within = "", ()
        run += plain
        if repeated or not plain:
            found += [(run.lower(),), within]
            run = ""
        at = repeated.end() if repeated else at
    long = [texts for texts in [*found, (run.lower(),)] if min(map(len, texts), default=0) >= _SHORTEST]
    return max(long, key=lambda texts: (min(map(len, texts)), -len(texts)), default=()), at


def _class_end(pattern: str, index: int) -> int:
    """Return the end of a character class whose first character is at `index`."""
    index += pattern[index] == "^"
    index += pattern[index] == "]"
    while pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return index + 1


class Sieve:
    """Several patterns, searched at once."""

    def __init__(self, patterns: tuple[re.Pattern[str], ...]) -> None:
        self._patterns = tuple((plain, one) for one in patterns for plain in literals(one.pattern) or ("",))

    def __call__(self, text: str) -> bool:
        """Return whether one of the patterns matches in a text."""
        return self.search(text) is not None

    def search(self, text: str) -> re.Match[str] | None:
        """Return the match of the first of the patterns that matches in a text."""
        low = text.lower()
        for plain, pattern in self._patterns:
            if plain in low and (match := pattern.search(text)):
                return match
        return None
