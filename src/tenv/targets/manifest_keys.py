"""The keys of a manifest: their names, types and meaning, in one table, and the JSON schema of them.

`tenv.targets.manifest_file` accepts these keys and no others. The schema, for editors, has draft 7, which taplo and VS
Code's TOML extension read. A keyword of it applies to values of its type alone, so one schema holds a text and a table
without ``oneOf``, and an error names the place that is wrong.
"""

import json
from enum import StrEnum
from typing import Any

from tenv.core.dataclass import dataclass
from tenv.core.names import CHANNEL_PATTERN, CONDA_NAME, SHA256_PATTERN
from tenv.core.untrusted import NAME_PATTERN, STORAGE_EXAMPLE, STORAGE_PATTERN
from tenv.core.versions import CONDA_RANGE_PATTERN, RANGE_PATTERN, VERSION_PATTERN
from tenv.targets.manifest import PLATFORMS
from tenv.targets.sections import SECTIONS, SourceSection
from tenv.targets.variable_requests import VARIABLE_PATTERN
from tenv.targets.wheel_origin import INDEX_FORMATS

BUILD_PATTERN = r"[A-Za-z0-9_.+*]+"
"""A build string of a conda package, or a pattern of one."""
CONSTRAINT_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*\s*[<>=!~].*"
OVERRIDE_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]]*\]|[<>=!~;]).*"
"""The beginning of a line of `overrides`: its versions, extras or marker follow the name."""

CACHES = ("auto", "ccache", "sccache", "off")
"""The compile caches of ``[build]``."""


class Form(StrEnum):
    """The type of a value, by its name in a JSON schema."""

    TEXT = "string"
    FLAG = "boolean"
    COUNT = "integer"
    TEXTS = "array"
    TABLE = "object"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table."""

    name: str
    """The key."""
    about: str
    """Its meaning, in one line."""
    forms: tuple[Form, ...] = (Form.TEXT,)
    """The types that its value may have."""
    pattern: str = ""
    """The pattern of a whole text, or of each text of a list; empty for any text."""
    choices: tuple[str, ...] = ()
    """The accepted texts; empty for any."""
    keys: tuple["Key", ...] = ()
    """The keys of its table; empty if they are names."""
    each: "Tables | None" = None
    """The values of its table, if its keys are names."""
    only_false: bool = False
    """Whether the only flag is ``false``, which drops a parent's request."""
    only_true: bool = False
    """Whether the only flag is ``true``."""
    one_key: bool = False
    """Whether its table has exactly one key."""
    one_of: tuple[str, ...] = ()
    """Keys of its table of which exactly one is needed; empty for none."""
    example: str = ""
    """A value, for editors; empty for none."""
    rows: tuple["Key", ...] = ()
    """The keys of each table in its list; empty for a list of texts."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The values of a table whose keys are names."""

    value: Key
    """The type of each value."""
    pattern: str = ""
    """The pattern of each name; empty for any."""
    known: tuple[Key, ...] = ()
    """Values with a meaning of their own, by name, which editors offer."""
    closed: bool = False
    """Whether there are no other names."""


def names(keys: tuple[Key, ...]) -> tuple[str, ...]:
    """Return the names of some keys."""
    return tuple(key.name for key in keys)


_TABLE = (Form.TABLE,)
_REQUEST = (Form.TEXT, Form.TABLE, Form.FLAG)
_VERSION_OF_ARCHIVE = rf"auto|{RANGE_PATTERN}"
_CHANNEL = "The channel of this package: a name, NAME/label/LABEL or a URL"

CONDA = (
    Key("version", "The accepted versions", pattern=CONDA_RANGE_PATTERN, example=">=3.27,<4"),
    Key("channel", _CHANNEL, pattern=CHANNEL_PATTERN, example="conda-forge"),
    Key("build", "A build string, or a pattern of one", pattern=BUILD_PATTERN, example="*_cuda"),
)
"""A request for a conda package."""

