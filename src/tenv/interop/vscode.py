"""VS Code: settings, debugging of Python and C++ at once, tasks; added to the files that are there."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tenv.core.jsonc import merge
from tenv.debugging.install_line import install_line
from tenv.interop.clangd import query_drivers
from tenv.interop.interface import Addition, Exported, Format, Site, Subject
from tenv.interop.vscode_debugging import PORT, launch, tasks, variables

__all__ = ["FORMAT"]


def _export(subject: Subject) -> Exported:
    site = subject.site
    if site is None:
        raise ValueError("no environment")
    name = subject.manifest.name
    settings = _settings(site)
    files: dict[str, Any] = {
        ".vscode/settings.json": settings,
        ".vscode/launch.json": launch(site, name),
        ".vscode/tasks.json": tasks(site, name),
        ".vscode/extensions.json": {"recommendations": _extensions(site)},
        ".vscode/cmake-kits.json": [_kit(site, name)],
    }
    if site.checkout and site.checkout != site.folder and site.folder not in site.checkout.parents:
        folders = [{"path": str(site.folder)}, {"path": str(site.checkout)}]
        files[f"{name}.code-workspace"] = {"folders": folders, "settings": settings}
    encoded = {path: f"{json.dumps(data, indent=4)}\n".encode() for path, data in files.items()}
    return Exported(encoded, notes=tuple(_notes(site, name, files)))


def _settings(site: Site) -> dict[str, Any]:
    values = variables(site)
    system = "windows" if site.toolchain.python.suffix == ".exe" else "linux"
    root = str(site.checkout or site.folder)
    settings: dict[str, Any] = {
        "python.defaultInterpreterPath": str(site.toolchain.python),
        # The terminal below has the whole environment; an activation by the extension would only add a part of it.
        "python.terminal.activateEnvironment": False,
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
        settings["cmake.cmakePath"] = str(site.toolchain.cmake)
    if site.toolchain.ninja:
        settings["cmake.generator"] = "Ninja"
    return settings


def _kit(site: Site, name: str) -> dict[str, Any]:
    """Return the kit of the CMake extension: the compilers that a build takes."""
    languages = {"C": ("CC", "cc"), "CXX": ("CXX", "c++"), "CUDA": ("CUDACXX", "")}
    values = {key: site.environ.get(variable) or site.program(usual) for key, (variable, usual) in languages.items()}
    kit: dict[str, Any] = {"name": f"tenv {name}", "compilers": {key: value for key, value in values.items() if value}}
    if site.toolchain.ninja:
        kit["preferredGenerator"] = {"name": "Ninja"}
    return kit


def _extensions(site: Site) -> list[str]:
    own = ["ms-python.python", "ms-python.debugpy", "ms-vscode.cpptools", "ms-vscode.cmake-tools"]
    return own + (["nvidia.nsight-vscode-edition"] if site.toolchain.cuda else [])


def _notes(site: Site, name: str, files: Mapping[str, Any]) -> Iterator[str]:
    if not (site.toolchain.site_packages / "debugpy").is_dir():
        line = install_line(name, "debugpy", site.toolchain.site_packages)
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
    read=None,
    recognize=lambda _, __: False,
    needs_environment=True,
    holds_lock=False,
    add=_add,
)
