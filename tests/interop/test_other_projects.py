"""Requests of Poetry, Pipenv and setuptools, and lines that several features or Pythons share."""

import hashlib
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
import tomli

from tenv.core.names import conda_address
from tenv.interop.pip_lines import are_pip_lines
from tenv.interop.poetry import pep440
from tests.interop.records import CONDA_LOCK
from tests.support.each import each
from tests.support.fakes import Index, make_wheel
from tests.support.projects import call
from tests.support.source_trees import pack_sdist, write_tree

pytestmark = pytest.mark.usefixtures("empty_project")


def imported(name: str, text: str, *more: str) -> tuple[dict[str, Any], str]:
    """Import a file; return the manifest, and what the import reports."""
    Path(name).write_text(text, encoding="utf-8")
    ended = call("import", name, "--name", "made", "--force", "--json", "--offline", *more)
    assert ended.status == 0, ended.err
    found = tomli.loads(Path("manifests/made.toml").read_text(encoding="utf-8"))
    return found, "\n".join([*ended.data["lost"], *ended.data["notes"]])


def test_constraints_of_poetry_are_ranges() -> None:
    for text, wanted in {
        "^1.2.3": ">=1.2.3,<2",
        "^0.2.3": ">=0.2.3,<0.3",
        "^0.0.3": ">=0.0.3,<0.0.4",
        "^0.0": ">=0.0,<0.1",
        "^0": ">=0,<1",
        "~1.2.3": ">=1.2.3,<1.3",
        "~1": ">=1,<2",
        "1.2.*": "==1.2.*",
        "1.2": "==1.2",
        "=1.2": "==1.2",
        ">=1,<2": ">=1,<2",
        ">= 1.0 < 2": ">=1.0,<2",
        "~=1.4": "~=1.4",
        "*": "",
        "^2.0b1": ">=2.0b1,<3",
    }.items():
        assert pep440(text) == wanted, text
    assert pep440("^1 || ^2") is None


def test_a_project_of_poetry_comes_in_whole() -> None:
    Path("near").mkdir()
    Path("near/pyproject.toml").write_text('[tool.poetry]\nname = "near"\n')
    found, said = imported(
        "pyproject.toml",
        """\
[tool.poetry]
name = "it"
[[tool.poetry.source]]
name = "cu128"
url = "https://download.pytorch.org/whl/cu128"
priority = "explicit"
[[tool.poetry.source]]
name = "PyPI"
priority = "primary"
[tool.poetry.dependencies]
python = "~3.12"
torch = { version = "^2.7", source = "cu128" }
numpy = [{ version = "<2", python = "<3.10" }, { version = "^2.1", python = ">=3.10" }]
lib = { git = "https://example.org/lib.git", tag = "v1", extras = ["x"] }
old = { git = "git+https://example.org/old.git@v2" }
near = { path = "near", develop = true }
only = { version = "1.0", platform = "win32" }
two = "^1 || ^3"
more = { version = "*", optional = true }
free = { version = "*", optional = true }
[tool.poetry.extras]
fast = ["more"]
[tool.poetry.group.dev.dependencies]
pytest = "^8.1"
""",
    )
    assert found["python"] == ">=3.12,<3.13"
    assert found["pypi-dependencies"] == {
        "torch": {"version": ">=2.7,<3", "index": "cu128"},
        "numpy": ">=2.1,<3",
        "lib": {"git": "https://example.org/lib.git", "tag": "v1", "extras": ["x"]},
        "old": {"git": "https://example.org/old.git", "rev": "v2"},
        "near": {"path": "../near", "editable": True},
        "two": "*",
    }
    assert found["feature"]["fast"]["pypi-dependencies"] == {"more": "*"}
    assert found["feature"]["dev"]["pypi-dependencies"] == {"pytest": ">=8.1,<9"}
    assert "`two` in one of several ranges, `^1 || ^3`" in said
    assert "only" in said
    assert "optional, and in no extra: free" in said


