"""Words of pixi, uv, conda and pip, each with the command of tenv that does it."""

import contextlib
import re
import shlex
from collections.abc import Sequence

from tenv.core.errors import TenvError

__all__ = ["OTHER_WORDS", "SECOND_WORDS", "is_pair", "target_names", "way_of"]

OTHER_WORDS = {
    "install": "`tenv create TARGET` makes the environment of a target, `tenv add TARGET PACKAGE` asks for a package",
    "sync": "`tenv create TARGET` brings an environment up to date with its lock; `tenv run --sync` does so first",
    "uninstall": "`tenv remove TARGET` removes an environment, `tenv drop TARGET PACKAGE` takes a package out of it",
    "upgrade": "`tenv update TARGET` chooses newer versions for the lock, `tenv create TARGET` installs them",
    "ls": "`tenv list` lists the environments, `tenv packages TARGET` the packages of one",
    "shell-hook": "`tenv activate TARGET` prints the script, `tenv hook bash` the function for your start file",
    "freeze": "`tenv packages TARGET` lists the packages, `tenv export requirements.txt TARGET` writes them for pip",
    "python": "`tenv run TARGET -- python` starts the Python of an environment",
    "pip": "`tenv add TARGET PACKAGE` asks for a package, `tenv run TARGET -- python -m pip` runs pip itself",
    "cache": "`tenv clean` shows what the caches hold, `tenv clean --all` empties them",
    "venv": "`tenv create TARGET` makes the environment of a target",
    "why": "`tenv tree TARGET --invert PACKAGE` prints what requires a package",
    "depends": "`tenv tree TARGET` prints what the packages require",
    "rm": "`tenv remove TARGET` removes an environment, `tenv drop TARGET PACKAGE` takes a package out of it",
    "delete": "`tenv remove TARGET` removes an environment, `tenv drop TARGET PACKAGE` takes a package out of it",
    "reinstall": "`tenv create TARGET --repair` mends an environment, `tenv create TARGET --anew` makes it anew",
    "repair": "`tenv create TARGET --repair` reads every file and mends those that were changed",
    "status": "`tenv list --check` reports what is stale or broken, `tenv show TARGET` one target",
    "doctor": "`tenv verify TARGET` reads every file of an environment, `tenv check TARGET` judges this machine",
    "exec": "`tenv run TARGET -- COMMAND` runs a program in an environment",
    "compare": "`tenv diff OLD NEW` compares two targets or two locks",
    "use": "`tenv default TARGET` sets the default target, `tenv shell TARGET` starts a shell with it",
    "switch": "`tenv default TARGET` sets the default target, `tenv shell TARGET` starts a shell with it",
    "workspace": "`tenv targets` lists the targets, `tenv config` the settings",
    "project": "`tenv targets` lists the targets, `tenv config` the settings",
    "environment": "`tenv list` lists the environments, `tenv create TARGET` makes one",
    "revert": "`tenv rollback TARGET` restores the previous lock of an environment",
    "undo": "`tenv rollback TARGET` restores the previous lock of an environment",
    "task": "tenv runs no tasks, pixi and just do; `tenv run TARGET -- COMMAND` runs a program in an environment",
    "self": "tenv is upgraded by the tool that installed it: `tenv info` names its folder",
}
"""Words of other tools, each with the command of tenv that does it."""

SECOND_WORDS = {
    ("env", "list"): "`tenv list` lists the environments",
    ("env", "create"): "`tenv create TARGET` makes the environment of a target",
    ("env", "remove"): "`tenv remove TARGET` removes an environment",
    ("env", "export"): "`tenv export environment.yml TARGET` writes the packages for conda",
    ("env", "update"): "`tenv update TARGET` chooses newer versions for the lock, `tenv create TARGET` installs them",
    ("config", "list"): "`tenv config` prints the settings",
    ("config", "show"): "`tenv config` prints the settings",
    ("config", "get"): "`tenv config KEY` prints a setting",
    ("config", "set"): "`tenv config KEY VALUE` changes a setting",
    ("config", "unset"): "`tenv config KEY --unset` takes a setting back",
}
"""Pairs of words of other tools that begin with a command of tenv."""

_TAKES_PACKAGE = frozenset({"install", "uninstall", "pip", "why", "rm", "delete", "upgrade"})
_VERBS = frozenset({"install", "uninstall", "add", "remove", "list", "show", "freeze"})


def is_pair(words: Sequence[str]) -> bool:
    """Return whether words begin as those of another tool, with a second word that is no target."""
    return (*words[:2],) in SECOND_WORDS and words[1] not in target_names()


def way_of(name: str, arguments: Sequence[str]) -> str:
    """Return the hint for a word of another tool, ready to be pasted where that is possible; empty for other words.

    Args:
        name: The first word after ``tenv``.
        arguments: The words after it.
    """
    words = [word for word in arguments if not word.startswith("-")]
    way = SECOND_WORDS.get((name, words[0])) if words else None
    way, given = (way, words[1:]) if way else (OTHER_WORDS.get(name, ""), words)
    if not way:
        return ""
    if name == "pip" and given[:1] and given[0] in _VERBS:  # `pip install numpy`
        given = given[1:]
    targets = target_names()
    named = next((word for word in given if word in targets), "")
    way = re.sub(r"\bTARGET\b", shlex.quote(named) if named else _default_word(), way)
    if name == "pip":
        way = _with_pip(way, named)
    packages = [word for word in given if word != named]
    if packages and name in _TAKES_PACKAGE:
        way = re.sub(r"\bPACKAGE\b", lambda _: shlex.join(packages), way)
    for key, value in zip(("KEY", "VALUE"), given, strict=False):
        way = way.replace(key, shlex.quote(value))
    return way


def target_names() -> frozenset[str]:
    """Return the names of the targets here; empty where the folders can't be read."""
    from tenv.targets.search import find_places  # late: a mistyped command alone needs it

    with contextlib.suppress(TenvError):
        return frozenset(find_places().names())
    return frozenset()


def _with_pip(way: str, named: str) -> str:
    """Return the hint for pip with the command that works in an environment that has none."""
    from tenv.debugging.install_line import has_pip, install_line  # late: as above
    from tenv.project.context import Context
    from tenv.toolchain.discover import site_packages

    with contextlib.suppress(TenvError):
        context = Context()
        target = named or context.default_target()
        site = site_packages(context.environment(target, None).prefix)
        if not has_pip(site):
            line = install_line(shlex.quote(target), "PACKAGE", site)
            return f"{way.partition(', ')[0]}, `{line}` installs it beside the lock"
    return way


def _default_word() -> str:
    from tenv.project.context import Context  # late: as above

    with contextlib.suppress(TenvError):
        return Context().default_word()
    return "TARGET"
