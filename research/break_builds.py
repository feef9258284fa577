"""Break a real PyTorch tree on purpose, one way at a time, and see which step of `tenv build` stops, with which code.

    python research/break_builds.py TREE TARGET JOURNAL [--only NAME] [--tenv PROGRAM]

TREE is a checkout of PyTorch that `tenv build TARGET` configures. A copy of it beside JOURNAL is configured once; each
breakage works in a copy of that, in the same folder, since environments and build folders know where they are. JOURNAL
gets a line for each breakage, and what it holds already is not done again. A breakage counts as found when the steps
before are ok, and the failing step and one of its codes are the expected ones. Status 1 if one is not found. Small
disks are mounted, which takes root.

The breakages of the step `import` need a TREE that is built; without a build they are left out. Its environment and its
libraries know where they are: TREE is set aside for the time of such a trial, and a copy by hard links stands in its
place.

The switches of the build (USE_CUDA=0 ...) are those of the caller's environment. Nothing is written to TREE.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = {name: shutil.which(name) or name for name in ("cp", "mount", "umount")}
LATE = ("estimate", "canary", "build")
"""The steps whose breakages start from a configured build folder."""


@dataclass
class Trial:
    """One copy of the tree.

    Attributes:
        tree: The copy.
        target: The target.
        environ: The variables that the build gets.
        words: The options of the build.
        during: What happens while the build runs.
    """

    tree: Path
    target: str
    environ: dict[str, str]
    words: list[str] = field(default_factory=list)
    during: Callable[[subprocess.Popen[bytes]], None] | None = None

    @property
    def prefix(self) -> Path:
        """The environment."""
        return self.tree / ".tenv" / "envs" / self.target

    def write(self, name: str, text: str) -> Path:
        """Replace a file, which may be a link to that of the original."""
        path = self.tree / name
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text of a file; raises ValueError where it is not there."""
        text = (self.tree / name).read_text(encoding="utf-8")
        if old not in text:
            raise ValueError(f"{name} does not hold {old!r}")
        self.write(name, text.replace(old, new, 1))

    def remove(self, name: str) -> None:
        """Remove a file or a folder."""
        path = self.tree / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def program(self, name: str, body: str) -> Path:
        """Put a shell script first on PATH."""
        path = self.write(f".tenv/bin/{name}", f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        self.environ["PATH"] = f"{path.parent}{os.pathsep}{self.environ['PATH']}"
        return path

    def compiler(self, when: str, then: str) -> None:
        """Let the C++ compiler do something else for the sources whose command holds a text."""
        path = self.program("g++", f'case "$*" in *{when}*) {then};; esac\nexec {shutil.which("g++")} "$@"')
        self.environ["CXX"] = str(path)

    def small_disk(self, name: str, size: str) -> None:
        """Put a folder on a disk of a size of its own, with what it holds."""
        path = self.tree / name
        held = self.tree.parent / "held"
        path.mkdir(parents=True, exist_ok=True)
        path.rename(held)
        path.mkdir()
        subprocess.run([PROGRAMS["mount"], "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=True)
        shutil.copytree(held, path, dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(held)


def _kill(name: str, after: float) -> Callable[[subprocess.Popen[bytes]], None]:
    """Kill the first process of a name below the build that is still there some seconds after it is seen."""

    def during(build: subprocess.Popen[bytes]) -> None:
        while build.poll() is None:
            for number in _below(build.pid):
                with contextlib.suppress(OSError):  # it has ended already
                    if Path(f"/proc/{number}/comm").read_text(encoding="utf-8").strip() == name:
                        time.sleep(after)
                        os.kill(number, signal.SIGKILL)
                        return
            time.sleep(0.05)

    return during


def _below(number: int) -> list[int]:
    """Return the numbers of the processes that a process has started, and those that these have."""
    try:
        text = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8")
    except OSError:
        return []
    own = [int(word) for word in text.split()]
    return own + [deeper for child in own for deeper in _below(child)]


def _one_line(tree: Path, pattern: str) -> str:
    (found, *_) = sorted(tree.glob(pattern))
    return str(found.relative_to(tree))


BREAKAGES: dict[str, tuple[str, frozenset[str], Callable[[Trial], None]]] = {}
"""The breakages by name: the step that must stop, the codes of which one must be given, and what is done."""


def breakage(step: str, *codes: str) -> Callable[[Callable[[Trial], None]], Callable[[Trial], None]]:
    """Enter a breakage into the table under its function's name."""

    def enter(does: Callable[[Trial], None]) -> Callable[[Trial], None]:
        BREAKAGES[does.__name__] = (step, frozenset(codes), does)
        return does

    return enter


@breakage("checkout", "TE611")
def submodule_emptied(trial: Trial) -> None:
    """An update of the submodules was cut short."""
    trial.remove("third_party/onnx")
    (trial.tree / "third_party/onnx").mkdir()


@breakage("checkout", "TE611")
def submodule_gone(trial: Trial) -> None:
    """A submodule is not there."""
    trial.remove("third_party/pybind11")


@breakage("checkout", "TE611")
def submodule_of_a_submodule_gone(trial: Trial) -> None:
    """The submodules were updated without `--recursive`."""
    trial.remove("third_party/onnx/third_party/benchmark")


@breakage("checkout", "TE905")
def setup_gone(trial: Trial) -> None:
    """The file that the build starts from is not there."""
    trial.remove("setup.py")


@breakage("", "usage")
def cmake_lists_gone(trial: Trial) -> None:
    """The folder is no checkout of PyTorch."""
    trial.remove("CMakeLists.txt")


@breakage("checkout", "TE612")
def build_folder_of_another_checkout(trial: Trial) -> None:
    """The checkout was copied with its build folder."""
    trial.write("build/CMakeCache.txt", "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/pytorch\n")


@breakage("checkout", "TE612")
def build_folder_of_another_python(trial: Trial) -> None:
    """The build folder is that of another environment."""
    home = f"CMAKE_HOME_DIRECTORY:INTERNAL={trial.tree}\n"
    trial.write("build/CMakeCache.txt", f"{home}Python_EXECUTABLE:FILEPATH=/opt/python3.8/bin/python3\n")


@breakage("target", "TE603")
def target_of_a_later_pytorch(trial: Trial) -> None:
    """The target is made for later revisions, and has CMake 4."""
    trial.target = "cpu"


@breakage("target", "TE402", "TE403")
def old_compiler_first_on_path(trial: Trial) -> None:
    """A compiler that is too old comes first."""
    answers = "*dumpfullversion*|*dumpversion*) echo 7.5.0; exit;; *--version*) echo 'g++ (GCC) 7.5.0'; exit;;"
    for name in ("g++", "gcc"):
        minor = "printf '#define __GNUC__ 7\\n#define __GNUC_MINOR__ 5\\n#define __GNUC_PATCHLEVEL__ 0\\n'; exit"
        path = trial.program(name, f'case "$*" in {answers} *-dM*) {minor};; esac\nexec {shutil.which(name)} "$@"')
        trial.environ["CXX" if name == "g++" else "CC"] = str(path)


@breakage("target", "TE602")
def python_too_new(trial: Trial) -> None:
    """The environment would have a Python that the revision does not know."""
    trial.edit(f"manifests/{trial.target}.toml", ">=3.11,<3.13", ">=3.13,<3.14")


@breakage("target", "no-such-target", "unknown-target")
def unknown_target(trial: Trial) -> None:
    """The target is misspelled."""
    trial.target = "cpu42"


@breakage("create", "lock-corrupt")
def corrupt_lock(trial: Trial) -> None:
    """The lock is damaged."""
    trial.write(f"locks/{trial.target}.lock", "not: [a lock")


@breakage("create", "hash-mismatch")
def wrong_hash_in_the_lock(trial: Trial) -> None:
    """The lock names another file."""
    shutil.rmtree(trial.prefix)
    lock = trial.tree / "locks" / f"{trial.target}.lock"
    lines = lock.read_text(encoding="utf-8").splitlines()
    at = next(
        number for number, line in enumerate(lines) if "ninja-" in line and "manylinux" in line and ".whl" in line
    )
    near = next(number for number in (*range(at, at + 4), *range(at, at - 4, -1)) if "sha256" in lines[number])
    before, _, after = lines[near].partition("sha256")
    lines[near] = before + "sha256" + after.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    trial.write(f"locks/{trial.target}.lock", "\n".join(lines) + "\n")


@breakage("create", "network", "index-unreachable", "download-failed", "install-failed")
def index_out_of_reach(trial: Trial) -> None:
    """Nothing is cached, and no index answers."""
    shutil.rmtree(trial.prefix)
    trial.environ |= {"UV_CACHE_DIR": str(trial.tree / ".tenv/cache"), "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple"}


@breakage("target", "TE702")
def disk_too_small_for_the_environment(trial: Trial) -> None:
    """The environment is on a small disk."""
    shutil.rmtree(trial.prefix)
    trial.small_disk(".tenv/envs", "40m")


@breakage("create", "foreign-folder")
def foreign_folder_in_the_way(trial: Trial) -> None:
    """Files of the user lie where the environment belongs."""
    shutil.rmtree(trial.prefix)
    trial.write(f".tenv/envs/{trial.target}/thesis.txt", "mine\n")


@breakage("probe", "TE922", "TE921")
def cmake_does_nothing(trial: Trial) -> None:
    """A program of the environment was replaced."""
    path = _one_line(trial.tree, f".tenv/envs/{trial.target}/bin/cmake")
    trial.write(path, "#!/bin/sh\nexit 3\n").chmod(0o755)


@breakage("probe", "TE922", "TE921")
def ninja_killed(trial: Trial) -> None:
    """A program of the environment is killed."""
    path = _one_line(trial.tree, f".tenv/envs/{trial.target}/bin/ninja")
    trial.write(path, "#!/bin/sh\nkill -9 $$\n").chmod(0o755)


@breakage("probe", "TE921", "TE922")
def mkl_truncated(trial: Trial) -> None:
    """A library of the environment is cut short."""
    trial.write(_one_line(trial.tree, f".tenv/envs/{trial.target}/lib/libmkl_core.a"), "!<arch>\n")


@breakage("probe", "TE922")
def linker_broken(trial: Trial) -> None:
    """The compiler links nothing."""
    trial.compiler("-o", 'case "$*" in *" -c "*|*" -E "*|*-dM*) ;; *) echo "ld: cannot find crt1.o" >&2; exit 1;; esac')


@breakage("configure", "TE801")
def cmake_file_gone(trial: Trial) -> None:
    """A file of the checkout was removed."""
    trial.remove("cmake/Dependencies.cmake")


@breakage("configure", "TE801")
def cmake_file_cut_short(trial: Trial) -> None:
    """A submodule was edited."""
    trial.edit("third_party/fmt/CMakeLists.txt", "cmake_minimum_required(VERSION", "if(cmake_minimum_required(VERSION")


@breakage("configure", "TE801")
def half_a_submodule(trial: Trial) -> None:
    """A submodule lacks a folder."""
    trial.remove("third_party/protobuf/cmake")


@breakage("configure", "TE932", "TE803", "TE808")
def functions_cut_short(trial: Trial) -> None:
    """The code generator reads a file that was cut short."""
    name = "aten/src/ATen/native/native_functions.yaml"
    text = (trial.tree / name).read_text(encoding="utf-8")
    trial.write(name, text[: len(text) // 2] + "\n- func: [\n")


@breakage("configure", "TE803", "TE923")
def yaml_module_broken(trial: Trial) -> None:
    """The code generator lacks a module."""
    trial.write(
        _one_line(trial.tree, f".tenv/envs/{trial.target}/lib/python3*/site-packages/yaml/__init__.py"),
        "raise ImportError('no yaml')\n",
    )


@breakage("configure", "TE932")
def cmake_killed(trial: Trial) -> None:
    """CMake is killed."""
    trial.words = ["--fresh"]
    trial.during = _kill("cmake", 4)  # longer than that of the probe lives, shorter than a configuration takes


@breakage("summary", "TE941")
def openmp_not_found(trial: Trial) -> None:
    """The compiler has no OpenMP."""
    trial.environ["USE_OPENMP"] = "1"
    trial.compiler("-fopenmp", 'echo "g++: error: unrecognized command-line option -fopenmp" >&2; exit 1')


@breakage("summary", "TE941")
def mkl_turned_off(trial: Trial) -> None:
    """Another BLAS is chosen by a variable of CMake."""
    trial.words = ["-D", "BLAS=Eigen", "--fresh"]


@breakage("summary", "TE941")
def numpy_turned_off(trial: Trial) -> None:
    """NumPy is not in the environment."""
    trial.environ["USE_NUMPY"] = "1"
    trial.remove(_one_line(trial.tree, f".tenv/envs/{trial.target}/lib/python3*/site-packages/numpy"))


@breakage("estimate", "TE951")
def disk_of_the_build_too_small(trial: Trial) -> None:
    """The build folder is on a small disk."""
    trial.small_disk("build", "700m")


@breakage("estimate", "TE953")
def build_file_truncated(trial: Trial) -> None:
    """The build file is damaged."""
    text = (trial.tree / "build/build.ninja").read_text(encoding="utf-8")
    trial.write("build/build.ninja", text[: len(text) // 2] + "\nbuild :::\n")


@breakage("estimate", "TE951")
def disk_too_small_for_debugging(trial: Trial) -> None:
    """The disk holds a release build, and no debug build."""
    trial.small_disk("build", "4g")
    trial.words = ["--debug", "--fresh"]


@breakage("canary", "TE801")
def header_removed(trial: Trial) -> None:
    """A header was removed."""
    trial.remove("c10/macros/Export.h")


@breakage("canary", "TE961")
def source_wrong(trial: Trial) -> None:
    """A source was edited."""
    trial.edit("c10/core/Allocator.cpp", "namespace c10 {", 'namespace c10 { int x = "a";')


@breakage("canary", "TE701")
def compiler_killed_for_memory(trial: Trial) -> None:
    """The kernel kills the compiler."""
    kill = 'echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; exit 1'
    trial.compiler("core/Allocator.cpp", kill)


@breakage("canary", "TE814")
def compiler_crashes(trial: Trial) -> None:
    """The compiler has a bug."""
    trial.compiler(
        "util/Logging.cpp", 'echo "Logging.cpp:1:1: internal compiler error: Segmentation fault" >&2; exit 4'
    )


@breakage("canary", "TE701", "TE952")
def memory_limit_of_the_shell(trial: Trial) -> None:
    """The shell limits the memory of a process."""
    trial.compiler(".cpp", f'ulimit -v 250000; exec {shutil.which("g++")} "$@"')


LIBRARY = ["--only", "lib/libfmt.a"]
"""A small library that the canary does not build."""


@breakage("build", "TE961")
def source_of_a_library_wrong(trial: Trial) -> None:
    """A source was edited, which is compiled late."""
    trial.edit("third_party/fmt/src/format.cc", "FMT_BEGIN_NAMESPACE", 'int wrong = "a";\nFMT_BEGIN_NAMESPACE')
    trial.words = LIBRARY


@breakage("build", "TE702")
def disk_full_while_compiling(trial: Trial) -> None:
    """The disk is full."""
    full = "cc1plus: fatal error: error writing to /tmp/x.s: No space left on device"
    trial.compiler("src/format.cc", f'echo "{full}" >&2; exit 1')
    trial.words = LIBRARY


@breakage("build", "TE961")
def compiler_ends_without_a_word(trial: Trial) -> None:
    """The compiler ends without a word."""
    trial.compiler("src/format.cc", "exec false")
    trial.words = LIBRARY


@breakage("import", "TE971")
def python_source_wrong(trial: Trial) -> None:
    """A Python source asks for a module that nobody has."""
    trial.edit("torch/_tensor.py", "import copyreg", "import copyreg\nimport no_such_module_anywhere")


@breakage("import", "TE971")
def requirement_broken(trial: Trial) -> None:
    """A package that torch imports is there and does not work."""
    pattern = f".tenv/envs/{trial.target}/lib/python3*/site-packages/typing_extensions.py"
    trial.write(_one_line(trial.tree, pattern), "raise ImportError('damaged')\n")


@breakage("import", "TE972")
def another_torch_first(trial: Trial) -> None:
    """Another torch comes first on the path of the environment's Python."""
    other = trial.tree.parent / "other-torch"
    (other / "torch").mkdir(parents=True, exist_ok=True)
    fake = "class T(list):\n    __matmul__ = lambda self, _: T([[2.0, 2.0]] * 2)\n    tolist = list\n\n\n"
    (other / "torch/__init__.py").write_text(f"__version__ = '2.0.1'\n{fake}ones = lambda *_: T()\n")
    site = Path(_one_line(trial.tree, f".tenv/envs/{trial.target}/lib/python3*/site-packages"))
    trial.write(str(site / "0-first.pth"), f"import sys; sys.path.insert(0, {str(other)!r})\n")


@breakage("import", "TE973")
def arithmetic_wrong(trial: Trial) -> None:
    """The product of two matrices is wrong."""
    source = (trial.tree / "torch/__init__.py").read_text(encoding="utf-8")
    wrong = "_ones = ones\ndef ones(*sizes, **more):\n    return 3 * _ones(*sizes, **more)\n"
    trial.write("torch/__init__.py", f"{source}\n{wrong}")


@breakage("import", "TE971")
def killed_while_importing(trial: Trial) -> None:
    """Python is killed while it imports torch."""
    source = (trial.tree / "torch/__init__.py").read_text(encoding="utf-8")
    trial.write("torch/__init__.py", f"{source}\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")


def prepare(tree: Path, target: str, tenv: str, place: Path) -> Path:
    """Return a copy of the tree that is configured, with its environment; it was made where the trials are."""
    base, copy = place / "base", place / "tree"
    if not base.exists():
        _remove(copy)
        _copy_sources(tree, copy)
        subprocess.run([tenv, "plan", target, "--configure"], cwd=copy, check=True)
        copy.rename(base)
    return base


def _copy_sources(tree: Path, copy: Path) -> None:
    own = ("build", ".tenv")
    shutil.copytree(tree, copy, symlinks=True, ignore=lambda folder, _: own if Path(folder) == tree else ())


@contextlib.contextmanager
def _set_aside(tree: Path) -> Iterator[Path]:
    """Put a copy by hard links in the place of a tree that is built, and put the tree back afterwards."""
    held = tree.with_name(f"{tree.name}.held")
    tree.rename(held)
    try:
        subprocess.run([PROGRAMS["cp"], "-al", held, tree], check=True)
        # Ninja and tenv write into these files; all else is replaced.
        for path in [*held.glob("build/.ninja_*"), *held.glob(".tenv/builds/*/*")]:
            copied = tree / path.relative_to(held)
            copied.unlink()
            shutil.copy2(path, copied)
        yield tree
    finally:
        _remove(tree)
        held.rename(tree)


def play_built(tree: Path, target: str, name: str, tenv: str, place: Path) -> dict[str, object]:
    """Break a tree that is built, and build it; return what was found."""
    with _set_aside(tree) as copy:
        return _played(name, Trial(copy, target, _environ()), tenv, place)


def play(base: Path, target: str, name: str, tenv: str, place: Path) -> dict[str, object]:
    """Break a copy of the tree and build it; return what was found."""
    step, *_ = BREAKAGES[name]
    copy = place / "tree"
    _remove(copy)
    _copy_sources(base, copy)
    (copy / ".tenv").mkdir()
    subprocess.run(
        [PROGRAMS["cp"], "-al", base / ".tenv/envs", copy / ".tenv/envs"], check=True
    )  # a gigabyte, as links
    if step in LATE:
        for folder in ("build", ".tenv/builds"):  # Ninja and tenv write into these
            shutil.copytree(base / folder, copy / folder, symlinks=True)
    return _played(name, Trial(copy, target, _environ()), tenv, place)


def _environ() -> dict[str, str]:
    return {**os.environ, "MAX_JOBS": os.environ.get("MAX_JOBS", "2")}


def _played(name: str, trial: Trial, tenv: str, place: Path) -> dict[str, object]:
    step, codes, does = BREAKAGES[name]
    does(trial)
    begun = time.monotonic()
    words = [tenv, "build", trial.target, "--json", *trial.words]
    output = place / "output.json"
    with output.open("wb") as file, (place / "errors.txt").open("wb") as errors:
        build = subprocess.Popen(words, cwd=trial.tree, env=trial.environ, stdout=file, stderr=errors)
        if trial.during:
            threading.Thread(target=trial.during, args=(build,), daemon=True).start()
        status = build.wait(timeout=1800)
    said = json.loads(output.read_text(encoding="utf-8"))
    steps = (said.get("data") or {}).get("steps", [])
    stopped = next((row["name"] for row in steps if not row["ok"]), "")
    found = [one["code"] for row in steps for one in row["findings"] if one["severity"] == "error"]
    if said.get("error"):
        found.append(said["error"]["code"])
    message = next((one["message"] for row in steps for one in row["findings"] if one["severity"] == "error"), "")
    return {
        "name": name,
        "expected": [step, sorted(codes)],
        "found": [stopped, found],
        "right": stopped == step and bool(codes & set(found)),
        "status": status,
        "said": message or (said.get("error") or {}).get("message", ""),
        "seconds": round(time.monotonic() - begun, 1),
    }


def _remove(copy: Path) -> None:
    """Remove a copy, and take the disks in it away first."""
    for line in reversed(Path("/proc/mounts").read_text(encoding="utf-8").splitlines()):
        if (mounted := line.split()[1]).startswith(f"{copy}/"):
            subprocess.run([PROGRAMS["umount"], mounted], check=True)
    if copy.exists():
        shutil.rmtree(copy)


def main() -> int:
    """Run the breakages that the journal lacks."""
    parser = argparse.ArgumentParser(description="Break a real PyTorch tree, and see what `tenv build` says.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("target")
    parser.add_argument("journal", type=Path)
    parser.add_argument("--only", help="one breakage")
    parser.add_argument("--tenv", default=shutil.which("tenv") or "tenv")
    given = parser.parse_args()
    lines = given.journal.read_text(encoding="utf-8").splitlines() if given.journal.exists() else []
    done = {row["name"]: row for row in map(json.loads, lines)}
    place = given.journal.parent / "trial"
    place.mkdir(parents=True, exist_ok=True)
    tree = given.tree.resolve()
    built = any(tree.glob("torch/lib/libtorch_python.*"))
    for name in BREAKAGES if given.only is None else [given.only]:
        if name in done and not given.only:
            continue
        if BREAKAGES[name][0] == "import":
            if not built:
                print(f"{name}: left out, since {tree} is not built")
                continue
            done[name] = play_built(tree, given.target, name, given.tenv, place)
        else:
            base = prepare(tree, given.target, given.tenv, place)
            done[name] = play(base, given.target, name, given.tenv, place)
        with given.journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[name]) + "\n")
        print(json.dumps(done[name]), flush=True)
    wrong = [row["name"] for row in done.values() if not row["right"]]
    print(f"{len(done) - len(wrong)} of {len(done)} found; not found: {', '.join(wrong) or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
