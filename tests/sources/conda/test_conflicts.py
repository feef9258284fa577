"""What is said where there is no solution: the lines that clash, why, and what would go together."""

from pathlib import Path

import pytest

from tenv.sources.conda.queries import nearest_first
from tests.support.channels import Channels, package
from tests.support.each import each
from tests.support.projects import Project, call

HEAD = 'platforms = ["linux-64"]\nchannels = ["forge", "maker"]\n'


@pytest.fixture
def forge(channels: Channels) -> Channels:
    """Two channels with compilers that take each other or not, and a maker whose headers the first one hides."""
    channels.add(
        "forge",
        *(package("gcc", f"{n}.0") for n in (11, 12, 13)),
        *(package("nvcc", f"12.{n}.5", "0", f"gcc >=6,<{n + 12}") for n in (0, 1, 2)),
        package("cmake", "3.31.0"),
        package("headers", "3.0"),
        package("newer", "1.0", "0", "__glibc >=2.34"),
        package("gpu", "13.0", "0", "__cuda >=13.0"),
    )
    channels.add("maker", package("static", "2.0", "m_1", "headers 2.0 m_1"), package("headers", "2.0", "m_1"))
    return channels


def refused(project: Project, dependencies: str, head: str = HEAD) -> str:
    project.manifest.write_text(f"{head}\n[dependencies]\n{dependencies}\n")
    err = project.fails(5, "no-solution", "lock", "tiny")
    return err.partition("searching for the conflict …\n")[2]


def test_a_package_that_a_channel_hides_is_told_in_one_line(project: Project, forge: Channels) -> None:
    assert refused(project, 'cmake = "*"\nstatic = { version = "2.*", channel = "maker" }') == (
        "error[no-solution]: no set of conda packages for tiny on linux-64: static 2.0 of maker requires its own "
        "headers, which forge hides under strict channel priority:\n"
        '  manifests/tiny.toml:6: static = { version = "2.*", channel = "maker" }\n'
        'hint: add headers = { channel = "maker" } to [dependencies]\n'
    )


def test_the_proposal_works(project: Project, forge: Channels) -> None:
    asked = 'cmake = "*"\nstatic = { version = "2.*", channel = "maker" }'
    assert 'headers = { channel = "maker" }' in refused(project, asked)
    project.manifest.write_text(f'{HEAD}\n[dependencies]\n{asked}\nheaders = {{ channel = "maker" }}\n')
    project.ok("lock", "tiny")


def test_a_version_that_only_a_lower_channel_has_is_hidden_too(project: Project, forge: Channels) -> None:
    assert refused(project, 'headers = "2.*"') == (
        "error[no-solution]: no set of conda packages for tiny on linux-64: forge hides the headers of maker, which "
        "is below it in `channels`:\n"
        '  manifests/tiny.toml:5: headers = "2.*"\n'
        'hint: add headers = { version = "2.*", channel = "maker" } to [dependencies]\n'
    )


def test_lines_that_clash_are_named_with_both_ways_out(project: Project, forge: Channels) -> None:
    assert refused(project, 'cmake = "*"\ngcc = "13.*"\nnvcc = "12.1.*"') == (
        "error[no-solution]: no set of conda packages for tiny on linux-64: these requests conflict:\n"
        '  manifests/tiny.toml:6: gcc = "13.*"\n'
        '  manifests/tiny.toml:7: nvcc = "12.1.*"\n'
        "  nvcc 12.1.5 requires gcc >=6,<13, and gcc 13.0 is requested\n"
        'hint: the nearest solution: gcc = "12.0", or nvcc = "12.2.5"\n'
    )


def test_a_line_of_a_parent_is_named_where_it_stands(project: Project, forge: Channels) -> None:
    parent = project.manifest.with_name("_base.toml")
    parent.write_text(f'{HEAD}\n[dependencies]\ngcc = "13.*"\n')
    err = refused(project, 'nvcc = "12.0.*"', head='extends = "_base"\n')
    assert f'  {parent}:5: gcc = "13.*"\n' in err
    assert '  manifests/tiny.toml:4: nvcc = "12.0.*"\n' in err


def test_a_version_that_is_not_there_is_told_with_the_nearest(project: Project, forge: Channels) -> None:
    assert refused(project, 'nvcc = "12.4.*"') == (
        "error[no-solution]: no set of conda packages for tiny on linux-64: forge has no matching nvcc; its nearest "
        "versions: 12.2.5, 12.1.5, 12.0.5:\n"
        '  manifests/tiny.toml:5: nvcc = "12.4.*"\n'
        'hint: the nearest solution: nvcc = "12.2.5"\n'
    )


