from dataclasses import replace
from pathlib import Path

import pytest

from tenv.activation.changes import GIVEN, Action, Activation, Change, Watch, read_activation
from tenv.activation.conda_scripts import Effect
from tenv.activation.variables import Archs, derive, jobs
from tenv.core.errors import EnvironmentBrokenError
from tenv.core.versions import Version
from tenv.host.interface import Fact, Missing
from tenv.host.machine import BuildResources
from tenv.targets.manifest import Manifest
from tenv.targets.variable_requests import VariableRequest
from tenv.toolchain.discover import Toolchain
from tests.support.each import each

GIB = 1 << 30
PREFIX = Path("/env")
CUDA = PREFIX / "cuda"
MACHINE = BuildResources(Fact(16, "cores"), Fact(64 * GIB, "memory"))
WHOLE = Toolchain(
    prefix=PREFIX,
    python=PREFIX / "bin/python",
    site_packages=PREFIX / "lib/python3.11/site-packages",
    cuda=CUDA,
    cuda_version=Version("13.0.3"),
    nvcc=CUDA / "bin/nvcc",
    cudnn=CUDA,
    cusparselt=CUDA,
    nccl=CUDA,
    cmake=PREFIX / "bin/cmake",
    ninja=PREFIX / "bin/ninja",
    mkl=PREFIX,
)
BARE = Toolchain(PREFIX, PREFIX / "bin/python", PREFIX / "lib/python3.11/site-packages")


def wanted(**variables: str) -> dict[str, VariableRequest]:
    return {name: VariableRequest(value) for name, value in variables.items()}


def values(toolchain: Toolchain, **variables: str) -> dict[str, Change]:
    manifest = Manifest("cuda130", "m.toml", environment=wanted(**variables))
    return {change.name: change for change in derive(manifest, toolchain, MACHINE).changes}


def test_headers_and_programs_of_the_environment_are_found_outside_cmake() -> None:
    programs, headers = (PREFIX / "magma/bin",), (PREFIX / "include", PREFIX / "magma/include")
    found = values(replace(WHOLE, programs=programs, headers=headers))
    assert found["PATH"].value == "/env/bin:/env/cuda/bin:/env/magma/bin"
    for name in ("C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"):
        assert found[name].action is Action.PREPEND
        assert found[name].value == "/env/cuda/include:/env/include:/env/magma/include"
        assert found[name].on("/mine") == "/env/cuda/include:/env/include:/env/magma/include:/mine"
    assert "C_INCLUDE_PATH" not in values(BARE)
    system = replace(BARE, cuda=Path("/usr"), mkl=Path("/opt/intel/mkl"))
    assert values(system)["CPLUS_INCLUDE_PATH"].value == "/opt/intel/mkl/include"


def test_a_whole_toolchain_sets_what_a_pytorch_build_reads() -> None:
    found = values(WHOLE)
    assert {name: found[name].value for name in ("CUDA_HOME", "CUDA_PATH", "CUDNN_ROOT", "NCCL_ROOT")} == dict.fromkeys(
        ("CUDA_HOME", "CUDA_PATH", "CUDNN_ROOT", "NCCL_ROOT"), "/env/cuda"
    )
    assert found["CUDACXX"].value == "/env/cuda/bin/nvcc"
    assert found["PATH"] == Change(
        "PATH", Action.PREPEND, "/env/bin:/env/cuda/bin", "the environment's own programs come first"
    )
    assert found["CMAKE_PREFIX_PATH"].value == "/env"
    assert found["CMAKE_GENERATOR"].value == "Ninja"
    assert found["_GLIBCXX_USE_CXX11_ABI"].value == "1"
    assert found["MAX_JOBS"].value == "14"
    assert all(change.reason for change in found.values())


def test_what_a_prefix_does_not_hold_is_not_set() -> None:
    found = values(BARE)
    assert not {name for name in found if name.startswith(("CUDA", "CUDNN", "CUSPARSELT", "NCCL", "MKL"))}
    assert "CMAKE_GENERATOR" not in found


