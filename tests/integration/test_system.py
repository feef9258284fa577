"""`cuda-system` with a real toolkit: the one below ``/usr/local``, or else one made of the wheels of `cuda130`."""

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.integration.bench import Bench, check, own_environment
from tests.support.fakes import change_byte

pytestmark = pytest.mark.real

_INSTALLED = Path("/usr/local/cuda")
_PARTS = {"bin", "include", "lib", "lib64", "nvvm", "targets", "version.json", "version.txt"}
_LIBRARIES = ("libcudart", "libcudadevrt", "libculibos", "libnvvm", "stubs")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with a toolkit.

    Attributes:
        bench: Runs tenv on it.
        toolkit: The toolkit that it takes.
    """

    bench: Bench
    toolkit: Path

    def says(self, *words: str | Path) -> str:
        """Run a command line of tenv and return what it prints."""
        return self.bench.tenv(*words)


def copy(source: Path, target: Path, *, links: bool) -> Path:
    """Copy what compiles out of a toolkit: its math libraries are gigabytes."""

    def ignore(folder: str, names: list[str]) -> list[str]:
        if Path(folder) == source:
            return [name for name in names if name not in _PARTS]
        if Path(folder).name in ("lib", "lib64"):
            return [name for name in names if not name.startswith(_LIBRARIES)]
        return []

    return Path(shutil.copytree(source, target, symlinks=links, ignore=ignore))


@pytest.fixture(scope="module")
def toolkit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a real toolkit, which a test may change."""
    folder = tmp_path_factory.mktemp("toolkit")
    if (_INSTALLED / "bin" / "nvcc").is_file():
        return copy(_INSTALLED.resolve(), folder / "cuda", links=True)
    wheels: Bench = request.getfixturevalue("bench")
    return copy(wheels.prefix("cuda130") / "cuda", folder / "cuda", links=False)


@pytest.fixture(scope="module")
def machine(toolkit: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The environment `cuda-system`, made with that copy."""
    assert shutil.which("gcc"), "the tests on real packages need a host compiler: gcc and g++"
    assert shutil.which("g++"), "the tests on real packages need a host compiler: gcc and g++"
    folder = tmp_path_factory.mktemp("system")
    (folder / "work").mkdir()
    environment = {name: value for name, value in own_environment(folder).items() if not name.startswith("CUDA")}
    made = Machine(Bench(folder, environment | {"CUDA_HOME": str(toolkit)}), toolkit)
    talk = made.says("create", "cuda-system", "--no-check")
    assert f"of the system: {toolkit} (CUDA_HOME)" in talk
    yield made
    shutil.rmtree(folder)


def test_a_program_is_compiled_with_the_machine_s_toolkit(machine: Machine, tmp_path: Path) -> None:
    bench = machine.bench
    build = bench.configure("cuda-system", "system", tmp_path / "build", "-DCMAKE_CUDA_ARCHITECTURES=90")
    variables = bench.variables("cuda-system")
    said = build.reported()
    assert said["CMAKE_CUDA_COMPILER"] == f"{machine.toolkit}/bin/nvcc"
    assert said["CMAKE_CXX_COMPILER"] == said["CMAKE_CUDA_HOST_COMPILER"] == variables["CXX"]
    assert "nvcc -forward" in bench.compile("cuda-system", build)
    headers, runtime = check([build.folder / "release"], tmp_path).split()
    assert headers[:-1] == runtime[:-1]
    release = bench.run("cuda-system", "nvcc", "--version").partition("release ")[2].partition(",")[0]
    major, minor = map(int, release.split("."))
    assert int(headers) // 10 == major * 100 + minor


def test_cuda_system_takes_what_is_installed(machine: Machine) -> None:
    if not (_INSTALLED / "bin" / "nvcc").is_file():
        pytest.skip("nothing is installed below /usr/local; the other tests have used a toolkit made of wheels")
    environment = {name: value for name, value in machine.bench.environment.items() if name != "CUDA_HOME"}
    bench = replace(machine.bench, environment=environment)
    prefix = bench.folder / "installed"
    talk = bench.tenv("create", "cuda-system", "--no-check", "--prefix", prefix)
    assert f"of the system: {_INSTALLED.resolve()} (" in talk
    assert bench.tenv("run", "--prefix", prefix, "cuda-system", "--", "printenv", "CUDA_HOME").strip() == str(
        _INSTALLED.resolve()
    )


def raises_alarm(machine: Machine, change: Callable[[Path], None], *, in_shell: bool) -> None:
    """Change nvcc, look for the alarm, put it back, and look for silence."""
    nvcc = machine.toolkit / "bin" / "nvcc"
    kept = nvcc.with_name("kept")
    shutil.copy2(nvcc, kept)
    script = shlex.quote(str(machine.bench.prefix("cuda-system") / "tenv-meta" / "activate.sh"))
    try:
        change(nvcc)
        said = f"of the system ({machine.toolkit}): bin/nvcc has changed; `tenv create"
        assert said in machine.bench.run("cuda-system", "true")
        shell = check(["sh", "-euc", f". {script}"], machine.bench.work)
        assert (f"({machine.toolkit}) has changed or is missing" in shell) is in_shell
        assert (said in machine.says("activate", "cuda-system")) is not in_shell
        with pytest.raises(AssertionError, match=r"status 8\n(.*\n)?changed  .*/bin/nvcc \(system\)"):
            machine.says("verify", "cuda-system", "--no-probes")
    finally:
        shutil.copy2(kept, nvcc)
        kept.unlink()
    assert machine.bench.run("cuda-system", "true") == ""
    assert check(["sh", "-euc", f". {script}"], machine.bench.work) == ""


def test_verify_compiles_with_the_machine_s_toolkit(machine: Machine) -> None:
    assert "all files are intact" in machine.says("verify", "cuda-system", "--no-probes")
    with pytest.raises(AssertionError) as raised:  # the copy has four parts of a toolkit, which a probe says
        machine.says("verify", "cuda-system")
    assert "works    nvcc" in str(raised.value)
    assert "fails    toolkit" in str(raised.value)


def test_a_byte_of_nvcc_raises_the_alarm(machine: Machine) -> None:
    raises_alarm(machine, change_byte, in_shell=True)


def test_a_byte_of_nvcc_raises_the_alarm_even_where_its_time_was_put_back(machine: Machine) -> None:
    def change(path: Path) -> None:
        info = path.stat()
        change_byte(path)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))

    raises_alarm(machine, change, in_shell=False)
