"""Servers whose certificate an organization signs itself: one setting opens wheels, archives and conda."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenv.core.progress import Silent
from tenv.locks.lock_file import read_lock
from tenv.project.context import Context
from tenv.sources.wheels.urls import find_wheels
from tests.support.archive_server import CUSPARSELT, NVIDIA, ask
from tests.support.authority import Authority
from tests.support.channels import Channels, package
from tests.support.conda import Channel
from tests.support.conda_project import Conda
from tests.support.fakes import Index
from tests.support.projects import Project, write_config
from tests.support.rarely import pairs_fast
from tests.support.redist import Files, Server

NAMED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
KINDS = ("wheels", "archives", "conda")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def secret(project: Project, authority: Authority, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """The project, for which all servers are behind certificates of an unknown authority.

    Its index is pip's, so that pip's settings count.
    """
    files = Files()
    files.add("cunovel", "7.1.0", "libcunovel", "7.1.0.3", CUSPARSELT, cuda="cuda12")
    services = Index(wheels), Server(files.data), Channels()
    for service in services:
        service.encrypt(authority.context())
    services[2].add("line", package("tool", "1.0"))
    with services[0] as index, services[1] as archives, services[2] as channels:
        mirrors = {NVIDIA: (archives.url,), **channels.mirrors()}
        write_config("[mirrors]\n" + "".join(f'"{url}" = {json.dumps(list(to))}\n' for url, to in mirrors.items()))
        monkeypatch.delenv("UV_DEFAULT_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        project.index = index
        yield project


def want(project: Project, kind: str) -> None:
    """Let the target ask for something of a kind."""
    if kind == "archives":
        ask(project, 'cunovel = "7.1.0"')
    elif kind == "conda":
        project.manifest.write_text('platforms = ["linux-64"]\nchannels = ["line"]\n[dependencies]\ntool = "*"\n')


def name(authority: Authority, setting: str, folder: Path) -> str:
    """Return the value of a setting that names the authority."""
    if setting != "SSL_CERT_DIR":
        return str(authority.file)
    (folder / "certificates").mkdir()
    shutil.copy(authority.file, folder / "certificates" / "any-name.crt")
    return str(folder / "certificates")


@pytest.mark.parametrize(("setting", "kind"), pairs_fast(NAMED, KINDS))
def test_a_setting_that_names_the_authority_opens_every_server(
    secret: Project, authority: Authority, setting: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    want(secret, kind)
    monkeypatch.setenv(setting, name(authority, setting, tmp_path))
    secret.ok("lock", "tiny")
    lock = read_lock(secret.lock, "tiny")
    if kind == "wheels":
        assert {wheel.size for rows in lock.wheels.values() for wheel in rows}.isdisjoint({None})
    assert lock.wheels or lock.archives or lock.conda["linux-64"]
    assert os.environ.get("SSL_CERT_FILE", "") == (str(authority.file) if setting == "SSL_CERT_FILE" else "")


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_setting_every_server_is_refused_in_one_sentence(
    secret: Project, kind: str, impatient: None
) -> None:
    want(secret, kind)
    error = secret.fails(6, "certificate", "lock", "tiny")
    assert "the certificate of https://127.0.0.1:" in error
    assert "is not signed by a trusted authority\n" in error
    assert "SSL_CERT_FILE=/path/to/authority.pem" in error
    assert not secret.lock.exists()


@pytest.mark.parametrize(("setting", "kind"), pairs_fast(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), KINDS))
def test_a_setting_that_names_another_authority_is_named_itself(
    secret: Project, kind: str, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    want(secret, kind)
    other = Authority(tmp_path / "other").file
    monkeypatch.setenv(setting, str(other))
    assert f"not signed by an authority in {setting}: {other}\n" in secret.fails(6, "certificate", "lock", "tiny")
    monkeypatch.setenv(setting, str(tmp_path / "nowhere.pem"))
    error = secret.fails(6, "certificate", "lock", "tiny")
    assert f"{setting} names {tmp_path / 'nowhere.pem'}, which does not exist: " in error


@pytest.mark.parametrize("kind", ["wheels", "archives"])
def test_what_is_locked_is_fetched_with_the_same_setting(
    secret: Project, authority: Authority, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    want(secret, kind)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))  # which neither uv nor rattler reads of itself
    secret.ok("lock", "tiny")
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    shutil.rmtree(os.environ["UV_CACHE_DIR"])
    secret.fails(6, "certificate", "create", "tiny", "--no-check")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
    secret.ok("create", "tiny", "--no-check")
    assert secret.state()["state"] == "ready"


def test_conda_packages_are_fetched_with_the_same_setting(
    project: Project, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    channel = Channel(tmp_path / "channel")
    channel.encrypt(authority.context())
    channel.root = channel.root.replace("http:", "https:")
    with channel:
        made = Conda(project, channel)
        made.make("tool", files={"bin/tool": "x"})
        made.lock("tool")
        error = made.fails(6, "certificate")
        assert "is not signed by a trusted authority\n" in error
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
        made.create()
    assert made.files() == {"bin/tool"}


def test_what_wheels_require_is_read_with_the_same_setting(
    secret: Project, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    want(secret, "wheels")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
    secret.ok("lock", "tiny")
    wheels = read_lock(secret.lock, "tiny").wheels
    found, _ = find_wheels(Context().uv(), wheels, None, Silent(), metadata=True)
    assert found
    assert all(wheel.known and wheel.url.startswith("https://127.0.0.1:") for wheel in found.values())
    assert ("beta>=1",) in {wheel.requires_dist[:1] for wheel in found.values()}


def test_a_certificate_for_another_name_is_refused_with_the_reason(
    project: Project, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server()
    server.encrypt(authority.context("elsewhere.example"))
    with server:
        write_config(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        ask(project, 'cunovel = "7.1.0"')
        error = project.fails(6, "certificate", "lock", "tiny")
    assert f"the certificate of {server.url} is not valid: IP address mismatch" in error
