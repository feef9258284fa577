"""The storage behind a compile cache: from a manifest or the settings to the variables of ccache and sccache."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tenv.builds import estimate_step
from tenv.builds.compile_cache import (
    CacheChoice,
    CacheUse,
    cache_variables,
    choose_cache,
    counts,
    noted_use,
    path_flags,
    storage_variables,
    try_compile,
    unreached,
)
from tenv.core.untrusted import is_storage
from tests.builds.conftest import Workshop, codes, step
from tests.support.each import each
from tests.support.projects import call

CCACHE = """#!/bin/sh
# Compiles, and notes a hit of the storage, as ccache does.
printf '# %s\\n%s\\nremote_storage_hit\\n' "$CCACHE_REMOTE_STORAGE" "${RESULT:-direct_cache_hit}" >> "$CCACHE_STATSLOG"
printf '%s|%s\\n' "$C_INCLUDE_PATH$CPLUS_INCLUDE_PATH$CPATH" "$*" >> "${CCACHE_STATSLOG%.log}.commands"
exec "$@"
"""
SCCACHE = """#!/bin/sh
# Ends as sccache does where its storage does not answer.
echo "sccache: error: Timed out waiting for server startup." >&2
exit 2
"""


@each(
    "storage, expected",
    [
        ("gha", {"SCCACHE_GHA_ENABLED": "true"}),
        ("redis://10.0.0.5:6379", {"SCCACHE_REDIS_ENDPOINT": "redis://10.0.0.5:6379"}),
        ("rediss://r.example/2", {"SCCACHE_REDIS_ENDPOINT": "rediss://r.example", "SCCACHE_REDIS_DB": "2"}),
        (
            "s3://bucket/a/b?region=eu-west-1&endpoint=minio.example:9000&use_ssl=false",
            {
                "SCCACHE_BUCKET": "bucket",
                "SCCACHE_S3_KEY_PREFIX": "a/b",
                "SCCACHE_REGION": "eu-west-1",
                "SCCACHE_ENDPOINT": "minio.example:9000",
                "SCCACHE_S3_USE_SSL": "false",
            },
        ),
        ("gs://bucket", {"SCCACHE_GCS_BUCKET": "bucket", "SCCACHE_GCS_RW_MODE": "READ_WRITE"}),
        ("memcached://m.example:11211", {"SCCACHE_MEMCACHED_ENDPOINT": "tcp://m.example:11211"}),
        (
            "https://dav.example/torch",
            {"SCCACHE_WEBDAV_ENDPOINT": "https://dav.example", "SCCACHE_WEBDAV_KEY_PREFIX": "torch"},
        ),
        ("file:///srv/cache", {"SCCACHE_DIR": "/srv/cache"}),
    ],
)
def test_sccache_gets_the_variables_of_its_storage(storage: str, expected: dict[str, str]) -> None:
    found = storage_variables("sccache", storage, {"XDG_RUNTIME_DIR": "/usr"})
    assert Path(found.pop("SCCACHE_SERVER_UDS")).parent == Path("/usr")
    assert found == expected


def test_a_socket_whose_path_is_too_long_lies_in_the_cache_of_the_user(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    found = storage_variables("sccache", "gha", {"XDG_RUNTIME_DIR": str(long), "HOME": "/root"})
    assert Path(found["SCCACHE_SERVER_UDS"]).parent == Path("/root/.cache")


def test_another_storage_has_another_server() -> None:
    """A server that runs keeps the storage that it was started with."""
    environ = {"XDG_RUNTIME_DIR": "/usr"}
    sockets = [storage_variables("sccache", f"redis://{host}", environ)["SCCACHE_SERVER_UDS"] for host in "aab"]
    assert sockets[0] == sockets[1] != sockets[2]


@each("name", ["SCCACHE_REDIS_ENDPOINT", "SCCACHE_CONF", "SCCACHE_SERVER_UDS"])
def test_what_the_shell_says_of_sccache_wins(name: str) -> None:
    assert storage_variables("sccache", "redis://a", {name: "mine"}) == {}


@each(
    "storage, expected",
    [
        ("redis://a:1", {"CCACHE_REMOTE_STORAGE": "redis://a:1"}),
        ("https://a/b", {"CCACHE_REMOTE_STORAGE": "https://a/b"}),
        ("file:///srv/c", {"CCACHE_REMOTE_STORAGE": "file:/srv/c"}),
        ("s3://bucket", {}),
        ("gha", {}),
    ],
)
def test_ccache_shares_what_it_knows(storage: str, expected: dict[str, str]) -> None:
    choice = CacheChoice("ccache", Path("/bin/ccache"), storage)
    found = cache_variables(choice, Path("/src"), {})
    assert {name: value for name, value in found.items() if "REMOTE" in name} == expected
    mine = cache_variables(choice, Path("/src"), {"CCACHE_REMOTE_STORAGE": "file:/mine"})
    assert "CCACHE_REMOTE_STORAGE" not in mine


@each(
    "storage, there, expected",
    [
        ("", ("ccache", "sccache"), "ccache"),
        ("s3://bucket", ("ccache", "sccache"), "sccache"),
        ("s3://bucket", ("ccache",), "sccache"),  # which is named as missing
        ("https://dav.example/torch", ("ccache", "sccache"), "sccache"),
        ("https://dav.example/torch", ("ccache",), "ccache"),
        ("redis://a", ("ccache", "sccache"), "ccache"),
        ("rediss://a", ("ccache", "sccache"), "sccache"),
        ("gha", ("sccache",), "sccache"),
    ],
)
def test_auto_takes_the_cache_that_goes_on_without_its_storage(
    storage: str, there: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    folder = tmp_path / f"{expected}-{len(there)}-{len(storage)}"
    folder.mkdir()
    for name in there:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    found = choose_cache("auto", {"PATH": str(folder)}, storage)
    assert (found.name, found.program) == (expected, folder / expected if expected in there else None)


@each(
    "cache, storage, expected",
    [
        ("ccache", "redis://a:1#read-only", {"CCACHE_REMOTE_STORAGE": "redis://a:1|read-only"}),
        ("sccache", "s3://bucket/a#read-only", {"SCCACHE_BUCKET": "bucket", "SCCACHE_S3_RW_MODE": "READ_ONLY"}),
        ("sccache", "rediss://a#read-only", {"SCCACHE_REDIS_RW_MODE": "READ_ONLY"}),
        ("sccache", "https://a/b#read-only", {"SCCACHE_WEBDAV_RW_MODE": "READ_ONLY"}),
        ("sccache", "gs://b#read-only", {"SCCACHE_GCS_RW_MODE": "READ_ONLY"}),
        ("sccache", "memcached://m#read-only", {"SCCACHE_MEMCACHED_RW_MODE": "READ_ONLY"}),
        ("sccache", "file:///srv/c#read-only", {"SCCACHE_DIR": "/srv/c", "SCCACHE_LOCAL_RW_MODE": "READ_ONLY"}),
    ],
)
def test_a_storage_is_only_read(cache: str, storage: str, expected: dict[str, str]) -> None:
    assert is_storage(storage)
    found = storage_variables(cache, storage, {})
    assert expected.items() <= found.items()
    assert not any("#" in value for value in found.values())


@each(
    "storage",
    [
        *("gha", "redis://:password@a:6379/2", "redis://a:1|shards=a,b", "file:///srv/c", "memcached://m:11211/below"),
        *("s3://b/p?region=r&endpoint=minio:9000&use_ssl=true", "https://u:p@a/b?c=d#read-only"),
    ],
)
def test_a_storage_is_one(storage: str) -> None:
    assert is_storage(storage)


def test_the_counts_of_sccache_are_its_json(tmp_path: Path) -> None:
    script = tmp_path / "sccache"
    choice = CacheChoice("sccache", script)
    for text, expected in (
        (
            '{"stats": {"cache_hits": {"counts": {"C/C++": 3, "CUDA": 2}}, "cache_misses": {"counts": {}}}}',
            (5, 0, 0, 0),
        ),
        (
            '{"stats": {"cache_hits": {"counts": {}}, "cache_misses": {"counts": {"C/C++": 4}}, '
            '"dist_compiles": {"10.0.0.7:10501": 2, "10.0.0.8:10501": 1}, "dist_errors": 1}}',
            (0, 4, 3, 1),
        ),
        ('{"stats": {"cache_hits": 3}}', None),
        ("Cache hits 3", None),
    ):
        script.write_text(f"#!/bin/sh\n[ \"$*\" = '--show-stats --stats-format json' ] && echo '{text}'\n")
        script.chmod(0o755)
        assert counts(choice, dict(os.environ)) == expected


@each(
    "storage",
    [
        *("redis://[", "s3://", "file://", "ftp://a/b", "s3", "gha://x", "redis://a b", ""),
        *("redis://a:port", "redis://a:0", "redis://a/b", "redis://a/0?db=1", "redis://a#readonly", "redis://:1"),
        *("s3://b?regoin=r", "s3://key:secret@b", "gs://b?a", "file://host/a", "memcached://a:99999"),
    ],
)
def test_what_is_no_storage(storage: str) -> None:
    assert not is_storage(storage)


def program(workshop: Workshop, name: str, text: str) -> Path:
    """Write a program of the environment's `bin` folder beside the project, where PATH finds it."""
    folder = workshop.project.folder / "programs"
    folder.mkdir(exist_ok=True)
    made = folder / name
    made.write_text(text)
    made.chmod(0o755)
    return folder


