"""`tenv bundle --sbom`: a bill of materials of every file, by the schema of CycloneDX, the same each time."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.support.archive_server import ask
from tests.support.conda_project import Conda
from tests.support.fakes import make_wheel
from tests.support.projects import Project
from tests.support.redist import Server


def bill(project: Project) -> dict[str, dict[str, object]]:
    """Return the components of a bill that was written and validated, by name."""
    made = project.ok("bundle", "--sbom", "bill.json", "--json").data
    text = Path("bill.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    project.ok("bundle", "--sbom", "again.json")
    assert Path("again.json").read_text() == text
    data = json.loads(text)
    assert "timestamp" not in data["metadata"]
    assert {row["hashes"][0]["content"] for row in data["components"]} == {row["sha256"] for row in made["files"]}
    return {row["name"]: row for row in data["components"]}


def state(wheel: Path, lines: str) -> None:
    """Write lines about a licence into the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data.rstrip() + b"\n" + lines.encode() if name.endswith("/METADATA") else data)


def test_wheels_have_the_licences_that_they_state(project: Project) -> None:
    stated = {
        "one": ("License-Expression: Apache-2.0 OR MIT\n", [{"expression": "Apache-2.0 OR MIT"}]),
        "two": ("License: BSD 3-Clause\n", [{"license": {"name": "BSD 3-Clause"}}]),
        "three": (
            "License: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License\n",
            [{"license": {"name": "MIT License"}}],
        ),
        "four": ("License: MIT\n", [{"license": {"id": "MIT"}}]),
        "five": ("", None),
    }
    for name, (lines, _) in stated.items():
        state(make_wheel(project.index.folder, name, "1.0"), lines)
    project.ask_for("".join(f'{name} = "*"\n' for name in stated))
    project.ok("lock", "tiny")
    rows = bill(project)
    found = {name: rows[name].get("licenses") for name in stated}
    for name, (_, wanted) in stated.items():
        given = found[name]
        for one in given or []:  # type: ignore[attr-defined]
            one.get("license", one).pop("acknowledgement", None)
        assert given == wanted, name
    assert str(rows["one"]["purl"]) == "pkg:pypi/one@1.0?file_name=one-1.0-py3-none-any.whl"


def test_conda_packages_and_archives(conda: Conda, served: Server) -> None:
    conda.lock("tool", "data")
    rows = bill(conda.project)
    assert str(rows["tool"]["purl"]).startswith("pkg:conda/tool@1?build=0&channel=")
    ask(conda.project, 'cunovel = "7.1.0"')
    conda.project.ok("lock", "tiny")
    rows = bill(conda.project)
    assert str(rows["cunovel"]["purl"]).startswith("pkg:generic/cunovel@7.1.0.3?download_url=")


def test_without_the_library_the_command_of_its_installation_is_named(
    created: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cyclonedx", None)
    assert "cyclonedx-python-lib" in created.fails(2, "format", "bundle", "--sbom", "bill.json")
    assert not Path("tiny.tenv").exists()


def test_a_file_that_is_no_bill_is_not_overwritten(created: Project) -> None:
    text = created.manifest.read_bytes()
    for name, code in (("manifests/tiny.toml", "file-exists"), (".", "usage"), ("tiny.tenv", "usage")):
        created.fails(2, code, "bundle", "--sbom", name)
        assert not Path("tiny.tenv").exists()
    assert created.manifest.read_bytes() == text
    Path("bill.json").write_text('{"bomFormat": "CycloneDX"}')
    created.ok("bundle", "--sbom", "bill.json")
