"""The plan of an environment: which files of its prefix stay, decided before any download."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tenv.core.errors import EnvironmentBrokenError, NetworkError, UsageError
from tenv.core.files import digest_bytes
from tenv.core.other_users import closed_part
from tenv.core.prefix import leads_out
from tenv.core.size_text import some_of
from tenv.core.versions import Version
from tenv.environment.integrity import Defect, Faults
from tenv.environment.made_files import is_of_environment
from tenv.environment.state import Owned, State, Status
from tenv.locks.lock import Lock
from tenv.sources.interface import owned_by_lock, sources
from tenv.sources.job import Job, Plan
from tenv.sources.owners import claimed_twice, find_deep_faults, find_faults, unmanaged_while
from tenv.sources.wheels.folder_copy import digest_of_folder
from tenv.sources.wheels.interpreters import Interpreter
from tenv.targets.manifest import with_features
from tenv.toolchain.discover import python_program

if TYPE_CHECKING:
    from tenv.sources.wheels.uv import Uv
    from tenv.targets.search import Target

_NAMED = 8
"""The number of files that `--repair` names."""


def make_plan(job: Job) -> Plan:
    """Return the plan: which files of the prefix stay, and which packages change.

    A ready prefix is updated in place. Any other prefix is cleared and filled again, except the files that were there
    before tenv started and the files of packages that are in neither lock.

    Raises:
        UsageError: `--python` names a Python that the lock does not serve.
    """
    old = job.old
    python, own_python = _python(job)
    minor = python.version.major_minor if python else ""
    if carried := job.context.carried:
        from tenv.locks.lock_features import features_of  # late: few environments come from a bundle

        carried.require(minor, {*job.features} & {*features_of(job.lock)})
    compiled = _compiled_with(job, minor)
    had: Mapping[str, Owned] = _without_changed(old, compiled) if old else {}
    wanted = owned_by_lock(job.lock, job.platform, minor)
    ours = {key: {*had.get(key, {}), *rows} for key, rows in wanted.items()}
    faults = _faults(job, old, wanted) if old else Faults()
    damaged = faults.damaged if job.repair else frozenset[str]()
    same_python = not old or old.python in ("", minor)
    renew = job.fault is not None and job.fault.renew
    scratch = renew or job.exact or not job.has_python() or not (same_python and _is_whole(job, python, own_python))
    scratch = scratch or (not own_python and any(map(_is_of_environment, faults.defects.items())))
    scratch = scratch or _shares_paths(job, had, wanted, damaged)
    unmanaged = () if job.exact or not old else unmanaged_while(old, job.prefix, ours)
    kept = unmanaged if same_python else tuple(name for name in unmanaged if "site-packages" not in Path(name).parts)
    return Plan(
        had=had,
        wanted=wanted,
        scratch=scratch,
        changed=frozenset(_changed(job, had, wanted, damaged, scratch=scratch)),
        unmanaged=kept,
        dropped=len(kept) < len(unmanaged),
        damaged=damaged,
        faults=faults,
        python=python,
        own_python=own_python,
        compiled=compiled,
    )


def _compiled_with(job: Job, minor: str) -> tuple[str, ...]:
    """Return the packages that are compiled against the torch, each with a digest of the manifest's values for it.

    The row of a folder ends with a digest of its sources.

    Args:
        job: The job.
        minor: The Python minor.
    """
    rows = [row for row in job.lock.trees_for(job.platform, minor) if not row.isolated]
    here = with_features(job.target.manifest, job.features).on(job.platform) if rows else job.manifest
    variables = here.variables()

    def values(name: str) -> str:
        request = here.wheels.get(name)
        own = digest_bytes(json.dumps([request and (request.cxx, request.archs), variables], sort_keys=True).encode())
        tree = request and request.tree
        return f"{own} {digest_of_folder(tree.folder)}" if tree and tree.path else own

    return tuple(f"{row.name} {values(row.name)}" for row in rows)


def _without_changed(old: State, wanted: Sequence[str]) -> Mapping[str, Owned]:
    """Return the packages of an environment; one that is to be compiled with other values has no digest."""
    known = {row.partition(" ")[0] for row in old.compiled}
    other = {row.partition(" ")[0] for row in wanted if row not in old.compiled} & known
    return {
        key: {name: (*row[:-1], "") if name in other else row for name, row in rows.items()}
        for key, rows in old.owned.items()
    }


def _faults(job: Job, old: State, wanted: Mapping[str, Owned]) -> Faults:
    """Return the missing and changed files of an environment for `--repair`, and report them.

    Where the records find none, the files are compared with those of the lock, which has to fetch them again. Without
    `--repair`, only an environment with a fault is examined, since a folder may be in the way of its files.
    """
    if not job.repair:
        gutted = old.status is Status.READY and job.fault is not None
        return find_faults(job.environment, old) if gutted else Faults()
    faults, say = find_faults(job.environment, old), job.context.progress.say
    same = all(old.of(key) == rows for key, rows in wanted.items())
    if not faults.owners and same and not job.context.offline:
        try:
            faults |= find_deep_faults(job.context, job.environment, old, job.lock)
        except NetworkError as error:
            say(f"not compared with the files of the lock: {error.message}")
    for what, names in (("missing", faults.missing), ("changed", faults.changed)):
        if names:
            say(f"{what}: {some_of(names, _NAMED)}")
    owners = ", ".join(faults.owners) or "tenv's own files"
    say(f"repairing {owners}" if faults.defects else "every file is intact")
    return faults


def _is_of_environment(row: tuple[str, Defect]) -> bool:
    """Return whether a defect is one of a virtual environment, which can only be made as a whole."""
    return row[1] > Defect.RIGHTS and is_of_environment(row[0])


def _shares_paths(job: Job, had: Mapping[str, Owned], wanted: Mapping[str, Owned], damaged: frozenset[str]) -> bool:
    """Return whether sources claim one path, and files change: who wins follows from the order of a fresh create."""
    return any(_changed(job, had, wanted, damaged, scratch=False)) and claimed_twice(job.prefix, had, {})


def _python(job: Job) -> tuple[Interpreter | None, bool]:
    """Return the Python of the environment, and whether it is a conda package of the lock."""
    lock, platform, asked = job.lock, job.platform, job.python_wanted
    own = next((package for package in lock.conda.get(platform, ()) if package.name == "python"), None)
    if own:
        version = Version(own.version)
        if asked and asked != version.major_minor:
            raise UsageError(
                f"`--python {asked}`: the lock of {job.target.name} has Python {version} as a conda package"
            )
        return Interpreter(python_program(job.prefix), version, headers=True), True
    if not (job.target.manifest.python or lock.python_minors(platform)):
        return None, False
    taken = next((str(program) for work in job.works if (program := work.python())), None)
    if taken and asked:
        raise UsageError(
            f"`--python {asked}`: {job.target.name} takes the debug Python of this host, {taken}",
            hint="name the one that you mean first on PATH",
        )
    wanted = taken or asked
    unfit = () if wanted else job.unfit_pythons
    if job.for_others:
        return _open_python(job, wanted), False
    return choose_python(job.uv, job.target, lock, platform, wanted, job.old, unfit, fetches=job.fetches), False


def _open_python(job: Job, wanted: str | None) -> Interpreter:
    """Return the Python of an environment for other users, who have to reach it; raises UsageError without one."""
    uv, name, own = job.uv, job.target.name, job.context.environ.get("UV_PYTHON_INSTALL_DIR", "")
    minors = job.lock.python_minors(job.platform) or job.target.manifest.python_minors()
    named = wanted and (Path(wanted).is_file() or "/" in wanted)
    found = [] if named else uv.interpreters([wanted] if wanted in minors else minors, for_others=True)
    if found:
        return found[0]
    if not named and (not own or closed_part(Path(own))):
        raise UsageError(
            f"no Python {', '.join(minors)} of this machine can be run by other users",
            hint=f"`UV_PYTHON_INSTALL_DIR=FOLDER`, beside the environment, downloads one for all: `apt install "
            f"python{max(minors, key=Version)}` is another way",
        )
    chosen = choose_python(uv, job.target, job.lock, job.platform, wanted, None, fetches=job.fetches)
    if chosen.path.is_absolute() and (folder := closed_part(chosen.path)):
        raise UsageError(
            f"{chosen.path}, the Python of {name}, lies in {folder}, which other users can't enter",
            hint=f"`tenv create {name} --for-others --python /usr/bin/python3` takes one that they have",
        )
    return chosen


def choose_python(
    uv: "Uv",
    target: "Target",
    lock: Lock,
    platform: str,
    wanted: str | None,
    old: State | None,
    unfit: Collection[str] = (),
    *,
    fetches: bool = True,
) -> Interpreter:
    """Return the Python to use: the requested one, the environment's, the best of the host, or a downloaded one.

    Args:
        uv: Finds and downloads Pythons.
        target: The target.
        lock: Its lock.
        platform: The platform.
        wanted: The requested minor or program; None to choose.
        old: The state of the environment; None without one.
        unfit: The minors not to choose if the lock serves others.
        fetches: Whether a missing Python is downloaded; else its path is its name alone.
    """
    minors = lock.python_minors(platform) or target.manifest.python_minors()
    hint = f"`tenv create {target.name} --python {max(minors, key=Version)}` takes the newest of them" if minors else ""
    if wanted and (Path(wanted).is_file() or "/" in wanted):
        found = uv.inspect(Path(wanted).absolute())
        if found is None or found.version.major_minor not in minors:
            have = f"is Python {found.version}" if found else "is not a working Python"
            raise UsageError(
                f"`--python {wanted}` {have}; the lock of {target.name} serves {', '.join(minors)}", hint=hint
            )
        return found
    if wanted and wanted not in minors:
        about = ":" if wanted[:1].isdigit() else " is no program on PATH;"
        raise UsageError(
            f"`--python {wanted}`{about} the lock of {target.name} serves {', '.join(minors)}",
            hint=hint,
        )
    preferred = wanted or (old.python if old and old.python in minors else "")
    open_ = [minor for minor in minors if minor not in unfit] or minors
    here = uv.interpreters([preferred] if preferred else open_)
    if here:
        return here[0]
    minor = preferred or max(open_, key=Version)
    if kept := uv.unselected(minor):
        return kept
    if not fetches:
        return Interpreter(Path(f"python{minor}"), Version(minor), headers=True)
    try:
        program = uv.fetch_python(minor)
    except NetworkError as error:
        if not (unfit and (others := uv.interpreters(minors))):
            error.hint = _with_others(uv, target.name, [one for one in minors if one != minor], error.hint)
            raise
        other = others[0].version.major_minor
        error.hint = f"install Python {minor}, or use `--python {other}`, with which this PyTorch can't be built"
        raise
    fetched = uv.inspect(program)
    if fetched is None:
        raise EnvironmentBrokenError(f"the downloaded Python {program} does not run")
    return fetched


def _with_others(uv: "Uv", target: str, minors: Collection[str], hint: str) -> str:
    """Return a hint with the minors that this machine has, newest last, before the given hint."""
    here = sorted((minor for minor in minors if uv.interpreters([minor])), key=Version)
    if not here:
        return hint
    create = uv.carried.create if uv.carried else f"tenv create {target}"
    have = f"this machine has Python {', '.join(here)}: `{create} --python {here[-1]}` takes it"
    return f"{have}; or {hint}" if hint else have


def _is_whole(job: Job, python: Interpreter | None, own_python: bool) -> bool:
    """Return whether a prefix is ready and has the requested Python."""
    old = job.old
    if old is None or old.status is not Status.READY:
        return False
    if _records_lead_out(job, old):  # uv and rattler would remove files outside
        return False
    if not old.python:
        return python is None or own_python
    if job.for_others and closed_part(job.before.python, job.prefix):
        return False
    return job.before.python.exists() and job.before.virtual != own_python


def _records_lead_out(job: Job, old: State) -> bool:
    """Return whether a record of installed files names a file outside the prefix."""
    records = ((source.records(job.prefix), old.of(source.section.key)) for source in sources())
    return bool(leads_out(job.prefix, (name for kind, packages in records for name in kind.named(packages))))


def _changed(
    job: Job, had: Mapping[str, Owned], wanted: Mapping[str, Owned], damaged: frozenset[str], *, scratch: bool
) -> Iterator[str]:
    """Yield the keys of the sources whose files in the prefix differ from the lock."""
    for source in sources():
        key = source.section.key
        rows, before = wanted.get(key, {}), had.get(key, {})
        if not rows and not before:
            continue
        same = dict(before) == rows and damaged.isdisjoint(rows) and not scratch
        if not same or not source.records(job.prefix).hold(rows):
            yield key
