"""Packages at addresses, and of folders that are not there: refused with the reason and a way, in `add` and imports."""

import hashlib

import pytest

from tests.support.each import each
from tests.support.fakes import make_wheel
from tests.support.projects import TINY, Project

WHY = "a package at an address can't be locked"
ADDRESSES = [
    "git+https://example.org/it.git",
    "git+ssh://git@example.org/it.git@v1",
    "it @ git+https://example.org/it.git@0123abc ; python_version > '3'",
    "it @ git+http://example.org/it.git",
    "it[extra] @ https://example.org/it-1.0.zip",
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


@pytest.mark.parametrize(
    "text", [text for text in ADDRESSES if "git+" not in text and "file:" not in text and text[0] not in "./"]
)
def test_add_says_why_and_how_else(text: str, project: Project) -> None:
    before = project.manifest.read_text()
    said = project.fails(2, "usage", "add", "tiny", text)
    assert WHY in said
    assert "`tenv run tiny -- sh -c 'python -m ensurepip && python -m pip install " in said
    assert project.manifest.read_text() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("git+https://example.org/it.git@v1", "hint: `tenv add tiny 'it @ git+https://example.org/it.git@v1'`"),
        ("it @ git+http://example.org/it.git", "expected an address that begins with https:// or ssh:// or file://"),
        ("it @ git+https://example.org/it.git@-v1", "is not the name of a branch"),
        ("it @ git+https://example.org/it.git#subdirectory=../it", "expected a folder below"),
        ("./it", "it does not exist"),
        ("/srv/it[extra]", "/srv/it does not exist"),
        ("it@file:///srv/it", "/srv/it does not exist"),
        (".", "no [project] of a pyproject.toml has the name"),
    ],
)
def test_add_names_what_is_wrong(text: str, said: str, project: Project) -> None:
    before = project.manifest.read_text()
    assert said in project.fails(2, "usage", "add", "tiny", text)
    assert project.manifest.read_text() == before


@each(
    "value, place, said",
    [
        ('{ git = "http://example.org/it.git" }', "git", "expected an address"),
        ('{ git = "ext::sh -c true" }', "git", "expected an address"),
        ('{ git = "--upload-pack=true" }', "git", "expected an address"),
        ('{ git = "https://me:secret@example.org/it.git" }', "git", "has a login"),
        ('{ git = "git@example.org:it.git" }', "git", "ssh://git@example.org/it.git"),
        ('{ git = "https://example.org/it.git", rev = "-x" }', "rev", "is not the name of a branch"),
        ('{ git = "https://example.org/it.git", tag = "v1", branch = "main" }', "tag", "names the revision already"),
        ('{ git = "https://example.org/it.git", path = "it" }', "git", "exactly one of"),
        ('{ git = "https://example.org/it.git", editable = true }', "editable", "is for a folder"),
        ('{ git = "https://example.org/it.git", subdirectory = "../it" }', "subdirectory", "of the repository"),
        ('{ git = "https://example.org/it.git", version = "1" }', "version", "remove this key"),
        ('{ path = "../it", rev = "main" }', "rev", "is for a repository"),
        ('{ path = "--index-url=https://example.org" }', "path", "is not a folder"),
        ("{ editable = true }", "path", "exactly one of"),
    ],
)
def test_a_manifest_names_what_is_wrong(value: str, place: str, said: str, project: Project) -> None:
    project.manifest.write_text(f"{TINY}it = {value}\n")
    words = project.fails(3, "manifest", "lock", "tiny")
    assert f"pypi-dependencies.it.{place}: " in words
    assert said in words
    assert "secret" not in words


def test_imports_name_each_of_them_and_ask_no_index_for_their_names(project: Project) -> None:
    lines = ["alpha==1.0", *ADDRESSES]
    (project.folder / "requirements.txt").write_text("\n".join(lines))
    ended = project.ok("import", "requirements.txt", "--name", "theirs", "--json")
    lost = ended.data["lost"]
    assert [line for line in ADDRESSES if "git+" not in line and not any(f"`{line}`" in one for one in lost)] == []
    assert [one for one in lost if "an earlier request for it" in one]
    text = (project.folder / "manifests" / "theirs.toml").read_text()
    assert "alpha" in text
    assert text.count("\nit ") == 1
    assert 'it    = { git = "https://example.org/it.git" }' in text
    listed = "".join(f"    - {line}\n" for line in lines)
    (project.folder / "environment.yml").write_text(f"dependencies:\n- python=3.11\n- pip:\n{listed}")
    ended = project.ok("import", "environment.yml", "--name", "others", "--json")
    lost = ended.data["lost"]
    assert [line for line in ADDRESSES if "git+" not in line and not any(f"`{line}`" in one for one in lost)] == []
    assert (
        'it    = { git = "https://example.org/it.git" }' in (project.folder / "manifests" / "others.toml").read_text()
    )


@each("text", ["numpy", "numpy>=2,<3", "numpy 2.*", "cuda-toolkit[nvcc]==13.0.*", "a.b", "x~=1.0"])
def test_plain_requests_are_none(text: str) -> None:
    from tenv.targets.tree_request import names_source

    assert not names_source(text)


def test_add_takes_one_wheel_at_an_address_or_in_a_folder(project: Project) -> None:
    near = make_wheel(project.folder / "dist", "near", "1.0")
    there = project.index.folder / next(path.name for path in project.index.wheels() if path.name.startswith("beta-"))
    url = project.index.url.replace("/simple", f"/files/{there.name}")
    digest = hashlib.sha256(there.read_bytes()).hexdigest()
    project.ok("add", "tiny", f"./dist/{near.name}", f"beta @ {url}#sha256={digest}")
    text = project.manifest.read_text()
    assert f'near = {{path = "../dist/{near.name}"}}' in text
    assert f'beta = {{url = "{url}", sha256 = "{digest}"}}' in text
    assert "is a wheel of near, not of far" in project.fails(2, "usage", "add", "tiny", f"far @ ./dist/{near.name}")
    assert "does not exist" in project.fails(2, "usage", "add", "tiny", "./dist/far-1.0-py3-none-any.whl")
    project.ok("add", "tiny", "beta>=1")
    assert 'beta = ">=1"' in project.manifest.read_text()
