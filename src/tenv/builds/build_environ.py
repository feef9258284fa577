"""The environment that every program of a build gets: the active target, the switches, the jobs, the cache, the flags.

The linker is mold or lld where the target brings one, since linking libtorch with GNU ld takes minutes.

Warnings of newer GCCs that end the build of a dependency are kept as warnings. FBGEMM compiles with ``-Werror``, and
GCC 12 takes the undefined upper halves in its own AVX-512 headers for values that are used uninitialized
(https://gcc.gnu.org/bugzilla/show_bug.cgi?id=105593): UtilsAvx512.cc, QuantUtilsAvx512.cc and
FbgemmBfloat16ConvertAvx512.cc fail at each of six commits from 2022 on, PyTorch 2.4's among them, with GCC 12.2,
which needs both options; GCC 11.3 needs none. Others report it of GCC 12.1 to 14 (pytorch/pytorch#77939, #104519,
#129358, #150846).
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tenv.activation.levels import without_active_lists
from tenv.activation.variables import jobs
from tenv.builds.build_job import DEBUG_FILES, KIND_NAMES, BuildJob, BuildWay
from tenv.builds.compile_cache import LOG, CacheChoice, cache_variables, choose_cache, path_flags
from tenv.builds.switches import is_off
from tenv.builds.task_costs import VARIABLE, launcher_of, links_at_once
from tenv.core import process
from tenv.core.file_content import read_text
from tenv.core.missing import Missing
from tenv.core.untrusted import whole_number
from tenv.host.machine import probe

_HIDDEN = ("C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CPATH")
"""They change the headers of every compilation without a trace in its command. ccache hashes their values, which name
the environment, so that no other checkout would get a direct hit; CMake leaves out folders that it takes for the
compiler's own. PyTorch's CMake files find the headers of the environment by CMAKE_PREFIX_PATH."""


def build_environ(job: BuildJob) -> dict[str, str]:
    """Return the environment for the programs of a build."""
    assert job.activation is not None  # noqa: S101 (the environment is there)
    # A build in an activated shell is configured as one outside: a list that names the environment twice is another.
    caller = without_active_lists(job.context.environ)
    active = job.activation.apply(dict(caller))  # the activation sets them, too
    hidden = () if job.extension else _HIDDEN  # cpp_extension names no folder but those of torch and CUDA
    environ = {name: value for name, value in active.items() if name not in (*hidden, *KIND_NAMES, DEBUG_FILES)}
    environ |= {name: value for name, value in job.switches.items() if _is_environment(job, name)}
    environ.setdefault("MAX_JOBS", str(jobs(probe(), cuda=False)[0]))
    environ["CMAKE_BUILD_PARALLEL_LEVEL"] = environ["MAX_JOBS"]  # for `cmake --build` and pip's backend
    memory = probe().memory
    if "CMAKE_JOB_POOLS" not in caller and environ.get("CMAKE_GENERATOR", "Ninja") == "Ninja":
        links = links_at_once(None if isinstance(memory, Missing) else memory.value, job.request.debug.build_type)
        environ |= {"CMAKE_JOB_POOLS": f"link={links}", "CMAKE_JOB_POOL_LINK": "link"}
    if job.toolchain is not None:
        folders = (job.environment.prefix / "bin", *job.toolchain.programs)
        if flags := linker_flags(folders, environ.get("CXX", "") or "c++", environ):
            environ["LDFLAGS"] = flags
    if flags := warning_flags(job.checkout, environ):
        environ["CXXFLAGS"] = flags
    choice = cache_choice(job, environ)
    cached = cache_variables(choice, job.checkout, environ)
    if choice.name == "ccache" and choice.program:
        cached |= path_flags(job.checkout, environ)
        cached[LOG] = str(job.log("ccache"))
    if job.extension:
        return {**environ, **cached}
    if VARIABLE not in environ and (launcher := launcher_of(job, environ)):
        cached[VARIABLE] = ";".join([str(launcher), *filter(None, [cached.get(VARIABLE)])])
    return {**environ, **cached}


def cache_choice(job: BuildJob, environ: Mapping[str, str]) -> CacheChoice:
    """Return the compile cache of a build, with the storage that machines share unless it does not answer.

    The user's settings win over the target.
    """
    settings, manifest = job.context.settings(), job.target.manifest
    storage = settings.cache_storage or manifest.cache_storage
    wanted = manifest.cache if manifest.cache_name or not settings.distribute else "auto"
    found = choose_cache(wanted, environ, storage, distributes=bool(settings.distribute))
    return replace(found, storage="") if job.storage_gone else found


def _is_environment(job: BuildJob, name: str) -> bool:
    """Return whether a switch reaches CMake through the environment; others are passed with -D."""
    if job.found.way in (BuildWay.BUILD_DEPS, BuildWay.LIBRARIES):
        return True
    return name in KIND_NAMES or name.startswith(("USE_", "BUILD_"))


_LINKERS = {"mold": "ld.mold", "lld": "ld.lld"}
_SECONDS = 20.0


def linker_flags(folders: tuple[Path, ...], compiler: str, environ: Mapping[str, str]) -> str:
    """Return the LDFLAGS with which a build links by the fastest linker of its environment.

    Args:
        folders: The ``bin`` folders of the environment.
        compiler: The C++ compiler's command, which must know the linker: GCC knows mold from 12.1 on.
        environ: The environment of the build; a linker that its LDFLAGS name stays.

    Returns:
        The LDFLAGS; unchanged where the environment has no such linker.
    """
    flags = environ.get("LDFLAGS", "")
    if "-fuse-ld" in flags:
        return flags
    for name, program in _LINKERS.items():
        found = next((folder for folder in folders if os.access(folder / program, os.X_OK)), None)
        if found and _knows(compiler, name, environ):
            return f"{flags} -fuse-ld={name}".strip()
    return flags


def _knows(compiler: str, name: str, environ: Mapping[str, str]) -> bool:
    words = [*process.command_words(compiler), f"-fuse-ld={name}", "-Wl,--version"]
    answer = process.run(words, environment=environ, timeout=_SECONDS)
    return not isinstance(answer, Missing) and answer.status == 0


OPTIONS = ("-Wno-error=maybe-uninitialized", "-Wno-error=uninitialized")
_FIRST = 12
"""The first major version of GCC with such warnings."""

_MACRO = re.compile(r"^#define (\w+) ?(.*)$", re.MULTILINE)
_SECONDS = 20.0


def warning_flags(checkout: Path, environ: Mapping[str, str]) -> str:
    """Return the CXXFLAGS with which FBGEMM compiles; unchanged where it needs no more.

    Args:
        checkout: The PyTorch checkout.
        environ: The environment of the build.
    """
    flags = environ.get("CXXFLAGS", "")
    try:
        given = shlex.split(flags)
    except ValueError:  # a quotation that does not end: the build itself reports it
        return flags
    missing = [option for option in OPTIONS if option not in given and "-Wno-error" not in given]
    if not missing or is_off(environ.get("USE_FBGEMM", "1")) or not _stops_at_warnings(checkout):
        return flags
    words = [*process.command_words(environ.get("CXX", "") or "c++"), "-dM", "-E", "-x", "c++", os.devnull]
    answer = process.run(words, environment=environ, timeout=_SECONDS)
    macros = {} if isinstance(answer, Missing) or answer.status else dict(_MACRO.findall(answer.stdout))
    gcc = None if "__clang__" in macros else whole_number(macros.get("__GNUC__", ""))
    if gcc is not None and gcc >= _FIRST and "__x86_64__" in macros:
        return " ".join([*filter(None, [flags]), *missing])
    return flags


def _stops_at_warnings(checkout: Path) -> bool:
    try:
        return "-Werror" in read_text(checkout / "third_party" / "fbgemm" / "CMakeLists.txt")
    except (OSError, ValueError):
        return False