def test_a_pipfile_comes_in_whole() -> None:
    found, _ = imported(
        "Pipfile",
        """\
[[source]]
name = "pypi"
url = "https://index.example/simple"
[[source]]
name = "cu128"
url = "https://download.pytorch.org/whl/cu128"
[packages]
torch = { version = "==2.7.0", index = "cu128" }
lib = { git = "https://example.org/lib.git", ref = "v1" }
six = "*"
[dev-packages]
pytest = "~=8.1"
[docs]
sphinx = ">=8"
[requires]
python_version = "3.12"
""",
    )
    assert found["python"] == "3.12.*"
    assert found["pypi-dependencies"] == {
        "torch": {"version": "2.7.0", "index": "cu128"},
        "lib": {"git": "https://example.org/lib.git", "rev": "v1"},
        "six": "*",
    }
    assert {name: table["pypi-dependencies"] for name, table in found["feature"].items()} == {
        "dev": {"pytest": "~=8.1"},
        "docs": {"sphinx": ">=8"},
    }


def test_a_setup_cfg_reads_its_requirements_file() -> None:
    Path("base.txt").write_text("six>=1\n")
    found, _ = imported("setup.cfg", "[options]\npython_requires = >=3.12,<3.13\ninstall_requires = file: base.txt\n")
    assert found["pypi-dependencies"] == {"six": ">=1"}
    ended = call("import", "setup.py", "--name", "made") if Path("setup.py").write_text("") == 0 else None
    assert ended
    assert ended.status == 2
    assert "runs none" in ended.err


def test_features_share_one_request_and_name_those_that_exclude_each_other() -> None:
    text = """\
[project]
name = "it"
requires-python = ">=3.12,<3.13"
dependencies = ["base>=1"]
[project.optional-dependencies]
one = ["lib>=1", "base<3"]
two = ["lib[x]<2"]
three = ["lib>=2,<3", "other"]
four = ["torch==2.7.0"]
five = ["torch==2.8.0"]
"""
    found, said = imported("pyproject.toml", text.replace('three = ["lib>=2,<3", "other"]\n', 'three = ["other"]\n'))
    assert found["pypi-dependencies"] == {"base": ">=1,<3"}
    lib = [found["feature"][name]["pypi-dependencies"]["lib"] for name in ("one", "two")]
    assert lib == [">=1,<2", {"version": ">=1,<2", "extras": ["x"]}]
    assert set(found["feature"]) == {"one", "two", "three"}
    assert "five, four: they exclude each other by torch 2.7.0, torch 2.8.0" in said
    found, said = imported("pyproject.toml", text, "--environment", "four")
    assert found["pypi-dependencies"]["torch"] == "2.7.0"
    assert "three, two: they exclude each other by lib" in said


@each("asked, python", [("==3.12.8", "3.12.*"), ("~=3.12.3", "3.12.*"), (">=3.12.3,<3.14", ">=3.12,<3.14")])
def test_a_patch_of_python_stands_for_its_minor(asked: str, python: str) -> None:
    found, _ = imported(
        "pyproject.toml", f'[project]\nname = "it"\nrequires-python = "{asked}"\ndependencies = ["a"]\n'
    )
    assert found["python"] == python


def test_lines_of_one_python_alone_narrow_it_to_that_python() -> None:
    line = "{}==1.0; python_full_version == '3.12.*' and implementation_name == 'cpython'\n"
    found, said = imported("requirements.txt", "".join(map(line.format, ("one", "two"))))
    assert (found["python"], found["pypi-dependencies"]) == (">=3.12,<3.13", {"one": "1.0", "two": "1.0"})
    assert "tenv can't express its marker" not in said


def test_a_package_that_the_newest_python_lacks_stays_requested() -> None:
    found, said = imported("requirements.txt", 'torch==2.9.0; python_version < "3.14"\nsix\n')
    assert (found["python"], found["pypi-dependencies"]["torch"]) == (">=3.11,<3.14", "2.9.0")
    assert "`python` is set to >=3.11,<3.14: the requests of torch differ by Python" in said


