"""Short commands without the program: `run`, `activate`, `list` and `create` where all is as `create` noted it.

A hook of a shell activates without Python, since it knows what must be as noted. This folder is the same for the
commands themselves: it loads neither click nor the rest of tenv, and decides only what is certain. Whatever differs (a
setting, a stale lock, a moved folder, an option) returns None, and `tenv.cli` does the command with its whole program,
which explains. So a fault here can cost time, but must never accept what the program refuses: each check of
`tenv.environment.trust` has its counterpart in `noted_environment`, and `tests/quick` runs both ways on the same
folders.

Nothing here imports `typing`, `pathlib`, `re`, `enum` or `dataclasses`, each of which takes longer than the command.
"""
