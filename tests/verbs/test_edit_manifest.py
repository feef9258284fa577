"""`tenv init`, `add` and `drop`: manifests are written with their comments kept, and never without a solution."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from tenv.core.errors import StorageError, UsageError
from tenv.core.files import write_atomic
from tenv.targets.search import find_places
from tenv.targets.tree_request import TreeRequest
from tenv.verbs import edit_manifest
from tenv.verbs.lock import lock_target
from tenv.verbs.requests import TypedRequest, parse_request
from tests.support.each import each
from tests.support.fakes import make_wheel
from tests.support.projects import Project, call
from tests.support.rarely import first_fast

NO_SITE = Path("/nonexistent/lib/python3.11/site-packages")
COMMENTED = '# ours\nalpha  = ">=1" # why\n'


@each(
    "text, request_",
    [
        ("numpy", TypedRequest("numpy")),
        ("numpy>=2,<3", TypedRequest("numpy", ">=2,<3")),
        ("numpy >=2", TypedRequest("numpy", ">=2")),
        ("numpy==2.1.3", TypedRequest("numpy", "2.1.3")),
        ("numpy==2.1.*", TypedRequest("numpy", "2.1.*")),
        ("python=3.11", TypedRequest("python", "3.11.*")),
        ("cmake=3.31.5", TypedRequest("cmake", "3.31.5")),
        ("cuda-toolkit[nvcc,CuBLAS]==13.0.*", TypedRequest("cuda-toolkit", "13.0.*", ("cublas", "nvcc"))),
        ("conda-forge::cmake>=3.27", TypedRequest("cmake", ">=3.27", (), "conda-forge")),
        ("torch~=2.4", TypedRequest("torch", "~=2.4")),
    ],
)
def test_requests_are_read_as_pip_and_conda_write_them(text: str, request_: TypedRequest) -> None:
    assert parse_request(text, "tiny", NO_SITE) == request_


@each("text", ["", "-n", ">=2", "numpy @ https://x/y.whl", "a b[", "é"])
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_request(text, "tiny", NO_SITE)


@each(
    "text, meant",
    [
        ("click=>8", "'click>=8'"),
        ("numpy = < 3", "'numpy <= 3'"),
        ("conda-forge::cmake=>3.27,=<4", "'conda-forge::cmake>=3.27,<=4'"),
    ],
)
def test_a_reversed_sign_is_an_error_that_shows_the_right_one(text: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_request(text, "tiny", NO_SITE)
    assert caught.value.hint == f"did you mean {meant}?"


def test_add_writes_one_line_and_keeps_the_rest(locked: Project) -> None:
    locked.edit('alpha  = ">=1"\n', COMMENTED)
    before = locked.manifest.read_text()
    ended = locked.ok("add", "tiny", "gamma>=1")
    assert locked.manifest.read_text() == f'{before}gamma = ">=1"\n'
    assert '[pypi-dependencies]: gamma = ">=1"' in ended.err
    assert "gamma" in locked.lock.read_text()
    assert ended.err.endswith("next: `tenv create tiny`\n")
    assert not locked.prefix.exists()


def test_add_replaces_a_range_where_it_stands(locked: Project) -> None:
    locked.edit('alpha  = ">=1"\n', COMMENTED)
    make_wheel(locked.index.folder, "alpha", "3.0")
    locked.ok("add", "tiny", "Alpha==3.0")
    assert '# ours\nalpha  = "3.0" # why\n' in locked.manifest.read_text()
    assert "alpha-3.0" in locked.lock.read_text()


def test_add_keeps_the_way_of_a_build_that_it_moves() -> None:
    text = '[pypi-dependencies]\nvision = { git = "https://example.org/a.git", tag = "v1", %s }\n'
    built = 'isolation = false, requires = ["torch"], cxx = 20'
    new = TreeRequest(git="https://example.org/vision.git", tag="v0.27.0")
    near = TreeRequest(path="near", editable=True, base=Path("/home"))
    document = tomlkit.parse(text % built)
    edit_manifest._put(document, "pypi-dependencies", TypedRequest("vision", "", tree=new), Path("/home"))
    asked = {"git": new.git, "tag": "v0.27.0", "isolation": False, "requires": ["torch"], "cxx": 20}
    assert document.unwrap()["pypi-dependencies"] == {"vision": asked}
    edit_manifest._put(
        document, "pypi-dependencies", TypedRequest("vision", "", tree=replace(near, editable=False)), Path("/")
    )
    assert document.unwrap()["pypi-dependencies"]["vision"] == {
        **{key: asked[key] for key in ("isolation", "requires", "cxx")},
        "path": "home/near",
    }
    with pytest.raises(UsageError, match="an editable folder is not"):
        edit_manifest._put(document, "pypi-dependencies", TypedRequest("vision", "", tree=near), Path("/home"))
    document = tomlkit.parse(text % "isolation = true")
    edit_manifest._put(document, "pypi-dependencies", TypedRequest("vision", "", tree=near), Path("/home"))
    assert document.unwrap()["pypi-dependencies"]["vision"] == {"path": "near", "editable": True}


def test_add_brings_an_environment_up_to_date(created: Project) -> None:
    data = created.ok("add", "tiny", "gamma", "--json").data
    assert (data["section"], data["prefix"]) == ("pypi-dependencies", str(created.prefix))
    assert created.ran("run", "tiny", "--", "python", "-c", "import gamma").status == 0
    created.ok("drop", "tiny", "gamma", "--no-create")
    assert created.ok("list", "--json").data[0]["state"] == "stale"


def test_without_a_solution_nothing_is_written(created: Project) -> None:
    before = created.manifest.read_bytes(), created.lock.read_bytes(), created.state_file.read_bytes()
    said = created.fails(5, "no-solution", "add", "tiny", "alpha>=99")
    assert "hint: `tenv add tiny alpha==1.0`\n" in said
    said = created.fails(5, "no-solution", "add", "Alpha >=99", "gamma", "--pypi", "--no-create")
    assert "hint: `tenv add --pypi --no-create Alpha==1.0 gamma`\n" in said
    created.fails(2, "usage", "add", "tiny", "alpha @ x")
    created.fails(3, "manifest", "add", "tiny", "--archive", "alpha>=1")
    assert (created.manifest.read_bytes(), created.lock.read_bytes(), created.state_file.read_bytes()) == before


def test_a_built_in_target_is_not_edited(project: Project) -> None:
    err = project.fails(2, "usage", "add", "cpu", "numpy")
    assert "`tenv init NAME --extends cpu`" in err


def test_the_hint_of_add_is_a_command_and_removes_nothing_that_was_not_there(locked: Project) -> None:
    err = locked.fails(5, "no-solution", "add", "tiny", "alhpa", "gamma", "--no-create")
    assert "hint: did you mean `tenv add tiny --no-create alpha gamma`? `--index URL` asks another index" in err
    assert "remove" not in err.partition("hint:")[2]
    hint = locked.fails(5, "no-solution", "add", "tiny", "zzqqxx").partition("hint: ")[2]
    assert hint.startswith("`--index URL` asks another index, `--conda` the channels")
    assert "remove" not in locked.fails(5, "no-solution", "add", "tiny", "gamma>=99", "alpha<0").partition("hint:")[2]


def test_the_beginning_of_a_version_leads_to_its_releases(locked: Project) -> None:
    make_wheel(locked.index.folder, "delta", "9.20.1.4")
    make_wheel(locked.index.folder, "delta", "9.28")
    err = locked.fails(5, "no-solution", "add", "tiny", "delta==9.20")
    assert "no release of delta is 9.20, and 9.20.1.4 is one of 9.20.*" in err
    assert "hint: `tenv add tiny 'delta==9.20.*'`" in err


def test_a_package_of_another_feature_is_changed_there(locked: Project) -> None:
    locked.ok("add", "tiny", "--feature", "test", "gamma>=1")
    before = locked.manifest.read_bytes()
    for spec, why, hint in (
        ("gamma==1.0", "the feature test asks for gamma >=1", "`tenv add tiny --feature test gamma==1.0` changes it"),
        ("alpha==1.0", "tiny itself asks for alpha", "`tenv add tiny alpha==1.0` changes it for both"),
    ):
        err = locked.fails(2, "usage", "add", "tiny", "--feature", "dbg", spec)
        assert why in err
        assert f"hint: {hint}" in err
        assert locked.manifest.read_bytes() == before
    assert "hint" not in locked.fails(2, "usage", "add", "tiny", "--feature", "dbg", "alpha")
    locked.ok("add", "tiny", "--feature", "test", "gamma==1.0")
    locked.ok("add", "tiny", "--feature", "dbg", "gamma==1.0")


def test_drop_takes_a_package_out_everywhere(locked: Project) -> None:
    locked.widen_platforms()
    locked.ask_for('\n[platform.win-64.pypi-dependencies]\ngamma = "*"')
    locked.ok("lock", "tiny")
    locked.ok("drop", "tiny", "GAMMA")
    assert "gamma" not in locked.manifest.read_text()
    assert "name: gamma" not in locked.lock.read_text()
    err = locked.fails(2, "usage", "drop", "tiny", "alhpa")
    assert "did you mean `alpha`?" in err


def test_remove_with_packages_drops_them_and_leaves_the_environment(created: Project) -> None:
    before = created.manifest.read_text()
    for words in (("remove", "tiny", "alpha"), ("remove", "alpha")):
        created.manifest.write_text(before)
        assert "alpha (removed)" in created.ok(*words).err
        assert "alpha" not in created.manifest.read_text()
    assert created.prefix.is_dir()
    assert "there is no target `delta`" in created.fails(2, "unknown-target", "remove", "delta")


def test_parts_of_cuda_lead_to_their_packages(locked: Project) -> None:
    for part, package in (("nvcc", "'cuda-toolkit[nvcc]'"), ("cudnn", "nvidia-cudnn-cu13"), ("cuda", "cuda-toolkit")):
        err = locked.fails(5, "no-solution", "add", "tiny", part)
        assert f"hint: did you mean `tenv add tiny {package}`? `--index URL`" in err


@pytest.mark.parametrize(
    "options",
    first_fast([("--feature", "dbg", "--platform", "win-64"), ("--feature", "dbg"), ("--platform", "win-64")]),
)
def test_drop_leaves_no_empty_table(options: tuple[str, ...], locked: Project) -> None:
    locked.widen_platforms()
    before = locked.manifest.read_text()
    locked.ok("add", "tiny", "gamma", *options)
    assert locked.manifest.read_text() != before
    locked.ok("drop", "tiny", "gamma")
    assert locked.manifest.read_text().rstrip() == before.rstrip()
    locked.manifest.write_text(before + "\n[feature.dbg.pypi-dependencies]\n# a reason\ngamma = '*'\n")
    locked.ok("drop", "tiny", "gamma")
    assert "[feature.dbg.pypi-dependencies]\n# a reason\n" in locked.manifest.read_text()


def test_a_child_drops_what_its_parent_asks_for(locked: Project) -> None:
    locked.ok("init", "mine", "--extends", "tiny")
    locked.ok("drop", "mine", "alpha")
    text = (locked.folder / "manifests" / "mine.toml").read_text()
    assert "alpha = false" in text
    assert "alpha" in locked.manifest.read_text()
    lock = (locked.folder / "locks" / "mine.lock").read_text()
    assert "native" in lock
    assert "alpha" not in lock
    locked.ok("add", "mine", "alpha>=1")
    assert 'alpha = ">=1"' in (locked.folder / "manifests" / "mine.toml").read_text()
    assert "alpha" in (locked.folder / "locks" / "mine.lock").read_text()


def test_what_a_parent_asks_for_is_named_where_it_changes(locked: Project) -> None:
    locked.ok("init", "mine", "--extends", "tiny")
    added = locked.ok("add", "mine", "alpha")
    assert "note: tiny asks for alpha >=1, which this replaces\n" in added.err
    dropped = locked.ok("drop", "mine", "alpha", "--json").data
    assert dropped["lines"] == ["alpha (removed)"]
    assert dropped["notes"] == ["tiny asks for alpha >=1, which holds again; `tenv drop mine alpha` takes that away"]
    assert "alpha" in (locked.folder / "locks" / "mine.lock").read_text()
    for _ in range(2):
        dropped = locked.ok("drop", "mine", "alpha", "--json").data
        assert dropped["lines"] == ["alpha = false"]
        assert dropped["notes"] == ["tiny asks for alpha >=1, which `alpha = false` takes away"]
    assert locked.ok("add", "mine", "gamma", "--json").data["notes"] == []


@pytest.mark.parametrize(
    ("parent", "pytorch", "wanted"),
    [
        (
            "cuda121-archives",
            "2.4.1",
            {"pytorch": ">=2.4,<2.5", "python": ">=3.8,<3.13", "triton": "3.0.0", "glibc": "2.17"},
        ),
        ("cuda121", "2.7.1", {"pytorch": ">=2.7,<2.8", "python": "None", "triton": "3.3.1", "glibc": "2.27"}),
        ("cuda130", "v2.9.1", {"pytorch": ">=2.9,<2.10", "python": ">=3.11,<3.15", "triton": "3.5.1", "glibc": "2.27"}),
        ("cpu", "2.9", {"pytorch": ">=2.9,<2.10", "python": ">=3.11,<3.15", "triton": "", "glibc": "2.27"}),
    ],
)
def test_init_narrows_a_target_to_a_pytorch(
    parent: str, pytorch: str, wanted: dict[str, str], project: Project
) -> None:
    project.ok("init", "child", "--extends", parent, "--pytorch", pytorch)
    manifest = find_places(project.folder).find("child").manifest
    triton = manifest.features["test"].on("linux-64").wheels.get("triton")
    assert wanted == {
        "pytorch": str(manifest.pytorch),
        "python": str(manifest.python),
        "triton": str(triton.version) if triton else "",
        "glibc": str(manifest.requirements.glibc),
    }
    assert manifest.requirements.cuda == find_places(project.folder).find(parent).manifest.requirements.cuda


def test_a_pytorch_that_a_parent_does_not_build_is_refused(project: Project) -> None:
    said = project.fails(2, "usage", "init", "child", "--extends", "cuda121", "--pytorch", "2.15.0")
    assert "`cuda121` builds PyTorch >=2.1,<2.14, not 2.15.0" in said
    assert "--pytorch belongs to --extends" in project.fails(2, "usage", "init", "child", "--pytorch", "2.9")
    assert not (project.folder / "manifests" / "child.toml").exists()


def test_init_makes_a_project_that_can_be_locked_and_created(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "My Work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    (folder / ".gitignore").write_text("build")
    data = project.ok("init", "--json").data
    assert (data["target"], data["manifest"]) == ("My-Work", str(folder / "manifests" / "My-Work.toml"))
    assert (folder / ".gitignore").read_text() == "build\n.tenv/\n"
    project.ok("lock", "My-Work")
    project.ok("add", "My-Work", "alpha")
    ended = project.ok("init", "other", "--extends", "My-Work")
    assert ".gitignore" not in ended.err
    project.fails(2, "file-exists", "init", "other")
    said = project.fails(2, "usage", "init", "auto")
    assert "`auto` means the best target of the host" in said
    assert "`tenv init NAME`" in said
    project.fails(2, "usage", "init", "-o/x")
    project.fails(2, "unknown-target", "init", "third", "--extends", "nosuch")
    assert sorted(file.name for file in (folder / "manifests").iterdir()) == [
        "My-Work.toml",
        "other.toml",
        "tenv.schema.json",
    ]


def test_an_empty_target_hides_no_other(project: Project) -> None:
    said = project.fails(2, "usage", "init", "cpu")
    assert "there is a target `cpu` (built-in), which an empty one would hide" in said
    assert "`tenv create cpu` makes its environment; `tenv init my-cpu --extends cpu` adds to it" in said
    assert not (project.folder / "manifests" / "cpu.toml").exists()
    done = project.ok("init", "cpu", "--extends", "tiny", "--json")  # asked for, and named
    assert done.data["hides"] == "built-in"
    (project.folder / "manifests" / "cpu.toml").unlink()
    said = project.ok("init", "cpu", "--extends", "tiny").err
    assert "note: there is another target `cpu` (built-in), which this one hides in the project" in said
    assert project.ok("init", "mine", "--json").data["hides"] is None
    own = Path(os.environ["XDG_CONFIG_HOME"]) / "tenv" / "manifests" / "own.toml"
    own.parent.mkdir(parents=True)
    own.write_text(project.manifest.read_text())
    assert "there is a target `own` (yours)" in project.fails(2, "usage", "init", "own")


def test_remove_says_what_it_removes_and_what_was_meant(project: Project) -> None:
    ended = call("remove", "numpy")
    assert ended.status == 2
    assert "`tenv remove` removes environments" in ended.err
    assert "hint: `tenv drop tiny numpy` takes a package out of a target" in ended.err


def test_without_a_target_the_default_one_is_edited(locked: Project) -> None:
    ended = locked.ok("add", "gamma>=1")
    assert "note: tiny is the default target\n" in ended.err
    assert 'gamma = ">=1"' in locked.manifest.read_text()
    assert locked.ok("drop", "Gamma", "--json").data["target"] == "tiny"
    assert "gamma" not in locked.manifest.read_text()
    err = locked.fails(2, "usage", "drop", "alhpa")
    assert "has no request for `alhpa`" in err
    assert "did you mean `alpha`?" in err
    for verb in ("add", "drop"):
        assert f"`tenv {verb} tiny PACKAGE`" in locked.fails(2, "usage", verb)
        assert "no package is given after the target tiny" in locked.fails(2, "usage", verb, "tiny")


def test_the_name_of_a_target_wins_over_a_package(locked: Project) -> None:
    (locked.folder / "manifests" / "alpha.toml").write_text(locked.manifest.read_text())
    (locked.folder / "tenv.toml").write_text('default = "tiny"\n')
    locked.ok("lock", "alpha")
    before = locked.manifest.read_bytes()
    ended = locked.ok("add", "alpha", "gamma")
    assert "note: `alpha` is taken as the target; `tenv add tiny alpha gamma` takes it as a package\n" in ended.err
    assert "gamma" in (locked.folder / "manifests" / "alpha.toml").read_text()
    err = locked.fails(2, "usage", "drop", "alpha")
    assert "hint: `tenv drop alpha PACKAGE`; `tenv drop tiny alpha` takes it as a package" in err
    assert locked.manifest.read_bytes() == before
    locked.ok("drop", "tiny", "alpha")
    assert "alpha" not in locked.manifest.read_text()


@pytest.mark.long
def test_words_that_may_name_a_mistyped_target_change_no_manifest(locked: Project) -> None:
    make_wheel(locked.index.folder, "tinny", "1.0")
    before = locked.manifest.read_bytes(), locked.lock.read_bytes()
    err = locked.fails(2, "unknown-target", "add", "tinny", "gamma")
    assert "hint: did you mean `tiny`? `tenv add tiny tinny gamma` takes it as a package" in err
    locked.fails(2, "unknown-target", "drop", "tinny", "alpha")
    locked.fails(2, "usage", "add", "", "gamma")
    locked.fails(5, "no-solution", "add", "toolchain-of-mine", "gamma")
    assert (locked.manifest.read_bytes(), locked.lock.read_bytes()) == before
    locked.ok("add", "tiny", "tinny")
    locked.ok("drop", "tinny", "alpha")
    assert "tinny" not in locked.manifest.read_text()


def test_of_several_targets_none_is_edited_unless_one_is_the_default(created: Project) -> None:
    other = created.folder / "manifests" / "other.toml"
    other.write_text(created.manifest.read_text())
    before = created.manifest.read_bytes(), other.read_bytes()
    assert created.ok("default").out == "tiny\n", "the only environment is the default for commands that only read"
    err = created.fails(2, "usage", "add", "gamma")
    assert "no TARGET is given, and the project has several: other, tiny" in err
    assert "hint: `tenv add other gamma`, or `tenv default other` sets one" in err
    assert (created.manifest.read_bytes(), other.read_bytes()) == before
    created.ok("default", "other")
    created.ok("add", "gamma")
    assert "gamma" in other.read_text()
    (created.folder / "tenv.toml").write_text('default = "nosuch"\n')
    assert "default: there is no target `nosuch`" in created.fails(2, "unknown-target", "drop", "gamma")
    created.ok("drop", "other", "gamma")
    assert "gamma" not in other.read_text()


def test_outside_a_project_there_is_no_manifest_to_edit(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    err = project.fails(2, "usage", "add", "numpy")
    assert "no TARGET is given, and there is no project" in err
    assert "`tenv add TARGET numpy` names one, `tenv init NAME` writes the manifest of a new one" in err


@pytest.mark.long
def test_two_commands_at_a_time_keep_both_edits(locked: Project) -> None:
    words = [sys.executable, "-m", "tenv", "add", "tiny", "--no-create"]
    running = [
        subprocess.Popen([*words, name], cwd=locked.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in ("beta", "gamma")
    ]
    assert [process.communicate() and process.returncode for process in running] == [0, 0]
    text = locked.manifest.read_text()
    assert 'beta = "*"' in text
    assert 'gamma = "*"' in text
    locked.ok("lock", "tiny", "--check")


def test_an_edit_of_another_command_is_kept(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other command writes while this one solves."""
    others = iter((True, False))

    def slow(*words: Any, **more: Any) -> Any:
        if next(others):
            locked.manifest.write_text(f"{locked.manifest.read_text()}# theirs\n")
        return lock_target(*words, **more)

    monkeypatch.setattr("tenv.verbs.edit_manifest.lock_target", slow)
    locked.ok("add", "tiny", "gamma", "--no-create")
    assert "# theirs\n" in locked.manifest.read_text()
    assert 'gamma = "*"' in locked.manifest.read_text()


