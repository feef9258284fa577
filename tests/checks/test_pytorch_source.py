"""What a checkout of PyTorch asks for, in the wording of several releases."""

from pathlib import Path

import pytest

from tenv.checks.checkout_state import CheckoutState
from tenv.checks.pytorch_source import AbiChoice, SourceRequirement, SourceTree, from_release, read_source
from tenv.core.process import Missing
from tenv.core.versions import Range, Version
from tenv.facts.tables import load_facts
from tests.support.each import each

OLD = {
    "version.txt": "1.8.0a0\n",
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.5 FATAL_ERROR)
#cmake_policy(SET CMP0022 NEW)
project(Caffe2 CXX C)
set(CMAKE_CXX_STANDARD 14)
""",
    "setup.py": "python_min_version = (3, 6, 2)\npython_min_version_str = '.'.join(map(str, python_min_version))\n",
    "cmake/public/cuda.cmake": """\
if(CUDA_VERSION VERSION_LESS 9.0)
  message(FATAL_ERROR "PyTorch requires CUDA 9.0 and above.")
endif()
  if(CUDNN_VERSION VERSION_LESS "7.0.0")
    message(FATAL_ERROR "PyTorch requires cuDNN 7 and above.")
""",
    "c10/util/C++17.h": """\
#if !defined(__clang__) && !defined(_MSC_VER) && defined(__GNUC__) && \\
  __GNUC__ < 5
#error "You're trying to build PyTorch with a too old version of GCC. We need GCC 5 or later."
#endif

#if defined(__clang__) && __clang_major__ < 4
#error "You're trying to build PyTorch with a too old version of Clang. We need Clang 4 or later."
#endif
""",
}
"""As 1.8 words it."""

MIDDLE = {
    "version.txt": "2.6.0a0+gitdeadbee\n",
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18 FATAL_ERROR)
project(Torch CXX C)
set(CMAKE_CXX_STANDARD
    17
    CACHE STRING
          "The C++ standard whose features are requested to build this target.")
set(CMAKE_C_STANDARD
    11
    CACHE STRING "The C standard whose features are requested to build this target.")

# --- [ Check that minimal gcc version is 9.3+
if(CMAKE_COMPILER_IS_GNUCXX AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 9.3)
  message(
    FATAL_ERROR
      "GCC-9.3 or newer is required to compile PyTorch, but found ${CMAKE_CXX_COMPILER_VERSION}"
  )
endif()
""",
    "pyproject.toml": """\
[build-system]
requires = ["setuptools", "cmake", "ninja"]
build-backend = "setuptools.build_meta:__legacy__"
[tool.black]
""",
    "setup.py": "python_min_version = (3, 9, 0)\n",
    "README.md": "- A compiler that fully supports C++17, such as clang or gcc (gcc 9.4.0 or newer is required)\n",
    "cmake/public/cuda.cmake": OLD["cmake/public/cuda.cmake"].replace("9.0", "11.0").replace("cuDNN 7", "cuDNN 8.1"),
    "c10/util/C++17.h": OLD["c10/util/C++17.h"].replace("GCC 5", "GCC 9").replace("Clang 4", "Clang 9"),
    ".gitmodules": """\
[submodule "third_party/pybind11"]
    ignore = dirty
    path = third_party/pybind11
    url = https://github.com/pybind/pybind11.git
[submodule "third_party/fmt"]
    path = third_party/fmt
    url = https://github.com/fmtlib/fmt.git
[submodule "third_party/gone"]
    path = third_party/gone
""",
    "third_party/pybind11/CMakeLists.txt": "",
}
"""As 2.6 words it, with one submodule there."""

NEW = {
    "version.txt": "2.15.0a0\n",
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.18...4.0 FATAL_ERROR)
project(Torch CXX C)
set(CMAKE_CXX_STANDARD 20 CACHE STRING "The C++ standard whose features are requested to build this target.")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS "11.3")
  message(FATAL_ERROR "too old")
endif()
""",
    "pyproject.toml": """\
