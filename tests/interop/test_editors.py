"""VS Code, direnv and clangd: what is written, and what is left of the files that are there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.projects import SOURCE, Project
from tests.support.vs_code import PARSER, expanded, read_settings

NVCC = (
    "/opt/cuda/bin/nvcc -forward-unknown-to-host-compiler -ccbin=/usr/bin/g++ -DNDEBUG -Xfatbin -compress-all "
    "-gencode arch=compute_80,code=sm_80 -Xcudafe --diag_suppress=cc_clobber_ignored --expt-relaxed-constexpr "
    "--expt-extended-lambda -Wno-deprecated-gpu-targets -std=c++17 -Xcompiler=-fPIC -MD -MT x.o -MF x.d"
)


def config(path: str) -> Any:
    """Return the values of a file as a window reads them that opens the folder of `.vscode`."""
    file = Path(path).absolute()
    folder = file.parent.parent if file.parent.name == ".vscode" else file.parent
    return expanded(read_settings(file), folder)


def test_the_parser_of_vs_code_is_installed_where_all_tests_run() -> None:
    """`.ci/run` installs it with npm; each file that these tests read is then read by it, too."""
    assert "jsonc-parser@" in (Path(__file__).parent.parent.parent / ".ci" / "run").read_text()
    if shutil.which("npm") and os.environ.get("NODE_PATH"):
        assert PARSER


def entry(rows: list[dict[str, Any]], part: str) -> dict[str, Any]:
    (found,) = [row for row in rows if part in row.get("name", row.get("label", ""))]
    return found


@pytest.fixture
def with_checkout(created: Project) -> Project:
    """The project, with a checkout of PyTorch beside the scripts' folder."""
    checkout = created.folder / "pytorch"
    (checkout / "tools" / "gdb").mkdir(parents=True)
    (checkout / "CMakeLists.txt").write_text("project(Torch CXX C)\n")
    (checkout / "tools" / "gdb" / "pytorch-gdb.py").write_text("")
    (created.folder / "scripts").mkdir()
    record = created.site() / "torch-2.9.dist-info" / "direct_url.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}}))
    return created


def test_the_compound_starts_gdb_and_connects_to_what_listens(created: Project) -> None:
    created.ok("export", "vscode", "tiny")
    launch = config(".vscode/launch.json")
    compound = launch["compounds"][0]
    first, second = (entry(launch["configurations"], name) for name in compound["configurations"])
    assert (first["type"], first["request"], first["program"]) == ("cppdbg", "launch", f"{created.prefix}/bin/python")
    listen = ["-m", "debugpy", "--listen", "127.0.0.1:5678", "--wait-for-client", "${file}"]
    assert first["args"] == ["-Xfrozen_modules=off", *listen]
    assert first["cwd"] == "${fileDirname}"
    assert "-gdb-set breakpoint pending on" in [row["text"] for row in first["setupCommands"]]
    assert {"name": "PATH", "value": f"{created.prefix}/bin:${{env:PATH}}"} in first["environment"]
    assert (second["type"], second["request"], second["justMyCode"]) == ("debugpy", "attach", False)
    assert second["connect"] == {"host": "127.0.0.1", "port": 5678}
    task = entry(config(".vscode/tasks.json")["tasks"], second["preLaunchTask"])
    done = subprocess.run([task["command"], "-c", f"compile({task['args'][-1]!r}, 'x', 'exec')"], check=False)
    assert done.returncode == 0


