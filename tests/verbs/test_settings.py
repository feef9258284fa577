"""`tenv default`, `config` and `info`: settings with their origins, written with their comments kept."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tenv import __version__
from tenv.targets import config
from tenv.verbs import settings
from tests.support.projects import TINY, Project, write_config


def config_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "tenv" / "config.toml"


def test_the_only_manifest_is_the_default_target(created: Project) -> None:
    assert created.ok("default").out == "tiny\n"
    assert created.ran("run", "--", "sh", "-c", "echo $TENV_TARGET").out == "tiny\n"
    assert created.ok("show").out == created.ok("show", "tiny").out
    created.ok("remove", "tiny")
    assert created.ok("create", "--json").data["target"] == "tiny"


def test_a_default_that_is_no_target_is_named_with_its_file(created: Project) -> None:
    (created.folder / "tenv.toml").write_text('default = "tiyn"\n')
    for words in (("run", "--", "true"), ("packages",), ("create",), ("show",), ("default",)):
        err = created.fails(2, "unknown-target", *words)
        assert f"{created.folder}/tenv.toml: default: there is no target `tiyn`" in err
        assert "hint: `tenv default tiny` sets another one" in err
    created.ok("default", "tiny")
    created.ok("packages")


def test_of_several_manifests_tenv_toml_names_the_default(created: Project) -> None:
    (created.folder / "manifests" / "other.toml").write_text(TINY)
    (created.folder / "tenv.toml").write_text("# ours\nsync = false\n")
    created.ok("create", "other")
    err = created.fails(2, "usage", "default")
    assert "hint: `tenv default other` sets one for the project" in err
    created.ok("default", "tiny")
    assert (created.folder / "tenv.toml").read_text() == '# ours\nsync = false\ndefault = "tiny"\n'
    assert created.ok("default", "--json").data == {"target": "tiny", "origin": f"{created.folder}/tenv.toml"}
    assert created.ok("activate", "--json").data["target"] == "tiny"
    created.fails(2, "unknown-target", "default", "nosuch")
    created.ok("default", "--unset")
    created.fails(2, "usage", "activate")


def test_outside_a_project_there_is_no_default_to_set(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    err = project.fails(2, "usage", "default", "cpu")
    assert "`tenv init` makes this folder a project" in err


def test_config_shows_who_says_so_and_changes_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.ok("config", "--json").data["sync"] == {"value": False, "origin": "default"}
    write_config("# mine\n")
    project.ok("config", "sync", "true")
    assert config_file().read_text() == "# mine\nsync = true\n"
    assert project.ok("config", "sync", "--json").data["sync"] == {"value": True, "origin": str(config_file())}
    project.ok("config", "--project", "sync", "false")
    found = project.ok("config", "--json").data
    assert found["sync"] == {"value": False, "origin": str(project.folder / "tenv.toml")}
    project.ok("config", "mirrors.https://conda.example.org", "https://a.example.org/c, https://b.example.org/c")
    assert project.ok("config", "mirrors", "--json").data["mirrors"]["value"] == {
        "https://conda.example.org": ["https://a.example.org/c", "https://b.example.org/c"]
    }
    said = project.fails(2, "usage", "config", "mirrors.https://conda.example.com", "--unset")
    assert "has no setting `mirrors.https://conda.example.com`" in said
    assert "hint: did you mean `mirrors.https://conda.example.org`?" in said
    project.ok("config", "mirrors.https://conda.example.org", "--unset")
    assert "mirrors" not in config_file().read_text()
    monkeypatch.setenv("TENV_OFFLINE", "1")
    assert project.ok("config", "--json").data["TENV_OFFLINE"] == {"value": True, "origin": "environment"}


@pytest.mark.parametrize(
    "words",
    [
        ("snyc", "true"),
        ("sync", "maybe"),
        ("mirrors", "x"),
        ("mirrors.ftp", "ftp://x"),
        ("snyc",),
        ("distribute-token", "a b"),
    ],
)
def test_a_setting_that_there_is_not_changes_nothing(project: Project, words: tuple[str, ...]) -> None:
    project.fails(2, "usage", "config", *words)
    assert not config_file().exists()
    for mine in (b"# mine\n", b"\xef\xbb\xbf# mine\r\n", b"sync = [\n"):
        write_config("").write_bytes(mine)
        assert "/tenv-" not in project.fails(2, "usage", "config", *words)
        assert config_file().read_bytes() == mine


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("TENV_LOCKED", ("create", "tiny")),
        ("TENV_LOCKED", ("run", "tiny", "--", "true")),
        ("TENV_FROZEN", ("create", "tiny")),
        ("TENV_OFFLINE", ("create", "tiny")),
        ("TENV_OFFLINE", ("lock", "tiny")),
    ],
)
def test_a_variable_that_is_neither_yes_nor_no_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch, variable: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(variable, "foo")
    said = project.fails(2, "usage", *words)
    assert f"{variable} is `foo`" in said
    assert f"`unset {variable}`" in said
    assert "--" not in said


def test_a_mistyped_option_is_not_put_down_to_a_variable(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENV_LOCKED", "1")
    said = project.fails(2, "usage", "create", "tiny", "--lokced")
    assert "--lokced" in said
    assert "TENV_LOCKED" not in said


def test_info_says_what_is_used(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://me:secret@wheels.example.org/simple")
    ended = project.ok("info", "--json")
    data = ended.data
    assert "secret" not in ended.out
    assert data["version"] == __version__
    assert data["index"] == "https://wheels.example.org/simple"
    assert data["folders"]["project"] == str(project.folder)
    assert data["folders"]["environments"] == str(project.folder / ".tenv" / "envs")
    assert data["settings"]["sync"] == {"value": False, "origin": "default"}
    assert data["caches"]["wheels (uv)"] == os.environ["UV_CACHE_DIR"]
    assert "secret" not in project.ok("info").out


def test_info_reports_every_index_in_the_order_in_which_uv_asks_them(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"])
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)

    def index() -> str:
        return str(project.ok("info", "--json").data["index"])

    assert index() == "the default of uv"
    (config / "uv").mkdir(parents=True, exist_ok=True)
    (config / "uv" / "uv.toml").write_text(
        '[[index]]\nurl = "https://a.example/first"\n[[index]]\nurl = "https://b.example/main"\ndefault = true\n'
    )
    assert index() == "https://a.example/first, https://b.example/main"
    monkeypatch.setenv("UV_INDEX", "own=https://me:secret@c.example/own https://d.example")
    assert index() == "https://c.example/own, https://d.example, https://a.example/first, https://b.example/main"
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", "/wheels")
    assert index() == "none, files of /wheels"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("distribute-token", ""), "the value is empty"),
        (("cache-storage", "redis://a\udcff"), "has unprintable characters"),
        (("distribute", "https://a.example", "--project"), "distribute stands in your config.toml alone"),
        (("mirrors.https://a.example", "https://b.example", "--project"), "mirrors stands in your config.toml alone"),
        (("safe-folders", "envs"), "`envs` is not a whole path"),
    ],
)
def test_a_value_that_no_file_can_have_is_refused(project: Project, words: tuple[str, ...], said: str) -> None:
    write_config("# mine\n")
    assert said in project.fails(2, "usage", "config", *words)
    assert config_file().read_text() == "# mine\n"
    assert not (project.folder / "tenv.toml").exists()


def test_a_hidden_login_leaves_the_columns_straight(project: Project) -> None:
    project.ok("config", "cache-storage", "redis://me:a-long-secret-password@h:6379")
    lines = project.ok("config").out.splitlines()
    assert any("redis://h:6379 " in line for line in lines)
    start = lines[0].index("FROM")
    assert all(line[start - 1] == " " != line[start] for line in lines)


def test_config_and_info_list_the_safe_folders(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "etc" / "config.toml"
    file.parent.mkdir()
    file.write_text('safe-folders = ["/srv/root"]\n')
    monkeypatch.setattr(settings, "SYSTEM_FILE", file)
    monkeypatch.setattr(config, "SYSTEM_FILE", file)
    project.ok("config", "safe-folders", "/srv/a, /srv/b")
    monkeypatch.setenv("TENV_SAFE_FOLDERS", "/srv/c")
    found = project.ok("config", "safe-folders", "--json").data["safe-folders"]
    assert found["value"] == ["/srv/a", "/srv/b", "/srv/c", "/srv/root"]
    assert found["origin"] == f"{config_file()}, environment, {file}"
    assert "/srv/root" in project.ok("info").out


def test_mirrors_without_a_url_and_a_near_name_are_named_as_they_are_typed(project: Project) -> None:
    for words in (("mirrors", "https://here.example"), ("mirrors", "--unset")):
        said = project.fails(2, "usage", "config", *words)
        assert "`mirrors` needs the URL that is replaced" in said
        assert "`tenv config mirrors.https://conda.anaconda.org/conda-forge " in said
    said = project.fails(2, "usage", "config", "mirror.https://a.example", "https://b.example")
    assert "did you mean `mirrors.https://a.example`?" in said
    assert "did you mean `sync`?" in project.fails(2, "usage", "config", "sinc", "true")


def test_info_names_another_tenv_that_comes_first(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "bin" / "tenv"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}{os.pathsep}{os.environ['PATH']}")
    ended = project.ok("info")
    assert f"{other} is another program called tenv on PATH" in ended.err


def program(folder: Path) -> Path:
    path = folder / "tenv"
    folder.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def as_module(*words: str) -> str:
    """Return what `python -m tenv` writes to standard error."""
    return subprocess.run([sys.executable, "-m", "tenv", *words], capture_output=True, text=True, check=False).stderr


def test_the_hook_and_the_module_name_another_tenv_only_where_it_comes_first(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = Path(sysconfig.get_path("scripts")) / "tenv", program(tmp_path / "other")
    assert own.is_file(), "the tests run in an environment that tenv is installed into"
    link = tmp_path / "bin" / "tenv"
    link.parent.mkdir()
    link.symlink_to(own)
    said = f"note: {other} is another program called tenv, and first on PATH; `python -m tenv` starts this one\n"
    for first in (own, link):
        monkeypatch.setenv("PATH", f"{first.parent}:{other.parent}:/usr/bin:/bin")
        assert project.ok("hook", "bash").err == ""
        assert "another program" not in as_module("--help")
        assert project.ok("info", "--json").data["others"] == [str(other)]
    monkeypatch.setenv("PATH", f"{other.parent}:{own.parent}:/usr/bin:/bin")
    assert project.ok("hook", "bash").err == said
    assert project.ok("hook", "bash", "--quiet").err == ""
    assert as_module("--help") == said
    assert said in as_module()
    assert as_module("--version") == ""


@pytest.mark.parametrize("words", [("config", "default", "tinny"), ("default", "tinny")])
def test_a_default_that_is_no_target_is_not_written(project: Project, words: tuple[str, ...]) -> None:
    said = project.fails(2, "unknown-target", *words)
    assert "there is no target `tinny`" in said
    assert "did you mean `tiny`?" in said
    assert not (project.folder / "tenv.toml").exists()
    project.ok("config", "default", "tiny")
    assert 'default = "tiny"' in (project.folder / "tenv.toml").read_text()
    project.fails(2, "unknown-target", *words)
    assert 'default = "tiny"' in (project.folder / "tenv.toml").read_text()
