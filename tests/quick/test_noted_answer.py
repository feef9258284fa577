"""`check-driver` by its note and by the program: the same answer, whatever changes between two commands."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenv.cli import answer_note
from tenv.quick import noted_answer
from tenv.quick.short_way import OFF
from tests.host.builders import FakeGpu, needs_compiler, nvml
from tests.support.projects import Ended, Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there answers are noted")

MARK = "an answer of a note\n"


class Machine:
    """A project whose folder stands first on PATH, before the libraries and among the toolkits.

    Attributes:
        project: The project.
        environment: What a test adds to the environment variables.
        data: The user's data folder of tenv.
    """

    def __init__(self, project: Project, folder: Path) -> None:
        self.project = project
        self.folder = folder
        for name in ("bin", "lib", "cuda/bin", "other/bin"):
            (folder / name).mkdir(parents=True)
        self.program("cuda/bin/nvcc", "echo 'Cuda compilation tools, release 12.4, V12.4.131'")
        self.environment = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(folder / "lib"),
            "CUDA_HOME": str(folder / "cuda"),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }
        self.words: tuple[str, ...] = ("check-driver",)
        self.data = folder / "data" / "tenv"

    def program(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, **more: str) -> Ended:
        return self.project.run(*self.words, environment={**self.environment, **more})

    def notes(self) -> list[Path]:
        return sorted((self.data / noted_answer.FOLDER).glob("[0-9a-f]*"))

    def mark(self) -> Path:
        """Change the text of the only note, so that its answer is recognized."""
        (note,) = self.notes()
        content = json.loads(note.read_text())
        content["writes"] = [[1, MARK]]
        note.write_text(json.dumps(content))
        return note


@pytest.fixture
def machine(created: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PWD", str(created.folder))
    return Machine(created, tmp_path / "machine")


def assert_noted(machine: Machine) -> None:
    for _ in range(5):  # on a busy machine a program may take longer than one that is noted
        assert machine.run().status in (0, 1)
        if machine.notes():
            break
    machine.mark()
    assert machine.run().out == MARK


def shown(machine: Machine) -> Ended:
    """Return the answer where a note is marked; it must be that of the program."""
    ended = machine.run()
    assert ended == machine.run(**{OFF: "0"})
    return ended


def test_an_answer_is_given_once_more(machine: Machine) -> None:
    whole = machine.run(**{OFF: "0"})
    assert machine.notes() == []
    assert machine.run() == whole
    assert len(machine.notes()) == 1
    assert machine.run() == whole
    assert_noted(machine)
    assert machine.run(**{OFF: "0"}) == whole


@pytest.mark.parametrize(
    "words", [("--json",), ("tiny",), ("tiny", "--json", "--quiet"), ("tiny", "--build-only")], ids=" ".join
)
def test_words_have_answers_of_their_own(machine: Machine, words: tuple[str, ...]) -> None:
    assert_noted(machine)
    machine.words += words
    first = shown(machine)
    assert MARK not in first.out
    assert machine.run() == first


def test_other_words_are_not_noted(machine: Machine) -> None:
    for words in (("--help",), ("--nonsense",), ("nobody",), ("--against", "."), ("--assume-driver=580",)):
        machine.words = ("check-driver", *words)
        assert machine.run() == machine.run(**{OFF: "0"})
    assert machine.notes() == []


def test_a_status_is_kept(machine: Machine) -> None:
    (machine.project.folder / "manifests" / "gpu.toml").write_text(
        'description = "x"\nplatforms = ["linux-64", "linux-aarch64"]\n[requirements]\ncuda = "13.0"\n'
    )
    machine.words += ("gpu",)
    whole = machine.run(**{OFF: "0"})
    assert whole.status == 1
    assert [machine.run(), machine.run()] == [whole, whole]
    machine.mark()
    assert (machine.run().status, machine.run().out) == (1, MARK)


VARIABLES = {
    "TORCH_CUDA_ARCH_LIST": "9.0",
    "CONDA_OVERRIDE_CUDA": "12.1",
    "CUDA_PATH": "/nowhere",
    "NO_COLOR": "1",
    "FORCE_COLOR": "1",
    "COLUMNS": "40",
    "container": "podman",
    "TENV_LOCKED": "maybe",
    "LANG": "C",
}


def test_a_variable_changes_the_answer(machine: Machine) -> None:
    assert_noted(machine)
    for name, value in VARIABLES.items():
        assert machine.run(**{name: value}) == machine.run(**{name: value, OFF: "0"})
    assert machine.run().out == MARK


def added_manifest(machine: Machine) -> None:
    shutil.copy(machine.project.manifest, machine.project.manifest.with_name("more.toml"))


def removed_manifest(machine: Machine) -> None:
    machine.project.manifest.unlink()


def no_project(machine: Machine) -> None:
    shutil.rmtree(machine.project.folder / "manifests")


def of_another_release(machine: Machine) -> None:
    machine.program("cuda/bin/nvcc", "echo 'Cuda compilation tools, release 12.6, V12.6.131'")
    os.utime(machine.folder / "cuda" / "bin" / "nvcc", ns=(1, 1))


def settings(machine: Machine) -> None:
    (machine.folder / "config" / "tenv" / "manifests").mkdir(parents=True)
    shutil.copy(machine.project.manifest, machine.folder / "config" / "tenv" / "manifests" / "mine.toml")


def header(machine: Machine) -> None:
    (machine.folder / "cuda" / "include" / "crt").mkdir(parents=True)
    (machine.folder / "cuda" / "include" / "cuda_runtime_api.h").write_text("#define CUDART_VERSION 12060\n")


def toolkit_away(machine: Machine) -> None:
    (machine.folder / "cuda").rename(machine.folder / "away")


def link_elsewhere(machine: Machine) -> None:
    (machine.folder / "cuda").rename(machine.folder / "real")
    (machine.folder / "cuda").symlink_to("real")


CHANGES: dict[str, Callable[[Machine], object]] = {
    "a manifest differs": lambda machine: machine.project.edit("A few small wheels", "Few small wheels"),
    "a manifest is added": added_manifest,
    "a manifest is removed": removed_manifest,
    "a manifest is unreadable": lambda machine: machine.project.manifest.write_text("platforms = ["),
    "a manifest of the user": settings,
    "nvidia-smi is on PATH": lambda machine: machine.program("bin/nvidia-smi", "echo 580.65.06"),
    "nvcc is on PATH": lambda machine: machine.program("bin/nvcc", "echo release 12.1, V12.1.105"),
    "nvcc has another release": of_another_release,
    "nvcc fails": lambda machine: machine.program("cuda/bin/nvcc", "exit 3"),
    "the toolkit has headers": header,
    "the toolkit is gone": toolkit_away,
    "the toolkit is a link": link_elsewhere,
    "a library of the driver": lambda machine: (machine.folder / "lib" / "libcuda.so.1").write_bytes(b"\x7fELF"),
    "NVML is there": lambda machine: (machine.folder / "lib" / "libnvidia-ml.so.1").write_bytes(b"\x7fELF"),
    "the project is no more": no_project,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_machine_is_seen(machine: Machine, change: str) -> None:
    assert_noted(machine)
    CHANGES[change](machine)
    assert MARK not in shown(machine).out


def test_smi_s_answer_is_not_noted(machine: Machine) -> None:
    assert "nvidia" not in str(machine.folder)
    assert_noted(machine)
    shutil.rmtree(machine.data)
    machine.program("bin/nvidia-smi", "echo 580.65.06")
    for _ in range(2):
        shown(machine)
    assert machine.notes() == []


@needs_compiler
def test_a_driver_is_asked_anew(machine: Machine) -> None:
    away = machine.folder / "away"
    nvml(
        machine.folder / "lib", init=f'return access("{away}", F_OK) ? 0 : 9;', gpus=[FakeGpu("NVIDIA H200", (9, 0), 1)]
    )
    assert_noted(machine)
    away.touch()  # the driver's module is unloaded; no file that tenv looks at says so
    assert "NVML: Driver Not Loaded" in shown(machine).out
    away.unlink()
    assert "driver: 580.65.06 (NVML)" in shown(machine).out


@needs_compiler
@pytest.mark.parametrize("init", ["usleep(700000); return 0;", "abort();", "for (;;) pause();"])
def test_a_driver_that_is_slow_or_broken(machine: Machine, init: str) -> None:
    nvml(machine.folder / "lib", init=init)
    for _ in range(2):
        shown(machine)
    assert bool(machine.notes()) == (init == "abort();")  # which it did again


def test_a_toolkit_in_a_folder_of_nvidia_s_is_noted(machine: Machine) -> None:
    (machine.folder / "cuda").rename(machine.folder / "nvidia-sdk")
    machine.environment["CUDA_HOME"] = str(machine.folder / "nvidia-sdk")
    assert_noted(machine)


def test_a_program_that_takes_long_is_not_noted(machine: Machine) -> None:
    machine.program("cuda/bin/nvcc", "sleep 2; echo 'release 12.4, V12.4.131'")
    shown(machine)
    assert machine.notes() == []


@pytest.mark.parametrize("file", ["lib/libnvidia-ml.so.1", "cuda/include/cuda_runtime_api.h"])
def test_a_large_file_is_noted_once_it_rests(machine: Machine, file: str) -> None:
    path = machine.folder / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x7fELF")
    os.truncate(path, 100 << 20)  # as the driver's library is
    assert shown(machine).status in (0, 1)
    assert machine.notes() == []
    time.sleep(2.2)
    assert_noted(machine)
    before = path.stat()
    with path.open("r+b") as opened:
        opened.write(b"#define CUDART_VERSION 12060\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert MARK not in shown(machine).out


def test_another_folder_has_an_answer_of_its_own(machine: Machine, tmp_path: Path) -> None:
    assert_noted(machine)
    machine.project.folder = tmp_path
    machine.environment["PWD"] = str(tmp_path)
    assert MARK not in shown(machine).out


def linked_file(note: Path) -> None:
    note.rename(note.parent.parent / "elsewhere")
    note.symlink_to("../elsewhere")


def linked_folder(note: Path) -> None:
    note.parent.rename(note.parent.parent / "elsewhere")
    note.parent.symlink_to("elsewhere")


def piped(note: Path) -> None:
    note.unlink()
    os.mkfifo(note)


def changed(**values: Any) -> Callable[[Path], object]:
    return lambda note: note.write_text(json.dumps({**json.loads(note.read_text()), **values}))


TAMPERED: dict[str, Callable[[Path], object]] = {
    "others may write the file": lambda note: note.chmod(0o664),
    "others may write the folder": lambda note: note.parent.chmod(0o777),
    "a link to a file": linked_file,
    "a link to a folder": linked_folder,
    "a pipe": piped,
    "empty": lambda note: note.write_text(""),
    "garbage": lambda note: note.write_bytes(os.urandom(1000)),
    "cut off": lambda note: note.write_text(note.read_text()[:-5]),
    "deep": lambda note: note.write_text("[" * 100_000),
    "no object": lambda note: note.write_text("[]"),
    "too large": lambda note: note.write_text(note.read_text() + " " * noted_answer.MOST),
    "of another key": changed(key="0" * 64),
    "a status of an error": changed(status=5),
    "no status": changed(status=None),
    "no looks": changed(looks=None),
    "an unknown look": changed(looks=[["x", "/", ""]]),
    "no program": changed(programs=[[["/nowhere/program"], {}, ""]]),
    "no number": changed(status=float("inf")),
    "no words": changed(programs=[[[], {}, ""]]),
    "a mode too large": changed(looks=[["a", f"/\0{1 << 80}", "True"]]),
    "letters": changed(writes=[[1, "\u00e9"]]),
}


def test_a_note_that_may_not_be_trusted_is_not_believed(machine: Machine) -> None:
    whole = machine.run(**{OFF: "0"})
    for tampered, tamper in TAMPERED.items():
        shutil.rmtree(machine.data, ignore_errors=True)
        assert machine.run() == whole
        tamper(machine.mark())
        assert machine.run() == whole, tampered


@pytest.mark.parametrize("of_link", [True, False], ids=["link", "writable by others"])
def test_nothing_is_removed_from_a_folder_that_may_not_be_trusted(machine: Machine, of_link: bool) -> None:
    letters = machine.folder / "letters"
    there = machine.data / noted_answer.FOLDER
    machine.data.mkdir(parents=True)
    if of_link:
        there.symlink_to(letters)
    else:
        letters = there
    letters.mkdir()
    letters.chmod(0o755 if of_link else 0o777)
    for number in range(20):
        (letters / f"{number}").touch()
    assert machine.run().status == 0
    assert len([*letters.iterdir()]) == 20


STREAMS = {
    "a reader that has gone": "COMMAND | true; echo ${PIPESTATUS[0]}",
    "a full device": "COMMAND >/dev/full; echo $?",
    "errors on a full device": "COMMAND 2>/dev/full; echo $?",
    "both on a full device": "COMMAND >/dev/full 2>&1; echo $?",
    "one file": "COMMAND 2>&1",
    "no standard output": "COMMAND >&-; echo $?",
}


@pytest.mark.parametrize("streams", STREAMS)
def test_streams_that_fail(machine: Machine, streams: str) -> None:
    machine.project.manifest.write_text("platforms = [")  # which standard error names

    def run(words: str, **more: str) -> Ended:
        wrapped = ("bash", "-c", words.replace("COMMAND", '"$@"'), "bash")
        return machine.project.run(*machine.words, wrapped=wrapped, environment={**machine.environment, **more})

    machine.environment["PYTHONUNBUFFERED"] = ""
    whole = run(STREAMS[streams], **{OFF: "0"})
    assert (run("COMMAND").status, len(machine.notes())) == (0, 1)
    assert [run(STREAMS[streams]), run(STREAMS[streams])] == [whole, whole]


def test_a_program_has_the_signals_that_it_always_has(machine: Machine) -> None:
    machine.program("cuda/bin/nvcc", "yes | head -1 >&2; echo 'release 12.4, V12.4.131'")
    assert_noted(machine)


def test_a_note_of_another_user_is_not_believed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noted(machine)
    (note,) = machine.notes()
    assert noted_answer._read(str(note.parent), note.name)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert noted_answer._read(str(note.parent), note.name) is None


def test_a_note_holds_no_variable_of_the_user(machine: Machine) -> None:
    machine.run(A_VARIABLE="hunter2", OTHERS="swordfish")
    (note,) = machine.notes()
    assert not {"hunter2", "swordfish", "A_VARIABLE"} & set(re.findall(r"\w+", note.read_text()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("confstr", lambda _: "glibc 2.99"),
        ("sched_getaffinity", lambda _: {77}),
        ("uname", lambda: ("Linux", "other", "9.9", "", "x86_64")),
    ],
)
def test_another_machine_has_another_key(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["check-driver"]
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    monkeypatch.setattr(sys, "stderr", sys.__stderr__)
    before = noted_answer.key_of(words)
    assert before
    monkeypatch.setattr(os, name, value)
    assert noted_answer.key_of(words) != before


@pytest.mark.parametrize("loaded", [True, False], ids=["a module", "no module"])
def test_a_module_that_changed_since_the_process_began(
    loaded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "module.py"
    file.touch()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, f"__{name}__"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(answer_note, "_own_files", lambda: [str(file)] if loaded else [])
    assert answer_note.noted(["check-driver"], lambda: 0) == 0
    assert (tmp_path / "data" / "tenv" / noted_answer.FOLDER).exists() != loaded


def test_only_the_latest_notes_are_kept(machine: Machine) -> None:
    for number in range(20):
        machine.environment["ANYTHING"] = str(number)
        machine.run()
    assert len(machine.notes()) == 16


def test_a_folder_that_can_t_be_written_is_no_error(machine: Machine) -> None:
    (machine.folder / "data").write_text("no folder")
    assert machine.run() == machine.run(**{OFF: "0"})
