"""The indexes that a user has set up, for pip or for uv, are those that wheels come from."""

import os
from pathlib import Path

import pytest

from tenv.core.certificates import Authorities
from tenv.core.errors import UsageError
from tenv.sources.wheels.index_settings import pip_settings, uv_settings
from tenv.targets.config import Settings
from tests.support.fakes import Index
from tests.support.projects import Project

MIRROR = "https://mirror.example/simple"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def base(tmp_path: Path) -> dict[str, str]:
    """The variables of a user without any setting."""
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CONFIG_DIRS": str(tmp_path / "system")}


def test_pips_index_is_handed_to_uv(base: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "config" / "pip" / "pip.conf", f"[global]\nindex-url = {MIRROR}\n")
    assert uv_settings(base, tmp_path).environment["UV_DEFAULT_INDEX"] == MIRROR


@pytest.mark.parametrize("place", ["system/pip/pip.conf", ".pip/pip.conf", "config/pip/pip.conf", "named.conf"])
def test_every_file_of_pip_counts(base: dict[str, str], tmp_path: Path, place: str) -> None:
    file = write(tmp_path / place, f"[global]\nindex-url = {MIRROR}\n")
    extra = {"PIP_CONFIG_FILE": str(file)} if place == "named.conf" else {}
    assert pip_settings({**base, **extra}, tmp_path)["index-url"] == MIRROR


def test_the_nearer_file_wins_and_the_environment_wins_over_files(base: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "system" / "pip" / "pip.conf", "[global]\nindex-url = https://system.example\ntimeout = 3\n")
    write(tmp_path / ".pip" / "pip.conf", "[global]\nindex-url = https://old.example\n")
    write(tmp_path / "config" / "pip" / "pip.conf", "[install]\nindex-url = https://user.example\n")
    found = pip_settings(base, tmp_path)
    assert (found["index-url"], found["timeout"]) == ("https://user.example", "3")
    named = write(tmp_path / "named.conf", "[global]\nindex-url = https://named.example\n")
    base["PIP_CONFIG_FILE"] = str(named)
    assert pip_settings(base, tmp_path)["index-url"] == "https://named.example"
    base["PIP_INDEX_URL"] = MIRROR
    assert pip_settings(base, tmp_path)["index-url"] == MIRROR


def test_the_null_device_as_file_turns_all_files_off(base: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "config" / "pip" / "pip.conf", f"[global]\nindex-url = {MIRROR}\n")
    base["PIP_CONFIG_FILE"] = os.devnull
    assert pip_settings(base, tmp_path) == {"config-file": os.devnull}


@pytest.mark.parametrize("text", ["index-url = x\n", "[global\n", "[global]\n%%\n", "\udcff"])
def test_a_broken_file_is_passed_over(base: dict[str, str], tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "config" / "pip" / "pip.conf", "")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert "index-url" not in pip_settings(base, tmp_path)


@pytest.mark.parametrize(
    ("line", "variables"),
    [
        (f"index-url = {MIRROR}", {"UV_DEFAULT_INDEX": MIRROR}),
        (
            "extra-index-url =\n  https://a.example\n  https://b.example",
            {"UV_INDEX": "https://a.example https://b.example"},
        ),
        ("find-links = /wheels https://c.example/x", {"UV_FIND_LINKS": "/wheels,https://c.example/x"}),
    ],
)
def test_what_pip_calls_otherwise_is_translated(
    base: dict[str, str], tmp_path: Path, line: str, variables: dict[str, str]
) -> None:
    base["PIP_CONFIG_FILE"] = str(write(tmp_path / "named.conf", f"[global]\n{line}\n"))
    found = uv_settings(base, tmp_path).environment
    assert found.items() >= variables.items()
    assert found["UV_INDEX_STRATEGY"] == "unsafe-best-match"


