"""Archives from the manifest to the lock, with a server in NVIDIA's layout."""

import hashlib
from pathlib import Path

import pytest
import yaml

from tests.support.archive_server import NVIDIA, ask, rows
from tests.support.projects import Project
from tests.support.redist import Server


def test_a_product_is_locked_for_every_platform_from_its_manifest(project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    (linux,), (arm,), (windows,) = (rows(project)[name] for name in ("linux-64", "linux-aarch64", "win-64"))
    path = "/compute/cunovel/redist/libcunovel/linux-x86_64/libcunovel-linux-x86_64-7.1.0.3_cuda12-archive.tar.xz"
    raw = served.files[path]
    assert isinstance(raw, bytes)
    assert linux == {
        "name": "cunovel",
        "version": "7.1.0.3",
        "url": NVIDIA + path,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "size": len(raw),
        "kind": "tar.xz",
        "strip": 1,
        "to": "opt/cunovel",
        "trust": "redist",
    }
    assert "linux-sbsa" in str(arm["url"])
    assert str(windows["url"]).endswith("windows-x86_64-7.1.0.3_cuda12-archive.zip")
    before = project.lock.read_bytes()
    project.ok("lock", "tiny", "--check")
    project.lock.unlink()
    project.ok("lock", "tiny")
    assert project.lock.read_bytes() == before


def test_a_child_takes_the_archives_of_its_parents_lock_and_asks_no_server(project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    project.ok("init", "child", "--extends", "tiny")
    served.asked.clear()
    project.ok("lock", "child")
    assert served.asked == []
    child = project.lock.with_name("child.lock")
    assert yaml.safe_load(child.read_text())["tenv"]["archives"] == rows(project)
    manifest = project.folder / "manifests" / "child.toml"
    child.unlink()
    manifest.write_text(f'{manifest.read_text()}\n[archives]\ncunovel = "7.2.*"\n')  # another one is asked for
    project.fails(5, "no-solution", "lock", "child")


def test_another_request_is_locked_without_nvidias_server(project: Project, served: Server) -> None:
    ask(project, 'cunovel = "7.1.0"')
    project.ok("lock", "tiny")
    before = rows(project)
    project.edit("[requirements]\n", '[requirements]\nglibc = "2.28"\n')
    served.asked.clear()
    project.ok("lock", "tiny")
    assert (rows(project), served.asked) == (before, [])
    served.statuses = [500] * 9
    project.fails(6, "network", "update", "tiny", "cunovel")


def test_a_child_asks_only_about_the_archives_that_it_changes(project: Project, served: Server) -> None:
    """The child drops a feature's wheel, and asks for an archive that its parent does not have."""
    extra = '\n[feature.debug.archives]\ncunovel = "7.1.0"\n[feature.test.pypi-dependencies]\nbeta = "1.0"\n'
    project.manifest.write_text(project.manifest.read_text() + extra)
    project.ok("lock", "tiny")
    manifest = project.folder / "manifests" / "child.toml"
    child = project.lock.with_name("child.lock")
    for text, asked in (
        ('[feature.test.pypi-dependencies]\nbeta = ">=1.0"\n', []),
        ('[feature.debug]\n[archives]\ncusparselt = "0.5.2.1"\n', ["cusparselt"]),
    ):
        manifest.write_text(f'extends = "tiny"\n{text}')
        child.unlink(missing_ok=True)
        served.asked.clear()
        project.ok("lock", "child")
        assert {path.split("/")[2] for path in served.paths()} == {*asked}
        found = yaml.safe_load(child.read_text())["tenv"]["archives"]
        for platform, parents in rows(project).items():
            assert [row for row in found[platform] if row["name"] == "cunovel"] == parents


def test_known_versions_are_locked_offline(project: Project, served: Server) -> None:
    ask(project, 'cusparselt = "0.5.2.1"')
    project.ok("lock", "tiny", "--offline")
    assert served.asked == []
    offline = project.lock.read_bytes()
    found = rows(project)
    assert [found[name][0]["sha256"] for name in ("linux-64", "linux-aarch64", "win-64")] == [
        "d6cd9ffc0838d2e25453358ca160c1bed34e2f7b5dc155c428d22ba7fc3d8334",
        "389167df60404fe9d49f5975239bd095c440328d951152082d8603f8bdac1a97",
        "ae4532cb17c55e224bb8c8f7786f1e115626571ba1843dcaf8bb67cfae12f613",
    ]
    assert [found[name][0]["size"] for name in ("linux-64", "linux-aarch64", "win-64")] == [
        24156728,
        23133384,
        45650376,
    ]
    assert "linux-sbsa" in str(found["linux-aarch64"][0]["url"])
    text = (Path(__file__).parent.parent / "data" / "redistrib_0.5.2.json").read_bytes()
    served.files["/compute/cusparselt/redist/redistrib_0.5.2.json"] = text
    project.lock.unlink()
    project.ok("lock", "tiny")
    assert served.paths() == ["/compute/cusparselt/redist/redistrib_0.5.2.json"]
    assert project.lock.read_bytes() == offline


def test_a_file_that_was_replaced_under_its_name_stops_the_lock(project: Project, served: Server) -> None:
    text = (Path(__file__).parent.parent / "data" / "redistrib_0.5.2.json").read_text()
    served.files["/compute/cusparselt/redist/redistrib_0.5.2.json"] = text.replace("d6cd9ffc", "00000000").encode()
    ask(project, 'cusparselt = "0.5.2"')
    error = project.fails(6, "hash-mismatch", "lock", "tiny")
    name = "libcusparse_lt-linux-x86_64-0.5.2.1-archive.tar.xz"
    assert f"cusparselt 0.5.2.1: NVIDIA now lists another file under the name {name}" in error
    assert "the facts  sha256 d6cd9ffc" in error
    assert "the list   sha256 00000000" in error
    assert "facts/cusparselt.toml" in error
    assert not project.lock.exists()


def test_without_an_answer_the_facts_have_to_do_and_that_is_said(project: Project, served: Server) -> None:
    served.statuses = [500] * 9
    ask(project, 'cusparselt = "0.5.2.1"')
    assert "resolved from the facts, not compared with NVIDIA's list" in project.ok("lock", "tiny").err


@pytest.mark.parametrize(
    ("request_", "cuda", "version"),
    [
        ('"auto"', "12.1", "0.5.2.1"),
        ('"auto"', "12.4", "0.6.2.3"),
        ('"auto"', "13.0", "0.8.1.1"),
        ('">=0.5,<0.6"', "12.1", "0.5.2.1"),
        ('"0.6.0"', "12.1", "0.6.0.6"),
        ('{ version = "0.8.0.4" }', "12.8", "0.8.0.4"),
    ],
)
def test_versions_ranges_labels_and_auto(
    project: Project, served: Server, request_: str, cuda: str, version: str
) -> None:
    ask(project, f"cusparselt = {request_}", cuda=cuda)
    project.ok("lock", "tiny", "--offline")
    assert {row["version"] for platform in rows(project).values() for row in platform} == {version}


def test_auto_minds_the_pytorch_that_is_built(project: Project, served: Server) -> None:
    ask(project, 'cusparselt = "auto"')
    project.edit("[requirements]", 'pytorch = ">=2.1,<2.2"\n[requirements]')
    said = project.ok("lock", "tiny", "--offline").err
    assert (
        "cusparselt 0.5.1.1: the newest version of the facts; the target's PyTorch requires a version below 0.5.2"
        in said
    )


def test_cudnn_is_the_one_for_the_cuda_major(project: Project, served: Server) -> None:
    ask(project, 'cudnn = "auto"')
    project.edit("[requirements]", 'pytorch = "2.4.*"\n[requirements]')
    project.ok("lock", "tiny", "--offline")
    row = rows(project)["linux-64"][0]
    assert row["version"] == "9.1.0.70"
    assert str(row["url"]).endswith("linux-x86_64-9.1.0.70_cuda12-archive.tar.xz")


@pytest.mark.parametrize(
    ("line", "status", "code", "message"),
    [
        ('cunovel = "9.9.9"', 5, "no-solution", "NVIDIA's redist has no cunovel 9.9.9"),
        ('cunovel = "7.1.0.9"', 5, "no-solution", "NVIDIA's release 7.1.0 holds 7.1.0.3, not 7.1.0.9"),
        ('cunovel = ">=7"', 5, "no-solution", "NVIDIA has no list of the versions of `cunovel`"),
        ('cunovel = "auto"', 5, "no-solution", "`auto` exists for cuda, cusparselt and cudnn alone"),
        ('cusparselt = ">=99"', 5, "no-solution", "no version of the facts is in `>=99`"),
        ('cusparselt = "0.9.1.1"', 5, "no-solution", "has no file on linux-64 for CUDA 12.1"),
        ('x = { url = "https://h/f.rar" }', 3, "manifest", "has no known extension"),
        ('x = { url = "https://u:p@h/f.zip" }', 3, "manifest", "manifests and locks are shared"),
        ('x = { url = "https://h/f.zip", to = "../up" }', 3, "manifest", "expected a folder below the prefix"),
        ('x = { url = "https://h/f.zip", to = "tenv-meta" }', 3, "manifest", "that folder is tenv's own"),
        ('x = { url = "https://h/f.zip" }', 2, "usage", "has no sha256"),
    ],
)
def test_what_can_t_be_locked(
    project: Project, served: Server, line: str, status: int, code: str, message: str
) -> None:
    ask(project, line)
    assert message in project.fails(status, code, "lock", "tiny")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<!DOCTYPE html><html>log in</html>", "is a web page, not a redist manifest"),
        (b'{"release_label": "7.1.0"', "is not a redist manifest: not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "it has no component"),
        (b'{"libcunovel": {"linux-x86_64": {"cuda12": {}}}}', "libcunovel.version: is required"),
        (b'{"libcunovel": {"version": "1", "linux-x86_64": {"cuda12": {}}}}', "cuda12.relative_path: is required"),
        (
            b'{"libcunovel": {"version": "1", "linux-x86_64": {"relative_path": "../../x.zip"}}}',
            "is not a path below the product's base URL",
        ),
        (
            b'{"libcunovel": {"version": "1", "linux-x86_64": {"relative_path": "x.zip", "sha256": "12"}}}',
            "sha256: is not 64 hex digits",
        ),
    ],
)
def test_a_manifest_that_is_none(project: Project, served: Server, text: bytes, message: str) -> None:
    served.files["/compute/cunovel/redist/redistrib_7.1.0.json"] = text
    ask(project, 'cunovel = "7.1.0"')
    assert message in project.fails(6, "network", "lock", "tiny")
    assert not project.lock.exists()


def test_trust_on_first_use_is_asked_for_and_marked(project: Project, served: Server) -> None:
    ask(project, f'magma = {{ url = "{served.url}/magma-cuda121-2.6.1-1.tar.bz2", to = "opt/magma" }}')
    error = project.fails(2, "usage", "lock", "tiny")
    assert "`tenv lock tiny --trust-first-use` records the sha256 of the download" in error
    said = project.ok("lock", "tiny", "--trust-first-use").err
    assert "was trusted on first use: sha256 " in said
    (row,) = rows(project)["linux-64"]
    raw = served.files["/magma-cuda121-2.6.1-1.tar.bz2"]
    assert isinstance(raw, bytes)
    assert (row["trust"], row["sha256"], row["size"]) == ("first-use", hashlib.sha256(raw).hexdigest(), len(raw))
    project.edit("[requirements]", 'description = "changed"\n[requirements]\nglibc = "2.17"')
    project.ok("lock", "tiny")  # what was trusted once stays
    assert rows(project)["linux-64"] == [row]


def test_an_optional_archive_is_offered_and_added_alone(project: Project, served: Server) -> None:
    address = f"{served.url}/magma-cuda121-2.6.1-1.tar.bz2"
    ask(project, 'cusparselt = "0.5.2.1"')
    project.ok("lock", "tiny", "--offline")
    without = project.lock.read_bytes()
    ask(project, f'cusparselt = "0.5.2.1"\nmagma = {{ optional = true, url = "{address}" }}')
    project.ok("lock", "tiny", "--check")
    hint = "`tenv lock tiny --trust-first-use` adds it"
    assert f"magma: optional; {hint}" in project.ok("show", "tiny").out
    project.ok("update", "tiny", "--offline")
    assert project.lock.read_bytes() == without
    project.lock.unlink()
    assert f"magma: {address} is optional, and left out; {hint}" in project.ok("lock", "tiny").err
    assert project.lock.read_bytes() == without
    assert "was trusted on first use: sha256 " in project.ok("lock", "tiny", "--trust-first-use").err
    first, added = rows(project)["linux-64"]
    assert (first["name"], added["name"], added["trust"]) == ("cusparselt", "magma", "first-use")
    assert len(project.lock.read_text().splitlines()) == len(without.decode().splitlines()) + 3 * 7
    assert "optional;" not in project.ok("show", "tiny").out
    served.files["/magma-cuda121-2.6.1-1.tar.bz2"] = b"other bytes"  # are not asked for
    with_it = project.lock.read_bytes()
    for words in (("lock", "--trust-first-use"), ("lock",), ("update", "--offline")):
        project.ok(words[0], "tiny", *words[1:])
        assert project.lock.read_bytes() == with_it


def test_an_optional_archive_with_a_sha256_is_not_trusted_blindly(project: Project, served: Server) -> None:
    address, digest = f"{served.url}/magma-cuda121-2.6.1-1.tar.bz2", "a" * 64
    ask(project, f'magma = {{ optional = true, url = "{address}", sha256 = "{digest}" }}')
    project.ok("lock", "tiny", "--trust-first-use")
    magma = next(row for row in rows(project)["linux-64"] if row["name"] == "magma")
    assert (magma["sha256"], magma["trust"]) == (digest, "manifest")
    ask(project, 'cusparselt = { optional = true, version = "0.5.2.1" }')
    assert "only a request by `url` can be optional" in project.fails(3, "manifest", "lock", "tiny")


@pytest.mark.parametrize("named", [[], ["magma"]])
def test_an_update_keeps_what_was_trusted_on_first_use(project: Project, served: Server, named: list[str]) -> None:
    address = "/magma-cuda121-2.6.1-1.tar.bz2"
    ask(project, f'magma = {{ url = "{served.url}{address}", to = "opt/magma" }}')
    project.ok("lock", "tiny", "--trust-first-use")
    before = rows(project)["linux-64"]
    served.files[address] = b"other bytes"  # are not asked for, and not trusted
    project.ok("update", "tiny", *named)
    assert rows(project)["linux-64"] == before


def test_a_lock_is_stale_when_its_archives_do_not_answer(project: Project, served: Server) -> None:
    ask(project, 'cusparselt = "0.5.2.1"')
    project.ok("lock", "tiny", "--offline")
    ask(project, 'cusparselt = ">=0.5,<0.6"')
    project.ok("lock", "tiny", "--check")
    ask(project, 'cusparselt = "0.5.2"')
    project.ok("lock", "tiny", "--check")
    ask(project, 'cusparselt = "0.6.0.6"')
    error = project.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert "linux-64: cusparselt 0.5.2.1 is locked, the manifest requests 0.6.0.6" in error
    ask(project, 'cusparselt = { version = "0.5.2.1", to = "sparse" }')
    assert "cusparselt goes to opt/cusparselt in the lock, the manifest requests sparse" in project.fails(
        7, "lock-stale", "lock", "tiny", "--check"
    )
    ask(project)
    error = project.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert "cusparselt is locked and nothing requires it" in error