def test_lines_that_differ_by_python_narrow_it() -> None:
    text = 'numpy==2.3.0; python_version >= "3.12"\nnumpy==1.26.4; python_version < "3.12"\nsix\n'
    found, said = imported("requirements.txt", text)
    assert (found["python"], found["pypi-dependencies"]["numpy"]) == (">=3.12,<3.15", "2.3.0")
    assert "the requests of numpy differ by Python" in said
    lines = [line.strip() for line in text.splitlines()]
    project = '[project]\nname = "it"\nrequires-python = ">=3.9"\n'
    found, _ = imported("pyproject.toml", f"{project}dependencies = {lines}\n")
    assert (found["python"], found["pypi-dependencies"]["numpy"]) == (">=3.12,<3.15", "2.3.0")


def test_an_archive_of_a_forge_is_its_repository() -> None:
    for address, url, revision in (
        ("https://github.com/a/it/archive/main.zip", "https://github.com/a/it", "main"),
        ("https://github.com/a/it/archive/refs/tags/v1.tar.gz", "https://github.com/a/it", "v1"),
        ("https://github.com/a/it/archive/refs/heads/a/b.zip", "https://github.com/a/it", "a/b"),
        ("https://gitlab.com/g/it/-/archive/main/it-main.zip", "https://gitlab.com/g/it", "main"),
    ):
        for line in (address, f"it @ {address}", f"{address}#egg=it"):
            found, said = imported("requirements.txt", f"{line}\n")
            assert found["pypi-dependencies"] == {"it": {"git": url, "rev": revision}}, line
            assert "is requested as the git repository" in said


def test_a_source_of_an_extra_counts_where_another_group_includes_the_extra() -> None:
    text = """\
[project]
name = "it"
dependencies = ["numpy"]
[project.optional-dependencies]
all = ["it[gpu]", "rich"]
gpu = ["torch==2.6.0"]
cpu = ["torch==2.6.0"]
[dependency-groups]
dev = ["it[all]", "pytest"]
ci = [{ include-group = "dev" }]
[tool.uv]
conflicts = [[{ extra = "gpu" }, { extra = "cpu" }]]
[tool.uv.sources]
torch = { index = "cu124", extra = "gpu" }
[[tool.uv.index]]
name = "cu124"
url = "https://download.pytorch.org/whl/cu124"
explicit = true
"""
    wanted = {"version": "2.6.0", "index": "cu124"}
    for group in ("gpu", "all", "dev", "ci"):
        found, _ = imported("pyproject.toml", text, "--environment", group)
        assert found["pypi-dependencies"]["torch"] == wanted, group
    found, _ = imported("pyproject.toml", text, "--environment", "cpu")
    assert found["pypi-dependencies"]["torch"] == "2.6.0"
    found, _ = imported("pyproject.toml", text)
    assert found["feature"]["ci"]["pypi-dependencies"]["torch"] == wanted


def test_settings_of_poetry_pipenv_and_setuptools_that_a_manifest_lacks_are_named() -> None:
    poetry = '[tool.poetry]\nname = "it"\n[tool.poetry.dependencies]\nsix = "*"\n[[tool.poetry.source]]\n'
    poetry += 'name = "corp"\nurl = "https://corp.example/simple"\npriority = "supplemental"\n'
    _, said = imported("pyproject.toml", poetry)
    assert "the priority `supplemental` of the source `corp`: it is asked before the default index" in said
    pipfile = '[[source]]\nname = "it"\nurl = "https://it.example/simple"\nverify_ssl = false\n'
    _, said = imported("Pipfile", f'{pipfile}[packages]\nsix = "*"\n[pipenv]\nallow_prereleases = true\n')
    assert "`allow_prereleases`" in said
    assert "`verify_ssl = false` of https://it.example/simple" in said
    options = "[metadata]\ndescription = file: README\n[options]\ninstall_requires = six\ntests_require =\n  pytest\n"
    found, said = imported("setup.cfg", options)
    assert "description" not in found
    assert "`tests_require`: pytest" in said


