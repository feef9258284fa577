"""Compile the packages of a lock that need the target's torch, before its environment changes.

A second environment has the same files, by hard links. Each package is planned, refused or compiled there without a
network, audited and imported, and its wheel is kept by a digest of all that went into it.
"""

import contextlib
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tenv.activation import sandbox
from tenv.activation.changes import ACTIVATION, is_own, read_activation
from tenv.audits.audited_tree import open_tree
from tenv.audits.build_note import gpu_code
from tenv.audits.library import inspect
from tenv.builds.extension_plan import (
    ARCHS,
    NO_GPU_CODE,
    Asked,
    Reason,
    compilers,
    file_stamp,
    in_order,
    job_limits,
    modules_of,
    no_gpu_code,
    package_variables,
    plan_words,
    refusals,
    refuse,
    units_compiled_before,
    waits_for,
    with_archs,
    with_standard,
    without_cuda,
)
from tenv.builds.extension_record import recorded, units_of, with_ninja, with_parts
from tenv.builds.logged_run import look_up, run_logged
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, LockStaleError
from tenv.core.files import exclusive, first_free, remove_tree, storage_errors, write_atomic
from tenv.core.prefix import MARKER
from tenv.core.wheel_platforms import marker_values
from tenv.environment.state import Environment, Status
from tenv.facts.torch_packages import TorchPackage
from tenv.host.installed_torch import InstalledTorch, read_torch
from tenv.host.interface import Missing
from tenv.install import make
from tenv.install.architectures import chosen_archs, detected_archs
from tenv.install.creation import CreateRequest, Creation, LockMode
from tenv.locks.lock import LockedTree, Wheel
from tenv.locks.wheel_answers import python_packages
from tenv.locks.wheel_requirement import requirement_of
from tenv.sources.archives.answers import kind_of
from tenv.sources.archives.unpack import unpack
from tenv.sources.interface import owned_by_lock
from tenv.sources.system.taken import take_from_machine
from tenv.sources.wheels.compiled import needs_of_build
from tenv.sources.wheels.folder_copy import copy_folder
from tenv.sources.wheels.git_trees import clone
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.project_metadata import build_system, read_project
from tenv.sources.wheels.sdist_builds import (
    FIXED,
    asked_by_build,
    built_folder,
    hint_of_failure,
    keep_built,
    kept_build,
    key_of_build,
    locked_sdist,
    pinned_wheels,
    require_pins,
    wants_network,
    wheel_in,
)
from tenv.sources.wheels.tree_builds import built_wheel, differences, requirements_in
from tenv.targets.manifest import WheelRequest, with_features
from tenv.toolchain.discover import python_program, site_packages
from tenv.verbs.wheelhouse import from_wheelhouse, given_variables, into_wheelhouse

_SECONDS = 600.0
_BROKEN = re.compile(r"undefined symbol|cannot open shared object|version `[^']+' not found|DLL load failed")


@dataclass(frozen=True, slots=True)
class _Package:
    """A package to compile."""

    row: LockedTree
    """Its row."""
    request: WheelRequest
    """Its request in the manifest."""
    facts: TorchPackage | None
    """Its row in the table; None without one."""
    archs: str
    """The architectures asked for, as ``TORCH_CUDA_ARCH_LIST``; empty to leave them to torch."""


def build_packages(job: Creation) -> None:
    """Set the wheels of the packages of a job that are compiled against its torch: kept, or compiled now.

    Raises:
        EnvironmentBrokenError: A package can't be compiled with this torch on this machine, a build fails, or its
            result differs from the request.
    """
    here = with_features(job.target.manifest).on(job.platform)
    table, built = job.context.facts().torch_packages, dict[str, Wheel]()
    (archs, why), left = _archs(job), list[tuple[_Package, Path]]()
    for row in job.compiled:
        package = _Package(row, here.wheels[row.name], table.find(row.name), here.wheels[row.name].archs or archs)
        if found := from_wheelhouse(job, row, package.archs, given_variables(job)):
            _require_as_locked(job, row, found)
            built[row.name] = replace(found, python=(job.plan.minor,))
            continue
        place = built_folder() / _key(job, package)
        kept = None if row.path else kept_build(place, row)
        if kept:
            _require_as_locked(job, row, kept)
            job.context.progress.say(f"{row.name} {row.version}: taken as it was compiled before")
            built[row.name] = replace(kept, python=(job.plan.minor,))
            into_wheelhouse(job, row, package.archs, given_variables(job), kept)
        else:
            left.append((package, place))
    if left:
        job.ask_rules(job.lock, compiles=True)
        if why:
            job.context.progress.say(f"{why}; {ARCHS} in [activation.env] of the manifest names others")
        with _second(job) as other:
            for build, wheel in _compiled(job, other, left, [*built.values()]):
                built[build.package.row.name] = replace(wheel, python=(job.plan.minor,))
                into_wheelhouse(job, build.package.row, build.package.archs, given_variables(job), wheel)
    job.built = built


