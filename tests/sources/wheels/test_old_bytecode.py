"""Byte code of replaced modules goes, inside the environment and where PYTHONPYCACHEPREFIX keeps it."""

from pathlib import Path

from tenv.environment.installed_files import Expected
from tenv.sources.wheels.after_install import remove_old_bytecode


def test_only_the_byte_code_of_changed_modules_goes(tmp_path: Path) -> None:
    prefix, elsewhere = tmp_path / "environment", tmp_path / "cache"
    caches = (prefix / "lib/__pycache__", elsewhere / (prefix / "lib").relative_to(prefix.anchor))
    names = ("changed.cpython-311.pyc", "gone.cpython-311.pyc", "same.cpython-311.pyc", "changed_too.cpython-311.pyc")
    for cache in caches:
        cache.mkdir(parents=True)
        for name in names:
            (cache / name).touch()
    before = [Expected(f"lib/{name}.py", "x", f"sha256:{name}") for name in ("changed", "gone", "same")]
    now = [Expected("lib/changed.py", "x", "sha256:new"), Expected("lib/same.py", "x", "sha256:same")]
    remove_old_bytecode(prefix, before, now, str(elsewhere))
    for cache in caches:
        assert sorted(path.name for path in cache.iterdir()) == [names[3], names[2]]


def test_a_record_that_names_a_path_outside_removes_nothing(tmp_path: Path) -> None:
    prefix, elsewhere = tmp_path / "environment", tmp_path / "cache"
    prefix.mkdir()
    for cache in (tmp_path / "other/__pycache__", elsewhere / (tmp_path / "other").relative_to(tmp_path.anchor)):
        cache.mkdir(parents=True)
        (cache / "module.cpython-311.pyc").touch()
    remove_old_bytecode(prefix, [Expected("../other/module.py", "x", "sha256:a")], [], str(elsewhere))
    assert len([*tmp_path.rglob("*.pyc")]) == 2
