"""``tenv init``."""

import click

from tenv.cli.command import command, not_empty
from tenv.cli.output import Result, Voice
from tenv.core.errors import UsageError


@command("init", short_help="Write the manifest of a new target.")
@click.argument("name", required=False)
@click.option("--extends", metavar="TARGET", help="The parent target, such as cuda130.")
@click.option(
    "--torch",
    is_flag=False,
    flag_value="newest",
    metavar="[TORCH]",
    help="A target for extensions of torch: a version such as 2.14, 2.9+cu126 or 2.9+cpu, an environment such as "
    ".venv, or cpu for the newest without CUDA. Without one, the newest that the driver of this machine runs.",
)
@click.option(
    "--pytorch",
    default="",
    callback=not_empty,
    metavar="DIR|VERSION",
    help="With --extends: for this PyTorch alone, with its Pythons and the triton that its wheels require.",
)
@click.option("--companions", is_flag=True, help="With --torch: torchvision and torchaudio, too.")
def init(
    voice: Voice,  # noqa: ARG001 (every command has a voice)
    *,
    name: str | None,
    extends: str | None,
    torch: str | None,
    pytorch: str,
    companions: bool,
) -> Result:
    """Write manifests/NAME.toml in the project, or in the working folder, which becomes a project.

    tenv.schema.json beside it is the JSON schema of manifests, for editors. Without NAME, the target has the name of
    the folder. `.gitignore` gets a line for the environments.

    With --pytorch, `tenv lock NAME` selects the triton of that PyTorch and keeps the other files of the parent.

    With --torch, the target has torch, CMake, Ninja, setuptools, and the CUDA toolkit that torch was compiled with;
    a torch for CPUs has none.
    """
    from tenv.project.context import Context
    from tenv.verbs.init import init as begin

    if torch is not None and extends:
        hint = f"`tenv add {name or 'TARGET'} torch` adds torch to a target that extends another one"
        raise UsageError("--torch and --extends write different manifests", hint=hint)
    if pytorch and not extends:
        hint = f"`tenv init {name or 'NAME'} --extends TARGET --pytorch {pytorch}` narrows a target to a revision"
        raise UsageError("--pytorch belongs to --extends", hint=hint)
    if companions and torch is None:
        raise UsageError(
            "--companions belongs to --torch", hint="`--torch --companions` adds torchvision and torchaudio"
        )
    begun = begin(Context(), name, extends, torch, companions=companions, pytorch=pytorch)
    data = {
        "target": begun.target,
        "manifest": str(begun.manifest),
        "schema": str(begun.schema),
        "gitignore": str(begun.ignore) if begun.ignore else None,
        "hides": begun.hidden or None,
    }
    lines = [f"{begun.manifest} written, and {begun.schema.name}, with which editors complete and check it"]
    if begun.hidden:
        lines.append(
            f"note: there is another target `{begun.target}` ({begun.hidden}), which this one hides in the project; "
            f"`tenv init NAME --extends {begun.target}` adds to that one under a name of its own"
        )
    lines += [f"note: {begun.torch}"] if begun.torch else []
    lines += [f"{begun.ignore} now has the line `.tenv/`"] if begun.ignore else []
    add = f"`tenv add {begun.target} PACKAGE`, " if torch is None else ""
    lines.append(f"next: {add}`tenv lock {begun.target}`, `tenv create {begun.target}`")
    if begun.repository:
        lines.append("`tenv merge-driver --install` configures git to merge locks with tenv")
    return Result(data, summary=lines)