def test_the_note_about_the_own_package_works_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write_tree(tmp_path / "two words", requires="alpha")
    make_wheel(tmp_path / "rest", "alpha", "1.0")
    with Index(tmp_path / "rest") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        ended = call("import", str(tree / "pyproject.toml"), "--name", "made", "--offline", "--json")
        (note,) = (line for line in ended.data["notes"] if "itself is no request" in line)
        words = shlex.split(note.split("`")[1])
        ended = call(*words[1:2], "made", *words[2:])
        assert ended.status == 0, ended.err
    found = tomli.loads(Path("manifests/made.toml").read_text())["pypi-dependencies"]["vision"]
    assert ((Path("manifests") / found["path"]).resolve(), found["editable"]) == (tree.resolve(), True)


def test_a_pylock_names_its_extras_and_the_index_of_pytorch_is_no_folder_of_files() -> None:
    own = "https://download.pytorch.org/whl/cu128"
    text = f"""\
lock-version = "1.0"
created-by = "it"
requires-python = "==3.12.*"
extras = ["gpu"]
dependency-groups = ["dev"]
[[packages]]
name = "torch"
version = "2.9.0+cu128"
marker = "'gpu' in extras"
index = "{own}"
[[packages.wheels]]
url = "{own}/torch-2.9.0%2Bcu128-py3-none-any.whl"
hashes = {{ sha256 = "{"a" * 64}" }}
[[packages]]
name = "six"
version = "1.0"
index = "https://index.example/simple"
wheels = [{{ url = "https://files.example/six-1.0-py3-none-any.whl", hashes = {{ sha256 = "{"b" * 64}" }} }}]
[[packages]]
name = "idna"
version = "1.0"
index = "https://index.example/simple"
wheels = [{{ url = "https://files.example/idna-1.0-py3-none-any.whl", hashes = {{ sha256 = "{"c" * 64}" }} }}]
"""
    found, said = imported("pylock.toml", text)
    assert found["index"] == [{"name": "pytorch-cu128", "url": own, "explicit": True}]
    assert "the packages of all extras and groups are the target's: gpu, dev" in said


def test_the_address_of_a_conda_package_has_its_version_and_build() -> None:
    home = "https://conda.anaconda.org/conda-forge"
    rows = f"- {home}/noarch/tzdata-2025b-h78e105d_0.conda\n- {home}/win-64/zlib-1.3.1-h2466b09_2.tar.bz2#0123abcd\n"
    found, said = imported("environment.yml", f"dependencies:\n- python=3.12\n{rows}", "--platform", "linux-64")
    tzdata = {"version": "2025b", "build": "h78e105d_0", "channel": "conda-forge"}
    assert found["dependencies"] == {"python": "3.12.*", "tzdata": tzdata}
    assert "for win-64 alone" in said


def test_selectors_of_micromamba_count() -> None:
    rows = ("python=3.12", "sel(linux): libgl", "sel(unix): make >=4", "sel(win): m2w64", "sel(osx): llvm")
    text = "dependencies:\n" + "".join(f"- {row}\n" for row in rows)
    found, said = imported("environment.yml", text, "--platform", "linux-64", "--platform", "win-64")
    assert found["dependencies"] == {"python": "3.12.*"}
    assert {name: table["dependencies"] for name, table in found["platform"].items()} == {
        "linux-64": {"libgl": "*", "make": ">=4"},
        "win-64": {"m2w64": "*"},
    }
    assert "not imported" not in said


@each(
    "accepted, python",
    [
        ("<3.13", ">=3.11,<3.13"),
        (">=2.7,!=3.0.*,!=3.12.*,<4", ">=3.11,!=3.12.*,<3.15"),
        (">=3", ">=3.11,<3.15"),
        ("<3.11", ">=3.10,<3.11"),
        (">=3.6", ">=3.6,<3.15"),
    ],
)
def test_a_range_without_an_oldest_python_begins_with_one_in_use(accepted: str, python: str) -> None:
    found, _ = imported(
        "pyproject.toml", f'[project]\nname = "it"\nrequires-python = "{accepted}"\ndependencies = ["six"]\n'
    )
    assert found["python"] == python


