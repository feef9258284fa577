"""Write the manifest of a new target, and the line of ``.gitignore`` for environments."""

from pathlib import Path

from tenv.core.dataclass import dataclass
from tenv.core.errors import FileExistsAlreadyError, UsageError
from tenv.core.file_content import read_text
from tenv.core.files import write_atomic
from tenv.core.versions import Version
from tenv.host.machine import current_platform
from tenv.host.report import HostReport
from tenv.project.context import Context
from tenv.targets.manifest import PLATFORMS
from tenv.targets.manifest_keys import SCHEMA_FILE, schema_text
from tenv.targets.search import AUTO, is_target_name, target_name_of

_IGNORED = ".tenv/"

_EXTENDING = """\
#:schema ./{schema}
# The requests of a target. `tenv lock {name}` selects the files, `tenv create {name}` installs them.
description = "{name}, on top of {parent}"
extends     = "{parent}"                # the keys below override those of the parent
{more}
# [pypi-dependencies]                   # wheels; `tenv add {name} numpy` writes a line here
# numpy = ">=2,<3"

# [dependencies]                        # conda packages
# [activation.env]                      # variables, in addition to those of the toolchain
"""

_TRITON_GLIBC = (Version("3.3"), Version("2.27"))
"""The first triton whose wheels are tagged for a newer glibc than 2.17 (manylinux_2_27), and that glibc."""

_PLAIN = """\
#:schema ./{schema}
# The requests of a target. `tenv lock {name}` selects the files, `tenv create {name}` installs them.
description = "{name}"
platforms   = ["{platform}"]
python      = ">=3.11,<3.15"            # the Python minors that the lock serves
# extends   = "cuda130"                 # a parent target; `tenv targets` lists the targets

[requirements]                          # requirements on the host
glibc = "2.28"
# cuda = "13.0"                         # the minimum driver follows from it

# [dependencies]                        # conda packages
# [activation.env]                      # variables, in addition to those of the toolchain

[pypi-dependencies]                     # wheels; `tenv add {name} numpy` writes a line here
# numpy = ">=2,<3"
"""


@dataclass(frozen=True, slots=True)
class Begun:
    """The result of `init`."""

    target: str
    """The target's name."""
    manifest: Path
    """Its manifest."""
    schema: Path
    """The JSON schema of manifests, for editors."""
    ignore: Path | None
    """The ``.gitignore`` if a line was added to it; else None."""
    repository: bool
    """Whether the project is in a git repository."""
    hidden: str = ""
    """The owner of another target of that name, which the new one hides here; empty if there is none."""
    torch: str = ""
    """The torch of the target, with the reason for its version; empty where the user named it."""


def init(
    context: Context,
    name: str | None,
    extends: str | None,
    torch: str | None = None,
    *,
    companions: bool = False,
    pytorch: str = "",
) -> Begun:
    """Write the manifest of a new target in the project, or in the working folder, which becomes a project.

    Args:
        context: The context of the verb.
        name: The target's name; None for the folder's.
        extends: The parent target; None for none.
        torch: The torch that its toolkit follows, as `tenv.verbs.torch_target.torch_request` takes it; None for none.
        companions: Whether it has torchvision and torchaudio, too.
        pytorch: The PyTorch to which it narrows its parent, as `find_source` takes it; empty for none.

    Raises:
        UsageError: The name is not valid for a target, an empty target would hide another one of that name, there is
            no such torch or PyTorch, or the parent does not build it.
        UnknownTargetError: The target in `extends` does not exist.
        FileExistsAlreadyError: The manifest exists.
    """
    folder = context.places.project or Path.cwd()
    target = name or target_name_of(folder.name)
    if target == AUTO:
        raise UsageError(
            f"`{AUTO}` means the best target of the host, so no target has this name",
            hint="`tenv init NAME` gives another; `tenv create auto` creates the best target",
        )
    if not is_target_name(target):
        hint = "`tenv init NAME` takes letters, digits, `.`, `_` and `-`"
        raise UsageError(f"`{target}` is not a name for a target", hint=hint)
    if extends:
        context.places.find_parent(extends)
        if extends == target:
            raise UsageError(f"`{target}` can't extend itself", hint="give the new target another name")
    manifest = folder / "manifests" / f"{target}.toml"
    if manifest.exists() or manifest.is_symlink():
        raise FileExistsAlreadyError(f"{manifest}: already exists", hint=f"`tenv show {target}` shows it")
    others = (place for place in context.places.places if place.folder != folder)
    hidden = next((place.origin.owner for place in others if place.manifest_file(target).is_file()), "")
    if hidden and not extends and torch is None:
        raise UsageError(
            f"there is a target `{target}` ({hidden}), which an empty one would hide",
            hint=f"`tenv create {target}` makes its environment; `tenv init my-{target} --extends {target}` adds to it",
        )
    here = current_platform()
    platform = here if here in PLATFORMS else PLATFORMS[0]
    schema, chosen = manifest.with_name(SCHEMA_FILE), ""
    if torch is None:
        text = _EXTENDING if extends else _PLAIN
        more = _for_pytorch(context, extends, pytorch) if extends and pytorch else ""
        filled = text.format(name=target, parent=extends, platform=platform, schema=SCHEMA_FILE, more=more)
    else:
        filled, chosen = _of_torch(context, torch, target, platform, beside=companions)
    write_atomic(schema, schema_text(), within=folder)
    write_atomic(manifest, filled, within=folder)
    repository = any((parent / ".git").exists() for parent in (folder, *folder.parents))
    return Begun(target, manifest, schema, ignore_environments(folder), repository, hidden, chosen)