def test_the_manifest_wins_and_says_what_it_replaced() -> None:
    found = values(WHOLE, MAX_JOBS="3", USE_MPI="0")
    assert found["MAX_JOBS"].value == "3"
    assert "instead of `14`" in found["MAX_JOBS"].reason
    assert found["USE_MPI"].reason == "set by the manifest of cuda130 ([activation.env]); a value of yours stays"


@each(
    "cores, memory, cuda, expected",
    [
        (16, 64 * GIB, True, 14),
        (16, 72 * GIB, True, 16),
        (16, 64 * GIB, False, 16),
        (8, 4 * GIB, True, 1),
        (8, 1, True, 1),
        (64, 24 * GIB, True, 5),
    ],
)
def test_jobs_follow_from_cores_and_memory(cores: int, memory: int, cuda: bool, expected: int) -> None:
    assert jobs(BuildResources(Fact(cores, "c"), Fact(memory, "m")), cuda=cuda)[0] == expected


def test_jobs_without_a_known_memory_follow_from_cores() -> None:
    count, why = jobs(BuildResources(Fact(4, "c"), Missing("no /proc")), cuda=True)
    assert count == 4
    assert "no /proc" in why


def test_applying_changes_an_environment_and_leaves_the_given_one() -> None:
    activation = Activation(
        "t",
        PREFIX,
        (
            Change("A", Action.SET, "1", ""),
            Change("PATH", Action.PREPEND, "/env/bin", ""),
            Change("NEW", Action.PREPEND, "/env", ""),
            Change("GONE", Action.UNSET, "", ""),
        ),
    )
    before = {"PATH": "/bin", "GONE": "x", "KEPT": "y"}
    assert activation.apply(before) == {"A": "1", "PATH": "/env/bin:/bin", "NEW": "/env", "KEPT": "y"}
    assert before == {"PATH": "/bin", "GONE": "x", "KEPT": "y"}


def test_an_activation_reads_back_as_it_was_written(tmp_path: Path) -> None:
    activation = derive(Manifest("t", "m.toml"), WHOLE, MACHINE)
    (tmp_path / "activation.json").write_text(activation.to_json())
    assert read_activation(tmp_path / "activation.json") == activation