def test_the_nearest_is_one_that_goes_together_with_the_rest(project: Project, forge: Channels) -> None:
    forge.add("forge", package("nvcc", "12.3.5", "0", "gcc >=14"))
    err = refused(project, 'gcc = "*"\nnvcc = "12.4.*"')
    assert "its nearest versions: 12.3.5, 12.2.5, 12.1.5, 12.0.5:" in err
    assert 'hint: the nearest solution: nvcc = "12.2.5"\n' in err


def test_a_name_that_no_channel_has_is_told_with_the_nearest(project: Project, forge: Channels) -> None:
    assert refused(project, 'cmakee = "*"') == (
        "error[no-solution]: no set of conda packages for tiny on linux-64: a package does not exist:\n"
        '  manifests/tiny.toml:5: cmakee = "*"\n'
        "    no cmakee in forge, maker for linux-64\n"
        "hint: did you mean `cmake`?\n"
    )


@pytest.mark.parametrize(
    ("name", "head", "told", "fix"),
    [
        ("newer", HEAD, "packages require glibc 2.34 or newer of the host, and the manifest declares 2.28", "2.34"),
        ("gpu", HEAD, "packages require cuda 13.0 or newer of the host, and the manifest declares none", "13.0"),
        (
            "gpu",
            f'{HEAD}[requirements]\ncuda = "12.1"\n',
            "packages require cuda 13.0 or newer of the host, and the manifest declares 12.1",
            "13.0",
        ),
    ],
)
def test_a_host_that_is_promised_too_little_is_told(
    project: Project, forge: Channels, name: str, head: str, told: str, fix: str
) -> None:
    err = refused(project, f'{name} = "*"', head=head)
    assert told in err
    key = "glibc" if name == "newer" else "cuda"
    assert f'hint: add `{key} = "{fix}"` to [requirements], or request older packages\n' in err


def test_only_the_platform_that_fails_is_named(project: Project, forge: Channels) -> None:
    forge.add("forge", package("cmake", "3.31.0"), platform="win-64")
    forge.add("maker", platform="win-64")
    head = 'platforms = ["linux-64", "win-64"]\nchannels = ["forge", "maker"]\n'
    err = refused(project, 'cmake = "*"\ngcc = "*"', head=head)
    assert "no set of conda packages for tiny on win-64: a package does not exist" in err


def test_the_solver_s_own_words_are_for_those_who_ask(project: Project, forge: Channels) -> None:
    refused(project, 'gcc = "13.*"\nnvcc = "12.1.*"')
    told = call("lock", "tiny", "--verbose").err
    assert "Cannot solve the request because of" in told
    assert "Cannot solve" not in call("lock", "tiny").err


def test_a_lock_that_is_there_stays_when_there_is_no_solution(project: Project, forge: Channels) -> None:
    project.manifest.write_text(f'{HEAD}\n[dependencies]\ngcc = "13.*"\n')
    project.ok("lock", "tiny")
    before = project.lock.read_bytes()
    refused(project, 'gcc = "13.*"\nnvcc = "12.1.*"')
    assert Path(project.lock).read_bytes() == before


@pytest.mark.long
def test_a_solver_that_takes_too_long_tells_what_it_was_doing(
    project: Project, forge: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rattler

    async def endless(*_: object, **__: object) -> None:
        import asyncio

        await asyncio.sleep(60)

    monkeypatch.setattr(rattler, "solve", endless)
    project.manifest.write_text(f'{HEAD}\n[dependencies]\ngcc = "*"\n')
    err = project.fails(5, "no-solution", "lock", "tiny", "--time-limit", "4")
    assert "no answer within 4 s for linux-64: the solver was still running (requests: 1, channels: 2)" in err
    assert "raise the limit: `--time-limit" in err


@each(
    "versions, wanted, nearest",
    [
        (["12.0", "12.9", "13.0"], "12.8", "12.9"),
        (["11.4.0", "13.4.0"], "12", "11.4.0"),
        (["1.0", "2.0"], "", "1.0"),
        (["2.6.1", "2.7.0"], "2.6.2", "2.6.1"),
        (["2.0.0", "2.4.6", "1.9.9"], "99", "2.4.6"),
        (["3.1.0", "3.9.0"], "2.5", "3.1.0"),
    ],
)
def test_the_nearest_version_is_that_by_numbers(versions: list[str], wanted: str, nearest: str) -> None:
    assert nearest_first(versions, wanted)[0] == nearest
