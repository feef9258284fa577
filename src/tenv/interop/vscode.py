"""VS Code: settings, debugging of Python and C++ at once, tasks; added to the files of the user.

The first debugger needs no choice of a process and no right to attach: gdb starts Python, in which debugpy listens, and
the Python debugger connects to that.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tenv.activation.changes import Action
from tenv.core.errors import FormatError
from tenv.core.jsonc import merge
from tenv.core.user_folders import user_home
from tenv.core.versions import Version
from tenv.debugging.install_line import install_line
from tenv.debugging.interpreter import describe_interpreter
from tenv.host.machine import current_platform
from tenv.interop.clangd import query_drivers
from tenv.interop.interface import Addition, Exported, Format, Site, Subject
from tenv.targets.manifest import Manifest, feature_with

PORT = 5678
"""The port that debugpy's documentation uses."""

_HERE = "127.0.0.1"
_LISTEN = ["-m", "debugpy", "--listen", f"{_HERE}:{PORT}", "--wait-for-client", "${file}"]

_LAUNCHED_FROM = Version("3.9")
"""VS Code's Python debugger starts no older Python; it connects to the debugpy of the environment all the same."""

_FROZEN_FROM = Version("3.11")
"""`-X frozen_modules` is new in Python 3.11."""

_FOLDER = "${workspaceFolder}"

_EXPANDED = "${"
"""The begin of a reference, which VS Code expands in every value and which has no escape: ``${command:NAME}`` runs a
command (https://code.visualstudio.com/docs/reference/variables-reference)."""

_WAIT = f"""\
import sys, time
port = "0100007F:{PORT:04X}"
for _ in range(1200):
    if any(row.split()[1] == port and row.split()[3] == "0A" for row in list(open("/proc/net/tcp"))[1:]):
        sys.exit(0)
    time.sleep(0.1)
sys.exit("debugpy does not listen on {_HERE}:{PORT}")
"""
"""Waits until debugpy listens, by the kernel's table of sockets: to connect would count as the debugger."""


def _python_words(site: Site) -> list[str]:
    """Return Python's options for debugging: frozen modules have no file that a breakpoint could name."""
    return ["-Xfrozen_modules=off"] if not _older(site, _FROZEN_FROM) else []


def _older(site: Site, than: Version) -> bool:
    found = Version.find(site.python)
    return bool(found and found < than)


def variables(site: Site) -> dict[str, str | None]:
    """Return the variables as VS Code expands them; None takes one away.

    A list that is not set here gets no reference to its old value: an empty part of it means the working folder. A
    value that VS Code would expand is left out.
    """
    values: dict[str, str | None] = {}
    for change in site.activation.changes:
        if change.name in _expanded(site):
            continue
        before = values.get(change.name) or f"${{env:{change.name}}}"
        if change.action is not Action.UNSET and site.environ.get(change.name) == change.value:
            values[change.name] = change.value
            continue
        match change.action:
            case Action.SET:
                values[change.name] = change.value
            case Action.PREPEND:
                values[change.name] = f"{change.value}{change.separator}{before}"
            case Action.APPEND:
                values[change.name] = f"{before}{change.separator}{change.value}"
            case Action.UNSET:
                values[change.name] = None
    return values


def _expanded(site: Site) -> list[str]:
    """Return the variables with a value that VS Code would expand."""
    changes = site.activation.changes
    return list(dict.fromkeys(change.name for change in changes if _EXPANDED in (change.value or "")))


def _refuse_expanded(site: Site) -> None:
    """Raise FormatError for a path that VS Code would expand in place of opening it."""
    paths = (site.prefix, site.folder, site.checkout or "", site.toolchain.python, site.manifest)
    for path in map(str, paths):
        if _EXPANDED in path:
            hint = "rename the folder: VS Code has no way to write it"
            raise FormatError(f"{path}: VS Code would expand `{_EXPANDED}` in it", hint=hint)