def test_a_task_waits_until_debugpy_listens(created: Project) -> None:
    created.ok("export", "vscode", "tiny")
    task = entry(config(".vscode/tasks.json")["tasks"], "wait for debugpy")
    listens = (
        "import socket, sys; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "s.bind(('127.0.0.1', 0)); s.listen(); print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    python = str(created.prefix / "bin" / "python")
    with subprocess.Popen([python, "-c", listens], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        port = int(child.stdout.readline())
        code = task["args"][-1].replace(f"{5678:04X}", f"{port:04X}").replace("range(1200)", "range(1)")
        assert subprocess.run([task["command"], "-I", "-c", code], timeout=180, check=False).returncode == 0
        child.communicate()
    assert subprocess.run([task["command"], "-I", "-c", code], timeout=180, check=False).returncode == 1


def test_settings_name_the_environment(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMAKE_PREFIX_PATH", "/mine")
    created.ok("export", "vscode", "tiny")
    settings = config(".vscode/settings.json")
    assert settings["python.defaultInterpreterPath"] == f"{created.prefix}/bin/python"
    terminal = settings["terminal.integrated.env.linux"]
    assert terminal["PATH"] == f"{created.prefix}/bin:${{env:PATH}}"
    assert terminal["CMAKE_PREFIX_PATH"] == f"{created.prefix}:${{env:CMAKE_PREFIX_PATH}}"
    assert terminal["PYTHONHOME"] is None
    assert settings["files.associations"] == {"*.cu": "cuda-cpp", "*.cuh": "cuda-cpp"}
    monkeypatch.delenv("CMAKE_PREFIX_PATH")
    created.ok("export", "vscode", "tiny", "-o", "unset")
    assert config("unset/.vscode/settings.json")["cmake.environment"]["CMAKE_PREFIX_PATH"] == str(created.prefix)


def test_comments_and_values_of_the_user_stay(created: Project) -> None:
    folder = created.folder / ".vscode"
    folder.mkdir()
    own = '{\n  // mine\n  "python.defaultInterpreterPath": "/usr/bin/python3", // this one\n  "x": [1],\n}\n'
    (folder / "settings.json").write_text(own)
    (folder / "launch.json").write_text('{"version": "0.2.0", "configurations": [/* none */]}')
    said = created.ok("export", "vscode", "tiny").err
    text = (folder / "settings.json").read_text()
    assert all(line.rstrip(",") in text for line in own.splitlines())
    assert config(".vscode/settings.json")["x"] == [1]
    assert "/* none */" in (folder / "launch.json").read_text()
    assert len(config(".vscode/launch.json")["configurations"]) > 3
    kept = "kept (`--force` replaces it): .vscode/settings.json: python.defaultInterpreterPath"
    assert kept in said
    assert kept not in created.ok("export", "vscode", "tiny", "--force").err
    assert config(".vscode/settings.json")["python.defaultInterpreterPath"] == f"{created.prefix}/bin/python"
    assert "// this one" in (folder / "settings.json").read_text()


def test_a_file_that_can_t_be_read_is_left_alone(created: Project) -> None:
    (created.folder / ".vscode").mkdir()
    (created.folder / ".vscode" / "tasks.json").write_text("{ broken")
    err = created.fails(2, "format", "export", "vscode", "tiny")
    assert ".vscode/tasks.json: can't be added to: line 1: no JSON" in err
    assert [path.name for path in Path(".vscode").iterdir()] == ["tasks.json"]


def test_scripts_beside_the_checkout_get_a_workspace(with_checkout: Project) -> None:
    folder, checkout = with_checkout.folder / "scripts", with_checkout.folder / "pytorch"
    said = with_checkout.ok("export", "vscode", "tiny", "-o", str(folder)).err
    workspace = config(f"{folder}/tiny.code-workspace")
    assert workspace["folders"] == [{"path": "."}, {"path": "../pytorch"}]
    assert workspace["settings"]["cmake.sourceDirectory"] == str(checkout)
    launch = config(f"{folder}/.vscode/launch.json")
    texts = [row["text"] for row in launch["configurations"][0]["setupCommands"]]
    assert f'-interpreter-exec console "source {checkout}/tools/gdb/pytorch-gdb.py"' in texts
    assert f"open {folder}/tiny.code-workspace" in said
    with_checkout.ok("export", "vscode", "tiny", "-o", str(checkout))
    assert not (checkout / "tiny.code-workspace").exists()


def test_what_is_written_holds_for_every_clone(with_checkout: Project, home: Path) -> None:
    for name in ("vscode", "direnv"):
        with_checkout.ok("export", name, "tiny")
    with_checkout.ok("export", "vscode", "tiny", "-o", "scripts")
    written = [Path(".envrc"), *Path(".vscode").iterdir(), *Path("scripts").rglob("*.*")]
    own = {str(with_checkout.folder), str(home), str(Path(sys.executable).parent)}
    texts = {str(path): path.read_text() for path in written if path.is_file()}
    assert len(texts) > 10
    assert {path: part for path, text in texts.items() for part in own if part in text} == {}


def tenv_program(folder: Path) -> Path:
    """Return a folder for PATH with the program of this checkout."""
    tenv = folder / "bin" / "tenv"
    tenv.parent.mkdir()
    tenv.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -P -m tenv "$@"\n')
    tenv.chmod(0o755)
    return tenv.parent


def test_an_envrc_sources_no_file_of_the_checkout(created: Project, tmp_path: Path) -> None:
    """The folder is copied with an environment that somebody else has made, as a clone would bring it."""
    created.ok("export", "direnv", "tiny")
    theirs = tmp_path / "clone"
    shutil.copytree(created.folder, theirs, symlinks=True)
    ran = tmp_path / "ran"
    for stored in (theirs / ".tenv" / "envs" / "tiny" / "tenv-meta").glob("activate*"):
        stored.write_text(f"touch {ran}\n")
    environment = {**os.environ, "PATH": f"{tenv_program(tmp_path)}:{os.environ['PATH']}"}
    script = "watch_file() { :; }; . ./.envrc; echo active $TENV_TARGET"
    for folder, expected in ((theirs, (8, "")), (created.folder, (0, "active tiny\n"))):
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env={**environment, "PWD": str(folder)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == expected, done.stderr
    assert not ran.exists()


def test_without_debugpy_its_command_is_named(created: Project) -> None:
    said = created.ok("export", "vscode", "tiny").err
    assert "debugpy is not in the environment; `tenv run tiny -- " in said
    (created.site() / "debugpy").mkdir()
    assert "debugpy is not" not in created.ok("export", "vscode", "tiny").err


@pytest.mark.parametrize(
    ("python", "launched", "unfrozen"), [("3.6", 0, 0), ("3.8", 0, 0), ("3.9", 1, 0), ("3.11", 1, 1)]
)
def test_an_old_python_is_attached_to(created: Project, python: str, launched: int, unfrozen: int) -> None:
    created.state_file.write_text(json.dumps({**created.state(), "python": python}))
    created.ok("export", "vscode", "tiny")
    rows = config(".vscode/launch.json")["configurations"]
    assert len([row for row in rows if row.get("stopOnEntry")]) == launched
    assert ("-Xfrozen_modules=off" in rows[0]["args"]) == bool(unfrozen)
    assert entry(rows, "Python (attach)")["request"] == "attach" if len(rows) < 4 else True


def test_an_environment_is_needed(locked: Project) -> None:
    for name in ("vscode", "direnv", "clangd"):
        assert "`tenv create tiny` creates it" in locked.fails(8, "environment-missing", "export", name, "tiny")


def test_an_envrc_keeps_what_is_in_it(created: Project) -> None:
    Path(".envrc").write_text("export MINE=1")
    said = created.ok("export", "direnv", "tiny").err
    first = Path(".envrc").read_text()
    assert first.startswith("export MINE=1\n# >>> tenv >>>\n")
    assert f"run: direnv allow {created.folder}" in said
    Path(".envrc").write_text(f"{first}export LAST=1\n")
    created.ok("export", "direnv", "tiny")
    assert Path(".envrc").read_text() == f"{first}export LAST=1\n"
    Path(".envrc").write_text("# >>> tenv >>>\nx\n")
    assert "without its `# <<< tenv <<<`" in created.fails(2, "format", "export", "direnv", "tiny")


@pytest.mark.skipif(shutil.which("direnv") is None, reason="there is no direnv on this machine")
def test_direnv_enters_and_leaves(created: Project, tmp_path: Path) -> None:
    created.ok("export", "direnv", "tiny")
    (created.folder / "sub").mkdir()
    programs = f"{tenv_program(tmp_path)}:{Path(shutil.which('direnv') or '').parent}"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["direnv", "allow", "."], env=environment, check=True, capture_output=True)
    script = (
        'eval "$(direnv hook bash)"; before=$(env | sort | grep -v ^OLDPWD); show() { _direnv_hook 2>/dev/null; '
        'echo "[${TENV_TARGET-none}|${CMAKE_PREFIX_PATH-none}]"; }; cd sub; show; cd /; show; cd - >/dev/null; show; '
        f"cd {created.folder.parent}; show; cd {created.folder}; unset OLDPWD; "
    )
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    inside = f"[tiny|{created.prefix}]"
    assert done.stdout.splitlines() == [inside, "[none|none]", inside, "[none|none]"]


def test_clangd_knows_the_build_and_cuda(with_checkout: Project) -> None:
    include = with_checkout.prefix / "cuda" / "include"
    include.mkdir(parents=True)
    (include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION 12010\n")
    with_checkout.ok("export", "clangd", "tiny")
    text = Path(".clangd").read_text()
    first, cuda = yaml.safe_load_all(text)
    assert first["CompileFlags"]["CompilationDatabase"] == f"{with_checkout.folder}/pytorch/build"
    added = first["CompileFlags"]["Add"]
    assert set(added[::2]) == {"-idirafter"}
    assert str(include) in added[1::2]
    assert cuda["If"] == {"PathMatch": r".*\.(cu|cuh)"}
    assert f"--cuda-path={with_checkout.prefix}/cuda" in cuda["CompileFlags"]["Add"]
    assert "--expt-*" in cuda["CompileFlags"]["Remove"]


@pytest.mark.skipif(shutil.which("clangd") is None, reason="there is no clangd on this machine")
def test_clangd_takes_a_command_of_nvcc(with_checkout: Project) -> None:
    """The header stands for CUDA's own: what is tried is that no option of nvcc is left to clangd."""
    folder = with_checkout.folder
    include = with_checkout.prefix / "cuda" / "include"
    include.mkdir(parents=True)
    (include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION 12010\n")
    with_checkout.ok("export", "clangd", "tiny")
    (folder / "x.cpp").write_text("#include <cuda_runtime_api.h>\nint version = CUDART_VERSION;\n")
    rows = [{"directory": str(folder), "file": "x.cpp", "command": f"{NVCC} -x cu -c x.cpp -o x.o"}]
    (folder / "pytorch" / "build").mkdir()
    (folder / "pytorch" / "build" / "compile_commands.json").write_text(json.dumps(rows))
    text = Path(".clangd").read_text().replace(r".*\.(cu|cuh)", r".*\.cpp").replace("- -xcuda", "- -xc++")
    kept = [line for line in text.splitlines() if "--cuda-" not in line and "-nocudalib" not in line]
    Path(".clangd").write_text("\n".join(kept) + "\n")
    program = shutil.which("clangd") or ""
    done = subprocess.run([program, "--enable-config", "--check=x.cpp"], capture_output=True, text=True, check=False)
    assert (done.returncode, "All checks completed, 0 errors" in done.stderr) == (0, True), done.stderr


def test_a_value_that_vs_code_would_expand_is_left_out(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    values = 'EVIL = "$${command:workbench.action.terminal.new}"\nPLAIN = "$$1 {x}"\n'
    created.manifest.write_text(f"{created.manifest.read_text()}[activation.env]\n{values}")
    created.ok("create", "tiny")
    monkeypatch.setattr("tenv.interop.vscode.feature_with", lambda _, package, __: f"with-{package}")
    ended = created.ok("export", "vscode", "tiny")
    assert "left out: EVIL; VS Code would expand `${…}` in the value" in ended.err
    assert "debugpy is not in the environment; `tenv create tiny --with with-debugpy` brings it" in ended.err
    written = "".join(path.read_text() for path in Path(".vscode").iterdir())
    assert "workbench.action" not in written
    assert config(".vscode/settings.json")["cmake.environment"]["PLAIN"] == "$1 {x}"


def test_a_folder_that_vs_code_would_expand_is_refused(created: Project) -> None:
    said = created.fails(2, "format", "export", "vscode", "tiny", "-o", "${command:x}")
    assert "VS Code would expand `${` in it" in said
    assert not Path("${command:x}").exists()
