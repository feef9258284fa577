"""Activation scripts of conda packages: run once, and judged variable by variable."""

import ctypes
import os
import platform
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tenv.activation import conda_scripts, sandbox
from tenv.activation.changes import Activation, read_activation
from tenv.activation.conda_scripts import Effect, decide, run_scripts
from tenv.activation.variables import derive
from tenv.core import process
from tenv.host.machine import probe
from tenv.targets.manifest import Manifest
from tenv.targets.variable_requests import VariableRequest
from tenv.toolchain.discover import discover

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the scripts are those of POSIX shells")


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a script may take longer than a user would wait."""
    monkeypatch.setattr(conda_scripts, "_SECONDS", 120.0)


# What conda-forge's gxx_linux-64 and cuda-nvcc_linux-64 set, cut to one variable of each kind.
COMPILER = """\
export CC="$CONDA_PREFIX/bin/x86_64-conda-linux-gnu-cc" CXX="$CONDA_PREFIX/bin/x86_64-conda-linux-gnu-c++"
export CFLAGS="-march=nocona -mtune=haswell -O2 -ffunction-sections -isystem $CONDA_PREFIX/include"
export CXXFLAGS="-fvisibility-inlines-hidden $CFLAGS" DEBUG_CXXFLAGS="-Og" CPPFLAGS="-DNDEBUG -D_FORTIFY_SOURCE=2"
export LDFLAGS="-Wl,-O2 -Wl,--as-needed -Wl,--gc-sections -Wl,-rpath,$CONDA_PREFIX/lib \\
-Wl,-rpath-link,$CONDA_PREFIX/lib -L$CONDA_PREFIX/lib"
export CMAKE_ARGS="-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY" HOST=x86_64-conda-linux-gnu AR="$CC-ar"
export CONDA_BUILD_SYSROOT="$CONDA_PREFIX/x86_64-conda-linux-gnu/sysroot" CONDA_BACKUP_CC=gcc
export _CONDA_PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata_x86_64_conda_cos6_linux_gnu
export CMAKE_PREFIX_PATH="$CONDA_PREFIX:$CONDA_PREFIX/x86_64-conda-linux-gnu/sysroot/usr"
"""
NVCC = """\
export NVCC_PREPEND_FLAGS_BACKUP=UNSET NVCC_PREPEND_FLAGS="${NVCC_PREPEND_FLAGS-} -ccbin=$CXX"
export LDFLAGS="$LDFLAGS -L$CONDA_PREFIX/t"
"""


def has_seccomp() -> bool:
    return sys.platform == "linux" and platform.machine() in sandbox._DENIED


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    (tmp_path / "env" / "etc/conda/activate.d").mkdir(parents=True)
    (tmp_path / "env" / "conda-meta").mkdir()
    (tmp_path / "env" / "conda-meta" / "a-1-0.json").touch()
    return tmp_path / "env"


def write(prefix: Path, name: str, text: str) -> None:
    (prefix / "etc/conda/activate.d" / f"{name}.sh").write_text(text)


def effects(prefix: Path) -> dict[str, Effect]:
    return {effect.name: effect for effect in run_scripts(prefix)[0]}


def activation(prefix: Path) -> Activation:
    return derive(Manifest("t", "t.toml"), discover(prefix), probe(), None, run_scripts(prefix)[0])


def values(prefix: Path) -> dict[str, str]:
    return {change.name: change.value for change in activation(prefix).changes}


def test_a_prefix_without_scripts_has_no_effects(tmp_path: Path) -> None:
    assert run_scripts(tmp_path) == ((), ())


def test_scripts_run_in_order_and_each_sees_those_before(prefix: Path) -> None:
    write(prefix, "a", "export ONE=1 TWO=1")
    write(prefix, "b", "export TWO=$((TWO + 1))\nunset ONE\n")
    assert effects(prefix) == {"TWO": Effect("TWO", "2", None, "b.sh")}


def test_the_shell_is_clean(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    write(prefix, "a", 'export SEEN="$SECRET:$CONDA_PREFIX:$(command -v git >/dev/null && echo y)$HOME"\n')
    assert effects(prefix) == {}  # a value that names the folder that is gone afterwards is none
    write(prefix, "a", 'export SEEN="[$SECRET]$CONDA_PREFIX"\n')
    assert effects(prefix)["SEEN"].value == f"[]{prefix}"


def test_values_with_line_breaks_and_quotes_survive(prefix: Path) -> None:
    write(prefix, "a", "export ODD=$'a\\n\"b\\' $c'\n")
    assert effects(prefix)["ODD"].value == "a\n\"b' $c"


def test_a_script_that_hangs_is_ended_with_what_it_started(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = process.run

    def run_in_less_time(command: list[str], **options: Any) -> object:
        if command[-2].endswith("b.sh"):  # the others have as long as in all tests
            options["environment"] = {**options["environment"], sandbox.SECONDS: "0.5"}
        return run(command, **options)

    monkeypatch.setattr(process, "run", run_in_less_time)
    write(prefix, "a", "export ONE=1")
    write(prefix, "b", "sleep infinity & sleep infinity\nexport TWO=2")
    write(prefix, "c", "export THREE=3")
    found, notes = run_scripts(prefix)
    assert [effect.name for effect in found] == ["ONE", "THREE"]
    assert notes == ("the activation script b.sh timed out after 120 s; its variables are missing",)


def test_a_script_that_ends_the_shell_is_told(prefix: Path) -> None:
    write(prefix, "a", "export ONE=1; exit 0")
    assert run_scripts(prefix)[1] == (
        "the activation script a.sh ended the shell that ran it; its variables are missing",
    )


def has_landlock() -> bool:
    version: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return version > 0


@pytest.mark.skipif(not sys.platform.startswith("linux") or not has_landlock(), reason="this kernel has no Landlock")
def test_a_script_cannot_write_anywhere(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    write(
        prefix,
        "a",
        f'touch "$CONDA_PREFIX/made" {tmp_path}/made; rm {tmp_path}/precious; echo y >> {tmp_path}/precious\n'
        'export ONE=1; touch "$HOME/own" && export OWN=1; echo >/dev/null && export NULL=1\n',
    )
    assert {name: effect.value for name, effect in effects(prefix).items()} == {"ONE": "1", "OWN": "1", "NULL": "1"}
    assert not (prefix / "made").exists()
    assert not (tmp_path / "made").exists()
    assert (tmp_path / "precious").read_text() == "x"


@pytest.mark.skipif(not has_seccomp(), reason="system calls can't be filtered here")
@pytest.mark.parametrize(
    "command",
    [
        "kill -0 $PPID",
        "kill -0 @PID@",
        "chmod 777 $HOME",
        'chmod 777 "@OUT@"',
        "exec 3<>/dev/tcp/127.0.0.1/@PORT@",
        "@PYTHON@ -c 'import socket; socket.socket(socket.AF_UNIX)'",
        "@PYTHON@ -c 'import socket; socket.create_connection((\"127.0.0.1\", @PORT@))'",
        '@PYTHON@ -c \'import os; os.setxattr(os.environ["HOME"], "user.x", b"")\'',
    ],
)
def test_a_script_reaches_no_network_no_process_and_no_mode(command: str, prefix: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        values = {
            "@PID@": os.getpid(),
            "@OUT@": tmp_path,
            "@PORT@": server.getsockname()[1],
            "@PYTHON@": sys.executable,
        }
        for name, value in values.items():
            command = command.replace(name, str(value))
        write(prefix, "a", f"if ( {command} ); then export DONE=1; else export DENIED=1; fi\n")
        made, notes = run_scripts(prefix)
    assert {effect.name for effect in made} == {"DENIED"}
    assert notes == ()


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2)")
@pytest.mark.parametrize("begun", ["setsid sleep 3607 &", "(setsid nohup sleep 3607 >/dev/null 2>&1 &) &"])
def test_what_a_script_starts_ends_with_it(begun: str, prefix: Path) -> None:
    write(prefix, "a", f"{begun}\nexport DONE=1\n")
    assert {*effects(prefix)} == {"DONE"}
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(b"sleep\x003607" in line for line in lines)


def test_what_the_kernel_could_not_deny_is_said(prefix: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = Path(str(sandbox.__file__)).read_text()
    weak = tmp_path / "weak.py"
    weak.write_text(text.replace("if platform.machine() not in _DENIED:", "if True:"))
    monkeypatch.setattr(sandbox, "__file__", str(weak))
    write(prefix, "a", "export ONE=1\n")
    made, notes = run_scripts(prefix)
    assert [effect.name for effect in made] == ["ONE"]
    assert len(notes) == 1
    assert "could not deny the activation scripts of packages: " in notes[0]
    assert "network, signals, modes of files" in notes[0]


def test_what_conda_forges_compilers_set_is_kept_where_it_serves(prefix: Path) -> None:
    write(prefix, "activate-gxx_linux-64", COMPILER)
    write(prefix, "~cuda-nvcc_activate", NVCC)
    got = values(prefix)
    assert got["CC"] == f"{prefix}/bin/x86_64-conda-linux-gnu-cc"
    assert got["AR"] == f"{prefix}/bin/x86_64-conda-linux-gnu-cc-ar"
    assert got["CONDA_BUILD_SYSROOT"] == f"{prefix}/x86_64-conda-linux-gnu/sysroot"
    assert got["NVCC_PREPEND_FLAGS"] == f"-ccbin={prefix}/bin/x86_64-conda-linux-gnu-c++"
    assert "NVCC_PREPEND_FLAGS_BACKUP" not in got  # for the deactivation of conda itself
    library = f"{prefix}/lib"
    assert got["LDFLAGS"] == f"-Wl,-rpath,{library} -Wl,-rpath-link,{library} -L{library} -L{prefix}/t"
    assert got["CMAKE_PREFIX_PATH"] == str(prefix)
    harmful = {"CFLAGS", "CXXFLAGS", "CPPFLAGS", "DEBUG_CXXFLAGS", "CMAKE_ARGS", "HOST"}
    harmful |= {"_CONDA_PYTHON_SYSCONFIGDATA_NAME", "CONDA_BACKUP_CC"}
    assert harmful.isdisjoint(got)
    left_out = {change.name: change.reason for change in activation(prefix).left_out}
    assert left_out.keys() == harmful - {"CONDA_BACKUP_CC"}
    assert "(activate-gxx_linux-64.sh): left out: PyTorch's build chooses optimisation" in left_out["CXXFLAGS"]


def test_what_is_put_before_a_variable_is_put_before_the_users(prefix: Path) -> None:
    write(prefix, "a", 'export PATH="/opt/thing/bin:$PATH" LD_LIBRARY_PATH="/opt/thing/lib" NEW_PATH=/opt/new\n')
    got = values(prefix)
    assert got["PATH"] == f"{prefix}/bin:/opt/thing/bin"
    assert "LD_LIBRARY_PATH" not in got
    assert got["NEW_PATH"] == "/opt/new"


def test_the_decisions_are_stored(prefix: Path) -> None:
    write(prefix, "a", COMPILER)
    made = activation(prefix)
    (prefix / "activation.json").write_text(made.to_json())
    assert read_activation(prefix / "activation.json") == made


def test_a_manifest_wins_over_a_script_and_over_what_is_left_out(prefix: Path) -> None:
    write(prefix, "a", "export CFLAGS=-O2 ONE=script\n")
    own = {"CFLAGS": VariableRequest("-O1"), "ONE": VariableRequest("manifest")}
    manifest = Manifest("t", "t.toml", environment=own)
    made = derive(manifest, discover(prefix), probe(), None, run_scripts(prefix)[0])
    got = {change.name: change for change in made.changes}
    assert (got["CFLAGS"].value, got["ONE"].value) == ("-O1", "manifest")
    assert "instead of `script`" in got["ONE"].reason
    assert made.left_out == ()


def test_what_is_tenvs_or_a_shells_is_left_out_with_a_note(prefix: Path) -> None:
    write(
        prefix,
        "evil",
        "export TENV_PREFIX=/x TENV_OFFLINE=1 _TENV_SAVED_1_PATH==/x PROMPT_COMMAND=id PS1='$(id)' BASH_ENV=/x ENV=/x\n"
        "export ZDOTDIR=/x FINE=1; f() { :; }; export -f f; IFS=x; export IFS\n",
    )
    made, notes = run_scripts(prefix)
    activated = derive(Manifest("t", "t.toml"), discover(prefix), probe(), None, made)
    kept = {change.name: change.value for change in activated.changes}
    assert kept["FINE"] == "1"
    assert kept["TENV_PREFIX"] == str(prefix)
    refused = {"TENV_OFFLINE", "_TENV_SAVED_1_PATH", "PROMPT_COMMAND", "PS1", "BASH_ENV", "ENV", "ZDOTDIR", "IFS"}
    assert not refused & {*kept}
    assert refused <= {change.name for change in activated.left_out}
    assert all(any(f"evil.sh sets '{name}', which is " in note for note in notes) for name in {*refused, "TENV_PREFIX"})
    assert any("BASH_FUNC_f" in note for note in notes)


def test_a_name_that_would_be_code_is_left_out(prefix: Path) -> None:
    write(prefix, "a", 'exec env "A;touch x=1" GOOD=1 env -0 >"$HOME/variables"\n')
    made, notes = run_scripts(prefix)
    activated = derive(Manifest("t", "t.toml"), discover(prefix), probe(), None, made)
    assert not any(";" in change.name for change in activated.changes)
    assert any("is not a valid name for a variable" in note for note in notes)


def test_an_unknown_variable_is_kept_with_its_origin() -> None:
    decision = decide(Effect("PROJ_DATA", "/x", None, "proj.sh"))
    assert decision.value == "/x"
    assert decision.reason == ("set by the activation script of a conda package (proj.sh); tenv has no rule against it")