WHEEL = (
    Key("version", "The accepted versions", pattern=RANGE_PATTERN, example=">=2.1,<3"),
    Key("extras", "The requested extras", (Form.TEXTS,), NAME_PATTERN),
    Key("git", "The URL of a git repository to build from", pattern=r"(https|ssh|file)://.+"),
    Key("rev", "A full commit, a branch or a tag of the repository"),
    Key("branch", "A branch of the repository; `tenv update` takes its newest commit", example="main"),
    Key("tag", "A tag of the repository", example="v1.0"),
    Key("subdirectory", "The folder of the package in the repository", example="python"),
    Key("path", "A folder to build from, or a wheel, relative to this file", example="../vision"),
    Key("editable", "Import from the folder itself, so that an edit needs no installation", (Form.FLAG,)),
    Key("index", "The only index that it comes from: the name of an [[index]], or an address", example="pytorch-cu128"),
    Key("url", "The address of a wheel; `#sha256=…` may follow", pattern=r"https?://[^@]+"),
    Key("sha256", "The sha256 of the wheel at `url` or `path`", pattern=SHA256_PATTERN),
    Key(
        "build",
        "Build it from its source archive, which runs its code, where no wheel fits; `always`: even where one fits",
        (Form.FLAG, Form.TEXT),
        "always",
    ),
    Key("isolation", "false: compile it against the target's torch, with the target's toolkit", (Form.FLAG,)),
    Key("requires", "Its requirements, where its source archive leaves them to its code", (Form.TEXTS,)),
    Key("cxx", "The C++ standard that it is compiled with in place of its own", (Form.COUNT,)),
    Key("archs", "The GPU architectures that it is compiled for in place of its own", example="9.0"),
)
"""A request for a wheel, or for a package that is built from a source tree."""

INDEX = (
    Key(
        "url",
        "The address of the index, or a folder relative to this file",
        example="https://download.pytorch.org/whl/cu128",
    ),
    Key("name", "Its name, for `index = NAME` of a request", pattern=NAME_PATTERN, example="pytorch-cu128"),
    Key("explicit", "Use it only for requests that name it", (Form.FLAG,)),
    Key("default", "Use it in the place of the default index", (Form.FLAG,)),
    Key("format", "`simple` is a package index, `flat` one page or folder with files", choices=INDEX_FORMATS),
)
"""``[[index]]``, in uv's words."""

PYPI_OPTIONS = (
    Key("index-url", "The index in the place of the default one"),
    Key("extra-index-urls", "More indexes, best first, before the default one", (Form.TEXTS,)),
    Key(
        "find-links",
        "Pages or folders with files: { url } or { path }",
        (Form.TEXTS,),
        rows=(Key("url", "The address of a page"), Key("path", "A folder, relative to this file")),
    ),
)
"""``[pypi-options]``, in pixi's words."""

ARCHIVE = (
    Key("version", "The accepted versions of a known product, or `auto`", pattern=_VERSION_OF_ARCHIVE, example="auto"),
    Key("url", "The address of the file", pattern=r"https?://[^@]+"),
    Key("sha256", "The sha256 of the file", pattern=SHA256_PATTERN),
    Key("strip", "The number of leading folders to remove from the names in the archive", (Form.COUNT,)),
    Key("to", "The folder of the prefix to unpack into; `.` is the prefix itself", example="opt/magma"),
    Key("product", "The product, if the name of the request is that of a component", pattern=NAME_PATTERN),
    Key("components", "The components of the product to install", (Form.TEXTS,), NAME_PATTERN),
    Key("optional", "Leave the file out, unless `tenv lock --trust-first-use` adds it", (Form.FLAG,), only_true=True),
)
"""A request for an archive."""

DEBUG_PYTHON_KEYS = (
    Key("version", "The accepted versions", pattern=RANGE_PATTERN, example=">=3.11"),
    Key("debug", "Take a debug build of Python from the host", (Form.FLAG,), only_true=True),
)
"""The request for the host's debug build of Python."""

REQUIREMENTS = (
    Key(
        "cuda",
        "The CUDA release, from which the minimum driver follows; `torch` means the locked torch's, with its toolkit",
        pattern=f"{VERSION_PATTERN}|torch",
        example="13.0",
    ),
    Key("glibc", "The oldest C library on which the target works", pattern=VERSION_PATTERN, example="2.28"),
)
"""``[requirements]``."""

BUILD = (
    Key("cache", "The compile cache of `tenv build`", choices=CACHES, example="ccache"),
    Key(
        "storage",
        "What machines share of the compile cache; `gha` is the cache of GitHub Actions",
        pattern=STORAGE_PATTERN,
        example=STORAGE_EXAMPLE,
    ),
)
"""``[build]``."""