@pytest.mark.parametrize(
    ("line", "variables"),
    [
        ("no-index = true", {"UV_NO_INDEX": "1"}),
        ("no-index = 0", {}),
        ("trusted-host = a.example b.example:8443", {"UV_INSECURE_HOST": "a.example b.example:8443"}),
        ("keyring-provider = subprocess", {"UV_KEYRING_PROVIDER": "subprocess"}),
        ("keyring-provider = disabled", {}),
        ("proxy = http://proxy.example:3128", {"ALL_PROXY": "http://proxy.example:3128"}),
        ("timeout = 7", {}),
    ],
)
def test_settings_that_name_no_index_are_handed_on_too(
    base: dict[str, str], tmp_path: Path, line: str, variables: dict[str, str]
) -> None:
    base["PIP_CONFIG_FILE"] = str(write(tmp_path / "named.conf", f"[global]\n{line}\n"))
    without = uv_settings({**base, "PIP_CONFIG_FILE": str(write(tmp_path / "none.conf", ""))}, tmp_path).environment
    own = dict(uv_settings(base, tmp_path).environment.items() - without.items())
    assert own == {**variables, "PIP_CONFIG_FILE": base["PIP_CONFIG_FILE"]}


def test_pips_certificate_and_proxy_count_for_tenvs_own_requests_too(base: dict[str, str], tmp_path: Path) -> None:
    base |= {"PIP_CERT": "/etc/own.pem", "PIP_PROXY": "http://proxy.example:3128"}
    http = uv_settings(base, tmp_path).http
    assert http.authorities == Authorities("pip's cert", files=(Path("/etc/own.pem"),), beside=True)
    assert http.proxies == {"all": "http://proxy.example:3128"}
    base["UV_DEFAULT_INDEX"] = MIRROR  # then pip's settings are of another index
    http = uv_settings(base, tmp_path).http
    assert (http.authorities, http.proxies) == (Authorities(), {})


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS", "UV_NO_INDEX"])
def test_uvs_own_variables_win_over_pip(base: dict[str, str], tmp_path: Path, name: str) -> None:
    base |= {"PIP_INDEX_URL": MIRROR, name: "https://own.example"}
    found = uv_settings(base, tmp_path).environment
    assert found[name] == "https://own.example"
    assert "UV_INDEX_STRATEGY" not in found
    assert found.get("UV_DEFAULT_INDEX") != MIRROR


@pytest.mark.parametrize("place", ["config/uv/uv.toml", "system/uv/uv.toml", "named.toml"])
@pytest.mark.parametrize("text", ['index-url = "x"', '[[index]]\nurl = "x"', '[pip]\nfind-links = ["x"]'])
def test_uvs_own_files_win_over_pip(base: dict[str, str], tmp_path: Path, place: str, text: str) -> None:
    file = write(tmp_path / place, text)
    base |= {"PIP_INDEX_URL": MIRROR} | ({"UV_CONFIG_FILE": str(file)} if place == "named.toml" else {})
    assert "UV_DEFAULT_INDEX" not in uv_settings(base, tmp_path).environment


def test_a_file_of_uv_without_an_index_leaves_pips(base: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path / "config" / "uv" / "uv.toml", "native-tls = true\n")
    base["PIP_INDEX_URL"] = MIRROR
    found = uv_settings(base, tmp_path)
    assert found.environment["UV_DEFAULT_INDEX"] == MIRROR
    assert found.configuration == {"native-tls": True}


def test_a_broken_file_of_uv_is_told(base: dict[str, str], tmp_path: Path) -> None:
    path = write(tmp_path / "config" / "uv" / "uv.toml", "not toml [")
    with pytest.raises(UsageError, match=rf"{path}: not TOML"):
        uv_settings(base, tmp_path)


def test_a_file_of_uv_that_is_named_but_not_there_is_told(base: dict[str, str], tmp_path: Path) -> None:
    base["UV_CONFIG_FILE"] = str(tmp_path / "nowhere.toml")
    with pytest.raises(UsageError, match=r"nowhere.toml: can't be read"):
        uv_settings(base, tmp_path)


def test_of_uvs_files_only_what_says_where_files_come_from_counts(base: dict[str, str], tmp_path: Path) -> None:
    text = 'exclude-newer = "2020-01-01"\nresolution = "lowest"\nlink-mode = "copy"\n[pip]\nfind-links = ["wheels"]\n'
    write(tmp_path / "config" / "uv" / "uv.toml", text)
    write(tmp_path / "system" / "uv" / "uv.toml", 'link-mode = "symlink"\noffline = true\n')
    found = uv_settings(base, tmp_path).configuration
    links = str(tmp_path / "config" / "uv" / "wheels")
    assert found == {"link-mode": "copy", "offline": True, "find-links": [links]}
    assert uv_settings({**base, "UV_NO_CONFIG": "1"}, tmp_path).configuration == {}


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_uv_may_have_been_told_to_stay_off_the_network(
    base: dict[str, str], tmp_path: Path, value: str, offline: bool
) -> None:
    assert uv_settings({**base, "UV_OFFLINE": value}, tmp_path).offline is offline


