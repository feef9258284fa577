"""A mark that can't be what tenv wrote is none."""

from pathlib import Path

from tenv.environment.marks import Registry
from tests.support.each import each


def test_one_of_several_safe_folders_is_enough(tmp_path: Path) -> None:
    outer, inner, env = tmp_path, tmp_path / "srv", tmp_path / "srv" / "env"
    (env / "tenv-meta").mkdir(parents=True)
    outer.chmod(0o777)
    for named in ((inner,), (inner, outer), (outer, inner)):
        assert Registry(tmp_path / "data", lambda named=named: named).is_safe(env)  # type: ignore[misc]
    assert not Registry(tmp_path / "data", lambda: (outer,)).is_safe(env)
    assert not Registry(tmp_path / "data", lambda: (tmp_path / "other",)).is_safe(env)


@each("line", ["\0", "/a\0b", ""])
def test_a_damaged_place_in_a_mark(line: str, tmp_path: Path) -> None:
    prefix, registry = tmp_path / "prefix", Registry(tmp_path / "data", tuple)
    (prefix / "tenv-meta").mkdir(parents=True)
    registry.mark(prefix)
    assert registry.is_marked(prefix)
    (mark,) = registry.folder.iterdir()
    rest = mark.read_text().split("\n")[1:]
    mark.write_text("\n".join([line, *rest]))
    assert not registry.is_marked(prefix)
