"""The plan of a package that is compiled against a torch: its units, its variables, and the reasons against a build."""

import re
import shlex
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from tenv.activation.changes import is_own
from tenv.builds.extension_record import units_of
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.names import normalize
from tenv.core.size_text import some_of
from tenv.core.untrusted import whole_number
from tenv.core.versions import Version
from tenv.facts.cuda_gpu_arch import GpuArch, GpuArchTable, asked_codes, unserved
from tenv.facts.torch_packages import UNIT_GIB, TorchPackage
from tenv.host.installed_torch import InstalledTorch, TorchKind
from tenv.host.interface import Fact, Missing
from tenv.host.machine import BuildResources, sees_gpu
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.wheels.sdist_builds import wants_network

ARCHS = "TORCH_CUDA_ARCH_LIST"
_FOR_GPU = "_CUDA"
"""A part of a switch that asks for GPU code, such as FORCE_CUDA. It needs a torch with CUDA; the user's value wins."""
_GIB = 1 << 30

STANDARD = re.compile(r"[-/]std[=:](?:c|gnu)\+\+(\d\d)")
_NO_GPU = re.compile(
    r"cuda is not available|no (?:cuda )?gpu|cuda_is_available|cuda driver|no nvidia driver|cpu version is not",
    re.IGNORECASE,
)
_TOOLKIT = re.compile(r"CUDA_HOME|CUDA_PATH|\bnvcc\b|\+: 'NoneType' and 'str'|os\.PathLike object, not NoneType")
_VARIABLE = re.compile(
    r"KeyError: '(?P<key>[A-Z][A-Z0-9_]+)'"
    r"|(?=.*(?:\benv\b|environment|variable|must be set|not set))(?:.*?\b)(?P<named>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"
)
"""A variable in an error that asks for one."""
_MODULE = re.compile(r"No module named '?([\w.]+)")
_BRING = {
    "Cython": 'cython = "*"',
    "PIL": 'pillow = "*"',
    "cpuinfo": 'py-cpuinfo = "*"',
    "cv2": 'opencv-python-headless = "*"',
    "distutils": 'setuptools = "*"',  # Python 3.12 dropped it
    "git": 'gitpython = "*"',
    "pkg_resources": 'setuptools = "<82"',  # https://setuptools.pypa.io/en/latest/history.html
    "skbuild": 'scikit-build = "*"',
    "yaml": 'pyyaml = "*"',
}
"""The packages of modules with other names."""
_ARCH = re.compile(r"(\d+)\.(\d)")
_CODE = re.compile(r"(?<![a-z])(sm|compute)_(\d{2,3})([af]?)")
_GENCODE = re.compile(r"arch=[^,\s]+,code=(\S+)")
_SHORT = re.compile(r"(?:-arch|--gpu-architecture)[= ](\S+)")
_READS = re.compile(r"""(?:environ(?:\.get)?|getenv)\s*[\[(]\s*["'](\w*(?:CUDA|GPU)\w*)["']""")
NO_GPU_CODE = 'the variable of its setup.py for it in [activation.env] may help; FORCE_CUDA = "0" there goes without'
_OTHERS = {"CUDA_HOME", "CUDA_PATH", "CUDA_VERSION", "CUDA_VISIBLE_DEVICES", "CUDACXX", ARCHS}
"""Variables about CUDA that switch no GPU code on."""

Reason = tuple[str, str]
"""A reason, and an edit or a command; that is empty for none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests of a manifest about a package."""

    name: str
    """The package."""
    cxx: int
    """The C++ standard in place of its own; 0 for its own."""
    archs: str
    """The architectures, as ``TORCH_CUDA_ARCH_LIST``."""
    forced: bool = False
    """Whether nvcc takes them whatever the package names (`with_archs`)."""


