"""`tenv packages` and `tree`: what is installed or locked, and what requires what."""

import pytest

from tenv.host.machine import current_platform
from tests.support.fakes import MINORS, make_wheel
from tests.support.projects import HERE, Project


def names(project: Project, *words: str) -> list[str]:
    return [row["name"] for row in project.ok("packages", *words, "--json").data]


def test_packages_of_the_lock_then_of_the_environment(locked: Project) -> None:
    ended = locked.ok("packages", "tiny")
    assert "3 packages locked, not installed" in ended.err
    locked.ok("create", "tiny")
    assert "3 packages installed" in locked.ok("packages").err
    rows = {row["name"]: row for row in locked.ok("packages", "tiny", "--json").data}
    assert set(rows) == {"alpha", "beta", "native"}
    assert (rows["alpha"]["version"], rows["alpha"]["kind"], rows["alpha"]["source"]) == ("1.0", "wheel", "index")
    assert rows["alpha"]["requires"] == ["beta"]
    assert (rows["alpha"]["asked"], rows["beta"]["asked"]) == (True, False)


def test_packages_of_an_environment_are_those_it_was_made_from(created: Project) -> None:
    created.ok("add", "tiny", "gamma", "--no-create")
    assert names(created, "tiny") == ["alpha", "beta", "native"]
    created.ok("create", "tiny")
    assert "gamma" in names(created, "tiny")


def test_packages_are_searched_and_sorted(locked: Project) -> None:
    assert names(locked, "tiny", "^A") == ["alpha"]
    assert names(locked, "tiny", "a$") == ["alpha", "beta"]
    by_size = locked.ok("packages", "tiny", "--sort", "size", "--json").data
    sizes = [row["bytes"] for row in by_size]
    assert sizes == sorted(sizes, reverse=True)
    err = locked.fails(2, "usage", "packages", "tiny", "(")
    assert "is not a regular expression" in err


def test_packages_of_another_python_are_those_of_the_lock(created: Project) -> None:
    for minor, requires in zip(MINORS, ([], ["gamma"]), strict=True):
        make_wheel(
            created.index.folder, "differs", "1.0", tag=f"cp{minor.replace('.', '')}-none-any", requires=requires
        )
    created.widen_pythons()
    created.ok("add", "tiny", "differs", "--no-create")
    assert names(created, "tiny", "--python", HERE) == ["alpha", "beta", "native"]  # those that are installed
    created.prefix.rename(created.prefix.with_name("away"))
    assert names(created, "tiny", "--python", MINORS[0]) == ["alpha", "beta", "differs", "native"]
    assert names(created, "tiny", "--python", MINORS[1]) == ["alpha", "beta", "differs", "gamma", "native"]
    assert "gamma" not in created.ok("tree", "tiny", "--python", MINORS[0]).out
    err = created.fails(2, "usage", "packages", "tiny", "--python", "3.1")
    assert f"the lock of tiny has no Python 3.1 on {current_platform()}" in err


def test_tree_grows_from_the_manifest(locked: Project) -> None:
    out = locked.ok("tree", "tiny").out
    assert out == "alpha 1.0 (requested)\n└── beta 1.0\nnative 1.0 (requested)\n"


def test_tree_upside_down(locked: Project) -> None:
    assert locked.ok("tree", "tiny", "--invert", "Beta").out == "beta 1.0\n└── alpha 1.0 (requested)\n"
    data = locked.ok("tree", "tiny", "--invert", "beta", "--json").data
    assert [row["name"] for row in data] == ["alpha", "beta"]
    assert "did you mean `beta`?" in locked.fails(2, "usage", "tree", "tiny", "--invert", "beto")


def test_a_package_in_place_of_the_target_is_pointed_to(locked: Project) -> None:
    err = locked.fails(2, "unknown-target", "tree", "beta")
    assert "hint: `tenv tree tiny --invert beta` prints what requires a package; " in err
    err = locked.fails(2, "unknown-target", "packages", "beta*")
    assert "hint: `tenv packages tiny 'beta*'` lists the packages of that name; " in err


