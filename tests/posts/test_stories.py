"""The machines of the posts, judged by the targets that tenv ships: each builds, and what is built runs.

What a post does not state is what its system has: GCC, glibc and Python of Ubuntu 18.04 and 20.04. `pydebug` is created
for real (tests/integration/test_pydebug.py).
"""

from pathlib import Path

import pytest

from tenv.targets.search import find_places
from tests.support.projects import call

HERE = Path(__file__).parent
STORIES = (
    ("cuda121", "ubuntu-18.04", "--pytorch=2.4 --assume-driver=535.104.12"),
    ("cuda121", "ubuntu-20.04", "--pytorch=2.4 --assume-driver=535.104.12"),
    ("cuda121", "ubuntu-20.04", "--pytorch=2.4 --assume-driver=545.29.06"),
    ("cuda102-win", "windows-10", ""),
    ("cpu-1.10", "ubuntu-18.04", "--pytorch=1.10.2"),
    ("legacy", "ubuntu-18.04", "--pytorch=0.4.1"),
    ("cuda117", "ubuntu-18.04", "--pytorch=1.12.1 --assume-driver=515.76 --assume-gpu=GTX1660Ti"),
)


@pytest.mark.parametrize(("target", "host", "more"), STORIES)
def test_a_shipped_target_fits_the_machine_of_a_post(
    target: str, host: str, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("PWD", str(HERE))
    ended = call("check", target, "--host-report", f"stories/{host}.json", *more.split(), "--json")
    assert ended.status == 0, ended.err
    assert (ended.data["build"], ended.data["run"]) == (True, True)


def test_no_manifest_here_bears_the_name_of_a_shipped_target() -> None:
    shipped = {*find_places(HERE).outside().names()}
    assert {"cuda121", "cuda117"} <= shipped
    assert shipped.isdisjoint(path.stem for path in (HERE / "manifests").glob("*.toml"))


def test_the_gcc_7_and_the_python_3_6_of_ubuntu_18_04_are_what_legacy_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("PWD", str(HERE))
    ended = call("check", "legacy", "--host-report", "stories/ubuntu-20.04.json", "--json")
    assert ended.data["build"] is False
    assert "the target resolves gcc >=4.9,<8 from the host, which has none that fits" in ended.out
    assert "apt install python3.6 python3.6-dev" in ended.out
