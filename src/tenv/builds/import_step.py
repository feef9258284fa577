"""Steps `canary` and `import`: the first and the last trial of a build.

`canary` builds the first libraries and one heavy CUDA file before the hours begin. `import` imports the built torch
outside the checkout, computes, and compares it with the target.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from tenv.builds.build_job import BuildJob, Done, build_finding
from tenv.builds.compile_cache import CacheUse
from tenv.builds.estimate_step import Tried, check_estimate
from tenv.builds.extension_steps import IMPORT, check_extension_import, imported
from tenv.builds.logged_run import look_up, run_step
from tenv.builds.ninja_plan import CompileWatch, NinjaRun, kind_of_object, remaining, served, targets
from tenv.builds.provenance import companions
from tenv.builds.task_costs import TaskKind
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.dataclass import dataclass
from tenv.core.versions import Version
from tenv.host.machine import current_platform
from tenv.locks.lock_file import read_lock

_SCRIPT = """\
import json, sys
import torch
found = {"version": torch.__version__, "location": torch.__file__}
found["config"] = torch.__config__.show() if hasattr(torch, "__config__") else ""
product = torch.ones(2, 2) @ torch.ones(2, 2)
found["product"] = product.tolist() if hasattr(product, "tolist") else [list(row) for row in product]
versions = getattr(torch, "version", None)
found["cuda"] = getattr(versions, "cuda", None)
found["git"] = getattr(versions, "git_version", None)
cpp11 = getattr(torch, "compiled_with_cxx11_abi", None)
found["abi"] = None if cpp11 is None else int(cpp11())
cuda = getattr(torch, "cuda", None)
found["device"] = "cpu"
if found["cuda"]:
    cudnn = getattr(getattr(torch, "backends", None), "cudnn", None)
    try:
        found["cudnn"] = cudnn.version() if cudnn else None
    except Exception as error:
        found["cudnn_error"] = str(error)
    try:
        found["nccl"] = list(torch.cuda.nccl.version())
    except Exception as error:
        found["nccl_error"] = str(error)
    if torch.cuda.is_available():
        found["device"] = torch.cuda.get_device_name(0)
        there = torch.ones(2, 2).cuda()
        found["device_product"] = (there @ there).cpu().tolist()