@pytest.fixture
def cached(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A workshop whose target has ccache and a storage."""
    text = workshop.project.manifest.read_text()
    changed = text.replace('cache = "off"', 'cache = "ccache"\nstorage = "redis://10.0.0.5:6379"')
    assert changed != text
    workshop.project.manifest.write_text(changed)
    folder = program(workshop, "ccache", CCACHE)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return workshop


def test_the_build_says_what_came_out_of_a_shared_cache(cached: Workshop) -> None:
    said = call("build", "tiny", "--pytorch", str(cached.checkout), "--only", "c10").err
    assert re.search(r"100 % of \d+ compilations came out of the cache \(redis://10\.0\.0\.5:6379\)", said)
    log = cached.checkout / ".tenv" / "builds" / "tiny" / "ccache.log"
    assert "# redis://10.0.0.5:6379" in log.read_text()


@pytest.mark.parametrize(
    ("counted", "result", "words"),
    [
        (20, "direct_cache_hit", "does not count, though it answered for the canary (100 % of 2 compilations): they"),
        (2, "direct_cache_hit", "counts as it answered for the canary (100 % of 2 compilations); without it 2"),
        (2, "cache_miss", ""),
    ],
)
@pytest.mark.long
def test_the_estimate_after_the_canary_counts_on_the_cache(
    cached: Workshop, monkeypatch: pytest.MonkeyPatch, counted: int, result: str, words: str
) -> None:
    monkeypatch.setattr(estimate_step, "_COUNTED", counted)
    monkeypatch.setenv("RESULT", result)
    said = call("build", "tiny", "--pytorch", str(cached.checkout)).err
    assert ("the compile cache" in said) is bool(words)
    assert words in " ".join(said.split())


@pytest.mark.long
def test_a_storage_that_the_cache_does_not_know_is_a_note(cached: Workshop) -> None:
    call("config", "cache-storage", "s3://bucket")
    found = step(cached.build(), "build")
    assert "TE933" in codes(found, "note")
    (note,) = [row for row in found["findings"] if row["code"] == "TE933"]
    assert "s3://bucket" in note["message"]
    assert 'cache = "sccache"' in note["fix"]


@pytest.mark.long
def test_a_storage_that_does_not_answer_ends_the_build_early(cached: Workshop) -> None:
    manifest = cached.project.manifest
    manifest.write_text(manifest.read_text().replace('cache = "ccache"', 'cache = "sccache"'))
    program(cached, "sccache", SCCACHE)
    ended = cached.run()
    assert cached.fails() == ("probe", ("TE922",))
    assert "Timed out waiting for server startup" in ended.out
    assert "redis://10.0.0.5:6379" in ended.out


@pytest.mark.long
def test_a_build_goes_on_without_a_storage_that_does_not_answer(cached: Workshop) -> None:
    manifest = cached.project.manifest
    manifest.write_text(manifest.read_text().replace('cache = "ccache"', 'cache = "sccache"'))
    program(
        cached, "sccache", f'{SCCACHE.replace("exit 2", "")}[ -z "$SCCACHE_REDIS_ENDPOINT" ] || exit 2\nexec "$@"\n'
    )
    found = cached.build("--only", "c10")
    (warned,) = [row for row in step(found, "probe")["findings"] if row["code"] == "TE922"]
    assert warned["severity"] == "warning"
    assert "so the build goes on without it" in warned["message"]


@each(
    "noted, logged, said",
    [
        ("remote_storage_hit", "", ""),
        (
            "remote_storage_error",
            "Redis connection OK\nRedis command failed: NOAUTH required.",
            "NOAUTH",
        ),
        ("remote_storage_timeout", "Redis GET ccache:1\nRedis GET ccache:2", "remote_storage_timeout"),
    ],
)
def test_a_storage_that_ccache_does_not_reach_has_a_reason(tmp_path: Path, noted: str, logged: str, said: str) -> None:
    """ccache compiles without a word, and the counts of a build show no difference to an empty storage."""
    script, place = tmp_path / "ccache", tmp_path / "place"
    lines = [f"[2026] {line}" for line in (*logged.splitlines(), "Marking remote storage backend for redis as failed")]
    quoted = " ".join(shlex.quote(line) for line in lines)
    script.write_text(
        f'#!/bin/sh\n[ -d "$CCACHE_DIR" ] && exit 1\n'
        f"printf '# probe.c\\n{noted}\\n' > \"$CCACHE_STATSLOG\"\n"
        f"printf '%s\\n' {quoted} > \"$CCACHE_LOGFILE\"\n"
    )
    script.chmod(0o755)
    choice, environ = CacheChoice("ccache", script), {**os.environ, "CCACHE_DIR": str(tmp_path)}
    assert unreached(choice, environ, place, 9) == ""
    found = unreached(choice, {**environ, "CCACHE_REMOTE_STORAGE": "redis://a"}, place, 9)
    assert said in found
    assert bool(found) is bool(said)
    assert not any(place.iterdir())


def test_a_password_alone_reaches_redis_through_ccache() -> None:
    found = storage_variables("ccache", "redis://:secret@a:1/2", {})
    assert found == {"CCACHE_REMOTE_STORAGE": "redis://secret@a:1/2"}
    assert storage_variables("ccache", "redis://me:secret@a:1", {})["CCACHE_REMOTE_STORAGE"] == "redis://me:secret@a:1"


def test_a_manifest_with_a_login_is_refused(cached: Workshop) -> None:
    manifest = cached.project.manifest
    manifest.write_text(manifest.read_text().replace("redis://10", "redis://me:secret@10"))
    ended = call("check", "tiny")
    assert ended.status == 3
    assert "has a login" in ended.err
    assert "secret" not in ended.err


def test_what_ccache_noted_counts_for_this_build_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert noted_use(log) is None
    log.write_text("# a.c\ncache_miss\n# b.c\ndirect_cache_hit\n# c.c\npreprocessed_cache_hit\nremote_storage_hit\n")
    assert noted_use(log) == CacheUse(2, 1, frozenset(("b.c", "c.c")), frozenset(("a.c",)))


@pytest.mark.long
def test_no_compilation_reads_the_variables_of_include_folders(
    cached: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ccache hashes their values, and they name the environment: another checkout would get no direct hit."""
    manifest = cached.project.manifest
    manifest.write_text(f'{manifest.read_text()}\n[activation.env]\nCPATH = "/opt/own/include"\n')
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/opt/mine/include")
    cached.build()
    rows = (cached.checkout / ".tenv" / "builds" / "tiny" / "ccache.commands").read_text().splitlines()
    compiled = [row for row in rows if " -c " in row and "probe.c" not in row]
    assert compiled
    assert {row.partition("|")[0] for row in compiled} == {""}
    assert all(f"-fmacro-prefix-map={cached.checkout}=." in row for row in compiled)


def test_flags_of_the_user_stay_and_an_old_compiler_gets_none(tmp_path: Path) -> None:
    old = tmp_path / "old-cc"
    old.write_text('#!/bin/sh\ncase "$*" in *-fmacro-prefix-map*) exit 1;; esac\n')
    old.chmod(0o755)
    environ = {**os.environ, "CXXFLAGS": "-O1", "CFLAGS": "-g", "CC": str(old), "CXX": "c++"}
    assert path_flags(Path("/src"), environ) == {"CXXFLAGS": "-O1 -fmacro-prefix-map=/src=."}
    mine = {**environ, "CXXFLAGS": "-fmacro-prefix-map=/a=b"}
    assert path_flags(Path("/src"), mine) == {}


@each("compiler, ran", [({}, "cc"), ({"CC": ""}, "cc"), ({"CC": "gcc -m64"}, "gcc -m64"), ({"CC": "gcc 'x"}, "gcc 'x")])
def test_the_compiler_of_a_trial_is_that_of_the_build(tmp_path: Path, compiler: dict[str, str], ran: str) -> None:
    """CMake takes an empty CC for none; an unended quotation is the build's to report."""
    cache = tmp_path / "ccache"
    cache.write_text('#!/bin/sh\necho "$@" >&2; exit 1\n')
    cache.chmod(0o755)
    said = try_compile(CacheChoice("ccache", cache), {"PATH": os.defpath, **compiler}, tmp_path, 20)
    assert said == f"{ran} -c probe.c -o probe.o"


def test_a_reason_of_a_cache_has_no_login(tmp_path: Path) -> None:
    """It goes into the notes of a build."""
    cache = tmp_path / "sccache"
    cache.write_text("#!/bin/sh\necho 'error: redis://me:secret@cache:1 is closed' >&2; exit 1\n")
    cache.chmod(0o755)
    said = try_compile(CacheChoice("sccache", cache), {"PATH": os.defpath}, tmp_path, 20)
    assert said == "error: redis://cache:1 is closed"
