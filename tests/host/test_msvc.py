"""Visual C++, on a Windows made of folders; nothing of this was run on Windows itself."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenv.host.compilers import probe
from tenv.host.interface import Missing, OriginKind
from tenv.host.msvc import is_asked, parse_toolset, parse_vswhere
from tenv.host.places import Places
from tenv.host.report import Lead
from tests.host.builders import places, program, put, text
from tests.support.each import each

INSTALLER = "x86/Microsoft Visual Studio/Installer/vswhere.exe"


def on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process believe that it runs on Windows; from Python 3.12 on, `shutil.which` asks Windows itself."""
    monkeypatch.setattr("sys.platform", "win32")
    asked = SimpleNamespace(NeedCurrentDirectoryForExePath=lambda _: False)
    monkeypatch.setattr(shutil, "_winapi", asked, raising=False)


def test_the_installations_that_vswhere_names() -> None:
    found = parse_vswhere("\ufeff" + text("vswhere.json"))
    assert not isinstance(found, Missing)
    assert [(str(studio.folder).rpartition("\\")[2], str(studio.version)) for studio in found] == [
        ("Community", "17.14.36310.24"),
        ("BuildTools", "16.11.34407.143"),
    ]


@each("said, count", [("[]", 0), ("", 0), ('[{"installationPath": "C:"}, {"x": 1}]', 1)])
def test_installations_that_say_little(said: str, count: int) -> None:
    found = parse_vswhere(said)
    assert not isinstance(found, Missing)
    assert len(found) == count


@each(
    "said, reason",
    [
        ("Error 0x80070057", "vswhere.exe printed no JSON: "),
        ("[" * 100_000, "vswhere.exe printed no JSON: "),
        ("{}", "vswhere.exe printed no list of installations"),
        ('["C:"]', "vswhere.exe printed no list of installations"),
    ],
)
def test_what_is_no_answer_of_vswhere_s(said: str, reason: str) -> None:
    found = parse_vswhere(said)
    assert isinstance(found, Missing)
    assert found.reason.startswith(reason)


@each(
    "toolset, version",
    [
        ("14.16.27023", "19.16.27023"),
        ("14.29.30133", "19.29.30133"),
        ("14.44.35207\r\n", "19.44.35207"),
        ("14.50.35717.1", "19.50.35717"),
        ("14.44", "19.44.0"),
        ("14.0", "19.0.0"),
        ("15.1.2", None),
        ("14", None),
        ("v143", None),
        ("", None),
    ],
)
def test_a_toolset_tells_its_compiler(toolset: str, version: str | None) -> None:
    found = parse_toolset(toolset)
    assert (str(found) if found else None) == version


def studio(folder: Path, *versions: str, default: str = "") -> Path:
    """Make a Visual Studio with some toolsets."""
    for version in versions:
        put(folder / "VC/Tools/MSVC" / version / "bin/Hostx64/x64/cl.exe", version)
    if default:
        put(folder / "VC/Auxiliary/Build/Microsoft.VCToolsVersion.default.txt", f"{default}\r\n")
    return folder


@pytest.fixture
def windows(tmp_path: Path) -> Places:
    """A machine with Visual Studio 2022, which has two toolsets, and the Build Tools of 2019."""
    new = studio(tmp_path / "2022", "14.38.33130", "14.44.35207", default="14.44.35207")
    old = studio(tmp_path / "2019", "14.29.30133", default="14.29.30133")
    rows = [
        {"installationPath": str(old), "installationVersion": "16.11.34407.143"},
        {"installationPath": str(new), "installationVersion": "17.14.36310.24", "isComplete": True},
    ]
    put(tmp_path / "rows.json", json.dumps(rows))
    program(tmp_path / INSTALLER, f'echo "$@" > {tmp_path}/asked; cat {tmp_path}/rows.json')
    return places(tmp_path, variables={"ProgramFiles(x86)": str(tmp_path / "x86")})


def rows(found: Any) -> list[tuple[str, bool, str]]:
    return [(str(one.version), one.default, one.ways) for one in found.value if one.kind == "msvc"]


