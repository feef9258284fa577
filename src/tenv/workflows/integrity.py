"""Whether what was installed into an environment is still there, and is still the same."""

from collections.abc import Iterator

from tenv.activation import ACTIVATION
from tenv.environment import Environment, State
from tenv.files import write_atomic
from tenv.integrity import (
    Expected,
    Faults,
    check,
    describe_made,
    expect_archive,
    expect_conda,
    expect_made,
    expect_wheel,
)
from tenv.inventory import CondaPackages, Wheels, name_of
from tenv.providers.placing import placed, record_of
from tenv.shells.interface import SHELLS
from tenv.toolchain import TOOLKIT
from tenv.versions import same_release

__all__ = ["find_faults", "note_made"]

_MADE = "made.json"


def note_made(environment: Environment) -> None:
    """Write down what tenv has made in an environment: the toolkit's folder and the activation."""
    names = (TOOLKIT, *_notes(environment))
    write_atomic(environment.meta / _MADE, describe_made(environment.prefix, names))


def _notes(environment: Environment) -> tuple[str, ...]:
    return tuple(f"{environment.meta.name}/{name}" for name in (ACTIVATION, *(shell.SCRIPT for shell in SHELLS)))


def find_faults(environment: Environment, state: State) -> Faults:
    """Look at every file that tenv put into an environment.

    Args:
        environment: The environment.
        state: What is known about it.
    """
    return check(environment.prefix, _expected(environment, state))


def _expected(environment: Environment, state: State) -> Iterator[Expected]:
    wheels = Wheels(environment.prefix)
    infos = {name_of(info): info for info in wheels.distributions()}
    versions = wheels.versions()
    for name, (version, _) in state.packages.items():
        if name in infos and same_release(versions[name], version):
            yield from expect_wheel(infos[name], environment.prefix, name)
        else:  # whatever else of it is there, nobody can tell
            yield Expected(f"{name} {version}", name)
    notes = {note.name: note for notes in CondaPackages(environment.prefix).notes().values() for note in notes}
    for name, (version, build, _) in state.conda.items():
        if note := notes.get(f"{name}-{version}-{build}.json"):
            yield from expect_conda(note)
        else:
            yield Expected(f"{name} {version}", name)
    yield from _of_archives(environment, state)
    yield from (Expected(name, "") for name in _notes(environment))
    yield from expect_made(environment.meta / _MADE, environment.prefix)


def _of_archives(environment: Environment, state: State) -> Iterator[Expected]:
    if not state.archives:
        return
    there = placed(environment.prefix)
    for name, (version, sha256) in state.archives.items():
        record = there.get(name)
        if record and record.sha256 == sha256:
            yield from expect_archive(record_of(environment.prefix, name), record.files, record.links, name)
        else:
            yield Expected(f"{name} {version}".rstrip(), name)
