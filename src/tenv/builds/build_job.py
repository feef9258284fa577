"""A build: the way of its revision, the request, the values that its steps pass on, and the report of each step.

The files that distinguish the eras were read in trees from 0.1.1 to a trunk of 2026 (``tests/trees``): setup.py has
taken ``--cmake-only`` since 1.2, ``cmake/EnvVarForwarding.cmake`` reads the environment without setup.py since 2.13,
and scikit-build-core is the backend since 2.14.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.builds.switches import is_on
from tenv.checks.pytorch_source import SourceTree
from tenv.checks.rules.checkout import OF_CHECKOUT
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.errors import UsageError
from tenv.core.file_content import noted_json, read_text, text_or_empty
from tenv.facts.torch_packages import TorchPackage
from tenv.project.context import Context
from tenv.targets.search import Target

if TYPE_CHECKING:
    from tenv.activation.changes import Activation
    from tenv.builds.distribution import ServerOffer
    from tenv.builds.estimate_step import Tried
    from tenv.checks.before_create import Surroundings
    from tenv.environment.state import Environment
    from tenv.host.installed_torch import InstalledTorch
    from tenv.toolchain.discover import Toolchain


class BuildWay(StrEnum):
    """How a revision is built."""

    SCIKIT = "scikit-build-core"
    """CMake reads the environment; scikit-build-core makes the package, from any build folder."""
    CMAKE = "cmake"
    """CMake reads the environment; setup.py makes the package, from ``build`` alone."""
    CMAKE_ONLY = "setup.py --cmake-only"
    """setup.py hands the environment to CMake, and stops there when asked to."""
    BUILD_DEPS = "setup.py build_deps"
    """setup.py configures, compiles and installs the libraries in one go, with one CMake project (1.0, 1.1)."""
    LIBRARIES = "setup.py"
    """setup.py builds one library after the other, each a CMake project of its own (0.1 to 0.4)."""
    EXTENSION = "setup.py build_ext"
    """A package whose setup.py compiles against an installed torch."""
    EXTENSION_SCIKIT = "pip install -e"
    """A package whose backend, scikit-build-core, runs CMake with ``find_package(Torch)``."""
    LIBTORCH = "cmake, find_package(Torch)"
    """A CMake project without a package, C++ against libtorch."""


class Products(StrEnum):
    """Where a way leaves the built files."""

    OUTSIDE = "outside"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Extension:
    """A package that is compiled against an installed torch."""

    name: str
    """Its normalized name."""
    facts: TorchPackage | None
    """Its row in the table of such packages; None without one."""


@dataclass(frozen=True, slots=True)
class Wayfinder:
    """The way of a revision, and the file that decides it."""

    way: BuildWay
    """How it is built."""
    evidence: str
    """The file that decides it."""

    @property
    def products(self) -> Products:
        """Whether the products of two targets would lie in one place, below ``torch/`` of the checkout."""
        outside = (BuildWay.SCIKIT, BuildWay.EXTENSION_SCIKIT, BuildWay.LIBTORCH)
        return Products.OUTSIDE if self.way in outside else Products.SOURCE

    @property
    def configures(self) -> bool:
        """Whether there is a step that configures and does no more."""
        without = (BuildWay.BUILD_DEPS, BuildWay.LIBRARIES, BuildWay.EXTENSION, BuildWay.EXTENSION_SCIKIT)
        return self.way not in without


def find_way(checkout: Path, backend: str) -> Wayfinder:
    """Return how the revision of a checkout is built.

    Args:
        checkout: Its folder.
        backend: Its build backend, as `tenv.checks.pytorch_source` names it.
    """
    forwarding = "cmake/EnvVarForwarding.cmake"
    if (checkout / forwarding).is_file():
        if backend == "scikit-build-core":
            return Wayfinder(BuildWay.SCIKIT, "pyproject.toml")
        return Wayfinder(BuildWay.CMAKE, forwarding)
    if backend == "scikit-build-core":
        return Wayfinder(BuildWay.SCIKIT, "pyproject.toml")
    try:
        setup = read_text(checkout / "setup.py", errors="replace")
    except OSError:
        setup = ""
    if "--cmake-only" in setup:
        return Wayfinder(BuildWay.CMAKE_ONLY, "setup.py")
    if (checkout / "CMakeLists.txt").is_file() and "build_pytorch_libs" in setup:
        return Wayfinder(BuildWay.BUILD_DEPS, "setup.py")
    return Wayfinder(BuildWay.LIBRARIES, "setup.py")


class BuildStepName(StrEnum):
    """The steps, in their order."""

    CHECKOUT = "checkout"
    TARGET = "target"
    CREATE = "create"
    PROBE = "probe"
    HIPIFY = "hipify"
    CONFIGURE = "configure"
    SUMMARY = "summary"
    ESTIMATE = "estimate"
    CANARY = "canary"
    BUILD = "build"
    IMPORT = "import"
    AUDIT = "audit"


CODES = {
    "TE902": "a submodule is at another commit than the checkout pins",
    "TE904": "the products in the source tree are another target's",
    "TE905": "nothing there is a checkout that can be built",
    "TE911": "the choice of the target",
    "TE921": "the environment lacks a part of the toolkit",
    "TE922": "a tool of the environment does not work",
    "TE923": "the environment lacks a requirement of the package",
    "TE924": "nothing is compiled on other machines",
    "TE931": "the revision does not read a switch",
    "TE932": "the configuration failed",
    "TE933": "no compile cache",
    "TE941": "a switch was turned off",
    "TE942": "an MPI without CUDA",
    "TE951": "the disk is too small",
    "TE952": "the memory limits the jobs",
    "TE953": "the build file can't be read",
    "TE954": "an extension can't be compiled against this torch",
    "TE961": "the compilation failed",
    "TE962": "the package could not be installed",
    "TE963": "a portable build lacks libraries of the environment",
    "TE964": "no index for GDB",
    "TE971": "the built package does not import",
    "TE972": "another torch is imported",
    "TE973": "torch computes a wrong result",
    "TE974": "torch was built with another version than the target has",
    "TE981": "an extension lacks GPU code",
    "TE991": "hipify would change files with uncommitted edits",
    "TE992": "hipify failed",
}
"""The codes of the steps, each with a page in ``docs/rules``; the first digit is 9, the second is the step's."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a step."""

    findings: Sequence[Finding] = ()
    """Its findings; an error ends the build."""
    facts: dict[str, Any] | None = None
    """Its measurements, as plain values."""
    log: Path | None = None
    """The log that it wrote."""
    lines: Sequence[str] = ()
    """Its lines for people."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """How a step ended."""

    name: BuildStepName
    """The step."""
    done: Done
    """Its result."""
    seconds: float
    """How long it took."""

    @property
    def ok(self) -> bool:
        """Whether nothing that it found ends the build."""
        return all(finding.severity is not Severity.ERROR for finding in self.done.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values."""
        return {
            "name": self.name.value,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "findings": [finding.to_json() for finding in self.done.findings],
            "log": str(self.done.log or ""),
            "facts": self.done.facts or {},
        }


