"""An update ends where a fresh create of the same lock ends, also where packages claim the same paths."""

import hashlib
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.conda import PLACEHOLDER, Link
from tests.support.conda_project import Conda, wheel_of
from tests.support.fakes import Index, make_wheel
from tests.support.projects import HERE, Project, call
from tests.support.redist import Server, pack, regular

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="packages with links and shell scripts")

CLAIMS = {
    "k1 1": ("same.txt", "share/a", "own/k1.txt"),
    "k1 2": ("same.txt", "equal.txt", "bin/tool"),
    "k1 3": ("same.txt", "share/a"),
    "k2 1": ("same.txt", "own/k2.txt"),
    "k2 2": ("same.txt", "equal.txt", "share/a", "share/b"),
    "k2 3": ("share/a", "bin/tool", "own/k2.txt"),
    "k3 1": ("same.txt", "share/b", "deep/down"),
    "k3 2": ("same.txt", "equal.txt", "bin/tool", "deep/down/file"),
    "k3 3": ("same.txt", "deep/down/link"),
    "k4 1": ("own/k4.txt",),
    "k4 2": ("share/a", "deep/down/file"),
    "k4 3": ("same.txt", "own/k4.txt"),
}
"""The paths of each package. Each has bytes of its own at a path, except at `equal.txt`."""

NEEDS = {"k1 2": "k3", "k2 2": "k1", "k1 3": "k2", "k3 1": "k1", "k3 3": "k4", "k4 3": "k1"}
"""What some of them need: rattler gives a path to a package according to the order that follows from it."""

CLASHES = ({"k3 1", "k3 2"}, {"k3 1", "k3 3"}, {"k3 1", "k4 2"})
"""Packages that no environment can hold together, since one has a file where the other has a folder."""

