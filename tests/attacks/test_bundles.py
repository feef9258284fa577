"""Bundles that were cut or altered by chance or by an attacker: refused with their name, and nothing is left."""

import hashlib
import io
import json
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenv.core.errors import BundleRefusedError, TenvError
from tenv.core.files import digest_bytes
from tenv.install.bundle_file import BundleReader, Head, Member, write_bundle
from tenv.sources.archives.store import bundles_folder
from tenv.sources.interface import CarriedFile
from tests.support.each import each
from tests.support.projects import Project, call, snapshot

_TRIES = 100


def tiny(tmp_path: Path) -> bytes:
    """Return a bundle of three small files."""
    contents = {f"file-{number}.whl": bytes([number]) * (300 * number) for number in range(3)}
    rows = tuple(
        CarriedFile("wheels", name, digest_bytes(data), len(data), ("linux-64",)) for name, data in contents.items()
    )
    for data in contents.values():
        (tmp_path / digest_bytes(data)).write_bytes(data)
    texts = (b"a manifest", b"a lock")
    head = Head(
        "tiny",
        ("linux-64",),
        "",
        (Member.of("manifests/tiny.toml", texts[0]),),
        Member.of("locks/tiny.lock", texts[1]),
        rows,
    )
    out = io.BytesIO()
    write_bundle(out, head, texts, lambda row: tmp_path / row.sha256, lambda _: None)
    return out.getvalue()


def read(data: bytes) -> None:
    reader = BundleReader(io.BytesIO(data), "tiny.tenv")
    reader.unpack(reader.open().head, lambda _: None, lambda _: None)


def test_every_cut_and_every_altered_byte_is_refused(tmp_path: Path) -> None:
    whole, chance = tiny(tmp_path), random.Random(40)
    read(whole)
    for number in range(_TRIES):
        at = chance.randrange(len(whole))
        other = bytes([whole[at] ^ (1 << chance.randrange(8))])
        changed = whole[:at] if number % 3 == 0 else whole[:at] + other + whole[at + 1 :]
        changed = whole[:at] + whole[at + 512 :] if number % 3 == 1 and at + 512 < len(whole) else changed
        with pytest.raises(BundleRefusedError, match=r"^tiny\.tenv "):
            read(changed)
    with pytest.raises(BundleRefusedError, match="bytes follow its end"):
        read(whole + b"\0")


@each(
    "change, said",
    [
        (lambda head: head.update(schema=2), "its schema is 2"),
        (lambda head: head["files"].append(head["files"][0]), "values that tenv does not write"),
        (lambda head: head["files"][0].__setitem__(1, "../../x.whl"), "values that tenv does not write"),
        (lambda head: head["files"][0].__setitem__(1, "-x.whl"), "values that tenv does not write"),
        (lambda head: head["files"][0].__setitem__(3, -1), "values that tenv does not write"),
        (lambda head: head["files"][0].__setitem__(3, 1 << 60), "values that tenv does not write"),
        (lambda head: head["manifests"][0].__setitem__(0, "manifests/../x.toml"), "values that tenv does not write"),
        (lambda head: head.update(target="../x"), "values that tenv does not write"),
        (lambda head: head.update(more=1), "values that tenv does not write"),
        (lambda head: head["files"][0].__setitem__(1, "C:x.whl"), "values that tenv does not write"),
        (lambda head: head["files"][0].__setitem__(1, "\u00e4" * 128), "values that tenv does not write"),
        (lambda head: head["files"][0].__setitem__(1, "FILE-1.whl"), "values that tenv does not write"),
        (lambda head: head["manifests"].extend([head["manifests"][0]]), "values that tenv does not write"),
        (lambda head: head.update(files=[1]), "can't be read"),
        (lambda head: head.update(files=[[]]), "can't be read"),
        (lambda head: head.update(manifests=[[1] * 4]), "can't be read"),
        (lambda head: head["files"][0].__setitem__(1, "\ud800"), "values|can't be read"),
        (lambda head: head.update(schema="9" * 10000), "its schema is '9{39}, and"),
        (lambda head: head.pop("lock"), "can't be read"),
    ],
)
def test_a_head_with_a_right_digest_and_wrong_values_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    with pytest.raises(BundleRefusedError, match=said):
        read(forged(tiny(tmp_path), change))