def test_dependencies_of_poetry_that_project_does_not_have_are_named() -> None:
    text = (
        '[project]\nname = "it"\ndependencies = ["six (>=1)", "idna"]\n[tool.poetry.dependencies]\npython = "^3.11"\n'
    )
    found, said = imported(
        "pyproject.toml",
        f'{text}six = {{ source = "corp" }}\nidna = "^3.0"\nalone = "*"\n'
        "[[tool.poetry.source]]\nname = 'corp'\nurl = 'https://corp.example/simple'\npriority = 'explicit'\n",
    )
    assert found["pypi-dependencies"]["idna"] == ">=3.0,<4"
    assert found["pypi-dependencies"]["six"]["version"] == ">=1"
    assert "[tool.poetry.dependencies] of packages that [project] does not have: alone" in said


def test_the_last_index_of_a_file_counts_and_a_fragment_has_extras() -> None:
    lines = "-i https://one.example/simple\n--index-url https://two.example/simple\n"
    lines += "git+https://example.org/it.git@v1#egg=it[gpu,Test]&subdirectory=py\n"
    found, said = imported("requirements.txt", lines)
    assert found["index"] == [{"url": "https://two.example/simple", "default": True}]
    assert "the index https://one.example/simple: https://two.example/simple stands in its place" in said
    tree = {"git": "https://example.org/it.git", "rev": "v1", "subdirectory": "py", "extras": ["gpu", "test"]}
    assert found["pypi-dependencies"] == {"it": tree}


def test_an_address_of_a_file_that_is_there_is_a_path(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "two words", "near", "1.0")
    tree = write_tree(tmp_path / "tree")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    archive = pack_sdist(write_tree(tmp_path / "packed"), tmp_path)
    (tree / "below").mkdir()
    (tree / "below" / "pyproject.toml").write_text('[project]\nname = "below"\nversion = "1"\n')
    lines = f"near @ {wheel.as_uri()}#sha256={digest}\n-e {tree.as_uri()}\ngone @ file:///croot/gone/work\n"
    lines += f"{tree.as_uri()}#egg=below&subdirectory=below\npacked @ {archive.as_uri()}\n{archive}\n"
    found, said = imported("requirements.txt", lines)
    near, vision = found["pypi-dependencies"]["near"], found["pypi-dependencies"]["vision"]
    assert ((Path("manifests") / near["path"]).resolve(), near["sha256"]) == (wheel.resolve(), digest)
    assert ((Path("manifests") / vision["path"]).resolve(), vision["editable"]) == (tree.resolve(), True)
    assert (Path("manifests") / found["pypi-dependencies"]["below"]["path"]).resolve() == (tree / "below").resolve()
    assert "packed" not in found["pypi-dependencies"]
    assert said.count(f"`{archive}`: of files, only a wheel can be locked") == 1
    assert "`gone @ file:///croot/gone/work`" in said


def test_lines_of_pip_are_recognized_under_any_name() -> None:
    for text, wanted in {
        "torch==2.7.0\nsix\n": True,
        "-r base.txt\nsix\n": True,
        "a==1 \\\n    --hash=sha256:ab\n": True,
        "six\n": False,
        "numpy=1.19=py36_0\n": False,
        "It is a text, and more.\nWord\n": False,
        "cmake_minimum_required(VERSION 3)\n": False,
        "": False,
    }.items():
        assert are_pip_lines(text.encode()) is wanted, text
    assert imported("cuda.txt", "torch==2.7.0\n")[0]["pypi-dependencies"] == {"torch": "2.7.0"}


def test_a_list_of_names_alone_is_recognized_by_its_name_or_the_error_has_the_command() -> None:
    for text in ("numpy\nscipy\n", "\ufeffnumpy\n\n# more\nscipy # for all\n"):
        for name, more in (("requirements.txt", []), ("base.in", []), ("r2.txt", ["--format", "requirements.txt"])):
            assert imported(name, text, *more)[0]["pypi-dependencies"] == {"numpy": "*", "scipy": "*"}, name
        ended = call("import", "r2.txt")
        assert ended.status == 2
        assert "hint: its lines may be names of packages: `tenv import r2.txt --format requirements.txt`" in ended.err
    Path("notes.txt").write_text("numpy and\nscipy\n")
    assert "its lines may be names" not in call("import", "notes.txt").err


