"""The step `checkout`: which submodules are missing, by their files and by git."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tenv.targets.search import find_places
from tests.builds.conftest import Workshop, codes
from tests.support.projects import call
from tests.support.small_torch import make_git

COMMIT = "1" * 40


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def declare(repository: Path, path: str) -> None:
    """Declare a submodule of a repository that git has not fetched."""
    with (repository / ".gitmodules").open("a") as file:
        file.write(f'[submodule "{path}"]\n\tpath = {path}\n\turl = https://example.org/{path}\n')
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{COMMIT},{path}")
    (repository / path).mkdir(parents=True, exist_ok=True)


def checkout_step(workshop: Workshop, *words: str) -> dict[str, Any]:
    """Return what the first step of a plan says."""
    ended = call("plan", "tiny", "--pytorch", str(workshop.checkout), "--json", *words)
    found: dict[str, Any] = json.loads(ended.out)["data"]["steps"][0]
    return found


def test_a_submodule_that_was_copied_in_is_there_though_git_has_not_fetched_it(workshop: Workshop) -> None:
    make_git(workshop.checkout)
    git(workshop.checkout, "rm", "-rq", "--cached", "third_party/fmt")
    git(workshop.checkout, "update-index", "--add", "--cacheinfo", f"160000,{COMMIT},third_party/fmt")
    said = subprocess.run(
        ["git", "submodule", "status"], cwd=workshop.checkout, capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith(f"-{COMMIT} third_party/fmt")
    row = checkout_step(workshop)
    assert (row["ok"], row["findings"]) == (True, [])
    (workshop.checkout / "third_party/fmt/CMakeLists.txt").unlink()
    assert codes(checkout_step(workshop)) == ("TE611",)


def test_an_empty_submodule_of_a_submodule_can_be_allowed_and_the_fix_says_so(workshop: Workshop) -> None:
    fmt = workshop.checkout / "third_party" / "fmt"
    make_git(fmt)
    declare(fmt, "deep")
    git(fmt, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "deep")
    make_git(workshop.checkout)
    git(workshop.checkout, "config", "submodule.third_party/fmt.url", "https://example.org/fmt")
    row = checkout_step(workshop)
    (finding,) = row["findings"]
    assert (finding["code"], finding["severity"]) == ("TE611", "error")
    assert finding["subject"] == "third_party/fmt/deep"
    assert finding["fix"].endswith("where nothing of your build reads it: --allow TE611")
    allowed = checkout_step(workshop, "--allow", "TE611")
    assert (allowed["ok"], codes(allowed, "warning")) == (True, ("TE611",))
    (fmt / "deep" / "read.h").write_text("")
    assert checkout_step(workshop)["findings"] == []


def test_what_pytorch_itself_refuses_has_no_hint_to_allow_it(workshop: Workshop) -> None:
    make_git(workshop.checkout)
    (workshop.checkout / "third_party/fmt/CMakeLists.txt").unlink()
    (finding,) = checkout_step(workshop)["findings"]
    assert finding["code"] == "TE611"
    assert "--allow" not in finding["fix"]
    assert finding["message"].startswith("is empty: ")


def test_a_submodule_with_other_files_than_pytorch_looks_for_is_not_called_empty(workshop: Workshop) -> None:
    (workshop.checkout / "third_party/fmt/CMakeLists.txt").rename(workshop.checkout / "third_party/fmt/Eigen")
    (finding,) = checkout_step(workshop)["findings"]
    assert finding["message"].startswith("has none of CMakeLists.txt, Makefile, setup.py, LICENSE, ")


def test_check_and_build_agree_about_submodules_that_only_setup_py_would_fetch(workshop: Workshop) -> None:
    (workshop.checkout / "third_party/fmt/CMakeLists.txt").unlink()
    setup = workshop.checkout / "setup.py"
    setup.write_text(f"{setup.read_text()}# check_submodules: print(' --- Trying to initialize submodules')\n")
    make_git(workshop.checkout)
    assert codes(checkout_step(workshop)) == ("TE611",)
    ended = call("check", "tiny", "--pytorch", str(workshop.checkout), "--json", "--build-only")
    (finding,) = [row for row in json.loads(ended.out)["findings"] if row["code"] == "TE611"]
    assert (finding["severity"], ended.status) == ("error", 1)
    assert "setup.py would fetch them, and `tenv build` does not" in finding["message"]
    text = workshop.project.manifest.read_text()
    workshop.project.manifest.write_text(f'{text}[activation.env]\nUSE_SYSTEM_LIBS = "1"\n')
    assert codes(checkout_step(workshop)) == ()
    assert "TE611" not in call("check", "tiny", "--pytorch", str(workshop.checkout), "--json").out


@pytest.mark.long
@pytest.mark.parametrize("version", ["1.12.1", "2.4.0"])
def test_a_machine_without_a_gpu_gets_a_target_for_the_cpu_and_the_name_of_one_with_cuda(
    workshop: Workshop, version: str
) -> None:
    (workshop.checkout / "version.txt").write_text(f"{version}\n")
    (workshop.checkout / "pyproject.toml").unlink()
    workshop.project.manifest.unlink()
    ended = call("plan", "auto", "--pytorch", str(workshop.checkout), "--json")
    assert ended.data["target"] == "cpu-2.7"
    (finding,) = [row for row in json.loads(ended.out)["findings"] if row["code"] == "TE911"]
    named = re.match(r"`tenv build (cuda\S+) ", finding["fix"])
    assert named
    accepted = find_places(workshop.checkout).find(named[1]).manifest.pytorch
    assert accepted is not None
    assert version in accepted


@pytest.mark.parametrize("verb", ["build", "plan"])
def test_a_folder_that_is_no_checkout_is_named_by_its_kind(workshop: Workshop, tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()

    def said() -> str:
        ended = call(verb, "tiny", "--pytorch", str(folder))
        assert ended.status == 2, ended.err
        return " ".join(ended.err.split())

    assert workshop.checkout.is_dir()
    assert f"{folder} is no checkout of PyTorch or of an extension, and has no build file" in said()
    (folder / "pyproject.toml").write_text('[build-system]\nrequires = ["setuptools"]\n')
    assert "and its pyproject.toml names no torch" in said()
    (folder / "pyproject.toml").write_text('[build-system]\nrequires = ["hatchling", "torch>=2.4"]\n')
    (folder / "version.txt").write_text("0.26.0\n")  # as torchvision's
    found = said()
    assert "(`torch` in its pyproject.toml), and is built neither by setup.py nor by scikit-build-core" in found
    assert f'`kernels = {{ path = "{folder}", isolation = false, requires = ["torch"] }}`' in found
    (folder / "CMakeLists.txt").write_text("find_package( Torch REQUIRED)\n")
    assert "built neither by setup.py" in said()
    (folder / "setup.py").write_text("from torch.utils.cpp_extension import BuildExtension\n")
    assert "`tiny` has no torch that kernels could be compiled against" in said()
