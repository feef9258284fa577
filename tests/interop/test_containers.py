"""Containers and CI: what is carried along, which image fits, and that the commands make an environment."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tenv import __version__
from tenv.interop.container_recipe import own_wheel
from tenv.interop.interface import Subject
from tenv.locks.lock import LockedTree
from tenv.verbs.export import _unreached
from tests.support.lock_builders import lock, manifest
from tests.support.projects import Project, call

CONTEXT = "/opt/tenv"


def sections(text: str, name: str) -> list[list[str]]:
    """Return the lines of every section of a name in an Apptainer definition, as Apptainer takes them."""
    parts = re.split(r"^%([\w ]+)$", text, flags=re.MULTILINE)
    found = zip(parts[1::2], parts[2::2], strict=True)
    return [
        [line.strip() for line in body.splitlines() if line.startswith("    ")] for key, body in found if key == name
    ]


def test_a_dockerfile_carries_the_lock_and_this_tenv(locked: Project) -> None:
    ended = locked.ok("export", "dockerfile", "tiny", "-o", "out")
    context = Path("out/tenv-context")
    assert (context / "locks/tiny.lock").read_bytes() == locked.lock.read_bytes()
    assert (context / "manifests/tiny.toml").read_bytes() == locked.manifest.read_bytes()
    wheel = context / f"torch_tenv-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert "tenv/builtin/manifests/cpu.toml" in names
    assert "click==" in (context / "constraints.txt").read_text()
    text = Path("out/Dockerfile").read_text()
    assert f"of tenv {__version__}." in text.splitlines()[0]
    assert "tenv create tiny --frozen\n" in text
    assert (
        text.index("COPY torch_tenv-")
        < text.index("pip install")
        < text.index("COPY --chown=dev locks")
        < text.index("tenv create")
    )
    assert text.index("USER dev") < text.index("tenv create")
    assert "build: docker build -t tenv-tiny -f out/Dockerfile out/tenv-context" in ended.err
    assert 'run: docker run --rm -it --cap-add=SYS_PTRACE -v "$PWD":/work tenv-tiny' in ended.err
    assert "`tenv export dockerfile tiny -o out --force` renews them" in ended.err
    ended = locked.ok("export", "apptainer", "tiny", "-o", "box")
    assert "build: (cd box && apptainer build --fakeroot tiny.sif tiny.def)" in ended.err
    assert '--overlay box/tiny-overlay --bind "$PWD":/work box/tiny.sif' in ended.err
    assert (
        "build: devcontainer build --workspace-folder dev"
        in locked.ok("export", "devcontainer", "tiny", "-o", "dev").err
    )


@pytest.mark.long
def test_the_wheel_that_is_carried_is_a_tenv(locked: Project, tmp_path: Path) -> None:
    locked.ok("export", "dockerfile", "tiny", "-o", "out")
    (wheel,) = Path("out/tenv-context").glob("*.whl")
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        str(tmp_path / "site"),
        str(wheel),
    ]
    subprocess.run(words, check=True, capture_output=True)
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); from tenv.__main__ import run; run()"
    done = subprocess.run([sys.executable, "-I", "-c", code, "targets"], capture_output=True, text=True, check=True)
    assert "cuda130" in done.stdout
    assert own_wheel() == (wheel.name, wheel.read_bytes()), "the same tenv makes the same wheel"


def test_parents_are_carried_too(empty_project: Path) -> None:
    assert call("export", "apptainer", "cuda130", "-o", "out").status == 0
    assert {path.name for path in Path("out/tenv-context/manifests").iterdir()} == {
        "cuda130.toml",
        "_cuda.toml",
        "_pytorch.toml",
    }


UV_LOCK = """\
version = 1
requires-python = ">=3.11,<3.13"
[[package]]
name = "w"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "near" }]
[package.metadata]
requires-dist = [{ name = "near", directory = "near" }]
[[package]]
name = "near"
version = "1.0"
source = { directory = "near" }
"""


def test_what_a_container_can_t_reach_is_named(empty_project: Path) -> None:
    (empty_project / "near").mkdir()
    Path("near/pyproject.toml").write_text('[project]\nname = "near"\nversion = "1.0"\ndependencies = []\n')
    Path("pyproject.toml").write_text(
        '[project]\nname = "w"\nversion = "1"\nrequires-python = ">=3.11,<3.13"\ndependencies = ["near"]\n'
        '[tool.uv]\npackage = false\n[tool.uv.sources]\nnear = { path = "near" }\n'
    )
    Path("uv.lock").write_text(UV_LOCK)
    ended = call("import", "uv.lock", "--name", "made", "--offline")
    assert (ended.status, Path("locks/made.lock").exists()) == (0, True), ended.err
    for form in ("dockerfile", "devcontainer", "apptainer"):
        ended = call("export", form, "made", "-o", f"out-{form}", "--json")
        (line,) = ended.data["lost"]
        assert line.startswith(f"near from {empty_project / 'near'}, which is on this machine alone"), form
    assert call("export", "github-actions", "made", "-o", ".", "--json").data["lost"] == []  # the repository has it
    (line,) = call("export", "github-actions", "made", "-o", "out-elsewhere", "--json").data["lost"]
    assert line.startswith("near from ")


def test_a_repository_of_this_machine_is_out_of_reach_too() -> None:
    places = {"far": "https://example.org/far.git", "near": "file:///srv/near.git"}
    rows = [LockedTree(name, "1.0", ("3.12",), (), git=git, commit="a" * 40) for name, git in places.items()]
    here = replace(lock(platforms=("linux-64",)), trees={"linux-64": tuple(rows)})
    (line,) = _unreached(Subject(manifest(), here, ("linux-64",)), Path())
    assert line.startswith("near from file:///srv/near.git, which is on this machine alone")


@pytest.mark.parametrize(
    ("target", "base", "packages"),
    [
        ("cpu", "debian:12", "python3-venv g++ "),
        ("cuda130", "debian:12", "python3-venv g++ "),
        ("cuda118-archives", "debian:12", "g++-11 "),
        ("cuda121", "debian:12", "python3-venv "),
        ("pydebug", "debian:12", "python3-venv python3-dbg g++ "),
    ],
)
def test_the_image_fits_the_target(empty_project: Path, target: str, base: str, packages: str) -> None:
    ended = call("export", "dockerfile", target, "-o", "out")
    assert ended.status == 0, ended.err
    text = Path("out/Dockerfile").read_text()
    assert f"ARG BASE={base}\n" in text
    assert f"{packages}\\\n" in text
    assert ("ENV CXX=/usr/bin/g++-11\n" in text) == ("g++-11" in packages)
    cuda = target.startswith("cuda")
    assert ("ENV NVIDIA_VISIBLE_DEVICES=all\n" in text) == cuda
    assert ("docker run --rm -it --gpus all" in ended.err) == cuda
    assert ("the host needs the NVIDIA Container Toolkit and a driver for CUDA" in ended.err) == cuda


def test_an_old_image_takes_the_environment_from_a_stage(empty_project: Path) -> None:
    assert call("export", "dockerfile", "cuda121", "-o", "out", "--base", "ubuntu:18.04").status == 0
    text = Path("out/Dockerfile").read_text()
    maker, last = text.split("\nFROM ${BASE}\n")
    assert "ARG BASE=ubuntu:18.04\nARG BUILDER=debian:12\nFROM ${BUILDER} AS environment\n" in maker
    assert "tenv create cuda121 --frozen --no-check" in maker
    assert f"COPY --from=environment --chown=dev {CONTEXT} {CONTEXT}" in last
    assert "python3" not in last
    assert call("export", "apptainer", "cuda121", "-o", "out", "--base", "ubuntu:18.04").status == 0
    text = Path("out/cuda121.def").read_text()
    assert [line for line in text.splitlines() if line.startswith(("From", "Stage", "%files from"))] == [
        "From: debian:12",
        "Stage: environment",
        "From: ubuntu:18.04",
        "Stage: final",
        "%files from environment",
    ]


@pytest.mark.parametrize(
    ("target", "words", "base", "compiler"),
    [
        ("cuda117", (), "ubuntu:22.04", "g++ "),
        ("legacy", (), "ubuntu:18.04", "g++ "),
        ("legacy", ("--base", "ubuntu:bionic"), "ubuntu:bionic", "g++ "),
        ("cuda117", ("--base", "nvidia/cuda:11.7.1-devel-ubuntu20.04"), "nvidia/cuda:11.7.1-devel-ubuntu20.04", "g++ "),
    ],
)
def test_an_image_of_the_targets_age_gets_a_second_python_for_tenv(
    empty_project: Path, target: str, words: tuple[str, ...], base: str, compiler: str
) -> None:
    ended = call("export", "dockerfile", target, "-o", "out", *words)
    assert ended.status == 0, ended.err
    text = Path("out/Dockerfile").read_text()
    maker, last = text.split("\nFROM ${BASE}\n")
    assert f"ARG BASE={base}\nARG BUILDER=debian:12\nFROM ${{BUILDER}} AS python\n" in maker
    assert "ARG UV_PYTHON_INSTALL_MIRROR\n" in maker
    assert "uv python install --no-bin 3.12" in maker
    assert "tenv create" not in maker
    assert f"python3 python3-dev python3-venv {compiler}\\\n" in last
    assert "COPY --from=python /opt/tenv-python /opt/tenv-python\n" in last
    assert "RUN /opt/tenv-python/bin/python3.12 -m venv /opt/tenv-program" in last
    assert f"tenv create {target} --frozen\n" in last
    assert call("export", "apptainer", target, "-o", "out", *words).status == 0
    text = Path(f"out/{target}.def").read_text()
    assert [line for line in text.splitlines() if line.startswith(("From", "Stage", "%files"))] == [
        "From: debian:12",
        "Stage: python",
        "%files",
        f"From: {base}",
        "Stage: final",
        "%files from python",
        "%files",
    ]


def test_the_first_stage_fetches_a_python_for_tenv(empty_project: Path, tmp_path: Path) -> None:
    """Run the commands of the stage with programs that stand for Python and uv."""
    assert call("export", "apptainer", "legacy", "-o", "out").status == 0
    lines = sections(Path("out/legacy.def").read_text(), "post")[0]
    programs = tmp_path / "bin"
    programs.mkdir()
    home = tmp_path / "pythons" / "cpython-3.12.9-linux-x86_64-gnu"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python3.12").write_text("")
    (tmp_path / "pythons" / "cpython-3.12-linux-x86_64-gnu").symlink_to(home)
    fakes = {
        "python3": 'mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$(dirname "$0")/uv" "$3/bin/uv"',
        "uv": f'[ "$2" = install ] || echo {tmp_path}/pythons/cpython-3.12-linux-x86_64-gnu/bin/python3.12',
    }
    for name, body in fakes.items():
        (programs / name).write_text(f'#!/bin/sh\n[ "$1 $2" = "-m pip" ] && exit 0\n{body}\n')
        (programs / name).chmod(0o755)
    start = next(number for number, line in enumerate(lines) if "-m venv" in line)
    text = "\n".join(["set -eu", *lines[start:]]).replace("/opt/", f"{tmp_path}/opt/")
    (tmp_path / "opt").mkdir()
    subprocess.run(["sh", "-c", text], check=True, env={"PATH": f"{programs}:/usr/bin:/bin"})
    assert (tmp_path / "opt" / "tenv-python" / "bin" / "python3.12").is_file()


def test_an_image_of_an_unknown_system_is_named_as_one(empty_project: Path) -> None:
    said = call("export", "dockerfile", "cpu", "-o", "out", "--base", "registry.example/mine:7").err
    assert "registry.example/mine:7 must have apt-get and Python 3.11 or newer" in said


@pytest.mark.parametrize(
    ("target", "words", "said"),
    [
        ("cuda-system", (), "and cuda-toolkit, gcc of the machine"),
        ("cuda102-win", (), "a container runs Linux"),
        ("cpu", ("--base", "ubuntu:22.04"), "ubuntu:22.04 has Python 3.10, and cpu serves 3.11, 3.12"),
        ("cpu", ("--base", "python:3.9-slim"), "python:3.9-slim has Python 3.9, and cpu serves 3.11"),
        ("cpu", ("--base", "nvidia/cuda:12.1.1-devel-ubuntu20.04"), "has Python 3.8, and cpu serves 3.11"),
        ("cpu", ("--base", "nvidia/cuda:12.1.1-devel-rockylinux8"), "need apt-get, which this image lacks"),
        ("cpu", ("--base", "python:3.12-alpine"), "need apt-get, which this image lacks"),
        ("cpu", ("--base", "debian:12\nRUN evil"), "is not the name of an image"),
    ],
)
def test_what_fits_no_image_is_refused(empty_project: Path, target: str, words: tuple[str, ...], said: str) -> None:
    ended = call("export", "dockerfile", target, "-o", "out", *words)
    assert (ended.status, said in ended.err) == (2, True), ended.err
    assert not Path("out").exists()


def test_a_dev_container_uses_the_dockerfile(empty_project: Path) -> None:
    assert call("export", "devcontainer", "cuda130").status == 0
    data = json.loads(Path(".devcontainer/devcontainer.json").read_text())
    assert data["build"] == {"dockerfile": "Dockerfile", "context": "tenv-context"}
    assert (Path(".devcontainer") / data["build"]["context"] / "locks" / "cuda130.lock").is_file()
    assert data["hostRequirements"] == {"gpu": "optional"}
    assert data["remoteUser"] == "dev"
    python = data["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert python == f"{CONTEXT}/.tenv/envs/cuda130/bin/python"
    assert f"{CONTEXT}/.tenv/envs/cuda130/tenv-meta/activate.sh" in Path(".devcontainer/Dockerfile").read_text()


def test_a_workflow_keeps_the_environment_by_its_lock(locked: Project) -> None:
    locked.ok("export", "github-actions", "tiny")
    data = yaml.safe_load(Path(".github/workflows/tenv-tiny.yml").read_text())
    assert data["permissions"] == {"contents": "read"}
    steps = data["jobs"]["tiny"]["steps"]
    uses = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name) for name in uses)
    cache = next(step["with"] for step in steps if "cache@" in step.get("uses", ""))
    assert "hashFiles('locks/tiny.lock')" in cache["key"]  # the project's own: no copy that goes stale
    assert cache["path"] == ".tenv/envs/tiny"
    assert f"tenv-{__version__}-tiny-" in cache["key"]
    made = next(step for step in steps if "tenv create" in step.get("run", ""))
    assert (made["working-directory"], made["run"]) == (".", "tenv create tiny --frozen")
    assert sorted(path.name for path in Path(".github/tenv").iterdir()) == [
        "constraints.txt",
        f"torch_tenv-{__version__}-py3-none-any.whl",
    ]


def test_a_workflow_finds_a_project_in_a_folder_of_the_repository(
    locked: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = locked.folder.parent
    ended = locked.ok("export", "github-actions", "tiny", "-o", str(above))
    text = (above / ".github/workflows/tenv-tiny.yml").read_text()
    assert f"working-directory: {locked.folder.name}\n" in text
    assert f"hashFiles('{locked.folder.name}/locks/tiny.lock')" in text
    assert "copies" not in ended.err


def test_a_copied_lock_is_named_as_a_copy(locked: Project) -> None:
    for form in ("github-actions", "dockerfile"):
        ended = locked.ok("export", form, "tiny", "-o", "elsewhere")
        assert f"are copies: `tenv export {form} tiny -o elsewhere --force` renews them after a change" in ended.err
    assert "hashFiles('.github/tenv/locks/tiny.lock')" in Path("elsewhere/.github/workflows/tenv-tiny.yml").read_text()
    assert Path("elsewhere/.github/tenv/locks/tiny.lock").read_bytes() == locked.lock.read_bytes()
    assert "copies" not in locked.ok("export", "dockerfile", "cpu", "-o", "built-in").err


def test_the_commands_make_the_environment(locked: Project, tmp_path: Path) -> None:
    """Run what %post does after the system's packages, in a folder that stands for the root, as it stands there."""
    locked.ok("export", "apptainer", "tiny", "-o", "out")
    text = Path("out/tiny.def").read_text()
    (lines,) = sections(text, "post")
    root = tmp_path / "root"
    copied = [line.split() for line in sections(text, "files")[0]]
    for source, place in copied:
        where = root / place.lstrip("/")
        where.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if Path("out", source).is_dir() else shutil.copy)(Path("out", source), where)
    start = next(number for number, line in enumerate(lines) if "tenv create" in line) - 1
    commands = [line.replace(CONTEXT, str(root / "opt/tenv")) for line in lines[start:] if "/root/" not in line]
    program = root / "opt/tenv-program/bin/tenv"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={Path(__file__).parents[2] / "src"} exec {sys.executable} -m tenv "$@"\n'
    )
    program.chmod(0o755)
    subprocess.run(["sh", "-c", "\n".join(["set -eu", *commands])], check=True, capture_output=True)
    (activate,) = [line for line in sections(text, "environment")[0] if "activate.sh" in line]
    activate = activate.replace(CONTEXT, str(root / "opt/tenv"))
    done = subprocess.run(["sh", "-c", f"{activate}; beta"], capture_output=True, text=True, check=True)
    assert done.stdout == "beta 1.0\n"


def test_what_is_carried_may_be_there_already(locked: Project) -> None:
    locked.ok("export", "dockerfile", "tiny", "-o", "out")
    locked.ok("export", "apptainer", "tiny", "-o", "out")
    Path("out/tenv-context/constraints.txt").write_text("mine")
    assert "constraints.txt: already exists" in locked.fails(
        2, "file-exists", "export", "apptainer", "tiny", "-o", "out"
    )