def test_a_file_in_utf_16_as_powershell_writes_it_is_read() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        Path("more.txt").write_bytes("\ufeffscipy\r\n".encode(encoding))
        for name, text in (
            ("requirements.txt", "-r more.txt\r\nnumpy==2.3.0\r\n"),
            ("cuda.txt", "-r more.txt\r\nnumpy==2.3.0\r\n"),
            ("environment.yml", "dependencies:\r\n- pip:\r\n  - numpy==2.3.0\r\n  - scipy\r\n"),
        ):
            Path(name).write_bytes(f"\ufeff{text}".encode(encoding))
            assert call("import", name, "--name", "made", "--force", "--offline").status == 0, name
            found = tomli.loads(Path("manifests/made.toml").read_text())
            assert found["pypi-dependencies"] == {"numpy": "2.3.0", "scipy": "*"}, name
            Path(name).unlink()
    Path("requirements.txt").write_bytes(b"\xff\xfe\x00\xd8\n")
    assert "not UTF-8 text" in call("import", "requirements.txt").err


def test_the_address_of_a_conda_package_has_a_plain_file_name() -> None:
    home = "https://conda.anaconda.org/conda-forge/linux-64/x264-1"
    assert conda_address(f"{home}%21164.3095-h166bdaf_2.tar.bz2") == f"{home}!164.3095-h166bdaf_2.tar.bz2"


def test_a_conda_lock_newer_than_its_requests_or_with_a_package_twice_is_locked() -> None:
    Path("environment.yml").write_text("channels: [conda-forge]\ndependencies: [python=3.11, bzip2, flask]\n")
    numpy = "https://conda.anaconda.org/conda-forge/linux-64/numpy-2.2.6-py311h5d046bc_0.conda"
    file = "https://files.example.org/numpy-2.2.6-cp311-cp311-manylinux_2_17_x86_64.whl"
    row = "- name: numpy\n  version: 2.2.6\n  manager: {}\n  platform: linux-64\n  dependencies: {}\n  url: {}\n"
    row += f"  hash: {{{{md5: {'be' * 16}, sha256: {'be' * 32}}}}}\n  category: main\n  optional: false\n"
    text = CONDA_LOCK + row.format("conda", "{python: ''}", numpy) + row.format("pip", "{}", file)
    found, said = imported("conda-lock.yml", text)
    assert "requests that are newer than the lock, whose packages are requested: flask" in said
    assert "wheels of packages that are locked from conda, too: numpy" in said
    assert "numpy" in found["dependencies"]
    assert "numpy" not in found["pypi-dependencies"]
    assert call("lock", "made", "--check").status == 0


def test_libraries_of_cuda_beside_a_torch_without_it_name_no_cuda() -> None:
    home = "https://conda.anaconda.org/conda-forge/linux-64"
    row = "- name: {}\n  version: {}\n  manager: conda\n  platform: linux-64\n  dependencies: {{}}\n"
    row += f"  url: {home}/{{}}\n"
    row += f"  hash: {{{{md5: {'be' * 16}, sha256: {'be' * 32}}}}}\n  category: main\n  optional: false\n"
    text = CONDA_LOCK + row.format("cuda-version", "12.9", "cuda-version-12.9-h4f385c5_3.conda")
    text += row.format("pytorch", "2.7.1", "pytorch-2.7.1-cpu_mkl_py311_h7bde0a3_103.conda")
    assert "requirements" not in imported("conda-lock.yml", text)[0]
    found, _ = imported("conda-lock.yml", text.replace("cpu_mkl_py311", "cuda129_mkl_py311"))
    assert found["requirements"] == {"cuda": "12.9"}


