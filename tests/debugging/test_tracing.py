"""What forbids a debugger: each setting of Yama, with and without the capability, in and out of containers."""

import os
from pathlib import Path

from tenv.debugging.python_processes import PythonProcess, Role, TracingRights, attaching, read_rights, starting
from tenv.host.places import Places
from tests.support.each import each

MINE = PythonProcess(41, 1, ("python",), Role.PROGRAM, os.getuid(), 0)


@each(
    "scope, capable, starts, attaches",
    [
        (None, False, True, True),
        (0, False, True, True),
        (1, False, True, False),
        (1, True, True, True),
        (2, False, False, False),
        (2, True, True, True),
        (3, True, False, False),
    ],
)
def test_yama(scope: int | None, capable: bool, starts: bool, attaches: bool) -> None:
    rights = TracingRights(scope, capable, traced=True)
    assert (starting(rights) is None, attaching(rights, MINE) is None) == (starts, attaches)
    assert attaching(rights) == attaching(rights, MINE)


def test_a_container_that_forbids_ptrace_names_the_capability() -> None:
    found = starting(TracingRights(0, False, traced=False, container="docker"))
    assert found
    assert "docker run --cap-add=SYS_PTRACE" in found.hint


def test_a_process_with_a_debugger_or_of_another_user_is_refused() -> None:
    rights = TracingRights(0, False, traced=True)
    found = attaching(rights, PythonProcess(41, 1, (), Role.PROGRAM, os.getuid(), 77))
    assert found
    assert (found.message, found.hint) == (
        "process 41 has a debugger already: process 77",
        "end that debugger: kill 77",
    )
    found = attaching(rights, PythonProcess(41, 1, (), Role.PROGRAM, os.getuid() + 1, 0))
    assert found
    assert f"belongs to user {os.getuid() + 1}" in found.message


def test_the_rights_are_read_as_the_kernel_shows_them(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/kernel/yama").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/sys/kernel/yama/ptrace_scope").write_text("1\n")
    (tmp_path / "proc/self/status").write_text("CapPrm:\t0\nCapEff:\t00000000a80c25fb\n")
    found = read_rights(Places(tmp_path, environ={"container": "podman"}))
    assert (found.scope, found.capable, found.container) == (1, True, "podman")
    (tmp_path / "proc/self/status").write_text("CapEff:\t00000000a80425fb\n")  # docker's default
    assert not read_rights(Places(tmp_path, environ={})).capable
