"""Wheels that tenv has built: whose they are, their bytes, and the inputs of a build."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.core.errors import EnvironmentBrokenError, UsageError
from tenv.locks.lock import Lock, LockedTree
from tenv.sources.wheels import sdist_builds
from tenv.sources.wheels.carried import carried_wheels
from tenv.sources.wheels.sdist_builds import (
    build_variables,
    hint_of_failure,
    keep_built,
    kept_build,
    key_of_build,
    last_lines,
    member,
    pinned_wheels,
    wheel_in,
)
from tests.support.fakes import make_wheel
from tests.support.source_trees import pack_sdist, write_tree

ROW = LockedTree("vision", "1.0", ("3.12",), (), file="vision-1.0.tar.gz", digest="0" * 64)


def test_a_kept_wheel_is_whole_and_of_this_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "built" / "key"
    made = keep_built(make_wheel(tmp_path, "vision", "1.0"), place, ROW)
    kept = kept_build(place, ROW)
    assert kept is not None
    assert (kept.sha256, kept.path, kept.version) == (made.sha256, made.path, "1.0")
    wheel, note = Path(made.path), place / "wheel"
    raw, text = wheel.read_bytes(), note.read_text()
    wheel.write_bytes(raw + b"more")
    assert kept_build(place, ROW) is None
    wheel.write_bytes(raw)
    elsewhere = place.parent / wheel.name
    elsewhere.write_bytes(raw)
    for bad in (f"../{wheel.name} {made.sha256}", f"{elsewhere} {made.sha256}", made.sha256, "", f"{text} more"):
        note.write_text(bad)
        assert kept_build(place, ROW) is None, bad
    note.write_text(text)
    assert kept_build(place, ROW)
    if sys.platform != "win32":
        monkeypatch.setattr("os.getuid", lambda: wheel.stat().st_uid + 1)
        assert kept_build(place, ROW) is None
    monkeypatch.undo()
    again = keep_built(make_wheel(tmp_path, "vision", "1.0", files={"vision.py": "NEW = 1\n"}), place, ROW)
    assert again.sha256 != made.sha256
    assert (kept_build(place, ROW) or made).sha256 == again.sha256


def test_a_build_gives_one_wheel_of_its_row(tmp_path: Path) -> None:
    for names, why in (
        ((), "not nothing, and so it is"),
        ((("other", "1.0"),), "not other-1.0-py3-none-any.whl"),
        ((("vision", "2.0"),), "not vision-2.0-py3-none-any.whl"),
        ((("vision", "1.0"), ("vision", "1.0", "py2-none-any")), "vision-1.0-py2-none-any.whl"),
    ):
        out = tmp_path / f"out{len(why)}"
        for name in names:
            make_wheel(out, name[0], name[1], tag="".join(name[2:]) or "py3-none-any")
        with pytest.raises(EnvironmentBrokenError, match=r"was to become a wheel of vision 1\.0") as caught:
            wheel_in(out, ROW, ", and so it is")
        assert why in caught.value.message
    made = make_wheel(tmp_path / "good", "vision", "1.0.0")
    assert wheel_in(made.parent, ROW, "") == made
    other = make_wheel(tmp_path / "dynamic", "vision", "3.0")
    assert wheel_in(other.parent, replace(ROW, dynamic=True), "") == other


def test_a_blank_variable_is_none_and_each_other_one_is_an_input(tmp_path: Path) -> None:
    python = Path(sys.executable)
    assert build_variables({"CC": " ", "CFLAGS": "", "CXX": "g++", "HOME": "/"}) == {"CXX": "g++"}
    compiler = tmp_path / "mycc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    given = {"PATH": str(tmp_path), "CC": "mycc -m64"}
    keys = [key_of_build(["one"], python, {"PATH": str(tmp_path), "CC": " "}), key_of_build(["one"], python, given)]
    compiler.write_text("#!/bin/sh\n# another compiler\n")
    keys += [key_of_build(["one"], python, given), key_of_build(["two"], python, given)]
    assert len({*keys}) == len(keys)
    assert key_of_build(["two"], python, given) == keys[-1]
    with pytest.raises(EnvironmentBrokenError, match="does not run"):
        key_of_build([], tmp_path / "no-python", {})


@pytest.mark.skipif(sys.platform == "win32", reason="the Pythons are scripts")
def test_only_the_patch_release_of_a_final_python_is_no_input(tmp_path: Path) -> None:
    keys = []
    for number, (text, level) in enumerate((("3.11.2", "final"), ("3.11.7", "final"), ("3.11.7", "beta"))):
        python = tmp_path / f"python{number}"
        names = "major minor micro releaselevel serial"
        code = f"import sys, collections; sys.version = '{text} (a day)'; V = collections.namedtuple('V', '{names}'); "
        code += f"sys.version_info = V(*sys.version_info[:3], '{level}', 0); exec(sys.argv[1])"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$3"\n')
        python.chmod(0o755)
        keys.append(key_of_build(["one"], python, {}))
    assert keys[0] == keys[1] != keys[2]


def test_pins_and_files_of_an_archive_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(ROW, build=(f"ninja-x==1.13 sha256:{'a' * 64}",))
    (pin,) = pinned_wheels(row)
    assert (pin.name, pin.version, pin.sha256, pin.python) == ("ninja-x", "1.13", "a" * 64, ("3.12",))
    archive = pack_sdist(write_tree(tmp_path / "vision"), tmp_path)
    raw = archive.read_bytes()
    assert b"Name: vision" in (member(raw, archive.name, "PKG-INFO") or b"")
    assert member(raw, archive.name, "own_backend.py") is None  # it is not at the top
    monkeypatch.setattr(sdist_builds, "_MOST", 10)
    assert member(raw, archive.name, "PKG-INFO") is None


def test_a_failure_without_a_network_or_a_module_has_its_hint() -> None:
    for output, hint in (
        ("urllib.error.URLError: <urlopen error [Errno 1] Operation not permitted>", "wants a network"),
        ("curl: (6) Could not resolve host: a.example", "wants a network"),
        ("curl: (7) Failed to connect to 1.2.3.4 port 443 after 0 ms: Couldn't connect to server", "wants a network"),
        ("wget: unable to resolve host address 'a.example'", "wants a network"),
        ("Connecting to 1.2.3.4:443... failed: Operation not permitted.", "wants a network"),
        ("ConnectionError: Max retries exceeded with url: / (Name or service not known)", "wants a network"),
        ('  failed 6;"Couldn\'t resolve host name"', "wants a network"),
        ("CalledProcessError: Command '['wget', '-q', 'https://a.example/b']' returned 4", "wants a network"),
        ("<urlopen error>: it compiles\ncsrc/one.cu(7): error: expected a `;`", ""),
        ("CalledProcessError: Command '['nvcc', '-V']' returned non-zero exit status 1", ""),
        ("ModuleNotFoundError: No module named 'torch'", "isolation = false"),
        ("ModuleNotFoundError: No module named 'torchvision'", "by hand"),
        ("ModuleNotFoundError: No module named 'numpy'", "by hand"),
        ("  ModuleNotFoundError: No module named 'numpy'\n  error: Failed to build", "by hand"),
        ("ModuleNotFoundError: No module named 'numpy'\n  IsADirectoryError: [Errno 21] Is a directory: 'it'", ""),
    ):
        assert hint_of_failure(output) == "" if hint == "" else hint in hint_of_failure(output), output
    assert hint_of_failure("error: expected `;`") == ""


def test_the_hint_of_a_bundle_names_its_target() -> None:
    row = LockedTree("vision", "1.0", ("3.12",), (), git="https://example.org/vision.git", commit="a" * 40)
    lock = Lock("ext", ("linux-64",), {}, {}, {}, "", trees={"linux-64": (row,)})
    with pytest.raises(UsageError) as caught:
        list(carried_wheels(lock, "linux-64", ""))
    assert "`tenv drop ext vision`" in caught.value.hint


def test_the_first_errors_of_compilers_stand_above_the_last_lines_of_a_failed_build() -> None:
    errors = ["a.c:3:5: error: `x` undeclared", "a.cu(7): error: no such kernel", "ld: undefined reference to `f'"]
    noise = [f"b.c:{number}:1: warning: unused" for number in range(30)]
    found = last_lines("\n".join([*errors, *noise, "error: command gcc failed"])).split("\n  ")[1:]
    assert found[:3] == errors
    assert found[3:] == [*noise[-8:], "error: command gcc failed"]
    assert last_lines("one\n\ntwo") == "\n  one\n  two"