def test_one_package_is_requested_once(locked: Project) -> None:
    before = locked.manifest.read_text()
    said = locked.fails(2, "usage", "add", "tiny", "gamma<2", "Gamma>=3")
    assert "Gamma is requested twice" in said
    assert locked.manifest.read_text() == before


@pytest.mark.parametrize("verb", ["add", "drop"])
def test_a_target_behind_a_package_is_named(verb: str, locked: Project) -> None:
    before = locked.manifest.read_text()
    said = locked.fails(2, "usage", verb, "gamma", "tiny")
    assert "`tiny` is a target, and stands behind a package" in said
    assert f"`tenv {verb} tiny gamma`" in said
    assert locked.manifest.read_text() == before


@pytest.mark.parametrize("words", [("add", "tiny", "gamma"), ("drop", "tiny", "alpha")])
def test_an_edit_is_taken_back_where_its_lock_can_not_be_written(locked: Project, words: tuple[str, ...]) -> None:
    locked.edit("\n", "\r\n")
    locks, before = locked.lock.parent, locked.manifest.read_bytes()
    outside = locked.folder.with_name("locks of another")
    locks.rename(outside)
    locks.symlink_to(outside)
    kept = locked.lock.read_bytes()
    said = locked.fails(8, "storage", *words)
    assert "tenv does not write through links" in said
    assert locked.manifest.read_bytes() == before
    assert locked.lock.read_bytes() == kept


