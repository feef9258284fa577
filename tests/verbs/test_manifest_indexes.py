"""Indexes and single wheels that a manifest names: locked and created on a machine that has configured nothing."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenv.sources.wheels import uv_program
from tests.support.fakes import Index, make_wheel
from tests.support.projects import HERE, Project, call
from tests.support.rarely import first_fast

BUILD = "2.9.0+cu128"
ASKED = """\
platforms = ["linux-64"]
python = "{python}.*"
[[index]]
name = "pytorch-cu128"
url = "{torch}/"
explicit = true
[[index]]
url = "{main}"
default = true
[pypi-dependencies]
torch = {{ version = "2.9.*", index = "pytorch-cu128" }}
"""


@pytest.fixture
def torch(tmp_path: Path) -> Iterator[Index]:
    """An index with a build of torch, and with another `alpha` that nobody is to take."""
    folder = tmp_path / "torch"
    make_wheel(folder, "torch", BUILD, requires=["alpha>=1"], files={"torch/version.py": f"__version__ = {BUILD!r}\n"})
    make_wheel(folder, "alpha", "99.0")
    with Index(folder) as served:
        yield served


@pytest.fixture
def asked(project: Project, torch: Index, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project with a request for torch of the second index; no variable names an index."""
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    make_wheel(project.index.folder, "torch", "2.9.0")
    project.manifest.write_text(ASKED.format(python=HERE, torch=torch.url, main=project.index.url))
    return project


def rows(project: Project) -> dict[str, dict[str, Any]]:
    found = yaml.safe_load(project.lock.read_text())["tenv"]["wheels"]["linux-64"]
    return {row["name"]: row for row in found}


def take_lock(project: Project) -> bytes:
    """Lock the target, and return its lock, which is removed: the next one is made anew."""
    project.ok("lock", "tiny")
    raw = project.lock.read_bytes()
    project.lock.unlink()
    return raw


@pytest.mark.parametrize(
    ("bare", "whole"), first_fast([(False, True), (True, False), (True, True), (False, False)], several=True)
)
def test_torch_of_a_second_index_is_locked_and_created_with_no_variable(
    bare: bool, whole: bool, asked: Project, torch: Index, tmp_path: Path
) -> None:
    torch.bare, torch.whole = bare, whole
    asked.ok("lock", "tiny")
    found = rows(asked)
    assert (found["torch"]["version"], found["torch"]["index"]) == (BUILD, "pytorch-cu128")
    assert found["torch"]["sha256"] == hashlib.sha256(next(torch.folder.glob("torch-*")).read_bytes()).hexdigest()
    assert (found["alpha"]["version"] < "99", found["alpha"]["index"]) == (True, asked.index.url)
    raw = asked.lock.read_bytes()
    asked.ok("lock", "tiny")
    asked.ok("lock", "tiny", "--check")
    assert asked.lock.read_bytes() == raw
    asked.ok("create", "tiny", "--locked")
    assert (asked.site() / "torch" / "version.py").read_text() == f"__version__ = {BUILD!r}\n"
    asked.ok("create", "tiny", "--frozen")
    torch.asked.clear()
    asked.ok("create", "tiny", "--offline", "--prefix", str(tmp_path / "again"))
    assert torch.asked == []
    packages = {row["name"]: row for row in asked.ok("packages", "tiny", "--json").data}
    assert packages["torch"]["source"] == f"pytorch-cu128 ({torch.url})"


