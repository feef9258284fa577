"""Real environments: made once a session by the real command line, from the package index, and removed after it."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration import debian
from tests.integration.bench import Bench, TorchPrefix, check, own_environment

_TORCH = "2.13.0"
_TORCH_NEEDS = ("filelock", "fsspec", "jinja2", "networkx", "sympy")
_FOLDER = Path(__file__).parent
_CHECKOUT = "TENV_TEST_PYTORCH"
"""Names a checkout of PyTorch to take the find modules from, where there is no Debian to take them from."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that share environments or downloads in one process, where `--dist loadgroup` shares them out."""
    here = [item for item in items if isinstance(item, pytest.Function) and item.path.is_relative_to(_FOLDER)]
    groups = {item.path: item.path.stem for item in here} | {_FOLDER / "test_system.py": "bench"}
    for fixture in ("bench", "fetch_wheel"):
        groups |= {item.path: fixture for item in here if fixture in item.fixturenames}
    for item in here:
        item.add_marker(pytest.mark.xdist_group(groups[item.path]))


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The environments `cpu` and `cuda130`, outside any project."""
    assert shutil.which("gcc"), "the tests on real packages need a host compiler: gcc and g++"
    assert shutil.which("g++"), "the tests on real packages need a host compiler: gcc and g++"
    folder = tmp_path_factory.mktemp("real")
    (folder / "work").mkdir()
    made = Bench(folder, own_environment(folder))
    for target in ("cpu", "cuda130"):
        assert f"{target} is ready in {made.prefix(target)}" in made.tenv("create", target)
    yield made
    shutil.rmtree(folder)  # several GB, and pytest would keep those of the last three sessions


@pytest.fixture(scope="session")
def fetch_wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Fetches a wheel for Linux with pip, which knows the index of this machine; each once a session."""
    folder = tmp_path_factory.mktemp("wheels")
    found: dict[str, Path] = {}

    def fetch(requirement: str) -> Path:
        if requirement not in found:
            home = folder / str(len(found))
            words = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp"]
            words += ["--platform", "manylinux_2_27_x86_64", "--platform", "manylinux2014_x86_64"]
            check([sys.executable, "-m", "pip", "download", "-q", *words, requirement, "-d", home], folder)
            (found[requirement],) = home.glob("*.whl")
        return found[requirement]

    yield fetch
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def torch(bench: Bench) -> TorchPrefix:
    """PyTorch in an environment of its own, without its dependencies: those of the CUDA wheel would replace ours."""
    prefix = bench.folder / "torch"
    bench.tenv("create", "cuda130", "--prefix", prefix)
    bench.run(prefix, "python", "-m", "pip", "install", "--quiet", "--no-deps", f"torch=={_TORCH}")
    bench.run(prefix, "python", "-m", "pip", "install", "--quiet", *_TORCH_NEEDS)
    (packages,) = prefix.glob("lib/python3*/site-packages")
    cmake = bench.folder / "torch-cmake"
    shutil.copytree(packages / "torch" / "share" / "cmake" / "Caffe2", cmake)
    return TorchPrefix(prefix, cmake)


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `cmake` folder of a PyTorch source tree, which has find modules that no wheel carries."""
    if given := os.environ.get(_CHECKOUT):
        return Path(given) / "cmake"
    folder = tmp_path_factory.mktemp("pytorch")
    archive = debian.fetch_source("pytorch", folder / "apt", check)
    return debian.extract(archive, "cmake", folder / "checkout")
