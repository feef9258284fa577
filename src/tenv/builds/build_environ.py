"""The environment that every program of a build gets: the active target, the switches, the jobs, the cache."""

from tenv.activation.levels import without_active_lists
from tenv.activation.variables import jobs
from tenv.builds.build_job import BuildJob
from tenv.builds.build_way import BuildWay
from tenv.builds.compile_cache import LOG, cache_variables, choose_cache, path_flags
from tenv.builds.fast_linker import linker_flags
from tenv.builds.memory_launcher import VARIABLE, launcher_of
from tenv.builds.task_costs import links_at_once
from tenv.builds.warning_flags import warning_flags
from tenv.core.missing import Missing
from tenv.host.machine import probe

__all__ = ["build_environ", "cache_storage"]

_HIDDEN = ("C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CPATH")
"""They change what every compilation reads without a trace in its command. ccache hashes their values, which name the
environment, so that no other checkout would get a direct hit; CMake leaves out folders that it takes for the compiler's
own. PyTorch's CMake files find the headers of the environment by CMAKE_PREFIX_PATH."""


def build_environ(job: BuildJob) -> dict[str, str]:
    """Return the environment for the programs of a build."""
    assert job.activation is not None  # noqa: S101 (the environment is there)
    # A build in an activated shell is configured as one outside: a list that names the environment twice is another.
    caller = without_active_lists(job.context.environ)
    active = job.activation.apply(dict(caller))  # the activation sets them, too
    environ = {name: value for name, value in active.items() if name not in _HIDDEN}
    environ |= {name: value for name, value in job.switches.items() if _is_environment(job, name)}
    environ.setdefault("MAX_JOBS", str(jobs(probe(), cuda=False)[0]))
    environ["CMAKE_BUILD_PARALLEL_LEVEL"] = environ["MAX_JOBS"]  # what `cmake --build` and pip's backend read
    memory = probe().memory
    if "CMAKE_JOB_POOLS" not in caller and environ.get("CMAKE_GENERATOR", "Ninja") == "Ninja":
        links = links_at_once(None if isinstance(memory, Missing) else memory.value, job.request.debug.build_type)
        environ |= {"CMAKE_JOB_POOLS": f"link={links}", "CMAKE_JOB_POOL_LINK": "link"}
    if job.toolchain is not None:
        folders = (job.environment.prefix / "bin", *job.toolchain.programs)
        if flags := linker_flags(folders, environ.get("CXX", "c++"), environ):
            environ["LDFLAGS"] = flags
    if flags := warning_flags(job.checkout, environ):
        environ["CXXFLAGS"] = flags
    choice = choose_cache(job.target.manifest.cache, environ, cache_storage(job))
    cached = cache_variables(choice, job.checkout, environ)
    if choice.name == "ccache" and choice.program:
        cached |= path_flags(job.checkout, environ)
        cached[LOG] = str(job.log("ccache"))
    if VARIABLE not in environ and (launcher := launcher_of(job, environ)):
        cached[VARIABLE] = ";".join([str(launcher), *filter(None, [cached.get(VARIABLE)])])
    return {**environ, **cached}


def cache_storage(job: BuildJob) -> str:
    """Return what machines share of the compile cache: the user's settings win over the target."""
    return job.context.settings().cache_storage or job.target.manifest.cache_storage


def _is_environment(job: BuildJob, name: str) -> bool:
    """Tell whether a switch reaches CMake through the environment; what does not is handed over with -D."""
    plain = ("DEBUG", "REL_WITH_DEB_INFO")
    if job.found.way in (BuildWay.BUILD_DEPS, BuildWay.LIBRARIES):
        return True
    return name in plain or name.startswith(("USE_", "BUILD_"))