FEW = max(1, settings().max_examples // 15)


def tree(prefix: Path) -> dict[str, str]:
    """Return what a fresh create must give: each file and link outside tenv's notes and compiled Python files."""
    found = {}
    for path in sorted(prefix.rglob("*")):
        name = str(path.relative_to(prefix))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_file() and not name.startswith("tenv-meta/") and "__pycache__" not in name:
            found[name] = re.sub(r'"timestamp": \d+', "", path.read_text("latin-1"))
    return found


def fresh(conda: Conda) -> dict[str, str]:
    """Return the tree that a fresh create of the present lock gives at the same path."""
    aside = conda.prefix.with_name("aside")
    conda.prefix.rename(aside)
    conda.create()
    made = tree(conda.prefix)
    shutil.rmtree(conda.prefix)
    aside.rename(conda.prefix)
    return made


def closed(names: Sequence[str]) -> tuple[str, ...]:
    """Return packages with what they need, the same version of it."""
    found = {name.split()[0]: name for name in names}
    while missing := [(NEEDS[name], name) for name in found.values() if NEEDS.get(name, name) not in (*found, name)]:
        need, name = missing[0]
        found[need] = f"{need} {name.split()[1]}"
    return tuple(sorted(found.values()))


def fits(names: Sequence[str]) -> bool:
    return not any(clash <= set(names) for clash in CLASHES)


@pytest.fixture
def clobbering(conda: Conda) -> Conda:
    for package, paths in CLAIMS.items():
        name, version = package.split()
        files: dict[str, str | bytes | Link] = {path: f"{package} {path}\n" for path in paths}
        if "equal.txt" in files:
            files["equal.txt"] = "equal\n"
        if "deep/down/link" in files:
            files["deep/down/link"] = Link("../../same.txt")
        needs = [NEEDS[package]] if package in NEEDS else []
        conda.make(name, version, files=files, depends=needs)
    return conda


LOCKS = st.lists(st.sampled_from(sorted(CLAIMS)), min_size=1, max_size=4).map(closed).filter(fits)


@pytest.mark.long
@settings(max_examples=FEW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(locks=st.lists(LOCKS, min_size=2, max_size=4))
@example(locks=[("k1 2", "k2 2", "k3 2"), ("k1 1", "k2 1", "k3 1"), ("k1 1",)])
@example(locks=[("k1 1", "k2 1", "k3 1"), ("k1 2", "k2 2", "k3 2"), ("k3 2",)])
@example(locks=[("k1 1", "k2 1"), ("k2 1",), ("k1 1", "k2 1", "k3 2"), ("k3 2", "k4 1")])
def test_any_sequence_of_locks_ends_as_a_fresh_create(clobbering: Conda, locks: Sequence[Sequence[str]]) -> None:
    conda = clobbering
    shutil.rmtree(conda.prefix, ignore_errors=True)
    mine = conda.prefix / "own" / "mine.txt"
    for number, names in enumerate(locks):
        conda.lock(*names)
        conda.create()
        expected = fresh(conda)
        mine.parent.mkdir(exist_ok=True)
        mine.write_text("mine")
        assert tree(conda.prefix) == {**expected, "own/mine.txt": "mine"}, locks[: number + 1]
        assert call("verify", "tiny", "--no-probes").status == 0


def test_a_package_beside_is_not_linked_again(clobbering: Conda) -> None:
    clobbering.make("apart", files={"apart.txt": PLACEHOLDER})  # a copy, since it holds the prefix
    clobbering.lock("k1 1", "k2 3", "apart")
    clobbering.create()
    before = (clobbering.prefix / "apart.txt").stat()
    clobbering.lock("k1 1", "apart")
    clobbering.create()
    assert (clobbering.prefix / "apart.txt").stat().st_ctime_ns == before.st_ctime_ns
    assert (clobbering.prefix / "same.txt").read_text() == "k1 1 same.txt\n"


def remake(project: Project) -> dict[str, str]:
    """Return the tree of a fresh create at the path of the environment, which it replaces."""
    shutil.rmtree(project.prefix)
    project.ok("create", "tiny")
    return tree(project.prefix)


@pytest.mark.parametrize(
    ("first", "then"), [(("one", "two", "zoo"), ("one", "two")), (("two",), ("one", "two")), (("one", "two"), ("one",))]
)
@pytest.mark.long
def test_wheels_that_claim_one_path(project: Project, first: Sequence[str], then: Sequence[str]) -> None:
    for name in ("one", "two", "zoo"):
        files = {"shared/at.py": f"NAME = {name!r}\n", "shared/equal.py": "", f"{name}.py": ""}
        make_wheel(project.index.folder, name, "1.0", files=files)
    text = project.manifest.read_text()
    for names in (first, then):
        project.manifest.write_text(text + "".join(f'{name} = "*"\n' for name in names))
        project.ok("lock", "tiny")
        project.ok("create", "tiny")
        assert (project.site() / "shared" / "at.py").read_text() == f"NAME = {names[-1]!r}\n"
        assert (project.site() / "shared" / "equal.py").read_text() == ""
        project.ok("verify", "tiny", "--no-probes")
    assert tree(project.prefix) == remake(project)


@pytest.mark.long
def test_a_wheel_and_a_conda_package_that_claim_one_path(conda: Conda, python_package: Path, index: Index) -> None:
    site = f"lib/python{HERE}/site-packages"
    conda.take(python_package)
    conda.make("pack", files={f"{site}/one.py": "conda\n", "share/pack.txt": "pack\n"})
    make_wheel(index.folder, "one", "1.0", files={"one.py": "wheel\n"})
    (name, one) = (conda.prefix / site / "one.py", wheel_of(index, "one"))
    mine = conda.prefix / "share" / "mine.txt"
    said = []
    for names, wheels in (
        (("python", "pack"), ()),
        (("python", "pack"), (one,)),
        (("python", "pack"), ()),
        (("python",), (one,)),
        (("python", "pack"), (one,)),
        (("python",), (one,)),
    ):
        conda.lock(*names, wheels=wheels)
        conda.create()
        said.append(name.read_text())
        assert call("verify", "tiny", "--no-probes").status == 0
        mine.parent.mkdir(exist_ok=True)
        mine.write_text("mine")
    assert said == ["conda\n", "wheel\n", "conda\n", "wheel\n", "wheel\n", "wheel\n"]
    assert mine.read_text() == "mine"
    mine.unlink()
    assert tree(conda.prefix) == fresh(conda)


@pytest.mark.long
def test_archives_and_a_conda_package_that_claim_one_path(conda: Conda) -> None:
    conda.make("pack", files={"opt/share/same.txt": "same\n", "share/pack.txt": "pack\n"})
    members = [regular("same.txt", b"same\n"), regular("other.txt", b"other\n")]
    raws = {f"/{name}.tar.gz": pack("tar.gz", [*members, regular(f"{name}.txt", b"")]) for name in ("a", "b")}
    with Server({"/a.tar.gz": raws["/a.tar.gz"], "/b.tar.gz": raws["/b.tar.gz"]}) as server:
        rows = {
            name: f'{name} = {{ url = "{server.url}/{name}.tar.gz", to = "opt/share", strip = 0, '
            f'sha256 = "{hashlib.sha256(raws[f"/{name}.tar.gz"]).hexdigest()}" }}\n'
            for name in ("a", "b")
        }
        for conda_names, archives in (
            (("data", "pack"), ("a", "b")),
            (("data", "pack"), ("b",)),
            (("data", "pack"), ()),
            (("data",), ("a", "b")),
            (("data",), ("a",)),
            (("data", "pack"), ("a",)),
            (("data",), ("a",)),
        ):
            conda.lock(*conda_names)
            text = conda.project.manifest.read_text() + "[archives]\n" + "".join(rows[name] for name in archives)
            conda.project.manifest.write_text(text)
            conda.project.ok("lock", "tiny")
            conda.create()
            assert (conda.prefix / "opt" / "share" / "same.txt").read_text() == "same\n", (conda_names, archives)
            assert call("verify", "tiny", "--no-probes").status == 0, (conda_names, archives)
            assert tree(conda.prefix) == fresh(conda), (conda_names, archives)
