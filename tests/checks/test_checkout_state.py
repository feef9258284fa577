"""What a checkout holds beside its sources, read as PyTorch's own check and CMake read it."""

from dataclasses import replace
from pathlib import Path

from tenv.checks.checkout_state import EXPECTED, CheckoutState, read_state
from tests.checks.rules.cases import case, found
from tests.support.each import each

SETUP = """\
report(" --- Trying to initialize submodules")
def check_submodules(): ...
THIRD_PARTY / "fbgemm/external/asmjit"
"""
MODULES = '[submodule "third_party/fmt"]\n\tpath = third_party/fmt\n[submodule "fbgemm"]\n\tpath = third_party/fbgemm\n'
ASMJIT = "third_party/fbgemm/external/asmjit/CMakeLists.txt"


def tree(root: Path, *files: str, modules: str = MODULES, setup: str = SETUP) -> CheckoutState:
    """Write a checkout and read it."""
    for name in ("third_party/fmt", "third_party/fbgemm"):
        (root / name).mkdir(parents=True)
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    if modules:
        (root / ".gitmodules").write_text(modules)
    if setup:
        (root / "setup.py").write_text(setup)
    return read_state(root)


def moved(state: CheckoutState) -> str:
    assert state.cache is not None
    return state.cache.moved


def cached(root: Path, *lines: str) -> CheckoutState:
    (root / "build").mkdir()
    home = f"CMAKE_HOME_DIRECTORY:INTERNAL={root}"
    (root / "build/CMakeCache.txt").write_text("\n".join(["# comment", "//Help text", home, *lines]) + "\n")
    return read_state(root)


@each("name", EXPECTED)
def test_one_of_six_files_makes_a_submodule_whole(tmp_path: Path, name: str) -> None:
    assert tree(tmp_path, f"third_party/fmt/{name}", "third_party/fbgemm/README", ASMJIT).broken == (
        "third_party/fbgemm",
    )


def test_a_submodule_with_other_files_alone_is_half(tmp_path: Path) -> None:
    state = tree(tmp_path, "third_party/fmt/README.rst", "third_party/fbgemm/CMakeLists.txt", ASMJIT)
    assert state.broken == ("third_party/fmt",)
    assert not state.brings


def test_a_submodule_of_a_submodule(tmp_path: Path) -> None:
    state = tree(tmp_path, "third_party/fmt/LICENSE", "third_party/fbgemm/CMakeLists.txt")
    assert state.broken == ("third_party/fbgemm/external/asmjit",)


def test_asmjit_where_older_revisions_had_it(tmp_path: Path) -> None:
    old = "third_party/fbgemm/third_party/asmjit/CMakeLists.txt"
    assert tree(tmp_path, "third_party/fmt/LICENSE", "third_party/fbgemm/LICENSE", old).broken == ()


@each(
    "named",
    [
        'check_for_files(\n        os.path.join(third_party_path, "fmt", "third_party", "benchmark"), ["x"],\n)',
        'check_file(os.path.join(third_party_path, "fmt", "third_party", "benchmark", "CMakeLists.txt"))',
    ],
)
def test_what_else_the_check_names(tmp_path: Path, named: str) -> None:
    whole = ("third_party/fmt/LICENSE", "third_party/fbgemm/LICENSE", ASMJIT)
    text = f'{SETUP}{named}\ncheck_file(os.path.join(third_party_path, "gloo", "CMakeLists.txt"))\n'
    assert tree(tmp_path / "without", *whole, setup=text).broken == ("third_party/fmt/third_party/benchmark",)
    there = "third_party/fmt/third_party/benchmark/CMakeLists.txt"
    assert tree(tmp_path / "with", *whole, there, setup=text).broken == ()
    assert tree(tmp_path / "empty", *whole[1:], setup=text).broken == ("third_party/fmt",)


@each("git, setup, brings", [(True, SETUP, True), (False, SETUP, False), (True, "", False)])
def test_who_brings_submodules_that_are_all_empty(tmp_path: Path, git: bool, setup: str, brings: bool) -> None:
    if git:
        (tmp_path / ".git").mkdir()
    state = tree(tmp_path, setup=setup)
    assert state.broken == ("third_party/fmt", "third_party/fbgemm")
    assert state.brings is brings
    (finding,) = found("TE611", case(torch="2.9.1", state=state))
    assert str(finding.severity) == "error"
    assert ("setup.py would fetch them" in finding.message) is brings


def test_without_gitmodules_the_check_has_a_list_of_its_own(tmp_path: Path) -> None:
    assert len(tree(tmp_path, modules="", setup="x = 'third_party'; check_submodules()").broken) == 5