def refusals(
    record: Mapping[str, Any],
    asked: Asked,
    facts: TorchPackage | None,
    torch: InstalledTorch | None,
    table: GpuArchTable,
) -> Iterator[Reason]:
    """Yield why a build can't end well.

    Args:
        record: The output of `tenv.builds.record_extensions`; empty for a package without a ``setup.py``.
        asked: The requests of the manifest.
        facts: The row of the package; None without one.
        torch: The torch that it is compiled against; None where it can't be read.
        table: The architectures of each toolkit.
    """
    error = str(record.get("error", ""))
    if (facts and facts.gpu and not sees_gpu()) or _NO_GPU.search(error):
        yield "its setup.py wants a GPU where it is built, and this machine has none", _elsewhere(asked.name)
    if wants_network(error):
        yield (
            "its setup.py downloads, and what it would get has no digest: a build of a locked package has no network",
            f"a variable may forbid it: `force` of {asked.name} in a table of TENV_FACTS names that",
        )
    if module := _MODULE.search(error):
        package = module[1].partition(".")[0]
        brings = _BRING.get(package, f'{package.replace("_", "-")} = "*"')
        yield f"its setup.py imports {package}, which the target lacks", f"`{brings}` in the manifest brings it"
    if error:
        yield f"its setup.py fails: {error}", without_cuda(error, torch) or _with_variable(error)
    for package in record.get("absent", []):
        why = f"its version or files come from {package} of its setup_requires, which the target lacks"
        yield why, f'`{package.replace("_", "-")} = "*"` in the manifest brings it'
    missing = [one for row in record.get("extensions", []) for one in row["missing"]]
    if missing:
        hint = f"a git revision may have them: `{asked.name} = {{ git = …, isolation = false }}`"
        yield f"its sources lack {some_of(missing, 1)}, which its setup.py names", hint
    yield from _standards(record, asked, torch)
    yield from _unknown_archs(asked, torch, table)
    yield from _own_archs(record, asked, torch, table)
    if torch and (headers := record.get("gone", [])):
        hint = f"a git revision may do without: `{asked.name} = {{ git = …, isolation = false }}`"
        yield f"{headers[0]}, which torch {torch.label} does not have", hint


def without_cuda(error: str, torch: InstalledTorch | None) -> str:
    """Return the edit for a build that asks for CUDA beside a torch without; an nvcc on PATH makes many ask."""
    if torch is None or not isinstance(torch.kind, Fact) or torch.kind.value != TorchKind.CPU:
        return ""
    if not _TOOLKIT.search(error):
        return ""
    nvcc = process.find("nvcc")
    beside = f"; without {nvcc} on PATH it may build for CPUs" if nvcc else ""
    return f"the torch of the target has no CUDA: `tenv init NAME --torch` makes a target with one{beside}"


def _with_variable(error: str) -> str:
    """Return the edit for a ``setup.py`` that asks for a variable; empty for another error."""
    match = None if _TOOLKIT.search(error) else _VARIABLE.search(error)
    name = match and (match["key"] or match["named"])
    return f'`{name} = "…"` in [activation.env] of the manifest sets it' if name else ""


def refuse(found: Sequence[Reason]) -> None:
    """Refuse builds that can't end well, all in one error; none for no reason.

    Args:
        found: The sentence about each, and its edit.
    """
    if found:
        hint = "; ".join(filter(None, (edit for _, edit in found)))
        raise EnvironmentBrokenError(";\n  ".join(reason for reason, _ in found), hint=hint)


def in_order(requires: Mapping[str, Sequence[str]]) -> list[str]:
    """Return packages, each after those of them that it requires; as given where they require each other.

    Args:
        requires: The requirements of each package.
    """
    named = {name: _names(lines) & {*requires} - {name} for name, lines in requires.items()}
    try:
        return [*TopologicalSorter(named).static_order()]
    except CycleError:
        return [*requires]


def waits_for(record: Mapping[str, Any], requires: Sequence[str], before: Sequence[str]) -> bool:
    """Return whether a ``setup.py`` may fail only because a package is not compiled yet.

    Args:
        record: The output of `tenv.builds.record_extensions`.
        requires: The requirements of its package.
        before: The packages that are compiled before it.
    """
    module = _MODULE.search(str(record.get("error", "")))
    lacks = {
        normalize(name) for name in [*([module[1].partition(".")[0]] if module else []), *record.get("absent", [])]
    }
    return bool(lacks) and bool((lacks | _names(requires)) & {*before})


def _names(lines: Sequence[str]) -> set[str]:
    return {found.name for line in lines if (found := requirement_of(line))}


def _standards(record: Mapping[str, Any], asked: Asked, torch: InstalledTorch | None) -> Iterator[Reason]:
    """Yield the extensions whose flags name an older C++ standard than the headers of torch demand."""
    least = torch.least_cxx if torch else None
    if torch is None or not isinstance(least, Fact) or asked.cxx >= least.value:
        return
    for row in record.get("extensions", []):
        for flags in row["flags"].values():
            named = [int(match[1]) for flag in flags if (match := STANDARD.fullmatch(flag))]
            if named and named[-1] < least.value:
                names = f"its setup.py names C++{named[-1]} for {row['name']}"
                hint = f"`cxx = {least.value}` at {asked.name} in the manifest raises it"
                yield f"{names}, torch {torch.label} demands C++{least.value}", hint


