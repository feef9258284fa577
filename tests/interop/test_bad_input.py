"""Files that are damaged, or made to do harm: one clear error with its status, and nothing written."""

import shlex
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.interop.lock_index import LockIndex
from tests.interop.records import CONDA_LOCK, HOME, OLD_PIXI, PIXI, WHEELS
from tests.support.each import each
from tests.support.projects import call

BOMB = "a: &a [x, x]\n" + "".join(f"{n}: &{n} [*{p}, *{p}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True))
EXPLICIT = f"@EXPLICIT\n{HOME}/linux-64/bzip2-1.0.8-hda65f42_8.conda"


pytestmark = pytest.mark.usefixtures("empty_project")


CASES: list[tuple[str, bytes | str, int, str, str]] = [
    ("pixi.lock", "", 7, "lock-corrupt", "expected a mapping, got nothing"),
    ("pixi.lock", b"\xff\xfe\x00", 7, "lock-corrupt", "not UTF-8 text"),
    ("pixi.lock", "version: 7\n  x: [", 7, "lock-corrupt", "unsupported YAML"),
    ("pixi.lock", "- " * 60000 + "x", 7, "lock-corrupt", "nested too deep"),
    ("pixi.lock", "a: " + "[" * 60000, 7, "lock-corrupt", "nested too deep"),
    ("pixi.lock", BOMB, 7, "lock-corrupt", "uses a YAML alias (`*a`)"),
    ("pixi.lock", PIXI.replace("version: 7", "version: 99", 1), 7, "lock-corrupt", "rattler can't read it"),
    ("pixi.lock", PIXI[: len(PIXI) // 2], 7, "lock-corrupt", "rattler can't read it"),
    ("pixi.lock", PIXI.replace("fe51de61", "zz51de61"), 7, "lock-corrupt", "rattler can't read it"),
    ("pixi.lock", OLD_PIXI.replace("linux-64", "osx-64"), 2, "format", "only for osx-64"),
    (
        "conda-lock.yml",
        CONDA_LOCK.replace("version: 1\n", "version: 3\n", 1),
        7,
        "lock-corrupt",
        "has an unknown version: 3",
    ),
    ("conda-lock.yml", CONDA_LOCK.replace("  optional: false", ""), 7, "lock-corrupt", "package.0.optional: Field req"),
    ("conda-lock.yml", CONDA_LOCK.replace("name: libgcc", "name: bzip2"), 7, "lock-corrupt", "listed twice"),
    (
        "conda-lock.yml",
        CONDA_LOCK.replace("bzip2-1.0.8-hda65f42_8.conda", "x"),
        7,
        "lock-corrupt",
        "can't be converted to a lock",
    ),
    ("conda-lock.yml", CONDA_LOCK.replace("bzip2-1.0.8", "../../bzip2-1.0.8"), 7, "lock-corrupt", ""),
    ("explicit.txt", "@EXPLICIT\n", 7, "lock-corrupt", "lists no packages"),
    ("explicit.txt", f"{EXPLICIT}\nnonsense\n", 7, "lock-corrupt", "explicit.txt:3: `nonsense` is not the URL"),
    ("explicit.txt", EXPLICIT.replace("linux-64", "osx-64"), 2, "format", "but for osx-64"),
    ("environment.yml", "dependencies: 3", 3, "manifest", "dependencies: expected a list"),
    (
        "environment.yml",
        "dependencies: [x]\nname: {<<: x}",
        3,
        "manifest",
        "environment.yml: unsupported YAML: uses a merge key",
    ),
    (
        "environment.yml",
        "dependencies: [x]\nname: !!bool x",
        3,
        "manifest",
        "uses the tag `tag:yaml.org,2002:bool`",
    ),
    ("environment.yml", "dependencies: [[x]]", 3, "manifest", "expected a package or a `pip:` list"),
    ("environment.yml", "dependencies: ['a b c [[']", 3, "manifest", "dependencies: `a b c [[`"),
    ("environment.yml", "dependencies: ['../../x']", 3, "manifest", "dependencies: `../../x`"),
    ("environment.yml", "dependencies: [x]\nvariables: {'A B': 1}", 3, "manifest", "can't be converted to a manifest"),
    ("environment.yml", "dependencies: [x]\nplatforms: [osx-64]", 2, "format", "has no platform that tenv supports"),
    ("requirements.txt", "", 3, "manifest", "has no requests"),
    ("requirements.txt", "numpy ==", 3, "manifest", "requirements.txt:1"),
    ("pylock.toml", "[[", 7, "lock-corrupt", "not TOML"),
    ("pylock.toml", "a = " + "1" * 5000, 7, "lock-corrupt", "not TOML: Exceeds the limit"),
    ("pylock.toml", 'lock-version = "9.0"', 7, "lock-corrupt", "invalid pylock.toml"),
    ("holiday.jpg", b"\x89PNG", 2, "format", "unknown format, by its name and its first bytes"),
]


@each("name, data, status, code, message", CASES)
def test_a_bad_file_is_one_error(name: str, data: bytes | str, status: int, code: str, message: str) -> None:
    path = Path("theirs") / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    ended = call("import", str(path))
    assert ended.err.count("error[") == 1, ended.err
    assert (ended.status, ended.err.partition("error[")[2].partition("]")[0]) == (status, code), ended.err
    path.unlink()  # the files of others are read beside it
    assert message in ended.err
    assert list(Path("manifests").iterdir()) == []
    assert not Path("locks").exists()


@each(
    "words, message",
    [
        (("import", "nowhere.lock"), "nowhere.lock: no such file"),
        (("import", "manifests"), "manifests: is a folder"),
        (("import", "pixi.lock", "--name", "../up"), "`../up` is not a name for a target"),
        (("import", "pixi.lock", "--platform", "osx-64"), "unknown platform `osx-64`"),
        (("import", "pixi.lock", "--environment", "nosuch"), "has no environment `nosuch`"),
        (("import", "pixi.lock", "--format", "pixy"), "unknown format `pixy`"),
        (("export", "pixy", "cpu"), "unknown format `pixy`"),
        (("export", "pip", "cpu"), "hint: pip reads `requirements.txt`; formats: "),
        (("export", "explicit", "cpu"), "cpu has no conda packages"),
        (("export", "pixi", "cpu", "--platform", "osx-64"), "cpu has no platform `osx-64`"),
        (("export", "requirements.txt", "cpu", "--python", "3.8"), "the lock of cpu does not serve Python 3.8"),
        (("export", "environment.yml", "cpu", "-o", "-"), "is 3 files"),
    ],
)
def test_words_that_do_not_fit_are_a_usage_error(words: tuple[str, ...], message: str) -> None:
    Path("pixi.lock").write_text(PIXI)
    ended = call(*words)
    assert (ended.status, message in ended.err) == (2, True), ended.err


def test_a_wheel_that_no_index_has_is_told() -> None:
    Path("pixi.lock").write_text(PIXI)
    assert call("import", "pixi.lock", "--name", "t").status == 0
    with LockIndex([]) as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        ended = call("export", "pixi", "t", "-o", "out")
    assert (ended.status, "the indexes in use lack a locked release" in ended.err) == (6, True), ended.err
    with (
        LockIndex([replace(row, sha256=row.sha256[::-1]) for row in WHEELS]) as index,
        pytest.MonkeyPatch.context() as p,
    ):
        p.setenv("UV_DEFAULT_INDEX", index.url)
        ended = call("export", "pixi", "t", "-o", "out")
    assert "the indexes in use do not have the locked alpha-1.0-py3-none-any.whl, beta" in ended.err
    assert ended.status == 6
    assert not Path("out").exists()


def test_a_stale_lock_is_not_exported() -> None:
    Path("pixi.lock").write_text(PIXI)
    assert call("import", "pixi.lock", "--name", "t").status == 0
    path = Path("manifests/t.toml")
    path.write_text(path.read_text().replace('cuda  = "12.1"', 'cuda  = "12.4"'))
    ended = call("export", "explicit", "t")
    assert ended.status == 7
    assert "does not satisfy its manifest" in ended.err


def test_an_environment_of_blank_lines_takes_no_time(tmp_path: Path) -> None:
    """The pattern of selectors took minutes; the limit is of processor time."""
    file = tmp_path / "environment.yml"
    file.write_text("dependencies:\n" + "\n" * 300_000 + "- a" + " " * 30_000 + "#x\n- gcc  # [linux]\n")
    began = time.process_time()
    assert call("import", str(file)).status == 0
    assert time.process_time() - began < 10


@pytest.mark.usefixtures("empty_project")
@each(
    "name, said",
    [
        ("Dockerfile", "tenv export dockerfile"),
        ("Dockerfile.gpu", "tenv export dockerfile"),
        ("cuda.Dockerfile", "tenv export dockerfile"),
        ("Containerfile", "tenv export dockerfile"),
        ("docker-compose.gpu.yml", "names images, not packages"),
        ("it.def", "tenv export apptainer"),
        (".devcontainer.json", "tenv export devcontainer"),
        ("spack.lock", "tenv create auto"),
    ],
)
def test_a_file_without_requests_has_a_sentence_about_the_way_to_go(name: str, said: str) -> None:
    Path(name).write_text("FROM scratch\n")
    ended = call("import", name)
    assert (ended.status, "is not read" in ended.err, said in ended.err) == (2, True, True), ended.err


@each(
    "name, text, other, more",
    [
        ("pyproject.toml", '[build-system]\nrequires = ["setuptools"]\n', "requirements-gpu.txt", "six\n"),
        ("pyproject.toml", "[tool.ruff]\n", "environment.yml", "dependencies:\n- python=3.12\n- six\n"),
        ("pyproject.toml", "[tool.ruff]\n", "setup.cfg", "[options]\ninstall_requires =\n  six\n"),
        ("setup.cfg", "[metadata]\nname = it\n", "Pipfile", '[packages]\nsix = "*"\n'),
        ("poetry.lock", "", "pyproject.toml", '[project]\nname = "it"\ndependencies = ["six"]\n'),
        ("Pipfile.lock", "{}", "Pipfile", '[packages]\nsix = "*"\n'),
    ],
)
def test_the_hint_of_a_file_without_requests_works_from_another_folder(
    name: str, text: str, other: str, more: str, tmp_path: Path
) -> None:
    folder = tmp_path / "two words"
    folder.mkdir()
    for path, content in ((name, text), (other, more)):
        (folder / path).write_text(content)
    hint = call("import", str(folder / name)).err.partition("hint: ")[2]
    words = shlex.split(hint.split("`")[1])
    assert words[:2] == ["tenv", "import"], hint
    assert call(*words[1:], "--name", "made", "--force", "--offline").status == 0, hint


@pytest.mark.usefixtures("empty_project")
def test_a_file_of_which_nothing_can_be_taken_names_each_part() -> None:
    Path("requirements.txt").write_text("git+git://example.org/it.git\n./missing\n")
    ended = call("import", "requirements.txt", "--offline")
    assert (ended.status, "has no requests that tenv can take: `git+git://" in ended.err) == (3, True), ended.err
    assert "`./missing`, a folder that is not there" in ended.err
    head = '[workspace]\nname = "it"\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n'
    Path("pixi.toml").write_text(
        f'{head}[environments]\ngpu = ["gpu"]\n[feature.gpu.dependencies]\npython = "3.12.*"\n'
    )
    ended = call("import", "pixi.toml")
    assert (ended.status, "its environment `default` has no requests" in ended.err) == (2, True), ended.err
    assert call("import", "pixi.toml", "--environment", "gpu").status == 0
