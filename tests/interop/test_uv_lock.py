"""A uv.lock as uv itself writes it, whose extras exclude each other, or whose requests differ by Python."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomli
from uv import find_uv_bin

from tenv.core.files import digest
from tenv.locks.lock_file import read_lock
from tests.support.fakes import Index, make_wheel
from tests.support.projects import HERE, call
from tests.support.source_trees import pack_sdist, write_tree

_EXPORT = (
    *(find_uv_bin(), "export", "-q", "--python", sys.executable),
    *("--format", "pylock.toml", "-o", "pylock.toml", "--no-emit-project"),
)

PROJECT = """\
[project]
name = "two-words"
version = "0.1"
requires-python = "=={python}.*"
dependencies = ["shared"]
[project.optional-dependencies]
cpu = ["torch", "part", "low"]
gpu = ["torch", "part", "high", "router; sys_platform == 'linux'"]
[dependency-groups]
old = ["part", "low"]
[tool.uv]
conflicts = [[{{ extra = "cpu" }}, {{ extra = "gpu" }}, {{ group = "old" }}]]
[tool.uv.sources]
torch = [{{ index = "c", extra = "cpu" }}, {{ index = "g", extra = "gpu" }}]
router = [
    {{ index = "g", marker = "platform_machine == 'x86_64'" }},
    {{ index = "c", marker = "platform_machine != 'x86_64'" }},
]
[[tool.uv.index]]
name = "c"
url = "{cpu}"
explicit = true
[[tool.uv.index]]
name = "g"
url = "{gpu}"
explicit = true
[[tool.uv.index]]
name = "d"
url = "{rest}"
default = true
"""
EXPECTED = {
    "": {"shared 1.0"},
    "cpu": {"shared 1.0", "torch 1.0+cpu", "base 1.0", "part 1.0", "low 1.0"},
    "gpu": {"shared 1.0", "torch 1.0+gpu", "base 2.0", "part 1.0", "high 1.0", "router 1.0+gpu"},
    "old": {"shared 1.0", "base 1.0", "part 1.0", "low 1.0"},
}


def test_each_of_the_extras_that_exclude_each_other_has_its_own_packages(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("cpu", "gpu"):
        make_wheel(empty_project / kind, "torch", f"1.0+{kind}")
        make_wheel(empty_project / kind, "router", f"1.0+{kind}")
    for name, version, requires in (
        ("shared", "1.0", ()),
        ("base", "1.0", ()),
        ("base", "2.0", ()),
        ("low", "1.0", ("base<2",)),
        ("high", "1.0", ("base>=2",)),
        ("part", "1.0", ("base",)),
    ):
        make_wheel(empty_project / "rest", name, version, requires=requires)
    with (
        Index(empty_project / "cpu") as cpu,
        Index(empty_project / "gpu") as gpu,
        Index(empty_project / "rest") as rest,
    ):
        monkeypatch.setenv("UV_DEFAULT_INDEX", rest.url)
        text = PROJECT.format(python=HERE, cpu=cpu.url, gpu=gpu.url, rest=rest.url)
        (empty_project / "pyproject.toml").write_text(text)
        subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
        assert "extra-9-two-words-gpu" in (empty_project / "uv.lock").read_text()
        for group, expected in EXPECTED.items():
            chosen = ["--environment", group] if group else []
            ended = call("import", "uv.lock", "--name", "made", "--force", "--platform", "linux-64", *chosen)
            assert ended.status == 0, (group, ended.err)
            locked = read_lock(empty_project / "locks" / "made.lock", "made")
            assert {f"{row.name} {row.version}" for row in locked.wheels["linux-64"]} == expected, group
            assert call("lock", "made", "--check").status == 0, group


PYTHONS = """\
[project]
name = "backports"
version = "0.1"
requires-python = ">=3.10,<3.15"
dependencies = ["base", "low; python_version < '3.11'"]
[project.optional-dependencies]
mesh = ["high; python_version < '3.14'"]
"""


def test_requests_of_some_pythons_alone_narrow_the_pythons_of_a_lock(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("base", "low", "high"):
        make_wheel(empty_project / "rest", name, "1.0")
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        for beside in (True, False):  # the requests of a lock alone are those that uv notes in it
            (empty_project / "pyproject.toml").write_text(PYTHONS)
            subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
            if not beside:
                (empty_project / "pyproject.toml").unlink()
            for group, python, names, others in (
                ("", ">=3.11,<3.14", {"base"}, "high, low"),  # most Pythons have no need of the backport
                ("mesh", ">=3.11,<3.14", {"base", "high"}, "high, low"),
            ):
                chosen = ["--environment", group] if group else []
                ended = call("import", "uv.lock", "--name", "made", "--force", *chosen)
                assert ended.status == 0, (group, ended.err)
                assert f"`python` is set to {python}: other Pythons have other requests ({others})" in ended.err
                manifest = tomli.loads((empty_project / "manifests" / "made.toml").read_text())
                assert (manifest["python"], set(manifest["pypi-dependencies"])) == (python, names)
                assert call("lock", "made", "--check").status == 0, group


GROUPS = f"""\
[project]
name = "grouped"
version = "0.1"
requires-python = "=={HERE}.*"
dependencies = ["base"]
[project.optional-dependencies]
fast = ["base[speed]", "more"]
rare = ["gone"]
[dependency-groups]
dev = ["tool", "deep"]
"""


def test_groups_are_features_with_the_files_that_each_adds(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, requires in (
        ("base", ("low", "speedy; extra == 'speed'")),
        ("more", ("low",)),
        ("tool", ("deep",)),
        *((name, ()) for name in ("low", "speedy", "deep", "gone")),
    ):
        make_wheel(empty_project / "rest", name, "1.0", requires=requires)
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        (empty_project / "pyproject.toml").write_text(GROUPS)
        subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
        text = (empty_project / "uv.lock").read_text()
        gone = next(line for line in text.splitlines() if "gone-1.0" in line)
        (empty_project / "uv.lock").write_text(text.replace(gone, re.sub(', hash = "[^"]*"', "", gone)))
        for beside in (True, False):  # without a pyproject.toml, the lock itself notes the groups
            if not beside:
                (empty_project / "pyproject.toml").unlink()
            ended = call("import", "uv.lock", "--name", "made", "--force")
            assert ended.status == 0, ended.err
            assert "the group `rare` (gone: no sha256 of its wheels): `--environment rare` takes it" in ended.err
            rows = {row.name: row.features for row in read_lock(Path("locks/made.lock"), "made").wheels["linux-64"]}
            own = {"base": (), "low": ()}
            assert rows == {**own, "speedy": ("fast",), "more": ("fast",), "tool": ("dev",), "deep": ("dev",)}
            made = tomli.loads(Path("manifests/made.toml").read_text())
            assert made["feature"]["fast"]["pypi-dependencies"]["base"] == {"version": "*", "extras": ["speed"]}
            assert call("lock", "made", "--check").status == 0
            assert call("lock", "made").status == 0
            again = {row.name: row.features for row in read_lock(Path("locks/made.lock"), "made").wheels["linux-64"]}
            assert {**again, "gone": ()} == {**rows, "gone": ()}


def test_packages_of_some_pythons_alone_narrow_the_pythons_of_a_pylock(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("base", "low", "high"):
        make_wheel(empty_project / "rest", name, "1.0")
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        (empty_project / "pyproject.toml").write_text(PYTHONS)
        for more, python, names in (
            ((), ">=3.11,<3.15", {"base"}),
            (("--extra", "mesh"), ">=3.11,<3.14", {"base", "high"}),
        ):
            subprocess.run([*_EXPORT, *more], cwd=empty_project, check=True)
            ended = call("import", "pylock.toml", "--name", "made", "--force")
            assert ended.status == 0, ended.err
            manifest = tomli.loads((empty_project / "manifests" / "made.toml").read_text())
            assert (manifest["python"], set(manifest["pypi-dependencies"])) == (python, names)
            assert call("lock", "made", "--check").status == 0


def test_a_lock_has_the_packages_of_every_patch_release_of_a_python(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = (f"old; python_full_version < '{HERE}.3'", f"new; python_full_version >= '{HERE}.4'")
    make_wheel(empty_project / "rest", "base", "1.0", requires=marked)
    for name in ("old", "new"):
        make_wheel(empty_project / "rest", name, "1.0")
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        text = f'[project]\nname = "it"\nversion = "1"\nrequires-python = "=={HERE}.*"\ndependencies = ["base"]\n'
        (empty_project / "pyproject.toml").write_text(text)
        subprocess.run(_EXPORT, cwd=empty_project, check=True)
        for name in ("uv.lock", "pylock.toml"):
            ended = call("import", name, "--name", "made", "--force")
            assert ended.status == 0, ended.err
            rows = read_lock(Path("locks/made.lock"), "made").wheels["linux-64"]
            assert {row.name for row in rows} == {"base", "old", "new"}, name
            checked = call("lock", "made", "--check")
            assert checked.status == 0, checked.err


SEPARATE = f"""\
[project]
name = "groups"
version = "0.1"
requires-python = "=={HERE}.*"
dependencies = ["base"]
[dependency-groups]
dev = ["high"]
lint = ["low"]
docs = ["part"]
"""


def test_each_group_of_a_lock_can_be_created_without_the_others(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, requires in (("base", ()), ("low", ()), ("high", ("low",)), ("part", ())):
        make_wheel(empty_project / "rest", name, "1.0", requires=requires)
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        (empty_project / "pyproject.toml").write_text(SEPARATE)
        subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
        assert call("import", "uv.lock", "--name", "made", "--platform", "linux-64").status == 0
        for groups, names in {
            "": {"base"},
            "dev": {"base", "high", "low"},  # low, which lint asks for, is required as well
            "lint": {"base", "low"},
            "docs,lint": {"base", "low", "part"},
        }.items():
            chosen = ["--with", groups] if groups else []
            ended = call("create", "made", "--locked", "--dry-run", "--json", *chosen)
            assert ended.status == 0, (groups, ended.err)
            assert {row["name"] for row in ended.data["files"]} == names, groups


def test_a_project_that_asks_for_nothing_itself_has_its_groups_as_features(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("high", "part", "alpha"):
        make_wheel(empty_project / "rest", name, "1.0")
    pack_sdist(write_tree(empty_project / "tree"), empty_project / "rest")
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        (empty_project / "pyproject.toml").write_text(SEPARATE.replace('["base"]', "[]").replace("low", "vision"))
        subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
        ended = call("import", "uv.lock", "--name", "made", "--platform", "linux-64")
        assert ended.status == 0, ended.err
        lock = read_lock(Path("locks/made.lock"), "made")
        features = {row.name: row.features for row in lock.wheels["linux-64"]}
        features |= {row.name: row.features for row in lock.trees["linux-64"]}
        found = {"high": ("dev",), "part": ("docs",), "vision": ("lint",), "alpha": ("lint",)}
        assert features == found
        checked = call("lock", "made", "--check")
        assert checked.status == 0, checked.err


def test_the_lock_of_a_project_that_runs_torch_is_created_though_it_compiles_no_cuda_code(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = {"runtime.py": f"DATA = {'x' * 30_000!r}\n"}
    make_wheel(empty_project / "rest", "torch", "2.8.0", requires=("nvidia-cuda-runtime-cu12==12.8.90",))
    make_wheel(empty_project / "rest", "nvidia_cuda_runtime_cu12", "12.8.90", files=runtime)
    text = f'[project]\nname = "it"\nversion = "1"\nrequires-python = "=={HERE}.*"\ndependencies = ["torch"]\n'
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        (empty_project / "pyproject.toml").write_text(text)
        subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
        assert call("import", "uv.lock", "--name", "made", "--platform", "linux-64").status == 0
        assert tomli.loads(Path("manifests/made.toml").read_text())["requirements"] == {"cuda": "12.8"}
        ended = call("create", "made", "--frozen")
        assert (ended.status, "warning[TE312]: nvcc: is not in the lock" in ended.err) == (0, True), ended.err
        Path("manifests/made.toml").write_text(
            Path("manifests/made.toml").read_text().replace('torch = "*"', 'nvidia-cuda-runtime-cu12 = "*"')
        )
        ended = call("create", "made", "--dry-run")
        assert (ended.status, "error[TE312]: nvcc: is not in the lock" in ended.err) == (7, True), ended.err


def test_a_workspace_whose_root_is_no_project_has_the_requests_of_its_members(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("base", "low", "high"):
        make_wheel(empty_project / "rest", name, "1.0")
    write_tree(empty_project / "packages" / "vision", requires="base")
    member = f'[project]\nname = "tool"\nversion = "1"\nrequires-python = "=={HERE}.*"\n'
    member += 'dependencies = ["low", "vision"]\n[tool.uv.sources]\nvision = { workspace = true }\n'
    (empty_project / "packages" / "tool").mkdir()
    (empty_project / "packages" / "tool" / "pyproject.toml").write_text(
        f'{member}[dependency-groups]\nlint = ["six"]\n'
    )
    root = '[tool.uv.workspace]\nmembers = ["packages/*"]\n[dependency-groups]\ndev = ["high"]\n'
    (empty_project / "pyproject.toml").write_text(root)
    make_wheel(empty_project / "rest", "six", "1.0")
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
        for name in ("pyproject.toml", "uv.lock"):
            ended = call("import", name, "--name", "made", "--force", "--json")
            assert ended.status == 0, ended.err
            assert "the groups and extras of the member tool: lint" in ended.data["lost"]
            found = tomli.loads(Path("manifests/made.toml").read_text())
            vision = {"path": "../packages/vision", "editable": True}
            assert found["pypi-dependencies"] == {"low": "*", "vision": vision}, name
            assert found["feature"] == {"dev": {"pypi-dependencies": {"high": "*"}}}, name
        lock = read_lock(Path("locks/made.lock"), "made")
        assert {row.name for row in lock.wheels["linux-64"]} == {"base", "low", "high"}
        assert [row.name for row in lock.trees["linux-64"]] == ["vision"]
        checked = call("lock", "made", "--check")
        assert checked.status == 0, checked.err


def test_groups_alone_have_a_python(empty_project: Path) -> None:
    (empty_project / "pyproject.toml").write_text('[dependency-groups]\ndev = ["pytest"]\n')
    assert call("import", "pyproject.toml", "--name", "made").status == 0
    assert tomli.loads(Path("manifests/made.toml").read_text())["python"] == ">=3.11,<3.15"


def test_wheels_in_folders_come_in_by_their_digests(empty_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near = make_wheel(empty_project / "dist", "near", "1.0")
    flat = make_wheel(empty_project / "flat", "low", "1.0")
    make_wheel(empty_project / "rest", "base", "1.0")
    text = f'[project]\nname = "it"\nversion = "1"\nrequires-python = "=={HERE}.*"\n'
    text += 'dependencies = ["base", "low", "near"]\n[tool.uv.sources]\nlow = { index = "own" }\n'
    text += f'near = {{ path = "dist/{near.name}" }}\n'
    text += '[[tool.uv.index]]\nname = "own"\nurl = "flat"\nformat = "flat"\nexplicit = true\n'
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        (empty_project / "pyproject.toml").write_text(text)
        subprocess.run([find_uv_bin(), "lock", "-q", "--python", sys.executable], cwd=empty_project, check=True)
        subprocess.run(_EXPORT, cwd=empty_project, check=True)
        for name in ("uv.lock", "pylock.toml"):
            ended = call("import", name, "--name", "made", "--platform", "linux-64", "--force")
            assert ended.status == 0, ended.err
            rows = {row.name: row for row in read_lock(Path("locks/made.lock"), "made").wheels["linux-64"]}
            found = {name: row.sha256 for name, row in rows.items() if name != "base"}
            assert found == {"low": digest(flat), "near": digest(near)}
            assert rows["near"].path == f"../dist/{near.name}"
            for command in (("lock", "made", "--check"), ("create", "made", "--frozen")):
                ended = call(*command)
                assert ended.status == 0, ended.err


def test_a_platform_that_a_package_has_no_wheel_for_is_left_out_and_named(
    empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = f"cp{HERE.replace('.', '')}-abi3-manylinux_2_17_x86_64"
    make_wheel(empty_project / "rest", "near", "1.0", tag=tag)
    make_wheel(empty_project / "rest", "base", "1.0")
    text = f'[project]\nname = "it"\nversion = "1"\nrequires-python = "=={HERE}.*"\ndependencies = ["base", "near"]\n'
    text += "[tool.uv]\nenvironments = [\"sys_platform == 'linux'\"]\n"
    with Index(empty_project / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        (empty_project / "pyproject.toml").write_text(text)
        subprocess.run(_EXPORT, cwd=empty_project, check=True)
        for name in ("uv.lock", "pylock.toml"):
            ended = call("import", name, "--name", "made", "--force", "--json")
            assert ended.status == 0, ended.err
            said = "linux-aarch64, for which the file has no wheel of near: `--platform linux-aarch64` asks for it"
            head = Path(name).read_text().partition("[[package")[0]  # uv 0.12 writes no platforms into a pylock.toml
            assert ended.data["lost"] == ([said] if "sys_platform == 'linux'" in head else [])
            lock = read_lock(Path("locks/made.lock"), "made")
            assert {on: len(rows) for on, rows in lock.wheels.items()} == {"linux-64": 2}
            checked = call("lock", "made", "--check")
            assert checked.status == 0, checked.err
        ended = call("import", "uv.lock", "--name", "made", "--force", "--json", "--platform", "linux-aarch64")
        assert any("its lock, since tenv can't lock each package (near" in line for line in ended.data["lost"])
