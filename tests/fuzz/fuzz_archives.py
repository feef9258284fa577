"""Throw broken and hostile input at the unpacker and at the reader of redist manifests.

    python tests/fuzz/fuzz_archives.py --seed 1 --seconds 60

Every round is made from the seed and its number alone: ``--first N --rounds 1`` plays round N again. A round fails when
anything but tenv's own error comes out, when a file appears outside the folder that was asked for, when a refused
archive leaves anything behind, or when a round takes longer than it may.
"""

import argparse
import json
import random
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "src")]

from tenv.core.errors import ArchiveRefusedError, NetworkError  # noqa: E402 (after the path is set)
from tenv.core.unpack_limits import UnpackLimits  # noqa: E402
from tenv.sources.archives.answers import KINDS  # noqa: E402
from tenv.sources.archives.redist import parse_manifest  # noqa: E402
from tenv.sources.archives.unpack import unpack  # noqa: E402
from tests.support.redist import Member, pack  # noqa: E402

LIMITS = UnpackLimits(entries=500, bytes=8 << 20, ratio=100, free=1 << 20, memory=64 << 20)
SLOW = 20.0
KINDS_OF_MEMBERS = (
    *(tarfile.REGTYPE,) * 6,
    *(tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE),
    *(tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE),
)
PARTS = (
    *("a", "b", "c", "A", "lib", "LIB", "..", ".", "", "include", "x" * 60, "x" * 300, "con"),
    *("é", "e\u0301", "ß", "SS", "a b", "-rf", "~", "a\\b", "C:", "\x01", "\u202e", "/", "tenv-meta", "LICENSE"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1.5, "", "x", "12", "../x", "/etc/passwd", "\0", "0" * 64, "f" * 63, [], {}, [1]),
    *({"cuda12": {}}, {"relative_path": "a/b.zip"}, "a/b.tar.xz", "https://h/x", "é", "\ud800", "1.2.3.4", 2**63),
)


def name(rng: random.Random) -> str:
    return "/".join(rng.choice(PARTS) for _ in range(rng.randint(1, 4)))


def member(rng: random.Random, kinds: tuple[bytes, ...]) -> Member:
    kind = rng.choice(kinds)
    data = rng.randbytes(rng.choice((0, 1, 511, 512, 513, 5000))) if kind == tarfile.REGTYPE else b""
    mode = rng.choice((0o644, 0o755, 0o644, 0o755, 0o4755, 0o2644, 0o1777, 0))
    return Member(name(rng), kind, data, name(rng), mode)


