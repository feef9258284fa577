"""A target that takes its toolkit and compiler from the machine: create, run, activate, and what changes later."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenv.environment.state import Environment
from tenv.sources.system.taken import alarm, changes
from tests.support.fakes import change_byte
from tests.support.machine_trees import make_gcc, make_toolkit
from tests.support.projects import Project, call

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="the tools are shell scripts")]

SYSTEM = '\n[system]\ncuda-toolkit = "99.1.*"\ngcc = "97.*"\n'
"""Releases that no machine has, so that the tests see the same everywhere."""


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a toolkit and a compiler that variables name."""
    gxx = make_gcc(tmp_path / "gcc", "97.2.0")
    monkeypatch.setenv("CXX", str(gxx))
    monkeypatch.setenv("CC", str(gxx.with_name("gcc")))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    return make_toolkit(tmp_path / "cuda")


@pytest.fixture
def asking(locked: Project) -> Project:
    """The project, which takes them from the machine, locked."""
    locked.manifest.write_text(locked.manifest.read_text() + SYSTEM)
    locked.ok("lock", "tiny")
    return locked


@pytest.fixture
def made(asking: Project, toolkit: Path) -> Project:
    """The project with its environment made."""
    asking.ok("create", "tiny")
    return asking


def variables(project: Project) -> dict[str, str]:
    rows = project.ok("env", "tiny", "--json").data
    return {row["name"]: row["value"] for row in rows}


def runs(project: Project) -> str:
    """Run a program in the environment as a user would, and return what is said."""
    ended = project.ran("run", "tiny", "--", "true")
    assert ended.status == 0, ended.err
    return ended.err


def sourced(project: Project, shell: str = "sh") -> str:
    """Source the stored script, and return what it says."""
    script = shlex.quote(str(project.prefix / "tenv-meta" / "activate.sh"))
    done = subprocess.run([shell, "-euc", f". {script}"], capture_output=True, text=True, check=True)
    return done.stderr


def accepts(project: Project) -> str:
    return f"`tenv create --prefix {project.prefix} tiny` accepts the present files\n"


def test_the_lock_holds_the_ranges_and_nothing_of_this_machine(asking: Project) -> None:
    text = asking.lock.read_text()
    assert "      system:\n        cuda-toolkit: [99.1.*]\n        gcc: [97.*]\n" in text
    assert call("lock", "tiny", "--check").status == 0


def test_another_range_makes_the_lock_stale(asking: Project) -> None:
    asking.edit('gcc = "97.*"', 'gcc = "96.*"')
    err = asking.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert "system.gcc is 96.*, the lock has 97.*" in err


def test_what_tenv_can_t_take_from_a_machine_is_an_error_of_the_manifest(locked: Project) -> None:
    locked.manifest.write_text(locked.manifest.read_text() + '\n[system]\ncuda-tolkit = "*"\n')
    for command in (("lock", "tiny"), ("check", "tiny"), ("create", "tiny")):
        err = locked.fails(3, "manifest", *command)
        assert "system.cuda-tolkit: tenv can't resolve this from the system" in err
        assert "did you mean `cuda-toolkit`?" in err


def test_the_environment_uses_the_machine_s_tools(made: Project, toolkit: Path, tmp_path: Path) -> None:
    found = variables(made)
    assert (found["CUDA_HOME"], found["CUDACXX"]) == (str(toolkit), f"{toolkit}/bin/nvcc")
    assert (found["CC"], found["CXX"]) == (f"{tmp_path}/gcc/bin/gcc", f"{tmp_path}/gcc/bin/g++")
    assert found["PATH"] == f"{made.prefix}/bin:{toolkit}/bin"
    tools = json.loads((made.prefix / "tenv-meta/system.json").read_text())["tools"]
    assert [(tool["name"], tool["version"], tool["accepted"]) for tool in tools] == [
        ("cuda-toolkit", "99.1.1", "99.1.*"),
        ("gcc", "97.2.0", "97.*"),
    ]
    assert runs(made) == sourced(made) == ""


