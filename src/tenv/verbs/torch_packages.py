"""Compile the packages of a lock that need the target's torch, before its environment changes.

A second environment has the same files, by hard links. Each package is planned, refused or compiled there without a
network, audited and imported, and its wheel is kept by a digest of all that went into it.
"""

import contextlib
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenv.activation import sandbox
from tenv.activation.changes import ACTIVATION, is_own, read_activation
from tenv.audits.audited_tree import open_tree
from tenv.audits.build_note import asked_codes
from tenv.audits.library import inspect
from tenv.builds import record_extensions
from tenv.builds.extension_plan import Asked, is_record, refusals, with_standard
from tenv.builds.logged_run import look_up, run_logged
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import EnvironmentBrokenError, LockStaleError
from tenv.core.files import digest, exclusive, remove_tree, storage_errors, write_atomic
from tenv.core.names import WheelFile
from tenv.core.prefix import MARKER
from tenv.core.untrusted import whole_number
from tenv.core.wheel_platforms import marker_values
from tenv.environment.state import Environment, Status
from tenv.facts.torch_packages import TorchPackage
from tenv.host.installed_torch import InstalledTorch, read_torch
from tenv.host.interface import Fact, Missing
from tenv.install import make
from tenv.install.architectures import chosen_archs, detected_archs
from tenv.install.creation import CreateRequest, Creation, LockMode
from tenv.locks.lock import LockedTree, Wheel
from tenv.locks.wheel_answers import python_packages
from tenv.locks.wheel_requirement import requirement_of
from tenv.project.user_facts import user_facts
from tenv.sources.archives.answers import kind_of
from tenv.sources.archives.download import Fetcher, RemoteFile
from tenv.sources.archives.unpack import unpack
from tenv.sources.interface import owned_by_lock
from tenv.sources.system.taken import take_from_machine
from tenv.sources.wheels.compiled import needs_of_build
from tenv.sources.wheels.git_trees import clone
from tenv.sources.wheels.index_requests import located_sdist
from tenv.sources.wheels.installed import Wheels
from tenv.sources.wheels.project_metadata import build_system
from tenv.sources.wheels.sdist_builds import (
    asked_by_build,
    built_folder,
    keep_built,
    kept_build,
    key_of_build,
    pinned_wheels,
    require_pins,
    wheel_in,
)
from tenv.sources.wheels.tree_builds import require_as_locked
from tenv.targets.manifest import WheelRequest, with_features
from tenv.toolchain.discover import python_program, site_packages

__all__ = ["build_packages"]

_ARCHS = "TORCH_CUDA_ARCH_LIST"
_GIB = 1 << 30
_SECONDS = 600.0
_INPUTS = (
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
    *(
        "LIBRARY_PATH",
        "CUDA_HOME",
        "CUDAHOSTCXX",
        "NVCC_CCBIN",
        "NVCC_FLAGS",
        "NVCC_PREPEND_FLAGS",
        "NVCC_APPEND_FLAGS",
    ),
)
"""The variables of the user that decide on the code of an extension."""
_BROKEN = re.compile(r"undefined symbol|cannot open shared object|version `[^']+' not found|DLL load failed")
_UNITS = (".cu", ".cpp", ".cc", ".cxx", ".c")


@dataclass(frozen=True, slots=True)
class _Package:
    """A package to compile.

    Attributes:
        row: Its row.
        request: Its request in the manifest.
        facts: Its row in the table; None without one.
        archs: The architectures asked for, as ``TORCH_CUDA_ARCH_LIST``; empty to leave them to torch.
    """

    row: LockedTree
    request: WheelRequest
    facts: TorchPackage | None
    archs: str