def test_what_would_change_the_choice_is_not_handed_on(base: dict[str, str], tmp_path: Path) -> None:
    dropped = {
        **{f"UV_{name}": "x" for name in ("CONSTRAINT", "OVERRIDE", "RESOLUTION", "PRERELEASE", "EXCLUDE_NEWER")},
        **{f"UV_{name}": "x" for name in ("PYTHON", "SYSTEM_PYTHON", "NO_BINARY", "NO_VERIFY_HASHES", "TORCH_BACKEND")},
        "VIRTUAL_ENV": "/somewhere",
        "PYTHONPATH": "/somewhere",
        "CONDA_PREFIX": "/somewhere",
    }
    kept = {"UV_CACHE_DIR": "/cache", "UV_HTTP_TIMEOUT": "9", "UV_LINK_MODE": "copy", "PATH": "/bin", "LANG": "C"}
    found = uv_settings({**base, **dropped, **kept}, tmp_path).environment
    assert found.items() >= kept.items()
    assert not found.keys() & dropped.keys()


# With uv itself.


def test_wheels_come_from_pips_index_where_uv_names_none(
    locked: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    text = f"[global]\nindex-url = {locked.index.url}\nextra-index-url =\nfind-links =\n"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(write(tmp_path / "pip.conf", text)))
    locked.ok("create", "tiny")
    assert any("alpha" in path for path in locked.index.asked)


def test_uvs_own_file_is_obeyed_by_uv(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    text = f'exclude-newer = "2020-01-01"\n[[index]]\nurl = "{locked.index.url}"\ndefault = true\n'
    write(Path(os.environ["XDG_CONFIG_HOME"]) / "uv" / "uv.toml", text)
    locked.ok("create", "tiny")
    assert any("alpha" in path for path in locked.index.asked)


def test_uvs_index_wins_over_pips(
    locked: Project, wheels: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Index(wheels) as other:
        monkeypatch.setenv("PIP_CONFIG_FILE", str(write(tmp_path / "pip.conf", f"[global]\nindex-url = {other.url}\n")))
        locked.ok("create", "tiny")
        assert other.asked == []
    assert any("alpha" in path for path in locked.index.asked)


def test_without_any_index_a_folder_of_wheels_does(
    project: Project, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    project.ok("create", "tiny")
    assert set(project.state()["packages"]) == {"alpha", "beta", "native"}
    assert project.index.asked == []


def test_a_lock_made_from_a_folder_is_the_one_made_from_an_index(
    project: Project, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.ok("lock", "tiny")
    first = project.lock.read_bytes()
    project.lock.unlink()
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    project.ok("lock", "tiny")
    assert project.lock.read_bytes() == first


def test_mirrors_stand_in_the_place_of_every_index(base: dict[str, str], tmp_path: Path) -> None:
    user = Settings({"https://a.example": (f"{MIRROR}/a",), "https://b.example/simple/": ("file:///b",)})
    write(
        tmp_path / "config" / "uv" / "uv.toml",
        'index-url = "https://a.example/x"\nextra-index-url = ["https://b.example/simple", "https://c.example"]\n'
        '[[index]]\nname = "one"\nurl = "https://b.example/simple"\n',
    )
    base["UV_INDEX"] = "two=https://a.example/x https://c.example"
    base["UV_FIND_LINKS"] = "https://a.example/y.html,/here"
    found = uv_settings(base, tmp_path, user)
    assert found.environment["UV_INDEX"] == f"two={MIRROR}/a/x https://c.example"
    assert found.environment["UV_FIND_LINKS"] == f"{MIRROR}/a/y.html,/here"
    assert found.configuration["index-url"] == f"{MIRROR}/a/x"
    assert found.configuration["extra-index-url"] == ["file:///b", "https://c.example"]
    assert found.configuration["index"] == [{"name": "one", "url": "file:///b"}]
