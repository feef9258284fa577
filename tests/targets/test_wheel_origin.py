"""Indexes and single files in manifests, and their rows in locks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenv.core.errors import LockCorruptError, ManifestError
from tenv.locks.lock import Wheel
from tenv.locks.lock_file import parse_lock
from tenv.sources.interface import differences
from tenv.targets.manifest import Manifest, with_features
from tenv.targets.manifest_file import read_manifest
from tenv.targets.wheel_origin import FileRequest, Index
from tests.support.each import each
from tests.support.lock_builders import lock_bytes, lock_of, wheel

BASE = 'platforms = ["linux-64", "win-64"]\npython = "3.11.*"\n'
DIGEST = "ab" * 32
URL = "https://h/pure-1.0-py3-none-any.whl"
ASKED = """\
[[index]]
name = "cu128"
url = "https://h/cu128/"
explicit = true
[[index]]
url = "https://h/more"
[pypi-dependencies]
torch = { version = "2.9.*", index = "cu128" }
"""


def read(folder: Path, text: str, parent: str = "") -> Manifest:
    (folder / "t.toml").write_text(BASE + text if not parent else text)
    (folder / "up.toml").write_text(BASE + parent)
    return read_manifest("t", folder / "t.toml", lambda name: folder / f"{name}.toml", "t.toml")


def test_uvs_and_pixis_words_name_indexes_best_first(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        """\
[[index]]
name = "cu128"
url = "https://h/cu128/"
explicit = true
[[index]]
name = "house"
url = "../wheels"
format = "flat"
[pypi-options]
index-url = "https://h/simple"
extra-index-urls = ["https://h/more"]
find-links = [{ path = "links" }, { url = "https://h/page.html" }]
[pypi-dependencies]
torch = { version = "2.9.*", index = "cu128" }
other = { version = "*", index = "https://h/other/" }
[platform.win-64.pypi-dependencies]
torch = { version = "2.9.*", index = "https://h/cu128" }
""",
    )
    assert manifest.indexes == (
        Index("https://h/cu128", "cu128"),
        Index("../wheels", "house", flat=True),
        Index("links", flat=True),
        Index("https://h/page.html", flat=True),
        Index("https://h/more"),
        Index("https://h/simple"),
    )
    assert [index.explicit for index in manifest.indexes] == [True, *[False] * 5]
    assert [index.default for index in manifest.indexes] == [*[False] * 5, True]
    assert manifest.indexes[1].address == (tmp_path.parent / "wheels").as_uri()
    assert manifest.index(manifest.wheels["torch"].index) == Index("https://h/cu128", "cu128")
    alone = manifest.index(manifest.wheels["other"].index)
    assert alone == Index("https://h/other")
    assert alone.explicit
    assert manifest.on("win-64").index("https://h/cu128") == Index("https://h/cu128", "cu128")


def test_indexes_of_a_child_come_before_its_parents_and_a_features_after(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        """\
extends = "up"
[[index]]
name = "b"
url = "https://h/own-b"
[[platform.win-64.index]]
url = "https://h/windows"
[[feature.more.index]]
url = "https://h/feature"
""",
        '[[index]]\nname = "a"\nurl = "https://h/a"\n[[index]]\nname = "b"\nurl = "https://h/b"\n',
    )
    own = ["https://h/own-b", "https://h/a"]
    assert [index.url for index in manifest.on("linux-64").indexes] == own
    assert [index.url for index in manifest.on("win-64").indexes] == ["https://h/windows", *own]
    whole = with_features(manifest)
    assert [index.url for index in whole.on("win-64").indexes] == ["https://h/windows", *own, "https://h/feature"]
    assert manifest.digest() != replace(manifest, indexes=()).digest()


def test_one_wheel_is_named_by_address_or_by_path(tmp_path: Path) -> None:
    manifest = read(
        tmp_path,
        f'[pypi-dependencies]\npure = {{ url = "{URL}#sha256={DIGEST}", extras = ["x"] }}\n'
        'near = { path = "../near-1.0-py3-none-any.whl" }\n',
    )
    assert manifest.wheels["pure"].file == FileRequest(URL, sha256=DIGEST)
    near = manifest.wheels["near"].file
    assert near
    assert near.file == tmp_path.parent / "near-1.0-py3-none-any.whl"


@each("text, said", [
        ('[[index]]\nurl = "https://me:secret@h/simple"', "`https://h/simple`: has a login"),
        ('[[index]]\nurl = "ftp://h/simple"', "expected an address that begins with https:// or http:// or file://"),
        ('[[index]]\nurl = "https://h/a"\nexplicit = true', "name: is required"),
        ('[[index]]\nurl = "https://h/a"\nformat = "html"', "`html` is no format of an index"),
        ('[[index]]\nurl = "https://h/a"\nverify = false', "unknown key"),
        ('[[index]]\nname = "a"\nurl = "https://h/a"\n[[index]]\nname = "a"\nurl = "https://h/b"', "is there twice"),
        ('[pypi-options]\nindex-strategy = "unsafe-best-match"', "unknown key"),
        ('[pypi-options]\nfind-links = [{ path = "a", url = "https://h/a" }]', "exactly one of `url` and `path`"),
        ('[pypi-dependencies]\na = { version = "*", index = "no" }', "no index `no` is named"),
        ('[pypi-dependencies]\na = { version = "*", index = "https://me:pw@h/x" }', "has a login"),
        ('[pypi-dependencies]\na = { url = "https://me:pw@h/a-1-py3-none-any.whl" }', "has a login"),
        ('[pypi-dependencies]\na = { url = "https://h/b-1-py3-none-any.whl" }', "is not a wheel of `a`, but of `b`"),
        ('[pypi-dependencies]\na = { url = "https://h/a-1-py3-none-any.whl", version = "1" }', "is no part of"),
        ('[pypi-dependencies]\na = { url = "https://h/a-1-py3-none-any.whl#md5=0" }', "is not `#sha256=`"),
        ('[pypi-dependencies]\na = { version = "*", sha256 = "00" }', "is the digest of a wheel at a `url`"),
    ])  # fmt: skip
def test_a_wrong_origin_is_an_error(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as error:
        read(tmp_path, text + "\n")
    assert said in error.value.message
    assert "secret" not in error.value.message


def locked(manifest: Manifest, **origin: Any) -> Wheel:
    return replace(wheel("torch", "2.9.0+cu128", *manifest.python_minors()), requires=(), **origin)


def test_a_row_keeps_its_origin_and_a_lock_without_one_stays_as_it_was(tmp_path: Path) -> None:
    manifest = replace(read(tmp_path, ASKED), platforms=("linux-64",))
    made = lock_of(manifest, locked(manifest, index=Index("https://h/cu128", "cu128")))
    raw = lock_bytes(made)
    assert yaml.safe_load(raw)["tenv"]["indexes"] == [{"name": "cu128", "url": "https://h/cu128"}]
    assert parse_lock(raw, "t.lock").wheels == made.wheels
    assert differences(parse_lock(raw, "t.lock"), manifest) == []
    plain = lock_bytes(lock_of(manifest, locked(manifest)))
    assert b"index" not in plain.replace(b"index=cu128", b"")


@each(
    "origin, said",
    [
        ({}, "torch is locked from the indexes in use, the manifest requests the index cu128 (https://h/cu128)"),
        ({"index": Index("https://evil/cu128", "cu128")}, "is locked from the index cu128 (https://evil/cu128)"),
        ({"index": Index("https://h/more")}, "is locked from the index https://h/more, the manifest requests"),
        ({"index": Index("https://h/cu128", "cu128", flat=True)}, "is locked from the index cu128"),
        ({"url": "https://evil/torch-2.9.0+cu128-py3-none-any.whl"}, "https://evil/torch-2.9.0+cu128-py3-none-any.whl"),
        ({"path": "torch-2.9.0+cu128-py3-none-any.whl"}, "which the manifest does not request"),
    ],
)
def test_an_origin_that_the_manifest_does_not_name_is_a_difference(
    origin: dict[str, Any], said: str, tmp_path: Path
) -> None:
    manifest = replace(read(tmp_path, ASKED), platforms=("linux-64",))
    found = differences(parse_lock(lock_bytes(lock_of(manifest, locked(manifest, **origin))), "t.lock"), manifest)
    assert said in found[0]


def test_only_a_request_for_it_takes_an_explicit_index(tmp_path: Path) -> None:
    text = ASKED.replace(', index = "cu128"', "")
    manifest = replace(read(tmp_path, text), platforms=("linux-64",))
    for index, said in (
        (Index("https://h/more"), ""),
        (Index("https://h/cu128", "cu128"), "which serves only requests for it"),
        (Index("https://evil/simple"), "which the manifest does not name"),
    ):
        found = differences(lock_of(manifest, locked(manifest, index=index)), manifest)
        assert bool(found) == bool(said), index
        assert said in "".join(found)


def test_a_file_is_the_requested_one(tmp_path: Path) -> None:
    text = f'[pypi-dependencies]\npure = {{ url = "{URL}#sha256={DIGEST}" }}\n'
    manifest = replace(read(tmp_path, text), platforms=("linux-64",))
    row = replace(wheel("pure", "1.0", "3.11"), requires=())
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"url": URL, "sha256": DIGEST}, ""),
        ({"url": URL}, "is locked with another sha256 than the manifest has"),
        ({"sha256": DIGEST}, "is locked from the indexes in use, the manifest requests https://h/pure-1.0"),
        ({"url": URL.replace("//h/", "//evil/"), "sha256": DIGEST}, "is locked from https://evil/"),
    )
    for changes, said in cases:
        found = differences(lock_of(manifest, replace(row, **changes)), manifest)
        assert bool(found) == bool(said), changes
        assert said in "".join(found)


CHANGES: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "indexes: no package comes from": lambda ours, row: row.pop("index"),
    "is not among the indexes of the lock": lambda ours, _: ours.pop("indexes"),
    "stands beside `index`": lambda _, row: row.update(path="torch-2.9.0+cu128-py3-none-any.whl"),
    "expected an address": lambda ours, _: ours["indexes"][0].update(url="ssh://h/cu128"),
    "has a login": lambda ours, _: ours["indexes"][0].update(url="https://me:pw@h/cu128"),
    "unknown key": lambda ours, _: ours["indexes"][0].update(explicit=True),
    "is not a path such as": lambda ours, _: ours["indexes"][0].update(url="~/wheels"),
    "is there twice": lambda ours, _: ours["indexes"].append({**ours["indexes"][0]}),
}


@each("said", CHANGES)
def test_a_corrupt_origin_is_refused(said: str, tmp_path: Path) -> None:
    manifest = replace(read(tmp_path, ASKED), platforms=("linux-64",))
    data = yaml.safe_load(lock_bytes(lock_of(manifest, locked(manifest, index=Index("https://h/cu128", "cu128")))))
    CHANGES[said](data["tenv"], data["tenv"]["wheels"]["linux-64"][0])
    with pytest.raises(LockCorruptError, match=said):
        parse_lock(yaml.safe_dump(data, sort_keys=False).encode(), "t.lock")
