"""Looks at Ninja's log and at the compile cache before and after a run of Ninja: what was compiled, at what price."""

from pathlib import PurePath

from tenv.builds.build_environ import cache_storage
from tenv.builds.build_job import BuildJob
from tenv.builds.compile_cache import CacheChoice, CacheUse, choose_cache, hits, use_since
from tenv.builds.compile_times import NinjaRun, compiles_elsewhere, keep_times, run_of
from tenv.builds.ninja_plan import read_log

__all__ = ["CompileWatch"]


class CompileWatch:
    """Watches a run of Ninja that begins now.

    Attributes:
        cache: The compile cache of the build.
        cache_before: Its hits and misses so far; None where it does not say.
    """

    def __init__(self, job: BuildJob) -> None:
        self.cache: CacheChoice = choose_cache(job.target.manifest.cache, job.environ, cache_storage(job))
        self.cache_before = hits(self.cache, job.environ)
        job.log("ccache").unlink(missing_ok=True)  # what it notes from now on is of this run
        self._job, self._log = job, read_log(job.folder)

    def used(self) -> CacheUse:
        """Return what the cache did since."""
        return use_since(self.cache, self._job.environ, self._job.log("ccache"), self.cache_before)

    def keep(self, processor: float, used: CacheUse) -> NinjaRun:
        """Keep what compilations took, after a run that ended well.

        Args:
            processor: The processor time of the run.
            used: What the cache did for it.
        """
        known = 0.0 if compiles_elsewhere(self._job) else processor
        run = run_of(self._log, read_log(self._job.folder), known)
        keep_times(self._job, run, served(run, used))
        return run


def served(run: NinjaRun, used: CacheUse) -> frozenset[str]:
    """Return the objects of a run that came out of the cache, as far as it names them."""
    if used.hits and not used.misses:
        return frozenset(run.objects)
    names = used.served - used.missed
    return frozenset(output for output in run.objects if PurePath(output).stem in names)
