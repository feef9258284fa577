"""`tenv check` without a target and `tenv check auto`: the machine, the targets that fit it, and the best one."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.check_hosts import report, write
from tests.support.projects import Project, call

GTX = "NVIDIA GeForce GTX 1660 Ti"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    return tmp_path


def asked(folder: Path, host: dict[str, Any], *words: str) -> Any:
    return call("check", *words, "--host-report", write(folder / "host.json", host))


def names(text: str) -> list[str]:
    """Return the targets of the first table, in order."""
    table = text.split("\n\n")[1].splitlines()[1:]
    return [line.lstrip("* ").split()[0] for line in table]


def test_the_targets_that_fit_the_machine_come_newest_first(elsewhere: Path) -> None:
    ended = asked(elsewhere, report("535.104.12", GTX), "--pytorch", "2.6")
    lines = ended.out.splitlines()
    assert lines[:3] == [
        f"GPU       {GTX} (7.5), driver 535.104.12",
        "compiler  g++ 11.4.0, glibc 2.35, linux-64",
        "PyTorch   2.6 (`--pytorch`)",
    ]
    assert ended.status == 0
    fitting = names(ended.out)
    assert [name[:7] for name in fitting] == sorted((name[:7] for name in fitting), reverse=True)
    assert fitting[0].startswith("cuda126")
    assert "cuda132" not in fitting
    assert "cpu-2.7" in fitting
    (marked,) = [line.split()[1] for line in lines if line.startswith("*  ")]
    assert f"* `tenv create auto` takes {marked}, since CUDA 12.6 runs by minor-version compatibility" in ended.out
    assert "`--all` lists them with the reasons" in ended.out


def test_the_list_and_check_of_one_target_agree(elsewhere: Path) -> None:
    no_compiler = report("595.58.03", "NVIDIA H100", "9.0", compilers=[])
    for host, words in ((report("535.104.12", GTX), ()), (no_compiler, ("--build-only",))):
        ended = asked(elsewhere, host, "--here", "--json", *words)
        rows = ended.data["targets"]
        assert ended.status == (0 if any(row["fits"] for row in rows) else 1)
        assert all(bool(row["reason"]) is not row["fits"] for row in rows)
        for row in rows[::9]:
            alone = asked(elsewhere, host, row["target"], "--json", *words)
            found = (alone.status == 0, alone.data["build"], alone.data["run"])
            assert found == (row["fits"], row["build"], row["run"])


def test_the_others_are_a_count_and_on_request_a_reason_each(elsewhere: Path) -> None:
    host = report("595.58.03", "NVIDIA H100", "9.0", compilers=[])
    short, whole = asked(elsewhere, host), asked(elsewhere, host, "--all")
    assert "cuda130" not in short.out.split("\n\n")[-1]
    (row,) = [line for line in whole.out.splitlines() if line.startswith("cuda130 ")]
    assert row.split()[1:3] == ["no", "yes"]
    assert row.endswith(")"), "the code of the finding"
    assert "(TE" in row


def test_no_target_that_builds_and_runs_is_status_1(elsewhere: Path) -> None:
    host = report("", GTX, compilers=[], platform="linux-aarch64")
    ended = asked(elsewhere, host)
    assert ended.status == 1
    assert "no target builds and runs here" in ended.out
    assert "`tenv create auto` takes none: no target with CUDA suits this host" in ended.out
    data = asked(elsewhere, host, "--json").data
    assert (data["run"], data["auto"]) == (False, None)


def test_a_project_is_judged_as_before_and_with_here_the_machine_is(here: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "host.json", report("595.58.03", "NVIDIA H100", "9.0"))
    data = call("check", "--host-report", file, "--json").data
    assert {row["target"] for row in data["targets"]} == {path.stem for path in here.glob("manifests/*.toml")}
    assert "machine" not in data
    data = call("check", "--here", "--host-report", file, "--json").data
    assert "cuda132" in {row["target"] for row in data["targets"]}
    assert set(data["machine"]) == {"GPU", "compiler", "PyTorch"}


def test_auto_is_the_target_that_create_takes(elsewhere: Path) -> None:
    host = report("535.104.12", GTX)
    ended = asked(elsewhere, host, "auto", "--pytorch", "2.6")
    listed = asked(elsewhere, host, "--pytorch", "2.6", "--json").data["auto"]
    assert ended.status == 0
    first, *_ = ended.out.splitlines()
    assert first == f"auto: {listed['target']}, since {listed['reason']}"
    assert f"build: yes  ({listed['target']} of PyTorch 2.6 on linux-64)" in ended.out
    data = asked(elsewhere, host, "auto", "--pytorch", "2.6", "--json").data
    assert (data["target"], data["auto"]) == (listed["target"], listed)
    none = asked(elsewhere, report("", GTX, compilers=[]), "auto")
    assert (none.status, none.err.splitlines()[0][:16]) == (4, "error[no-target]")


def test_words_that_exclude_each_other(elsewhere: Path) -> None:
    for words, named in (
        (("--here", "cpu"), "--here and TARGET"),
        (("--all", "cpu"), "--here and TARGET"),
        (("--here", "--against", str(elsewhere)), "--here and --against"),
        (("--torch", "2.9", "--here"), "--torch and --here"),
        (("--torch", "2.9", "--pytorch", "2.9"), "--torch and --pytorch"),
    ):
        ended = call("check", *words)
        assert (ended.status, named in ended.err) == (2, True), words


def test_the_newest_target_is_listed_first_and_each_has_one_line(elsewhere: Path) -> None:
    assert elsewhere
    lines = call("targets").out.splitlines()
    assert lines[0].split() == ["TARGET", "PYTORCH", "CUDA", "KIND", "TRIED"]
    assert max(map(len, lines)) <= 80
    found = [line.split()[0] for line in lines[1:]]
    assert found[:3] == ["cuda133", "cuda132", "cuda130"]
    assert found.index("cpu") < found.index("cpu-2.7") < found.index("cpu-1.10") < found.index("legacy")
    rows = call("targets", "--here", "--json").data
    assert [row["name"] for row in rows] == found
    lines = call("targets", "--here").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert {(row["build"], row["run"]) for row in rows} <= {
        (one, two) for one in (True, False) for two in (True, False, None)
    }
    judged = call("check", "cpu", "--json").data
    (row,) = [row for row in rows if row["name"] == "cpu"]
    assert (row["build"], row["run"]) == (judged["build"], judged["run"])


def test_targets_of_the_project_are_named_below_the_table(project: Project) -> None:
    lines = project.ok("targets").out.splitlines()
    assert lines[-1] == "project, not locked: tiny"


def test_a_target_beside_here_has_the_two_commands() -> None:
    err = call("check", "--here", "cpu").err
    assert "hint: `tenv check cpu` judges that target, `tenv check --here` this machine" in err
