"""Words of pixi, uv, conda and pip, each with the command of tenv that does it."""

import contextlib
import re
import shlex
from collections.abc import Sequence

from tenv.core.errors import TenvError

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
    "size": "`tenv list` prints the size of each environment, `tenv packages TARGET --sort size` the largest packages, "
    "`tenv clean` the caches",
    "du": "`tenv list` prints the size of each environment, `tenv clean` the caches",
    "docker": "`tenv export dockerfile TARGET` writes a container file",
    "test": "`tenv run TARGET -- python -m pytest` runs tests in an environment, `tenv verify TARGET` its own",
    "load": "`tenv shell TARGET` starts a shell with it, `tenv activate TARGET` prints the script that eval takes",
    "unload": "`tenv deactivate` prints the script that eval takes",
    "find": "`tenv packages TARGET` lists the packages, `tenv search PACKAGE TARGET` those that are published",
    "concretize": "`tenv lock TARGET` selects every file of a target",
    "spec": "`tenv update TARGET --dry-run` selects every file and writes none, `tenv tree TARGET` prints the tree",
    "compiler": "`tenv host` prints the compilers of this machine, `tenv check TARGET` judges them",
    "compilers": "`tenv host` prints the compilers of this machine, `tenv check TARGET` judges them",
    "external": "`tenv host` prints the parts of this machine, and [system] of a manifest takes one of them",
    "buildcache": "`tenv mirror TARGET FOLDER` adds the files of a target to a folder, `tenv bundle TARGET` writes one",
    "gc": "`tenv clean` shows the sizes of the caches, and empties them",
    "view": "an environment is one folder already: `tenv show TARGET` prints it",
    "which": "`tenv run TARGET -- which PROGRAM` prints the place of a program in an environment",
    "history": "`tenv rollback TARGET --dry-run` prints the way back, `tenv diff locks/TARGET.lock` the last change",
    "repoquery": "`tenv tree TARGET` is the tree, `tenv tree TARGET --invert PACKAGE` prints what requires one",
    "clone": "`tenv init NAME --extends TARGET` writes a target with the packages of another one",
    "rename": "rename its files in manifests and locks alike, then `tenv create NAME` makes the environment",
    "global": "pixi and uv install programs for all projects; `tenv add TARGET PACKAGE` asks for one in a target",
    "tool": "pixi and uv install programs for all projects; `tenv add TARGET PACKAGE` asks for one in a target",
    "x": "`tenv run TARGET -- COMMAND` runs a program in an environment",
    "new": "`tenv init NAME` writes the manifest of a new target",
    "setup": "`tenv create TARGET` makes the environment of a target, `tenv init NAME` writes a target of your own",
    "enter": "`tenv shell TARGET` starts a shell with it, `tenv activate TARGET` prints the script that eval takes",
    "develop": "`tenv add TARGET --editable FOLDER` asks for a package in a folder",
    "deps": "`tenv tree TARGET` prints what the packages require, `tenv packages TARGET` lists them",
    "login": "uv's and pip's logins for an index apply; `tenv info` names the index",
    "auth": "uv's and pip's logins for an index apply; `tenv info` names the index",
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

_EVERY_PLATFORM = "`tenv lock TARGET` locks all platforms of the target, those of `platforms` in its manifest"
_ONE_PLATFORM = "an environment is of this machine; `tenv packages TARGET --platform VALUE` lists the lock of another"
_FEATURE = "`tenv add TARGET --feature VALUE PACKAGE` asks for it in a feature"

