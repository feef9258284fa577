"""Judge whether extensions compile here against a torch that is there, and whether they run: nothing is created.

Two toolkits count: the one that ``torch.utils.cpp_extension`` takes decides the answer about building; the one that
CMake takes (``find_package(Torch)``) is a warning where it differs. The rules about compilers, the C library, GPUs and
the driver are those of a target with the same CUDA.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tenv.checks.host_options import HostOptions, read, report
from tenv.checks.judge import ask, platform_of, settled
from tenv.checks.named_torch import REPORT, named_torch, targets_of, torch_of_report
from tenv.checks.rules import compiler, gpu, libc, pytorch
from tenv.checks.rules.catalogue import DRIVER_RULES, RULES
from tenv.checks.rules.common import known_gpus, taken_compiler
from tenv.checks.rules.from_machine import NO_HEADERS
from tenv.checks.rules.interface import Case, Finding, Rule, Scope, Severity, Unknown, decide
from tenv.checks.rules.whole_toolkit import exported_switches
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.facts.tables import Facts
from tenv.host.installed_torch import InstalledTorch, TorchKind
from tenv.host.interface import Fact, Missing, ReasonKind
from tenv.host.places import Places
from tenv.host.report import HostReport
from tenv.host.torch_toolkits import TakenToolkit, reported_toolkits, taken_toolkits
from tenv.project.context import Context
from tenv.targets.manifest import Manifest, Requirements
from tenv.targets.torch_beside import OLDEST_CUDA

MISMATCH = "TE816"
NOT_FOUND = "TE808"
NO_LIST = "TE811"
NO_HEADER = "TE809"
_HELPER = "torch/utils/cpp_extension.py"
_OF_COMPILING = (
    *(gpu.TOO_OLD, gpu.TOO_NEW, gpu.REFUSED, gpu.UNSERVED),
    *(compiler.NONE, compiler.TOO_NEW, compiler.TOO_OLD, compiler.BREAKS, compiler.SEVERAL, libc.HEADERS),
)
"""The rules that judge the toolkit's nvcc; those of `DRIVER_RULES` judge torch's own CUDA."""
_NEEDED = frozenset({"cublas_v2.h", "cusparse.h", "cusolverDn.h"})
"""The headers among the parts of a toolkit that ``ATen/cuda/CUDAContext.h`` includes."""
_FLAG_ABI = re.compile(r"-D\s*_GLIBCXX_USE_CXX11_ABI=([01])")
_GCC_KNOWS = {17: Version("8"), 20: Version("10")}
"""The first GCC whose ``-std=c++NN`` is complete enough for torch's headers (GCC's page on C++ standards)."""
_NVCC_KNOWS = {17: Version("11.0"), 20: Version("12.0")}
"""The first nvcc with ``-std=c++NN`` (release notes of CUDA 11.0 and 12.0)."""


@dataclass(frozen=True, slots=True)
class TorchFit:
    """The answers about one torch on a host."""

    torch: InstalledTorch
    """The torch."""
    platform: str
    """The platform that is judged."""
    build: bool | None
    """Whether extensions for it can be compiled there; None if unknown."""
    run: bool | None
    """Whether it and they run there; None if unknown."""
    taken: tuple[TakenToolkit, ...]
    """The toolkits that torch and CMake take."""
    targets: tuple[str, ...]
    """The targets with its CUDA."""
    findings: tuple[Finding, ...]
    """All findings."""

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON values, without the findings."""
        return {
            "build": self.build,
            "run": self.run,
            "platform": self.platform,
            "torch": self.torch.to_json(),
            "toolkits": [
                {"by": one.by, "path": one.folder, "way": one.way, "nvcc": one.nvcc, "version": str(one.version or "")}
                for one in self.taken
            ],
            "targets": list(self.targets),
        }