print("tenv-import:" + json.dumps(found))
"""
_CUDNN_9 = 90000
"""From here on the number of a cuDNN has two digits for its minor version and two for its patch."""
_RIGHT = [[2.0, 2.0], [2.0, 2.0]]

_FIRST = ("c10", "c10_cuda")
_HEAVY = ("FillKernel.cu", "ActivationGeluKernel.cu", "Sort.cu", "Blas.cpp", "SpectralOps.cpp", "BinaryOps.cpp")

_MOST_BEFORE = 60
"""Tasks that a heavy object may wait for: with protobuf to be built first, it would be no early sign of anything."""

_NOTICED = 1.0
"""Seconds of processors below which a canary does not show how busy the machine is."""


def check_import(job: BuildJob) -> Done:
    """Import torch in an empty folder, and hold it against the checkout, the target and arithmetic."""
    if job.request.wheel is not None:
        return Done((), {}, lines=(f"a wheel was made in {job.request.wheel}: nothing is installed",))
    if job.extension:
        return check_extension_import(job)
    found = imported(job, _SCRIPT)
    if isinstance(found, Done):
        return found
    job.torch = {"version": found["version"], "location": found["location"], "device": found["device"]}
    findings = [*_elsewhere(job, found), *_wrong(found), *_other_versions(job, found)]
    shown = f"torch {found['version']} from {found['location']}: torch.ones(2, 2) @ torch.ones(2, 2) is right"
    config = [line.strip() for line in str(found["config"]).splitlines()[:3]]
    beside = companions(job, str(found["version"]))
    facts = {"torch": found, "companions": beside}
    lines = (shown, f"on {found['device']}", *_beside(found["version"], beside), *config)
    return Done(findings, facts, job.log(IMPORT), lines if not findings else ())


def _beside(version: str, beside: Mapping[str, str]) -> Iterator[str]:
    """Yield the companions of the built torch, and how to compile extensions against it."""
    if beside:
        words = ", ".join(f"{name} {minor}" for name, minor in beside.items())
        words += " goes" if len(beside) == 1 else " go"
        yield f"{words} with torch {version}; compile extensions against it with `pip install --no-build-isolation`"


def _elsewhere(job: BuildJob, found: Mapping[str, Any]) -> Iterator[Finding]:
    location = Path(found["location"]).resolve()
    places = (job.checkout.resolve(), job.environment.prefix.resolve())
    if not any(location.is_relative_to(place) for place in places):
        yield build_finding(
            "TE972",
            str(location),
            "is the torch that the environment's Python imports, and it is not the one that was built",
            f"import torch outside {job.checkout}",
            "sys.path of the environment's Python",
            "`python -m pip uninstall torch` there, or unset PYTHONPATH; PYTHONNOUSERSITE=1 hides ~/.local",
        )


def _wrong(found: Mapping[str, Any]) -> Iterator[Finding]:
    for key, device in (("product", "the CPU"), ("device_product", found["device"])):
        if key in found and found[key] != _RIGHT:
            yield build_finding(
                "TE973",
                f"a product of matrices on {device}",
                f"is {found[key]} instead of {_RIGHT}",
                "torch.ones(2, 2) @ torch.ones(2, 2)",
                "arithmetic",
                "`tenv verify` tries the BLAS of the environment; `tenv build --clean` compiles all again",
            )


def _other_versions(job: BuildJob, found: Mapping[str, Any]) -> Iterator[Finding]:
    cuda = job.toolchain.cuda_version if job.toolchain else None
    if cuda is not None and found["cuda"] and Version(found["cuda"]).major_minor != cuda.major_minor:
        yield _differs(job, "CUDA", found["cuda"], str(cuda), Severity.ERROR)
    if found.get("cudnn") and (locked := _locked(job, "nvidia-cudnn")):
        number = int(found["cudnn"])
        minor = number // 100 % 100 if number >= _CUDNN_9 else number // 100 % 10
        built = f"{number // (10000 if number >= _CUDNN_9 else 1000)}.{minor}"
        if Version(locked).major_minor != built:
            yield _differs(job, "cuDNN", built, locked, Severity.ERROR)
    if found.get("nccl") and (locked := _locked(job, "nvidia-nccl")):
        built = ".".join(map(str, found["nccl"]))
        if Version(built).major_minor != Version(locked).major_minor:
            yield _differs(job, "NCCL", built, locked, Severity.WARNING)
    if found.get("abi") == 0 and job.environ.get("_GLIBCXX_USE_CXX11_ABI") == "1":
        yield _differs(job, "the C++11 ABI of libstdc++", "0", "1", Severity.WARNING)


def _locked(job: BuildJob, prefix: str) -> str:
    lock = read_lock(job.target.lock_file, job.target.name)
    wheels = lock.wheels.get(current_platform(), ())
    return next((wheel.version for wheel in wheels if wheel.name.startswith(prefix)), "")


def _differs(job: BuildJob, what: str, built: str, locked: str, severity: Severity) -> Finding:
    return build_finding(
        "TE974",
        what,
        f"is {built} in what was built, and {locked} in the target",
        "torch.version, torch.backends.cudnn.version(), torch.cuda.nccl.version()",
        f"{job.target.lock_file}",
        "`tenv build --fresh` configures anew: what CMake had found before is another one",
        severity,
    )


@dataclass(frozen=True, slots=True)
class _Heavy:
    """A heavy object that is still to be compiled."""

    output: str
    """The object, as Ninja names it."""
    before: int
    """How many tasks come before it."""

    @property
    def waits(self) -> bool:
        """Whether it waits for too much to be tried first."""
        return self.before >= _MOST_BEFORE

    @property
    def words(self) -> str:
        """Why it is not tried."""
        return f"not tried: {self.output}, which waits for {self.before} other tasks"


def _first(job: BuildJob) -> list[str]:
    """Return the libraries that are built first; none where one target alone is asked for."""
    known = frozenset[str]() if job.request.only else targets(job.folder, job.environ)
    return [name for name in _FIRST if name in known]


def _heavy(job: BuildJob) -> Iterator[_Heavy]:
    """Yield one heavy object of each language that is still to be compiled; none where one target is asked for."""
    if job.request.only:
        return
    tasks = remaining(job.folder, ("all",), job.environ) or ()
    for kind in (TaskKind.CUDA, TaskKind.CXX):
        outputs = [task.output for task in tasks if task.kind is kind]
        named = (output for name in _HEAVY for output in outputs if output.endswith((f"/{name}.o", f"_{name}.o")))
        found = next(named, None)
        if found:
            yield _Heavy(found, len(remaining(job.folder, (found,), job.environ) or ()) - 1)


def run_canary(job: BuildJob) -> Done:
    """Build the canary, and correct the estimate by its time."""
    heavy = list(_heavy(job))
    names = [*_first(job), *(one.output for one in heavy if not one.waits)]
    untried = [one for one in heavy if one.waits]
    missed = [one.words for one in untried]
    facts: dict[str, Any] = {"targets": names, "untried": [one.output for one in untried]}
    if not names:
        return Done((), facts, lines=("nothing to try first", *missed))
    log, watch = job.log("canary"), CompileWatch(job)
    command = ["cmake", "--build", str(job.folder), "--target", *names]
    ran = run_step(job, command, log, "canary")
    facts |= {"seconds": round(ran.seconds, 1), "processor": round(ran.processor, 1)}
    if ran.status:
        table = job.context.facts().build_failures
        return Done([look_up(ran, "TE961", f"the canary ({', '.join(names)})", log, table)], facts, log)
    used = watch.used()
    job.tried = _tried(watch.keep(ran.processor, used), used, names)
    after = check_estimate(job)
    facts |= {"estimate": (after.facts or {}).get("seconds"), "cache": {"hits": used.hits, "misses": used.misses}}
    return Done((), facts, log, (f"built {', '.join(names)}", *missed, *after.lines))


def _tried(run: NinjaRun, used: CacheUse, names: Sequence[str]) -> Tried:
    """Return the results of the canary."""
    came = served(run, used)
    heavy = [name for name in names if name in run.rows]
    compiled = run.processor >= _NOTICED and used.hits <= used.misses  # hits wait for the disk, and for no processor
    return Tried(
        slowdown=run.elapsed / run.processor if compiled else 0.0,
        hits=used.hits,
        misses=used.misses,
        kinds=frozenset(map(kind_of_object, run.objects)),
        missed=tuple(PurePath(name).stem for name in heavy if name not in came and PurePath(name).stem in used.missed),
        hit_seconds=run.seconds_of(came) / len(came) if came else 0.0,
    )
