"""`tenv build` from a checkout to an import, in the ways of all eras, and again with little to do."""

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from tenv.builds import build_environ
from tenv.builds.build_environ import OPTIONS
from tenv.builds.build_job import BuildJob, Done
from tenv.builds.configure_step import flag_words, same_code
from tenv.core.errors import StorageError
from tests.builds.conftest import Workshop, codes, step
from tests.support.each import each
from tests.support.fakes import make_wheel
from tests.support.projects import Project, call
from tests.support.rarely import first_fast
from tests.support.small_torch import MiniEra, make_checkout

STEPS = ["checkout", "target", "create", "probe", "configure", "summary", "estimate", "canary", "build", "import"]


def assert_read(workshop: Workshop, data: dict[str, Any]) -> None:
    """Assert that the reader of installed torches finds the one that an import found."""
    read = call("check", "--torch", str(workshop.prefix), "--build-only", "--json").data["torch"]
    assert (read["version"]["value"], read["kind"]["value"]) == (data["torch"]["version"], "cpu")
    assert read["place"] == str(Path(data["torch"]["location"]).parent)


def test_a_checkout_becomes_a_torch_that_computes_and_is_built_again_with_little_to_do(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = workshop.build()
    assert [row["name"] for row in data["steps"]] == STEPS
    assert all(row["ok"] for row in data["steps"])
    assert data["torch"]["version"] == "2.9.0a0"
    assert data["torch"]["location"] == str(workshop.checkout / "torch" / "__init__.py")
    assert step(data, "summary")["facts"]["rows"]["USE_CUDA"] == "OFF"
    assert step(data, "estimate")["facts"]["tasks"]["C++"] == 3
    assert step(data, "canary")["facts"]["targets"] == [
        "c10",
        "caffe2/CMakeFiles/torch_python.dir/__/aten/src/ATen/native/BinaryOps.cpp.o",
    ]
    assert step(data, "canary")["facts"]["processor"] > 0
    page = Path(data["report"]).read_text()
    shown = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert [row["name"] for row in shown["steps"]] == STEPS
    assert {"BinaryOps.cpp.o", "Module.cpp.o", "Scalar.cpp.o"} <= {Path(task[0]).name for task in shown["tasks"]}
    assert shown["ended"]
    assert shown["largest"] > 1 << 20
    assert "http" not in page.partition('id="data">')[0].replace("http-equiv", "")
    kept = json.loads((workshop.checkout / ".tenv/builds/tiny/processor-times.json").read_text())
    assert sorted(Path(output).name for output in kept) == ["BinaryOps.cpp.o", "Module.cpp.o", "Scalar.cpp.o"]
    assert all(row["seconds"] > 0 for row in kept.values())
    python = workshop.prefix / "bin" / "python"
    said = subprocess.run(
        [python, "-c", "import torch; print((torch.ones(3, 3) @ torch.ones(3, 3))[0][0])"],
        capture_output=True,
        text=True,
        cwd="/",
        check=True,
    )
    assert said.stdout == "3.0\n"
    assert_read(workshop, data)
    notes = json.loads((workshop.checkout / ".tenv/builds/tiny/tenv-build.json").read_text())
    assert (notes["target"], notes["version"], notes["way"]) == ("tiny", "2.9.0a0", "setup.py --cmake-only")
    assert notes["lock"] == json.loads((workshop.prefix / "tenv-meta/state.json").read_text())["lock"]
    (kept,) = workshop.prefix.glob("lib/python3*/site-packages/torch-*.dist-info/tenv-build.json")
    assert json.loads(kept.read_text()) == notes
    constraint = (workshop.prefix / "tenv-meta" / "built-torch.txt").read_text()
    assert constraint == "torch==2.9.0a0\ntorchvision==0.24.*\ntorchaudio==2.9.*\ntriton==3.5.*\n"
    _build_again(workshop, monkeypatch)


def _build_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that a second build runs neither CMake nor a compiler."""
    objects = {path: path.stat().st_mtime_ns for path in (workshop.checkout / "build").rglob("*.o")}
    words = ["sh", "-c", f". '{workshop.prefix}/tenv-meta/activate.sh'; env -0"]
    active = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for row in filter(None, active.split("\0")):
        monkeypatch.setenv(*row.split("=", 1))
    data = workshop.build()
    assert step(data, "configure")["facts"]["skipped"] is True
    assert step(data, "estimate")["facts"]["tasks"]["C++"] == 0
    assert {path: path.stat().st_mtime_ns for path in objects} == objects
    call("activate", "tiny")
    for library in (workshop.checkout / "torch").rglob("*.so"):  # CMake installs no file anew within a second
        os.utime(library, (0, 0))
    ops = workshop.checkout / "aten/src/ATen/native/BinaryOps.cpp"
    ops.write_text(ops.read_text().replace("0.0)", "1.0)"))
    assert workshop.fails() == ("import", ("TE973",)), "what is compiled anew is what is imported"
    changed = [path.name for path, time in objects.items() if path.stat().st_mtime_ns != time]
    assert changed == ["BinaryOps.cpp.o"]


def test_the_page_of_a_build_that_an_error_stops_reports_no_good_end(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_job: BuildJob) -> Done:
        raise StorageError("the disk is full")

    monkeypatch.setattr("tenv.verbs.build.configure", full)
    assert call("build", "tiny", "--pytorch", str(workshop.checkout)).status != 0
    page = (workshop.checkout / ".tenv/builds/tiny/report.html").read_text()
    shown = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert not shown["ended"]
    assert all(row["ok"] for row in shown["steps"])


@pytest.mark.long
def test_a_heavy_source_that_waits_for_much_is_named_by_the_canary(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, source = workshop.checkout / "caffe2" / "CMakeLists.txt", "BinaryOps.cpp"
    path = "${PROJECT_SOURCE_DIR}/aten/src/ATen/native/BinaryOps.cpp"
    made = [
        "add_custom_command(OUTPUT g0.h COMMAND ${CMAKE_COMMAND} -E touch g0.h)",
        "add_custom_command(OUTPUT g1.h COMMAND ${CMAKE_COMMAND} -E touch g1.h DEPENDS g0.h)",
        f'set_source_files_properties("{path}" PROPERTIES OBJECT_DEPENDS ${{CMAKE_CURRENT_BINARY_DIR}}/g1.h)',
    ]
    rules.write_text("\n".join([*made, rules.read_text()]))
    monkeypatch.setattr("tenv.builds.import_step._MOST_BEFORE", 4)
    ended = call("build", "tiny", "--pytorch", str(workshop.checkout))
    assert ended.status == 0, ended.err
    output = f"caffe2/CMakeFiles/torch_python.dir/__/aten/src/ATen/native/{source}.o"
    why = "which waits for 4 other tasks"
    (said,) = [line for line in ended.err.splitlines() if "not tried" in line]
    assert said == f"  not tried: {output}, {why}"
    assert "  built c10\n" in ended.err
    words = [line for line in ended.err.splitlines() if line.endswith(" …")]
    assert [words.count(f"{name} …") for name in ("configuring", "canary", "compiling", "packaging")] == [1, 1, 1, 1]


@pytest.mark.parametrize("era", first_fast([era for era in MiniEra if era is not MiniEra.CMAKE_ONLY], 0))
def test_each_era_has_its_way(workshop: Workshop, era: MiniEra) -> None:
    make_checkout(workshop.project.folder / "other", era)
    workshop.checkout = workshop.project.folder / "other"
    data = workshop.build()
    way = step(data, "checkout")["facts"]["way"]
    assert (
        way
        == {
            MiniEra.SCIKIT: "scikit-build-core",
            MiniEra.CMAKE: "cmake",
            MiniEra.BUILD_DEPS: "setup.py build_deps",
            MiniEra.LIBRARIES: "setup.py build_deps",
        }[era]
    )
    assert data["torch"]["version"] == "2.9.0a0"
    assert_read(workshop, data)
    if era is MiniEra.SCIKIT:
        assert data["folder"] == str(workshop.checkout / ".tenv" / "build" / "tiny")
        assert str(workshop.prefix) in data["torch"]["location"]


@pytest.mark.long
def test_a_wheel_holds_where_it_came_from(workshop: Workshop, tmp_path: Path) -> None:
    data = workshop.build("--wheel", str(tmp_path / "out"))
    (wheel,) = (tmp_path / "out").glob("torch-*")
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [name for name in archive.namelist() if name.endswith("tenv-build.json")]
        assert json.loads(archive.read(member))["target"] == "tiny"
        record = archive.read(member.replace("tenv-build.json", "RECORD")).decode()
    assert member in record
    assert data["torch"] == {}


@pytest.mark.long
def test_a_define_and_debug_reach_cmake(workshop: Workshop) -> None:
    data = workshop.build("-D", "USE_NUMPY=OFF", "--debug")
    rows = step(data, "summary")["facts"]["rows"]
    assert (rows["USE_NUMPY"], rows["Build type"]) == ("OFF", "Debug")
    again = workshop.build("--only", "c10")
    assert step(again, "summary")["facts"]["rows"]["Build type"] == "Release"
    (finding,) = step(again, "checkout")["findings"]
    assert (finding["code"], finding["severity"]) == ("TE612", "warning")
    keep = f"tenv build tiny --pytorch {workshop.checkout} --debug -D USE_NUMPY=OFF"
    assert finding["fix"] == f"`{keep}` goes on with it"


@pytest.mark.long
def test_a_variable_of_setup_py_that_changed_configures_anew(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given, words, changed, kind in (
        ({"DEBUG": "1"}, [], [], "Debug"),
        ({}, ["--debug"], None, "Debug"),
        ({"MKL_THREADING": "SEQ"}, [], ["DEBUG", "MKL_THREADING"], "Release"),
    ):
        with monkeypatch.context() as shell:
            for name, value in given.items():
                shell.setenv(name, value)
            data = workshop.build("--only", "c10", *words)
        found = step(data, "configure")["facts"].get("changed")
        assert (found and [name for name in found if name != "CMAKE_JOB_POOLS"] == changed) or found == changed, given
        assert step(data, "summary")["facts"]["rows"]["Build type"] == kind, given


@pytest.mark.long
def test_a_folder_that_was_configured_by_hand_is_configured_anew_for_another_kind(workshop: Workshop) -> None:
    workshop.build("--only", "c10", "--debug")
    (workshop.checkout / ".tenv/builds/build.configured.json").unlink()
    ended = call("build", "tiny", "--pytorch", str(workshop.checkout), "--only", "c10")
    assert "anew, since CMAKE_BUILD_TYPE (Debug before) changed" in ended.err
    assert "CMAKE_BUILD_TYPE:STRING=Release" in (workshop.checkout / "build/CMakeCache.txt").read_text()


@pytest.mark.long
def test_a_plan_is_that_of_the_build_with_the_same_options(workshop: Workshop, tmp_path: Path) -> None:
    workshop.build("--only", "c10", "--debug")

    def plan(*words: str) -> dict[str, Any]:
        ended = call("plan", "tiny", "--pytorch", str(workshop.checkout), "--json", *words)
        assert ended.status == 0, ended.out
        found: dict[str, Any] = ended.data
        return found

    same, other = plan("--debug", "--only", "c10"), plan("--wheel", str(tmp_path))
    assert codes(step(same, "checkout"), "warning") == ()
    assert codes(step(other, "checkout"), "warning") == ("TE612",)
    assert [words[-2:] for words in same["commands"]["build"]] == [["--target", "c10"]]
    assert str(tmp_path) in other["commands"]["build"][-1]


@pytest.mark.parametrize("era", [MiniEra.SCIKIT, MiniEra.CMAKE])
def test_a_target_that_sets_debug_gives_a_debug_build_where_cmake_reads_the_environment(
    workshop: Workshop, era: MiniEra
) -> None:
    workshop.checkout = make_checkout(workshop.project.folder / "other", era)
    workshop.project.manifest.write_text(f'{workshop.project.manifest.read_text()}[activation.env]\nDEBUG = "1"\n')
    ended = call("plan", "tiny", "--pytorch", str(workshop.checkout), "--json")
    (command,) = step(ended.data, "configure")["facts"]["commands"]
    assert "-DCMAKE_BUILD_TYPE=Debug" in command


@pytest.mark.long
def test_debug_files_compile_these_files_anew_and_no_others(workshop: Workshop) -> None:
    workshop.build()
    objects = {path: path.stat().st_mtime_ns for path in (workshop.checkout / "build").rglob("*.o")}
    source = "aten/src/ATen/native/BinaryOps.cpp"
    for words, changed in (
        (["--debug-files", source], ["USE_CUSTOM_DEBINFO"]),
        ([], ["USE_CUSTOM_DEBINFO"]),
    ):
        data = workshop.build(*words)
        assert step(data, "configure")["facts"]["changed"] == changed
        times = {path: path.stat().st_mtime_ns for path in objects}
        assert [path.name for path in objects if times[path] != objects[path]] == ["BinaryOps.cpp.o"]
        (compiled,) = [path for path in objects if times[path] != objects[path]]
        assert (b".debug_info" in compiled.read_bytes()) is bool(words)
        objects = times


@pytest.mark.long
def test_a_fix_repeats_the_options_of_the_build(workshop: Workshop) -> None:
    workshop.build("--only", "c10")
    cache = workshop.checkout / "build" / "CMakeCache.txt"
    cache.write_text(cache.read_text().replace(str(workshop.prefix), "/gone"))
    (workshop.checkout / ".tenv/builds/build.configured.json").unlink()
    ended = workshop.run("--debug", "--debug-files", "c10/a.cpp,c10/b.cpp", "-D", "USE_NUMPY=OFF", "--only", "c10")
    (finding,) = json.loads(ended.out)["data"]["steps"][-1]["findings"]
    words = "--debug --debug-files c10/a.cpp,c10/b.cpp -D USE_NUMPY=OFF --fresh"
    assert finding["fix"] == f"tenv build tiny --pytorch {workshop.checkout} {words}"


@pytest.mark.long
def test_one_target_of_ninja_is_built_and_a_switch_that_changes_reaches_a_folder_that_is_configured(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unread switch is named with the one that was meant."""
    for name, value in (("USE_GPU", "1"), ("NO_CUDA", "1"), ("BUILD_NUMBER", "7")):
        monkeypatch.setenv(name, value)
    data = workshop.build("--only", "c10")
    row = step(data, "configure")
    found = {found["subject"]: found for found in row["findings"]}
    assert set(found) == {"USE_GPU", "NO_CUDA"}
    assert "it reads USE_CUDA=1" in found["USE_GPU"]["message"]
    assert "it reads USE_CUDA=0" in found["NO_CUDA"]["message"]
    assert codes(row, "warning") == ("TE931", "TE931")
    assert data["steps"][-1]["name"] == "build"
    assert list((workshop.checkout / "build").rglob("libc10.so"))
    assert not list((workshop.checkout / "build").rglob("_C.so"))
    monkeypatch.setenv("USE_DISTRIBUTED", "0")
    again = workshop.build("--only", "c10")
    assert step(again, "configure")["facts"]["changed"] == ["USE_DISTRIBUTED"]
    log = (workshop.checkout / ".tenv/builds/tiny/configure.log").read_text()
    assert re.search(r"USE_DISTRIBUTED +: (0|OFF)", log)
    assert step(workshop.build("--only", "c10"), "configure")["facts"]["skipped"] is True


def test_a_plan_writes_nothing(workshop: Workshop) -> None:
    before = set(workshop.project.folder.rglob("*"))
    ended = call("plan", "tiny", "--pytorch", str(workshop.checkout), "--json")
    assert ended.status == 0, ended.err
    steps = json.loads(ended.out)["data"]["steps"]
    assert [row["name"] for row in steps] == ["checkout", "target", "create", "probe", "configure", "estimate", "build"]
    assert set(workshop.project.folder.rglob("*")) == before


@pytest.mark.long
def test_new_flags_of_tenv_that_change_no_code_leave_a_folder_that_is_built(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.build()
    objects = {path: path.stat().st_mtime_ns for path in (workshop.checkout / "build").rglob("*.o")}
    with monkeypatch.context() as newer:
        newer.setattr(build_environ, "warning_flags", lambda _, environ: f"{environ['CXXFLAGS']} {OPTIONS[0]}")
        ended = call("build", "tiny", "--pytorch", str(workshop.checkout))
        assert ended.status == 0, ended.err
        said = f"--fresh would configure it anew: CXXFLAGS (with {OPTIONS[0]}); they change no code"
        assert said in ended.err
        assert {path: path.stat().st_mtime_ns for path in objects} == objects
    monkeypatch.setenv("CXXFLAGS", "-O0 -DOTHER")
    ended = call("build", "tiny", "--pytorch", str(workshop.checkout))
    assert "anew, since CXXFLAGS (with -DOTHER) changed" in ended.err


@pytest.mark.long
def test_new_flags_of_tenv_reach_a_folder_that_is_not_built(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flags may be what the build failed without."""
    workshop.build("--only", "c10")
    monkeypatch.setattr(build_environ, "warning_flags", lambda _, environ: f"{environ['CXXFLAGS']} {OPTIONS[0]}")
    row = step(workshop.build("--only", "c10"), "configure")
    assert row["facts"]["changed"] == ["CXXFLAGS"]
    rules = (workshop.checkout / "build" / "build.ninja").read_text()
    assert OPTIONS[0] in rules


@each(
    "before, now, same, words",
    [
        ("-O2", "-O2 -fmacro-prefix-map=/src=.", True, "with -fmacro-prefix-map=/src=."),
        ("-O2 -fmacro-prefix-map=/src=.", "-O2", True, "without -fmacro-prefix-map=/src=."),
        ("", f"{OPTIONS[0]} {OPTIONS[1]}", True, f"with {OPTIONS[0]} {OPTIONS[1]}"),
        ("-O2", "-O3", False, "with -O3, without -O2"),
        ("-O2 -g", "-g -O2", False, ""),
        ("-O2", "-O2 -Wno-error", False, "with -Wno-error"),
        ("-O2", "-O2 '", False, "with -O2 ', without -O2"),
    ],
)
def test_what_flags_change_code(before: str, now: str, same: bool, words: str) -> None:
    assert same_code({"CXXFLAGS": before}, {"CXXFLAGS": now}) is same
    assert flag_words(before, now) == words
    assert not same_code({"LDFLAGS": before}, {"LDFLAGS": now})


def test_a_plan_that_configures_stops_at_the_estimate(workshop: Workshop) -> None:
    ended = call("plan", "tiny", "--pytorch", str(workshop.checkout), "--configure", "--json")
    steps = json.loads(ended.out)["data"]["steps"]
    assert [row["name"] for row in steps] == STEPS[:7]
    assert steps[-1]["facts"]["seconds"] > 0
    assert not list((workshop.checkout / "build").rglob("*.o"))


def test_a_folder_in_place_of_the_target_is_the_checkout(workshop: Workshop) -> None:
    (workshop.project.folder / "tenv.toml").write_text('default = "tiny"\n')
    ended = call("plan", "pytorch", "--json")
    data = json.loads(ended.out)["data"]
    assert (data["target"], data["pytorch"]) == ("tiny", str(workshop.checkout))


def test_a_checkout_keeps_its_environments_itself(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workshop.checkout / "torch")
    monkeypatch.setenv("PWD", str(workshop.checkout / "torch"))
    made = call("create", "tiny", "--json")
    assert made.data["prefix"] == str(workshop.prefix)
    assert call("activate", "tiny").out == f". {workshop.prefix}/tenv-meta/activate.sh\n"
    assert (workshop.checkout / ".tenv" / ".gitignore").read_text() == "*\n"
    assert not workshop.project.prefix.exists()


def test_a_hint_of_a_plan_plans_and_can_be_pasted(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = call("plan", "tiny", "--pytorch", str(workshop.checkout), "-D", "USE_MPI=0").out
    words = f"tenv plan tiny --configure --pytorch {workshop.checkout} -D USE_MPI=0"
    assert f"`{words}` goes up to the estimate" in said
    monkeypatch.chdir(workshop.checkout / "torch")
    monkeypatch.setenv("PWD", str(workshop.checkout / "torch"))
    assert "`tenv plan tiny --configure` goes up to the estimate" in call("plan", "tiny").out
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    for verb in ("plan", "build"):
        assert f"hint: `tenv {verb} --pytorch DIR` names a checkout" in call(verb).err


def test_uv_keeps_the_versions_that_a_build_has_written(locked: Project) -> None:
    project = locked
    project.ok("create", "tiny")
    constraint = project.prefix / "tenv-meta" / "built-torch.txt"
    assert constraint.read_text() == ""
    for version in ("1.0", "2.0"):
        make_wheel(project.index.folder, "torchlike", version)
    constraint.write_text("torchlike==1.0\n")
    ended = project.ran("run", "tiny", "--", find_uv_bin(), "pip", "install", "torchlike")
    assert ended.status == 0, ended.err
    assert list(project.site().glob("torchlike-1.0.dist-info"))
    project.ok("create", "tiny")
    assert constraint.read_text() == "torchlike==1.0\n"
    project.ok("verify", "tiny", "--no-probes")


@pytest.mark.long
def test_a_revision_that_configures_by_itself_is_configured_anew_too(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.checkout = make_checkout(workshop.project.folder / "other", MiniEra.BUILD_DEPS)
    workshop.build()
    monkeypatch.setenv("DEBUG", "1")
    row = step(workshop.build(), "configure")
    assert "DEBUG" in row["facts"]["changed"]
    assert "CMAKE_BUILD_TYPE:STRING=Debug" in (workshop.checkout / "build/CMakeCache.txt").read_text()