_VARIABLE = Key(
    "NAME",
    "A value, in which $NAME stands for a variable set before and $$ for a dollar; or a change of the present value",
    (Form.TEXT, Form.TEXTS, Form.TABLE),
    keys=(
        Key("prepend", "Text, or a list of texts, before the present value", (Form.TEXT, Form.TEXTS)),
        Key("append", "Text, or a list of texts, after the present value", (Form.TEXT, Form.TEXTS)),
        Key("unset", "Unset the variable", (Form.FLAG,), only_true=True),
    ),
    one_key=True,
)
_LIST = tuple(
    Key(name, "A list of folders, which is extended and never replaced", _TABLE, keys=_VARIABLE.keys, one_key=True)
    for name in ("PATH", "LD_LIBRARY_PATH")
)
ACTIVATION = (
    Key(
        "env",
        "Variables in addition to those that tenv derives from the toolchain",
        _TABLE,
        each=Tables(_VARIABLE, VARIABLE_PATTERN, _LIST),
    ),
)
"""``[activation]``."""

_SYSTEM = Key("NAME", "The accepted versions", (Form.TEXT, Form.FLAG), RANGE_PATTERN, only_false=True)
SYSTEM_TOOLS = {
    "cuda-toolkit": "The CUDA toolkit of the host",
    "rocm": "ROCm of the host",
    "gcc": "GCC and g++ of the host",
    "msvc": "Visual C++ of the host",
    "cudnn": "cuDNN of the host",
    "cusparselt": "cuSPARSELt of the host",
    "nccl": "NCCL of the host",
    "mkl": "MKL of the host",
    "mpi": "MPI of the host",
    "gdb": "gdb of the host",
}
"""The tools of ``[system]`` by name, beside Python, whose request is a table."""
_FROM_SYSTEM = (
    *(Key(name, about, _SYSTEM.forms, RANGE_PATTERN, only_false=True) for name, about in SYSTEM_TOOLS.items()),
    Key(
        "python",
        "A debug build of Python of the host: { version, debug = true }",
        (Form.TABLE, Form.FLAG),
        keys=DEBUG_PYTHON_KEYS,
        only_false=True,
    ),
)

_OF_SOURCES = {
    "conda": Key(
        "dependencies",
        "Conda packages",
        _TABLE,
        each=Tables(
            Key(
                "NAME", "A range, or { version, channel, build }", _REQUEST, CONDA_RANGE_PATTERN, (), CONDA, None, True
            ),
            CONDA_NAME.pattern,
        ),
    ),
    "wheels": Key(
        "pypi-dependencies",
        "Wheels",
        _TABLE,
        each=Tables(
            Key(
                "NAME",
                "A range, { version, extras, index }, { url }, { git, rev } or { path, editable }",
                _REQUEST,
                RANGE_PATTERN,
                (),
                WHEEL,
                None,
                True,
            ),
            NAME_PATTERN,
        ),
    ),
    "archives": Key(
        "archives",
        "Files from outside any package manager",
        _TABLE,
        each=Tables(
            Key(
                "NAME",
                "A version or `auto` of a known product, or a table with a `url`",
                _REQUEST,
                _VERSION_OF_ARCHIVE,
                keys=ARCHIVE,
                only_false=True,
                one_of=("version", "url"),
            ),
            NAME_PATTERN,
        ),
    ),
    "system": Key("system", "Tools of the host", _TABLE, each=Tables(_SYSTEM, "", _FROM_SYSTEM, closed=True)),
}


def _section(section: SourceSection) -> Key:
    """Return the key of a source; one without a request type of its own has texts."""
    if section.key in _OF_SOURCES:
        return _OF_SOURCES[section.key]
    request = Key(
        "NAME",
        f"A {section.noun}",
        _REQUEST,
        keys=tuple(Key(name, f"Its {name}") for name in section.keys),
        only_false=True,
    )
    return Key(section.name, f"Each a {section.noun}", _TABLE, each=Tables(request, NAME_PATTERN))


_SECTIONS = tuple(map(_section, SECTIONS))
_OF_FILES = tuple(_section(section) for section in SECTIONS if section.noun)
_INDEXES = (
    Key("index", "Package indexes, best first, before the default one", (Form.TEXTS,), rows=INDEX),
    Key("pypi-options", "Package indexes in pixi's words", _TABLE, keys=PYPI_OPTIONS),
)
_ACTIVATION = Key("activation", "Changes of the environment's variables", _TABLE, keys=ACTIVATION)

ON_PLATFORM = (*_SECTIONS, *_INDEXES, _ACTIVATION)
"""``[platform.NAME]``."""


def _platforms(keys: tuple[Key, ...]) -> Key:
    about = "Requests for one platform"
    known = tuple(Key(name, f"Requests for {name}", _TABLE, keys=keys) for name in PLATFORMS)
    return Key("platform", about, _TABLE, each=Tables(Key("NAME", about, _TABLE, keys=keys), "", known, closed=True))


FEATURE = (*_OF_FILES, *_INDEXES, _platforms((*_OF_FILES, *_INDEXES)))
"""``[feature.NAME]``: only sections that bring files, since the host is checked for the target alone."""