@pytest.mark.parametrize("target", ["cuda130", "cuda121", "cuda126-archives"])
def test_every_locked_package_stands_in_the_tree(project: Project, target: str) -> None:
    out = project.ok("tree", target).out
    rows = project.ok("tree", target, "--json").data
    shown = {line.lstrip("│├└─ ").split()[0] for line in out.splitlines()}
    assert shown == {row["name"] for row in rows}
    assert len(rows) > 5


def test_tree_counts_the_extras_that_are_asked_of_a_wheel(project: Project) -> None:
    rows = {row["name"]: row for row in project.ok("tree", "cuda130", "--json").data}
    assert {"nvidia-cuda-nvcc", "nvidia-cublas", "nvidia-cuda-runtime"} <= set(rows["cuda-toolkit"]["requires"])
    assert "nvidia-nvjitlink" in rows["nvidia-cufft"]["requires"]
    lines = project.ok("tree", "cuda130").out.splitlines()
    tops = [line.split()[0] for line in lines if line[0].isalnum()]
    assert "cuda-toolkit" in tops
    assert all(rows[name]["asked"] for name in tops), "what nothing else requires is requested"
    inverted = project.ok("tree", "cuda130", "--invert", "nvidia-cuda-nvcc").out
    assert inverted == "nvidia-cuda-nvcc 13.0.88\n└── cuda-toolkit 13.0.3.0 (requested)\n"


@pytest.mark.parametrize("target", ["cpu", "cuda121"])
def test_every_top_of_the_tree_is_requested(project: Project, target: str) -> None:
    lines = project.ok("tree", target).out.splitlines()
    tops = [line for line in lines if line[0].isalnum() or line[0] == "_"]
    assert [line for line in tops if "(requested" not in line] == []
    assert len(lines) > len(tops)


def test_tree_names_the_feature_that_requests_a_package(project: Project) -> None:
    out = project.ok("tree", "cpu").out
    assert "pytest 9" in out
    (line,) = [line for line in out.splitlines() if line.startswith("pytest ")]
    assert line.endswith("(requested by test)")


@pytest.mark.long
def test_packages_of_an_environment_are_without_the_features_it_lacks(project: Project) -> None:
    text = project.manifest.read_text()
    project.manifest.write_text(text + '\n[feature.more.pypi-dependencies]\ngamma = "*"\n')
    project.ok("lock", "tiny")
    assert "gamma" in names(project, "tiny")
    project.ok("create", "tiny")
    assert "gamma" not in names(project, "tiny")
    project.ok("create", "tiny", "--with", "more")
    (row,) = [row for row in project.ok("packages", "tiny", "--json").data if row["name"] == "gamma"]
    assert row["features"] == ["more"]


def test_an_installed_package_has_the_size_of_its_files(locked: Project) -> None:
    make_wheel(locked.index.folder, "gamma", "2.0", files={"gamma.py": f"#{' ' * 100_000}\n"})
    locked.ok("add", "tiny", "gamma", "--no-create")

    def rows() -> dict[str, dict[str, int]]:
        return {row["name"]: row for row in locked.ok("packages", "tiny", "--json").data}

    before = rows()["gamma"]
    assert before["bytes"] == before["download_bytes"]
    assert "DOWNLOAD" in locked.ok("packages", "tiny").out
    locked.ok("create", "tiny")
    found = rows()
    info = next(locked.site().glob("gamma-2.0.dist-info"))
    files = [locked.site() / "gamma.py", *info.iterdir()]
    assert found["gamma"]["bytes"] == sum(file.stat().st_size for file in files) > 100_000
    assert found["gamma"]["download_bytes"] == before["download_bytes"] != found["gamma"]["bytes"]
    (locked.site() / "gamma.py").unlink()
    assert 0 < rows()["gamma"]["bytes"] < 2000
    said = locked.ok("packages", "tiny", "--sort", "size")
    assert "SIZE" in said.out
    assert "packages installed with " in said.err
