"""Decide which target `tenv add` and `tenv drop` edit: the first word, or the default target."""

import contextlib
import shlex
from collections.abc import Sequence

from tenv.core.dataclass import dataclass
from tenv.core.errors import TenvError, UnknownTargetError, UsageError
from tenv.core.names import normalize
from tenv.core.toml_reader import nearest
from tenv.project.context import Context
from tenv.targets.search import is_target_name
from tenv.targets.sections import SECTIONS
from tenv.verbs.requests import requested_names


@dataclass(frozen=True, slots=True)
class EditedTarget:
    """The target and the packages in the words of `tenv add` or `tenv drop`."""

    name: str
    """The target."""
    packages: tuple[str, ...]
    """The requests or packages."""
    note: str = ""
    """The decision, if the words are ambiguous; else empty."""


def edited_target(context: Context, verb: str, words: Sequence[str]) -> EditedTarget:
    """Return the target and the packages that the words of a command line name.

    The name of a target wins over a package of that name. Without one, the default target is edited: that of
    `tenv.toml`, or the only one of the project. The only environment is no reason to edit a manifest: the next
    `tenv create` would change which one is meant.

    Args:
        context: The context of the verb.
        verb: The command, ``add`` or ``drop``.
        words: The words after the command.

    Raises:
        UsageError: No package is named, or there is no default target.
        UnknownTargetError: The first word is most likely a mistyped target.
    """
    if not words:
        raise UsageError("no package is given", hint=f"`tenv {verb} {context.default_word()} PACKAGE`")
    first, *others = words
    names = [*context.places.names()]
    if first in names:
        return _of_target(context, verb, first, tuple(others))
    default = _default(context)
    own = set(context.places.project_targets())
    if target := next((word for word in others if (word in own and word != default) or word == default != first), ""):
        rest = shlex.join(word for word in words if word != target)
        raise UsageError(f"`{target}` is a target, and stands behind a package", hint=f"`tenv {verb} {target} {rest}`")
    mistyped = nearest(first, names) if others and is_target_name(first) else ""
    if mistyped and not (default and normalize(first) in names_of(context, default)):
        rest = f"`tenv {verb} {shlex.join([default or 'TARGET', *words])}` takes it as a package"
        raise UnknownTargetError(f"there is no target `{first}`", hint=f"{mistyped} {rest}")
    if not default:
        raise _no_default(context, verb, words)
    return EditedTarget(default, tuple(words), f"{default} is the default target")


def _of_target(context: Context, verb: str, name: str, packages: tuple[str, ...]) -> EditedTarget:
    """Return the words after the name of a target, with a note where the default target asks for that name, too."""
    other, asked = "", False
    with contextlib.suppress(TenvError):  # a fault of the default target does not concern another one
        other = _default(context)
        asked = bool(other) and normalize(name) in names_of(context, other)
    as_package = f"`tenv {verb} {shlex.join([other, name, *packages])}` takes it as a package"
    if not packages:
        hint = f"`tenv {verb} {shlex.quote(name)} PACKAGE`" + (f"; {as_package}" if other not in ("", name) else "")
        raise UsageError(f"no package is given after the target {name}", hint=hint)
    note = f"`{name}` is taken as the target; {as_package}" if asked and other != name else ""
    return EditedTarget(name, packages, note)


def _default(context: Context) -> str:
    """Return the default target for a command that writes; empty where neither tenv.toml nor the project names one."""
    if context.project_settings().default or len(context.places.project_targets()) == 1:
        return context.default_target()
    return ""


def is_package_of_default(context: Context, word: str) -> bool:
    """Return whether the default target of the project asks for a package, and no target has its name."""
    with contextlib.suppress(TenvError):
        default = _default(context)
        return bool(default) and word not in context.places.names() and normalize(word) in names_of(context, default)
    return False


def names_of(context: Context, name: str) -> set[str]:
    """Return the normalized names of all packages that a target asks for."""
    manifest = context.places.find(name).manifest
    return {normalize(asked) for section in SECTIONS for asked in requested_names(manifest, section.key)}


def _no_default(context: Context, verb: str, words: Sequence[str]) -> UsageError:
    own = context.places.project_targets()
    if own:
        why = f"no TARGET is given, and the project has several: {', '.join(own)}"
        hint = f"`tenv {verb} {shlex.join([own[0], *words])}`, or `tenv default {shlex.quote(own[0])}` sets one"
        return UsageError(why, hint=hint)
    context.places.require_trust("no TARGET is given, and ")
    where = "the project has no targets of its own" if context.places.project else "there is no project"
    given = shlex.join(words)
    hint = f"`tenv {verb} TARGET {given}` names one, `tenv init NAME` writes the manifest of a new one"
    return UsageError(f"no TARGET is given, and {where}", hint=hint)
