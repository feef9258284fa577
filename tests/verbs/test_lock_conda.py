"""`tenv lock` with conda packages: what is chosen, what it is chosen for, and what happens when a channel fails."""

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tenv.locks.lock import CondaPackage, Lock
from tenv.locks.lock_file import read_lock
from tenv.rattler_api.lockfile import read_records
from tests.support.channels import Channels, Trouble, package
from tests.support.fakes import make_wheel
from tests.support.projects import HERE, Project, write_config

TOOLS = """\
platforms = ["linux-64"]
channels  = ["main-line"]

[dependencies]
tool = "*"
"""


@pytest.fixture
def tools(project: Project, channels: Channels) -> Project:
    """A project whose target asks for the conda package `tool`, which needs `part`."""
    channels.add(
        "main-line",
        package("tool", "1.0", "0", "part >=1"),
        package("tool", "2.0", "0", "part >=1,<2"),
        package("part", "1.0"),
        package("part", "1.5"),
        package("part", "2.0"),
    )
    project.manifest.write_text(TOOLS)
    return project


def read(project: Project) -> Lock:
    return read_lock(project.lock, "tiny")


def chosen(project: Project, platform: str = "linux-64") -> dict[str, str]:
    return {package.name: package.version for package in read(project).conda[platform]}


def rewrite(project: Project, **sections: str) -> None:
    """Ask for other things: `dependencies` as lines, and other keys as they stand."""
    head = sections.get("head", 'platforms = ["linux-64"]\nchannels = ["main-line"]\n')
    tail = sections.get("tail", "")
    project.manifest.write_text(f"{head}\n[dependencies]\n{sections['dependencies']}\n{tail}")


def test_takes_the_newest_that_go_together(tools: Project) -> None:
    data = tools.ok("lock", "tiny", "--json").data
    assert chosen(tools) == {"tool": "2.0", "part": "1.5"}
    assert data["platforms"] == {"linux-64": {"conda": 2, "wheels": 0, "archives": 0}}


def test_keeps_the_channel_s_own_urls_whatever_mirror_served_them(tools: Project) -> None:
    tools.ok("lock", "tiny")
    assert [package.url for package in read(tools).conda["linux-64"]] == [
        "https://conda.anaconda.org/main-line/linux-64/part-1.5-0.conda",
        "https://conda.anaconda.org/main-line/linux-64/tool-2.0-0.conda",
    ]
    assert read(tools).channels == ("https://conda.anaconda.org/main-line",)
    assert "127.0.0.1" not in tools.lock.read_text()


def test_holds_every_field_of_the_channel_s_record(tools: Project, channels: Channels) -> None:
    full = package("full", "1.0", "h1_3", "part", constrains=["tool <2"], license="MIT", track_features="x", size=7)
    channels.add("main-line", full | {"build_number": 3, "license_family": "MIT"})
    rewrite(tools, dependencies='full = "*"')
    tools.ok("lock", "tiny")
    locked = {raw.name.normalized: raw for raw in read_records(tools.lock.read_bytes(), "tiny", "linux-64")}
    found = json.loads(locked["full"].to_json())
    wanted = channels.lists["main-line/linux-64"]["packages.conda"]["full-1.0-h1_3.conda"]
    assert {key: found.get(key) for key in wanted} == wanted
    [mine] = [package for package in read(tools).conda["linux-64"] if package.name == "full"]
    assert mine == CondaPackage(
        name="full",
        version="1.0",
        build="h1_3",
        subdir="linux-64",
        channel="https://conda.anaconda.org/main-line",
        url="https://conda.anaconda.org/main-line/linux-64/full-1.0-h1_3.conda",
        sha256=str(full["sha256"]),
        md5=str(full["md5"]),
        size=7,
        depends=("part",),
        constrains=("tool <2",),
    )


def test_is_the_same_bytes_when_made_again_from_nothing(tools: Project, tmp_path: Path, monkeypatch: Any) -> None:
    tools.ok("lock", "tiny")
    first = tools.lock.read_bytes()
    tools.lock.unlink()
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "another"))
    tools.ok("lock", "tiny")
    assert tools.lock.read_bytes() == first


def test_shares_the_cache_of_rattler(tools: Project, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "shared"))
    tools.ok("lock", "tiny")
    assert list((tmp_path / "shared" / "repodata").glob("*.json"))


