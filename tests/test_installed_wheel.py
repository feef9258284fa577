"""The built wheel, unpacked as an installer does: what runs by its path, and what is found by a path, is there."""

import json
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tenv import __version__
from tenv.core.source_commit import source_commit
from tests.activation.test_conda_scripts import has_landlock
from tests.host.builders import needs_compiler, nvml
from tests.support.projects import until
from tests.support.rarely import first_fast, some_fast

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tenv"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site-packages of its own that holds nothing but the wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
    return folder / "site"


def test_it_names_the_commit_of_the_checkout_and_starts_no_git(site: Path, tmp_path: Path) -> None:
    git = tmp_path / "git"
    git.write_text(f"#!/bin/sh\n: >{tmp_path}/started\n")
    git.chmod(0o755)
    python = [sys.executable, "-S", "-m", "tenv", "--version"]
    done = run(*python, PYTHONPATH=str(site), PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    commit = source_commit(str(SOURCE))
    assert done.stdout == (f"tenv {__version__} ({commit[:12]})\n" if commit else f"tenv {__version__}\n")
    assert not (tmp_path / "started").exists()


def run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, check=False)


def programs() -> set[str]:
    """Return the files of the package that do something when they are run by their path."""
    guard = '\nif __name__ == "__main__":'
    return {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if guard in path.read_text()}


def test_every_file_that_runs_by_its_path_is_run_here() -> None:
    assert programs() == {
        "__main__.py",
        "activation/sandbox.py",
        "builds/editable_wheel.py",
        "builds/record_extensions.py",
        "core/supervisor.py",
        "host/nvml_child.py",
        "install/standalone.py",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="a shell")
def test_the_sandbox_runs_a_program(site: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    code = f"echo said; echo x >{tmp_path}/own/file; echo x >{tmp_path}/other/file"
    sandbox = site / "tenv" / "activation" / "sandbox.py"
    done = run(sys.executable, "-I", sandbox, tmp_path / "own", "/bin/sh", "-c", code)
    assert done.stdout == "said\n"
    assert (tmp_path / "own" / "file").is_file()
    confined = sys.platform == "linux" and has_landlock()
    assert (tmp_path / "other" / "file").exists() is not confined


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is supervised")
def test_the_supervisor_runs_a_program_and_ends_what_it_left(site: Path, tmp_path: Path) -> None:
    supervisor = site / "tenv" / "core" / "supervisor.py"
    words = (sys.executable, "-I", "-S", supervisor, str(os.getpid()), "none", "/bin/sh", "-c")
    done = run(*words, "echo said; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "said\n", "")
    leaves = f"setsid sleep 600 & echo $! >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; wait"
    own = shlex.join([sys.executable, "-I", "-S", str(supervisor)])
    with subprocess.Popen(["/bin/sh", "-c", f'{own} $$ none /bin/sh -c "$0" & wait', leaves]) as parent:
        until((tmp_path / "pid").exists)
        parent.kill()
    left = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    until(lambda: not left.exists() or left.read_text().rpartition(")")[2].split()[0] == "Z")  # nobody asks for it


@pytest.mark.parametrize("module", some_fast(["setuptools", "distutils.core"], ["distutils.core"]))
def test_the_extensions_of_a_setup_py_are_printed(module: str, site: Path, tmp_path: Path) -> None:
    lines = [f"from {module} import setup, Extension", "setup(name='a', ext_modules=[Extension('a._c', ['a.c'])])"]
    (tmp_path / "setup.py").write_text("\n".join(lines))
    program = site / "tenv" / "builds" / "record_extensions.py"
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout.splitlines()[-1])["extensions"]
    assert (found["name"], found["missing"]) == ("a._c", ["a.c"])
    assert [path.name for path in tmp_path.iterdir()] == ["setup.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="a program by its path")
def test_a_backend_makes_an_editable_wheel_which_the_installer_gets(site: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import os\ndef build_editable(folder):\n    return os.path.basename(folder) + '.whl'\n"
    )
    program = site / "tenv" / "builds" / "editable_wheel.py"
    done = run(sys.executable, program, "temp", "lib", tmp_path / "out", "own", tmp_path, "/bin/echo", "-n")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/out/out.whl", "")


def test_the_installer_of_tenv_wants_a_folder(site: Path) -> None:
    done = run(sys.executable, "-I", site / "tenv" / "install" / "standalone.py")
    assert (done.returncode, "usage: " in done.stderr) == (2, True)


@needs_compiler
def test_the_child_that_asks_nvml_answers(site: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from tenv.host import nvidia, places\n"
        "answer = nvidia.Nvidia(places.Places(library=sys.argv[1])).nvml\n"
        "print(nvidia.__file__, answer.driver, answer.cuda, answer.gpus, sep='\\n')\n"
    )
    done = run(sys.executable, "-P", "-c", code, nvml(tmp_path), PYTHONPATH=str(site))
    module = str(site / "tenv" / "host" / "nvidia.py")
    assert done.stdout.splitlines() == [module, "580.65.06", "13.0", "()"], done.stderr


def test_the_program_finds_the_sandbox_where_it_is_installed(site: Path) -> None:
    code = "import tenv.activation.sandbox as sandbox; print(sandbox.__file__)"
    done = run(sys.executable, "-P", "-c", code, PYTHONPATH=str(site))
    assert done.stdout == f"{site / 'tenv' / 'activation' / 'sandbox.py'}\n", done.stderr


@pytest.mark.parametrize(
    ("words", "part"),
    first_fast(
        [
            (("show", "cuda130"), "(up to date)"),
            (("explain", "TE101"), "TE101"),
            (("facts", "--json"), '"cuda'),
            (("targets", "--json"), '"name": "cuda130"'),
            (("host", "--json"), '"platform"'),
        ],
        3,
        several=True,
    ),
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_the_wheel_carries_is_found(site: Path, tmp_path: Path, words: tuple[str, ...], part: str) -> None:
    environment = {"PYTHONPATH": str(site), "PWD": str(tmp_path)}
    code = "import sys, tenv; assert tenv.__file__.startswith(sys.argv.pop(1)); from tenv.__main__ import run; run()"
    done = run(sys.executable, "-P", "-c", code, site, *words, **environment)
    assert done.returncode == 0, done.stderr
    assert part in done.stdout


def test_the_wheel_holds_every_file_of_the_package(site: Path) -> None:
    wanted = {path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.suffix in (".py", ".toml", ".typed")}
    assert wanted <= {path.relative_to(site / "tenv") for path in (site / "tenv").rglob("*")}
    for folder, there in (("manifests", "manifests"), ("locks", "locks"), ("docs/rules", "rules")):
        names = {path.name for path in (ROOT / folder).iterdir() if path.is_file()}
        assert names == {path.name for path in (site / "tenv" / "builtin" / there).iterdir()}
    (manual,) = site.glob("*.data/data/share/man/man1/tenv.1")  # an installer puts it below its prefix
    assert manual.read_bytes() == (ROOT / "docs" / "tenv.1").read_bytes()
