"""Each format by itself: what it writes, what it reads, what it says that it can't hold."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.interop.lock_index import LockIndex
from tests.interop.records import SHA, WHEELS, write_conda_lock, write_pixi
from tests.support.projects import Ended, call
from tests.support.rarely import first_fast

pytestmark = pytest.mark.usefixtures("empty_project")


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A target with conda packages and wheels, made from a pixi.lock."""
    assert call("import", str(write_pixi(tmp_path / "theirs")), "--name", "mixed").status == 0
    return Path("manifests/mixed.toml")


def done(*words: str) -> Ended:
    with LockIndex(WHEELS) as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        ended = call(*words)
    assert ended.status == 0, ended.err
    return ended


def write(name: str, text: str | bytes) -> Path:
    path = Path("theirs") / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def without_ports(path: str) -> str:
    """Return a file's text without the ports of indexes, which are others each time."""
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", Path(path).read_text())


def manifest(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(f"manifests/{name}.toml").read_text())


def test_an_imported_pixi_lock_makes_the_manifest_that_one_would_have_written(mixed: Path) -> None:
    assert mixed.read_text() == (
        "# Made by `tenv import` from pixi.lock.\n"
        'platforms = ["linux-64", "win-64"]\n'
        'channels  = ["conda-forge"]\n'
        "\n[requirements]\n"
        'cuda  = "12.1"\n'
        'glibc = "2.17"\n'
        "\n[platform.linux-64.dependencies]\n"
        'python = "3.11.*"\n'
        "\n[platform.linux-64.pypi-dependencies]\n"
        'alpha = ">=1.0,<2"\n'
        "\n[platform.win-64.dependencies]\n"
        'bzip2  = ">=1.0.8,<2"\n'
        'tzdata = "*"\n'
    )


def test_a_pixi_toml_beside_the_lock_says_what_was_asked_for(tmp_path: Path) -> None:
    file = write_pixi(tmp_path / "theirs")
    file.with_name("pixi.toml").write_text(
        '[workspace]\nchannels = ["conda-forge"]\nplatforms = ["linux-64", "win-64"]\n'
        '[dependencies]\nbzip2 = ">=1,<3"\n[target.linux.dependencies]\npython = "~=3.11.2"\n'
        '[target.unix.pypi-dependencies]\nalpha = { version = ">=1", extras = ["more"] }\n'
        'nowhere = { path = "." }\n[target.win-64.dependencies]\ntzdata = "*"\n[activation.env]\nUSE_MPI = "0"\n'
    )
    said = done("import", str(file), "--name", "asked").err
    found = manifest("asked")
    assert found["dependencies"] == {"bzip2": ">=1,<3"}
    assert found["platform"]["linux-64"]["dependencies"] == {"python": "~=3.11.2"}
    assert found["platform"]["linux-64"]["pypi-dependencies"] == {"alpha": {"version": ">=1", "extras": ["more"]}}
    assert found["activation"]["env"] == {"USE_MPI": "0"}
    assert "`nowhere` is built from a source tree" in said


def test_an_environment_yml_beside_a_conda_lock_says_what_was_asked_for(tmp_path: Path) -> None:
    file = write_conda_lock(tmp_path / "theirs")
    file.with_name("environment.yml").write_text(
        "channels: [x]\ndependencies: [bzip2 >=1, {pip: [alpha, source-only]}]\n"
    )
    done("import", str(file), "--name", "asked")
    assert manifest("asked")["channels"] == ["conda-forge"]
    assert manifest("asked")["dependencies"] == {"bzip2": ">=1", "python": "3.11.*"}
    assert manifest("asked")["pypi-dependencies"] == {"alpha": "*"}


def test_the_environments_and_platforms_that_are_not_taken_are_told(tmp_path: Path) -> None:
    file = str(write_pixi(tmp_path / "theirs"))
    said = done("import", file, "--name", "a").err
    assert "note: a target is one environment: `default` is imported, other are not" in said
    assert "not imported: skipped platforms: osx-arm64" in said
    done("import", file, "--name", "b", "--environment", "other")
    assert manifest("b")["platforms"] == ["win-64"]


def test_pixi_toml_has_platforms_that_declare_what_the_host_must_offer(mixed: Path) -> None:
    done("export", "pixi", "mixed", "-o", "out")
    found = tomllib.loads(Path("out/pixi.toml").read_text())
    assert found["workspace"] == {
        "name": "mixed",
        "channels": ["conda-forge"],
        "platforms": [
            {"platform": "linux-64", "cuda": "12.1", "glibc": "2.17"},
            {"platform": "win-64", "cuda": "12.1"},
        ],
        "channel-priority": "disabled",
    }
    assert found["target"]["linux-64"]["pypi-dependencies"] == {"alpha": ">=1.0,<2"}
    lock = yaml.safe_load(Path("out/pixi.lock").read_text())
    assert lock["platforms"][0]["virtual-packages"] == ["__cuda=12.1", "__glibc=2.17"]
    assert lock["environments"]["default"]["indexes"] == [found["pypi-options"]["index-url"]]