OTHER_OPTIONS = {
    (
        "lock",
        "--dry-run",
    ): "`tenv update TARGET --dry-run` prints what would change, `tenv lock TARGET --check` judges it",
    ("init", "--name"): "`tenv init VALUE` writes the manifest of a new target",
    ("init", "-n"): "`tenv init VALUE` writes the manifest of a new target",
    ("add", "--dry-run"): "`tenv search PACKAGE TARGET` lists its versions and which of them fit, and writes nothing",
    ("add", "--index-url"): "`tenv add TARGET --index VALUE PACKAGE` takes it from that index alone",
    ("add", "--extra-index-url"): "`tenv add TARGET --index VALUE PACKAGE` takes it from that index alone",
    ("add", "-c"): "`tenv add TARGET --conda VALUE::PACKAGE` writes the channel of a package",
    ("add", "--channel"): "`tenv add TARGET --conda VALUE::PACKAGE` writes the channel of a package",
    ("add", "--dev"): "`tenv add TARGET --feature dev PACKAGE` asks for it in a feature",
    ("add", "--extra"): "`tenv add TARGET 'PACKAGE[VALUE]'` asks for a package with an extra",
    ("add", "--git"): "`tenv add TARGET 'NAME @ git+VALUE'` asks for a package of a repository",
    ("add", "--group"): _FEATURE,
    ("add", "--optional"): _FEATURE,
    ("add", "--path"): "`tenv add TARGET VALUE` asks for a folder or a wheel",
    ("add", "--python"): "`tenv create TARGET --python VALUE` takes another Python of the lock",
    ("add", "--requirements"): "`tenv import VALUE --name NAME` makes a target of a file of requirements",
    ("add", "-r"): "`tenv import VALUE --name NAME` makes a target of a file of requirements",
    ("add", "--url"): "`tenv add TARGET 'NAME @ VALUE'` asks for the wheel of an address",
    ("create", "--feature"): "`tenv create TARGET --with VALUE` installs a feature",
    ("create", "--clone"): "`tenv init NAME --extends VALUE` writes a target with the packages of another one",
    ("create", "--file"): "`tenv import VALUE` makes a target of a file of another tool",
    ("create", "-f"): "`tenv import VALUE` makes a target of a file of another tool",
    ("create", "--name"): "`tenv init VALUE` writes a target of that name, `tenv add VALUE PACKAGE` asks for a package",
    ("create", "-n"): "`tenv init VALUE` writes a target of that name, `tenv add VALUE PACKAGE` asks for a package",
    (
        "create",
        "--force-reinstall",
    ): "`tenv create TARGET --anew` makes it anew, `tenv create TARGET --repair` mends it",
    ("create", "--reinstall"): "`tenv create TARGET --anew` makes it anew, `tenv create TARGET --repair` mends it",
    ("create", "--force"): "`tenv create TARGET --anew` makes it anew, `tenv create TARGET --repair` mends it",
    ("create", "--platform"): _ONE_PLATFORM,
    ("create", "--upgrade"): "`tenv update TARGET` chooses newer versions, `tenv create TARGET` installs them",
    ("drop", "--dev"): "`tenv drop TARGET --feature dev PACKAGE` takes it out of a feature",
    ("export", "--from"): "`tenv export FORMAT TARGET` reads the lock of a target",
    ("export", "--format"): "`tenv export VALUE TARGET` writes that format",
    ("export", "--to"): "`tenv export VALUE TARGET` writes that format",
    ("import", "--from"): "`tenv import FILE` recognizes the format of a file by itself",
    ("info", "--envs"): "`tenv list` lists the environments",
    ("info", "-e"): "`tenv list` lists the environments",
    ("list", "--explicit"): "`tenv export explicit TARGET` writes the addresses of the packages",
    ("list", "--name"): "`tenv packages VALUE` lists the packages of an environment",
    ("list", "-n"): "`tenv packages VALUE` lists the packages of an environment",
    ("list", "--outdated"): "`tenv outdated TARGET` lists the packages with newer versions",
    ("init", "--import"): "`tenv import VALUE` makes a target of a file of another tool",
    ("init", "--python"): '`tenv init NAME` writes a manifest, where `python = "VALUE.*"` names the Pythons',
    ("init", "--channel"): "`tenv add TARGET --conda VALUE::PACKAGE` writes the channel of a package",
    ("init", "--platform"): '`tenv init NAME` writes a manifest, where `platforms = ["VALUE"]` names them',
    ("lock", "--platform"): _EVERY_PLATFORM,
    ("lock", "--python"): "`tenv lock TARGET` locks all Pythons of the target, those of `python` in its manifest",
    ("lock", "--upgrade"): "`tenv update TARGET` locks newer versions",
    ("lock", "--upgrade-package"): "`tenv update TARGET VALUE` locks a newer version of one package",
    ("lock", "-P"): "`tenv update TARGET VALUE` locks a newer version of one package",
    ("lock", "-U"): "`tenv update TARGET` locks newer versions",
    ("remove", "--all"): "`tenv remove TARGET` removes one environment, `tenv list` lists them",
    ("remove", "--name"): "`tenv remove VALUE` removes an environment",
    ("remove", "-n"): "`tenv remove VALUE` removes an environment",
    ("run", "-n"): "`tenv run VALUE -- COMMAND` runs a program in an environment",
    ("run", "--name"): "`tenv run VALUE -- COMMAND` runs a program in an environment",
    ("run", "-e"): "`tenv run VALUE -- COMMAND` runs a program in an environment",
    (
        "targets",
        "--cuda",
    ): "`tenv targets` lists the CUDA of each target, `tenv check --here` those that fit this machine",
    ("tree", "--outdated"): "`tenv outdated TARGET` lists the packages with newer versions",
    ("update", "--all"): "`tenv update TARGET` takes newer versions of all packages",
    ("run", "--env"): "`VALUE tenv run TARGET -- COMMAND` sets a variable",
    ("run", "--python"): "`tenv create TARGET --python VALUE` takes another Python of the lock",
    ("update", "--platform"): _EVERY_PLATFORM,
    ("update", "--upgrade"): "`tenv update TARGET` locks newer versions, `tenv create TARGET` installs them",
    ("verify", "--repair"): "`tenv create TARGET --repair` mends what was changed",
}
"""Options of other tools, or of another command of tenv, after a command, each with the command that does it.

`VALUE` stands for the word after the option.
"""

