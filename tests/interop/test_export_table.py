"""The table of docs/interop.md: what an export keeps of a target in each format, and the words for what is lost.

Two targets have all parts between them. Each is exported here to each format that represents a lock.
"""

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli

from tenv.core.files import digest, digest_bytes
from tenv.core.names import CondaFile
from tenv.interop.formats import FORMATS, find_format
from tenv.interop.pixi import lock_text
from tenv.locks.lock import Archive, CondaPackage, LockedTree, Wheel, from_manifest
from tenv.locks.lock_features import divide
from tenv.locks.lock_file import read_lock, render_lock
from tenv.targets.manifest_file import read_manifest
from tests.interop.records import HOME
from tests.support.fakes import Index, make_wheel
from tests.support.projects import call
from tests.support.source_trees import pack_sdist, write_tree

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
BEGIN, END = "<!-- exported:begin -->\n", "<!-- exported:end -->"

WRITTEN = [name for name in FORMATS if find_format(name).read and find_format(name).export]
GIT, COMMIT = "https://example.org/tree", "a1" * 20
PYTHON = f"3.{sys.version_info.minor}"  # so that the tools of this Python take what is written

HEAD = f"""
platforms = ["linux-64"]
channels = ["conda-forge"]
pytorch = ">=2.9,<2.12"
constraints = ["bounded<9"]
overrides = ["replaced>=2"]
[requirements]
cuda = "12.8"
glibc = "2.28"
[dependencies]
python = "{PYTHON}.*"
bzip2 = "1.*"
"""
WHOLE = """
[pypi-dependencies]
alpha = ">=1"
second = { version = "*", index = "other" }
direct = { url = "ADDRESS" }
nearby = { path = "../near/nearby-1.0-py3-none-any.whl" }
[archives]
packed = { url = "https://example.org/packed-1.0.tar.gz", sha256 = "SHA" }
[system]
cuda-toolkit = "*"
[activation.env]
PLAIN = "1"
LISTED_PATH = { prepend = "$TENV_PREFIX/more" }
[feature.debug.dependencies]
tzdata = "*"
[[index]]
name = "other"
url = "OTHER"
explicit = true
"""
TREES = f"""
[pypi-dependencies]
alpha = ">=1"
tree = {{ git = "{GIT}", rev = "{COMMIT}" }}
folder = {{ path = "../folder" }}
vision = {{ version = "*", build = true }}
"""


@dataclass(frozen=True)
class Part:
    """A part of a target.

    Attributes:
        name: Its name in the table.
        target: The target that has it.
        tokens: The words of which a format has one that keeps it; in capitals, values that each test has anew.
        lost: A pattern of the words that report its loss.
    """

    name: str
    target: str
    tokens: tuple[str, ...]
    lost: str


def sha(name: str) -> str:
    return digest_bytes(name.encode())


BUILT = r"is built from"
PARTS = (
    Part("conda packages", "whole", ("bzip2",), "conda packages: "),
    Part("their builds", "whole", ("1.0.8-0", "=0"), "conda packages: "),
    Part("their hashes", "whole", (sha("bzip2"),), "conda packages: |no hashes"),
    Part("wheels", "whole", ("alpha",), "wheels: "),
    Part("hashes of wheels", "whole", ("HASH",), "no hashes"),
    Part("the index of a wheel", "whole", ("OTHER", "SECOND"), "index"),
    Part("a wheel at an address", "whole", ("ADDRESS",), "direct"),
    Part("a wheel in a folder", "whole", ("NEAR",), "nearby"),
    Part("a git repository", "trees", (GIT,), f"tree, which {BUILT}"),
    Part("a folder", "trees", ("/folder",), f"folder, which {BUILT}"),
    Part("a source archive", "trees", ("vision",), f"vision, which {BUILT}"),
    Part("constraints", "whole", ("bounded<9",), "constraints: "),
    Part("overrides", "whole", ("replaced>=2", 'replaced = ">=2"'), "overrides: "),
    Part("archives", "whole", ("packed-1.0.tar.gz",), r"\[archives\]"),
    Part("parts of the system", "whole", ("cuda-toolkit",), r"\[system\]"),
    Part("variables", "whole", ("PLAIN",), "PLAIN"),
    Part("variables that add to a list", "whole", ("LISTED_PATH",), "LISTED_PATH"),
    Part("requirements on the host", "whole", ("__cuda", "cuda = "), "requirements on the host"),
    Part("features", "whole", ("tzdata",), "features debug"),
    Part("the supported PyTorch", "whole", (">=2.9,<2.12",), "supported PyTorch"),
)


def conda(name: str, version: str) -> dict[str, Any]:
    url = f"{HOME}/linux-64/{name}-{version}-0.conda"
    return {"conda": url, "sha256": sha(name), "md5": sha(name)[:32], "depends": []}


ROWS = (
    conda("bzip2", "1.0.8"),
    conda("python", f"{PYTHON}.1"),
    conda("tzdata", "2025b"),
)


