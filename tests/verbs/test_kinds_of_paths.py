"""Each kind of path that tenv puts into an environment, with each kind of damage: found, and repaired."""

import itertools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.conda import Link
from tests.support.conda_project import Conda, wheel_of
from tests.support.projects import HERE, Project, call, snapshot
from tests.support.rarely import first_fast
from tests.support.redist import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="links, and rights of files")

Damage = Callable[[Path, Path], "Path | None"]
"""Damages a path, with a folder outside the environment at hand; returns where a repair puts the user's file in it."""


def removed(path: Path, outside: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def edited(path: Path, outside: Path) -> None:
    """Append to a file in place, as an editor does that keeps the inode: a cache may have it, too."""
    with path.open("ab") as file:
        file.write(b" ")


def replaced(path: Path, outside: Path) -> None:
    path.unlink()
    path.write_text("another file\n")


def linked_to_the_same(path: Path, outside: Path) -> None:
    """Put a link in the place of a path, to the same content elsewhere."""
    copy = outside / path.name
    path.rename(copy) if path.is_dir() else shutil.copy(path, copy)
    path.unlink(missing_ok=True)
    path.symlink_to(copy)


def linked_elsewhere(path: Path, outside: Path) -> None:
    other = outside / "other"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    path.unlink()
    path.symlink_to(other)


def dangling(path: Path, outside: Path) -> None:
    path.unlink()
    path.symlink_to(outside / "nowhere")


def empty_folder(path: Path, outside: Path) -> None:
    path.unlink()
    path.mkdir()


def folder_with_a_file(path: Path, outside: Path) -> Path:
    path.unlink()
    path.mkdir()
    (path / "mine.txt").write_text("mine")
    return Path(f"{path.name}.aside-1") / "mine.txt"


def other_rights(path: Path, outside: Path) -> None:
    path.chmod(path.stat().st_mode ^ 0o100)


def file_with_the_content(path: Path, outside: Path) -> None:
    data = path.read_bytes() if path.is_file() else b""
    path.unlink()
    path.write_bytes(data)


def file_in_its_place(path: Path, outside: Path) -> Path:
    shutil.rmtree(path)
    path.write_text("mine")
    return Path(f"{path.name}.aside-1")


ANYTHING: tuple[Damage, ...] = (removed, linked_elsewhere, dangling, empty_folder, folder_with_a_file)
DAMAGES: dict[str, tuple[Damage, ...]] = {
    "file": (*ANYTHING, edited, replaced, linked_to_the_same, other_rights),
    "link": (*ANYTHING, file_with_the_content),
    "folder": (removed, linked_to_the_same, file_in_its_place),
}


def kind_of(path: Path) -> str:
    return "link" if path.is_symlink() else "folder" if path.is_dir() else "file"


@pytest.fixture
def of_wheels(created: Project) -> tuple[Project, list[str]]:
    site = created.site().relative_to(created.prefix)
    names = ["alpha.py", "native.py", "alpha-1.0.dist-info/METADATA", "beta-1.0.dist-info", "_virtualenv.py"]
    names += ["alpha-1.0.dist-info/RECORD"]
    notes = ["tenv-meta/activation.json", "tenv-meta/activate.sh", "tenv-meta/locks/000001.lock"]
    own = ["bin/beta", "bin/activate", "lib64", ".gitignore"]
    return created, [*own, *notes, *(f"{site}/{name}" for name in names if (created.site() / name).exists())]


@pytest.fixture
def of_conda(conda: Conda, python_package: Path) -> tuple[Project, list[str]]:
    conda.make(
        "links",
        files={
            "lib/libone.so.1.2": b"\x7fELF one",
            "lib/libone.so.1": Link("libone.so.1.2"),
            "lib/libone.so": Link("libone.so.1"),
            "lib/nowhere": Link("../absent"),
            "share/links": Link("one"),
            "share/one/a.txt": "a\n",
            "share/two/b.txt": "b\n",
        },
    )
    conda.make("pure", noarch="python", files={"site-packages/pure.py": "pure\n"}, entry_points=["pure = pure:main"])
    conda.take(python_package)
    alpha, beta = (wheel_of(conda.project.index, name) for name in ("alpha", "beta"))
    conda.lock("tool", "data", "links", "pure", "python", wheels=(alpha, beta))
    conda.create()
    names = ["bin/tool", "lib/libtool.so", "share/data.txt", "share/link", "lib/libone.so.1.2", "lib/libone.so.1"]
    names += ["lib/libone.so", "lib/nowhere", "share/links", "share/one", "share/two/b.txt", "bin/pure", "bin/beta"]
    names += [f"lib/python{HERE}/site-packages/{name}" for name in ("pure.py", "alpha.py")]
    names += ["conda-meta/data-1-0.json", f"lib/python{HERE}/os.py"]
    return conda.project, names


@pytest.fixture
def of_archives(project: Project, served: Iterator[Server]) -> tuple[Project, list[str]]:
    project.manifest.write_text(project.manifest.read_text() + '\n[archives]\ncunovel = "7.1.0.3"\n')
    project.ok("lock", "tiny")
    project.ok("create", "tiny")
    home = project.prefix / "opt" / "cunovel"
    found = sorted(path for path in home.rglob("*") if path.is_symlink() or path.is_file())
    names = [str(path.relative_to(project.prefix)) for path in found]
    return project, [*names, "opt/cunovel/include", "opt/cunovel", "tenv-meta/archives/cunovel.json"]


RECORDS = ("RECORD", "beta-1.0.dist-info", "data-1-0.json", "cunovel.json")


def content(project: Project) -> dict[str, str]:
    """Return the files of packages, and of the virtual environment, without notes that a new installation changes."""
    found = snapshot(project.prefix)
    return {name: text for name, text in found.items() if not name.startswith(("tenv-meta", "conda-meta"))}


def check_round(project: Project, names: list[str], turn: int, outside: Path) -> None:
    """Damage paths, each in one way, and repair them: files and records in turn, since a record names the files."""
    before, mine, damaged = content(project), [], list[str]()
    names = [name for name in names if (Path(name).name in RECORDS) == bool(turn % 2)]
    order = random.Random(turn).sample(names, len(names))
    for number, name in enumerate(order):
        if any(name.startswith(f"{other}/") or other.startswith(f"{name}/") for other in damaged):
            continue
        path, place = project.prefix / name, outside / str(number)
        place.mkdir(parents=True)
        ways = DAMAGES[kind_of(path)]
        added = ways[(turn // 2 + names.index(name)) % len(ways)](path, place)
        mine += [project.prefix / added] if added else []
        damaged.append(name)
    (project.prefix / "share").mkdir(exist_ok=True)
    own = project.prefix / "share" / "own.txt"
    own.write_text("mine")

    ended = call("verify", "tiny", "--no-probes", "--json")
    found = ended.data["integrity"]
    reported = {*found["missing"], *found["changed"]}
    unseen = [name for name in damaged if not any(one == name or one.startswith(f"{name}/") for one in reported)]
    assert (ended.status, unseen) == (8, [])
    assert "share/own.txt" in found["extra"]

    project.ok("create", "tiny", "--frozen", "--repair")
    ended = call("verify", "tiny", "--no-probes", "--json")
    assert (ended.status, ended.data["integrity"]["missing"], ended.data["integrity"]["changed"]) == (0, [], [])
    assert {str(path.relative_to(project.prefix)) for path in (own, *mine)} <= {*ended.data["integrity"]["extra"]}
    assert {path.read_text() for path in (own, *mine)} == {"mine"}
    after = content(project)
    assert {name: after.get(name) for name in before if before[name] != after.get(name)} == {}
    for aside in {path.relative_to(project.prefix).parts[0] for path in mine}:  # the next round puts files there, too
        removed(project.prefix / aside, outside)


@pytest.mark.parametrize("turns", first_fast([range(1), range(1, 18)]))
@pytest.mark.parametrize("kind", first_fast(["of_wheels", "of_conda", "of_archives"], 2))
def test_each_damage_of_each_kind_of_path(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, turns: range
) -> None:
    project, names = request.getfixturevalue(kind)
    for turn in turns:
        check_round(project, names, turn, tmp_path / f"outside{turn}")


@pytest.mark.parametrize("kind", ["of_wheels", "of_conda", "of_archives"])
def test_every_path_of_a_new_environment_is_verified(request: pytest.FixtureRequest, kind: str) -> None:
    project, _ = request.getfixturevalue(kind)
    made = {path.relative_to(project.prefix).as_posix(): path for path in project.prefix.rglob("*")}
    made = {name: path for name, path in made.items() if path.is_symlink() or path.is_file()}
    made = {
        name: path
        for name, path in made.items()
        if not name.startswith((".lock", "tenv-meta", "conda-meta", "bin/python"))
    }
    made = {name: path for name, path in made.items() if path.parent.suffix != ".dist-info"}  # the records themselves
    for path in made.values():
        path.unlink()
    found = call("verify", "tiny", "--no-probes", "--json").data["integrity"]
    assert made.keys() - {*found["missing"], *found["changed"]} == set()


ESSENTIAL: tuple[Damage, ...] = (removed, linked_elsewhere, dangling, empty_folder, folder_with_a_file)


WORDS = {"create": (), "repair": ("--repair",)}
EVERY = [*itertools.product(ESSENTIAL, WORDS)]
PYTHONS = [
    pytest.param("of_wheels", [(empty_folder, "repair")]),
    pytest.param("of_wheels", EVERY, marks=pytest.mark.long),
    pytest.param("of_conda", EVERY, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("kind", "ways"), PYTHONS)
def test_another_python_is_not_run_and_goes(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, ways: list[tuple[Damage, str]]
) -> None:
    project, _ = request.getfixturevalue(kind)
    for number, (damage, name) in enumerate(ways):
        (tmp_path / f"{number}").mkdir()
        mine = check_python(project, damage, WORDS[name], tmp_path / f"{number}")
        if mine:  # the next way puts a file there, too
            removed(project.prefix / mine.parts[0], tmp_path)


def check_python(project: Project, damage: Damage, words: tuple[str, ...], outside: Path) -> Path | None:
    """Damage the Python, and repair it; return where the user's file in it is then."""
    before, python = content(project), project.prefix / "bin" / "python"
    mine = damage(python, outside)
    ended = project.ran("run", "tiny", "--", "true")
    assert (ended.status, "so the environment can't be used" in ended.err) == (8, True), damage
    assert call("verify", "tiny", "--no-probes").status == 8
    assert [row["state"] for row in project.ok("list", "--json").data] == ["broken"]
    project.ok("create", "tiny", "--frozen", *words)
    assert call("verify", "tiny", "--no-probes").status == 0
    subprocess.run([project.prefix / "bin" / "python", "-c", "import alpha"], check=True)
    after = content(project)
    assert {name: after.get(name) for name in before if before[name] != after.get(name)} == {}
    assert mine is None or (project.prefix / mine).read_text() == "mine"
    return mine


@pytest.mark.long
def test_a_link_of_a_blog_post_is_found_deep_too(of_conda: tuple[Project, list[str]]) -> None:
    """`ln -sf /usr/lib/x86_64-linux-gnu/libstdc++.so.6 ENV/lib/libstdc++.so.6`, as posts on GLIBCXX tell."""
    project, _ = of_conda
    link = project.prefix / "lib" / "libone.so.1"
    link.unlink()
    link.symlink_to("/usr/lib/os-release")
    for note in (project.prefix / "conda-meta").glob("links-*.json"):
        note.write_text(note.read_text().replace("sha256_in_prefix", "forgotten"))
    ended = call("verify", "tiny", "--no-probes", "--deep", "--json")
    assert ended.status == 8
    assert ended.data["integrity"]["changed"] == ["conda-meta/links-1-0.json", "lib/libone.so.1"]
    project.ok("create", "tiny", "--frozen", "--repair")
    assert str(link.readlink()) == "libone.so.1.2"
    assert call("verify", "tiny", "--no-probes", "--deep").status == 0


def test_rights_of_wheels_that_were_changed_do_not_arrive_elsewhere(created: Project, tmp_path: Path) -> None:
    module = created.site() / "alpha.py"
    if module.stat().st_nlink == 1:
        pytest.skip("uv copied or cloned its cache")
    other_rights(module, tmp_path)
    created.ok("create", "tiny", "--prefix", str(tmp_path / "other"))
    (other,) = (tmp_path / "other").glob("lib/python3*/site-packages/alpha.py")
    assert not other.stat().st_mode & 0o100


@pytest.mark.parametrize("name", first_fast(["bin/tool", "share/data.txt"]))
def test_rights_that_were_changed_through_a_hard_link_do_not_arrive_elsewhere(conda: Conda, name: str) -> None:
    conda.lock("tool", "data")
    conda.create()
    path, other = conda.prefix / name, conda.prefix.with_name("other")
    cached = Path(os.environ["RATTLER_CACHE_DIR"]) / "pkgs" / ("tool-1-0" if name == "bin/tool" else "data-1-0") / name
    conda.create("--prefix", str(other))  # notes the stamps of the cache
    shutil.rmtree(other)
    mode = path.stat().st_mode
    other_rights(cached, conda.prefix)
    conda.create("--prefix", str(other))
    assert (other / name).stat().st_mode == mode
