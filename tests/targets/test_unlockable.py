"""Packages of git repositories and folders: refused with the reason and a way, in manifests, `add` and imports."""

import pytest

from tests.support.projects import Project

WHY = "has no sha256 before it is built"
ADDRESSES = [
    "git+https://example.org/it.git",
    "git+ssh://git@example.org/it.git@v1",
    "it @ git+https://example.org/it.git@0123abc",
    "it[extra] @ https://example.org/it-1.0-py3-none-any.whl",
    "it@file:///srv/it",
    "hg+http://example.org/it",
    "https://example.org/it-1.0.tar.gz",
    "./it",
    "../it",
    "/srv/it",
    "~/it",
    ".",
    "./it[extra]",
]


@pytest.mark.parametrize("text", ADDRESSES)
def test_add_says_why_and_how_else(text: str, project: Project) -> None:
    before = project.manifest.read_text()
    said = project.fails(2, "usage", "add", "tiny", text)
    assert WHY in said
    assert "`tenv run tiny -- python -m pip install " in said
    assert project.manifest.read_text() == before


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('{ git = "https://example.org/it.git", rev = "0123abc" }', "git+https://example.org/it.git@0123abc"),
        ('{ git = "https://example.org/it.git", tag = "v1" }', "git+https://example.org/it.git@v1"),
        ('{ git = "https://example.org/it.git" }', "git+https://example.org/it.git"),
        ('{ path = "./it", editable = true }', "-e ./it"),
        ('{ path = "my it" }', "'my it'"),
        ('{ path = "--index-url=https://example.org" }', "./--index-url=https://example.org"),
        ("{ editable = true }", "-e FOLDER"),
    ],
)
def test_a_manifest_says_why_and_how_else(value: str, words: str, project: Project) -> None:
    project.ask_for(f"it = {value}")
    said = project.fails(3, "manifest", "lock", "tiny")
    assert f"pypi-dependencies.it.{value.split()[1]}: " in said
    assert WHY in said
    assert f"`tenv run TARGET -- python -m pip install {words}` installs it" in said


def test_imports_leave_them_out_and_ask_no_index_for_their_names(project: Project) -> None:
    lines = ["alpha==1.0", *ADDRESSES]
    (project.folder / "requirements.txt").write_text("\n".join(lines))
    ended = project.ok("import", "requirements.txt", "--name", "theirs", "--json")
    kept = [line for line in ended.data["lost"] if WHY in line]
    assert len(kept) == len(ADDRESSES)
    text = (project.folder / "manifests" / "theirs.toml").read_text()
    assert "alpha" in text
    assert "it =" not in text
    listed = "".join(f"    - {line}\n" for line in lines)
    (project.folder / "environment.yml").write_text(f"dependencies:\n- python=3.11\n- pip:\n{listed}")
    ended = project.ok("import", "environment.yml", "--name", "others", "--json")
    assert len([line for line in ended.data["lost"] if "it" in line]) >= len(ADDRESSES) - 1
    assert "it =" not in (project.folder / "manifests" / "others.toml").read_text()


@pytest.mark.parametrize("text", ["numpy", "numpy>=2,<3", "numpy 2.*", "cuda-toolkit[nvcc]==13.0.*", "a.b", "x~=1.0"])
def test_plain_requests_are_none(text: str) -> None:
    from tenv.targets.unlockable import names_source

    assert not names_source(text)
