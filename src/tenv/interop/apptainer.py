"""An Apptainer definition, built and run without root.

Its form: https://apptainer.org/docs/user/latest/definition_files.html
"""

from collections.abc import Sequence
from pathlib import Path

from tenv.interop.container_recipe import CONSTRAINTS, CONTEXT, SECOND, WORK, Recipe, header, make_recipe
from tenv.interop.dockerfile import FOLDER
from tenv.interop.interface import Exported, Format, Subject


def _section(name: str, lines: Sequence[str]) -> str:
    return f"\n%{name}\n" + "".join(f"    {line}\n" for line in lines)


def _head(image: str, stage: str = "") -> str:
    return f"Bootstrap: docker\nFrom: {image}\n" + (f"Stage: {stage}\n" if stage else "")


def _copied(recipe: Recipe) -> list[str]:
    folders = dict.fromkeys(name.partition("/")[0] for name in recipe.files)
    return [f"{FOLDER}/{name} {CONTEXT}/{name}" for name in folders]


def _making(recipe: Recipe) -> list[str]:
    values = [f"export {name}={value}" for name, value in recipe.variables.items()]
    # Whoever runs the image has another user id than its builder, and writes into an overlay.
    tidy = (f"chmod -R a+rwX {CONTEXT}", "rm -rf /root/.cache")
    return [*values, *recipe.program(), *recipe.environment(), *tidy]


def _definition(recipe: Recipe) -> str:
    work = [f"mkdir -p {WORK}", f"chmod a+rwx {WORK}"]
    if recipe.second:
        text = _head(recipe.builder, "python") + _section("files", [f"{FOLDER}/{CONSTRAINTS} {CONTEXT}/{CONSTRAINTS}"])
        text += _section("post", ["set -eu", *recipe.system(making=True), *recipe.second_python()])
        text += "\n" + _head(recipe.base, "final") + _section("files from python", [f"{SECOND} {SECOND}"])
        text += _section("files", _copied(recipe))
        text += _section("post", ["set -eu", *recipe.system(making=False), *work, *_making(recipe)])
    elif recipe.builder:
        text = _head(recipe.builder, "environment") + _section("files", _copied(recipe))
        text += _section("post", ["set -eu", *recipe.system(making=True), *_making(recipe)])
        text += "\n" + _head(recipe.base, "final") + _section("files from environment", [f"{CONTEXT} {CONTEXT}"])
        text += _section("post", ["set -eu", *recipe.system(making=False), *work])
    else:
        text = _head(recipe.base) + _section("files", _copied(recipe))
        text += _section("post", ["set -eu", *recipe.system(making=False), *work, *_making(recipe)])
    values = [f"export {name}={value}" for name, value in recipe.variables.items()]
    text += _section("environment", [*values, recipe.activate])
    text += _section("runscript", ['if [ "$#" = 0 ]; then set -- bash; fi', 'exec "$@"'])
    return text + _section("labels", [f"tenv.target {recipe.target}"])


def _export(subject: Subject) -> Exported:
    recipe = make_recipe(subject)
    name = recipe.target
    gpu = "--nv " if recipe.cuda else ""
    image, overlay = subject.placed(f"{name}.sif"), subject.placed(f"{name}-overlay")
    inside = "" if subject.folder == Path() else f"cd {subject.placed()} && "
    build = f"{inside}apptainer build --fakeroot {name}.sif {name}.def"  # %files are relative to the working folder
    notes = (
        f"build: ({build})" if inside else f"build: {build}",
        f'run: mkdir -p {overlay} && apptainer run {gpu}--overlay {overlay} --bind "$PWD":{WORK} {image}',
        *recipe.needs("Apptainer, user namespaces"),
    )
    files = {f"{FOLDER}/{file}": data for file, data in recipe.files.items()}
    text = header(recipe, "apptainer") + _definition(recipe)
    return Exported({f"{name}.def": text.encode(), **files}, notes=notes)


FORMAT = Format(
    name="apptainer",
    export=_export,
    holds_lock=False,
    carries=True,
)
