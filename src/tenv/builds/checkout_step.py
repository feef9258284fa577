"""Steps `checkout` and `target`: the state of the checkout and of its build folder, and the choice of the target.

The target is the named one, the default one of ``tenv.toml``, else the best one, judged by the build verdict alone.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tenv.builds.build_job import (
    DEBUG_FILES,
    KIND_NAMES,
    BuildJob,
    BuildRequest,
    BuildWay,
    DebugKind,
    Done,
    Products,
    build_finding,
    find_way,
    kind_by_variables,
)
from tenv.builds.extension_checkout import declared_submodules, extension_target, find_extension, require_torch
from tenv.builds.switches import is_on
from tenv.checks.before_create import look_around, require_build
from tenv.checks.checkout_state import EXPECTED
from tenv.checks.choose_target import choose
from tenv.checks.pytorch_source import SourceRequirement, SourceTree, find_source, read_source
from tenv.checks.rules.checkout import STALE, SUBMODULES
from tenv.checks.rules.interface import Finding, Severity
from tenv.core.errors import TenvError, UnfitHostError, UsageError
from tenv.core.file_content import read_text
from tenv.core.files import same_file
from tenv.core.git import Repository, repository_at
from tenv.core.names import normalize
from tenv.core.size_text import some_of
from tenv.environment.state import digests_of
from tenv.host.machine import current_platform
from tenv.locks.lock import Lock
from tenv.locks.lock_file import read_lock
from tenv.targets.config import PROJECT_FILE, read_project_settings
from tenv.targets.search import AUTO
from tenv.targets.torch_beside import require_beside

_UPDATE = "git submodule sync --recursive && git submodule update --init --recursive"
_MIRROR = "git config --global url.https://MIRROR/.insteadOf https://github.com/"
_SHOWN = 4
BUILD_FILES = ("setup.py", "CMakeLists.txt", "pyproject.toml")
_NEEDS_TORCH = re.compile(r"""["']torch(?=["' <>=!~;])""")
_SOURCE = "cmake/PreBuildSteps.cmake, setup.py: check_submodules of github.com/pytorch/pytorch"


def check_checkout(job: BuildJob) -> Done:
    """Read the checkout, and find faults that would end its build early or change its result.

    Raises:
        UsageError: The folder is neither a checkout of PyTorch nor of a package that compiles against torch.
    """
    if not is_pytorch(job.checkout) and (known := find_extension(job.checkout, job.context.facts().torch_packages)):
        job.extension, job.found = known
        return _check_extension(job)
    if job.checkout.is_dir() and not (job.checkout / "torch").is_dir():  # torchvision has a version.txt, too
        raise _other_folder(job.checkout)
    tree = find_source(str(job.checkout), job.context.facts())
    if tree is None:
        raise UsageError(f"{job.checkout} is no checkout of PyTorch", hint="`tenv build --pytorch DIR` names one")
    job.tree = tree
    backend = tree.build_backend.value if isinstance(tree.build_backend, SourceRequirement) else ""
    job.found = find_way(job.checkout, backend)
    findings = [*_no_backend(job)]
    if job.request.target is not None:
        with contextlib.suppress(TenvError):  # the next step reports a missing target
            settle_target(job, job.request.target)
            findings += check_folder(job)
    findings += _submodules(job)
    commit = _commit(job)
    version = tree.version.value
    facts = {"version": version, "way": job.found.way.value, "way_from": job.found.evidence, "commit": commit}
    built = f"{version}{f' at {commit[:10]}' if commit else ''}, built by {job.found.way.value} ({job.found.evidence})"
    return Done(findings, facts, lines=(built,))


def is_pytorch(folder: Path) -> bool:
    """Return whether a folder is a checkout of PyTorch; torchvision has a version.txt, too."""
    return (folder / "torch").is_dir() and isinstance(read_source(folder), SourceTree)


def _check_extension(job: BuildJob) -> Done:
    """Read the checkout of a package that compiles against an installed torch.

    Raises:
        UsageError: An option is for PyTorch alone.
    """
    assert job.extension is not None  # noqa: S101 (the caller has set it)
    _refuse_options(job)
    findings = list[Finding]()
    if job.request.target is not None:
        with contextlib.suppress(TenvError):  # the next step reports a missing target
            settle_target(job, job.request.target)
            findings += check_folder(job)
    findings += _submodules(job)
    commit, way = _commit(job), job.found
    facts = {"extension": job.extension.name, "way": way.way.value, "way_from": way.evidence, "commit": commit}
    at = f" at {commit[:10]}" if commit else ""
    kind = "compiled against libtorch" if way.way is BuildWay.LIBTORCH else "an extension of torch"
    line = f"{job.extension.name}{at}, {kind}, built by {way.way.value} ({way.evidence})"
    return Done(findings, facts, lines=(line,))


def _refuse_options(job: BuildJob) -> None:
    request, way = job.request, job.found.way
    cmake = way is not BuildWay.EXTENSION
    wrong = {
        "--portable": request.portable,
        "--debug-files": bool(request.debug_files),
        "-D": bool(request.defines) and not cmake,
        "--only": bool(request.only) and way is not BuildWay.LIBTORCH,
        "--wheel": request.wheel is not None and way is BuildWay.LIBTORCH,
    }
    for option in (name for name, given in wrong.items() if given):
        raise UsageError(f"{option} is not for {job.package}, which is built by {way.value}")


def _other_folder(folder: Path) -> UsageError:
    """Return the error for a folder that is no checkout of PyTorch: it may be a package that compiles against torch."""
    with contextlib.suppress(OSError):
        if match := _NEEDS_TORCH.search(read_text(folder / "pyproject.toml")):
            what = f"requires an installed torch (`{match[0][1:]}` in its pyproject.toml)"
            name = normalize(folder.name) or "NAME"
            row = f'{name} = {{ path = "{folder}", isolation = false, requires = ["torch"] }}'
            return UsageError(
                f"{folder} {what}, and is built neither by setup.py nor by scikit-build-core",
                hint=f"`{row}` in a target's [pypi-dependencies], and `tenv create TARGET` compiles it",
            )
    known = [name for name in BUILD_FILES if (folder / name).is_file()]
    why = f"and its {' and '.join(known)} name{'s' * (len(known) == 1)} no torch" if known else "and has no build file"
    return UsageError(
        f"{folder} is no checkout of PyTorch or of an extension, {why}",
        hint="`tenv build --pytorch DIR` names a checkout",
    )


def settle_target(job: BuildJob, name: str) -> None:
    """Take a target by its name, with the place of its environment in the checkout.

    Variables of the shell, then those of the target, give values to the options that are not set.
    """
    job.target = job.context.places.find(name)
    if job.extension:
        require_torch(job)
    elif beside := job.target.manifest.beside:
        raise UsageError(
            f"`{name}` is a toolkit for the torch of {beside}, and PyTorch itself is built in an environment of tenv",
            hint="`tenv targets` lists the other targets",
        )
    job.environment = job.context.environment(name, None)
    job.request = job.request.with_variables({**_own_variables(job), **job.context.environ})


def _own_variables(job: BuildJob) -> dict[str, str]:
    """Return the variables that the target itself sets to plain values."""
    requests = job.target.manifest.on(current_platform()).environment
    return {name: request.text for name, request in requests.items() if request.text}


def _no_backend(job: BuildJob) -> Iterator[Finding]:
    missing = [name for name in ("setup.py", "CMakeLists.txt") if not (job.checkout / name).is_file()]
    if job.found.way in (BuildWay.SCIKIT, BuildWay.CMAKE, BuildWay.CMAKE_ONLY):
        needed = missing
    else:
        needed = [name for name in missing if name == "setup.py"]
    if needed:
        yield build_finding(
            "TE905",
            needed[0],
            "is not in the checkout, and the build starts from it",
            f"{job.checkout}: PyTorch {job.tree.version.value}, built by {job.found.way.value}",
            job.found.evidence,
            f"git -C {job.checkout} checkout -- {needed[0]}",
        )


def _commit(job: BuildJob) -> str:
    """Return the commit of the checkout; an empty string where git does not know it."""
    if not (job.checkout / ".git").exists():
        return ""
    repository = repository_at(job.checkout, job.context.environ)
    return (repository.commit("HEAD") or "") if repository else ""


def _submodules(job: BuildJob) -> Iterator[Finding]:
    environ = {**_own_variables(job), **job.context.environ} if hasattr(job, "target") else job.context.environ
    if is_on(environ.get("USE_SYSTEM_LIBS", "")):
        return
    state = None if job.extension else job.tree.state
    missing, other = list(state.broken if state else ()), list[str]()
    nested: list[str] = []
    if (job.checkout / ".git").exists():
        unknown, other = _git_status(job)
        nested = [name for name in unknown if name not in missing and _is_empty(job.checkout / name)]
    elif job.extension:
        nested = list(declared_submodules(job.checkout))
    if missing or nested:
        yield _missing(job, missing, nested)
    if other:
        yield build_finding(
            "TE902",
            other[0],
            f"is at another commit than the checkout pins ({', '.join(other[:_SHOWN])})",
            "git submodule status --recursive",
            "git-submodule(1)",
            f"cd {job.checkout} && {_UPDATE}, unless you mean that commit",
            Severity.WARNING,
        )


def _missing(job: BuildJob, refused: list[str], nested: list[str]) -> Finding:
    """Return the finding for empty submodules: those that PyTorch's own check refuses, and others of git's."""
    names, git = [*refused, *nested], (job.checkout / ".git").exists()
    shown = some_of(names, _SHOWN)
    fix = f"cd {job.checkout} && {_UPDATE}; where github.com can't be reached: {_MIRROR}"
    if not git and job.extension:
        fix = f"git clone --recursive the repository of {job.package}: this is no clone"
    elif not git:
        fix = f"git clone --recursive -b v{job.tree.release} https://github.com/pytorch/pytorch: this is no clone"
    elif not refused:  # whether the build reads them depends on its switches
        fix += f"; where nothing of your build reads {'it' if len(names) == 1 else 'them'}: --allow {SUBMODULES}"
    first = job.checkout / names[0]
    found = [name for name in EXPECTED if (first / name).is_file()]
    what = (
        "is empty" if _is_empty(first) else f"has none of {', '.join(name for name in EXPECTED if name not in found)}"
    )
    return build_finding(
        SUBMODULES,
        names[0],
        f"{what}: {len(names)} of the submodules {'is' if len(names) == 1 else 'are'} incomplete ({shown})",
        f"{job.checkout / '.gitmodules'}" if refused else "git submodule status --recursive",
        _SOURCE if refused else "git-submodule(1)",
        fix,
    )


def _is_empty(folder: Path) -> bool:
    """Return whether a submodule has no files; one that was copied in has them, though git has not fetched it."""
    try:
        return all(entry.name == ".git" for entry in folder.iterdir())
    except OSError:
        return True


def _git_status(job: BuildJob) -> tuple[list[str], list[str]]:
    """Return the submodules that git has not fetched, and those at another commit than is pinned."""
    repository = repository_at(job.checkout, job.context.environ)
    if repository is None or repository.folder.resolve() != job.checkout.resolve():
        return [], []
    return _status_of(repository)


def _status_of(repository: Repository) -> tuple[list[str], list[str]]:
    answer = repository.ask("submodule", "status", "--recursive") or ""
    rows = [line for line in answer.splitlines() if line[:1] in "-+U" and line.strip()]
    names = {line.split()[1]: line[0] for line in rows}
    missing = [name for name, mark in names.items() if mark == "-"]
    return missing, [name for name, mark in names.items() if mark in "+U"]


def check_folder(job: BuildJob) -> Iterator[Finding]:
    """Yield the faults of an existing build folder, once the target is known.

    A folder that tenv configured has a note of its inputs; of another one, CMake's cache has the place.
    """
    again = "--fresh" if job.found.way is not BuildWay.LIBRARIES else "--clean"
    words = ["tenv", "build", job.target.name, "--pytorch", str(job.checkout), *job.request.options, again]
    command = shlex.join(words)
    if job.request.fresh or job.request.clean:
        return
    there = job.folder.is_dir() or job.found.way is BuildWay.LIBRARIES
    stamp = job.stamp() if there else {}  # after `rm -rf build` everything is made anew
    stamp = stamp if "target" in stamp else {}  # a configuration that failed is of no target
    if stamp and job.found.products is Products.SOURCE and stamp.get("target") != job.target.name:
        yield build_finding(
            "TE904",
            str(job.folder),
            f"was built with the target {stamp.get('target')}, and this revision keeps its products in the checkout",
            f"{job.stamp_file}",
            f"{job.found.evidence}: the build folder is `{job.folder.name}`",
            command,
        )
    elif stamp and _recompiles(stamp.get("switches"), job.switches) and job.found.products is Products.SOURCE:
        reason = f"was configured with {_words(stamp.get('switches'))}, and this build has {_words(job.switches)}"
        reason += ": it is configured and compiled anew"
        keep = shlex.join([*words[:5], *_options_of(stamp.get("switches"))])
        yield replace(_stale(job, reason, str(job.stamp_file), f"`{keep}` goes on with it"), severity=Severity.WARNING)
    elif reason := _foreign(job):
        yield _stale(job, reason, str(job.folder / "CMakeCache.txt"), command)


def _recompiles(before: object, now: dict[str, str]) -> bool:
    """Return whether other switches make everything anew; `DEBUG_FILES` compiles some files alone."""
    old = before if isinstance(before, dict) else {}
    return {**old, DEBUG_FILES: ""} != {**now, DEBUG_FILES: ""}


def _options_of(switches: object) -> list[str]:
    """Return the options of a build with some switches, for a command to type."""
    rows = {str(name): str(value) for name, value in switches.items()} if isinstance(switches, dict) else {}
    kind = kind_by_variables(rows) or DebugKind.NONE
    files = tuple(filter(None, rows.get(DEBUG_FILES, "").split(";")))
    defines = {name: value for name, value in rows.items() if name not in (*KIND_NAMES, DEBUG_FILES)}
    return BuildRequest(Path(), debug=kind, debug_files=files, defines=defines).options


def _words(switches: object) -> str:
    rows = switches if isinstance(switches, dict) else {}
    return "the switches " + ", ".join(f"{name}={value}" for name, value in rows.items()) if rows else "no switches"


def _stale(job: BuildJob, reason: str, evidence: str, command: str) -> Finding:
    source = "CMake keeps compilers, paths and switches in CMakeCache.txt and does not look for them again"
    return build_finding(STALE, str(job.folder), reason, evidence, source, command)


def _foreign(job: BuildJob) -> str:
    """Return how the cache of a build folder shows another build, or an empty string."""
    cache = job.cmake_cache()
    if not cache:
        return ""
    home = cache.get("CMAKE_HOME_DIRECTORY", "")
    if home and not same_file(home, job.checkout):
        return f"was configured in {home}, and a build folder can't be moved"
    beside = job.target.manifest.beside
    prefix = str(require_beside(Path(beside)).prefix if beside else job.environment.prefix)
    python = cache.get("Python_EXECUTABLE", cache.get("PYTHON_EXECUTABLE", ""))
    if python and not python.startswith(prefix + os.sep):
        return f"was configured for the Python {python}, and the target's is in {prefix}"
    ninja = cache.get("CMAKE_MAKE_PROGRAM", "")
    if ninja and not Path(ninja).exists():
        return f"was configured for {ninja}, which is gone"
    compiler = cache.get("CMAKE_CXX_COMPILER", "")
    if compiler and not Path(compiler).exists():
        return f"was configured for the compiler {compiler}, which is gone"
    return ""


def named_target(start: Path) -> str | None:
    """Return the default target of the nearest ``tenv.toml`` upwards; None without one, or where it names none.

    Raises:
        UsageError: The file can't be read.
    """
    file = next((found for folder in (start, *start.parents) if (found := folder / PROJECT_FILE).is_file()), None)
    return (read_project_settings(file.parent).default or None) if file else None


def check_target(job: BuildJob) -> Done:
    """Choose the target, and judge it on this machine and for this checkout.

    Raises:
        TenvError: There is no such target, or none suits.
    """
    job.around = look_around(job.context, "" if job.extension else str(job.checkout))
    lines: list[str] = []
    findings: list[Finding] = []
    if job.extension:
        settle_target(job, extension_target(job))
        findings += check_folder(job) if job.request.target in (None, AUTO) else ()
    elif job.request.target in (None, AUTO):
        choice = choose(job.context, job.around, job.context.progress.say)
        lines += choice.lines()
        settle_target(job, choice.target)
        findings += _without_gpu(job)
        findings += check_folder(job)
    else:
        settle_target(job, str(job.request.target))
    try:
        findings += require_build(job.target, job.around, _lock(job), digests_of(job.environment.state()))
    except UnfitHostError as error:
        findings += [_as_finding(row) for row in error.findings]
    if job.request.fresh or job.request.clean:  # which cures it
        findings = [found for found in findings if found.code != STALE]
    facts = {"target": job.target.name, "prefix": str(job.environment.prefix)}
    return Done(findings, facts, lines=(*lines, f"{job.target.name}: {job.target.manifest.description}"))


def _lock(job: BuildJob) -> Lock | None:
    try:
        return read_lock(job.target.lock_file, job.target.name)
    except TenvError:
        return None


def _as_finding(row: dict[str, str]) -> Finding:
    return Finding(**{**row, "severity": Severity(row["severity"])})  # type: ignore[arg-type]


def _with_cuda(job: BuildJob) -> Iterator[str]:
    """Yield the targets with CUDA that are for the revision and this platform."""
    for name in job.context.places.names():
        with contextlib.suppress(TenvError):  # a manifest of the user that can't be read
            manifest = job.context.places.find(name).manifest
            accepted, here = manifest.pytorch, current_platform() in manifest.platforms and not manifest.beside
            if manifest.requirements.cuda and here and (accepted is None or str(job.tree.release) in accepted):
                yield name


def _without_gpu(job: BuildJob) -> list[Finding]:
    """Return how a build server asks for CUDA, where the machine has led to a target without."""
    manifest = job.target.manifest
    if manifest.requirements.cuda or "cuda-toolkit" in manifest.system:
        return []
    example = max(_with_cuda(job), key=lambda name: (name.startswith("cuda"), "-" not in name, name), default="")
    if not example:  # no built-in target has CUDA for this revision
        return []
    return [
        build_finding(
            "TE911",
            job.target.name,
            "has no CUDA: this machine has no GPU, and a build without one is what `auto` takes",
            "no target is named",
            "docs/build.md",
            f"`tenv build {example} --pytorch {job.checkout}` builds with CUDA; compiling needs neither GPU nor driver",
            Severity.NOTE,
        )
    ]
