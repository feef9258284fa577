"""Every installed shell activates, nests, changes and deactivates; its programs' environments are compared.

Python's levels go through the same cases, in this process. A shell that gets its edits from them runs those cases that
concern setting and unsetting.
"""

import os
from pathlib import Path

import pytest

from tenv.activation.changes import Action, Activation, Change, Watch
from tenv.activation.shells import posix
from tests.support.rarely import pairs_fast
from tests.support.shells import HOSTILE, LEVELS, SPOKEN, Spoken, crowd

AT_HAND = [
    pytest.param(shell, id=shell.name, marks=[pytest.mark.long] if shell.name == "xonsh" else [])
    for shell in (*SPOKEN, LEVELS)
    if shell.program
]
"""xonsh takes ten times as long to start as the others: the fast tests have it in the pairs below."""
THINKING = [pytest.param(s, id=s.name) for s in (*SPOKEN, LEVELS) if s.program and (s.stored or s is LEVELS)]
"""The shells that compute changes by themselves, and Python."""
PAIRS = [
    pytest.param(
        parent,
        shell,
        id=f"{parent.name}-{shell.name}",
        marks=[pytest.mark.long] if "xonsh" in {parent.name, shell.name} else [],
    )
    for parent in SPOKEN
    for shell in SPOKEN
    if parent.program and shell.program and ({parent.name, shell.name} & {"bash"} or parent is shell)
]
USUAL = "/usr/bin:/bin"


def store(shell: Spoken, folder: Path, name: str, *changes: Change) -> str:
    """Store an activation as a script; return the text that runs it."""
    prefix = folder / "a folder's" / name
    made = Activation(
        name,
        prefix,
        (
            Change("TENV_TARGET", Action.SET, name, ""),
            Change("TENV_PREFIX", Action.SET, str(prefix), ""),
            Change("PATH", Action.PREPEND, f"{prefix}/bin:{prefix}/cuda/bin", ""),
            Change("OWN_HOME", Action.UNSET, "", ""),
            *changes,
        ),
    )
    return shell.activate(folder, name, made)


def hostile_changes(shell: Spoken) -> tuple[Change, ...]:
    """Return a change of every second of the crowd's hostile variables, and of as many that are not set."""
    shifted = [*HOSTILE[7:], *HOSTILE[:7]]
    changed = [Change(f"OLD_{i:03}", Action.SET, value, "") for i, value in enumerate(shifted) if i % 2]
    new = [Change(f"NEW_{i:03}", Action.SET, value, "") for i, value in enumerate(HOSTILE)]
    lists = [
        Change(f"OLD_{i:03}", (Action.PREPEND, Action.APPEND, Action.UNSET)[i % 3], "" if i % 3 == 2 else "/x y:/z", "")
        for i in range(0, len(HOSTILE), 2)
    ]
    both = [Change(f"OLD_{i:03}", Action.APPEND, "/back", "") for i in range(0, len(HOSTILE), 6)]
    return tuple(change for change in (*changed, *new, *lists, *both) if shell.holds(change.value))


