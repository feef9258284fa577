"""The published versions of a package, and those of a lock that are not the newest."""

import json
from pathlib import Path

import pytest
import tomli
import tomlkit

from tenv.project.context import Context
from tenv.verbs.edit_manifest import _put_channels
from tenv.verbs.requests import parse_request
from tests.support.conda import Channel, make_conda
from tests.support.fakes import Fault, make_wheel
from tests.support.projects import Project


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    folder = tmp_path / "channel"
    for version in ("1.2", "1.10"):
        make_conda(folder, "native", version)
    make_conda(folder, "tool", "3")
    made = Channel(folder)
    made.refresh()
    return made


def versions(project: Project, *words: str) -> list[tuple[str, str, bool]]:
    rows = project.ok("search", *words, "--json").data
    return [(row["kind"], row["version"], row["fits"]) for row in rows]


def test_the_versions_of_index_and_channel_are_listed_newest_first(project: Project, channel: Channel) -> None:
    folder = project.index.folder
    for version in ("1.9", "1.10", "2.0rc1"):
        make_wheel(folder, "native", version)
    make_wheel(folder, "native", "3.0", tag="cp27-cp27mu-manylinux_2_17_x86_64")
    with channel:
        project.manifest.write_text(f'channels = ["{channel.root}"]\n{project.manifest.read_text()}')
        assert versions(project, "native", "tiny") == [
            *(("wheel", version, fits) for version, fits in (("3.0", False), ("2.0rc1", False), ("1.10", True))),
            *(("wheel", version, True) for version in ("1.9", "1.0")),
            ("conda", "1.10", True),
            ("conda", "1.2", True),
        ]
        assert versions(project, "tool") == [("conda", "3", True)]  # the default target is meant
        text = project.ok("search", "native", "tiny").out
    assert text.splitlines()[0].split() == ["VERSION", "KIND", "FITS", "tiny", "SOURCE"]
    assert ["3.0", "wheel", "no", project.index.url] in [line.split() for line in text.splitlines()]


def test_a_version_that_the_manifest_does_not_accept_does_not_fit(project: Project) -> None:
    make_wheel(project.index.folder, "alpha", "0.9")
    assert versions(project, "alpha", "tiny") == [("wheel", "1.0", True), ("wheel", "0.9", False)]
    assert "`tenv add tiny alpha` asks for it" in project.ok("search", "alpha", "tiny").err


def test_a_range_chooses_among_the_versions(project: Project) -> None:
    make_wheel(project.index.folder, "alpha", "0.9")
    assert [row[1] for row in versions(project, "alpha<1", "tiny")] == ["0.9"]
    assert [row[1] for row in versions(project, "alpha==1.0", "tiny")] == ["1.0"]
    err = project.fails(2, "usage", "search", "alpha>2", "tiny")
    assert "no version of alpha is >2; the newest is 1.0\nhint: `tenv search alpha tiny`" in err
    assert "is no package with a range" in project.fails(2, "usage", "search", "alpha<<2", "tiny")


def test_long_lists_are_cut_behind_a_version_that_fits(project: Project) -> None:
    for number in range(12):
        make_wheel(project.index.folder, "beta", f"2.{number}", tag="cp27-none-any")
    text = project.ok("search", "beta", "tiny").out
    assert "1.0" in text
    assert "… 2 more" in text
    assert len(project.ok("search", "beta", "tiny", "--all").out.splitlines()) == 14


def test_an_unknown_package_is_an_error(project: Project) -> None:
    err = project.fails(2, "usage", "search", "nosuch", "tiny")
    assert "no index and no channel in use has a package `nosuch`" in err
    assert "`tenv search nosuch tiny --channel NAME` asks another channel" in err


def test_an_index_that_fails_is_a_network_error(project: Project) -> None:
    with project.index.failing(Fault.FORBIDDEN, "/simple/alpha/"):
        project.fails(2, "usage", "search", "alpha", "tiny")  # as one that has no such package
    project.index.bare = True
    assert versions(project, "alpha", "tiny") == [("wheel", "1.0", True)]


def test_withdrawn_files_and_other_pythons_are_no_versions_that_fit() -> None:
    from tenv.sources.wheels.pages import _of_html, _of_json

    html = (
        '<a href="x#sha256=0" data-requires-python="&gt;=3.9">a-1-py3-none-any.whl</a> <a data-yanked="" '
        'href="y">a-2-py3-none-any.whl</a><p>text</p>'
    )
    assert list(_of_html(html)) == [("a-1-py3-none-any.whl", ">=3.9")]
    rows = [{"filename": "a-1-py3-none-any.whl", "requires-python": None}, {"filename": "b", "yanked": "broken"}, 3]
    assert list(_of_json(json.dumps({"files": rows}))) == [("a-1-py3-none-any.whl", "")]
    assert [*_of_json("{"), *_of_json("[]"), *_of_json('{"files": 3}')] == []


def test_outdated_names_what_update_takes_and_what_it_leaves(locked: Project) -> None:
    assert "every package of tiny has its newest version" in locked.ok("outdated", "tiny").err
    make_wheel(locked.index.folder, "beta", "2.0")
    locked.edit('alpha  = ">=1"', 'alpha  = ">=1,<2"')
    locked.ok("lock", "tiny")
    make_wheel(locked.index.folder, "alpha", "2.0")
    text = locked.lock.read_bytes()
    rows = {row["name"]: row for row in locked.ok("outdated", "tiny", "--json").data}
    assert rows["beta"] == {"name": "beta", "kind": "wheel", "locked": ["1.0"], "allowed": ["2.0"], "newest": "2.0"}
    assert rows["alpha"] == {"name": "alpha", "kind": "wheel", "locked": ["1.0"], "allowed": ["1.0"], "newest": "2.0"}
    assert set(rows) == {"alpha", "beta"}
    ended = locked.ok("outdated", "tiny")
    assert ended.out.splitlines()[1].split() == ["alpha", "1.0", "1.0", "2.0", "wheel"]
    assert "`tenv update tiny` takes 1 newer version" in ended.err
    assert locked.lock.read_bytes() == text


def test_outdated_needs_a_lock(project: Project) -> None:
    project.fails(7, "lock-missing", "outdated", "tiny")


def test_add_writes_the_channels_that_a_conda_package_needs(
    project: Project, channel: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_conda(tmp_path / "usual", "base", "1")
    usual = Channel(tmp_path / "usual")
    usual.refresh()
    with channel, usual:
        monkeypatch.setattr("tenv.verbs.edit_manifest._CHANNELS", (usual.root, channel.root))
        for spec, channels in (("base", [usual.root]), ("tool", [channel.root, usual.root])):
            project.manifest.write_text('platforms = ["linux-64"]\n\n[dependencies]\n')
            ended = project.ok("add", "tiny", "--conda", spec)
            assert tomli.loads(project.manifest.read_text())["channels"] == channels
            assert "the manifest names no channel, so `channels = " in ended.err
        assert "names no channel" not in project.ok("add", "tiny", "--conda", "base").err
        document, site = tomlkit.parse('platforms = ["linux-64"]\n[dependencies]\n'), project.folder
        project.manifest.write_text(document.as_string())
        target = Context().places.find("tiny")
        _put_channels(Context(), document, target, [parse_request("nvidia::cuda-nvcc", "tiny", site)])
        assert document["channels"] == ["nvidia", usual.root]
        assert document.as_string().index("channels") < document.as_string().index("[dependencies]")
