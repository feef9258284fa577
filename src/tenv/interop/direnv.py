"""direnv: an ``.envrc`` that activates the environment in its folder and leaves it outside."""

from tenv.activation.shells import posix
from tenv.core.prefix import META
from tenv.interop.interface import Exported, Format, Subject, add_block, block

__all__ = ["FORMAT"]


def _export(subject: Subject) -> Exported:
    site = subject.site
    if site is None:
        raise ValueError("no environment")
    name, meta = subject.manifest.name, site.prefix / META
    script, state = posix.quote(str(meta / posix.SCRIPT)), posix.quote(str(meta / "state.json"))
    text = (
        f"# The environment of {name}; made by `tenv export direnv {name}`.\n"
        f"watch_file {state} {script}\n"
        f"if [ -f {script} ]; then\n"
        f"    TENV_NO_PROMPT=1 . {script}\n"
        "else\n"
        f"    log_error 'tenv: the environment of {name} is missing or broken; `tenv create {name}` makes it'\n"
        "fi\n"
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