def test_works_from_the_cache_alone(tools: Project, channels: Channels) -> None:
    tools.ok("lock", "tiny")
    tools.lock.unlink()
    channels.asked.clear()
    tools.ok("lock", "tiny", "--offline")
    assert channels.asked == []
    assert chosen(tools) == {"tool": "2.0", "part": "1.5"}


def test_off_the_network_no_certificate_is_missed(tools: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.ok("lock", "tiny")
    tools.lock.unlink()
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    tools.ok("lock", "tiny", "--offline")
    assert os.environ["SSL_CERT_FILE"] == "/nowhere.pem"


def test_tells_that_the_cache_has_no_list(tools: Project) -> None:
    err = tools.fails(6, "network", "lock", "tiny", "--offline")
    assert "https://conda.anaconda.org/main-line: its package list is not in the cache" in err
    assert "hint: run the command once without `--offline`" in err


def test_asks_no_channel_when_it_is_up_to_date(tools: Project, channels: Channels) -> None:
    tools.ok("lock", "tiny")
    channels.asked.clear()
    assert tools.ok("lock", "tiny", "--json").data["changed"] is False
    assert channels.asked == []


@pytest.mark.parametrize("kind", ["repodata_shards.msgpack.zst", "repodata.json.zst", "repodata.json"])
def test_reads_package_lists_of_every_kind(project: Project, channels: Channels, tmp_path: Path, kind: str) -> None:
    indexed = make_indexed(tmp_path / "indexed")
    wanted = (kind, "shards") if "shards" in kind else (kind,)
    for path in indexed.rglob("*"):
        if path.is_file() and (path.name in wanted or path.parent.name in wanted):
            channels.files[f"main-line/{path.relative_to(indexed)}"] = path.read_bytes()
    project.manifest.write_text(TOOLS)
    project.ok("lock", "tiny")
    assert chosen(project) == {"tool": "1.0", "part": "2.0"}
    assert any(asked.endswith(kind) for asked in channels.asked)


def make_indexed(folder: Path) -> Path:
    """Return a channel of empty packages, indexed in every way by rattler itself."""
    import asyncio

    from rattler.index import index_fs

    for subdir in ("linux-64", "noarch"):
        (folder / subdir).mkdir(parents=True)
    for name, version, depends in (("tool", "1.0", ["part"]), ("part", "2.0", [])):
        index = package(name, version, "0", *depends) | {"subdir": "linux-64"}
        with tarfile.open(folder / "linux-64" / f"{name}-{version}-0.tar.bz2", "w:bz2") as archive:
            for path, content in (("info/index.json", index), ("info/paths.json", {"paths": [], "paths_version": 1})):
                data = json.dumps(content).encode()
                member = tarfile.TarInfo(path)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    asyncio.run(index_fs(folder, force=True, write_zst=True, write_shards=True))
    return folder


def test_keeps_what_still_fits(tools: Project, channels: Channels) -> None:
    tools.ok("lock", "tiny")
    channels.add("main-line", package("tool", "3.0", "0", "part"), package("extra", "1.0", "0", "part"))
    rewrite(tools, dependencies='tool = "*"\nextra = "*"')
    tools.ok("lock", "tiny")
    assert chosen(tools) == {"tool": "2.0", "part": "1.5", "extra": "1.0"}


def test_update_chooses_anew_what_is_named_and_no_more(tools: Project, channels: Channels) -> None:
    rewrite(tools, dependencies='tool = "*"\nother = "*"')
    channels.add("main-line", package("other", "1.0"))
    tools.ok("lock", "tiny")
    channels.add("main-line", package("tool", "2.1", "0", "part >=1"), package("other", "1.1"))
    tools.ok("update", "tiny", "tool")
    assert chosen(tools) == {"tool": "2.1", "part": "1.5", "other": "1.0"}
    tools.ok("update", "tiny")
    assert chosen(tools) == {"tool": "2.1", "part": "2.0", "other": "1.1"}
    err = tools.fails(2, "usage", "update", "tiny", "toll")
    assert "did you mean `tool`?" in err


def test_solves_for_what_the_manifest_declares_not_for_the_host(
    tools: Project, channels: Channels, monkeypatch: Any
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_GLIBC", "2.99")
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "99.0")
    channels.add(
        "main-line",
        *(package("libc-user", f"2.{minor}", "0", f"__glibc >=2.{minor}") for minor in (17, 28, 34)),
        *(package("gpu-user", f"{major}.0", "0", f"__cuda >={major}.0") for major in (11, 12, 13)),
        package("kernel-user", "1.0", "0", "__linux >=4", "__unix", "__archspec 1 x86_64"),
    )
    asked = 'libc-user = "*"\nkernel-user = "*"'
    rewrite(tools, dependencies=asked)
    tools.ok("lock", "tiny")
    assert chosen(tools)["libc-user"] == "2.28"  # what is taken for granted where a manifest does not say
    rewrite(tools, dependencies=asked + '\ngpu-user = "*"', tail='[requirements]\nglibc = "2.17"\ncuda = "12.4"\n')
    tools.ok("lock", "tiny")
    assert chosen(tools) == {"libc-user": "2.17", "gpu-user": "12.0", "kernel-user": "1.0"}


def test_serves_other_platforms_from_this_machine(tools: Project, channels: Channels) -> None:
    channels.add("main-line", package("tool", "1.0", "w", "__win"), platform="win-64")
    channels.add("main-line", package("tool", "1.0", "a", "__archspec 1 aarch64"), platform="linux-aarch64")
    head = 'platforms = ["linux-64", "linux-aarch64", "win-64"]\nchannels = ["main-line"]\n'
    rewrite(tools, head=head, dependencies='tool = "1.0"')
    tools.ok("lock", "tiny")
    builds = {platform: [p.build for p in rows if p.name == "tool"] for platform, rows in read(tools).conda.items()}
    assert builds == {"linux-64": ["0"], "linux-aarch64": ["a"], "win-64": ["w"]}


def test_the_first_channel_that_has_a_package_is_the_only_one_for_it(tools: Project, channels: Channels) -> None:
    channels.add("second", package("tool", "9.0"), package("only-here", "1.0", "0", "part"), package("part", "9.0"))
    head = 'platforms = ["linux-64"]\nchannels = ["main-line", "second"]\n'
    rewrite(tools, head=head, dependencies='tool = "*"\nonly-here = "*"')
    tools.ok("lock", "tiny")
    assert chosen(tools) == {"tool": "2.0", "part": "1.5", "only-here": "1.0"}


def test_a_package_may_name_its_channel_and_a_label(tools: Project, channels: Channels) -> None:
    channels.add("maker/label/v-9.0", package("tool", "9.0"))
    channels.add("maker", package("tool", "10.0"))
    rewrite(tools, dependencies='tool = { version = "*", channel = "maker/label/v-9.0" }\npart = "*"')
    tools.ok("lock", "tiny")
    assert chosen(tools) == {"tool": "9.0", "part": "2.0"}
    assert read(tools).channels == (
        "https://conda.anaconda.org/main-line",
        "https://conda.anaconda.org/maker/label/v-9.0",
    )


def test_a_channel_may_be_a_url(tools: Project, channels: Channels) -> None:
    channels.add("elsewhere", package("tool", "7.0"))
    rewrite(tools, dependencies=f'tool = {{ version = "*", channel = "{channels.url}/elsewhere" }}\npart = "*"')
    tools.ok("lock", "tiny")
    [tool] = [package for package in read(tools).conda["linux-64"] if package.name == "tool"]
    assert tool.url == f"{channels.url}/elsewhere/linux-64/tool-7.0-0.conda"


def test_defaults_are_the_channels_that_conda_calls_so(project: Project, channels: Channels) -> None:
    for platform in ("linux-64", "win-64"):
        channels.add("main", package("tool", "1.0"), platform=platform)
        channels.add("r", package("r-base", "4.0"), platform=platform)
    channels.add("msys2", package("m2-bash", "5.0"), platform="win-64")
    rewrite(
        project,
        head='platforms = ["linux-64", "win-64"]\nchannels = ["defaults"]\n',
        dependencies='tool = "*"\nr-base = { version = "*", channel = "defaults" }\n',
        tail='[platform.win-64.dependencies]\nm2-bash = "*"\n',
    )
    project.ok("lock", "tiny")
    home = "https://repo.anaconda.com/pkgs"
    assert read(project).channels == (f"{home}/main", f"{home}/r", f"{home}/msys2")
    urls = [package.url for package in read(project).conda["win-64"]]
    assert urls == [
        f"{home}/msys2/win-64/m2-bash-5.0-0.conda",
        f"{home}/r/win-64/r-base-4.0-0.conda",
        f"{home}/main/win-64/tool-1.0-0.conda",
    ]
    assert not any("msys2/linux-64" in path for path in channels.asked)
    project.ok("lock", "tiny", "--check")
    text = project.ok("export", "environment.yml", "tiny", "--platform", "linux-64", "--output", "-").out
    assert "- defaults\n" in text


@pytest.mark.parametrize(
    ("asked", "version"),
    [('"1.0|3"', "1.0"), ('{ build = "special*" }', "1.5"), ('">=1,<2"', "1.5"), ('"1.0"', "1.0"), ('"=1.5"', "1.5")],
)
def test_ranges_and_builds_are_conda_s(tools: Project, channels: Channels, asked: str, version: str) -> None:
    channels.add("main-line", package("part", "1.5", "special_1"))
    rewrite(tools, dependencies=f"part = {asked}")
    tools.ok("lock", "tiny")
    assert chosen(tools) == {"part": version}


def test_takes_nothing_that_came_after_a_day(tools: Project, channels: Channels) -> None:
    channels.add("main-line", package("tool", "3.0", "0", "part", timestamp=1800000000000))
    tools.ok("lock", "tiny")
    assert chosen(tools)["tool"] == "3.0"
    tools.ok("lock", "tiny", "--exclude-newer", "2024-01-01")
    assert chosen(tools)["tool"] == "2.0"


def test_a_day_before_which_nothing_fits_is_told(tools: Project, channels: Channels) -> None:
    rewrite(tools, dependencies='tool = "*"')
    said = tools.fails(5, "no-solution", "lock", "tiny", "--exclude-newer", "2020-01-01")
    assert said.rstrip().endswith(
        "hint: packages newer than 2020-01-01 have a solution: choose a later `--exclude-newer`"
    )


def test_is_not_stale_when_the_range_grows_around_the_locked_version(tools: Project) -> None:
    rewrite(tools, dependencies='tool = "2.*"')
    tools.ok("lock", "tiny")
    rewrite(tools, dependencies='tool = ">=1.5|0.3"')
    tools.ok("lock", "tiny", "--check")


@pytest.mark.parametrize(
    ("dependencies", "told"),
    [
        ('tool = "1.*"', 'linux-64: tool 2.0 0 is locked, the manifest requests "1.*"'),
        (
            'tool = "*"\npart = { build = "x*" }',
            'linux-64: part 1.5 0 is locked, the manifest requests { build = "x*" }',
        ),
        ('tool = "*"\nnew = "*"', "linux-64: new is not in the lock"),
        ('part = "*"', "linux-64: tool is locked and nothing requires it"),
        ('tool = { channel = "maker" }', 'linux-64: tool 2.0 0 is locked, the manifest requests { channel = "maker" }'),
    ],
)
def test_is_stale_when_a_request_is_no_longer_met(tools: Project, dependencies: str, told: str) -> None:
    tools.ok("lock", "tiny")
    rewrite(tools, dependencies=dependencies)
    assert f"\n  {told}\n" in tools.fails(7, "lock-stale", "lock", "tiny", "--check")


def test_is_stale_when_a_channel_is_gone_from_the_manifest(tools: Project, channels: Channels) -> None:
    channels.add("second")
    tools.ok("lock", "tiny")
    tools.edit('["main-line"]', '["second"]')
    err = tools.fails(7, "lock-stale", "lock", "tiny", "--check")
    assert "is locked from main-line, which is not a channel of the manifest" in err


def with_python(channels: Channels) -> None:
    channels.add(
        "main-line",
        package("python", f"{HERE}.4", "0"),
        package("beta", "1.0", "0", "python"),
        package("beta", "1.1", "0", "python"),
    )


def test_wheels_are_chosen_for_the_conda_python(tools: Project, channels: Channels) -> None:
    with_python(channels)
    rewrite(tools, dependencies='python = "*"', tail='[pypi-dependencies]\nnative = "*"\n')
    tools.ok("lock", "tiny")
    [wheel] = read(tools).wheels["linux-64"]
    assert (wheel.name, wheel.python, f"cp{HERE.replace('.', '')}-" in wheel.file) == ("native", (HERE,), True)
    assert read(tools).python_minors("linux-64") == (HERE,)
    tools.ok("lock", "tiny", "--check")


def test_a_conda_version_that_pypi_does_not_know_is_no_obstacle(tools: Project, channels: Channels) -> None:
    with_python(channels)
    channels.add("main-line", package("odd", "1.0_beta3_x", "0", "python"))
    rewrite(tools, dependencies='python = "*"\nodd = "*"', tail='[pypi-dependencies]\nnative = "*"\n')
    tools.ok("lock", "tiny")
    assert [wheel.name for wheel in read(tools).wheels["linux-64"]] == ["native"]


def test_no_wheel_is_laid_over_a_conda_package(tools: Project, channels: Channels) -> None:
    with_python(channels)
    make_wheel(tools.index.folder, "beta", "1.1")
    make_wheel(tools.index.folder, "beta", "1.2")
    rewrite(tools, dependencies='python = "*"\nbeta = "*"', tail='[pypi-dependencies]\nalpha = "*"\n')
    tools.ok("lock", "tiny")
    assert chosen(tools) == {"python": f"{HERE}.4", "beta": "1.1"}
    assert [wheel.name for wheel in read(tools).wheels["linux-64"]] == ["alpha"]


def test_a_wheel_takes_the_torch_of_conda_and_no_library_of_the_index(tools: Project, channels: Channels) -> None:
    with_python(channels)
    channels.add("main-line", package("pytorch", "2.9.0", "cuda129_0", "python"))
    for version, torch in (("1.0", "2"), ("1.1", "2.10")):
        make_wheel(tools.index.folder, "uses_torch", version, requires=[f"torch>={torch}"])
    rewrite(tools, dependencies='python = "*"\npytorch = "*"', tail='[pypi-dependencies]\nuses-torch = "1.0"\n')
    tools.ok("lock", "tiny")  # the index has no torch of that version
    assert [(row.name, row.version) for row in read(tools).wheels["linux-64"]] == [("uses-torch", "1.0")]
    for version in ("2.9.0", "2.13.0"):
        make_wheel(tools.index.folder, "torch", version, requires=["beta>=1.2"])
    tools.edit('uses-torch = "1.0"', 'uses-torch = "*"')
    tools.lock.unlink()
    tools.ok("lock", "tiny")
    assert [(row.name, row.version) for row in read(tools).wheels["linux-64"]] == [("uses-torch", "1.0")]
    tools.ok("lock", "tiny", "--check")


def test_tells_when_wheels_do_not_go_together_with_conda_packages(tools: Project, channels: Channels) -> None:
    with_python(channels)
    make_wheel(tools.index.folder, "picky", "1.0", requires=["beta>=2"])
    rewrite(tools, dependencies='python = "*"\nbeta = "*"', tail='[pypi-dependencies]\npicky = "*"\n')
    err = tools.fails(5, "no-solution", "lock", "tiny")
    assert f"no set of wheels for tiny on linux-64 with Python {HERE} beside the conda packages" in err
    assert "picky 1.0 requires beta >=2, and conda brings beta 1.1\n" in err
    assert 'hint: set beta = ">=2" in [dependencies], or remove picky' in err


def test_of_the_parts_of_a_mixed_toolkit_the_compiler_is_told_first(tools: Project, channels: Channels) -> None:
    parts = ("cuda-cccl", "cuda-cupti", "cuda-gdb", "cuda-nvcc", "cuda-nvtx")
    channels.add("main-line", package("cuda-toolkit", "12.1.0", "0", *parts), *(package(n, "12.8.61") for n in parts))
    head = 'platforms = ["linux-64"]\nchannels = ["main-line"]\nrequirements.cuda = "12.1"\n'
    rewrite(tools, head=head, dependencies='cuda-toolkit = "12.1.*"')
    said = tools.fails(5, "no-solution", "lock", "tiny")
    assert said.count("is from CUDA 12.8 in a CUDA 12.1 toolkit") == len(parts)
    assert said.partition("TE301")[2].startswith(" cuda-nvcc 12.8.61 on linux-64: is from CUDA 12.8")
    assert 'hint: pin it in [dependencies]: cuda-nvcc = "12.1.*"' in said


def test_a_manifest_without_channels_is_told(tools: Project) -> None:
    rewrite(tools, head='platforms = ["linux-64"]\n', dependencies='tool = "*"')
    err = tools.fails(3, "manifest", "lock", "tiny")
    assert "channels: is required for [dependencies]" in err


@pytest.mark.parametrize(
    ("trouble", "told", "hint"),
    [
        (Trouble.GONE, "there is no such channel (404)", "check its name in `channels`"),
        (Trouble.FORBIDDEN, "access was denied (403)", "store credentials for pixi or rattler"),
        (Trouble.GARBAGE, "its answer is not a package list", "try again, or set another mirror"),
    ],
)
def test_a_channel_that_fails_is_one_clear_error(
    tools: Project, channels: Channels, trouble: Trouble, told: str, hint: str
) -> None:
    with channels.failing(trouble):
        err = tools.fails(6, "network", "lock", "tiny")
    assert f"error[network]: https://conda.anaconda.org/main-line: {told}" in err
    assert f"hint: {hint}" in err
    assert not tools.lock.exists()


def test_a_server_that_fails_for_good_is_told_with_its_status(
    tools: Project, channels: Channels, impatient: None
) -> None:
    with channels.failing(Trouble.ERROR):
        err = tools.fails(6, "network", "lock", "tiny", "--time-limit", "30")
    assert "https://conda.anaconda.org/main-line: the server failed (500)" in err


def test_a_channel_that_never_answers_is_given_up(tools: Project, channels: Channels) -> None:
    with channels.failing(Trouble.SILENT):
        err = tools.fails(6, "network", "lock", "tiny", "--time-limit", "0.5")
        channels.stopping.set()
    assert "https://conda.anaconda.org/main-line: reading its package list took more than 0.5 s" in err
    assert "--time-limit" in err


def test_a_channel_that_nobody_serves_is_told(tools: Project, impatient: None) -> None:
    write_config('[mirrors]\n"https://conda.anaconda.org" = ["http://127.0.0.1:9"]\n')
    err = tools.fails(6, "network", "lock", "tiny")
    assert "https://conda.anaconda.org/main-line: can't be reached: Connection refused" in err
    assert "hint: check the network, proxies and [mirrors]" in err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"build": "../../x"}, "`../../x` is not a valid build string"),
        ({"subdir": "../../etc"}, "is for `../../etc`, not for linux-64"),
        ({"sha256": None, "md5": None}, "has neither a sha256 nor an MD5"),
    ],
)
def test_a_record_made_to_escape_is_refused(
    tools: Project, channels: Channels, change: dict[str, Any], told: str
) -> None:
    channels.add("main-line", package("trap", "1.0"))
    record = channels.lists["main-line/linux-64"]["packages.conda"]["trap-1.0-0.conda"]
    record |= change
    for key in [key for key, value in record.items() if value is None]:
        del record[key]
    rewrite(tools, dependencies='trap = "*"')
    err = tools.fails(6, "network", "lock", "tiny")
    assert "https://conda.anaconda.org/main-line: " in err
    assert told in err
    assert not tools.lock.exists()