[build-system]
requires = ["scikit-build-core>=0.11", "cmake>=3.27,<5", "ninja"]
build-backend = "scikit_build_core.build"
[project]
name = "torch"
requires-python = ">=3.11"
[tool.scikit-build]
cmake.version = ">=3.27"
""",
    "setup.py": "# a shim\n",
    "cmake/EnvVarForwarding.cmake": "# USE_*, BUILD_*, CMAKE_*\n",
    "cmake/public/cuda.cmake": 'message(FATAL_ERROR "PyTorch requires CUDA 12.6 or above.")\n',
}
"""As the era of scikit-build-core words it."""


def checkout(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def read(folder: Path, files: dict[str, str]) -> SourceTree:
    tree = read_source(checkout(folder, files))
    assert isinstance(tree, SourceTree)
    return tree


def test_the_era_of_setup_py(tmp_path: Path) -> None:
    tree = read(tmp_path, OLD)
    assert tree == SourceTree(
        root=tmp_path,
        version=SourceRequirement("1.8.0a0", "version.txt"),
        python=SourceRequirement(Range(">=3.6.2"), "setup.py:1"),
        cmake_min=SourceRequirement(Version("3.5"), "CMakeLists.txt:1"),
        gcc_min=SourceRequirement(Version("5"), "c10/util/C++17.h:3"),
        clang_min=SourceRequirement(Version("4"), "c10/util/C++17.h:7"),
        cuda_min=SourceRequirement(Version("9.0"), "cmake/public/cuda.cmake:2"),
        cudnn_min=SourceRequirement(Version("7"), "cmake/public/cuda.cmake:5"),
        cxx_standard=SourceRequirement(14, "CMakeLists.txt:4"),
        abi=SourceRequirement(AbiChoice.ENVIRONMENT, "setup.py"),
        build_backend=SourceRequirement("setuptools", "setup.py"),
        state=CheckoutState(),
    )
    assert str(tree.release) == "1.8.0"


def test_the_strictest_of_several_places_counts(tmp_path: Path) -> None:
    tree = read(tmp_path, MIDDLE)
    assert tree.gcc_min == SourceRequirement(Version("9.3"), "CMakeLists.txt:15")
    assert tree.cxx_standard == SourceRequirement(17, "CMakeLists.txt:4")
    assert tree.python == SourceRequirement(Range(">=3.9.0"), "setup.py:1")
    assert tree.cmake_min == SourceRequirement(Version("3.18"), "CMakeLists.txt:1")
    assert tree.build_backend == SourceRequirement("setuptools", "pyproject.toml")
    assert tree.cuda_min == SourceRequirement(Version("11.0"), "cmake/public/cuda.cmake:2")
    assert tree.cudnn_min == SourceRequirement(Version("8.1"), "cmake/public/cuda.cmake:5")
    assert str(tree.release) == "2.6.0"


def test_submodules_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "third_party" / "fmt").mkdir(parents=True)  # as `git clone` without --recursive leaves it
    assert read(tmp_path, MIDDLE).state == CheckoutState(broken=("third_party/fmt", "third_party/gone"))


def test_the_era_of_scikit_build_core(tmp_path: Path) -> None:
    tree = read(tmp_path, NEW)
    assert tree.python == SourceRequirement(Range(">=3.11"), "pyproject.toml")
    assert tree.cmake_min == SourceRequirement(Version("3.27"), "pyproject.toml")
    assert tree.gcc_min == SourceRequirement(Version("11.3"), "CMakeLists.txt:4")
    assert tree.clang_min == Missing("no file checks the version of clang")
    assert tree.cuda_min == SourceRequirement(Version("12.6"), "cmake/public/cuda.cmake:1")
    assert tree.cxx_standard == SourceRequirement(20, "CMakeLists.txt:3")
    assert tree.build_backend == SourceRequirement("scikit-build-core", "pyproject.toml")
    assert tree.abi == SourceRequirement(AbiChoice.COMPILER, "cmake/EnvVarForwarding.cmake")


def test_a_tree_that_passes_the_abi_on_says_so(tmp_path: Path) -> None:
    files = NEW | {"cmake/EnvVarForwarding.cmake": "list(APPEND names _GLIBCXX_USE_CXX11_ABI)\n"}
    assert read(tmp_path, files).abi.value is AbiChoice.ENVIRONMENT


def test_what_the_readme_names_counts_when_nothing_is_enforced(tmp_path: Path) -> None:
    files = {name: MIDDLE[name] for name in ("version.txt", "README.md")} | {"CMakeLists.txt": "project(Torch CXX C)\n"}
    tree = read(tmp_path, files)
    assert tree.gcc_min == SourceRequirement(Version("9.4.0"), "README.md:1")
    assert tree.cmake_min == Missing("CMakeLists.txt has no cmake_minimum_required")
    assert tree.cxx_standard == Missing("CMakeLists.txt sets no C++ standard")
    assert tree.python == Missing("neither pyproject.toml nor setup.py names the Python versions")
    assert tree.cuda_min == Missing("cmake/public/cuda.cmake names no version")
    assert isinstance(tree.build_backend, Missing)
    assert tree.abi.value is AbiChoice.ENVIRONMENT
    assert tree.state == CheckoutState()


@each(
    "project, backend",
    [
        ('[build-system]\nbuild-backend = "in_tree_backend"\n', "in_tree_backend"),
        ("[tool.scikit-build]\n", "scikit-build-core"),
        ("this is not TOML", "setuptools"),
        ("a = " + "1" * 5000, "setuptools"),
        ("a = " + "[" * 5000, "setuptools"),
    ],
)
def test_build_backend(tmp_path: Path, project: str, backend: str) -> None:
    found = read(tmp_path, OLD | {"pyproject.toml": project}).build_backend
    assert isinstance(found, SourceRequirement)
    assert found.value == backend


@each("setup", ["      python_requires='>=3.6.1',\n", 'python_requires=">=3.6.1"\n'])
def test_python_requires_in_setup_py(tmp_path: Path, setup: str) -> None:
    assert read(tmp_path, OLD | {"setup.py": setup}).python == SourceRequirement(Range(">=3.6.1"), "setup.py:1")


def test_a_range_that_can_t_be_read_is_passed_over(tmp_path: Path) -> None:
    tree = read(tmp_path, OLD | {"pyproject.toml": '[project]\nrequires-python = "new"\n'})
    assert tree.python == SourceRequirement(Range(">=3.6.2"), "setup.py:1")


@each(
    "files, reason",
    [
        ({}, "has no version.txt, so it is not a checkout of PyTorch"),
        ({"version.txt": "\n"}, "has no version.txt, so it is not a checkout of PyTorch"),
        ({"version.txt": "main\n"}, "holds no version but `main`"),
        ({"version.txt": f"2.{'9' * 5000}\n"}, f"holds no version but `2.{'9' * 38}`"),
        ({"version.txt": "1.0\n"}, "has a version.txt, but its CMakeLists.txt is not PyTorch's"),
        ({"version.txt": "1.0\n", "CMakeLists.txt": "project(vision)\n"}, "CMakeLists.txt is not PyTorch's"),
    ],
)
def test_a_folder_that_is_no_checkout(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    found = read_source(checkout(tmp_path, files))
    assert isinstance(found, Missing)
    assert found.reason.endswith(reason)


def test_from_release() -> None:
    row = load_facts().pytorch_build.release("2.14.1")
    assert row is not None
    tree = from_release("2.14.1", row.asked(), row.basis.source)
    assert tree.root is None
    assert tree.python == SourceRequirement(Range(">=3.10"), row.basis.source)
    assert tree.gcc_min == SourceRequirement(Version("11.3.0"), row.basis.source)
    assert tree.cuda_min == SourceRequirement(Version("12.6"), row.basis.source)
    assert tree.clang_min == SourceRequirement(Version("16"), row.basis.source)
    assert tree.abi.value is AbiChoice.COMPILER
    assert str(tree.release) == "2.14.1"


def test_every_release_of_the_facts_can_be_read() -> None:
    for row in load_facts().pytorch_build.releases:
        assert from_release(row.version.text, row.asked(), "facts").release == row.version


def test_from_release_without_a_version() -> None:
    with pytest.raises(ValueError, match="`main` does not begin with a version such as"):
        from_release("main", {}, "facts")


def test_to_json(tmp_path: Path) -> None:
    data = read(tmp_path, NEW).to_json()
    assert data["root"] == str(tmp_path)
    assert data["cuda_min"] == {"value": "12.6", "origin": "cmake/public/cuda.cmake:1"}
    assert data["cxx_standard"] == {"value": 20, "origin": "CMakeLists.txt:3"}
    assert data["clang_min"] == {"missing": "no file checks the version of clang"}
    assert data["abi"]["value"] == "compiler"
    assert data["missing_submodules"] == []


def test_the_strictest_of_several_checks_counts(tmp_path: Path) -> None:
    """As in the trunk of June 2026: clang in CMakeLists.txt, and cuDNN in two files."""
    lists = """\
project(Torch CXX C)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(
    FATAL_ERROR
      "Clang-16 or newer is required to compile PyTorch, but found ${CMAKE_CXX_COMPILER_VERSION}"
  )
endif()
"""
    files = {
        "version.txt": "2.13.0a0\n",
        "CMakeLists.txt": lists,
        "cmake/public/cuda.cmake": 'message(FATAL_ERROR "PyTorch requires cuDNN 8.1 and above.")\n',
        "cmake/Dependencies.cmake": '\nmessage(FATAL_ERROR "PyTorch needs CuDNN-8.5 or above")\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    tree = read_source(tmp_path)
    assert isinstance(tree, SourceTree)
    assert tree.clang_min == SourceRequirement(Version("16"), "CMakeLists.txt:5")
    assert tree.cudnn_min == SourceRequirement(Version("8.5"), "cmake/Dependencies.cmake:2")