def test_create_says_what_it_takes(asking: Project, toolkit: Path) -> None:
    err = asking.ok("create", "tiny").err
    assert f"note: cuda-toolkit 99.1.1 of the system: {toolkit} (CUDA_HOME)\n" in err


def test_there_is_nothing_to_do_the_second_time(made: Project) -> None:
    assert made.ok("create", "tiny", "--json").data["changed"] is False


def test_a_machine_that_lacks_something_is_told_before_anything_is_written(asking: Project) -> None:
    err = asking.fails(4, "host", "create", "tiny")
    assert "tiny resolves cuda-toolkit 99.1.* from the system, which has no match\n" in err
    assert "tiny resolves gcc 97.* from the system, which has no match\n" in err
    assert "hint: apt install cuda-toolkit-99-1" in err
    assert not made_anything(asking)


def made_anything(project: Project) -> bool:
    return (project.folder / ".tenv").exists()


def test_a_byte_of_nvcc_raises_the_alarm_until_create_accepts_it(made: Project, toolkit: Path) -> None:
    change_byte(toolkit / "nvvm/bin/cicc")
    what = f"cuda-toolkit 99.1.1 of the system ({toolkit})"
    assert runs(made) == f"warning: {what}: nvvm/bin/cicc has changed; {accepts(made)}"
    assert sourced(made) == f"tenv: warning: {what} has changed or is missing; {accepts(made)}"
    assert [Path(drift.file).name for drift in changes(Environment(made.prefix), deep=True)] == ["cicc"]
    err = made.ok("create", "tiny").err
    assert f"note: accepted: {what}: nvvm/bin/cicc has changed\n" in err
    assert runs(made) == sourced(made) == ""
    assert made.ok("create", "tiny", "--json").data["changed"] is False


def rewrite(toolkit: Path) -> None:
    """Write the programs again with the same bytes, as installing a package once more does."""
    for path in (toolkit / "bin/nvcc", toolkit / "bin/ptxas", toolkit / "nvvm/bin/cicc"):
        info, data = path.stat(), path.read_bytes()
        path.write_bytes(data)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 5_000_000_000))


def test_a_file_written_again_with_the_same_bytes_is_no_change(made: Project, toolkit: Path) -> None:
    rewrite(toolkit)
    assert "has changed or is missing" in sourced(made)  # it can't read
    assert made.ok("create", "tiny", "--json").data["changed"] is False
    assert sourced(made) == runs(made) == ""
    change_byte(toolkit / "bin/nvcc")
    assert "has changed or is missing" in sourced(made)


def test_activate_calms_the_script_about_a_file_with_the_same_bytes(made: Project, toolkit: Path) -> None:
    rewrite(toolkit)
    assert made.ok("activate", "tiny").err == ""
    assert sourced(made) == ""
    change_byte(toolkit / "bin/ptxas")
    assert made.ok("activate", "tiny").err == ""
    assert f"({toolkit}) has changed or is missing" in sourced(made)


def test_verify_fails_until_create_accepts_it(made: Project, toolkit: Path) -> None:
    assert call("verify", "tiny", "--no-probes").status == 0
    info = (toolkit / "bin/nvcc").stat()
    change_byte(toolkit / "bin/nvcc")
    os.utime(toolkit / "bin/nvcc", ns=(info.st_atime_ns, info.st_mtime_ns))
    ended = call("verify", "tiny", "--no-probes")
    assert (ended.status, ended.out) == (8, f"changed  {toolkit}/bin/nvcc (system)\n")
    assert "1 file of the system that tiny uses changed after its last create\n" in ended.err
    assert ended.err.endswith("hint: `tenv create tiny` accepts the present files\n")
    (drift,) = call("verify", "tiny", "--no-probes", "--json").data["machine"]
    assert (drift["name"], drift["file"], drift["gone"]) == ("cuda-toolkit", f"{toolkit}/bin/nvcc", False)
    made.ok("create", "tiny")
    assert call("verify", "tiny", "--no-probes").status == 0