def test_mirrors_of_pixi_count_and_those_of_tenv_win(tools: Project, channels: Channels) -> None:
    settings = Path(os.environ["XDG_CONFIG_HOME"])
    (settings / "pixi").mkdir()
    mirrors = settings / "pixi" / "config.toml"
    mirrors.write_text(f'[mirrors]\n"https://conda.anaconda.org" = ["{channels.url}"]\n')
    own = (settings / "tenv" / "config.toml").read_text()
    (settings / "tenv" / "config.toml").unlink()
    tools.ok("lock", "tiny")
    assert chosen(tools)["tool"] == "2.0"
    tools.lock.unlink()
    mirrors.write_text('[mirrors]\n"https://conda.anaconda.org" = ["http://127.0.0.1:9"]\n')
    (settings / "tenv" / "config.toml").write_text(own)
    tools.ok("lock", "tiny")


def test_a_configuration_of_pixi_that_can_not_be_read_is_told(tools: Project) -> None:
    mirrors = Path(os.environ["XDG_CONFIG_HOME"]) / "pixi" / "config.toml"
    mirrors.parent.mkdir()
    mirrors.write_text("[mirrors\n")
    err = tools.fails(2, "usage", "lock", "tiny")
    assert f"error[usage]: {mirrors}: unclosed table, expected `]`" in err