@each("size", [-1, -600, (8 << 20) + 1, 60 << 20])
def test_a_head_of_a_size_that_tenv_does_not_write_is_not_read(size: int) -> None:
    info = tarfile.TarInfo(f"tenv-bundle-{'0' * 64}.json")
    info.size = size
    file = io.BytesIO(info.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
    with pytest.raises(BundleRefusedError, match="another first header"):
        BundleReader(file, "tiny.tenv").open()
    assert file.tell() == 512


def forged(bundle: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a bundle with another head, whose own digest is right."""
    size = tarfile.TarInfo.frombuf(bundle[:512], "utf-8", "strict").size
    head = json.loads(bundle[512 : 512 + size])
    change(head)
    raw = (json.dumps(head, indent=0) + "\n").encode()
    info = tarfile.TarInfo(f"tenv-bundle-{digest_bytes(raw)}.json")
    info.size = len(raw)
    rest = bundle[512 + size + -size % 512 :]
    return info.tobuf(tarfile.GNU_FORMAT) + raw + bytes(-len(raw) % 512) + rest


def _entry(head: dict[str, Any], name: str) -> list[Any]:
    return next(row for row in head["files"] if row[1].startswith(name))


def test_a_refused_bundle_leaves_nothing(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that the lock does not name, files that are missing, and a lock that was altered with its files."""
    created.ok("bundle")
    whole, bad = Path("tiny.tenv").read_bytes(), Path("bad.tenv")
    before, lock = snapshot(created.prefix), created.lock.read_bytes()
    wheel = next(created.index.folder.glob("beta-*.whl")).read_bytes()
    evil = wheel[:-1] + b"\1"
    old, new = hashlib.sha256(wheel).hexdigest(), hashlib.sha256(evil).hexdigest()
    assert wheel in whole
    other_lock = lock.replace(old.encode(), new.encode())

    def both(head: dict[str, Any]) -> None:
        _entry(head, "beta")[2] = new
        head["lock"][1] = digest_bytes(other_lock)

    together = whole.replace(wheel, evil).replace(f"files/{old}".encode(), f"files/{new}".encode())
    cases = [
        (6, "bundle-refused", whole[: len(whole) // 2]),
        (6, "bundle-refused", whole.replace(wheel, evil)),
        (6, "bundle-refused", forged(together, lambda head: _entry(head, "beta").__setitem__(2, new))),
        (6, "bundle-refused", forged(whole, lambda head: head["files"].pop())),
        (6, "bundle-refused", forged(whole, lambda head: _entry(head, "beta").__setitem__(1, "eve-1.whl"))),
        (6, "bundle-refused", forged(whole, lambda head: head.update(python="2.7"))),
        (7, "lock-stale", forged(together.replace(lock, other_lock), both)),
    ]
    for status, code, data in cases:
        bad.write_bytes(data)
        said = created.fails(status, code, "create", "tiny", "--bundle", "bad.tenv")
        assert said.partition("]: ")[2].startswith("bad.tenv")
        assert snapshot(created.prefix) == before
        assert not any(bundles_folder().iterdir())


def test_a_bundle_can_not_replace_a_manifest_that_is_here(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent of another target stays, whatever a bundle calls it."""
    home = created.folder / "manifests"
    (home / "base.toml").write_text(created.manifest.read_text())
    created.manifest.write_text('extends = "base"\n')
    created.ok("create", "tiny")
    made = created.ok("bundle", "--json").data
    (home / "base.toml").write_text((home / "base.toml").read_text() + "# another\n")
    created.manifest.unlink()
    created.lock.unlink()
    words = ("create", "--bundle", "tiny.tenv", "--lock-digest", made["lock_digest"])
    assert "extends base, which differs here" in created.fails(7, "lock-stale", *words)
    assert not created.manifest.exists()


def test_a_bundle_brings_no_target_beside_its_own(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of a lock vouches for its target, not for another manifest that lies in the bundle."""
    made = created.ok("bundle", "--json").data
    whole, evil = Path("tiny.tenv").read_bytes(), b'platforms = ["linux-64"]\n'
    size = tarfile.TarInfo.frombuf(whole[:512], "utf-8", "strict").size
    lock = whole.index(b"locks/tiny.lock\0", 512 + size)
    info = tarfile.TarInfo("manifests/other.toml")
    info.size = len(evil)
    member = info.tobuf(tarfile.GNU_FORMAT) + evil + bytes(-len(evil) % 512)
    row = ["manifests/other.toml", digest_bytes(evil), len(evil)]
    bad = created.folder / "bad.tenv"
    bad.write_bytes(forged(whole[:lock] + member + whole[lock:], lambda head: head["manifests"].append(row)))
    own = elsewhere(created, monkeypatch)
    words = ("create", "--bundle", str(bad), "--lock-digest", made["lock_digest"])
    assert "does not extend other" in created.fails(6, "bundle-refused", *words)
    assert not own.exists() or not any(own.iterdir())


def elsewhere(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder of no project; return the user's folder."""
    folder = project.folder.parent / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return Path(os.environ["XDG_CONFIG_HOME"]) / "tenv"


def with_manifest(bundle: bytes, text: bytes) -> bytes:
    """Return a bundle with another manifest in place of its only one."""
    size = tarfile.TarInfo.frombuf(bundle[:512], "utf-8", "strict").size
    start = 512 + size + -size % 512
    end = bundle.index(b"locks/tiny.lock\0", start)
    info = tarfile.TarInfo("manifests/tiny.toml")
    info.size = len(text)
    member = info.tobuf(tarfile.GNU_FORMAT) + text + bytes(-len(text) % 512)
    row = ["manifests/tiny.toml", digest_bytes(text), len(text)]
    return forged(bundle[:start] + member + bundle[end:], lambda head: head.update(manifests=[row]))


def test_a_manifest_that_its_lock_does_not_satisfy_is_refused(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest of a good lock does not vouch for the requests of another manifest."""
    made = created.ok("bundle", "--json").data
    bad = created.folder / "bad.tenv"
    line = 'torchx = { git = "https://example.invalid/evil.git" }'
    text = f"{created.manifest.read_text()}{line}\n".encode()
    bad.write_bytes(with_manifest(Path("tiny.tenv").read_bytes(), text))
    own = elsewhere(created, monkeypatch)
    words = ("create", "--bundle", str(bad), "--lock-digest", made["lock_digest"])
    said = created.fails(6, "bundle-refused", *words)
    assert "its lock does not satisfy its manifest" in said
    assert "torchx" in said
    assert not own.exists() or not any(own.iterdir())


def test_no_file_of_the_user_is_overwritten(created: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock without a manifest, before the bundle is read and while the user reads the question."""
    made = created.ok("bundle", "--json").data
    bundle, home = created.folder / "tiny.tenv", elsewhere(created, monkeypatch)
    mine = home / "locks" / "tiny.lock"

    def write() -> None:
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.write_text("mine")

    def write_late(*_: object) -> None:
        write()

    words = ("create", "--bundle", str(bundle), "--lock-digest", made["lock_digest"])
    for early in (True, False):
        with monkeypatch.context() as patch:
            if early:
                write()
            else:
                mine.unlink()
                patch.setattr("tenv.verbs.bundle._unpack", write_late)
            assert f"is not {mine}" in created.fails(7, "lock-stale", *words)
        assert mine.read_text() == "mine"
        assert not (home / "manifests").exists()


def test_a_bundle_error_is_one_of_the_network() -> None:
    assert issubclass(BundleRefusedError, TenvError)
    assert BundleRefusedError("x").status == 6


def test_the_digest_of_a_lock_does_not_vouch_for_code_that_a_manifest_permits(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next `tenv lock` would run it: the build of a source archive, or an index of the attacker."""
    made = created.ok("bundle", "--json").data
    whole, text = Path("tiny.tenv").read_bytes(), created.manifest.read_text()
    own = elsewhere(created, monkeypatch)
    bad = created.folder / "bad.tenv"
    for changed in (
        f'sdists = ["evil"]\n{text}',
        text.replace('alpha  = ">=1"', 'alpha = { version = ">=1", build = true }'),
        f'{text}[[index]]\nname = "evil"\nurl = "https://example.invalid/simple"\nexplicit = true\n',
    ):
        assert changed != text
        bad.write_bytes(with_manifest(whole, changed.encode()))
        ended = call("create", "--bundle", str(bad), "--lock-digest", made["lock_digest"])
        assert ended.status in (2, 6), (changed, ended)
        assert not own.exists() or not any(own.iterdir())
