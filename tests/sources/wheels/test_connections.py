"""Connections by the settings of uv and pip: proxies, authorities, and the logins that uv takes out of URLs."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from tenv.core.http_settings import origin_of
from tenv.locks.lock_file import read_lock
from tenv.sources.wheels.connections import connections, index_urls
from tests.support.each import each
from tests.support.projects import Project

INDEX = "https://index.example/simple"


@each(
    "environment, configuration, found",
    [
        ({"UV_DEFAULT_INDEX": INDEX}, {}, [("", INDEX)]),
        ({"UV_INDEX": f"own={INDEX} https://b.example"}, {}, [("own", INDEX), ("", "https://b.example")]),
        ({"UV_FIND_LINKS": f"/wheels,{INDEX}?a=b"}, {}, [("", f"{INDEX}?a=b")]),
        ({}, {"index-url": INDEX, "extra-index-url": ["https://b.example"]}, [("", INDEX), ("", "https://b.example")]),
        ({}, {"index": [{"name": "own", "url": INDEX}, {"url": "/folder"}, "nonsense"]}, [("own", INDEX)]),
        ({"UV_DEFAULT_INDEX": "file:///wheels"}, {}, []),
    ],
)
def test_every_index_that_uv_is_given_is_found(
    environment: dict[str, str], configuration: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert list(index_urls(environment, configuration)) == found


@each(
    "environment, configuration",
    [
        ({"UV_DEFAULT_INDEX": "https://me:se%40cret@index.example/simple"}, {}),
        ({"UV_INDEX": f"my-own={INDEX}", "UV_INDEX_MY_OWN_USERNAME": "me", "UV_INDEX_MY_OWN_PASSWORD": "se@cret"}, {}),
        ({}, {"index": [{"name": "own", "url": "https://me:se%40cret@index.example/simple"}]}),
    ],
)
def test_the_login_of_an_index_counts_for_all_that_its_server_has(
    environment: dict[str, str], configuration: dict[str, Any]
) -> None:
    assert connections(environment, configuration, {}).logins == {origin_of(INDEX): ("me", "se@cret")}


def test_a_user_without_a_password_is_no_login() -> None:
    assert connections({"UV_DEFAULT_INDEX": "https://me@index.example/simple"}, {}, {}).logins == {}


def test_uvs_proxies_win_over_pips_which_is_for_all() -> None:
    found = connections({}, {"https-proxy": "http://a", "no-proxy": ["b", "c"]}, {"proxy": "http://d"})
    assert found.proxies == {"all": "http://d", "https": "http://a"}
    assert found.no_proxy == "b,c"


@each(
    "environment, configuration, found",
    [
        ({"UV_INSECURE_HOST": "a b:8443 https://c"}, {}, ("a", "b:8443", "c")),
        ({}, {"allow-insecure-host": ["a", "b"]}, ("a", "b")),
        ({}, {"allow-insecure-host": "a"}, ("a",)),
    ],
)
def test_hosts_whose_certificate_is_not_verified(
    environment: dict[str, str], configuration: dict[str, Any], found: tuple[str, ...]
) -> None:
    assert connections(environment, configuration, {}).insecure == found


@each(
    "environment, configuration, setting",
    [
        ({"UV_SYSTEM_CERTS": "true"}, {}, "UV_SYSTEM_CERTS"),
        ({"UV_NATIVE_TLS": "1"}, {}, "UV_NATIVE_TLS"),
        ({"UV_SYSTEM_CERTS": "0"}, {"system-certs": True}, ""),
        ({}, {"system-certs": True}, "system-certs of uv.toml"),
        ({}, {"native-tls": True}, "native-tls of uv.toml"),
        ({}, {"native-tls": False}, ""),
        ({"UV_SYSTEM_CERTS": "1", "SSL_CERT_FILE": "/a.pem"}, {}, "SSL_CERT_FILE"),
    ],
)
def test_the_authorities_of_the_system_are_taken_when_uv_is_to_take_them(
    environment: dict[str, str], configuration: dict[str, Any], setting: str
) -> None:
    found = connections(environment, configuration, {}).authorities
    assert (found.setting, found.system) == (setting, setting not in ("", "SSL_CERT_FILE"))


# With uv itself: its index asks who is there.


@pytest.fixture
def guarded(project: Project) -> Project:
    """The project, for this platform alone, whose index serves nobody but `me`."""
    project.index.login = "me:secret"
    return project


def by_url(url: str, _: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", url.replace("://", "://me:secret@"))


def by_variables(url: str, _: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"own={url}")
    monkeypatch.setenv("UV_INDEX_OWN_USERNAME", "me")
    monkeypatch.setenv("UV_INDEX_OWN_PASSWORD", "secret")


def by_netrc(_: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(folder / "netrc"))


def by_keyring(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "bin" / "keyring"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncase "$*" in *" me") echo secret ;; *creds*) printf "me\\nsecret\\n" ;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_KEYRING_PROVIDER", "subprocess")
    monkeypatch.setenv("UV_DEFAULT_INDEX", url.replace("://", "://me@"))


def by_keyring_of_pip(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_keyring(url, folder, monkeypatch)
    monkeypatch.setenv("PIP_INDEX_URL", os.environ["UV_DEFAULT_INDEX"])
    monkeypatch.setenv("PIP_KEYRING_PROVIDER", "import")
    monkeypatch.delenv("UV_KEYRING_PROVIDER")
    monkeypatch.delenv("UV_DEFAULT_INDEX")


def by_store(url: str, _: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [find_uv_bin(), "auth", "login", url, "--username", "me", "--password", "secret"]
    subprocess.run(words, check=True, capture_output=True)
    monkeypatch.setenv("UV_DEFAULT_INDEX", url.replace("://", "://me@"))


@pytest.mark.parametrize(
    "way", [by_url, by_variables, by_netrc, by_keyring, by_keyring_of_pip, by_store], ids=lambda way: way.__name__
)
def test_sizes_are_asked_for_with_the_login_that_uv_has(
    guarded: Project, way: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way(guarded.index.url, tmp_path, monkeypatch)
    guarded.ok("lock", "tiny")
    sizes = [wheel.size for rows in read_lock(guarded.lock, "tiny").wheels.values() for wheel in rows]
    assert sizes
    assert None not in sizes
    assert "secret" not in guarded.lock.read_text()


def test_without_a_login_the_index_can_not_be_asked(guarded: Project) -> None:
    assert "401" in guarded.fails(6, "network", "lock", "tiny")