def test_pins_set_the_pythons_that_have_wheels_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for tag in ("cp310-cp310", "cp311-cp311", "cp312-cp312"):
        make_wheel(Path("wheels"), "native", "1.0", tag=f"{tag}-manylinux_2_17_x86_64")
    make_wheel(Path("wheels"), "native", "2.0", tag="cp314-cp314-manylinux_2_17_x86_64")
    make_wheel(Path("wheels"), "pure", "1.0")
    Path("requirements.txt").write_text("native==1.0\npure==1.0\nother\nbuilt==1.0\n")
    with Index(Path("wheels")) as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        for offline, wanted, words in (
            ([], ">=3.10,<3.13", ", for which the indexes have wheels of its pins"),
            (["--offline"], ">=3.11,<3.15", ", and wheels of its pins may be for others"),
        ):
            ended = call("import", "requirements.txt", "--name", "made", "--force", "--json", *offline)
            assert ended.status == 0, ended.err
            assert f'python    = "{wanted}"' in Path("manifests/made.toml").read_text()
            assert any(line.endswith(f"`python` is set to {wanted}{words}") for line in ended.data["notes"])


PROJECT = '[project]\nname = "it"\nrequires-python = ">=3.12,<3.13"\n'


def test_groups_that_include_groups_twice_take_no_time() -> None:
    """Fifteen levels took half a minute; the limit is of processor time."""
    groups = [f'g{n} = [{{ include-group = "G{n + 1}" }}, {{ include-group = "g{n + 1}" }}]' for n in range(18)]
    extras = [f'e{n} = ["it[e{n + 1},e{n + 1}]", "it[e{n + 1}]"]' for n in range(18)]
    text = PROJECT + "[project.optional-dependencies]\n" + "\n".join(extras) + '\ne18 = ["six", "it[e0]"]\n'
    text += "[dependency-groups]\n" + "\n".join(groups) + '\ng18 = ["attrs>=1", { include-group = "g0" }, "zipp"]\n'
    began = time.process_time()
    found, _ = imported("pyproject.toml", text, "--environment", "g0")
    assert time.process_time() - began < 10
    assert found["pypi-dependencies"] == {"attrs": ">=1", "zipp": "*"}
    assert found["feature"]["e0"]["pypi-dependencies"] == {"six": "*"}


def test_a_value_of_another_type_is_one_error_with_the_name_of_the_file() -> None:
    Path("Pipfile").write_text('[source]\nurl = "https://index.example/simple"\n[packages]\nsix = "*"\n')
    assert call("import", "Pipfile", "--name", "made", "--offline").status == 0
    poetry, pixi = "[tool.poetry.dependencies]\n", '[tool.pixi.workspace]\nchannels = []\nplatforms = ["linux-64"]\n'
    for name, text, message in (
        ("Pipfile", 'source = "x"\n[packages]\nsix = "*"\n', "source: expected tables"),
        ("Pipfile", 'requires = "3.12"\n[packages]\nsix = "*"\n', "requires: expected a table"),
        ("Pipfile", "[packages]\nsix = { extras = 3 }\n", "extras: expected a list of strings"),
        ("Pipfile", 'packages = "six"\n', "packages: expected a table"),
        ("pyproject.toml", PROJECT + 'dependencies = "numpy"\n', "dependencies: expected a list of strings"),
        ("pyproject.toml", PROJECT + "dependencies = [3]\n", "dependencies: expected a list of strings"),
        ("pyproject.toml", PROJECT + '[project.optional-dependencies]\na = "six"\n', "a: expected a list of strings"),
        ("pyproject.toml", PROJECT + '[dependency-groups]\na = "six"\n', "dependency-groups.a: expected a list"),
        ("pyproject.toml", PROJECT + '[tool.uv]\ndev-dependencies = "six"\n', "dev-dependencies: expected a list"),
        ("pyproject.toml", PROJECT + '[tool.uv]\nextra-index-url = "x"\n', "extra-index-url: expected a list"),
        ("pyproject.toml", PROJECT + 'dynamic = "dependencies"\n', "dynamic: expected a list of strings"),
        ("pyproject.toml", poetry + 'six = { version = "1", extras = "ab" }\n', "extras: expected a list of strings"),
        ("pyproject.toml", poetry + 'six = "1"\n[tool.poetry.extras]\na = "six"\n', "a: expected a list of strings"),
        ("pyproject.toml", PROJECT + 'dependencies = "numpy"\n' + pixi, "dependencies: expected a list of strings"),
        ("pyproject.toml", PROJECT + '[dependency-groups]\na = "six"\n' + pixi, "dependency-groups.a: expected"),
    ):
        Path(name).write_text(text)
        ended = call("import", name, "--name", "made", "--offline")
        assert ended.status == 3, (text, ended.err)
        assert f"error[manifest]: {name}: invalid {name}: {message}" in ended.err, text
        Path(name).unlink()