def test_credentials_are_those_of_rattler(tools: Project, channels: Channels, tmp_path: Path, monkeypatch: Any) -> None:
    store = tmp_path / "credentials.json"
    store.write_text(json.dumps({"conda.anaconda.org": {"BearerToken": "secret"}}))
    monkeypatch.setenv("RATTLER_AUTH_FILE", str(store))
    tools.ok("lock", "tiny")
    assert "Bearer secret" in channels.authorization
    assert "secret" not in tools.lock.read_text()


def test_what_no_lock_can_hold_is_refused_where_another_package_brings_it(project: Project, channels: Channels) -> None:
    """As conda-forge's old feedstocks did: a package for CUDA 11 that required `cudatoolkit-dev`."""
    channels.add(
        "main-line",
        package("gpu-tool", "1.0", "0", "gpu-part >=1"),
        package("gpu-part", "1.0", "0", "cudatoolkit-dev 11.7.*"),
        package("cudatoolkit-dev", "11.7.0"),
    )
    rewrite(project, dependencies='gpu-tool = "*"')
    err = project.fails(3, "manifest", "lock", "tiny")
    assert "`cudatoolkit-dev` holds no toolkit, but a script that downloads one" in err
    assert "; gpu-part requires it on linux-64" in err
    assert "hint: remove gpu-part, and use cuda-nvcc" in err
    assert not project.lock.exists()


