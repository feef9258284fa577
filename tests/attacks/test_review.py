"""Attacks of an independent review, that read the documents alone: each test passes when the attack is refused.

They come by names of files, variables of a manifest, what wheels place beside their modules, settings that a clone
brings for other programs, and what a shell hands over.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.outside import make_victims
from tests.support.fakes import make_wheel
from tests.support.projects import SOURCE, Project, call
from tests.support.rarely import first_fast

TRACE = "trace-of-the-attack"
BASH = shutil.which("bash") or "bash"
TENV = f"PYTHONPATH='{SOURCE}' '{sys.executable}' -P -m tenv"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX shells and links")


def _bash(project: Project, script: str, **environment: str) -> str:
    done = subprocess.run(
        [BASH, "--norc", "--noprofile", "-c", script],
        cwd=project.folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def _traces(project: Project) -> list[Path]:
    return list(project.folder.parent.rglob(f"{TRACE}*"))


def _evil(project: Project, files: dict[str, str], version: str = "1.0") -> None:
    """Put a wheel `evil` into the index and ask for it."""
    make_wheel(project.index.folder, "evil", version, files={"evil.py": "", **files})
    project.ask_for('evil = "*"')


# By the names of files


@pytest.mark.parametrize("name", first_fast([f"x$(touch${{IFS}}{TRACE})", f"`touch {TRACE}`", f"$(touch {TRACE})"]))
def test_the_name_of_a_manifest_is_no_command_for_the_completion_of_bash(project: Project, name: str) -> None:
    (project.folder / "manifests" / f"{name}.toml").touch()
    completion = project.ok("completion", "bash").out
    asked = 'COMP_WORDS=(tenv create ""); COMP_CWORD=2; _tenv_complete tenv "" create'
    said = _bash(project, f'{completion}\n{asked}\nprintf "%s\\n" "${{COMPREPLY[@]}}"')
    assert not _traces(project)
    assert "tiny" in said.split("\n")
    assert name not in said.split("\n")  # bash would put it into the command line as it is


@pytest.mark.parametrize(
    "folder", first_fast([f"a$(touch {TRACE})b", "x:.:y", f"`touch {TRACE}`", f"q'\"b;touch {TRACE}"])
)
def test_the_name_of_a_folder_is_no_command_and_no_entry_of_path(
    project: Project, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    within = project.folder / folder
    shutil.copytree(project.folder / "manifests", within / "manifests")
    monkeypatch.chdir(within)
    monkeypatch.setenv("PWD", str(within))
    inner = Project(within, project.index)
    if ":" in folder:
        inner.fails(2, "usage", "create", "tiny")
        return
    inner.ok("create", "tiny")
    script = inner.ok("activate", "tiny", "--shell", "bash").out
    said = _bash(inner, script + '\nprintf "%s\\n" "${PATH%%:*}"')
    assert said.splitlines()[-1] == str(inner.prefix / "bin")
    assert not [path for path in _traces(project) if path.name == TRACE]


# By the variables of a manifest


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAILPATH", f"/var/mail/box?$$(touch {TRACE})"),  # bash expands the message of each mailbox before a prompt
        ("XDG_CONFIG_HOME", "$TENV_PREFIX/../../../cfg"),  # holds tenv's safe-folders, and fish's config.fish
        ("XDG_DATA_HOME", "$TENV_PREFIX/../../../data"),  # holds tenv's marks
        ("HOME", "$TENV_PREFIX/../../../home"),  # both, and the start files of every shell
    ],
)
def test_a_manifest_sets_neither_what_a_shell_runs_nor_where_tenv_keeps_its_settings(
    project: Project, name: str, value: str
) -> None:
    project.manifest.write_text(f'{project.manifest.read_text()}\n[activation.env]\n{name} = "{value}"\n')
    assert name in project.fails(3, "manifest", "show", "tiny")


def test_settings_that_a_clone_brings_do_not_make_it_safe(project: Project) -> None:
    """What it names as XDG_CONFIG_HOME in a manifest holds a config.toml that names the clone itself."""
    settings = project.folder / "cfg" / "tenv" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'safe-folders = ["{project.folder}"]\n')
    text = project.manifest.read_text()
    other = project.manifest.with_name("other.toml")
    other.write_text(text)
    project.manifest.write_text(f'{text}\n[activation.env]\nXDG_CONFIG_HOME = "{settings.parent.parent}"\n')
    if call("create", "tiny").status == 3:
        return
    project.ok("create", "other")
    meta = project.prefix.with_name("other") / "tenv-meta"
    mark = (meta / "id").read_text().strip()
    (meta / "id").unlink()
    (Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "marks" / mark).unlink()
    assert call("run", "other", "--", "true").status == 8
    script = project.ok("activate", "tiny", "--shell", "bash").out
    said = _bash(project, f"{script}\n{TENV} run other -- echo ran-what-was-planted")
    assert "was not created by this user" in said
    assert "ran-what-was-planted" not in said.splitlines()


@pytest.mark.long
def test_values_that_double_do_not_fill_the_memory(project: Project) -> None:
    rows = ['A0 = "xxxxxxxxxxxxxxxx"', *(f'A{n} = "$A{n - 1}$A{n - 1}"' for n in range(1, 40))]
    project.manifest.write_text("\n".join([project.manifest.read_text(), "[activation.env]", *rows, ""]))
    ended = project.run("create", "tiny", wrapped=("prlimit", "--as=6000000000"))
    assert ended.status == 3, ended.err
    assert "error[manifest]" in ended.err


# By wheels


def test_a_lock_that_a_wheel_places_among_the_previous_ones_is_not_rolled_back_to(project: Project) -> None:
    project.ask_for('large = "*"')
    project.ok("lock", "tiny")
    planted = project.lock.read_text()  # brings `large`, which the manifest never asked for
    project.lock.unlink()
    project.manifest.write_text(project.manifest.read_text().replace('large = "*"', 'evil = "*"'))
    data = {f"evil-1.0.data/data/tenv-meta/locks/{n:06}.lock": planted for n in (0, 1, 2)}
    make_wheel(project.index.folder, "evil", "1.0", files={"evil.py": "", **data})
    if call("create", "tiny").status:
        return
    assert call("rollback", "tiny").status
    assert not list(project.site().glob("large*"))


def test_a_wheel_does_not_replace_the_configuration_of_python(project: Project) -> None:
    evil = "home = /nowhere/evil\ninclude-system-site-packages = true\nversion = 3.11.7\n"
    _evil(project, {"evil-1.0.data/data/pyvenv.cfg": evil})
    ended = call("create", "tiny")
    if not ended.status:
        assert "evil" not in (project.prefix / "pyvenv.cfg").read_text()


@pytest.mark.parametrize("name", first_fast(["python", "python3"]))
def test_a_wheel_does_not_replace_python(project: Project, name: str) -> None:
    _evil(project, {f"evil-1.0.data/scripts/{name}": f"#!/bin/sh\ntouch {TRACE}\n"})
    assert call("create", "tiny").status
    call("verify", "tiny")
    call("run", "tiny", "--", "python", "-c", "1")
    assert not _traces(project)


@pytest.mark.parametrize(
    "files",
    first_fast([
        {"late-0.9.egg-info/top_level.txt": "../../../../../../victim\n../../../../../../src\n",
         "late-0.9.egg-info/PKG-INFO": "Metadata-Version: 1.0\nName: late\nVersion: 0.9\n",
         "late-0.9.egg-info/installed-files.txt": "../../../../../../../package.json\n"},
        {"late.egg-link": "../../../../../../src\n.\n", "easy-install.pth": "../../../../../../src\n"},
    ]),
)  # fmt: skip
def test_an_older_record_of_setuptools_removes_nothing_outside(project: Project, files: dict[str, str]) -> None:
    """uv removes what `top_level.txt` names when it replaces such a distribution."""
    _evil(project, files)
    make_wheel(project.index.folder, "late", "1.0")
    project.ok("create", "tiny")
    victims = make_victims(project)
    before = victims.hashes()
    project.ask_for('late = "*"')
    call("create", "tiny")
    call("remove", "tiny")
    assert victims.hashes() == before


# By settings for other programs


def test_settings_of_uv_that_a_clone_brings_lead_nowhere_else(project: Project) -> None:
    victims = make_victims(project)
    out = project.folder.parent / "victim"
    rows = [f'cache-dir = "{out}/cache"', "[pip]", f'target = "{out}/target"', f'prefix = "{out}/prefix"']
    (project.folder / "uv.toml").write_text("\n".join([*rows, "break-system-packages = true", ""]))
    before = victims.hashes()
    project.ok("create", "tiny")
    assert victims.hashes() == before
    assert list(project.site().glob("alpha*"))


def test_a_clone_does_not_name_the_python(project: Project) -> None:
    evil = project.folder / "evil"
    evil.write_text(f'#!/bin/sh\ntouch "{project.folder}/{TRACE}"\nexit 1\n')
    evil.chmod(0o755)
    (project.folder / ".python-version").write_text(f"{evil}\n")
    (project.folder / ".env").write_text(f"UV_PYTHON={evil}\n")
    (project.folder / "uv.toml").write_text(f'[pip]\npython = "{evil}"\n')
    folder = project.folder / ".venv" / "bin"
    folder.mkdir(parents=True)
    shutil.copy(evil, folder / "python")
    project.ok("create", "tiny")
    assert not _traces(project)


@pytest.mark.long
def test_a_bare_repository_within_a_clone_runs_nothing(project: Project) -> None:
    """git takes a folder with HEAD, objects and refs for a repository, and its `config` comes with the clone."""
    inner = project.folder / "inner"
    for name in ("objects", "refs", "locks"):
        (inner / name).mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/m\n")
    run = f"touch {project.folder}/{TRACE};false"
    (inner / "config").write_text(
        f'[core]\nrepositoryformatversion = 0\nbare = false\nworktree = {inner}\nfsmonitor = "{run}"\npager = "{run}"\n'
    )
    shutil.copytree(project.folder / "manifests", inner / "manifests")
    project.ok("lock", "tiny")
    shutil.copy(project.lock, inner / "locks")
    subprocess.run(["git", "status"], cwd=inner, capture_output=True, timeout=180, check=False)
    assert _traces(project)  # that is git's own way; tenv should not go it
    _traces(project)[0].unlink()
    stand = Project(inner, project.index)
    ran = []
    for words in (("show", "tiny"), ("diff", "tiny"), ("info",), ("list",), ("merge-driver", "locks/tiny.lock")):
        stand.run(*words)
        if _traces(project):
            ran.append(words)
            (project.folder / TRACE).unlink()
    assert not ran


# By links that a clone carries


@pytest.mark.parametrize("name", [".tenv/envs/.tiny.lock", "locks", ".tenv/.gitignore"])
def test_what_tenv_writes_beside_an_environment_is_not_written_through_links(project: Project, name: str) -> None:
    victims = make_victims(project)
    link = project.folder / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(project.folder.parent / "victim" / ("" if name == "locks" else "file.txt"))
    before = victims.hashes()
    call("create", "tiny")
    assert victims.hashes() == before


# By the environment of a process


@pytest.mark.parametrize("value", first_fast(["", "/nowhere:", ".", "~", ":", ":/nowhere:"]))
def test_an_empty_part_of_the_safe_folders_names_no_folder(
    project: Project, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.ok("create", "tiny")
    shutil.rmtree(Path(os.environ["XDG_DATA_HOME"]) / "tenv" / "marks")
    monkeypatch.setenv("TENV_SAFE_FOLDERS", value)
    assert call("run", "tiny", "--", "true").status in (2, 8)


def test_what_activation_kept_is_no_command_for_deactivation(project: Project) -> None:
    project.ok("create", "tiny")
    script = project.ok("activate", "tiny", "--shell", "bash").out
    spoil = f"""for n in $(compgen -v | grep -i '^_*tenv_'); do export $n="x\\$(touch {TRACE})';touch {TRACE};"; done"""
    said = _bash(project, f'{script}\n{spoil}\neval "$({TENV} deactivate)"\necho reached-the-end')
    assert "reached-the-end" in said
    assert not _traces(project)
