"""What the tests on real environments do with them: run programs, and configure and build projects of CMake."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PROJECTS", "Bench", "Build", "TorchPrefix", "check", "own_environment"]

PROJECTS = Path(__file__).parent / "projects"

# What PyTorch's build passes on to CMake: all that begins with one of these, and some more by name (its
# tools/setup_helpers/cmake.py, and cmake/EnvVarForwarding.cmake after that).
_FORWARDED_PREFIXES = ("BUILD_", "USE_", "CMAKE_")
_FORWARDED = {
    "CUDNN_ROOT": "CUDNN_ROOT",
    "INTEL_MKL_DIR": "INTEL_MKL_DIR",
    "MKL_THREADING": "MKL_THREADING",
    "TORCH_CUDA_ARCH_LIST": "TORCH_CUDA_ARCH_LIST",
    "CUDACXX": "CUDA_NVCC_EXECUTABLE",
}


def check(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program that must succeed and return all that it printed."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}"
    return done.stdout


def own_environment(folder: Path) -> dict[str, str]:
    """Return this process's environment with user folders of its own; the caches and index settings stay."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TENV_", "CMAKE_", "VIRTUAL_ENV"))
    }
    if "PYTHONPATH" in environment:  # may be relative, and programs are started elsewhere
        entries = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(entry).resolve()) for entry in entries if entry)
    return environment | {
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PWD": str(folder / "work"),
    }


@dataclass(frozen=True, slots=True)
class Build:
    """A configured project.

    Attributes:
        folder: Where it is built.
        talk: What CMake printed while configuring.
    """

    folder: Path
    talk: str

    def cache(self) -> dict[str, str]:
        """Return the entries of CMake's cache."""
        text = (self.folder / "CMakeCache.txt").read_text()
        return dict(re.findall(r"^([^/#\s][^:]*):[A-Z]+=(.*)$", text, re.MULTILINE))

    def reported(self) -> dict[str, str]:
        """Return what the project reported, as `NAME=VALUE` in status messages."""
        return dict(re.findall(r"^-- (\w+)=(.*)$", self.talk, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Bench:
    """Real environments in a user's folders of their own.

    Attributes:
        folder: The folder that all is in.
        environment: The variables that the command line is started with.
    """

    folder: Path
    environment: Mapping[str, str]

    @property
    def work(self) -> Path:
        """An empty folder outside any project, where commands are started."""
        return self.folder / "work"

    def tenv(self, *arguments: str | Path) -> str:
        """Run the command line and return all that it printed."""
        return check([sys.executable, "-m", "tenv", *arguments], self.work, self.environment)

    def prefix(self, target: str) -> Path:
        """Return the folder of a target's environment."""
        return self.folder / "data" / "tenv" / "envs" / target

    def run(self, where: str | Path, *command: str | Path) -> str:
        """Run a program in the environment of a target, or in the one of cuda130 at a prefix."""
        place = [where] if isinstance(where, str) else ["--prefix", where, "cuda130"]
        return self.tenv("run", *place, "--", *command)

    def variables(self, target: str) -> dict[str, str]:
        """Return the variables that programs see in an environment."""
        lines = self.run(target, "env", "-0").split("\0")
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def packages(self, target: str) -> dict[str, str]:
        """Return the versions of the wheels in an environment, by the names of their metadata folders."""
        names = (path.stem for path in self.prefix(target).glob("lib/python3*/site-packages/*.dist-info"))
        return {name: version for name, _, version in (name.partition("-") for name in names)}

    def configure(self, target: str, project: str, build: Path, *options: str) -> Build:
        """Configure a project with the CMake of an environment."""
        talk = self.run(target, "cmake", "-S", PROJECTS / project, "-B", build, *options)
        return Build(build, talk)

    def configure_as_pytorch(self, target: str, project: str, build: Path, *options: str) -> Build:
        """Configure a project with the options that PyTorch's build would make of the environment's variables."""
        prefix = self.prefix(target)
        (packages,) = prefix.glob("lib/python3*/site-packages")
        forwarded = [f"-DPython_EXECUTABLE={prefix / 'bin' / 'python'}"]
        for name, value in sorted(self.variables(target).items()):
            if name == "CMAKE_PREFIX_PATH":
                forwarded.append(f"-D{name}={packages};{value}")
            elif name in _FORWARDED or name.startswith(_FORWARDED_PREFIXES):
                forwarded.append(f"-D{_FORWARDED.get(name, name)}={value}")
        return self.configure(target, project, build, *forwarded, *options)

    def compile(self, target: str, build: Build) -> str:
        """Build a configured project with the programs of an environment."""
        return self.run(target, "cmake", "--build", build.folder, "--verbose")

    def strange_toolkits(self, build: Build) -> list[str]:
        """Return what CMake's cache names of CUDA toolkits that are not the environment's."""
        paths = {path for value in build.cache().values() for path in value.split(";") if path.startswith("/")}
        return sorted(
            path
            for path in paths
            if any(part.startswith("cuda") for part in Path(path).parts) and not Path(path).is_relative_to(self.folder)
        )

    def libraries(self, program: Path) -> dict[str, str]:
        """Return where the loader finds each library of a program, by its name, with no help from a variable."""
        talk = check(["env", "-u", "LD_LIBRARY_PATH", "ldd", program], self.work)
        return dict(re.findall(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", talk, re.MULTILINE))


@dataclass(frozen=True, slots=True)
class TorchPrefix:
    """An environment of cuda130 into which somebody has installed PyTorch.

    Attributes:
        prefix: The environment.
        cmake: A copy of the CMake files of that PyTorch, which outlives it.
    """

    prefix: Path
    cmake: Path
