"""`[activation.env]`: what `$NAME` stands for, lists that are added to, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from tenv.activation.changes import Action
from tenv.activation.variables import derive
from tenv.core.errors import ManifestError, UnknownTargetError
from tenv.host.interface import Fact
from tenv.host.machine import BuildResources
from tenv.targets.manifest import Manifest
from tenv.targets.manifest_file import read_manifest
from tenv.targets.variable_requests import DERIVED, VariableRequest
from tenv.toolchain.discover import Toolchain
from tests.support.each import each

PREFIX = Path("/env")
MACHINE = BuildResources(Fact(4, "cores"), Fact(64 << 30, "memory"))
CUDA = Toolchain(PREFIX, PREFIX / "bin/python", PREFIX / "lib", cuda=PREFIX / "cuda", nvcc=PREFIX / "cuda/bin/nvcc")
RESERVED = """
TENV_PREFIX TENV_TARGET TENV_SAFE_FOLDERS _TENV_SAVED_1_PATH tenv_level PROMPT_COMMAND PS0 PS1 PS2 PS4 PROMPT RPROMPT
BASH_ENV ENV PPID SHELLOPTS BASHOPTS BASH_XTRACEFD UID EUID GID GROUPS IFS ZDOTDIR FPATH SHLVL PWD OLDPWD _ RANDOM
SECONDS LINENO OPTIND status fish_pid fish_function_path XONSHRC PSModulePath psmodulepath path argv
"""
BARE = Toolchain(PREFIX, PREFIX / "bin/python", PREFIX / "lib")
OWN = {"PATH": "/usr/bin", "LDFLAGS": "-L/u", "GONE": "x", "MANPATH": "/man"}


def read(folder: Path, text: str, **parents: str) -> Manifest:
    head = 'platforms = ["linux-64"]\n'
    for name, content in {**parents, "t": text}.items():
        (folder / f"{name}.toml").write_text(head + content if name == "t" else content)

    def find(name: str) -> Path:
        if not (folder / f"{name}.toml").is_file():
            raise UnknownTargetError(name)
        return folder / f"{name}.toml"

    return read_manifest("t", find("t"), find, "t.toml").on("linux-64")


def active(manifest: Manifest, toolchain: Toolchain = CUDA) -> dict[str, str]:
    return derive(manifest, toolchain, MACHINE, home="/home/me").apply(OWN)


@each(
    "written, value",
    [
        ("$TENV_PREFIX/x", "/env/x"),
        ("${TENV_PREFIX}x", "/envx"),
        ("$CUDA_HOME/lib64:$HOME", "/env/cuda/lib64:/home/me"),
        ("$$ORIGIN/$$$TENV_TARGET", "$ORIGIN/$t"),
        ("100% `id` $$(id) \\\\ ~", "100% `id` $(id) \\ ~"),
        ("$FIRST$FIRST", "1 21 2"),
    ],
)
def test_a_value_is_expanded_and_no_shell_reads_it(written: str, value: str, tmp_path: Path) -> None:
    manifest = read(tmp_path, f'[activation.env]\nFIRST = "1 2"\nX = "{written}"\n')
    assert active(manifest)["X"] == value


def test_lists_are_added_to_at_both_ends_and_variables_taken_away(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        '[activation.env]\nROOT = "$TENV_PREFIX/opt"\nPATH = { prepend = ["$ROOT/bin", "/b"] }\n'
        'CMAKE_PREFIX_PATH = { append = "$ROOT" }\nMANPATH = { append = "$ROOT/man" }\n'
        'LDFLAGS = { append = "-Wl,-rpath,$$ORIGIN" }\nGONE = { unset = true }\nNEW = { prepend = "/n" }\n',
    )
    got = active(manifest)
    assert got["PATH"] == "/env/opt/bin:/b:/env/bin:/env/cuda/bin:/usr/bin"
    assert got["CMAKE_PREFIX_PATH"] == "/env:/env/opt"
    assert got["MANPATH"] == "/man:/env/opt/man"
    assert got["LDFLAGS"] == "-L/u -Wl,-rpath,$ORIGIN"
    assert got["NEW"] == "/n"
    assert "GONE" not in got


def test_path_may_be_appended_to(tmp_path: Path) -> None:
    got = active(read(tmp_path, '[activation.env]\nPATH = { append = "/last" }\n'))
    assert got["PATH"] == "/env/bin:/env/cuda/bin:/usr/bin:/last"


def test_a_child_may_name_what_its_parent_sets_and_each_manifest_is_named(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        'extends = "p"\n[activation.env]\nB = "$A/b"\n[platform.linux-64.activation.env]\nC = "$B/c"\n',
        p='extends = "g"\n[activation.env]\nOTHER = "1"\n',
        g='[activation.env]\nA = "$TENV_PREFIX"\n',
    )
    made = {change.name: change for change in derive(manifest, CUDA, MACHINE).changes}
    assert made["C"].value == "/env/b/c"
    assert made["A"].reason == f"set by the manifest of g ([activation.env], {tmp_path / 'g.toml'}:2)"
    assert made["C"].reason.startswith("set by the manifest of t ([activation.env], t.toml:")


@each(
    "text, told, hint",
    [
        ('X = "$NOPE"', "t.toml:3: activation.env.X: `$NOPE` is not set before it", "`$$NOPE` is the text $NOPE"),
        ('X = "$CUDA_HOM"', "`$CUDA_HOM` is not set before it", "did you mean `CUDA_HOME`?"),
        ('X = "$ORIGIN/../lib"', "`$ORIGIN` is not set before it", "`$$ORIGIN` is the text"),
        ('X = "$Y"\nY = "1"', "activation.env.X: `$Y` is not set before it", ""),
        ('X = "$X:1"', "`$X` is not set before it; {", ""),
        ('X = "5$"', "has a `$` without a name after it", "`$$` is a dollar sign"),
        ('X = "$(id)"', "has a `$` without a name after it", "`$$` is a dollar sign"),
        ('PATH = "$TENV_PREFIX/bin:$PATH"', "t.toml:3: activation.env.PATH: can't be replaced", "prepend"),
        ('LD_LIBRARY_PATH = "/x"', "activation.env.LD_LIBRARY_PATH: can't be replaced", "prepend"),
        ("PATH = { unset = true }", "PATH can't be unset", "prepend"),
        ('X = { prepend = "a", append = "b" }', "expected one of prepend, append and unset", ""),
        ('X = { before = "a" }', "unknown key", ""),
        ("X = { unset = false }", "unset: must be true", "unset = true"),
        ('X = { prepend = "" }', "is required", ""),
    ],
)
def test_what_is_refused_says_what_to_write(text: str, told: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, f"[activation.env]\n{text}\n")
    assert told in str(caught.value)
    assert hint in (caught.value.hint or "")


@each("name", RESERVED.split())
@each("value", ['"x"', '{ prepend = "x" }', "{ unset = true }"])
def test_what_is_tenvs_or_a_shells_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=f"`{name}` is (tenv's|the shell's) own"):
        read(tmp_path, f"[activation.env]\n{name} = {value}\n")


@each(
    "name",
    [
        "LD_PRELOAD",
        "XDG_CACHE_HOME",
        "PYTHONSTARTUP",
        "TORCH_TENV",
        "MY_PS1",
        "ENVIRONMENT",
        "USERPROFILE",
        "VERSION",
        "TITLE",
    ],
)
def test_what_builds_read_is_the_users_choice(name: str, tmp_path: Path) -> None:
    assert active(read(tmp_path, f'[activation.env]\n{name} = "x"\n'))[name] == "x"


def test_what_this_environment_does_not_set_is_told(tmp_path: Path) -> None:
    manifest = read(tmp_path, '[activation.env]\nX = "$CUDA_HOME/x"\n')
    with pytest.raises(ManifestError, match=r"t.toml:3: `\$CUDA_HOME` is not set in this environment"):
        active(manifest, BARE)


def test_what_may_be_named_is_what_tenv_sets() -> None:
    everything = replace(
        replace(CUDA, cudnn=PREFIX, cusparselt=PREFIX, nccl=PREFIX, magma=PREFIX, mkl=PREFIX),
        ninja=PREFIX,
        cc=PREFIX,
        cxx=PREFIX,
        mpi=PREFIX,
    )
    made = derive(Manifest("t", "t.toml"), everything, MACHINE).changes
    missing = {change.name for change in made if change.action is Action.SET} - DERIVED
    assert not missing


@each("text", ["$HOME", "$$", "a$b", "`x`"])
def test_a_literal_stays_as_it_is(text: str) -> None:
    request = VariableRequest.literal("X", text)
    assert (request.text, request.names()) == (text, ())
