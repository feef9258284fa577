"""``tenv bundle`` and ``tenv mirror``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tenv.cli.command import FilePath, command, named_features, not_empty, offline_option, target_argument
from tenv.cli.output import Result, Voice, count, format_bytes
from tenv.cli.progress_bar import Terminal

if TYPE_CHECKING:
    from tenv.verbs.mirror import MirrorSettings


_platform_option = click.option(
    "--platform",
    "platforms",
    multiple=True,
    callback=not_empty,
    help="Only the files of this platform; may be repeated. Default: all of the lock.",
)
_python_option = click.option(
    "--python", "minor", default="", metavar="VERSION", help="Only the wheels of this Python, such as 3.12."
)


@command("bundle", short_help="Write a target and all of its files as one file.")
@target_argument
@_platform_option
@_python_option
@click.option(
    "--with",
    "features",
    metavar="FEATURES",
    help="Only the files of the target and of these features, such as debug,test, or `none`. Default: all of the lock.",
)
@click.option(
    "--with-python",
    is_flag=True,
    help="uv's Python too, one for each platform, for a machine that has none.",
)
@click.option(
    "--output",
    "-o",
    type=FilePath(dir_okay=False),
    metavar="FILE",
    help="The file; default: TARGET.tenv in the working folder.",
)
@click.option(
    "--sbom",
    "bill",
    type=FilePath(dir_okay=False),
    metavar="FILE",
    help="Also write a bill of materials with licenses: CycloneDX as JSON. Needs the extra `sbom`: "
    "`pip install '.[sbom]'` in tenv's checkout installs it.",
)
@click.option(
    "--self", "itself", is_flag=True, help="tenv itself with its dependencies, for a machine with Python alone."
)
@offline_option
def bundle(
    voice: Voice,
    *,
    target: str | None,
    platforms: tuple[str, ...],
    minor: str,
    features: str | None,
    with_python: bool,
    output: Path | None,
    bill: Path | None,
    itself: bool,
    offline: bool,
) -> Result:
    """Write the manifest, the lock and every file that the lock of TARGET names as one file, a plain tar.

    `tenv create --bundle FILE` makes the environment of it on a machine without a network. The same lock, options and
    release of tenv give the same bytes. Downloads stay in the store, so that a second bundle needs none;
    `tenv clean --archives` empties it.

    `tenv bundle --self` writes tenv itself in place of a target, for this platform and each Python. Another machine
    installs it with `python3 tenv-VERSION.pyz FOLDER`, without a network.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs import bundle as workflow

    for word, given in (("--sbom", bill), ("--with", features), ("--with-python", with_python)):
        if itself and given:
            raise click.UsageError(f"--self and {word} exclude each other")
    if itself:
        return _itself(voice, target, platforms, minor, output, offline=offline)
    with Terminal(voice) as progress:
        made = workflow.bundle(
            Context(progress=progress, offline=offline),
            target,
            output,
            platforms,
            minor,
            bill,
            named_features(features),
            with_python=with_python,
        )
    head = made.head
    served = ", ".join(head.platforms)
    python = f", Python {head.python}" if head.python else ""
    held = "" if head.features is None else f", with {', '.join(head.features) or 'no feature'}"
    pythons = [row for row in head.files if row.kind == "python"]
    return Result(
        made.to_json(),
        summary=[
            f"{made.path}: {count(len(head.files), 'file')}, {format_bytes(made.bytes)}, for {served}{python}{held}",
            f"  lock    sha256:{made.lock_digest}",
            f"  bundle  sha256:{made.digest}",
            *([f"  bill    {bill}"] if bill else []),
            *(f"  python  {row.name}" for row in pythons),
            f"  use it: tenv create {head.target} --bundle {shlex.quote(made.path.name)}",
        ],
    )


def _itself(
    voice: Voice, target: str | None, platforms: tuple[str, ...], minor: str, output: Path | None, *, offline: bool
) -> Result:
    if target:
        raise click.UsageError(f"--self is about tenv alone: a bundle of {target} is a second file")
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs.bundle_self import bundle_self

    with Terminal(voice) as progress:
        made = bundle_self(Context(progress=progress, offline=offline), output, platforms, minor)
    served = f"{', '.join(made.platforms)}, Python {', '.join(made.minors)}"
    return Result(
        made.to_json(),
        summary=[
            f"{made.path}: {count(len(made.files), 'wheel')}, {format_bytes(made.bytes)}, for {served}",
            f"  file    sha256:{made.digest}",
            f"  use it: python3 {shlex.quote(made.path.name)} FOLDER",
        ],
    )


@command("mirror", short_help="Add the files of a target to a folder that a server offers.")
@click.argument("target", callback=not_empty)
@click.argument("folder", type=FilePath(file_okay=False))
@_platform_option
@_python_option
@click.option(
    "--url", default="", callback=not_empty, help="The address of the folder on the server, for the printed settings."
)
@offline_option
def mirror(
    voice: Voice, *, target: str, folder: Path, platforms: tuple[str, ...], minor: str, url: str, offline: bool
) -> Result:
    """Add every file that the lock of TARGET names to FOLDER, which any static web server or S3 can offer.

    FOLDER gets an index of wheels, channels of conda packages, and archives by their server and path. The settings of a
    machine that uses it are printed: variables for uv, pip and tenv, and lines for tenv's `config.toml`. Each file of
    FOLDER is compared with its digest; files of other targets stay.
    """
    from tenv.project.context import Context  # late: heavy
    from tenv.verbs import mirror as workflow

    with Terminal(voice) as progress:
        made = workflow.mirror(Context(progress=progress, offline=offline), target, folder, platforms, minor, url)
    size = format_bytes(sum(row.size or 0 for row in made.files.values()))
    python = f", Python {made.python}" if made.python else ""
    new = "all of them" if made.new == len(made.files) else f"{made.new} of them"
    files = f"{count(len(made.files), 'file')} of {made.target}, {new} new, {size}"
    return Result(
        made.to_json(),
        text=_text(made.settings),
        summary=[
            f"{made.folder}: {files}, for {', '.join(made.platforms)}{python}",
            *([] if url else ["  `--url URL` prints the settings for a server; these are for this machine"]),
        ],
    )


def _text(settings: "MirrorSettings") -> str:
    """Return the settings of a machine that uses the mirror, each under its program."""
    parts = []
    for title, variables in (("uv and tenv", settings.uv()), ("pip", settings.pip())):
        if variables:
            lines = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
            parts.append(f"# {title}\n{lines}")
    if settings.simple:
        parts.append(f"# an index, where the server answers a folder with its index.html\n# {settings.simple}\n")
    if config := settings.config():
        parts.append("# config.toml of tenv (`tenv info` prints its folder)\n" + config)
    if settings.channels:
        lines = "".join(f"  - {channel}\n" for channel in settings.channels)
        parts.append(f"# .condarc of conda\nchannels:\n{lines}")
    return "\n".join(parts)
