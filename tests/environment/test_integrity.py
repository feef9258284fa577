"""Whether the files of a prefix are still those that were put there."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

from tenv.core import files
from tenv.environment.installed_files import Expected
from tenv.environment.integrity import check, describe_made, expect_made
from tenv.sources.conda.source import CondaPackages
from tenv.sources.wheels.installed import Wheels
from tests.support.fakes import make_wheel, unpack

SITE = "lib/python3.12/site-packages"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A prefix with one wheel in it."""
    made = tmp_path / "prefix"
    unpack(make_wheel(tmp_path, "alpha", "1.0", files={"alpha/__init__.py": "x = 1\n"}), made / SITE)
    return made


def info(prefix: Path) -> Path:
    return prefix / SITE / "alpha-1.0.dist-info"


def wheel(prefix: Path) -> list[Expected]:
    return list(Wheels(prefix).expected({"alpha": ("1.0", "")}))


def faults(prefix: Path, expected: Iterable[Expected]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = check(prefix, expected)
    return found.missing, found.changed


def test_a_wheel_is_whole(prefix: Path) -> None:
    expected = wheel(prefix)
    assert f"{SITE}/alpha/__init__.py" in {row.name for row in expected}
    assert check(prefix, expected).owners == ()
    assert faults(prefix, expected) == ((), ())


def test_a_changed_file_and_a_missing_one_are_told(prefix: Path) -> None:
    (prefix / SITE / "alpha" / "__init__.py").write_text("x = 2\n")
    (info(prefix) / "METADATA").unlink()
    found = check(prefix, wheel(prefix))
    assert found.missing == (f"{SITE}/alpha-1.0.dist-info/METADATA",)
    assert found.changed == (f"{SITE}/alpha/__init__.py",)
    assert found.owners == ("alpha",)


def test_a_missing_record_is_missing(prefix: Path) -> None:
    (info(prefix) / "RECORD").unlink()
    assert faults(prefix, wheel(prefix)) == ((f"{SITE}/alpha-1.0.dist-info/RECORD",), ())


def test_a_link_where_a_file_was_is_judged_by_what_it_leads_to(prefix: Path, tmp_path: Path) -> None:
    file = prefix / SITE / "alpha" / "__init__.py"
    file.unlink()
    file.symlink_to(tmp_path / "nowhere")
    assert faults(prefix, wheel(prefix)) == ((), (f"{SITE}/alpha/__init__.py",))


def test_bytecode_does_not_count(prefix: Path) -> None:
    with (info(prefix) / "RECORD").open("a") as record:
        record.write("alpha/__pycache__/__init__.cpython-312.pyc,,\n")
    assert faults(prefix, wheel(prefix)) == ((), ())


@pytest.mark.parametrize("digest", ["md4=abc", "sha256=", "sha256=%", "nonsense", ""])
def test_a_row_without_a_usable_digest_asks_only_that_the_file_is_there(prefix: Path, digest: str) -> None:
    with (info(prefix) / "RECORD").open("a") as record:
        record.write(f"extra.txt,{digest},\n")
    assert faults(prefix, wheel(prefix)) == ((f"{SITE}/extra.txt",), ())
    (prefix / SITE / "extra.txt").write_text("")
    assert faults(prefix, wheel(prefix)) == ((), ())


def conda(prefix: Path, *rows: dict[str, Any]) -> Path:
    note = prefix / "conda-meta" / "zlib-1.3-h0_1.json"
    note.parent.mkdir(exist_ok=True)
    note.write_text(json.dumps({"name": "zlib", "paths_data": {"paths": rows}}))
    return note


def zlib(prefix: Path) -> list[Expected]:
    return list(CondaPackages(prefix).expected({"zlib": ("1.3", "h0_1", "")}))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_conda_package_is_judged_by_its_note(prefix: Path) -> None:
    (prefix / "include").mkdir()
    (prefix / "include" / "zlib.h").write_text("same")
    (prefix / "include" / "paths.h").write_text("with the prefix in it")
    (prefix / "include" / "link.h").symlink_to("zlib.h")
    conda(
        prefix,
        {"_path": "include/zlib.h", "path_type": "hardlink", "sha256": sha("same")},
        {"_path": "include/paths.h", "sha256": sha("before"), "sha256_in_prefix": sha("with the prefix in it")},
        {"_path": "include/link.h", "path_type": "softlink", "sha256": sha("whatever")},
        {"_path": "lib/__pycache__/x.pyc", "sha256": sha("whatever")},
    )
    assert faults(prefix, zlib(prefix)) == ((), ())
    (prefix / "include" / "zlib.h").write_text("other")
    (prefix / "include" / "link.h").unlink()
    found = check(prefix, zlib(prefix))
    assert (found.missing, found.changed, found.owners) == (("include/link.h",), ("include/zlib.h",), ("zlib",))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "zlib"}', '{"name": "zlib", "paths_data": 3}'])