@pytest.mark.long
def test_a_login_goes_to_the_address_that_it_was_stored_for(
    asked: Project, torch: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.login = "me:secret"
    asked.fails(6, "network", "lock", "tiny")
    # A manifest of anyone may give an index the name of one of yours.
    monkeypatch.setenv("UV_INDEX_PYTORCH_CU128_USERNAME", "me")
    monkeypatch.setenv("UV_INDEX_PYTORCH_CU128_PASSWORD", "secret")
    assert "secret" not in asked.fails(6, "network", "lock", "tiny")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    asked.ok("lock", "tiny")
    asked.ok("create", "tiny")
    assert "secret" not in asked.lock.read_text()


def test_a_mirror_is_the_users_own_index_of_that_name(
    asked: Project, torch: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = take_lock(asked)
    shutil.copytree(torch.folder, tmp_path / "mirror")
    torch.asked.clear()
    with Index(tmp_path / "mirror") as mirror:
        mirror.login = "me:secret"
        monkeypatch.setenv("UV_INDEX", f"pytorch-cu128={mirror.url}")
        monkeypatch.setenv("UV_INDEX_PYTORCH_CU128_USERNAME", "me")
        monkeypatch.setenv("UV_INDEX_PYTORCH_CU128_PASSWORD", "secret")
        asked.ok("lock", "tiny")
        asked.ok("create", "tiny")
    assert asked.lock.read_bytes() == raw
    assert torch.asked == []


@pytest.mark.parametrize("whole", [False, True])
def test_a_mirror_of_the_settings_is_asked_for_an_index(
    whole: bool, asked: Project, torch: Index, tmp_path: Path
) -> None:
    if not whole:  # an index that all requests may come from
        asked.edit("explicit = true", "explicit = false")
        (torch.folder / "alpha-99.0-py3-none-any.whl").unlink()
    raw = take_lock(asked)
    shutil.copytree(torch.folder, tmp_path / "mirror")
    torch.asked.clear()
    with Index(tmp_path / "mirror") as mirror:
        mirror.login = "me:secret"
        url = mirror.url.replace("://", "://me:secret@")
        server, copy = (torch.url.removesuffix("/simple"), url.removesuffix("/simple")) if whole else (torch.url, url)
        call("config", f"mirrors.{server}/", copy)
        asked.ok("lock", "tiny")
        asked.ok("create", "tiny")
        assert BUILD in asked.ok("search", "torch", "tiny").out
    assert asked.lock.read_bytes() == raw
    assert torch.asked == []


def test_a_mirror_of_the_settings_is_asked_for_the_default_index(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = uv_program._default_index()
    monkeypatch.setenv("UV_NO_PROGRESS", "perhaps")  # ends uv, which does not get it
    uv_program._default_index.cache_clear()
    assert uv_program._default_index() == default != ""
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    project.index.login = "me:secret"
    call("config", f"mirrors.{default}", project.index.url.replace("://", "://me:secret@"))
    project.ok("lock", "tiny")
    project.ok("create", "tiny")
    assert call("info", "--json").data["index"] == project.index.url
    for one in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):  # the default index by its name
        monkeypatch.setenv(one, f"{default}/")
        project.lock.unlink()
        project.ok("lock", "tiny")


@pytest.mark.parametrize("flat", [False, True], ids=["simple", "flat"])
def test_a_mirror_may_be_a_folder(
    flat: bool, asked: Project, torch: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = take_lock(asked)
    torch.asked.clear()
    mirror = tmp_path / "mi rror"
    (wheel,) = torch.folder.glob("torch-*")
    if flat:
        shutil.copytree(torch.folder, mirror)
        (tmp_path / "uv.toml").write_text(
            f'[[index]]\nname = "pytorch-cu128"\nurl = "{mirror.as_uri()}"\nformat = "flat"\n'
        )
        monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    else:
        (mirror / "torch").mkdir(parents=True)
        shutil.copy(wheel, mirror / "torch")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        file = wheel.name.replace("+", "%2B")
        (mirror / "torch" / "index.html").write_text(f'<a href="{file}#sha256={digest}">{wheel.name}</a>')
        monkeypatch.setenv("UV_INDEX", f"pytorch-cu128={mirror.as_uri()}")
    asked.ok("lock", "tiny")
    asked.ok("create", "tiny")
    assert asked.lock.read_bytes() == raw
    assert torch.asked == []


def _other_index(ours: dict[str, Any], evil: str) -> None:
    ours["indexes"].append({"name": "evil", "url": evil})
    next(row for row in ours["wheels"]["linux-64"] if row["name"] == "alpha")["index"] = "evil"


def _other_address(ours: dict[str, Any], evil: str) -> None:
    next(row for row in ours["indexes"] if "name" in row)["url"] = evil


def _other_file(ours: dict[str, Any], evil: str) -> None:
    row = next(row for row in ours["wheels"]["linux-64"] if row["name"] == "alpha")
    del row["index"]
    row["url"] = f"{evil}/{row['file']}"


CHANGES: dict[str, Callable[[dict[str, Any], str], object]] = {
    "which the manifest does not name": _other_index,
    "the manifest requests the index pytorch-cu128": _other_address,
    "which the manifest does not request": _other_file,
}


@pytest.mark.parametrize("said", first_fast(CHANGES))
def test_a_lock_picks_no_server(said: str, asked: Project, tmp_path: Path) -> None:
    asked.ok("lock", "tiny")
    data = yaml.safe_load(asked.lock.read_text())
    (tmp_path / "evil").mkdir()
    with Index(tmp_path / "evil") as evil:
        CHANGES[said](data["tenv"], evil.url)
        asked.lock.write_text(yaml.safe_dump(data, sort_keys=False))
        for words in (("lock", "tiny", "--check"), ("create", "tiny", "--locked"), ("create", "tiny", "--frozen")):
            ended = call(*words)
            assert (ended.status, said in ended.err) == (7, True), (words, ended.err)
        assert evil.asked == []


def test_another_origin_is_a_change(asked: Project, tmp_path: Path) -> None:
    asked.ok("lock", "tiny")
    old = tmp_path / "old.lock"
    shutil.copy(asked.lock, old)
    data = yaml.safe_load(old.read_text())
    for index in data["tenv"]["indexes"]:
        index["url"] = index["url"].replace("127.0.0.1", "elsewhere.example")
        for row in data["tenv"]["wheels"]["linux-64"] if "name" not in index else ():
            row["index"] = index["url"] if row["index"] != "pytorch-cu128" else row["index"]
    asked.lock.write_text(yaml.safe_dump(data, sort_keys=False))
    changes = {row["name"]: row for row in asked.ok("diff", str(old), str(asked.lock), "--json").data["changed"]}
    for name in ("torch", "alpha"):
        fields = {field["name"]: field for field in changes[name]["fields"]}
        assert "elsewhere.example" in fields["index"]["new"], name


def test_the_first_index_that_has_a_package_serves_it(asked: Project, torch: Index) -> None:
    text = asked.manifest.read_text().replace("explicit = true\n", "").replace(', index = "pytorch-cu128"', "")
    asked.manifest.write_text(text + 'beta = "*"\n')
    asked.ok("lock", "tiny")
    found = {name: (row["version"], row["index"]) for name, row in rows(asked).items()}
    assert found["torch"] == (BUILD, "pytorch-cu128")
    assert found["alpha"] == ("99.0", "pytorch-cu128")
    assert found["beta"][1] == asked.index.url
    asked.ok("create", "tiny", "--locked")
    assert torch.folder.is_dir()


def test_single_wheels_are_locked_by_their_bytes(asked: Project, torch: Index, tmp_path: Path) -> None:
    url = torch.url.replace("/simple", f"/files/torch-{BUILD.replace('+', '%2B')}-py3-none-any.whl")
    near = make_wheel(asked.folder / "dist", "near", "1.0")
    text = asked.manifest.read_text().partition("[pypi-dependencies]")[0]
    asked.manifest.write_text(
        f'{text}[pypi-dependencies]\ntorch = {{ url = "{url}" }}\nnear = {{ path = "../dist/{near.name}" }}\n'
    )
    asked.ok("lock", "tiny")
    found = rows(asked)
    assert (found["torch"]["url"], found["near"]["path"]) == (url, f"../dist/{near.name}")
    assert found["torch"]["file"] == f"torch-{BUILD}-py3-none-any.whl"
    asked.ok("create", "tiny", "--locked")
    assert (asked.site() / "near.py").is_file()
    asked.ok("create", "tiny", "--offline", "--prefix", str(tmp_path / "again"))
    make_wheel(asked.folder / "dist", "near", "1.0", files={"near.py": "changed = True\n"})
    asked.fails(6, "hash-mismatch", "create", "tiny", "--frozen", "--prefix", str(tmp_path / "third"))


def test_add_writes_an_index_and_requests_that_name_it(asked: Project, torch: Index) -> None:
    text = asked.manifest.read_text().partition("[pypi-dependencies]")[0]
    asked.manifest.write_text(
        text.replace(f'[[index]]\nname = "pytorch-cu128"\nurl = "{torch.url}/"\nexplicit = true\n', "")
    )
    asked.ok("add", "tiny", "torch==2.9.*", "--index", f"pytorch-cu128={torch.url}/")
    text = asked.manifest.read_text()
    assert f'[[index]]\nname = "pytorch-cu128"\nurl = "{torch.url}"\nexplicit = true\n' in text
    assert 'torch = {version = "2.9.*", index = "pytorch-cu128"}' in text
    assert rows(asked)["torch"]["version"] == BUILD
    asked.ok("add", "tiny", "alpha", "--index", "pytorch-cu128")
    assert rows(asked)["alpha"]["version"] == "99.0"
    said = asked.fails(2, "usage", "add", "tiny", "beta", "--index", "pytorch-cu128=https://h/other")
    assert f"names {torch.url} as `pytorch-cu128`" in said
    assert "has a login" in asked.fails(2, "usage", "add", "tiny", "beta", "--index", "https://me:secret@h/simple")
    asked.fails(3, "manifest", "add", "tiny", "beta", "--index", "pytorch-cu129")
    assert "only wheels come from" in asked.fails(
        2, "usage", "add", "tiny", "m", "--archive", "--index", "pytorch-cu128"
    )
    assert asked.manifest.read_text().count("[[index]]") == 2


def test_an_index_without_the_wheel_is_named(asked: Project, torch: Index) -> None:
    asked.edit("2.9.*", "2.10.*")
    said = asked.fails(5, "no-solution", "lock", "tiny")
    assert f"no release of torch is 2.10.*; the newest with a wheel is {BUILD}" in said
    assert f'set torch = {{ version = "{BUILD}", index = "pytorch-cu128" }}' in said
    asked.manifest.write_text(asked.manifest.read_text().replace("torch = ", "beta = "))
    said = asked.fails(5, "no-solution", "lock", "tiny")
    assert f"the index pytorch-cu128 ({torch.url}) has no package `beta`" in said


def test_builds_of_pytorch_without_an_index_have_the_command_that_names_its_own(asked: Project) -> None:
    asked.edit(
        'torch = { version = "2.9.*", index = "pytorch-cu128" }', 'torch = "2.9.0+cu128"\ntorchvision = "0.24.0+cu128"'
    )
    said = " ".join(asked.fails(5, "no-solution", "lock", "tiny").split())
    own = "pytorch-cu128=https://download.pytorch.org/whl/cu128"
    assert f"`tenv add tiny torch==2.9.0+cu128 torchvision==0.24.0+cu128 --index {own}` takes PyTorch's own" in said


def test_present_files_serve_every_row_where_no_index_may(
    asked: Project, torch: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.ok("lock", "tiny")
    folder = tmp_path / "present"
    shutil.copytree(asked.index.folder, folder)
    shutil.copy(next(torch.folder.glob("torch-*")), folder)
    torch.asked.clear()
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    asked.ok("create", "tiny", "--frozen")
    assert (asked.site() / "torch" / "version.py").is_file()
    assert torch.asked == []


def test_an_index_in_a_folder_that_is_not_there_is_refused(
    asked: Project, torch: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv takes it for an empty one, so that the next index would serve its packages."""
    text = asked.manifest.read_text()
    for form in ("", 'format = "flat"\n'):
        for more in ("", 'name = "ours"\nexplicit = true\n'):
            url = f'url = "../wheels of us"\n{form}{more}'
            asked.manifest.write_text(text.replace("[[index]]", f"[[index]]\n{url}[[index]]", 1))
            said = asked.fails(5, "no-solution", "lock", "tiny")
            assert f"{tmp_path / asked.folder / 'wheels of us'} does not exist" in said, url
    assert not asked.lock.exists()
    (asked.folder / "wheels of us").mkdir()
    monkeypatch.setenv("UV_INDEX", f"pytorch-cu128={torch.url}/")
    asked.ok("lock", "tiny")


def test_a_mirror_of_the_settings_has_a_single_wheel(asked: Project, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "files", "near", "1.0")
    text = asked.manifest.read_text().partition("[pypi-dependencies]")[0]
    url = f"http://127.0.0.1:9/releases/{wheel.name}"
    with Index(wheel.parent) as served:
        call("config", "mirrors.http://127.0.0.1:9/releases", served.url.replace("/simple", "/files"))
        for digest in ("", f"#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}"):
            asked.manifest.write_text(f'{text}[pypi-dependencies]\nnear = {{ url = "{url}{digest}" }}\n')
            asked.ok("lock", "tiny")
            assert rows(asked)["near"]["url"] == url
            asked.ok("create", "tiny", "--anew")
            asked.ok("verify", "tiny", "--deep")
            asked.ok("bundle", "tiny", "-o", str(tmp_path / "tiny.tenv"))
