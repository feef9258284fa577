"""A first environment whose conda packages are linked from the cache while the rules are asked."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tenv.rattler_api.cache import cache_folder, downloads_folder
from tests.support.conda import Link
from tests.support.conda_project import Conda, wheel_of
from tests.support.fakes import Fault, make_wheel
from tests.support.projects import HERE, SOURCE, snapshot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a copy of the process")

SPY = """\
import os, sys
sys.path.insert(0, SOURCE)
sys.argv = ["tenv", "create", "tiny", "--frozen", *sys.argv[1:]]
from tenv.checks import before_create
from tenv.core import twin
from tenv.sources.conda import staging
def told(name, real):
    def wrapped(*words, **options):
        print(name, file=sys.stderr, flush=True)
        return real(*words, **options)
    return wrapped
twin.Twin.__init__ = told("<twin>", twin.Twin.__init__)
staging.stage = told("<stage>", staging.stage)
require = before_create.require_build
def require_build(*words, **options):
    RULE
    return require(*words, **options)
before_create.require_build = require_build
from tenv.__main__ import run
run()
"""


def begin(conda: Conda, *words: str, rule: str = "pass") -> "subprocess.Popen[str]":
    """Start `create` in a process of one thread, which says what it does."""
    program = SPY.replace("SOURCE", repr(str(SOURCE))).replace("RULE", rule)
    return subprocess.Popen(
        [sys.executable, "-c", program, *words], cwd=conda.project.folder, stderr=subprocess.PIPE, text=True
    )


def made(conda: Conda, *words: str, rule: str = "pass") -> tuple[int, str]:
    """Run `create` likewise; return its status and what it said."""
    program = begin(conda, *words, rule=rule)
    _, said = program.communicate(timeout=100)
    return program.returncode, said


@pytest.fixture
def cached(conda: Conda) -> Conda:
    """A project whose packages are in the cache, and noted, and whose environment was removed."""
    conda.make("more", files={"share/more": "more\n", "share/other": Link("more"), "share/again": "more\n"})
    conda.lock("tool", "data", "more")
    for _ in range(2):  # at first, they are fetched
        conda.create()
        conda.project.ok("remove", "tiny", "--yes")
    return conda


def test_it_is_the_same_environment(cached: Conda) -> None:
    assert "<twin>" not in made(cached, "--exact")[1]
    slow, size = snapshot(cached.prefix), cached.project.state()["bytes"]
    cached.project.ok("remove", "tiny", "--yes")
    status, said = made(cached, rule="print('<rules>', file=sys.stderr, flush=True)")
    assert status == 0
    assert [line for line in said.splitlines() if line.startswith("<")] == ["<twin>", "<rules>"]
    assert snapshot(cached.prefix) == slow
    assert cached.project.state()["bytes"] == size
    cached.project.ok("verify", "tiny", "--no-probes")


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("from tenv.core.errors import UnfitHostError; raise UnfitHostError('no', [])", 4),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_where_the_rules_end_the_command_nothing_stays(cached: Conda, rule: str, status: int) -> None:
    marks = sorted(Path(os.environ["XDG_DATA_HOME"]).glob("tenv/marks/*"))
    seen = f"import time; time.sleep(1); assert os.listdir({str(cached.prefix / 'share')!r})"
    ended, said = made(cached, rule=f"{seen}; {rule}")
    assert ended == status, said
    assert "<twin>" in said
    assert not cached.prefix.exists()
    assert sorted(Path(os.environ["XDG_DATA_HOME"]).glob("tenv/marks/*")) == marks


@pytest.mark.parametrize("name", ["tool-1-0/bin/tool", "more-1-0/share/more"])
def test_a_changed_file_of_the_cache_is_no_file_of_the_environment(cached: Conda, name: str) -> None:
    file = cache_folder() / name
    size, text = file.stat().st_size, file.read_bytes()
    file.write_bytes(text[:-1] + b"!")
    assert file.stat().st_size == size
    status, said = made(cached)
    assert status == 0
    assert [line for line in said.splitlines() if line.startswith(("<", "inst"))] == [
        "<twin>",
        "installing conda packages …",
        "<stage>",
    ]
    assert b"!" not in (cached.prefix / name.partition("/")[2]).read_bytes()[-1:]
    cached.project.ok("verify", "tiny", "--no-probes")


@pytest.mark.parametrize("lacking", ["data-1-0", ""])
def test_what_the_cache_lacks_is_fetched_while_the_rules_are_asked(cached: Conda, lacking: str) -> None:
    made(cached, "--exact")
    slow, size = snapshot(cached.prefix), cached.project.state()["bytes"]
    cached.project.ok("remove", "tiny", "--yes")
    shutil.rmtree(cache_folder() / lacking)
    status, said = made(cached)
    assert status == 0
    assert "<stage>" not in said
    assert said.index("downloading conda packages") < said.index("installing conda packages")
    assert snapshot(cached.prefix) == slow
    assert cached.project.state()["bytes"] == size
    assert not [*downloads_folder().iterdir()]
    cached.project.ok("verify", "tiny", "--no-probes")


def test_large_packages_are_fetched_after_the_rules(cached: Conda) -> None:
    shutil.rmtree(cache_folder())
    text = cached.project.lock.read_text()
    cached.project.lock.write_text(re.sub(r"(?m)^(  size: )\d+$", r"\g<1>300000000", text, count=1))
    status, said = made(cached)
    assert (status, said.count("<stage>")) == (0, 1), said


def test_a_channel_that_fails_is_reported_once(cached: Conda) -> None:
    shutil.rmtree(cache_folder())
    (path,) = cached.channel.folder.glob("*/data-1-0.conda")
    path.unlink()
    status, said = made(cached)
    assert status == 6
    assert said.count("downloading conda packages") == 1
    assert said.count("404 Not Found") == 1
    assert not cached.prefix.exists()
    assert not [*downloads_folder().glob(".*")]


def test_what_is_fetched_in_part_goes_with_the_error_of_a_rule(cached: Conda) -> None:
    shutil.rmtree(cache_folder())
    rule = "from tenv.core.errors import UnfitHostError; raise UnfitHostError('no', [])"
    with cached.channel.failing(Fault.SLOW, r"data.*conda$"):
        status, said = made(cached, rule=f"import time; time.sleep(1); {rule}")
    assert (status, "downloading" in said) == (4, False)
    assert not cached.prefix.exists()
    assert not [*downloads_folder().glob(".*")]


@pytest.mark.parametrize("words", [("--no-check",), ("--exact",), ("--pytorch", "2.9")], ids=lambda words: words[0])
def test_other_ways_wait_for_the_rules(cached: Conda, words: tuple[str, ...]) -> None:
    status, said = made(cached, *words)
    assert status == 0
    assert "<twin>" not in said


def test_copies_wait_for_the_rules_which_ask_for_the_free_space(cached: Conda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_LINK_MODE", "copy")
    assert "<twin>" not in made(cached)[1]


def test_a_killed_command_leaves_no_process_at_work(cached: Conda) -> None:
    program = begin(cached, rule="print('<rules>', file=sys.stderr, flush=True); import time; time.sleep(100)")
    assert program.stderr
    for line in program.stderr:
        if line == "<rules>\n":
            break
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    program.kill()
    program.wait()
    program.stderr.close()
    deadline = time.monotonic() + 10
    while any(_works(child) for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_works(child) for child in children)
    assert cached.project.state()["state"] == "creating"
    assert made(cached)[0] == 0
    cached.project.ok("verify", "tiny", "--no-probes")


def _works(process: str) -> bool:
    """Return whether a process is there that is not only left to be waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