def test_an_index_of_pixi_of_another_type_is_an_error_with_the_name_of_the_file() -> None:
    text = '[workspace]\nchannels = []\nplatforms = ["linux-64"]\n[pypi-options]\nextra-index-urls = "x"\n'
    Path("pixi.toml").write_text(text)
    ended = call("import", "pixi.toml", "--name", "made", "--offline")
    assert ended.status == 3
    assert "pixi.toml: pypi-options.extra-index-urls: expected a list of strings" in ended.err


def test_a_member_of_a_workspace_is_below_its_project() -> None:
    text = PROJECT + 'dependencies = ["six", "one"]\n[tool.uv.sources]\nsix = { workspace = true }\n'
    for pattern in ("/etc/*", "../*", "a/../../*"):
        found, said = imported("pyproject.toml", text + f'[tool.uv.workspace]\nmembers = ["{pattern}"]\n')
        assert found["pypi-dependencies"] == {"one": "*"}  # no index is asked for a package of the project
        assert "`six`, a member of the workspace, which is not there" in said


def test_an_index_that_only_the_environment_of_uv_names_is_no_error() -> None:
    for name, text in (
        ("pyproject.toml", PROJECT + 'dependencies = ["torch"]\n[tool.uv.sources]\ntorch = { index = "pytorch" }\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = { version = "*", source = "pytorch" }\n'),
        ("Pipfile", '[packages]\ntorch = { version = "*", index = "pytorch" }\n'),
    ):
        found, said = imported(name, text)
        assert found["pypi-dependencies"] == {"torch": "*"}, text
        assert "the index `pytorch` of `torch`, which the file does not name" in said, text


def test_the_pythons_of_poetry_do_not_vanish() -> None:
    for python, wanted, message in (
        ('"^2.7 || ^3.8"', ">=3.8,<3.15", "one of several ranges, `^2.7 || ^3.8`: it is `^3.8` now"),
        ('"~3.10 | ~3.9"', ">=3.10,<3.11", "it is `~3.10` now"),
        ('["3.10"]', None, "its Python `['3.10']`, which is not a range"),
        ('{ version = "~3.12" }', ">=3.12,<3.13", ""),
    ):
        found, said = imported("pyproject.toml", f'[tool.poetry.dependencies]\npython = {python}\nsix = "*"\n')
        assert wanted is None or found["python"] == wanted, python
        assert message in said
    for name, text in (
        ("pyproject.toml", PROJECT.replace(">=3.12,<3.13", "new") + 'dependencies = ["six"]\n'),
        ("Pipfile", '[packages]\nsix = "*"\n[requires]\npython_version = "new"\n'),
        ("setup.cfg", "[options]\npython_requires = new\ninstall_requires = six\n"),
    ):
        assert "its Python `new`, which is not a " in imported(name, text)[1]


def test_a_source_archive_is_a_loss() -> None:
    url = "https://me:secret@files.example.org/foo-1.0.tar.gz"
    for name, text in (
        ("pyproject.toml", f'[tool.poetry.dependencies]\nfoo = {{ url = "{url}" }}\nsix = "*"\n'),
        ("Pipfile", f'[packages]\nfoo = {{ file = "{url}" }}\nsix = "*"\n'),
    ):
        found, said = imported(name, text)
        assert found["pypi-dependencies"] == {"foo": "*", "six": "*"}
        assert "the source of `foo`, {'url': 'https://files.example.org/foo-1.0.tar.gz'}: it is requested" in said
        assert "secret" not in said


def test_the_defaults_of_a_setup_cfg_are_no_extras() -> None:
    text = "[DEFAULT]\nhome = /x\n[options]\ninstall_requires = six\n[options.extras_require]\ntest = attrs\n"
    assert list(imported("setup.cfg", text)[0]["feature"]) == ["test"]