def test_a_note_that_can_not_be_read_is_changed(prefix: Path, text: str) -> None:
    note = conda(prefix)
    note.write_text(text)
    assert faults(prefix, zlib(prefix)) == ((), ("conda-meta/zlib-1.3-h0_1.json",))


@pytest.fixture
def made(prefix: Path) -> Path:
    """What tenv has made in the prefix, written down."""
    (prefix / "cuda" / "lib").mkdir(parents=True)
    (prefix / "cuda" / "version.json").write_text("{}")
    (prefix / "cuda" / "include").symlink_to("../lib")
    (prefix / "cuda" / "lib64").symlink_to("lib")
    file = prefix / "made.json"
    file.write_text(describe_made(prefix, ("cuda", "not-there")))
    return file


def test_what_tenv_made_is_whole(prefix: Path, made: Path) -> None:
    assert len(list(expect_made(made, prefix))) == 3
    assert faults(prefix, expect_made(made, prefix)) == ((), ())


def test_links_that_are_gone_lead_elsewhere_or_nowhere_are_told(prefix: Path, made: Path) -> None:
    (prefix / "cuda" / "lib64").unlink()
    (prefix / "cuda" / "include").unlink()
    (prefix / "cuda" / "include").symlink_to("lib")
    (prefix / "cuda" / "version.json").write_text("[]")
    assert faults(prefix, expect_made(made, prefix)) == (("cuda/lib64",), ("cuda/include", "cuda/version.json"))
    (prefix / "cuda" / "lib64").mkdir()
    assert "cuda/lib64" in check(prefix, expect_made(made, prefix)).changed


def test_a_link_to_a_file_that_is_gone_is_missing(prefix: Path, made: Path) -> None:
    (prefix / "cuda" / "lib").rmdir()
    assert faults(prefix, expect_made(made, prefix)) == (("cuda/lib64",), ())


@pytest.mark.parametrize("text", ["[", "[" * 200_000])
def test_notes_that_are_not_there_or_broken(prefix: Path, tmp_path: Path, text: str) -> None:
    assert list(expect_made(tmp_path / "nowhere", prefix)) == []
    (prefix / "made.json").write_text(text)
    assert faults(prefix, expect_made(prefix / "made.json", prefix)) == ((), ("made.json",))


def test_many_files_are_a_few_tasks_and_each_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = []
    for number in range(300):
        text = b"x" * (number * 1000)
        (tmp_path / f"f{number}").write_bytes(text)
        right = hashlib.sha256(text).hexdigest()
        rows.append(Expected(f"f{number}", "p", f"sha256:{right if number % 7 else '0' * 64}"))
    started = create_autospec(Thread.start, side_effect=Thread.start)
    hashed = Mock(wraps=files.hash_regular)
    monkeypatch.setattr(Thread, "start", started)
    monkeypatch.setattr(files, "hash_regular", hashed)
    found = check(tmp_path, rows)
    assert found.changed == tuple(sorted(f"f{number}" for number in range(0, 300, 7)))
    assert len({call.args[0] for call in hashed.call_args_list}) == hashed.call_count == len(rows)
    assert started.call_count <= 8