def test_without_gitmodules_and_without_a_check_nothing_is_asked(tmp_path: Path) -> None:
    assert tree(tmp_path, modules="", setup="").broken == ()


def test_a_path_that_no_file_can_have_is_no_submodule(tmp_path: Path) -> None:
    modules = MODULES + '[submodule "bad"]\n\tpath = third_party/a\0b\n'
    assert tree(tmp_path, modules=modules).broken == tree(tmp_path / "other", modules=MODULES).broken


def test_eigen_by_its_pin(tmp_path: Path) -> None:
    state = tree(tmp_path, "third_party/fmt/LICENSE", "third_party/fbgemm/LICENSE", ASMJIT, "third_party/eigen_pin.txt")
    assert state.eigen_missing
    (tmp_path / "third_party/eigen").mkdir()
    (tmp_path / "third_party/eigen/README").write_text("")
    assert not read_state(tmp_path).eigen_missing


def test_a_cache_that_fits(tmp_path: Path) -> None:
    (tmp_path / "g++").write_text("")
    cache = cached(
        tmp_path,
        f"CMAKE_CXX_COMPILER:FILEPATH={tmp_path}/g++",
        "BLAS_LIB:FILEPATH=BLAS_LIB-NOTFOUND",
        f"CMAKE_INSTALL_PREFIX:PATH={tmp_path}/torch",
        "USE_CUDA:BOOL=ON",
    ).cache
    assert cache is not None
    assert (cache.gone, cache.moved) == ((), "")
    assert cache.value("USE_CUDA") == "ON"
    assert cache.value("NOTHING") == ""


def test_a_cache_with_files_that_are_gone(tmp_path: Path) -> None:
    cache = cached(tmp_path, "NVRTC:FILEPATH=/nowhere/libnvrtc.so", "CUDA_TOOLKIT_ROOT_DIR:PATH=/nowhere/cuda").cache
    assert cache is not None
    assert cache.gone == ("NVRTC", "CUDA_TOOLKIT_ROOT_DIR")


def test_a_cache_of_a_checkout_that_was_moved(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    here.mkdir()
    assert moved(cached(here)) == ""
    here.rename(there)
    assert moved(read_state(there)) == str(here)
    here.symlink_to(there)  # two names of one folder
    assert moved(read_state(there)) == ""


def test_a_cached_switch_wins_where_variables_are_forwarded(tmp_path: Path) -> None:
    state = cached(tmp_path, "USE_MPI:STRING=1", "USE_NCCL:STRING=ON", "TORCH_CUDA_ARCH_LIST:STRING=8.0")
    manifest = {"environment": {"USE_MPI": "0", "USE_NCCL": "1"}}
    asked = case(torch="2.13.0", state=state, manifest=manifest, activated={"TORCH_CUDA_ARCH_LIST": "9.0"})
    assert asked.source is not None
    asked = replace(asked, source=replace(asked.source, root=tmp_path))
    assert found("TE612", asked) == []  # setup.py passes each variable itself
    (tmp_path / "cmake").mkdir()
    (tmp_path / "cmake/EnvVarForwarding.cmake").write_text("")
    (finding,) = found("TE612", asked)
    assert finding.severity == "warning"
    assert "USE_MPI=1, where activation sets 0" in finding.message
    assert "TORCH_CUDA_ARCH_LIST=8.0" in finding.message
    assert "USE_NCCL" not in finding.message


@each(
    "built, left, torch, severity",
    [
        ("0.4.0a0+git1", "torch/lib/tmp_install/include/TH/TH.h", "0.3.0", "error"),
        ("2.8.0a0+gitba56102", "build/build.ninja", "2.9.1", "warning"),
        ("2.9.0a0+git1", "build/build.ninja", "2.9.1", None),
        ("2.8.0", "torch/lib/README", "2.9.1", None),
        ("x", "build/build.ninja", "2.9.1", None),
    ],
)
def test_what_another_release_built(tmp_path: Path, built: str, left: str, torch: str, severity: str | None) -> None:
    tree(tmp_path, left, "torch/version.py")
    (tmp_path / "torch/version.py").write_text(f"__all__ = ['__version__']\n__version__ = '{built}'\ndebug = False\n")
    findings = found("TE612", case("12.8", torch=torch, state=read_state(tmp_path)))
    assert [str(finding.severity) for finding in findings] == ([severity] if severity else [])
    assert all(f"what PyTorch {built} built" in finding.message for finding in findings)
