"""Logins in the addresses of manifests and locks, which are shared, and so are refused."""

import itertools

import pytest

from tenv.core.untrusted import login_fault, without_login
from tests.support.each import each
from tests.support.projects import Project

SECRET = "s3cr3t-v4lue"  # noqa: S105
ADDRESSES = (
    f"https://me:{SECRET}@conda.example.com/chan",
    f"https://{SECRET}@conda.example.com/chan",
    f"https://conda.example.com/t/{SECRET}/chan",
    f"https://conda.example.com/chan?token={SECRET}",
)
FILES = (
    f"https://files.example.com/a.tar.xz?access_token={SECRET}",
    f"https://files.example.com/a.tar.xz?v=1&X-Amz-Signature={SECRET}&X-Amz-Date=1",
    f"https://files.example.com/a.tar.xz?sig={SECRET}",
    f"https://me:{SECRET}@files.example.com/a.tar.xz",
)


@each("address, place", itertools.product(ADDRESSES, ["channels", "a dependency", "a platform"]))
def test_a_channel_with_a_login_is_refused(project: Project, address: str, place: str) -> None:
    text = 'platforms = ["linux-64"]\nchannels = ["conda-forge"]\n'
    if place == "channels":
        text = text.replace('"conda-forge"', f'"conda-forge", "{address}"')
    elif place == "a dependency":
        text += f'[dependencies]\nzlib = {{ version = "*", channel = "{address}" }}\n'
    else:
        text += f'[platform.linux-64.dependencies]\nzlib = {{ version = "*", channel = "{address}" }}\n'
    project.manifest.write_text(text)
    for words in (("lock", "tiny"), ("show", "tiny"), ("create", "tiny")):
        said = project.fails(3, "manifest", *words)
        assert SECRET not in said
        assert "manifests and locks are shared" in said
        assert "hint: write " in said
        assert "`pixi auth login conda.example.com`" in said
    assert not project.lock.exists()


@pytest.mark.parametrize("address", FILES)
def test_an_archive_with_a_login_is_refused(project: Project, address: str) -> None:
    archive = f'{{ url = "{address}", sha256 = "{"ab" * 32}", to = "opt/mine" }}'
    project.manifest.write_text(f'platforms = ["linux-64"]\n[archives]\nmine = {archive}\n')
    said = project.fails(3, "manifest", "lock", "tiny")
    assert SECRET not in said
    assert "~/.netrc" in said


def test_an_added_package_of_a_channel_with_a_login_is_refused(project: Project) -> None:
    before = project.manifest.read_text()
    said = project.fails(2, "usage", "add", "tiny", "--conda", f"{ADDRESSES[0]}::zlib")
    assert SECRET not in said
    assert project.manifest.read_text() == before


@each(
    "text, plain",
    [
        ("https://h/a?x=1&token=q", "https://h/a?x=1"),
        ("https://h/a?token=q&x=1", "https://h/a?x=1"),
        ("https://h/a?token=q&sig=r&y=2#f", "https://h/a?y=2#f"),
        ("`https://u:p@h/t/k/c?auth=1`, and https://h/b", "`https://h/c`, and https://h/b"),
        ("https://h/a?file=1&design=2", "https://h/a?file=1&design=2"),
        ("https://h/assign=2/b", "https://h/assign=2/b"),
        ("git@github.com:a/b", "git@github.com:a/b"),
    ],
)
def test_a_text_keeps_what_is_no_login(text: str, plain: str) -> None:
    assert without_login(text) == plain
    assert bool(login_fault(text)) == (text != plain)
