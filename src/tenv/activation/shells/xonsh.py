"""xonsh, from 0.11 on: its scripts are Python.

What a script changes is saved as `tenv.activation.shells.posix` saves it, under the same names. xonsh gives variables
types by their names; what is saved is registered as plain text, so that it stays as it was to the byte.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tenv.activation.changes import Activation
from tenv.core.prefix import ID_FILE, LOCK_NOTE, MARKS, META, READY

__all__ = [
    "NAMES",
    "SCRIPT",
    "holds",
    "quote",
    "render_activation",
    "render_deactivation",
    "render_hook",
    "render_source",
    "start",
    "use",
]

NAMES = ("xonsh",)
SCRIPT = "activate.xsh"

quote = ascii
"""A literal of Python is one word of xonsh."""

_FUNCTIONS = r"""
def _tenv_tools():
    import contextlib
    import os
    import re
    import sys
    # A user's own variables may have these names.
    from builtins import all, bool, dict, filter, int, print, str
    from xonsh.built_ins import XSH

    environment = XSH.env
    values = environment.detype()

    def store(name, value, plain=False):
        if plain:
            environment.register(name, type="str")
        environment[name] = value
        values[name] = value

    def drop(name):
        values.pop(name, None)
        if name in environment:
            del environment[name]
        if name.startswith("_TENV_"):
            with contextlib.suppress(KeyError):  # registered by another process
                environment.deregister(name)

    def level():
        text = values.get("TENV_LEVEL", "")
        return int(text) if re.fullmatch("[1-9][0-9]{0,8}", text) else 0

    def change(number, name, action, value, separator):
        old = values.get(name)
        if f"_TENV_SAVED_{number}_{name}" not in values:
            store(f"_TENV_SAVED_{number}_{name}", "-" if old is None else f"={old}", True)
        if action == "prepend":
            store(f"_TENV_FRONT_{number}_{name}", separator + value, True)
            value = value + separator + old if old else value
        if action == "append":
            store(f"_TENV_BACK_{number}_{name}", separator + value, True)
            value = old + separator + value if old else value
        if action == "unset":
            drop(name)
        else:
            store(name, value)

    def restore(number, name):
        saved = values.get(f"_TENV_SAVED_{number}_{name}", "-")
        front = values.get(f"_TENV_FRONT_{number}_{name}", "")
        back = values.get(f"_TENV_BACK_{number}_{name}", "")
        now, there, old = values.get(name, ""), saved.startswith("="), saved[1:]
        if front or back:
            full = (front[1:] + (front[0] + old if old else "")) if front else old
            full = (full + back if full else back[1:]) if back else full
            if now != full:
                # Somebody has changed it since: take out what was added, and leave the rest.
                for added in filter(None, (front, back)):
                    now = f"{added[0]}{now}{added[0]}".replace(added + added[0], added[0], 1)[1:-1]
                old = now
                there = there or bool(old)
        store(name, old) if there else drop(name)
        drop(f"_TENV_SAVED_{number}_{name}")
        drop(f"_TENV_FRONT_{number}_{name}")
        drop(f"_TENV_BACK_{number}_{name}")

    def pop():
        number = level()
        if not number:
            print("tenv: no environment is active", file=sys.stderr)
            return 1
        for name in values.get(f"_TENV_NAMES_{number}", "").split():
            restore(number, name)
        drop(f"_TENV_NAMES_{number}")
        if number > 1:
            store("TENV_LEVEL", str(number - 1))
        else:
            drop("TENV_LEVEL")
        return 0

    def activate(prefix, changes, watches):
        if values.get("TENV_PREFIX") == prefix and level():
            pop()
        number = level() + 1
        store("TENV_LEVEL", str(number))
        store(f"_TENV_NAMES_{number}", " ".join(dict.fromkeys(change[0] for change in changes)), True)
        for each in changes:
            change(number, *each)
        for files, sentence in watches:
            if not all(same(file, stamp) for file, stamp in files):
                print("tenv:", sentence, file=sys.stderr)

    def same(file, stamp):
        if not os.path.isfile(file):
            return False
        return not os.path.isfile(stamp) or os.stat(file).st_mtime_ns == os.stat(stamp).st_mtime_ns

    return activate, pop