def _for_pytorch(context: Context, parent: str, pytorch: str) -> str:
    """Return the lines that narrow a child to a minor version of PyTorch: its Pythons, and the triton of its wheels.

    Raises:
        UsageError: There is no such PyTorch, or the parent does not build it.
    """
    from tenv.checks.before_create import Surroundings, unfit_pythons  # late: only with that option
    from tenv.checks.pytorch_source import find_source

    facts, target = context.facts(), context.places.find(parent)
    source, manifest = find_source(pytorch, facts), target.manifest
    if source is None or (manifest.pytorch and str(source.release) not in manifest.pytorch):
        revision = source.version.value if source else pytorch
        hint = f"`tenv check auto --pytorch {pytorch}` finds a target for it"
        raise UsageError(f"`{parent}` builds PyTorch {manifest.pytorch}, not {revision}", hint=hint)
    release = source.release
    lines = [f'pytorch     = ">={release.major_minor},<{release.major}.{release.minor + 1}"']
    if unfit := unfit_pythons(target, Surroundings(HostReport.unknown(), source, facts)):
        fit = [Version(minor) for minor in manifest.python_minors() if minor not in unfit]
        lines.append(f'python      = ">={fit[0]},<{fit[-1].major}.{fit[-1].minor + 1}"')
    row = facts.pytorch_build.companions_of(source.version.value)
    if row is None or not (pin := row.triton.removeprefix("~=")):
        return "\n".join([*lines, ""])
    glibc = manifest.requirements.glibc
    if Version(pin) >= _TRITON_GLIBC[0] and glibc is not None and glibc < _TRITON_GLIBC[1]:
        lines += ["", "[requirements]", f'glibc = "{_TRITON_GLIBC[1]}"                        # triton {pin} needs it']
    for name, part in {"": manifest, **manifest.features}.items():
        for platform in manifest.platforms:
            if "triton" in part.on(platform).wheels:
                section = f"{f'feature.{name}.' if name else ''}platform.{platform}.pypi-dependencies"
                lines += ["", f"[{section}]", f'triton = "{pin}"                       # as torch {row.torch} requires']
    return "\n".join([*lines, ""])


def _of_torch(context: Context, torch: str, target: str, platform: str, *, beside: bool) -> tuple[str, str]:
    """Return the text of the manifest, and the torch with the reason for its version, where tenv has chosen it."""
    from tenv.verbs.torch_target import manifest_text, torch_request  # late: only with that option

    facts = context.facts()
    request = torch_request(torch, facts, platform, Path.cwd(), beside=beside)
    text = manifest_text(request, facts, name=target, platform=platform, schema=SCHEMA_FILE, beside=beside)
    return text, f"torch {request.version.removesuffix('.*')}: {request.why}" if request.why else ""


def ignore_environments(folder: Path) -> Path | None:
    """Add the folder of environments to ``.gitignore``; return the file where a line was added."""
    file = folder / ".gitignore"
    text = read_text(file) if file.is_file() else ""
    if _IGNORED.rstrip("/") in {line.strip().strip("/") for line in text.splitlines()}:
        return None
    gap = "" if not text or text.endswith("\n") else "\n"
    write_atomic(file, f"{text}{gap}{_IGNORED}\n", within=folder)
    return file