def build_packages(job: Creation) -> None:
    """Set the wheels of the packages of a job that are compiled against its torch: kept, or compiled now.

    Raises:
        EnvironmentBrokenError: A package can't be compiled with this torch on this machine, a build fails, or its
            result differs from the request.
    """
    here = with_features(job.target.manifest).on(job.platform)
    table, built = job.context.facts().torch_packages, dict[str, Wheel]()
    archs, left = _archs(job), list[tuple[_Package, Path]]()
    for row in job.compiled:
        package = _Package(row, here.wheels[row.name], table.find(row.name), archs)
        place = built_folder() / _key(job, package)
        kept = None if row.path else kept_build(place, row)
        if kept:
            _require_as_locked(job, row, kept)
            job.context.progress.say(f"{row.name} {row.version}: taken as it was compiled before")
            built[row.name] = replace(kept, python=(job.plan.minor,))
        else:
            left.append((package, place))
    if left:
        with _second(job) as other:
            for package, place in left:
                wheel = _Build(job, other, package, place).run()
                built[package.row.name] = replace(wheel, python=(job.plan.minor,))
    job.built = built


def _archs(job: Creation) -> str:
    """Return the GPU architectures to compile for: the user's, the manifest's, or those that `create` chooses."""
    if is_own(job.context.environ, _ARCHS) and job.context.environ.get(_ARCHS):
        return job.context.environ[_ARCHS]
    if _ARCHS in job.manifest.environment:
        return job.manifest.environment[_ARCHS].value
    if not hasattr(job, "toolchain"):
        job.toolchain = job.before
    found = chosen_archs(job)
    return ";".join(found.names if found else detected_archs(job))


def _require_as_locked(job: Creation, row: LockedTree, wheel: Wheel) -> None:
    """Refuse a wheel with other requirements than its row, kept or new; raises EnvironmentBrokenError."""
    require_as_locked(row, wheel, job.target.name, marker_values(job.platform, job.plan.minor))


def _key(job: Creation, package: _Package) -> str:
    """Return the digest of the inputs of a build: the source, torch, the toolkit, Python, compilers, architectures."""
    row, request = package.row, package.request
    table = job.context.facts().torch_packages.rows
    switches = {text.partition("=")[0] for one in table for text in (*one.force, one.arch) if text}
    given = {name: job.context.environ[name] for name in (*_INPUTS, *sorted(switches)) if job.context.environ.get(name)}
    named = {name: variable.value for name, variable in job.manifest.environment.items()}
    python = job.plan.python.path if job.plan.python and not job.plan.own_python else Path(sys.executable)
    source = [row.file, row.digest, list(row.build), row.git, row.subdirectory, row.commit]
    source += [str(job.requests[row.name].folder.resolve())] if row.path else []
    force = list(package.facts.force) if package.facts else []
    conda = job.lock.conda.get(job.platform, ())
    tools = [] if any(one.name.startswith(("gcc", "gxx")) for one in conda) else _tools(job)
    taken = take_from_machine(job.context, job.manifest, job.environment).tools
    tools += [_stamp(tool.name, file) for tool in taken for file in tool.files]
    inputs = [source, row.against, job.plan.minor, job.platform, package.archs, force, request.cxx, tools, given, named]
    # the programs of the shell's PATH count by `tools` alone: an active environment is no other input
    return key_of_build(["compiled", *inputs], python, {"PATH": os.devnull})


def _tools(job: Creation) -> list[list[str | int]]:
    """Return the compilers of the system, for a target that brings none."""
    found: list[list[str | int]] = []
    environ = job.context.environ
    for words in ("c++", "gcc", environ.get("CC", ""), environ.get("CXX", "")):
        program = process.find(words.split()[0], environ.get("PATH")) if words.strip() else None
        if program:
            found.append(_stamp(words, Path(program)))
    return found


def _stamp(name: str, file: Path) -> list[str | int]:
    """Return the path, the size and the time of a file of a tool of the system."""
    path = file.resolve()
    return [name, str(path), path.stat().st_size, path.stat().st_mtime_ns]