def check_torch(context: Context, asked: str, options: HostOptions) -> TorchFit:
    """Return whether a host fits a torch.

    Args:
        context: Where things are found.
        asked: The torch: a path, a version such as ``2.9+cu128``, or ``report`` for the one of the host report.
        options: Which host to judge if it is not this machine.

    Raises:
        UsageError: There is no such torch.
        HostReportError: The host report can't be read.
    """
    options, facts = read(options), context.facts()
    host = report(context, options)
    platform = platform_of(host)
    of_report = asked == REPORT
    if of_report:
        torch = torch_of_report(host, options, facts, platform)
    else:
        torch = named_torch(asked, facts, platform, context.places.environments())
    taken = reported_toolkits(host) if options.host_report else taken_toolkits(Places(environ=context.environ))
    targets = targets_of(context, torch, platform_of(host))
    exported = exported_switches(facts, context.environ)
    judged = _Judged(torch, host, facts, taken, targets, context.environ, exported)
    decided = tuple(judged.findings())
    return TorchFit(
        torch=torch,
        platform=platform_of(host),
        build=decide(Scope.BUILD, decided),
        run=decide(Scope.RUN, decided),
        taken=taken,
        targets=targets,
        findings=tuple(dict.fromkeys(finding for _, finding in decided)),
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """A torch on a host, with all that the findings depend on."""

    torch: InstalledTorch
    host: HostReport
    facts: Facts
    taken: tuple[TakenToolkit, ...]
    targets: tuple[str, ...]
    environ: Mapping[str, str]
    exported: Mapping[str, str]

    @property
    def cuda(self) -> Version | None:
        return self.torch.cuda.value if isinstance(self.torch.cuda, Fact) else None

    @property
    def name(self) -> str:
        return f"torch {self.torch.label}"

    def findings(self) -> Iterator[tuple[Scope, Finding]]:
        """Yield every finding with the verdict that it decides: torch's own first, then the rules' findings."""
        kind = self.torch.kind.value if isinstance(self.torch.kind, Fact) else None
        if kind in (TorchKind.ROCM, TorchKind.XPU):
            yield Scope.BUILD, self._other_accelerator(kind.value)
        if self.cuda:
            yield from ((Scope.BUILD, one) for one in self._toolkits(self.cuda))
        yield from ((Scope.BUILD, one) for one in (*self._python(), *self._standard(), *self._abi()))
        yield from ((Scope.BOTH, one) for one in self._glibc())
        nvcc = self.taken[0].version if self.taken and self.cuda else None
        compiling = self._case(nvcc)
        rules = [rule for rule in RULES if rule.codes[0] in _OF_COMPILING]
        if nvcc is None:
            rules = [rule for rule in rules if rule.codes[0] in (compiler.NONE, compiler.SEVERAL)]
        found = list(_asked(compiling, rules))
        yield from found
        if self.cuda:
            if not any(one.code in (compiler.TOO_NEW, compiler.TOO_OLD) for _, one in found):
                yield from ((Scope.BUILD, one) for one in self._bounds(compiling))
            running = [rule for rule in DRIVER_RULES if rule.codes[0] not in _OF_COMPILING]
            yield from _asked(self._case(self.cuda), running)
            yield from ((Scope.RUN, one) for one in self._gpu_code())
            yield from ((Scope.BUILD, one) for one in self._no_list())

    def _case(self, cuda: Version | None) -> Case:
        manifest = Manifest(self.name, self.torch.place, requirements=Requirements(cuda, None))
        archs = self.environ.get(gpu.VARIABLE, "")
        return Case(
            manifest, platform_of(self.host), None, self.host, None, self.facts, archs, None, exported=self.exported
        )

    def _help(self, but: str = "") -> str:
        """Return the edit that leads to a toolkit for this torch: an installed one, else the command that makes one.

        Args:
            but: The folder of a toolkit that does not do.
        """
        found = self.host.toolkits.value if isinstance(self.host.toolkits, Fact) else ()
        for toolkit in found:
            same = self.cuda and toolkit.version and toolkit.version.major_minor == self.cuda.major_minor
            whole = toolkit.compiles and not toolkit.problems and not _NEEDED.intersection(toolkit.absent or ())
            if same and whole and toolkit.path not in ("", but):
                return f"export CUDA_HOME={toolkit.path} CUDACXX={toolkit.path}/bin/nvcc"
        if self.torch.prefix and self.cuda and self.cuda >= OLDEST_CUDA:
            where = shlex.quote(self.torch.prefix)
            return f"`tenv create auto --for {where}` makes a toolkit of CUDA {self.cuda} beside it; activate that"
        if self.targets:
            return f"`tenv create {self.targets[0]}` makes a toolkit of CUDA {self.cuda}; activate it, or set CUDA_HOME"
        return f"install a toolkit of CUDA {self.cuda}, and set CUDA_HOME to it"

    def _other_accelerator(self, kind: str) -> Finding:
        return Finding(
            MISMATCH,
            Severity.WARNING,
            self.name,
            f"is for {kind}: no toolkit of CUDA fits it, and tenv judges no other",
            _origin(self.torch.kind),
            "torch/version.py",
            f"install the compiler of {kind} that its release notes name, or a torch for CUDA",
            Unknown(Scope.BUILD, "toolkits"),
        )

    def _toolkits(self, cuda: Version) -> Iterator[Finding]:
        folders = {one.by: one for one in self.taken}
        torch, cmake = folders.get("torch"), folders.get("CMake")
        if torch:
            yield from self._toolkit(torch, cuda)
        if torch and cmake and (cmake.folder, cmake.nvcc) != (torch.folder, torch.nvcc):
            yield from self._toolkit(cmake, cuda)
        if torch and cmake and torch.version and cmake.version and torch.version != cmake.version:
            yield Finding(
                MISMATCH,
                Severity.WARNING,
                f"CUDA {cmake.version}",
                f"is what CMake takes, and torch's helper takes {torch.version}: a build that uses both mixes them",
                f"CMake: {cmake.nvcc} ({cmake.way}); torch: {torch.nvcc} ({torch.way})",
                "CMakeDetermineCUDACompiler.cmake; FindCUDA.cmake and cpp_extension.py of torch",
                f"export CUDACXX={torch.nvcc} CUDA_PATH={torch.folder}",
            )
        if not self.taken:
            yield self._not_found("torch", "the report does not list toolkits", Unknown(Scope.BUILD, "toolkits"))

    def _toolkit(self, one: TakenToolkit, cuda: Version) -> Iterator[Finding]:
        """Yield the fault of the toolkit that one tool takes. CMake's is a warning: few extensions use it."""
        if not one.folder:
            yield self._not_found(
                one.by, "CUDA_HOME and CUDA_PATH are not set, nvcc is not on PATH, and the default folder is not there"
            )
        elif not one.nvcc:
            yield self._not_found(one.by, f"{one.folder} ({one.way}) has no bin/nvcc")
        elif one.version is None:
            yield self._not_found(one.by, f"{one.nvcc} --version reports no release ({one.way})")
        elif one.version.major_minor != cuda.major_minor:
            yield self._mismatch(one, one.version, cuda)
        if one.nvcc and one.version and one.absent:
            yield Finding(
                NO_HEADER,
                Severity.ERROR if one.by == "torch" else Severity.WARNING,
                f"CUDA {one.version}",
                f"lacks headers that ATen/cuda/CUDAContext.h includes, where {one.by} looks: {', '.join(one.absent)}",
                f"{one.folder}/include ({one.way})",
                "torch/include/ATen/cuda/CUDAContextLight.h",
                self._help(one.folder),
            )

    def _mismatch(self, one: TakenToolkit, version: Version, cuda: Version) -> Finding:
        major, torch = version.major != cuda.major, one.by == "torch"
        consequence = "CMake compares them nowhere, and the extension may fail when it is linked or imported"
        if torch and major:
            consequence = "its helper ends the build with `The detected CUDA version mismatches`"
        elif torch:
            consequence = "its helper warns of another minor release, and most extensions compile"
        message = f"is what {one.by} takes, and {self.name} was compiled with CUDA {cuda}: {consequence}"
        return Finding(
            MISMATCH,
            Severity.ERROR if major and torch else Severity.WARNING,
            f"nvcc {version}",
            message,
            f"{one.nvcc} ({one.way}); {_origin(self.torch.cuda)}",
            f"{_HELPER}, _check_cuda_version" if torch else "cmake/public/cuda.cmake of torch",
            self._help(),
        )

    def _not_found(self, by: str, evidence: str, unknown: Unknown | None = None) -> Finding:
        torch = by == "torch"
        return Finding(
            NOT_FOUND,
            Severity.WARNING if unknown or not torch else Severity.ERROR,
            "CUDA toolkit",
            f"{by} finds none: an extension with CUDA code for {self.name} does not compile",
            evidence,
            f"{_HELPER}, _find_cuda_home" if torch else "FindCUDA.cmake of torch",
            self._help(),
            unknown,
        )

    def _python(self) -> Iterator[Finding]:
        base = self.torch.base
        if isinstance(base, Missing) or base.value.header or not base.value.version:
            return
        minor = base.value.version
        yield Finding(
            NO_HEADERS,
            Severity.ERROR,
            f"Python {minor}",
            "runs this torch and has no Python.h, so that no extension compiles with it",
            f"{base.value.prefix}/include/python{minor}/Python.h is not there ({base.value.source})",
            "torch/csrc and pybind11 include Python.h",
            f"apt install python{minor}-dev (Fedora, RHEL: `dnf install python{minor}-devel`), or make the "
            f"environment with the Python of `uv python install {minor}`",
        )

    def _standard(self) -> Iterator[Finding]:
        """Yield what can't compile the C++ of torch's headers, and a note where most setup.py ask for less."""
        least = self.torch.least_cxx
        if isinstance(least, Missing):
            return
        wanted, nvcc = least.value, self.taken[0].version if self.taken else None
        if self.cuda and nvcc and nvcc < _NVCC_KNOWS.get(wanted, Version("0")):
            yield Finding(
                pytorch.STANDARD,
                Severity.ERROR,
                f"nvcc {nvcc}",
                f"has no -std=c++{wanted}, which the headers of {self.name} demand",
                self.taken[0].nvcc,
                least.origin,
                self._help(),
            )
        taken = taken_compiler(self._case(None))
        if taken and taken.kind == "g++" and taken.version < _GCC_KNOWS.get(wanted, Version("0")):
            yield Finding(
                compiler.TOO_OLD,
                Severity.ERROR,
                f"g++ {taken.version}",
                f"is older than the headers of {self.name} need: C++{wanted}, GCC {_GCC_KNOWS[wanted]} or newer",
                f"{taken.path} ({taken.ways})",
                least.origin,
                f"install g++-{_GCC_KNOWS[wanted]} or newer, then export CXX=/usr/bin/g++-{_GCC_KNOWS[wanted]}",
            )
        if wanted > 17:  # noqa: PLR2004 (the standard that most setup.py name)
            yield Finding(
                pytorch.STANDARD,
                Severity.NOTE,
                f"C++{wanted}",
                f"is the least that the headers of {self.name} compile with: an extension whose setup.py passes "
                f"-std=c++17 fails",
                least.origin,
                "the #error in ATen/ATen.h",
                f"a release of the extension for torch {self.torch.release}"
                + (f"; for its CUDA files alone: export NVCC_APPEND_FLAGS=-std=c++{wanted}" if self.cuda else ""),
            )

    def _abi(self) -> Iterator[Finding]:
        abi = self.torch.cxx11_abi
        if isinstance(abi, Missing):
            return
        for name in ("CXXFLAGS", "CFLAGS", "CPPFLAGS", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"):
            match = _FLAG_ABI.search(self.environ.get(name, ""))
            if match and (match[1] == "1") is not abi.value:
                yield Finding(
                    pytorch.ABI,
                    Severity.ERROR,
                    name,
                    f"has _GLIBCXX_USE_CXX11_ABI={match[1]}, and {self.name} was compiled with {int(abi.value)}: "
                    "the extension compiles, and its import fails with an undefined symbol",
                    f"{name}={self.environ[name]}",
                    abi.origin,
                    f"unset {name}, or set _GLIBCXX_USE_CXX11_ABI={int(abi.value)} in it",
                )

    def _glibc(self) -> Iterator[Finding]:
        needed, there = self.torch.glibc, self.host.libc
        if isinstance(needed, Fact) and isinstance(there, Fact) and there.value < needed.value:
            yield Finding(
                libc.TOO_OLD,
                Severity.ERROR,
                f"glibc {there.value}",
                f"is too old: {self.name} needs glibc {needed.value} or newer",
                f"glibc {there.value} ({there.origin})",
                needed.origin,
                f"a container or a system with glibc {needed.value}, or an older torch",
            )

    def _bounds(self, case: Case) -> Iterator[Finding]:
        """Yield an error where torch's own table refuses the host compiler, which nvcc's header may accept."""
        taken = taken_compiler(case)
        nvcc = self.taken[0].version if self.taken else None
        if taken is None or nvcc is None or isinstance(self.torch.bounds, Missing):
            return
        maker = {"g++": "gcc", "clang++": "clang"}.get(taken.kind)
        for row in self.torch.bounds.value:
            if row.compiler != maker or row.cuda != nvcc.major_minor or row.least <= taken.version < row.below:
                continue
            new = taken.version >= row.below
            yield Finding(
                compiler.TOO_NEW if new else compiler.TOO_OLD,
                Severity.ERROR,
                f"{taken.kind} {taken.version}",
                f"is outside of what torch accepts with CUDA {row.cuda}: {row.least} or newer, older than {row.below}",
                f"{taken.path} ({taken.ways})",
                self.torch.bounds.origin,
                "export CXX and CC to a compiler in that range, or TORCH_DONT_CHECK_COMPILER_ABI=1 to compile anyway",
            )

    def _gpu_code(self) -> Iterator[Finding]:
        code = self.torch.gpu_code
        if isinstance(code, Missing):
            return
        there = [_arch(one) for one in code.value]
        for one in dict.fromkeys(known_gpus(self._case(self.cuda))):
            capability = one.capability
            if capability is None or any(_serves(arch, ptx, capability) for arch, ptx in there):
                continue
            yield Finding(
                gpu.UNSERVED,
                Severity.ERROR,
                one.name,
                f"has compute capability {capability}, and {self.name} has no code for it: {', '.join(code.value)}",
                f"{one.name}: {capability}",
                code.origin,
                "a torch with code for this GPU: another CUDA of the same release, a newer release for a new GPU, or "
                "an older one for an old GPU",
            )

    def _no_list(self) -> Iterator[Finding]:
        """Yield a warning if nothing says for which GPUs to compile: torch's helper asks the machine's GPUs."""
        gpus = self.host.gpus
        none = (isinstance(gpus, Missing) and gpus.kind is ReasonKind.NONE) or (
            isinstance(gpus, Fact) and not gpus.value
        )
        if not none or self.environ.get(gpu.VARIABLE):
            return
        own = self.torch.gpu_code.value if isinstance(self.torch.gpu_code, Fact) else ("sm_80", "sm_90")
        archs = ";".join(f"{arch.capability}{arch.variant}" for arch, ptx in map(_arch, own) if not ptx)
        yield Finding(
            NO_LIST,
            Severity.WARNING,
            gpu.VARIABLE,
            "is not set, and no GPU is here to ask: torch's helper ends with `IndexError: list index out of range`, "
            "unless the extension names its architectures itself",
            f"no NVIDIA GPU ({_origin(gpus)})",
            f"{_HELPER}, _get_cuda_arch_flags",
            f'export {gpu.VARIABLE}="{archs}", or the GPUs that the extension is for alone',
        )


def _arch(text: str) -> tuple[gpu.Arch, bool]:
    """Return an architecture as nvcc names it (``sm_120a``), and whether it is PTX."""
    name, _, number = text.partition("_")
    digits = number.rstrip("af")
    return gpu.Arch(Version(f"{digits[:-1]}.{digits[-1]}"), number[len(digits) :], False), name == "compute"


def _serves(arch: gpu.Arch, ptx: bool, capability: Version) -> bool:
    return arch.capability <= capability if ptx and not arch.variant else gpu.runs_on(arch, capability)


def _asked(case: Case, rules: Iterable[Rule]) -> Iterator[tuple[Scope, Finding]]:
    """Yield the findings of rules, where a host has several GPUs as `tenv check` weighs them."""
    asked = ask(case, rules)
    yield from settled(((rule.scope, one) for rule, every in asked.found.items() for one in every), asked.gpus)


def _origin(answer: Fact[Any] | Missing) -> str:
    return answer.origin if isinstance(answer, Fact) else answer.reason