def test_every_toolset_is_told_and_the_newest_studio_s_own_is_taken(
    windows: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_windows(monkeypatch)
    found = probe(windows)
    assert rows(found) == [
        ("19.44.35207", True, "vswhere"),
        ("19.38.33130", False, "vswhere"),
        ("19.29.30133", False, "vswhere"),
    ]
    assert found.value[0].path == str(tmp_path / "2022/VC/Tools/MSVC/14.44.35207/bin/Hostx64/x64/cl.exe")
    assert all(one.led_by(Lead.VSWHERE) for one in found.value)
    assert found.origin == "PATH, CC, CXX, CUDAHOSTCXX, the developer's prompt, vswhere.exe"
    assert found.kind is OriginKind.SEARCH_MSVC
    assert (tmp_path / "asked").read_text().split() == [
        *("-products", "*", "-requires", "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"),
        *("-format", "json", "-utf8"),
    ]


@pytest.mark.parametrize(
    ("variables", "version", "found_by"),
    [
        ({"VCToolsInstallDir": "2019/VC/Tools/MSVC/14.29.30133/"}, "19.29.30133", "VCToolsInstallDir"),
        ({"VCTOOLSINSTALLDIR": "2019/VC/Tools/MSVC/14.29.30133"}, "19.29.30133", "VCToolsInstallDir"),
        ({"VSINSTALLDIR": "2022/", "VCToolsVersion": "14.38.33130"}, "19.38.33130", "VSINSTALLDIR, VCToolsVersion"),
        ({"VSINSTALLDIR": "2022/"}, "19.44.35207", "VSINSTALLDIR"),
    ],
)
def test_the_developer_s_prompt_decides(
    variables: dict[str, str], version: str, found_by: str, windows: Places, tmp_path: Path
) -> None:
    """In a prompt it is looked for on any system, so that a cross build sees it."""
    paths = {name: value if "Version" in name else f"{tmp_path}/{value}" for name, value in variables.items()}
    found = probe(places(tmp_path, variables={**windows.environ, **paths}))
    assert rows(found)[0] == (version, True, found_by)
    assert found.value[0].led_by(Lead.PROMPT)
    assert found.kind is OriginKind.SEARCH_MSVC
    assert [default for _, default, _ in rows(found)] == [True, False, False]
    assert {one for one, _, _ in rows(found)} == {"19.29.30133", "19.38.33130", "19.44.35207"}


def test_elsewhere_nothing_is_started(windows: Places, tmp_path: Path) -> None:
    assert not is_asked(windows)
    found = probe(windows)
    assert (rows(found), found.origin, found.kind) == ([], "PATH, CC, CXX, CUDAHOSTCXX", OriginKind.SEARCH)
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 87", "vswhere.exe failed with status 87"),
        ("echo oh", "vswhere.exe printed no JSON"),
        ("echo '{}'", "vswhere.exe printed no list of installations"),
        ("sleep 60", "no answer within"),
    ],
)
def test_a_vswhere_that_fails_is_told(script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_windows(monkeypatch)
    program(tmp_path / INSTALLER, script)
    timeout = 0.2 if "sleep" in script else 20.0
    found = probe(places(tmp_path, timeout=timeout, variables={"ProgramFiles(x86)": str(tmp_path / "x86")}))
    assert rows(found) == []
    assert said in found.origin


@each(
    "name, why",
    [
        ("14.50.1", "it has no cl.exe for x64"),
        ("latest", "its name is not a toolset version (14.NN)"),
        ("14.٤٤", "its name is not a toolset version (14.NN)"),
    ],
)
def test_a_folder_that_is_no_toolset_is_left_out(name: str, why: str, tmp_path: Path) -> None:
    found = probe(places(tmp_path, variables={"VCToolsInstallDir": str(tmp_path / name)}))
    assert rows(found) == []
    assert f"{tmp_path / name} is skipped: {why}" in found.origin


def test_a_studio_that_names_no_default_has_none(tmp_path: Path) -> None:
    folder = studio(tmp_path / "2022", "14.38.33130", "14.44.35207")
    program(tmp_path / INSTALLER, f"echo '{json.dumps([{'installationPath': str(folder)}])}'")
    variables = {"ProgramFiles(x86)": str(tmp_path / "x86"), "VSINSTALLDIR": str(folder)}
    assert [default for _, default, _ in rows(probe(places(tmp_path, variables=variables)))] == [False, False]


def test_cl_in_a_variable_is_no_gcc(tmp_path: Path) -> None:
    program(tmp_path / "bin/cl", f"touch {tmp_path}/started")
    assert probe(places(tmp_path, CXX="cl")).value == ()
    assert not (tmp_path / "started").exists()