"""


def render_activation(activation: Activation) -> str:
    """Return the script that activates an environment; run twice in a row, it renews rather than nests."""
    changes = [(change.name, change.action.value, change.value, change.separator) for change in activation.changes]
    watches = [(watch.files, watch.sentence) for watch in activation.watches]
    words = ", ".join(map(ascii, (str(activation.prefix), changes, watches)))
    return f"# tenv: {activation.target!a}{_FUNCTIONS}\n_tenv_tools()[0]({words})\ndel _tenv_tools\n"


def holds(value: str) -> bool:  # noqa: ARG001
    """Return True: xonsh holds any value."""
    return True


def use(command: str) -> str:
    """Return the line that runs what a command of tenv prints."""
    return f"execx($({command}))"


def render_source(script: str) -> str:
    """Return the command that runs a script in the running shell."""
    return f"source {quote(script)}\n"


def start(program: str, script: str, environment: Mapping[str, str], folder: Path) -> list[str] | None:  # noqa: ARG001
    """Return None: xonsh inherits the variables instead."""
    return None


def render_deactivation() -> str:
    """Return the script that undoes the innermost activation."""
    return f"{_FUNCTIONS.lstrip()}\n_tenv_tools()[1]()\ndel _tenv_tools\n"


def render_hook(program: Sequence[str], home: Path) -> str:
    """Return the definition of an alias ``tenv`` that activates by sourcing the stored script.

    Args:
        program: The words that start tenv, for everything else.
        home: The folder of the environments outside a project.
    """
    values = {
        "@PROGRAM@": ascii(list(program)),
        "@META@": META,
        "@READY@": READY,
        "@NOTE@": LOCK_NOTE,
        "@ID@": ID_FILE,
        "@HOME@": ascii(str(home)),
        "@SCRIPT@": SCRIPT,
    }
    values["@MARKS@"] = ascii(str(home.parent / MARKS))
    text = _HOOK
    for name, value in values.items():
        text = text.replace(name, value)
    return _FUNCTIONS.lstrip() + text


_HOOK = r"""
def _tenv_hook(tools):
    import os
    import re
    import subprocess
    import sys
    from builtins import any, bool, len, list, map, open, print, str
    from xonsh.built_ins import XSH
    from xonsh.tools import unthreadable

    program = @PROGRAM@

    def source(file):
        XSH.aliases["source"]([file])

    def ask(words):
        # Let tenv itself find the environment, or say what is wrong.
        command = [*program, "activate", "--shell", "xonsh", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, env=XSH.env.detype())
        text = os.fsdecode(done.stdout)
        if done.returncode == 0 and text.startswith("source "):
            XSH.builtins.execx(text)
        else:
            print(text, end="")
        return done.returncode

    def stored(target):
        folder = XSH.env["PWD"]
        while folder and is_own(folder) and not is_project(folder):
            folder = folder.rpartition("/")[0]
        home = os.path.join(folder, ".tenv/envs") if is_project(folder) else @HOME@
        prefix = os.path.join(home, target)
        try:
            ready = is_ready(prefix)
        except (OSError, ValueError):
            ready = False
        if is_project(folder):
            ready = ready and is_own(folder)
        links = [path for path in (prefix, home, folder + "/.tenv") if os.path.islink(path)]
        if links or not ready or not noted(os.path.join(prefix, "@META@", "@NOTE@")):
            return ask([target])
        source(os.path.join(prefix, "@META@", "@SCRIPT@"))
        return 0

    def is_ready(prefix):
        # Whether it is ready, carries the user's mark at this very path, and is as that says.
        with open(os.path.join(prefix, "@META@", "state.json")) as file:
            if not file.readline().startswith('@READY@'):
                return False
        with open(os.path.join(prefix, "@ID@")) as file:
            name = file.read().strip()
        if not re.fullmatch("[0-9a-f]+", name):
            return False
        mark = os.path.join(@MARKS@, name)
        with open(mark) as file:
            real, _, _, *needed = file.read().splitlines()
        if not os.path.samefile(real, prefix) or not is_own(prefix):
            return False
        made, notes = os.stat(mark).st_mtime_ns, ("@META@/", "pyvenv.cfg")
        for file in ("@META@/@SCRIPT@", *needed):
            path = os.path.join(prefix, file)
            if os.stat(path).st_mtime_ns > made if file.startswith(notes) else not os.access(path, os.X_OK):
                return False
        return True

    def noted(file):
        # Whether the lock is the one that tenv looked at last; prints what it found then.
        try:
            with open(file) as lines:
                lock, said, size, *nearer = lines.read().splitlines()
            now, own = os.stat(lock), os.stat(file)
        except (OSError, ValueError):
            return False
        same = (str(now.st_size), now.st_mtime_ns) == (size, own.st_mtime_ns)
        if not same or any(map(os.path.lexists, nearer)) or (said and XSH.env.get("TENV_LOCKED")):
            return False
        if said:
            print("tenv: " + said, file=sys.stderr)
        return True

    def is_project(folder):
        if os.path.isfile(folder + "/tenv.toml"):
            return True
        try:
            names = os.listdir(folder + "/manifests")
        except OSError:
            return False
        return bool([name for name in names if name.endswith(".toml") and name[0] != "."])

    def is_own(folder):
        return os.stat(folder + "/").st_uid == os.geteuid()

    @unthreadable
    def tenv(args, stdin=None, stdout=None, stderr=None):
        if len(args) == 2 and args[0] == "activate" and not re.search("^-|/", args[1]):
            return stored(args[1])
        if args[:1] == ["activate"]:
            return ask(args[1:])
        if args == ["deactivate"]:
            return tools()[1]()
        return subprocess.run([*program, *args], stdout=stdout, stderr=stderr, env=XSH.env.detype()).returncode

    XSH.aliases["tenv"] = tenv


_tenv_hook(_tenv_tools)
del _tenv_hook, _tenv_tools
"""
