"""A development container: the Dockerfile, and how editors use it.

Its form: https://containers.dev/implementors/json_reference
"""

import json
from typing import Any

from tenv.interop.container_recipe import USER, WORK, header, make_recipe
from tenv.interop.dockerfile import FOLDER, dockerfile
from tenv.interop.interface import Exported, Format, Subject


def _export(subject: Subject) -> Exported:
    recipe = make_recipe(subject)
    python = f"{recipe.prefix}/bin/python"
    settings: dict[str, Any] = {
        "python.defaultInterpreterPath": python,
        "python.terminal.activateEnvironment": False,
        "files.associations": {"*.cu": "cuda-cpp", "*.cuh": "cuda-cpp"},
        "files.watcherExclude": {"**/build/**": True, "**/third_party/**": True},
    }
    extensions = ["ms-python.python", "ms-python.debugpy", "ms-vscode.cpptools", "ms-vscode.cmake-tools"]
    data: dict[str, Any] = {
        "name": f"tenv {recipe.target}",
        "build": {"dockerfile": "Dockerfile", "context": FOLDER},
        "remoteUser": USER,
        "workspaceFolder": WORK,
        "workspaceMount": f"source=${{localWorkspaceFolder}},target={WORK},type=bind",
        "mounts": [f"source=tenv-{recipe.target}-cache,target=/home/{USER}/.cache,type=volume"],
        # gdb attaches to processes that it has not started.
        "capAdd": ["SYS_PTRACE"],
        "securityOpt": ["seccomp=unconfined"],
        # Programs of the editor have the active environment, by .bashrc.
        "userEnvProbe": "interactiveShell",
        "customizations": {"vscode": {"settings": settings, "extensions": extensions}},
    }
    if recipe.cuda:
        data["hostRequirements"] = {"gpu": "optional"}
    folder = ".devcontainer"
    text = header(recipe, "devcontainer") + dockerfile(recipe)
    # A volume that is new takes owner and mode of the folder below it.
    text = text.replace(f"USER {USER}\n", f"RUN install -d -o {USER} /home/{USER}/.cache\nUSER {USER}\n")
    files = {f"{folder}/devcontainer.json": f"{json.dumps(data, indent=4)}\n".encode()}
    files[f"{folder}/Dockerfile"] = text.encode()
    files |= {f"{folder}/{FOLDER}/{name}": raw for name, raw in recipe.files.items()}
    place = subject.placed()
    notes = (
        f"build: devcontainer build --workspace-folder {place}",
        f"run: devcontainer up --workspace-folder {place}  (in VS Code: Dev Containers: Reopen in Container)",
        *recipe.needs("the NVIDIA Container Toolkit"),
    )
    return Exported(files, notes=notes)


FORMAT = Format(
    name="devcontainer",
    export=_export,
    holds_lock=False,
    carries=True,
)