@contextlib.contextmanager
def _second(job: Creation) -> Iterator[Creation]:
    """Yield a second environment with the files of a job, but for the packages to compile.

    Its folder is the same for the same torch and toolkit, so that a compile cache knows its paths, and a build that was
    killed goes on. It is removed once all packages are compiled.
    """
    trees = [row for row in job.lock.trees_for(job.platform, job.plan.minor) if row.isolated and not row.path]
    lock = replace(job.lock, trees={**job.lock.trees, job.platform: tuple(trees)})
    prefix = built_folder() / f".environment-{job.target.name}-{job.compiled[0].against[:16]}"
    python = str(job.plan.python.path) if job.plan.python and not job.plan.own_python else None
    request = CreateRequest(job.target.name, prefix, LockMode.FROZEN, python=python, check=False, features=job.features)
    other = Creation(job.context, request, job.target, Environment(prefix), job.platform, lambda _: None)
    if "around" in job.__dict__:
        other.around = job.around
    other.lock = lock
    with exclusive(prefix, f"tenv create {job.target.name}", job.context.progress.say):
        state = other.look()
        wanted = owned_by_lock(lock, job.platform, job.plan.minor)
        if state is None or state.status is not Status.READY or state.owned != wanted:
            job.context.progress.say(
                f"a second environment, to compile {', '.join(row.name for row in job.compiled)} in"
            )
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
    """The build of one package."""

    def __init__(self, job: Creation, other: Creation, package: _Package, place: Path) -> None:
        self._job, self._other, self._package, self._place = job, other, package, place
        self._row, self._facts = package.row, package.facts
        self._python = python_program(other.prefix)
        self._so = ", and the environment is as it was" if job.ready else ""
        self._work = place.with_name(f".{place.name}.work")
        self._log = place.with_name(f"{package.row.name}-{place.name[:12]}.log")
        self._environ = self._variables()
        self._has_gpu_code = True
        found = read_torch(site_packages(other.prefix) / "torch")
        self._torch: InstalledTorch | None = None if isinstance(found, Missing) else found

    @property
    def _name(self) -> str:
        return self._row.name if self._row.dynamic else f"{self._row.name} {self._row.version}"

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
        self._plan(source)
        out = self._work / "out"
        shutil.rmtree(out, ignore_errors=True)
        ran = run_logged(
            self._job.uv.build_words(self._python, source, out),
            self._log,
            environ={**self._environ, "UV_NO_CONFIG": "1"},
            folder=source,
            progress=self._job.context.progress,
            title=f"compiling {self._name}",
            ninja=process.find("ninja", self._environ.get("PATH")) or "",
        )
        if ran.status:
            finding = look_up(ran, "TE961", self._name, self._log, user_facts(self._job.context).build_failures)
            raise EnvironmentBrokenError(
                f"{self._name} can't be compiled{self._so}: {finding.subject} {finding.message}", hint=finding.fix
            )
        built = wheel_in(out, self._row, self._so)
        _require_as_locked(self._job, self._row, self._wheel(built))
        self._audit(built)
        self._try(built)
        return keep_built(built, self._place, self._row)

    def _wheel(self, built: Path) -> Wheel:
        file = WheelFile.parse(built.name)
        version = file.version if file else self._row.version
        return Wheel(self._row.name, version, built.name, digest(built), None, self._row.python, path=str(built))

    def _variables(self) -> dict[str, str]:
        """Return the variables of the build: the activation, the switches of the package, and its limits."""
        environ = read_activation(self._other.environment.meta / ACTIVATION).apply(self._job.context.environ)
        environ = {name: value for name, value in environ.items() if name not in ("CC", "CXX") or value.strip()}
        facts, archs = self._facts, self._package.archs
        for row in facts.force if facts else ():
            name, _, value = row.partition("=")
            environ[name] = value
        environ |= {_ARCHS: archs} if archs else {}
        if archs and facts and facts.arch:
            codes, _ = asked_codes(archs)
            environ[facts.arch] = ";".join(str(code.number) for code in sorted(codes))
        jobs, threads = self._jobs(environ)
        environ |= {"MAX_JOBS": str(jobs), "NVCC_THREADS": str(threads), "PYTHONDONTWRITEBYTECODE": "1"}
        environ |= {facts.jobs: str(jobs)} if facts and facts.jobs else {}
        if (ccache := process.find("ccache", environ.get("PATH"))) and (
            nvcc := process.find("nvcc", environ.get("PATH"))
        ):
            environ.setdefault("PYTORCH_NVCC", f"{ccache} {nvcc}")
        return {**environ, **with_standard(environ, self._package.request.cxx, self._work / "programs")}

    def _jobs(self, environ: Mapping[str, str]) -> tuple[int, int]:
        """Return the number of jobs, and the threads of each nvcc: together they fit into the memory."""
        own = self._job.context.environ
        machine, gib = self._job.machine, self._facts.gib if self._facts else 2
        fit = machine.cores.value
        if not isinstance(machine.memory, Missing):
            fit = max(1, min(fit, machine.memory.value // (gib * _GIB)))
        jobs = whole_number(environ.get("MAX_JOBS", "")) or fit
        if not is_own(own, "MAX_JOBS"):
            jobs = min(jobs, fit)
        return jobs, whole_number(own.get("NVCC_THREADS", "")) or max(1, min(4, fit // jobs))

    @contextlib.contextmanager
    def _source(self) -> Iterator[Path]:
        """Yield the folder of the sources; that of an archive stays until it is compiled."""
        row, context = self._row, self._job.context
        folder = self._work / "source"
        if row.file:
            if not folder.is_dir():
                archive = self._work / row.file
                archive.parent.mkdir(parents=True, exist_ok=True)
                here = with_features(self._job.target.manifest).on(self._job.platform)
                url = self._job.uv.sdist_urls([located_sdist(row, here)])[row.digest]
                fetcher = Fetcher(context.settings(), self._job.uv.http, offline=context.offline)
                fetcher.file(RemoteFile(row.file, url, row.digest, row.length), archive)
                unpack(archive, kind_of(row.file), folder, strip=1, limits=context.unpack_limits())
            yield folder
        elif row.path:
            shutil.rmtree(folder, ignore_errors=True)
            original = self._job.requests[row.name].folder
            built = shutil.ignore_patterns("build", "dist", "*.egg-info")  # a package below may have such a name

            def left_out(place: str, names: list[str]) -> set[str]:
                there = {".git", "__pycache__"} & {*names}
                return there | (built(place, names) if Path(place) == original else set())

            shutil.copytree(original, folder, symlinks=True, ignore=left_out)
            yield folder
        else:
            request = self._job.requests[row.name]
            with (
                clone(request, context) as repository,
                repository.files(row.commit, submodules=True) as tree,
            ):
                yield tree

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
            asked = needs_of_build(asked_by_build((self._work / row.file).read_bytes(), row.file, values), self._facts)
            elsewhere = {"torch": "", **there.versions()}
            require_pins(self._job.context, uv, self._python, row, asked, elsewhere, values)
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
        words = ("pip", "install", "--only-binary", ":all:", "--python", str(self._python), "--requirement", "-")
        done = uv.run(
            *words,
            "--constraints",
            str(limits),
            *uv.indexes(),
            text="".join(f"{line}\n" for line in lines),
            settings={},
        )
        if done.status:
            raise uv.error(done.stderr, f"the build requirements of {self._name} can't be installed")

    def _plan(self, source: Path) -> None:
        """Print the plan of a build, and refuse one that can't end well.

        Raises:
            EnvironmentBrokenError: It can't.
        """
        file = source / "pyproject.toml"
        _, backend, _ = build_system(file.read_bytes() if file.is_file() else None, self._name)
        runs = (source / "setup.py").is_file() and backend.startswith("setuptools.")
        record = self._recorded(source) if runs else {}
        table = self._job.context.facts().cuda_gpu_arch
        asked = Asked(self._row.name, self._package.request.cxx, self._package.archs)
        for reason, hint in refusals(record, asked, self._facts, self._torch, table):
            raise EnvironmentBrokenError(f"{self._name} is not compiled{self._so}: {reason}", hint=hint)
        rows = record.get("extensions", [])
        named = any(one.endswith(".cu") for row in rows for one in row["sources"])
        self._has_gpu_code = bool(self._facts) or named or any(source.rglob("*.cu"))
        units = [one for row in rows for one in row["sources"] if one.endswith(_UNITS)]
        if not units:
            return
        cuda = sum(one.endswith(".cu") for one in units)
        archs = self._package.archs or "the GPUs that torch detects"
        count = f"{len(units)} unit{'s'[: len(units) != 1]}"
        where = f"{count}, {cuda} of them for {archs}" if cuda else f"{count}, none for a GPU"
        jobs = self._environ["MAX_JOBS"] if not self._facts or self._facts.ninja else "1"
        gencode = any("-gencode" in flag for row in rows for flag in row["flags"].get("nvcc", []))
        own = "; its setup.py names its architectures itself" if gencode else ""
        say = self._job.context.progress.say
        say(f"{self._name}: {where}, {jobs} at a time{own}; log: {self._log}")

    def _recorded(self, source: Path) -> dict[str, Any]:
        """Return the extensions that a ``setup.py`` would compile, or its error; it runs without a network."""
        words = [sys.executable, "-I", sandbox.__file__, "", str(self._python), record_extensions.__file__]
        done = process.run(words, environment=self._environ, folder=source, timeout=_SECONDS, family=True)
        if isinstance(done, process.Missing):
            return {"error": done.reason}
        with contextlib.suppress(ValueError, IndexError):
            found = json.loads(done.stdout.splitlines()[-1])
            if is_record(found):
                return dict(found)
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(sandbox.SAYS)]
        return {"error": said[-1].strip() if said else f"it ended with status {done.status}"}

    def _audit(self, built: Path) -> None:
        """Refuse a wheel without the GPU code that was asked for.

        Raises:
            EnvironmentBrokenError: It lacks it.
        """
        if not self._torch or not isinstance(self._torch.cuda, Fact):
            return
        libraries = inspect(open_tree(built))
        codes = {code for library in libraries for code in library.code.cubin}
        ptx = {code for library in libraries for code in library.code.ptx}
        asked, _ = asked_codes(self._package.archs)
        lacking = [code for code in sorted(asked) if not any(one.runs_on(code.number) for one in codes)]
        lacking = [code for code in lacking if not any(one.compiles_for(code.number) for one in ptx)]
        if not codes and not ptx and not self._has_gpu_code:
            return
        if not codes and not ptx:
            raise EnvironmentBrokenError(
                f"{self._name} was compiled without GPU code{self._so}: {built.name} has none",
                hint="a variable of its setup.py may force it: `force` in a table of TENV_FACTS names it",
            )
        if lacking:
            there = ", ".join(f"sm_{code}" for code in sorted(codes)) or "none"
            raise EnvironmentBrokenError(
                f"{self._name} has no GPU code for sm_{lacking[0]}{self._so}: {built.name} has {there}",
                hint="its setup.py decides on its architectures; `arch` in a table of TENV_FACTS names its variable",
            )
        found = ", ".join(f"sm_{code}" for code in sorted(codes))
        self._job.context.progress.say(f"{self._name}: GPU code {found}")

    def _try(self, built: Path) -> None:
        """Import the package in the second environment.

        Raises:
            EnvironmentBrokenError: A library of it can't be loaded.
        """
        wheel = self._wheel(built)
        self._job.uv.install(self._python, [wheel], [wheel.name], self._job.context.progress)
        code = "import torch\n" + "".join(f"import {name}\n" for name in _modules(built))
        words = [sys.executable, "-I", sandbox.__file__, "", str(self._python), "-c", code]
        done = process.run(words, environment=self._environ, folder=self._work, timeout=_SECONDS, family=True)
        if isinstance(done, process.Missing) or done.status == 0:
            return
        last = "".join(done.stderr.strip().splitlines()[-1:])
        if _BROKEN.search(last):
            raise EnvironmentBrokenError(f"{self._name} was compiled and can't be imported{self._so}: {last}")
        self._job.context.progress.say(f"{self._name} was compiled; its import ends with: {last}")


def _modules(built: Path) -> list[str]:
    """Return the modules at the top of a wheel."""
    with zipfile.ZipFile(built) as opened:
        tops = {name.split("/")[0].split(".")[0] for name in opened.namelist() if name.endswith((".py", ".so", ".pyd"))}
    return sorted(name for name in tops if name.isidentifier() and not name.startswith("test"))