def test_a_change_whose_time_was_put_back_is_seen_by_all_but_the_script(made: Project, toolkit: Path) -> None:
    info = (toolkit / "bin/ptxas").stat()
    change_byte(toolkit / "bin/ptxas")
    os.utime(toolkit / "bin/ptxas", ns=(info.st_atime_ns, info.st_mtime_ns))
    assert sourced(made) == ""
    said = f"warning: cuda-toolkit 99.1.1 of the system ({toolkit}): bin/ptxas has changed; {accepts(made)}"
    assert runs(made) == said
    assert made.ok("activate", "tiny").err == said


def test_activate_leaves_to_the_script_what_that_tells(made: Project, toolkit: Path) -> None:
    change_byte(toolkit / "bin/nvcc")
    ended = made.ok("activate", "tiny")
    assert ended.err == ""
    assert "has changed or is missing" in sourced(made)


def test_a_header_that_no_shell_watches(made: Project, toolkit: Path) -> None:
    change = toolkit / "include/crt/math.h"
    assert alarm(Environment(made.prefix), "tiny") == []
    (toolkit / "include/cuda.h").write_text("/* another */\n")
    assert sourced(made) == ""
    assert "include/cuda.h has changed" in made.ok("activate", "tiny").err
    assert not change.exists()


def test_a_compiler_that_was_upgraded(made: Project, tmp_path: Path) -> None:
    gxx = make_gcc(tmp_path / "gcc", "97.3.0")
    assert f"warning: gcc 97.2.0 of the system ({gxx}): " in runs(made)
    assert "gcc 97.2.0" in sourced(made)
    made.ok("create", "tiny")
    tools = json.loads((made.prefix / "tenv-meta/system.json").read_text())["tools"]
    assert tools[1]["version"] == "97.3.0"


def test_a_toolkit_that_disappears(made: Project, toolkit: Path) -> None:
    shutil.rmtree(toolkit)
    what = f"cuda-toolkit 99.1.1 of the system ({toolkit})"
    assert runs(made) == f"warning: {what} is missing; {accepts(made)}"
    assert sourced(made) == f"tenv: warning: {what} has changed or is missing; {accepts(made)}"
    before = made.state()
    err = made.fails(4, "host", "create", "tiny")
    assert f"{toolkit}: CUDA_HOME names {toolkit}, which does not exist" in err
    assert made.state() == before


def test_another_toolkit_that_is_named_is_taken(made: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_toolkit(tmp_path / "other")
    monkeypatch.setenv("CUDA_HOME", str(other))
    assert made.ok("create", "tiny", "--json").data["changed"] is True
    assert variables(made)["CUDA_HOME"] == str(other)


def test_an_active_environment_is_no_machine(made: Project, toolkit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside it, CUDA_HOME and CXX name what it has taken: they stay."""
    for name, value in variables(made).items():
        if name != "PATH":
            monkeypatch.setenv(name, value)
    assert made.ok("create", "tiny", "--json").data["changed"] is False


def test_what_is_no_longer_asked_of_the_machine_is_forgotten(made: Project) -> None:
    made.edit(SYSTEM, "")
    made.ok("create", "tiny")
    assert "CUDA_HOME" not in variables(made)
    assert not (made.prefix / "tenv-meta/system.json").exists()
    assert "_tenv_same" not in (made.prefix / "tenv-meta/activate.sh").read_text()


def test_a_damaged_fingerprint_is_told_and_repaired(made: Project) -> None:
    file = made.prefix / "tenv-meta/system.json"
    file.write_text("{")
    err = made.run("run", "tiny", "--", "true")
    assert err.status == 8
    assert f"error[environment-broken]: {file}: can't be read" in err.err
    assert made.ok("create", "tiny", "--json").data["changed"] is True
    assert runs(made) == ""
