"""Split a log into lines without colors, time stamps and the prefixes of Docker, pip and CI."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["LogLine", "clean"]

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
    r"|\d+\.\d+ +(?=\S)"  # docker's summary of the step that failed
    r"|(?:[\w.-]+ +)?\| (?=\S)"  # docker compose
    r"|> (?=\S)"
    r"|##\[\w+\]"
    r"|::(?:error|warning|group|debug)(?: [^:]*)?::"
    r")"
)
_PIP = re.compile(r"^(?: {2,6}(?=\S)|\u2502 ?|\s*\u2570\u2500>\s*|\s*\u00d7\s*)")
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
)
"""Localized messages of compilers with their English form."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log.

    Attributes:
        number: Its number, from 1.
        text: Its text.
    """

    number: int
    text: str


def clean(lines: Iterable[str]) -> Iterator[LogLine]:
    """Yield the lines of a log as the program printed them."""
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        if "\r" in text:  # earlier text on the line was overwritten
            text = text.rpartition("\r")[2]
        yield LogLine(number, _plain(text[:_LONGEST]))


def _plain(text: str) -> str:
    if "\x1b" in text or not text.isprintable():
        text = _ESCAPES.sub("", text)
    if not text.isascii() or "rreur" in text or "Fehler" in text:
        for said, english in _ENGLISH:
            text = text.replace(said, english)
    for _ in range(_MOST_PREFIXES):
        match = _PREFIXES.match(text)
        if match is None or not match.end():
            break
        text = text[match.end() :]
    return _PIP.sub("", text, count=1).rstrip()
