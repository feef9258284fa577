"""Logins, proxies with a login, and a private authority: what opens the servers of each kind, and what does not.

Each way is tried with the right secret, a wrong one, and looked for in all that is written and printed.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.archive_server import CUSPARSELT, NVIDIA, ask
from tests.support.authority import Authority
from tests.support.conda import index_channel, make_conda
from tests.support.fakes import Index
from tests.support.gates import Gate, Proxy, basic
from tests.support.projects import Project, call, write_config
from tests.support.redist import Files
from tests.support.source_trees import commit_all, git, write_tree

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("impatient")]

RIGHT, WRONG = "s3cret-right", "s3cret-wrong"
KINDS = ("wheels", "conda", "archives", "git")


@dataclass
class World:
    """A project, the server of one kind of files, and how it is asked.

    Attributes:
        project: The project, whose target asks for a file of that kind.
        server: The server.
        folder: For the files of a login.
        monkeypatch: For variables.
    """

    project: Project
    server: Index | Gate
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def netrc(self, secret: str) -> None:
        """Write the login where netrc has it."""
        file = self.folder / "netrc"
        file.write_text(f"machine 127.0.0.1 login me password {secret}\n")
        file.chmod(0o600)
        self.monkeypatch.setenv("NETRC", str(file))
        shutil.copy(file, Path(os.environ["HOME"]) / ".netrc")  # git reads no other place

    def rattler(self, secret: str, **login: object) -> None:
        """Write the login as `pixi auth login` does."""
        (self.folder / "logins.json").write_text(json.dumps({"127.0.0.1": login}).replace("SECRET", secret))
        self.monkeypatch.setenv("RATTLER_AUTH_FILE", str(self.folder / "logins.json"))

    def helper(self, secret: str) -> None:
        """Give git a program that knows the login."""
        program = f"!f() {{ echo username=me; echo password={secret}; }}; f"
        (Path(os.environ["HOME"]) / ".gitconfig").write_text(f'[credential]\n\thelper = "{program}"\n')

    def in_url(self, secret: str) -> None:
        """Write the login into the address that the user's own settings have."""
        address = self.server.url.replace("://", f"://me:{secret}@")
        if isinstance(self.server, Index):
            self.monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        else:
            write_config(f'[mirrors]\n"{NVIDIA}" = ["{address}"]\n')

    def keyring(self, secret: str) -> None:
        """Give uv a keyring that knows the password."""
        program = self.folder / "bin" / "keyring"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\ncase "$*" in *creds*) printf "me\\n{secret}\\n" ;; *" me") echo {secret} ;; esac\n'
        )
        program.chmod(0o755)
        self.monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        self.monkeypatch.setenv("UV_KEYRING_PROVIDER", "subprocess")
        self.monkeypatch.setenv("UV_DEFAULT_INDEX", self.server.url.replace("://", "://me@"))

    def variables(self, secret: str) -> None:
        """Write the login into uv's variables."""
        self.monkeypatch.setenv("UV_DEFAULT_INDEX", f"own={self.server.url}")
        self.monkeypatch.setenv("UV_INDEX_OWN_USERNAME", "me")
        self.monkeypatch.setenv("UV_INDEX_OWN_PASSWORD", secret)

    def make(self) -> str:
        """Lock and create; return all that was printed, and an empty text before it where all went well."""
        shown = ""
        for words in (("lock", "tiny"), ("create", "tiny", "--no-check")):
            ended = call(*words, "--json")
            shown += ended.out + ended.err
            if ended.status:
                assert ended.status in (6, 8), shown  # the network; an environment as it was
                assert shown.count("error[") == 1, shown
                return shown
        assert self.project.state()["state"] == "ready"
        return ""

    def written(self) -> str:
        """Return the text of all files of the project that tenv wrote."""
        files = [path for path in self.project.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        return "\n".join(path.read_bytes().decode("latin-1") for path in files)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def world(
    request: pytest.FixtureRequest,
    project: Project,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """The project with a target of the kind that the test is about, and its server, which is not running yet."""
    kind, encrypted = request.param
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    server = _server(kind, project, tmp_path)
    if encrypted:
        server.encrypt(authority.context())
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    with server:
        if kind == "wheels":
            monkeypatch.setenv("UV_DEFAULT_INDEX", server.url)
        elif kind == "conda":
            project.manifest.write_text(
                f'platforms = ["linux-64"]\nchannels = ["{server.url}"]\n[dependencies]\ntool = "*"\n'
            )
        elif kind == "archives":
            write_config(f'[mirrors]\n"{NVIDIA}" = ["{server.url}"]\n')
            ask(project, 'cunovel = "7.1.0"')
        else:
            project.edit('native = "*"\n', "")
            project.edit('alpha  = ">=1"', f'vision = {{ git = "{server.url}/vision.git", branch = "main" }}')
        yield World(project, server, tmp_path, monkeypatch)


def _server(kind: str, project: Project, folder: Path) -> Index | Gate:
    if kind == "wheels":
        return Index(project.index.folder)
    if kind == "conda":
        make_conda(folder / "channel", "tool", "1", files={"bin/tool": "x"})
        index_channel(folder / "channel")
        return Gate(folder / "channel")
    if kind == "archives":
        files = Files()
        files.add("cunovel", "7.1.0", "libcunovel", "7.1.0.3", CUSPARSELT, cuda="cuda12")
        return Gate(files.data)
    tree = write_tree(folder / "vision")
    commit_all(tree, "first")
    (folder / "served").mkdir()
    git(folder, "clone", "-q", "--bare", str(tree), "served/vision.git")
    git(folder / "served" / "vision.git", "update-server-info")  # plain files, as the oldest servers have them
    return Gate(folder / "served")


def close(server: Index | Gate, secret: str, header: str) -> None:
    """Let a server know nobody but one."""
    if isinstance(server, Index):
        server.login = f"me:{secret}"
    else:
        server.expected = header or basic(f"me:{secret}")


WAYS: list[tuple[str, str, Callable[[World, str], None], str]] = [
    ("wheels", "url", World.in_url, ""),
    ("wheels", "variables", World.variables, ""),
    ("wheels", "netrc", World.netrc, ""),
    ("wheels", "keyring", World.keyring, ""),
    (
        *("conda", "basic"),
        lambda world, secret: world.rattler(secret, BasicHTTP={"username": "me", "password": "SECRET"}),
        "",
    ),
    ("conda", "bearer", lambda world, secret: world.rattler(secret, BearerToken="SECRET"), f"Bearer {RIGHT}"),
    ("conda", "netrc", World.netrc, ""),
    ("archives", "url", World.in_url, ""),
    ("archives", "netrc", World.netrc, ""),
    ("git", "netrc", World.netrc, ""),
    ("git", "helper", World.helper, ""),
]


@pytest.mark.parametrize(
    ("world", "way", "header"),
    [pytest.param((kind, True), way, header, id=f"{kind}-{name}") for kind, name, way, header in WAYS],
    indirect=["world"],
)
def test_a_login_opens_a_server_and_a_wrong_one_does_not(
    world: World, way: Callable[[World, str], None], header: str
) -> None:
    close(world.server, RIGHT, header)
    without = world.make()
    assert "401" in without or "give it the login" in without, without
    way(world, WRONG)
    wrong = world.make()
    assert wrong
    assert WRONG not in wrong
    way(world, RIGHT)
    last = world.make()
    assert last == "", last
    text = world.written()
    assert RIGHT not in text
    assert WRONG not in text


@pytest.mark.parametrize(
    "world", [(kind, True) for kind in KINDS] + [("wheels", False), ("archives", False)], indirect=True
)
def test_a_proxy_with_a_login_leads_to_every_server(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name)

    def through(address: str) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, address)

    with Proxy(f"me:{RIGHT}") as proxy:
        through(proxy.url.replace("://", f"://me:{WRONG}@"))
        wrong = world.make()
        assert "407" in wrong or "proxy authorization required" in wrong, wrong
        assert "hint: put `USER:PASSWORD@` before the host of the proxy" in wrong, wrong
        assert WRONG not in wrong
        assert proxy.refused
        assert not proxy.used
        through(proxy.url.replace("://", f"://me:{RIGHT}@"))
        last = world.make()
        assert last == "", last
        assert proxy.used
    assert RIGHT not in world.written()


@pytest.mark.parametrize("world", [("git", True)], indirect=True)
def test_git_verifies_by_the_authority_of_the_other_kinds(
    world: World, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority(tmp_path / "other").file))
    refused = world.make()
    assert "certificate" in refused.lower()
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))
    last = world.make()
    assert last == "", last