ALONE = """\
import asyncio, sys, threading
from pathlib import Path
sys.path.insert(0, SOURCE)
from tenv.core.twin import Twin
assert Twin.is_possible()
"""


def alone(body: str, *words: object) -> None:
    """Run code in a process of one thread."""
    program = ALONE.replace("SOURCE", repr(str(SOURCE))) + textwrap.dedent(body)
    subprocess.run([sys.executable, "-c", program, *map(str, words)], check=True, timeout=60)


def test_a_twin_that_fails_has_no_answer() -> None:
    alone("""\
        def fail(_):
            raise ValueError
        twin = Twin(fail)
        assert twin.answer() is None
        twin.go(b"x")
        twin.close()
        twin.close()
    """)


def test_a_twin_waits_until_it_may_go_on() -> None:
    alone("""\
        def work(line):
            return line.wait() * (1 << 20)
        twin = Twin(work)
        twin.go(b"x")
        assert twin.answer() == twin.answer() == b"x" * (1 << 20)
        twin.close()
        twin = Twin(work)
        twin.close()
        assert twin.answer() is None
    """)


def test_there_is_no_twin_where_nobody_may_wait_for_it() -> None:
    alone("""\
        import signal
        twin = Twin(lambda _: b"")
        assert twin.answer() == b""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        assert not Twin.is_possible()
        twin.close()
    """)


def test_there_is_no_twin_beside_threads_of_rattler(tmp_path: Path) -> None:
    alone(
        """\
        from rattler.package_cache import PackageCache
        async def index():
            return await PackageCache(Path(sys.argv[1])).index()
        asyncio.run(index())
        assert threading.active_count() == 1, "they are none of Python"
        assert not Twin.is_possible()
        import os
        os._exit(0)
        """,
        tmp_path,
    )


def test_wheels_come_after_conda_packages(cached: Conda) -> None:
    """The size of the environment counts each file as it is in the end, a path that both claim among them."""
    index = cached.project.index
    files = {"helper.py": "x = 1\n", "helper-1.0.data/data/share/more": "much more\n"}
    make_wheel(index.folder, "helper", "1.0", files=files)
    cached.lock("tool", "data", "more", wheels=(wheel_of(index, "helper"),), python=HERE)
    sizes = []
    for words in (("--exact",), ()):
        status, said = made(cached, *words)
        assert (status, "<stage>" in said) == (0, bool(words)), said
        assert (cached.prefix / "share" / "more").read_text() == "much more\n"
        sizes.append((cached.project.state()["bytes"], snapshot(cached.prefix)))
        cached.project.ok("remove", "tiny", "--yes")
    assert sizes[0] == sizes[1]
