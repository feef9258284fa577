"""What completes the words of tenv: the answers of the script in each installed shell, and that no Tab starts tenv."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tenv.activation.shells.tab_words import COMPLETIONS
from tenv.targets.search import find_places
from tests.support.project_folders import LAYOUTS
from tests.support.projects import Project

LOCK = (
    "packages:\n- conda: https://conda.example/noarch/num-py-1.2-h0_0.conda\ntenv:\n  wheels:\n    - name: tiny-wheel\n"
)
ASKED = [
    ("cre", {"create", "completion"}, {"--offline"}),
    ("create ", {"mine", "cpu", "cuda130"}, {"_parent", "create"}),
    ("create mine --", {"--offline", "--prefix", "--help"}, {"mine"}),
    ("diff mine cpu --platform ", {"linux-64", "linux-aarch64"}, {"mine"}),
    ("explain TE", {"TE101", "TE701"}, {"mine"}),
    ("update mine ", {"num-py", "tiny-wheel"}, {"mine"}),
    ("update --offline mine tiny", {"tiny-wheel"}, {"mine"}),
    ("export ", {"pixi", "pylock.toml"}, {"mine"}),
    ("export pixi ", {"mine", "cpu"}, {"pixi"}),
    ("hook ", {"fish", "nushell"}, {"mine"}),
    ("create --prefix ", {":folder"}, {"mine"}),
    ("run mine -- l", {":program"}, {"mine"}),
    ("create --no", {"--no-check"}, {"mine"}),
]


@pytest.fixture
def project(project: Project) -> Project:
    for name in ("mine", "_parent"):
        (project.folder / "manifests" / f"{name}.toml").write_text("")
    (project.folder / "locks").mkdir(exist_ok=True)
    (project.folder / "locks" / "mine.lock").write_text(LOCK)
    (project.folder / "deep").mkdir()
    return project


def answers(program: str, text: str, line: str, project: Project) -> set[str]:
    """Ask the functions of a script; the line's last word is the one that is completed. No other program is needed."""
    words = line.split()
    if line.endswith(" "):
        words.append("")
    (project.folder / "core").write_text(text)
    code = '. "$0"; _tenv_candidates "$@"'
    done = subprocess.run(
        [str(shutil.which(program)), "-c", code, str(project.folder / "core"), *words],
        cwd=project.folder / "deep",
        env={"PATH": "/usr/bin:/bin", "PWD": str(project.folder / "deep")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.splitlines())


@pytest.mark.parametrize("program", [name for name in ("bash", "dash", "ksh", "mksh") if shutil.which(name)])
def test_what_may_follow(program: str, project: Project) -> None:
    text = project.ok("completion", "bash").out.partition("_tenv_complete()")[0]
    for line, some, none in ASKED:
        found = answers(program, text, line, project)
        assert some <= found, line
        assert not none & found, line


@pytest.mark.parametrize("program", [name for name in ("bash", "dash", "ksh", "mksh") if shutil.which(name)])
def test_completion_finds_the_projects_that_commands_find(program: str, project: Project, tmp_path: Path) -> None:
    text = project.ok("completion", "bash").out.partition("_tenv_complete()")[0]
    (tmp_path / "core").write_text(text)
    folders = {}
    for number, (name, (make, _)) in enumerate(LAYOUTS.items()):
        for place, above in (("in a project", project.folder), ("alone", tmp_path)):
            folders[name, place] = above / f"p{number}" / "deep"
            (above / f"p{number}" / "deep").mkdir(parents=True)
            make(above / f"p{number}")
    code = '. "$0"; for place; do (cd "$place"; _tenv_find_project && echo "${_tenv_folder:-/}" || echo); done'
    done = subprocess.run(
        [program, "-euc", code, tmp_path / "core", *folders.values()],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {case: str(find_places(folder).project or "") for case, folder in folders.items()}
    assert dict(zip(folders, done.stdout.splitlines(), strict=True)) == wanted
    assert done.stderr == ""


def test_a_folder_of_no_manifests_in_a_project_hides_no_target(project: Project) -> None:
    (project.folder / "deep" / "manifests").mkdir()
    text = project.ok("completion", "bash").out.partition("_tenv_complete()")[0]
    assert "mine" in answers("sh", text, "show mi", project)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_offers_what_fits(project: Project) -> None:
    (project.folder / "c.bash").write_text(project.ok("completion", "bash").out)
    line = "COMP_WORDS=(tenv explain TE70); COMP_CWORD=2; _tenv_complete tenv TE70 explain"
    code = f'. ./c.bash; {line}; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", code], cwd=project.folder, capture_output=True, text=True, check=False)
    assert done.stdout.split()[:2] == ["TE701", "TE702"]
    assert all(word.startswith("TE70") for word in done.stdout.split())


@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("tenv create mi", "mine"),
        ("tenv create --offl", "--offline"),
        ("tenv explain TE70", "TE701"),
        ("tenv upd", "update"),
    ],
)
def test_fish_offers_what_fits(line: str, wanted: str, project: Project) -> None:
    (project.folder / "c.fish").write_text(project.ok("completion", "fish").out)
    code = f"source c.fish; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], cwd=project.folder, capture_output=True, text=True, check=True
    )
    assert wanted in [row.partition("\t")[0] for row in done.stdout.splitlines()]


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh_reads_the_script_and_asks_with_the_words_of_its_line(project: Project) -> None:
    (project.folder / "c.zsh").write_text(project.ok("completion", "zsh").out)
    code = (
        "compdef() { :; }; compadd() { shift; print -l -- $@; }; . ./c.zsh; "
        "words=(tenv diff mine cpu --platform ''); CURRENT=6; _tenv_complete"
    )
    done = subprocess.run(["zsh", "-fc", code], cwd=project.folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["linux-64", "linux-aarch64", "win-64"]


def test_a_shell_without_completion_is_told(project: Project) -> None:
    err = project.fails(2, "usage", "completion", "cmd")
    assert f"shells with completion: {', '.join(COMPLETIONS)}" in err