def conda_torches(channels: Channels, *toolkits: str) -> None:
    """Serve torch as conda-forge does: its libraries apart, builds for CUDA and for the CPU, and toolkits."""
    parts = (
        *("cuda-nvcc", "cuda-cudart-dev", "cuda-cccl", "cuda-nvml-dev", "cuda-nvrtc-dev", "cuda-nvtx-dev"),
        *("cuda-profiler-api", "libcublas-dev", "libcufft-dev", "libcufile-dev", "libcurand-dev"),
        *("libcusolver-dev", "libcusparse-dev", "libnvjitlink-dev"),
    )
    for cuda in toolkits:
        exact = f"cuda-version {cuda}.*"
        channels.add("main-line", package("cuda-version", cuda), *(package(name, cuda, "0", exact) for name in parts))
    for version, build, *depends in (
        ("2.8.0", "cuda126_mkl_h1_300", "cuda-version >=12.6,<13", "__cuda"),
        ("2.9.1", "cuda129_mkl_h1_300", "cuda-version >=12.9,<13", "__cuda"),
        ("2.9.1", "cpu_mkl_h1_100"),
    ):
        numbered = {"build_number": int(build.rpartition("_")[2])}
        torch = package("pytorch", version, f"{build[:-4]}_py_{build[-3:]}", f"libtorch {version} {build}")
        channels.add("main-line", package("libtorch", version, build, *depends, **numbered), torch | numbered)