def test_no_file_of_the_project_names_an_index(mixed: Path) -> None:
    done("export", "pixi", "mixed", "-o", "out")
    assert b"127.0.0.1" not in mixed.read_bytes() + Path("locks/mixed.lock").read_bytes()
    assert b"example.org" not in Path("locks/mixed.lock").read_bytes()


def test_a_target_without_a_conda_python_has_no_pixi_lock() -> None:
    said = call("export", "pixi", "cpu", "-o", "out")  # asks no index
    assert said.status == 0
    assert "pixi.lock is not written: pixi requires a Python from conda" in said.err
    assert [path.name for path in Path("out").iterdir()] == ["pixi.toml"]
    assert tomllib.loads(Path("out/pixi.toml").read_text())["dependencies"] == {"python": ">=3.11,<3.15"}
    said = call("export", "conda-lock", "cpu", "-o", "out")
    assert (said.status, "no Python from conda" in said.err) == (2, True)


def test_requirements_of_several_pythons_have_markers() -> None:
    assert call("export", "requirements.txt", "cpu", "-o", "out").status == 0
    rows = [line for line in Path("out/requirements.txt").read_text().splitlines() if line.startswith("numpy==")]
    assert len(rows) == 2
    assert rows[0].endswith('python_version == "3.11" \\')
    assert 'python_version == "3.12" or python_version == "3.13" or python_version == "3.14"' in rows[1]


def test_explicit_lists_hold_urls_and_hashes(mixed: Path) -> None:
    said = done("export", "explicit", "mixed", "-o", "out").err
    text = Path("out/mixed-linux-64.txt").read_text()
    assert text.startswith("# platform: linux-64\n@EXPLICIT\nhttps://conda.anaconda.org/conda-forge/linux-64/_libgcc")
    digest = "c30daba32ddebbb7ded490f0e371eae90f51e72db620554089103b4a6934b0d5"
    assert f"/linux-64/bzip2-1.0.8-hda65f42_8.conda#sha256:{digest}\n" in text
    wheels = [line.partition(" @ ") for line in text.splitlines() if line.startswith("# pip ")]
    assert [name for name, _, _ in wheels] == ["# pip alpha", "# pip beta"]
    assert all("/alpha-1.0-" in where or "/beta-" in where for _, _, where in wheels)
    assert "not exported: requirements on the host: cuda, glibc" in said
    done("export", "explicit", "mixed", "-o", "out", "--md5", "--force")
    assert (
        "bzip2-1.0.8-hda65f42_8.conda#51a19bba1b8ebfb60df25cde030b7ebc\n" in Path("out/mixed-linux-64.txt").read_text()
    )


@pytest.mark.parametrize("hashes", first_fast([("--md5",), ()]))
def test_an_explicit_list_comes_back_as_it_went(mixed: Path, hashes: tuple[str, ...]) -> None:
    done("export", "explicit", "mixed", "-o", "out", *hashes)
    first = without_ports("out/mixed-linux-64.txt")
    done("import", "out/mixed-linux-64.txt", "--name", "mixed", "--force")
    assert "python" in manifest("mixed")["dependencies"]
    assert manifest("mixed")["pypi-dependencies"].keys() == {"alpha", "beta"}
    done("export", "explicit", "mixed", "-o", "out", "--force", *hashes)
    assert without_ports("out/mixed-linux-64.txt") == first


def test_environment_yml_pins_what_is_locked_or_says_what_is_asked(mixed: Path) -> None:
    done("export", "environment.yml", "mixed", "-o", "out", "--platform", "linux-64")
    found = yaml.safe_load(Path("out/environment.yml").read_text())
    assert found["channels"] == ["conda-forge", "nodefaults"]
    assert "python=3.11.14=hd63d673_2_cpython" in found["dependencies"]
    assert found["dependencies"][-1] == {"pip": ["alpha==1.0", "beta==1.2"]}
    asked = done("export", "environment.yml", "mixed", "-o", "-", "--platform", "linux-64", "--requests").out
    assert yaml.safe_load(asked)["dependencies"] == ["python 3.11.*", "pip", {"pip": ["alpha<2,>=1.0"]}]


