"""direnv: an ``.envrc`` that activates the environment in its folder and leaves it outside.

It names no absolute path and sources no file of the checkout: `tenv activate` refuses an environment that tenv has not
made on this machine. So the file can be committed.
"""

import shlex

from tenv.activation.shells import posix
from tenv.core.prefix import META
from tenv.interop.interface import Exported, Format, Subject, add_block, block


def _export(subject: Subject) -> Exported:
    site = subject.site
    if site is None:
        raise ValueError("no environment")
    name = subject.manifest.name
    watched = site.relative(site.prefix / META / "state.json")
    watch = f"watch_file {posix.quote(watched)}\n" if watched else ""
    text = (
        f"# The environment of {name}; made by `tenv export direnv {name}`. It can be committed.\n"
        f"{watch}"
        f"tenv_script=$(tenv {shlex.join(site.activate)}) || exit\n"
        'TENV_NO_PROMPT=1 eval "$tenv_script"\n'
        "unset tenv_script\n"
    )
    notes = [f"run: direnv allow {posix.quote(str(site.folder))}"]
    if not site.program("direnv"):
        notes.append("direnv is not on PATH; `sudo apt install direnv` brings it on Debian and Ubuntu")
    return Exported({".envrc": block(text)}, notes=tuple(notes))


FORMAT = Format(
    name="direnv",
    export=_export,
    needs_environment=True,
    holds_lock=False,
    add=add_block,
)