def write_target(name: str, text: str, files: Mapping[str, tuple[Any, ...]]) -> None:
    """Write a manifest and the lock of some files, with the conda packages of `ROWS`."""
    file = Path(f"manifests/{name}.toml")
    file.write_text(HEAD + text)
    manifest = read_manifest(name, file, Path, file.name, file.parent.absolute())
    rows = [row for row in ROWS if "tzdata" not in row["conda"] or manifest.features]
    packages = tuple(_package(row) for row in rows)
    every = {"conda": {"linux-64": packages}, **{key: {"linux-64": found} for key, found in files.items()}}
    lock = from_manifest(manifest, divide(manifest, {"wheels": {"linux-64": ()}, **every}))
    conda_part = lock_text(name, (HOME,), {"linux-64": ({"name": "linux-64"}, tuple(rows))}, {})
    Path("locks").mkdir(exist_ok=True)
    Path(f"locks/{name}.lock").write_bytes(render_lock(lock, conda_part))


def _package(row: Mapping[str, Any]) -> CondaPackage:
    file = CondaFile.parse(row["conda"])
    assert file
    named = (file.name, file.version, "0", "linux-64", HOME, row["conda"], row["sha256"])
    return CondaPackage(*named, md5=row["md5"])


def write_targets(first: Index, other: Index) -> dict[str, str]:
    """Write both targets; return the values of the tokens in capitals."""
    wheels = {name: make_wheel(first.folder, name, "1.0") for name in ("alpha", "direct")}
    wheels |= {"second": make_wheel(other.folder, "second", "1.0"), "nearby": make_wheel(Path("near"), "nearby", "1.0")}
    address = f"{first.url.removesuffix('/simple')}/files/{wheels['direct'].name}"
    text = WHOLE.replace("ADDRESS", address).replace("SHA", sha("packed")).replace("OTHER", other.url)
    file = Path("manifests/whole.toml")
    file.write_text(HEAD + text)
    index = read_manifest("whole", file, Path, file.name, file.parent.absolute()).indexes[0]
    more: dict[str, dict[str, Any]] = {
        "second": {"index": index},
        "direct": {"url": address},
        "nearby": {"path": "../near/nearby-1.0-py3-none-any.whl"},
    }
    rows = tuple(
        Wheel(name, "1.0", path.name, digest(path), None, (PYTHON,), (), **more.get(name, {}))
        for name, path in sorted(wheels.items())
    )
    packed = Archive(
        "packed", "", "https://example.org/packed-1.0.tar.gz", sha("packed"), None, "tar.gz", to="opt/packed"
    )
    write_target("whole", text, {"wheels": rows, "archives": (packed,)})
    Path("folder").mkdir()
    Path("folder/pyproject.toml").write_text('[project]\nname = "folder"\nversion = "1.0"\n')
    archive = pack_sdist(write_tree(Path("packed")), first.folder)
    trees = (
        LockedTree("tree", "1.0", (PYTHON,), (), COMMIT, git=GIT, rev=COMMIT, dynamic=True),
        LockedTree("folder", "1.0", (PYTHON,), (), path="../folder"),
        LockedTree("vision", "1.0", (PYTHON,), ("alpha>=1",), file=archive.name, digest=digest(archive)),
    )
    write_target("trees", TREES, {"trees": trees, "wheels": tuple(row for row in rows if row.name == "alpha")})
    values = {"ADDRESS": address, "OTHER": other.url, "HASH": digest(wheels["alpha"])}
    return values | {"SECOND": f"{other.url.removesuffix('/simple')}/files/second", "NEAR": "/near/nearby-1.0"}


def exported(name: str, target: str) -> tuple[str, list[str]]:
    """Export a target; return the text of the files and the reports of losses."""
    shutil.rmtree("out", ignore_errors=True)
    ended = call("export", name, target, "--output", "out", "--json")
    if ended.status:
        return "", [ended.err]
    return "\n".join(file.read_text() for file in sorted(Path("out").iterdir())), ended.data["lost"]


def _words(line: str) -> str:
    """Return the words of a report without the lines after the first and the values of this machine."""
    return re.sub(r"\s+", " ", line.splitlines()[0]).replace(str(Path.cwd()), "…")


def table() -> tuple[str, str]:
    """Return the table, and the list of the words for each part."""
    with Index(Path("first")) as first, Index(Path("other")) as other, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", first.url)
        values = write_targets(first, other)
        found = {(form, target): exported(form, target) for form in WRITTEN for target in ("whole", "trees")}
    lines = ["| of a target | " + " | ".join(f"`{name}`" for name in WRITTEN) + " |", "|---|" + "---|" * len(WRITTEN)]
    words, silent = [], list[str]()
    for part in PARTS:
        cells, reports = [], set()
        for form in WRITTEN:
            text, lost = found[form, part.target]
            kept = any(values.get(token, token) in text for token in part.tokens)
            named = [line for line in lost if re.search(part.lost, line)]
            if not (kept or named):
                silent.append(f"{form} loses {part.name} in silence: {lost}\n{text}")
            cells.append("kept" if kept else "named")
            reports |= set() if kept else {_words(line) for line in named}
        lines.append(f"| {part.name} | " + " | ".join(cells) + " |")
        words += [f"- {part.name}: " + "; ".join(f"`{line}`" for line in sorted(reports))] if reports else []
    assert not silent, "\n".join(silent)
    return "\n".join(lines) + "\n", "\n".join(words) + "\n"


