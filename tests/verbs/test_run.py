"""`tenv run` with words that are no program."""

import re
import sys
from pathlib import Path

import pytest

from tests.support.each import each
from tests.support.projects import Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs and interpreters are those of Linux")


def test_a_file_that_is_no_program_is_named_as_what_it_is(created: Project) -> None:
    plain = created.folder / "plain"
    plain.touch()
    assert "can't be executed" in created.fails(2, "usage", "run", "tiny", "--", str(plain))
    assert "is a folder" in created.fails(2, "usage", "run", "tiny", "--", str(created.folder))


def test_the_hint_for_a_mistyped_target_begins_with_the_nearest_name(project: Project) -> None:
    said = project.fails(2, "unknown-target", "run", "tinny", "true")
    assert said.index("`tiny`") < said.index("tenv run tiny -- tinny true")


def test_a_target_of_another_folder_keeps_its_place_in_the_hint(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENV_TARGET", "other")
    monkeypatch.setenv("TENV_PREFIX", "/some where/.tenv/envs/other")
    said = project.fails(2, "unknown-target", "run", "other", "--", "python", "-V")
    assert "`tenv run --prefix '/some where/.tenv/envs/other' other -- COMMAND` uses it" in said
    assert "-- other python" not in said
    said = project.fails(2, "unknown-target", "run", "others", "--", "python", "-V")
    assert "some where" not in said


def script(project: Project, data: bytes) -> str:
    """Write an executable file and return its name."""
    file = project.folder / "script"
    file.write_bytes(data)
    file.chmod(0o755)
    return "./script"


@each(
    "data, said, hint",
    [
        (b"#!/nonexistent/python -u\n", "its interpreter `/nonexistent/python` does not exist", "-u`"),
        (b"#!/bin/sh\r\necho it\r\n", "its lines end as those of Windows, so `/bin/sh\\r` is its inter", "sed -i"),
        (b"\x7fELF\x02\x01\x01 of no machine\n", "it is no program of this machine (Exec format error)", ""),
        (b"\0\0\0\0 data\n", "it is no program of this machine (Exec format error)", ""),
    ],
)
def test_what_the_system_can_not_start_ends_as_in_a_shell(created: Project, data: bytes, said: str, hint: str) -> None:
    ended = created.run("run", "tiny", "--", script(created, data))
    assert ended.status == 126, ended
    assert f"error[program]: {created.folder}/script can't be started: {said}" in ended.err
    assert hint in ended.err


def test_a_program_whose_loader_is_not_there_is_said_to_be_one_of_another_machine(created: Project) -> None:
    true = Path("/bin/true").read_bytes()
    assert b"/ld-linux" in true
    data = re.sub(rb"/lib[\w/.-]*/ld-linux", lambda found: b"/nil" + found[0][4:], true)
    ended = created.run("run", "tiny", "--", script(created, data))
    assert (ended.status, "its loader does not exist" in ended.err) == (126, True), ended


@pytest.mark.parametrize(("data", "status", "out"), [(b"echo $1 it\nexit 3\n", 3, "do it\n"), (b"", 0, "")])
def test_a_text_without_an_interpreter_is_a_script_of_the_shell(
    created: Project, data: bytes, status: int, out: str
) -> None:
    ended = created.run("run", "tiny", "--", script(created, data), "do")
    assert (ended.status, ended.out) == (status, out), ended


def test_features_before_the_target_name_the_command_that_installs_them(project: Project) -> None:
    for words, run in (
        (("--feature", "debug", "tiny", "--", "ls", "-l"), "`tenv run tiny -- ls -l`"),
        (("--feature=debug", "--", "ls"), "`tenv run tiny -- ls`"),
    ):
        said = project.fails(2, "usage", "run", *words)
        assert "`tenv run` has no option `--feature`" in said
        assert f"`tenv create tiny --with debug` installs features, then {run} has them" in said
    said = project.fails(2, "usage", "run", "--frobnicate", "tiny", "--", "ls")
    assert "has no option `--frobnicate`" in said
    assert "`tenv run tiny -- ls`" in said
    for command in ("shell", "activate", "gdb"):
        said = project.fails(2, "usage", command, "tiny", "--with", "debug")
        assert "`tenv create TARGET --with FEATURES` installs features" in said


def test_tests_of_a_checkout_without_a_built_torch_name_the_build(created: Project, tmp_path: Path) -> None:
    checkout = tmp_path / "pytorch"
    (checkout / "test").mkdir(parents=True)
    (checkout / "torch" / "csrc").mkdir(parents=True)
    for name in ("run_test.py", "test_nn.py"):
        (checkout / "test" / name).write_text("")
    said = f"warning: no torch is built in the environment of tiny: `tenv build tiny --pytorch {checkout}` does"
    words = ("run", "tiny", "--", "python", str(checkout / "test" / "test_nn.py"))
    assert said in created.run(*words).err
    assert said not in created.run("run", "tiny", "--", "python", "-c", "'a/b'").err
    (next(created.prefix.glob("lib/python3*/site-packages")) / "torch").mkdir()
    assert said not in created.run(*words).err
