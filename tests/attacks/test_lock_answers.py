"""Locks that repeat what their manifest asks for and hold something else: nothing that a lock says of itself counts."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.attacks.outside import make_victims
from tests.support.archive_server import ask
from tests.support.conda_project import Conda
from tests.support.projects import Project, call
from tests.support.redist import Server

Rows = list[dict[str, Any]]
SHA = "ab" * 32


def _rows(data: dict[str, Any]) -> Rows:
    return [row for rows in data["tenv"]["wheels"].values() for row in rows]


def _named(name: str, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda data: [row.update(values) for row in _rows(data) if row["name"] == name]


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    def change(data: dict[str, Any]) -> None:
        for platform, rows in data["tenv"]["wheels"].items():
            data["tenv"]["wheels"][platform] = [row for row in rows if row["name"] != name]

    return change


def _extra(data: dict[str, Any], **values: Any) -> None:
    for rows in data["tenv"]["wheels"].values():
        row = {"name": "evil", "version": "1.0", "file": "evil-1.0-py3-none-any.whl", "sha256": SHA, "size": 5}
        rows.append({**row, "python": [*rows[0]["python"]], "requires": [], **values})


def _asked(data: dict[str, Any]) -> None:
    _extra(data)
    for sections in data["tenv"]["requests"].values():
        sections["pypi-dependencies"]["evil"] = ["*"]


WHEELS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "an extra wheel": (_extra, "evil is locked and nothing requires it"),
    "an extra wheel, and a request for it": (_asked, "evil is locked and nothing requires it"),
    "another version": (_named("alpha", version="0.5", file="alpha-0.5-py3-none-any.whl"), "alpha 0.5 is locked"),
    "a wheel for another machine": (
        _named("alpha", file="alpha-1.0-cp311-cp311-manylinux_2_40_x86_64.whl"),
        "alpha-1.0-cp311-cp311-manylinux_2_40_x86_64.whl is not for linux-64 with glibc 2.17",
    ),
    "a wheel that is requested is missing": (
        _without("alpha"),
        "alpha is not in the lock",
    ),
    "a wheel that another needs is missing": (
        _without("beta"),
        "alpha 1.0 requires beta, which is not in the lock",
    ),
    "a wheel too old for another": (
        _named("beta", version="0.1", file="beta-0.1-py3-none-any.whl"),
        "beta 0.1 is locked, alpha 1.0 requires >=1",
    ),
    "no requirements of a wheel": (lambda data: _rows(data)[0].pop("requires"), "requires: is required"),
    "requirements of a wheel that are no list": (
        lambda data: [row.update(requires="beta") for row in _rows(data)],
        "requires: expected a list of strings",
    ),
    "another CUDA": (lambda data: data["tenv"]["requirements"].update(cuda="13.0"), "requirements.cuda is not set"),
    "a newer C library": (lambda data: data["tenv"]["requirements"].update(glibc="2.40"), "requirements.glibc is 2.17"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHEELS)
def test_wheels_that_do_not_answer_are_refused(name: str, locked: Project) -> None:
    change, said = WHEELS[name]
    data = yaml.safe_load(locked.lock.read_text())
    change(data)
    raw = yaml.safe_dump(data, sort_keys=False)
    locked.lock.write_text(raw)
    victims = make_victims(locked)
    before = victims.hashes()
    for words in (("lock", "tiny", "--check"), ("create", "tiny", "--locked"), ("create", "tiny", "--frozen")):
        ended = call(*words)
        assert (ended.status, said in ended.err) == (7, True), (words, ended.err)
    assert locked.lock.read_text() == raw
    assert victims.hashes() == before
    assert not locked.prefix.exists()


ARCHIVES: dict[str, tuple[dict[str, Any], str]] = {
    "other bytes under the same version": ({"sha256": SHA}, "which the facts do not have"),
    "another server": (
        {"url": "https://example.org/libcusparse_lt-linux-x86_64-0.5.2.1-archive.tar.xz"},
        "is not below",
    ),
    "another product": (
        {"url": "https://developer.download.nvidia.com/compute/cudnn/redist/x-linux-x86_64-0.5.2.1-archive.tar.xz"},
        "is not below",
    ),
    "another version": ({"version": "0.4.0.7"}, "0.4.0.7 is locked, the manifest requests 0.5.2.1"),
    "another place": ({"to": "bin"}, "goes to bin in the lock"),
    "more folders dropped": ({"strip": 2}, "without its first folders: 2 in the lock"),
    "packed in another way": ({"kind": "zip"}, "is packed as zip in the lock"),
    "another name": ({"name": "evil"}, "evil is locked and nothing requires it"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_do_not_answer_are_refused(name: str, project: Project, served: Server) -> None:
    ask(project, 'cusparselt = "0.5.2.1"')
    project.ok("lock", "tiny", "--offline")
    values, said = ARCHIVES[name]
    data = yaml.safe_load(project.lock.read_text())
    data["tenv"]["archives"]["linux-64"][0].update(values)
    project.lock.write_text(yaml.safe_dump(data, sort_keys=False))
    for words in (("lock", "tiny", "--check"), ("create", "tiny", "--locked"), ("create", "tiny", "--frozen")):
        ended = call(*words)
        assert (ended.status, said in ended.err) == (7, True), (words, ended.err)
    assert served.asked == []


def test_conda_packages_of_another_channel_and_without_a_request_are_refused(conda: Conda) -> None:
    conda.lock("tool")
    text = conda.project.lock.read_text()
    conda.project.lock.write_text(text.replace(conda.channel.root, "https://conda.anaconda.org/conda-forge"))
    assert "is not a channel of the manifest" in conda.fails(7, "lock-stale")
    conda.lock("tool", "data")
    conda.project.manifest.write_text(conda.project.manifest.read_text().replace('data = "*"\n', ""))
    assert "data is locked and nothing requires it" in conda.fails(7, "lock-stale")
    assert not conda.prefix.exists()
