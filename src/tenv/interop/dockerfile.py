"""A Dockerfile that makes an environment from its lock, and the folder with the files that it copies."""

import json
from collections.abc import Sequence

from tenv.interop.container_recipe import (
    CONSTRAINTS,
    CONTEXT,
    SECOND,
    USER,
    WORK,
    Recipe,
    header,
    make_recipe,
)
from tenv.interop.interface import Exported, Format, Subject

FOLDER = "tenv-context"
"""The build context: small, since all of it is copied."""

_PYTHONS = "UV_PYTHON_INSTALL_MIRROR"
"""A mirror of uv's Pythons."""

_INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")


def _run(commands: Sequence[str], mount: str = "") -> str:
    return f"RUN {mount}" + " \\\n && ".join(commands) + "\n"


def _making(recipe: Recipe) -> str:
    """Return the lines that install tenv and make the environment, the most stable ones first."""
    copied = " ".join(recipe.program_files)
    # A cache of the builder's own, so that a change of the lock fetches no file twice. buildah 1.28 heeds the owner and
    # not the mode. Anybody may write it, so its archives are compared and copied.
    mount = f"--mount=type=cache,id=tenv-{USER},target=/home/{USER}/.cache,uid=1000,gid=1000,mode=0777 \\\n    "
    return (
        f"COPY {copied} {CONTEXT}/\n"
        + "".join(f"ARG {name}\n" for name in _INDEXES)
        + _run(recipe.program())
        + f"COPY --chown={USER} manifests {CONTEXT}/manifests\nCOPY --chown={USER} locks {CONTEXT}/locks\n"
        + f"USER {USER}\n"
        + _run((f"export TENV_SAFE_FOLDERS=/home/{USER}/.cache", *recipe.environment()), mount)
    )


def dockerfile(recipe: Recipe) -> str:
    """Return the text of a Dockerfile whose context is the folder with the carried files."""
    values = "".join(f"ENV {name}={value}\n" for name, value in recipe.variables.items())
    user = "ARG USER_ID=1000\n" + _run(recipe.user())
    if recipe.second:
        text = f"ARG BASE={recipe.base}\nARG BUILDER={recipe.builder}\nFROM ${{BUILDER}} AS python\n"
        text += _run(recipe.system(making=True)) + f"COPY {CONSTRAINTS} {CONTEXT}/\n"
        text += "".join(f"ARG {name}\n" for name in (*_INDEXES, _PYTHONS)) + _run(recipe.second_python())
        text += "\nFROM ${BASE}\n" + _run(recipe.system(making=False)) + user + values
        text += f"COPY --from=python {SECOND} {SECOND}\n" + _making(recipe)
    elif recipe.builder:
        text = f"ARG BASE={recipe.base}\nARG BUILDER={recipe.builder}\nFROM ${{BUILDER}} AS environment\n"
        text += _run(recipe.system(making=True)) + user + _making(recipe)
        text += "\nFROM ${BASE}\n" + _run(recipe.system(making=False)) + user + values
        text += f"COPY --from=environment --chown={USER} {CONTEXT} {CONTEXT}\nUSER {USER}\n"
    else:
        text = f"ARG BASE={recipe.base}\nFROM ${{BASE}}\n" + _run(recipe.system(making=False)) + user + values
        text += _making(recipe)
    start = json.dumps(["/bin/sh", "-c", f'{recipe.activate} && exec "$@"', "tenv"])
    return f'{text}WORKDIR {WORK}\nENTRYPOINT {start}\nCMD ["bash"]\n'


def _export(subject: Subject) -> Exported:
    recipe = make_recipe(subject)
    name = f"tenv-{recipe.target}"
    files = {f"{FOLDER}/{file}": data for file, data in recipe.files.items()}
    gpus = "--gpus all " if recipe.cuda else ""
    notes = (
        f"build: docker build -t {name} -f {subject.placed('Dockerfile')} {subject.placed(FOLDER)}",
        f'run: docker run --rm -it {gpus}--cap-add=SYS_PTRACE -v "$PWD":{WORK} {name}',
        *recipe.needs("the NVIDIA Container Toolkit"),
    )
    text = header(recipe, "dockerfile") + dockerfile(recipe)
    return Exported({"Dockerfile": text.encode(), **files}, notes=notes)


FORMAT = Format(
    name="dockerfile",
    export=_export,
    holds_lock=False,
    carries=True,
)