def _compiled(
    job: Creation, other: Creation, left: list[tuple[_Package, Path]], there: list[Wheel]
) -> "Iterator[tuple[_Build, Wheel]]":
    """Compile packages, each after those that it requires; yield each with its wheel.

    All are planned before the first compiles, which may take hours.

    Args:
        job: The creation.
        other: That of the second environment.
        left: The packages, each with the folder that keeps its wheel.
        there: The compiled packages whose wheels are known; a package may import them.
    """
    if there:
        job.uv.install(python_program(other.prefix), there, [wheel.name for wheel in there], job.context.progress)
    places = {package.row.name: (package, place) for package, place in left}
    order = in_order({name: package.row.requires for name, (package, _) in places.items()})
    builds = [_Build(job, other, *places[name]) for name in order]
    if builds[1:]:
        refuse([refused for number, build in enumerate(builds) for refused in build.planned(order[:number])])
    for build in builds:
        yield build, build.run()


def _archs(job: Creation) -> tuple[str, str]:
    """Return the GPU architectures to compile for: the user's, the manifest's, or those that `create` chooses, and why.

    The reason is empty for a request.
    """
    if is_own(job.context.environ, ARCHS) and job.context.environ.get(ARCHS):
        return job.context.environ[ARCHS], ""
    if ARCHS in job.manifest.environment:
        return job.manifest.environment[ARCHS].value, ""
    if not hasattr(job, "toolchain"):
        job.toolchain = job.before
    found = chosen_archs(job)
    return (";".join(found.names), found.reason) if found else (";".join(detected_archs(job)), "")


def _require_as_locked(job: Creation, row: LockedTree, wheel: Wheel) -> None:
    """Refuse a wheel with other requirements than its row, kept or new; raises EnvironmentBrokenError."""
    for fault, hint in _differences(job, row, requirements_in(wheel)):
        raise EnvironmentBrokenError(f"{job.target.name}: {fault}", hint=hint)


def _differences(job: Creation, row: LockedTree, requires: Sequence[str]) -> Iterator[Reason]:
    named = with_features(job.target.manifest).on(job.platform).wheels[row.name].requires is not None
    values = marker_values(job.platform, job.plan.minor)
    return differences(row, requires, job.target.name, values, in_manifest=named)


def _key(job: Creation, package: _Package) -> str:
    """Return the digest of the inputs of a build: the source, torch, the toolkit, Python, compilers, architectures."""
    row, request = package.row, package.request
    given = given_variables(job)
    named = {name: variable.value for name, variable in job.manifest.environment.items()}
    python = job.plan.python.path if job.plan.python and not job.plan.own_python else Path(sys.executable)
    source = [row.file, row.digest, list(row.build), row.git, row.subdirectory, row.commit]
    source += [str(job.requests[row.name].folder.resolve())] if row.path else []
    force = list(package.facts.force) if package.facts else []
    conda = job.lock.conda.get(job.platform, ())
    own = any(one.name.startswith(("gcc", "gxx")) for one in conda)
    tools = [] if own else compilers(job.context.environ)
    taken = take_from_machine(job.context, job.manifest, job.environment).tools
    tools += [file_stamp(tool.name, file) for tool in taken for file in tool.files]
    inputs = [source, row.against, job.plan.minor, job.platform, package.archs, force, request.cxx, tools, given, named]
    inputs += ["archs"] * bool(request.archs)
    # the programs of the shell's PATH count by `tools` alone: an active environment is no other input
    return key_of_build(["compiled", *inputs], python, {"PATH": os.devnull})


