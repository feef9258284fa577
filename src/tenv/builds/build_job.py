"""What is asked of a build, and what its steps hand to each other."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenv.builds.build_way import BuildWay, Wayfinder
from tenv.builds.forecast import Tried
from tenv.builds.time_left import Expectation
from tenv.checks.pytorch_source import SourceTree
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.file_content import read_text
from tenv.project.context import Context

if TYPE_CHECKING:
    from tenv.activation.changes import Activation
    from tenv.checks.before_create import Surroundings
    from tenv.environment.state import Environment
    from tenv.targets.search import Target
    from tenv.toolchain.discover import Toolchain

__all__ = ["DEBUG_FILES", "BuildJob", "BuildRequest", "DebugKind", "allowed"]

DEBUG_FILES = "USE_CUSTOM_DEBINFO"
"""The switch that names the sources to compile with debug information; no other source is compiled in another way."""

_OWN = ".tenv"


class DebugKind(StrEnum):
    """What debuggers find in the products."""

    NONE = "none"
    DEBUG = "debug"
    REL_WITH_DEB_INFO = "rel-with-deb-info"

    @property
    def build_type(self) -> str:
        """CMake's name for it."""
        return {DebugKind.NONE: "Release", DebugKind.DEBUG: "Debug"}.get(self, "RelWithDebInfo")

    def variables(self) -> dict[str, str]:
        """Return what PyTorch's setup.py reads for it."""
        names = {DebugKind.DEBUG: "DEBUG", DebugKind.REL_WITH_DEB_INFO: "REL_WITH_DEB_INFO"}
        return {names[self]: "1"} if self in names else {}


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is asked of a build.

    Attributes:
        checkout: The PyTorch checkout.
        target: The target's name; None for that of ``tenv.toml``, else the best one.
        allow: Switches and codes whose errors do not end the build.
        fresh: Whether to configure anew.
        clean: Whether to remove the build folder first.
        only: The target of Ninja that is built, and nothing else; empty for all and the package.
        defines: CMake variables.
        wheel: The folder that takes a wheel; None to install in place.
        debug: What debuggers find.
        debug_files: Sources that are compiled with debug information.
        portable: Whether no run path may name the environment or the checkout.
    """

    checkout: Path
    target: str | None = None
    allow: frozenset[str] = frozenset()
    fresh: bool = False
    clean: bool = False
    only: str = ""
    defines: Mapping[str, str] = field(default_factory=dict)
    wheel: Path | None = None
    debug: DebugKind = DebugKind.NONE
    debug_files: tuple[str, ...] = ()
    portable: bool = False

    @property
    def options(self) -> list[str]:
        """The options that make this build what it is, for a command that is to be typed."""
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
    """What the steps of one build hand to each other; a step fills what those after it read.

    Attributes:
        context: What every verb is given; its project is the checkout.
        request: What is asked.
        dry: Whether nothing may be written.
        tree: What the checkout asks for.
        found: How its revision is built.
        around: What the target is judged by.
        target: The target.
        environment: Its environment.
        activation: What activating that changes.
        toolchain: Where things are in it.
        environ: The environment of every program of the build.
        summary: What the configuration says of itself, by its names.
        estimate: What the compilation is expected to take; None where that is not known.
        tried: What the canary showed of the machine and of the compile cache; None before it.
        torch: What was built.
    """

    context: Context
    request: BuildRequest
    dry: bool = False
    tree: SourceTree = field(init=False)
    found: Wayfinder = field(init=False)
    around: "Surroundings" = field(init=False)
    target: "Target" = field(init=False)
    environment: "Environment" = field(init=False)
    activation: "Activation | None" = None
    toolchain: "Toolchain | None" = None
    environ: dict[str, str] = field(default_factory=dict)
    summary: dict[str, str] = field(default_factory=dict)
    estimate: Expectation | None = None
    tried: Tried | None = None
    torch: dict[str, Any] = field(default_factory=dict)

    @property
    def checkout(self) -> Path:
        """The checkout's folder."""
        return self.request.checkout

    @property
    def switches(self) -> dict[str, str]:
        """The options of the build beyond the target; they name the build folder if there may be several."""
        request = self.request
        extra = {DEBUG_FILES: ";".join(request.debug_files)} if request.debug_files else {}
        return {**request.debug.variables(), **extra, **request.defines}

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
        if self.found.way is BuildWay.SCIKIT:
            return self.checkout / _OWN / "build" / self.key
        name = "build" if self.found.way is not BuildWay.LIBRARIES else "torch/lib/build"
        return self.checkout / name

    @property
    def notes(self) -> Path:
        """The folder of what tenv keeps about builds of this key: stamps, logs, where the products came from."""
        return self.checkout / _OWN / "builds" / self.key

    def log(self, name: str) -> Path:
        """Return the log of a step."""
        return self.notes / f"{name}.log"

    def stamp(self) -> Mapping[str, Any]:
        """Return what the last configuration of the build folder was made from; empty where tenv made none."""
        try:
            found = json.loads(read_text(self.stamp_file))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def stamp_file(self) -> Path:
        """Where the build folder says what it was configured from; beside it, since a clean one is removed whole."""
        return self.checkout / _OWN / "builds" / f"{self.folder.name}.configured.json"


def allowed(findings: "list[Finding]", allow: frozenset[str]) -> "list[Finding]":
    """Return findings with the errors that are allowed, by code or by subject, as warnings."""
    return [
        Finding(**{**_fields(finding), "severity": Severity.WARNING})
        if finding.severity is Severity.ERROR and {finding.code, finding.subject} & allow
        else finding
        for finding in findings
    ]


def _fields(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in finding.__slots__}