def _unknown_archs(asked: Asked, torch: InstalledTorch | None, table: GpuArchTable) -> Iterator[Reason]:
    """Yield the architectures that the torch's CUDA does not compile for."""
    row = table.archs(torch.cuda.value) if torch and isinstance(torch.cuda, Fact) else None
    for major, minor in _ARCH.findall(asked.archs) if row else ():
        if row and not row.supports(Version(f"{major}.{minor}")):
            yield (
                f"nvcc of CUDA {row.major_minor} does not compile for sm_{major}{minor}",
                "change TORCH_CUDA_ARCH_LIST",
            )


def named_codes(flags: Sequence[str]) -> tuple[set[GpuArch], set[GpuArch], set[GpuArch]]:
    """Return the machine code and the PTX that options of nvcc ask for, and every architecture that they name.

    All are empty where they leave that to torch's helper, which adds no architecture to options that have one, or to
    nvcc (``-arch=native``).

    Source: ``_get_cuda_arch_flags`` of torch/utils/cpp_extension.py; the manual of nvcc, ``--gpu-architecture``.
    """
    text = " ".join(flags)

    def codes(found: str) -> list[tuple[str, GpuArch]]:
        return [(kind, GpuArch(int(number), suffix)) for kind, number, suffix in _CODE.findall(found)]

    lists = [codes(match) for match in _GENCODE.findall(text)]
    short = [one for match in _SHORT.findall(text) for one in codes(match)]
    if not lists and not short:
        return set(), set(), set()
    made = [one for listed in lists for one in listed] + [*short, *(("compute", code) for _, code in short)]
    cubin = {code for kind, code in made if kind == "sm"}
    return cubin, {code for kind, code in made if kind == "compute"}, {code for _, code in codes(text)}


def _own_codes(
    record: Mapping[str, Any], asked: Asked
) -> Iterator[tuple[str, set[GpuArch], set[GpuArch], set[GpuArch]]]:
    """Yield the architectures that a ``setup.py`` names, in words, as machine code, as PTX, and all of them."""
    rows = [one for one in record.get("extensions", []) if any(source.endswith(".cu") for source in one["sources"])]
    found = [(one, named_codes(one["flags"].get("nvcc", []))) for one in rows]
    for one, (cubin, ptx, named) in found:
        if named:
            listed = ", ".join(f"sm_{code}" for code in sorted(cubin | ptx))
            yield f"names {listed} for {one['name']}", cubin, ptx, named
    own = record.get("archs", "")
    if asked.archs and own not in ("", asked.archs) and any(not named for _, (_, _, named) in found):
        cubin, ptx = asked_codes(own)
        yield f"sets {ARCHS} to {own}", cubin, ptx, cubin | ptx


def _own_archs(
    record: Mapping[str, Any], asked: Asked, torch: InstalledTorch | None, table: GpuArchTable
) -> Iterator[Reason]:
    """Yield the architectures that a ``setup.py`` names and nvcc does not know, and those that it leaves out."""
    row = table.archs(torch.cuda.value) if torch and isinstance(torch.cuda, Fact) else None
    if asked.forced and not record.get("ninja", True):
        yield "its setup.py goes without Ninja, so that torch starts nvcc itself and `archs` has no effect", ""
    if row is None or asked.forced:
        return
    hint = f'`archs = "{asked.archs}"` at {asked.name} in the manifest takes their place' if asked.archs else ""
    for words, cubin, ptx, named in _own_codes(record, asked):
        versions = [Version(f"{code.number // 10}.{code.number % 10}") for code in sorted(named)]
        gone = [version for version in versions if not row.supports(version)]
        if gone:
            yield f"its setup.py {words}, and nvcc of CUDA {row.major_minor} does not compile for {gone[0]}", hint
        elif left := unserved(asked.archs, cubin, ptx):
            yield f"its setup.py {words}, which has no code for the sm_{left[0]} that is asked for", hint


def _elsewhere(name: str) -> str:
    return f"build {name} on a machine with one"