@contextlib.contextmanager
def _second(job: Creation) -> Iterator[Creation]:
    """Yield a second environment with the files of a job, but for the packages to compile.

    Its folder is the same for the same torch and toolkit, so that a compile cache knows its paths, and a build that was
    killed goes on. While a build of another project runs in it, this one has a folder of its own, and keeps to it
    where it is killed. It is removed once all packages are compiled.
    """
    trees = [row for row in job.lock.trees_for(job.platform, job.plan.minor) if row.isolated and not row.path]
    lock = replace(job.lock, trees={**job.lock.trees, job.platform: tuple(trees)})
    shared = built_folder() / f".environment-{job.target.name}-{job.compiled[0].against[:16]}"
    project = hashlib.sha256(os.fsencode(job.target.lock_file.resolve())).hexdigest()
    own = shared.with_name(f"{shared.name}-{project[:8]}")
    python = str(job.plan.python.path) if job.plan.python and not job.plan.own_python else None
    places = sorted((shared, own), key=lambda place: place == shared and own.exists())
    with first_free(places, f"tenv create {job.target.name}", job.context.progress.say) as prefix:
        request = CreateRequest(
            job.target.name, prefix, LockMode.FROZEN, python=python, check=False, features=job.features
        )
        other = Creation(job.context, request, job.target, Environment(prefix), job.platform, lambda _: None)
        if "around" in job.__dict__:
            other.around = job.around
        other.lock = lock
        state = other.look()
        wanted = owned_by_lock(lock, job.platform, job.plan.minor)
        ready = state if state and state.status is Status.READY else None
        if ready is None or any(ready.of(key) != rows for key, rows in wanted.items()):
            names = ", ".join(row.name for row in job.compiled)
            job.context.progress.say(f"a second environment, to compile {names} in")
            make.make(other)
        else:
            other.toolchain = other.before
        try:
            yield other
        except LockStaleError:
            _forget(job, prefix)
            raise
        _forget(job, prefix)


def _forget(job: Creation, prefix: Path) -> None:
    with job.context.registry().forgetting(prefix):
        remove_tree(prefix, MARKER)


