"""Files for the programs of a cluster, run by shells: the prolog of Slurm, and modulefiles."""

import os
import subprocess
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Change
from tenv.core.errors import StorageError
from tenv.core.files import write_atomic
from tenv.interop import modulefile, squashfs
from tests.support.conda_project import Conda
from tests.support.projects import Project

_ANSWER = """\
build: no   (tiny on linux-64)
run:   no   (tiny on linux-64)

warning[TE999]: later
  fix: none
error[TE401]: no compiler
error[TE103]: the driver's $(touch stolen) is too old
"""


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (_ANSWER, 1, "error[TE103]: the driver's $(touch stolen) is too old|error[TE401]: no compiler|warning[TE999]"),
        (_ANSWER.replace("run:   no", "run:   yes"), 0, ""),
        ("error[network]: no\n", 0, ""),
    ],
)
def test_a_prolog_drains_with_the_findings_worst_first(
    locked: Project, tmp_path: Path, answer: str, status: int, reason: str
) -> None:
    locked.ok("export", "slurm", "tiny", "--output", str(tmp_path))
    (tmp_path / "answer").write_text(answer)
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "tenv", f"cat {tmp_path}/answer; exit 1\n")
    program(tmp_path / "bin" / "scontrol", f'printf "%s\\n" "$@" > {tmp_path}/drained\n')
    environ = {"PATH": f"{tmp_path}/bin:{os.defpath}", "SLURM_JOB_CONSTRAINTS": "tenv-tiny", "SLURMD_NODENAME": "n1"}
    done = subprocess.run(["sh", tmp_path / "tenv-tiny-prolog.sh"], env=environ, cwd=tmp_path, check=False)
    assert done.returncode == status
    drained = tmp_path / "drained"
    said = drained.read_text() if drained.exists() else ""
    assert reason in said
    assert bool(said) is bool(status)
    assert not (tmp_path / "stolen").exists()


def test_an_image_is_made_where_nobody_else_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside it, a link of another user would lead its bytes elsewhere, and a second export would remove them."""
    state, shared = tmp_path / "tenv-meta" / "state.json", tmp_path / "shared"
    for folder in (tmp_path / "bin", state.parent, shared):
        folder.mkdir()
    shared.chmod(0o1777)
    write_atomic(state, "ready")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.defpath}")

    def pack(words: str) -> None:
        program(tmp_path / "bin" / "mksquashfs", words)
        try:
            squashfs._pack(tmp_path, squashfs._written(tmp_path), shared / "tiny.sqfs")
        finally:
            assert [(file.name, file.read_text()) for file in shared.iterdir()] == [("tiny.sqfs", "image\n")]

    pack('test "$(stat -c %a "${2%/*}")" = 700 && echo image > "$2"\n')
    with pytest.raises(StorageError, match="mksquashfs: no space"):
        pack('echo half > "$2"; echo "no space" >&2; exit 1\n')
    with pytest.raises(StorageError, match=r"has changed while .*tiny\.sqfs was written"):
        pack(f'echo mixed > "$2"; cp {state} {state}.new && mv {state}.new {state}\n')


def test_root_gets_the_targets_of_a_project(locked: Project, tmp_path: Path) -> None:
    """The prolog runs as root, in no project: there it would answer nothing, and each job would start."""
    done = locked.ok("export", "slurm", "tiny", "--output", str(tmp_path / "a prolog.sh"))
    assert f"install -m 755 '{tmp_path}/a prolog.sh' /etc/slurm/tenv-tiny-prolog.sh" in done.err
    assert f"cp -r {locked.folder}/manifests {locked.folder}/locks /etc/slurm/tenv " in done.err
    there = tmp_path / "there"
    text = (tmp_path / "a prolog.sh").read_text().replace("/etc/slurm/tenv", str(there))
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "tenv", f"pwd > {tmp_path}/where\n")
    environ = {"PATH": f"{tmp_path}/bin:{os.defpath}", "SLURM_JOB_CONSTRAINTS": "tenv-tiny"}
    for folder in ("/", str(there)):
        subprocess.run(["sh", "-c", text], env=environ, cwd=tmp_path, check=True)
        assert (tmp_path / "where").read_text() == f"{folder}\n"
        there.mkdir(exist_ok=True)
    assert "cp -r" not in locked.ok("export", "slurm", "cpu", "--output", "prolog").err


def test_a_modulefile_names_what_holds_for_this_machine_alone(created: Project) -> None:
    done = created.ok("export", "modulefile", "tiny", "--output", "my modules")
    assert f"module use '{created.folder}/my modules/modulefiles' &&" in done.err
    assert "MAX_JOBS is " in done.err
    Path("notes").write_text("a file")
    said = created.fails(2, "file-exists", "export", "slurm", "tiny", "--output", "notes")
    assert "notes is a file, no folder" in said


def test_options_that_repeat_stay_in_a_modulefile() -> None:
    """Environment Modules 5.2 and Lmod 8.6.19 made `-include a.h b.h` of these, also of the user's own."""
    value, name = "-include a.h -include b.h", "CXXFLAGS"
    for action, words in (
        (Action.APPEND, f'os.getenv("{name}") .. " " .. "{value}"'),
        (Action.PREPEND, f'"{value}" .. " " .. os.getenv("{name}")'),
    ):
        change = Change(name, action, value, "", " ")
        whole = f'"$old {value}"' if action is Action.APPEND else f'"{value} $old"'
        last = f'if {{$old eq ""}} {{ pushenv {name} "{value}" }} else {{ pushenv {name} {whole} }}'
        assert [*modulefile._in_tcl(change, "t-1")][2:] == [f"setenv _TENV_OLD_t_1_{name} $old", last]
        pushed = f'pushenv("{name}", (os.getenv("{name}") or "") ~= "" and {words} or "{value}")'
        assert [*modulefile._in_lua(change)] == [pushed]


def test_a_value_of_several_lines_is_in_no_modulefile(conda: Conda) -> None:
    """Environment Modules prints it unquoted, and the shell runs the second line."""
    conda.make("lines", files={"etc/conda/activate.d/lines.sh": "export MANY='one\ntouch stolen' FINE='a b'\n"})
    conda.lock("lines")
    conda.create()
    said = conda.project.fails(2, "format", "export", "modulefile", "tiny", "--output", "modules")
    assert "sets MANY to a value with a line break" in said
    assert not Path("modules").exists()
