"""Logins in the files of other tools stay out of the manifest and the lock, which are shared."""

from pathlib import Path

import pytest

from tests.support.projects import call

URL = "https://user:secretpw@conda.example.com/t/tk-secret-token/chan"
ENVIRONMENT = f"channels:\n  - {URL}\ndependencies:\n  - {URL}::cmake\n  - ninja\n"
PIXI = f"""\
[workspace]
name = "mine"
channels = ["{URL}", "conda-forge"]
platforms = ["linux-64"]
[dependencies]
cmake = {{ version = "*", channel = "{URL}" }}
"""
PIXI_LOCK = f"""\
version: 6
environments:
  default:
    channels:
    - url: {URL}/
    packages:
      linux-64:
      - conda: {URL}/linux-64/ninja-1.11.1-h924138e_0.conda
packages:
- conda: {URL}/linux-64/ninja-1.11.1-h924138e_0.conda
  sha256: {"a" * 64}
  depends: []
"""
CONDA_LOCK = f"""\
version: 1
metadata:
  content_hash: {{linux-64: {"b" * 64}}}
  channels:
  - url: {URL}
    used_env_vars: []
  platforms: [linux-64]
  sources: [environment.yml]
package:
- name: ninja
  version: 1.11.1
  manager: conda
  platform: linux-64
  dependencies: {{}}
  url: {URL}/linux-64/ninja-1.11.1-h924138e_0.conda
  hash: {{md5: {"c" * 32}, sha256: {"a" * 64}}}
  category: main
  optional: false
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("environment.yml", ENVIRONMENT),
        ("pixi.toml", PIXI),
        ("pixi.lock", PIXI_LOCK),
        ("conda-lock.yml", CONDA_LOCK),
    ],
)
def test_what_is_written_has_no_login(name: str, text: str, empty_project: Path) -> None:
    (empty_project / "in").mkdir()
    (empty_project / "in" / name).write_text(text)
    ended = call("import", f"in/{name}", "--name", "mine")
    assert ended.status == 0, ended.err
    assert "the login of a channel" in ended.err
    written = "".join(path.read_text() for path in (empty_project / "manifests").glob("*")) + "".join(
        path.read_text() for path in empty_project.glob("locks/*")
    )
    assert "conda.example.com" in written
    for secret in ("secretpw", "tk-secret-token", "user:"):
        assert secret not in written + ended.err + ended.out


def test_environments_that_are_no_table(empty_project: Path) -> None:
    (empty_project / "pixi.toml").write_text(f"[[environments]]\nx = 1\n{PIXI}")
    ended = call("import", "pixi.toml", "--name", "mine")
    assert (ended.status, "environments: expected a table" in ended.err) == (3, True), ended.err
