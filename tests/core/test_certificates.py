"""The authorities by which servers are verified: which setting names them, and what is said of a refusal."""

import os
import ssl
from pathlib import Path

import pytest

from tenv.core.certificates import Authorities, find_authorities
from tenv.core.http import Http
from tenv.core.http_settings import HttpSettings
from tests.support.authority import Authority
from tests.support.each import each
from tests.support.redist import Server


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


SETTINGS = {
    "SSL_CERT_FILE": "/1.pem",
    "SSL_CERT_DIR": "/2",
    "REQUESTS_CA_BUNDLE": "/3.pem",
    "CURL_CA_BUNDLE": "/4.pem",
}


@each(
    "left_out, setting",
    [
        (0, "SSL_CERT_FILE and SSL_CERT_DIR"),
        (1, "SSL_CERT_DIR"),
        (2, "REQUESTS_CA_BUNDLE"),
        (3, "CURL_CA_BUNDLE"),
        (4, "UV_SYSTEM_CERTS"),
    ],
)
def test_the_first_setting_counts(left_out: int, setting: str) -> None:
    environment = dict(list(SETTINGS.items())[left_out:])
    found = find_authorities(environment, system="UV_SYSTEM_CERTS", pip_cert="/5.pem")
    assert found.setting == setting
    assert [str(path) for path in (*found.files, *found.folders)] == [
        SETTINGS[key] for key in setting.split(" and ") if key in SETTINGS
    ]


def test_an_empty_setting_is_none() -> None:
    assert find_authorities(dict.fromkeys(SETTINGS, "")) == Authorities()
    assert find_authorities({}, pip_cert="/5.pem") == Authorities("pip's cert", files=(Path("/5.pem"),), beside=True)


def test_a_bundle_may_be_a_folder_and_folders_may_be_several(tmp_path: Path) -> None:
    assert find_authorities({"REQUESTS_CA_BUNDLE": str(tmp_path)}).folders == (tmp_path,)
    several = find_authorities({"SSL_CERT_DIR": os.pathsep.join(["/a", "/b"])})
    assert several.folders == (Path("/a"), Path("/b"))
    assert several.variables(tmp_path) == {"SSL_CERT_DIR": os.pathsep.join(["/a", "/b"])}


def test_a_relative_path_means_the_same_in_the_folder_that_uv_is_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_authorities({"SSL_CERT_FILE": "own.pem"}).variables(tmp_path) == {
        "SSL_CERT_FILE": str(tmp_path / "own.pem")
    }


def test_what_counts_beside_the_usual_authorities_is_handed_on_with_them(authority: Authority, tmp_path: Path) -> None:
    beside = Authorities("pip's cert", files=(authority.file,), beside=True)
    variables = beside.variables(tmp_path)
    assert len(ssl.create_default_context(cafile=variables["SSL_CERT_FILE"]).get_ca_certs()) > 50
    assert authority.file.read_bytes() in Path(variables["SSL_CERT_FILE"]).read_bytes()
    assert Authorities().variables(tmp_path) == {}
    assert Authorities("UV_SYSTEM_CERTS", system=True).variables(tmp_path) == {}


def test_the_authorities_of_the_system_are_asked_when_uv_is_to_ask_them(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server({"/file": b"data"})
    server.encrypt(authority.context())
    paths = ssl.get_default_verify_paths()._replace(cafile=str(authority.file))
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    monkeypatch.setenv(paths.openssl_cafile_env, str(authority.file))  # where OpenSSL itself looks for the system's
    with server, Http(HttpSettings(Authorities("UV_SYSTEM_CERTS", system=True))).get(f"{server.url}/file") as answer:
        assert answer.content() == b"data"


def test_files_without_a_certificate_add_nothing(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "own.crt").write_bytes(authority.file.read_bytes())
    (tmp_path / "README").write_text("certificates of this organization\n")
    (tmp_path / "gone.pem").symlink_to(tmp_path / "nowhere")
    found = find_authorities({"SSL_CERT_DIR": f"{tmp_path}{os.pathsep}/nowhere"})
    assert len(found.context().get_ca_certs()) == 1


REFUSALS = [
    (  # OpenSSL
        "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate (_ssl.c:1)",
        "the certificate of https://h:8443 is not signed by a trusted authority",
    ),
    (
        "certificate verify failed: self-signed certificate in certificate chain (_ssl.c:1006)",
        "the certificate of https://h:8443 is not signed by a trusted authority",
    ),
    (
        "certificate verify failed: certificate has expired (_ssl.c:1006)",
        "the certificate of https://h:8443 is not valid: certificate has expired",
    ),
    (
        "certificate verify failed: Hostname mismatch, certificate is not valid for 'h'. (_ssl.c:1006)",
        "the certificate of https://h:8443 is not valid: Hostname mismatch, certificate is not valid for 'h'",
    ),
    (  # rustls, by way of rattler
        "error sending request for url (https://me:x@h:8443/a)\nCaused by: client error (Connect)\n"
        "Caused by: invalid peer certificate: UnknownIssuer",
        "the certificate of https://h:8443 is not signed by a trusted authority",
    ),
    (  # and of uv, which breaks lines
        "Failed to fetch: `https://h:8443/simple/`\n  cause: error sending request\n  cause: invalid peer\n"
        "      certificate: certificate expired: verification time 2026\n  hint: something",
        "the certificate of https://h:8443 is not valid: certificate expired: verification time 2026",
    ),
]


@each("said, message", REFUSALS)
def test_a_refusal_is_one_sentence_in_the_same_words(said: str, message: str) -> None:
    error = Authorities().refusal(said, "" if "https" in said else "https://me:x@h:8443/file")
    assert error is not None
    assert error.message == message
    assert error.hint


@each("said", ["", "Connection refused", "[SSL: WRONG_VERSION_NUMBER] wrong version number"])
def test_other_failures_are_no_refusal(said: str) -> None:
    assert Authorities().refusal(said, "https://h") is None


def test_a_setting_that_names_nothing_is_what_the_sentence_is_about(tmp_path: Path) -> None:
    said = "invalid peer certificate: UnknownIssuer"
    named = Authorities("SSL_CERT_FILE", files=(tmp_path / "nowhere.pem",))
    for error in (named.refusal(said, "https://h"), named.nothing_found()):
        assert error is not None
        assert error.message == (
            f"SSL_CERT_FILE names {tmp_path}/nowhere.pem, which does not exist: no server can be verified"
        )
    of_the_system = Authorities("UV_SYSTEM_CERTS", system=True).refusal(said, "https://h")
    assert of_the_system is not None
    assert of_the_system.message.endswith("an authority in UV_SYSTEM_CERTS: those of the operating system")
