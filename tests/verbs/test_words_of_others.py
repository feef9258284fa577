"""Options that pixi and uv have too: where `add` writes, what `packages` lists, where a command works."""

import json
import os
from pathlib import Path

import pytest
import tomli

from tenv import __version__
from tenv.core.errors import UsageError
from tenv.host.machine import current_platform
from tenv.verbs.requests import AddOptions, parse_request
from tests.support.each import each
from tests.support.fakes import make_wheel
from tests.support.projects import Project, call
from tests.support.source_trees import write_tree

NO_SITE = Path("/nonexistent/lib/python3.11/site-packages")
TREE = "vision @ git+https://example.com/vision"


@pytest.mark.long
def test_a_feature_is_added_to_listed_run_with_and_dropped_from(project: Project) -> None:
    make_wheel(project.index.folder, "delta", "1.0", requires=["beta", "gamma"])
    project.ok("lock", "tiny")
    ended = project.ok("add", "tiny", "delta", "--feature", "debug")
    assert '[feature.debug.pypi-dependencies]\ndelta = "*"\n' in project.manifest.read_text()
    assert ended.err.splitlines()[-1] == "next: `tenv create tiny --with debug`"
    rows = project.ok("packages", "tiny", "--feature", "debug", "--json").data
    assert {row["name"] for row in rows} == {"delta", "gamma"}
    assert "beta" in {row["name"] for row in project.ok("tree", "tiny", "--feature", "debug", "--json").data}
    assert project.ok("tree", "tiny", "--feature", "debug").out.startswith("delta 1.0 (requested by debug)\n")
    shown = project.ok("show", "tiny", "--feature", "debug", "--json").data["packages"]
    assert {row["name"] for row in shown} == {"delta", "gamma"}
    for verb in ("packages", "tree", "show"):
        assert "did you mean `debug`?" in project.fails(2, "usage", verb, "tiny", "--feature", "debgu")

    run = ("run", "--with", "debug", "tiny", "--", "python", "-c", "import delta")
    err = project.fails(8, "environment-missing", *run)
    assert "`tenv create tiny --with debug` installs it" in err
    project.ok("create", "tiny")
    err = project.fails(8, "environment-missing", *run)
    assert "the environment of tiny lacks the feature debug" in err
    assert "has no feature `nosuch`" in project.fails(2, "usage", *run[:1], "--with", "nosuch", *run[3:])
    done = project.ran("run", "--sync", *run[1:])
    assert done.status == 0, done.err
    assert project.state()["features"] == ["debug"]
    plan = project.ok("run", "--json", *run[1:]).data
    assert plan["target"] == "tiny"

    project.ok("drop", "tiny", "delta", "--no-create")
    assert "delta" not in project.manifest.read_text()


def test_a_package_is_dropped_from_the_named_feature_and_platform_alone(project: Project) -> None:
    project.widen_platforms()
    places = ("feature.one", "feature.one.platform.win-64", "feature.two")
    text = "".join(f'[{place}.pypi-dependencies]\ngamma = "*"\n' for place in places)
    project.manifest.write_text(project.manifest.read_text() + text)

    def left() -> list[bool]:
        one, two = (tomli.loads(project.manifest.read_text())["feature"].get(name, {}) for name in ("one", "two"))
        parts = (one, one.get("platform", {}).get("win-64", {}), two)
        return ["gamma" in part.get("pypi-dependencies", {}) for part in parts]

    assert left() == [True, True, True]
    project.ok("drop", "tiny", "gamma", "--feature", "one", "--platform", "win-64")
    assert left() == [True, False, True]
    project.ok("drop", "tiny", "gamma", "--feature", "one")
    assert left() == [False, False, True]
    err = project.fails(2, "usage", "drop", "tiny", "gamma", "--feature", "one")
    assert "has no request for `gamma` in [feature.one]" in err


def test_the_address_of_a_file_here_is_its_path(project: Project) -> None:
    wheel = make_wheel(project.folder / "my wheels", "near", "1.0")
    for text in (f"near @ {wheel.as_uri()}", wheel.as_uri().replace("file://", "file://localhost")):
        found = parse_request(text, "tiny", NO_SITE)
        assert found.file is not None
        assert (found.name, found.file.path) == ("near", str(wheel))
    write_tree(project.folder / "tree")
    found = parse_request(f"tree @ {(project.folder / 'tree').as_uri()}", "tiny", NO_SITE)
    assert found.tree is not None
    assert found.tree.path == str(project.folder / "tree")
    with pytest.raises(UsageError, match="of near, not of far"):
        parse_request(f"far @ {wheel.as_uri()}", "tiny", NO_SITE)