def mutated(rng: random.Random, raw: bytes) -> bytes:
    """Return bytes with a few of them changed, taken out, doubled or cut off."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 6)):
        if not data:
            break
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at : at + rng.randint(1, 64)] = rng.randbytes(rng.randint(0, 64))
            case 2:
                del data[at:]
            case 3:
                data[at:at] = data[at : at + rng.randint(1, 2048)]
            case 4:
                data[at : at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"77777777", b"\x80" + b"\0" * 7))
            case _:
                del data[at : at + rng.randint(1, 512)]
    return bytes(data)


def archive(rng: random.Random) -> tuple[str, bytes]:
    kind = rng.choice(KINDS)
    kinds = KINDS_OF_MEMBERS if rng.random() < 0.5 else (tarfile.REGTYPE, tarfile.DIRTYPE)
    members = [member(rng, kinds) for _ in range(rng.randint(0, 8))]
    try:
        raw = pack(kind, members)
    except Exception:  # noqa: BLE001 (the library that packs refuses such names)
        raw = pack("tar.gz", [])
    inner = rng.random()
    if inner < 0.45:
        return kind, mutated(rng, raw)
    if inner < 0.6 and kind.startswith("tar"):  # broken inside, whole outside
        from tests.support import redist

        return kind, _compress(kind, mutated(rng, redist.tar(member for member in members if member.name)))
    return rng.choice(KINDS) if inner > 0.97 else kind, raw


def _compress(kind: str, raw: bytes) -> bytes:
    import bz2
    import gzip
    import lzma

    if kind == "tar.gz":
        return gzip.compress(raw)
    return lzma.compress(raw) if kind == "tar.xz" else bz2.compress(raw)


def below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def unpack_round(rng: random.Random, home: Path) -> str:
    """Unpack one archive; return how that ended."""
    kind, raw = archive(rng)
    file = home / f"round.{kind}"
    file.write_bytes(raw)
    shelf = home / "shelf"
    shelf.mkdir()
    target = shelf / "out"
    strip, windows = rng.choice((0, 0, 1, 2)), rng.random() < 0.2
    try:
        contents = unpack(file, kind, target, strip=strip, windows=windows, limits=LIMITS)
    except ArchiveRefusedError:
        assert below(home) == {file, shelf}, f"left behind: {below(home)}"
        return "archive refused"
    found = {path for path in below(target) if not path.is_dir() or path.is_symlink()}
    assert found == {target / path for path in (*contents.files, *contents.links)}, "not what was told"
    for path in found:
        assert path.resolve().is_relative_to(target.resolve()), f"{path} leads out"
        assert path.is_symlink() or not path.stat().st_mode & 0o7022, f"{path} has rights"
    assert {path.name for path in home.iterdir()} == {file.name, "shelf"}
    assert [path.name for path in shelf.iterdir()] == ["out"]
    return "archive unpacked"


def edited(rng: random.Random, value: Any) -> Any:
    """Return a JSON value with a few parts of it replaced, renamed or gone."""
    if not isinstance(value, dict) or rng.random() < 0.05:
        return rng.choice(VALUES)
    result = dict(value)
    for key in list(result):
        chance = rng.random()
        if chance < 0.15:
            result[key] = edited(rng, result[key])
        elif chance < 0.2:
            del result[key]
        elif chance < 0.25:
            result[rng.choice(("version", "cuda12", "size", "linux-x86_64", "x", ""))] = result.pop(key)
        elif isinstance(result[key], dict):
            result[key] = edited(rng, result[key]) if chance < 0.6 else result[key]
    return result


def seeds() -> Iterator[bytes]:
    for path in sorted((Path(__file__).parents[1] / "data").glob("redistrib_*.json")):
        yield path.read_bytes()


def manifest_round(rng: random.Random, texts: list[bytes]) -> str:
    """Read one manifest; return how that ended."""
    raw = rng.choice(texts)
    if rng.random() < 0.6:
        raw = json.dumps(edited(rng, json.loads(raw))).encode("utf-8", "surrogatepass")
    if rng.random() < 0.5:
        raw = mutated(rng, raw)
    try:
        found = parse_manifest(raw, "https://developer.download.nvidia.com/compute/x/redist/redistrib_1.json")
        for component in found.components():
            for platform in ("linux-x86_64", "linux-sbsa", "windows-x86_64"):
                for file in found.files(component, platform):
                    assert ".." not in file.path.split("/")
                    assert not file.path.startswith("/")
                    assert len(file.sha256) == 64
                    assert file.size is None or file.size >= 0
    except NetworkError:
        return "manifest refused"
    return "manifest read"


def main() -> int:
    parser = argparse.ArgumentParser(description="Throw broken and hostile input at tenv's archives.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first round")
    parser.add_argument("--rounds", type=int, default=None, help="how many rounds at most")
    given = parser.parse_args()
    texts = list(seeds())
    ends: dict[str, int] = {}
    started = told = time.monotonic()
    number = given.first
    home = Path(tempfile.mkdtemp(prefix="tenv-fuzz-"))
    try:
        while time.monotonic() - started < given.seconds and number - given.first != given.rounds:
            rng = random.Random(f"{given.seed}-{number}")
            began = time.monotonic()
            try:
                end = unpack_round(rng, home) if number % 3 else manifest_round(rng, texts)
                assert time.monotonic() - began < SLOW, "took too long"
            except BaseException:
                print(f"seed {given.seed}, round {number} failed", flush=True)
                raise
            ends[end] = ends.get(end, 0) + 1
            for path in home.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            number += 1
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"seed {given.seed}: {number} rounds, {told - started:.0f} s, {ends}", flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"seed {given.seed}: rounds {given.first} to {number - 1}, {time.monotonic() - started:.0f} s, {ends}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
