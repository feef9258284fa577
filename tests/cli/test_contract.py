"""What other programs read: the envelope, the keys of each command's data, the exit statuses."""

import json
from typing import Any

import pytest

from tenv import __version__
from tests.support.projects import Project, call


def envelope(*words: str) -> dict[str, Any]:
    ended = call(*words, "--json")
    found: dict[str, Any] = json.loads(ended.out)
    assert list(found) == ["tenv", "command", "ok", "data", "findings", "error"]
    assert found["tenv"] == __version__
    assert found["command"] == words[0]
    assert found["ok"] is (ended.status == 0)
    return found


def test_create(locked: Project) -> None:
    data = envelope("create", "tiny")["data"]
    assert {"target", "prefix", "state", "lock", "counts", "bytes", "seconds"} <= set(data)
    assert data["target"] == "tiny"
    assert data["prefix"] == str(locked.prefix)
    assert data["state"] == "ready"
    assert data["lock"] == str(locked.lock)
    assert data["counts"] == {"conda": 0, "wheels": 3, "archives": 0}
    assert data["bytes"] > 0


def test_lock(project: Project) -> None:
    project.widen_platforms()
    data = envelope("lock", "tiny")["data"]
    assert data["target"] == "tiny"
    assert data["path"] == str(project.lock)
    assert data["changed"] is True
    assert set(data["platforms"]) == {"linux-64", "linux-aarch64", "win-64"}
    assert envelope("lock", "tiny")["data"]["changed"] is False


def test_targets(project: Project) -> None:
    project.widen()
    rows = {row["name"]: row for row in envelope("targets")["data"]}
    assert {"cpu", "cuda130", "cuda132", "tiny"} <= set(rows)
    tiny = rows["tiny"]
    assert (tiny["origin"], tiny["locked"], tiny["pytorch"]) == ("project", False, "")
    assert tiny["description"] == "A few small wheels"
    assert tiny["platforms"] == ["linux-64", "linux-aarch64", "win-64"]
    assert (rows["cuda130"]["origin"], rows["cuda130"]["locked"]) == ("built-in", True)


def test_list(locked: Project) -> None:
    assert envelope("list")["data"] == []
    made = envelope("create", "tiny")["data"]
    (row,) = envelope("list")["data"]
    assert {"target", "prefix", "state", "lock_digest", "bytes"} <= set(row)
    assert (row["target"], row["state"], row["bytes"]) == ("tiny", "ready", made["bytes"])
    assert row["lock_digest"] == made["lock_digest"]


def test_export(project: Project) -> None:
    project.widen_pythons()
    project.ok("lock", "tiny")
    data = envelope("export", "pylock.toml", "tiny", "--output", "out")["data"]
    lost = ["requirements on the host: glibc"]
    assert data == {"format": "pylock.toml", "target": "tiny", "files": ["out/pylock.toml"], "lost": lost}
    printed = envelope("export", "requirements.txt", "tiny", "--output", "-")["data"]
    assert "alpha==1.0" in printed["text"]


def test_import(project: Project) -> None:
    (project.folder / "environment.yml").write_text("name: theirs\ndependencies: [python=3.11]\n")
    data = envelope("import", "environment.yml")["data"]
    assert {"target", "format", "manifest", "lock", "platforms", "lost"} <= set(data)
    assert (data["target"], data["format"], data["lock"]) == ("theirs", "environment.yml", None)
    assert data["manifest"] == str(project.folder / "manifests" / "theirs.toml")


def test_env(locked: Project) -> None:
    locked.ok("create", "tiny")
    rows = envelope("env", "tiny")["data"]
    assert [row["name"] for row in rows][:3] == ["TENV_TARGET", "TENV_PREFIX", "PATH"]
    assert {row["action"] for row in rows} == {"set", "prepend", "unset"}
    assert all(row["reason"] for row in rows)


def test_check_driver(project: Project) -> None:
    found = envelope("check-driver", "cuda130")
    (row,) = found["data"]["targets"]
    assert set(found["data"]["driver"]) in ({"missing"}, {"value", "origin"})
    assert (row["target"], row["cuda"], row["minimum_driver"], row["build"]) == ("cuda130", "13.0", "580", True)
    assert row["verdict"] in ("native", "minor-version", "forward", "impossible", "unknown")
    assert found["ok"] is (row["run"] is True)
    for finding in found["findings"]:
        assert set(finding) == {"code", "severity", "subject", "message", "evidence", "source", "fix"}


def test_check_driver_for_building_needs_none(project: Project) -> None:
    assert envelope("check-driver", "cuda130", "--build-only")["ok"] is True


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("create", "nosuch"), 2, "unknown-target"),
        (("lock", "tiny", "--check"), 7, "lock-missing"),
        (("create", "tiny", "--locked"), 7, "lock-missing"),
        (("activate", "tiny"), 8, "environment-missing"),
        (("run", "tiny"), 2, "usage"),
        (("remove", "tiny"), 8, "environment-missing"),
        (("hook", "tcsh"), 2, "usage"),
        (("env", "tiny"), 8, "environment-missing"),
    ],
)
def test_an_error_stands_in_the_envelope(project: Project, words: tuple[str, ...], status: int, code: str) -> None:
    ended = call(*words[:1], "--json", *words[1:])
    found = json.loads(ended.out)
    assert ended.status == status
    assert (found["ok"], found["data"], found["error"]["code"]) == (False, None, code)
    assert set(found["error"]) == {"code", "message", "hint"}


def test_a_usage_error_stands_in_the_envelope_too(project: Project) -> None:
    ended = call("create", "--json", "--nonsense", "tiny")
    assert ended.status == 2
    assert json.loads(ended.out)["error"]["code"] == "usage"


def test_quiet_says_nothing(locked: Project) -> None:
    ended = locked.ok("create", "tiny", "--quiet")
    assert (ended.out, ended.err) == ("", "")


def test_data_goes_to_stdout_and_talk_to_stderr(locked: Project) -> None:
    ended = locked.ok("create", "tiny")
    assert ended.out == ""
    assert f"tiny is ready in {locked.prefix}" in ended.err


def test_only_one_environment_needs_no_name(locked: Project) -> None:
    locked.fails(8, "environment-missing", "activate")
    locked.ok("create", "tiny")
    assert locked.ok("activate").out == f". {locked.prefix}/tenv-meta/activate.sh\n"


def test_explain_tells_what_is_replaced(locked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    locked.ok("create", "tiny")
    monkeypatch.setenv("MAX_JOBS", "77")
    assert "in this shell it is `77`" in locked.ok("env", "tiny", "--explain", "MAX_JOBS").out
    assert "did you mean `MAX_JOBS`?" in locked.fails(2, "usage", "env", "tiny", "--explain", "MAX_JOB")


def test_a_bug_is_told_as_one(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("tenv.verbs.list.find_environments", fault)
    said = project.fails(70, "bug", "list")
    assert "ZeroDivisionError: oh" in said
    assert "Traceback" not in said


def test_diff(locked: Project) -> None:
    data = envelope("diff", "tiny", "tiny")["data"]
    assert {"host", "added", "removed", "changed"} <= set(data)
    assert (data["old"], data["new"], data["changed"]) == ("tiny", "tiny", [])


def test_verify(created: Project) -> None:
    data = envelope("verify", "tiny")["data"]
    assert {"missing", "changed", "extra"} <= set(data["integrity"])
    assert all(set(row) == {"name", "ok", "seconds", "log"} for row in data["probes"])