@each("text", [None, "", "{}", "[]", "[" * 200_000, '{"changes": [1]}', '{"changes": [{"name": "A"}]}'])
def test_a_damaged_activation_is_a_broken_environment(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "activation.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(EnvironmentBrokenError, match="can't be read") as raised:
        read_activation(path)
    assert raised.value.hint == "`tenv create TARGET --repair` creates it again"


@each(
    "toolchain, flags",
    [
        (WHOLE, "-Xlinker=-rpath -Xlinker=/env/cuda/lib64"),
        (replace(WHOLE, cuda=PREFIX, nvcc=PREFIX / "bin/nvcc"), "-Xlinker=-rpath -Xlinker=/env/lib"),
        (replace(WHOLE, system=("cuda-toolkit",)), None),
        (replace(WHOLE, nvcc=None), None),
        (replace(WHOLE, cuda=Path("/my env/cuda")), None),
        (BARE, None),
    ],
)
def test_nvcc_writes_the_folder_of_libraries_into_what_it_links(toolchain: Toolchain, flags: str | None) -> None:
    change = values(toolchain).get("NVCC_APPEND_FLAGS")
    assert (change.value if change else None) == flags


def test_a_toolchain_without_nvcc_names_no_compiler() -> None:
    assert "CUDACXX" not in values(replace(WHOLE, nvcc=None))


def test_without_a_gpu_the_architectures_are_named() -> None:
    archs = Archs(("8.0", "12.0+PTX"), "RELEASE.md")
    found = {change.name: change for change in derive(Manifest("t", "m.toml"), WHOLE, MACHINE, archs).changes}
    assert found["TORCH_CUDA_ARCH_LIST"].value == "8.0;12.0+PTX"
    assert "RELEASE.md" in found["TORCH_CUDA_ARCH_LIST"].reason
    assert "TORCH_CUDA_ARCH_LIST" not in values(WHOLE)
    bare = derive(Manifest("t", "m.toml"), BARE, MACHINE, archs)
    assert "TORCH_CUDA_ARCH_LIST" not in {change.name for change in bare.changes}


def test_the_manifest_s_own_architectures_win() -> None:
    manifest = Manifest("t", "m.toml", environment=wanted(TORCH_CUDA_ARCH_LIST="9.0"))
    changes = derive(manifest, WHOLE, MACHINE, Archs(("8.0",), "x")).changes
    assert [change.value for change in changes if change.name == "TORCH_CUDA_ARCH_LIST"] == ["9.0"]


MACHINES = replace(
    BARE,
    cuda=Path("/usr/local/cuda-12.1"),
    cuda_version=Version("12.1.1"),
    nvcc=Path("/usr/local/cuda-12.1/bin/nvcc"),
    cudnn=CUDA,
    mpi=Path("/opt/openmpi"),
    cc=Path("/usr/bin/gcc-12"),
    cxx=Path("/usr/bin/g++-12"),
    system=("cuda-toolkit", "gcc", "mpi"),
)


def test_the_tools_of_the_machine_are_named_as_such() -> None:
    found = values(MACHINES)
    assert {name: found[name].value for name in ("CC", "CXX", "CUDAHOSTCXX", "NVCC_CCBIN", "MPI_HOME")} == {
        "CC": "/usr/bin/gcc-12",
        "CXX": "/usr/bin/g++-12",
        "CUDAHOSTCXX": "/usr/bin/g++-12",
        "NVCC_CCBIN": "/usr/bin/g++-12",
        "MPI_HOME": "/opt/openmpi",
    }
    assert found["CUDA_HOME"].value == "/usr/local/cuda-12.1"
    assert found["CUDA_HOME"].reason.startswith("CUDA 12.1.1 of this machine; read by")
    assert found["CUDNN_ROOT"].reason.startswith("cuDNN of the environment; read by")
    assert found["PATH"].value == "/env/bin:/usr/local/cuda-12.1/bin:/opt/openmpi/bin"


def test_the_folders_of_every_path_do_not_come_first() -> None:
    debian = replace(MACHINES, cuda=Path("/usr"), nvcc=Path("/usr/bin/nvcc"), mpi=Path("/usr"))
    found = values(debian)
    assert (found["PATH"].value, found["CUDA_HOME"].value) == ("/env/bin", "/usr")


def test_watches_are_kept(tmp_path: Path) -> None:
    watch = Watch((("/usr/local/cuda/bin/nvcc", "/env/stamp"),), "has changed")
    made = Activation("t", PREFIX, (Change("A", Action.SET, "1", "why"),), (watch,))
    (tmp_path / "a.json").write_text(made.to_json())
    assert read_activation(tmp_path / "a.json") == made


def test_options_that_the_user_has_set_stay() -> None:
    compiler = replace(WHOLE, cxx=PREFIX / "bin/x86_64-conda-linux-gnu-c++")
    effects = (
        Effect("LDFLAGS", f"-Wl,-O2 -L{PREFIX}/lib", None, "gcc.sh"),
        Effect("CC_LD", "ld", None, "gcc.sh"),
    )
    made = derive(Manifest("t", "m.toml"), compiler, MACHINE, effects=effects)
    own = {"LDFLAGS": "-L/opt/u", "NVCC_PREPEND_FLAGS": "-lineinfo", "CC_LD": "lld"}
    got = made.apply(own)
    assert got["LDFLAGS"] == "-L/env/lib -L/opt/u"
    assert got["NVCC_PREPEND_FLAGS"] == f"-lineinfo -ccbin={compiler.cxx}"
    assert got["CC_LD"] == "ld"
    assert made.apply({})["LDFLAGS"] == "-L/env/lib"


def test_what_the_manifest_says_of_options_replaces_them() -> None:
    made = derive(Manifest("t", "m.toml", environment=wanted(LDFLAGS="-s")), WHOLE, MACHINE)
    assert made.apply({})["LDFLAGS"] == "-s"
    assert made.apply({"LDFLAGS": "-L/opt/u"})["LDFLAGS"] == "-L/opt/u"


@each("separator", [" ", ":"])
def test_a_change_is_stored_with_its_separator(separator: str, tmp_path: Path) -> None:
    change = Change("A", Action.APPEND, "1", "why", separator)
    made = Activation("t", PREFIX, (change,))
    (tmp_path / "a.json").write_text(made.to_json())
    assert read_activation(tmp_path / "a.json") == made
    assert made.apply({"A": "0"}) == {"A": f"0{separator}1"}


STEERING = (
    "MAX_JOBS",
    "CMAKE_GENERATOR",
    "TORCH_CUDA_ARCH_LIST",
    "_GLIBCXX_USE_CXX11_ABI",
    "CUDAARCHS",
    "USE_MPI",
    "X",
)


def test_a_value_of_the_user_stays_where_it_steers_a_build() -> None:
    manifest = Manifest(
        "t", "m.toml", environment=wanted(USE_MPI="0", X="word", CUDNN_ROOT="/mine", MY_ROOT="/x", CC="c")
    )
    effects = (Effect("CUDAARCHS", "all", None, "nvcc.sh"), Effect("CC_LD", "ld", None, "gcc.sh"))
    compiler = replace(WHOLE, cc=PREFIX / "bin/cc", cxx=PREFIX / "bin/c++", mpi=PREFIX, conda=True)
    made = derive(manifest, compiler, MACHINE, Archs(("9.0",), "why"), effects)
    defaults = {change.name for change in made.changes if change.default}
    assert defaults == {*STEERING}
    own = {change.name: "own" for change in made.changes if change.action is Action.SET}
    got = made.apply(own)
    assert {name for name, value in got.items() if value == "own"} == defaults
    assert not [name for name in got if name.startswith(GIVEN)]
    assert {
        "CUDA_HOME",
        "CC",
        "CC_LD",
        "MY_ROOT",
        "CUDNN_ROOT",
        "TENV_TARGET",
        "PYTHONNOUSERSITE",
    } <= own.keys() - defaults
    for change in made.changes:
        assert change.default == change.reason.endswith("; a value of yours stays")


def test_the_value_of_an_activation_is_none_of_the_user() -> None:
    outer = derive(Manifest("t", "m.toml", environment=wanted(USE_X="1")), WHOLE, MACHINE).apply({"USE_Y": "own"})
    inner = derive(Manifest("u", "m.toml", environment=wanted(USE_X="0", USE_Y="0")), WHOLE, MACHINE).apply(outer)
    assert (outer["USE_X"], inner["USE_X"], inner["USE_Y"]) == ("1", "0", "own")
    assert (
        derive(Manifest("u", "m.toml", environment=wanted(USE_X="0")), WHOLE, MACHINE).apply({**outer, "USE_X": "2"})[
            "USE_X"
        ]
        == "2"
    )


@each("conda, virtual, wanted", [(True, False, "1"), (True, True, None), (False, True, None), (False, False, None)])
def test_packages_of_the_home_folder_are_hidden_from_a_python_that_would_see_them(
    conda: bool, virtual: bool, wanted: str | None
) -> None:
    made = derive(Manifest("t", "m.toml"), replace(WHOLE, conda=conda, virtual=virtual), MACHINE)
    assert made.apply({}).get("PYTHONNOUSERSITE") == wanted