def test_an_environment_yml_is_read_as_it_is_meant() -> None:
    file = write(
        "environment.yml",
        "name: my env\nchannels: [pytorch, conda-forge, nodefaults]\nplatforms: [linux-64, win-64, osx-64]\n"
        "dependencies:\n- python=3.11\n- numpy >=1.26,<2\n- pytorch::magma-cuda121==2.6.1\n- openssl 3.0|3.1\n"
        "- gcc 12.*  # [linux]\n- blas=*=mkl\n- pip:\n  - requests[socks]>=2 ; python_version < '4'\n  - -e .\n"
        "variables: {USE_CUDA: 1}\nprefix: /home/me/x\n",
    )
    ended = done("import", str(file), "--json")
    assert ended.data["target"] == "my-env"
    assert ended.data["lock"] is None
    found = manifest("my-env")
    assert found["channels"] == ["pytorch", "conda-forge"]
    assert found["platforms"] == ["linux-64", "win-64"]
    assert found["dependencies"] == {
        "blas": {"version": "*", "build": "mkl"},
        "magma-cuda121": {"version": "2.6.1", "channel": "pytorch"},
        "numpy": ">=1.26,<2",
        "openssl": "==3.0|==3.1",
        "python": "3.11.*",
    }
    assert found["platform"] == {"linux-64": {"dependencies": {"gcc": "12.*"}}}
    assert found["pypi-dependencies"] == {"requests": {"version": ">=2", "extras": ["socks"]}}
    assert found["activation"]["env"] == {"USE_CUDA": "1"}
    assert ended.data["lost"] == [
        "skipped platforms: osx-64",
        "`.`, a folder whose project has no name in its files",
    ]
    assert ended.data["notes"] == ["an environment.yml has no hashes, so no lock is written: `tenv lock` writes one"]
    assert "not imported: an environment.yml" not in ended.err


def test_requirements_and_pylock_hold_the_wheels(mixed: Path) -> None:
    said = done("export", "requirements.txt", "mixed", "-o", "out").err
    text = Path("out/requirements.txt").read_text()
    marker = 'sys_platform == "linux" and platform_machine == "x86_64"'
    assert f"alpha==1.0 ; {marker} \\\n    --hash=sha256:{SHA['alpha']}\n" in text
    assert "not exported: conda packages: 6 are omitted" in said
    done("export", "pylock.toml", "mixed", "-o", "out")
    from packaging.pylock import Pylock

    found = Pylock.from_dict(tomllib.loads(Path("out/pylock.toml").read_text()))
    alpha = found.packages[0]
    assert alpha.wheels
    assert (str(alpha.name), str(alpha.version), alpha.wheels[0].hashes) == ("alpha", "1.0", {"sha256": SHA["alpha"]})


@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml"])
def test_the_wheels_formats_are_read_as_requests(mixed: Path, name: str) -> None:
    done("export", name, "mixed", "-o", "out")
    ended = done("import", f"out/{name}", "--name", "back", "--json")
    assert set(manifest("back")["pypi-dependencies"]) == {"alpha", "beta"}
    assert manifest("back")["pypi-dependencies"]["alpha"] == "1.0"
    assert bool(ended.data["lock"]) == (name == "pylock.toml")
    assert any("no lock is written" in line for line in ended.data["notes"]) == (name != "pylock.toml")


def test_conda_lock_itself_reads_what_is_written(mixed: Path) -> None:
    from conda_lock.lockfile import parse_conda_lock_file

    ended = done("export", "conda-lock", "mixed", "-o", "out", "--json")
    found = parse_conda_lock_file(Path("out/conda-lock.yml"))
    assert {package.name for package in found.package if package.manager == "pip"} == {"alpha", "beta"}
    assert [channel.url for channel in found.metadata.channels] == ["conda-forge"]
    assert "requirements on the host: cuda, glibc" in ended.data["lost"]
    assert json.loads(ended.out)["data"]["files"] == ["out/conda-lock.yml"]


def test_nothing_is_overwritten_unasked(mixed: Path, tmp_path: Path) -> None:
    again = call("import", str(write_conda_lock(tmp_path / "more")), "--name", "mixed")
    assert (again.status, "already exists" in again.err, "--force" in again.err) == (2, True, True)
    done("export", "explicit", "mixed", "-o", "out")
    with LockIndex(WHEELS) as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", index.url)
        again = call("export", "explicit", "mixed", "-o", "out")
    assert (again.status, "error[file-exists]: out/mixed-linux-64.txt" in again.err) == (2, True)


def test_conda_lock_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "conda_lock.lockfile", None)
    said = call("import", str(write_conda_lock(tmp_path / "theirs")))
    assert said.status == 2
    assert "conda-lock is not installed in tenv's environment" in said.err
    assert f"{sys.executable} -" in said.err
    assert "[conda-lock]" in said.err
