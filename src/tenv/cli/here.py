"""The machine in three lines and the targets that fit it, for ``tenv check`` and ``tenv targets``."""

from typing import TYPE_CHECKING

from tenv.cli.output import Result, count, out, print_labelled, print_table, prose
from tenv.core.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenv.checks.before_create import Surroundings
    from tenv.checks.judge_targets import FitsHere, Judged
    from tenv.host.report import HostReport
    from tenv.targets.manifest import Manifest
    from tenv.targets.search import Target

_WIDTH = 10
"""The columns of a label and the blank after it."""


def yes(answer: bool | None) -> str:
    """Return a verdict as a word."""
    return "unknown" if answer is None else "yes" if answer else "no"


def row_of(target: "Target", platform: str) -> dict[str, str]:
    """Return the PyTorch revisions, the CUDA and the kind of a target as text; empty without CUDA.

    Args:
        target: The target.
        platform: The platform of the host; a target that is not for it counts as on its own first one.
    """
    from tenv.targets.toolkit_kind import toolkit_kind  # late: `--help` needs none of it

    manifest: Manifest = target.manifest.on(platform if platform in target.manifest.platforms else _first(target))
    return {
        "pytorch": str(manifest.pytorch or ""),
        "cuda": str(manifest.requirements.cuda or ("host" if "cuda-toolkit" in manifest.system else "")),
        "kind": toolkit_kind(target.manifest).value,
    }


def _first(target: "Target") -> str:
    return next(iter(target.manifest.platforms), "")


def fits_here(found: "FitsHere", *, build_only: bool, every: bool) -> Result:
    """Return the machine and the targets that build and run on it; the others as a count, or each with the reason.

    Args:
        found: The verdicts.
        build_only: Whether building alone decides.
        every: Whether to list the others, too.
    """
    from tenv.checks.judge import platform_of  # late: `--help` needs none of it

    platform = platform_of(found.around.host)
    machine = _machine(found.around, platform)
    fitting = [one for one in found.judged if one.fits(build_only=build_only)]
    others = [one for one in found.judged if not one.fits(build_only=build_only)]
    rows = [
        {
            **one.verdicts.to_json(),
            **{name: text for name, text in row_of(one.target, platform).items() if name != "pytorch"},
            "fits": one in fitting,
            "findings": list(dict.fromkeys(finding.code for finding in one.verdicts.findings)),
            "reason": "" if one in fitting else one.reason(build_only=build_only),
        }
        for one in found.judged
    ]
    data = {
        "build": any(one.verdicts.build for one in found.judged),
        "run": any(one.fits(build_only=False) for one in found.judged),
        "machine": machine,
        "auto": found.choice.to_json() if found.choice else None,
        "targets": rows,
    }

    def show() -> None:
        for label, text in machine.items():
            print_labelled(label, _WIDTH, text)
        out()
        _show_fitting(found, fitting, platform, build_only=build_only)
        _show_others(others, build_only=build_only, every=every)

    return Result(data, text=show, status=Exit.DONE if fitting else Exit.CHECK)


def _show_fitting(found: "FitsHere", fitting: "Sequence[Judged]", platform: str, *, build_only: bool) -> None:
    """Print the targets that fit, and the one that `create auto` takes."""
    best = found.choice.target if found.choice else ""
    rows = [
        ("*" if one.target.name == best else " ", one.target.name, *_cells(row_of(one.target, platform)))
        for one in fitting
    ]
    does = "builds" if build_only else "builds and runs"
    if rows:
        print_table((" ", "TARGET", "PYTORCH", "CUDA", "KIND"), rows)
        out()
    else:
        out(f"no target {does} here")
    if found.choice is None:
        prose(f"`tenv create auto` takes none: {found.without}")
        return
    mark = "* " if any(row[1] == best for row in rows) else ""
    prose(f"{mark}`tenv create auto` takes {best}, since {found.choice.reason}")
    if not mark:
        prose(f"  whether {best} {does} here is open: `tenv check {best}`")


def _show_others(others: "Sequence[Judged]", *, build_only: bool, every: bool) -> None:
    """Print how many targets do not fit; with `every`, each with its verdicts and the reason."""
    if not others:
        return
    does = "build" if build_only else "build and run"
    built = sum(1 for one in others if one.verdicts.build)
    builds = f"; {built} of them {'builds' if built == 1 else 'build'} (`--build-only`)" if built else ""
    verb = "is" if len(others) == 1 else "are"
    how = "" if every else "; `--all` lists them with the reasons"
    prose(f"{count(len(others), 'target')} {verb} not known to {does} here{builds}{how}")
    if every:
        out()
        rows = [
            (one.target.name, yes(one.verdicts.build), yes(one.verdicts.run), one.reason(build_only=build_only))
            for one in others
        ]
        print_table(("TARGET", "BUILD", "RUN", "REASON"), rows)


def _cells(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(text or "-" for text in row.values())


def _machine(around: "Surroundings", platform: str) -> dict[str, str]:
    """Return the machine in three lines, by their labels."""
    return {
        "GPU": _gpu_line(around.host),
        "compiler": f"{_compiler_line(around.host)}, {_libc(around.host)}, {platform}",
        "PyTorch": _pytorch_line(around),
    }


def _gpu_line(host: "HostReport") -> str:
    from tenv.host.interface import Fact  # late: `--help` needs none of it

    gpus: dict[str, int] = {}
    for gpu in host.gpus.value if isinstance(host.gpus, Fact) else ():
        capability = f" ({gpu.compute_capability})" if gpu.compute_capability else ""
        name = f"{gpu.name or 'a GPU without a name'}{capability}"
        gpus[name] = gpus.get(name, 0) + 1
    names = ", ".join(f"{number} {name}" if number > 1 else name for name, number in gpus.items())
    none = "none" if isinstance(host.gpus, Fact) else "unknown"
    driver = f"driver {host.driver.value}" if isinstance(host.driver, Fact) else "no driver detected"
    return f"{names or none}, {driver}"


def _compiler_line(host: "HostReport") -> str:
    """Return the default compilers, or the first one."""
    from tenv.host.interface import Fact  # late: `--help` needs none of it

    found = host.compilers.value if isinstance(host.compilers, Fact) else ()
    cxx = [one for one in found if one.kind in ("g++", "clang++", "msvc")] or list(found)
    shown = [one for one in cxx if one.default][:1] or cxx[:1]
    return ", ".join(f"{one.kind} {one.version}" for one in shown) or "no C++ compiler"


def _libc(host: "HostReport") -> str:
    from tenv.host.interface import Fact  # late: `--help` needs none of it

    return f"glibc {host.libc.value}" if isinstance(host.libc, Fact) else "no glibc"


def _pytorch_line(around: "Surroundings") -> str:
    if around.source is None:
        return "no checkout in this folder; `--pytorch VERSION` judges by a release"
    where = f" ({around.source.root})" if around.source.root else " (`--pytorch`)"
    return f"{around.source.version.value}{where}"
