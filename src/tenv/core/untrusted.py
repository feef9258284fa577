"""Validate values from others: a name, a path in a prefix, an address.

Manifests and locks share these checks, so that neither passes a value to the disk or the network that the other
rejects. Each function returns the fault as words that follow the value's key, or an empty string. The patterns are
compiled when they are used first: every command loads this module to print.
"""

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tenv.core.prefix import META

NAME_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
"""The name of a package, an archive or a feature."""

_MOST = 200
"""Maximum characters of a name: a file system allows 255 bytes, and suffixes are added."""

_MOST_DIGITS = 20
_CONDA_NAME = r"[a-z0-9_.-]+"
_CONDA_VERSION = r"[A-Za-z0-9_.+!]+"
_CONDA_BUILD = r"[A-Za-z0-9_.+]*"
_HIDDEN = r"[\0-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\\]"
_CONTROL = r"[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
_LOGIN = r"://(?!git@)(?:[^\s/@\"'`<>]*@)+"
"""Up to the last ``@`` before the path: a password may have one itself, and an address may end before its host."""

_IN_PATH = r"(://[^\s/\"'`]+)/t/[^\s/\"'`]+/"
"""A token of a conda channel (anaconda-client's ``/t/TOKEN/``)."""

_IN_QUERY = (
    r"(?i)(://[^\s\"'`<>?#]*\?[^\s\"'`<>#]*?)(?<=[?&])"
    r"(?:[^=&#\s\"'`<>]*[._-])?(?:token|auth|apikey|api[_-]key|sig|signature|password|passwd|pwd|secret|credentials?|jwt)"
    r"=[^&#\s\"'`<>]*&?"
)
"""A value in the query of an address that lets its holder in, such as ``?token=…`` or ``X-Amz-Signature``."""

_JSON_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'

_OWN_FOLDERS = (META, "conda-meta")


def whole_number(text: str) -> int | None:
    """Return the number that a text of at most 20 ASCII digits is; None for another text.

    `str.isdigit` accepts ``²``, and `int` refuses that and more than 4,300 digits.
    """
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None


def name_fault(text: str) -> str:
    """Return why a text is not a valid name of a package or an archive, which becomes a file name."""
    if re.fullmatch(NAME_PATTERN, text) and len(text) <= _MOST and ".." not in text:
        return ""
    return f"`{text}` is not a package name"


def conda_file_fault(name: str, version: str, build: str) -> str:
    """Return why three texts are not the name, version and build of a conda package; they become file names."""
    for what, text, allowed in (
        ("name", name, _CONDA_NAME),
        ("version", version, _CONDA_VERSION),
        ("build string", build, _CONDA_BUILD),
    ):
        if not re.fullmatch(allowed, text) or ".." in text or len(text) > _MOST:
            return f"`{text}` is not a valid {what}"
    return ""


def place_fault(text: str) -> str:
    """Return why a text is not a folder below a prefix; ``.`` and an empty text mean the prefix itself."""
    parts = text.split("/")
    if text.startswith(("/", "~")) or ".." in parts or "\\" in text or ":" in text or not text.isprintable():
        return "expected a folder below the prefix, such as `opt/magma`, or `.` for the prefix itself"
    if any(part.startswith((".tenv", META)) for part in parts) or parts[0] in _OWN_FOLDERS:
        return "that folder is tenv's own"
    return ""


def address_fault(text: str, schemes: tuple[str, ...] = ("https", "http")) -> str:
    """Return why a text is not a valid address of a file.

    An address must not have a user or a password: manifests and locks are public.
    """
    if fault := login_fault(text):
        return fault
    expected = f"expected an address that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return f"{expected}, without a user"
    if parts.scheme not in schemes or (not parts.hostname and parts.scheme != "file") or port == 0:
        return f"{expected}, without a user"
    if "@" in parts.netloc or re.search(_HIDDEN, text) or not text.isprintable():
        return f"{expected}, without a user"
    if ".." in unquote(parts.path).split("/") or not parts.path.strip("/"):
        return f"{expected} and names a file"
    return ""


def without_login(text: str) -> str:
    """Return a text without the users, passwords and tokens in its addresses, which are no part of a place.

    The user ``git`` of ssh stays, and so does a lone name at a host that no scheme stands before.
    """
    text = re.sub(_IN_PATH, r"\1/", re.sub(_LOGIN, "://", text))
    if not re.search(_IN_QUERY, text):
        return text
    while text != (text := re.sub(_IN_QUERY, r"\1", text)):  # a match takes one value of a query
        pass
    return re.sub(r"(://[^\s\"'`<>?#]*)(?:\?(?=[\s\"'`<>#]|$)|(\?[^\s\"'`<>#]*?)&(?=[\s\"'`<>#]|$))", r"\1\2", text)


def json_without_login(text: str) -> str:
    """Return JSON as `without_login` does each of its strings; in its own text, an escaped quotation mark ends none."""
    if without_login(text) == text:  # it finds more in the escaped text than in the strings
        return text
    import json  # late: most output has no login

    return re.sub(_JSON_STRING, lambda match: json.dumps(without_login(json.loads(match[0]))), text)


def login_fault(text: str) -> str:
    """Return why an address can't stand in a file that is shared: it has a user, a password or a token."""
    return "has a login, and manifests and locks are shared" if without_login(text) != text else ""


def text_fault(text: str) -> str:
    """Return why a text is not one line of plain text."""
    return "" if text.isprintable() else "has unprintable characters"


def printable(text: str) -> str:
    """Escape control characters and direction marks of a text; line breaks and tabs stay."""
    return re.sub(_CONTROL, lambda match: match[0].encode("unicode_escape").decode(), text)


STORAGE_PATTERN = r"gha|(https?|rediss?|s3|gs|memcached|file)://\S+"
"""The storages that sccache and ccache document: WebDAV and plain HTTP, Redis, S3, Google's, memcached, a folder, and
``gha``, the cache of GitHub Actions."""

S3_OPTIONS = ("region", "endpoint", "use_ssl")

READ_ONLY = "read-only"
"""The fragment of the address of a storage from which a build takes results, and to which it brings none."""

STORAGE_EXAMPLE = "redis://cache.example.org:6379"


def is_storage(text: str) -> bool:
    """Tell whether a text names a storage of a compile cache, and nothing that its program would leave out."""
    if text == "gha":
        return True
    try:
        parts = urlsplit(text.partition("|")[0])  # ccache's attributes follow
        port = parts.port
    except ValueError:
        return False
    sound = re.fullmatch(STORAGE_PATTERN, text) is not None and port != 0 and parts.fragment in ("", READ_ONLY)
    return sound and _has_place(parts) and _knows_options(parts)


def _has_place(parts: SplitResult) -> bool:
    """Return whether an address of a storage has a host or a bucket, or a folder, and a number for a database."""
    if parts.scheme == "file":
        return bool(parts.path) and not parts.netloc
    if parts.scheme in ("redis", "rediss"):
        return bool(parts.hostname) and re.fullmatch(r"(/[0-9]*)?", parts.path) is not None
    in_name = parts.scheme in ("s3", "gs", "memcached")  # where a login would be taken for a part of the name
    return bool(parts.hostname) and not (in_name and "@" in parts.netloc)


def _knows_options(parts: SplitResult) -> bool:
    """Return whether a storage has the options in the query of its address."""
    known = {*S3_OPTIONS} if parts.scheme == "s3" else set()
    return parts.scheme.startswith("http") or dict(parse_qsl(parts.query, keep_blank_values=True)).keys() <= known