def expected(changes: tuple[Change, ...], before: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return what the data model says an environment becomes."""
    start = {os.fsdecode(name): os.fsdecode(value) for name, value in before.items()}
    after = Activation("t", Path("/"), changes).apply(start)
    return {os.fsencode(name): os.fsencode(value) for name, value in after.items()}


@pytest.mark.parametrize("shell", AT_HAND)
def test_hostile_values_come_and_go_byte_for_byte(shell: Spoken, tmp_path: Path) -> None:
    changes = hostile_changes(shell)
    script, undo = store(shell, tmp_path, "cuda130", *changes), shell.deactivate(tmp_path)
    steps = [shell.shot("before"), script, shell.shot("active"), undo, shell.shot("after")]
    seen, said = shell.run(tmp_path, steps, crowd(shell))
    assert said == ""
    wanted = expected(changes, seen["before"])
    names = {os.fsencode(change.name) for change in changes}
    assert {n: v for n, v in seen["active"].items() if n in names} == {n: v for n, v in wanted.items() if n in names}
    assert seen["after"] == seen["before"]
    assert len(seen["before"]) > 190


SETTINGS = [
    ("bash", "set -o posix -o noclobber -o pipefail -o allexport; IFS=/; shopt -s nullglob failglob nocasematch\n"),
    ("bash", "cd() { :; }; printf() { :; }; test() { false; }; alias cat=x wc=x; trap x=1 DEBUG; declare -u x\n"),
    ("dash", "set -C -f -a; IFS=/; alias cd=x printf=x test=x; cat() { :; }\n"),
    ("ksh", "set -o noclobber -o allexport -f; IFS=/; alias cd=x printf=x test=x\n"),
    ("mksh", "set -o noclobber -o posix; IFS=:abc\n"),
    ("zsh", "setopt glob_subst null_glob extended_glob rc_expand_param ignore_braces c_bases\n"),
    ("zsh", "setopt ksh_arrays sh_word_split no_clobber no_glob all_export; typeset -U path PATH\n"),
    ("zsh", "setopt warn_create_global warn_nested_var posix_builtins ksh_typeset; alias -g L='|x' G='|y' N=/z\n"),
    ("zsh", "emulate ksh\n"),
    ("fish", "function cd; end; function ls; end; function wc; end; set -x --path OLD_018 a b; set -g IFS\n"),
    ("elvish", "fn cd {|@x| fail x }; fn ls {|@x| fail x }; fn test {|@x| fail x }; var name = x\n"),
    (
        "xonsh",
        "str = 1; list = 2; len = 3; dict = 4; open = 5; filter = 6; all = map = int = bool = print = os = 7\n",
    ),
    ("nu", "alias ls = eza; alias cat = bat; alias open = code; alias cd = zoxide\n"),
]
"""What users set in a shell's start file, and names that they define."""


@pytest.mark.parametrize(
    ("shell", "settings"),
    [
        pytest.param(spoken, text, id=f"{name}-{number}", marks=[pytest.mark.long] if name == "xonsh" else [])
        for number, (name, text) in enumerate(SETTINGS)
        for spoken in SPOKEN
        if spoken.name == name and spoken.program
    ],
)
def test_settings_of_the_user_change_nothing(shell: Spoken, settings: str, tmp_path: Path) -> None:
    changes = hostile_changes(shell)
    script, undo = store(shell, tmp_path, "cuda130", *changes), shell.deactivate(tmp_path)
    steps = [settings, shell.shot("before"), script, shell.shot("active"), undo, shell.shot("after")]
    seen, said = shell.run(tmp_path, steps, crowd(shell))
    assert said == ""
    wanted = expected(changes, seen["before"])
    assert {change.name: seen["active"].get(os.fsencode(change.name)) for change in changes} == {
        change.name: wanted.get(os.fsencode(change.name)) for change in changes
    }
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", AT_HAND)
def test_activations_nest_and_renew(shell: Spoken, tmp_path: Path) -> None:
    outer = store(shell, tmp_path, "outer", *hostile_changes(shell), Change("LDFLAGS", Action.PREPEND, "-L/o", "", " "))
    inner = store(shell, tmp_path, "inner", *hostile_changes(shell), Change("LDFLAGS", Action.APPEND, "-L/i", "", " "))
    undo, shot = shell.deactivate(tmp_path), shell.shot
    steps = [shot("before"), outer, shot("outer"), inner, shot("inner"), inner, shot("inner-again")]
    steps += [undo, shot("outer-again"), undo, shot("after")]
    seen, said = shell.run(tmp_path, steps, {**crowd(shell), "LDFLAGS": "-L/u -Wl,-x", "OWN_HOME": "/odd one"})
    assert said == ""
    assert seen["outer"][b"LDFLAGS"] == b"-L/o -L/u -Wl,-x"
    assert seen["inner"][b"LDFLAGS"] == b"-L/o -L/u -Wl,-x -L/i"
    assert b"OWN_HOME" not in seen["inner"]
    assert seen["inner"][b"TENV_TARGET"] == b"inner"
    assert seen["inner-again"] == seen["inner"]
    assert seen["outer-again"] == seen["outer"]
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", [pytest.param(s, id=s.name) for s in SPOKEN if s.program and s.module is posix])
def test_a_level_that_is_no_number_counts_as_none(shell: Spoken, tmp_path: Path) -> None:
    script = store(shell, tmp_path, "cuda130", Change("CC", Action.SET, "gcc", ""))
    prefix, levels, steps = str(tmp_path / "a folder's" / "cuda130"), ["", "x", "1x", "a[$(echo >&2 run)]"], list[str]()
    for number, level in enumerate(levels):
        steps += [shell.set("TENV_LEVEL", level), shell.set("TENV_PREFIX", prefix), script, shell.shot(f"{number}")]
        steps += [shell.deactivate(tmp_path), shell.shot(f"after-{number}")]
    seen, said = shell.run(tmp_path, steps, {"PATH": USUAL})
    assert said == ""
    for number, level in enumerate(levels):
        active, after = seen[f"{number}"], seen[f"after-{number}"]
        assert (active[b"TENV_LEVEL"], active[b"CC"], after.get(b"CC")) == (b"1", b"gcc", None), level


@pytest.mark.parametrize("shell", THINKING)
def test_what_others_did_meanwhile_is_renewed(shell: Spoken, tmp_path: Path) -> None:
    """An activation of the active environment ends where the first one ended, but for what others put into a list."""
    changes = (
        Change("CC", Action.SET, "gcc", ""),
        Change("GONE", Action.UNSET, "", ""),
        Change("FLAGS", Action.PREPEND, "-a", "", " "),
        Change("FLAGS", Action.APPEND, "-z", "", " "),
    )
    older = store(shell, tmp_path, "cuda130", *changes[:2], Change("FLAGS", Action.PREPEND, "-o", "", " "))
    (old,) = (file for file in tmp_path.iterdir() if file.name.startswith("cuda130"))
    older = older.replace(old.name, f"older-{old.name}")
    old.rename(old.with_name(f"older-{old.name}"))
    script = store(shell, tmp_path, "cuda130", *changes)
    steps = [shell.shot("before"), older, script, shell.shot("first")]
    steps += [shell.set("CC", "mine"), shell.set("GONE", "back"), script, shell.shot("again")]
    steps += [shell.set("PATH", f"/new:{USUAL}"), shell.set("FLAGS", "-a -m -u -z"), script, shell.shot("changed")]
    steps += [shell.deactivate(tmp_path), shell.shot("after")]
    seen, said = shell.run(tmp_path, steps, {"PATH": USUAL, "FLAGS": "-u", "GONE": "there", "CC": "own"})
    assert said == ""
    assert (seen["first"][b"FLAGS"], seen["first"][b"CC"]) == (b"-a -u -z", b"gcc")
    assert seen["again"] == seen["first"]
    assert (seen["changed"][b"FLAGS"], b"GONE" in seen["changed"]) == (b"-a -m -u -z", False)
    assert seen["changed"][b"PATH"].endswith(f"bin:/new:{USUAL}".encode())
    assert seen["after"] == seen["before"] | {b"PATH": f"/new:{USUAL}".encode(), b"FLAGS": b"-m -u"}


@pytest.mark.parametrize("shell", THINKING)
def test_what_others_did_to_a_list_meanwhile_is_kept(shell: Spoken, tmp_path: Path) -> None:
    changes = (
        Change("L_FRONT", Action.PREPEND, "/f:/g", ""),
        Change("L_BACK", Action.APPEND, "/f:/g", ""),
        Change("L_NEW", Action.PREPEND, "/f", ""),
        Change("L_BOTH", Action.PREPEND, "/f:/g", ""),
        Change("L_BOTH", Action.APPEND, "/z", ""),
    )
    cases = {
        "/new:{}": "/new:" + USUAL,
        "{}:/new": USUAL + ":/new",
        "/only": "/only",
        "/a folder's/cuda130/binx:{}": "/a folder's/cuda130/binx:" + USUAL,
    }
    script, steps = store(shell, tmp_path, "cuda130", *changes), list[str]()
    for number, now in enumerate(cases):
        steps += [shell.set(f"L_{name}", USUAL) for name in ("FRONT", "BACK", "BOTH")]
        steps += [
            shell.set("L_NEW", "") if number else "",
            script,
            shell.set("L_FRONT", now.format(f"/f:/g:{USUAL}")),
            shell.set("L_BACK", now.format(f"{USUAL}:/f:/g")),
            shell.shot(f"active-{number}"),
            shell.set("L_BOTH", now.format(f"/f:/g:{USUAL}:/z")),
            shell.set("L_NEW", "/mine:/f"),
            shell.deactivate(tmp_path),
            shell.shot(f"after-{number}"),
        ]
    seen, said = shell.run(tmp_path, steps, {"PATH": USUAL})
    assert said == ""
    for number, left in enumerate(cases.values()):
        after = seen[f"after-{number}"]
        assert seen[f"active-{number}"][b"L_BOTH"].decode() == f"/f:/g:{USUAL}:/z"
        assert after[b"L_BOTH"].decode() == left
        assert (after[b"L_FRONT"].decode(), after[b"L_BACK"].decode(), after[b"L_NEW"]) == (left, left, b"/mine")


DEFAULTS = (
    Change("JOBS", Action.SET, "it's 8", "", default=True),
    Change("USE_X", Action.SET, "", "", default=True),
    Change("CC", Action.SET, "gcc", ""),
)


@pytest.mark.parametrize(
    ("shell", "own"),
    pairs_fast([shell for shell in (*SPOKEN, LEVELS) if shell.program], ("2", "", "it's 8", None)),
    ids=lambda value: getattr(value, "name", None),
)
def test_a_default_yields_to_the_user(shell: Spoken, own: str | None, tmp_path: Path) -> None:
    script, undo = store(shell, tmp_path, "cuda130", *DEFAULTS), shell.deactivate(tmp_path)
    steps = [shell.shot("before"), script, shell.shot("active"), script, shell.shot("again"), undo, shell.shot("after")]
    seen, said = shell.run(tmp_path, steps, {"PATH": USUAL, "CC": "mine"} | ({} if own is None else {"JOBS": own}))
    assert said == ""
    active = seen["active"]
    jobs = b"it's 8" if own is None else own.encode()
    assert (active[b"JOBS"], active[b"USE_X"], active[b"CC"]) == (jobs, b"", b"gcc")
    assert active.get(b"_TENV_GIVEN_JOBS") == (b"it's 8" if own is None else None)
    assert seen["again"] == active
    assert seen["after"] == seen["before"]


@pytest.mark.parametrize("shell", THINKING)
def test_a_default_that_the_user_has_changed_since_stays_until_the_deactivation(shell: Spoken, tmp_path: Path) -> None:
    script, undo = store(shell, tmp_path, "cuda130", *DEFAULTS), shell.deactivate(tmp_path)
    inner = store(shell, tmp_path, "inner", Change("JOBS", Action.SET, "4", "", default=True))
    steps = [script, inner, shell.shot("inner"), undo, shell.shot("outer"), shell.set("JOBS", "2"), script]
    steps += [shell.shot("renewed"), inner, shell.shot("inner-again"), undo, script, shell.shot("outer-again"), undo]
    seen, said = shell.run(tmp_path, [*steps, shell.shot("after")], {"PATH": USUAL})
    assert said == ""
    jobs = {name: shot.get(b"JOBS", b"").decode() for name, shot in seen.items()}
    assert jobs == {
        "inner": "4",
        "outer": "it's 8",
        "renewed": "2",
        "inner-again": "2",
        "outer-again": "2",
        "after": "2",
    }
    assert not [name for name in seen["after"] if name.startswith((b"_TENV", b"TENV"))]


@pytest.mark.parametrize(("parent", "shell"), PAIRS)
def test_a_shell_undoes_what_its_parent_of_another_kind_did(shell: Spoken, parent: Spoken, tmp_path: Path) -> None:
    before = {"PATH": USUAL, "HOME": "/nonexistent", "LIST_PATH": "/a:/b", "WORDS": "a b"}
    changes = (
        Change("LIST_PATH", Action.PREPEND, "/f:/g", ""),
        Change("WORDS", Action.SET, "one  two", ""),
        Change("GONE", Action.SET, "", ""),
    )
    seen, _ = parent.run(tmp_path, [store(parent, tmp_path, "p", *changes), parent.shot("active")], before)
    active = {os.fsdecode(name): os.fsdecode(value) for name, value in seen["active"].items()}
    steps = [shell.deactivate(tmp_path), shell.shot("after")]
    after, said = shell.run(tmp_path, steps, active)
    assert said == ""
    known = {os.fsencode(name): os.fsencode(value) for name, value in before.items()}
    left = {name for name in after["after"] if name.startswith((b"_TENV", b"TENV")) or name == b"GONE"}
    assert ({name: after["after"].get(name) for name in known}, left) == (known, set())


@pytest.mark.parametrize("shell", [pytest.param(s, id=s.name) for s in SPOKEN if s.program and s.module is posix])
def test_a_variable_of_the_shell_alone_is_not_exported_afterwards(shell: Spoken, tmp_path: Path) -> None:
    script = store(
        shell, tmp_path, "cuda130", Change("CC", Action.SET, "gcc", ""), Change("CXX", Action.SET, "g++", "")
    )
    steps = ["CC='my cc'\n", script, shell.shot("active"), shell.deactivate(tmp_path), 'export OWN="$CC"\n']
    seen, _ = shell.run(tmp_path, [*steps, shell.shot("after")], {"PATH": USUAL})
    assert seen["active"][b"CC"] == b"gcc"
    assert seen["after"][b"OWN"] == b"my cc"
    assert not seen["after"].keys() & {b"CC", b"CXX"}


WATCHED = {(0, 0): False, (-60, 0): True, (1, 0): True, (0, 1): True, (None, 0): True, (7, None): False}
"""Seconds between the times of a file and of its stamp and a common one, None for no file; whether that is a change."""


@pytest.mark.parametrize("shell", [pytest.param(s, id=s.name) for s in SPOKEN if s.program and s.stored])
def test_a_file_of_the_machine_is_watched(shell: Spoken, tmp_path: Path) -> None:
    steps, sentences = list[str](), list[str]()
    for number, (times, changed) in enumerate(WATCHED.items()):
        files = []
        for name in (f"first {number}", f"it's nvcc {number}"):
            file, stamp = tmp_path / name, tmp_path / f"{name}.stamp"
            for path, shift in zip((file, stamp), (0, 0) if name.startswith("first") else times, strict=True):
                if shift is not None:
                    path.touch()
                    os.utime(path, (1_600_000_000 + shift, 1_600_000_000 + shift))
            files.append((str(file), str(stamp)))
        sentence = f'warning: it\'s "changed" $HOME %s \\n {times}'
        sentences += [f"tenv: {sentence}"] if changed else []
        made = Activation("t", tmp_path, (Change("A", Action.SET, "1", ""),), (Watch(tuple(files), sentence),))
        steps += [shell.activate(tmp_path, f"t{number}", made), shell.shot("active"), shell.deactivate(tmp_path)]
    seen, said = shell.run(tmp_path, steps, {"PATH": USUAL})
    assert seen["active"][b"A"] == b"1"
    assert said.splitlines() == sentences


@pytest.mark.parametrize("shell", AT_HAND)
def test_deactivating_with_nothing_active_says_so_and_does_not_leave(shell: Spoken, tmp_path: Path) -> None:
    seen, said = shell.run(tmp_path, [shell.deactivate(tmp_path), shell.shot("still")], {"PATH": USUAL})
    assert seen["still"]
    assert "tenv: no environment is active" in said