def build_finding(
    code: str, subject: str, message: str, evidence: str, source: str, fix: str, severity: Severity = Severity.ERROR
) -> Finding:
    """Return a finding of a step; its code must be one of `CODES`, or of the rules about a checkout."""
    if code not in CODES and code not in OF_CHECKOUT:
        raise KeyError(code)
    return Finding(code, severity, subject, message, evidence, source, fix)


DEBUG_FILES = "USE_CUSTOM_DEBINFO"
"""The switch that names the sources to compile with debug information; no other source is compiled in another way."""

_OWN = ".tenv"
_CACHE_ENTRY = re.compile(r"^\"?([^:=\"#/][^:=\"]*)\"?:[A-Z]+=(.*)$")


class DebugKind(StrEnum):
    """The debug information in the products."""

    NONE = "none"
    DEBUG = "debug"
    REL_WITH_DEB_INFO = "rel-with-deb-info"

    @property
    def build_type(self) -> str:
        """CMake's name for it."""
        return {DebugKind.NONE: "Release", DebugKind.DEBUG: "Debug"}.get(self, "RelWithDebInfo")

    def variables(self) -> dict[str, str]:
        """Return the variables that PyTorch's setup.py reads for it."""
        return {_KIND_VARIABLES[self]: "1"} if self in _KIND_VARIABLES else {}