@pytest.mark.usefixtures("empty_project")
def test_the_page_has_what_an_export_keeps_in_each_format_and_the_words_of_each_loss() -> None:
    rows, words = table()
    wanted = f"{rows}\nThe words of each loss, as printed:\n\n{words}"
    text = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert text == wanted, f"the table of docs/interop.md is now\n{wanted}"


@pytest.mark.usefixtures("empty_project")
def test_a_git_repository_a_folder_and_a_source_archive_stand_as_other_tools_read_them() -> None:
    from packaging.pylock import Pylock

    with Index(Path("first")) as first, Index(Path("other")) as other, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", first.url)
        write_targets(first, other)
        lines = exported("requirements.txt", "trees")[0]
        environment = exported("environment.yml", "trees")[0]
        text, lost = exported("pylock.toml", "trees")
        folder = Path("folder").absolute().as_posix()
        pylock = Pylock.from_dict(tomli.loads(text))
        back = call("import", "out/pylock.toml", "--name", "back", "--offline", "--no-lock")
        packed = digest(next(first.folder.glob("*.tar.gz")))
    assert back.status == 0, back.err
    assert f"vision==1.0 \\\n    --hash=sha256:{packed}\n" in lines
    assert f"- tree @ git+{GIT}@{COMMIT}\n" in environment
    assert f"- folder @ file://{folder}\n" in environment
    assert "- vision==1.0\n" in environment
    packages = {str(package.name): package for package in pylock.packages}
    assert (packages["tree"].vcs.url, packages["tree"].vcs.commit_id) == (GIT, COMMIT)  # type: ignore[union-attr]
    assert packages["folder"].directory.path == folder  # type: ignore[union-attr]
    assert packages["vision"].sdist.hashes == {"sha256": packed}  # type: ignore[union-attr]
    assert "folders are not copied, and stand as paths of this machine: folder" in lost
    asked = tomli.loads(Path("manifests/back.toml").read_text())["pypi-dependencies"]
    assert asked["tree"] == {"git": GIT, "rev": COMMIT}
    assert asked["folder"] == {"path": "../folder"}
    assert asked["vision"] == {"version": "1.0", "build": True}


@pytest.mark.usefixtures("empty_project")
@pytest.mark.parametrize(
    "form", [name for name in WRITTEN if name in ("pixi", "conda-lock", "explicit", "pylock.toml")]
)
def test_a_source_archive_comes_back_as_the_row_that_it_was(form: str) -> None:
    with Index(Path("first")) as first, Index(Path("other")) as other, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", first.url)
        write_targets(first, other)
        before = read_lock(Path("locks/trees.lock"), "trees")
        (row,) = (tree for tree in before.trees["linux-64"] if tree.file)
        alone = {"trees": (row,), "wheels": before.wheels["linux-64"]}
        write_target("packed", '[pypi-dependencies]\nvision = { version = "*", build = true }\n', alone)
        written, lost = exported(form, "packed")
        assert not any("is built from" in line for line in lost), written
        (main,) = (path for path in Path("out").iterdir() if path.name != "pixi.toml")
        back = call("import", str(main), "--name", "back")
        first.folder.joinpath(row.file).unlink()
        assert any(
            "vision, which is built from vision-1.0.tar.gz" in line or "pixi.lock is not written" in line
            for line in exported(form, "packed")[1]
        )  # the index has it no more
    assert back.status == 0, back.err
    (found,) = read_lock(Path("locks/back.lock"), "back").trees["linux-64"]
    assert (found.name, found.file, found.digest, found.python) == (row.name, row.file, row.digest, row.python)
    assert found.requires == row.requires


@pytest.mark.usefixtures("empty_project")
def test_a_folder_that_serves_no_wheel_of_a_lock_is_no_index_of_a_workspace() -> None:
    Path("here").mkdir()
    with Index(Path("first")) as first, Index(Path("other")) as other, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", first.url)
        patch.setenv("UV_INDEX", Path("here").absolute().as_uri())
        write_targets(first, other)
        write_target("one", '[pypi-dependencies]\nalpha = "*"\n', {"wheels": _wheels_of("trees")})
        assert "file:" not in exported("pixi", "one")[0]


def _wheels_of(target: str) -> tuple[Wheel, ...]:
    return read_lock(Path(f"locks/{target}.lock"), target).wheels["linux-64"]
