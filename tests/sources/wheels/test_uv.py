"""What tenv makes of uv's words, and which of an index's files it takes."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tenv.core.certificates import Authorities
from tenv.core.errors import (
    EnvironmentBrokenError,
    HashMismatchError,
    NetworkError,
    NoSolutionError,
    StorageError,
    TenvError,
)
from tenv.core.progress import Silent, Transfer
from tenv.core.versions import Range, Version
from tenv.core.wheel_platforms import accepted_tags
from tenv.locks.lock import Wheel
from tenv.sources.wheels import uv as pypi
from tenv.sources.wheels import uv_output
from tenv.sources.wheels.choose import choose_wheel, join, need_builds, requirement
from tenv.sources.wheels.uv_output import download_progress, of_build, uv_error
from tenv.targets.manifest import WheelRequest
from tests.support.each import each
from tests.support.lock_builders import manifest
from tests.support.projects import HERE


def wheel(name: str, version: str = "1.0", *, size: int | None = None, python: tuple[str, ...] = ("3.12",)) -> Wheel:
    return Wheel(name, version, f"{name}-{version}-py3-none-any.whl", name[0] * 64, size, python)


@each(
    "request_, line",
    [
        (WheelRequest(Range("*")), "alpha"),
        (WheelRequest(Range(">=1,<2")), "alpha<2,>=1"),
        (WheelRequest(Range("1.2")), "alpha==1.2"),
        (WheelRequest(Range("1.2.*"), ("a", "b")), "alpha[a,b]==1.2.*"),
    ],
)
def test_a_request_is_a_line_of_requirements(request_: WheelRequest, line: str) -> None:
    assert requirement("alpha", request_) == line


# Errors: uv's words as it wrote them.

WORDS: list[tuple[type[TenvError], str]] = [
    (
        HashMismatchError,
        "error: Failed to download `alpha==1.0`\n  cause: Hash mismatch for `alpha==1.0`\n\n   Expected:\n",
    ),
    (
        HashMismatchError,
        "error: Failed to download `alpha==1.0`\n  cause: Failed to extract archive: alpha-1.0-py3-none-any.whl\n"
        "  cause: Bad CRC (got 10694e9d, expected 779edaeb) for file: alpha-1.0.dist-info/RECORD\n",
    ),
    (
        StorageError,
        "error: Failed to download `large==1.0`\n  cause: Failed to extract archive: large-1.0-py3-none-any.whl\n"
        "  cause: failed to write to file `/small/large.bin`: No space\n         left on device (os error 28)\n",
    ),
    (
        StorageError,
        "error: Failed to install: a.whl (a==1)\n  cause: failed to create: Permission denied (os error 13)\n",
    ),
    (StorageError, "error: Failed to initialize cache at `/c`\n  cause: Read-only file system (os error 30)\n"),
    (NetworkError, "error: Failed to fetch: http://127.0.0.1:1/simple/alpha/\n  cause: operation timed out\n"),
    (NetworkError, "error: Request failed after 3 retries in 6.9s\n  cause: tcp connect error\n"),
    (
        NetworkError,
        "  \u00d7 No solution found when resolving dependencies:\n  \u2570 Because alpha was not found\n"
        "      hint: An index (http://127.0.0.1:1/simple) returned a 403 Forbidden error.\n",
    ),
    (
        NetworkError,
        "error: No solution found when resolving dependencies\n  cause: Because alpha was not found in the cache\n\n"
        "hint: Packages were unavailable because the network was disabled.\n",
    ),
    (
        NoSolutionError,
        "error: No solution found when resolving dependencies\n  cause: Because only connection<=1 is available "
        "and you require certificate and connection>=2, we can conclude that your requirements are unsatisfiable.\n",
    ),
    (NetworkError, "error: Failed to read `--find-links` directory: /mirror\n  cause: No such file or directory\n"),
    (EnvironmentBrokenError, "error: something new\n"),
    (EnvironmentBrokenError, ""),
]


@each("kind, words", WORDS)
def test_uvs_words_become_the_error_that_they_stand_for(kind: type[TenvError], words: str) -> None:
    error = uv_error(words, "what was done", Authorities(), EnvironmentBrokenError)
    assert type(error) is kind
    done = "uv can't use its cache" if "initialize cache" in words else "what was done"
    assert error.message.startswith(f"{done}:\n")


def test_a_proxy_that_is_down_is_named() -> None:
    words = "error: Failed to fetch: https://x/\n Caused by: tunnel error: failed to create\n underlying connection"
    assert "check the proxy (HTTPS_PROXY" in uv_error(words, "what was done", Authorities()).hint
    for cause in ("tunnel error: proxy\n authorization required", "HTTP status client error (407 Proxy Authentication"):
        words = f"error: Failed to fetch: https://x/\n Caused by: {cause}"
        assert "USER:PASSWORD@" in uv_error(words, "what was done", Authorities()).hint


def test_a_full_disk_is_no_fault_of_a_cached_wheel() -> None:
    """Each wheel was thrown out of the cache, and downloaded again, while the disk was full."""
    words = "error: Failed to install: alpha-1.0-py3-none-any.whl (alpha==1.0)\n  cause: "
    assert uv_output.unusable(f"{words}The RECORD file is invalid") == "alpha"
    for cause in ("failed to copy file: No space left on device (os error 28)", "Permission\n  denied (os error 13)"):
        assert not uv_output.unusable(words + cause)


def test_a_version_that_no_release_has_is_known_by_each_form_of_uv() -> None:
    end = ", we can conclude that your requirements are unsatisfiable."
    for cause in (
        "there is no version of two==3 and you require two==3",
        "only one==1.0 is available and you require one>=99",
        "only two<=4.0 is available and you require two>=99",
        "only the following versions of two are available:\n      two<=2\n      two>3\n  and you require two>2,<3",
        "nine was not found in the package registry and you require nine",
    ):
        assert uv_output.unpublished(f"error: No solution found\n  cause: Because {cause}{end}"), cause
    for cause in (
        "two==4.0 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you require two>=4",
        "only two==4.0 is available and two==4.0 depends on Python>=3.12, we know that two can't be used. And because "
        "you require two",
    ):
        assert not uv_output.unpublished(f"error: No solution found\n  cause: Because {cause}{end}"), cause


def test_uvs_progress_and_warnings_are_no_part_of_its_error() -> None:
    talk = (
        "warning: `VIRTUAL_ENV=x` does not match\r\n\u280b Resolving dependencies...   \r\u2819 alpha==1.0          "
        "error: Failed to fetch: `x`\r\n  cause: operation timed out\r\n"
    )
    assert uv_output._tidy(talk) == "  Failed to fetch: `x`\n  cause: operation timed out"


# Progress.


class Watcher(Silent):
    """Keeps the last report."""

    def __init__(self) -> None:
        self.last: dict[str, Transfer] = {}

    def transfers(self, running: Mapping[str, Transfer]) -> None:
        self.last = dict(running)


def bar(name: str, done: str, total: str) -> str:
    line = f"{name:<20} {'-' * 30} {done:>8}/{total}"
    return f"\r\u2819 Preparing packages... (0/3){' ' * 170}{line:<200}"


def test_downloads_are_told_as_far_as_they_are() -> None:
    watcher = Watcher()
    wheels = [wheel("alpha", size=2048), wheel("big-one", size=3 << 30), wheel("unsized")]
    read = download_progress(wheels, watcher)
    read(bar("alpha", "1.00 KiB", "2.00 KiB"))
    assert watcher.last == {"alpha": Transfer("alpha", 1024, 2048)}
    read(bar("alpha", "2.00 KiB", "2.00 KiB") + bar("big_one", "1.5 GiB", "3.0 GiB") + bar("unsized", "0 B", "10 B"))
    assert watcher.last["alpha"] == Transfer("alpha", 2048, 2048)
    assert watcher.last["big-one"] == Transfer("big-one", 3 << 29, 3 << 30)
    assert watcher.last["unsized"] == Transfer("unsized", 0, 10)
    read("Prepared 3 packages in 1s\r\n")
    assert all(row.done == row.total for row in watcher.last.values())


def test_downloads_never_go_back_and_others_are_not_ours() -> None:
    watcher = Watcher()
    read = download_progress([wheel("alpha", size=2048)], watcher)
    read(bar("alpha", "1.50 KiB", "2.00 KiB"))
    read(bar("alpha", "1.00 KiB", "2.00 KiB") + bar("stranger", "1 B", "2 B"))
    assert watcher.last == {"alpha": Transfer("alpha", 1536, 2048)}


def test_lines_padded_to_the_width_of_a_terminal_cost_no_time() -> None:
    """A pattern that looks at each blank from each blank before it would not come to an end here."""
    watcher = Watcher()
    read = download_progress([wheel("alpha", size=2048)], watcher)
    read(f"\r\u2819 Resolving dependencies...{' ' * 2_000_000}{bar('alpha', '1.00 KiB', '2.00 KiB')}")
    assert watcher.last == {"alpha": Transfer("alpha", 1024, 2048)}


# The choice of a file.


def row(file: str, digest: str = "a") -> dict[str, object]:
    return {"url": f"https://host.example/x/{file}", "hashes": {"sha256": digest * 64}, "size": 3}


def choose(platform: str, python: str, *files: str, glibc: str = "2.17") -> str:
    tags = accepted_tags(platform, python, Version(glibc))
    package = {"name": "A_b", "version": "1.0", "wheels": [row(file) for file in files]}
    name, (found, url) = choose_wheel(package, tags, python)
    assert (name, found.name, found.python, url) == ("a-b", "a-b", (python,), f"https://host.example/x/{found.file}")
    return found.file.removeprefix("a_b-1.0-").removesuffix(".whl")


NATIVE = "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64"
NEWER = "cp312-cp312-manylinux_2_28_x86_64"
OLDER = "cp312-cp312-manylinux_2_5_x86_64.manylinux1_x86_64"
STABLE = "cp38-abi3-manylinux_2_17_x86_64"
PURE = "py3-none-any"
ARM = "cp312-cp312-manylinux_2_17_aarch64"
WINDOWS = "cp312-cp312-win_amd64"
MUSL = "cp312-cp312-musllinux_1_2_x86_64"
ALL = [f"a_b-1.0-{tag}.whl" for tag in (PURE, MUSL, ARM, OLDER, NEWER, STABLE, WINDOWS, NATIVE)]


@each(
    "platform, python, glibc, expected",
    [
        ("linux-64", "3.12", "2.17", NATIVE),
        ("linux-64", "3.12", "2.28", NEWER),
        ("linux-64", "3.12", "2.35", NEWER),
        ("linux-64", "3.13", "2.28", STABLE),
        ("linux-aarch64", "3.12", "2.28", ARM),
        ("linux-aarch64", "3.13", "2.28", PURE),
        ("win-64", "3.12", "2.28", WINDOWS),
        ("win-64", "3.11", "2.28", PURE),
    ],
)
def test_the_most_specific_file_that_runs_there_is_taken(platform: str, python: str, glibc: str, expected: str) -> None:
    assert choose(platform, python, *ALL, glibc=glibc) == expected
    assert choose(platform, python, *reversed(ALL), glibc=glibc) == expected


def test_a_package_without_a_file_that_runs_there_is_no_solution() -> None:
    with pytest.raises(NoSolutionError, match=r"a-b 1.0: the index has no matching wheel with a sha256"):
        choose("win-64", "3.12", f"a_b-1.0-{NATIVE}.whl")


def test_a_file_without_a_digest_is_not_taken() -> None:
    package = {"name": "a", "version": "1", "wheels": [{**row("a-1-py3-none-any.whl"), "hashes": {"md5": "x"}}]}
    with pytest.raises(NoSolutionError):
        choose_wheel(package, accepted_tags("linux-64", "3.12", Version("2.17")), "3.12")


def test_the_one_file_of_an_address_is_taken() -> None:
    package = {"name": "a", "archive": row("a-1-py3-none-any.whl")}
    _, (found, url) = choose_wheel(package, accepted_tags("linux-64", "3.12", Version("2.17")), "3.12")
    assert (found.version, url.endswith("a-1-py3-none-any.whl")) == ("1", True)


def test_a_quoted_url_gives_the_files_own_name() -> None:
    package = {"name": "a", "version": "1+cu13", "wheels": [row("a-1%2Bcu13-py3-none-any.whl?x=1#sha256=0")]}
    _, (found, _) = choose_wheel(package, accepted_tags("linux-64", "3.12", Version("2.17")), "3.12")
    assert found.file == "a-1+cu13-py3-none-any.whl"


def test_choices_are_joined_to_one_row_a_file() -> None:
    both, sized = wheel("both", python=("3.12",)), wheel("sized", size=5, python=("3.12",))
    older = wheel("both", python=("3.9",))
    newer = wheel("both", version="2.0", python=("3.13",))
    resolved = [{"both": (older, "u")}, {"both": (both, "u"), "sized": (sized, "u")}, {"both": (newer, "u")}]
    assert join(resolved, {"b" * 64: 7, "s" * 64: 9}) == (
        wheel("both", size=7, python=("3.9", "3.12")),
        wheel("both", version="2.0", size=7, python=("3.13",)),
        wheel("sized", size=5, python=("3.12",)),
    )


# Pythons.


def test_a_python_tells_its_version_and_whether_it_has_headers(pythons: Path) -> None:
    uv = pypi.Uv({}, Path.home())
    found = uv.inspect(pythons / f"python{HERE}")
    assert found is not None
    assert found.version.major_minor == HERE
    assert uv.inspect(Path("/bin/true")) is None
    assert uv.inspect(Path("/nowhere")) is None


def test_a_failed_build_is_no_conflict_of_requests() -> None:
    """With a hint, the error is reported at once; without one, requests are solved again for a minute."""
    for line, name in (
        ("  Failed to build `tensorrt-cu12-libs==10.0.1`", "tensorrt-cu12-libs"),
        ("  Failed to download and build `Sam_2 @ git+https://example.org/sam2.git`", "sam-2"),
    ):
        error = of_build(NoSolutionError("no set of wheels"), f"{line}\n  ├─▶ The build backend returned an error\n")
        assert error.hint.startswith(f"another version of {name}, or an index with its wheel")
    assert of_build(NoSolutionError("no set of wheels"), "No solution found").hint == ""
    for said in ("ImportError: PyTorch is required to install it", "  ERROR: install torch first"):
        output = f"  Failed to build `torch-own==1.0`\n  [stderr]\n{said}\n"
        hint = of_build(NoSolutionError("no set of wheels"), output).hint
        assert hint.startswith('`torch-own = { version = "*", build = true, isolation = false }` compiles it')
    output = "  Failed to build `torch-own==1.0`\n  [stderr]\n  torch_own/setup.py: no `numpy`\n"
    assert of_build(NoSolutionError("no set of wheels"), output).hint.startswith("another version of torch-own")


def test_only_what_uv_names_is_built() -> None:
    """Each resolution takes seconds: those that a lock needs are one more than the archives that uv finds in turn."""

    def needed(
        *archives: str, named: bool = True, start: tuple[str, ...] = (), bare: tuple[str, ...] = ()
    ) -> tuple[list[str], int]:
        built, asked = [*start], []

        def ask() -> None:
            asked.append([*built])
            if missing := [name for name in archives if name not in built]:
                hint = f"hint: Wheels are required for `{missing[0]}` because building from source is disabled"
                raise NoSolutionError(hint if named else "No solution found")

        need_builds(built, replace(manifest(), sdists=("a", "b", "c")), ask, bare.__contains__)
        return sorted(built), len(asked)

    assert needed() == ([], 1)
    assert needed("a") == (["a"], 2)
    assert needed("a", "c") == (["a", "c"], 3)
    assert needed("a", "c", start=("a", "c")) == (["a", "c"], 1)
    assert needed("a", start=("b",)) == (["a"], 3)
    assert needed("a", "c", named=False)[0] == ["a", "c"]
    assert needed("d")[0] == ["a", "b", "c"]
    assert needed(bare=("b",)) == (["b"], 1)
    assert needed("a", bare=("b",)) == (["a", "b"], 3)


def test_a_cache_that_can_t_be_written_is_no_fault_of_an_index(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_text("a file")
    uv = pypi.Uv({**os.environ, "UV_CACHE_DIR": str(cache)}, tmp_path)
    with pytest.raises(StorageError, match="uv can't use its cache"):
        uv.releases(["alpha==1.0"], "3.12")