def _environment(site: Site) -> dict[str, str]:
    """Return the variables of a program that is debugged."""
    rows = {name: value for name, value in variables(site).items() if value is not None}
    return {**rows, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def _program(site: Site, name: str) -> str:
    """Return the path of a program within the environment; its name where it is on PATH, which differs by machine."""
    found = site.program(name)
    return found if found.startswith(f"{site.prefix}{os.sep}") else name


def _setup(site: Site) -> list[dict[str, Any]]:
    """Return the first commands for gdb."""

    def command(text: str, description: str) -> dict[str, Any]:
        return {"description": description, "text": text, "ignoreFailures": True}

    def console(text: str, description: str) -> dict[str, Any]:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        return command(f'-interpreter-exec console "{quoted}"', description)

    rows = [
        command("-enable-pretty-printing", "show containers by their content"),
        command("-gdb-set breakpoint pending on", "breakpoints in libraries that are loaded later"),
        command("-gdb-set follow-fork-mode parent", "stay with the program where DataLoader forks its workers"),
        command("-gdb-set detach-on-fork on", "let the workers run"),
        console(f"add-auto-load-safe-path {site.prefix}", "printers of the environment's libraries"),
    ]
    python = describe_interpreter(site.toolchain.python)
    if python and python.frames:
        rows.append(console(f"source {python.script}", "py-bt: frames of Python"))
    script = site.checkout / "tools" / "gdb" / "pytorch-gdb.py" if site.checkout else None
    if script and script.is_file():
        rows.append(console(f"source {script}", "torch-tensor-repr: PyTorch's own script for gdb"))
    removed = [change.name for change in site.activation.changes if change.action is Action.UNSET]
    rows += [console(f"unset environment {name}", f"the environment does without {name}") for name in removed]
    return rows


def launch(site: Site, name: str) -> dict[str, Any]:
    """Return `launch.json`."""
    both = f"tenv {name}: C++ (gdb starts the file)"
    attach = f"tenv {name}: Python (attach)"
    compound = {
        "name": f"tenv {name}: Python and C++",
        "configurations": [both, f"{attach}, once debugpy listens"],
        "stopAll": True,
    }
    waiting = {
        **_attach(site, f"{attach}, once debugpy listens"),
        "preLaunchTask": f"tenv {name}: wait for debugpy",
        "presentation": {"hidden": True},
    }
    rows = [_gdb(site, both), waiting, _attach(site, attach)]
    if not _older(site, _LAUNCHED_FROM):
        rows.append(_python(site, f"tenv {name}: Python (stops on entry)"))
    rows += [_gdb_attach(site, f"tenv {name}: C++ (attach by process)"), *_cuda(site, name)]
    return {"version": "0.2.0", "configurations": rows, "compounds": [compound]}


def _gdb(site: Site, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "cppdbg",
        "request": "launch",
        "program": str(site.toolchain.python),
        "args": [*_python_words(site), *_LISTEN],
        "stopAtEntry": False,
        # Beside the script: in the checkout's own folder, `import torch` would take the sources.
        "cwd": "${fileDirname}",
        "environment": [{"name": key, "value": value} for key, value in _environment(site).items()],
        "externalConsole": False,
        "MIMode": "gdb",
        "miDebuggerPath": _program(site, "gdb"),
        "setupCommands": _setup(site),
    }


def _gdb_attach(site: Site, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "cppdbg",
        "request": "attach",
        "program": str(site.toolchain.python),
        "processId": "${command:pickProcess}",
        "MIMode": "gdb",
        "miDebuggerPath": _program(site, "gdb"),
        "setupCommands": _setup(site),
    }


def _attach(site: Site, name: str) -> dict[str, Any]:
    folder = str(site.folder)
    return {
        "name": name,
        "type": "debugpy",
        "request": "attach",
        "connect": {"host": _HERE, "port": PORT},
        # A file has the same name here and there, unless this window is on another machine than the program.
        "pathMappings": [{"localRoot": "${workspaceFolder}", "remoteRoot": folder}],
        "justMyCode": False,
    }


def _python(site: Site, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "debugpy",
        "request": "launch",
        "program": "${file}",
        "python": str(site.toolchain.python),
        "pythonArgs": _python_words(site),
        "cwd": "${fileDirname}",
        "env": _environment(site),
        "console": "integratedTerminal",
        "stopOnEntry": True,
        "justMyCode": False,
    }


def _cuda(site: Site, name: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of NVIDIA's extension, where the environment has cuda-gdb."""
    if not (site.toolchain.cuda and site.program("cuda-gdb")):
        return
    debugger = _program(site, "cuda-gdb")
    common = {"type": "cuda-gdb", "debuggerPath": debugger, "breakOnLaunch": False}
    python = {"program": str(site.toolchain.python), "args": [*_python_words(site), "${file}"]}
    values = [{"name": key, "value": value} for key, value in _environment(site).items()]
    yield {
        "name": f"tenv {name}: CUDA (cuda-gdb starts the file)",
        "request": "launch",
        **common,
        **python,
        "cwd": "${fileDirname}",
        "environment": values,
    }
    pick = {"program": str(site.toolchain.python), "processId": "${command:cuda.pickProcess}"}
    yield {"name": f"tenv {name}: CUDA (attach by process)", "request": "attach", **common, **pick}


def tasks(site: Site, name: str) -> dict[str, Any]:
    """Return `tasks.json`."""
    python, root = str(site.toolchain.python), str(site.checkout or site.folder)
    listen = [*_python_words(site), *_LISTEN]
    under = ["run", "--prefix", str(site.prefix), name, "--"]
    extension = [*under, *site.install_words, "--no-build-isolation", "-v", "."]
    rows = [
        {
            "label": f"tenv {name}: build",
            "type": "process",
            "command": "tenv",
            "args": extension if site.beside else ["build", name, "--pytorch", root],
            "options": {"cwd": root},
            "group": {"kind": "build", "isDefault": True},
            "problemMatcher": "$gcc",
        },
        {
            "label": f"tenv {name}: wait for debugpy",
            "type": "process",
            "command": python,
            "args": ["-I", "-c", _WAIT],
            "presentation": {"reveal": "never"},
            "problemMatcher": [],
        },
        {
            "label": f"tenv {name}: wait for a debugger",
            "detail": f"on the machine of the editor: ssh -L {PORT}:{_HERE}:{PORT} HOST",
            "type": "process",
            "command": "tenv",
            "args": [*under, python, *listen],
            "options": {"cwd": "${fileDirname}"},
            "isBackground": True,
            "problemMatcher": [],
        },
    ]
    return {"version": "2.0.0", "tasks": rows}


def _export(subject: Subject) -> Exported:
    site = subject.site
    if site is None:
        raise ValueError("no environment")
    name = subject.manifest.name
    _refuse_expanded(site)
    settings = _settings(site)
    files: dict[str, Any] = {
        ".vscode/settings.json": settings,
        ".vscode/launch.json": launch(site, name),
        ".vscode/tasks.json": tasks(site, name),
        ".vscode/extensions.json": {"recommendations": _extensions(site)},
        ".vscode/cmake-kits.json": [_kit(site, name)],
    }
    places = _places(site)
    files = {path: _portable(data, places) for path, data in files.items()}
    if site.checkout and site.checkout != site.folder and site.folder not in site.checkout.parents:
        folders = [{"path": "."}, {"path": site.relative(site.checkout) or str(site.checkout)}]
        first = {str(site.folder): f"${{workspaceFolder:{site.folder.name}}}"}
        own = {path: text.replace(_FOLDER, first[str(site.folder)]) for path, text in places.items()} | first
        files[f"{name}.code-workspace"] = {"folders": folders, "settings": _portable(settings, own)}
    encoded = {path: f"{json.dumps(data, indent=4)}\n".encode() for path, data in files.items()}
    return Exported(encoded, notes=tuple(_notes(site, subject.manifest, files)))


def _places(site: Site) -> dict[str, str]:
    """Return the folders that a clone on another machine has elsewhere, each with its reference, the longest first."""
    home = user_home()
    found = {str(home): "${userHome}"} if len(home.parts) > 1 else {}  # not `/` in a container
    found[str(site.folder)] = _FOLDER
    for path in (site.prefix, site.manifest.parent.parent, *([site.checkout] if site.checkout else [])):
        if str(path) not in found and (where := site.relative(path)):
            found[str(path)] = f"{_FOLDER}/{where}"
    return dict(sorted(found.items(), key=lambda row: -len(row[0])))


def _portable(data: Any, places: Mapping[str, str]) -> Any:
    """Return JSON values with references in place of the folders of this machine."""
    if isinstance(data, dict):
        return {key: _portable(value, places) for key, value in data.items()}
    if isinstance(data, list):
        return [_portable(value, places) for value in data]
    if not isinstance(data, str):
        return data
    pattern = "|".join(map(re.escape, places))
    return re.sub(rf"(?<![\w./-])(?:{pattern})(?![\w.-])", lambda match: places[match[0]], data)


def _settings(site: Site) -> dict[str, Any]:
    values = variables(site)
    system = "windows" if site.toolchain.python.suffix == ".exe" else "linux"
    root = str(site.checkout or site.folder)
    settings: dict[str, Any] = {
        "python.defaultInterpreterPath": str(site.toolchain.python),
        # The terminal below has the whole environment; an activation by the extension would only add a part of it. The
        # environment that a toolkit is beside is not in it.
        "python.terminal.activateEnvironment": site.beside,
        f"terminal.integrated.env.{system}": values,
        "cmake.environment": {key: value for key, value in values.items() if value is not None},
        "cmake.sourceDirectory": root,
        "cmake.buildDirectory": f"{root}/build",
        "files.associations": {"*.cu": "cuda-cpp", "*.cuh": "cuda-cpp"},
        "files.watcherExclude": {"**/.tenv/**": True, "**/build/**": True, "**/third_party/**": True},
        "search.exclude": {"**/.tenv": True, "**/build": True},
        "C_Cpp.default.compileCommands": f"{root}/build/compile_commands.json",
        "clangd.arguments": [f"--compile-commands-dir={root}/build", *query_drivers(site)],
    }
    if site.toolchain.cmake:
        settings["cmake.cmakePath"] = _program(site, "cmake")
    if site.toolchain.ninja:
        settings["cmake.generator"] = "Ninja"
    return settings


def _kit(site: Site, name: str) -> dict[str, Any]:
    """Return the kit of the CMake extension: the compilers that a build takes."""
    languages = {"C": ("CC", "cc"), "CXX": ("CXX", "c++"), "CUDA": ("CUDACXX", "")}
    values = {key: site.environ.get(variable) or site.program(usual) for key, (variable, usual) in languages.items()}
    inside = f"{site.prefix}{os.sep}"
    compilers = {
        key: value if value.startswith(inside) else Path(value).name
        for key, value in values.items()
        if value and _EXPANDED not in value
    }
    kit: dict[str, Any] = {"name": f"tenv {name}", "compilers": compilers}
    if site.toolchain.ninja:
        kit["preferredGenerator"] = {"name": "Ninja"}
    return kit


def _extensions(site: Site) -> list[str]:
    own = ["ms-python.python", "ms-python.debugpy", "ms-vscode.cpptools", "ms-vscode.cmake-tools"]
    return own + (["nvidia.nsight-vscode-edition"] if site.toolchain.cuda else [])


def _notes(site: Site, manifest: Manifest, files: Mapping[str, Any]) -> Iterator[str]:
    name = manifest.name
    if expanded := _expanded(site):
        yield f"left out: {', '.join(expanded)}; VS Code would expand `{_EXPANDED}…}}` in the value"
    if not (site.toolchain.site_packages / "debugpy").is_dir():
        feature = feature_with(manifest, "debugpy", current_platform())
        line = f"tenv create {name} --with {feature}" if feature else ""
        line = shlex.join((*site.install_words, "debugpy")) if site.beside else line
        line = line or install_line(name, "debugpy", site.toolchain.site_packages)
        yield f"debugpy is not in the environment; `{line}` brings it"
    if not site.program("gdb"):
        yield "gdb is not on PATH; `sudo apt install gdb` brings it on Debian and Ubuntu"
    if f"{name}.code-workspace" in files:
        yield f"open {site.folder / f'{name}.code-workspace'}: your scripts and the checkout in one window"
    yield (
        f"on a remote machine: run the task `tenv {name}: wait for a debugger`, here "
        f"`ssh -L {PORT}:127.0.0.1:{PORT} HOST`, then start `tenv {name}: Python (attach)`"
    )


def _add(_: str, old: bytes, new: bytes, force: bool) -> Addition:
    wanted = json.loads(new)
    text = old.decode("utf-8")
    # A list at the top, as in cmake-kits.json, is merged as if it were a member.
    if isinstance(wanted, list):
        head = '{"":'
        merged = merge(f"{head}{text or '[]'}}}", {"": wanted}, force=force)
        return Addition(merged.text[len(head) : -1].encode(), tuple(map(_place, merged.kept)))
    merged = merge(text, wanted, force=force)
    return Addition(merged.text.encode(), tuple(map(_place, merged.kept)))


def _place(path: tuple[str, ...]) -> str:
    return " > ".join(filter(None, path))


FORMAT = Format(
    name="vscode",
    export=_export,
    needs_environment=True,
    holds_lock=False,
    add=_add,
)
