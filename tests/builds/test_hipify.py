"""The step `hipify`: the files that it changes, its refusals, and how it is undone."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenv.checks.hipified import SCRIPT, UNDO, left_of, read_hipified
from tenv.core.files import digest
from tenv.verbs import build
from tests.builds.conftest import Workshop, codes, step
from tests.support.projects import call
from tests.support.rarely import first_fast

CONVERTS = """\
from pathlib import Path

root = Path(__file__).resolve().parents[2]
made = {"c10/hip/HIPMacros.h": "#pragma once\\n", "torch/csrc/Module.cpp": "hip\\n", "third_party/gloo/g.cc": "hip\\n"}
for name, text in made.items():
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.is_file() or file.read_text() != text:
        file.write_text(text)
"""
FILES = {
    SCRIPT: CONVERTS,
    "torch/csrc/Module.cpp": "cuda\n",
    "a b.txt": "mine\n",
    ".gitignore": ".tenv/\nbuild/\nc10/hip/\n",
}
ALL = build._steps
STEPS = ("checkout", "target", "create", "hipify")
CHANGED = ["third_party/gloo/g.cc", "torch/csrc/Module.cpp"]


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")


@pytest.fixture
def hip(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A checkout with a small build_amd.py and a submodule, and a target that counts as one with ROCm.

    The steps end with the conversion: nothing is configured or compiled.
    """
    monkeypatch.setattr("tenv.verbs.build.of_rocm", lambda _: True)
    steps = [one for one in build._steps() if one.name in STEPS]
    monkeypatch.setattr("tenv.verbs.build._steps", lambda: tuple(steps))
    root, other = workshop.checkout, workshop.project.folder / "gloo"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    other.mkdir()
    (other / "g.cc").write_text("cuda\n")
    (other / "CMakeLists.txt").write_text("\n")
    git(other, "init", "-q")
    commit(other)
    subprocess.run(["rm", "-rf", root / "third_party/gloo"], check=True)
    if not (root / ".git").exists():
        git(root, "init", "-q")
    git(root, "submodule", "add", "-q", str(other), "third_party/gloo")
    commit(root)
    return workshop