MANIFEST = (
    Key("$schema", "The JSON schema of this file, for editors", example="./tenv.schema.json"),
    Key("description", "One line, shown by `tenv targets`"),
    Key("extends", "The parent manifest; the keys of this file override its keys", example="cuda130"),
    Key("platforms", "The platforms of the target", (Form.TEXTS,), choices=PLATFORMS),
    Key(
        "channels", "The conda channels, best first: a name, NAME/label/LABEL or a URL", (Form.TEXTS,), CHANNEL_PATTERN
    ),
    Key("pytorch", "The source revisions that the target builds", pattern=RANGE_PATTERN, example=">=2.14,<2.16"),
    Key("python", "The Pythons that the lock serves", pattern=RANGE_PATTERN, example=">=3.11,<3.15"),
    Key("for", "The environment whose torch the toolkit is for, relative to this file", example="../.venv"),
    Key("wheelhouse", "The folder with wheels compiled against its torch, relative to this file", example="../wheels"),
    Key(
        "sdists",
        "Packages that may be built from their source archives, which runs their code, though only others require them",
        (Form.TEXTS,),
        NAME_PATTERN,
    ),
    Key(
        "constraints",
        "Bounds of packages that only others require",
        (Form.TEXTS,),
        CONSTRAINT_PATTERN,
        example="urllib3<3",
    ),
    Key(
        "overrides",
        "Versions that count in the place of those that packages require",
        (Form.TEXTS,),
        OVERRIDE_PATTERN,
        example="protobuf>=6",
    ),
    Key("requirements", "Requirements on the host", _TABLE, keys=REQUIREMENTS),
    *_SECTIONS,
    *_INDEXES,
    _platforms(ON_PLATFORM),
    Key(
        "feature",
        "Packages that come only with `tenv create TARGET --with NAME`",
        _TABLE,
        each=Tables(Key("NAME", "The packages of a feature", _TABLE, keys=FEATURE), NAME_PATTERN),
    ),
    _ACTIVATION,
    Key("build", "Settings of `tenv build`", _TABLE, keys=BUILD),
)
"""The whole manifest."""


SCHEMA_FILE = "tenv.schema.json"
"""The name of the schema's file beside the manifests of a project."""


def manifest_schema() -> dict[str, Any]:
    """Return the JSON schema of a manifest."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Manifest of a tenv target",
        "description": "What a target asks for. `tenv lock` selects the files, `tenv create` installs them.",
        **_schema_table(MANIFEST),
        "type": "object",
    }


def schema_text() -> str:
    """Return the JSON schema as the text of a file."""
    return json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"


def _schema_table(keys: tuple[Key, ...]) -> dict[str, Any]:
    return {"properties": {key.name: _schema_value(key) for key in keys}, "additionalProperties": False}


def _schema_value(key: Key) -> dict[str, Any]:
    found: dict[str, Any] = {"description": key.about}
    forms = [str(form) for form in key.forms]
    found["type"] = forms[0] if len(forms) == 1 else forms
    text = _schema_text(key)
    if Form.TEXTS in key.forms:
        items = {"type": "object", **_schema_table(key.rows)} if key.rows else {"type": "string", **text}
        found |= {"items": items} | ({"uniqueItems": True} if key.choices else {})
    if Form.TEXT in key.forms:
        found |= text
    if Form.COUNT in key.forms:
        found["minimum"] = 0
    if key.only_true:
        found["enum"] = [True]
    if key.only_false:
        found["not"] = {"const": True}
    if key.keys:
        found |= _schema_table(key.keys)
    if key.each:
        found |= _schema_named(key.each)
    if key.one_key:
        found |= {"minProperties": 1, "maxProperties": 1}
    if key.one_of:
        one = {"oneOf": [{"required": [name]} for name in key.one_of]}
        found |= {"if": {"type": "object"}, "then": one}
    return found | ({"examples": [key.example]} if key.example else {})


def _schema_text(key: Key) -> dict[str, Any]:
    if key.choices:
        return {"enum": list(key.choices)}
    return {"pattern": f"^({key.pattern})$"} if key.pattern else {}


def _schema_named(tables: Tables) -> dict[str, Any]:
    found: dict[str, Any] = (
        {"properties": {key.name: _schema_value(key) for key in tables.known}} if tables.known else {}
    )
    found["additionalProperties"] = False if tables.closed else _schema_value(tables.value)
    return found | ({"propertyNames": {"pattern": f"^({tables.pattern})$"}} if tables.pattern else {})