_TAKES_PACKAGE = frozenset({"find", "install", "uninstall", "pip", "why", "rm", "delete", "upgrade"})
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
    way, given = (way, words[1:]) if way else (OTHER_WORDS.get(name) or _of_format(name), words)
    if not way:
        return ""
    if name == "pip" and given[:1] and given[0] in _VERBS:  # `pip install numpy`
        given = given[1:]
    targets = target_names()
    named = next((word for word in given if word in targets), "")
    way = re.sub(r"\bTARGET\b", shlex.quote(named) if named else default_word(), way)
    if name == "pip":
        way = _with_pip(way, named)
    packages = [word for word in given if word != named]
    if packages and name in _TAKES_PACKAGE:
        way = re.sub(r"\bPACKAGE\b", lambda _: shlex.join(packages), way)
    for key, value in zip(("KEY", "VALUE"), given, strict=False):
        way = way.replace(key, shlex.quote(value))
    return way


def way_of_option(name: str, option: str, arguments: Sequence[str]) -> str:
    """Return the hint for an option that a command does not have; empty where it is in no other tool.

    Args:
        name: The command.
        option: The option.
        arguments: The words after the command.
    """
    way = OTHER_OPTIONS.get((name, option), "")
    at = next((place for place, word in enumerate(arguments) if word.partition("=")[0] == option), -1)
    if not way or at < 0:
        return way
    _, assigned, value = arguments[at].partition("=")
    rest = [*arguments[:at], *arguments[at + 1 :]]
    if "VALUE" in way and not assigned and at < len(rest) and not rest[at].startswith("-"):
        value = rest.pop(at)
    targets = target_names()
    words = [word for word in rest if not word.startswith("-")]
    named = next((word for word in words if word in targets), "")
    packages = [word for word in words if word != named]
    given = {"TARGET": shlex.quote(named) if named else default_word(), "VALUE": value and shlex.quote(value)}
    given["PACKAGE"] = given["NAME"] = shlex.join(packages[:1])
    return re.sub(r"\b(?:TARGET|VALUE|PACKAGE|NAME)\b", lambda match: given[match[0]] or match[0], way)


def _of_format(name: str) -> str:
    """Return the way of a word that is a format of `tenv export`; empty for another word."""
    from tenv.interop.formats import FORMATS, find_format  # late: as above

    return f"`tenv export {name} TARGET` writes its file" if name in FORMATS and find_format(name).export else ""


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


def default_word() -> str:
    """Return the default target, or a word for one where there is none or the folders can't be read."""
    from tenv.project.context import Context  # late: as above

    with contextlib.suppress(TenvError):
        return Context().default_word()
    return "TARGET"