FOLLOWING = 'platforms = ["linux-64"]\nchannels = ["main-line"]\n[requirements]\ncuda = "torch"\n'


def test_a_toolkit_follows_the_conda_package_of_torch(project: Project, channels: Channels) -> None:
    conda_torches(channels, "12.6", "12.9", "13.0")
    rewrite(project, head=FOLLOWING, dependencies='pytorch = "*"')
    assert "TE313" in project.ran("check", "tiny", "--build-only").out
    project.ok("lock", "tiny")
    found = chosen(project)
    assert (found["pytorch"], found["cuda-version"], found["cuda-nvcc"]) == ("2.9.1", "12.9", "12.9")
    assert read(project).requirements["cuda"] == "12.9"
    project.ok("lock", "tiny", "--check")
    rewrite(project, head=FOLLOWING, dependencies='libtorch = "<2.9"')
    project.ok("lock", "tiny")
    assert (chosen(project)["libtorch"], chosen(project)["cuda-nvcc"]) == ("2.8.0", "12.6")
    rewrite(project, head=FOLLOWING, dependencies='pytorch = { version = "*", build = "cpu*" }')
    err = project.fails(5, "no-solution", "lock", "tiny")
    assert "pytorch 2.9.1 cpu_mkl_h1_py_100 on linux-64 has no CUDA" in err
    assert 'build = "*cuda*"' in err


def test_a_toolkit_that_leads_to_another_torch_is_refused(project: Project, channels: Channels) -> None:
    """The newest torch has no toolkit beside it, and an older one of another CUDA would be selected in its place."""
    conda_torches(channels, "12.6", "12.9")
    channels.add("main-line", package("clash", "1.0", "0", constrains=["cuda-nvcc <12.9"]))
    rewrite(project, head=FOLLOWING, dependencies='pytorch = "*"\nclash = "*"')
    assert "cuda-nvcc" in project.fails(5, "no-solution", "lock", "tiny")