@pytest.mark.long
def test_a_package_of_one_platform_is_asked_for_there(project: Project) -> None:
    project.widen_platforms()
    project.ok("add", "tiny", "gamma", "--platform", "linux-aarch64")
    assert '[platform.linux-aarch64.pypi-dependencies]\ngamma = "*"\n' in project.manifest.read_text()
    here = current_platform()
    other = "linux-aarch64" if here != "linux-aarch64" else "linux-64"
    listed = {
        platform: {row["name"] for row in project.ok("packages", "tiny", "--platform", platform, "--json").data}
        for platform in ("linux-64", "linux-aarch64")
    }
    assert "gamma" in listed["linux-aarch64"] - listed["linux-64"]
    assert project.ok("show", "tiny", "--platform", other, "--json").data["platform"] == other
    for words in (("add", "tiny", "gamma"), ("packages", "tiny"), ("show", "tiny")):
        assert "it is for " in project.fails(2, "usage", *words, "--platform", "osx-64")


@each(
    "options, typed, given",
    [
        (AddOptions(branch="main"), TREE, {"branch": "main"}),
        (AddOptions(tag="v1.0"), TREE, {"tag": "v1.0"}),
        (AddOptions(rev="0" * 40), TREE, {"rev": "0" * 40}),
        (AddOptions(tag="v1.0", no_isolation=True), TREE, {"tag": "v1.0"}),
    ],
)
def test_a_revision_is_written_with_its_kind(options: AddOptions, typed: str, given: dict[str, str]) -> None:
    found = options.placed(parse_request(typed, "tiny", NO_SITE), typed, "tiny")
    assert found.tree is not None
    assert found.tree.given() == {"git": "https://example.com/vision", **given}


@each(
    "options, typed, message",
    [
        (AddOptions(branch="main"), "numpy", "is no git repository"),
        (AddOptions(branch="main", tag="v1"), TREE, "`--tag` names the revision already"),
        (AddOptions(tag="v1"), f"{TREE}@main", "`main` names the revision already"),
        (AddOptions(rev="a..b"), TREE, "is not the name of a branch, a tag or a commit"),
        (AddOptions(editable=True), "numpy", "is no folder"),
        (AddOptions(cxx="20"), "numpy", "--cxx is for packages with --no-isolation"),
        (AddOptions(archs="9.0"), "numpy", "--archs is for packages with --no-isolation"),
        (AddOptions(requires=("scipy",)), "numpy", "--requires is for packages with --no-isolation"),
        (AddOptions(no_isolation=True), "numpy", "compiles it from its source archive"),
        (AddOptions(build=True), TREE, "is built without --build"),
        (AddOptions(build=True), "https://example.org/a-1.0-py3-none-any.whl", "is a wheel, which is not built"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(options: AddOptions, typed: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        options.placed(parse_request(typed, "tiny", NO_SITE), typed, "tiny")


def test_a_command_works_in_the_folder_of_c(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    near = os.path.relpath(project.folder, tmp_path)
    manifest = call("-C", near, "show", "tiny", "--json").data["manifest"]
    assert Path(manifest) == project.manifest
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    assert call("--json", "-C", str(project.folder), "show", "tiny").data["name"] == "tiny"
    for words in (("-C", "nosuch", "show"), ("-C",)):
        assert project.fails(2, "usage", *words).endswith("hint: `tenv -C DIR COMMAND` works in DIR\n")
    assert "-C lacks DIR" in project.fails(2, "usage", "-C")


def test_the_version_has_an_envelope(project: Project) -> None:
    assert project.folder.is_dir()
    for words in (("--version", "--json"), ("--json", "-V"), ("version", "--json")):
        envelope = json.loads(call(*words).out)
        assert (envelope["command"], envelope["data"]["version"]) == ("version", __version__)
        assert set(envelope["data"]) == {"version", "commit"}


def test_a_task_of_another_tool_leads_there(project: Project) -> None:
    project.ok("lock", "tiny")
    project.ok("create", "tiny")
    err = project.fails(2, "usage", "run", "tiny", "zzzbuild")
    assert "tenv has no tasks: `pixi run zzzbuild` runs one of pixi, `just zzzbuild` a recipe of a justfile" in err