class _Build:
    """The build of one package.

    Attributes:
        package: The package.
    """

    def __init__(self, job: Creation, other: Creation, package: _Package, place: Path) -> None:
        self._job, self._other, self.package, self._place = job, other, package, place
        self._row, self._facts = package.row, package.facts
        self._python = python_program(other.prefix)
        self._so = ", and the environment is as it was" if job.ready else ""
        self._work = place.with_name(f".{place.name}.work")
        self._log = place.with_name(f"{package.row.name}-{place.name[:12]}.log")
        found = read_torch(site_packages(other.prefix) / "torch")
        self._torch: InstalledTorch | None = None if isinstance(found, Missing) else found
        self._has_cuda = self._torch is not None and self._torch.has_cuda
        self._environ = self._variables()
        self._has_gpu_code, self._is_planned, self._units = True, False, 0

    @property
    def _name(self) -> str:
        return self._row.name if self._row.dynamic else f"{self._row.name} {self._row.version}"

    def planned(self, before: Sequence[str]) -> list[Reason]:
        """Print the plan of the build, and return the reasons against it.

        One that may need a package which is compiled before it is planned after that.

        Args:
            before: The names of the packages that are compiled before it.
        """
        purpose = f"tenv create {self._job.target.name}"
        self._job.context.progress.step(f"planning {self._name}")
        with (
            exclusive(self._work, purpose, self._job.context.progress.say),
            storage_errors(f"can't write to {self._work}"),
            self._source() as source,
        ):
            self._install_needs(source)
            return self._plan(source, before)

    def run(self) -> Wheel:
        """Return the wheel; the folder of a build that fails stays, so that the next one goes on."""
        purpose = f"tenv create {self._job.target.name}"
        with exclusive(self._work, purpose, self._job.context.progress.say):
            wheel = None if self._row.path else kept_build(self._place, self._row)  # of a run beside this one
            if wheel:
                _require_as_locked(self._job, self._row, wheel)
            else:
                with storage_errors(f"can't write to {self._work}"), self._source() as source:
                    wheel = self._compile(source)
            shutil.rmtree(self._work, ignore_errors=True)
        return wheel

    def _compile(self, source: Path) -> Wheel:
        self._install_needs(source)
        if not self._is_planned:
            refuse(self._plan(source, ()))
        shutil.rmtree(out := self._work / "out", ignore_errors=True)
        ran = run_logged(
            self._job.uv.build_words(self._python, source, out),
            self._log,
            environ={**self._environ, "UV_NO_CONFIG": "1"},
            folder=source,
            progress=self._job.context.progress,
            title=f"compiling {self._name}",
            ninja=process.find("ninja", self._environ.get("PATH")) or "",
            units=self._units,
        )
        if ran.status:
            table = self._job.context.facts().build_failures
            finding = look_up(ran, "TE961", self._name, self._log, table, of=self._row.name)
            own = "its build " if finding.subject == self._name else ""  # the message about a known cause is a sentence
            place = (
                finding.evidence if finding.evidence.startswith(str(self._log)) else f"{self._log}: {finding.evidence}"
            )
            why = f"{own}{finding.message}\n  {place}"
            hint = without_cuda(finding.message, self._torch) or finding.fix
            if wants_network(output := "\n".join(ran.lines)):
                why, hint = f"its build downloads, which has no digest; log: {self._log}", hint_of_failure(output)
            raise EnvironmentBrokenError(f"{self._name} can't be compiled{self._so}: {why}", hint=hint)
        built = wheel_in(out, self._row, self._so)
        _require_as_locked(self._job, self._row, built_wheel(built, self._row))
        self._audit(built)
        self._try(built)
        return keep_built(built, self._place, self._row)

    def _variables(self) -> dict[str, str]:
        """Return the variables of the build: the activation, the switches of the package, and its limits."""
        environ = read_activation(self._other.environment.meta / ACTIVATION).apply(self._job.context.environ)
        given = {name: value for name, value in environ.items() if name not in ("CC", "CXX") or value.strip()}
        environ = {**FIXED, **given}
        limits = job_limits(self._facts, self._job.machine, environ, self._job.context.environ)
        environ = package_variables(self._facts, self.package.archs, environ, limits, gpu=self._has_cuda)
        ccache = process.find("ccache", environ.get("PATH"))
        launchers = {f"CMAKE_{language}_COMPILER_LAUNCHER": ccache for language in ("C", "CXX", "CUDA") if ccache}
        environ |= with_standard(environ, self.package.request.cxx, self._work / "programs")
        return {**launchers, **environ, **with_archs(environ, self.package.request.archs, self._work / "programs")}

    @contextlib.contextmanager
    def _source(self) -> Iterator[Path]:
        """Yield the folder of the sources; an archive's stays until it is compiled."""
        row, context = self._row, self._job.context
        folder = self._work / "source"
        if row.file:
            if not folder.is_dir():
                unpack(self._archive(), kind_of(row.file), folder, strip=1, limits=context.unpack_limits())
            yield folder
        elif row.path:
            shutil.rmtree(folder, ignore_errors=True)
            copy_folder(self._job.requests[row.name].folder, folder)
            yield folder
        else:
            request = self._job.requests[row.name]
            with (
                clone(request, context) as repository,
                repository.files(row.commit, submodules=True) as tree,
            ):
                yield tree

    def _archive(self) -> Path:
        here = with_features(self._job.target.manifest).on(self._job.platform)
        return locked_sdist(self._job.context, self._job.uv, self._row, here)

    def _install_needs(self, source: Path) -> None:
        """Install the further requirements of the build: of an archive by the lock, else from the index."""
        row, uv, progress = self._row, self._job.uv, self._job.context.progress
        there = Wheels(self._other.prefix)
        file = source / "pyproject.toml"
        raw = file.read_bytes() if file.is_file() else None
        values = marker_values(self._job.platform, self._job.plan.minor)
        if row.file:
            own, conda = self._job.lock.wheels_for(self._job.platform, self._job.plan.minor), self._job.lock.conda
            had = {"torch", *(wheel.name for wheel in own)}
            had |= python_packages(conda.get(self._job.platform, ())).keys()
            asked = needs_of_build(asked_by_build(self._archive().read_bytes(), row.file, values), self._facts)
            elsewhere = {"torch": "", **there.versions()}
            require_pins(self._job.context, uv, self._python, row, asked, elsewhere, values, self._job.target.name)
            if wheels := [wheel for wheel in pinned_wheels(row) if wheel.name not in had]:
                uv.install(self._python, wheels, (), progress)
            return
        requires, *_ = build_system(raw, self._name)
        more = list(needs_of_build({}, self._facts))
        lines = [
            line for line in (*requires, *more) if (found := requirement_of(line)) is None or found.name != "torch"
        ]
        limits = self._work / "constraints.txt"
        limits.parent.mkdir(parents=True, exist_ok=True)
        held = "".join(f"{name}=={version}\n" for name, version in there.versions().items() if "+" not in version)
        write_atomic(limits, held)
        words = ["pip", "install", "--only-binary", ":all:", "--python", str(self._python), "--requirement", "-"]
        words += ["--constraints", str(limits), *uv.indexes()]
        done = uv.run(*words, text="".join(f"{line}\n" for line in lines), settings={})
        if done.status:
            raise uv.error(done.stderr, f"the build requirements of {self._name} can't be installed")

    def _plan(self, source: Path, before: Sequence[str]) -> list[Reason]:
        """Print the plan of a build, and return the reasons against one that can't end well."""
        file = source / "pyproject.toml"
        raw = file.read_bytes() if file.is_file() else None
        _, backend, _ = build_system(raw, self._name)
        runs = (source / "setup.py").is_file() and backend.startswith("setuptools.")
        record = recorded(self._python, self._environ, source, self._facts) if runs else {}
        if waits_for(record, self._row.requires, before):
            return []
        self._environ |= with_ninja(record, self._work) | with_parts(record, self._environ, self._work / "apart")
        self._is_planned, subject = True, f"{self._name} is not compiled{self._so}"
        table = self._job.context.facts().cuda_gpu_arch
        request = self.package.request
        asked = Asked(self._row.name, request.cxx, self.package.archs, bool(request.archs))
        reasons = [*refusals(record, asked, self._facts, self._torch, table)]
        requires = record.get("requires")
        if requires is None and (project := read_project(raw, self._name, self._row.version)):
            requires = project.requires
        if requires is not None and not self._row.dynamic:  # its wheel would be refused
            reasons += _differences(self._job, self._row, requires)
        if found := [*dict.fromkeys(reasons)]:
            return [(f"{subject}: {reason}", hint) for reason, hint in (found[:1] if "error" in record else found)]
        self._units = len(units := units_of(record))
        named = any(one.endswith(".cu") for one in units)
        wanted = self._environ.get("FORCE_CUDA", "1") == "1" and any(source.rglob("*.cu"))
        self._has_gpu_code = named or (wanted and (not runs or bool(units)))
        if units and not named and self._has_gpu_code and self._has_cuda:
            reason, hint = no_gpu_code(self._row.name, (source / "setup.py").read_text(errors="replace"))
            return [(f"{subject}: {reason}", hint)]
        jobs = int(self._environ["MAX_JOBS"])
        had = units_compiled_before(record, source)
        self._units -= had
        if words := plan_words(record, self.package.archs, jobs, forced=asked.forced, before=had):
            self._job.context.progress.say(f"{self._name}: {words}; log: {self._log}")
        return []

    def _audit(self, built: Path) -> None:
        """Refuse a wheel without the GPU code that was asked for.

        Raises:
            EnvironmentBrokenError: It lacks it.
        """
        if not self._has_cuda:
            return
        code = gpu_code(inspect(open_tree(built)), self.package.archs)
        if code.none and not self._has_gpu_code:
            return
        if code.none:
            raise EnvironmentBrokenError(
                f"{self._name} was compiled without GPU code{self._so}: {built.name} has none", hint=NO_GPU_CODE
            )
        if code.lacking:
            raise EnvironmentBrokenError(
                f"{self._name} has no GPU code for sm_{code.lacking[0]}{self._so}: {built.name} has {code.words}",
                hint="its setup.py decides on its architectures; `arch` in a table of TENV_FACTS names its variable",
            )
        self._job.context.progress.say(f"{self._name}: GPU code {code.words}")

    def _try(self, built: Path) -> None:
        """Import the package in the second environment.

        Raises:
            EnvironmentBrokenError: A library of it can't be loaded.
        """
        wheel = built_wheel(built, self._row)
        self._job.uv.install(self._python, [wheel], [wheel.name], self._job.context.progress)
        code = "import torch\n" + "".join(f"import {name}\n" for name in modules_of(built))
        words = [sys.executable, "-I", sandbox.__file__, "", str(self._python), "-c", code]
        done = process.run(words, environment=self._environ, folder=self._work, timeout=_SECONDS, family=True)
        if isinstance(done, process.Missing) or done.status == 0:
            return
        last = "".join(done.stderr.strip().splitlines()[-1:])
        if _BROKEN.search(last):
            raise EnvironmentBrokenError(f"{self._name} was compiled and can't be imported{self._so}: {last}")
        self._job.context.progress.say(f"{self._name} was compiled; its import ends with: {last}")
