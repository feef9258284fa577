"""Features of a target: locked with it, brought by `create --with`, kept and taken off; none changes a version."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli
import yaml

from tenv.core.errors import ManifestError
from tenv.host.machine import current_platform
from tenv.locks.lock import Wheel
from tenv.locks.lock_features import divide, features_of, take
from tenv.locks.lock_file import read_lock
from tenv.targets.manifest import with_features
from tenv.targets.manifest_file import read_manifest
from tests.support.conda import Channel, make_conda, make_python
from tests.support.each import each
from tests.support.fakes import Index, make_wheel
from tests.support.projects import HERE, Project, call, snapshot, write_config
from tests.support.redist import Server, pack, regular

FEATURES = """
[feature.debug.pypi-dependencies]
delta = "*"

[feature.test.pypi-dependencies]
gamma = "*"
"""


@pytest.fixture
def featured(project: Project) -> Project:
    """A project whose target has two features: one needs what the target brings too, both need gamma."""
    make_wheel(project.index.folder, "delta", "1.0", requires=["beta", "gamma"])
    make_wheel(project.index.folder, "beta", "2.0")
    project.manifest.write_text(project.manifest.read_text() + FEATURES)
    return project


def names(project: Project) -> set[str]:
    """Return the wheels of the environment, as its state has them."""
    return {*project.state()["packages"]}


def test_a_lock_says_which_feature_brings_what(featured: Project) -> None:
    featured.ok("lock", "tiny")
    rows = yaml.safe_load(featured.lock.read_text())["tenv"]["wheels"][current_platform()]
    assert {row["name"]: row.get("features") for row in rows} == {
        "alpha": None,
        "beta": None,
        "native": None,
        "delta": ["debug"],
        "gamma": ["debug", "test"],
    }
    lock = read_lock(featured.lock, "tiny")
    assert features_of(lock) == ("debug", "test")
    taken = {frozenset(w.name for w in take(lock, f).wheels[current_platform()]) for f in ((), ("test",), ("debug",))}
    own = {"alpha", "beta", "native"}
    assert taken == {frozenset(own), frozenset({*own, "gamma"}), frozenset({*own, "gamma", "delta"})}
    assert featured.ok("lock", "tiny", "--check")


def test_with_adds_files_and_changes_none(featured: Project) -> None:
    featured.ok("create", "tiny")
    before = snapshot(featured.prefix)
    assert names(featured) == {"alpha", "beta", "native"}
    ended = featured.ok("create", "tiny", "--with", "test, debug", "--json")
    assert ended.data["features"] == ["debug", "test"]
    after = snapshot(featured.prefix)
    assert {name: digest for name, digest in after.items() if name in before and "tenv-meta" not in name} == {
        name: digest for name, digest in before.items() if "tenv-meta" not in name
    }
    assert names(featured) == {"alpha", "beta", "native", "delta", "gamma"}
    assert "nothing to do" in featured.ok("create", "tiny", "--with", "debug,test").err


def test_an_environment_keeps_its_features_until_they_are_taken_off(featured: Project) -> None:
    featured.ok("create", "tiny", "--with", "debug")
    assert "nothing to do" in featured.ok("create", "tiny").err
    featured.ok("verify", "tiny", "--no-probes")
    (featured.site() / "delta.py").write_text("other\n")
    featured.ok("create", "tiny", "--repair")
    assert featured.state()["features"] == ["debug"]
    assert "delta" in names(featured)
    featured.ok("create", "tiny", "--with", "test")
    featured.ok("create", "tiny", "--anew")
    assert featured.state()["features"] == ["test"]
    assert names(featured) == {"alpha", "beta", "native", "gamma"}
    featured.ok("create", "tiny", "--with", "none")
    assert names(featured) == {"alpha", "beta", "native"}
    assert featured.state()["features"] == []
    assert not (featured.site() / "gamma.py").exists()


@pytest.mark.long
def test_a_new_lock_brings_the_features_up_to_date(featured: Project) -> None:
    featured.ok("create", "tiny", "--with", "debug")
    make_wheel(featured.index.folder, "delta", "1.1", requires=["beta", "gamma"])
    featured.ok("update", "tiny", "delta")
    featured.ok("create", "tiny")
    assert featured.state()["packages"]["delta"][0] == "1.1"
    featured.ok("rollback", "tiny")
    assert featured.state()["packages"]["delta"][0] == "1.0"
    assert featured.state()["features"] == ["debug"]


def test_a_feature_that_the_target_does_not_have_is_named(featured: Project) -> None:
    said = featured.fails(2, "usage", "create", "tiny", "--with", "debgu")
    assert "tiny has no feature `debgu`" in said
    assert "did you mean `debug`?" in said
    assert "--with: expected features" in call("create", "tiny", "--with", "none,debug").err


@pytest.mark.long
def test_a_lock_from_before_the_features_serves_the_target_and_says_what_it_lacks(featured: Project) -> None:
    whole = featured.manifest.read_text()
    featured.manifest.write_text(whole.replace(FEATURES, ""))
    featured.ok("lock", "tiny")
    old = featured.lock.read_bytes()
    featured.manifest.write_text(whole)
    assert "nothing to do" not in featured.ok("create", "tiny", "--frozen").err
    assert featured.lock.read_bytes() == old
    said = featured.fails(7, "lock-stale", "create", "tiny", "--locked", "--with", "debug")
    assert "was made without the feature `debug`" in said
    assert "`tenv lock tiny` adds what is missing" in said
    assert "`--with debug`" in said
    assert "gamma is not in the lock" in featured.fails(7, "lock-stale", "lock", "tiny", "--check")
    featured.ok("create", "tiny", "--with", "debug")
    assert "delta" in names(featured)
    rows = {w.name: w for w in read_lock(featured.lock, "tiny").wheels[current_platform()]}
    assert rows["beta"].version == "2.0"


@pytest.mark.long
def test_an_interrupted_create_goes_on_with_its_features(featured: Project) -> None:
    featured.ok("create", "tiny", "--with", "debug")
    state = featured.state_file.read_text()
    featured.state_file.write_text(state.replace('"ready"', '"creating"'))
    featured.ok("create", "tiny")
    assert featured.state()["features"] == ["debug"]
    assert "delta" in names(featured)


def test_an_export_holds_the_target_alone_and_says_so(featured: Project) -> None:
    featured.ok("lock", "tiny")
    ended = featured.ok("export", "requirements.txt", "tiny", "--python", HERE)
    text = "".join(path.read_text() for path in featured.folder.rglob("*requirements*.txt")) + ended.out
    assert "alpha==1.0" in text
    assert "delta" not in text
    assert "features debug, test" in ended.err


@each(
    "text, message",
    [
        ('[feature.debug.system]\ngdb = "*"\n', "feature.debug.system: unknown key"),
        ('[feature.none.pypi-dependencies]\na = "*"\n', "feature.none: `--with none` takes every feature off"),
        (
            '[feature.x.pypi-dependencies]\na = ">=2"\n',
            "`a` is asked for by [pypi-dependencies], and a feature only adds",
        ),
        (
            '[feature.x.pypi-dependencies]\na = { version = ">=2", extras = ["more"] }\n',
            "`a` is asked for by [pypi-dependencies], and a feature only adds",
        ),
        (
            '[feature.x.pypi-dependencies]\nb = ">=2"\n[feature.y.pypi-dependencies]\nb = "*"\n',
            "`b` is asked for by [feature.x.pypi-dependencies] in another version",
        ),
        ('[feature.x.dependencies]\nnumpy = "*"\n[feature.y.pypi-dependencies]\nnumpy = "*"\n', "is supplied by both"),
        ('[feature.x.platform.linux-65.dependencies]\nb = "*"\n', "did you mean `linux-64`?"),
    ],
)
def test_a_feature_that_does_more_than_add_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.toml"
    path.write_text(f'platforms = ["linux-64"]\npython = ">=3.11,<3.12"\n[pypi-dependencies]\na = "*"\n{text}')
    with pytest.raises(ManifestError) as error:
        read_manifest("t", path, lambda _: path)
    assert message in f"{error.value.message} {error.value.hint}"


@pytest.mark.parametrize("asked", ["1.0", "*", ">=1,<9", "own"])
def test_add_writes_an_extra_of_a_package_of_the_target_into_a_feature(asked: str, project: Project) -> None:
    make_wheel(project.index.folder, "theta", "1.0", extras={"more": ["delta"]})
    make_wheel(project.index.folder, "delta", "1.0")
    project.ask_for(f'theta = "{asked}"' if asked != "own" else 'theta = { version = "1.0", index = "own" }')
    written = f'version = "{asked}", extras = ["more"]'
    if asked == "own":
        project.ask_for(f'[[index]]\nname = "own"\nurl = "{project.index.url}"')
        written = 'version = "1.0", extras = ["more"], index = "own"'
    project.ok("add", "tiny", "--feature", "x", "theta[more]")
    assert f"[feature.x.pypi-dependencies]\ntheta = {{{written}}}\n" in project.manifest.read_text()
    project.ok("create", "tiny", "--with", "x")
    assert (project.site() / "delta.py").is_file()
    before = project.manifest.read_bytes()
    assert "tiny itself asks" in project.fails(2, "usage", "add", "tiny", "--feature", "x", "theta[more]==2")
    assert project.manifest.read_bytes() == before


def test_an_extra_has_the_version_of_each_platform(project: Project) -> None:
    make_wheel(project.index.folder, "theta", "1.0", extras={"more": []})
    make_wheel(project.index.folder, "theta", "2.0", extras={"more": []})
    project.widen_platforms()
    for platform, version in (("linux-64", "1.0"), ("linux-aarch64", "2.0")):
        project.ask_for(f'[platform.{platform}.pypi-dependencies]\ntheta = "{version}"')
    said = project.fails(2, "usage", "add", "tiny", "--feature", "x", "theta[more]")
    assert "ask for theta in different versions" in said
    words = shlex.split(said.partition("hint: `")[2].partition("`")[0])
    project.ok(*words[1:])
    project.ok("add", "tiny", "--feature", "x", "--platform", "linux-aarch64", "theta[more]")
    found = tomli.loads(project.manifest.read_text())["feature"]["x"]["platform"]
    versions = {one: table["pypi-dependencies"]["theta"]["version"] for one, table in found.items()}
    assert versions == {"linux-64": "1.0", "linux-aarch64": "2.0"}


def test_features_add_extras_to_a_package_of_the_target(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text(
        'platforms = ["linux-64"]\npython = "3.11.*"\n[pypi-dependencies]\na = { version = "*", extras = ["own"] }\n'
        '[feature.x.pypi-dependencies]\na = { version = "*", extras = ["more"] }\n'
        '[feature.y.platform.linux-64.pypi-dependencies]\na = { version = "*", extras = ["last"] }\n'
    )
    manifest = read_manifest("t", tmp_path / "t.toml", lambda name: tmp_path / f"{name}.toml")
    for chosen, extras in ((None, "last more own"), (["x"], "more own"), (["y"], "last own"), ([], "own")):
        found = with_features(manifest, chosen).on("linux-64").wheels["a"]
        assert " ".join(found.extras) == extras
    files = [
        Wheel(
            "a", "1", "a-1-py3-none-any.whl", "0" * 64, None, ("3.11",), ("b; extra == 'more'", "c; extra == 'last'")
        ),
        Wheel("b", "1", "b-1-py3-none-any.whl", "1" * 64, None, ("3.11",), ()),
        Wheel("c", "1", "c-1-py3-none-any.whl", "2" * 64, None, ("3.11",), ()),
    ]
    made = divide(manifest, {"wheels": {"linux-64": tuple(files)}})["wheels"]["linux-64"]
    assert {row.name: row.features for row in made} == {"a": (), "b": ("x",), "c": ("y",)}


def test_a_child_extends_the_features_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('[feature.debug.pypi-dependencies]\na = "*"\nb = ">=1"\n')
    (tmp_path / "t.toml").write_text(
        'extends = "p"\nplatforms = ["linux-64", "win-64"]\npython = "3.11.*"\n'
        '[feature.debug.pypi-dependencies]\nb = ">=2"\n[feature.debug.platform.win-64.pypi-dependencies]\nc = "*"\n'
    )
    manifest = read_manifest("t", tmp_path / "t.toml", lambda name: tmp_path / f"{name}.toml")
    debug = manifest.features["debug"]
    assert {name: str(row.version) for name, row in debug.on("linux-64").wheels.items()} == {"a": "*", "b": ">=2"}
    assert set(debug.on("win-64").wheels) == {"a", "b", "c"}
    assert set(manifest.asked("win-64")["feature"]["debug"]["pypi-dependencies"]) == {"a", "b", "c"}
    assert not manifest.wheels


MIXED = """\
platforms   = ["{platform}"]
channels    = ["conda-forge"]
[requirements]
glibc = "2.17"
[dependencies]
python = "{python}.*"
tool   = "*"
[pypi-dependencies]
alpha = ">=1"
[feature.debug.dependencies]
gdb = "*"
[feature.debug.archives]
gdbserver = {{ url = "{url}/gdbserver.tar.gz" }}
"""


@pytest.fixture
def mixed(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "packages"))
    raw = pack("tar.gz", [regular("bin/gdbserver", b"#!/bin/sh\n")])
    with Channel(tmp_path / "channel") as channel, Server({"/gdbserver.tar.gz": raw}) as server:
        make_python(channel.folder)
        make_conda(channel.folder, "shared", "1", files={"share/shared": "1"})
        make_conda(channel.folder, "tool", "1", depends=["shared"], files={"bin/tool": "#!/bin/sh\n"})
        make_conda(channel.folder, "readline", "8", files={"lib/readline": "8"})
        make_conda(channel.folder, "gdb", "15", depends=["shared", "readline"], files={"bin/gdb": "#!/bin/sh\n"})
        channel.refresh()
        write_config(f'[mirrors]\n"https://conda.anaconda.org/conda-forge" = ["{channel.root}"]\n')
        project.manifest.write_text(MIXED.format(platform=current_platform(), python=HERE, url=server.url))
        project.ok("lock", "tiny", "--trust-first-use")
        yield project


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the tools are shell scripts")
def test_conda_packages_and_archives_of_a_feature(mixed: Project) -> None:
    ours = yaml.safe_load(mixed.lock.read_text())["tenv"]
    assert ours["conda-features"] == {current_platform(): {"gdb": ["debug"], "readline": ["debug"]}}
    assert [row["features"] for row in ours["archives"][current_platform()]] == [["debug"]]
    ended = mixed.ok("create", "tiny", "--json")
    assert ended.data["counts"] == {"conda": 3, "wheels": 2, "archives": 0}
    assert not (mixed.prefix / "bin/gdb").exists()
    before = snapshot(mixed.prefix)
    ended = mixed.ok("create", "tiny", "--with", "debug", "--json")
    assert ended.data["counts"] == {"conda": 5, "wheels": 2, "archives": 1}
    assert (mixed.prefix / "bin/gdb").exists()
    assert (mixed.prefix / "opt/gdbserver/bin/gdbserver").exists()
    mixed.ok("verify", "tiny", "--no-probes")
    mixed.ok("create", "tiny", "--with", "none")
    after = snapshot(mixed.prefix)
    own = {name for name in before if not name.startswith("tenv-meta")}
    assert {name: after.get(name) for name in own} == {name: before[name] for name in own}
    assert not (mixed.prefix / "lib/readline").exists()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the tools are shell scripts")
def test_an_edit_gives_conda_packages_and_archives_to_another_feature(mixed: Project) -> None:
    whole = mixed.manifest.read_text()
    archive = next(line for line in whole.splitlines() if line.startswith("gdbserver"))
    added = f'[feature.test.dependencies]\nreadline = "*"\n[feature.test.archives]\n{archive}\n'
    for text, readline, gdbserver in (
        (whole + added, ["debug", "test"], ["debug", "test"]),
        (whole.replace('gdb = "*"', 'gdb = "*"\nreadline = "*"'), ["debug"], ["debug"]),
        (whole.replace('tool   = "*"', 'tool   = "*"\nreadline = "*"'), None, ["debug"]),
        (whole.replace("feature.debug", "feature.dbg"), ["dbg"], ["dbg"]),
    ):
        mixed.manifest.write_text(text)
        before = mixed.lock.read_bytes()
        checked = call("lock", "tiny", "--check").status
        mixed.ok("lock", "tiny", "--trust-first-use")
        assert checked == (0 if mixed.lock.read_bytes() == before else 7)
        ours = yaml.safe_load(mixed.lock.read_text())["tenv"]
        assert ours["conda-features"][current_platform()].get("readline") == readline
        assert [row["features"] for row in ours["archives"][current_platform()]] == [gdbserver]


@pytest.mark.skipif(sys.platform != "linux", reason="the tools are shell scripts")
def test_a_lock_that_hides_a_package_in_a_feature_is_stale(mixed: Project) -> None:
    text = mixed.lock.read_text()
    mixed.lock.write_text(text.replace("      gdb: [debug]\n", "      gdb: [debug]\n      shared: [debug]\n"))
    assert mixed.lock.read_text() != text
    said = mixed.fails(7, "lock-stale", "create", "tiny", "--frozen")
    assert "tool 1 requires `shared`" in said
    mixed.lock.write_text(text.replace("      readline: [debug]\n", ""))
    assert "readline is locked and nothing requires it" in mixed.fails(7, "lock-stale", "create", "tiny", "--frozen")


def test_an_environment_with_features_is_not_stale_for_them(featured: Project) -> None:
    featured.ok("create", "tiny", "--with", "test")
    featured.lock.write_bytes(featured.lock.read_bytes() + b"# a comment\n")
    assert [row["state"] for row in featured.ok("list", "--json").data] == ["ready"]
    make_wheel(featured.index.folder, "delta", "1.1", requires=["beta", "gamma"])
    featured.ok("update", "tiny", "delta")
    assert [row["state"] for row in featured.ok("list", "--json").data] == ["ready"]
    make_wheel(featured.index.folder, "gamma", "1.1")
    featured.ok("update", "tiny", "gamma")
    assert [row["state"] for row in featured.ok("list", "--json").data] == ["stale"]


@pytest.mark.long
def test_another_file_of_a_release_in_an_extra_index_does_not_hide_the_locked_one(
    featured: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    featured.ok("lock", "tiny")
    make_wheel(tmp_path, "delta", "1.0", requires=["beta", "gamma"], files={"delta.py": "another = 1\n"})
    make_wheel(tmp_path, "gamma", "1.0", files={"gamma.py": "another = 1\n"})
    with Index(tmp_path) as extra:
        monkeypatch.setenv("UV_INDEX", extra.url)
        featured.ok("create", "tiny", "--frozen", "--with", "debug")
    assert "another" not in (featured.site() / "delta.py").read_text() + (featured.site() / "gamma.py").read_text()
    featured.ok("verify", "tiny", "--no-probes")


@pytest.mark.long
def test_a_feature_of_a_parent_that_does_not_fit_is_left_out(featured: Project) -> None:
    make_wheel(featured.index.folder, "delta", "2.0", requires=["beta", "gamma>=9"])
    (featured.folder / "manifests" / "mine.toml").write_text('extends = "tiny"\n')
    featured.manifest.write_text(featured.manifest.read_text().replace('delta = "*"', 'delta = "2.0"'))
    assert "gamma" in call("lock", "tiny").err  # its own feature must fit
    done = call("lock", "mine")
    assert done.status == 0, done.err
    assert "the feature debug of a parent is left out of the lock: " in done.err
    lock = read_lock(featured.folder / "locks" / "mine.lock", "mine")
    assert features_of(lock) == ("test",)
    assert call("lock", "mine", "--check").status == 0
    make_wheel(featured.index.folder, "gamma", "9.0")
    assert call("lock", "mine").status == 0
    assert features_of(read_lock(featured.folder / "locks" / "mine.lock", "mine")) == ("debug", "test")


def test_a_package_of_a_feature_of_a_parent_is_pinned(featured: Project) -> None:
    make_wheel(featured.index.folder, "gamma", "0.9")
    child = featured.manifest.with_name("mine.toml")
    child.write_text('extends = "tiny"\n')
    err = featured.fails(2, "usage", "add", "mine", "gamma==0.9")
    assert "`tenv add mine --feature debug gamma==0.9`" in err or "`tenv add mine --feature test gamma==0.9`" in err
    featured.ok("add", "mine", "--feature", "test", "gamma==0.9")
    lock = read_lock(featured.lock.with_name("mine.lock"), "mine")
    assert {wheel.version for wheel in lock.wheels[current_platform()] if wheel.name == "gamma"} == {"0.9"}