_KIND_VARIABLES = {DebugKind.DEBUG: "DEBUG", DebugKind.REL_WITH_DEB_INFO: "REL_WITH_DEB_INFO"}
BUILD_TYPE = "CMAKE_BUILD_TYPE"
KIND_NAMES = (*_KIND_VARIABLES.values(), BUILD_TYPE)
"""The variables that decide the kind of a build."""


def kind_by_variables(environ: Mapping[str, str]) -> DebugKind | None:
    """Return the kind of build that variables ask for; None where they leave it open.

    ``CMAKE_BUILD_TYPE`` wins over ``DEBUG``, and that over ``REL_WITH_DEB_INFO`` (setup.py and
    tools/setup_helpers/env.py of github.com/pytorch/pytorch, 0.4 to 2.13; pyproject.toml from then on).

    Raises:
        UsageError: ``CMAKE_BUILD_TYPE`` is another one than PyTorch builds.
    """
    if name := environ.get(BUILD_TYPE, "").strip():
        found = next((kind for kind in DebugKind if kind.build_type.lower() == name.lower()), None)
        if found is None:
            types = ", ".join(kind.build_type for kind in DebugKind)
            raise UsageError(f"{BUILD_TYPE}={name}: expected one of {types}", hint="`tenv build --debug` is an example")
        return found
    return next((kind for kind, name in _KIND_VARIABLES.items() if is_on(environ.get(name, ""))), None)


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The request of a build."""

    checkout: Path
    """The PyTorch checkout."""
    target: str | None = None
    """The target's name; None for the default one of ``tenv.toml``, else the best one."""
    allow: frozenset[str] = frozenset()
    """Switches and codes whose errors do not end the build."""
    fresh: bool = False
    """Whether to configure anew."""
    clean: bool = False
    """Whether to remove the build folder first."""
    only: str = ""
    """The target of Ninja that is built, and nothing else; empty for all and the package."""
    defines: Mapping[str, str] = field(default_factory=dict)
    """CMake variables."""
    wheel: Path | None = None
    """The folder that takes a wheel; None to install in place."""
    debug: DebugKind = DebugKind.NONE
    """The debug information."""
    debug_files: tuple[str, ...] = ()
    """Sources that are compiled with debug information."""
    portable: bool = False
    """Whether no run path may name the environment or the checkout."""

    def with_variables(self, environ: Mapping[str, str]) -> "BuildRequest":
        """Return the request with the values that variables give to options that are not set: `DEBUG=1` is `--debug`.

        Raises:
            UsageError: An option and ``-D CMAKE_BUILD_TYPE`` exclude each other, or one of the values can't be built.
        """
        defined = kind_by_variables({name: value for name, value in self.defines.items() if name == BUILD_TYPE})
        if defined not in (None, self.debug) and self.debug is not DebugKind.NONE:
            raise UsageError(
                f"--{self.debug.value} and -D {BUILD_TYPE}={self.defines[BUILD_TYPE]} exclude each other",
                hint=f"`tenv build --{self.debug.value}` is an example",
            )
        asked = defined if self.debug is DebugKind.NONE else self.debug
        return replace(
            self,
            debug=kind_by_variables(environ) or DebugKind.NONE if asked is None else asked,
            debug_files=self.debug_files or tuple(filter(None, environ.get(DEBUG_FILES, "").split(";"))),
        )

    @property
    def passed(self) -> dict[str, str]:
        """The CMake variables without the build type, which `debug` holds."""
        return {name: value for name, value in self.defines.items() if name != BUILD_TYPE}

    @property
    def options(self) -> list[str]:
        """The options of this build, for a command to type."""
        words = [] if self.debug is DebugKind.NONE else [f"--{self.debug.value}"]
        words += ["--debug-files", ",".join(self.debug_files)] if self.debug_files else []
        words += ["--portable"] if self.portable else []
        return words + self.defined

    @property
    def defined(self) -> list[str]:
        """The options for the CMake variables."""
        return [word for name, value in self.defines.items() for word in ("-D", f"{name}={value}")]