def undo(hip: Workshop, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", str(hip.checkout / UNDO), *words], capture_output=True, text=True, check=False)


def test_the_sources_are_converted_once_listed_and_taken_back(hip: Workshop) -> None:
    planned = json.loads(call("plan", "tiny", "--pytorch", str(hip.checkout), "--json").out)["data"]
    assert [row["name"] for row in planned["steps"]] == list(STEPS)
    assert read_hipified(hip.checkout) is None
    facts = step(hip.build("--only", "c10"), "hipify")["facts"]
    assert (facts["skipped"], facts["changed"], facts["new"]) == (False, CHANGED, ["c10/hip/HIPMacros.h"])
    ended = call("build", "tiny", "--pytorch", str(hip.checkout), "--only", "c10")
    assert f"hipified already; undo: sh {UNDO}" in ended.err
    said = call("check", "tiny", "--pytorch", str(hip.checkout), "--build-only").out
    assert "is hipified: 2 files are changed in place, 1 are new" in said
    assert f"sh {UNDO}" in said
    assert undo(hip).returncode == 0
    assert git(hip.checkout, "status", "--porcelain", "--ignored=no") == ""
    assert (hip.checkout / "third_party/gloo/g.cc").read_text() == "cuda\n"
    assert not (hip.checkout / "c10/hip/HIPMacros.h").exists()
    assert read_hipified(hip.checkout) is None


def _edit(root: Path) -> str:
    (root / "a b.txt").write_text("edited\n")
    return "a b.txt"


def _edit_submodule(root: Path) -> str:
    (root / "third_party/gloo/CMakeLists.txt").write_text("# edited\n")
    return "third_party/gloo/CMakeLists.txt"


def _without_git(root: Path) -> str:
    (root / ".git").rename(root.parent / "kept-git")
    return str(root)


@pytest.mark.parametrize("edit", first_fast([_edit, _edit_submodule, _without_git]))
def test_uncommitted_edits_are_not_mixed_with_a_conversion(hip: Workshop, edit: Callable[[Path], str]) -> None:
    name = edit(hip.checkout)
    assert hip.fails("--only", "c10") == ("hipify", ("TE991",))
    assert read_hipified(hip.checkout) is None
    planned = call("plan", "tiny", "--pytorch", str(hip.checkout), "--json")
    assert planned.status == 1
    data = hip.build("--only", "c10", "--allow", "TE991")
    (finding,) = step(data, "hipify")["findings"]
    assert (finding["severity"], finding["subject"]) == ("warning", name)
    assert step(data, "hipify")["facts"]["changed"] == CHANGED


def test_an_edit_after_the_conversion_is_kept_by_the_undo_and_refused_by_the_step(hip: Workshop) -> None:
    hip.build("--only", "c10")
    (hip.checkout / "torch/csrc/Module.cpp").write_text("my own\n")
    assert hip.fails("--only", "c10") == ("hipify", ("TE991",))
    assert undo(hip).returncode == 1
    assert (hip.checkout / "torch/csrc/Module.cpp").read_text() == "my own\n"
    assert undo(hip, "--force").returncode == 0
    assert (hip.checkout / "torch/csrc/Module.cpp").read_text() == "cuda\n"


@pytest.mark.long
def test_a_conversion_that_fails_is_undone_and_run_again(hip: Workshop) -> None:
    script = hip.checkout / SCRIPT
    script.write_text(f"{CONVERTS}raise SystemExit('no such header')\n")
    commit(hip.checkout)
    assert hip.fails("--only", "c10") == ("hipify", ("TE992",))
    found = read_hipified(hip.checkout)
    assert found is not None
    assert (found.whole, sorted(found.changed)) == (False, CHANGED)
    script.write_text(CONVERTS)
    git(hip.checkout, "add", SCRIPT)
    git(hip.checkout, "commit", "-q", "-m", "mended")
    facts = step(hip.build("--only", "c10"), "hipify")["facts"]
    assert (facts["skipped"], facts["changed"], facts["new"]) == (False, CHANGED, ["c10/hip/HIPMacros.h"])
    script.unlink()
    commit_without = ["commit", "-q", "-m", "gone", "--", SCRIPT]
    git(hip.checkout, *commit_without)
    assert hip.fails("--only", "c10") == ("hipify", ("TE992",))


def test_a_conversion_by_hand_is_told_by_its_files(hip: Workshop) -> None:
    subprocess.run([sys.executable, SCRIPT], cwd=hip.checkout, check=True)
    found = read_hipified(hip.checkout)
    assert found is not None
    assert not found.noted
    ended = hip.run("--only", "c10")
    (finding,) = json.loads(ended.out)["data"]["steps"][-1]["findings"]
    assert finding["code"] == "TE991"
    assert SCRIPT in finding["message"]
    said = call("check", "tiny", "--pytorch", str(hip.checkout), "--build-only").out
    assert "is hipified" in said


def test_other_targets_convert_nothing(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("plan", "tiny", "--pytorch", str(workshop.checkout), "--json")
    data = json.loads(call(*words).out)["data"]
    assert "hipify" not in [row["name"] for row in data["steps"]]
    assert codes(step(data, "checkout")) == ()
    monkeypatch.setattr("tenv.verbs.build.of_rocm", lambda _: True)
    names = [row["name"] for row in json.loads(call(*words).out)["data"]["steps"]]
    assert names[4:5] == ["hipify"]


@pytest.mark.long
def test_the_converted_sources_are_compiled(hip: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenv.verbs.build._steps", ALL)
    data = hip.build("--only", "c10")
    assert step(data, "hipify")["facts"]["changed"] == CHANGED
    assert step(data, "build")["ok"]
    assert step(hip.build("--only", "c10"), "hipify")["facts"]["skipped"]


@pytest.mark.parametrize("text", ["", "[]", '{"changed": 1}', '{"changed": {}, "new": 3, "commit": 1, "whole": 2}'])
def test_a_note_that_is_none_is_no_conversion(tmp_path: Path, text: str) -> None:
    (tmp_path / ".tenv/hipified").mkdir(parents=True)
    (tmp_path / ".tenv/hipified/note.json").write_text(text)
    assert read_hipified(tmp_path) is None


@pytest.mark.long
def test_sources_that_git_took_back_are_converted_again(hip: Workshop) -> None:
    hip.build("--only", "c10")
    git(hip.checkout, "restore", "torch")
    planned = call("plan", "tiny", "--pytorch", str(hip.checkout))
    assert "would convert the sources" in planned.out + planned.err
    assert step(hip.build("--only", "c10"), "hipify")["facts"]["skipped"] is False
    assert (hip.checkout / "torch/csrc/Module.cpp").read_text() == "hip\n"
    (hip.checkout / "c10/hip/HIPMacros.h").unlink()
    assert step(hip.build("--only", "c10"), "hipify")["facts"]["skipped"] is False
    assert undo(hip).returncode == 0
    assert git(hip.checkout, "status", "--porcelain", "--ignored=no") == ""


@pytest.mark.long
def test_a_conversion_that_made_files_alone_is_undone(hip: Workshop) -> None:
    for name in CHANGED:
        (hip.checkout / name).write_text("hip\n")
    git(hip.checkout / "third_party/gloo", "add", "-A")
    git(hip.checkout / "third_party/gloo", "commit", "-q", "-m", "all")
    commit(hip.checkout)
    assert step(hip.build("--only", "c10"), "hipify")["facts"]["changed"] == []
    done = undo(hip)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (hip.checkout / "c10/hip/HIPMacros.h").exists()


@pytest.mark.long
def test_sources_that_git_does_not_have_are_taken_back_from_a_copy(hip: Workshop) -> None:
    (hip.checkout / "torch/csrc/mine[1].cpp").write_text("cuda\n")
    more = '"torch/csrc/mine[1].cpp": "hip\\n", "torch/csrc/Module.cpp"'
    (hip.checkout / SCRIPT).write_text(CONVERTS.replace('"torch/csrc/Module.cpp"', more))
    git(hip.checkout, "add", SCRIPT)
    git(hip.checkout, "commit", "-q", "-m", "more")
    facts = step(hip.build("--only", "c10"), "hipify")["facts"]
    assert "torch/csrc/mine[1].cpp" in facts["changed"]
    done = undo(hip)
    assert (done.returncode, done.stderr) == (0, "")
    assert (hip.checkout / "torch/csrc/mine[1].cpp").read_text() == "cuda\n"
    assert git(hip.checkout, "status", "--porcelain", "--ignored=no") == "?? torch/csrc/mine[1].cpp\n"


def test_what_was_edited_before_a_permitted_conversion_comes_back(hip: Workshop) -> None:
    (hip.checkout / "torch/csrc/Module.cpp").write_text("my cuda\n")
    hip.build("--only", "c10", "--allow", "TE991")
    git(hip.checkout, "add", "-A")  # the index has the converted files: the commit does not
    done = undo(hip)
    assert (done.returncode, done.stderr) == (0, "")
    assert (hip.checkout / "torch/csrc/Module.cpp").read_text() == "my cuda\n"
    assert (hip.checkout / "third_party/gloo/g.cc").read_text() == "cuda\n"


@pytest.mark.long
def test_a_killed_conversion_is_named(hip: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("tenv.builds.hipify_step._note", lambda *_, **__: 1 / 0)  # as after a kill, there is no note
        assert hip.run("--only", "c10").status == 70
    ended = hip.run("--only", "c10")
    (finding,) = json.loads(ended.out)["data"]["steps"][-1]["findings"]
    assert "a conversion was killed here: `git restore .`" in finding["message"]
    git(hip.checkout, "restore", "--recurse-submodules", ".")
    git(hip.checkout / "third_party/gloo", "restore", ".")
    assert step(hip.build("--only", "c10"), "hipify")["facts"]["changed"] == CHANGED
    assert not (hip.checkout / ".tenv/hipified/begun").exists()


def test_without_git_the_undo_names_what_it_leaves(hip: Workshop) -> None:
    _without_git(hip.checkout)
    hip.build("--only", "c10", "--allow", "TE991")
    done = undo(hip)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "2 files stay as they are: git has no earlier content of them\n"
    assert not (hip.checkout / "c10/hip/HIPMacros.h").exists()


def test_files_that_git_took_back_are_counted_apart(tmp_path: Path) -> None:
    (tmp_path / ".tenv/hipified").mkdir(parents=True)
    for name in ("a.cpp", "b.cpp", "new.hip"):
        (tmp_path / name).write_text("hip\n")
    changed = {name: digest(tmp_path / name) for name in ("a.cpp", "b.cpp")}
    note = {"changed": changed, "new": ["new.hip"], "commit": "a" * 40, "whole": True}
    (tmp_path / ".tenv/hipified/note.json").write_text(json.dumps(note))

    def left() -> tuple[int, int, int] | None:
        found = left_of(tmp_path, read_hipified(tmp_path))
        return (len(found.changed), len(found.new), found.back) if found else None

    assert left() == (2, 1, 0)
    (tmp_path / "a.cpp").write_text("cuda\n")
    assert left() == (1, 1, 1)
    (tmp_path / "b.cpp").unlink()
    assert left() == (0, 1, 2)
    (tmp_path / "new.hip").unlink()
    assert left() is None