def test_an_edit_that_can_not_be_taken_back_is_named(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(path: Path, data: str | bytes, **more: Any) -> None:
        if path == locked.manifest and b"gamma" not in locked.manifest.read_bytes():
            write_atomic(path, data, **more)
        else:
            raise StorageError(f"can't write {path}: No space left on device")

    monkeypatch.setattr(edit_manifest, "write_atomic", fill)
    said = locked.fails(8, "storage", "add", "tiny", "gamma")
    assert f"can't write {locked.lock}: No space left on device; {locked.manifest} is edited" in said


@pytest.mark.long
def test_the_edit_of_another_command_is_not_taken_back(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(path: Path, data: str | bytes, **more: Any) -> None:
        if path == locked.lock:
            locked.edit('alpha  = ">=1"', 'alpha  = ">=1.5"')
            raise StorageError(f"can't write {path}: No space left on device")
        write_atomic(path, data, **more)

    monkeypatch.setattr(edit_manifest, "write_atomic", fill)
    locked.fails(8, "storage", "add", "tiny", "gamma")
    assert 'alpha  = ">=1.5"' in locked.manifest.read_text()
    assert "gamma" in locked.manifest.read_text()


@pytest.mark.parametrize(
    ("spec", "option", "why", "hint"),
    [
        ("gamma>>2", (), "`>>2` is not a version range", "'gamma>=2,<3'"),
        ("gamma~2", (), "`~2` is not a version range", "'gamma>=2,<3'"),
        ("gamma>=", (), "`>=` is not a version range", "'gamma>=2,<3'"),
        ("gamma=2=3", ("--conda",), "`2=3.*` is not a version range", "'gamma>=2,<3'"),
        ("gamma>2;python_version<'3'", (), "is not a version range", "a request has no marker"),
    ],
)
def test_a_request_without_a_range_is_an_error_of_the_request(
    locked: Project, spec: str, option: tuple[str, ...], why: str, hint: str
) -> None:
    before = locked.manifest.read_bytes()
    said = locked.fails(2, "usage", "add", "tiny", *option, "beta", spec)
    assert f"`{spec}` is not a valid request: " in said
    assert why in said
    assert hint in said
    assert str(locked.manifest) not in said
    assert locked.manifest.read_bytes() == before


def test_a_range_in_the_notation_of_conda_is_one_of_a_conda_package(locked: Project) -> None:
    said = locked.fails(2, "usage", "add", "tiny", "gamma=1.*|>=3")
    assert "is not a version range such as `*`, `3.11.*` or `>=11,<13`" in said