def no_gpu_code(name: str, setup: str) -> Reason:
    """Return why the ``setup.py`` of a package names no file of its GPU code, by its text."""
    names = [one for one in dict.fromkeys(_READS.findall(setup)) if one not in _OTHERS | {"FORCE_CUDA"}]
    reason = "its setup.py names no file of its GPU code"
    if names:
        return reason, f'it reads {", ".join(names)}: `{names[0]} = "1"` in [activation.env] may switch it on'
    if "is_available()" in setup and not sees_gpu():
        return f"{reason}, since it wants a GPU where it is built", _elsewhere(name)
    return reason, NO_GPU_CODE


def with_standard(environ: Mapping[str, str], cxx: int, folder: Path) -> dict[str, str]:
    """Return the variables with which each compiler takes a C++ standard: of several options, the last one counts.

    Args:
        environ: The variables of the build.
        cxx: The standard; 0 for the package's own.
        folder: Where the scripts that start the compilers are written.
    """
    if not cxx:
        return {}
    flag, found = f"-std=c++{cxx}", {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, default in (("CC", "cc"), ("CXX", "c++")):
        words = process.command_words(environ.get(name) or process.find(default, environ.get("PATH")) or default)
        script, program = folder / default, shlex.join(words)
        # C has no such standard, and older setuptools compiles C++ with `cc`
        script.write_text(
            f'#!/bin/sh\ncase " $* " in\n*.cpp\\ *|*.cc\\ *|*.cxx\\ *) exec {program} "$@" {flag} ;;\n'
            f'*) exec {program} "$@" ;;\nesac\n'
        )
        script.chmod(0o755)
        found[name] = str(script)
    appended = f"{environ.get('NVCC_APPEND_FLAGS', '')} {flag}".strip()
    return {**found, "NVCC_APPEND_FLAGS": appended}


def with_archs(environ: Mapping[str, str], archs: str, folder: Path) -> dict[str, str]:
    """Return the variable with which torch starts nvcc by a script that replaces the architectures in its options.

    Args:
        environ: The variables of the build.
        archs: The architectures, as ``TORCH_CUDA_ARCH_LIST``; empty for the package's.
        folder: Where the script is written.
    """
    nvcc = environ.get("PYTORCH_NVCC") or process.find("nvcc", environ.get("PATH"))
    if not archs or not nvcc:
        return {}
    cubin, ptx = asked_codes(archs)
    flags = [f"-gencode=arch=compute_{code},code=sm_{code}" for code in sorted(cubin)]
    flags += [f"-gencode=arch=compute_{code},code=compute_{code}" for code in sorted(ptx)]
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "nvcc"
    names = ("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code")
    script.write_text(
        "#!/bin/sh\nleft=$#\nwhile [ $left -gt 0 ]; do\n    word=$1; shift; left=$((left - 1))\n    case $word in\n"
        f"    {'|'.join(names)}) shift; left=$((left - 1)) ;;\n    {'|'.join(f'{name}=*' for name in names)}) ;;\n"
        f'    *) set -- "$@" "$word" ;;\n    esac\ndone\nexec {nvcc} "$@" {" ".join(flags)}\n'
    )
    script.chmod(0o755)
    return {"PYTORCH_NVCC": str(script)}


def job_limits(
    facts: TorchPackage | None, machine: BuildResources, environ: Mapping[str, str], own: Mapping[str, str]
) -> tuple[int, int]:
    """Return the number of jobs, and the threads of each nvcc: together they fit into the memory.

    Args:
        facts: The row of the package; None without one.
        machine: The machine.
        environ: The variables of the build.
        own: The variables of the caller, whose MAX_JOBS and NVCC_THREADS win.
    """
    gib, fit = facts.gib if facts else UNIT_GIB, machine.cores.value
    if not isinstance(machine.memory, Missing):
        fit = max(1, min(fit, machine.memory.value // (gib * _GIB)))
    jobs = whole_number(environ.get("MAX_JOBS", "")) or fit
    if not is_own(own, "MAX_JOBS"):
        jobs = min(jobs, fit)
    return jobs, whole_number(own.get("NVCC_THREADS", "")) or max(1, min(4, fit // jobs))


def package_variables(
    facts: TorchPackage | None, archs: str, environ: Mapping[str, str], limits: tuple[int, int], *, gpu: bool
) -> dict[str, str]:
    """Return the variables of a build with the switches of its package, its architectures and its limits.

    Args:
        facts: The row of the package; None without one.
        archs: The architectures asked for, as ``TORCH_CUDA_ARCH_LIST``; empty to leave them to torch.
        environ: The variables of the activated environment.
        limits: The number of jobs, and the threads of each nvcc.
        gpu: Whether the torch is one for CUDA. Many a ``setup.py`` reads torchvision's FORCE_CUDA, and compiles GPU
            code only with it where there is no GPU.
    """
    found, (jobs, threads) = {**({"FORCE_CUDA": "1"} if gpu else {}), **environ}, limits
    for row in facts.force if facts else ():
        name, _, value = row.partition("=")
        if _FOR_GPU not in name:
            found[name] = value
        elif gpu:
            found.setdefault(name, value)
    found |= {ARCHS: archs} if archs else {}
    if archs and facts and facts.arch:
        numbers = {int(major) * 10 + int(minor) for major, minor in _ARCH.findall(archs)}
        found[facts.arch] = ";".join(map(str, sorted(numbers)))
    found |= {"MAX_JOBS": str(jobs), "NVCC_THREADS": str(threads), "PYTHONDONTWRITEBYTECODE": "1"}
    # nvcc's temporary files have the process's number in their names, and objects have those names
    found |= {"NVCC_APPEND_FLAGS": f"{found.get('NVCC_APPEND_FLAGS', '')} -objtemp".strip()} if gpu else {}
    found |= {facts.jobs: str(jobs)} if facts and facts.jobs else {}
    ccache, nvcc = (process.find(name, found.get("PATH")) for name in ("ccache", "nvcc"))
    if ccache and nvcc:
        found.setdefault("PYTORCH_NVCC", shlex.join([ccache, nvcc]))  # a shell of ninja reads it
    return found


def compilers(environ: Mapping[str, str]) -> list[list[str | int]]:
    """Return the compilers that variables name, each with its path, its size in bytes and its time in nanoseconds."""
    found: list[list[str | int]] = []
    for words in ("c++", "gcc", environ.get("CC", ""), environ.get("CXX", "")):
        program = process.find(words.split()[0], environ.get("PATH")) if words.strip() else None
        if program:
            found.append(file_stamp(words, Path(program)))
    return found


def file_stamp(name: str, file: Path) -> list[str | int]:
    """Return the path, the size and the time of a file of a tool of the system."""
    path = file.resolve()
    return [name, str(path), path.stat().st_size, path.stat().st_mtime_ns]


def modules_of(wheel: Path) -> list[str]:
    """Return the modules at the top of a wheel, but for tests."""
    with zipfile.ZipFile(wheel) as opened:
        tops = {name.split("/")[0].split(".")[0] for name in opened.namelist() if name.endswith((".py", ".so", ".pyd"))}
    return sorted(name for name in tops if name.isidentifier() and not name.startswith("test"))


def units_compiled_before(record: Mapping[str, Any], source: Path) -> int:
    """Return how many units of a folder an ended build left; setuptools without Ninja compiles all again."""
    objects = sum(file.suffix in (".o", ".obj") for file in (source / "build").rglob("*"))
    return min(objects, len(units_of(record))) if record.get("ninja", True) else 0


def plan_words(
    record: Mapping[str, Any],
    archs: str,
    jobs: int,
    *,
    forced: bool = False,
    before: int = 0,
) -> str:
    """Return the plan of a build in words; empty where nothing is compiled.

    Args:
        record: The output of `tenv.builds.extension_record.recorded`.
        archs: The architectures asked for; empty to leave them to torch.
        jobs: The number of jobs.
        forced: Whether nvcc takes the architectures whatever the package names.
        before: The number of units that an ended build left.
    """
    units = units_of(record)
    if not units:
        return ""
    cuda = sum(one.endswith(".cu") for one in units)
    has_own = not forced and any(named_codes(row["flags"].get("nvcc", []))[2] for row in record["extensions"])
    named = "the GPUs that its setup.py names" if has_own else archs or "the GPUs that torch detects"
    part = f" for {named}" if cuda == len(units) else f", {cuda} of them for {named}" if cuda else ", none for a GPU"
    most = max(len(units_of({"extensions": [row]})) for row in record["extensions"])  # one extension follows another
    at_once = f", {min(jobs, most) if record.get('ninja', True) else 1} at a time" if units[1:] else ""
    had = f", {before} compiled before" if before else ""
    return f"{len(units)} unit{'s'[: len(units) != 1]}{part}{had}{at_once}"