@dataclass(slots=True)
class BuildJob:
    """The values that the steps of one build pass on; a step sets the values that later ones read."""

    context: Context
    """The context of the verb; its project is the checkout."""
    request: BuildRequest
    """The request."""
    dry: bool = False
    """Whether nothing may be written."""
    tree: SourceTree = field(init=False)
    """The requirements of the checkout, of PyTorch alone."""
    extension: Extension | None = None
    """The package of a checkout that is compiled against an installed torch; None for PyTorch."""
    installed: "InstalledTorch | None" = None
    """The torch that an extension is compiled against."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """The extensions that its ``setup.py`` compiles."""
    found: Wayfinder = field(init=False)
    """How its revision is built."""
    around: "Surroundings" = field(init=False)
    """The machine and the checkout that the target is judged for."""
    target: Target = field(init=False)
    """The target."""
    environment: "Environment" = field(init=False)
    """Its environment."""
    activation: "Activation | None" = None
    """The changes of its activation."""
    toolchain: "Toolchain | None" = None
    """Where things are in it."""
    environ: dict[str, str] = field(default_factory=dict)
    """The environment of every program of the build."""
    storage_gone: bool = False
    """Whether the shared storage of the compile cache does not answer, so that the build does without."""
    offer: "ServerOffer | None" = None
    """The servers that compile for this build; None where it compiles here alone."""
    summary: dict[str, str] = field(default_factory=dict)
    """The rows of PyTorch's own summary, by name."""
    estimate: float | None = None
    """The expected seconds of the compilation; None where they are not known."""
    tried: "Tried | None" = None
    """The results of the canary; None before it."""
    torch: dict[str, Any] = field(default_factory=dict)
    """The built torch; of an extension, the torch that it was imported with."""

    @property
    def checkout(self) -> Path:
        """The checkout's folder."""
        return self.request.checkout

    @property
    def switches(self) -> dict[str, str]:
        """The options of the build beyond the target; they name the build folder if there may be several."""
        request = self.request
        extra = {DEBUG_FILES: ";".join(request.debug_files)} if request.debug_files else {}
        return {**request.debug.variables(), **extra, **request.passed}

    @property
    def key(self) -> str:
        """The name of the target with its switches."""
        if not self.switches:
            return self.target.name
        text = json.dumps(sorted(self.switches.items()))
        return f"{self.target.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def folder(self) -> Path:
        """The build folder: a folder for each target and its switches where the revision leaves the choice."""
        if self.found.way is BuildWay.SCIKIT or self.extension:
            return self.checkout / _OWN / "build" / self.key
        name = "build" if self.found.way is not BuildWay.LIBRARIES else "torch/lib/build"
        return self.checkout / name

    @property
    def notes(self) -> Path:
        """The folder of tenv's notes on builds of this key: stamps, logs, the origin of the products."""
        return self.checkout / _OWN / "builds" / self.key

    def log(self, name: str) -> Path:
        """Return the log of a step."""
        return self.notes / f"{name}.log"

    def cmake_cache(self) -> dict[str, str]:
        """Return the variables in the ``CMakeCache.txt`` of the build folder; empty without one."""
        text = text_or_empty(self.folder / "CMakeCache.txt")
        return {match[1]: match[2] for line in text.splitlines() if (match := _CACHE_ENTRY.match(line))}

    def stamp(self) -> Mapping[str, Any]:
        """Return the inputs of the last configuration of the build folder; empty without one of tenv."""
        found = noted_json(self.stamp_file)
        return found if isinstance(found, dict) else {}

    @property
    def stamp_file(self) -> Path:
        """The file with the inputs of the configuration; beside the build folder, which a clean build removes."""
        name = "source" if self.found.way is BuildWay.EXTENSION else self.folder.name
        return self.checkout / _OWN / "builds" / f"{name}.configured.json"

    @property
    def version(self) -> str:
        """The version of the sources; empty for an extension, whose build decides on it."""
        return "" if self.extension else str(self.tree.version.value)

    @property
    def kind(self) -> str:
        """The built project, by the words of the table of causes."""
        return self.extension.name if self.extension else "pytorch"

    @property
    def package(self) -> str:
        """The name of the package."""
        return self.extension.name if self.extension else "torch"


def allowed(findings: "list[Finding]", allow: frozenset[str]) -> "list[Finding]":
    """Return findings with the errors that are allowed, by code or by subject, as warnings."""
    return [
        replace(finding, severity=Severity.WARNING)
        if finding.severity is Severity.ERROR and {finding.code, finding.subject} & allow
        else finding
        for finding in findings
    ]
